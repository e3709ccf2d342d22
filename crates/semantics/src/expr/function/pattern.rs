//! LIKE.
//!
//! Responsible for: which texts match a pattern, and with what they begin. Not responsible for: patterns that a scan
//! decides on encoded texts (`olap`), regular expressions (`regex`).

use albireo_base::text::small;
use albireo_base::{SqlError, SqlState, Value};

use super::{Builtin, Result, entry, str_at};
use crate::datum::Datum;
use crate::types::Scalar;

const THREE: &[Scalar] = &[Scalar::Text, Scalar::Text, Scalar::Text];

/// `text LIKE pattern ESCAPE escape`
pub(in crate::expr) static LIKE: Builtin = entry("like", THREE, Scalar::Bool, |args| like(args, false));
/// `text ILIKE pattern ESCAPE escape`
pub(in crate::expr) static ILIKE: Builtin = entry("ilike", THREE, Scalar::Bool, |args| like(args, true));
/// The text with which all texts begin that match `pattern ESCAPE escape`. It has no name in SQL.
pub(in crate::expr) static BEGINNING: Builtin =
    entry("like_beginning", &[Scalar::Text, Scalar::Text], Scalar::Text, |args| {
        Ok(Value::Text(beginning(str_at(args, 0)?, str_at(args, 1)?).text).into())
    });

/// How a pattern begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::expr) struct Beginning {
    /// What stands before its first sign: all texts that match begin so.
    pub(in crate::expr) text: String,
    /// What comes then.
    pub(in crate::expr) rest: Rest,
}

/// What comes in a pattern after the text with which it begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::expr) enum Rest {
    /// Nothing: only this text matches.
    Nothing,
    /// `%` alone: every text that begins so matches.
    Anything,
    /// More signs. So it is with what is no pattern, whose beginning is empty: matching tells what is wrong with it.
    Signs,
}

/// How a pattern begins whose escape character is `escape`, or none if that is empty.
pub(in crate::expr) fn beginning(pattern: &str, escape: &str) -> Beginning {
    let nothing = Beginning { text: String::new(), rest: Rest::Signs };
    let Some(sign) = sign_of(escape) else { return nothing };
    let (parts, is_open) = parts(pattern, sign, false);
    if is_open {
        return nothing;
    }
    let text: String = parts
        .iter()
        .map_while(|part| match part {
            Part::Exactly(c) => Some(*c),
            Part::Any | Part::Many => None,
        })
        .collect();
    let rest = match &parts[text.chars().count()..] {
        [] => Rest::Nothing,
        [Part::Many] => Rest::Anything,
        _ => Rest::Signs,
    };
    Beginning { text, rest }
}

/// The escape character that a text names, or that there is none; `None` for what names several.
fn sign_of(escape: &str) -> Option<Option<char>> {
    let mut chars = escape.chars();
    let sign = chars.next();
    chars.next().is_none().then_some(sign)
}

/// A part of a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// This character.
    Exactly(char),
    /// `_`
    Any,
    /// `%`
    Many,
}

fn like(args: &[Datum], fold: bool) -> Result<Datum> {
    let (text, pattern, escape) = (str_at(args, 0)?, str_at(args, 1)?, str_at(args, 2)?);
    let Some(sign) = sign_of(escape) else {
        let message = "invalid escape string";
        return Err(SqlError::new(SqlState::INVALID_ESCAPE_SEQUENCE, message)
            .with_hint("Escape string must be empty or one character."));
    };
    let parts = parts(pattern, sign, fold);
    let text: Vec<char> = text.chars().map(|c| if fold { small(c) } else { c }).collect();
    match matches(&text, &parts.0) {
        // PostgreSQL finds the fault only where the match gets as far.
        Match::End if parts.1 => Err(SqlError::new(
            SqlState::INVALID_ESCAPE_SEQUENCE,
            "LIKE pattern must not end with escape character",
        )),
        found => Ok(Value::Bool(found == Match::Whole && !parts.1).into()),
    }
}

/// The parts of a pattern, and whether it ends in the middle of an escape.
fn parts(pattern: &str, escape: Option<char>, fold: bool) -> (Vec<Part>, bool) {
    let mut parts = Vec::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    let exactly = |c: char| Part::Exactly(if fold { small(c) } else { c });
    while let Some(c) = chars.next() {
        match c {
            c if Some(c) == escape => match chars.next() {
                Some(c) => parts.push(exactly(c)),
                None => return (parts, true),
            },
            '%' if parts.last() == Some(&Part::Many) => {}
            '%' => parts.push(Part::Many),
            '_' => parts.push(Part::Any),
            c => parts.push(exactly(c)),
        }
    }
    (parts, false)
}

