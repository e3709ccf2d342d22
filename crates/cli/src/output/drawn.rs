//! Tables drawn with lines, as psql draws them with `linestyle unicode` and `border 2`.

use super::{Cell, Kind, Table};
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;

/// How NULL is drawn.
const NULL: &str = "NULL";

/// Prints columns side by side, and how many rows there are.
pub fn grid(table: &Table<'_>, out: &mut impl Write) -> io::Result<()> {
    let headers: Vec<Vec<String>> = table.columns.iter().map(|(name, _)| lines(name)).collect();
    let mut rows = Vec::new();
    table.for_each_row(|row| {
        rows.push(row.iter().map(drawn_lines).collect::<Vec<_>>());
        Ok(())
    })?;
    let widths: Vec<usize> = (0..headers.len())
        .map(|column| {
            let cells = rows.iter().map(|row| &row[column]).chain([&headers[column]]);
            cells.flatten().map(|line| line.width()).max().unwrap_or(0)
        })
        .collect();
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
            cells(row, &widths, &aligns, out)?;
        }
        rule(&widths, ["└", "┴", "┘"], out)?;
    }
    writeln!(out, "({} row{})\n", rows.len(), if rows.len() == 1 { "" } else { "s" })
}

/// Prints one line per value, a heading per row.
pub fn expanded(table: &Table<'_>, out: &mut impl Write) -> io::Result<()> {
    let names: Vec<Vec<String>> = table.columns.iter().map(|(name, _)| lines(name)).collect();
    let width = names.iter().flatten().map(|line| line.width()).max().unwrap_or(0);
    if let Some(title) = &table.title {
        writeln!(out, "{title}")?;
    }
    let mut count = 0;
    table.for_each_row(|row| {
        count += 1;
        let heading = format!("─[ RECORD {count} ]");
        writeln!(out, "{heading}{}", "─".repeat((width + 2).saturating_sub(heading.width())))?;
        for (name, cell) in names.iter().zip(row) {
            let mut names = name.iter().map(String::as_str);
            for value in drawn_lines(cell) {
                let name = names.next().unwrap_or_default();
                writeln!(out, "{name}{} │ {value}", " ".repeat(width - name.width()))?;
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
fn cells(row: &[Vec<String>], widths: &[usize], aligns: &[Align], out: &mut impl Write) -> io::Result<()> {
    let height = row.iter().map(Vec::len).max().unwrap_or(1);
    for line in 0..height {
        for ((cell, width), align) in row.iter().zip(widths).zip(aligns) {
            let text = cell.get(line).map_or("", String::as_str);
            let room = width - text.width();
            let left = match align {
                Align::Left => 0,
                Align::Centre => room / 2,
                Align::Right => room,
            };
            write!(out, "│ {}{text}{} ", " ".repeat(left), " ".repeat(room - left))?;
        }
        writeln!(out, "│")?;
    }
    Ok(())
}

fn drawn_lines(cell: &Cell) -> Vec<String> {
    cell.as_deref().map_or_else(|| vec![NULL.to_owned()], lines)
}

/// A text's lines, with tabs and control characters made visible so that nothing is shifted.
fn lines(text: &str) -> Vec<String> {
    text.split('\n')
        .map(|line| {
            let mut drawn = String::with_capacity(line.len());
            for c in line.chars() {
                match c {
                    '\t' => drawn.push_str("    "),
                    c if c.is_control() => drawn.extend(c.escape_default()),
                    c => drawn.push(c),
                }
            }
            drawn
        })
        .collect()
}
