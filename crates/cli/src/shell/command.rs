//! The shell's own commands: what is typed after a backslash.

use super::pager::Pager;
use crate::args::Format;
use crate::output::Expanded;
use clap::ValueEnum;
use std::path::PathBuf;

/// What `\?` prints.
pub const HELP: &str = "\
Statements end with ; and may span lines. Ctrl-C cancels the one that runs.

  \\d             list tables                \\x [on|off|auto] one value per line
  \\d NAME        describe a table           \\timing [on|off] time statements
  \\d+ NAME       same, with its chunks      \\format NAME     box, csv or json
  \\dt [PATTERN]  list tables                \\pset pager WHEN on, off or always
  \\di [PATTERN]  list indexes               \\pset null TEXT  how NULL is shown
  \\dn [PATTERN]  list schemas               \\pset            show these settings
  \\df [PATTERN]  list functions             \\o [FILE]        results to FILE
  \\sf NAME       show a function            \\echo TEXT       print TEXT
  \\conninfo      which database this is

  \\g [FILE]      run what is typed          \\i FILE          run a script
  \\gx            same, one value per line   \\copy ...        COPY as in psql
  \\e [FILE]      edit it, or FILE, and run  \\! [COMMAND]     run a program
  \\p             show what is typed         \\h [STATEMENT]   help for SQL
  \\r             discard it                 \\?               this help
  \\w FILE        write it to FILE           \\q               quit (or Ctrl-D)
";

/// A command of the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `\d NAME`, `\d+ NAME`.
    Describe {
        /// What is described.
        name: String,
        /// Whether each state of its chunks gets a line, with the reasons.
        more: bool,
    },
    /// `\d`, `\dt`, with a pattern of names.
    Tables(Option<String>),
    /// `\di`.
    Indexes(Option<String>),
    /// `\dn`.
    Schemas(Option<String>),
    /// `\df`.
    Routines(Option<String>),
    /// `\sf`.
    Source(String),
    /// `\conninfo`, `\l`.
    About,
    /// `\timing`; without a word it toggles.
    Timing(Option<bool>),
    /// `\x`; without a word it toggles.
    Expanded(Option<Expanded>),
    /// `\format`.
    Format(Format),
    /// `\pset null`.
    Null(String),
    /// `\pset pager`; without a word it toggles.
    Pager(Option<Pager>),
    /// `\pset`.
    Settings,
    /// `\o`; without a file results go to standard output again.
    Output(Option<PathBuf>),
    /// `\i`.
    Include(PathBuf),
    /// `\copy`: what follows.
    Copy(String),
    /// `\echo`, `\qecho`, `\warn`.
    Echo {
        /// Whether it goes to standard error.
        warns: bool,
        /// What is printed.
        text: String,
    },
    /// `\e`; without a file, what is typed.
    Edit(Option<PathBuf>),
    /// `\g`, `\gx`.
    Go {
        /// Whether each value gets a line.
        expanded: bool,
        /// Where the result goes.
        file: Option<PathBuf>,
    },
    /// `\p`.
    Print,
    /// `\r`.
    Reset,
    /// `\w`.
    Write(PathBuf),
    /// `\!`; what follows.
    System(String),
    /// `\h`; what follows.
    Synopsis(String),
    /// `\?`.
    Help,
    /// `\q`.
    Quit,
}

/// What psql has and this shell has not, and what is said of it.
const ABSENT: &[(&[&str], &str)] = &[
    (&["c", "connect"], "there is one database; start another shell with --data DIRECTORY for another"),
    (&["cd"], "the directory stays the one the shell was started in"),
    (&["dv", "dm"], "there are no views"),
    (&["ds"], "there are no sequences"),
    (&["du", "dg", "dp", "z", "ddp", "drds"], "there are no roles and no privileges"),
    (&["dD", "dT", "dC", "do", "dO"], "there are the built-in types and operators only"),
    (&["dE", "des", "det", "deu", "dew"], "there are no foreign tables; COPY and read_csv() read files"),
    (&["dy", "dx", "dRp", "dRs", "db"], "there is nothing of this kind"),
    (&["a", "t", "C", "f", "H", "T"], "use \\format box, csv or json"),
    (&["set", "unset", "gset", "prompt", "if", "elif", "else", "endif"], "there are no variables"),
    (&["gexec", "gdesc", "crosstabview", "watch", "bind", "parse"], "not supported"),
    (&["s"], "the Up key and Ctrl-R find what was entered before"),
    (&["encoding"], "the encoding is UTF-8"),
    (&["password"], "there are no passwords"),
    (&["copyright"], "Albireo is licensed under the Apache License, Version 2.0"),
    (&["ir", "include_relative"], "use \\i; paths are relative to the directory the shell was started in"),
];

