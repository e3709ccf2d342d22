//! `\copy` as the COPY statement that does the same: the shell and the database are one process, so their files are
//! the same files.

use super::command::unquote;
use std::path::PathBuf;

/// The COPY statement for what follows `\copy`; the error says what would be right.
pub fn statement(text: &str, home: Option<PathBuf>) -> Result<String, String> {
    const FORM: &str =
        "say \\copy TABLE from 'FILE', \\copy TABLE to 'FILE' or \\copy (QUERY) to 'FILE', and options";
    let (source, rest) = split_direction(text).ok_or_else(|| format!("\\copy: {FORM}"))?;
    let (direction, rest) = rest.split_once(char::is_whitespace).ok_or_else(|| format!("\\copy: {FORM}"))?;
    let rest = rest.trim_start();
    let (file, options) = match rest.strip_prefix('\'') {
        Some(quoted) => unquote(quoted)?,
        None => {
            let (word, rest) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
            match word.to_lowercase().as_str() {
                "" => return Err(format!("\\copy: {FORM}")),
                "stdin" | "stdout" | "program" => return Ok(format!("COPY {text}")),
                _ => (word.to_owned(), rest),
            }
        }
    };
    let file = match (file.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => home.join(below).display().to_string(),
        _ => file,
    };
    let statement = format!("COPY {source} {direction} '{}' {}", file.replace('\'', "''"), options.trim());
    Ok(statement.trim_end().to_owned())
}

/// What stands before the word FROM or TO, and the rest from that word on. Parentheses and quotes are passed over.
fn split_direction(text: &str) -> Option<(&str, &str)> {
    let (mut depth, mut quote, mut is_start) = (0, None, true);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) => quote = (c != open).then_some(open),
            (None, '\'' | '"') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            (None, _) if depth == 0 && is_start => {
                let word = text[at..].split(char::is_whitespace).next().unwrap_or("");
                if at > 0 && (word.eq_ignore_ascii_case("from") || word.eq_ignore_ascii_case("to")) {
                    return Some((text[..at].trim_end(), &text[at..]));
                }
            }
            (None, _) => {}
        }
        is_start = c.is_whitespace() || c == ')';
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_as_psql_spells_it_becomes_the_statement() {
        for (text, expected) in [
            ("t from 'f.csv' csv header", "COPY t FROM 'f.csv' csv header"),
            ("t (a, \"from\") FROM f.csv", "COPY t (a, \"from\") FROM 'f.csv'"),
            (
                "public.t to '/data/it''s.csv' with (format csv)",
                "COPY public.t TO '/data/it''s.csv' with (format csv)",
            ),
            ("(select ')' from t) to 'out.parquet'", "COPY (select ')' from t) TO 'out.parquet'"),
            ("(select 1)to out.csv", "COPY (select 1) TO 'out.csv'"),
            ("t from ~/a b", "COPY t FROM '/users/me/a' b"),
            ("t from stdin csv", "COPY t FROM STDIN csv"),
            ("t to program 'cat'", "COPY t TO PROGRAM 'cat'"),
        ] {
            let found = statement(text, Some("/users/me".into())).unwrap();
            assert!(found.eq_ignore_ascii_case(expected), "{text}: {found}");
        }
    }

    #[test]
    fn what_is_incomplete_is_answered() {
        for (text, part) in [
            ("", "say \\copy"),
            ("t", "say \\copy"),
            ("t from", "say \\copy"),
            ("from 'f'", "say \\copy"),
            ("t from 'f", "not closed"),
        ] {
            let message = statement(text, None).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
