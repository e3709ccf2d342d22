//! Footers and page indexes, before they are decoded.
//!
//! Responsible for: lists that are there, a schema that is a tree of bounded depth, row groups that lie in the file.

use std::ops::Range;

use parquet::basic::Type;
use parquet::file::metadata::{FooterTail, ParquetMetaData, RowGroupMetaData};

use super::thrift::{Event, Flaw, Kind, Shape, Walk};
use super::{Implausible, MOST_BYTES, implausible};

/// Bytes at the end of a file that say how long its footer is.
pub const TAIL_BYTES: u64 = 8;

/// More elements no list in a footer may have: columns, row groups, keys.
const MOST_ELEMENTS: usize = 1 << 20;
/// More pages a column of a row group may not have.
const MOST_PAGES: usize = 1 << 24;
/// Columns may lie this deep in others.
const MAX_DEPTH: usize = 64;
/// More rows no row group may have.
const MOST_ROWS: i64 = 1 << 32;
/// Rows for which a reader reserves memory at once.
const BATCH_ROWS: i64 = 8192;

use Kind::{Binary, Bools, Int, List, Struct, Structs};

static OTHER: Shape = Shape { fields: &[] };
static FILE: Shape = Shape {
    fields: &[
        (1, Int),
        (2, Structs(&ELEMENT)),
        (3, Int),
        (4, Structs(&ROW_GROUP)),
        (5, List),
        (6, Binary),
        (7, List),
    ],
};
static ELEMENT: Shape = Shape {
    fields: &[
        (1, Int),
        (2, Int),
        (3, Int),
        (4, Binary),
        (CHILDREN, Int),
        (6, Int),
        (7, Int),
        (8, Int),
        (9, Int),
        (10, Struct(&OTHER)),
    ],
};
const CHILDREN: i16 = 5;
static ROW_GROUP: Shape =
    Shape { fields: &[(1, Structs(&CHUNK)), (2, Int), (3, Int), (4, List), (5, Int), (6, Int), (7, Int)] };
static CHUNK: Shape =
    Shape { fields: &[(1, Binary), (2, Int), (3, Struct(&COLUMN)), (4, Int), (5, Int), (6, Int), (7, Int)] };
static COLUMN: Shape = Shape {
    fields: &[
        (1, Int),
        (2, List),
        (3, List),
        (4, Int),
        (5, Int),
        (6, Int),
        (7, Int),
        (8, List),
        (9, Int),
        (10, Int),
        (11, Int),
        (12, Struct(&OTHER)),
        (13, List),
        (14, Int),
        (15, Int),
        (16, Struct(&SIZES)),
    ],
};
static SIZES: Shape = Shape { fields: &[(1, Int), (2, List), (3, List)] };
static OFFSET_INDEX: Shape = Shape { fields: &[(1, Structs(&LOCATION)), (2, List)] };
static LOCATION: Shape = Shape { fields: &[(OFFSET, Int), (2, Int), (3, Int)] };
const OFFSET: i16 = 1;
static COLUMN_INDEX: Shape =
    Shape { fields: &[(1, Bools), (2, List), (3, List), (4, Int), (5, List), (6, List), (7, List)] };

/// Where the footer of a file of `file_bytes` lies, by its last [`TAIL_BYTES`].
///
/// # Errors
/// There is no footer.
pub fn footer_range(tail: &[u8], file_bytes: u64) -> Result<Range<u64>, Implausible> {
    let tail: &[u8; 8] = tail.try_into().map_err(|_| implausible("It is too short."))?;
    let tail = FooterTail::try_new(tail).map_err(|error| implausible(&error.to_string()))?;
    let end = file_bytes.saturating_sub(TAIL_BYTES);
    let start = end.checked_sub(tail.metadata_length() as u64);
    Ok(start.ok_or_else(|| implausible("Its footer is longer than the file."))?..end)
}

/// Checks a footer's bytes before they are decoded.
///
/// # Errors
/// What decoding them would reserve is not there.
pub fn check_footer(bytes: &[u8]) -> Result<(), Implausible> {
    let mut children: Vec<i64> = Vec::new();
    let mut visit = |shape: &'static Shape, event| {
        if std::ptr::eq(shape, &raw const ELEMENT) {
            match event {
                Event::Begin => children.push(0),
                Event::Int(CHILDREN, count) => *children.last_mut().expect("an element has begun") = count,
                _ => {}
            }
        }
    };
    let walked = Walk::new(bytes, MOST_ELEMENTS).structure(&FILE, &mut visit);
    walked.map_err(|flaw| damaged("footer", &flaw))?;
    check_tree(&children)
}

