//! From a body's tree to a routine with types.
//!
//! Responsible for: scopes of variables (`names`), what is assigned to (`target`), every statement
//! (`statement`, `control`, `returns`), bodies in SQL (`queries`). Not responsible for: expressions
//! (`expr`), queries (`plan`).
//!
//! PostgreSQL finds some mistakes when a routine is created and others when a statement is first run.
//! The binder finds them all, says of each which it is ([`BindError::deferred`]), and goes on behind a
//! mistake of the second kind to look for one of the first.

mod control;
mod modifiers;
mod names;
mod outside;
mod queries;
mod records;
mod returns;
mod statement;
mod target;

pub use outside::Outside;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use albireo_base::{SqlError, SqlState};
use albireo_semantics::query::Files;
use albireo_sql::Catalog;
use albireo_sql::source::Source;

use super::place::{Named, Place, RowPlace, Types};
use super::resolve::Routines;
use super::signature::{Default, Signature};
use super::tree::{Block, Code, FOUND, Handler, Initial, Routine, Variable};
use crate::define::{Definition, Language};
use crate::expr::{Expr, VariableId};
use crate::parse::ast::{self, Expression, Name, Span, VariableConflict};
use crate::types::Type;

/// Why a routine cannot be bound.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BindError {
    /// What is wrong; positions count in the whole statement.
    pub error: SqlError,
    /// Whether PostgreSQL would create the routine all the same, and say so when it runs.
    pub deferred: bool,
}

/// Binds a routine.
///
/// # Errors
/// Everything that is wrong with the body or that we do not do.
pub fn bind(
    catalog: &Catalog,
    routines: &dyn Routines,
    definition: &Definition,
    signature: &Arc<Signature>,
) -> Result<Routine, BindError> {
    let early = |error| BindError { error: definition.body.relocate(error), deferred: false };
    if let Some(error) = bad_default(signature) {
        return Err(BindError { error, deferred: false });
    }
    let mut binder = Binder::new(catalog, routines, &definition.body.text, signature);
    let code = match definition.language {
        Language::PlPgSql => {
            let body = crate::parse(&definition.body.text).map_err(early)?;
            let mut code = binder.body(&body).map_err(early)?;
            if binder.wants_shapes && !binder.shapes.is_empty() {
                // A record was used above where the query stands that says what it is.
                let shapes = std::mem::take(&mut binder.shapes);
                binder = Binder::new(catalog, routines, &definition.body.text, signature);
                binder.shapes = shapes;
                code = binder.body(&body).map_err(early)?;
            }
            code
        }
        Language::Sql => binder.sql_body().map_err(early)?,
    };
    if let Some(error) = binder.deferred.take() {
        return Err(BindError { error: definition.body.relocate(error), deferred: true });
    }
    Ok(Routine {
        signature: Arc::clone(signature),
        variables: binder.variables,
        parameters: binder.parameters,
        results: binder.results,
        code: code.unwrap_or(Code::Queries(Vec::new(), Vec::new())),
    })
}

/// What is wrong with a default.
fn bad_default(signature: &Signature) -> Option<SqlError> {
    signature.inputs().find_map(|formal| {
        let Default { tree, text } = formal.default.as_deref()?;
        let mut names = crate::expr::NoNames::new(Source::new(text));
        let bound = crate::expr::bind(tree, &mut names);
        let fitted =
            bound.and_then(|expr| super::place::fit(expr, &formal.place, crate::expr::CastKind::Assignment));
        fitted.err().filter(|error| error.state() != SqlState::DATATYPE_MISMATCH)
    })
}

/// Names that mean variables.
struct Scope {
    label: Option<String>,
    names: HashMap<String, VariableId>,
}

struct Binder<'a> {
    catalog: &'a Catalog,
    routines: &'a dyn Routines,
    /// What opens files in FROM, if they may be read.
    files: Option<&'a dyn Files>,
    text: &'a str,
    signature: Arc<Signature>,
    variables: Vec<Variable>,
    parameters: Vec<VariableId>,
    results: Vec<VariableId>,
    scopes: Vec<Scope>,
    conflict: VariableConflict,
    /// RECORD variables by number, with the byte they are declared at; in `shapes` by this.
    records: HashMap<VariableId, usize>,
    /// What rows the RECORD variables hold.
    shapes: HashMap<usize, Arc<RowPlace>>,
    /// Versions of records that may hold rows of several kinds.
    blurred: HashSet<VariableId>,
    /// Records that were read, in order.
    read: Vec<VariableId>,
    /// A record was used before its shape was known.
    wants_shapes: bool,
    /// The first mistake that PostgreSQL would find at run time only.
    deferred: Option<SqlError>,
}

