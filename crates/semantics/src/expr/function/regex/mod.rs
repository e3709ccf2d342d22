//! Regular expressions: the operators `~` and `SIMILAR TO`, and the functions `regexp_...`.
//!
//! Responsible for: arguments, flags, positions in characters, replacing and splitting. Not responsible for: what
//! patterns mean (`syntax`), matching (`matcher`).
//!
//! I-1 Each thread keeps its latest patterns ready to match. What a pattern matches depends on it alone, so
//! nothing passes from one statement to another but time saved.

mod matcher;
mod syntax;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use albireo_base::{SqlError, SqlState, Value, budget};

use self::matcher::{Matcher, Span};
use self::syntax::Options;
use super::{Builtin, General, Result, entry, int_at, integer, invalid, missing, str_at, text};
use crate::datum::{Array, Datum};
use crate::expr::convert::implicit_to;
use crate::expr::{Expr, ExprKind};
use crate::types::{Scalar, Type};

const TEXT: Scalar = Scalar::Text;
const INT: Scalar = Scalar::Integer;

pub(super) static FUNCTIONS: &[Builtin] = &[
    entry("regexp_like", &[TEXT, TEXT], Scalar::Bool, like),
    entry("regexp_like", &[TEXT, TEXT, TEXT], Scalar::Bool, like),
    entry("regexp_count", &[TEXT, TEXT], INT, count),
    entry("regexp_count", &[TEXT, TEXT, INT], INT, count),
    entry("regexp_count", &[TEXT, TEXT, INT, TEXT], INT, count),
    entry("regexp_instr", &[TEXT, TEXT], INT, position),
    entry("regexp_instr", &[TEXT, TEXT, INT], INT, position),
    entry("regexp_instr", &[TEXT, TEXT, INT, INT], INT, position),
    entry("regexp_instr", &[TEXT, TEXT, INT, INT, INT], INT, position),
    entry("regexp_instr", &[TEXT, TEXT, INT, INT, INT, TEXT], INT, position),
    entry("regexp_instr", &[TEXT, TEXT, INT, INT, INT, TEXT, INT], INT, position),
    entry("regexp_substr", &[TEXT, TEXT], TEXT, part),
    entry("regexp_substr", &[TEXT, TEXT, INT], TEXT, part),
    entry("regexp_substr", &[TEXT, TEXT, INT, INT], TEXT, part),
    entry("regexp_substr", &[TEXT, TEXT, INT, INT, TEXT], TEXT, part),
    entry("regexp_substr", &[TEXT, TEXT, INT, INT, TEXT, INT], TEXT, part),
    entry("regexp_replace", &[TEXT, TEXT, TEXT], TEXT, replace),
    entry("regexp_replace", &[TEXT, TEXT, TEXT, TEXT], TEXT, replace),
    entry("regexp_replace", &[TEXT, TEXT, TEXT, INT], TEXT, replace_from),
    entry("regexp_replace", &[TEXT, TEXT, TEXT, INT, INT], TEXT, replace_from),
    entry("regexp_replace", &[TEXT, TEXT, TEXT, INT, INT, TEXT], TEXT, replace_from),
    entry("substring", &[TEXT, TEXT], TEXT, |a| first_group(str_at(a, 0)?, str_at(a, 1)?)),
    entry("substring", &[TEXT, TEXT, TEXT], TEXT, |a| {
        first_group(str_at(a, 0)?, &from_similar(str_at(a, 1)?, str_at(a, 2)?)?)
    }),
    entry("similar_to_escape", &[TEXT], TEXT, |a| text(from_similar(str_at(a, 0)?, "\\")?)),
    entry("similar_to_escape", &[TEXT, TEXT], TEXT, |a| text(from_similar(str_at(a, 0)?, str_at(a, 1)?)?)),
];

/// `text ~ pattern`
pub(in crate::expr) static MATCH: Builtin = entry("~", &[TEXT, TEXT], Scalar::Bool, |a| matches(a, false));
/// `text ~* pattern`
pub(in crate::expr) static MATCH_FOLD: Builtin =
    entry("~*", &[TEXT, TEXT], Scalar::Bool, |a| matches(a, true));
/// `text SIMILAR TO pattern ESCAPE escape`
pub(in crate::expr) static SIMILAR: Builtin = entry("similar", &[TEXT, TEXT, TEXT], Scalar::Bool, |a| {
    let pattern = from_similar(str_at(a, 1)?, str_at(a, 2)?)?;
    bool(ready(&pattern, Options::default())?.is_match(str_at(a, 0)?))
});

/// The functions that give arrays.
pub(super) const NAMES: [&str; 2] = ["regexp_match", "regexp_split_to_array"];

