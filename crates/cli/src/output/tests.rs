use super::*;
use arrow::array::*;
use arrow::datatypes::*;
use std::sync::Arc;

fn batch(arrays: Vec<ArrayRef>) -> RecordBatch {
    let field =
        |(index, array): (usize, &ArrayRef)| Field::new(format!("c{index}"), array.data_type().clone(), true);
    let schema = Schema::new(arrays.iter().enumerate().map(field).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), arrays).unwrap()
}

fn columns(columns: &[(&str, SqlType)]) -> Vec<Column> {
    columns.iter().map(|(name, ty)| Column { name: (*name).to_owned(), ty: *ty }).collect()
}

fn printed(table: &Table<'_>, format: Format, expanded: bool) -> String {
    let expanded = if expanded { Expanded::On } else { Expanded::Off };
    printed_for(table, format, expanded, None)
}

fn printed_for(table: &Table<'_>, format: Format, expanded: Expanded, width: Option<usize>) -> String {
    let mut out = Vec::new();
    let style = Style { format, expanded, width, null: "NULL", interrupt: &Interrupt::default() };
    print(table, style, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Two rows with every trap of the formats in them.
fn sample(format: Format, expanded: bool) -> String {
    let price = SqlType::Decimal { precision: 7, scale: 2 };
    let columns = columns(&[
        ("id", SqlType::Integer),
        ("name", SqlType::Text),
        ("price", price),
        ("ok", SqlType::Bool),
    ]);
    let ids = Int32Array::from(vec![1, 20]);
    let names = StringViewArray::from(vec![Some("a \"b\", c\nnext"), Some("")]);
    let prices = Decimal128Array::from(vec![Some(-150), None]).with_precision_and_scale(7, 2).unwrap();
    let oks = BooleanArray::from(vec![Some(true), Some(false)]);
    let batches = [batch(vec![Arc::new(ids), Arc::new(names), Arc::new(prices), Arc::new(oks)])];
    printed(&Table::of_result(&columns, &batches), format, expanded)
}

#[test]
fn grid_aligns_numbers_at_the_right_and_counts_rows() {
    let expected = "\
┌────┬──────────┬───────┬────┐
│ id │   name   │ price │ ok │
├────┼──────────┼───────┼────┤
│  1 │ a \"b\", c │ -1.50 │ t  │
│    │ next     │       │    │
│ 20 │          │  NULL │ f  │
└────┴──────────┴───────┴────┘
(2 rows)

";
    assert_eq!(sample(Format::Box, false), expected);
}

#[test]
fn expanded_prints_one_line_per_value() {
    let expected = "\
─[ RECORD 1 ]
id    │ 1
name  │ a \"b\", c
      │ next
price │ -1.50
ok    │ t
─[ RECORD 2 ]
id    │ 20
name  │ 
price │ NULL
ok    │ f
(2 rows)

";
    assert_eq!(sample(Format::Box, true), expected);
}

#[test]
fn csv_tells_null_from_the_empty_string_and_quotes_what_needs_it() {
    let expected = "id,name,price,ok\n1,\"a \"\"b\"\", c\nnext\",-1.50,t\n20,\"\",,f\n";
    assert_eq!(sample(Format::Csv, false), expected);
}

#[test]
fn json_is_read_back_by_a_json_reader_with_the_same_values() {
    let text = sample(Format::Json, false);
    let read: serde_json::Value = serde_json::from_str(&text).unwrap();
    let expected = serde_json::json!([
        {"id": 1, "name": "a \"b\", c\nnext", "price": -1.50, "ok": true},
        {"id": 20, "name": "", "price": null, "ok": false},
    ]);
    assert_eq!(read, expected);
    assert!(text.contains("\"price\": -1.50"), "digits are kept: {text}");
}

#[test]
fn table_wider_than_the_terminal_becomes_expanded_and_a_single_column_is_broken() {
    let columns = columns(&[("a", SqlType::Text), ("b", SqlType::Text)]);
    let text = |text: &str| -> ArrayRef { Arc::new(StringArray::from(vec![text.to_owned()])) };
    let batches = [batch(vec![text("12345"), text("67890")])];
    let table = Table::of_result(&columns, &batches);
    let at = |width| printed_for(&table, Format::Box, Expanded::Auto, Some(width));
    let grid = printed(&table, Format::Box, false);
    assert_eq!((at(17), grid.lines().next().unwrap().chars().count()), (grid, 17));
    for width in [16, 1, 0] {
        assert_eq!(at(width), printed(&table, Format::Box, true));
    }
    let batches = [batch(vec![text("0123456789東京x")])];
    let table = Table::of_result(&columns[..1], &batches);
    let expected = "\
┌─────────────┐
│      a      │
├─────────────┤
│ 0123456789  │
│ 東京x       │
└─────────────┘
(1 row)

";
    assert_eq!(printed_for(&table, Format::Box, Expanded::Auto, Some(15)), expected);
    assert!(printed_for(&table, Format::Box, Expanded::Auto, Some(0)).contains("│ 01234567 │"));
    let batches = [batch(vec![text("one two three  four fivesixseven 東 京 8")])];
    let lines =
        printed_for(&Table::of_result(&columns[..1], &batches), Format::Box, Expanded::Auto, Some(13));
    let lines: Vec<_> = lines.lines().skip(3).take(6).map(|line| line.trim_matches(['│', ' '])).collect();
    assert_eq!(lines, ["one two", "three", "four", "fivesixse", "ven 東 京", "8"]);
    let off = printed_for(&table, Format::Box, Expanded::Off, Some(15));
    assert!(off.contains("│ 0123456789東京x │"), "{off}");
}

#[test]
fn list_of_the_shell_wider_than_the_terminal_is_broken_where_it_is_widest() {
    let rows = vec![vec![Some("note".to_owned()), Some("'a default value'".to_owned())]];
    let table = Table::own("List", &[("Column", Kind::Text), ("Default", Kind::Text)], rows);
    let expected = "\
List
┌────────┬────────────┐
│ Column │  Default   │
├────────┼────────────┤
│ note   │ 'a default │
│        │ value'     │
└────────┴────────────┘
(1 row)

";
    assert_eq!(printed_for(&table, Format::Box, Expanded::Auto, Some(23)), expected);
    let narrowest = printed_for(&table, Format::Box, Expanded::Auto, Some(3));
    assert!(
        narrowest.contains("│ 'a       │\n│        │ default  │\n│        │ value'   │\n"),
        "{narrowest}"
    );
    assert!(printed_for(&table, Format::Box, Expanded::On, Some(23)).contains("RECORD 1"));
}

#[test]
fn cell_beside_one_that_is_very_wide_is_padded() {
    let columns = columns(&[("a", SqlType::Text)]);
    let batches = [batch(vec![Arc::new(StringArray::from(vec!["x".repeat(100_000), "y".to_owned()]))])];
    let text = printed(&Table::of_result(&columns, &batches), Format::Box, false);
    assert!(text.contains(&format!("│ y{} │", " ".repeat(99_999))));
}

#[test]
fn json_names_of_repeated_columns_differ() {
    let names = ["a", "a", "b", "a_1", "a", ""].map(|name| (name, SqlType::Integer));
    let columns = columns(&names);
    let arrays = (0..6).map(|value| -> ArrayRef { Arc::new(Int32Array::from(vec![value])) });
    let batches = [batch(arrays.collect())];
    let text = printed(&Table::of_result(&columns, &batches), Format::Json, false);
    assert!(text.contains("{\"a\": 0, \"a_2\": 1, \"b\": 2, \"a_1\": 3, \"a_3\": 4, \"\": 5}"), "{text}");
}

#[test]
fn json_of_no_rows_is_an_empty_array() {
    let columns = columns(&[("id", SqlType::Integer)]);
    let text = printed(&Table::of_result(&columns, &[]), Format::Json, false);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), serde_json::json!([]));
}

