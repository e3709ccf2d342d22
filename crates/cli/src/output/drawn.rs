//! Tables drawn with lines, as psql draws them with `linestyle unicode` and `border 2`.

use super::{Cell, Kind, Table};
use crate::interrupt::Interrupt;
use std::borrow::Cow;
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;

/// How NULL is drawn.
const NULL: &str = "NULL";

/// Prints columns side by side, and how many rows there are.
pub fn grid(table: &Table<'_>, interrupt: &Interrupt, out: &mut impl Write) -> io::Result<()> {
    let headers: Vec<Cell> = table.columns.iter().map(|(name, _)| Some(name.clone())).collect();
    let mut widths: Vec<usize> = headers.iter().map(width).collect();
    let mut rows = Vec::new();
    table.for_each_row(interrupt, |row| {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = (*widest).max(width(cell));
        }
        rows.push(row.to_vec());
        Ok(())
    })?;
    if let Some(title) = &table.title {
        writeln!(out, "{title}")?;
    }
    if !headers.is_empty() {
        rule(&widths, ["┌", "┬", "┐"], out)?;
        cells(&headers, &widths, &vec![Align::Centre; widths.len()], out)?;
        rule(&widths, ["├", "┼", "┤"], out)?;
        let aligns: Vec<Align> = table
            .columns
            .iter()
            .map(|(_, kind)| if *kind == Kind::Number { Align::Right } else { Align::Left })
            .collect();
        for row in &rows {
            interrupt.check()?;
            cells(row, &widths, &aligns, out)?;
        }
        rule(&widths, ["└", "┴", "┘"], out)?;
    }
    writeln!(out, "({} row{})\n", rows.len(), if rows.len() == 1 { "" } else { "s" })
}

/// Prints one line per value, a heading per row.
pub fn expanded(table: &Table<'_>, interrupt: &Interrupt, out: &mut impl Write) -> io::Result<()> {
    let names: Vec<Cell> = table.columns.iter().map(|(name, _)| Some(name.clone())).collect();
    let widest = names.iter().map(width).max().unwrap_or(0);
    if let Some(title) = &table.title {
        writeln!(out, "{title}")?;
    }
    let mut count = 0;
    table.for_each_row(interrupt, |row| {
        count += 1;
        let heading = format!("─[ RECORD {count} ]");
        writeln!(out, "{heading}{}", "─".repeat((widest + 2).saturating_sub(heading.width())))?;
        for (name, cell) in names.iter().zip(row) {
            let mut names = lines(name);
            for value in lines(cell) {
                let name = names.next().unwrap_or_default();
                let room = widest - name.as_ref().width();
                writeln!(out, "{name}{} │ {value}", " ".repeat(room))?;
            }
        }
        Ok(())
    })?;
    writeln!(out, "({count} row{})\n", if count == 1 { "" } else { "s" })
}

#[derive(Clone, Copy)]
enum Align {
    Left,
    Centre,
    Right,
}

fn rule(widths: &[usize], [left, middle, right]: [&str; 3], out: &mut impl Write) -> io::Result<()> {
    let bars: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
    writeln!(out, "{left}{}{right}", bars.join(middle))
}

/// Draws one row, as many lines high as its highest cell.
fn cells(row: &[Cell], widths: &[usize], aligns: &[Align], out: &mut impl Write) -> io::Result<()> {
    let mut drawn: Vec<_> = row.iter().map(|cell| lines(cell).peekable()).collect();
    while drawn.iter_mut().any(|lines| lines.peek().is_some()) {
        for ((lines, width), align) in drawn.iter_mut().zip(widths).zip(aligns) {
            let text = lines.next().unwrap_or_default();
            let room = width - text.as_ref().width();
            let left = match align {
                Align::Left => 0,
                Align::Centre => room / 2,
                Align::Right => room,
            };
            write!(out, "│ {:left$}{text}{:right$} ", "", "", right = room - left)?;
        }
        writeln!(out, "│")?;
    }
    Ok(())
}

/// Columns of the terminal that a cell's widest line takes.
fn width(cell: &Cell) -> usize {
    lines(cell).map(|line| line.as_ref().width()).max().unwrap_or(0)
}

/// A cell's lines, at least one, with tabs and control characters made visible so that nothing is
/// shifted.
fn lines(cell: &Cell) -> impl Iterator<Item = Cow<'_, str>> {
    cell.as_deref().unwrap_or(NULL).split('\n').map(|line| {
        if !line.contains(char::is_control) {
            return Cow::Borrowed(line);
        }
        let mut drawn = String::with_capacity(line.len());
        for c in line.chars() {
            match c {
                '\t' => drawn.push_str("    "),
                c if c.is_control() => drawn.extend(c.escape_default()),
                c => drawn.push(c),
            }
        }
        Cow::Owned(drawn)
    })
}
