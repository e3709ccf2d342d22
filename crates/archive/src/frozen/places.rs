//! Where the columns of a frozen chunk lie in its file, for whoever reads one of them and not the others.
//!
//! ```text
//! file            │ schema │ dictionaries │ column 0 │ column 1 │ column 2 │ footer │
//! column 1                      ▒▒▒▒                    ▒▒▒▒▒▒▒                        two stretches
//! ```
//!
//! The bytes of a column lie in one stretch of the file, or in two if it has a dictionary. A section is bytes of a stretch,
//! or made of them as when an archive is loaded ([`super::made`]).
//!
//! P-1 A place is told of bytes that were checked against the manifest, and has checksums of its own: whoever reads there
//! later checks these.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use albireo_base::ColumnId;
use albireo_env::Env;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::Buffer;
use arrow_schema::{Field, FieldRef};

use super::made::{Made, Piece};
use super::restore::{Layers, described};
use crate::error::{ArchiveError, Damage};
use crate::manifest::{FileEntry, file_path};
use crate::read::{ArrowFile, guarded, read_checked};

/// Bytes between two that are read along.
const GAP_BYTES: usize = 1 << 10;

/// Bytes of a file that are read together, and their CRC-32C.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// Where they begin.
    pub offset: u64,
    /// How many there are.
    pub bytes: u32,
    /// Their checksum.
    pub crc32c: u32,
}

/// Where a column of a frozen chunk lies in the chunk's file.
#[derive(Clone, Debug)]
pub struct ColumnPlace {
    stretches: Box<[Stretch]>,
    sections: Box<[SectionPlace]>,
}

/// Where a section lies in the stretches of its column.
#[derive(Clone, Debug)]
struct SectionPlace {
    stretch: u32,
    first: u32,
    bytes: u32,
    made: Made,
}

/// The file of a frozen chunk, and where its columns lie in it.
#[derive(Debug)]
pub struct FrozenFile {
    data: Buffer,
    /// None of a column of which that cannot be told, as of compressed texts, which are made of all of an array.
    columns: Vec<Option<ColumnPlace>>,
}

impl Stretch {
    /// Where it lies.
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset + u64::from(self.bytes)
    }

    fn of(data: &[u8], range: &Range<usize>) -> Option<Self> {
        let (offset, bytes) = (range.start as u64, u32::try_from(range.len()).ok()?);
        Some(Self { offset, bytes, crc32c: crc32c::crc32c(&data[range.clone()]) })
    }
}

impl FrozenFile {
    /// Reads the file of a frozen chunk whole, checks it part by part, and finds where its columns lie.
    ///
    /// # Errors
    /// The file is missing or damaged, or cannot be read.
    pub fn read(env: &Env, directory: &Path, file: &FileEntry) -> Result<Self, ArchiveError> {
        let path = file_path(directory, file);
        let data = read_checked(env, &path, file)?;
        let damaged = |what: String| ArchiveError::damaged(&path, Damage::Arrow(what));
        let arrow = ArrowFile::parse(&data).map_err(damaged)?;
        let batch = arrow.only_batch(&data).map_err(damaged)?;
        let pairs = arrow.schema.fields().iter().zip(batch.columns());
        let place = |(field, array): (&FieldRef, &ArrayRef)| {
            let place = guarded(|| Ok(ColumnPlace::find(&data, field, array)));
            place.ok().flatten()
        };
        let columns = pairs.map(place).collect();
        Ok(Self { data, columns })
    }

    /// Where a column lies, if `bytes` are those that come from there: its sections, one behind the other.
    pub fn place_of(&self, column: ColumnId, bytes: &[u8]) -> Option<ColumnPlace> {
        let place = self.columns.get(column.index())?.as_ref()?;
        let stretches: Vec<&[u8]> = place.stretches.iter().map(|stretch| self.bytes_of(stretch)).collect();
        let mut left = bytes;
        for section in place.sections.iter() {
            let made = section.made_of(&stretches)?;
            left = left.strip_prefix(&made[..])?;
        }
        left.is_empty().then(|| place.clone())
    }

    fn bytes_of(&self, stretch: &Stretch) -> &[u8] {
        &self.data[stretch.offset as usize..][..stretch.bytes as usize]
    }
}

impl ColumnPlace {
    /// What is to be read of the file, in its order.
    pub fn stretches(&self) -> &[Stretch] {
        &self.stretches
    }

    /// Makes the sections of the column of the bytes of its stretches; `false` if these are not as long as they are.
    pub fn fill(&self, stretches: &[impl AsRef<[u8]>], sections: &mut [&mut [u8]]) -> bool {
        if sections.len() != self.sections.len() {
            return false;
        }
        let stretches: Vec<&[u8]> = stretches.iter().map(AsRef::as_ref).collect();
        self.sections.iter().zip(sections).all(|(place, section)| match place.made_of(&stretches) {
            Some(made) if made.len() == section.len() => {
                section.copy_from_slice(&made);
                true
            }
            _ => false,
        })
    }

