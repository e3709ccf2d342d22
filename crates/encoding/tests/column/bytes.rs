//! The form in bytes, whole and damaged.

use std::convert::Infallible;
use std::ops::Bound;
use std::sync::Arc;

use albireo_encoding::{
    Choose, Column, FromPartsError, Kind, Malformed, ScalarRef, Section, SectionName, Selection, Test,
};
use albireo_testing::{Random, damage, test};

use crate::support::{CHOICES, Data, bits, draw, edges};

pub type Parts = (Vec<u8>, Vec<(SectionName, Vec<u8>)>);

pub fn parts(column: &Column<Vec<u8>>) -> Parts {
    let mut header = Vec::new();
    column.header(&mut header);
    (header, column.unshared().sections().map(|(name, section)| (name, section.to_vec())).collect())
}

pub fn read(parts: &Parts, kind: Kind, rows: usize) -> Result<Column<Vec<u8>>, Malformed> {
    let section = |name, _| -> Result<Vec<u8>, Infallible> {
        let found = parts.1.iter().find(|(other, _)| *other == name);
        Ok(found.map_or_else(Vec::new, |(_, section)| section.clone()))
    };
    Column::from_parts(&parts.0, kind, rows, section).map_err(|error| match error {
        FromPartsError::Malformed(malformed) => malformed,
        FromPartsError::Section(never) => match never {},
    })
}

/// Everything that reads, which must not panic.
pub fn read_all(column: &Column<Vec<u8>>) {
    let rows = column.rows();
    let mask = bits(&vec![true; rows]);
    for row in 0..rows {
        assert!(column.scalar(row).is_of(column.kind()));
        column.is_null(row);
    }
    for selection in [Selection::All, Selection::Range(rows / 3..rows - rows / 3), Selection::Mask(&mask)] {
        let (mut ends, mut bytes) = (Vec::new(), Vec::new());
        match column.kind() {
            Kind::I128 | Kind::Uuid => column.wide_into(&selection, &mut vec![]),
            Kind::F32 | Kind::F64 => column.floats_into::<u64>(&selection, &mut vec![]),
            Kind::Text => column.texts_into(&selection, &mut ends, &mut bytes),
            _ => column.integers_into::<i64>(&selection, &mut vec![]),
        }
        column.nulls_of(&selection, &mut vec![]);
        column.for_each(&selection, |_| {});
    }
    let value = |row: usize| column.scalar(row);
    if rows > 0 {
        let (first, last) = (value(0), value(rows - 1));
        let (first, last) = (first.as_ref(), last.as_ref());
        let mut list = [first, last];
        list.sort_by(|a, b| a.compare(*b));
        column.select(&mut Test::Equal(first), &mut mask.clone());
        column.select(&mut Test::In(&list), &mut mask.clone());
        column.select(&mut Test::Between(Bound::Excluded(first), Bound::Included(last)), &mut mask.clone());
        if let ScalarRef::Text(text) = first {
            column.select(&mut Test::Prefix(text), &mut mask.clone());
        }
    }
    column.select(&mut Test::IsNull, &mut mask.clone());
    column.select(&mut Test::Each(&mut |_| false), &mut mask.clone());
    column.runs().into_iter().flatten().for_each(drop);
    column.constant();
    if column.kind().is_integer() {
        column.sum(&mask);
    }
    read_again(column);
}

/// Bytes of a column that was read are the same column.
fn read_again(column: &Column<Vec<u8>>) {
    let again = read(&parts(column), column.kind(), column.rows()).expect("what was read is well formed");
    assert_eq!(format!("{again:?}"), format!("{:?}", column.unshared()));
}

#[test]
fn column_comes_back_from_its_bytes() {
    test!().for_each_seed(0..150, |seed| {
        let mut random = Random::new(seed);
        let data = draw(Kind::ALL[seed as usize % Kind::ALL.len()], &mut random);
        data.forms(&CHOICES).iter().for_each(read_all);
    });
    for kind in Kind::ALL {
        Data::of(kind, edges(kind)).forms(&CHOICES).iter().for_each(read_all);
        read_all(&Data::of(kind, vec![]).encode(Choose::Best));
    }
}

