//! `BACKUP TO 'target'`, which the SQL parser does not know.

use albireo_base::{SqlError, SqlState};

/// Where a BACKUP statement wants the backup; `None` for any other statement.
///
/// # Errors
/// 42601 if it is BACKUP and goes on in another way.
pub(crate) fn backup_target(text: &str) -> Result<Option<String>, SqlError> {
    let Some(rest) = after_word(text, "backup") else { return Ok(None) };
    let wrong = |rest: &str| {
        let position = text.chars().count() - rest.trim_start().chars().count() + 1;
        let word: String = rest.trim_start().chars().take_while(|c| !c.is_whitespace()).collect();
        let what = match word.as_str() {
            "" => "syntax error at end of input".to_owned(),
            word => format!("syntax error at or near \"{word}\""),
        };
        let error = SqlError::new(SqlState::SYNTAX_ERROR, what).with_position(position);
        Err(error.with_hint("BACKUP TO 'directory' or BACKUP TO 'file.tar'"))
    };
    let Some(literal) = after_word(rest, "to") else { return wrong(rest) };
    let literal = literal.trim_start();
    let Some(inner) = literal.strip_prefix('\'') else { return wrong(literal) };
    let mut target = String::new();
    let mut characters = inner.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        if character != '\'' {
            target.push(character);
        } else if characters.next_if(|(_, next)| *next == '\'').is_some() {
            target.push('\'');
        } else {
            let after = &inner[at + 1..];
            let is_end = after.chars().all(|c| c.is_whitespace() || c == ';');
            return if is_end && !target.is_empty() { Ok(Some(target)) } else { wrong(after) };
        }
    }
    wrong(literal)
}

/// What follows a word at the beginning of a text.
fn after_word<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let text = text.trim_start();
    let first = text.get(..word.len())?;
    let rest = &text[word.len()..];
    let ends = rest.chars().next().is_none_or(|c| !c.is_alphanumeric() && c != '_');
    (ends && first.eq_ignore_ascii_case(word)).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_is_a_text_in_quotes() {
        let target = |text| backup_target(text).unwrap();
        assert_eq!(target("BACKUP TO 'a b'"), Some("a b".to_owned()));
        assert_eq!(target(" backup\n to'it''s.tar' ; "), Some("it's.tar".to_owned()));
        for other in ["", "SELECT 1", "backups to 'a'", "b"] {
            assert_eq!(target(other), None, "{other}");
        }
    }

    #[test]
    fn mistakes_have_their_place() {
        for (text, position) in [
            ("BACKUP", 7),
            ("BACKUP x", 8),
            ("BACKUP TO x", 11),
            ("BACKUP TO 'x", 11),
            ("BACKUP TO ''", 13),
            ("BACKUP TO 'x' y", 15),
        ] {
            let error = backup_target(text).unwrap_err();
            assert_eq!((error.state(), error.position()), (SqlState::SYNTAX_ERROR, Some(position)), "{text}");
        }
    }
}
