//! An encoded column: single values, and what it consists of.

use std::borrow::Cow;
use std::fmt;

use crate::compressed::Compressed;
use crate::layers::{Codes, Nulls, Runs, Store, wrong_kind};
use crate::lent::Lent;
use crate::numbers::code_at;
use crate::packed::{Lengths, Packed, pack};
use crate::scalar::{Kind, Scalar};
use crate::section::{Section, SectionName};

/// What is known of the rows of a column that were alive when it was encoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The least value in SQL's order, whole; none if there is no value. Of floats that are equal in that order it is any.
    pub least: Option<Scalar>,
    /// The greatest value, likewise.
    pub greatest: Option<Scalar>,
    /// Live rows that have a value.
    pub count: u32,
    /// Live rows that are NULL.
    pub nulls: u32,
    /// The sum of the values; of integers only, and 0 if there is none. What floats add up to depends on their order, and
    /// integers of 128 bits may add up to more than 128 bits have room for.
    pub sum: Option<i128>,
}

impl Summary {
    /// The least and the greatest value; `None` if there is no value, or they are no integers.
    #[inline]
    pub fn integers(&self) -> Option<(i64, i64)> {
        match (&self.least, &self.greatest) {
            (Some(Scalar::Integer(least)), Some(Scalar::Integer(greatest))) => Some((*least, *greatest)),
            _ => None,
        }
    }
}

/// One column of up to 65,536 rows, encoded. Nobody writes it.
///
/// - C-1 The value of each row that was alive and not NULL when it was encoded comes back bit for bit. At other rows
///   there is some value of the kind; of rows that were dead it is not known either whether they are NULL.
/// - C-2 No function panics for rows below [`Column::rows`] and values of the column's kind, whatever the bytes are
///   that [`Column::from_parts`] let through.
/// - C-3 A text of a column that is neither packed nor compressed ([`Column::lends_texts`]) is contiguous, in a section, in
///   the column itself or where it was lent from, so that it can be lent. So is each text of a dictionary or of runs.
///
/// Functions that want a row panic if there are not so many rows, or may give any value of another one.
#[derive(Clone, Debug)]
pub struct Column<S> {
    pub(crate) kind: Kind,
    pub(crate) rows: u32,
    pub(crate) nulls: Nulls<S>,
    pub(crate) runs: Option<Runs<S>>,
    pub(crate) codes: Option<Codes<S>>,
    pub(crate) store: Store<S>,
    pub(crate) summary: Summary,
}

impl<S> Column<S> {
    /// A column of `rows` rows, at most 65,536, none of which lives.
    pub fn of_dead_rows(kind: Kind, rows: usize) -> Self {
        let sum = kind.is_integer().then_some(0);
        Self {
            kind,
            rows: rows as u32,
            nulls: Nulls::None,
            runs: None,
            codes: None,
            store: Store::Constant(kind.zero()),
            summary: Summary { sum, ..Summary::default() },
        }
    }

    /// A column of `rows` rows, at most 65,536, all of which are NULL.
    pub fn of_nulls(kind: Kind, rows: usize) -> Self {
        Self { nulls: Nulls::All, ..Self::of_dead_rows(kind, rows) }
    }

    /// What the values are.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// How many rows there are, live, dead and NULL.
    #[inline]
    pub fn rows(&self) -> usize {
        self.rows as usize
    }

    /// What was known of the live rows when they were encoded.
    #[inline]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Whether any row may be NULL.
    #[inline]
    pub fn has_nulls(&self) -> bool {
        !matches!(self.nulls, Nulls::None)
    }

