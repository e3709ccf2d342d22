//! What functions of texts compute, whichever way a statement runs.
//!
//! Upper and lower case are changed character by character, as PostgreSQL does it with a UTF-8 locale.
//!
//! **Invariant:** a change of case keeps the number of characters: one whose other case is several
//! characters (`ß`) stays as it is.

use crate::SqlError;
use crate::budget::{self, MAX_BYTES, too_long};

/// The character's capital.
fn capital(c: char) -> char {
    let mut mapped = c.to_uppercase();
    match (mapped.next(), mapped.next()) {
        (Some(only), None) => only,
        _ => c,
    }
}

/// The character's small form; what ILIKE compares.
pub fn small(c: char) -> char {
    let mut mapped = c.to_lowercase();
    match (mapped.next(), mapped.next()) {
        (Some(only), None) => only,
        _ => c,
    }
}

/// SQL's `upper`.
pub fn upper(text: &str) -> String {
    text.chars().map(capital).collect()
}

/// SQL's `lower`.
pub fn lower(text: &str) -> String {
    text.chars().map(small).collect()
}

/// SQL's `initcap`: each word, a run of letters and digits, with a capital in front.
pub fn initcap(text: &str) -> String {
    let mut within = false;
    let one = |c: char| {
        let shown = if within { small(c) } else { capital(c) };
        within = c.is_alphanumeric();
        shown
    };
    text.chars().map(one).collect()
}

/// SQL's `lpad`, or `rpad`: a text of `width` characters, cut at its end or filled up at its left or
/// right. A negative width is 0.
///
/// # Errors
/// 54000: it could be longer than [`MAX_BYTES`]; as [`budget::value`].
pub fn pad(text: &str, width: i32, filling: &str, left: bool) -> Result<String, SqlError> {
    let width = usize::try_from(width).unwrap_or(0);
    let length = text.chars().count();
    if length >= width || filling.is_empty() {
        return Ok(text.chars().take(width).collect());
    }
    if width.saturating_mul(4) > MAX_BYTES {
        return Err(too_long());
    }
    let times = (width - length) / filling.chars().count() + 1;
    budget::value(filling.len().saturating_mul(times).saturating_add(text.len()))?;
    let padding: String = filling.chars().cycle().take(width - length).collect();
    Ok(if left { padding + text } else { format!("{text}{padding}") })
}

/// The least text above all that begin with `beginning`, in the order of their bytes, which is that of their characters:
/// all that begin so lie from it to this one. `None` if there is none.
pub fn above(beginning: &str) -> Option<String> {
    let mut rest = beginning.chars();
    while let Some(last) = rest.next_back() {
        // Passes over the surrogates, which are no characters.
        if let Some(next) = (last..=char::MAX).nth(1) {
            return Some(format!("{}{next}", rest.as_str()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_above_a_beginning_is_the_least_that_does_not_begin_so() {
        let cases = [
            ("", None),
            ("abc", Some("abd")),
            ("ab ", Some("ab!")),
            ("a\u{7f}", Some("a\u{80}")),
            ("zß", Some("zà")),
            ("a\u{7ff}", Some("a\u{800}")),
            ("a\u{d7ff}", Some("a\u{e000}")),
            ("a\u{ffff}", Some("a\u{10000}")),
            ("ab\u{10ffff}", Some("ac")),
            ("\u{d7ff}\u{10ffff}\u{10ffff}", Some("\u{e000}")),
            ("\u{10ffff}\u{10ffff}", None),
        ];
        for (beginning, expected) in cases {
            let above = above(beginning);
            assert_eq!(above.as_deref(), expected, "{beginning:?}");
            let ends = ["", "\u{1}", "z", "\u{10ffff}", "\u{10ffff}\u{10ffff}x"];
            for text in ends.map(|end| format!("{beginning}{end}")) {
                assert!(*text >= *beginning && above.as_ref().is_none_or(|above| text < *above), "{text:?}");
            }
        }
    }

    #[test]
    fn case_is_changed_and_texts_are_filled_up_by_characters() {
        assert_eq!(upper("straße ä œ"), "STRAßE Ä Œ");
        assert_eq!(lower("STRASSE Ä İ"), "strasse ä İ");
        assert_eq!(pad("ä", 3, "xyz", true), Ok("xyä".to_owned()));
        assert_eq!(pad("äbc", 2, " ", false), Ok("äb".to_owned()));
        assert_eq!(pad("a", -4, " ", false), Ok(String::new()));
        assert!(pad("a", i32::MAX, " ", false).is_err());
        assert_eq!(initcap("hELLO wörld ßa 1a éÉ"), "Hello Wörld ßa 1a Éé");
    }
}