#[test]
fn grid_of_wide_characters_stays_straight() {
    let columns = columns(&[("city", SqlType::Text)]);
    let batches = [batch(vec![Arc::new(StringArray::from(vec!["東京", "Malmö", "a\tb\u{1b}"]))])];
    let text = printed(&Table::of_result(&columns, &batches), Format::Box, false);
    let widths: Vec<usize> = text.lines().take(7).map(unicode_width::UnicodeWidthStr::width).collect();
    assert_eq!(widths, [widths[0]; 7], "{text}");
    assert!(text.contains("a    b\\u{1b}"), "{text}");
}

#[test]
fn grid_without_rows_has_a_header_and_one_without_columns_a_count() {
    let columns = columns(&[("id", SqlType::Integer)]);
    let text = printed(&Table::of_result(&columns, &[]), Format::Box, false);
    assert_eq!(text, "┌────┐\n│ id │\n├────┤\n└────┘\n(0 rows)\n\n");
    assert_eq!(printed(&Table::of_result(&[], &[]), Format::Box, false), "(0 rows)\n\n");
}

#[test]
fn values_of_every_type_read_as_postgresql_writes_them() {
    let one = |array: ArrayRef, ty| text::cell(&array, 0, ty);
    let check = |array: ArrayRef, ty, expected: &str| assert_eq!(one(array, ty).as_deref(), Some(expected));
    check(Arc::new(Int64Array::from(vec![i64::MIN])), SqlType::BigInt, "-9223372036854775808");
    check(Arc::new(Float64Array::from(vec![0.1])), SqlType::Double, "0.1");
    check(Arc::new(Float64Array::from(vec![f64::NEG_INFINITY])), SqlType::Double, "-Infinity");
    check(Arc::new(Date32Array::from(vec![11_016])), SqlType::Date, "2000-02-29");
    check(Arc::new(Time64MicrosecondArray::from(vec![3_723_000_000])), SqlType::Time, "01:02:03");
    let stamp = TimestampMicrosecondArray::from(vec![946_684_800_500_000]);
    check(Arc::new(stamp.clone()), SqlType::Timestamp, "2000-01-01 00:00:00.5");
    check(Arc::new(stamp.with_timezone("UTC")), SqlType::TimestampTz, "2000-01-01 00:00:00.5+00");
    let nanos = TimestampNanosecondArray::from(vec![-1]);
    check(Arc::new(nanos), SqlType::Timestamp, "1969-12-31 23:59:59.999999");
    check(Arc::new(BinaryViewArray::from_iter_values([b"\x00\xff"])), SqlType::Bytea, "\\x00ff");
    let uuid = FixedSizeBinaryArray::try_from_iter([[0x11u8; 16]].iter()).unwrap();
    check(Arc::new(uuid), SqlType::Uuid, "11111111-1111-1111-1111-111111111111");
    let dictionary: DictionaryArray<Int8Type> = ["x", "y"].into_iter().collect();
    check(Arc::new(dictionary), SqlType::Text, "x");
    assert_eq!(one(Arc::new(NullArray::new(1)), SqlType::Text), None);
    let list = [Some(vec![Some(1), None])];
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>(list);
    check(Arc::new(list), SqlType::Text, "{1,NULL}");
}

