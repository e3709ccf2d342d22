use super::*;

fn infer(text: &str, hints: &CsvHints) -> Inferred {
    let format = TextFormat::Csv(hints.dialect.clone());
    let mut chunks = Chunker::new(Box::new(text.as_bytes()), &format).with_chunk_bytes(16);
    infer_csv(&mut chunks, hints).unwrap().expect("there are records")
}

fn shown(inferred: &Inferred) -> String {
    let field = |field: &Field| format!("{} {}", field.name, field.ty);
    inferred.fields.iter().map(field).collect::<Vec<_>>().join(", ").to_lowercase()
}

#[test]
fn types_are_those_that_hold_every_value_unchanged() {
    let cases = [
        (&["1", "-20", "9223372036854775807"][..], "bigint"),
        (&["1", "92233720368547758070"], "numeric(38,0)"),
        (&["1", "2.5", "1e3", "NaN"], "double precision"),
        (&["1.5", "1234567890123456789"], "text"),
        (&["007", "8"], "text"),
        (&["0", "0.5", "-0.25"], "double precision"),
        (&["+49 30", "1"], "text"),
        (&["true", "FALSE"], "boolean"),
        (&["2024-02-29", "1999-12-31"], "date"),
        (&["2024-02-29", "1999-12-31 10:00:00"], "timestamp without time zone"),
        (&["2024-02-29T10:00:00Z", "1999-12-31 10:00:00+02:00"], "timestamp with time zone"),
        (&["2023-02-29"], "text"),
        (&["10:00:00"], "time without time zone"),
        (&["1", "x"], "text"),
        (&["12 ", " 13"], "bigint"),
    ];
    for (values, expected) in cases {
        let text: String =
            std::iter::once("name").chain(values.iter().copied()).map(|v| format!("{v},z\n")).collect();
        let hints = CsvHints { header: Some(true), ..CsvHints::default() };
        let inferred = infer(&text, &hints);
        let ty = inferred.fields[0].ty.to_string().to_lowercase();
        let expected = expected.replace(" without time zone", "");
        assert!(ty == expected || ty.replace(" without time zone", "") == expected, "{values:?}: {ty}");
    }
}

#[test]
fn header_is_found_where_names_stand_above_values() {
    let cases = [
        ("a,b\n1,x\n", true, "a bigint, b text"),
        ("1,x\n2,y\n", false, "column0 bigint, column1 text"),
        ("name,town\nada,london\n", true, "name text, town text"),
        ("a,a\n1,2\n", false, "column0 text, column1 text"),
        (",x\n0,5\n1,6\n", true, "column0 bigint, x bigint"),
        ("a,b\n", true, "a text, b text"),
        ("1,2\n", false, "column0 bigint, column1 bigint"),
        ("id\n1\n2\n", true, "id bigint"),
    ];
    for (text, has_header, expected) in cases {
        let inferred = infer(text, &CsvHints::default());
        assert_eq!(
            (inferred.header.is_some(), shown(&inferred).as_str()),
            (has_header, expected),
            "{text:?}"
        );
    }
}

#[test]
fn delimiter_is_the_one_that_gives_equal_records() {
    let cases = [
        ("a;b;c\n1,5;2;x, y, z\n2,5;3;u\n", b';'),
        ("a\tb\n1\tx, y\n", b'\t'),
        ("a|b\n\"x,y,z|\"|2\n", b'|'),
        ("a,b\n1;2,3\n", b','),
        ("abc\nd\n", b','),
    ];
    for (text, expected) in cases {
        let TextFormat::Csv(dialect) = infer(text, &CsvHints::default()).format else { panic!("not CSV") };
        assert_eq!(dialect.delimiter, expected, "{text:?}");
    }
}

#[test]
fn rows_beyond_the_sample_decide_nothing() {
    let text = format!("a\n{}x\n", "1\n".repeat(100));
    let hints = |rows| CsvHints { sample_rows: rows, ..CsvHints::default() };
    assert_eq!(shown(&infer(&text, &hints(Some(100)))), "a bigint");
    assert_eq!(shown(&infer(&text, &hints(None))), "a text");
}

#[test]
fn members_of_json_get_the_types_of_their_values() {
    let text = "{\"a\": 1, \"b\": \"2024-01-01\", \"c\": \"12\"}\n\n{\"d\": true, \"a\": 2.5, \"e\": [1], \"b\": null}\n";
    let format = TextFormat::Json(crate::JsonDialect::default());
    let mut chunks = Chunker::new(Box::new(text.as_bytes()), &format);
    let inferred = infer_json(&mut chunks, None).unwrap().unwrap();
    assert_eq!(shown(&inferred), "a double precision, b date, c text, d boolean, e text");
}

#[test]
fn empty_lines_are_no_records_but_in_a_file_of_one_column() {
    let cases = [("a,b\n\n1,2\n\n", true), ("\n\na\n1\n", true), ("a\n\n1\n", false)];
    for (text, skips) in cases {
        let Inferred { format: TextFormat::Csv(dialect), .. } = infer(text, &CsvHints::default()) else {
            panic!("not CSV")
        };
        assert_eq!(dialect.skips_empty_lines, skips, "{text:?}");
    }
}

#[test]
fn file_whose_first_record_is_no_text_is_refused() {
    for (text, message) in [
        (&b"a,\xff\n1,2\n"[..], "invalid byte sequence for encoding \"UTF8\": 0xff"),
        (b"a,\0\n", "invalid byte sequence"),
        (b"a\rb\r", "unquoted carriage return found in data"),
        (b"\"a", "unterminated CSV quoted field"),
    ] {
        let format = TextFormat::Csv(CsvDialect::default());
        let mut chunks = Chunker::new(Box::new(text), &format);
        let fault = infer_csv(&mut chunks, &CsvHints::default()).unwrap_err();
        let crate::Cause::Sql(error) = fault.cause else { panic!("{fault:?}") };
        assert!(error.message().starts_with(message), "{error}");
        assert_eq!(fault.place, Some(1));
    }
}

#[test]
fn types_found_over_all_records_take_every_value() {
    const VALUES: [&str; 14] = [
        "",
        "1",
        "-7",
        "01",
        "2.5",
        "99999999999999999999",
        "1e400",
        "NaN",
        "2024-02-29",
        "2024-02-29 10:00:00",
        "2024-02-29T10:00:00Z",
        "10:00",
        "true",
        "x",
    ];
    albireo_testing::test!().for_each_seed(0..2_000, |seed| {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut below = |end: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % end
        };
        // Few kinds of values in a file, so that types other than text are common.
        let kinds: Vec<&str> = (0..1 + below(3)).map(|_| VALUES[below(VALUES.len())]).collect();
        let text: String =
            (0..1 + below(6)).map(|_| format!("{},{}\n", kinds[below(kinds.len())], kinds[0])).collect();
        let hints = CsvHints { delimiter: Some(b','), ..CsvHints::default() };
        let Inferred { format, fields, header } = infer(&text, &hints);
        let mut chunks = Chunker::new(Box::new(text.as_bytes()), &format);
        if header.is_some() {
            chunks.take_record(&format).unwrap();
        }
        let decoder = crate::Decoder::new(format, fields);
        while let Some(chunk) = chunks.next_chunk().unwrap() {
            decoder.decode(&chunk).unwrap_or_else(|fault| panic!("{text:?}: {fault:?}"));
        }
    });
}
