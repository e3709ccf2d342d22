//! Forms with a syntax of their own: CASE, subqueries, arrays, EXTRACT, SUBSTRING and such.

use std::cmp::Ordering;
use std::sync::Arc;

use albireo_base::{SqlError, SqlState, Value};
use albireo_sql::ast;

use super::literal::constant;
use super::predicate::negate;
use super::{Binder, Result, syntax};
use crate::expr::convert::implicit_to;
use crate::expr::operator::{Comparison, comparable, compare};
use crate::expr::unify::{common, common_type, to_bool};
use crate::expr::{Expr, ExprKind, Subquery, SubqueryKind};
use crate::types::{Scalar, Type};

impl Binder<'_> {
    pub(super) fn special(&mut self, expr: &ast::Expr) -> Result<Expr> {
        use ast::Expr as E;
        match expr {
            E::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref())
            }
            E::Function(function) => self.plain_call(function),
            E::Subquery(query) => self.scalar_subquery(query),
            E::Exists { subquery, negated } => {
                let plan = self.names.query(subquery)?;
                let subquery = Subquery { kind: SubqueryKind::Exists, plan };
                Ok(negate(Expr::condition(ExprKind::Subquery(Arc::new(subquery))), *negated))
            }
            E::Array(array) => self.array(&array.elem),
            E::CompoundFieldAccess { root, access_chain } => self.access(root, access_chain),
            E::AtTimeZone { timestamp, time_zone } => self.at_time_zone(timestamp, time_zone),
            E::Extract { field, syntax: _, expr } => {
                let field = constant(Value::Text(field.to_string().to_lowercase()), Scalar::Text);
                let value = self.expr(expr)?;
                self.call_bound("extract", vec![field, value])
            }
            E::Ceil { expr, field } => self.rounding("ceil", expr, field),
            E::Floor { expr, field } => self.rounding("floor", expr, field),
            E::Position { expr, r#in } => {
                let (part, whole) = (self.expr(expr)?, self.expr(r#in)?);
                self.call_bound("position", vec![whole, part])
            }
            E::Substring { expr, substring_from, substring_for, .. } => {
                self.substring(expr, substring_from.as_deref(), substring_for.as_deref())
            }
            E::Trim { trim_where, trim_what, expr, trim_characters } => {
                self.trim(*trim_where, trim_what.as_deref(), expr, trim_characters.as_deref())
            }
            E::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let mut args = vec![self.expr(expr)?, self.expr(overlay_what)?, self.expr(overlay_from)?];
                if let Some(count) = overlay_for {
                    args.push(self.expr(count)?);
                }
                self.call_bound("overlay", args)
            }
            E::Collate { expr, collation } => self.collated(expr, collation),
            E::SimilarTo { negated, expr, pattern, escape_char } => {
                self.similar(expr, pattern, escape_char.as_ref(), *negated)
            }
            other => Err(SqlError::unsupported(format!("the expression {other}"))),
        }
    }

    /// A call; of no aggregate if it is one of a function that is no aggregate.
    fn plain_call(&mut self, function: &ast::Function) -> Result<Expr> {
        let Some(what) = aggregate_clause(function) else { return self.function(function) };
        if crate::query::is_special(function) {
            return self.function(function);
        }
        let mut plain = function.clone();
        plain.filter = None;
        plain.over = None;
        plain.within_group = Vec::new();
        if let ast::FunctionArguments::List(list) = &mut plain.args {
            list.duplicate_treatment = None;
            list.clauses = Vec::new();
            if what == "*" {
                list.args = Vec::new();
            }
        }
        self.function(&plain)?;
        let name = function.name.to_string();
        let message = match what {
            "*" => format!("{name}(*) specified, but {name} is not an aggregate function"),
            "OVER" => {
                format!("OVER specified, but {name} is not a window function nor an aggregate function")
            }
            what => format!("{what} specified, but {name} is not an aggregate function"),
        };
        Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
    }

    fn case(
        &mut self,
        operand: Option<&ast::Expr>,
        conditions: &[ast::CaseWhen],
        otherwise: Option<&ast::Expr>,
    ) -> Result<Expr> {
        let operand = operand.map(|operand| self.expr(operand)).transpose()?;
        let mut tests = Vec::with_capacity(conditions.len());
        let mut results = Vec::with_capacity(conditions.len() + 1);
        for branch in conditions {
            let test = self.expr(&branch.condition)?;
            tests.push(match operand {
                Some(_) => test,
                None => to_bool(test, "CASE/WHEN").map_err(|error| self.locate(error, &branch.condition))?,
            });
            results.push(self.expr(&branch.result)?);
        }
        // PostgreSQL looks at ELSE first.
        results.insert(0, otherwise.map_or_else(|| Ok(Expr::null()), |expr| self.expr(expr))?);
        let ty = common_type(&mut results, "CASE")?;
        let otherwise = Box::new(results.remove(0));
        let kind = match operand {
            None => ExprKind::Case(tests.into_iter().zip(results).collect(), otherwise),
            Some(operand) => {
                let (operand, values) = operands(operand, tests)?;
                ExprKind::CaseOf(Box::new(operand), values.into_iter().zip(results).collect(), otherwise)
            }
        };
        Ok(Expr { kind, ty })
    }

    fn scalar_subquery(&mut self, query: &ast::Query) -> Result<Expr> {
        let plan = self.names.query(query)?;
        let [(_, ty)] = plan.columns.as_slice() else {
            return Err(syntax("subquery must return only one column"));
        };
        let ty = ty.clone();
        let subquery = Subquery { kind: SubqueryKind::Scalar, plan };
        Ok(Expr { kind: ExprKind::Subquery(Arc::new(subquery)), ty })
    }

    /// A query of one row that a row of `width` values is compared with.
    pub(super) fn row_subquery(&mut self, width: usize, query: &ast::Query) -> Result<Expr> {
        let plan = self.names.query(query)?;
        if plan.columns.len() != width {
            let few = if plan.columns.len() < width { "few" } else { "many" };
            return Err(syntax(format!("subquery has too {few} columns")));
        }
        let plan = crate::query::as_row(plan)?;
        let ty = plan.columns[0].1.clone();
        let subquery = Subquery { kind: SubqueryKind::Scalar, plan };
        Ok(Expr { kind: ExprKind::Subquery(Arc::new(subquery)), ty })
    }

    /// `ARRAY(SELECT ...)`
    pub(in crate::expr) fn array_subquery(&mut self, query: &ast::Query) -> Result<Expr> {
        let plan = self.names.query(query)?;
        let [(_, ty)] = plan.columns.as_slice() else {
            return Err(syntax("subquery must return only one column"));
        };
        let Type::Scalar(element) = *ty else {
            return Err(SqlError::unsupported(format!("an array of {ty}")));
        };
        let subquery = Subquery { kind: SubqueryKind::Array, plan };
        Ok(Expr { kind: ExprKind::Subquery(Arc::new(subquery)), ty: Type::Array(element) })
    }

    pub(super) fn array(&mut self, items: &[ast::Expr]) -> Result<Expr> {
        if items.is_empty() {
            let message = "cannot determine type of empty array";
            return Err(SqlError::new(SqlState::INDETERMINATE_DATATYPE, message)
                .with_hint("Explicitly cast to the desired type, for example ARRAY[]::integer[]."));
        }
        let (items, ty) = self.unified(items, "ARRAY")?;
        match ty {
            Type::Scalar(element) => Ok(Expr { kind: ExprKind::Array(items), ty: Type::Array(element) }),
            other => Err(SqlError::unsupported(format!("an array of {other}"))),
        }
    }

    /// `a[i]`, `block.a[i]`, `(row).field`
    fn access(&mut self, root: &ast::Expr, chain: &[ast::AccessExpr]) -> Result<Expr> {
        let name = |step: &ast::AccessExpr| match step {
            ast::AccessExpr::Dot(ast::Expr::Identifier(name)) => Some(name.clone()),
            _ => None,
        };
        // Names with points between them are one name.
        let (mut value, chain) = match root {
            ast::Expr::Identifier(first) => {
                let more = chain.iter().map_while(name);
                let parts: Vec<ast::Ident> = std::iter::once(first.clone()).chain(more).collect();
                let value = self.names.name(&parts).map_err(|error| self.locate(error, root))?;
                (value, &chain[parts.len() - 1..])
            }
            _ => (self.expr(root)?, chain),
        };
        for step in chain {
            value = match step {
                ast::AccessExpr::Subscript(ast::Subscript::Index { index }) => {
                    let index = self.expr(index)?;
                    element(value, index)?
                }
                ast::AccessExpr::Subscript(ast::Subscript::Slice { .. }) => {
                    return Err(SqlError::unsupported("a slice of an array"));
                }
                ast::AccessExpr::Dot(ast::Expr::Identifier(name)) => {
                    field(value, &albireo_sql::names::fold(name))?
                }
                ast::AccessExpr::Dot(other) => {
                    return Err(SqlError::unsupported(format!("the field {other}")));
                }
            };
        }
        Ok(value)
    }

    /// Texts are compared by their bytes: collations that do so change nothing.
    fn collated(&mut self, inner: &ast::Expr, collation: &ast::ObjectName) -> Result<Expr> {
        let ident = collation.0.last().and_then(|part| part.as_ident());
        let name = ident.map(albireo_sql::names::fold).unwrap_or_default();
        if !["C", "POSIX", "ucs_basic", "default"].contains(&name.as_str()) {
            return Err(SqlError::unsupported(format!("collation \"{name}\""))
                .with_hint("Texts are compared by their bytes, which is collation \"C\"."));
        }
        let bound = self.expr(inner)?;
        match bound.ty {
            Type::Scalar(Scalar::Text | Scalar::Bpchar | Scalar::Unknown) => Ok(bound),
            ty => {
                let message = format!("collations are not supported by type {ty}");
                Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message))
            }
        }
    }

    fn at_time_zone(&mut self, moment: &ast::Expr, zone: &ast::Expr) -> Result<Expr> {
        let utc = match zone {
            ast::Expr::Value(value) => super::literal::text(&value.value).is_some_and(|zone| {
                ["utc", "gmt", "z", "zulu", "etc/utc", "etc/gmt"].contains(&zone.to_lowercase().as_str())
            }),
            _ => false,
        };
        if !utc {
            return Err(SqlError::unsupported("a time zone other than UTC")
                .with_hint("Times are kept in UTC; shift by an interval instead."));
        }
        let moment = self.expr(moment)?;
        match moment.ty {
            Type::Scalar(Scalar::Timestamp) => implicit_to(moment, Scalar::TimestampTz),
            Type::Scalar(Scalar::TimestampTz | Scalar::Date | Scalar::Unknown) => {
                let moment = implicit_to(moment, Scalar::TimestampTz)?;
                crate::expr::cast(moment, albireo_base::SqlType::Timestamp, crate::expr::CastKind::Explicit)
            }
            ty => {
                let message = format!("function pg_catalog.timezone(unknown, {ty}) does not exist");
                Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message))
            }
        }
    }

    fn rounding(&mut self, name: &str, expr: &ast::Expr, field: &ast::CeilFloorKind) -> Result<Expr> {
        match field {
            ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime) => {
                let value = self.expr(expr)?;
                self.call_bound(name, vec![value])
            }
            _ => Err(SqlError::unsupported(format!("{name} with a field or scale"))),
        }
    }

    fn substring(
        &mut self,
        expr: &ast::Expr,
        from: Option<&ast::Expr>,
        count: Option<&ast::Expr>,
    ) -> Result<Expr> {
        let mut args = vec![self.expr(expr)?];
        match (from, count) {
            (Some(from), _) => args.push(self.expr(from)?),
            (None, Some(_)) => args.push(constant(Value::Integer(1), Scalar::Integer)),
            (None, None) => {}
        }
        if let Some(count) = count {
            args.push(self.expr(count)?);
        }
        self.call_bound("substring", args)
    }

    fn trim(
        &mut self,
        side: Option<ast::TrimWhereField>,
        what: Option<&ast::Expr>,
        expr: &ast::Expr,
        characters: Option<&[ast::Expr]>,
    ) -> Result<Expr> {
        let name = match side {
            None | Some(ast::TrimWhereField::Both) => "btrim",
            Some(ast::TrimWhereField::Leading) => "ltrim",
            Some(ast::TrimWhereField::Trailing) => "rtrim",
        };
        let mut args = vec![self.expr(expr)?];
        for characters in what.into_iter().chain(characters.into_iter().flatten()) {
            args.push(self.expr(characters)?);
        }
        self.call_bound(name, args)
    }

    /// COALESCE, NULLIF, GREATEST and LEAST, which look like functions.
    pub(in crate::expr) fn conditional(&mut self, name: &str, mut args: Vec<Expr>) -> Result<Expr> {
        match name {
            "nullif" => {
                let (Some(other), Some(value), true) = (args.pop(), args.pop(), args.is_empty()) else {
                    return Err(syntax("NULLIF takes two arguments"));
                };
                null_if(value, other)
            }
            _ if args.is_empty() => Err(syntax(format!("{name} needs an argument"))),
            "coalesce" => {
                let ty = common_type(&mut args, "COALESCE")?;
                Ok(Expr { kind: ExprKind::Coalesce(args), ty })
            }
            _ => {
                let greatest = name == "greatest";
                let ty = common_type(&mut args, if greatest { "GREATEST" } else { "LEAST" })?;
                let wanted = if greatest { Ordering::Greater } else { Ordering::Less };
                Ok(Expr { kind: ExprKind::Extreme(wanted, args), ty })
            }
        }
    }
}

