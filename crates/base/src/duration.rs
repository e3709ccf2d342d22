//! Durations as settings have them: a number and a unit, as in PostgreSQL.

use std::time::Duration;

/// The units, longest first, and their microseconds.
const UNITS: [(&str, u64); 6] = [
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("min", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

/// A number and the unit behind it.
///
/// ```
/// assert_eq!(albireo_base::duration::split_unit("10 min"), Some((10, "min")));
/// ```
pub fn split_unit(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, text[end..].trim()))
}

/// A whole number of `us`, `ms`, `s`, `min`, `h` or `d`; of milliseconds without a unit. `None` for anything else.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(albireo_base::duration::parse("10 min"), Some(Duration::from_secs(600)));
/// assert_eq!(albireo_base::duration::parse("250"), Some(Duration::from_millis(250)));
/// assert_eq!(albireo_base::duration::parse("soon"), None);
/// ```
pub fn parse(text: &str) -> Option<Duration> {
    let (number, unit) = split_unit(text)?;
    let unit = if unit.is_empty() { "ms" } else { unit };
    let (_, unit_us) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    number.checked_mul(unit_us).map(Duration::from_micros)
}

/// A duration as [`parse`] reads it, in the longest unit of which it is a whole number; less than a microsecond is left out.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(albireo_base::duration::show(Duration::from_secs(600)), "10 min");
/// assert_eq!(albireo_base::duration::show(Duration::from_millis(1500)), "1500 ms");
/// ```
pub fn show(duration: Duration) -> String {
    let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let whole = UNITS.into_iter().find(|(_, unit_us)| us.is_multiple_of(*unit_us));
    let (unit, unit_us) = whole.unwrap_or(("us", 1));
    format!("{} {unit}", us / unit_us)
}
