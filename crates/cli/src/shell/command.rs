//! The shell's own commands: what is typed after a backslash.

use crate::args::Format;
use clap::ValueEnum;
use std::path::PathBuf;

/// What `\?` prints.
pub const HELP: &str = "\
Statements end with a semicolon and may span lines. Ctrl-C stops the one that runs.

  \\d             list tables              \\timing [on|off]      time each statement
  \\d NAME        describe a table         \\x [on|off]           one line per value
  \\dt            list tables              \\format box|csv|json  how results are printed
  \\di            list indexes             \\o [FILE]             print results to FILE, or here again
  \\dn            list schemas             \\i FILE               run a file
  \\?             this help                \\q                    quit (or Ctrl-D)
";

/// A command of the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `\d NAME`.
    Describe(String),
    /// `\d`, `\dt`.
    Tables,
    /// `\di`.
    Indexes,
    /// `\dn`.
    Schemas,
    /// `\timing`; without a word it toggles.
    Timing(Option<bool>),
    /// `\x`; without a word it toggles.
    Expanded(Option<bool>),
    /// `\format`.
    Format(Format),
    /// `\o`; without a file results go to standard output again.
    Output(Option<PathBuf>),
    /// `\i`.
    Include(PathBuf),
    /// `\?`.
    Help,
    /// `\q`.
    Quit,
}

impl Command {
    /// Reads a command without its backslash; the error says what would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        let words = words(text)?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Ok(match words.as_slice() {
            ["d" | "dt" | "d+" | "dt+"] => Self::Tables,
            ["d" | "d+", name] => Self::Describe((*name).to_owned()),
            ["di" | "di+"] => Self::Indexes,
            ["dn" | "dn+"] => Self::Schemas,
            ["timing", rest @ ..] => Self::Timing(switch("timing", rest)?),
            ["x", rest @ ..] => Self::Expanded(switch("x", rest)?),
            ["format", name] => Self::Format(
                Format::from_str(name, true)
                    .map_err(|_| format!("\\format: `{name}` is none of box, csv, json"))?,
            ),
            ["format", ..] => return Err("\\format: say box, csv or json".to_owned()),
            ["o" | "out"] => Self::Output(None),
            ["o" | "out", file] => Self::Output(Some(file.into())),
            ["i" | "include", file] => Self::Include(file.into()),
            ["i" | "include", ..] => return Err("\\i: name one file".to_owned()),
            ["?" | "h" | "help", ..] => Self::Help,
            ["q" | "quit"] => Self::Quit,
            [first, ..] => return Err(format!("no command \\{first} of this form; \\? lists what there is")),
            [] => return Err("a command follows the backslash; \\? lists what there is".to_owned()),
        })
    }
}

fn switch(command: &str, words: &[&str]) -> Result<Option<bool>, String> {
    match words {
        [] => Ok(None),
        ["on"] => Ok(Some(true)),
        ["off"] => Ok(Some(false)),
        _ => Err(format!("\\{command}: say on or off, or nothing to toggle")),
    }
}

/// Words between blanks; within single quotes blanks are part of the word and `''` is a quote.
fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim_end_matches(';').trim();
    while !rest.is_empty() {
        let mut word = String::new();
        if let Some(mut quoted) = rest.strip_prefix('\'') {
            loop {
                let end = quoted.find('\'').ok_or("a quote is not closed")?;
                word.push_str(&quoted[..end]);
                quoted = &quoted[end + 1..];
                match quoted.strip_prefix('\'') {
                    Some(more) => {
                        word.push('\'');
                        quoted = more;
                    }
                    None => break,
                }
            }
            rest = quoted.trim_start();
        } else {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            word.push_str(&rest[..end]);
            rest = rest[end..].trim_start();
        }
        words.push(word);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_with_their_arguments_are_read() {
        for (text, command) in [
            ("d", Command::Tables),
            ("d  orders ", Command::Describe("orders".to_owned())),
            ("d orders;", Command::Describe("orders".to_owned())),
            ("timing", Command::Timing(None)),
            ("timing off", Command::Timing(Some(false))),
            ("x on", Command::Expanded(Some(true))),
            ("format JSON", Command::Format(Format::Json)),
            ("i 'my ''file'' .sql'", Command::Include("my 'file' .sql".into())),
            ("o", Command::Output(None)),
            ("?", Command::Help),
            ("q", Command::Quit),
        ] {
            assert_eq!(Command::parse(text), Ok(command), "{text}");
        }
    }

    #[test]
    fn mistakes_are_answered_with_what_would_be_right() {
        for (text, part) in [
            ("", "\\? lists"),
            ("fly", "no command \\fly"),
            ("timing maybe", "on or off"),
            ("format xml", "box, csv, json"),
            ("i", "name one file"),
            ("i 'a", "not closed"),
        ] {
            let message = Command::parse(text).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
