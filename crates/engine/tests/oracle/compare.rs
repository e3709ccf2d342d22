//! Whether an answer is the expected one.

use super::script::{Answer, Expected, System};

/// Significant digits from which on quotients and averages of PostgreSQL and ours may end at
/// different places: PostgreSQL chooses the scale by the values, we by the types.
const QUOTIENT_DIGITS: usize = 16;
/// How far floating-point numbers may be apart, relatively; the order of additions is free.
const TOLERANCE: f64 = 1e-9;

/// Checks an answer of `system`; the error says what is wrong.
pub fn check(expected: &Expected, answer: &Answer, system: System) -> Result<(), String> {
    match (expected, answer) {
        (Expected::Ok, Answer::Done(_)) => Ok(()),
        (Expected::Count(expected), Answer::Done(found)) if expected == found => Ok(()),
        (Expected::Count(expected), Answer::Done(found)) => {
            Err(format!("{found} rows instead of {expected}"))
        }
        (Expected::Error(_), Answer::Error { .. }) if system == System::Sqlite => Ok(()),
        (Expected::Error(expected), Answer::Error { state, message }) => match state == expected {
            true => Ok(()),
            false => Err(format!("{state} instead of {expected}: {message}")),
        },
        (_, Answer::Error { state, message }) => Err(format!("failed: {state} {message}")),
        (Expected::Rows { columns, rows, ordered }, Answer::Rows { columns: found, rows: found_rows }) => {
            check_columns(columns, found, system)?;
            let types: Vec<&str> = columns.iter().map(|column| parts(column).1).collect();
            let (mut rows, mut found_rows) = (rows.clone(), found_rows.clone());
            // SQLite puts NULLs first where PostgreSQL puts them last.
            if !ordered || system == System::Sqlite {
                rows.sort_unstable();
                found_rows.sort_unstable();
            }
            check_rows(&types, &rows, &found_rows, system)
        }
        (_, Answer::Rows { .. }) => Err("rows, where none were expected".to_owned()),
        (Expected::Rows { .. } | Expected::Error(_), Answer::Done(_)) => {
            Err("done, where rows or an error were expected".to_owned())
        }
    }
}

/// A column as files show it: its name, and the class of its type. In results, strings are all text,
/// numerics have no precision, and what has no SQL type of ours is given as text.
fn parts(column: &str) -> (&str, &str) {
    const CLASSES: [(&str, &str); 19] = [
        (" boolean", "boolean"),
        (" smallint", "smallint"),
        (" integer", "integer"),
        (" bigint", "bigint"),
        (" numeric", "numeric"),
        (" real", "real"),
        (" double precision", "double precision"),
        (" date", "date"),
        (" time without time zone", "time"),
        (" timestamp without time zone", "timestamp"),
        (" timestamp with time zone", "timestamptz"),
        (" bytea", "bytea"),
        (" uuid", "uuid"),
        (" character varying", "text"),
        (" character", "text"),
        (" bpchar", "text"),
        (" text", "text"),
        (" interval", "text"),
        (" record", "text"),
    ];
    let element = column.strip_suffix("[]");
    let of = element.unwrap_or(column);
    let of = match of.rfind('(') {
        Some(at) if of.ends_with(')') => &of[..at],
        _ => of,
    };
    let class = CLASSES.into_iter().find_map(|(end, class)| Some((of.strip_suffix(end)?, class)));
    match class {
        Some((name, class)) => (name, if element.is_some() { "text" } else { class }),
        None => (column, ""),
    }
}

fn check_columns(expected: &[String], found: &[String], system: System) -> Result<(), String> {
    if expected.len() != found.len() {
        return Err(format!("{} columns instead of {}", found.len(), expected.len()));
    }
    if system == System::Sqlite {
        return Ok(());
    }
    for (expected, found) in expected.iter().zip(found) {
        if parts(expected) != parts(found) {
            return Err(format!("column \"{found}\" instead of \"{expected}\""));
        }
    }
    Ok(())
}

fn check_rows(
    types: &[&str],
    expected: &[Vec<String>],
    found: &[Vec<String>],
    system: System,
) -> Result<(), String> {
    for (number, (expected, found)) in expected.iter().zip(found).enumerate() {
        let agree = |((ty, a), b): ((&&str, &String), &String)| agree(ty, a, b, system);
        if expected.len() != found.len() || !types.iter().zip(expected).zip(found).all(agree) {
            let (expected, found) = (expected.join(" | "), found.join(" | "));
            return Err(format!("row {}:\n  expected {expected}\n  found    {found}", number + 1));
        }
    }
    match expected.len() == found.len() {
        true => Ok(()),
        false => Err(format!("{} rows instead of {}", found.len(), expected.len())),
    }
}

fn agree(ty: &str, expected: &str, found: &str, system: System) -> bool {
    if expected == found {
        return true;
    }
    match ty {
        "boolean" if system == System::Sqlite => matches!((expected, found), ("t", "1") | ("f", "0")),
        "numeric" if system != System::Sqlite => same_decimal(expected, found),
        "numeric" | "real" | "double precision" => same_float(expected, found),
        _ => false,
    }
}

fn same_float(a: &str, b: &str) -> bool {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => (a - b).abs() <= TOLERANCE * a.abs().max(b.abs()),
        _ => false,
    }
}

/// Whether two decimals with many digits are the same as far as both go. The last common digit may
/// be rounded differently.
fn same_decimal(a: &str, b: &str) -> bool {
    let fraction = |text: &str| text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let significant = |text: &str| {
        let digits = text.trim_start_matches(['-', '0', '.']);
        digits.bytes().filter(u8::is_ascii_digit).count()
    };
    let common = fraction(a).min(fraction(b));
    let unscaled = |text: &str| -> Option<i128> {
        let (integral, fraction) = text.split_once('.')?;
        format!("{integral}{}", fraction.get(..common)?).parse().ok()
    };
    significant(a).min(significant(b)) >= QUOTIENT_DIGITS
        && matches!((unscaled(a), unscaled(b)), (Some(a), Some(b)) if a.abs_diff(b) <= 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_split_in_name_and_class_of_type() {
        let cases = [
            ("?column? integer", "?column?", "integer"),
            ("sum numeric(38,2)", "sum", "numeric"),
            ("a b character varying(9)", "a b", "text"),
            ("c character(2)", "c", "text"),
            ("t timestamp without time zone", "t", "timestamp"),
            ("u uuid", "u", "uuid"),
            ("array integer[]", "array", "text"),
            ("array numeric(8,2)[]", "array", "text"),
            ("row record", "row", "text"),
        ];
        for (column, name, ty) in cases {
            assert_eq!(parts(column), (name, ty), "{column}");
        }
    }

    #[test]
    fn decimals_agree_as_far_as_both_have_digits_but_no_less() {
        assert!(same_decimal("0.33333333333333333333", "0.3333333333333333"));
        assert!(same_decimal("-715827880.66666667", "-715827880.6666666666666667"));
        assert!(!same_decimal("0.333", "0.33"));
        assert!(!same_decimal("0.3333333333333333", "0.3333333333333393"));
    }
}