/// How far a text matches a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Match {
    /// Both to their ends.
    Whole,
    /// The pattern was used up with text left over.
    End,
    /// Not at all.
    No,
}

/// Goes back to the last `%` only: what it swallows more, an earlier one need not.
fn matches(text: &[char], parts: &[Part]) -> Match {
    let (mut t, mut p) = (0, 0);
    let mut again: Option<(usize, usize)> = None;
    let mut used_up = false;
    loop {
        match (parts.get(p), text.get(t)) {
            (Some(Part::Many), _) => {
                p += 1;
                again = Some((p, t));
                continue;
            }
            (Some(Part::Any), Some(_)) => {
                (t, p) = (t + 1, p + 1);
                continue;
            }
            (Some(Part::Exactly(wanted)), Some(c)) if wanted == c => {
                (t, p) = (t + 1, p + 1);
                continue;
            }
            (None, None) => return Match::Whole,
            (None, Some(_)) => used_up = true,
            _ => {}
        }
        let Some((part, from)) = again else { break };
        if from >= text.len() {
            break;
        }
        (t, p) = (from + 1, part);
        again = Some((part, from + 1));
    }
    if used_up { Match::End } else { Match::No }
}

#[cfg(test)]
mod tests {
    use albireo_testing::Random;

    use super::*;

    #[test]
    fn pattern_begins_with_what_stands_before_its_first_sign() {
        let cases = [
            ("abc", "\\", "abc", Rest::Nothing),
            ("", "\\", "", Rest::Nothing),
            ("%", "\\", "", Rest::Anything),
            ("abc%", "\\", "abc", Rest::Anything),
            ("abc%%", "\\", "abc", Rest::Anything),
            ("äß %", "\\", "äß ", Rest::Anything),
            ("abc_", "\\", "abc", Rest::Signs),
            ("abc%_", "\\", "abc", Rest::Signs),
            ("ab%c", "\\", "ab", Rest::Signs),
            ("_bc%", "\\", "", Rest::Signs),
            (r"50\%%", "\\", "50%", Rest::Anything),
            (r"a\_\b\\", "\\", r"a_b\", Rest::Nothing),
            (r"a\b%", "", r"a\b", Rest::Anything),
            (r"a\b%", "!", r"a\b", Rest::Anything),
            ("a!%b!!%", "!", "a%b!", Rest::Anything),
            ("a%%", "%", "a%", Rest::Nothing),
            ("aéb%", "é", "ab", Rest::Anything),
            // What matching refuses.
            (r"abc\", "\\", "", Rest::Signs),
            (r"ab%\", "\\", "", Rest::Signs),
            ("abc%", "!!", "", Rest::Signs),
        ];
        for (pattern, escape, text, rest) in cases {
            let expected = Beginning { text: text.to_owned(), rest };
            assert_eq!(beginning(pattern, escape), expected, "{pattern} ESCAPE {escape}");
        }
    }

    #[test]
    fn texts_that_match_begin_as_their_pattern_does() {
        let mut random = Random::new(1);
        let mut word = |letters: &[char], most: u64| -> String {
            (0..random.below(most)).map(|_| random.pick(letters)).collect()
        };
        for _ in 0..5_000 {
            let (pattern, text) =
                (word(&['a', 'b', '%', '_', '!', '\\'], 6), word(&['a', 'b', '%', '_', '\\'], 7));
            for escape in ["\\", "!", ""] {
                let args = [text.as_str(), pattern.as_str(), escape].map(|arg| Datum::from(Value::from(arg)));
                let Ok(Datum::Value(Value::Bool(matches))) = like(&args, false) else { continue };
                let Beginning { text: begin, rest } = beginning(&pattern, escape);
                let expected = match rest {
                    Rest::Nothing => text == begin,
                    Rest::Anything => text.starts_with(&begin),
                    Rest::Signs => matches && text.starts_with(&begin),
                };
                assert_eq!(matches, expected, "{text} LIKE {pattern} ESCAPE {escape}");
            }
        }
    }
}
