//! Which of several operators or functions of one name is meant, by the types of the arguments.
//!
//! Responsible for: implicit casts, categories and preferred types, and PostgreSQL's rules of choice
//! (its manual's chapter "Type Conversion"). Not responsible for: what operators there are (`operator`),
//! making the conversions (`convert`).

use crate::types::Scalar;

/// NUMERIC of any scale.
pub(super) const NUMERIC: Scalar = Scalar::Numeric { scale: None };

/// What a cast needs to be written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Level {
    /// Nothing: it happens by itself.
    Implicit,
    /// A place of that type to go to.
    Assignment,
    /// To be spelt out.
    Explicit,
}

/// A number's place in the order of promotions.
fn rank(ty: Scalar) -> Option<u8> {
    Some(match ty {
        Scalar::SmallInt => 0,
        Scalar::Integer => 1,
        Scalar::BigInt => 2,
        Scalar::Numeric { .. } => 3,
        Scalar::Real => 4,
        Scalar::Double => 5,
        _ => return None,
    })
}

/// Whether values are texts.
pub(super) fn is_text(ty: Scalar) -> bool {
    matches!(ty, Scalar::Text | Scalar::Bpchar)
}

/// What the cast between two types needs; `None` if there is no such cast.
pub(super) fn level(from: Scalar, to: Scalar) -> Option<Level> {
    use Scalar::{Bool, Date, Integer, Interval, Time, Timestamp, TimestampTz, Unknown};
    if from.same(to) || from == Unknown {
        return Some(Level::Implicit);
    }
    if let (Some(a), Some(b)) = (rank(from), rank(to)) {
        return Some(if a < b { Level::Implicit } else { Level::Assignment });
    }
    match (from, to) {
        (a, b) if is_text(a) && is_text(b) => Some(Level::Implicit),
        (Bool, Integer) | (Integer, Bool) => Some(Level::Explicit),
        (Date, Timestamp | TimestampTz) | (Timestamp, TimestampTz) | (Time, Interval) => {
            Some(Level::Implicit)
        }
        (Timestamp, Date | Time) | (TimestampTz, Date | Time | Timestamp) | (Interval, Time) => {
            Some(Level::Assignment)
        }
        (_, b) if is_text(b) => Some(Level::Assignment),
        (a, _) if is_text(a) => Some(Level::Explicit),
        _ => None,
    }
}

/// Whether a value converts by itself.
pub fn implicit(from: Scalar, to: Scalar) -> bool {
    level(from, to) == Some(Level::Implicit)
}

/// PostgreSQL's category of a type.
pub(super) fn category(ty: Scalar) -> char {
    match ty {
        Scalar::Unknown => 'X',
        Scalar::Bool => 'B',
        Scalar::Text | Scalar::Bpchar => 'S',
        Scalar::Date | Scalar::Time | Scalar::Timestamp | Scalar::TimestampTz => 'D',
        Scalar::Interval => 'T',
        Scalar::Bytea | Scalar::Uuid => 'U',
        _ => 'N',
    }
}

/// Whether a type is the one its category prefers.
pub fn preferred(ty: Scalar) -> bool {
    matches!(ty, Scalar::Bool | Scalar::Double | Scalar::Text | Scalar::TimestampTz | Scalar::Interval)
}

/// What was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Choice {
    /// This one.
    One(usize),
    /// None fits.
    Missing,
    /// Several fit, none better.
    Ambiguous,
}

/// Chooses among the parameter lists of all candidates.
pub(crate) fn choose(candidates: &[&[Scalar]], args: &[Scalar]) -> Choice {
    let fits = |params: &[Scalar]| {
        params.len() == args.len() && params.iter().zip(args).all(|(to, from)| implicit(*from, *to))
    };
    if let Some(exact) = exact(candidates, args) {
        return Choice::One(exact);
    }
    let mut left: Vec<usize> = (0..candidates.len()).filter(|n| fits(candidates[*n])).collect();
    if left.is_empty() {
        return Choice::Missing;
    }
    keep_best(&mut left, |n| count(candidates[n], args, |to, from| to.same(from)));
    keep_best(&mut left, |n| {
        count(candidates[n], args, |to, from| from != Scalar::Unknown && (to.same(from) || preferred(to)))
    });
    if left.len() > 1 {
        by_unknowns(&mut left, candidates, args);
    }
    match left.as_slice() {
        [one] => Choice::One(*one),
        _ => Choice::Ambiguous,
    }
}

/// The candidate of exactly these types; if one of two is unknown, it counts as the other's.
fn exact(candidates: &[&[Scalar]], args: &[Scalar]) -> Option<usize> {
    let same = |params: &[Scalar], args: &[Scalar]| {
        params.len() == args.len() && params.iter().zip(args).all(|(to, from)| to.same(*from))
    };
    if let Some(found) = candidates.iter().position(|params| same(params, args)) {
        return Some(found);
    }
    let both = match args {
        [Scalar::Unknown, known] | [known, Scalar::Unknown] if *known != Scalar::Unknown => [*known; 2],
        _ => return None,
    };
    candidates.iter().position(|params| same(params, &both))
}

fn count(params: &[Scalar], args: &[Scalar], good: impl Fn(Scalar, Scalar) -> bool) -> usize {
    params.iter().zip(args).filter(|(to, from)| good(**to, **from)).count()
}

fn keep_best(left: &mut Vec<usize>, score: impl Fn(usize) -> usize) {
    let best = left.iter().map(|n| score(*n)).max().unwrap_or(0);
    left.retain(|n| score(*n) == best);
}

/// Arguments of unknown type are texts where a candidate takes one, else of the one category that all
/// take, and in this of the preferred type.
fn by_unknowns(left: &mut Vec<usize>, candidates: &[&[Scalar]], args: &[Scalar]) {
    let before = left.clone();
    for (at, _) in args.iter().enumerate().filter(|(_, from)| **from == Scalar::Unknown) {
        let first = category(candidates[left[0]][at]);
        let wanted = if left.iter().any(|n| category(candidates[*n][at]) == 'S') {
            'S'
        } else if left.iter().all(|n| category(candidates[*n][at]) == first) {
            first
        } else {
            *left = before;
            return;
        };
        left.retain(|n| category(candidates[*n][at]) == wanted);
        if left.iter().any(|n| preferred(candidates[*n][at])) {
            left.retain(|n| preferred(candidates[*n][at]));
        }
    }
    if left.len() > 1 {
        same_as_known(left, candidates, args);
    }
}

/// If all known arguments are of one type, the unknown ones are too.
fn same_as_known(left: &mut Vec<usize>, candidates: &[&[Scalar]], args: &[Scalar]) {
    let mut known = args.iter().filter(|from| **from != Scalar::Unknown);
    let Some(first) = known.next() else { return };
    if !known.all(|from| from.same(*first)) {
        return;
    }
    let fitting: Vec<usize> =
        left.iter().copied().filter(|n| candidates[*n].iter().all(|to| implicit(*first, *to))).collect();
    if fitting.len() == 1 {
        *left = fitting;
    }
}
