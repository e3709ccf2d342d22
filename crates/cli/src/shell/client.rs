//! `COPY ... FROM STDIN` and `COPY ... TO STDOUT`.
//!
//! Responsible for: where the rows of such a statement are: in the lines after it, up to `\.`, as psql has it; of
//! a statement of the command line (`-c`), on standard input. Not responsible for: what rows are (`albireo`).

use super::{Around, Shell, Stop};
use std::io::{self, Write};

/// Adds the line that comes next to what it is given; gives its length, 0 at the end.
pub type NextLine<'a> = &'a mut dyn FnMut(&mut Vec<u8>) -> io::Result<usize>;

/// The client's end of a COPY.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Rows come from the script.
    Stdin,
    /// Rows go to where results go.
    Stdout,
}

/// Which end of a COPY a statement leaves to the client, if it is one.
pub fn end_of(text: &str) -> Option<End> {
    let mut words = words(text);
    if !words.next()?.eq_ignore_ascii_case("copy") {
        return None;
    }
    let words: Vec<String> = words.map(|word| word.to_ascii_lowercase()).collect();
    // A query may read a table of that name.
    let is_query = matches!(words.first().map(String::as_str), Some("select" | "with" | "values" | "table"));
    words.windows(2).find_map(|pair| match [pair[0].as_str(), pair[1].as_str()] {
        ["from", "stdin"] if !is_query => Some(End::Stdin),
        ["to", "stdout"] => Some(End::Stdout),
        _ => None,
    })
}

/// Words outside of quotes and comments; a quoted text counts as a word that is none.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_start_matches(|c: char| {
                !c.is_alphanumeric() && !matches!(c, '_' | '\'' | '"' | '-' | '/')
            });
            let after = |end: &str| rest[2..].find(end).map_or("", |at| &rest[2 + at..]);
            match rest.chars().next()? {
                '-' if rest.starts_with("--") => rest = after("\n"),
                '/' if rest.starts_with("/*") => rest = after("*/").trim_start_matches("*/"),
                '-' | '/' => rest = &rest[1..],
                quote @ ('\'' | '"') => {
                    rest = rest[1..].split_once(quote).map_or("", |(_, rest)| rest);
                    return Some(quote.to_string());
                }
                _ => {
                    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                    let (word, others) = rest.split_at(end);
                    rest = others;
                    return Some(word.to_owned());
                }
            }
        }
    })
}

impl Shell<'_> {
    /// Runs such a statement of the script `name`, or of the terminal.
    pub(super) fn run_client_copy(
        &mut self,
        name: Option<&str>,
        (text, line): (&str, usize),
        end: End,
        around: &mut Around<'_>,
    ) -> Result<(), Stop> {
        let (sql, interrupt) = (self.sql, self.interrupt);
        let result = match end {
            End::Stdout => {
                let mut sink = Sink { sink: self.results(), error: None };
                let result = interrupt.during(sql.canceller(), || sql.copy_to(text, &mut sink));
                if let Some(error) = sink.error {
                    return Err(Stop::Output(error));
                }
                result
            }
            End::Stdin if name.is_some_and(is_command_line) => {
                interrupt.during(sql.canceller(), || sql.copy_from(text, &mut io::stdin()))
            }
            End::Stdin => {
                let mut rows = Vec::new();
                if name.is_none() {
                    self.say("Enter the rows, one on each line. End with \\. on a separate line, or Ctrl-D.");
                    self.out.flush()?;
                }
                let mut take = || take_rows(around.next_line, &mut rows);
                let taken = match &self.terminal {
                    Some(terminal) if name.is_none() => terminal.read_only(take),
                    _ => take(),
                };
                match taken {
                    Ok(taken) => around.splitter.skip_lines(taken),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                        return self.fail("COPY was cancelled; nothing was inserted");
                    }
                    Err(error) => return self.fail(&format!("cannot read the rows of COPY: {error}")),
                }
                interrupt.during(sql.canceller(), || sql.copy_from(text, &mut rows.as_slice()))
            }
        };
        match result {
            Ok(rows) => {
                self.done.statements += 1;
                if self.confirms && end == End::Stdin {
                    writeln!(self.results(), "COPY {rows}")?;
                }
                Ok(())
            }
            Err(error) => self.fail_statement(name, (text, line), &error),
        }
    }
}

/// Whether a script of this name is the text of `-c`, which has no rows in it: they are on standard input.
fn is_command_line(name: &str) -> bool {
    name == "-c" || name.starts_with("-c #")
}