impl<'a> Binder<'a> {
    fn new(
        catalog: &'a Catalog,
        routines: &'a dyn Routines,
        text: &'a str,
        signature: &Arc<Signature>,
    ) -> Self {
        let mut binder = Self {
            catalog,
            routines,
            files: None,
            text,
            signature: Arc::clone(signature),
            variables: Vec::new(),
            parameters: Vec::new(),
            results: Vec::new(),
            scopes: Vec::new(),
            conflict: VariableConflict::Error,
            records: HashMap::new(),
            shapes: HashMap::new(),
            blurred: HashSet::new(),
            read: Vec::new(),
            wants_shapes: false,
            deferred: None,
        };
        binder.enter(None);
        binder.declare("found", Place::Sql(albireo_base::SqlType::Bool));
        debug_assert_eq!(FOUND.0 as usize + 1, binder.variables.len());
        binder.enter(Some(signature.name.clone()));
        for formal in &signature.parameters {
            let variable = binder.declare(&formal.name, formal.place.clone());
            binder.parameters.push(variable);
            if formal.mode.is_out() {
                binder.results.push(variable);
            }
        }
        if signature.result.from_variables && binder.results.is_empty() {
            for (name, place) in &signature.result.columns {
                let variable = binder.declare(name, place.clone());
                binder.results.push(variable);
            }
        }
        binder
    }

    /// Opens a scope.
    fn enter(&mut self, label: Option<String>) {
        self.scopes.push(Scope { label, names: HashMap::new() });
    }

    fn leave(&mut self) {
        self.scopes.pop();
    }

    /// Gives a variable a number, and a name in the innermost scope unless the name is empty.
    fn declare(&mut self, name: &str, place: Place) -> VariableId {
        let id = VariableId(u32::try_from(self.variables.len()).unwrap_or(u32::MAX));
        self.variables.push(Variable { name: name.to_owned(), place, constant: false, not_null: false });
        if let Some(scope) = self.scopes.last_mut().filter(|_| !name.is_empty()) {
            scope.names.insert(name.to_owned(), id);
        }
        id
    }

    fn variable(&mut self, id: VariableId) -> &mut Variable {
        &mut self.variables[id.0 as usize]
    }

    fn place(&self, id: VariableId) -> &Place {
        &self.variables[id.0 as usize].place
    }

    /// An error at a span of the body, unless it has a better place.
    fn at<T>(&self, span: Span, result: Result<T, SqlError>) -> Result<T, SqlError> {
        result.map_err(|error| match error.position() {
            Some(_) => error,
            None => error.with_position(span.position(self.text)),
        })
    }

    fn error(&self, span: Span, state: SqlState, message: impl Into<String>) -> SqlError {
        SqlError::new(state, message).with_position(span.position(self.text))
    }

    /// Notes a mistake that PostgreSQL would find at run time.
    fn later<T>(&mut self, span: Span, result: Result<T, SqlError>) -> Option<T> {
        match self.at(span, result) {
            Ok(value) => Some(value),
            Err(error) => {
                self.deferred.get_or_insert(error);
                None
            }
        }
    }

    fn expr(&mut self, expression: &Expression) -> Option<Expr> {
        let bound = crate::expr::bind(&expression.tree, self);
        self.later(expression.span, bound)
    }

    /// An expression whose value goes to `place`.
    fn expr_to(&mut self, expression: &Expression, place: &Place) -> Option<Expr> {
        let bound = crate::expr::bind(&expression.tree, self)
            .and_then(|expr| super::place::fit(expr, place, crate::expr::CastKind::Variable));
        self.later(expression.span, bound)
    }

    fn condition(&mut self, expression: &Expression) -> Option<Expr> {
        self.expr_to(expression, &Place::Sql(albireo_base::SqlType::Bool))
    }

    fn body(&mut self, body: &ast::Body) -> Result<Option<Code>, SqlError> {
        self.conflict = body.options.variable_conflict;
        Ok(Some(Code::Block(self.block(&body.block)?)))
    }

