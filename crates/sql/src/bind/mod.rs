//! Queries between the parser and the analytical engine.
//!
//! Responsible for: checking table and column names with PostgreSQL's wording, suggestions and
//! positions; PostgreSQL's names for result columns; unique internal names for them, because the
//! engine refuses `SELECT a, a` (`select`); wildcards; ORDER BY and GROUP BY by output name
//! (`order`); expressions the engine has under another form (`rewrite`, `subquery`); which tables, files and parameters a query uses.
//! Not responsible for: functions, types, and everything else the engine checks itself.
//!
//! Rule: what cannot be decided here (the columns of a file or a table function) is let pass, never
//! refused. A query this module returns means the same to the engine as the text to PostgreSQL.
//!
//! Invariant: the engine sees output columns named `__c0`, `__c1`, ... in the statement's order,
//! except for columns out of a wildcard over something of unknown columns.

mod expr;
mod from;
mod label;
mod order;
mod query;
mod rewrite;
mod scope;
mod select;
mod subquery;
#[cfg(test)]
mod tests;
mod window;

use std::cell::Cell;

use albireo_base::{SqlError, SqlState, TableId};
use sqlparser::ast::{Expr, Query, Statement, WindowSpec};

use crate::catalog::Catalog;
use crate::names;
use crate::source::Source;

pub(crate) use expr::plain_query;
pub(crate) use label::label;
pub use label::label as column_label;
pub(crate) use scope::{Column, Columns, Relation, Scope, Tree};

/// The beginning of the internal names of output columns.
const OUTPUT_PREFIX: &str = "__c";

/// A query whose names are known to be right, ready for the engine.
#[derive(Clone, PartialEq, Debug)]
pub struct BoundQuery {
    /// The query as the engine shall see it.
    pub statement: Statement,
    /// What the columns `__c0`, `__c1`, ... are called to the user.
    pub output: Vec<OutputColumn>,
    /// Whether `output` is the whole result; if not, the engine's result has more columns, under
    /// their own names: see [`BoundQuery::column_name`].
    pub exact: bool,
    /// The highest `$n`.
    pub parameters: usize,
    /// The tables it reads, each once, ascending.
    pub tables: Vec<TableId>,
    /// The files it reads, each once; the statement refers to each by a table name that is exactly
    /// the text in here.
    pub files: Vec<String>,
}

/// One column of a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutputColumn {
    /// Its name as PostgreSQL gives it; not unique.
    pub name: String,
}

impl BoundQuery {
    /// What the user calls the engine's column `field`.
    pub fn column_name<'a>(&'a self, field: &'a str) -> &'a str {
        let index = field.strip_prefix(OUTPUT_PREFIX).and_then(|digits| digits.parse::<usize>().ok());
        index.and_then(|index| self.output.get(index)).map_or(field, |column| column.name.as_str())
    }

    /// The query as SQL text.
    pub fn text(&self) -> String {
        self.statement.to_string()
    }
}

/// The internal name of output column `index`.
pub fn output_name(index: usize) -> String {
    format!("{OUTPUT_PREFIX}{index}")
}

/// Binds a SELECT, VALUES or TABLE statement. `text` is what it was parsed from.
///
/// # Errors
/// 42P01, 42703, 42702 and the like, as PostgreSQL reports them; 0A000 for a clause we do not have
/// and for statements that are no query.
pub fn bind_query(catalog: &Catalog, statement: &Statement, text: &str) -> Result<BoundQuery, SqlError> {
    let Statement::Query(query) = statement else {
        return Err(SqlError::unsupported(format!("{} as a query", crate::classify::name_of(statement))));
    };
    Binder::new(catalog, Source::new(text)).bound(query.clone())
}

/// What is collected while a statement is walked.
pub(crate) struct Binder<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) source: Source<'a>,
    pub(crate) parameters: usize,
    tables: Vec<TableId>,
    files: Vec<String>,
    /// The WITH queries in sight, innermost last.
    ctes: Vec<(String, Columns)>,
    /// The windows of the WINDOW clause in sight, by name.
    windows: Vec<(String, WindowSpec)>,
    /// How many derived tables without a name have been given one.
    unnamed: usize,
    /// Whether what is bound is part of a WHERE or HAVING.
    in_filter: bool,
    /// Whether a column of a query around the one being bound was met.
    met_outer: Cell<bool>,
    /// Subqueries that read columns of the query around them.
    correlated: Vec<Query>,
}

/// What becomes of a query's output columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// They are the result: they get the names `__c0`, ....
    Result,
    /// A FROM item or WITH query: they get PostgreSQL's names, made unique.
    Derived,
    /// A subquery in an expression: nobody sees their names.
    Expression,
}

impl<'a> Binder<'a> {
    pub(crate) fn new(catalog: &'a Catalog, source: Source<'a>) -> Self {
        Self {
            catalog,
            source,
            parameters: 0,
            tables: Vec::new(),
            files: Vec::new(),
            ctes: Vec::new(),
            windows: Vec::new(),
            unnamed: 0,
            in_filter: false,
            met_outer: Cell::new(false),
            correlated: Vec::new(),
        }
    }

    /// Binds a whole query whose columns are the result.
    pub(crate) fn bound(mut self, mut query: Box<Query>) -> Result<BoundQuery, SqlError> {
        let columns = self.query(&mut query, None, Mode::Result)?;
        let output = columns.known.into_iter().map(|column| OutputColumn { name: column.name }).collect();
        let (tables, files) = self.used();
        Ok(BoundQuery {
            statement: Statement::Query(query),
            output,
            exact: columns.complete,
            parameters: self.parameters,
            tables,
            files,
        })
    }

    /// The tables and files met so far.
    pub(crate) fn used(&mut self) -> (Vec<TableId>, Vec<String>) {
        self.tables.sort_unstable();
        self.tables.dedup();
        (std::mem::take(&mut self.tables), std::mem::take(&mut self.files))
    }

    /// Binds an expression in a scope.
    pub(crate) fn expr(&mut self, expr: &mut Expr, scope: &Scope<'_>) -> Result<(), SqlError> {
        expr::bind(self, expr, scope)
    }

    /// Binds a WHERE.
    pub(crate) fn filter(&mut self, condition: &mut Expr, scope: &Scope<'_>) -> Result<(), SqlError> {
        let around = std::mem::replace(&mut self.in_filter, true);
        let bound = self.expr(condition, scope);
        self.in_filter = around;
        bound?;
        self.condition(condition, scope.tree, subquery::Place::Conjunct)
    }

    pub(crate) fn error(
        &self,
        state: SqlState,
        message: impl Into<String>,
        span: sqlparser::tokenizer::Span,
    ) -> SqlError {
        self.source.locate(SqlError::new(state, message), span)
    }

    pub(crate) fn use_table(&mut self, id: TableId) {
        self.tables.push(id);
    }

    fn use_file(&mut self, path: &str) {
        if !self.files.iter().any(|file| file == path) {
            self.files.push(path.to_owned());
        }
    }

    fn name_unnamed(&mut self) -> String {
        self.unnamed += 1;
        names::fold(&names::quoted(&format!("__d{}", self.unnamed)))
    }
}
