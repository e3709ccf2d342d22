//! The form of a file of tests: statements of the set-up, then tests.
//!
//! A line that begins with `-- test: NAME` begins a test, one that begins with `-- error: SQLSTATE` says
//! how the statement after it fails. Within quotes and comments they are text like any other.

use crate::shell::split::{Piece, Splitter};
use albireo::SqlState;

/// A file of tests.
#[derive(Debug, PartialEq, Eq)]
pub struct Script {
    /// What is run before the first test.
    pub setup: Vec<Step>,
    /// At least one.
    pub tests: Vec<Test>,
}

/// A test.
#[derive(Debug, PartialEq, Eq)]
pub struct Test {
    /// Its name.
    pub name: String,
    /// The line of its name, from 1.
    pub line: usize,
    /// Its statements, at least one.
    pub steps: Vec<Step>,
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its text.
    pub text: String,
    /// The line of its first word, from 1.
    pub line: usize,
    /// How it must fail.
    pub error: Option<SqlState>,
}

/// What is wrong with the form of a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

impl Mistake {
    fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

/// The statements of a file that has no tests, such as a schema.
///
/// # Errors
/// It has a test, a command of the shell, or an end that nothing ends.
pub fn statements(text: &str) -> Result<Vec<Step>, Mistake> {
    let script = Reader::read(text)?;
    match script.tests.first() {
        Some(test) => Err(Mistake::new(test.line, "a file to load has no tests")),
        None => Ok(script.setup),
    }
}

impl Script {
    /// Reads a file of tests.
    ///
    /// # Errors
    /// It has no tests or an empty one, a command of the shell, a line `-- error:` that does not stand
    /// before a statement of a test, or an end that nothing ends.
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        let script = Reader::read(text)?;
        match script.tests.is_empty() {
            true => Err(Mistake::new(text.lines().count().max(1), "there is no line \"-- test: NAME\"")),
            false => Ok(script),
        }
    }
}

/// A line that says something to us.
enum Mark<'a> {
    Test(&'a str),
    Error(&'a str),
}

impl<'a> Mark<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let said = line.trim().strip_prefix("--")?.trim_start();
        match said.split_once(':')? {
            ("test", name) => Some(Self::Test(name.trim())),
            ("error", state) => Some(Self::Error(state.trim())),
            _ => None,
        }
    }
}

struct Reader {
    script: Script,
    splitter: Splitter,
    /// How the next statement must fail, and where that stands.
    error: Option<(SqlState, usize)>,
}

impl Reader {
    fn read(text: &str) -> Result<Script, Mistake> {
        let script = Script { setup: Vec::new(), tests: Vec::new() };
        let mut reader = Self { script, splitter: Splitter::default(), error: None };
        // Some editors put a mark of the encoding before the first line.
        for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let mark = if reader.splitter.open().is_enclosed() { None } else { Mark::of(line) };
            if let Some(mark) = mark {
                reader.mark(&mark, index + 1)?;
            }
            for piece in reader.splitter.push(line) {
                reader.take(piece)?;
            }
        }
        let enclosed = reader.splitter.open().is_enclosed();
        let last = reader.splitter.finish();
        if enclosed {
            let line = match &last {
                Some(Piece::Statement(_, line) | Piece::Command(_, line)) => *line,
                None => text.lines().count(),
            };
            return Err(Mistake::new(line, "quotes or a comment begin here that nothing ends"));
        }
        last.map_or(Ok(()), |piece| reader.take(piece))?;
        reader.end_section()?;
        Ok(reader.script)
    }

    fn mark(&mut self, mark: &Mark<'_>, line: usize) -> Result<(), Mistake> {
        if let Some(Piece::Statement(_, begun)) = self.splitter.clone().finish() {
            return Err(Mistake::new(begun, format!("the statement does not end with ; before line {line}")));
        }
        match mark {
            Mark::Test("") => Err(Mistake::new(line, "the test has no name: \"-- test: NAME\"")),
            Mark::Test(name) => {
                self.end_section()?;
                self.script.tests.push(Test { name: (*name).to_owned(), line, steps: Vec::new() });
                Ok(())
            }
            Mark::Error(_) if self.script.tests.is_empty() => {
                Err(Mistake::new(line, "\"-- error:\" stands before the first test, where nothing may fail"))
            }
            Mark::Error(_) if self.error.is_some() => {
                Err(Mistake::new(line, "there are two lines \"-- error:\" before one statement"))
            }
            Mark::Error(code) => match state_of(code) {
                Some(state) => {
                    self.error = Some((state, line));
                    Ok(())
                }
                None => {
                    Err(Mistake::new(line, format!("\"{code}\" is not an SQLSTATE, such as 23505 or P0001")))
                }
            },
        }
    }

    fn take(&mut self, piece: Piece) -> Result<(), Mistake> {
        let (text, line) = match piece {
            Piece::Statement(text, line) => (text, line),
            Piece::Command(text, line) => {
                let message = format!("\\{text}: the shell's commands are not for files of tests");
                return Err(Mistake::new(line, message));
            }
        };
        let step = Step { text, line, error: self.error.take().map(|(state, _)| state) };
        match self.script.tests.last_mut() {
            Some(test) => test.steps.push(step),
            None => self.script.setup.push(step),
        }
        Ok(())
    }

    /// Nothing is left open before the next test, or the end.
    fn end_section(&mut self) -> Result<(), Mistake> {
        if let Some((_, line)) = self.error {
            return Err(Mistake::new(line, "no statement follows that could fail"));
        }
        match self.script.tests.last() {
            Some(test) if test.steps.is_empty() => {
                Err(Mistake::new(test.line, format!("the test \"{}\" has no statement", test.name)))
            }
            _ => Ok(()),
        }
    }
}

