//! What names mean in a body.

use albireo_base::{SqlError, SqlState};
use albireo_semantics::query::Files;
use albireo_sql::ast as tree;
use albireo_sql::names::fold;
use albireo_sql::source::Source;

use super::Binder;
use crate::body::place::Place;
use crate::body::resolve::{self, Resolved};
use crate::define::RoutineKind;
use crate::expr::{self, Actual, Expr, ExprKind, Names, RowsOf, VariableId, undefined};
use crate::parse::ast::{Span, VariableConflict};
use crate::plan::SelectPlan;
use crate::types::Type;

impl Binder<'_> {
    /// The variable that the first one or two names mean, and how many of them.
    pub(super) fn lookup(&self, names: &[String]) -> Option<(VariableId, usize)> {
        let first = names.first()?;
        if let Some(number) = first.strip_prefix('$').and_then(|number| number.parse::<usize>().ok()) {
            return Some((*self.parameters.get(number.checked_sub(1)?)?, 1));
        }
        self.scopes.iter().rev().find_map(|scope| {
            if let Some(id) = scope.names.get(first) {
                return Some((*id, 1));
            }
            let second = names.get(1).filter(|_| scope.label.as_ref() == Some(first))?;
            Some((*scope.names.get(second)?, 2))
        })
    }

    /// `"x" is not a known variable`.
    pub(super) fn unknown_variable(&self, span: Span) -> SqlError {
        let message = format!("\"{}\" is not a known variable", span.text(self.text));
        let error = self.error(span, SqlState::SYNTAX_ERROR, message);
        let known = self.scopes.iter().flat_map(|scope| scope.names.keys().map(String::as_str));
        let mut known: Vec<&str> = known.collect();
        known.sort_unstable();
        match albireo_sql::names::closest(span.text(self.text), known) {
            Some(meant) => error.with_hint(format!("Perhaps you meant the variable \"{meant}\".")),
            None => error,
        }
    }

    /// A variable, or a field of one, as a value; `None` if the names mean no variable.
    fn value(&mut self, names: &[String]) -> Result<Option<Expr>, SqlError> {
        let Some((id, used)) = self.lookup(names) else { return Ok(None) };
        if self.records.contains_key(&id) {
            self.read.push(id);
        }
        let whole = match self.place(id) {
            Place::Void => return Err(self.not_assigned(id)),
            place => Expr { kind: ExprKind::Variable(id), ty: place.ty() },
        };
        let field = match (&names[used..], self.place(id)) {
            ([], _) => return Ok(Some(whole)),
            ([field], Place::Row(row)) => match row.field(field) {
                Some(field) => (field, row.ty.fields[field].1),
                None => return Err(self.no_field(id, field)),
            },
            _ => return Ok(None),
        };
        let kind = ExprKind::Field(Box::new(whole), field.0);
        Ok(Some(Expr { kind, ty: Type::Scalar(field.1) }))
    }

    /// The error for a record that no query has said the columns of.
    pub(super) fn not_assigned(&mut self, id: VariableId) -> SqlError {
        if self.blurred.contains(&id) {
            return self.several_shapes(id);
        }
        self.wants_shapes = true;
        let name = &self.variables[id.0 as usize].name;
        let message = format!("record \"{name}\" is not assigned yet");
        SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
            .with_detail("The tuple structure of a not-yet-assigned record is indeterminate.")
    }

    /// The error for a field that a row does not have.
    pub(super) fn no_field(&self, id: VariableId, field: &str) -> SqlError {
        let name = &self.variables[id.0 as usize].name;
        let message = format!("record \"{name}\" has no field \"{field}\"");
        let error = SqlError::new(SqlState::UNDEFINED_COLUMN, message);
        let Place::Row(row) = self.place(id) else { return error };
        match albireo_sql::names::closest(field, row.ty.fields.iter().map(|(name, _)| name.as_str())) {
            Some(meant) => error.with_hint(format!("Perhaps you meant the field \"{meant}\".")),
            None => error,
        }
    }

    /// The routine a call means, with its arguments.
    pub(super) fn resolve(
        &self,
        function: &tree::Function,
        kind: RoutineKind,
        args: &[Expr],
    ) -> Result<Option<Resolved>, SqlError> {
        let source = Source::new(self.text);
        let actuals: Vec<Actual> = expr::actuals(function)?.into_iter().map(|(actual, _)| actual).collect();
        resolve::resolve(self.routines, &function.name, kind, &actuals, args, source)
    }
}

