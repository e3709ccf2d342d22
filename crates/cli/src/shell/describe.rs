//! What `\d`, `\d+`, `\dt`, `\di`, `\dn`, `\df`, `\sf` and `\conninfo` print.
//!
//! Patterns are psql's: `*` stands for any characters, `?` for one, a point parts schema and name, and letters are in
//! lower case unless quoted.

use crate::output::{Cell, Kind, Table as Printed};
use crate::sql::{About, Chunks, Index, Routine, Sql, Table};

/// The schema that a name without one is in.
const DEFAULT_SCHEMA: &str = "public";

/// The tables that match, or all.
pub fn tables(sql: &dyn Sql, pattern: Option<&str>) -> Printed<'static> {
    let tables = sql.tables().into_iter();
    let rows = tables.filter(|table| is_meant(pattern, &table.schema, &table.name)).map(|table| {
        let placement = placement(&table);
        vec![
            Some(table.schema),
            Some(table.name),
            Some(table.rows.to_string()),
            Some(placement),
            Some(table.layout),
        ]
    });
    let columns = [
        ("Schema", Kind::Text),
        ("Name", Kind::Text),
        ("Rows", Kind::Number),
        ("Partitioning", Kind::Text),
        ("Layout", Kind::Text),
    ];
    Printed::own("List of tables", &columns, rows.collect())
}

/// The indexes that match, or all.
pub fn indexes(sql: &dyn Sql, pattern: Option<&str>) -> Printed<'static> {
    let rows = sql.tables().into_iter().flat_map(|mut table| {
        let schema = table.schema.clone();
        table.indexes.retain(|index| is_meant(pattern, &schema, &index.name));
        let of_table = move |index: Index| {
            vec![
                Some(table.schema.clone()),
                Some(index.name.clone()),
                Some(table.name.clone()),
                Some(index.columns.join(", ")),
                Some(match &index.options {
                    Some(options) => format!("{} ({options})", index.method),
                    None => index.method.clone(),
                }),
                Some(uniqueness(&index).to_owned()),
            ]
        };
        table.indexes.into_iter().map(of_table)
    });
    let columns = [
        ("Schema", Kind::Text),
        ("Name", Kind::Text),
        ("Table", Kind::Text),
        ("Columns", Kind::Text),
        ("Method", Kind::Text),
        ("Keys", Kind::Text),
    ];
    Printed::own("List of indexes", &columns, rows.collect())
}

/// The schemas that match, or all.
pub fn schemas(sql: &dyn Sql, pattern: Option<&str>) -> Printed<'static> {
    let names = sql.schemas().into_iter();
    let rows = names.filter(|name| pattern.is_none_or(|pattern| matches(&fold(pattern), name)));
    Printed::own("List of schemas", &[("Name", Kind::Text)], rows.map(|name| vec![Some(name)]).collect())
}

/// The functions and procedures that match, or all.
pub fn routines(sql: &dyn Sql, pattern: Option<&str>) -> Printed<'static> {
    let routines = sql.routines().into_iter();
    let rows = routines.filter(|routine| is_meant(pattern, DEFAULT_SCHEMA, &routine.name)).map(|routine| {
        let kind = if routine.is_procedure { "procedure" } else { "function" };
        vec![
            Some(DEFAULT_SCHEMA.to_owned()),
            Some(routine.name),
            Some(routine.result),
            Some(routine.arguments),
            Some(kind.to_owned()),
            Some(routine.language.to_owned()),
        ]
    });
    let columns = [
        ("Schema", Kind::Text),
        ("Name", Kind::Text),
        ("Result data type", Kind::Text),
        ("Argument data types", Kind::Text),
        ("Type", Kind::Text),
        ("Language", Kind::Text),
    ];
    Printed::own("List of functions", &columns, rows.collect())
}

