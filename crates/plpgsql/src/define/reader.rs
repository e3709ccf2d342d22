//! Names, parameters and types of a definition; DROP, CALL and EXPLAIN.

use albireo_base::{SqlError, SqlState};
use albireo_sql::ast as tree;
use albireo_sql::parse::Fragment;

use super::clauses;
use super::{
    Definition, Explanation, INVALID_FUNCTION_DEFINITION, Mode, Parameter, Removal, Returns, RoutineKind,
    RoutineName, RoutineReference, RoutineStatement,
};
use crate::parse::ast::{Name, TypeKind, TypeName};
use crate::parse::lexer::TokenKind;
use crate::parse::parser::Parser;

/// Takes FUNCTION, PROCEDURE, or ROUTINE, which stands for both.
pub(super) fn kind(parser: &mut Parser<'_>) -> Option<Option<RoutineKind>> {
    if parser.eat("function") {
        Some(Some(RoutineKind::Function))
    } else if parser.eat("procedure") {
        Some(Some(RoutineKind::Procedure))
    } else {
        parser.eat("routine").then_some(None)
    }
}

/// Takes the end of the statement.
fn end(parser: &mut Parser<'_>) -> Result<(), SqlError> {
    while parser.eat(";") {}
    match parser.peek().kind {
        TokenKind::End => Ok(()),
        _ => Err(parser.unexpected(parser.peek())),
    }
}

/// Takes what follows CALL.
pub(super) fn call(mut parser: Parser<'_>) -> Result<RoutineStatement, SqlError> {
    let start = parser.peek();
    if parser.peek().kind == TokenKind::End {
        return Err(parser.unexpected(start));
    }
    let stop = parser.find_end(&[";"], "expression").or_else(|error| {
        // The semicolon may be missing at the end.
        let mut at = parser.at;
        while parser.token(at).kind != TokenKind::End {
            if matches!(parser.token(at).kind, TokenKind::Broken(_)) {
                return Err(error.clone());
            }
            at += 1;
        }
        Ok(at)
    })?;
    let expression = parser.expression_to(stop)?;
    end(&mut parser)?;
    match *expression.tree {
        tree::Expr::Function(function) => Ok(RoutineStatement::Call(Box::new(function))),
        _ => Err(parser.unexpected(start)),
    }
}

/// Takes what follows DROP FUNCTION or the like.
pub(super) fn drop(mut parser: Parser<'_>, kind: Option<RoutineKind>) -> Result<RoutineStatement, SqlError> {
    let if_exists = parser.next_is("if") && parser.is(parser.peek_nth(1), "exists");
    if if_exists {
        parser.advance();
        parser.advance();
    }
    let mut routines = Vec::new();
    loop {
        routines.push(reference(&mut parser)?);
        if !parser.eat(",") {
            break;
        }
    }
    if parser.next_is("cascade") {
        let error = SqlError::unsupported("CASCADE").with_hint("Nothing depends on a routine; leave it out.");
        return Err(error.with_position(parser.peek().span.position(parser.source)));
    }
    parser.eat("restrict");
    end(&mut parser)?;
    let text = parser.source.to_owned();
    Ok(RoutineStatement::Drop(Removal { text, kind, if_exists, routines }))
}

/// Takes what follows EXPLAIN FUNCTION or the like.
pub(super) fn explain(
    mut parser: Parser<'_>,
    kind: Option<RoutineKind>,
) -> Result<RoutineStatement, SqlError> {
    let routine = reference(&mut parser)?;
    end(&mut parser)?;
    let text = parser.source.to_owned();
    Ok(RoutineStatement::Explain(Explanation { text, kind, routine }))
}

/// Takes a routine's name, with the types of its parameters if they are written.
fn reference(parser: &mut Parser<'_>) -> Result<RoutineReference, SqlError> {
    let name = routine_name(parser)?;
    let parameters = match parser.next_is("(") {
        true => {
            let all = parameters(parser)?;
            Some(all.into_iter().filter(|p| p.mode.is_in()).map(|p| p.ty).collect())
        }
        false => None,
    };
    Ok(RoutineReference { name, parameters })
}

