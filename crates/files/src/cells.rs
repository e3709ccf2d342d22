//! The fields of a chunk's records: where each is, and which are NULL.
//!
//! Responsible for: the table that splitters fill and columns are made from, the number of fields of each
//! record. Not responsible for: what separates fields (`csv`, `text`, `json`).

use memchr::memchr;

use crate::Places;
use crate::column::Text;

/// Set in a cell's length: the field is NULL.
const NULL: u32 = 1 << 31;
/// Set in a cell's length: its text is in [`Cells::aside`] instead of the chunk.
const ASIDE: u32 = 1 << 30;
const LENGTH: u32 = ASIDE - 1;

/// How many fields records have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// As many; any other number is an error.
    Fields(usize),
    /// Each its own number.
    Any,
}

/// One field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    start: u32,
    length: u32,
}

impl Cell {
    pub(crate) const NULL: Self = Self { start: 0, length: NULL };

    /// The chunk's bytes from `start` to `end`.
    #[inline]
    pub(crate) fn of(start: usize, end: usize) -> Self {
        debug_assert!(start <= end && end <= LENGTH as usize, "chunks are smaller than 2^30 bytes");
        Self { start: start as u32, length: (end - start) as u32 }
    }
}

/// Why reading stopped within a chunk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    UnterminatedQuote,
    CarriageReturn,
    /// Fewer fields than columns: how many.
    Missing(usize),
    /// More fields than columns.
    Extra,
    /// `\.` where more stands on its line.
    EndMark,
    Json(String),
    /// A member of JSON for which there is no field.
    Stranger(String),
}

/// Fields of all records.
pub(crate) struct Cells {
    shape: Shape,
    cells: Vec<Cell>,
    /// Texts that do not stand in the chunk as they are meant.
    pub(crate) aside: Vec<u8>,
    rows: usize,
    /// The number of cells where each record ends, if their numbers differ.
    ends: Vec<usize>,
    first_line: u64,
    /// The line of each row, as soon as one is not the line after the last one's.
    lines: Option<Vec<u64>>,
    /// What is wrong with the record after the last one, and its line.
    pub(crate) stop: Option<(u64, Stop)>,
    /// The data ended before the chunk did.
    pub(crate) ended: bool,
    /// How many records to read.
    limit: usize,
    /// Where the record after the last one begins.
    pub(crate) next: usize,
}

impl Cells {
    pub(crate) fn new(shape: Shape, first_line: u64, capacity: usize) -> Self {
        Self {
            shape,
            cells: Vec::with_capacity(capacity),
            aside: Vec::new(),
            rows: 0,
            ends: Vec::new(),
            first_line,
            lines: None,
            stop: None,
            ended: false,
            limit: usize::MAX,
            next: 0,
        }
    }

    /// Reads no more than `limit` records.
    pub(crate) fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Cells of the record that is being read.
    #[inline]
    pub(crate) fn open(&self) -> usize {
        let before = match self.shape {
            Shape::Fields(fields) => self.rows * fields,
            Shape::Any => self.ends.last().copied().unwrap_or(0),
        };
        self.cells.len() - before
    }

    /// Adds a field; false if the record has too many.
    #[inline]
    pub(crate) fn push(&mut self, cell: Cell) -> bool {
        self.cells.push(cell);
        match self.shape {
            Shape::Fields(fields) => self.open() <= fields,
            Shape::Any => true,
        }
    }

    /// Puts a whole record of NULLs in place, to be filled by [`Cells::set`].
    pub(crate) fn push_nulls(&mut self, count: usize) -> usize {
        let at = self.cells.len();
        self.cells.resize(at + count, Cell::NULL);
        at
    }

    pub(crate) fn set(&mut self, at: usize, cell: Cell) {
        self.cells[at] = cell;
    }