    /// How it is encoded.
    pub fn form(&self) -> Form {
        let store = match &self.store {
            Store::Constant(_) => StoreForm::Constant,
            Store::Integers { width, .. } => StoreForm::Integers { bytes: *width as u8 },
            Store::Plain(_) => StoreForm::Plain { bytes: self.kind.stride().unwrap_or(0) as u8 },
            Store::FixedTexts { length, .. } => StoreForm::FixedTexts { bytes: *length },
            Store::Lent(Lent { length: Some(length), .. }) => StoreForm::FixedTexts { bytes: *length },
            Store::Texts { .. } | Store::Lent(_) => StoreForm::Texts,
            Store::Packed(packed) => StoreForm::PackedTexts {
                bits: packed.alphabet.bits() as u8,
                symbols: match packed.lengths {
                    Lengths::One(length) => Some(length),
                    Lengths::Offsets { .. } => None,
                },
            },
            Store::Compressed(texts) => StoreForm::CompressedTexts { symbols: texts.count },
        };
        Form {
            is_null: matches!(self.nulls, Nulls::All),
            runs: self.runs.as_ref().map(|runs| runs.count),
            dictionary: self.codes.as_ref().map(|codes| (codes.entries, codes.width as u8)),
            store,
        }
    }

    /// How many positions codes, or else the store, have: one for each run, or else for each row.
    #[inline]
    pub(crate) fn positions(&self) -> usize {
        self.runs.as_ref().map_or(self.rows, |runs| runs.count) as usize
    }

    /// How many places the store has.
    #[inline]
    pub(crate) fn places(&self) -> usize {
        self.codes.as_ref().map_or_else(|| self.positions(), |codes| codes.entries as usize)
    }

    /// Its sections, in the order of their names. Texts that are lent are in none ([`Column::unshared`]).
    pub fn sections(&self) -> impl Iterator<Item = (SectionName, &S)> {
        let nulls = match &self.nulls {
            Nulls::None | Nulls::All => None,
            Nulls::Bits(section) | Nulls::Ranges(section) => Some(section),
        };
        let mut symbols = None;
        let (offsets, values) = match &self.store {
            Store::Constant(_) | Store::Lent(_) => (None, None),
            Store::Integers { codes: section, .. }
            | Store::Plain(section)
            | Store::FixedTexts { bytes: section, .. } => (None, Some(section)),
            Store::Texts { offsets, bytes } => (Some(offsets), Some(bytes)),
            Store::Packed(Packed { lengths: Lengths::Offsets { offsets, .. }, codes, .. }) => {
                (Some(offsets), Some(codes))
            }
            Store::Packed(Packed { codes, .. }) => (None, Some(codes)),
            Store::Compressed(Compressed { offsets, codes, table, .. }) => {
                symbols = Some(table);
                (Some(offsets), Some(codes))
            }
        };
        let all = [
            (SectionName::Nulls, nulls),
            (SectionName::Ends, self.runs.as_ref().map(|runs| &runs.ends)),
            (SectionName::Codes, self.codes.as_ref().map(|codes| &codes.section)),
            (SectionName::Offsets, offsets),
            (SectionName::Values, values),
            (SectionName::Symbols, symbols),
        ];
        all.into_iter().filter_map(|(name, section)| Some((name, section?)))
    }

    /// The section of this name, if there is one.
    pub fn section(&self, name: SectionName) -> Option<&S> {
        self.sections().find_map(|(other, section)| (other == name).then_some(section))
    }

