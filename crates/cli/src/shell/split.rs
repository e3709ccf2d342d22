//! Splits text into SQL statements and the shell's own commands.
//!
//! A statement ends at a `;` outside of quotes, comments and dollar quotes. A command starts with a
//! `\` outside of them and ends with its line; the statement that it interrupts stays open.
//! I-1 The pieces are those of the whole text, however it is cut into lines when it is given.

/// A part of the input that can be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// SQL without the `;`, from its first word on, and the line of that word, from 1.
    Statement(String, usize),
    /// A command of the shell without the `\`, and its line, from 1.
    Command(String, usize),
}

impl Piece {
    /// The line that it begins in, from 1.
    pub fn line(&self) -> usize {
        match self {
            Self::Statement(_, line) | Self::Command(_, line) => *line,
        }
    }
}

/// Takes lines, gives pieces.
#[derive(Clone, Debug)]
pub struct Splitter {
    /// The statement so far; empty until its first word.
    statement: String,
    /// The line of its first word.
    statement_line: usize,
    /// The line that comes next.
    line: usize,
    /// Parentheses that are open in the statement.
    depth: usize,
    state: State,
}

/// What is open at the end of a line, and so must still be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// Nothing.
    Nothing,
    /// A statement.
    Statement,
    /// A parenthesis of a statement.
    Parenthesis,
    /// `'...'`.
    String,
    /// `"..."`.
    Name,
    /// `/* ... */`.
    Comment,
    /// `$tag$...$tag$`.
    Dollar,
}

impl Open {
    /// Whether what follows is the text of quotes or of a comment, and so no command or statement.
    pub fn is_enclosed(self) -> bool {
        !matches!(self, Self::Nothing | Self::Statement | Self::Parenthesis)
    }

    /// How psql's prompt shows it.
    pub fn sign(self) -> char {
        match self {
            Self::Nothing => '=',
            Self::Statement => '-',
            Self::Parenthesis => '(',
            Self::String => '\'',
            Self::Name => '"',
            Self::Comment => '*',
            Self::Dollar => '$',
        }
    }
}

/// Where in a statement the text stands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Plain,
    /// In `'...'`; with backslash escapes if it began with `E`.
    String {
        escapes: bool,
    },
    /// In `"..."`.
    Name,
    LineComment,
    BlockComment {
        depth: usize,
    },
    /// In `$tag$...$tag$`; the tag with its dollars.
    Dollar(String),
}

impl Default for Splitter {
    fn default() -> Self {
        Self { statement: String::new(), statement_line: 1, line: 1, depth: 0, state: State::Plain }
    }
}