#[test]
fn byte_of_header_or_section_that_is_flipped_is_refused_or_another_column() {
    let mut refused = 0;
    test!().for_each_seed(0..60, |seed| {
        let mut random = Random::new(seed);
        let mut data = draw(Kind::ALL[seed as usize % Kind::ALL.len()], &mut random);
        let rows = data.rows().min(150);
        data.values.truncate(rows);
        data.nulls.truncate(rows);
        data.live.truncate(rows);
        for choose in CHOICES {
            let whole = parts(&data.encode(choose));
            for at in 0..whole.0.len() {
                let mut damaged = whole.clone();
                damaged.0[at] ^= 1 << random.below(8);
                refused +=
                    usize::from(read(&damaged, data.kind, rows).map(|column| read_all(&column)).is_err());
            }
            for section in 0..whole.1.len() {
                for _ in 0..20 {
                    let mut damaged = whole.clone();
                    let bytes = &mut damaged.1[section].1;
                    if !bytes.is_empty() {
                        let at = random.index(bytes.len());
                        bytes[at] ^= 1 << random.below(8);
                    }
                    let read = read(&damaged, data.kind, rows).map(|column| read_all(&column));
                    refused += usize::from(read.is_err());
                }
            }
        }
    });
    assert!(refused > 1000, "{refused} were refused");
}

#[test]
fn bytes_that_are_damaged_at_will_are_refused_or_another_column() {
    test!().for_each_seed(0..2000, |seed| {
        let mut random = Random::new(seed);
        let data = draw(random.pick(&Kind::ALL), &mut Random::new(seed % 50));
        let mut parts = parts(&data.encode(random.pick(&CHOICES)));
        match random.index(parts.1.len() + 1) {
            0 => damage(&mut parts.0, seed),
            section => damage(&mut parts.1[section - 1].1, seed),
        }
        if let Ok(column) = read(&parts, data.kind, data.rows()) {
            read_all(&column);
        }
    });
}

#[test]
fn header_of_another_column_is_refused() {
    let column = Data::integers(Kind::I32, [1, 2, 3]).encode(Choose::Plain);
    let parts = parts(&column);
    assert!(matches!(read(&parts, Kind::I64, 3), Err(Malformed::Header { at: 2, .. })));
    assert!(matches!(read(&parts, Kind::I32, 4), Err(Malformed::Header { at: 6, .. })));
    let mut newer = parts.clone();
    for version in [1, albireo_encoding::VERSION + 1] {
        newer.0[0] = version;
        assert_eq!(read(&newer, Kind::I32, 3).err(), Some(Malformed::Version { found: version }));
    }
    let mut longer = parts.clone();
    longer.1[0].1.push(0);
    let length = Malformed::Length { section: SectionName::Values, expected: 3, found: 4 };
    assert_eq!(read(&longer, Kind::I32, 3).err(), Some(length));
    assert_eq!(length.to_string(), "the values of an encoded column have 4 bytes instead of 3");
}

