//! Files that are sound pass, whatever wrote them; what is not sound is an error.

use std::sync::Arc;

use albireo_testing::damage;
use arrow_array::builder::{FixedSizeBinaryBuilder, Int32Builder, ListBuilder};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::column::page::PageReader as _;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnPath;

use super::*;
use crate::guard::guarded;

const ROWS: i64 = 4000;

fn rows() -> RecordBatch {
    let numbers = Int64Array::from_iter((0..ROWS).map(|i| (i % 5 != 0).then_some(i * 7919)));
    let kinds = StringArray::from_iter((0..ROWS).map(|i| (i % 3 != 0).then(|| format!("kind {}", i % 11))));
    let texts = StringArray::from_iter_values((0..ROWS).map(|i| format!("a longer text {:07}", i * 31)));
    let mut lists = ListBuilder::new(Int32Builder::new());
    let mut fixed = FixedSizeBinaryBuilder::new(7);
    for i in 0..ROWS {
        lists.append_value((0..i % 4).map(|n| Some(n as i32)));
        fixed.append_value(&i.to_le_bytes()[..7]).unwrap();
    }
    let columns: [(&str, ArrayRef); 7] = [
        ("number", Arc::new(numbers)),
        ("kind", Arc::new(kinds)),
        ("text", Arc::new(texts)),
        ("null", Arc::new(Float64Array::new_null(ROWS as usize))),
        ("flag", Arc::new(BooleanArray::from_iter((0..ROWS).map(|i| Some(i % 2 == 0))))),
        ("list", Arc::new(lists.finish())),
        ("fixed", Arc::new(fixed.finish())),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap()
}

fn written(compression: Compression, version: WriterVersion, texts: Option<Encoding>) -> Bytes {
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_writer_version(version)
        .set_max_row_group_row_count(Some(1500))
        .set_data_page_row_count_limit(300)
        .set_write_batch_size(100)
        .set_write_page_header_statistics(true);
    let texts = texts.into_iter().fold(properties, |properties, encoding| {
        let column = || ColumnPath::from("text");
        properties.set_column_dictionary_enabled(column(), false).set_column_encoding(column(), encoding)
    });
    let rows = rows();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, rows.schema(), Some(texts.build())).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
    bytes.into()
}

fn footer(bytes: &Bytes) -> Result<ParquetMetaData, Implausible> {
    let length = bytes.len() as u64;
    let range = footer_range(&bytes[bytes.len().saturating_sub(8)..], length)?;
    let footer = bytes.slice(range.start as usize..range.end as usize);
    check_footer(&footer)?;
    let metadata = guarded(|| ParquetMetaDataReader::decode_metadata(&footer));
    let metadata = metadata.ok().and_then(Result::ok).ok_or_else(|| implausible("undecodable"))?;
    check_row_groups(&metadata, length)?;
    Ok(metadata)
}

/// Checks all of a file and gives the number of its pages.
fn check(bytes: &Bytes) -> Result<usize, Implausible> {
    let (metadata, source) = (footer(bytes)?, Arc::new(bytes.clone()));
    let mut count = 0;
    for group in metadata.row_groups() {
        for chunk in group.columns() {
            let (start, length) = chunk.byte_range();
            let pages =
                Pages { source: &source, chunk, rows: group.num_rows(), range: start..start + length };
            count += pages.check()?.len();
            let index = |start: Option<i64>, length: Option<i32>| {
                let (start, length) = (start? as usize, length? as usize);
                bytes.get(start..start.checked_add(length)?)
            };
            if let Some(bytes) = index(chunk.offset_index_offset(), chunk.offset_index_length()) {
                check_offset_index(bytes)?;
            }
            if let Some(bytes) = index(chunk.column_index_offset(), chunk.column_index_length()) {
                check_column_index(bytes)?;
            }
        }
    }
    Ok(count)
}

fn compressions() -> [Compression; 6] {
    [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(ZstdLevel::default()),
    ]
}

