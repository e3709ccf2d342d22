//! Comma-separated values as PostgreSQL's COPY writes them: NULL is empty, the empty string `""`.

use super::Table;
use crate::interrupt::Interrupt;
use std::io::{self, Write};

/// Prints a header and the rows.
pub fn csv(table: &Table<'_>, interrupt: &Interrupt, out: &mut impl Write) -> io::Result<()> {
    line(table.columns.iter().map(|(name, _)| Some(name.as_str())), out)?;
    table.for_each_row(interrupt, |row| line(row.iter().map(Option::as_deref), out))
}

fn line<'a>(cells: impl Iterator<Item = Option<&'a str>>, out: &mut impl Write) -> io::Result<()> {
    for (index, cell) in cells.enumerate() {
        if index > 0 {
            out.write_all(b",")?;
        }
        match cell {
            None => {}
            Some(text) if text.is_empty() || text.contains([',', '"', '\n', '\r']) => {
                write!(out, "\"{}\"", text.replace('"', "\"\""))?;
            }
            Some(text) => out.write_all(text.as_bytes())?,
        }
    }
    out.write_all(b"\n")
}
