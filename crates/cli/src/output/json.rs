//! An array with one object per row and line.
//!
//! I-1 The names of an object differ: a column whose name another before it has is called `a_1`, the next `a_2`, and so
//! on, unless a column has that name itself.

use super::{Kind, Table};
use crate::interrupt::Interrupt;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

/// Prints the rows. Numbers keep all their digits; those JSON has no words for (NaN, Infinity)
/// become strings.
pub fn array(table: &Table<'_>, interrupt: &Interrupt, out: &mut impl Write) -> io::Result<()> {
    let names = unique(table.columns.iter().map(|(name, _)| name.as_str()).collect());
    let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
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

/// Names that differ: those that come first stay, and so do those that come once.
fn unique(names: Vec<&str>) -> Vec<String> {
    let mut taken: HashSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let (mut seen, mut next) = (HashSet::new(), HashMap::new());
    let of = |name: &str| {
        if seen.insert(name.to_owned()) {
            return name.to_owned();
        }
        let number = next.entry(name.to_owned()).or_insert(0);
        loop {
            *number += 1;
            let name = format!("{name}_{number}");
            if taken.insert(name.clone()) {
                return name;
            }
        }
    };
    names.into_iter().map(of).collect()
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn is_json_number(text: &str) -> bool {
    serde_json::from_str::<serde_json::Number>(text).is_ok()
}
