//! LIKE.

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
    let mut escape = escape.chars();
    let sign = escape.next();
    if escape.next().is_some() {
        let message = "invalid escape string";
        return Err(SqlError::new(SqlState::INVALID_ESCAPE_SEQUENCE, message)
            .with_hint("Escape string must be empty or one character."));
    }
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