impl Splitter {
    /// Takes one line with or without its line break; gives the pieces that it completes.
    pub fn push(&mut self, line: &str) -> Vec<Piece> {
        let text = line.strip_suffix('\n').unwrap_or(line);
        let text = text.strip_suffix('\r').unwrap_or(text);
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if self.state == State::Plain && c == '\\' {
                pieces.push(Piece::Command(rest[1..].trim_end().to_owned(), self.line));
                rest = "";
                break;
            }
            let taken = match &self.state {
                State::Plain => self.take_plain(rest, c, &mut pieces),
                _ => self.take_enclosed(rest, c),
            };
            rest = &rest[taken..];
        }
        debug_assert!(rest.is_empty());
        if self.state == State::LineComment {
            self.state = State::Plain;
        }
        if !self.statement.is_empty() {
            self.statement.push('\n');
        }
        self.line += 1;
        pieces
    }

    /// The statement that the end of the input completes, if there is one.
    pub fn finish(&mut self) -> Option<Piece> {
        self.state = State::Plain;
        self.take_statement()
    }

    /// What is open.
    pub fn open(&self) -> Open {
        match &self.state {
            State::String { .. } => Open::String,
            State::Name => Open::Name,
            State::BlockComment { .. } => Open::Comment,
            State::Dollar(_) => Open::Dollar,
            State::Plain | State::LineComment if self.statement.is_empty() => Open::Nothing,
            State::Plain | State::LineComment if self.depth > 0 => Open::Parenthesis,
            State::Plain | State::LineComment => Open::Statement,
        }
    }

    /// Passes over lines that are none of its text.
    pub fn skip_lines(&mut self, lines: usize) {
        self.line += lines;
    }

    /// The statement so far.
    pub fn open_text(&self) -> &str {
        self.statement.trim_end()
    }

    /// Forgets the statement so far.
    pub fn reset(&mut self) {
        let _ = self.finish();
    }

    fn take_statement(&mut self) -> Option<Piece> {
        self.depth = 0;
        let text = std::mem::take(&mut self.statement);
        let text = text.trim_end();
        (!text.is_empty()).then(|| Piece::Statement(text.to_owned(), self.statement_line))
    }

    /// Keeps text, unless no statement has begun and it is blank or a comment.
    fn keep(&mut self, text: &str, is_content: bool) {
        if self.statement.is_empty() {
            if !is_content {
                return;
            }
            self.statement_line = self.line;
        }
        self.statement.push_str(text);
    }

    /// Takes what starts with `c` outside of everything; returns the bytes taken.
    fn take_plain(&mut self, rest: &str, c: char, pieces: &mut Vec<Piece>) -> usize {
        if c == ';' {
            pieces.extend(self.take_statement());
            return 1;
        }
        let (state, taken) = match c {
            '\'' => (State::String { escapes: self.ends_with_escape_prefix() }, 1),
            '"' => (State::Name, 1),
            '-' if rest.starts_with("--") => (State::LineComment, 2),
            '/' if rest.starts_with("/*") => (State::BlockComment { depth: 1 }, 2),
            '$' if !self.ends_within_word() => match dollar_tag(rest) {
                Some(tag) => (State::Dollar(tag.to_owned()), tag.len()),
                None => (State::Plain, 1),
            },
            _ => (State::Plain, c.len_utf8()),
        };
        match c {
            '(' => self.depth += 1,
            ')' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        let is_comment = matches!(state, State::LineComment | State::BlockComment { .. });
        self.keep(&rest[..taken], !is_comment && !c.is_whitespace());
        self.state = state;
        taken
    }

    /// Takes what starts with `c` in a comment or in quotes; returns the bytes taken.
    fn take_enclosed(&mut self, rest: &str, c: char) -> usize {
        let (state, taken) = match &self.state {
            State::Dollar(tag) if rest.starts_with(tag.as_str()) => (Some(State::Plain), tag.len()),
            State::String { escapes: true } if c == '\\' => {
                (None, 1 + rest[1..].chars().next().map_or(0, char::len_utf8))
            }
            // A doubled quote leaves the string and enters it again; only `E` must not be forgotten.
            State::String { escapes: true } if rest.starts_with("''") => (None, 2),
            State::String { .. } if c == '\'' => (Some(State::Plain), 1),
            State::Name if c == '"' => (Some(State::Plain), 1),
            State::BlockComment { depth } if rest.starts_with("/*") => {
                (Some(State::BlockComment { depth: depth + 1 }), 2)
            }
            State::BlockComment { depth } if rest.starts_with("*/") => match depth {
                1 => (Some(State::Plain), 2),
                _ => (Some(State::BlockComment { depth: depth - 1 }), 2),
            },
            _ => (None, c.len_utf8()),
        };
        self.keep(&rest[..taken], false);
        if let Some(state) = state {
            self.state = state;
        }
        taken
    }

    /// Whether the statement so far ends with the `E` of `E'...'`.
    fn ends_with_escape_prefix(&self) -> bool {
        let mut back = self.statement.chars().rev();
        matches!(back.next(), Some('e' | 'E')) && !back.next().is_some_and(is_word)
    }

    fn ends_within_word(&self) -> bool {
        self.statement.chars().next_back().is_some_and(is_word)
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// The opening `$tag$` that `text` starts with.
fn dollar_tag(text: &str) -> Option<&str> {
    let end = text[1..].find('$')? + 1;
    let tag = &text[1..end];
    let is_tag = tag.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !tag.starts_with(|c: char| c.is_ascii_digit());
    is_tag.then(|| &text[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<Piece> {
        let mut splitter = Splitter::default();
        let mut pieces: Vec<Piece> = text.lines().flat_map(|line| splitter.push(line)).collect();
        pieces.extend(splitter.finish());
        pieces
    }

    fn statement(text: &str, line: usize) -> Piece {
        Piece::Statement(text.to_owned(), line)
    }

    #[test]
    fn statements_on_one_line_and_over_several_are_told_apart_with_their_lines() {
        let pieces = split("select 1; select\n  2;\n\n-- a comment\nselect 3");
        assert_eq!(pieces, [statement("select 1", 1), statement("select\n  2", 1), statement("select 3", 5)]);
    }

    #[test]
    fn semicolons_within_quotes_and_comments_end_nothing() {
        for text in [
            "select 'a;b'",
            "select 'it''s;'",
            "select E'it\\'s;'",
            "select e'a''b\\';'",
            "select \"a;b\"",
            "select 1 -- no; end\n+ 1",
            "select 1 /* no; /* nested; */ end; */ + 1",
            "select $$a;b$$",
            "do $body$ begin; $$ ; $x$ end; $body$",
            "select 'two\nlines;'",
        ] {
            assert_eq!(split(&format!("{text};")), [statement(text, 1)]);
        }
    }

    #[test]
    fn text_that_only_looks_like_a_quote_is_plain() {
        let pieces = split("select name'x;\n");
        assert_eq!(pieces, [statement("select name'x;", 1)]);
        assert_eq!(split("select $1; select a$b$; select '\\'; select 2").len(), 4);
        assert_eq!(split("prepare p as select $1::int + $2::int; x").len(), 2);
    }

    #[test]
    fn command_may_interrupt_a_statement_but_no_quote() {
        let pieces = split("\\timing on\nselect 1\n\\x\n+ '\\q\n'; \\d t  \n/* c */ \\q");
        let command = |text: &str, line| Piece::Command(text.to_owned(), line);
        let expected = [
            command("timing on", 1),
            command("x", 3),
            statement("select 1\n\n+ '\\q\n'", 2),
            command("d t", 5),
            command("q", 6),
        ];
        assert_eq!(pieces, expected);
    }

    #[test]
    fn what_is_open_is_told_as_psql_shows_it() {
        let sign = |text: &str| {
            let mut splitter = Splitter::default();
            text.lines().for_each(|line| drop(splitter.push(line)));
            splitter.open().sign()
        };
        for (text, expected) in [
            ("", '='),
            ("-- c", '='),
            ("select 1;", '='),
            ("select", '-'),
            ("select (1 + (2)", '('),
            ("select (1 + (2))", '-'),
            ("select (1; select", '-'),
            ("select ')' || '(", '\''),
            ("select ('", '\''),
            ("select \"a", '"'),
            ("/* begun", '*'),
            ("select $x$ ' $$", '$'),
            ("select 1 -- (", '-'),
        ] {
            assert_eq!(sign(text), expected, "{text}");
        }
    }

    #[test]
    fn statement_that_is_forgotten_leaves_nothing_behind() {
        let mut splitter = Splitter::default();
        splitter.push("select ('a");
        assert_eq!(splitter.open_text(), "select ('a");
        splitter.reset();
        assert_eq!((splitter.open(), splitter.open_text()), (Open::Nothing, ""));
        assert_eq!(splitter.push("select 2;"), [statement("select 2", 2)]);
    }

    #[test]
    fn blanks_comments_and_lone_semicolons_are_no_statements() {
        assert_eq!(split(" ;; \n-- c;\n/* ; */ ;"), []);
    }
}
