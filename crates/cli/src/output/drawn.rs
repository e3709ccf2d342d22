//! Tables drawn with lines, as psql draws them with `linestyle unicode` and `border 2`.

use super::{Cell, Expanded, Kind, Style, Table};
use std::borrow::Cow;
use std::io::{self, Write};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The least columns of text that are left of a table which is too wide by its frame alone.
const LEAST_WIDTH: usize = 8;

/// Prints columns side by side, and how many rows there are. If they are wider than the terminal, each value gets its
/// line instead; a single column and lists of the shell's own are broken into lines.
pub fn grid(table: &Table<'_>, style: Style<'_>, out: &mut impl Write) -> io::Result<()> {
    let Style { interrupt, null, .. } = style;
    let mut headers: Vec<Cell> = table.columns.iter().map(|(name, _)| Some(name.clone())).collect();
    let width = |cell: &Cell| width(cell, null);
    let mut widths: Vec<usize> = headers.iter().map(width).collect();
    let mut rows = Vec::new();
    table.for_each_row(interrupt, |row| {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = (*widest).max(width(cell));
        }
        rows.push(row.to_vec());
        Ok(())
    })?;
    // What the frame takes: three columns for each of the table's, and one.
    let room = style.width.map(|room| room.saturating_sub(3 * widths.len() + 1));
    if let (Expanded::Auto, Some(room)) = (style.expanded, room)
        && widths.iter().sum::<usize>() > room
    {
        if widths.len() > 1 && !table.is_own() {
            return expanded(table, style, out);
        }
        narrow(&mut widths, room);
        for row in rows.iter_mut().chain([&mut headers]) {
            for (cell, width) in row.iter_mut().zip(&widths) {
                *cell = Some(broken(cell.as_deref().unwrap_or(null), *width));
            }
        }
    }
    if let Some(title) = &table.title {
        writeln!(out, "{title}")?;
    }
    if !headers.is_empty() {
        rule(&widths, ["┌", "┬", "┐"], out)?;
        cells(&headers, &widths, &vec![Align::Centre; widths.len()], null, out)?;
        rule(&widths, ["├", "┼", "┤"], out)?;
        let aligns: Vec<Align> = table
            .columns
            .iter()
            .map(|(_, kind)| if *kind == Kind::Number { Align::Right } else { Align::Left })
            .collect();
        for row in &rows {
            interrupt.check()?;
            cells(row, &widths, &aligns, null, out)?;
        }
        rule(&widths, ["└", "┴", "┘"], out)?;
    }
    writeln!(out, "({} row{})\n", rows.len(), if rows.len() == 1 { "" } else { "s" })
}

/// Prints one line per value, a heading per row.
pub fn expanded(table: &Table<'_>, style: Style<'_>, out: &mut impl Write) -> io::Result<()> {
    let null = style.null;
    let names: Vec<Cell> = table.columns.iter().map(|(name, _)| Some(name.clone())).collect();
    let widest = names.iter().map(|name| width(name, null)).max().unwrap_or(0);
    if let Some(title) = &table.title {
        writeln!(out, "{title}")?;
    }
    let mut count = 0;
    table.for_each_row(style.interrupt, |row| {
        count += 1;
        let heading = format!("─[ RECORD {count} ]");
        writeln!(out, "{heading}{}", "─".repeat((widest + 2).saturating_sub(heading.width())))?;
        for (name, cell) in names.iter().zip(row) {
            let mut names = lines(name, null);
            for value in lines(cell, null) {
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
fn cells(
    row: &[Cell],
    widths: &[usize],
    aligns: &[Align],
    null: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut drawn: Vec<_> = row.iter().map(|cell| lines(cell, null).peekable()).collect();
    while drawn.iter_mut().any(|lines| lines.peek().is_some()) {
        for ((lines, width), align) in drawn.iter_mut().zip(widths).zip(aligns) {
            let text = lines.next().unwrap_or_default();
            // Characters that are drawn as one, such as emoji, may be wider than each by itself.
            let room = width.saturating_sub(text.as_ref().width());
            let left = match align {
                Align::Left => 0,
                Align::Centre => room / 2,
                Align::Right => room,
            };
            // The standard library's padding ends at 65,535.
            let (left, right) = (" ".repeat(left), " ".repeat(room - left));
            write!(out, "│ {left}{text}{right} ")?;
        }
        writeln!(out, "│")?;
    }
    Ok(())
}

/// Columns of the terminal that a cell's widest line takes.
fn width(cell: &Cell, null: &str) -> usize {
    lines(cell, null).map(|line| line.as_ref().width()).max().unwrap_or(0)
}

/// Narrows the widest columns until all have room, as far as text can still be read in them.
fn narrow(widths: &mut [usize], room: usize) {
    let at_most = |most: usize| widths.iter().map(|width| *width.min(&most)).sum::<usize>();
    let most = (LEAST_WIDTH..=room).take_while(|most| at_most(*most) <= room).last().unwrap_or(LEAST_WIDTH);
    widths.iter_mut().for_each(|width| *width = most.min(*width));
}

/// `text` with line breaks, so that no line is wider than `room` columns: at a blank, which is left out, where there is
/// one.
fn broken(text: &str, room: usize) -> String {
    let mut lines = Vec::new();
    for line in lines_of(text) {
        let (mut part, mut width, mut word) = (String::new(), 0, 0);
        for c in line.chars() {
            let more = c.width().unwrap_or(0);
            if width + more > room && width > 0 {
                let moves = c != ' ' && word > 0 && part[word..].width() + more <= room;
                let rest = if moves { part.split_off(word) } else { String::new() };
                width = rest.width();
                lines.push(std::mem::replace(&mut part, rest).trim_end().to_owned());
                word = 0;
                if c == ' ' {
                    continue;
                }
            }
            part.push(c);
            width += more;
            if c == ' ' {
                word = part.len();
            }
        }
        lines.push(part);
    }
    lines.join("\n")
}

/// A cell's lines, at least one.
fn lines<'a>(cell: &'a Cell, null: &'a str) -> impl Iterator<Item = Cow<'a, str>> {
    lines_of(cell.as_deref().unwrap_or(null))
}

/// The lines of a text, at least one, with tabs and control characters made visible so that nothing is
/// shifted.
fn lines_of(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    text.split('\n').map(|line| {
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
