//! What a variable, a parameter or a result column can hold, from the name of its type.

use std::sync::Arc;

use albireo_base::{SqlError, SqlState, SqlType, Value};
use albireo_sql::names::{QualifiedName, fold};
use albireo_sql::source::Source;
use albireo_sql::{Catalog, TableDef, ast};

use crate::datum::Datum;
use crate::expr::{self, CastKind, Expr, ExprKind};
use crate::parse::ast::{Name, TypeKind, TypeName};
use crate::types::{RowType, Scalar, Type};

/// A type with what is done to values that are stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// A type of a column, with its modifier.
    Sql(SqlType),
    /// NUMERIC without digits, or INTERVAL: a value is kept as it is.
    Plain(Scalar),
    /// An array of such elements.
    Array(Box<Place>),
    /// A row.
    Row(Arc<RowPlace>),
    /// Nothing.
    Void,
}

/// The fields of a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowPlace {
    /// Names and types.
    pub ty: Arc<RowType>,
    /// What each can hold.
    pub fields: Vec<Place>,
}

impl Place {
    /// The type of its values in expressions.
    pub fn ty(&self) -> Type {
        match self {
            Self::Sql(ty) => Type::Scalar(Scalar::of(*ty)),
            Self::Plain(scalar) => Type::Scalar(*scalar),
            Self::Array(element) => Type::Array(element.scalar().unwrap_or(Scalar::Text)),
            Self::Row(row) => Type::Row(Arc::clone(&row.ty)),
            Self::Void => Type::Void,
        }
    }

    /// Its type, if it is one value.
    pub fn scalar(&self) -> Option<Scalar> {
        match self {
            Self::Sql(ty) => Some(Scalar::of(*ty)),
            Self::Plain(scalar) => Some(*scalar),
            _ => None,
        }
    }

    /// For values of a type without modifier.
    pub fn of_scalar(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Unknown | Scalar::Text => Self::Sql(SqlType::Text),
            Scalar::Bool => Self::Sql(SqlType::Bool),
            Scalar::SmallInt => Self::Sql(SqlType::SmallInt),
            Scalar::Integer => Self::Sql(SqlType::Integer),
            Scalar::BigInt => Self::Sql(SqlType::BigInt),
            Scalar::Real => Self::Sql(SqlType::Real),
            Scalar::Double => Self::Sql(SqlType::Double),
            Scalar::Bpchar => Self::Plain(Scalar::Bpchar),
            Scalar::Bytea => Self::Sql(SqlType::Bytea),
            Scalar::Date => Self::Sql(SqlType::Date),
            Scalar::Time => Self::Sql(SqlType::Time),
            Scalar::Timestamp => Self::Sql(SqlType::Timestamp),
            Scalar::TimestampTz => Self::Sql(SqlType::TimestampTz),
            Scalar::Uuid => Self::Sql(SqlType::Uuid),
            Scalar::Numeric { .. } => Self::Plain(Scalar::Numeric { scale: None }),
            Scalar::Interval => Self::Plain(Scalar::Interval),
        }
    }

    /// For values of a type.
    pub fn of(ty: &Type) -> Self {
        match ty {
            Type::Scalar(scalar) => Self::of_scalar(*scalar),
            Type::Array(element) => Self::Array(Box::new(Self::of_scalar(*element))),
            Type::Row(row) => Self::Row(Arc::new(RowPlace::of(row))),
            Type::Void => Self::Void,
        }
    }

    /// The same without lengths and digits, which parameters and results do not have.
    #[must_use]
    pub fn stripped(self) -> Self {
        match self {
            Self::Sql(SqlType::Char(_)) => Self::Plain(Scalar::Bpchar),
            Self::Sql(SqlType::Varchar(_)) => Self::Sql(SqlType::Text),
            Self::Sql(SqlType::Decimal { .. }) => Self::Plain(Scalar::Numeric { scale: None }),
            Self::Array(element) => Self::Array(Box::new(element.stripped())),
            other => other,
        }
    }

    /// What a variable holds before anything is assigned to it.
    pub fn initial(&self) -> Datum {
        match self {
            Self::Row(row) => Datum::Row(row.fields.iter().map(|_| Datum::NULL).collect()),
            _ => Datum::NULL,
        }
    }
}

