use super::*;
use albireo_base::SqlType;
use albireo_files::{Chunker, CsvDialect, Decoder, Field, TextDialect, TextFormat};
use arrow::array::{Array, AsArray};

/// A few thousand texts out of the bytes that matter.
fn texts() -> impl Iterator<Item = String> {
    const ALPHABET: [char; 9] = ['a', ',', '"', '\n', '\r', '\\', 'ä', '|', 'N'];
    let mut state = 7_u64;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut bits = state >> 20;
        (0..bits % 6)
            .map(|_| {
                bits >>= 4;
                ALPHABET[(bits % 9) as usize]
            })
            .collect()
    })
}

/// Records of three texts.
fn read(bytes: &[u8], format: &TextFormat) -> Vec<Option<String>> {
    let fields =
        ["a", "b", "c"].map(|name| Field { name: name.to_owned(), ty: SqlType::Text, nullable: true });
    let decoder = Decoder::new(format.clone(), fields.to_vec());
    let mut chunks = Chunker::new(Box::new(bytes), format);
    let mut values = Vec::new();
    while let Some(chunk) = chunks.next_chunk().unwrap() {
        let batch = decoder.decode(&chunk).unwrap().batch.columns;
        for row in 0..batch.num_rows() {
            let value = |array: &arrow::array::ArrayRef| {
                let array = array.as_string_view();
                array.is_valid(row).then(|| array.value(row).to_owned())
            };
            values.extend(batch.columns().iter().map(value));
        }
    }
    values
}

#[test]
fn what_is_written_is_read_again() {
    let fields: Vec<Option<String>> =
        texts().take(3_000).map(|text| (text.len() != 3).then_some(text)).collect();
    let dialects = [
        CsvOptions::default(),
        CsvOptions { delimiter: b'|', escape: b'\\', null: "a".to_owned(), ..CsvOptions::default() },
    ];
    for options in dialects {
        let mut bytes = Vec::new();
        let mut writer = CsvWriter::new(&mut bytes, &options);
        for record in fields.chunks(3) {
            record.iter().for_each(|field| writer.field(field.as_deref()).unwrap());
            writer.end().unwrap();
        }
        let CsvOptions { delimiter, quote, escape, null, .. } = options;
        let dialect = CsvDialect { delimiter, quote, escape, null, ..CsvDialect::default() };
        assert_eq!(read(&bytes, &TextFormat::Csv(dialect)), fields);
    }
    let options = TextOptions { delimiter: b'|', ..TextOptions::default() };
    let mut bytes = Vec::new();
    fields.chunks(3).for_each(|r| text_record(r.iter().map(Option::as_deref), &options, &mut bytes));
    let dialect = TextDialect { delimiter: b'|', null: options.null };
    assert_eq!(read(&bytes, &TextFormat::Text(dialect)), fields);
}

#[test]
fn json_has_numbers_where_it_can_hold_them() {
    let values = [
        Value::Integer(-1),
        Value::Double(f64::INFINITY),
        Value::Double(0.5),
        Value::Bool(true),
        Value::Null,
        Value::Text("a\"\n\u{1}".to_owned()),
    ];
    let names: Vec<Vec<u8>> = (0..6).map(|i| format!("\"{i}\"").into_bytes()).collect();
    let mut bytes = Vec::new();
    json_record(&names, values.iter(), &mut bytes);
    let expected = r#"{"0":-1,"1":"Infinity","2":0.5,"3":true,"4":null,"5":"a\"\n\u0001"}"#;
    assert_eq!(String::from_utf8(bytes).unwrap(), format!("{expected}\n"));
}
