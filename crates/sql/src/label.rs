//! What PostgreSQL calls an output column that has no alias (`FigureColname` in its parser).

use sqlparser::ast::{
    AccessExpr, ArrayElemTypeDef, CastKind, DataType, Expr, ObjectName, SelectItem, SetExpr, TimezoneInfo,
    TrimWhereField,
};

use crate::names;

/// The name when nothing better is to be had.
const ANONYMOUS: &str = "?column?";

/// The name of an output column that is `expr` and has no alias.
pub fn column_label(expr: &Expr) -> String {
    figure(expr).map_or_else(|| ANONYMOUS.to_owned(), |label| label.name)
}

/// A name; a weak one gives way to that of a cast around it.
struct Label {
    name: String,
    strong: bool,
}

fn strong(name: impl Into<String>) -> Option<Label> {
    Some(Label { name: name.into(), strong: true })
}

fn weak(name: impl Into<String>) -> Option<Label> {
    Some(Label { name: name.into(), strong: false })
}

fn figure(expr: &Expr) -> Option<Label> {
    match expr {
        Expr::Identifier(ident) => strong(names::fold(ident)),
        Expr::CompoundIdentifier(parts) => strong(names::fold(parts.last()?)),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => figure(inner),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let field = access_chain.iter().rev().find_map(|step| match step {
                AccessExpr::Dot(Expr::Identifier(field)) => Some(field),
                _ => None,
            });
            match field {
                Some(field) => strong(names::fold(field)),
                None => figure(root),
            }
        }
        Expr::Function(function) => strong(last_name(&function.name)),
        Expr::Cast {
            expr,
            data_type,
            kind: CastKind::Cast | CastKind::DoubleColon | CastKind::TryCast,
            ..
        } => match figure(expr) {
            Some(label) if label.strong => Some(label),
            _ => weak(type_name(data_type)),
        },
        Expr::TypedString(typed) => weak(type_name(&typed.data_type)),
        Expr::Interval(_) => weak("interval"),
        Expr::Case { else_result, .. } => match else_result.as_deref().and_then(figure) {
            Some(label) if label.strong => Some(label),
            _ => weak("case"),
        },
        Expr::Subquery(query) => figure_query(&query.body),
        Expr::Exists { negated: false, .. } => strong("exists"),
        Expr::Array(_) => strong("array"),
        Expr::Tuple(_) => strong("row"),
        Expr::Extract { .. } => strong("extract"),
        Expr::Substring { shorthand, .. } => strong(if *shorthand { "substr" } else { "substring" }),
        Expr::Position { .. } => strong("position"),
        Expr::Overlay { .. } => strong("overlay"),
        Expr::Ceil { .. } => strong("ceil"),
        Expr::Floor { .. } => strong("floor"),
        Expr::AtTimeZone { .. } => strong("timezone"),
        Expr::Trim { trim_where, .. } => strong(match trim_where {
            None | Some(TrimWhereField::Both) => "btrim",
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
        }),
        Expr::IsNormalized { .. } => strong("is_normalized"),
        _ => None,
    }
}

fn last_name(name: &ObjectName) -> String {
    name.0.last().and_then(|part| part.as_ident()).map_or_else(|| name.to_string(), names::fold)
}

/// The name of a scalar subquery: that of its column.
fn figure_query(body: &SetExpr) -> Option<Label> {
    match body {
        SetExpr::Select(select) => match select.projection.first()? {
            SelectItem::UnnamedExpr(expr) => match figure(expr) {
                Some(label) => strong(label.name),
                None => strong(ANONYMOUS),
            },
            SelectItem::ExprWithAlias { alias, .. } => strong(names::fold(alias)),
            _ => None,
        },
        SetExpr::Query(inner) => figure_query(&inner.body),
        SetExpr::SetOperation { left, .. } => match left.as_ref() {
            SetExpr::Select(_) | SetExpr::Query(_) => figure_query(left),
            _ => None,
        },
        SetExpr::Values(_) => strong("column1"),
        _ => None,
    }
}

/// PostgreSQL's internal name of a type.
fn type_name(ty: &DataType) -> String {
    let name = match ty {
        DataType::Bool | DataType::Boolean => "bool",
        DataType::SmallInt(_) | DataType::Int2(_) => "int2",
        DataType::Int(_) | DataType::Integer(_) | DataType::Int4(_) => "int4",
        DataType::BigInt(_) | DataType::Int8(_) => "int8",
        DataType::Real | DataType::Float4 => "float4",
        DataType::Float(_) | DataType::Float8 | DataType::DoublePrecision | DataType::Double(_) => "float8",
        DataType::Numeric(_) | DataType::Decimal(_) | DataType::Dec(_) => "numeric",
        DataType::Char(_) | DataType::Character(_) => "bpchar",
        DataType::Varchar(_) | DataType::CharacterVarying(_) | DataType::CharVarying(_) => "varchar",
        DataType::Timestamp(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => "timestamptz",
        DataType::Timestamp(..) => "timestamp",
        DataType::Time(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => "timetz",
        DataType::Time(..) => "time",
        DataType::Interval { .. } => "interval",
        DataType::Array(
            ArrayElemTypeDef::SquareBracket(inner, _)
            | ArrayElemTypeDef::AngleBracket(inner)
            | ArrayElemTypeDef::Parenthesis(inner),
        ) => return type_name(inner),
        DataType::Custom(name, _) => return last_name(name),
        other => return other.to_string().to_lowercase(),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse_expr;

    #[test]
    fn output_column_is_named_as_postgresql_does() {
        let cases = [
            ("id", "id"),
            ("customer.name", "name"),
            ("(name)", "name"),
            ("id + 1", "?column?"),
            ("'x'", "?column?"),
            ("true", "?column?"),
            ("-id", "?column?"),
            ("id = 1", "?column?"),
            ("name is null", "?column?"),
            ("count(*)", "count"),
            ("SUM(balance)", "sum"),
            ("sum(balance) over (order by id)", "sum"),
            ("coalesce(name, 'x')", "coalesce"),
            ("nullif(name, 'x')", "nullif"),
            ("greatest(1, 2)", "greatest"),
            ("1::int", "int4"),
            ("id::text", "id"),
            ("'1'::varchar(3)", "varchar"),
            ("cast('1' as double precision)", "float8"),
            ("(1 + 1)::numeric(4,1)", "numeric"),
            ("count(*)::int", "count"),
            ("date '2024-01-05'", "date"),
            ("interval '1 day'", "interval"),
            ("case when id > 1 then 1 end", "case"),
            ("case when id > 1 then 1 else id end", "id"),
            ("case when id > 1 then 1 else 2 end", "case"),
            ("case when id > 1 then 1 else 2::int end", "case"),
            ("(select max(id) from orders)", "max"),
            ("(select max(id) as most from orders)", "most"),
            ("(select 1)", "?column?"),
            ("exists (select 1)", "exists"),
            ("array[1, 2]", "array"),
            ("extract(year from now())", "extract"),
            ("substring(name from 1 for 2)", "substring"),
            ("position('a' in name)", "position"),
            ("trim(name)", "btrim"),
            ("trim(leading ' ' from name)", "ltrim"),
            ("current_date", "current_date"),
            ("name collate \"C\"", "name"),
            ("now() at time zone 'UTC'", "timezone"),
            ("floor(balance)", "floor"),
        ];
        for (expr, expected) in cases {
            assert_eq!(column_label(&parse_expr(expr).unwrap()), expected, "{expr}");
        }
    }
}
