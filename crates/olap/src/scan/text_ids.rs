//! Texts as numbers, for an operator that groups or joins by them.
//!
//! Responsible for: the number of each text that one partition of a scan meets, from 0 in the order in which they are met,
//! NULL being a text like others; or those that a join has given ([`super::joined_texts`]). Of an encoded column the texts that rows share are looked up once a chunk, and only those
//! that some row has that passed; a row is then a load from an array. Not responsible for: what numbers are used for
//! (`crate::physical`), and how much memory they may take: whoever uses them asks and accounts for it.
//! **Invariant:** two rows have one number exactly if their texts are equal byte for byte, or both NULL; texts have no other
//! order or equality here. Each number is that of a row which was delivered, or is about to be.
//!
//! A dictionary is that of its chunk, so numbers are looked up anew in each; those of other partitions differ.
//! Paper: Funke, Kemper and Neumann, PVLDB 5(11), 2012, §3.4.

use std::fmt;
use std::sync::Arc;

use albireo_encoding::Selection;
use arrow::array::{Array, ArrayRef, RecordBatch, StringViewArray, UInt32Array};
use arrow::buffer::NullBuffer;
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::physical_expr::binary_map::OutputType;
use datafusion::physical_expr_common::binary_view_map::ArrowBytesViewMap;

use super::exec::ScanStream;
use super::joined_texts::JoinedTexts;
use super::sums::Part;
use crate::errors::{external, internal};
use crate::relation::EncodedColumn;

/// A schema with numbers in these columns.
pub(super) fn schema_with(schema: Schema, ids: &[usize]) -> SchemaRef {
    if ids.is_empty() {
        return Arc::new(schema);
    }
    let field = |(index, field): (usize, &Arc<Field>)| match ids.contains(&index) {
        true => Arc::new(Field::new(field.name(), DataType::UInt32, false)),
        false => Arc::clone(field),
    };
    let fields: Vec<_> = schema.fields().iter().enumerate().map(field).collect();
    Arc::new(Schema::new(fields))
}

/// Where numbers come from.
enum Texts {
    /// Those that were met.
    Met(ArrowBytesViewMap<u32>),
    /// Those of the built side of a join.
    Joined(Arc<JoinedTexts>),
}

/// The texts of one column that were met, and their numbers.
pub(crate) struct TextIds {
    /// Which column of the scan's output it is.
    column: usize,
    texts: Texts,
    /// Kept for their memory: the place of each row's text among those of a chunk; whether some row has these; their numbers.
    places: Vec<u16>,
    is_used: Vec<bool>,
    numbers: Vec<u32>,
}

impl fmt::Debug for TextIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextIds").field("column", &self.column).field("count", &self.count()).finish()
    }
}

impl TextIds {
    /// No text yet.
    pub(super) fn new(column: usize, joined: Option<Arc<JoinedTexts>>) -> Self {
        let met = || Texts::Met(ArrowBytesViewMap::new(OutputType::Utf8View));
        let texts = joined.map_or_else(met, Texts::Joined);
        Self { column, texts, places: Vec::new(), is_used: Vec::new(), numbers: Vec::new() }
    }

    /// The column of the scan's output that they are of.
    pub(super) fn column(&self) -> usize {
        self.column
    }

    /// How many texts were met; their numbers are below it.
    pub(crate) fn count(&self) -> usize {
        match &self.texts {
            Texts::Met(map) => map.len(),
            Texts::Joined(_) => 0,
        }
    }