/// The statements that defined the functions and procedures called so; parentheses behind the name do not matter.
pub fn source(sql: &dyn Sql, name: &str) -> Result<String, String> {
    let plain = fold(name.split('(').next().unwrap_or(name));
    let plain = plain.strip_prefix("public.").unwrap_or(&plain);
    let text = |routine: Routine| routine.source.trim_end().trim_end_matches(';').to_owned() + ";\n";
    let found: Vec<String> =
        sql.routines().into_iter().filter(|routine| routine.name == plain).map(text).collect();
    match found.is_empty() {
        true => Err(format!("there is no function or procedure \"{name}\"; \\df lists those there are")),
        false => Ok(found.join("\n")),
    }
}

/// The database, in a sentence.
pub fn about(sql: &dyn Sql) -> String {
    let About { data, partitions } = sql.about();
    let partitions =
        if partitions == 1 { "1 partition".to_owned() } else { format!("{partitions} partitions") };
    match data {
        Some(data) => format!(
            "You are using the database kept in {}, in this process, with {partitions}.",
            data.display()
        ),
        None => format!("You are using a database in the memory of this process, with {partitions}."),
    }
}

/// Whether an object is meant by a pattern.
fn is_meant(pattern: Option<&str>, schema: &str, name: &str) -> bool {
    let Some(pattern) = pattern else { return true };
    match pattern.split_once('.') {
        Some((schemas, names)) => matches(&fold(schemas), schema) && matches(&fold(names), name),
        None => matches(&fold(pattern), name),
    }
}

/// Whether `text` is as `pattern` has it, where `*` stands for any characters and `?` for one.
fn matches(pattern: &str, text: &str) -> bool {
    // Which beginnings of the pattern match what of the text was seen.
    let mut reached = vec![true];
    reached.extend(pattern.chars().scan(true, |stars, c| {
        *stars &= c == '*';
        Some(*stars)
    }));
    for seen in text.chars() {
        let mut next = vec![false];
        for (at, c) in pattern.chars().enumerate() {
            next.push(match c {
                '*' => next[at] || reached[at + 1],
                c => reached[at] && (c == '?' || c == seen),
            });
        }
        reached = next;
    }
    reached.last() == Some(&true)
}

/// The tables that `name`, with or without a schema, means: as SQL reads it first, as it is typed
/// otherwise.
pub fn find(sql: &dyn Sql, name: &str) -> Vec<Table> {
    let (schema, name) = match name.split_once('.') {
        Some((schema, name)) => (Some(fold(schema)), fold(name)),
        None => (None, fold(name)),
    };
    let is_meant =
        |table: &Table| table.name == name && schema.as_ref().is_none_or(|schema| table.schema == *schema);
    sql.tables().into_iter().filter(is_meant).collect()
}

/// As SQL reads names: lower case unless quoted.
fn fold(name: &str) -> String {
    match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\"\"", "\""),
        None => name.to_lowercase(),
    }
}

/// `\d NAME`: the columns, and the lines to print below them. With `more`, `\d+ NAME`: each state of its chunks has a line.
pub fn table(table: &Table, chunks: &[Chunks], more: bool) -> (Printed<'static>, String) {
    let rows: Vec<Vec<Cell>> = table
        .columns
        .iter()
        .map(|column| {
            vec![
                Some(column.name.clone()),
                Some(column.ty.to_string()),
                Some(if column.nullable { "" } else { "not null" }.to_owned()),
                Some(column.default.clone().unwrap_or_default()),
            ]
        })
        .collect();
    let columns =
        [("Column", Kind::Text), ("Type", Kind::Text), ("Nullable", Kind::Text), ("Default", Kind::Text)];
    let title = format!("Table \"{}.{}\"", table.schema, table.name);

    let mut below = String::new();
    if !table.indexes.is_empty() {
        below.push_str("Indexes:\n");
    }
    for index in &table.indexes {
        let keys = match uniqueness(index) {
            "" => String::new(),
            keys => format!("{keys}, "),
        };
        let columns = index.columns.join(", ");
        let options = index.options.as_ref().map_or(String::new(), |options| format!(" WITH ({options})"));
        below.push_str(&format!("    \"{}\" {keys}{} ({columns}){options}\n", index.name, index.method));
    }
    if !table.checks.is_empty() {
        below.push_str("Check constraints:\n");
    }
    for check in &table.checks {
        below.push_str(&format!("    CHECK ({check})\n"));
    }
    below.push_str(&format!("Partitioning: {}\n", placement(table)));
    below.push_str(&format!("Layout: {}\nRows: {}\n", table.layout, table.rows));
    match chunks {
        [] => {}
        chunks if more => {
            below.push_str("Chunks:\n");
            chunks.iter().for_each(|chunks| below.push_str(&state_with_reasons(chunks)));
        }
        chunks => {
            let states: Vec<String> = chunks.iter().map(state).collect();
            below.push_str(&format!("Chunks: {}\n", states.join("; ")));
        }
    }
    below.push('\n');
    (Printed::own(title, &columns, rows), below)
}