#[test]
fn intervals_read_as_postgresql_writes_them() {
    let check = |months, days, nanos, expected: &str| {
        let array = IntervalMonthDayNanoArray::from(vec![IntervalMonthDayNano::new(months, days, nanos)]);
        assert_eq!(text::cell(&array, 0, SqlType::Text).as_deref(), Some(expected));
    };
    check(14, 3, 14_706_500_000_000, "1 year 2 mons 3 days 04:05:06.5");
    check(0, -1, 0, "-1 days");
    check(0, 0, 0, "00:00:00");
    check(0, 0, -1_000_000_000, "-00:00:01");
}

#[test]
fn printing_stops_when_interrupted() {
    let columns = columns(&[("id", SqlType::Integer)]);
    let batches = [batch(vec![Arc::new(Int32Array::from(vec![1]))])];
    let interrupt = Interrupt::default();
    interrupt.request();
    for format in [Format::Box, Format::Csv, Format::Json] {
        let style = Style { format, expanded: Expanded::Off, width: None, null: "", interrupt: &interrupt };
        assert!(print(&Table::of_result(&columns, &batches), style, &mut Vec::new()).is_err());
    }
}

#[test]
fn line_of_a_narrowed_column_is_never_wider_than_the_column() {
    let width = |line: &str| unicode_width::UnicodeWidthStr::width(line);
    let texts = [format!(" {}", "漢".repeat(60)), format!("ab {}", "漢".repeat(60)), "x y".repeat(60)];
    for text in texts {
        for columns_wide in [20, 79, 80] {
            let text = StringViewArray::from(vec![Some(text.as_str())]);
            let (columns, batches) = (columns(&[("t", SqlType::Text)]), [batch(vec![Arc::new(text)])]);
            let table = Table::of_result(&columns, &batches);
            let drawn = printed_for(&table, Format::Box, Expanded::Auto, Some(columns_wide));
            assert!(drawn.lines().all(|line| width(line) <= columns_wide), "{drawn}");
        }
    }
}

#[test]
fn characters_that_are_wider_together_and_a_long_text_for_null_are_drawn() {
    let hearts = "\u{2764}\u{fe0f}".repeat(60);
    let text = StringViewArray::from(vec![Some(hearts.as_str()), None]);
    let (columns, batches) = (columns(&[("t", SqlType::Text)]), [batch(vec![Arc::new(text)])]);
    let null = "nothing is known ".repeat(10);
    let mut out = Vec::new();
    let style = Style {
        format: Format::Box,
        expanded: Expanded::Auto,
        width: Some(80),
        null: &null,
        interrupt: &Interrupt::default(),
    };
    print(&Table::of_result(&columns, &batches), style, &mut out).unwrap();
    let drawn = String::from_utf8(out).unwrap();
    assert_eq!(drawn.matches("nothing").count(), 10, "{drawn}");
    assert_eq!(drawn.matches('\u{2764}').count(), 60, "{drawn}");
}
