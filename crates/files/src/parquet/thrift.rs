//! Thrift's compact protocol, as far as walking over it needs.
//!
//! Responsible for: that every list has as many elements as it says, and every known field the type it should have.
//! Not responsible for: building anything; the `parquet` crate decodes what has been found sound.
//!
//! The decoder reads known fields by their number, whatever type the bytes give them, and reserves what a list says.
//! A field of another type would therefore mean something else to it than to this walk; it is refused.

/// A structure may lie this deep in others.
const MAX_DEPTH: u32 = 32;

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// Why the bytes cannot be walked over.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Flaw {
    /// They end too early.
    Short,
    /// They are not what they should be.
    Bad(&'static str),
}

/// The fields of a structure that matter; others are skipped.
pub(super) struct Shape {
    pub(super) fields: &'static [(i16, Kind)],
}

/// What a field holds.
pub(super) enum Kind {
    /// An integer, which the visitor is told.
    Int,
    Bool,
    Binary,
    Struct(&'static Shape),
    Structs(&'static Shape),
    Bools,
    /// A list of anything else.
    List,
}

/// What the visitor learns.
pub(super) enum Event {
    Begin,
    Int(i16, i64),
    Bool(i16, bool),
}

/// Takes what is found in a structure of a shape.
pub(super) type Visitor<'v> = dyn FnMut(&'static Shape, Event) + 'v;

/// Bytes and how many of them were walked over.
pub(super) struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    /// More elements no list may have.
    most_elements: usize,
}

impl<'a> Walk<'a> {
    pub(super) fn new(bytes: &'a [u8], most_elements: usize) -> Self {
        Self { bytes, at: 0, most_elements }
    }

    /// Bytes walked over.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Walks over one structure.
    pub(super) fn structure(&mut self, shape: &'static Shape, visit: &mut Visitor<'_>) -> Result<(), Flaw> {
        self.known(shape, MAX_DEPTH, visit)
    }

    fn byte(&mut self) -> Result<u8, Flaw> {
        let byte = *self.bytes.get(self.at).ok_or(Flaw::Short)?;
        self.at += 1;
        Ok(byte)
    }

    fn pass(&mut self, count: u64) -> Result<(), Flaw> {
        let left = self.bytes.len() - self.at;
        let count = usize::try_from(count).ok().filter(|count| *count <= left).ok_or(Flaw::Short)?;
        self.at += count;
        Ok(())
    }

    fn unsigned(&mut self) -> Result<u64, Flaw> {
        let mut value = 0;
        // What more than ten bytes mean, readers disagree about.
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).wrapping_shl(shift);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Flaw::Bad("an integer has too many bytes"))
    }

    #[expect(clippy::cast_possible_wrap, reason = "zigzag")]
    fn signed(&mut self) -> Result<i64, Flaw> {
        let value = self.unsigned()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// The type of the next field and its number, or None at the end of the structure.
    fn field(&mut self, last: i16) -> Result<Option<(u8, i16)>, Flaw> {
        let byte = self.byte()?;
        let (delta, ty) = (byte >> 4, byte & 0x0f);
        if ty == 0 {
            return Ok(None);
        }
        let bad = Flaw::Bad("a field has no number");
        let number = match delta {
            0 => i16::try_from(self.signed()?).ok(),
            _ => last.checked_add(i16::from(delta)),
        };
        number.map(|number| Some((ty, number))).ok_or(bad)
    }

    /// The type of a list's elements and their number.
    fn list(&mut self) -> Result<(u8, usize), Flaw> {
        let byte = self.byte()?;
        let count = match byte >> 4 {
            15 => self.unsigned()?,
            count => u64::from(count),
        };
        let left = self.bytes.len() - self.at;
        match usize::try_from(count) {
            Ok(count) if count > self.most_elements => Err(Flaw::Bad("a list has too many elements")),
            Ok(count) if count <= left => Ok((byte & 0x0f, count)),
            _ => Err(Flaw::Short),
        }
    }

    fn known(&mut self, shape: &'static Shape, depth: u32, visit: &mut Visitor<'_>) -> Result<(), Flaw> {
        let depth = depth.checked_sub(1).ok_or(Flaw::Bad("structures are nested too deeply"))?;
        visit(shape, Event::Begin);
        let mut last = 0;
        while let Some((ty, number)) = self.field(last)? {
            last = number;
            match shape.fields.iter().find(|(known, _)| *known == number) {
                Some((_, kind)) => self.value(kind, ty, number, shape, depth, visit)?,
                None => self.skip(ty, depth)?,
            }
        }
        Ok(())
    }

    fn value(
        &mut self,
        kind: &Kind,
        ty: u8,
        number: i16,
        shape: &'static Shape,
        depth: u32,
        visit: &mut Visitor<'_>,
    ) -> Result<(), Flaw> {
        match (kind, ty) {
            (Kind::Int, 4..=6) => {
                let value = self.signed()?;
                visit(shape, Event::Int(number, value));
                Ok(())
            }
            (Kind::Bool, TRUE | FALSE) => {
                visit(shape, Event::Bool(number, ty == TRUE));
                Ok(())
            }
            (Kind::Struct(inner), STRUCT) => self.known(inner, depth, visit),
            (Kind::Structs(inner), LIST) => match self.list()? {
                (STRUCT, count) => (0..count).try_for_each(|_| self.known(inner, depth, visit)),
                (_, 0) => Ok(()),
                _ => Err(Flaw::Bad("a list has elements of another type")),
            },
            (Kind::Bools, LIST) => {
                let (_, count) = self.list()?;
                self.pass(count as u64)
            }
            (Kind::Binary, BINARY) | (Kind::List, LIST) => self.skip(ty, depth),
            _ => Err(Flaw::Bad("a field has another type")),
        }
    }

    fn skip(&mut self, ty: u8, depth: u32) -> Result<(), Flaw> {
        let depth = depth.checked_sub(1).ok_or(Flaw::Bad("structures are nested too deeply"))?;
        match ty {
            TRUE | FALSE => Ok(()),
            3 => self.pass(1),
            4..=6 => self.unsigned().map(drop),
            7 => self.pass(8),
            BINARY => {
                let count = self.unsigned()?;
                self.pass(count)
            }
            LIST | 10 => {
                let (ty, count) = self.list()?;
                // The decoder passes over booleans as if they were fields: without a byte.
                let count = if matches!(ty, TRUE | FALSE) { 0 } else { count };
                (0..count).try_for_each(|_| self.skip(ty, depth))
            }
            11 => Err(Flaw::Bad("there is a map, which no structure of Parquet has")),
            STRUCT => {
                while let Some((ty, _)) = self.field(0)? {
                    self.skip(ty, depth)?;
                }
                Ok(())
            }
            13 => self.pass(16),
            _ => Err(Flaw::Bad("a field has an unknown type")),
        }
    }
}