impl RowPlace {
    /// For rows of a type.
    pub fn of(ty: &Arc<RowType>) -> Self {
        let fields = ty.fields.iter().map(|(_, scalar)| Place::of_scalar(*scalar)).collect();
        Self { ty: Arc::clone(ty), fields }
    }

    /// For rows of a table.
    pub fn of_table(table: &TableDef) -> Self {
        let fields = table.columns.iter().map(|c| (c.name.clone(), Scalar::of(c.ty))).collect();
        let places = table.columns.iter().map(|c| Place::Sql(c.ty)).collect();
        Self { ty: Arc::new(RowType { fields }), fields: places }
    }

    /// For named places. A field that is no scalar has no type an expression could give it.
    pub fn of_columns(columns: &[(String, Place)]) -> Self {
        let ty = |place: &Place| place.scalar().unwrap_or(Scalar::Unknown);
        let fields = columns.iter().map(|(name, place)| (name.clone(), ty(place))).collect();
        let places = columns.iter().map(|(_, place)| place.clone()).collect();
        Self { ty: Arc::new(RowType { fields }), fields: places }
    }

    /// Which field has the name.
    pub fn field(&self, name: &str) -> Option<usize> {
        self.ty.fields.iter().position(|(field, _)| field == name)
    }
}

/// What a type's name means.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Named {
    /// A type.
    Place(Place),
    /// RECORD.
    Record,
}

/// Where types' names are looked up.
pub struct Types<'a> {
    /// The tables.
    pub catalog: &'a Catalog,
    /// The text that positions count in.
    pub text: &'a str,
}

