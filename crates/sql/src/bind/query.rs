//! Whole queries: WITH, set operations, VALUES, LIMIT.

use albireo_base::{SqlError, SqlState};
use sqlparser::ast::{Expr, LimitClause, Query, SetExpr, SetOperator, Value, Values, With};

use super::{Binder, Columns, Mode, Scope, Tree, expr};
use crate::names;

impl Binder<'_> {
    /// Binds a query and says what columns it gives.
    pub(super) fn query(
        &mut self,
        query: &mut Query,
        outer: Option<&Scope<'_>>,
        mode: Mode,
    ) -> Result<Columns, SqlError> {
        refuse_clauses(query)?;
        fetch_as_limit(query);
        let ctes = self.ctes.len();
        if let Some(with) = &mut query.with {
            self.with(with, outer)?;
        }
        let columns = match query.body.as_mut() {
            SetExpr::Select(select) => self.select(select, query.order_by.as_mut(), outer, mode)?,
            body => {
                let columns = self.set_expr(body, outer, mode)?;
                if let Some(order_by) = &mut query.order_by {
                    self.order_by_output(order_by, &columns, outer, mode)?;
                }
                columns
            }
        };
        self.limit(query)?;
        self.ctes.truncate(ctes);
        Ok(columns)
    }

    fn with(&mut self, with: &mut With, outer: Option<&Scope<'_>>) -> Result<(), SqlError> {
        let first = self.ctes.len();
        for cte in &mut with.cte_tables {
            let name = names::fold(&cte.alias.name);
            if self.ctes[first..].iter().any(|(other, _)| *other == name) {
                let message = format!("WITH query name \"{name}\" specified more than once");
                return Err(self.error(SqlState::DUPLICATE_ALIAS, message, cte.alias.name.span));
            }
            let before = self.ctes.len();
            if with.recursive {
                let columns = self.recursive_columns(cte, outer)?;
                self.ctes.push((name.clone(), columns));
            }
            let columns = self.query(&mut cte.query, outer, Mode::Derived)?;
            self.ctes.truncate(before);
            let columns = self.rename(columns, &mut cte.alias, &name)?;
            self.ctes.push((name, columns));
        }
        Ok(())
    }

    /// The columns a recursive WITH query has to itself: those of its first branch.
    fn recursive_columns(
        &mut self,
        cte: &sqlparser::ast::Cte,
        outer: Option<&Scope<'_>>,
    ) -> Result<Columns, SqlError> {
        let SetExpr::SetOperation { left, .. } = cte.query.body.as_ref() else {
            return Ok(Columns::unknown());
        };
        let mut first = left.clone();
        let columns = match self.set_expr(&mut first, outer, Mode::Derived) {
            Ok(columns) => columns,
            // It may use a WITH query of its own query; the real visit will tell.
            Err(_) => return Ok(Columns::unknown()),
        };
        let mut alias = cte.alias.clone();
        self.rename(columns, &mut alias, &names::fold(&cte.alias.name))
    }

    /// A query's body with no ORDER BY of its own.
    fn set_expr(
        &mut self,
        body: &mut SetExpr,
        outer: Option<&Scope<'_>>,
        mode: Mode,
    ) -> Result<Columns, SqlError> {
        match body {
            SetExpr::Select(select) => self.select(select, None, outer, mode),
            SetExpr::Query(query) => self.query(query, outer, mode),
            SetExpr::SetOperation { left, op, right, .. } => {
                let l = self.set_expr(left, outer, mode)?;
                let r = self.set_expr(right, outer, mode)?;
                if l.complete && r.complete && l.known.len() != r.known.len() {
                    let op = match op {
                        SetOperator::Union => "UNION",
                        SetOperator::Except | SetOperator::Minus => "EXCEPT",
                        SetOperator::Intersect => "INTERSECT",
                    };
                    let message = format!("each {op} query must have the same number of columns");
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
                }
                Ok(Columns { complete: l.complete && r.complete, ..l })
            }
            SetExpr::Values(values) => self.values(values, outer),
            SetExpr::Table(table) => {
                let schema = table.schema_name.iter().map(|name| names::display(&name.to_lowercase()));
                let name = table.table_name.iter().map(|name| names::display(&name.to_lowercase()));
                let parts: Vec<String> = schema.chain(name).collect();
                let select = crate::parse::parse_one(&format!("SELECT * FROM {}", parts.join(".")))?;
                let sqlparser::ast::Statement::Query(query) = select else {
                    return Err(SqlError::unsupported("TABLE"));
                };
                *body = *query.body;
                self.set_expr(body, outer, mode)
            }
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                Err(SqlError::unsupported("a data-modifying statement in WITH"))
            }
        }
    }

    fn values(&mut self, values: &mut Values, outer: Option<&Scope<'_>>) -> Result<Columns, SqlError> {
        let tree = Tree::default();
        let width = values.rows.first().map_or(0, |row| row.content.len());
        for row in &mut values.rows {
            if row.content.len() != width {
                let message = "VALUES lists must all be the same length";
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
            expr::walk(self, &mut row.content, &Scope { tree: &tree, parent: outer })?;
        }
        Ok(Columns::of((1..=width).map(|i| format!("column{i}"))))
    }

    /// LIMIT and OFFSET see no columns.
    fn limit(&mut self, query: &mut Query) -> Result<(), SqlError> {
        let tree = Tree::default();
        let scope = Scope { tree: &tree, parent: None };
        match &mut query.limit_clause {
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) => {
                if !limit_by.is_empty() {
                    return Err(SqlError::unsupported("LIMIT BY"));
                }
                if let Some(limit) = limit {
                    self.expr(limit, &scope)?;
                }
                match offset {
                    Some(offset) => self.expr(&mut offset.value, &scope),
                    None => Ok(()),
                }
            }
            Some(LimitClause::OffsetCommaLimit { .. }) => {
                let message = "LIMIT #,# syntax is not supported";
                Err(SqlError::new(SqlState::SYNTAX_ERROR, message)
                    .with_hint("Use separate LIMIT and OFFSET clauses."))
            }
            None => Ok(()),
        }
    }
}

/// FETCH FIRST n ROWS is LIMIT n, and one row without n.
fn fetch_as_limit(query: &mut Query) {
    let Some(fetch) = query.fetch.take() else { return };
    let one = || Expr::Value(Value::Number("1".to_owned(), false).with_empty_span());
    let quantity = fetch.quantity.unwrap_or_else(one);
    match &mut query.limit_clause {
        Some(LimitClause::LimitOffset { limit, .. }) => *limit = Some(quantity),
        _ => {
            query.limit_clause =
                Some(LimitClause::LimitOffset { limit: Some(quantity), offset: None, limit_by: Vec::new() });
        }
    }
}

fn refuse_clauses(query: &Query) -> Result<(), SqlError> {
    if !query.locks.is_empty() {
        return Err(SqlError::unsupported("SELECT ... FOR UPDATE")
            .with_hint("Transactions are serializable without it; leave it out."));
    }
    if query.fetch.as_ref().is_some_and(|fetch| fetch.with_ties || fetch.percent) {
        return Err(SqlError::unsupported("FETCH FIRST ... WITH TIES"));
    }
    let other = query.for_clause.is_some()
        || query.settings.is_some()
        || query.format_clause.is_some()
        || !query.pipe_operators.is_empty();
    if other { Err(SqlError::unsupported("this clause of SELECT")) } else { Ok(()) }
}
