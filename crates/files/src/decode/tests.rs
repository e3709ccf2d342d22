use super::*;
use crate::csv::Force;
use std::cell::Cell;

/// Rows as text, `NULL` for NULL; or the first fault.
fn read(
    text: &[u8],
    format: &TextFormat,
    types: &[SqlType],
    chunk_bytes: usize,
) -> Result<Vec<String>, String> {
    let field = |(i, ty): (usize, &SqlType)| Field { name: format!("f{i}"), ty: *ty, nullable: true };
    let decoder = Decoder::new(format.clone(), types.iter().enumerate().map(field).collect());
    let mut chunks = Chunker::new(Box::new(text), format).with_chunk_bytes(chunk_bytes);
    let told = |fault: Fault| {
        let what = match &fault.cause {
            Cause::Sql(error) => format!("{} {}", error.state(), error.message()),
            other => format!("{other:?}"),
        };
        format!("{:?} {} {what}", fault.place.unwrap_or(0), fault.column.unwrap_or_default())
    };
    let mut rows = Vec::new();
    while let Some(chunk) = chunks.next_chunk().map_err(told)? {
        let decoded = decoder.decode(&chunk).map_err(told)?;
        let batch = &decoded.batch.columns;
        for row in 0..batch.num_rows() {
            let shown = |array: &arrow_array::ArrayRef| match array.is_null(row) {
                true => "NULL".to_owned(),
                false => {
                    let strings = arrow_array::cast::AsArray::as_string_view_opt(array);
                    let numbers =
                        || arrow_array::cast::AsArray::as_primitive::<arrow_array::types::Int32Type>(array);
                    strings
                        .map_or_else(|| numbers().value(row).to_string(), |s| format!("<{}>", s.value(row)))
                }
            };
            let values: Vec<String> = batch.columns().iter().map(shown).collect();
            rows.push(format!("{}:{}", decoded.batch.places.of(row), values.join("")));
        }
        chunks.recycle(chunk);
        if decoded.is_end {
            break;
        }
    }
    Ok(rows)
}

const TEXTS: [SqlType; 2] = [SqlType::Text, SqlType::Text];

fn csv() -> TextFormat {
    TextFormat::Csv(CsvDialect::default())
}

#[test]
fn csv_is_read_as_postgresql_reads_it_however_it_is_cut() {
    let cases = [
        ("", ""),
        ("a,b\n1,2\n", "1:<a><b> 2:<1><2>"),
        ("a,b\r\n1,2", "1:<a><b> 2:<1><2>"),
        (",\"\"\n", "1:NULL<>"),
        ("\"a,b\",\"c\"\"d\"\n", "1:<a,b><c\"d>"),
        ("\"two\nlines\",x\ny,z\n", "1:<two\nlines><x> 3:<y><z>"),
        ("a\"b,c\"d,e\n", "1:<ab,cd><e>"),
        ("a,\n", "1:<a>NULL"),
        ("\"\",\"\"", "1:<><>"),
        ("a,\"b\"", "1:<a><b>"),
    ];
    for (text, expected) in cases {
        for bytes in [1, 3, 1000] {
            assert_eq!(read(text.as_bytes(), &csv(), &TEXTS, bytes).unwrap().join(" "), expected, "{text:?}");
        }
    }
    let dialect =
        CsvDialect { delimiter: b'|', escape: b'\\', null: "\\N".to_owned(), ..CsvDialect::default() };
    let rows = read(b"\\N|\"a\\\"b\\\\c\\d\"\n|\n", &TextFormat::Csv(dialect), &TEXTS, 2).unwrap();
    assert_eq!(rows.join(" "), "1:NULL<a\"b\\c\\d> 2:<><>");
    let force = vec![Force { not_null: true, null: false }, Force { not_null: false, null: true }];
    let dialect = CsvDialect { force, ..CsvDialect::default() };
    assert_eq!(read(b",\"\"\n", &TextFormat::Csv(dialect), &TEXTS, 9).unwrap(), ["1:<>NULL"]);
}

#[test]
fn text_format_is_read_as_postgresql_reads_it_however_it_is_cut() {
    let format = TextFormat::Text(TextDialect::default());
    let cases = [
        ("a\tb\n\\N\t\\\\N\n", "1:<a><b> 2:NULL<\\N>"),
        ("a\\tb\tc\\nd\\\\\n", "1:<a\tb><c\nd\\>"),
        ("\\x41\\101\t\\q\\\n\n", "1:<AA><q\n>"),
        ("\t\nx\ty\n\\.\nnever\tread\n", "1:<><> 2:<x><y>"),
    ];
    for (text, expected) in cases {
        for bytes in [1, 3, 1000] {
            assert_eq!(
                read(text.as_bytes(), &format, &TEXTS, bytes).unwrap().join(" "),
                expected,
                "{text:?}"
            );
        }
    }
}

#[test]
fn end_mark_that_is_not_alone_on_its_line_is_refused() {
    let format = TextFormat::Text(TextDialect::default());
    for text in ["\\.\tb\n", "a\t\\.\n", "a\tb\\.", "\\.x\n"] {
        let error = read(text.as_bytes(), &format, &TEXTS, 1000).unwrap_err();
        assert_eq!(error, "1  22P04 end-of-copy marker corrupt", "{text:?}");
    }
    assert_eq!(read(b"a\tb\r\n\\.\r\nc", &format, &TEXTS, 1000).unwrap(), ["1:<a><b>"]);
}

