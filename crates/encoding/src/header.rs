//! The form in bytes: a header, and sections that are as they are.
//!
//! Responsible for: writing the header, reading it, and checking all of a column once, so that nothing that is read
//! later can go wrong (C-2). Not responsible for: checksums; bytes that differ and keep the rules are other values.
//!
//! All numbers are little endian. A scalar is its bytes; a text has its length, `u32`, before it.
//!
//! ```text
//! version u8 | kind u8 | rows u32
//! nulls u8: 0 none, 1 all, 2 bits, 3 ranges and their number u32
//! number of runs u32, 0 if it is not runs
//! bytes of a code u8, 0 if there is no dictionary | entries u32
//! store u8: 0 constant and its scalar, 1 integers: base i64, bytes of each u8, 2 as they are,
//!           3 texts of one length u32, 4 texts and the bytes of all u32,
//!           5 packed texts of one length u32, 6 packed texts and the symbols of all u32; each then the number of bytes
//!           of the alphabet u8, and those
//!           7 compressed texts: the codes of all u32, and the number of symbols u8
//! count u32 | nulls u32 | sum: 0 u8, or 1 u8 and i128 | least, greatest: each 0 u8, or 1 u8 and a scalar
//! ```

use crate::bits;
use crate::check;
use crate::column::{Column, Summary};
use crate::compressed::{Compressed, TABLE};
use crate::error::{FromPartsError, Malformed};
use crate::layers::{Codes, Nulls, Runs, Store};
use crate::lent::Lent;
use crate::numbers::Width;
use crate::packed::{Alphabet, Lengths, Packed, section_bytes};
use crate::scalar::{Kind, Scalar, ScalarRef};
use crate::section::{Section, SectionName};
use crate::source::ROWS;

/// The version of the form. Compressed texts are written in it.
pub const VERSION: u8 = 3;
/// The version before, in which all else is written, so that who knows no newer one reads it.
const BEFORE: u8 = 2;

fn put_scalar(scalar: ScalarRef<'_>, out: &mut Vec<u8>) {
    match scalar {
        ScalarRef::Integer(value) => out.extend_from_slice(&value.to_le_bytes()),
        ScalarRef::I128(value) => out.extend_from_slice(&value.to_le_bytes()),
        ScalarRef::F32(bits) => out.extend_from_slice(&bits.to_le_bytes()),
        ScalarRef::F64(bits) => out.extend_from_slice(&bits.to_le_bytes()),
        ScalarRef::Uuid(bytes) => out.extend_from_slice(&bytes),
        ScalarRef::Text(text) => {
            out.extend_from_slice(&(text.len() as u32).to_le_bytes());
            out.extend_from_slice(text);
        }
    }
}

fn put_maybe(scalar: Option<&Scalar>, out: &mut Vec<u8>) {
    out.push(u8::from(scalar.is_some()));
    if let Some(scalar) = scalar {
        put_scalar(scalar.as_ref(), out);
    }
}