/// What a call has that only aggregates have.
fn aggregate_clause(function: &ast::Function) -> Option<&'static str> {
    if let ast::FunctionArguments::List(list) = &function.args {
        let star =
            |arg: &ast::FunctionArg| matches!(arg, ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Wildcard));
        let ordered =
            |clause: &ast::FunctionArgumentClause| matches!(clause, ast::FunctionArgumentClause::OrderBy(_));
        if list.args.iter().any(star) {
            return Some("*");
        }
        if list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct) {
            return Some("DISTINCT");
        }
        if list.clauses.iter().any(ordered) {
            return Some("ORDER BY");
        }
    }
    let clauses = [
        (!function.within_group.is_empty(), "WITHIN GROUP"),
        (function.filter.is_some(), "FILTER"),
        (function.over.is_some(), "OVER"),
    ];
    clauses.into_iter().find(|(present, _)| *present).map(|(_, what)| what)
}

/// The query in parentheses that an expression is.
pub(super) fn subquery(expr: &ast::Expr) -> Option<&ast::Query> {
    match expr {
        ast::Expr::Nested(inner) => subquery(inner),
        ast::Expr::Subquery(query) => Some(query),
        _ => None,
    }
}

/// The operand of CASE and the values it is compared with, in one type.
fn operands(operand: Expr, values: Vec<Expr>) -> Result<(Expr, Vec<Expr>)> {
    let scalar = |expr: &Expr| match expr.ty {
        Type::Scalar(ty) => Some(ty),
        _ => None,
    };
    let types: Option<Vec<Scalar>> = std::iter::once(&operand).chain(&values).map(scalar).collect();
    if types.is_some_and(|types| common(&types).is_none()) {
        // It says which of them has no operator.
        for value in values {
            compare(Comparison::Eq, operand.clone(), value)?;
        }
        return Err(SqlError::unsupported("CASE over values of these types"));
    }
    let mut all: Vec<Expr> = std::iter::once(operand).chain(values).collect();
    common_type(&mut all, "CASE")?;
    let operand = all.remove(0);
    Ok((operand, all))
}