/// A schema lists its columns and groups, each group before what is in it.
fn check_tree(children: &[i64]) -> Result<(), Implausible> {
    let mut open: Vec<i64> = Vec::new();
    for (index, count) in children.iter().enumerate() {
        let left = (children.len() - index - 1) as i64;
        if !(0..=left).contains(count) || open.len() > MAX_DEPTH {
            return Err(implausible("Its schema is damaged."));
        }
        while let Some(last) = open.last_mut() {
            *last -= 1;
            if *last >= 0 {
                break;
            }
            open.pop();
        }
        if *count > 0 {
            open.push(*count);
        }
    }
    Ok(())
}

/// Checks what a footer says of the file.
///
/// # Errors
/// Row groups that cannot be in a file of `file_bytes`.
pub fn check_row_groups(metadata: &ParquetMetaData, file_bytes: u64) -> Result<(), Implausible> {
    for (index, group) in metadata.row_groups().iter().enumerate() {
        check_row_group(group, file_bytes)
            .map_err(|reason| implausible(&format!("Row group {}: {reason}", index + 1)))?;
    }
    Ok(())
}

fn check_row_group(group: &RowGroupMetaData, file_bytes: u64) -> Result<(), String> {
    let rows = group.num_rows();
    if !(0..=MOST_ROWS).contains(&rows) {
        return Err(format!("it says that it has {rows} rows."));
    }
    let mut bytes = 0_u64;
    for chunk in group.columns() {
        let name = chunk.column_path().string();
        let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
        let range = u64::try_from(start).ok().zip(u64::try_from(chunk.compressed_size()).ok());
        let end = range.and_then(|(start, length)| start.checked_add(length));
        bytes = bytes.saturating_add(range.map_or(0, |(_, length)| length));
        if end.is_none_or(|end| end > file_bytes) {
            return Err(format!("column \"{name}\" says that it lies beyond the file's end."));
        }
        let descriptor = chunk.column_descr();
        let width = i64::from(descriptor.type_length());
        if descriptor.physical_type() == Type::FIXED_LEN_BYTE_ARRAY
            && width.saturating_mul(rows.min(BATCH_ROWS)) > MOST_BYTES as i64
        {
            return Err(format!("column \"{name}\" says that each of its values has {width} bytes."));
        }
    }
    if bytes > file_bytes {
        return Err("it says that it has more bytes than the file.".to_owned());
    }
    Ok(())
}

/// Checks where the page index says that pages lie, and gives their offsets.
///
/// # Errors
/// What decoding it would reserve is not there.
pub fn check_offset_index(bytes: &[u8]) -> Result<Vec<u64>, Implausible> {
    let mut offsets = Vec::new();
    let mut visit = |shape: &'static Shape, event| {
        if std::ptr::eq(shape, &raw const LOCATION)
            && let Event::Int(OFFSET, offset) = event
        {
            offsets.push(offset.try_into().unwrap_or(u64::MAX));
        }
    };
    let walked = Walk::new(bytes, MOST_PAGES).structure(&OFFSET_INDEX, &mut visit);
    walked.map_err(|flaw| damaged("page index", &flaw))?;
    Ok(offsets)
}

/// Checks what the page index says of the values in pages.
///
/// # Errors
/// What decoding it would reserve is not there.
pub fn check_column_index(bytes: &[u8]) -> Result<(), Implausible> {
    let walked = Walk::new(bytes, MOST_PAGES).structure(&COLUMN_INDEX, &mut |_, _| {});
    walked.map_err(|flaw| damaged("page index", &flaw))
}

fn damaged(what: &str, flaw: &Flaw) -> Implausible {
    match flaw {
        Flaw::Short => implausible(&format!("Its {what} says that it has more than is there.")),
        Flaw::Bad(reason) => implausible(&format!("Its {what} is damaged: {reason}.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_with_more_children_than_elements_or_too_deep_is_refused() {
        assert!(check_tree(&[2, 0, 2, 0, 0]).is_ok());
        assert!(check_tree(&[]).is_ok());
        assert!(check_tree(&[1, i64::from(i32::MAX)]).is_err());
        assert!(check_tree(&[-1]).is_err());
        let mut chain = vec![1; 10_000];
        chain.push(0);
        assert!(check_tree(&chain).is_err());
        assert!(check_tree(&[&[3][..], &[1, 1, 0].repeat(3)].concat()).is_ok());
    }

    #[test]
    fn lists_longer_than_their_bytes_are_refused() {
        // A list of 2^28 structures, as row groups and as places of pages.
        let count = [0xff, 0xff, 0xff, 0xff, 0x00];
        let row_groups = [&[0x49, 0xfc][..], &count, &[0; 64]].concat();
        let refused = check_footer(&row_groups).unwrap_err().to_string();
        assert_eq!(refused, "Its footer is damaged: a list has too many elements.");
        let places = [&[0x19, 0xfc][..], &count, &[0; 64]].concat();
        assert!(check_offset_index(&places).is_err());
        // An integer where row groups belong, which a decoder takes for their number.
        assert!(check_footer(&[0x45, 0xfc, 0xff, 0xff, 0x7f, 0x00]).is_err());
    }
}