/// The call, if it is one of those.
pub(super) fn bind(name: &str, args: &[Expr]) -> Result<Option<Expr>> {
    let general = match (name, args.len()) {
        ("regexp_match", 2 | 3) => General { name: "regexp_match", run: groups_of_first },
        ("regexp_split_to_array", 2 | 3) => General { name: "regexp_split_to_array", run: split },
        _ => return Ok(None),
    };
    let bound: Result<Vec<Expr>> =
        args.iter().map(|arg| implicit_to(arg.clone(), TEXT).map_err(|_| missing(name, args))).collect();
    Ok(Some(Expr { kind: ExprKind::General(general, bound?), ty: Type::Array(TEXT) }))
}

/// How many patterns a thread keeps.
const KEPT: usize = 32;

thread_local! {
    static RECENT: RefCell<Vec<(String, Options, Rc<Matcher>)>> = const { RefCell::new(Vec::new()) };
}

/// The pattern, ready to match.
fn ready(pattern: &str, options: Options) -> Result<Rc<Matcher>> {
    RECENT.with_borrow_mut(|recent| {
        let found = recent.iter().position(|(text, with, _)| text == pattern && *with == options);
        if let Some(found) = found {
            if found > 0 {
                recent[..=found].rotate_right(1);
            }
            return Ok(Rc::clone(&recent[0].2));
        }
        let matcher = Rc::new(Matcher::new(&syntax::parse(pattern, options)?)?);
        recent.truncate(KEPT - 1);
        recent.insert(0, (pattern.to_owned(), options, Rc::clone(&matcher)));
        Ok(matcher)
    })
}

fn bool(b: bool) -> Result<Datum> {
    Ok(Value::Bool(b).into())
}

fn matches(args: &[Datum], fold: bool) -> Result<Datum> {
    let options = Options { fold, ..Options::default() };
    bool(ready(str_at(args, 1)?, options)?.is_match(str_at(args, 0)?))
}

/// The flags; `global` says which function does not take `g`.
fn flags(letters: &str, not_global: Option<&str>) -> Result<Options> {
    let Some(options) = Options::default().read(letters) else {
        let known = "giqcmnpstwxa";
        let bad: String = letters.chars().filter(|c| !known.contains(*c)).take(1).collect();
        return Err(invalid(format!("invalid regular expression option: \"{bad}\"")));
    };
    match not_global {
        Some(name) if options.global => {
            Err(invalid(format!("{name}() does not support the \"global\" option")))
        }
        // What was asked of the function is not what makes the pattern.
        _ => Ok(options),
    }
}

fn flags_at(args: &[Datum], n: usize, name: &str) -> Result<Options> {
    match args.len() > n {
        true => flags(str_at(args, n)?, Some(name)),
        false => Ok(Options::default()),
    }
}

/// An argument that counts from `least`, 1 if it is not given.
fn number_at(args: &[Datum], n: usize, what: &str, least: i32, otherwise: i32) -> Result<usize> {
    if args.len() <= n {
        return Ok(otherwise as usize);
    }
    let number = int_at(args, n)?;
    match number >= least {
        true => Ok(number as usize),
        false => Err(invalid(format!("invalid value for parameter \"{what}\": {number}"))),
    }
}

/// The byte of the character `start`, from 1; `None` behind the end.
fn byte_at(text: &str, start: usize) -> Option<usize> {
    let mut places = text.char_indices().map(|(at, _)| at).chain(std::iter::once(text.len()));
    places.nth(start - 1)
}

/// The place behind a match, or one character on if the match is empty; `None` behind the end.
fn next_place(text: &str, (begin, end): Span) -> Option<usize> {
    if begin < end {
        return Some(end);
    }
    text.get(end..)?.chars().next().map(|c| end + c.len_utf8())
}

/// All matches from a place on.
struct Matches<'t> {
    matcher: Rc<Matcher>,
    text: &'t str,
    from: Option<usize>,
}

impl Matches<'_> {
    fn next(&mut self) -> Result<Option<Span>> {
        let Some(from) = self.from else { return Ok(None) };
        let found = self.matcher.find(self.text, from)?;
        self.from = found.and_then(|span| next_place(self.text, span));
        Ok(found)
    }

    /// The `n`th, from 1.
    fn nth(&mut self, n: usize) -> Result<Option<Span>> {
        for _ in 1..n {
            if self.next()?.is_none() {
                return Ok(None);
            }
        }
        self.next()
    }
}

fn like(args: &[Datum]) -> Result<Datum> {
    let options = flags_at(args, 2, "regexp_like")?;
    bool(ready(str_at(args, 1)?, options)?.is_match(str_at(args, 0)?))
}

