//! What names mean inside a query.
//!
//! Responsible for: columns of the query's relations before those of queries around it before variables,
//! which relations an expression uses, where aggregates may stand. Not responsible for: which relations
//! there are (`from`), what becomes of aggregates (`group`).

use std::cell::Cell;

use albireo_base::{SqlError, SqlState};
use albireo_sql::ast::{Function, Ident, ObjectName, Query as AstQuery};
use albireo_sql::source::Source;
use albireo_sql::{Catalog, names};

use super::SelectPlan;
use super::group::{GroupScope, Phase};
use super::tree::Uses;
use crate::expr::{ColumnRef, Expr, ExprKind, Names};
use crate::types::{RowType, Type};

/// The most relations in one FROM: a set of them is 64 bits.
pub(super) const MAX_RELATIONS: usize = 60;

/// The quotes of identifiers that stand for a key of GROUP BY.
pub(super) const GROUP_KEY: char = '\u{1}';

/// What all queries of one statement share.
#[derive(Clone, Copy)]
pub(super) struct Env<'e> {
    pub(super) catalog: &'e Catalog,
    /// Queries of WITH, the innermost first.
    pub(super) ctes: Option<&'e CteLink<'e>>,
    pub(super) next_cte: &'e Cell<u32>,
}

/// The queries of one WITH that can be seen.
pub(super) struct CteLink<'e> {
    pub(super) ctes: &'e [CteDef],
    pub(super) parent: Option<&'e CteLink<'e>>,
}

/// A query of WITH.
pub(super) struct CteDef {
    pub(super) name: String,
    pub(super) id: u32,
    pub(super) columns: Vec<(String, Type)>,
    pub(super) used: Cell<bool>,
}

/// A relation, as names see it.
#[derive(Clone, Debug)]
pub(super) struct Named {
    /// Its alias or name.
    pub(super) name: String,
    /// Its schema if no alias hides it.
    pub(super) schema: Option<String>,
    /// The table's own name where an alias hides it.
    pub(super) hidden: Option<String>,
    pub(super) columns: Vec<(String, Type)>,
    /// The columns of its primary key, if all others depend on them.
    pub(super) key: Vec<u16>,
}

/// A column that a bare name can mean.
#[derive(Clone, Debug)]
pub(super) struct Visible {
    pub(super) name: String,
    pub(super) relation: u16,
    pub(super) column: u16,
}

/// The names of one level.
pub(super) struct Scope<'s> {
    pub(super) env: Env<'s>,
    pub(super) outer: &'s mut (dyn Names + 's),
    /// Whether this is a level of columns of its own; else it hands everything on.
    level: bool,
    pub(super) relations: Vec<Named>,
    pub(super) visible: Vec<Visible>,
    /// How often each relation was referred to since the last [`Scope::take_uses`].
    uses: Uses,
    /// Whether a column of a query around was met.
    pub(super) correlated: bool,
    /// What aggregates mean here.
    pub(super) phase: Phase,
    pub(super) group: GroupScope,
}

