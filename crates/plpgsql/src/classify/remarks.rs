//! What CREATE remarks on a routine: tables of which all rows are read because an index is missing.

use albireo_sql::{TableDef, names};

use super::part::each_sql;
use crate::body::Routine;
use crate::plan::tree::AccessInfo;

/// A remark for each table that a statement of the routine reads as a whole although it compares columns
/// by equality, with the index that is missing.
pub fn remarks(routine: &Routine) -> Vec<String> {
    let mut all = Vec::new();
    each_sql(routine, &mut |_, line, accesses| {
        for access in accesses.iter().filter(|access| !access.unserved.is_empty()) {
            let place = line.map_or("a statement".to_owned(), |line| format!("line {line}"));
            let name = &access.table.name;
            let index = missing(access);
            let remark = format!("{place} reads all rows of \"{name}\"; hint: CREATE INDEX ON {index}");
            if !all.contains(&remark) {
                all.push(remark);
            }
        }
    });
    all
}

fn missing(access: &AccessInfo) -> String {
    let table: &TableDef = &access.table;
    let columns: Vec<String> =
        access.unserved.iter().map(|column| quoted(&table.column_def(*column).name)).collect();
    let schema = match table.schema.as_str() {
        "public" => String::new(),
        schema => format!("{}.", quoted(schema)),
    };
    format!("{schema}{} ({})", quoted(&table.name), columns.join(", "))
}

/// A name as it has to be written.
fn quoted(name: &str) -> String {
    match names::is_reserved(name) {
        true => format!("\"{name}\""),
        false => names::display(name),
    }
}