/// Takes what follows CREATE FUNCTION or CREATE PROCEDURE.
pub(super) fn create(
    mut parser: Parser<'_>,
    kind: RoutineKind,
    replace: bool,
) -> Result<RoutineStatement, SqlError> {
    let name = routine_name(&mut parser)?;
    if !parser.next_is("(") {
        return Err(parser.unexpected(parser.peek()));
    }
    let parameters = parameters(&mut parser)?;
    let returns = match parser.eat("returns") {
        true => Some(returns(&mut parser)?),
        false => None,
    };
    if let Some(returns) = &returns
        && kind == RoutineKind::Procedure
    {
        let span = match returns {
            Returns::Type { ty, .. } => ty.span,
            Returns::Table(columns) => columns.first().map_or(name.name.span, |(name, _)| name.span),
        };
        let error = parser.syntax(span, "syntax error at or near \"RETURNS\"");
        return Err(error.with_hint("A procedure gives values back through OUT and INOUT parameters."));
    }
    check_parameters(&parser, kind, &parameters, returns.as_ref())?;
    let clauses = clauses::read(&mut parser)?;
    end(&mut parser)?;
    let has_out = parameters.iter().any(|parameter| parameter.mode.is_out());
    if kind == RoutineKind::Function && returns.is_none() && !has_out {
        let error = SqlError::new(INVALID_FUNCTION_DEFINITION, "function result type must be specified");
        return Err(error.with_position(name.name.span.position(parser.source)));
    }
    let (language, body) = clauses.finish(&parser)?;
    Ok(RoutineStatement::Create(Box::new(Definition {
        text: parser.source.to_owned(),
        kind,
        replace,
        name,
        parameters,
        returns,
        language,
        body,
        volatility: clauses.volatility.unwrap_or_default(),
        strict: clauses.strict.unwrap_or_default(),
    })))
}

/// Takes a name with or without schema.
fn routine_name(parser: &mut Parser<'_>) -> Result<RoutineName, SqlError> {
    let first = parser.name()?;
    match parser.eat(".") {
        true => Ok(RoutineName { schema: Some(first), name: parser.name()? }),
        false => Ok(RoutineName { schema: None, name: first }),
    }
}

/// Takes the parameters with their parentheses.
fn parameters(parser: &mut Parser<'_>) -> Result<Vec<Parameter>, SqlError> {
    parser.expect("(")?;
    let mut all = Vec::new();
    if parser.eat(")") {
        return Ok(all);
    }
    loop {
        all.push(parameter(parser)?);
        if parser.eat(")") {
            return Ok(all);
        }
        parser.expect(",")?;
    }
}

/// Takes the word for a parameter's way.
fn mode(parser: &mut Parser<'_>) -> Result<Option<Mode>, SqlError> {
    let token = parser.peek();
    if parser.eat("in") {
        // IN OUT is INOUT.
        return Ok(Some(if parser.eat("out") { Mode::InOut } else { Mode::In }));
    }
    if parser.eat("inout") {
        return Ok(Some(Mode::InOut));
    }
    if parser.next_is("variadic") {
        let error = SqlError::unsupported("VARIADIC").with_hint("Take an array as the parameter.");
        return Err(error.with_position(token.span.position(parser.source)));
    }
    // A parameter may be called "out".
    Ok(parser.eat("out").then_some(Mode::Out))
}

fn parameter(parser: &mut Parser<'_>) -> Result<Parameter, SqlError> {
    let before = mode(parser)?;
    let end = type_end(parser, &[",", ")", "default", "=", ":="])?;
    let mut name = None;
    // A word before the type is the name, if what follows still is a type.
    if end > parser.at + 1 && parser.is_name(parser.peek()) && !continues_type(parser, parser.at, end) {
        name = Some(parser.name()?);
    }
    let after = match before {
        None if name.is_some() => mode(parser)?,
        _ => None,
    };
    let ty = type_to(parser, end)?;
    let default = match parser.eat("default") || parser.eat("=") || parser.eat(":=") {
        true => Some(parser.expression(&[",", ")"])?),
        false => None,
    };
    Ok(Parameter { mode: before.or(after).unwrap_or(Mode::In), name, ty, default })
}

/// Whether the word at `at` and what follows are one type, rather than a name and a type.
fn continues_type(parser: &Parser<'_>, at: usize, end: usize) -> bool {
    let next = parser.token(at + 1);
    if [".", "(", "[", "%"].iter().any(|symbol| parser.is(next, symbol)) || parser.is(next, "array") {
        return true;
    }
    if parser.token(at).kind != TokenKind::Word {
        return false;
    }
    let (first, second) = (parser.keyword(parser.token(at)), parser.keyword(next));
    match (first.as_str(), second.as_str()) {
        ("double", "precision") | ("character" | "char" | "bit", "varying") => true,
        ("time" | "timestamp", "with" | "without") => true,
        ("interval", "year" | "month" | "day" | "hour" | "minute" | "second") => end == at + 2,
        ("national", "character" | "char") => true,
        _ => false,
    }
}

