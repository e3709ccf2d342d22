//! Where a syntax tree's parts stand in the text they came from.
//!
//! The parser counts lines and columns, in characters from 1; PostgreSQL reports one number, the
//! character from 1.

use albireo_base::SqlError;
use sqlparser::tokenizer::Location;
pub use sqlparser::tokenizer::Span;

/// A text that syntax trees point into.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    text: &'a str,
}

impl<'a> Source<'a> {
    /// Points into `text`, which must be the text that was parsed.
    pub fn new(text: &'a str) -> Self {
        Self { text }
    }

    /// The text.
    pub fn text(self) -> &'a str {
        self.text
    }

    /// The character from 1 at `location`; `None` if the parser did not know the place.
    pub fn position(self, location: Location) -> Option<usize> {
        (location.line > 0).then(|| Cursor::new(self.text).advance(location).chars + 1)
    }

    /// The character from 1 of the parenthesis before `span`, if one opens there.
    pub fn opening(self, span: Span) -> Option<usize> {
        let before = self.position(span.start)?.checked_sub(1)?;
        let text: String = self.text.chars().take(before).collect();
        let text = text.trim_end();
        text.ends_with('(').then(|| text.chars().count())
    }

    /// Adds where `span` begins to an error, if that is known.
    #[must_use]
    pub fn locate(self, error: SqlError, span: Span) -> SqlError {
        match self.position(span.start) {
            Some(position) => error.with_position(position),
            None => error,
        }
    }
}

/// Walks forward through a text, counting bytes and characters.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    line: u64,
    column: u64,
    /// Bytes passed.
    pub(crate) bytes: usize,
    /// Characters passed.
    pub(crate) chars: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, line: 1, column: 1, bytes: 0, chars: 0 }
    }

    /// Goes on to `location`, which must not be behind, or to the text's end.
    pub(crate) fn advance(&mut self, location: Location) -> &Self {
        for c in self.text[self.bytes..].chars() {
            if (self.line, self.column) >= (location.line, location.column) {
                break;
            }
            self.bytes += c.len_utf8();
            self.chars += 1;
            if c == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
        self
    }

    /// The line reached, from 1.
    pub(crate) fn line(&self) -> usize {
        self.line as usize
    }
}