/// What is said of a column whose header was changed.
pub fn fault(data: &Data, choose: Choose, change: impl Fn(&mut Vec<u8>)) -> &'static str {
    let mut parts = parts(&data.encode(choose));
    change(&mut parts.0);
    match read(&parts, data.kind, data.rows()) {
        Err(Malformed::Header { what, .. }) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_rule_of_the_header_is_looked_at() {
    let data = Data::integers(Kind::I32, (0..100).map(|row| row / 10));
    // Of a column without NULLs: the number of runs from byte 7, of bytes of a code at 11, of entries from 12.
    let with = |at: usize, byte: u8| move |header: &mut Vec<u8>| header[at] = byte;
    assert_eq!(fault(&data, Choose::Runs, with(7, 101)), "the number of runs");
    assert_eq!(fault(&data, Choose::Dictionary, with(11, 4)), "the width of codes");
    assert_eq!(fault(&data, Choose::Dictionary, with(12, 0)), "the length of the dictionary");
    assert_eq!(fault(&data, Choose::Dictionary, with(13, 1)), "the length of the dictionary");
    assert_eq!(fault(&data, Choose::Plain, with(6, 4)), "the form of NULLs");
    assert_eq!(fault(&data, Choose::Plain, with(16, 2)), "the form of values");
    assert_eq!(fault(&data, Choose::Plain, with(25, 3)), "a width");
    // The numbers of live rows from byte 26; at the end the sum, the least and the greatest value.
    assert_eq!(fault(&data, Choose::Plain, with(26, 101)), "the number of live rows");
    assert_eq!(fault(&data, Choose::Plain, with(26, 0)), "the values' range");
    assert_eq!(fault(&data, Choose::Plain, with(34, 2)), "a flag");
    let swap = |header: &mut Vec<u8>| {
        let length = header.len();
        header.swap(length - 17, length - 8);
    };
    assert_eq!(fault(&data, Choose::Plain, swap), "the values' range");
    assert_eq!(fault(&data, Choose::Plain, |header| header.push(0)), "bytes behind its end");
    assert_eq!(fault(&data, Choose::Plain, |header| header.truncate(header.len() - 1)), "its end");
    let constant = Data::integers(Kind::I16, [5; 10]);
    let runs = "a constant, with runs or a dictionary";
    assert_eq!(fault(&constant, Choose::Best, with(7, 1)), runs);
    let codes = |header: &mut Vec<u8>| header[11..13].fill(1);
    assert_eq!(fault(&constant, Choose::Best, codes), runs);
    let outside = |header: &mut Vec<u8>| header[20] = 1;
    assert_eq!(fault(&constant, Choose::Best, outside), "a value of the kind");
}

/// What is said of a column one section of which was changed.
pub fn rule(data: &Data, choose: Choose, name: SectionName, change: impl Fn(&mut Vec<u8>)) -> &'static str {
    let mut parts = parts(&data.encode(choose));
    let section = parts.1.iter_mut().find(|(other, _)| *other == name).expect("it has one");
    change(&mut section.1);
    match read(&parts, data.kind, data.rows()) {
        Err(Malformed::Content { section, rule }) if section == name => rule,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_rule_of_sections_is_looked_at() {
    let numbers = Data::integers(Kind::I32, (0..100).map(|row| row / 10));
    let swap = |bytes: &mut Vec<u8>| bytes.swap(0, 2);
    assert_eq!(rule(&numbers, Choose::Runs, SectionName::Ends, swap), "ends ascend");
    let last = |bytes: &mut Vec<u8>| bytes[18] += 1;
    assert_eq!(rule(&numbers, Choose::Runs, SectionName::Ends, last), "the last end is the last row");
    let code = |bytes: &mut Vec<u8>| bytes[50] = 10;
    let below = "codes are below the length of the dictionary";
    assert_eq!(rule(&numbers, Choose::Dictionary, SectionName::Codes, code), below);
    let twice = |bytes: &mut Vec<u8>| bytes[3] = bytes[4];
    let ascend = "values of the dictionary ascend";
    assert_eq!(rule(&numbers, Choose::Dictionary, SectionName::Values, twice), ascend);
    let least = Data::integers(Kind::I16, [i16::MAX.into(), 32_700, 32_766]);
    let most = |bytes: &mut Vec<u8>| bytes[0] = 255;
    let within = "integers are within the limits of the kind";
    assert_eq!(rule(&least, Choose::Plain, SectionName::Values, most), within);
    let texts = Data::texts(["a", "bcd", ""]);
    let first = |bytes: &mut Vec<u8>| bytes[0] = 1;
    assert_eq!(rule(&texts, Choose::Plain, SectionName::Offsets, first), "offsets ascend from 0");
    let ends = |bytes: &mut Vec<u8>| bytes[12] = 5;
    assert_eq!(
        rule(&texts, Choose::Plain, SectionName::Offsets, ends),
        "the last offset is the texts' length"
    );
    let mut nulls = Data::integers(Kind::I32, 0..100);
    nulls.nulls[..20].iter_mut().step_by(2).for_each(|null| *null = true);
    let behind = |bytes: &mut Vec<u8>| bytes[15] = 0x80;
    assert_eq!(rule(&nulls, Choose::Plain, SectionName::Nulls, behind), "no bit is behind the last row");
    nulls.nulls.fill(false);
    nulls.nulls[20..40].fill(true);
    let range = |bytes: &mut Vec<u8>| bytes[2] = 100;
    assert_eq!(rule(&nulls, Choose::Plain, SectionName::Nulls, range), "ranges ascend");
}

#[test]
fn sections_are_mapped_in_order_and_an_error_is_passed_on() {
    let mut data = Data::texts((0..100).map(|row| "x".repeat(row / 10)));
    data.nulls[..50].iter_mut().step_by(2).for_each(|null| *null = true);
    let column = data.encode(Choose::RunsOfDictionary);
    let mut names = Vec::new();
    let shared = column.clone().map_sections(|name, section| {
        names.push(name);
        Ok::<_, Infallible>(Arc::<[u8]>::from(section))
    });
    let all = [
        SectionName::Nulls,
        SectionName::Ends,
        SectionName::Codes,
        SectionName::Offsets,
        SectionName::Values,
    ];
    assert_eq!(names, all);
    let Ok(shared) = shared;
    assert_eq!(shared.bytes(), column.bytes());
    assert!((0..100).all(|row| shared.text(row) == column.text(row)));
    assert_eq!(shared.section(SectionName::Ends).map(|section| section.bytes().len()), Some(20));
    let failed = column.map_sections(|name, section| match name {
        SectionName::Codes => Err("no room"),
        _ => Ok(section.into_boxed_slice()),
    });
    assert_eq!(failed.err(), Some("no room"));
}

#[test]
fn section_that_cannot_be_had_is_not_malformed() {
    let column = Data::integers(Kind::I32, [1, 2, 3]).encode(Choose::Plain);
    let (header, _) = parts(&column);
    let read = Column::<Vec<u8>>::from_parts(&header, Kind::I32, 3, |_, length| Err(length));
    assert_eq!(read.err(), Some(FromPartsError::Section(3)));
}
