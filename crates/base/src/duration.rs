//! Durations as settings have them: a number and a unit, as in PostgreSQL.

use std::time::Duration;

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
    let unit_us: u64 = match unit {
        "us" => 1,
        "" | "ms" => 1_000,
        "s" => 1_000_000,
        "min" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return None,
    };
    number.checked_mul(unit_us).map(Duration::from_micros)
}
