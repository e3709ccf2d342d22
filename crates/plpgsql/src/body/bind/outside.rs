//! Names in a statement that no routine surrounds: parameters, and the database's routines.

use std::sync::Arc;

use albireo_base::SqlError;
use albireo_semantics::query::Files;
use albireo_sql::Catalog;
use albireo_sql::ast as tree;
use albireo_sql::source::Source;

use super::Binder;
use crate::body::place::Place;
use crate::body::resolve::Routines;
use crate::body::signature::{ResultShape, Signature};
use crate::body::tree::{Code, Routine};
use crate::define::{RoutineKind, Volatility};
use crate::expr::{Expr, Names};
use crate::parse::ast::VariableConflict;
use crate::plan::SelectPlan;
use crate::types::{Scalar, Type};

/// What names mean in a statement of a client's.
pub struct Outside<'a>(Binder<'a>);

impl<'a> Outside<'a> {
    /// For a statement in `text`.
    pub fn new(catalog: &'a Catalog, routines: &'a dyn Routines, text: &'a str) -> Self {
        let result =
            ResultShape { place: Place::Void, setof: false, columns: Vec::new(), from_variables: false };
        let signature = Signature {
            name: String::new(),
            kind: RoutineKind::Procedure,
            parameters: Vec::new(),
            result,
            strict: false,
            volatility: Volatility::Volatile,
        };
        let mut binder = Binder::new(catalog, routines, text, &Arc::new(signature));
        binder.scopes.clear();
        binder.conflict = VariableConflict::UseColumn;
        Self(binder)
    }

    /// As [`Outside::new`], in a statement with the parameters `$1`, `$2`, ... of these types. One without
    /// a type takes in each place the one that is wanted there; where none is, it is open
    /// ([`crate::expr::is_open`]).
    pub fn with_parameters(
        catalog: &'a Catalog,
        routines: &'a dyn Routines,
        text: &'a str,
        types: &[Option<Type>],
    ) -> Self {
        let Self(mut binder) = Self::new(catalog, routines, text);
        for ty in types {
            let place = ty.as_ref().map_or(Place::Plain(Scalar::Unknown), Place::of);
            let variable = binder.declare("", place);
            binder.parameters.push(variable);
        }
        Self(binder)
    }

    /// The same in a statement that may read files.
    #[must_use]
    pub fn reading(mut self, files: &'a dyn Files) -> Self {
        self.0.files = Some(files);
        self
    }

    /// What the statement runs in.
    pub fn into_routine(self) -> Routine {
        Routine {
            signature: self.0.signature,
            variables: self.0.variables,
            parameters: self.0.parameters,
            results: Vec::new(),
            code: Code::Queries(Vec::new(), Vec::new()),
        }
    }
}

impl Names for Outside<'_> {
    fn name(&mut self, parts: &[tree::Ident]) -> Result<Expr, SqlError> {
        self.0.name(parts)
    }

    fn parameter(&mut self, number: usize) -> Result<Expr, SqlError> {
        self.0.parameter(number)
    }

    fn call(&mut self, function: &tree::Function) -> Result<Option<Expr>, SqlError> {
        self.0.call(function)
    }

    fn has_routine(&mut self, name: &tree::ObjectName) -> bool {
        self.0.has_routine(name)
    }

    fn routine(&mut self, function: &tree::Function, args: Vec<Expr>) -> Result<Option<Expr>, SqlError> {
        self.0.routine(function, args)
    }

    fn rows_of(
        &mut self,
        name: &tree::ObjectName,
        actuals: &[crate::expr::Actual],
        args: Vec<Expr>,
    ) -> Result<Option<crate::expr::RowsOf>, SqlError> {
        self.0.rows_of(name, actuals, args)
    }

    fn conflict(&mut self, parts: &[tree::Ident]) -> Result<Option<Expr>, SqlError> {
        self.0.conflict(parts)
    }

    fn query(&mut self, query: &tree::Query) -> Result<SelectPlan, SqlError> {
        self.0.query(query)
    }

    fn files(&self) -> Option<&dyn Files> {
        self.0.files()
    }

    fn source(&self) -> Source<'_> {
        self.0.source()
    }
}
