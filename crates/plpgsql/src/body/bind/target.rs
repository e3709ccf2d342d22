//! What is assigned to, and how values get there.

use std::sync::Arc;

use albireo_base::{SqlError, SqlState, SqlType, Value};
use albireo_sql::ast as tree;
use albireo_sql::classify::changes_rows;

use super::Binder;
use crate::body::place::{self, Place, RowPlace};
use crate::body::tree::{Assignment, Fit, Query, RowFit, Sink, Target};
use crate::datum::Datum;
use crate::expr::{CastKind, Expr, ExprKind, VariableId};
use crate::parse::ast::{Accessor, Into, Span, VariableRef};
use crate::types::{RowType, Type};

/// How one value of type `from` is made to fit `to`, and to be put into `variable` for it.
impl Binder<'_> {
    /// How a value of type `from` is made to fit `to`.
    pub(super) fn fit(&mut self, from: &Type, to: &Place) -> Result<Fit, SqlError> {
        let scratch = self.scratch(from);
        let value = Expr { kind: ExprKind::Variable(scratch), ty: from.clone() };
        let fitted = place::fit(value, to, CastKind::Variable)?;
        if matches!(fitted.kind, ExprKind::Variable(same) if same == scratch) {
            self.variables.pop();
            return Ok(Fit::Same);
        }
        Ok(Fit::Cast(scratch, Box::new(fitted)))
    }

    /// What a target holds.
    pub(super) fn place_of(&self, target: &Target) -> Place {
        match target {
            Target::Variable(id) => self.place(*id).clone(),
            Target::Field(id, field) => match self.place(*id) {
                Place::Row(row) => row.fields.get(*field).cloned().unwrap_or(Place::Void),
                _ => Place::Void,
            },
            Target::Element(id, _) => match self.place(*id) {
                Place::Array(element) => (**element).clone(),
                _ => Place::Void,
            },
        }
    }

    /// The variable that is written to, unless it is constant.
    fn written(&self, id: VariableId, span: Span) -> Result<VariableId, SqlError> {
        let variable = &self.variables[id.0 as usize];
        match variable.constant {
            false => Ok(id),
            true => {
                let message = format!("variable \"{}\" is declared CONSTANT", variable.name);
                Err(self.error(span, SqlState(*b"22005"), message))
            }
        }
    }

    /// The target of a name; `Err` if there is no such variable, `Ok(None)` if something else is wrong.
    pub(super) fn variable_target(&mut self, wanted: &VariableRef) -> Result<Option<Target>, SqlError> {
        let names: Vec<String> = wanted.parts.iter().map(|part| part.text.clone()).collect();
        self.named_target(&names, wanted.span)
    }

    pub(super) fn named_target(&mut self, names: &[String], span: Span) -> Result<Option<Target>, SqlError> {
        let Some((id, used)) = self.lookup(names) else { return Err(self.unknown_variable(span)) };
        self.written(id, span)?;
        let found = match (&names[used..], self.place(id)) {
            ([], _) => Ok(Target::Variable(id)),
            ([_], Place::Void) => Err(self.not_assigned(id)),
            ([field], Place::Row(row)) => {
                row.field(field).map(|field| Target::Field(id, field)).ok_or_else(|| self.no_field(id, field))
            }
            _ => return Err(self.unknown_variable(span)),
        };
        if let Ok(Target::Field(id, field)) = found {
            self.field_written(id, field);
        }
        Ok(self.later(span, found))
    }

    /// The target of an assignment.
    pub(super) fn target(
        &mut self,
        wanted: &crate::parse::ast::Assignee,
    ) -> Result<Option<Target>, SqlError> {
        let mut names = vec![wanted.variable.text.clone()];
        let mut path = wanted.path.iter().peekable();
        while let Some(Accessor::Field(field)) = path.peek() {
            names.push(field.text.clone());
            path.next();
        }
        let Some(target) = self.named_target(&names, wanted.span)? else { return Ok(None) };
        let Some(Accessor::Subscript(subscript)) = path.next() else { return Ok(Some(target)) };
        let subscript = self.expr_to(subscript, &Place::Sql(SqlType::Integer));
        match (&target, self.place_of(&target), path.next()) {
            (Target::Variable(id), Place::Array(_), None) => {
                Ok(subscript.map(|subscript| Target::Element(*id, Box::new(subscript))))
            }
            (_, place, _) => {
                let message =
                    format!("cannot subscript type {} because it does not support subscripting", place.ty());
                let error = self.error(wanted.span, SqlState::DATATYPE_MISMATCH, message);
                self.later(wanted.span, Err::<(), _>(error));
                Ok(None)
            }
        }
    }

    /// An assignment of a bound value.
    pub(super) fn assign(&mut self, mut target: Target, value: Expr) -> Result<Assignment, SqlError> {
        let mut place = self.place_of(&target);
        if let (Target::Variable(id), Type::Row(row)) = (&target, &value.ty)
            && self.records.contains_key(id)
        {
            let shape = match &value.kind {
                ExprKind::Variable(other) => match self.place(*other) {
                    Place::Row(row) => Arc::clone(row),
                    _ => Arc::new(RowPlace::of(row)),
                },
                _ => Arc::new(RowPlace::of(row)),
            };
            target = Target::Variable(self.shape(*id, &shape));
            // It takes the row as it is.
            place = match self.place_of(&target) {
                Place::Row(row) => Place::Row(Arc::new(RowPlace::of(&row.ty))),
                other => other,
            };
        }
        if let (Target::Variable(id), Place::Void) = (&target, &place) {
            return Err(self.not_assigned(*id));
        }
        let (value, fit) = self.row_fit(value, &place)?;
        Ok(Assignment { target, value, fit })
    }

    /// How a value is made to fit; the value, which may have been cast itself.
    pub(super) fn row_fit(&mut self, value: Expr, place: &Place) -> Result<(Expr, RowFit), SqlError> {
        match (&value.ty, place) {
            (Type::Row(from), Place::Row(to)) => {
                let columns: Vec<Type> = from.fields.iter().map(|(_, ty)| Type::Scalar(*ty)).collect();
                let fits = self.row_fits(&columns, &to.fields)?;
                Ok((value, RowFit::Fields(fits)))
            }
            (Type::Row(_), _) => {
                let message = "cannot assign composite value to a scalar variable";
                Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message))
            }
            (_, Place::Row(_)) if matches!(value.kind, ExprKind::Constant(Datum::Value(Value::Null))) => {
                Ok((value, RowFit::Fields(Vec::new())))
            }
            (_, Place::Row(_)) => {
                let message = "cannot assign non-composite value to a record variable";
                Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message))
            }
            _ => {
                let value = place::fit(value, place, CastKind::Variable)?;
                Ok((value, RowFit::Value(Fit::Same)))
            }
        }
    }

    /// How columns are made to fit the fields of a row; fields beyond the columns are left out.
    pub(super) fn row_fits(&mut self, columns: &[Type], fields: &[Place]) -> Result<Vec<Fit>, SqlError> {
        columns.iter().zip(fields).map(|(from, to)| self.fit(from, to)).collect()
    }

    /// The targets of INTO or FOR, before the columns are known.
    pub(super) fn targets(&mut self, wanted: &[VariableRef]) -> Result<Option<Vec<Target>>, SqlError> {
        let mut targets = Vec::new();
        for wanted in wanted {
            targets.push(self.variable_target(wanted)?);
        }
        let targets: Option<Vec<Target>> = targets.into_iter().collect();
        let Some(targets) = targets else { return Ok(None) };
        if targets.len() > 1 {
            for (target, wanted) in targets.iter().zip(wanted) {
                let is_record = matches!(target, Target::Variable(id) if self.records.contains_key(id));
                if is_record || matches!(self.place_of(target), Place::Row(_)) {
                    let message = format!("\"{}\" is not a scalar variable", wanted.span.text(self.text));
                    return Err(self.error(wanted.span, SqlState::SYNTAX_ERROR, message));
                }
            }
        }
        Ok(Some(targets))
    }

    /// How rows of these columns get to the targets.
    pub(super) fn sink(
        &mut self,
        targets: Vec<Target>,
        query: &Query,
        written: &tree::Statement,
    ) -> Result<Sink, SqlError> {
        let columns = query.columns();
        if let [Target::Variable(id)] = targets.as_slice() {
            let mut id = *id;
            let is_record = self.records.contains_key(&id);
            if is_record {
                let ty = self.row_of(columns)?;
                let fields = self.record_places(query, written);
                id = self.shape(id, &Arc::new(RowPlace { ty, fields }));
            }
            if let Place::Row(mut row) = self.place(id).clone() {
                if is_record {
                    // It takes the row as it is.
                    row = Arc::new(RowPlace::of(&row.ty));
                }
                let types: Vec<Type> = columns.iter().map(|(_, ty)| ty.clone()).collect();
                let fits = match types.as_slice() {
                    [Type::Row(_)] => {
                        return Err(SqlError::unsupported("a row as a column of a query here")
                            .with_hint("Name its fields, or write the function into FROM."));
                    }
                    _ => self.row_fits(&types, &row.fields)?,
                };
                return Ok(Sink::Row(id, fits));
            }
        }
        let mut all = Vec::new();
        for (n, target) in targets.into_iter().enumerate() {
            let fit = match columns.get(n) {
                Some((_, from)) => {
                    let place = self.place_of(&target);
                    self.fit(from, &place)?
                }
                None => Fit::Same,
            };
            all.push((target, fit));
        }
        Ok(Sink::Targets(all))
    }

    /// The row type of a query's columns.
    fn row_of(&self, columns: &[(String, Type)]) -> Result<Arc<RowType>, SqlError> {
        let fields: Option<Vec<_>> = columns
            .iter()
            .map(|(name, ty)| match ty {
                Type::Scalar(scalar) => Some((name.clone(), *scalar)),
                _ => None,
            })
            .collect();
        fields.map(|fields| Arc::new(RowType { fields })).ok_or_else(|| {
            SqlError::unsupported("an array or row as the field of a record")
                .with_hint("Read it into a separate variable.")
        })
    }

    /// A statement that reads or changes.
    pub(super) fn query_of(&mut self, statement: &tree::Statement) -> Result<Query, SqlError> {
        if let (tree::Statement::Query(query), false) = (statement, changes_rows(statement)) {
            let plan = crate::plan::bind_select(self.catalog, query, self)?;
            return Ok(Query::Select(Arc::new(plan)));
        }
        let plan = crate::plan::bind_change(self.catalog, statement, self)?;
        Ok(Query::Change(Arc::new(plan)))
    }

    /// INTO: the targets must exist whatever is wrong with the statement.
    pub(super) fn sink_of(
        &mut self,
        into: &Into,
        query: Option<&Query>,
        written: &tree::Statement,
    ) -> Result<Option<Sink>, SqlError> {
        let targets = self.targets(&into.targets)?;
        let (Some(targets), Some(query)) = (targets, query) else { return Ok(None) };
        let sink = self.sink(targets, query, written);
        Ok(self.later(into.span, sink))
    }
}

impl Query {
    /// Names and types of its columns.
    pub fn columns(&self) -> &[(String, Type)] {
        match self {
            Self::Select(plan) => &plan.columns,
            Self::Change(plan) => &plan.returning,
        }
    }
}
