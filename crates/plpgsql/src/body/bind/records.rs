//! What rows a RECORD holds, which must be known where its fields are read.
//!
//! A record that takes rows of different columns one after the other becomes several variables, its
//! versions: from a query on, its name means the one with this query's columns. Where the text does not
//! say which query was the last, because it stood in a branch or loop, the name means none.

use std::sync::Arc;

use albireo_base::SqlError;

use super::Binder;
use crate::body::place::{Place, RowPlace};
use crate::body::tree::Statement;
use crate::expr::VariableId;
use crate::parse::ast;
use crate::types::{RowType, Scalar};

/// Which version each name means: the scope's number, the name, the variable.
type Versions = Vec<(usize, String, VariableId)>;

impl Binder<'_> {
    /// Says that a record is given a row of this kind; the version that takes it.
    pub(super) fn shape(&mut self, id: VariableId, shape: &Arc<RowPlace>) -> VariableId {
        let Some(key) = self.records.get(&id).copied() else { return id };
        let known = match self.place(id) {
            Place::Row(row) => Arc::clone(row),
            _ => {
                if !self.blurred.contains(&id) {
                    self.shapes.entry(key).or_insert_with(|| Arc::clone(shape));
                }
                self.variable(id).place = Place::Row(Arc::clone(shape));
                return id;
            }
        };
        let same = |(a, b): (&(String, Scalar), &(String, Scalar))| a.0 == b.0 && a.1.same(b.1);
        let (old, new) = (&known.ty.fields, &shape.ty.fields);
        if old.len() != new.len() || !old.iter().zip(new).all(same) {
            let version = self.version(id);
            self.variable(version).place = Place::Row(Arc::clone(shape));
            return version;
        }
        if known != *shape {
            // Digits that differ are not known. What the fields can hold says the last query.
            let fields = old.iter().zip(new).map(|(a, b)| {
                let ty = if a.1 == b.1 { a.1 } else { Scalar::Numeric { scale: None } };
                (a.0.clone(), ty)
            });
            let ty = Arc::new(RowType { fields: fields.collect() });
            self.reshape(id, key, RowPlace { ty, fields: shape.fields.clone() });
        }
        id
    }

    /// Gives a record another shape, which it may have had in what was bound already.
    fn reshape(&mut self, id: VariableId, key: usize, shape: RowPlace) {
        let shape = Arc::new(shape);
        let same = matches!(self.place(id), Place::Row(old) if old.ty == shape.ty);
        self.variable(id).place = Place::Row(Arc::clone(&shape));
        if same {
            return;
        }
        let alike = |old: &Arc<RowPlace>| {
            let (old, new) = (&old.ty.fields, &shape.ty.fields);
            old.len() == new.len() && old.iter().zip(new).all(|(a, b)| a.0 == b.0 && a.1.same(b.1))
        };
        // Not that of a later version.
        if self.shapes.get(&key).is_some_and(alike) {
            self.shapes.insert(key, shape);
            self.wants_shapes = true;
        }
    }

    /// Says that the field of a record is assigned to: the digits it has in the query's rows may not be
    /// those it gets, unless its column keeps it to them.
    pub(super) fn field_written(&mut self, id: VariableId, field: usize) {
        let Some(key) = self.records.get(&id).copied() else { return };
        let Place::Row(row) = self.place(id) else { return };
        let is_kept = matches!(row.fields.get(field), Some(Place::Sql(_)));
        let mut fields = row.ty.fields.clone();
        if let Some((_, ty @ Scalar::Numeric { scale: Some(_) })) = fields.get_mut(field)
            && !is_kept
        {
            *ty = Scalar::Numeric { scale: None };
            let places = row.fields.clone();
            self.reshape(id, key, RowPlace { ty: Arc::new(RowType { fields }), fields: places });
        }
    }

    /// A new version of a record, which its names mean from now on.
    fn version(&mut self, id: VariableId) -> VariableId {
        let name = self.variables[id.0 as usize].name.clone();
        let key = self.records.get(&id).copied().unwrap_or_default();
        let version = self.declare("", Place::Void);
        self.variable(version).name = name;
        self.records.insert(version, key);
        for scope in &mut self.scopes {
            scope.names.values_mut().filter(|known| **known == id).for_each(|known| *known = version);
        }
        version
    }

    /// The refusal of a record that may hold rows of several kinds.
    pub(super) fn several_shapes(&self, id: VariableId) -> SqlError {
        let name = &self.variables[id.0 as usize].name;
        SqlError::unsupported(format!("record \"{name}\" with rows of different columns here"))
            .with_detail("It depends on the run of the routine which query it was assigned by last.")
            .with_hint("Declare a RECORD for each of the queries.")
    }

    fn versions(&self) -> Versions {
        let scopes = self.scopes.iter().enumerate();
        scopes
            .flat_map(|(n, scope)| scope.names.iter().map(move |(name, id)| (n, name.clone(), *id)))
            .filter(|(_, _, id)| self.records.contains_key(id))
            .collect()
    }

    /// The records whose names mean other versions than before, as they were; they mean none any more.
    fn blur(&mut self, before: &Versions) -> Vec<VariableId> {
        let mut changed = Vec::new();
        for (scope, name, old) in before {
            let now = self.scopes.get(*scope).and_then(|scope| scope.names.get(name)).copied();
            if let Some(now) = now.filter(|now| now != old) {
                changed.push(*old);
                if !self.blurred.contains(&now) || self.place(now) != &Place::Void {
                    let version = self.version(now);
                    self.blurred.insert(version);
                }
            }
        }
        changed
    }

    /// Statements that may be run or not.
    pub(super) fn branch(&mut self, all: &[ast::Statement]) -> Result<Vec<Statement>, SqlError> {
        let before = self.versions();
        let statements = self.statements(all)?;
        self.blur(&before);
        Ok(statements)
    }

    /// Statements that may be run any number of times: what they read at their beginning may be what
    /// they wrote at their end.
    pub(super) fn repeated(&mut self, all: &[ast::Statement]) -> Result<Vec<Statement>, SqlError> {
        let before = self.versions();
        let first_read = self.read.len();
        let statements = self.statements(all)?;
        for old in self.blur(&before) {
            if self.read[first_read..].contains(&old) {
                let error = self.several_shapes(old);
                if let Some(first) = all.first() {
                    self.later(first.span, Err::<(), _>(error));
                }
            }
        }
        Ok(statements)
    }
}
