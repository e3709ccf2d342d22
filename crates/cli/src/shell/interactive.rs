//! The shell of a person at a terminal: prompts, the words that are answered in the middle of everything, history.
//!
//! I-1 Nothing but `\q`, `quit`, `exit`, Ctrl-D and a terminal that is gone ends it. I-2 What is typed or pasted while
//! a statement runs is read when it is done (`terminal`, `editor`).

use super::editor::{Input, LineEditor};
use super::split::{Open, Splitter};
use super::terminal::Terminal;
use super::{Around, Shell, Stop, report};
use std::collections::VecDeque;
use std::io;

/// What `help` prints.
const HELP: &str = "\
You are using albireo, a main-memory SQL database.
Type:  \\? for help with the shell's commands
       \\h for the forms of SQL statements
       a statement with a semicolon at its end to run it
       \\q to quit
";

/// A line that is one of the words that people try first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Help,
    Leave,
    /// `\q`.
    Quit,
}

impl Word {
    fn of(line: &str) -> Option<Self> {
        let line = line.trim();
        let word = line.trim_end_matches(';').trim_end();
        match word.to_ascii_lowercase().as_str() {
            "help" => Some(Self::Help),
            "quit" | "exit" => Some(Self::Leave),
            _ if line == "\\q" => Some(Self::Quit),
            _ => None,
        }
    }
}

/// What is answered to a word while something is open; the word stays part of it.
fn hint(word: Word, open: Open) -> &'static str {
    match (word, open.is_enclosed()) {
        (Word::Help, false) => "Use \\? for help, or press Ctrl-C to discard what is typed.",
        (Word::Help, true) => "Close what is open, or press Ctrl-C to discard what is typed.",
        (_, false) => "Use \\q to quit.",
        (_, true) => "Use \\q on a line of its own, or Ctrl-D, to quit.",
    }
}

