//! Sums, counts, and least and greatest values of encoded chunks, for an operator that wants no more of a scan.
//!
//! Responsible for: what of a chunk is added up on codes, what its summaries say without reading it, and handing both out
//! beside the rows of all other chunks. Not responsible for: which aggregations these are (`crate::physical`), how codes
//! are added (`albireo_encoding`), which least and greatest values are exact ([`super::extremes`]).
//! **Invariant:** what is added up are the rows that the scan would have delivered, and each of them once.
//!
//! Q1 of CH-benCHmark took 6 ns a row where frozen rows were decoded, batched and grouped. Paper: Moerkotte, *Small
//! Materialized Aggregates*, VLDB 1998; Funke, Kemper and Neumann, PVLDB 5(11), 2012, §3.

use albireo_base::ColumnId;
use albireo_encoding::{Groups, Sum, Summary};
use arrow::array::RecordBatch;
use arrow::buffer::BooleanBuffer;
use datafusion::common::{Result, ScalarValue};

use super::codes;
use super::exec::ScanStream;
use super::extremes::Extreme;
use crate::relation::ChunkData;

/// One row in this many, or more, passes where all codes are read for sums by group.
const SPARSE: usize = 16;

/// What is wanted of each chunk. Columns are those of the scan's output.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// The integers that rows are grouped by.
    pub(crate) groups: Vec<usize>,
    /// The integers that are added up and counted, without NULLs.
    pub(crate) sums: Vec<usize>,
    /// The columns of which the least or the greatest value is wanted; only without groups. They are not looked for on
    /// codes: a chunk gives them without being read, or its rows.
    pub(crate) extremes: Vec<(usize, Extreme)>,
}

/// What the rows of a chunk come to, by group; there are no groups without rows.
#[derive(Debug)]
pub(crate) struct ChunkSums {
    /// By group: the value of each column of [`Wanted::groups`].
    pub(crate) keys: Vec<Vec<Option<i64>>>,
    /// By group: its rows.
    pub(crate) rows: Vec<u32>,
    /// By column of [`Wanted::sums`] and group.
    pub(crate) sums: Vec<Vec<Sum>>,
    /// Those of [`Wanted::extremes`], NULL where there is no value.
    pub(crate) extremes: Vec<ScalarValue>,
}

/// A chunk, or some.
pub(crate) enum Part {
    /// Their rows.
    Rows(RecordBatch),
    /// What the rows of one come to.
    Sums(ChunkSums),
}

/// One partition's share of the chunks, added up where that can be done on codes.
pub(crate) struct Parts(pub(super) ScanStream);

impl Parts {
    /// The next part.
    ///
    /// # Errors
    /// The query was cancelled, or chunks cannot be read.
    pub(crate) async fn next(&mut self) -> Result<Option<Part>> {
        std::future::poll_fn(|context| self.0.poll_turn(context)).await;
        self.0.timed_part()
    }
}

/// Adds up chunk by chunk.
#[derive(Debug)]
pub(super) struct Adding {
    /// As in [`Wanted`], but columns of the relation.
    groups: Vec<ColumnId>,
    sums: Vec<ColumnId>,
    extremes: Vec<(ColumnId, Extreme)>,
    /// Kept for its memory.
    numbers: Groups,
}

impl Adding {
    pub(super) fn new(wanted: &Wanted, projection: &[ColumnId]) -> Self {
        let of = |columns: &[usize]| columns.iter().map(|&index| projection[index]).collect();
        let extremes = wanted.extremes.iter().map(|(index, extreme)| (projection[*index], extreme.clone()));
        Self {
            groups: of(&wanted.groups),
            sums: of(&wanted.sums),
            extremes: extremes.collect(),
            numbers: Groups::default(),
        }
    }

    /// What all live rows of a chunk come to, so many, without reading them. `None`: it is not known.
    pub(super) fn known(&self, chunk: &dyn ChunkData, live: usize) -> Option<ChunkSums> {
        if !self.groups.is_empty() {
            return None;
        }
        // It is of the rows that lived when it was encoded, to which none comes back.
        let covers = |summary: &Summary| (summary.count + summary.nulls) as usize == live;
        let sum = |column: &ColumnId| {
            let encoded = chunk.encoded(*column)?;
            let summary = encoded.summary();
            let sum = summary.sum.filter(|_| covers(summary))?;
            Some(vec![Sum { sum, count: summary.count }])
        };
        let extreme = |(column, extreme): &(ColumnId, Extreme)| {
            let encoded = chunk.encoded(*column)?;
            let summary = encoded.summary();
            if covers(summary) { extreme.of(summary) } else { None }
        };
        let sums: Option<Vec<_>> = self.sums.iter().map(sum).collect();
        let extremes: Option<Vec<_>> = self.extremes.iter().map(extreme).collect();
        Some(ChunkSums { keys: vec![Vec::new()], rows: vec![live as u32], sums: sums?, extremes: extremes? })
    }

    /// What the `selected` rows of `mask`, all of them if there is none, come to. `None`: they have to be looked at as rows.
    pub(super) fn add(
        &mut self,
        chunk: &dyn ChunkData,
        mask: Option<&BooleanBuffer>,
        selected: usize,
    ) -> Option<ChunkSums> {
        if !self.extremes.is_empty() {
            return None;
        }
        let words = mask.map(codes::words);
        if self.groups.is_empty() {
            return self.add_all(chunk, words, selected);
        }
        if selected * SPARSE < chunk.slots() {
            return None;
        }
        let numbers = &mut self.numbers;
        numbers.reset(chunk.slots());
        if !self
            .groups
            .iter()
            .all(|column| chunk.encoded(*column).is_some_and(|column| column.split(numbers)))
        {
            return None;
        }
        numbers.keep(words.as_deref());
        let filled: Vec<usize> = (0..numbers.groups()).filter(|group| numbers.count(*group) > 0).collect();
        let sum_by = |column: &ColumnId| {
            let sums = chunk.encoded(*column)?.sum_by(numbers)?;
            Some(filled.iter().map(|group| sums[*group]).collect())
        };
        Some(ChunkSums {
            sums: self.sums.iter().map(sum_by).collect::<Option<_>>()?,
            keys: filled.iter().map(|group| numbers.key(*group)).collect(),
            rows: filled.iter().map(|group| numbers.count(*group)).collect(),
            extremes: Vec::new(),
        })
    }

    /// As [`Adding::add`], without groups.
    fn add_all(&self, chunk: &dyn ChunkData, words: Option<Vec<u64>>, selected: usize) -> Option<ChunkSums> {
        let words = words.unwrap_or_else(|| codes::all(chunk.slots()));
        let sum = |column: &ColumnId| Some(vec![chunk.encoded(*column)?.sum(&words)]);
        let sums: Option<Vec<_>> = self.sums.iter().map(sum).collect();
        let (keys, extremes) = (vec![Vec::new()], Vec::new());
        Some(ChunkSums { keys, rows: vec![selected as u32], sums: sums?, extremes })
    }
}
