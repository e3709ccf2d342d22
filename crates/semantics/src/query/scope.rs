//! What names mean inside a query.
//!
//! Responsible for: columns of the query's relations before those of queries around it before variables,
//! which relations an expression uses, where columns were referred to. Not responsible for: which relations
//! there are (`from`), aggregates and windows (`aggregate`, `window`), which columns may stand beside them
//! (`regroup`).

use std::cell::Cell;
use std::sync::Arc;

use albireo_base::{SqlError, SqlState, SqlType, budget};
use albireo_sql::ast::{Function, Ident, ObjectName, Query as AstQuery};
use albireo_sql::source::{Source, Span};
use albireo_sql::{Catalog, ColumnDef, TableDef, names};

use super::aggregate::Calls;
use super::bind::{COLUMN_BYTES, NODE_BYTES};
use super::tree::{Aggregate, Uses};
use super::{Files, SelectPlan};
use crate::expr::{ColumnRef, Expr, ExprKind, Names};
use crate::types::{RowType, Type};

/// The most relations in one FROM: a set of them is 64 bits.
pub(super) const MAX_RELATIONS: usize = 60;

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
    /// How often it was referred to.
    pub(super) uses: Cell<u32>,
    /// Whether it is seen from its own repeated part.
    pub(super) recursive: bool,
}

/// What aggregates and window functions mean where an expression stands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    /// Both are errors; the name of the clause.
    Refused(&'static str),
    /// An error, because an aggregate is around it.
    Inside,
    /// Both may stand here: the select list, ORDER BY.
    Free,
    /// Aggregates may stand here; window functions are errors.
    Having,
    /// As in HAVING, in the definition of a window.
    Windowing,
    /// As in HAVING, because a window function is around it.
    Windowed,
}

impl Phase {
    /// Whether the expression is of a group if the query has groups.
    fn is_grouped(self) -> bool {
        matches!(self, Self::Free | Self::Having | Self::Windowing | Self::Windowed)
    }
}

/// A relation, as it comes to be known.
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
    /// Its columns of CHAR, and their lengths.
    pub(super) lengths: Vec<(u16, u32)>,
}

/// The columns of CHAR of a table, and their lengths.
pub(super) fn lengths(table: &TableDef) -> Vec<(u16, u32)> {
    let columns = (0..).zip(&table.columns);
    let char = |(at, column): (u16, &ColumnDef)| match column.ty {
        SqlType::Char(length) => Some((at, length)),
        _ => None,
    };
    columns.filter_map(char).collect()
}

/// What a column of FROM means.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Meaning {
    /// A column of a relation.
    Column(u16, u16),
    /// Made of several by USING.
    Merged(Arc<Expr>),
}

/// A name of FROM: of a relation, or of a join with an alias.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    schema: Option<String>,
    hidden: Option<String>,
    pub(super) columns: Vec<(String, Meaning)>,
    /// Whether what comes later in FROM may refer to it.
    pub(super) lateral: bool,
}

/// A column that a bare name can mean.
#[derive(Clone, Debug)]
pub(super) struct Visible {
    pub(super) name: String,
    pub(super) meaning: Meaning,
    /// The entry it is of.
    pub(super) entry: usize,
}

/// A place where a column was referred to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mention {
    pub(super) relation: u16,
    pub(super) column: u16,
    pub(super) span: Span,
}

/// How much of FROM is known.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Mark {
    pub(super) entries: usize,
    pub(super) visible: usize,
}

/// The names of one level.
pub(super) struct Scope<'s> {
    pub(super) env: Env<'s>,
    pub(super) outer: &'s mut (dyn Names + 's),
    /// Whether this is a level of columns of its own; else it hands everything on.
    pub(super) level: bool,
    pub(super) relations: Vec<Named>,
    pub(super) entries: Vec<Entry>,
    pub(super) visible: Vec<Visible>,
    /// The columns of files whose type is none of SQL's, and what each is, for errors.
    pub(super) foreign: Vec<((u16, u16), String)>,
    /// What comes before is not seen: ON sees the two sides of its join.
    pub(super) floor: Mark,
    /// How often each relation was referred to since the last [`Scope::take_uses`].
    uses: Uses,
    /// Whether a column of a query around was met.
    pub(super) correlated: bool,
    /// What aggregates mean here.
    pub(super) phase: Phase,
    /// The aggregates and window functions met so far.
    pub(super) calls: Calls,
    /// The columns referred to since the last [`Scope::take_mentions`], outside of aggregates.
    mentions: Vec<Mention>,
    /// Whether a relation is the recursive query this is the repeated part of.
    pub(super) recursive: bool,
    /// The entry of the table that the statement changes.
    pub(super) changed: Option<usize>,
}

