//! Line editing: history, completion with Tab.
//!
//! Lines are read one at a time; what comes behind a line's end, typed or pasted ahead, is kept for the next (rustyline
//! does so with its feature `buffer-redux`). A paste that the terminal marks as one is one text of several lines.

use crate::sql::Sql;
use albireo_env::Env;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{Behavior, CompletionType, Config, Context, Editor, Helper};
use std::io::{self, IsTerminal};
use std::path::PathBuf;

/// Statements remembered.
const HISTORY_ENTRIES: usize = 10_000;

/// What is longer is not remembered.
const ENTRY_BYTES: usize = 1 << 16;

/// Reads statements from a terminal.
pub struct LineEditor<'a> {
    editor: Editor<SqlHelper<'a>, DefaultHistory>,
    history: Option<PathBuf>,
}

/// What the person at the terminal did.
pub enum Input {
    /// Entered a line, or pasted several.
    Text(String),
    /// Entered what is no UTF-8.
    Unreadable,
    /// Pressed Ctrl-C: forget what was begun.
    Abandoned,
    /// Pressed Ctrl-D on an empty line.
    End,
}

impl<'a> LineEditor<'a> {
    /// An editor that completes names of `sql` and keeps its history in the user's data directory,
    /// if there is one and it can be written.
    pub fn new(sql: &'a dyn Sql, env: &Env) -> Result<Self, ReadlineError> {
        let config = Config::builder()
            .max_history_size(HISTORY_ENTRIES)?
            .history_ignore_space(true)
            .completion_type(CompletionType::List)
            // Where results go elsewhere, prompts still go to the terminal.
            .behavior(if io::stdout().is_terminal() { Behavior::Stdio } else { Behavior::PreferTerm })
            .build();
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(SqlHelper { sql }));
        let history = history_file(|name| std::env::var_os(name))
            .filter(|path| path.parent().is_some_and(|directory| env.disk.create_dir_all(directory).is_ok()));
        if let Some(path) = &history {
            // Absent the first time; anything else is no reason not to work.
            let _ = editor.load_history(path);
        }
        Ok(Self { editor, history })
    }

    /// Reads a line.
    pub fn read(&mut self, prompt: &str) -> Result<Input, ReadlineError> {
        loop {
            return Ok(match self.editor.readline(prompt) {
                Ok(text) => Input::Text(text),
                Err(ReadlineError::Interrupted) => Input::Abandoned,
                Err(ReadlineError::Eof) => Input::End,
                Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                    Input::Unreadable
                }
                // The window has another size, and nothing was typed.
                Err(ReadlineError::Signal(_)) => continue,
                Err(error) => return Err(error),
            });
        }
    }

    /// Puts what was entered into the history. History is a convenience: a full disk must not end the session.
    pub fn remember(&mut self, entry: &str) {
        if entry.len() > ENTRY_BYTES {
            return;
        }
        let is_new = self.editor.add_history_entry(entry.trim_end());
        if let (Ok(true), Some(path)) = (is_new, &self.history) {
            let _ = self.editor.append_history(path);
        }
    }
}

/// `$XDG_DATA_HOME/albireo/history`, by default below `$HOME/.local/share`.
fn history_file(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> Option<PathBuf> {
    let data = match variable("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute()) {
        Some(data) => data,
        None => PathBuf::from(variable("HOME").filter(|home| !home.is_empty())?).join(".local/share"),
    };
    Some(data.join("albireo").join("history"))
}

struct SqlHelper<'a> {
    sql: &'a dyn Sql,
}

impl Helper for SqlHelper<'_> {}

impl Hinter for SqlHelper<'_> {
    type Hint = String;
}

impl Highlighter for SqlHelper<'_> {}

impl Validator for SqlHelper<'_> {}

impl Completer for SqlHelper<'_> {
    type Candidate = Pair;

    fn complete(&self, line: &str, cursor: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, candidates) = complete(self.sql, &line[..cursor]);
        let pair = |text: String| Pair { display: text.clone(), replacement: text };
        Ok((start, candidates.into_iter().map(pair).collect()))
    }
}

/// Where the word at the end of `line` starts, and what it may become.
fn complete(sql: &dyn Sql, line: &str) -> (usize, Vec<String>) {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '\\' | '?');
    let word = &line[line.trim_end_matches(is_word).len()..];
    let start = line.len() - word.len();
    if word.is_empty() {
        // Nothing to complete: a tab between words, pasted perhaps.
        return (start, vec!["\t".to_owned()]);
    }
    let lower = word.to_lowercase();
    let mut candidates: Vec<String> = Vec::new();
    if word.starts_with('\\') {
        let commands = super::command::HELP.split_whitespace().filter(|name| name.starts_with(word));
        candidates.extend(commands.map(str::to_owned));
        candidates.sort();
        candidates.dedup();
        return (start, candidates);
    }
    for table in sql.tables() {
        candidates.extend(table.columns.into_iter().map(|column| column.name));
        candidates.push(table.name);
    }
    candidates.retain(|name| name.starts_with(&lower));
    // Keywords come in the case that was begun.
    let is_upper = word.chars().all(|c| !c.is_lowercase());
    let keywords = KEYWORDS.split_whitespace().filter(|keyword| keyword.starts_with(&lower));
    candidates.extend(keywords.map(|word| if is_upper { word.to_uppercase() } else { word.to_owned() }));
    candidates.sort();
    candidates.dedup();
    // A word that is complete stays, and is told from the next.
    if let [candidate] = candidates.as_mut_slice()
        && candidate == word
    {
        candidate.push(' ');
    }
    (start, candidates)
}

const KEYWORDS: &str = "all and analyze as asc avg begin between bigint boolean by bytea case cast char check \
    column commit constraint copy count create cross date decimal default delete delimiter desc distinct \
    double drop else end except exists explain extract false from full group having header if in index inner \
    insert integer intersect interval into is join key layout left like limit max min not null nulls numeric \
    offset on or order outer over partition precision primary real references returning right rollback schema \
    select set show smallint sum table text then time timestamp timestamptz true union unique update using \
    uuid values varchar when where with";

#[cfg(test)]
mod tests {
    use super::super::tests::Fake;
    use super::*;

    #[test]
    fn history_lies_in_the_data_directory_or_below_home_or_nowhere() {
        let file = |data: Option<&str>, home: Option<&str>| {
            history_file(|name| if name == "HOME" { home } else { data }.map(Into::into))
        };
        assert_eq!(file(Some("/data"), Some("/me")), Some("/data/albireo/history".into()));
        assert_eq!(file(Some("relative"), Some("/me")), Some("/me/.local/share/albireo/history".into()));
        assert_eq!(file(None, Some("")), None);
        assert_eq!(file(None, None), None);
    }

    #[test]
    fn completion_offers_names_keywords_and_commands() {
        let fake = Fake::default();
        assert_eq!(complete(&fake, "select * from ord"), (14, vec!["order".to_owned(), "orders".to_owned()]));
        assert_eq!(complete(&fake, "SEL"), (0, vec!["SELECT".to_owned()]));
        assert_eq!(complete(&fake, "\\t"), (0, vec!["\\timing".to_owned()]));
        assert_eq!(complete(&fake, "select "), (7, vec!["\t".to_owned()]));
        assert_eq!(complete(&fake, "select"), (0, vec!["select ".to_owned()]));
        assert_eq!(complete(&fake, "x.nothing"), (2, vec![]));
    }
}
