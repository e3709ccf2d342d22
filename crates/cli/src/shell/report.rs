//! How the shell says what went wrong and how long it took.

use albireo_base::SqlError;
use std::fmt::Write;

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
    let mut report = located(script, line, &format!("ERROR {}: {}\n", error.state(), error.message()));
    if let Some((index, source, column)) = error.position().and_then(|at| line_of(text, at)) {
        let first = if script.is_some() { line } else { 1 };
        let prefix = format!("LINE {}: ", first + index);
        let indent = " ".repeat(prefix.len() + column);
        let _ = writeln!(report, "{prefix}{source}\n{indent}^");
    }
    if let Some(detail) = error.detail() {
        let _ = writeln!(report, "DETAIL: {detail}");
    }
    if let Some(hint) = error.hint() {
        let _ = writeln!(report, "HINT: {hint}");
    }
    report
}

/// The line of the character at `position` (from 1): its index, its text, the display columns
/// before the character.
fn line_of(text: &str, position: usize) -> Option<(usize, String, usize)> {
    let mut start = 1;
    for (index, line) in text.split('\n').enumerate() {
        let length = line.chars().count();
        // Just behind the last character is a place too: the end of the input.
        if position >= start && position <= start + length {
            let before: String = line.chars().take(position - start).map(blank_tab).collect();
            let shown = line.chars().map(blank_tab).collect();
            return Some((index, shown, unicode_width::UnicodeWidthStr::width(before.as_str())));
        }
        start += length + 1;
    }
    None
}

fn blank_tab(c: char) -> char {
    if c == '\t' { ' ' } else { c }
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
        assert_eq!(line_of("ab\nc", 5), Some((1, "c".to_owned(), 1)));
        assert_eq!(line_of("ab\nc", 6), None);
        assert_eq!(line_of("ab", 0), None);
    }

    #[test]
    fn durations_over_a_second_are_shown_in_minutes_too() {
        assert_eq!(milliseconds(1_234_567), "1.235 ms");
        assert_eq!(milliseconds(61_500_000_000), "61500.000 ms (01:01.500)");
    }
}