/// Where results go. Whatever cannot be written there is no error of the statement.
struct Sink<'a> {
    sink: &'a mut (dyn Write + Send),
    error: Option<io::Error>,
}

impl Sink<'_> {
    fn kept<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let kind = error.kind();
            self.error = Some(error);
            kind.into()
        })
    }
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.sink.write(bytes);
        self.kept(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.sink.flush();
        self.kept(result)
    }
}

/// Takes lines up to `\.` or the end; gives how many there were, with `\.`.
fn take_rows(next_line: NextLine<'_>, rows: &mut Vec<u8>) -> io::Result<usize> {
    let mut lines = 0;
    loop {
        let start = rows.len();
        if next_line(rows)? == 0 {
            return Ok(lines);
        }
        lines += 1;
        if rows[start..].trim_ascii_end() == b"\\." {
            rows.truncate(start);
            return Ok(lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::Embedded;
    use crate::interrupt::Interrupt;
    use albireo_env::Env;
    use std::io::BufRead as _;

    #[test]
    fn end_of_a_copy_is_found_outside_of_quotes_and_comments() {
        let cases = [
            ("copy t from stdin", Some(End::Stdin)),
            ("-- rows\nCOPY t (a, b) FROM STDIN WITH (FORMAT csv);", Some(End::Stdin)),
            ("/* x */ copy (select 1) to stdout", Some(End::Stdout)),
            ("copy (select a from stdin) to stdout", Some(End::Stdout)),
            ("copy t from 'from stdin'", None),
            ("copy \"from stdin\" from 'x.csv'", None),
            ("select 1 from stdin", None),
            ("copy t from 'x' -- from stdin", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(end_of(text), expected, "{text}");
        }
    }

    /// Output and messages of a script on a database of its own.
    fn run(script: &str) -> (String, String) {
        let (env, interrupt) = (Env::real(), Interrupt::default());
        let sql = Embedded::open(None, None, crate::settings::Settings::default(), &env).unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut shell = Shell::new(&sql, &env, &interrupt, &mut out, &mut err);
        let result = shell.run_script("main.sql", script.as_bytes());
        shell.exit_status(result);
        drop(shell);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(out), text(err))
    }

    #[test]
    fn rows_of_a_script_go_into_a_table_and_out_again() {
        let create = "create table t (a int, b text);\n";
        let script = format!(
            "{create}copy t from stdin;\n2\t;'\n1\t\\N\n\\.\ncopy (select * from t order by a) to stdout;\n"
        );
        assert_eq!(run(&script), ("1\t\\N\n2\t;'\n".to_owned(), String::new()));
        let (out, err) = run(&format!("{create}copy t from stdin;\nx\ty\n\\.\nselect 1;\n"));
        assert_eq!(out, "");
        assert!(err.contains("line 1, column \"a\": \"x\""), "{err}");
        let (_, err) = run(&format!("{create}copy t from stdin;\n1\tx\n\\.\nselect nothing;\n"));
        assert!(err.contains("main.sql:5"), "lines of rows count: {err}");
    }

    #[test]
    fn rows_end_at_the_mark_or_with_the_script() {
        let mut input = &b"1\ta\n2\tb\n\\.\nselect 1;\n"[..];
        let mut take = |rows: &mut Vec<u8>| take_rows(&mut |to| input.read_until(b'\n', to), rows).unwrap();
        let (mut rows, mut rest) = (Vec::new(), Vec::new());
        assert_eq!((take(&mut rows), take(&mut rest), take(&mut rest)), (3, 1, 0));
        assert_eq!((rows.as_slice(), rest.as_slice()), (&b"1\ta\n2\tb\n"[..], &b"select 1;\n"[..]));
    }

    #[test]
    fn reader_that_has_gone_ends_the_shell_and_fails_no_statement() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (env, interrupt) = (Env::real(), Interrupt::default());
        let sql = Embedded::open(None, None, crate::settings::Settings::default(), &env).unwrap();
        let (mut out, mut err) = (Gone, Vec::new());
        let mut shell = Shell::new(&sql, &env, &interrupt, &mut out, &mut err);
        let result = shell.run_script("main.sql", &b"copy (select 1) to stdout;"[..]);
        assert_eq!(shell.exit_status(result), 0);
        assert!(err.is_empty(), "{}", String::from_utf8_lossy(&err));
    }
}
