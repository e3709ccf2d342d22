//! A body's text as tokens: words, strings and symbols with their places.
//!
//! It reads quotes, comments and operators as PostgreSQL does, so that what is between two keywords can
//! be cut out and handed to the SQL parser. It never fails: what is not closed becomes the last token
//! but one, a number with letters behind it a token of its kind, and both are errors only if the parser
//! gets there.

use super::ast::Span;

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TokenKind {
    /// A keyword or a name without quotes.
    Word,
    /// A name in double quotes.
    QuotedName,
    /// A string in single quotes or between dollars.
    String,
    /// A number.
    Number,
    /// `$1`.
    Parameter,
    /// Punctuation or an operator; or a character that has no meaning.
    Symbol,
    /// What is not closed, or a number that letters follow.
    Broken(Broken),
    /// The end of the text.
    End,
}

/// What lacks its end, or the blank behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Broken {
    /// A string in single quotes.
    String,
    /// A string between dollars.
    DollarString,
    /// A name in double quotes.
    Name,
    /// A comment.
    Comment,
    /// A number that goes on with letters.
    Number,
}

/// One token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) span: Span,
    /// The line it begins on, from 1.
    pub(crate) line: u64,
    /// The character of the line it begins at, from 1.
    pub(crate) column: u64,
}

/// All tokens of `source`; the last one, and only that, is [`TokenKind::End`].
pub(crate) fn tokens(source: &str) -> Vec<Token> {
    let mut lexer = Lexer { source, at: 0, line: 1, column: 1 };
    let mut tokens = Vec::new();
    loop {
        let token = lexer.next();
        tokens.push(token);
        if token.kind == TokenKind::End {
            return tokens;
        }
    }
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    line: u64,
    column: u64,
}

impl Lexer<'_> {
    fn next(&mut self) -> Token {
        let blank = self.skip_blanks();
        let (line, column, start) = (self.line, self.column, self.at);
        let (kind, end) = match blank {
            Ok(()) => self.read(),
            Err(broken) => (TokenKind::Broken(broken), self.source.len()),
        };
        self.advance(end);
        Token { kind, span: Span { start, end }, line, column }
    }

    fn byte(&self, offset: usize) -> Option<u8> {
        self.source.as_bytes().get(self.at + offset).copied()
    }

    fn rest(&self) -> &str {
        &self.source[self.at..]
    }

    /// Goes to the byte `end`, counting lines and columns.
    fn advance(&mut self, end: usize) {
        for c in self.source[self.at..end].chars() {
            if c == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
        self.at = end;
    }

    fn skip_blanks(&mut self) -> Result<(), Broken> {
        loop {
            let rest = self.rest();
            let length = if rest.starts_with("--") {
                rest.find(['\n', '\r']).unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                comment_end(rest).ok_or(Broken::Comment)?
            } else {
                rest.find(|c| !is_blank(c)).unwrap_or(rest.len())
            };
            if length == 0 {
                return Ok(());
            }
            self.advance(self.at + length);
        }
    }

    /// The token at hand and where it ends.
    fn read(&self) -> (TokenKind, usize) {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return (TokenKind::End, self.at) };
        let second = self.byte(1);
        let is_digit = |byte: Option<u8>| byte.is_some_and(|b| b.is_ascii_digit());
        let (kind, length) = match first {
            '\'' => string(rest, 0, false),
            'e' | 'E' if second == Some(b'\'') => string(rest, 1, true),
            '"' => match quoted_end(rest, 0, b'"', false) {
                Some(end) => (TokenKind::QuotedName, end),
                None => (TokenKind::Broken(Broken::Name), rest.len()),
            },
            '$' if is_digit(second) => (TokenKind::Parameter, 1 + digits(&rest[1..])),
            '$' => dollar_string(rest),
            '0'..='9' => number(rest),
            '.' if second == Some(b'.') => (TokenKind::Symbol, 2),
            '.' if is_digit(second) => number(rest),
            ':' if matches!(second, Some(b'=' | b':')) => (TokenKind::Symbol, 2),
            c if is_word_start(c) => (TokenKind::Word, rest.find(|c| !is_word_part(c)).unwrap_or(rest.len())),
            c if is_operator(c) => (TokenKind::Symbol, operator(rest)),
            other => (TokenKind::Symbol, other.len_utf8()),
        };
        (kind, self.at + length)
    }
}

/// White space as PostgreSQL knows it; other blanks of Unicode are letters to it.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

fn is_word_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}

fn is_word_part(c: char) -> bool {
    is_word_start(c) || c.is_ascii_digit() || c == '$'
}

fn is_operator(c: char) -> bool {
    "~!@#^&|`?+-*/%<>=".contains(c)
}

/// The length of the comment `text` begins with; comments nest.
fn comment_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += 1;
        }
    }
    None
}

fn string(text: &str, open: usize, backslash: bool) -> (TokenKind, usize) {
    match quoted_end(text, open, b'\'', backslash) {
        Some(end) => (TokenKind::String, end),
        None => (TokenKind::Broken(Broken::String), text.len()),
    }
}

/// The length of what begins with the quote at `open`; a doubled quote does not end it.
fn quoted_end(text: &str, open: usize, quote: u8, backslash: bool) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = open + 1;
    while at < bytes.len() {
        if backslash && bytes[at] == b'\\' {
            at += 2;
        } else if bytes[at] != quote {
            at += 1;
        } else if bytes.get(at + 1) == Some(&quote) {
            at += 2;
        } else {
            return Some(at + 1);
        }
    }
    None
}