    /// Memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let texts = match &self.texts {
            Texts::Met(map) => map.size(),
            Texts::Joined(_) => 0,
        };
        texts
            + self.places.capacity() * size_of::<u16>()
            + self.is_used.capacity()
            + self.numbers.capacity() * size_of::<u32>()
    }

    /// The texts that were met in the order of their numbers, which begin anew.
    pub(crate) fn take(&mut self) -> ArrayRef {
        match &mut self.texts {
            Texts::Met(map) => map.take().into_state(),
            Texts::Joined(_) => Arc::new(StringViewArray::new_null(0)),
        }
    }

    /// The numbers of texts, each of which is looked up.
    pub(super) fn of_texts(&mut self, texts: &ArrayRef) -> Result<ArrayRef> {
        let mut ids = Vec::with_capacity(texts.len());
        self.texts.look_up(texts, |id| ids.push(id))?;
        Ok(Arc::new(UInt32Array::from(ids)))
    }

    /// The numbers of the texts of `rows`, so many.
    pub(super) fn of_encoded(
        &mut self,
        column: &dyn EncodedColumn,
        rows: &Selection<'_>,
        selected: usize,
    ) -> Result<ArrayRef> {
        // Where there are more texts than rows, the rows are looked up.
        let shared = column.shared().filter(|shared| *shared <= selected);
        let Some(texts) = shared.and_then(|_| column.shared_texts()) else {
            return self.of_texts(&column.array(rows));
        };
        self.places.clear();
        column.places(rows, &mut self.places);
        let nulls = column.nulls(rows);
        self.number_places(&texts, nulls.as_ref())?;
        let mut ids: Vec<u32> = self.places.iter().map(|place| self.numbers[usize::from(*place)]).collect();
        if let Some(nulls) = nulls {
            let null: ArrayRef = Arc::new(StringViewArray::new_null(1));
            let mut number = 0;
            self.texts.look_up(&null, |id| number = id)?;
            (!nulls.inner()).set_indices().for_each(|row| ids[row] = number);
        }
        Ok(Arc::new(UInt32Array::from(ids)))
    }

    /// Looks up those of a chunk's texts that some row has which is not NULL.
    fn number_places(&mut self, texts: &ArrayRef, nulls: Option<&NullBuffer>) -> Result<()> {
        self.is_used.clear();
        self.is_used.resize(texts.len(), false);
        match nulls {
            None => self.places.iter().for_each(|place| self.is_used[usize::from(*place)] = true),
            Some(nulls) => {
                nulls.valid_indices().for_each(|row| self.is_used[usize::from(self.places[row])] = true);
            }
        }
        let used = self.is_used.iter().enumerate().filter(|(_, is_used)| **is_used);
        let used: UInt32Array = used.map(|(place, _)| place as u32).collect();
        let texts = match used.len() == texts.len() {
            true => Arc::clone(texts),
            false => take(texts, &used, None)?,
        };
        self.numbers.clear();
        self.numbers.resize(self.is_used.len(), 0);
        let mut places = used.values().iter();
        let numbers = &mut self.numbers;
        self.texts.look_up(&texts, |id| {
            if let Some(place) = places.next() {
                numbers[*place as usize] = id;
            }
        })
    }
}

impl Texts {
    /// Calls `found` with the number of each text.
    fn look_up(&mut self, texts: &ArrayRef, found: impl FnMut(u32)) -> Result<()> {
        let map = match self {
            Self::Met(map) => map,
            Self::Joined(joined) => return joined.look_up(texts, found),
        };
        let mut next = map.len() as u32;
        let number = |_: Option<&[u8]>| {
            next += 1;
            next - 1
        };
        map.insert_if_new(texts, number, found);
        Ok(())
    }
}

/// One partition's share of the chunks, with texts as numbers.
pub(crate) struct IdRows(pub(super) ScanStream);

impl IdRows {
    /// The next rows.
    ///
    /// # Errors
    /// The query was cancelled, or chunks cannot be read.
    pub(crate) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        std::future::poll_fn(|context| self.0.poll_turn(context)).await;
        match self.0.timed_part()? {
            Some(Part::Rows(batch)) => Ok(Some(batch)),
            Some(Part::Sums(_)) => Err(external(internal("sums were not asked for"))),
            None => Ok(None),
        }
    }

    /// The rows that have numbers and were not delivered yet.
    pub(crate) fn rest(&mut self) -> Result<Vec<RecordBatch>> {
        let coalescer = &mut self.0.coalescer;
        coalescer.finish_buffered_batch()?;
        Ok(std::iter::from_fn(|| coalescer.next_completed_batch()).collect())
    }

    /// The numbers, by column.
    pub(crate) fn ids(&mut self) -> &mut [TextIds] {
        &mut self.0.ids
    }
}