/// The chunks in one state, and their memory; of those that are encoded also what they took.
fn state(chunks: &Chunks) -> String {
    let Chunks { state, count, bytes, block_bytes, .. } = chunks;
    match state.as_str() {
        "frozen" => format!("{count} frozen in {bytes} bytes instead of {block_bytes}"),
        _ => format!("{count} {state} in {bytes} bytes"),
    }
}

/// The same with their rows, on a line of its own, and below it a line for each reason why they are not frozen.
fn state_with_reasons(chunks: &Chunks) -> String {
    let Chunks { state, count, rows, bytes, block_bytes, reasons } = chunks;
    let rows = if *rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") };
    let before = match state.as_str() {
        "frozen" | "evicted" => format!(" instead of {block_bytes}"),
        _ => String::new(),
    };
    let mut lines = format!("    {count} {state}: {rows} in {bytes} bytes{before}\n");
    for (reason, count) in reasons {
        lines.push_str(&format!("        {count}: {reason}\n"));
    }
    lines
}

fn placement(table: &Table) -> String {
    match &table.partition_by {
        Some(column) => format!("hash ({column})"),
        None => "shared".to_owned(),
    }
}

fn uniqueness(index: &Index) -> &'static str {
    match (index.primary, index.unique) {
        (true, _) => "primary key",
        (false, true) => "unique",
        (false, false) => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_psql_reads_them() {
        for (pattern, text, expected) in [
            ("orders", "orders", true),
            ("ord*", "orders", true),
            ("*d*r*", "orders", true),
            ("o?ders", "orders", true),
            ("ord", "orders", false),
            ("ord?", "orders", false),
            ("*", "", true),
            ("", "", true),
            ("a*b", "ab", true),
            ("a*b", "abc", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
        assert!(is_meant(Some("PUB*.Ord*"), "public", "orders"));
        assert!(!is_meant(Some("\"Orders\""), "public", "orders"));
        assert!(!is_meant(Some("other.*"), "public", "orders"));
    }

    #[test]
    fn state_of_chunks_says_what_they_take_and_why_they_are_not_frozen() {
        let reasons = vec![("new rows come to it".to_owned(), 2), ("freeze is off".to_owned(), 1)];
        let chunks = |state: &str, rows, reasons| Chunks {
            state: state.to_owned(),
            count: 3,
            rows,
            bytes: 70,
            block_bytes: 900,
            reasons,
        };
        for (chunks, expected) in [
            (chunks("frozen", 5, Vec::new()), "    3 frozen: 5 rows in 70 bytes instead of 900\n"),
            (chunks("evicted", 1, Vec::new()), "    3 evicted: 1 row in 70 bytes instead of 900\n"),
            (chunks("empty", 0, Vec::new()), "    3 empty: 0 rows in 70 bytes\n"),
            (
                chunks("hot", 5, reasons),
                "    3 hot: 5 rows in 70 bytes\n        2: new rows come to it\n        1: freeze is off\n",
            ),
        ] {
            assert_eq!(state_with_reasons(&chunks), expected);
        }
    }
}
