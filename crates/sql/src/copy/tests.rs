use super::*;
use crate::ddl::plan_ddl;
use crate::parse::parse_one;

fn plan(text: &str) -> Result<CopyPlan, SqlError> {
    let create = "create table t (id int, name text, \"Odd\" int)";
    let catalog = Catalog::new();
    let catalog = catalog.with(&plan_ddl(&catalog, &parse_one(create).unwrap(), create).unwrap().changes);
    plan_copy(&catalog, &parse_one(text).unwrap_or_else(|error| panic!("{text}: {error}")), text)
}

fn format(text: &str) -> CopyFormat {
    match plan(text).unwrap_or_else(|error| panic!("{text}: {error}")) {
        CopyPlan::From { format, .. } | CopyPlan::To { format, .. } => format,
    }
}

#[test]
fn format_is_guessed_from_the_ending_unless_given() {
    let csv = CopyFormat::Csv(CsvOptions::default());
    assert_eq!(format("copy t from 'a/b.csv'"), csv);
    assert_eq!(format("copy t from 'B.CSV'"), csv);
    assert_eq!(format("copy t from 'b.parquet'"), CopyFormat::Parquet);
    assert_eq!(format("copy t from 'b.dat' (format parquet)"), CopyFormat::Parquet);
    assert_eq!(format("copy t from 'b.parquet' with (format 'csv')"), csv);
    assert_eq!(format("copy t from 'b' csv"), csv);
    let tabs = CopyFormat::Csv(CsvOptions { delimiter: b'\t', ..CsvOptions::default() });
    assert_eq!(format("copy t from 'b.tsv'"), tabs);
}

#[test]
fn csv_options_are_read_in_both_forms() {
    let expected = CopyFormat::Csv(CsvOptions {
        header: Header::Line,
        delimiter: b'|',
        quote: b'\'',
        escape: b'\\',
        null: "NULL".to_owned(),
        ..CsvOptions::default()
    });
    let text = "copy t from 'x.csv' with (header, delimiter '|', quote '''', escape '\\', null 'NULL')";
    assert_eq!(format(text), expected);
    let text = "copy t from 'x' csv header quote '''' escape '\\' delimiter '|' null 'NULL'";
    assert_eq!(format(text), expected);
}

#[test]
fn formats_beside_csv_have_options_of_their_own() {
    assert_eq!(format("copy t from stdin"), CopyFormat::Text(TextOptions::default()));
    assert_eq!(format("copy t to stdout csv"), CopyFormat::Csv(CsvOptions::default()));
    let text = TextOptions { header: Header::Line, delimiter: b'|', null: "-".to_owned() };
    assert_eq!(
        format("copy t from 'x' (format text, header, delimiter '|', null '-')"),
        CopyFormat::Text(text)
    );
    assert_eq!(format("copy t from 'x.jsonl.zst'"), CopyFormat::Json);
    assert_eq!(format("copy t from 'x.CSV.GZ'"), CopyFormat::Csv(CsvOptions::default()));
    let CopyFormat::Csv(options) = format("copy t from 'x.csv' (header match, force_null (name, \"Odd\"))")
    else {
        panic!("not CSV")
    };
    assert_eq!((options.header, options.force_null), (Header::Match, vec![ColumnId(1), ColumnId(2)]));
    let CopyPlan::From { encoding, place, .. } = plan("copy t from stdin (encoding 'LATIN1')").unwrap()
    else {
        panic!("not read")
    };
    assert_eq!((encoding.as_deref(), place), (Some("LATIN1"), CopyPlace::Client));
}

#[test]
fn table_or_query_is_written_by_a_query() {
    let CopyPlan::To { query, place, .. } = plan("copy t (name, \"Odd\") to 'x.csv'").unwrap() else {
        panic!("not written")
    };
    assert_eq!(place, CopyPlace::File("x.csv".to_owned()));
    assert_eq!(query.to_string(), "SELECT name, \"Odd\" FROM public.t");
    let CopyPlan::To { query, .. } = plan("copy (select id + 1 from t) to 'x.parquet'").unwrap() else {
        panic!("not written")
    };
    assert_eq!(query.to_string(), "SELECT id + 1 FROM t");
    let CopyPlan::From { columns, table, .. } = plan("copy t (name, id) from 'x.csv'").unwrap() else {
        panic!("not read")
    };
    assert_eq!((table.name.as_str(), columns), ("t", vec![ColumnId(1), ColumnId(0)]));
}

#[test]
fn copy_that_makes_no_sense_is_refused() {
    let cases = [
        ("copy x from 'x.csv'", "42P01", "relation \"x\" does not exist"),
        ("copy t (nme) from 'x.csv'", "42703", "column \"nme\" of relation \"t\" does not exist"),
        ("copy t (id, id) from 'x.csv'", "42701", "column \"id\" specified more than once"),
        ("copy t from 'x.dat'", "22023", "cannot tell the format of \"x.dat\" from its name"),
        ("copy t from 'x' (format binary)", "0A000", "COPY format \"binary\" is not supported"),
        ("copy t from 'x.parquet.gz'", "0A000", "a compressed Parquet file is not supported"),
        ("copy t from 'x' (format text, quote '!')", "0A000", "COPY QUOTE requires CSV mode"),
        ("copy t from 'x' (format text, delimiter 'a')", "22023", "COPY delimiter cannot be \"a\""),
        (
            "copy t from 'x.csv' (force_null (nme))",
            "42703",
            "column \"nme\" of relation \"t\" does not exist",
        ),
        ("copy t to 'x.csv' (force_null (name))", "0A000", "COPY force null only available using COPY FROM"),
        ("copy t to 'x.csv' (header match)", "0A000", "cannot use \"match\" with HEADER in COPY TO"),
        ("copy t to 'x.csv' (encoding 'latin1')", "0A000", "encoding \"latin1\" in COPY TO is not supported"),
        ("copy t from 'x' (format orc)", "22023", "COPY format \"orc\" not recognized"),
        ("copy t from 'x.csv' (delimiter '\"')", "22023", "COPY delimiter and quote must be different"),
        (
            "copy t from 'x.csv' (null 'a,b')",
            "22023",
            "COPY delimiter character must not appear in the NULL specification",
        ),
        ("copy t from 'x.csv' (header, header false)", "42601", "conflicting or redundant options: header"),
        ("copy t from 'x.parquet' (header)", "0A000", "COPY HEADER requires CSV mode"),
    ];
    for (text, code, message) in cases {
        let error = plan(text).expect_err(text);
        assert_eq!((error.state().to_string().as_str(), error.message()), (code, message), "{text}");
    }
}
