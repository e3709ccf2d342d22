//! How the shell says what went wrong and how long it took.

use albireo_base::SqlError;
use std::fmt::Write;
use unicode_width::UnicodeWidthChar;

/// The most columns of a line of SQL that are shown with an error, so that a terminal of 80 has room for the rest.
const EXCERPT_COLUMNS: usize = 60;

/// So many of them are behind the place of the error, if there is so much.
const COLUMNS_BEHIND: usize = 20;

/// The most characters of a message, a detail or a hint that are shown: some have the statement in them.
const MESSAGE_CHARS: usize = 2_000;

/// `message`, with file and line before it if it comes from a script.
pub fn located(script: Option<&str>, line: usize, message: &str) -> String {
    match script {
        Some(name) => format!("{name}:{line}: {message}"),
        None => message.to_owned(),
    }
}

/// What scripts have done, for whoever has to know what a failure leaves behind.
#[derive(Debug, Default)]
pub struct Done {
    /// Statements that were executed, those of included files too.
    pub statements: u64,
    /// Where the innermost script stopped.
    stopped: Option<String>,
}

impl Done {
    /// A script stops in one of its lines; `is_last_known`: as far as it was read, nothing follows. What included it
    /// stops there too, and need not be named.
    pub fn stop(&mut self, name: &str, line: usize, is_last_known: bool) {
        // Of a single statement on the command line its error says everything.
        let is_single = self.statements == 0 && is_last_known && name == "-c";
        if self.stopped.is_none() && !is_single {
            self.stopped = Some(format!("{name}:{line}"));
        }
    }

    /// The message, if a script has stopped.
    pub fn told(&self) -> Option<String> {
        let place = self.stopped.as_ref()?;
        let before = match self.statements {
            0 => "no statement was executed before".to_owned(),
            1 => "1 statement before was executed and stays in effect".to_owned(),
            count => format!("{count} statements before were executed and stay in effect"),
        };
        Some(format!("{place}: the script stopped here: {before}; nothing after was run"))
    }
}

/// An error of the statement `text` that starts in `line` of its script, with the line it points
/// into and a caret below, as psql prints it.
pub fn error(script: Option<&str>, line: usize, text: &str, error: &SqlError) -> String {
    let message = format!("ERROR {}: {}\n", error.state(), shortened(error.message()));
    let mut report = located(script, line, &message);
    if let Some((index, source, column)) = error.position().and_then(|at| excerpt(text, at)) {
        let first = if script.is_some() { line } else { 1 };
        let prefix = format!("LINE {}: ", first + index);
        let indent = " ".repeat(prefix.len() + column);
        let _ = writeln!(report, "{prefix}{source}\n{indent}^");
    }
    if let Some(detail) = error.detail() {
        let _ = writeln!(report, "DETAIL: {}", shortened(detail));
    }
    if let Some(hint) = error.hint() {
        let _ = writeln!(report, "HINT: {}", shortened(hint));
    }
    report
}

/// The line around the character at `position` (from 1): its index, as much of its text as is shown, the display
/// columns before the character.
fn excerpt(text: &str, position: usize) -> Option<(usize, String, usize)> {
    let mut start = 1;
    for (index, line) in text.split('\n').enumerate() {
        let length = line.chars().count();
        // Just behind the last character is a place too: the end of the input.
        if position >= start && position <= start + length {
            let (shown, column) = cut(&line.chars().map(visible).collect::<Vec<_>>(), position - start);
            return Some((index, shown, column));
        }
        start += length + 1;
    }
    None
}

/// The part of a line around its character `at`, and the columns before that character.
fn cut(line: &[char], at: usize) -> (String, usize) {
    let width = |c: &char| c.width().unwrap_or(0);
    let (mut first, mut behind, mut columns) = (at, at, 0);
    // First some of what stands behind, then what fits before, then more of what stands behind.
    for room in [COLUMNS_BEHIND, EXCERPT_COLUMNS] {
        while let Some(more) = line.get(behind).map(width).filter(|more| columns + more <= room) {
            columns += more;
            behind += 1;
        }
        while first > 0 && columns + width(&line[first - 1]) <= EXCERPT_COLUMNS {
            first -= 1;
            columns += width(&line[first]);
        }
    }
    let sign = |is_cut: bool| if is_cut { "..." } else { "" };
    let (left, right) = (sign(first > 0), sign(behind < line.len()));
    let column = left.len() + line[first..at].iter().map(width).sum::<usize>();
    (format!("{left}{}{right}", line[first..behind].iter().collect::<String>()), column)
}

