use super::*;

/// Fields of all records: text, or `None` where an unquoted field reads as NULL.
fn read(text: &str, options: &CsvOptions) -> Result<Vec<Vec<Option<String>>>, CsvError> {
    let mut reader = CsvReader::new(text.as_bytes(), options);
    let (mut records, mut record) = (Vec::new(), Record::default());
    while reader.read(&mut record)? {
        let field = |i: usize| {
            let null = !record.fields[i].quoted && record.field(i) == options.null.as_bytes();
            (!null).then(|| String::from_utf8(record.field(i).to_vec()).unwrap())
        };
        records.push((0..record.fields.len()).map(field).collect());
    }
    Ok(records)
}

fn shown(text: &str, options: &CsvOptions) -> String {
    let records = read(text, options).unwrap();
    let field = |field: &Option<String>| field.as_deref().map_or("NULL".to_owned(), |f| format!("<{f}>"));
    let record = |record: &Vec<Option<String>>| record.iter().map(field).collect::<String>();
    records.iter().map(record).collect::<Vec<_>>().join(" ")
}

#[test]
fn records_are_read_as_postgresql_reads_them() {
    let cases = [
        ("", ""),
        ("a,b\n1,2\n", "<a><b> <1><2>"),
        ("a,b\r\n1,2", "<a><b> <1><2>"),
        (",\"\"\n", "NULL<>"),
        ("\n", "NULL"),
        ("\"a,b\",\"c\"\"d\"\n", "<a,b><c\"d>"),
        ("\"two\nlines\",x\n", "<two\nlines><x>"),
        ("a\"b,c\"d,e\n", "<ab,cd><e>"),
        ("\u{feff}a\n", "<a>"),
        ("a,\n", "<a>NULL"),
        ("\"\"", "<>"),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(text, &CsvOptions::default()), expected, "{text:?}");
    }
    let options =
        CsvOptions { delimiter: b'|', escape: b'\\', null: "\\N".to_owned(), ..CsvOptions::default() };
    assert_eq!(shown("\\N|\"a\\\"b\\\\c\\d\"||\n", &options), "NULL<a\"b\\c\\d><><>");
}

#[test]
fn malformed_records_are_refused() {
    let error = |text: &str| read(text, &CsvOptions::default()).unwrap_err();
    assert!(matches!(error("a\n\"b\nc\n"), CsvError::UnterminatedQuote));
    assert!(matches!(error("a\rb\n"), CsvError::CarriageReturn));
}

#[test]
fn record_after_a_quoted_line_end_knows_its_line() {
    let options = CsvOptions::default();
    let mut reader = CsvReader::new("\"a\nb\"\nc\n".as_bytes(), &options);
    let mut record = Record::default();
    assert!(reader.read(&mut record).unwrap());
    assert_eq!(record.line, 1);
    assert!(reader.read(&mut record).unwrap());
    assert_eq!(record.line, 3);
}

/// A few thousand texts out of the bytes that matter.
fn texts() -> impl Iterator<Item = String> {
    const ALPHABET: [char; 8] = ['a', ',', '"', '\n', '\r', '\\', 'ä', '|'];
    let mut state = 7_u64;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut bits = state >> 20;
        let length = bits % 6;
        (0..length)
            .map(|_| {
                bits >>= 4;
                ALPHABET[(bits % 8) as usize]
            })
            .collect()
    })
}

#[test]
fn what_the_writer_writes_the_reader_reads() {
    let dialects = [
        CsvOptions::default(),
        CsvOptions { delimiter: b'|', escape: b'\\', null: "a".to_owned(), ..CsvOptions::default() },
    ];
    for options in dialects {
        let fields: Vec<Option<String>> =
            texts().take(3_000).map(|text| (text.len() != 3).then_some(text)).collect();
        let mut bytes = Vec::new();
        let mut writer = CsvWriter::new(&mut bytes, &options);
        for record in fields.chunks(3) {
            record.iter().for_each(|field| writer.field(field.as_deref()).unwrap());
            writer.end().unwrap();
        }
        let records = read(std::str::from_utf8(&bytes).unwrap(), &options).unwrap();
        assert_eq!(records, fields.chunks(3).map(<[_]>::to_vec).collect::<Vec<_>>());
    }
}

#[test]
fn what_the_csv_crate_writes_we_read_alike() {
    let fields: Vec<String> = texts().take(3_000).collect();
    let mut writer =
        ::csv::WriterBuilder::new().quote_style(::csv::QuoteStyle::Always).from_writer(Vec::new());
    fields.chunks(3).for_each(|record| writer.write_record(record).unwrap());
    let bytes = writer.into_inner().unwrap();
    let records = read(std::str::from_utf8(&bytes).unwrap(), &CsvOptions::default()).unwrap();
    let expected: Vec<Vec<Option<String>>> =
        fields.chunks(3).map(|record| record.iter().cloned().map(Some).collect()).collect();
    assert_eq!(records, expected);
}