fn count(args: &[Datum]) -> Result<Datum> {
    let text = str_at(args, 0)?;
    let start = number_at(args, 2, "start", 1, 1)?;
    let matcher = ready(str_at(args, 1)?, flags_at(args, 3, "regexp_count")?)?;
    let mut matches = Matches { matcher, text, from: byte_at(text, start) };
    let mut found = 0;
    while matches.next()?.is_some() {
        found += 1;
    }
    integer(found)
}

/// Whole match or group `group` of the `n`th match.
fn nth_group(matches: &mut Matches<'_>, n: usize, group: usize) -> Result<Option<Span>> {
    let Some(found) = matches.nth(n)? else { return Ok(None) };
    if group == 0 {
        return Ok(Some(found));
    }
    let groups = matches.matcher.groups(matches.text, found)?;
    Ok(groups.get(group).copied().flatten())
}

fn position(args: &[Datum]) -> Result<Datum> {
    if args.iter().any(Datum::is_null) {
        return Ok(Datum::NULL);
    }
    let text = str_at(args, 0)?;
    let start = number_at(args, 2, "start", 1, 1)?;
    let n = number_at(args, 3, "n", 1, 1)?;
    let behind = number_at(args, 4, "endoption", 0, 0)?;
    if behind > 1 {
        return Err(invalid(format!("invalid value for parameter \"endoption\": {behind}")));
    }
    let group = number_at(args, 6, "subexpr", 0, 0)?;
    let matcher = ready(str_at(args, 1)?, flags_at(args, 5, "regexp_instr")?)?;
    let mut matches = Matches { matcher, text, from: byte_at(text, start) };
    match nth_group(&mut matches, n, group)? {
        Some((begin, end)) => {
            let at = if behind == 1 { end } else { begin };
            integer(text.get(..at).unwrap_or_default().chars().count() + 1)
        }
        None => integer(0),
    }
}

fn part(args: &[Datum]) -> Result<Datum> {
    let whole = str_at(args, 0)?;
    let start = number_at(args, 2, "start", 1, 1)?;
    let n = number_at(args, 3, "n", 1, 1)?;
    let options = flags_at(args, 4, "regexp_substr")?;
    let group = number_at(args, 5, "subexpr", 0, 0)?;
    let matcher = ready(str_at(args, 1)?, options)?;
    let mut matches = Matches { matcher, text: whole, from: byte_at(whole, start) };
    match nth_group(&mut matches, n, group)? {
        Some((begin, end)) => text(whole.get(begin..end).unwrap_or_default()),
        None => Ok(Datum::NULL),
    }
}

/// The first match, or what the first parentheses in it matched.
fn first_group(whole: &str, pattern: &str) -> Result<Datum> {
    let matcher = ready(pattern, Options::default())?;
    let group = usize::from(matcher.captures > 0);
    let mut matches = Matches { matcher, text: whole, from: Some(0) };
    match nth_group(&mut matches, 1, group)? {
        Some((begin, end)) => text(whole.get(begin..end).unwrap_or_default()),
        None => Ok(Datum::NULL),
    }
}

fn array(items: Vec<Datum>) -> Datum {
    Datum::Array(Arc::new(Array { lower: 1, items }))
}

fn groups_of_first(args: &[Datum]) -> Result<Datum> {
    if args.iter().any(Datum::is_null) {
        return Ok(Datum::NULL);
    }
    let whole = str_at(args, 0)?;
    let options = match args.len() > 2 {
        true => flags(str_at(args, 2)?, Some("regexp_match")).map_err(|error| {
            match error.message().contains("global") {
                true => error.with_hint("Use the regexp_matches function instead."),
                false => error,
            }
        })?,
        false => Options::default(),
    };
    let matcher = ready(str_at(args, 1)?, options)?;
    let Some(found) = matcher.find(whole, 0)? else { return Ok(Datum::NULL) };
    let groups = matcher.groups(whole, found)?;
    let wanted = if matcher.captures > 0 { &groups[1..] } else { &groups[..1] };
    let item = |group: &Option<Span>| match group {
        Some((begin, end)) => Value::Text(whole.get(*begin..*end).unwrap_or_default().to_owned()).into(),
        None => Datum::NULL,
    };
    Ok(array(wanted.iter().map(item).collect()))
}

fn split(args: &[Datum]) -> Result<Datum> {
    if args.iter().any(Datum::is_null) {
        return Ok(Datum::NULL);
    }
    let whole = str_at(args, 0)?;
    let options = flags_at(args, 2, "regexp_split_to_array")?;
    let matcher = ready(str_at(args, 1)?, options)?;
    let mut matches = Matches { matcher, text: whole, from: Some(0) };
    let (mut items, mut from, mut last_end) = (Vec::new(), 0, 0);
    while let Some((begin, end)) = matches.next()? {
        // An empty match at an end, or behind another match, splits nothing.
        if begin < whole.len() && end > last_end {
            items.push(Value::Text(whole.get(from..begin).unwrap_or_default().to_owned()).into());
            from = end;
        }
        last_end = end;
    }
    items.push(Value::Text(whole.get(from..).unwrap_or_default().to_owned()).into());
    Ok(array(items))
}