impl Names for Binder<'_> {
    fn name(&mut self, parts: &[tree::Ident]) -> Result<Expr, SqlError> {
        let names: Vec<String> = parts.iter().map(fold).collect();
        let source = Source::new(self.text);
        match self.value(&names) {
            Ok(Some(value)) => Ok(value),
            Ok(None) => Err(undefined(parts, source)),
            Err(error) => Err(parts.first().map_or(error.clone(), |first| source.locate(error, first.span))),
        }
    }

    fn parameter(&mut self, number: usize) -> Result<Expr, SqlError> {
        match self.value(&[format!("${number}")])? {
            Some(value) => Ok(value),
            None => {
                Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, format!("there is no parameter ${number}")))
            }
        }
    }

    fn call(&mut self, function: &tree::Function) -> Result<Option<Expr>, SqlError> {
        if self.routines.named(&resolve::name_of(&function.name)).is_empty() {
            return Ok(None);
        }
        let mut args = Vec::new();
        for (_, tree) in expr::actuals(function)? {
            args.push(expr::bind(tree, self)?);
        }
        self.routine(function, args)
    }

    fn has_routine(&mut self, name: &tree::ObjectName) -> bool {
        !self.routines.named(&resolve::name_of(name)).is_empty()
    }

    fn routine(&mut self, function: &tree::Function, args: Vec<Expr>) -> Result<Option<Expr>, SqlError> {
        let Some(resolved) = self.resolve(function, RoutineKind::Function, &args)? else { return Ok(None) };
        resolve::call(&resolved, args).map(Some)
    }

    fn rows_of(
        &mut self,
        name: &tree::ObjectName,
        actuals: &[Actual],
        args: Vec<Expr>,
    ) -> Result<Option<RowsOf>, SqlError> {
        let source = Source::new(self.text);
        let kind = RoutineKind::Function;
        let found = resolve::resolve(self.routines, name, kind, actuals, &args, source)?;
        found.map(|resolved| resolve::rows_of(&resolved, args)).transpose()
    }

    fn conflict(&mut self, parts: &[tree::Ident]) -> Result<Option<Expr>, SqlError> {
        let names: Vec<String> = parts.iter().map(fold).collect();
        if self.conflict == VariableConflict::UseColumn {
            return Ok(None);
        }
        let value = match self.value(&names) {
            Ok(Some(value)) => value,
            // A record of unknown shape is no candidate.
            Ok(None) | Err(_) => return Ok(None),
        };
        if self.conflict == VariableConflict::UseVariable {
            return Ok(Some(value));
        }
        let message = format!("column reference \"{}\" is ambiguous", names.join("."));
        let error = SqlError::new(SqlState::AMBIGUOUS_COLUMN, message)
            .with_detail("It could refer to either a PL/pgSQL variable or a table column.")
            .with_hint("Write the column with its table's name before it, or the variable with its block's.");
        let source = Source::new(self.text);
        Err(parts.first().map_or(error.clone(), |first| source.locate(error, first.span)))
    }

    fn query(&mut self, query: &tree::Query) -> Result<SelectPlan, SqlError> {
        crate::plan::bind_select(self.catalog, query, self)
    }

    fn files(&self) -> Option<&dyn Files> {
        self.files
    }

    fn source(&self) -> Source<'_> {
        Source::new(self.text)
    }
}