impl<'s> Scope<'s> {
    /// A SELECT's or a change's.
    pub(super) fn level(env: Env<'s>, outer: &'s mut (dyn Names + 's)) -> Self {
        Self {
            env,
            outer,
            level: true,
            relations: Vec::new(),
            entries: Vec::new(),
            visible: Vec::new(),
            foreign: Vec::new(),
            floor: Mark::default(),
            uses: Vec::new(),
            correlated: false,
            phase: Phase::Refused("here"),
            calls: Calls::default(),
            mentions: Vec::new(),
            recursive: false,
            changed: None,
        }
    }

    /// One without columns, around a query, that watches what passes.
    pub(super) fn passing(env: Env<'s>, outer: &'s mut (dyn Names + 's)) -> Self {
        Self { level: false, phase: Phase::Refused("VALUES"), ..Self::level(env, outer) }
    }

    /// Adds a relation; its columns become visible.
    pub(super) fn add(&mut self, named: Named) -> Result<u16, SqlError> {
        if self.relations.len() >= MAX_RELATIONS {
            return Err(SqlError::unsupported(format!("a query over more than {MAX_RELATIONS} relations")));
        }
        budget::take(NODE_BYTES + COLUMN_BYTES * named.columns.len())?;
        let relation = self.relations.len() as u16;
        let columns = named.columns.iter().enumerate();
        let columns = columns
            .map(|(column, (name, _))| (name.clone(), Meaning::Column(relation, column as u16)))
            .collect();
        let (name, schema, hidden) = (named.name.clone(), named.schema.clone(), named.hidden.clone());
        self.relations.push(named);
        self.add_entry(Entry { name, schema, hidden, columns, lateral: true });
        Ok(relation)
    }

    fn add_entry(&mut self, entry: Entry) {
        let at = self.entries.len();
        let visible = |(name, meaning): &(String, Meaning)| Visible {
            name: name.clone(),
            meaning: meaning.clone(),
            entry: at,
        };
        self.visible.extend(entry.columns.iter().map(visible));
        self.entries.push(entry);
    }

    /// Hides what came after a mark behind the alias of a join.
    pub(super) fn rename(&mut self, since: Mark, name: String, columns: Vec<(String, Meaning)>) {
        self.entries.truncate(since.entries);
        self.visible.truncate(since.visible);
        self.add_entry(Entry { name, schema: None, hidden: None, columns, lateral: true });
    }

    /// What is known of FROM by now.
    pub(super) fn mark(&self) -> Mark {
        Mark { entries: self.entries.len(), visible: self.visible.len() }
    }

    /// Whether a name of FROM is taken; tables of several schemas may have the same.
    pub(super) fn is_taken(&self, name: &str, schema: Option<&str>) -> bool {
        self.entries.iter().any(|entry| {
            let apart = match (&entry.schema, schema) {
                (Some(a), Some(b)) => a != b,
                _ => false,
            };
            entry.name == name && !apart
        })
    }

    /// How often each relation was referred to since this was last asked.
    pub(super) fn take_uses(&mut self) -> Uses {
        let mut uses = std::mem::take(&mut self.uses);
        uses.resize(self.relations.len() + 1, 0);
        uses
    }

    /// The columns referred to since this was last asked.
    pub(super) fn take_mentions(&mut self) -> Vec<Mention> {
        std::mem::take(&mut self.mentions)
    }

    /// Puts back what was taken before something inside of an expression was bound.
    pub(super) fn restore_mentions(&mut self, mentions: Vec<Mention>) {
        self.mentions = mentions;
    }

    /// A column of this level, as a name at `span` means it.
    fn column(&mut self, relation: u16, column: u16, span: Span) -> Expr {
        let at = usize::from(relation);
        if self.uses.len() <= at {
            self.uses.resize(at + 1, 0);
        }
        self.uses[at] += 1;
        if self.phase.is_grouped() {
            self.mentions.push(Mention { relation, column, span });
        }
        let ty = self.relations[at].columns[usize::from(column)].1.clone();
        Expr { kind: ExprKind::Column(ColumnRef { depth: 0, relation, column }), ty }
    }

    /// What a column of FROM means, referred to at `span`.
    ///
    /// # Errors
    /// 0A000 for a column of a file whose type is none of SQL's.
    pub(super) fn meaning(&mut self, meaning: &Meaning, span: Span) -> Result<Expr, SqlError> {
        let expr = match meaning {
            Meaning::Column(relation, column) => {
                if let Some((_, of)) = self.foreign.iter().find(|(at, _)| *at == (*relation, *column)) {
                    let error = SqlError::unsupported(of)
                        .with_hint("Name the columns that you want, and not this one.");
                    return Err(self.source().locate(error, span));
                }
                return Ok(self.column(*relation, *column, span));
            }
            Meaning::Merged(expr) => expr.as_ref().clone(),
        };
        expr.walk(&mut |part| {
            if let ExprKind::Column(column) = part.kind {
                self.column(column.relation, column.column, span);
            }
        });
        Ok(expr)
    }

    /// An error at an identifier.
    pub(super) fn error(&self, state: SqlState, message: impl Into<String>, at: &Ident) -> SqlError {
        self.source().locate(SqlError::new(state, message.into()), at.span)
    }

    /// The entry of FROM with this name.
    pub(super) fn entry(&self, schema: Option<&str>, name: &str) -> Option<usize> {
        let fits = |entry: &Entry| {
            entry.name == name && schema.is_none_or(|schema| entry.schema.as_deref() == Some(schema))
        };
        let seen = &self.entries[self.floor.entries..];
        seen.iter().position(fits).map(|at| at + self.floor.entries)
    }

    /// 42P10 if what is bound stands in FROM where it may not refer to an entry.
    fn check_lateral(&self, number: usize, at: &Ident) -> Result<(), SqlError> {
        let entry = &self.entries[number];
        if entry.lateral {
            return Ok(());
        }
        let message = format!("invalid reference to FROM-clause entry for table \"{}\"", entry.name);
        let error = self.error(SqlState::INVALID_COLUMN_REFERENCE, message, at);
        if self.changed == Some(number) {
            let hint = format!(
                "There is an entry for table \"{}\", but it cannot be referenced from this part of the query.",
                entry.name
            );
            return Err(error.with_hint(hint));
        }
        Err(error.with_detail("The combining JOIN type must be INNER or LEFT for a LATERAL reference."))
    }

    /// An error at the parenthesis before a place, or there if there is none.
    pub(super) fn opening(&self, error: SqlError, place: Span) -> SqlError {
        match self.source().opening(place) {
            Some(position) => error.with_position(position),
            None => self.source().locate(error, place),
        }
    }

    fn bare(&mut self, parts: &[Ident], ident: &Ident) -> Result<Expr, SqlError> {
        let name = names::fold(ident);
        let seen = &self.visible[self.floor.visible..];
        let found: Vec<&Visible> = seen.iter().filter(|v| v.name == name).collect();
        match found.as_slice() {
            [] => {}
            [one] => {
                let (meaning, entry) = (one.meaning.clone(), one.entry);
                self.check_lateral(entry, ident)?;
                if let Some(variable) = self.outer.conflict(parts)? {
                    return Ok(self.outside(variable));
                }
                return self.meaning(&meaning, ident.span);
            }
            several => {
                let qualified = several.iter().map(|v| format!("\"{}.{name}\"", self.entries[v.entry].name));
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
            if let Some(entry) = self.entry(None, &name) {
                return self.whole_row(entry, ident);
            }
            if error.hint().is_none()
                && let Some(near) = self.suggestion(&name, None)
            {
                return Err(error.with_hint(near));
            }
        }
        Err(error)
    }

    fn suggestion(&self, name: &str, only: Option<usize>) -> Option<String> {
        let seen = &self.visible[self.floor.visible..];
        let visible = seen.iter().filter(|v| only.is_none_or(|only| only == v.entry));
        let near = names::closest(name, visible.map(|v| v.name.as_str()))?;
        let found = seen.iter().find(|v| v.name == near && only.is_none_or(|o| o == v.entry))?;
        let entry = &self.entries[found.entry].name;
        Some(format!("Perhaps you meant to reference the column \"{entry}.{near}\"."))
    }

    fn whole_row(&mut self, entry: usize, ident: &Ident) -> Result<Expr, SqlError> {
        self.check_lateral(entry, ident)?;
        let Entry { name: entry_name, schema, hidden, columns, .. } = self.entries[entry].clone();
        let mut fields = Vec::with_capacity(columns.len());
        let mut values = Vec::with_capacity(columns.len());
        for (name, meaning) in &columns {
            let value = self.meaning(meaning, ident.span)?;
            match value.ty {
                Type::Scalar(scalar) => fields.push((name.clone(), scalar)),
                _ => return Err(self.locate(SqlError::unsupported("a row with an array in it"), ident)),
            }
            values.push(value);
        }
        // The one column of a function in FROM is the value itself.
        if let ([value], true) = (values.as_slice(), hidden.is_none())
            && schema.is_none()
            && columns[0].0 == entry_name
        {
            return Ok(value.clone());
        }
        let ty = Type::Row(Arc::new(RowType { fields }));
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
        let Some(entry) = self.entry(schema.as_deref(), &table_name) else {
            let error = match self.outer.name(parts) {
                Ok(expr) => return Ok(self.outside(expr)),
                Err(error) => error,
            };
            return Err(self.hidden(&table_name, table).unwrap_or(error));
        };
        self.check_lateral(entry, &parts[0])?;
        let columns = &self.entries[entry].columns;
        let mut found = columns.iter().filter(|(other, _)| *other == name).map(|(_, meaning)| meaning);
        match (found.next().cloned(), found.next()) {
            (Some(meaning), None) => {
                if let Some(variable) = self.outer.conflict(parts)? {
                    return Ok(self.outside(variable));
                }
                self.meaning(&meaning, parts[0].span)
            }
            (Some(_), Some(_)) => {
                let message = format!("column reference \"{name}\" is ambiguous");
                Err(self.error(SqlState::AMBIGUOUS_COLUMN, message, &parts[0]))
            }
            (None, _) => {
                let message = format!("column {table_name}.{name} does not exist");
                let error = self.error(SqlState::UNDEFINED_COLUMN, message, &parts[0]);
                Err(match self.suggestion(&name, Some(entry)) {
                    Some(hint) => error.with_hint(hint),
                    None => error,
                })
            }
        }
    }

    /// What is wrong with a name of FROM that is there but cannot be seen.
    fn hidden(&self, name: &str, at: &Ident) -> Option<SqlError> {
        let hint = match self.entries.iter().find(|entry| entry.hidden.as_deref() == Some(name)) {
            Some(hiding) => format!("Perhaps you meant to reference the table alias \"{}\".", hiding.name),
            None if self.relations.iter().any(|relation| relation.name == name) => format!(
                "There is an entry for table \"{name}\", but it cannot be referenced from this part of the \
                 query."
            ),
            None => return None,
        };
        let message = format!("invalid reference to FROM-clause entry for table \"{name}\"");
        Some(self.error(SqlState::UNDEFINED_TABLE, message, at).with_hint(hint))
    }

    /// An expression of the names around, as this level sees it.
    pub(super) fn outside(&mut self, mut expr: Expr) -> Expr {
        if shift(&mut expr, u16::from(self.level)) {
            self.correlated = true;
        }
        expr
    }
}

/// Makes the columns of an expression, as a name can mean it, those of one query further out; whether
/// there are any.
fn shift(expr: &mut Expr, by: u16) -> bool {
    if let ExprKind::Column(column) = &mut expr.kind {
        column.depth += by;
        return true;
    }
    let mut any = false;
    expr.each_part_mut(&mut |part| any |= shift(part, by));
    any
}

impl Names for Scope<'_> {
    fn name(&mut self, parts: &[Ident]) -> Result<Expr, SqlError> {
        match parts {
            [one] => self.bare(parts, one),
            _ => self.qualified(parts),
        }
    }

    fn parameter(&mut self, number: usize) -> Result<Expr, SqlError> {
        let expr = self.outer.parameter(number)?;
        Ok(self.outside(expr))
    }

    fn call(&mut self, function: &Function) -> Result<Option<Expr>, SqlError> {
        if let Some(found) = self.aggregate_or_window(function)? {
            return Ok(Some(found));
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

    fn aggregate(&mut self, aggregate: Aggregate, at: &Ident) -> Result<Expr, SqlError> {
        self.place_aggregate(aggregate, at)
    }

    fn conflict(&mut self, parts: &[Ident]) -> Result<Option<Expr>, SqlError> {
        self.outer.conflict(parts)
    }

    fn query(&mut self, query: &AstQuery) -> Result<SelectPlan, SqlError> {
        let env = self.env;
        super::bind::bind_query(env, query, self)
    }

    fn length(&self, column: ColumnRef) -> Option<u32> {
        let levels = u16::from(self.level);
        match column.depth.checked_sub(levels) {
            Some(depth) => self.outer.length(ColumnRef { depth, ..column }),
            None => {
                let lengths = &self.relations.get(usize::from(column.relation))?.lengths;
                lengths.iter().find(|(at, _)| *at == column.column).map(|(_, length)| *length)
            }
        }
    }

    fn files(&self) -> Option<&dyn Files> {
        self.outer.files()
    }

    fn source(&self) -> Source<'_> {
        self.outer.source()
    }
}
