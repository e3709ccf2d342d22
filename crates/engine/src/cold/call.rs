//! `CALL albireo.freeze('table')` and `CALL albireo.verify()`.

use albireo_base::{SqlError, SqlState};
use albireo_sql::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectNamePart, Value};
use albireo_sql::names::{QualifiedName, fold};

/// The table that a statement wants frozen; `None` for any other statement.
///
/// # Errors
/// 42601 if its argument is not one name.
pub(crate) fn freeze_target(text: &str) -> Result<Option<QualifiedName>, SqlError> {
    let Some(arguments) = arguments_of(text, "freeze") else { return Ok(None) };
    match arguments.as_deref() {
        Some([FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value)))]) => match &value.value {
            Value::SingleQuotedString(name) => named(name).map(Some),
            _ => Err(usage()),
        },
        _ => Err(usage()),
    }
}

/// Whether a statement wants to know that all evicted rows can be read.
///
/// # Errors
/// 42601 if it has arguments.
pub(crate) fn is_verify(text: &str) -> Result<bool, SqlError> {
    match arguments_of(text, "verify").as_ref().map(|arguments| arguments.as_deref()) {
        None => Ok(false),
        Some(Some([])) => Ok(true),
        Some(_) => Err(SqlError::new(SqlState::SYNTAX_ERROR, "albireo.verify takes no arguments")
            .with_hint("CALL albireo.verify()")),
    }
}

/// The arguments of a call of something in the schema `albireo`, none if they are no list; `None` of any other statement.
fn arguments_of(text: &str, name: &str) -> Option<Option<Vec<FunctionArg>>> {
    // Most statements are told apart without being parsed.
    let trimmed = text.trim_start();
    let is_call = trimmed.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("call"));
    if !is_call || !trimmed.to_ascii_lowercase().contains(name) {
        return None;
    }
    let rest = trimmed[4..].trim_end_matches(|c: char| c.is_whitespace() || c == ';');
    let Ok(Expr::Function(call)) = albireo_sql::parse::parse_expr(rest) else { return None };
    let parts: Vec<String> = call.name.0.iter().filter_map(ObjectNamePart::as_ident).map(fold).collect();
    if parts != ["albireo", name] {
        return None;
    }
    match call.args {
        FunctionArguments::List(list) => Some(Some(list.args)),
        _ => Some(None),
    }
}

/// The table that a text names.
fn named(text: &str) -> Result<QualifiedName, SqlError> {
    let of = |schema: Option<&Ident>, name: &Ident| QualifiedName {
        schema: schema.map(fold),
        name: fold(name),
        span: name.span,
    };
    match albireo_sql::parse::parse_expr(text) {
        Ok(Expr::Identifier(name)) => Ok(of(None, &name)),
        Ok(Expr::CompoundIdentifier(parts)) => match parts.as_slice() {
            [schema, name] => Ok(of(Some(schema), name)),
            _ => Err(usage()),
        },
        _ => Err(SqlError::new(SqlState::INVALID_NAME, format!("invalid name syntax: \"{text}\""))),
    }
}

fn usage() -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, "albireo.freeze takes the name of a table")
        .with_hint("CALL albireo.freeze('schema.table')")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verify_has_no_arguments() {
        assert!(is_verify("CALL albireo.verify()").unwrap());
        assert!(is_verify(" call Albireo.VERIFY ( ) ; ").unwrap());
        for other in ["CALL verify()", "CALL other.verify()", "SELECT 'call albireo.verify()'", "CALL", ""] {
            assert!(!is_verify(other).unwrap(), "{other}");
        }
        for wrong in ["CALL albireo.verify('t')", "CALL albireo.verify(1, 2)"] {
            assert_eq!(is_verify(wrong).unwrap_err().state(), SqlState::SYNTAX_ERROR, "{wrong}");
        }
    }

    #[test]
    fn only_the_call_names_a_table() {
        let target = |text| freeze_target(text).unwrap().map(|name| name.to_string());
        assert_eq!(target("CALL albireo.freeze('t')"), Some("t".to_owned()));
        assert_eq!(target("  call ALBIREO.Freeze('s.T');"), Some("s.t".to_owned()));
        assert_eq!(target("CALL albireo.freeze('\"T\"')"), Some("T".to_owned()));
        for other in ["CALL freeze('t')", "CALL other.freeze('t')", "SELECT 'call albireo.freeze'", "CALL"] {
            assert_eq!(target(other), None, "{other}");
        }
        for wrong in ["CALL albireo.freeze()", "CALL albireo.freeze(1)", "CALL albireo.freeze('a', 'b')"] {
            assert_eq!(freeze_target(wrong).unwrap_err().state(), SqlState::SYNTAX_ERROR, "{wrong}");
        }
    }
}