    /// The same column with its sections elsewhere. `map` is called with each, in the order of their names, and must
    /// keep the bytes as they are.
    ///
    /// # Errors
    /// The first that `map` returns.
    pub fn map_sections<T, E>(
        self,
        mut map: impl FnMut(SectionName, S) -> Result<T, E>,
    ) -> Result<Column<T>, E> {
        let nulls = match self.nulls {
            Nulls::None => Nulls::None,
            Nulls::All => Nulls::All,
            Nulls::Bits(section) => Nulls::Bits(map(SectionName::Nulls, section)?),
            Nulls::Ranges(section) => Nulls::Ranges(map(SectionName::Nulls, section)?),
        };
        let runs = match self.runs {
            Some(Runs { count, ends }) => Some(Runs { count, ends: map(SectionName::Ends, ends)? }),
            None => None,
        };
        let codes = match self.codes {
            Some(Codes { width, section, entries }) => {
                Some(Codes { width, section: map(SectionName::Codes, section)?, entries })
            }
            None => None,
        };
        let store = match self.store {
            Store::Constant(scalar) => Store::Constant(scalar),
            Store::Integers { base, width, codes } => {
                Store::Integers { base, width, codes: map(SectionName::Values, codes)? }
            }
            Store::Plain(section) => Store::Plain(map(SectionName::Values, section)?),
            Store::FixedTexts { length, bytes } => {
                Store::FixedTexts { length, bytes: map(SectionName::Values, bytes)? }
            }
            Store::Texts { offsets, bytes } => Store::Texts {
                offsets: map(SectionName::Offsets, offsets)?,
                bytes: map(SectionName::Values, bytes)?,
            },
            Store::Packed(Packed { alphabet, lengths, codes }) => {
                let lengths = match lengths {
                    Lengths::One(length) => Lengths::One(length),
                    Lengths::Offsets { offsets, symbols } => {
                        Lengths::Offsets { offsets: map(SectionName::Offsets, offsets)?, symbols }
                    }
                };
                Store::Packed(Packed { alphabet, lengths, codes: map(SectionName::Values, codes)? })
            }
            Store::Compressed(Compressed { count, offsets, codes, table }) => Store::Compressed(Compressed {
                count,
                offsets: map(SectionName::Offsets, offsets)?,
                codes: map(SectionName::Values, codes)?,
                table: map(SectionName::Symbols, table)?,
            }),
            Store::Lent(lent) => Store::Lent(lent),
        };
        Ok(Column { kind: self.kind, rows: self.rows, nulls, runs, codes, store, summary: self.summary })
    }
}

impl<S> Column<S> {
    /// Of integers that are stored as differences to a base: that, and the bytes of each difference.
    pub fn frame(&self) -> Option<(i64, usize)> {
        match &self.store {
            Store::Integers { base, width, .. } => Some((*base, *width as usize)),
            _ => None,
        }
    }

    /// Whether texts are packed.
    pub fn is_packed(&self) -> bool {
        matches!(self.store, Store::Packed(_))
    }

    /// Whether texts are compressed ([`compress_texts`](crate::compress_texts)).
    pub fn is_compressed(&self) -> bool {
        matches!(self.store, Store::Compressed(_))
    }

    /// Texts, one behind the other, as the values of this column of packed texts; none if it has no code for a byte, or is
    /// another column.
    pub fn pack(&self, texts: &[u8]) -> Option<Vec<u8>> {
        match &self.store {
            Store::Packed(packed) => pack(texts, &packed.alphabet),
            _ => None,
        }
    }

    /// How it says which rows are NULL.
    pub fn null_form(&self) -> NullForm {
        match &self.nulls {
            Nulls::None => NullForm::None,
            Nulls::All => NullForm::All,
            Nulls::Bits(_) => NullForm::Bits,
            Nulls::Ranges(_) => NullForm::Ranges,
        }
    }
}

/// How a column says which rows are NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NullForm {
    /// None is.
    None,
    /// All are.
    All,
    /// A section has a bit for each row.
    Bits,
    /// A section has ranges of rows.
    Ranges,
}

impl<S: Section> Column<S> {
    /// The values below runs and dictionary, as a column of their own: one for each entry of the dictionary, or else for
    /// each run, or else for each row. Of a constant, one.
    pub fn stored(&self) -> Column<&[u8]> {
        let store = self.store.borrowed();
        let rows = if matches!(store, Store::Constant(_)) { 1 } else { self.places() as u32 };
        let summary = Summary::default();
        Column { kind: self.kind, rows, nulls: Nulls::None, runs: None, codes: None, store, summary }
    }

    /// The bytes of all sections.
    pub fn bytes(&self) -> usize {
        self.sections().map(|(_, section)| section.bytes().len()).sum()
    }

    /// Where the value of `row` is in the store.
    #[inline]
    pub(crate) fn place(&self, row: usize) -> usize {
        let position = match &self.runs {
            None => row,
            Some(runs) => runs.find(row),
        };
        match &self.codes {
            None => position,
            Some(codes) => codes.get(position),
        }
    }

