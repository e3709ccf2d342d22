//! Cuts a script into its statements.

use albireo_base::SqlError;
use sqlparser::tokenizer::Token;

use crate::parse::{is_blank, statements, tokenize};
use crate::source::Cursor;

/// One statement of a script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScriptStatement<'a> {
    /// Its text, from its first token to its last, without the semicolon.
    pub text: &'a str,
    /// The line it begins on, from 1.
    pub line: usize,
    /// The character it begins at, from 1. Add it, less one, to a position within the statement.
    pub position: usize,
    /// The byte after it: its semicolon, or the end of the script.
    pub end: usize,
}

/// The statements of `script`, in order. They need not be valid SQL, but their quotes and comments
/// must be closed; semicolons within those do not count.
///
/// # Errors
/// 42601 with position if a quote or comment is not closed.
pub fn split(script: &str) -> Result<Vec<ScriptStatement<'_>>, SqlError> {
    let tokens = tokenize(script)?;
    let mut cursor = Cursor::new(script);
    let found = statements(&tokens).filter_map(|tokens| {
        let first = tokens.iter().find(|token| !is_blank(token))?;
        let last = tokens.iter().rfind(|token| !is_blank(token))?;
        let (start, line, position) = {
            let at = cursor.advance(first.span.start);
            (at.bytes, at.line(), at.chars + 1)
        };
        let end = cursor.advance(last.span.end).bytes;
        Some(ScriptStatement { text: &script[start..end], line, position, end })
    });
    Ok(found.collect())
}

/// Whether `input` ends where a statement may end: with a semicolon that is not inside quotes or a
/// comment, or with nothing at all. A shell goes on reading lines until it does.
pub fn is_complete(input: &str) -> bool {
    match tokenize(input) {
        Ok(tokens) => {
            let last = tokens.iter().rfind(|token| !is_blank(token));
            last.is_none_or(|token| token.token == Token::SemiColon)
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_keeps_text_line_and_position_of_each_statement() {
        let script = "-- first\nselect 'ä;b' ;;\n\n  create table t (a int) /* ; */ ;\nselect $$;$$";
        let found = split(script).unwrap();
        let texts: Vec<_> = found.iter().map(|s| (s.text, s.line)).collect();
        let expected = [("select 'ä;b'", 2), ("create table t (a int)", 4), ("select $$;$$", 5)];
        assert_eq!(texts, expected);
        for statement in &found {
            let at: String = script.chars().skip(statement.position - 1).collect();
            assert!(at.starts_with(statement.text));
            assert!(script[..statement.end].ends_with(statement.text));
        }
    }

    #[test]
    fn split_with_open_quote_is_an_error_with_position() {
        let error = split("select 1;\nselect 'abc").unwrap_err();
        assert_eq!(error.state().to_string(), "42601");
        assert_eq!(error.message(), "unterminated quoted string at or near \"'abc\"");
        assert_eq!(error.position(), Some(18));
    }

    #[test]
    fn input_is_complete_only_after_an_outer_semicolon() {
        assert!(is_complete("select 1;  -- done"));
        assert!(is_complete("  "));
        assert!(!is_complete("select 1"));
        assert!(!is_complete("select ';"));
        assert!(!is_complete("select 1; /*"));
        assert!(!is_complete("select $$ ;"));
    }
}