impl Types<'_> {
    /// The meaning of a type's name; `variable` is what `name%TYPE` copies, where there are variables.
    ///
    /// # Errors
    /// 42704, 42P01, 42601 for a column that does not exist, 0A000; with position.
    pub fn resolve(
        &self,
        ty: &TypeName,
        variable: &mut dyn FnMut(&[Name]) -> Option<Named>,
    ) -> Result<Named, SqlError> {
        let place = match &ty.kind {
            TypeKind::Record => return Ok(Named::Record),
            TypeKind::Plain(data) => self.plain(data),
            TypeKind::Array(data) => self.plain(data).and_then(|element| match element.scalar() {
                Some(_) => Ok(Place::Array(Box::new(element))),
                None => Err(SqlError::unsupported("an array of rows")
                    .with_hint("Use an array for each field, or a table.")),
            }),
            TypeKind::RowOf(names) => self.row_of(names),
            TypeKind::Of(names) => match variable(names) {
                Some(named) => return Ok(named),
                None => self.column_of(names),
            },
        };
        place.map(Named::Place).map_err(|error| match error.position() {
            Some(_) => error,
            None => error.with_position(ty.span.position(self.text)),
        })
    }

    fn plain(&self, data: &ast::DataType) -> Result<Place, SqlError> {
        use ast::{DataType, ExactNumberInfo};
        match data {
            DataType::Interval { fields: None, precision: None } => Ok(Place::Plain(Scalar::Interval)),
            DataType::Numeric(ExactNumberInfo::None)
            | DataType::Decimal(ExactNumberInfo::None)
            | DataType::Dec(ExactNumberInfo::None) => Ok(Place::Plain(Scalar::Numeric { scale: None })),
            DataType::Custom(name, modifiers) if modifiers.is_empty() => self.custom(data, name),
            _ => albireo_sql::types::sql_type(data).map(Place::Sql),
        }
    }

    /// A name that may be a table's.
    fn custom(&self, data: &ast::DataType, name: &ast::ObjectName) -> Result<Place, SqlError> {
        let parts: Vec<String> = name.0.iter().filter_map(|part| part.as_ident().map(fold)).collect();
        let (schema, last) = match parts.as_slice() {
            [name] => (None, name.as_str()),
            [schema, name] => (Some(schema.as_str()), name.as_str()),
            _ => return albireo_sql::types::sql_type(data).map(Place::Sql),
        };
        match (schema, last) {
            (None | Some("pg_catalog"), "void") => return Ok(Place::Void),
            (None | Some("pg_catalog"), "trigger" | "event_trigger") => {
                return Err(SqlError::unsupported("a trigger function"));
            }
            (None, "anyelement" | "anyarray" | "anynonarray" | "anycompatible") => {
                return Err(SqlError::unsupported("a polymorphic function")
                    .with_hint("Define one function for each type."));
            }
            _ => {}
        }
        match self.catalog.table_named(schema, last) {
            Some(table) => Ok(Place::Row(Arc::new(RowPlace::of_table(table)))),
            None => albireo_sql::types::sql_type(data).map(Place::Sql),
        }
    }

    fn table(&self, names: &[Name]) -> Result<&TableDef, SqlError> {
        let (schema, name) = match names {
            [name] => (None, name),
            [schema, name] => (Some(schema.text.as_str()), name),
            _ => {
                let message = "improper qualified name (too many dotted names)";
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
        };
        if let Some(table) = self.catalog.table_named(schema, &name.text) {
            return Ok(table);
        }
        let span = ast::Ident::new("").span;
        let wanted = QualifiedName { schema: schema.map(str::to_owned), name: name.text.clone(), span };
        self.catalog.resolve_table(&wanted, Source::new(self.text)).map(|table| table.as_ref())
    }

    fn row_of(&self, names: &[Name]) -> Result<Place, SqlError> {
        self.table(names).map(|table| Place::Row(Arc::new(RowPlace::of_table(table))))
    }

    fn column_of(&self, names: &[Name]) -> Result<Place, SqlError> {
        let Some((column, table)) = names.split_last().filter(|(_, table)| !table.is_empty()) else {
            let name = names.first().map_or("", |name| name.text.as_str());
            let message = format!("variable \"{name}\" does not exist");
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        };
        let Ok(table) = self.table(table) else {
            let written: Vec<&str> = names.iter().map(|name| name.text.as_str()).collect();
            let message = format!("relation \"{}\" does not exist", written[..written.len() - 1].join("."));
            return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
        };
        match table.columns.iter().find(|known| known.name == column.text) {
            Some(column) => Ok(Place::Sql(column.ty)),
            None => {
                let message =
                    format!("column \"{}\" of relation \"{}\" does not exist", column.text, table.name);
                let error = SqlError::new(SqlState::SYNTAX_ERROR, message);
                let known = table.columns.iter().map(|column| column.name.as_str());
                Err(match albireo_sql::names::closest(&column.text, known) {
                    Some(meant) => error.with_hint(format!("Perhaps you meant the column \"{meant}\".")),
                    None => error,
                })
            }
        }
    }
}

/// Casts a value to what a place holds.
///
/// # Errors
/// 42804 or 42846 if there is no such cast.
pub fn fit(expr: Expr, place: &Place, kind: CastKind) -> Result<Expr, SqlError> {
    match place {
        Place::Sql(ty) => expr::cast(expr, *ty, kind),
        Place::Plain(scalar) => expr::cast_to(expr, &Type::Scalar(*scalar), None, kind),
        Place::Array(element) => {
            let modifier = match **element {
                Place::Sql(ty @ (SqlType::Decimal { .. } | SqlType::Char(_) | SqlType::Varchar(_))) => {
                    Some(ty)
                }
                _ => None,
            };
            expr::cast_to(expr, &place.ty(), modifier, kind)
        }
        Place::Row(row) => match &expr.ty {
            Type::Row(from) if same_fields(from, &row.ty) => Ok(expr),
            Type::Scalar(_)
                if expr::is_open(&expr)
                    || matches!(expr.kind, ExprKind::Constant(Datum::Value(Value::Null))) =>
            {
                Ok(Expr { kind: expr.kind, ty: place.ty() })
            }
            other => {
                let message = format!("a value of type {other} cannot become this row");
                Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message))
            }
        },
        Place::Void => {
            Err(SqlError::new(SqlState::DATATYPE_MISMATCH, "nothing can be assigned to type void"))
        }
    }
}

/// Whether two rows have fields of the same types.
fn same_fields(a: &RowType, b: &RowType) -> bool {
    a.fields.len() == b.fields.len() && a.fields.iter().zip(&b.fields).all(|(a, b)| a.1.same(b.1))
}
