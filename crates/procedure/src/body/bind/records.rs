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
    /// Says that a record is given a row of this type; the version that takes it.
    pub(super) fn shape(&mut self, id: VariableId, shape: &Arc<RowType>) -> VariableId {
        let Some(key) = self.records.get(&id).copied() else { return id };
        let known = match self.place(id) {
            Place::Row(row) => Arc::clone(&row.ty),
            _ => {
                if !self.blurred.contains(&id) {
                    self.shapes.entry(key).or_insert_with(|| Arc::clone(shape));
                }
                self.variable(id).place = Place::Row(Arc::new(RowPlace::of(shape)));
                return id;
            }
        };
        let same = |(a, b): (&(String, Scalar), &(String, Scalar))| a.0 == b.0 && a.1.same(b.1);
        if known.fields.len() != shape.fields.len() || !known.fields.iter().zip(&shape.fields).all(same) {
            let version = self.version(id);
            self.variable(version).place = Place::Row(Arc::new(RowPlace::of(shape)));
            return version;
        }
        if known != *shape {
            // Digits that differ are not known.
            let fields = known.fields.iter().zip(&shape.fields).map(|(a, b)| {
                let ty = if a.1 == b.1 { a.1 } else { Scalar::Numeric { scale: None } };
                (a.0.clone(), ty)
            });
            let merged = Arc::new(RowType { fields: fields.collect() });
            if merged != known {
                self.variable(id).place = Place::Row(Arc::new(RowPlace::of(&merged)));
                self.shapes.insert(key, merged);
                self.wants_shapes = true;
            }
        }
        id
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