fn replace(args: &[Datum]) -> Result<Datum> {
    let options = match args.get(3) {
        None => Options::default(),
        Some(_) => {
            let letters = str_at(args, 3)?;
            if letters.starts_with(|c: char| c.is_ascii_digit()) {
                return flags(letters, None).map(|_| Datum::NULL).map_err(|error| {
                    error.with_hint(
                        "If you meant to use regexp_replace() with a start parameter, cast the fourth argument \
                         to integer explicitly.",
                    )
                });
            }
            flags(letters, None)?
        }
    };
    replaced(args, options, 1, if options.global { 0 } else { 1 })
}

fn replace_from(args: &[Datum]) -> Result<Datum> {
    let start = number_at(args, 3, "start", 1, 1)?;
    let n = number_at(args, 4, "n", 0, 1)?;
    let options = if args.len() > 5 { flags(str_at(args, 5)?, None)? } else { Options::default() };
    replaced(args, options, start, n)
}

/// The text with the `n`th match from the character `start` on replaced; all of them if `n` is 0.
fn replaced(args: &[Datum], options: Options, start: usize, n: usize) -> Result<Datum> {
    let (whole, by) = (str_at(args, 0)?, str_at(args, 2)?);
    let matcher = ready(str_at(args, 1)?, Options { global: false, ..options })?;
    let with_groups = by.contains('\\');
    let mut matches = Matches { matcher: Rc::clone(&matcher), text: whole, from: byte_at(whole, start) };
    let (mut out, mut copied, mut seen) = (String::new(), 0, 0);
    while let Some(found) = matches.next()? {
        seen += 1;
        if n > 0 && seen < n {
            continue;
        }
        out.push_str(whole.get(copied..found.0).unwrap_or_default());
        match with_groups {
            true => substitute(&mut out, whole, by, &matcher.groups(whole, found)?),
            false => out.push_str(by),
        }
        budget::value(out.len())?;
        copied = found.1;
        if n > 0 {
            break;
        }
    }
    let rest = whole.get(copied..).unwrap_or_default();
    budget::value(out.len().saturating_add(rest.len()))?;
    out.push_str(rest);
    text(out)
}

/// Writes a replacement: `\1` is what the first parentheses matched, `\&` all.
fn substitute(out: &mut String, whole: &str, by: &str, groups: &[Option<Span>]) {
    let group = |out: &mut String, n: usize| {
        if let Some((begin, end)) = groups.get(n).copied().flatten() {
            out.push_str(whole.get(begin..end).unwrap_or_default());
        }
    };
    let mut rest = by;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        match after.chars().next() {
            Some(digit @ '1'..='9') => group(out, digit as usize - '0' as usize),
            Some('&') => group(out, 0),
            Some('\\') => out.push('\\'),
            _ => {
                out.push('\\');
                rest = after;
                continue;
            }
        }
        rest = &after[1..];
    }
    out.push_str(rest);
}

/// The regular expression of a pattern of SIMILAR TO.
fn from_similar(pattern: &str, escape: &str) -> Result<String> {
    let mut signs = escape.chars();
    let sign = signs.next();
    if signs.next().is_some() {
        return Err(SqlError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
            .with_hint("Escape string must be empty or one character."));
    }
    let mut out = String::from("^(?:");
    let (mut escaped, mut in_class, mut quotes) = (false, false, 0);
    for c in pattern.chars() {
        if escaped {
            match (c, in_class) {
                ('"', false) => {
                    out.push_str(match quotes {
                        0 => "){1,1}?(",
                        1 => "){1,1}(?:",
                        _ => {
                            let message = "SQL regular expression may not contain more than two \
                                           escape-double-quote separators";
                            return Err(SqlError::new(SqlState(*b"2200C"), message));
                        }
                    });
                    quotes += 1;
                }
                _ => out.extend(['\\', c]),
            }
            escaped = false;
        } else if Some(c) == sign {
            escaped = true;
        } else if in_class {
            if c == '\\' {
                out.push('\\');
            }
            out.push(c);
            in_class = c != ']';
        } else {
            match c {
                '[' => {
                    out.push(c);
                    in_class = true;
                }
                '%' => out.push_str(".*"),
                '_' => out.push('.'),
                '(' => out.push_str("(?:"),
                '\\' | '.' | '^' | '$' => out.extend(['\\', c]),
                c => out.push(c),
            }
        }
    }
    out.push_str(")$");
    Ok(out)
}
