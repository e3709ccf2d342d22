//! Other shapes in which a scan gives its rows, for operators that know what to do with them.
//!
//! Responsible for: whether a scan can, and the scan that does. Not responsible for: how ([`super::sums`],
//! [`super::text_ids`], [`super::gather`]).

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::physical_plan::ExecutionPlan;

use super::exec::{ScanExec, ScanSpec, ScanStream};
use super::joined_texts::JoinedTexts;
use super::sums::{Adding, Parts, Wanted};
use super::text_ids::IdRows;

impl ScanExec {
    /// The same scan for an operator that does nothing with the delivered columns `sums` but add them
    /// up, by all other columns. `None`: some column is not fit for it.
    pub(crate) fn summing(&self, sums: Vec<usize>) -> Option<Self> {
        let spec = &self.spec;
        let fits = |(index, field): (usize, &FieldRef)| match field.data_type() {
            // The sum of a chunk's values, 63 bits each, fits 128 bits.
            DataType::Decimal128(precision, _) if sums.contains(&index) => *precision <= 18,
            _ => !sums.contains(&index),
        };
        let schema = self.schema();
        let fit = schema.fields().iter().enumerate().all(fits);
        let plain = spec.limit.is_none() && spec.others.is_empty() && self.delivers_no_nulls();
        if !fit || !plain || sums.is_empty() || !spec.sums.is_empty() {
            return None;
        }
        let spec = ScanSpec { sums, ..ScanSpec::clone(spec) };
        let mut scan = self.fresh(self.dynamic.clone());
        scan.spec = Arc::new(spec);
        Some(scan)
    }

    /// The share of a partition, of which what is wanted is added up by the scan where it can.
    pub(crate) fn parts(&self, partition: usize, wanted: &Wanted) -> Parts {
        let mut stream = ScanStream::new(self, partition);
        stream.adding = Some(Adding::new(wanted, &self.spec.projection));
        Parts(stream)
    }

    /// The same scan with these columns of texts as numbers, and where they are: in the texts' place, or behind all others
    /// if the texts are wanted too. `None`: it stops after some rows.
    pub(crate) fn with_ids(
        &self,
        texts: &[usize],
        wanted: &BTreeSet<usize>,
    ) -> Result<Option<(Self, Vec<usize>)>> {
        if self.spec.limit.is_some() {
            return Ok(None);
        }
        // Rows that differ in sums alone only become one where no column is of texts.
        let mut spec = ScanSpec { sums: Vec::new(), ..ScanSpec::clone(&self.spec) };
        for &text in texts {
            if wanted.contains(&text) {
                spec.ids.push(spec.projection.len());
                spec.projection.push(spec.projection[text]);
            } else {
                spec.ids.push(text);
            }
        }
        let ids = spec.ids.clone();
        let mut scan = Self::try_new(spec, self.properties.partitioning.partition_count())?;
        scan.dynamic = self.dynamic.clone();
        Ok(Some((scan, ids)))
    }

    /// The same scan with a column of texts as the numbers that a join gives them, and where they are: in the texts' place,
    /// or behind all others if the texts are wanted too. `None`: it stops after some rows, or does so already.
    pub(crate) fn joined(
        &self,
        text: usize,
        is_wanted: bool,
        texts: Arc<JoinedTexts>,
    ) -> Result<Option<(Self, usize)>> {
        if !self.spec.ids.is_empty() {
            return Ok(None);
        }
        let wanted: BTreeSet<usize> = is_wanted.then_some(text).into_iter().collect();
        let Some((mut scan, ids)) = self.with_ids(&[text], &wanted)? else { return Ok(None) };
        Arc::make_mut(&mut scan.spec).joined = Some(texts);
        Ok(Some((scan, ids[0])))
    }

    /// The share of a partition, with texts as numbers.
    pub(crate) fn id_rows(&self, partition: usize) -> IdRows {
        IdRows(ScanStream::new(self, partition))
    }
}