fn state_of(code: &str) -> Option<SqlState> {
    let bytes: [u8; 5] = code.as_bytes().try_into().ok()?;
    bytes.iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase()).then_some(SqlState(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(text: &str, line: usize, error: Option<&[u8; 5]>) -> Step {
        Step { text: text.to_owned(), line, error: error.map(|code| SqlState(*code)) }
    }

    #[test]
    fn set_up_and_tests_are_told_apart_with_their_lines() {
        let text = "\u{feff}create table t (a int);\n-- test: first one \r\nselect 1;\r\n--error: 22012\n\
                    select\n 1/0;\n  --   test: second\nselect 2";
        let script = Script::parse(text).unwrap();
        assert_eq!(script.setup, [step("create table t (a int)", 1, None)]);
        let names: Vec<_> = script.tests.iter().map(|test| (test.name.as_str(), test.line)).collect();
        assert_eq!(names, [("first one", 2), ("second", 7)]);
        let failing = step("select\n 1/0", 5, Some(b"22012"));
        assert_eq!(script.tests[0].steps, [step("select 1", 3, None), failing]);
        assert_eq!(script.tests[1].steps, [step("select 2", 8, None)]);
    }

    #[test]
    fn marks_within_quotes_and_comments_are_text() {
        let text = "-- test: a\nselect $$\n-- test: b\n$$;\nselect '\n-- error: no\n';\n/*\n-- test: c\n*/";
        let script = Script::parse(text).unwrap();
        assert_eq!((script.tests.len(), script.tests[0].steps.len()), (1, 2));
    }

    #[test]
    fn mistakes_in_the_form_are_said_with_their_line() {
        for (text, line, part) in [
            ("select 1;", 1, "there is no line"),
            ("", 1, "there is no line"),
            ("-- test: a\n\n-- test: b\nselect 1", 1, "\"a\" has no statement"),
            ("-- test: a\n-- only a comment", 1, "\"a\" has no statement"),
            ("-- test:\nselect 1", 1, "no name"),
            ("-- test: a\nselect 1\n-- test: b\nselect 1", 2, "before line 3"),
            ("-- test: a\nselect 1,\n-- error: 22012\n2;", 2, "before line 3"),
            ("-- error: 22012\nselect 1", 1, "before the first test"),
            ("-- test: a\n-- error: 2201\nselect 1", 2, "\"2201\" is not an SQLSTATE"),
            ("-- test: a\n-- error: p0001\nselect 1", 2, "\"p0001\" is not an SQLSTATE"),
            ("-- test: a\n-- error: 22012\n-- error: 22012\nselect 1", 3, "two lines"),
            ("-- test: a\nselect 1;\n-- error: 22012\n-- test: b\nselect 1", 3, "no statement follows"),
            ("-- test: a\nselect 1;\n-- error: 22012\n", 3, "no statement follows"),
            ("-- test: a\nselect $$ 1;\n-- test: b\nselect 2;", 2, "nothing ends"),
            ("-- test: a\nselect 1;\n\\d t", 3, "\\d t"),
        ] {
            let mistake = Script::parse(text).unwrap_err();
            assert!(mistake.line == line && mistake.message.contains(part), "{text}: {mistake:?}");
        }
        assert_eq!(statements("select 1;\n-- test: a\nselect 2").unwrap_err().line, 2);
    }
}