fn null_if(value: Expr, other: Expr) -> Result<Expr> {
    let (left, right) = comparable("=", value.clone(), other)?;
    let unknown = value.ty == Type::Scalar(Scalar::Unknown);
    let value = if unknown { left.clone() } else { value };
    let (Type::Scalar(from), Type::Scalar(works)) = (&value.ty, &left.ty) else {
        let ty = value.ty.clone();
        return Ok(Expr { kind: ExprKind::NullIf(Box::new((value, right)), None), ty });
    };
    if from.same(*works) {
        let ty = value.ty.clone();
        return Ok(Expr { kind: ExprKind::NullIf(Box::new((value, right)), None), ty });
    }
    // The value that is given back is what the operator takes: promoted only if there is none for its
    // own type.
    let family = |ty: Scalar| match ty {
        Scalar::SmallInt | Scalar::Integer | Scalar::BigInt => 1,
        Scalar::Real | Scalar::Double => 2,
        Scalar::Date | Scalar::Timestamp | Scalar::TimestampTz => 3,
        _ => 0,
    };
    if family(*from) != 0 && family(*from) == family(*works) {
        let (ty, works) = (value.ty.clone(), *works);
        return Ok(Expr { kind: ExprKind::NullIf(Box::new((value, right)), Some(works)), ty });
    }
    let ty = left.ty.clone();
    Ok(Expr { kind: ExprKind::NullIf(Box::new((left, right)), None), ty })
}