    /// The text of a cell that is not NULL.
    pub(crate) fn bytes_of<'a>(&'a self, cell: Cell, chunk: &'a [u8]) -> &'a [u8] {
        let from = if cell.length & ASIDE == 0 { chunk } else { &self.aside };
        let start = cell.start as usize;
        &from[start..start + (cell.length & LENGTH) as usize]
    }

    /// The cell of what was put aside since it was `start` bytes long.
    pub(crate) fn aside_from(&self, start: usize) -> Cell {
        let mut cell = Cell::of(start, self.aside.len());
        cell.length |= ASIDE;
        cell
    }

    /// The record that began on `line` is complete, and the next one begins at `next`; false if its number of
    /// fields is wrong or no more are wanted.
    #[inline]
    pub(crate) fn end_record(&mut self, line: u64, next: usize) -> bool {
        let open = self.open();
        match self.shape {
            Shape::Fields(fields) if open != fields => {
                self.fail(line, if open < fields { Stop::Missing(open) } else { Stop::Extra });
                return false;
            }
            Shape::Fields(_) => {}
            Shape::Any => self.ends.push(self.cells.len()),
        }
        match &mut self.lines {
            Some(lines) => lines.push(line),
            None if line == self.first_line + self.rows as u64 => {}
            None => {
                let before = (0..self.rows as u64).map(|row| self.first_line + row);
                self.lines = Some(before.chain([line]).collect());
            }
        }
        self.rows += 1;
        self.next = next;
        self.rows < self.limit
    }

    /// The record on `line` cannot be read, and so none after it.
    pub(crate) fn fail(&mut self, line: u64, stop: Stop) {
        self.cells.truncate(self.cells.len() - self.open());
        self.stop = Some((line, stop));
    }

    /// A view of the fields over the chunk that they were read from.
    pub(crate) fn view<'a>(&'a self, chunk: &'a [u8]) -> CellsView<'a> {
        let is_checked = memchr(0, chunk).is_none() && memchr(0, &self.aside).is_none();
        CellsView { cells: self, chunk, is_checked }
    }

    /// The line on which a row begins.
    pub(crate) fn line(&self, row: usize) -> u64 {
        match &self.lines {
            Some(lines) => lines[row],
            None => self.first_line + row as u64,
        }
    }

    /// Where the rows are.
    pub(crate) fn places(self) -> Places {
        match self.lines {
            Some(lines) => Places::Listed(lines),
            None => Places::Consecutive(self.first_line),
        }
    }
}

/// Fields as texts.
#[derive(Clone, Copy)]
pub(crate) struct CellsView<'a> {
    cells: &'a Cells,
    chunk: &'a [u8],
    is_checked: bool,
}

impl<'a> CellsView<'a> {
    #[inline]
    fn text(&self, cell: Cell) -> Option<Text<'a>> {
        if cell.length & NULL != 0 {
            return None;
        }
        Some(Text { bytes: self.cells.bytes_of(cell, self.chunk), is_checked: self.is_checked })
    }

    /// Column `column` of the first `rows` rows, if all records have as many fields.
    pub(crate) fn column(
        &self,
        column: usize,
        rows: usize,
    ) -> impl Iterator<Item = Option<Text<'a>>> + Clone {
        let Shape::Fields(fields) = self.cells.shape else { panic!("records differ in length") };
        let view = *self;
        (0..rows).map(move |row| view.text(view.cells.cells[row * fields + column]))
    }

    /// All fields of a row.
    pub(crate) fn record(&self, row: usize) -> impl Iterator<Item = Option<Text<'a>>> {
        let (start, end) = match self.cells.shape {
            Shape::Fields(fields) => (row * fields, (row + 1) * fields),
            Shape::Any => {
                let start = row.checked_sub(1).map_or(0, |before| self.cells.ends[before]);
                (start, self.cells.ends[row])
            }
        };
        let view = *self;
        self.cells.cells[start..end].iter().map(move |cell| view.text(*cell))
    }
}
