//! An array with one object per row and line.

use super::{Kind, Table};
use crate::interrupt::Interrupt;
use std::io::{self, Write};

/// Prints the rows. Numbers keep all their digits; those JSON has no words for (NaN, Infinity)
/// become strings.
pub fn array(table: &Table<'_>, interrupt: &Interrupt, out: &mut impl Write) -> io::Result<()> {
    let names: Vec<String> = table.columns.iter().map(|(name, _)| quoted(name)).collect();
    out.write_all(b"[")?;
    let mut separator = "\n";
    table.for_each_row(interrupt, |row| {
        write!(out, "{separator}{{")?;
        separator = ",\n";
        for (index, (cell, (_, kind))) in row.iter().zip(&table.columns).enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            let value = match (cell, kind) {
                (None, _) => "null".to_owned(),
                (Some(text), Kind::Bool) => (text == "t").to_string(),
                (Some(text), Kind::Number) if is_json_number(text) => text.clone(),
                (Some(text), Kind::Number | Kind::Text) => quoted(text),
            };
            write!(out, "{comma}{}: {value}", names[index])?;
        }
        out.write_all(b"}")
    })?;
    out.write_all(b"\n]\n")
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn is_json_number(text: &str) -> bool {
    serde_json::from_str::<serde_json::Number>(text).is_ok()
}