impl<S: Section> Column<S> {
    /// Appends everything but the sections.
    pub fn header(&self, out: &mut Vec<u8>) {
        let version = if self.is_compressed() { VERSION } else { BEFORE };
        out.extend_from_slice(&[version, self.kind.number()]);
        out.extend_from_slice(&self.rows.to_le_bytes());
        match &self.nulls {
            Nulls::None => out.push(0),
            Nulls::All => out.push(1),
            Nulls::Bits(_) => out.push(2),
            Nulls::Ranges(section) => {
                out.push(3);
                out.extend_from_slice(&(section.bytes().len() as u32 / 4).to_le_bytes());
            }
        }
        out.extend_from_slice(&self.runs.as_ref().map_or(0, |runs| runs.count).to_le_bytes());
        out.push(self.codes.as_ref().map_or(0, |codes| codes.width as u8));
        out.extend_from_slice(&self.codes.as_ref().map_or(0, |codes| codes.entries).to_le_bytes());
        match &self.store {
            Store::Constant(scalar) => {
                out.push(0);
                put_scalar(scalar.as_ref(), out);
            }
            Store::Integers { base, width, .. } => {
                out.push(1);
                out.extend_from_slice(&base.to_le_bytes());
                out.push(*width as u8);
            }
            Store::Plain(_) => out.push(2),
            Store::FixedTexts { length, .. } => {
                out.push(3);
                out.extend_from_slice(&length.to_le_bytes());
            }
            Store::Texts { bytes, .. } => {
                out.push(4);
                out.extend_from_slice(&(bytes.bytes().len() as u32).to_le_bytes());
            }
            // As they are written when they are the column's own.
            Store::Lent(Lent { length, bytes, .. }) => {
                out.push(if length.is_some() { 3 } else { 4 });
                out.extend_from_slice(&length.unwrap_or(*bytes).to_le_bytes());
            }
            Store::Packed(packed) => {
                let (number, length) = match &packed.lengths {
                    Lengths::One(length) => (5, length),
                    Lengths::Offsets { symbols, .. } => (6, symbols),
                };
                out.push(number);
                out.extend_from_slice(&length.to_le_bytes());
                out.push(packed.alphabet.bytes().len() as u8);
                out.extend_from_slice(packed.alphabet.bytes());
            }
            Store::Compressed(texts) => {
                out.push(7);
                out.extend_from_slice(&(texts.codes.bytes().len() as u32).to_le_bytes());
                out.push(texts.count);
            }
        }
        let Summary { least, greatest, count, nulls, sum } = &self.summary;
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(&nulls.to_le_bytes());
        out.push(u8::from(sum.is_some()));
        out.extend_from_slice(sum.map(i128::to_le_bytes).as_ref().map_or(&[], |bytes| &bytes[..]));
        put_maybe(least.as_ref(), out);
        put_maybe(greatest.as_ref(), out);
    }

    /// The column with this header, for which `section` gives each section, in the order of their names, of exactly so
    /// many bytes.
    ///
    /// # Errors
    /// Header or sections are not of a column of `rows` rows of `kind`, or `section` failed.
    pub fn from_parts<E>(
        header: &[u8],
        kind: Kind,
        rows: usize,
        mut section: impl FnMut(SectionName, usize) -> Result<S, E>,
    ) -> Result<Self, FromPartsError<E>> {
        let column = read(header, kind, rows)?;
        let column = column.map_sections(|name, length| -> Result<S, FromPartsError<E>> {
            let wrong = |found| Malformed::Length { section: name, expected: length, found };
            let length = usize::try_from(length).map_err(|_| wrong(0))?;
            let bytes = section(name, length).map_err(FromPartsError::Section)?;
            match bytes.bytes().len() {
                found if found == length => Ok(bytes),
                found => Err(wrong(found as u64).into()),
            }
        })?;
        check::check(&column)?;
        Ok(column)
    }
}

impl Column<u64> {
    /// What a header says: the column with the length of each section in its place, bytes.
    ///
    /// # Errors
    /// It is not the header of a column.
    pub fn of_header(header: &[u8]) -> Result<Self, Malformed> {
        let wrong = |what, at| Malformed::Header { what, at };
        let number = header.get(1).ok_or_else(|| wrong("its end", header.len()))?;
        let kind = Kind::of_number(*number).ok_or_else(|| wrong("the kind", 2))?;
        let rows = header.get(2..6).and_then(|rows| rows.try_into().ok());
        let rows = rows.ok_or_else(|| wrong("its end", header.len()))?;
        read(header, kind, u32::from_le_bytes(rows) as usize)
    }
}

/// What is left of a header.
struct Reader<'a> {
    bytes: &'a [u8],
    length: usize,
}

impl<'a> Reader<'a> {
    fn fault(&self, what: &'static str) -> Malformed {
        Malformed::Header { what, at: self.length - self.bytes.len() }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or_else(|| self.fault("its end"))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or_else(|| self.fault("its end"))?;
        self.bytes = rest;
        Ok(*taken)
    }

    fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    fn flag(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.fault("a flag")),
        }
    }

    fn scalar(&mut self, kind: Kind) -> Result<Scalar, Malformed> {
        let scalar = match kind {
            Kind::Bool | Kind::I16 | Kind::I32 | Kind::I64 => {
                Scalar::Integer(i64::from_le_bytes(self.array()?))
            }
            Kind::I128 => Scalar::I128(i128::from_le_bytes(self.array()?)),
            Kind::F32 => Scalar::F32(u32::from_le_bytes(self.array()?)),
            Kind::F64 => Scalar::F64(u64::from_le_bytes(self.array()?)),
            Kind::Uuid => Scalar::Uuid(self.array()?),
            Kind::Text => {
                let length = self.u32()? as usize;
                Scalar::Text(self.take(length)?.into())
            }
        };
        if scalar.is_of(kind) { Ok(scalar) } else { Err(self.fault("a value of the kind")) }
    }

    fn maybe_scalar(&mut self, kind: Kind) -> Result<Option<Scalar>, Malformed> {
        if self.flag()? { self.scalar(kind).map(Some) } else { Ok(None) }
    }

    fn width(&mut self) -> Result<Width, Malformed> {
        let bytes = self.u8()?;
        Width::from_bytes(bytes).ok_or_else(|| self.fault("a width"))
    }
}

/// The column of a header, with the length of each section in its place, bytes.
fn read(header: &[u8], kind: Kind, rows: usize) -> Result<Column<u64>, Malformed> {
    let mut reader = Reader { bytes: header, length: header.len() };
    let version = reader.u8()?;
    if !(BEFORE..=VERSION).contains(&version) {
        return Err(Malformed::Version { found: version });
    }
    if reader.u8()? != kind.number() {
        return Err(reader.fault("the kind"));
    }
    if rows > ROWS || reader.u32()? as usize != rows {
        return Err(reader.fault("the number of rows"));
    }
    let nulls = read_nulls(&mut reader, rows)?;
    let runs = match reader.u32()? {
        0 => None,
        count if count as usize <= rows => Some(Runs { count, ends: u64::from(count) * 2 }),
        _ => return Err(reader.fault("the number of runs")),
    };
    let positions = runs.as_ref().map_or(rows as u64, |runs| runs.count.into());
    let codes = read_codes(&mut reader, positions)?;
    let places = codes.as_ref().map_or(positions, |codes| codes.entries.into());
    let store = read_store(&mut reader, kind, places)?;
    if is_constant(&store) && (runs.is_some() || codes.is_some()) {
        return Err(reader.fault("a constant, with runs or a dictionary"));
    }
    if matches!(store, Store::Packed(_)) && (runs.is_some() || codes.is_some()) {
        return Err(reader.fault("packed texts, with runs or a dictionary"));
    }
    if matches!(store, Store::Compressed(_)) && (runs.is_some() || codes.is_some()) {
        return Err(reader.fault("compressed texts, with runs or a dictionary"));
    }
    if rows == 0 && !is_constant(&store) {
        return Err(reader.fault("a constant, of no rows"));
    }
    let summary = read_summary(&mut reader, kind, rows)?;
    if !reader.bytes.is_empty() {
        return Err(reader.fault("bytes behind its end"));
    }
    Ok(Column { kind, rows: rows as u32, nulls, runs, codes, store, summary })
}

fn is_constant<S>(store: &Store<S>) -> bool {
    matches!(store, Store::Constant(_))
}

fn read_nulls(reader: &mut Reader<'_>, rows: usize) -> Result<Nulls<u64>, Malformed> {
    match reader.u8()? {
        0 => Ok(Nulls::None),
        1 => Ok(Nulls::All),
        2 => Ok(Nulls::Bits(bits::words(rows) as u64 * 8)),
        3 => Ok(Nulls::Ranges(u64::from(reader.u32()?) * 4)),
        _ => Err(reader.fault("the form of NULLs")),
    }
}