/// `array[index]`
fn element(array: Expr, index: Expr) -> Result<Expr> {
    let Type::Array(item) = array.ty else {
        let message = format!("cannot subscript type {} because it does not support subscripting", array.ty);
        return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
    };
    let from = index.ty.clone();
    let index = crate::expr::cast(index, albireo_base::SqlType::Integer, crate::expr::CastKind::Assignment)
        .map_err(|_| {
        let message = format!("array subscript must have type integer, not {from}");
        SqlError::new(SqlState::DATATYPE_MISMATCH, message)
    })?;
    Ok(Expr::scalar(ExprKind::Element(Box::new(array), Box::new(index)), item))
}

/// `(row).name`
fn field(row: Expr, name: &str) -> Result<Expr> {
    let Type::Row(fields) = &row.ty else {
        let message =
            format!("column notation .{name} applied to type {}, which is not a composite type", row.ty);
        return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
    };
    let Some(n) = fields.fields.iter().position(|(field, _)| field == name) else {
        let message = format!("column \"{name}\" not found in data type record");
        return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
    };
    let ty = fields.fields[n].1;
    if let ExprKind::Row(items) = &row.kind {
        // Its type may be one that fields have no name for.
        return items.get(n).cloned().ok_or_else(crate::expr::convert::unexpected);
    }
    Ok(Expr::scalar(ExprKind::Field(Box::new(row), n), ty))
}