#[test]
fn lines_of_json_are_read_by_the_names_of_members() {
    let names = vec!["f0".to_owned(), "f1".to_owned()];
    let format = TextFormat::Json(JsonDialect { names, is_strict: true });
    let text = "{\"f1\": \"x\\ny\", \"f0\": 7}\n\n{\"f0\": null, \"f1\": [1, {\"a\": 2}]}\n{}";
    let rows = read(text.as_bytes(), &format, &[SqlType::Integer, SqlType::Text], 8).unwrap();
    assert_eq!(rows, ["1:7<x\ny>", "3:NULL<[1, {\"a\": 2}]>", "4:NULLNULL"]);
    for bad in ["[1]", "{\"f0\": }", "{\"f0\" 1}", "{\"f0\": 1", "{\"f0\": 1} x", "{", "{\"f0\": 01}"] {
        let error = read(bad.as_bytes(), &format, &TEXTS, 8).unwrap_err();
        assert_eq!(error, "1  22P04 the line is not a JSON object", "{bad}");
    }
    let error = read(b"{\"f0\": 1, \"f9\": 1}", &format, &TEXTS, 8).unwrap_err();
    assert_eq!(error, "1 f9 22P04 there is no column for the member \"f9\"");
}

#[test]
fn first_fault_is_the_one_reported() {
    let types = [SqlType::Integer, SqlType::Integer];
    let cases = [
        ("1,2\n3,x\ny,4\n", "2 f1 22P02 invalid input syntax for type integer: \"x\""),
        ("1,2\n3\ny,4\n", "2  22P04 missing data for column \"f1\""),
        ("1,2\n3,4,5\n", "2  22P04 extra data after last expected column"),
        ("1,2\n\"3\n,4\n", "2  22P04 unterminated CSV quoted field"),
        ("1,2\rx,4\n", "1  22P04 unquoted carriage return found in data"),
        ("x,y\n", "1 f0 22P02 invalid input syntax for type integer: \"x\""),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text.as_bytes(), &csv(), &types, 1000).unwrap_err(), expected, "{text:?}");
    }
}

#[test]
fn header_is_taken_off_with_its_lines() {
    let format = csv();
    let mut chunks = Chunker::new(Box::new(&b"\"a\nb\",c\n1,2\n"[..]), &format);
    assert_eq!(
        chunks.take_record(&format).unwrap().unwrap(),
        [Some("a\nb".to_owned()), Some("c".to_owned())]
    );
    let chunk = chunks.next_chunk().unwrap().unwrap();
    assert_eq!((&chunk.bytes[chunk.start..], chunk.first_line), (&b"1,2\n"[..], 3));
    assert!(chunks.next_chunk().unwrap().is_none());
    assert!(chunks.take_record(&format).unwrap().is_none());
}

/// Characters that matter to CSV and the text format.
const MARKS: [&str; 8] = ["a", ",", "\"", "\n", "\r", "\\", "ä", "|"];

/// Pieces of JSON.
const MEMBERS: [&str; 8] = ["{", "}", "\"f0\":", "\"f9\":", "1", "\"\\n\"", ",", "\n"];

/// Texts out of few pieces.
fn texts(alphabet: &[&str; 8], seed: u64, count: usize) -> Vec<String> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let text = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut bits = state >> 20;
        (0..bits % 6)
            .map(|_| {
                bits >>= 4;
                alphabet[(bits % 8) as usize]
            })
            .collect()
    };
    std::iter::repeat_with(text).take(count).collect()
}

#[test]
fn what_the_csv_crate_writes_is_read_alike() {
    let fields = texts(&MARKS, 7, 3_000);
    let mut writer =
        ::csv::WriterBuilder::new().quote_style(::csv::QuoteStyle::Always).from_writer(Vec::new());
    fields.chunks(2).for_each(|record| writer.write_record(record).unwrap());
    let bytes = writer.into_inner().unwrap();
    for chunk_bytes in [7, 64, 1 << 20] {
        let rows = read(&bytes, &csv(), &TEXTS, chunk_bytes).unwrap();
        let values: Vec<&str> = rows.iter().map(|row| row.split_once(':').unwrap().1).collect();
        let expected: Vec<String> = fields.chunks(2).map(|r| format!("<{}><{}>", r[0], r[1])).collect();
        assert_eq!(values, expected);
    }
}

#[test]
fn arbitrary_bytes_are_rows_or_a_fault() {
    let names = vec!["f0".to_owned(), "f1".to_owned()];
    let formats = [
        csv(),
        TextFormat::Csv(CsvDialect { escape: b'\\', delimiter: b'|', ..CsvDialect::default() }),
        TextFormat::Text(TextDialect { delimiter: b',', ..TextDialect::default() }),
        TextFormat::Json(JsonDialect { names, is_strict: false }),
    ];
    let rows_of = [const { Cell::new(0) }; 4];
    albireo_testing::test!().for_each_seed(0..1_500, |seed| {
        for (format, rows) in formats.iter().zip(&rows_of) {
            let text = match format {
                // Whole objects now and then, or none would ever be read.
                TextFormat::Json(_) => format!("{{{}}}", texts(&MEMBERS, seed, 2).concat()),
                _ => texts(&MARKS, seed, 4).join(","),
            };
            let whole = read(text.as_bytes(), format, &TEXTS, 1 << 20);
            for chunk_bytes in [1, 5] {
                let cut = read(text.as_bytes(), format, &TEXTS, chunk_bytes);
                assert_eq!(whole.is_ok(), cut.is_ok(), "{format:?} {text:?}: {whole:?} {cut:?}");
                if whole.as_ref().is_ok_and(|rows| !rows.is_empty()) {
                    rows.set(rows.get() + 1);
                }
                if whole.is_ok() {
                    assert_eq!(whole, cut, "{format:?} {text:?}");
                }
            }
        }
    });
    // Each format reads some of them; fewer where a seed is repeated alone.
    assert!(rows_of.iter().all(|rows| rows.get() > 0) || std::env::var_os("ALBIREO_SEED").is_some());
}