impl Command {
    /// Reads a command without its backslash; the error says what would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(command) = text.strip_prefix('!') {
            return Ok(Self::System(command.trim().to_owned()));
        }
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        match name {
            "copy" => return Ok(Self::Copy(rest.trim().trim_end_matches(';').trim_end().to_owned())),
            "echo" | "qecho" | "warn" => return echo(name == "warn", rest),
            "h" | "help" => return Ok(Self::Synopsis(rest.trim().trim_end_matches(';').to_owned())),
            _ => {}
        }
        let words = words(text.trim_end_matches(';'))?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let [name, arguments @ ..] = words.as_slice() else {
            return Err("a command follows the backslash; \\? lists what there is".to_owned());
        };
        // `S` asks for the system's objects: there are none. `+` asks for more: there is of tables.
        let listed = if name.starts_with('d') { name.trim_end_matches(['+', 'S']) } else { name };
        match Self::list(listed, name.contains('+'), arguments) {
            Some(command) => Ok(command),
            None => Self::other(name, arguments),
        }
    }

    fn list(name: &str, more: bool, arguments: &[&str]) -> Option<Self> {
        let pattern = match arguments {
            [] => None,
            [pattern] => Some((*pattern).to_owned()),
            _ => return None,
        };
        Some(match (name, pattern) {
            ("d", Some(name)) => Self::Describe { name, more },
            ("d" | "dt" | "dti" | "dtv", pattern) => Self::Tables(pattern),
            ("di", pattern) => Self::Indexes(pattern),
            ("dn", pattern) => Self::Schemas(pattern),
            ("df" | "dfn" | "dfp", pattern) => Self::Routines(pattern),
            ("sf" | "sf+", Some(name)) => Self::Source(name),
            _ => return None,
        })
    }

    fn other(name: &str, arguments: &[&str]) -> Result<Self, String> {
        Ok(match (name, arguments) {
            ("conninfo" | "l" | "l+" | "list", []) => Self::About,
            ("timing", words) => Self::Timing(switch("timing", words)?),
            ("x", words) => Self::Expanded(expanded("x", words)?),
            ("format", [name]) => Self::Format(format("format", name)?),
            ("format", _) => return Err("\\format: say box, csv or json".to_owned()),
            ("pset", words) => Self::setting(words)?,
            ("o" | "out" | "g" | "gx" | "w" | "write", [file, ..]) if file.starts_with('|') => {
                return Err(format!(
                    "\\{name}: results go to files only; pipe the output of the program instead"
                ));
            }
            ("o" | "out", []) => Self::Output(None),
            ("o" | "out", [file]) => Self::Output(Some(file.into())),
            ("i" | "include", [file]) => Self::Include(file.into()),
            ("i" | "include", _) => return Err("\\i: name one file".to_owned()),
            ("e" | "edit", []) => Self::Edit(None),
            ("e" | "edit", [file]) => Self::Edit(Some(file.into())),
            ("e" | "edit", _) => return Err("\\e: name one file, or none to edit what is typed".to_owned()),
            ("g" | "gx", []) => Self::Go { expanded: name == "gx", file: None },
            ("g" | "gx", [file]) => Self::Go { expanded: name == "gx", file: Some(file.into()) },
            ("p" | "print", []) => Self::Print,
            ("r" | "reset", []) => Self::Reset,
            ("w" | "write", [file]) => Self::Write(file.into()),
            ("w" | "write", _) => return Err("\\w: name one file".to_owned()),
            ("sf", _) => return Err("\\sf: name one function or procedure".to_owned()),
            ("?", _) => Self::Help,
            ("q" | "quit", _) => Self::Quit,
            _ => match ABSENT.iter().find(|(names, _)| names.contains(&name.trim_end_matches(['+', 'S']))) {
                Some((_, answer)) => return Err(format!("\\{name}: {answer}")),
                None => return Err(format!("no command \\{name} of this form; \\? lists what there is")),
            },
        })
    }

    /// `\pset NAME [VALUE]`.
    fn setting(words: &[&str]) -> Result<Self, String> {
        Ok(match words {
            [] => Self::Settings,
            ["null", rest @ ..] => Self::Null(rest.join(" ")),
            ["format", name] => Self::Format(format("pset format", name)?),
            ["expanded" | "x" | "vertical", rest @ ..] => Self::Expanded(expanded("pset expanded", rest)?),
            ["pager", "always"] => Self::Pager(Some(Pager::Always)),
            ["pager", rest @ ..] => {
                let on = switch("pset pager", rest)?;
                Self::Pager(on.map(|on| if on { Pager::On } else { Pager::Off }))
            }
            [name, ..] => {
                return Err(format!(
                    "\\pset: there is no setting {name} here; there are expanded, format, null, pager"
                ));
            }
        })
    }
}