impl<'s> Scope<'s> {
    /// A SELECT's or a change's.
    pub(super) fn level(env: Env<'s>, outer: &'s mut (dyn Names + 's)) -> Self {
        Self {
            env,
            outer,
            level: true,
            relations: Vec::new(),
            visible: Vec::new(),
            uses: Vec::new(),
            correlated: false,
            phase: Phase::Refused("here"),
            group: GroupScope::default(),
        }
    }

    /// One without columns, around a query, that watches what passes.
    pub(super) fn passing(env: Env<'s>, outer: &'s mut (dyn Names + 's)) -> Self {
        Self { level: false, phase: Phase::Refused("VALUES"), ..Self::level(env, outer) }
    }

    /// Adds a relation; its columns become visible.
    pub(super) fn add(&mut self, named: Named, visible: bool) -> Result<u16, SqlError> {
        if self.relations.len() >= MAX_RELATIONS {
            return Err(SqlError::unsupported(format!("a query over more than {MAX_RELATIONS} relations")));
        }
        let relation = self.relations.len() as u16;
        if visible {
            let columns = named.columns.iter().enumerate();
            self.visible.extend(columns.map(|(column, (name, _))| Visible {
                name: name.clone(),
                relation,
                column: column as u16,
            }));
        }
        self.relations.push(named);
        Ok(relation)
    }

    /// How often each relation was referred to since this was last asked.
    pub(super) fn take_uses(&mut self) -> Uses {
        let mut uses = std::mem::take(&mut self.uses);
        uses.resize(self.relations.len() + 1, 0);
        uses
    }

    /// A column of this level.
    pub(super) fn column(&mut self, relation: u16, column: u16) -> Expr {
        let at = usize::from(relation);
        if self.uses.len() <= at {
            self.uses.resize(at + 1, 0);
        }
        self.uses[at] += 1;
        let ty = self.relations[at].columns[usize::from(column)].1.clone();
        Expr { kind: ExprKind::Column(ColumnRef { depth: 0, relation, column }), ty }
    }

    /// An error at an identifier.
    pub(super) fn error(&self, state: SqlState, message: impl Into<String>, at: &Ident) -> SqlError {
        self.source().locate(SqlError::new(state, message.into()), at.span)
    }

    /// The relation with this name.
    pub(super) fn relation(&self, schema: Option<&str>, name: &str) -> Option<u16> {
        let fits = |named: &Named| {
            named.name == name && schema.is_none_or(|schema| named.schema.as_deref() == Some(schema))
        };
        self.relations.iter().position(fits).map(|at| at as u16)
    }

    fn bare(&mut self, parts: &[Ident], ident: &Ident) -> Result<Expr, SqlError> {
        let name = names::fold(ident);
        let found: Vec<&Visible> = self.visible.iter().filter(|v| v.name == name).collect();
        match found.as_slice() {
            [] => {}
            [one] => {
                let (relation, column) = (one.relation, one.column);
                if let Some(variable) = self.outer.conflict(parts)? {
                    return Ok(self.outside(variable));
                }
                return self.grouped_column(relation, column, ident);
            }
            several => {
                let qualified = several
                    .iter()
                    .map(|v| format!("\"{}.{name}\"", self.relations[v.relation as usize].name));
                let hint = format!("Qualify it: {}.", qualified.collect::<Vec<_>>().join(" or "));
                let message = format!("column reference \"{name}\" is ambiguous");
                return Err(self.error(SqlState::AMBIGUOUS_COLUMN, message, ident).with_hint(hint));
            }
        }
        let error = match self.outer.name(parts) {
            Ok(expr) => return Ok(self.outside(expr)),
            Err(error) => error,
        };
        if error.state() == SqlState::UNDEFINED_COLUMN {
            if let Some(relation) = self.relation(None, &name) {
                return self.whole_row(relation, ident);
            }
            if error.hint().is_none()
                && let Some(near) = self.suggestion(&name, None)
            {
                return Err(error.with_hint(near));
            }
        }
        Err(error)
    }

    fn suggestion(&self, name: &str, only: Option<u16>) -> Option<String> {
        let visible = self.visible.iter().filter(|v| only.is_none_or(|only| only == v.relation));
        let near = names::closest(name, visible.map(|v| v.name.as_str()))?;
        let found = self.visible.iter().find(|v| v.name == near && only.is_none_or(|o| o == v.relation))?;
        let relation = &self.relations[usize::from(found.relation)].name;
        Some(format!("Perhaps you meant to reference the column \"{relation}.{near}\"."))
    }

    fn whole_row(&mut self, relation: u16, ident: &Ident) -> Result<Expr, SqlError> {
        let columns = self.relations[usize::from(relation)].columns.clone();
        let mut fields = Vec::with_capacity(columns.len());
        let mut values = Vec::with_capacity(columns.len());
        for (at, (name, ty)) in columns.iter().enumerate() {
            let scalar = match ty {
                Type::Scalar(scalar) => *scalar,
                _ => return Err(self.locate(SqlError::unsupported("a row with an array in it"), ident)),
            };
            fields.push((name.clone(), scalar));
            values.push(self.grouped_column(relation, at as u16, ident)?);
        }
        // The one column of a function in FROM is the value itself.
        if let ([value], true) = (values.as_slice(), self.relations[usize::from(relation)].hidden.is_none())
            && self.relations[usize::from(relation)].schema.is_none()
            && columns[0].0 == self.relations[usize::from(relation)].name
        {
            return Ok(value.clone());
        }
        let ty = Type::Row(std::sync::Arc::new(RowType { fields }));
        Ok(Expr { kind: ExprKind::Row(values), ty })
    }

    fn locate(&self, error: SqlError, at: &Ident) -> SqlError {
        self.source().locate(error, at.span)
    }

    fn qualified(&mut self, parts: &[Ident]) -> Result<Expr, SqlError> {
        let (schema, table, column) = match parts {
            [table, column] => (None, table, column),
            [schema, table, column] => (Some(names::fold(schema)), table, column),
            _ => return self.outer.name(parts).map(|expr| self.outside(expr)),
        };
        let (table_name, name) = (names::fold(table), names::fold(column));
        let Some(relation) = self.relation(schema.as_deref(), &table_name) else {
            let error = match self.outer.name(parts) {
                Ok(expr) => return Ok(self.outside(expr)),
                Err(error) => error,
            };
            let hiding = self.relations.iter().find(|r| r.hidden.as_ref() == Some(&table_name));
            return Err(match hiding {
                Some(hiding) => {
                    let message =
                        format!("invalid reference to FROM-clause entry for table \"{table_name}\"");
                    let hint = format!("Perhaps you meant to reference the table alias \"{}\".", hiding.name);
                    self.error(SqlState::UNDEFINED_TABLE, message, table).with_hint(hint)
                }
                None => error,
            });
        };
        let columns = &self.relations[usize::from(relation)].columns;
        let mut found = columns.iter().enumerate().filter(|(_, (other, _))| *other == name).map(|(at, _)| at);
        match (found.next(), found.next()) {
            (Some(at), None) => {
                if let Some(variable) = self.outer.conflict(parts)? {
                    return Ok(self.outside(variable));
                }
                self.grouped_column(relation, at as u16, &parts[0])
            }
            (Some(_), Some(_)) => {
                let message = format!("column reference \"{name}\" is ambiguous");
                Err(self.error(SqlState::AMBIGUOUS_COLUMN, message, &parts[0]))
            }
            (None, _) => {
                let message = format!("column {table_name}.{name} does not exist");
                let error = self.error(SqlState::UNDEFINED_COLUMN, message, &parts[0]);
                Err(match self.suggestion(&name, Some(relation)) {
                    Some(hint) => error.with_hint(hint),
                    None => error,
                })
            }
        }
    }

    /// A column, if the query's grouping lets it stand here.
    fn grouped_column(&mut self, relation: u16, column: u16, ident: &Ident) -> Result<Expr, SqlError> {
        if matches!(self.phase, Phase::Grouped) && !self.is_grouped(relation, column) {
            let named = &self.relations[usize::from(relation)];
            let message = format!(
                "column \"{}.{}\" must appear in the GROUP BY clause or be used in an aggregate function",
                named.name,
                named.columns[usize::from(column)].0
            );
            return Err(self.error(SqlState::GROUPING_ERROR, message, ident));
        }
        Ok(self.column(relation, column))
    }

    fn is_grouped(&self, relation: u16, column: u16) -> bool {
        let grouped = |column| self.group.columns.contains(&(relation, column));
        let key = &self.relations[usize::from(relation)].key;
        grouped(column) || (!key.is_empty() && key.iter().all(|column| grouped(*column)))
    }

    /// An expression of the names around, as this level sees it.
    fn outside(&mut self, mut expr: Expr) -> Expr {
        if shift(&mut expr, u16::from(self.level)) {
            self.correlated = true;
        }
        expr
    }
}

/// Makes the columns of an expression, as a name can mean it, those of one query further out; whether
/// there are any.
fn shift(expr: &mut Expr, by: u16) -> bool {
    match &mut expr.kind {
        ExprKind::Column(column) => {
            column.depth += by;
            true
        }
        ExprKind::Field(of, _) | ExprKind::Cast(of, ..) => shift(of, by),
        ExprKind::Row(fields) => fields.iter_mut().fold(false, |any, field| shift(field, by) | any),
        _ => false,
    }
}

impl Names for Scope<'_> {
    fn name(&mut self, parts: &[Ident]) -> Result<Expr, SqlError> {
        match parts {
            [one] if one.quote_style == Some(GROUP_KEY) => Ok(self.group_key(one)),
            [one] => self.bare(parts, one),
            _ => self.qualified(parts),
        }
    }

    fn parameter(&mut self, number: usize) -> Result<Expr, SqlError> {
        let expr = self.outer.parameter(number)?;
        Ok(self.outside(expr))
    }

    fn call(&mut self, function: &Function) -> Result<Option<Expr>, SqlError> {
        if let Some(kind) = super::group::aggregate_kind(function) {
            return self.aggregate(kind, function).map(Some);
        }
        if !self.level {
            let called = self.outer.call(function)?;
            return Ok(called.map(|expr| self.outside(expr)));
        }
        if !self.outer.has_routine(&function.name) {
            return Ok(None);
        }
        let mut args = Vec::new();
        for (_, arg) in crate::expr::actuals(function)? {
            args.push(crate::expr::bind(arg, self)?);
        }
        self.outer.routine(function, args)
    }

    fn has_routine(&mut self, name: &ObjectName) -> bool {
        self.outer.has_routine(name)
    }

    fn routine(&mut self, function: &Function, args: Vec<Expr>) -> Result<Option<Expr>, SqlError> {
        self.outer.routine(function, args)
    }

    fn rows_of(
        &mut self,
        name: &ObjectName,
        actuals: &[crate::expr::Actual],
        args: Vec<Expr>,
    ) -> Result<Option<crate::expr::RowsOf>, SqlError> {
        self.outer.rows_of(name, actuals, args)
    }

    fn conflict(&mut self, parts: &[Ident]) -> Result<Option<Expr>, SqlError> {
        self.outer.conflict(parts)
    }

    fn query(&mut self, query: &AstQuery) -> Result<SelectPlan, SqlError> {
        let env = self.env;
        super::bind::bind_query(env, query, self)
    }

    fn source(&self) -> Source<'_> {
        self.outer.source()
    }
}
