//! Numbers by PostgreSQL's templates: `9 0 . , D G FM`, and a sign in front of the digits.
//!
//! Other patterns (`PR`, `EEEE`, `RN`, ...) are refused with 0A000.

use albireo_base::{Decimal, SqlError};

/// What a template asks for.
#[derive(Default)]
struct Template {
    /// Places before the point, from the left: a digit or a comma, and whether a zero is shown.
    whole: Vec<Place>,
    /// Places after the point; whether each is shown though it be a trailing zero.
    fraction: Vec<bool>,
    has_point: bool,
    fill: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// `9`, or a `0` that wants zeros from here on.
    Digit {
        zero: bool,
    },
    Comma,
}

fn read(template: &str) -> Result<Template, SqlError> {
    let unknown = || {
        SqlError::unsupported(format!("the number template \"{template}\""))
            .with_hint("Known patterns are 9, 0, point, comma, D, G and FM.")
    };
    let mut parsed = Template::default();
    let mut rest = template;
    if let Some(after) = rest.strip_prefix("FM").or_else(|| rest.strip_prefix("fm")) {
        parsed.fill = true;
        rest = after;
    }
    for c in rest.chars() {
        match c {
            '9' | '0' if parsed.has_point => parsed.fraction.push(c == '0'),
            '9' | '0' => parsed.whole.push(Place::Digit { zero: c == '0' }),
            ',' | 'G' | 'g' if !parsed.has_point => parsed.whole.push(Place::Comma),
            '.' | 'D' | 'd' if !parsed.has_point => parsed.has_point = true,
            _ => return Err(unknown()),
        }
    }
    if parsed.whole.is_empty() && parsed.fraction.is_empty() { Err(unknown()) } else { Ok(parsed) }
}

/// The number as the template has it; `#` for every digit when it does not fit.
pub(super) fn write(number: Decimal, template: &str) -> Result<String, SqlError> {
    let template = read(template)?;
    let places = template.fraction.len() as u8;
    let overflow = || crate::errors::out_of_range("numeric");
    let rounded = number.rescale(places).ok_or_else(overflow)?;
    let digits = rounded.unscaled.unsigned_abs().to_string();
    let least = usize::from(places) + 1;
    let digits = format!("{digits:0>least$}");
    let (whole, fraction) = digits.split_at(digits.len() - usize::from(places));
    let whole = whole.trim_start_matches('0');
    let slots = template.whole.iter().filter(|p| **p != Place::Comma).count();
    let negative = rounded.unscaled < 0;
    let fits = whole.len() <= slots;

    let mut text = String::new();
    let mut shown = false;
    let mut at = 0_usize;
    let first_zero = template.whole.iter().position(|p| *p == Place::Digit { zero: true });
    for (i, place) in template.whole.iter().enumerate() {
        let wants_zero = first_zero.is_some_and(|first| first <= i);
        match place {
            Place::Comma => text.push(if shown || !fits { ',' } else { ' ' }),
            Place::Digit { .. } => {
                let missing = slots.saturating_sub(whole.len());
                let digit = at.checked_sub(missing).and_then(|n| whole.as_bytes().get(n));
                match digit {
                    _ if !fits => text.push('#'),
                    Some(digit) => text.push(char::from(*digit)),
                    None if wants_zero => text.push('0'),
                    None => text.push(' '),
                }
                shown |= digit.is_some() || wants_zero;
                at += 1;
            }
        }
    }
    // A zero alone before the point is shown in its last place, unless digits follow the point.
    if !shown && fits && template.fraction.is_empty() && text.ends_with(' ') {
        text.pop();
        text.push('0');
    }
    let blanks = text.len() - text.trim_start().len();
    text.insert(blanks, if negative { '-' } else { ' ' });
    if template.has_point {
        text.push('.');
        let fraction = if fits { fraction.to_owned() } else { "#".repeat(fraction.len()) };
        text.push_str(&fraction);
    }
    if template.fill {
        text = text.trim().to_owned();
        if template.has_point && fits {
            let keep = template.fraction.iter().rposition(|zero| *zero).map_or(0, |last| last + 1);
            let point = text.find('.').unwrap_or(text.len());
            let end = text.trim_end_matches('0').len().max(point + 1 + keep);
            text.truncate(end);
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_by_template_are_those_of_postgres() {
        // Asked of PostgreSQL 15.
        let cases = [
            ("1234.5", "9999.99", " 1234.50"),
            ("-1234.5", "9999.99", "-1234.50"),
            ("12", "9999", "   12"),
            ("-12", "9999", "  -12"),
            ("12", "0000", " 0012"),
            ("0", "9", " 0"),
            ("0", "999", "   0"),
            ("0.5", "9.9", "  .5"),
            ("0.5", "0.9", " 0.5"),
            ("1234567", "9,999,999", " 1,234,567"),
            ("567", "9,999,999", "       567"),
            ("12345", "999", " ###"),
            ("12.340", "FM999.999", "12.34"),
            ("12", "FM999.00", "12.00"),
            ("12", "FM999.99", "12."),
            ("0.126", "FM0.00", "0.13"),
        ];
        for (number, template, expected) in cases {
            let number = Decimal::parse(number).unwrap();
            assert_eq!(write(number, template).unwrap(), expected, "{number} {template}");
        }
    }
}