fn format(command: &str, name: &str) -> Result<Format, String> {
    let name = if name == "aligned" { "box" } else { name };
    Format::from_str(name, true).map_err(|_| format!("\\{command}: `{name}` is none of box, csv, json"))
}

fn expanded(command: &str, words: &[&str]) -> Result<Option<Expanded>, String> {
    match words {
        ["auto"] => Ok(Some(Expanded::Auto)),
        _ => match switch(command, words) {
            Ok(on) => Ok(on.map(|on| if on { Expanded::On } else { Expanded::Off })),
            Err(_) => Err(format!("\\{command}: say on, off or auto, or nothing to toggle")),
        },
    }
}

fn switch(command: &str, words: &[&str]) -> Result<Option<bool>, String> {
    match words {
        [] => Ok(None),
        ["on" | "true" | "1"] => Ok(Some(true)),
        ["off" | "false" | "0"] => Ok(Some(false)),
        _ => Err(format!("\\{command}: say on or off, or nothing to toggle")),
    }
}

fn echo(warns: bool, rest: &str) -> Result<Command, String> {
    let mut words = words(rest)?;
    let breaks = words.first().is_none_or(|word| word != "-n");
    if !breaks {
        words.remove(0);
    }
    let text = words.join(" ") + if breaks { "\n" } else { "" };
    Ok(Command::Echo { warns, text })
}

/// Words between blanks; within single quotes blanks are part of the word and `''` is a quote.
fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let word = match rest.strip_prefix('\'') {
            Some(quoted) => {
                let (word, behind) = unquote(quoted)?;
                rest = behind;
                word
            }
            None => {
                let (word, behind) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
                rest = behind;
                word.to_owned()
            }
        };
        rest = rest.trim_start();
        words.push(word);
    }
    Ok(words)
}

/// A quoted text whose opening quote is gone, and what follows it.
pub fn unquote(text: &str) -> Result<(String, &str), &'static str> {
    let (mut found, mut rest) = (String::new(), text);
    loop {
        let (part, behind) = rest.split_once('\'').ok_or("a quote is not closed")?;
        found.push_str(part);
        match behind.strip_prefix('\'') {
            Some(more) => {
                found.push('\'');
                rest = more;
            }
            None => return Ok((found, behind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_with_their_arguments_are_read() {
        let echo = |text: &str| Command::Echo { warns: false, text: text.to_owned() };
        let describe = |name: &str, more| Command::Describe { name: name.to_owned(), more };
        for (text, command) in [
            ("d", Command::Tables(None)),
            ("d+", Command::Tables(None)),
            ("dtS+ ord*", Command::Tables(Some("ord*".to_owned()))),
            ("d  orders ", describe("orders", false)),
            ("dS orders", describe("orders", false)),
            ("d+ orders;", describe("orders", true)),
            ("dS+ orders", describe("orders", true)),
            ("df", Command::Routines(None)),
            ("l", Command::About),
            ("timing", Command::Timing(None)),
            ("timing off", Command::Timing(Some(false))),
            ("x on", Command::Expanded(Some(Expanded::On))),
            ("x auto", Command::Expanded(Some(Expanded::Auto))),
            ("pset x off", Command::Expanded(Some(Expanded::Off))),
            ("pset", Command::Settings),
            ("pset pager", Command::Pager(None)),
            ("pset pager off", Command::Pager(Some(Pager::Off))),
            ("pset null '(no value)'", Command::Null("(no value)".to_owned())),
            ("pset null ''", Command::Null(String::new())),
            ("format JSON", Command::Format(Format::Json)),
            ("pset format aligned", Command::Format(Format::Box)),
            ("i 'my ''file'' .sql'", Command::Include("my 'file' .sql".into())),
            ("o", Command::Output(None)),
            ("echo a  'b  c';", echo("a b  c ;\n")),
            ("echo -n a", echo("a")),
            ("echo", echo("\n")),
            ("! ls | head", Command::System("ls | head".to_owned())),
            ("!", Command::System(String::new())),
            ("copy t from 'a b' csv;", Command::Copy("t from 'a b' csv".to_owned())),
            ("g", Command::Go { expanded: false, file: None }),
            ("gx out", Command::Go { expanded: true, file: Some("out".into()) }),
            ("e", Command::Edit(None)),
            ("h create table", Command::Synopsis("create table".to_owned())),
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
            ("x maybe", "on, off or auto"),
            ("format xml", "box, csv, json"),
            ("pset border 2", "no setting border"),
            ("i", "name one file"),
            ("i 'a", "not closed"),
            ("o |less", "files only"),
            ("dv", "no views"),
            ("du+", "no roles"),
            ("c other", "--data"),
            ("set a 1", "no variables"),
            ("d a b", "no command \\d of this form"),
        ] {
            let message = Command::parse(text).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
