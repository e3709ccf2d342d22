//! What an expression is before the routine runs: an argument, a constant, or something to be computed.

use std::collections::{BTreeMap, BTreeSet};

use albireo_base::{SqlError, SqlState, Value};

use super::Key;
use super::part::{Part, each_part};
use crate::Stop;
use crate::body::{Code, Routine};
use crate::datum::Datum;
use crate::expr::{self, ColumnRef, Expr, ExprKind, Frame, RoutineId, VariableId};
use crate::plan::SelectPlan;
use crate::types::{Scalar, Type};

/// What the variables of a routine are that nothing is assigned to.
#[derive(Default)]
pub(super) struct Sources {
    of: BTreeMap<VariableId, Key>,
}

/// The variables of what comes in, in the order of the arguments of a call.
pub(super) fn inputs(routine: &Routine) -> Vec<VariableId> {
    match routine.code {
        // Only what comes in has a number in a body in SQL.
        Code::Queries(..) => routine.parameters.clone(),
        Code::Block(_) => {
            let all = routine.signature.parameters.iter().zip(&routine.parameters);
            all.filter(|(formal, _)| formal.mode.is_in()).map(|(_, id)| *id).collect()
        }
    }
}

impl Sources {
    /// Those of a routine: its arguments, and variables that begin as one and stay it.
    pub(super) fn of(routine: &Routine) -> Self {
        let mut assigned = BTreeSet::new();
        let mut initial = Vec::new();
        each_part(routine, &mut |part, _| match part {
            Part::Assigned(id) => {
                assigned.insert(id);
            }
            Part::Initial(declared) => initial.push(declared),
            Part::Query(_) | Part::Expr(_) | Part::Call(_) => {}
        });
        let mut sources = Self::default();
        for (number, id) in inputs(routine).into_iter().enumerate() {
            if !assigned.contains(&id) {
                sources.of.insert(id, Key::Argument(number));
            }
        }
        for declared in initial {
            if let Some(assignment) = &declared.value
                && !assigned.contains(&declared.variable)
            {
                let key = sources.key(&assignment.value);
                sources.of.insert(declared.variable, key);
            }
        }
        sources
    }

    /// What an expression is.
    pub(super) fn key(&self, expr: &Expr) -> Key {
        if let ExprKind::Variable(id) = &plain(expr).kind {
            return self.of.get(id).cloned().unwrap_or(Key::Computed);
        }
        match constant(expr) {
            Some(Value::SmallInt(number)) => Key::Constant(Value::BigInt(number.into())),
            Some(Value::Integer(number)) => Key::Constant(Value::BigInt(number.into())),
            Some(value) => Key::Constant(value),
            None => Key::Computed,
        }
    }
}

/// An expression without the casts to types of the same kind around it.
pub(super) fn plain(expr: &Expr) -> &Expr {
    match &expr.kind {
        ExprKind::Cast(inner, ..) | ExprKind::Convert(inner, _) if same_kind(&inner.ty, &expr.ty) => {
            plain(inner)
        }
        _ => expr,
    }
}

fn same_kind(a: &Type, b: &Type) -> bool {
    let number = |scalar: Scalar| {
        matches!(scalar, Scalar::SmallInt | Scalar::Integer | Scalar::BigInt | Scalar::Numeric { .. })
    };
    let text = |scalar: Scalar| matches!(scalar, Scalar::Text | Scalar::Bpchar);
    match (a, b) {
        (Type::Scalar(a), Type::Scalar(b)) => a == b || (number(*a) && number(*b)) || (text(*a) && text(*b)),
        _ => false,
    }
}

/// The value of an expression that consists of literals, their casts and signs.
fn constant(expr: &Expr) -> Option<Value> {
    match value_of(expr) {
        Some(Datum::Value(value)) => Some(value),
        _ => None,
    }
}

/// The value of an expression that consists of literals, their casts, signs and arrays, if it has one.
pub fn value_of(expr: &Expr) -> Option<Datum> {
    let mut literal = true;
    expr.walk(&mut |part| {
        literal &= matches!(
            part.kind,
            ExprKind::Constant(_)
                | ExprKind::Cast(..)
                | ExprKind::Convert(..)
                | ExprKind::Unary(..)
                | ExprKind::Array(_)
        );
    });
    literal.then(|| expr::evaluate(expr, &mut Nowhere).ok())?
}

/// Where there are no variables, rows and routines.
struct Nowhere;

/// What no literal asks for.
fn nothing_here<T>() -> Result<T, Stop> {
    Err(SqlError::new(SqlState::INTERNAL_ERROR, "a literal has no parts").into())
}

static NOTHING: Datum = Datum::NULL;

impl Frame for Nowhere {
    fn variable(&self, _: VariableId) -> &Datum {
        &NOTHING
    }

    fn column(&mut self, _: ColumnRef) -> Result<Datum, Stop> {
        nothing_here()
    }

    fn now(&mut self) -> i64 {
        0
    }

    fn call(&mut self, _: RoutineId, _: Vec<Datum>) -> Result<Datum, Stop> {
        nothing_here()
    }

    fn query(&mut self, _: &SelectPlan, _: usize) -> Result<Vec<Vec<Datum>>, Stop> {
        nothing_here()
    }
}

/// An expression in words: what is short as SQL, anything else by its kind.
pub(super) fn shown(expr: &Expr, routine: Option<&Routine>, columns: &[(ColumnRef, String)]) -> String {
    let variable = |id: VariableId| {
        let named = routine.and_then(|routine| routine.variables.get(id.0 as usize));
        let number = routine.and_then(|routine| routine.parameters.iter().position(|other| *other == id));
        match (named.filter(|variable| !variable.name.is_empty()), number) {
            (Some(variable), _) => variable.name.clone(),
            (None, Some(number)) => format!("${}", number + 1),
            (None, None) => "a variable".to_owned(),
        }
    };
    let plain = plain(expr);
    match &plain.kind {
        ExprKind::Variable(id) => variable(*id),
        ExprKind::Column(column) => match columns.iter().find(|(known, _)| known == column) {
            Some((_, name)) => name.clone(),
            None => "a column of the query around it".to_owned(),
        },
        ExprKind::Field(row, field) => match (&row.kind, &row.ty) {
            (ExprKind::Variable(id), Type::Row(ty)) => {
                let name = ty.fields.get(*field).map_or("?", |(name, _)| name.as_str());
                format!("{}.{name}", variable(*id))
            }
            _ => "a field".to_owned(),
        },
        ExprKind::Element(array, subscript) => {
            let (array, subscript) = (shown(array, routine, columns), shown(subscript, routine, columns));
            format!("{array}[{subscript}]")
        }
        ExprKind::Call(..) => "the result of a routine".to_owned(),
        ExprKind::Subquery(_) => "the result of a query".to_owned(),
        _ => match constant(plain) {
            Some(value) => literal(&value),
            None => "an expression".to_owned(),
        },
    }
}

/// A value as a literal.
pub(super) fn literal(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
        other => other.to_string(),
    }
}