#[test]
fn sound_file_passes_whatever_its_compression_version_and_encodings() {
    let texts = [None, Some(Encoding::DELTA_LENGTH_BYTE_ARRAY), Some(Encoding::DELTA_BYTE_ARRAY)];
    for compression in compressions() {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for texts in texts {
                let bytes = written(compression, version, texts);
                let metadata = footer(&bytes).unwrap();
                let source = Arc::new(bytes.clone());
                let mut pages = 0;
                for group in metadata.row_groups() {
                    for chunk in group.columns() {
                        let mut reader =
                            SerializedPageReader::new(Arc::clone(&source), chunk, 0, None).unwrap();
                        while reader.get_next_page().unwrap().is_some() {
                            pages += 1;
                        }
                    }
                }
                assert!(pages > 100, "{pages}");
                assert_eq!(check(&bytes), Ok(pages), "{compression} {version:?} {texts:?}");
            }
        }
    }
}

#[test]
fn damaged_file_is_an_error_or_passes() {
    let test = albireo_testing::test!();
    for (compression, texts) in [
        (Compression::UNCOMPRESSED, Encoding::DELTA_BYTE_ARRAY),
        (Compression::SNAPPY, Encoding::DELTA_LENGTH_BYTE_ARRAY),
    ] {
        let whole = written(compression, WriterVersion::PARQUET_2_0, Some(texts));
        test.for_each_seed(0..300, |seed| {
            let mut bytes = whole.to_vec();
            damage(&mut bytes, seed);
            drop(check(&bytes.into()));
        });
    }
}

#[test]
fn beginning_of_page_is_that_of_the_whole() {
    for compression in compressions() {
        let bytes = written(compression, WriterVersion::PARQUET_1_0, Some(Encoding::PLAIN));
        let (metadata, source) = (footer(&bytes).unwrap(), Arc::new(bytes.clone()));
        for chunk in metadata.row_groups().iter().flat_map(|group| group.columns()) {
            let (start, length) = chunk.byte_range();
            let pages = Pages { source: &source, chunk, rows: 1500, range: start..start + length };
            let mut ends = pages.check().unwrap();
            ends.remove(0);
            ends.push(start + length);
            let mut reader = SerializedPageReader::new(Arc::clone(&source), chunk, 0, None).unwrap();
            let mut start = start as usize;
            for end in ends {
                let (header, length) = pages::Header::read(&bytes[start..]).unwrap();
                assert_eq!(start + length + header.compressed as usize, end as usize);
                let whole = reader.get_next_page().unwrap().unwrap();
                let compressed = &bytes[start + length..end as usize];
                for wanted in [1, 64, 1000, 1 << 20] {
                    let beginning = beginning::beginning_of(compression, compressed, wanted);
                    let is_known = !matches!(compression, Compression::LZ4 | Compression::LZ4_RAW);
                    assert_eq!(beginning.is_some(), is_known);
                    if let Some(beginning) = beginning {
                        assert!(whole.buffer().starts_with(&beginning), "{compression}");
                        assert!(beginning.len() >= wanted.min(whole.buffer().len()), "{compression}");
                    }
                }
                start = end as usize;
            }
        }
    }
}

#[test]
fn gzip_that_becomes_more_than_it_says_is_refused() {
    let zeros = vec![0; 64 << 20];
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, &zeros).unwrap();
    let bytes = encoder.finish().unwrap();
    assert!(pages::is_inflated_to(&bytes, 64 << 20));
    assert!(!pages::is_inflated_to(&bytes, (64 << 20) - 1));
    assert!(!pages::is_inflated_to(&bytes.repeat(2), 64 << 20));
}

#[test]
fn page_index_names_the_pages_that_there_are() {
    let bytes = written(Compression::SNAPPY, WriterVersion::PARQUET_1_0, None);
    let (metadata, source) = (footer(&bytes).unwrap(), Arc::new(bytes.clone()));
    let chunk = metadata.row_group(1).column(2);
    let start = chunk.offset_index_offset().unwrap() as usize;
    let index = &bytes[start..start + chunk.offset_index_length().unwrap() as usize];
    let (start, length) = chunk.byte_range();
    let pages = Pages { source: &source, chunk, rows: 1500, range: start..start + length };
    // The first page is the dictionary, if there is one.
    let found = pages.check().unwrap();
    assert!(found.ends_with(&check_offset_index(index).unwrap()), "{found:?}");
    // Fewer rows than the pages hold.
    let pages = Pages { source: &source, chunk, rows: 299, range: start..start + length };
    assert!(pages.check().unwrap_err().to_string().contains("hold 300 values"));
}