fn read_codes(reader: &mut Reader<'_>, positions: u64) -> Result<Option<Codes<u64>>, Malformed> {
    let (bytes, entries) = (reader.u8()?, reader.u32()?);
    let (width, most) = match bytes {
        0 if entries == 0 => return Ok(None),
        1 => (Width::One, 1 << 8),
        2 => (Width::Two, 1 << 16),
        _ => return Err(reader.fault("the width of codes")),
    };
    if !(1..=most).contains(&entries) {
        return Err(reader.fault("the length of the dictionary"));
    }
    Ok(Some(Codes { width, section: positions * u64::from(bytes), entries }))
}

fn read_store(reader: &mut Reader<'_>, kind: Kind, places: u64) -> Result<Store<u64>, Malformed> {
    match (reader.u8()?, kind.stride()) {
        (0, _) => Ok(Store::Constant(reader.scalar(kind)?)),
        (1, _) if kind.is_integer() => {
            let (base, width) = (i64::from_le_bytes(reader.array()?), reader.width()?);
            Ok(Store::Integers { base, width, codes: places * width as u64 })
        }
        (2, Some(stride)) => Ok(Store::Plain(places * stride as u64)),
        (3, _) if kind == Kind::Text => {
            let length = reader.u32()?;
            Ok(Store::FixedTexts { length, bytes: places * u64::from(length) })
        }
        (4, _) if kind == Kind::Text => {
            Ok(Store::Texts { offsets: (places + 1) * 4, bytes: reader.u32()?.into() })
        }
        (5, _) if kind == Kind::Text => {
            let length = reader.u32()?;
            read_packed(reader, Lengths::One(length), places * u64::from(length))
        }
        (6, _) if kind == Kind::Text => {
            let symbols = reader.u32()?;
            read_packed(reader, Lengths::Offsets { offsets: (places + 1) * 4, symbols }, symbols.into())
        }
        (7, _) if kind == Kind::Text => {
            let (codes, count) = (u64::from(reader.u32()?), reader.u8()?);
            Ok(Store::Compressed(Compressed { count, offsets: (places + 1) * 4, codes, table: TABLE as u64 }))
        }
        _ => Err(reader.fault("the form of values")),
    }
}

fn read_packed(
    reader: &mut Reader<'_>,
    lengths: Lengths<u64>,
    symbols: u64,
) -> Result<Store<u64>, Malformed> {
    let count = reader.u8()?;
    let alphabet = Alphabet::new(reader.take(count.into())?).ok_or_else(|| reader.fault("the alphabet"))?;
    let codes = section_bytes(symbols, alphabet.bits());
    Ok(Store::Packed(Packed { alphabet: Box::new(alphabet), lengths, codes }))
}

fn read_summary(reader: &mut Reader<'_>, kind: Kind, rows: usize) -> Result<Summary, Malformed> {
    let (count, nulls) = (reader.u32()?, reader.u32()?);
    if u64::from(count) + u64::from(nulls) > rows as u64 {
        return Err(reader.fault("the number of live rows"));
    }
    let sum = if reader.flag()? { Some(i128::from_le_bytes(reader.array()?)) } else { None };
    if sum.is_some() != kind.is_integer() {
        return Err(reader.fault("the sum"));
    }
    let (least, greatest) = (reader.maybe_scalar(kind)?, reader.maybe_scalar(kind)?);
    let ascends = match (&least, &greatest) {
        (Some(least), Some(greatest)) => count > 0 && least.as_ref().compare(greatest.as_ref()).is_le(),
        (None, None) => count == 0,
        _ => false,
    };
    if ascends {
        Ok(Summary { least, greatest, count, nulls, sum })
    } else {
        Err(reader.fault("the values' range"))
    }
}