/// The token after a type that one of `stops`, or the end, follows.
fn type_end(parser: &Parser<'_>, stops: &[&str]) -> Result<usize, SqlError> {
    let mut depth = 0_usize;
    let mut at = parser.at;
    loop {
        let token = parser.token(at);
        // WITH of a time zone belongs to the type.
        let zoned = parser.is(token, "with") && parser.is(parser.token(at + 1), "time");
        let stops = depth == 0 && !zoned && stops.iter().any(|stop| parser.is(token, stop));
        if stops || token.kind == TokenKind::End {
            break;
        }
        match parser.text(token) {
            _ if matches!(token.kind, TokenKind::Broken(_)) => return Err(parser.unexpected(token)),
            "(" | "[" => depth += 1,
            ")" | "]" if depth > 0 => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    match at > parser.at {
        true => Ok(at),
        false => Err(parser.unexpected(parser.peek())),
    }
}

/// Takes the type up to token `end`.
fn type_to(parser: &mut Parser<'_>, end: usize) -> Result<TypeName, SqlError> {
    if parser.at >= end {
        return Err(parser.unexpected(parser.peek()));
    }
    if let Some(ty) = parser.type_of()? {
        return match parser.at == end {
            true => Ok(ty),
            false => Err(parser.unexpected(parser.peek())),
        };
    }
    let start = parser.peek();
    if end == parser.at + 1 && parser.next_is("record") {
        parser.advance();
        return Ok(TypeName { kind: TypeKind::Record, span: start.span });
    }
    let array = parser.array_start(end);
    let data_type = Box::new(parser.read(parser.at..array.unwrap_or(end), None, Fragment::data_type)?);
    let kind = match array {
        Some(array) => {
            parser.at = array;
            parser.array_suffix(end)?;
            TypeKind::Array(data_type)
        }
        None => TypeKind::Plain(data_type),
    };
    parser.at = end;
    Ok(TypeName { kind, span: parser.since(start.span) })
}

/// Takes what follows RETURNS.
fn returns(parser: &mut Parser<'_>) -> Result<Returns, SqlError> {
    if parser.eat("table") {
        parser.expect("(")?;
        let mut columns = Vec::new();
        loop {
            let name = parser.name()?;
            let end = type_end(parser, &[",", ")"])?;
            columns.push((name, type_to(parser, end)?));
            if parser.eat(")") {
                return Ok(Returns::Table(columns));
            }
            parser.expect(",")?;
        }
    }
    let setof = parser.eat("setof");
    let end = type_end(parser, &clauses::FIRST_WORDS)?;
    Ok(Returns::Type { ty: type_to(parser, end)?, setof })
}

/// What can be said of parameters without knowing types.
fn check_parameters(
    parser: &Parser<'_>,
    kind: RoutineKind,
    parameters: &[Parameter],
    returns: Option<&Returns>,
) -> Result<(), SqlError> {
    let invalid = |span: crate::parse::ast::Span, message: String| {
        let error = SqlError::new(INVALID_FUNCTION_DEFINITION, message);
        Err(error.with_position(span.position(parser.source)))
    };
    let mut defaults = false;
    for (n, parameter) in parameters.iter().enumerate() {
        if let Some(name) = &parameter.name
            && parameters[..n].iter().any(|other| clash(other, parameter))
        {
            return invalid(name.span, format!("parameter name \"{}\" used more than once", name.text));
        }
        if parameter.default.is_some() && !parameter.mode.is_in() {
            return invalid(parameter.ty.span, "only input parameters can have default values".to_owned());
        }
        if defaults && parameter.mode.is_in() && parameter.default.is_none() {
            let message = "input parameters after one with a default value must also have defaults";
            return invalid(parameter.ty.span, message.to_owned());
        }
        if defaults && kind == RoutineKind::Procedure && !parameter.mode.is_in() {
            let message = "procedure OUT parameters cannot appear after one with a default value";
            return invalid(parameter.ty.span, message.to_owned());
        }
        defaults |= parameter.default.is_some();
    }
    let Some(Returns::Table(columns)) = returns else { return Ok(()) };
    for (n, (name, _)) in columns.iter().enumerate() {
        let is_parameter =
            parameters.iter().any(|p| p.name.as_ref().is_some_and(|other| other.text == name.text));
        if is_parameter || columns[..n].iter().any(|(other, _)| other.text == name.text) {
            return invalid(name.span, format!("parameter name \"{}\" used more than once", name.text));
        }
    }
    match parameters.iter().find(|parameter| parameter.mode.is_out()) {
        Some(parameter) => {
            let message = "OUT and INOUT arguments aren't allowed in TABLE functions";
            Err(parser.error(parameter.ty.span, SqlState::SYNTAX_ERROR, message))
        }
        None => Ok(()),
    }
}

/// Whether two parameters have one name.
fn clash(a: &Parameter, b: &Parameter) -> bool {
    let text = |name: &Option<Name>| name.as_ref().map(|name| name.text.clone());
    a.name.is_some() && text(&a.name) == text(&b.name)
}