    /// Where the value of `row` begins, for whoever will want it soon: the rest of its section from there. None if it lies in
    /// no section of this column.
    #[inline]
    pub fn begins(&self, row: usize) -> Option<&[u8]> {
        let (section, at) = match &self.store {
            Store::Constant(_) | Store::Lent(_) => return None,
            Store::Integers { width, codes, .. } => (codes, self.place(row) * *width as usize),
            Store::Plain(section) => (section, self.place(row) * self.kind.stride()?),
            Store::FixedTexts { length, bytes } => (bytes, self.place(row) * *length as usize),
            Store::Texts { offsets, .. } => (offsets, self.place(row) * 4),
            Store::Compressed(texts) => (&texts.offsets, row * 4),
            Store::Packed(packed) => match &packed.lengths {
                Lengths::One(length) => (&packed.codes, row * *length as usize * packed.alphabet.bits() / 8),
                Lengths::Offsets { offsets, .. } => (offsets, row * 4),
            },
        };
        section.bytes().get(at..)
    }

    /// Whether `row` is NULL.
    #[inline]
    pub fn is_null(&self, row: usize) -> bool {
        self.nulls.contains(row)
    }

    /// The integer of `row`.
    ///
    /// # Panics
    /// The kind is none of integers.
    #[inline]
    pub fn integer(&self, row: usize) -> i64 {
        match &self.store {
            Store::Integers { base, width, codes } => {
                base.wrapping_add(code_at(*width, codes.bytes(), self.place(row)) as i64)
            }
            Store::Constant(Scalar::Integer(value)) => *value,
            _ => wrong_kind("integers"),
        }
    }

    /// The 16 bytes of `row`: of [`Kind::I128`] little endian, of [`Kind::Uuid`] in their order.
    ///
    /// # Panics
    /// The kind is another.
    #[inline]
    pub fn wide(&self, row: usize) -> [u8; 16] {
        match &self.store {
            Store::Plain(section) if matches!(self.kind, Kind::I128 | Kind::Uuid) => {
                section.bytes().as_chunks().0[self.place(row)]
            }
            Store::Constant(Scalar::I128(value)) => value.to_le_bytes(),
            Store::Constant(Scalar::Uuid(bytes)) => *bytes,
            _ => wrong_kind("values of 16 bytes"),
        }
    }

    /// The bits of the float of `row`; of [`Kind::F32`] in the low half.
    ///
    /// # Panics
    /// The kind is none of floats.
    #[inline]
    pub fn float_bits(&self, row: usize) -> u64 {
        match &self.store {
            Store::Plain(section) => match self.kind {
                Kind::F64 => u64::from_le_bytes(section.bytes().as_chunks().0[self.place(row)]),
                Kind::F32 => u32::from_le_bytes(section.bytes().as_chunks().0[self.place(row)]).into(),
                _ => wrong_kind("floats"),
            },
            Store::Constant(Scalar::F64(bits)) => *bits,
            Store::Constant(Scalar::F32(bits)) => (*bits).into(),
            _ => wrong_kind("floats"),
        }
    }

    /// The text of `row`, lent unless texts are packed or compressed.
    ///
    /// # Panics
    /// The kind is another.
    #[inline]
    pub fn text(&self, row: usize) -> Cow<'_, [u8]> {
        match &self.store {
            Store::Constant(Scalar::Text(text)) => Cow::Borrowed(text),
            Store::Packed(packed) => Cow::Owned(packed.text(row)),
            Store::Compressed(texts) => Cow::Owned(texts.reader().text(row)),
            store => Cow::Borrowed(store.text(self.place(row))),
        }
    }

    /// Makes `out` the text of `row`.
    ///
    /// # Panics
    /// The kind is another.
    pub fn text_in(&self, row: usize, out: &mut Vec<u8>) {
        match &self.store {
            Store::Packed(packed) => {
                packed.text_in(row, out);
            }
            Store::Compressed(texts) => {
                let length = texts.reader().text_in(row, out).len();
                out.truncate(length);
            }
            _ => {
                out.clear();
                out.extend_from_slice(&self.text(row));
            }
        }
    }

    /// The bytes that the text of `row` has.
    ///
    /// # Panics
    /// The kind is another.
    #[inline]
    pub fn text_length(&self, row: usize) -> usize {
        match &self.store {
            Store::Packed(packed) => packed.symbols(row..row + 1).len(),
            Store::Compressed(texts) => texts.reader().length(row),
            _ => self.text(row).len(),
        }
    }

    /// Whether texts can be lent: they lie somewhere as they are.
    #[inline]
    pub fn lends_texts(&self) -> bool {
        self.kind == Kind::Text && !matches!(self.store, Store::Packed(_) | Store::Compressed(_))
    }

    /// The value of `row`, of whichever kind; some value if it is NULL.
    pub fn scalar(&self, row: usize) -> Scalar {
        match &self.store {
            Store::Constant(scalar) => scalar.clone(),
            Store::Packed(packed) => Scalar::Text(packed.text(row).into()),
            Store::Compressed(texts) => Scalar::Text(texts.reader().text(row).into()),
            store => store.scalar(self.kind, self.place(row)).to_scalar(),
        }
    }
}

