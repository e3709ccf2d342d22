//! What `\d`, `\dt`, `\di` and `\dn` print.

use crate::output::{Cell, Kind, Table as Printed};
use crate::sql::{Index, Sql, Table};

/// `\dt`: all tables.
pub fn tables(sql: &dyn Sql) -> Printed<'static> {
    let rows = sql.tables().into_iter().map(|table| {
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

/// `\di`: all indexes.
pub fn indexes(sql: &dyn Sql) -> Printed<'static> {
    let rows = sql.tables().into_iter().flat_map(|table| {
        let of_table = move |index: Index| {
            vec![
                Some(table.schema.clone()),
                Some(index.name.clone()),
                Some(table.name.clone()),
                Some(index.columns.join(", ")),
                Some(index.method.clone()),
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

/// `\dn`: all schemas.
pub fn schemas(sql: &dyn Sql) -> Printed<'static> {
    let rows = sql.schemas().into_iter().map(|name| vec![Some(name)]).collect();
    Printed::own("List of schemas", &[("Name", Kind::Text)], rows)
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

/// `\d NAME`: the columns, and the lines to print below them.
pub fn table(table: &Table) -> (Printed<'static>, String) {
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
        below.push_str(&format!("    \"{}\" {keys}{} ({columns})\n", index.name, index.method));
    }
    if !table.checks.is_empty() {
        below.push_str("Check constraints:\n");
    }
    for check in &table.checks {
        below.push_str(&format!("    CHECK ({check})\n"));
    }
    below.push_str(&format!("Partitioning: {}\n", placement(table)));
    below.push_str(&format!("Layout: {}\nRows: {}\n\n", table.layout, table.rows));
    (Printed::own(title, &columns, rows), below)
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