/// Whatever would move the cursor, or do worse to a terminal, is a blank.
fn visible(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MESSAGE_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}... ({} characters)", &text[..end], text.chars().count()),
    }
}

/// A duration as `\timing` prints it: `12.345 ms`, with minutes beside it when it is long.
pub fn milliseconds(elapsed_ns: u64) -> String {
    let text = format!("{:.3} ms", elapsed_ns as f64 / 1e6);
    let seconds = elapsed_ns / 1_000_000_000;
    if seconds == 0 {
        return text;
    }
    format!("{text} ({:02}:{:02}.{:03})", seconds / 60, seconds % 60, elapsed_ns / 1_000_000 % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use albireo_base::SqlState;

    fn sample() -> SqlError {
        SqlError::new(SqlState::UNDEFINED_COLUMN, "there is no column \"nam\"")
            .with_hint("did you mean \"name\"?")
    }

    #[test]
    fn error_in_a_script_names_file_line_and_place() {
        let text = "select 1,\n  nam from t";
        let report = error(Some("a.sql"), 7, text, &sample().with_position(13));
        let expected = "a.sql:7: ERROR 42703: there is no column \"nam\"\nLINE 8:   nam from t\n          \
                        ^\nHINT: did you mean \"name\"?\n";
        assert_eq!(report, expected);
    }

    #[test]
    fn error_at_the_terminal_counts_lines_of_the_statement() {
        let report = error(None, 3, "select é, nam", &sample().with_position(11));
        assert!(report.starts_with("ERROR 42703"), "{report}");
        assert!(report.contains("LINE 1: select é, nam\n                  ^\n"), "{report}");
    }

    #[test]
    fn position_at_the_end_is_shown_and_one_beyond_is_not() {
        assert_eq!(excerpt("ab\nc", 5), Some((1, "c".to_owned(), 1)));
        assert_eq!(excerpt("ab\nc", 6), None);
        assert_eq!(excerpt("ab", 0), None);
    }

    /// What stands below the caret, and how wide the excerpt is.
    fn pointed(text: &str, position: usize) -> (char, usize) {
        let (_, shown, column) = excerpt(text, position).unwrap();
        let mut width = 0;
        let at = shown.chars().find(|c| {
            let found = width == column;
            width += c.width().unwrap_or(0);
            found
        });
        (at.unwrap_or('$'), unicode_width::UnicodeWidthStr::width(shown.as_str()))
    }

    #[test]
    fn long_line_is_cut_around_the_place_and_the_caret_stays_below_it() {
        let length = 1_000_000;
        let ascii: String = (0..length).map(|at| if at == 500_000 { '#' } else { 'a' }).collect();
        let wide: String = (0..length).map(|at| if at == 500_000 { '#' } else { '東' }).collect();
        for text in [&ascii, &wide] {
            let (at, width) = pointed(text, 500_001);
            assert!(
                at == '#' && (EXCERPT_COLUMNS + 4..=EXCERPT_COLUMNS + 6).contains(&width),
                "{at} {width}"
            );
        }
        let (_, first, column) = excerpt(&ascii, 1).unwrap();
        assert_eq!((column, first.len(), first.ends_with("a...")), (0, EXCERPT_COLUMNS + 3, true));
        let (_, last, column) = excerpt(&ascii, length + 1).unwrap();
        assert_eq!((column, last.len()), (EXCERPT_COLUMNS + 3, EXCERPT_COLUMNS + 3));
        let whole = "x".repeat(EXCERPT_COLUMNS);
        assert_eq!(excerpt(&whole, 40), Some((0, whole, 39)));
    }

    #[test]
    fn excerpt_shows_nothing_that_a_terminal_obeys() {
        assert_eq!(excerpt("a\tb\u{1b}[2Jc", 3), Some((0, "a b [2Jc".to_owned(), 2)));
    }

    #[test]
    fn message_with_a_statement_in_it_is_shortened() {
        let error = SqlError::new(SqlState::SYNTAX_ERROR, "é".repeat(1_000_000));
        let report = error_of(&error);
        assert!(report.len() < 5_000 && report.ends_with("... (1000000 characters)\n"), "{}", report.len());
    }

    fn error_of(found: &SqlError) -> String {
        error(None, 1, "", found)
    }

    #[test]
    fn durations_over_a_second_are_shown_in_minutes_too() {
        assert_eq!(milliseconds(1_234_567), "1.235 ms");
        assert_eq!(milliseconds(61_500_000_000), "61500.000 ms (01:01.500)");
    }
}