/// How a column is encoded, for people: `37 runs`, `dictionary of 40 in 1 byte`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Every row is NULL.
    pub is_null: bool,
    /// How many runs there are, if it is runs.
    pub runs: Option<u32>,
    /// How many entries the dictionary has, and the bytes of a code, if there is one.
    pub dictionary: Option<(u32, u8)>,
    /// How the values are stored: those of the rows, of the runs or of the dictionary.
    pub store: StoreForm,
}

impl Form {
    /// How many values are stored that rows share: those of a dictionary, of runs, or one. `None`: each row has its own.
    pub fn shared(&self) -> Option<usize> {
        let several = self.dictionary.map(|(entries, _)| entries).or(self.runs);
        match self.store {
            StoreForm::Constant => Some(1),
            _ => several.map(|several| several as usize),
        }
    }
}

/// How values are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreForm {
    /// One for all.
    Constant,
    /// As differences to a base.
    Integers {
        /// Of each.
        bytes: u8,
    },
    /// As they are.
    Plain {
        /// Of each.
        bytes: u8,
    },
    /// Texts of one length.
    FixedTexts {
        /// Of each.
        bytes: u32,
    },
    /// Texts of any length.
    Texts,
    /// Texts of few different bytes.
    PackedTexts {
        /// Of each byte.
        bits: u8,
        /// Bytes of each text before it was packed, if all are as long.
        symbols: Option<u32>,
    },
    /// Texts in strings that are frequent.
    CompressedTexts {
        /// Such strings.
        symbols: u8,
    },
}

fn plural(bytes: u8) -> &'static str {
    if bytes == 1 { "byte" } else { "bytes" }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.is_null, self.runs, self.dictionary) {
            (true, _, _) => f.write_str("all NULL"),
            (_, Some(runs), None) => write!(f, "{runs} runs"),
            (_, Some(runs), Some((entries, _))) => write!(f, "{runs} runs, dictionary of {entries}"),
            (_, None, Some((entries, bytes))) => {
                write!(f, "dictionary of {entries} in {bytes} {}", plural(bytes))
            }
            (_, None, None) => match self.store {
                StoreForm::Constant => f.write_str("constant"),
                StoreForm::Integers { bytes } => write!(f, "integers of {bytes} {}", plural(bytes)),
                StoreForm::Plain { bytes } => write!(f, "values of {bytes} {}", plural(bytes)),
                StoreForm::FixedTexts { bytes } => write!(f, "texts of {bytes} bytes"),
                StoreForm::Texts => f.write_str("texts"),
                StoreForm::PackedTexts { bits, symbols } => {
                    let unit = if bits == 1 { "bit" } else { "bits" };
                    match symbols {
                        Some(length) => write!(f, "texts of {length} bytes of {bits} {unit}"),
                        None => write!(f, "texts of {bits} {unit} a byte"),
                    }
                }
                StoreForm::CompressedTexts { symbols } => write!(f, "texts compressed by {symbols} symbols"),
            },
        }
    }
}