    /// Finds the column that an array of a file was made of.
    fn find(data: &Buffer, field: &Field, array: &ArrayRef) -> Option<Self> {
        let (_, says) = described(field, array.len()).ok()?;
        let layers = Layers::of(array).ok()?;
        let mut pieces = Vec::new();
        for (name, _) in says.sections() {
            let Piece { bytes, made } = layers.piece(&says, name).ok()?;
            pieces.push((range_in(data, &bytes)?, made));
        }
        let ranges = together(pieces.iter().map(|(range, _)| range.clone()));
        let sections = pieces.into_iter().map(|(range, made)| SectionPlace::of(&ranges, &range, made));
        let sections = sections.collect::<Option<_>>()?;
        let stretches = ranges.iter().map(|range| Stretch::of(data, range)).collect::<Option<_>>()?;
        Some(Self { stretches, sections })
    }
}

impl SectionPlace {
    fn of(stretches: &[Range<usize>], range: &Range<usize>, made: Made) -> Option<Self> {
        if range.is_empty() {
            return Some(Self { stretch: 0, first: 0, bytes: 0, made });
        }
        let has = |stretch: &Range<usize>| stretch.start <= range.start && range.end <= stretch.end;
        let stretch = stretches.iter().position(has)?;
        let first = u32::try_from(range.start - stretches[stretch].start).ok()?;
        Some(Self { stretch: stretch as u32, first, bytes: u32::try_from(range.len()).ok()?, made })
    }

    /// The section, of the bytes of its column's stretches.
    fn made_of<'b>(&self, stretches: &[&'b [u8]]) -> Option<Cow<'b, [u8]>> {
        let bytes: &'b [u8] = match self.bytes {
            0 => &[],
            bytes => {
                stretches.get(self.stretch as usize)?.get(self.first as usize..)?.get(..bytes as usize)?
            }
        };
        match &self.made {
            Made::Same => Some(Cow::Borrowed(bytes)),
            made => made.section(bytes).ok().map(Cow::Owned),
        }
    }
}

/// Where a part of a buffer lies in it; `None` if it is of another.
fn range_in(data: &Buffer, part: &Buffer) -> Option<Range<usize>> {
    if part.is_empty() {
        return Some(0..0);
    }
    let start = (part.as_ptr() as usize).checked_sub(data.as_ptr() as usize)?;
    let end = start.checked_add(part.len())?;
    (end <= data.len()).then_some(start..end)
}

/// Ranges in their order, those that lie close to each other as one; empty ones left out.
fn together(ranges: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let mut ranges: Vec<_> = ranges.filter(|range| !range.is_empty()).collect();
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end + GAP_BYTES => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_lie_close_are_one() {
        let ranges = [9_000..9_100, 0..64, 3..3, 64..100, 1_000..1_100, 1_050..1_060];
        assert_eq!(together(ranges.into_iter()), [0..1_100, 9_000..9_100]);
        assert!(together(std::iter::empty()).is_empty());
    }

    #[test]
    fn part_of_another_buffer_has_no_place() {
        let data = Buffer::from(vec![1_u8; 100]);
        assert_eq!(range_in(&data, &data.slice_with_length(20, 30)), Some(20..50));
        assert_eq!(range_in(&data, &data.slice_with_length(20, 0)), Some(0..0));
        assert_eq!(range_in(&data, &Buffer::from(vec![1_u8; 100])), None);
    }

    #[test]
    fn column_is_filled_from_its_stretches() {
        let place = |stretch, first, bytes, made| SectionPlace { stretch, first, bytes, made };
        let stretch = |offset, bytes| Stretch { offset, bytes, crc32c: 0 };
        let sections = [place(1, 1, 2, Made::Ends), place(0, 0, 3, Made::Same), place(0, 0, 0, Made::Same)];
        let column =
            ColumnPlace { stretches: [stretch(0, 3), stretch(70, 4)].into(), sections: sections.into() };
        let bytes = [vec![1_u8, 2, 3], vec![0, 7, 1, 0]];
        let (mut ends, mut values) = ([0; 2], [0; 3]);
        assert!(column.fill(&bytes, &mut [&mut ends, &mut values, &mut []]));
        assert_eq!((ends, values), ([6, 1], [1, 2, 3]));
        assert!(!column.fill(&bytes, &mut [&mut ends, &mut [0; 2], &mut []]), "another length");
        assert!(!column.fill(&bytes[..1], &mut [&mut ends, &mut values, &mut []]), "a stretch is missing");
        assert!(!column.fill(&bytes, &mut [&mut ends]), "other sections");
    }
}