impl Shell<'_> {
    /// Reads from the terminal until somebody leaves; failures are said and forgotten.
    pub(super) fn run_interactive(&mut self) -> Result<(), Stop> {
        let mut editor = match LineEditor::new(self.sql, self.env) {
            Ok(editor) => editor,
            Err(error) => {
                self.say(&format!("albireo: no line editing on this terminal: {error}"));
                return self.run_script("stdin", io::stdin().lock());
            }
        };
        self.say(&format!(
            "albireo {}: a database {}.\nType SQL ending with ;, \\? for help, \\q to quit.\n",
            env!("CARGO_PKG_VERSION"),
            self.sql.about().data.map_or_else(
                || "in memory, lost when you leave".to_owned(),
                |data| format!("kept in {}", data.display())
            )
        ));
        self.confirms = true;
        let terminal = Terminal::take();
        self.interrupt.at_exit(terminal.restorer());
        // Without the line editor Ctrl-C cannot be read as a key.
        self.interrupt.stay(terminal.is_usable());
        self.terminal = Some(terminal);
        let result = self.read_lines(&mut editor);
        self.terminal = None;
        self.interrupt.stay(false);
        result
    }

    fn read_lines(&mut self, editor: &mut LineEditor<'_>) -> Result<(), Stop> {
        let mut splitter = Splitter::default();
        // What was typed since nothing was open.
        let mut entry = String::new();
        loop {
            // Before the prompt, which is written past buffers.
            self.out.flush()?;
            self.interrupt.forget();
            let prompt = format!("albireo{}> ", splitter.open().sign());
            match editor.read(&prompt) {
                Ok(Input::Text(text)) => {
                    if !entry.is_empty() {
                        entry.push('\n');
                    }
                    entry.push_str(&text);
                    if self.answer_word(&text, splitter.open())? {
                        editor.remember(&std::mem::take(&mut entry));
                    } else {
                        self.run_text(&text, &mut splitter, editor, &mut entry)?;
                    }
                }
                Ok(Input::Unreadable) => self.say("what was typed is not UTF-8 and was left out"),
                Ok(Input::Abandoned) => {
                    splitter.reset();
                    entry.clear();
                }
                Ok(Input::End) => return Ok(()),
                Err(error) => {
                    self.say(&format!("albireo: cannot read the terminal: {error}"));
                    return Err(Stop::Failed);
                }
            }
        }
    }

    /// Answers `help`, `quit` and `exit`; whether that was all of it.
    fn answer_word(&mut self, text: &str, open: Open) -> Result<bool, Stop> {
        match (Word::of(text), open) {
            (None, _) => Ok(false),
            (Some(Word::Quit), _) | (Some(Word::Leave), Open::Nothing) => Err(Stop::Quit),
            (Some(Word::Help), Open::Nothing) => {
                self.results().write_all(HELP.as_bytes())?;
                Ok(true)
            }
            (Some(word), open) => {
                self.say(hint(word, open));
                Ok(false)
            }
        }
    }

    /// Runs what a text completes, line by line. When nothing is open any more it is remembered, before its last line
    /// is run.
    fn run_text(
        &mut self,
        text: &str,
        splitter: &mut Splitter,
        editor: &mut LineEditor<'_>,
        entry: &mut String,
    ) -> Result<(), Stop> {
        let mut lines: VecDeque<String> = text.split('\n').map(str::to_owned).collect();
        while let Some(line) = lines.pop_front() {
            let pieces = splitter.push(&line);
            if lines.is_empty() && splitter.open() == Open::Nothing {
                editor.remember(&std::mem::take(entry));
            }
            for piece in &pieces {
                self.done = report::Done::default();
                let mut next_line = |rows: &mut Vec<u8>| read_row(&mut lines, editor, rows);
                let mut around = Around { splitter, next_line: &mut next_line };
                let result = self.run_piece(None, piece, &mut around);
                self.tell_stopped(&result);
                match result {
                    Ok(()) => {}
                    // Whoever presses Ctrl-C does not want the rest either.
                    Err(Stop::Failed) if self.interrupt.requested() => return Ok(()),
                    Err(Stop::Failed) => {}
                    // The file of `\o` is not the terminal.
                    Err(Stop::Output(error)) if self.file.is_some() => {
                        self.say(&format!("cannot write the results: {error}; \\o prints them here again"));
                    }
                    Err(stop) => return Err(stop),
                }
            }
        }
        if splitter.open() == Open::Nothing {
            entry.clear();
        }
        Ok(())
    }
}

/// Adds a row of COPY to `rows`: the next of `lines`, which were entered with the statement, or what is typed now.
fn read_row(
    lines: &mut VecDeque<String>,
    editor: &mut LineEditor<'_>,
    rows: &mut Vec<u8>,
) -> io::Result<usize> {
    if lines.is_empty() {
        match editor.read(">> ") {
            Ok(Input::Text(text)) => lines.extend(text.split('\n').map(str::to_owned)),
            Ok(Input::End) => return Ok(0),
            Ok(Input::Abandoned) => return Err(io::ErrorKind::Interrupted.into()),
            Ok(Input::Unreadable) => return Err(io::Error::other("what was typed is not UTF-8")),
            Err(error) => return Err(io::Error::other(error)),
        }
    }
    let Some(line) = lines.pop_front() else { return Ok(0) };
    rows.extend_from_slice(line.as_bytes());
    rows.push(b'\n');
    Ok(line.len() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_people_try_are_known_alone_on_their_line() {
        for (line, word) in [
            ("help", Some(Word::Help)),
            (" HELP ; ", Some(Word::Help)),
            ("quit", Some(Word::Leave)),
            ("exit;", Some(Word::Leave)),
            (" \\q ", Some(Word::Quit)),
            ("quit now", None),
            ("helpme", None),
            ("", None),
        ] {
            assert_eq!(Word::of(line), word, "{line}");
        }
    }

    #[test]
    fn hints_say_how_to_leave_what_is_open() {
        assert!(hint(Word::Leave, Open::Statement).contains("\\q to quit"));
        assert!(hint(Word::Leave, Open::String).contains("Ctrl-D"));
        assert!(hint(Word::Help, Open::Parenthesis).contains("\\?"));
        assert!(hint(Word::Help, Open::Dollar).contains("Ctrl-C"));
    }
}