    fn block(&mut self, block: &ast::Block) -> Result<Block, SqlError> {
        self.enter(block.label.as_ref().map(|label| label.text.clone()));
        let mut initial = Vec::new();
        for declaration in &block.declarations {
            initial.extend(self.declaration(declaration)?);
        }
        // What EXIT or an error leaves halfway is done in part.
        let statements = match block.label.is_none() && block.handlers.is_empty() {
            true => self.statements(&block.statements)?,
            false => self.branch(&block.statements)?,
        };
        let mut handlers = Vec::new();
        for handler in &block.handlers {
            handlers.push(self.handler(handler)?);
        }
        self.leave();
        let label = block.label.as_ref().map(|label| label.text.clone());
        Ok(Block { label, initial, statements, handlers })
    }

    fn declaration(&mut self, declaration: &ast::Declaration) -> Result<Option<Initial>, SqlError> {
        let name = &declaration.name;
        match &declaration.kind {
            ast::DeclarationKind::Alias(of) => {
                let names: Vec<String> = of.parts.iter().map(|part| part.text.clone()).collect();
                let Some((id, used)) = self.lookup(&names) else {
                    return Err(self.unknown_variable(of.span));
                };
                if used < names.len() {
                    let error = SqlError::unsupported("an alias of a field");
                    return Err(error.with_position(of.span.position(self.text)));
                }
                if let Some(scope) = self.scopes.last_mut() {
                    scope.names.insert(name.text.clone(), id);
                }
                Ok(None)
            }
            ast::DeclarationKind::Variable { constant, ty, not_null, default } => {
                let named = self.resolve_type(ty)?;
                let is_record = named == Named::Record;
                let place = match named {
                    Named::Place(Place::Void) => {
                        let message = format!("variable \"{}\" has pseudo-type void", name.text);
                        return Err(self.error(ty.span, SqlState::FEATURE_NOT_SUPPORTED, message));
                    }
                    Named::Place(place) => place,
                    Named::Record => match self.shapes.get(&name.span.start) {
                        Some(shape) => Place::Row(Arc::clone(shape)),
                        None => Place::Void,
                    },
                };
                // The variable's own name does not mean it yet where its first value is computed.
                let value = default.as_ref().map(|default| (default, self.expr(default)));
                let id = self.declare(&name.text, place);
                self.variable(id).not_null = *not_null;
                if is_record {
                    self.records.insert(id, name.span.start);
                }
                let value = match value {
                    Some((default, Some(value))) => {
                        let target = super::tree::Target::Variable(id);
                        let assigned = self.assign(target, value);
                        self.later(default.span, assigned)
                    }
                    _ => None,
                };
                self.variable(id).constant = *constant;
                Ok(Some(Initial { variable: id, value }))
            }
        }
    }

    fn resolve_type(&mut self, ty: &ast::TypeName) -> Result<Named, SqlError> {
        let types = Types { catalog: self.catalog, text: self.text };
        let mut variable = |names: &[Name]| {
            let names: Vec<String> = names.iter().map(|name| name.text.clone()).collect();
            let (id, used) = self.lookup(&names)?;
            match (self.place(id), names.get(used)) {
                (Place::Void, None) => Some(Named::Record),
                (place, None) => Some(Named::Place(place.clone())),
                (Place::Row(row), Some(field)) => {
                    row.field(field).map(|field| Named::Place(row.fields[field].clone()))
                }
                _ => None,
            }
        };
        types.resolve(ty, &mut variable)
    }

    fn handler(&mut self, handler: &ast::Handler) -> Result<Handler, SqlError> {
        self.enter(None);
        let state = self.declare("sqlstate", Place::Sql(albireo_base::SqlType::Text));
        let message = self.declare("sqlerrm", Place::Sql(albireo_base::SqlType::Text));
        self.variable(state).constant = true;
        self.variable(message).constant = true;
        let statements = self.branch(&handler.statements)?;
        self.leave();
        let mut conditions = Vec::new();
        for condition in &handler.conditions {
            match &condition.kind {
                ast::ConditionKind::Others => conditions.push(super::tree::Condition::Others),
                ast::ConditionKind::Named { states, .. } => {
                    conditions.extend(states.iter().map(|state| super::tree::Condition::State(*state)));
                }
                ast::ConditionKind::State(state) => {
                    conditions.push(super::tree::Condition::State(*state));
                }
            }
        }
        Ok(Handler { conditions, variables: (state, message), statements })
    }

    /// A variable that no name means.
    fn scratch(&mut self, ty: &Type) -> VariableId {
        self.declare("", Place::of(ty))
    }
}