/// `$tag$...$tag$`, or the dollar alone.
fn dollar_string(text: &str) -> (TokenKind, usize) {
    let is_tag_part = |c: char| is_word_part(c) && c != '$';
    let tag_end = text[1..].find(|c| !is_tag_part(c)).map(|end| end + 1);
    match tag_end.filter(|end| text[*end..].starts_with('$')) {
        Some(end) => {
            let (tag, body) = text.split_at(end + 1);
            match body.find(tag) {
                Some(length) => (TokenKind::String, length + 2 * tag.len()),
                None => (TokenKind::Broken(Broken::DollarString), text.len()),
            }
        }
        None => (TokenKind::Symbol, 1),
    }
}

fn digits(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())
}

/// A number and its length; the two points of `1..2` are none of it.
fn number(text: &str) -> (TokenKind, usize) {
    let mut end = digits(text);
    let rest = &text[end..];
    if rest.starts_with('.') && !rest.starts_with("..") {
        end += 1 + digits(&rest[1..]);
    }
    let rest = &text[end..];
    if rest.starts_with(['e', 'E']) {
        let sign = usize::from(rest[1..].starts_with(['+', '-']));
        let exponent = digits(&rest[1 + sign..]);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    let junk = text[end..].find(|c| !is_word_part(c)).unwrap_or(text.len() - end);
    // Newer forms of PostgreSQL, which the SQL parser reads: 1_000, 0x1f.
    let later = text[end..].strip_prefix('_').is_some_and(|rest| digits(rest) > 0)
        || (end == 1 && text.starts_with('0') && text[1..].starts_with(['x', 'X', 'o', 'O', 'b', 'B']));
    let kind = if junk == 0 || later { TokenKind::Number } else { TokenKind::Broken(Broken::Number) };
    (kind, end + junk)
}

/// The length of an operator: as long as can be, but not into a comment, and with a sign at its end only
/// if it has a character that standard operators lack.
fn operator(text: &str) -> usize {
    let run = text.find(|c| !is_operator(c)).unwrap_or(text.len());
    let comment = ["--", "/*"].into_iter().filter_map(|start| text[..run].find(start));
    let mut end = comment.min().unwrap_or(run).max(1);
    if !text[..end].contains(|c| "~!@#^&|`?%".contains(c)) {
        while end > 1 && text[..end].ends_with(['+', '-']) {
            end -= 1;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<&str> {
        tokens(source).iter().map(|token| token.span.text(source)).collect()
    }

    fn kinds(source: &str) -> Vec<TokenKind> {
        tokens(source).iter().map(|token| token.kind).collect()
    }

    #[test]
    fn tokens_end_where_postgresql_ends_them() {
        assert_eq!(texts("a:=-1;"), ["a", ":=", "-", "1", ";", ""]);
        assert_eq!(texts("a=-1"), ["a", "=", "-", "1", ""]);
        assert_eq!(texts("a@-1 <=- 2"), ["a", "@-", "1", "<=", "-", "2", ""]);
        assert_eq!(
            texts("1..n 1.5..2e-3 .5 1. e"),
            ["1", "..", "n", "1.5", "..", "2e-3", ".5", "1.", "e", ""]
        );
        assert_eq!(texts("<<l>>begin"), ["<<", "l", ">>", "begin", ""]);
        assert_eq!(texts("t.c%TYPE x::int"), ["t", ".", "c", "%", "TYPE", "x", "::", "int", ""]);
        assert_eq!(texts("a+--b\nc*/*d/*e*/*/f"), ["a", "+", "c", "*", "f", ""]);
        assert_eq!(texts("$1 $a$;'$b$a$ $$x$$ $ ä$1"), ["$1", "$a$;'$b$a$", "$$x$$", "$", "ä$1", ""]);
        assert_eq!(texts("'a''b\\' e'a\\'b''c' \"d\"\"e\""), ["'a''b\\'", "e'a\\'b''c'", "\"d\"\"e\"", ""]);
    }

    #[test]
    fn what_is_not_closed_is_the_last_token() {
        let broken = |broken| vec![TokenKind::Word, TokenKind::Broken(broken), TokenKind::End];
        assert_eq!(kinds("a 'b; c"), broken(Broken::String));
        assert_eq!(kinds("a E'b\\'"), broken(Broken::String));
        assert_eq!(kinds("a \"b"), broken(Broken::Name));
        assert_eq!(kinds("a $b$ c $$"), broken(Broken::DollarString));
        assert_eq!(kinds("a /* /* */"), broken(Broken::Comment));
    }

    #[test]
    fn number_with_letters_behind_it_is_broken() {
        let broken = TokenKind::Broken(Broken::Number);
        assert_eq!(kinds("1a 1.x 1e5$"), [broken, broken, broken, TokenKind::End]);
        assert_eq!(kinds("1_000 0x1F"), [TokenKind::Number, TokenKind::Number, TokenKind::End]);
    }

    #[test]
    fn lines_and_columns_count_characters_from_1() {
        let places: Vec<_> = tokens("ä b\n\t'ö\nü' c").iter().map(|t| (t.line, t.column)).collect();
        assert_eq!(places, [(1, 1), (1, 3), (2, 2), (3, 4), (3, 5)]);
    }
}
