//! `CALL albireo.freeze('table')`.

use albireo_base::{SqlError, SqlState};
use albireo_sql::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectNamePart, Value};
use albireo_sql::names::{QualifiedName, fold};

/// The table that a statement wants frozen; `None` for any other statement.
///
/// # Errors
/// 42601 if its argument is not one name.
pub(crate) fn freeze_target(text: &str) -> Result<Option<QualifiedName>, SqlError> {
    // Most statements are told apart without being parsed.
    let trimmed = text.trim_start();
    let is_call = trimmed.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("call"));
    if !is_call || !trimmed.to_ascii_lowercase().contains("freeze") {
        return Ok(None);
    }
    let rest = trimmed[4..].trim_end_matches(|c: char| c.is_whitespace() || c == ';');
    let Ok(Expr::Function(call)) = albireo_sql::parse::parse_expr(rest) else { return Ok(None) };
    let parts: Vec<String> = call.name.0.iter().filter_map(ObjectNamePart::as_ident).map(fold).collect();
    if parts != ["albireo", "freeze"] {
        return Ok(None);
    }
    let FunctionArguments::List(list) = &call.args else { return Err(usage()) };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value)))] => match &value.value {
            Value::SingleQuotedString(name) => named(name).map(Some),
            _ => Err(usage()),
        },
        _ => Err(usage()),
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
