//! INSERT, UPDATE and DELETE, bound to a table.
//!
//! Expressions stay syntax trees whose names are checked. Literals can be evaluated at once
//! ([`crate::literal::literal_value`]); for everything else the plans build queries that give the
//! new values, and for UPDATE and DELETE where the rows are.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use albireo_base::{ColumnId, SqlError, SqlState, TableId};
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    Assignment, AssignmentTarget, Delete, Expr, FromTable, GroupByExpr, Ident, Insert, ObjectName, Query,
    Select, SelectFlavor, SelectItem, SetExpr, Statement, TableFactor, TableObject, TableWithJoins, Update,
    Value,
};

use crate::bind::{
    Binder, BoundQuery, Columns, OutputColumn, Relation, Scope, Tree, label, output_name, plain_query,
    table_alias,
};
use crate::catalog::{Catalog, TableDef};
use crate::copy::column_list;
use crate::names;
use crate::source::Source;

/// What an INSERT does.
#[derive(Clone, PartialEq, Debug)]
pub struct InsertPlan {
    /// The table.
    pub table: Arc<TableDef>,
    /// The columns that get the source's values, in the source's order; the others get their
    /// defaults.
    pub columns: Vec<ColumnId>,
    /// Where the values come from.
    pub source: InsertSource,
    /// What is given back for each row; names mean the new row's columns.
    pub returning: Vec<Returning>,
    /// The highest `$n`.
    pub parameters: usize,
    /// The tables that subqueries of VALUES or the source query read.
    pub tables: Vec<TableId>,
}

/// Where an INSERT's values come from.
#[derive(Clone, PartialEq, Debug)]
pub enum InsertSource {
    /// Rows of expressions, each as long as the plan's `columns`. `DEFAULT VALUES` is one empty row
    /// for no columns.
    Values(Vec<Vec<NewValue>>),
    /// A query with as many columns.
    Query(Box<BoundQuery>),
}

/// What a column gets.
#[derive(Clone, PartialEq, Debug)]
pub enum NewValue {
    /// The column's default, or NULL if it has none.
    Default,
    /// This expression's value, cast as an assignment does.
    Expr(Expr),
}

/// One column of RETURNING.
#[derive(Clone, PartialEq, Debug)]
pub struct Returning {
    /// Its name as PostgreSQL gives it.
    pub name: String,
    /// What it is, over the table's columns.
    pub expr: Expr,
}

/// What an UPDATE does.
#[derive(Clone, PartialEq, Debug)]
pub struct UpdatePlan {
    /// The table.
    pub table: Arc<TableDef>,
    /// What expressions call the table.
    pub alias: String,
    /// The columns set and what to, over the old row.
    pub assignments: Vec<(ColumnId, NewValue)>,
    /// Which rows.
    pub filter: Option<Expr>,
    /// What is given back for each row; names mean the new row's columns.
    pub returning: Vec<Returning>,
    /// The highest `$n`.
    pub parameters: usize,
    /// The tables that subqueries read.
    pub tables: Vec<TableId>,
}

/// What a DELETE does.
#[derive(Clone, PartialEq, Debug)]
pub struct DeletePlan {
    /// The table.
    pub table: Arc<TableDef>,
    /// What expressions call the table.
    pub alias: String,
    /// Which rows.
    pub filter: Option<Expr>,
    /// What is given back for each row; names mean the old row's columns.
    pub returning: Vec<Returning>,
    /// The highest `$n`.
    pub parameters: usize,
    /// The tables that subqueries read.
    pub tables: Vec<TableId>,
}

/// Binds an INSERT. `text` is what it was parsed from.
///
/// # Errors
/// Names as [`crate::bind_query`]; 42601 if columns and values do not match in number; 0A000 for
/// ON CONFLICT and other databases' clauses.
pub fn plan_insert(catalog: &Catalog, insert: &Insert, text: &str) -> Result<InsertPlan, SqlError> {
    let source = Source::new(text);
    if insert.on.is_some() {
        return Err(SqlError::unsupported("ON CONFLICT"));
    }
    refuse_insert(insert)?;
    let TableObject::TableName(name) = &insert.table else {
        return Err(SqlError::unsupported("INSERT into other than a table"));
    };
    let table = Arc::clone(catalog.resolve_table(&names::qualified(name, source)?, source)?);
    let idents: Vec<Ident> =
        insert.columns.iter().map(|name| single(name).cloned()).collect::<Result<_, _>>()?;
    let mut columns = column_list(&table, &idents, source)?;
    let mut binder = Binder::new(catalog, source);
    let values = match &insert.source {
        None => {
            columns.clear();
            InsertSource::Values(vec![Vec::new()])
        }
        Some(query) => match bare_values(query) {
            Some(rows) => InsertSource::Values(bind_rows(&mut binder, rows)?),
            None => InsertSource::Query(Box::new(Binder::new(catalog, source).bound(query.clone())?)),
        },
    };
    let width = match &values {
        InsertSource::Values(rows) => Some(rows.first().map_or(0, Vec::len)),
        InsertSource::Query(query) => query.exact.then_some(query.output.len()),
    };
    if let Some(width) = width {
        match_widths(&mut columns, width, !idents.is_empty())?;
    }
    let alias = insert.table_alias.as_ref().map_or_else(|| table.name.clone(), |a| names::fold(&a.alias));
    let tree = target_tree(&table, &alias);
    let returning = bind_returning(&mut binder, insert.returning.as_deref(), &tree)?;
    let (mut tables, _) = binder.used();
    let mut parameters = binder.parameters;
    if let InsertSource::Query(query) = &values {
        tables.extend(&query.tables);
        parameters = parameters.max(query.parameters);
    }
    Ok(InsertPlan { table, columns, source: values, returning, parameters, tables })
}

/// Refuses other databases' clauses.
///
/// # Errors
/// 0A000.
pub fn refuse_insert(insert: &Insert) -> Result<(), SqlError> {
    let other = insert.or.is_some()
        || insert.ignore
        || insert.overwrite
        || insert.replace_into
        || insert.partitioned.is_some()
        || insert.output.is_some()
        || !insert.assignments.is_empty()
        || !insert.after_columns.is_empty()
        || insert.multi_table_insert_type.is_some();
    if other { Err(SqlError::unsupported("this form of INSERT")) } else { Ok(()) }
}

/// The name of a column that a statement changes.
///
/// # Errors
/// 0A000 for one with dots.
pub fn single(name: &ObjectName) -> Result<&Ident, SqlError> {
    match name.0.as_slice() {
        [part] => part.as_ident().ok_or_else(|| SqlError::unsupported("this column name")),
        _ => Err(SqlError::unsupported(format!("the qualified column name {name} here"))),
    }
}

/// The rows of `VALUES (...), (...)` with nothing around it.
pub fn bare_values(query: &Query) -> Option<&[sqlparser::ast::Parens<Vec<Expr>>]> {
    let bare = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none();
    match query.body.as_ref() {
        SetExpr::Values(values) if bare => Some(&values.rows),
        _ => None,
    }
}

fn bind_rows(
    binder: &mut Binder<'_>,
    rows: &[sqlparser::ast::Parens<Vec<Expr>>],
) -> Result<Vec<Vec<NewValue>>, SqlError> {
    let width = rows.first().map_or(0, |row| row.content.len());
    let tree = Tree::default();
    let scope = Scope { tree: &tree, parent: None };
    rows.iter()
        .map(|row| {
            if row.content.len() != width {
                let message = "VALUES lists must all be the same length";
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
            row.content.iter().map(|expr| bind_value(binder, expr, &scope)).collect()
        })
        .collect()
}

fn bind_value(binder: &mut Binder<'_>, expr: &Expr, scope: &Scope<'_>) -> Result<NewValue, SqlError> {
    match expr {
        Expr::Identifier(ident) if ident.quote_style.is_none() && names::fold(ident) == "default" => {
            Ok(NewValue::Default)
        }
        expr => {
            let mut expr = expr.clone();
            binder.expr(&mut expr, scope)?;
            Ok(NewValue::Expr(expr))
        }
    }
}

/// Checks that there is a column for each value. Without a list of columns, fewer values than the
/// table has columns fill the first ones, as in PostgreSQL.
///
/// # Errors
/// 42601 if columns and values do not match in number.
pub fn match_widths(columns: &mut Vec<ColumnId>, width: usize, listed: bool) -> Result<(), SqlError> {
    if width > columns.len() {
        let message = "INSERT has more expressions than target columns";
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
    }
    if width < columns.len() {
        if listed {
            let message = "INSERT has more target columns than expressions";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
        columns.truncate(width);
    }
    Ok(())
}

/// The scope that has nothing but the statement's table.
fn target_tree(table: &TableDef, alias: &str) -> Tree {
    let columns = Columns::of(table.columns.iter().map(|column| column.name.clone()));
    let hidden = (alias != table.name).then(|| table.name.clone());
    Relation { schema: None, name: alias.to_owned(), hidden, columns }.into()
}

fn bind_returning(
    binder: &mut Binder<'_>,
    items: Option<&[SelectItem]>,
    tree: &Tree,
) -> Result<Vec<Returning>, SqlError> {
    let scope = Scope { tree, parent: None };
    let mut bound = Vec::new();
    for item in items.into_iter().flatten() {
        match item {
            SelectItem::UnnamedExpr(expr) => {
                let (name, mut expr) = (label(expr), expr.clone());
                binder.expr(&mut expr, &scope)?;
                bound.push(Returning { name, expr });
            }
            SelectItem::ExprWithAlias { expr, alias } => {
                let mut expr = expr.clone();
                binder.expr(&mut expr, &scope)?;
                bound.push(Returning { name: names::fold(alias), expr });
            }
            SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => {
                let all = tree.visible.iter();
                bound.extend(all.map(|v| Returning { name: v.name.clone(), expr: v.expr.clone() }));
            }
            SelectItem::ExprWithAliases { .. } => {
                return Err(SqlError::unsupported("several aliases of one column"));
            }
        }
    }
    Ok(bound)
}

/// Binds an UPDATE. `text` is what it was parsed from.
///
/// # Errors
/// Names as [`crate::bind_query`]; 42601 if a column is set twice; 0A000 for FROM, joins and other
/// databases' clauses.
pub fn plan_update(catalog: &Catalog, update: &Update, text: &str) -> Result<UpdatePlan, SqlError> {
    let source = Source::new(text);
    if update.from.is_some() {
        return Err(SqlError::unsupported("UPDATE ... FROM").with_hint("Use a subquery in SET or WHERE."));
    }
    if update.or.is_some() || update.output.is_some() || !update.order_by.is_empty() || update.limit.is_some()
    {
        return Err(SqlError::unsupported("this form of UPDATE"));
    }
    let (table, alias) = target(catalog, &update.table, source, "UPDATE")?;
    let tree = target_tree(&table, &alias);
    let scope = Scope { tree: &tree, parent: None };
    let mut binder = Binder::new(catalog, source);
    let mut assignments = Vec::with_capacity(update.assignments.len());
    for assignment in &update.assignments {
        bind_assignment(&mut binder, assignment, &table, &scope, &mut assignments)?;
    }
    let mut filter = update.selection.clone();
    if let Some(filter) = &mut filter {
        binder.filter(filter, &scope)?;
    }
    let returning = bind_returning(&mut binder, update.returning.as_deref(), &tree)?;
    let (tables, _) = binder.used();
    let parameters = binder.parameters;
    Ok(UpdatePlan { table, alias, assignments, filter, returning, parameters, tables })
}

fn bind_assignment(
    binder: &mut Binder<'_>,
    assignment: &Assignment,
    table: &TableDef,
    scope: &Scope<'_>,
    assignments: &mut Vec<(ColumnId, NewValue)>,
) -> Result<(), SqlError> {
    let mut set = |binder: &mut Binder<'_>, name: &ObjectName, value: &Expr| {
        let ident = single(name)?;
        let id = table.resolve_column(ident, binder.source)?;
        if assignments.iter().any(|(other, _)| *other == id) {
            let message = format!("multiple assignments to same column \"{}\"", names::fold(ident));
            return Err(binder.error(SqlState::SYNTAX_ERROR, message, ident.span));
        }
        let value = bind_value(binder, value, scope)?;
        assignments.push((id, value));
        Ok(())
    };
    match (&assignment.target, &assignment.value) {
        (AssignmentTarget::ColumnName(name), value) => set(binder, name, value),
        (AssignmentTarget::Tuple(targets), Expr::Tuple(values)) if targets.len() == values.len() => {
            targets.iter().zip(values).try_for_each(|(name, value)| set(binder, name, value))
        }
        (AssignmentTarget::Tuple(_), Expr::Tuple(_)) => {
            let message = "number of columns does not match number of values";
            Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
        }
        (AssignmentTarget::Tuple(_), _) => {
            Err(SqlError::unsupported("setting several columns from one expression"))
        }
    }
}

/// The table a statement changes, and what its expressions call it.
fn target(
    catalog: &Catalog,
    item: &TableWithJoins,
    source: Source<'_>,
    what: &str,
) -> Result<(Arc<TableDef>, String), SqlError> {
    let TableFactor::Table { name, alias, args: None, .. } = &item.relation else {
        return Err(SqlError::unsupported(format!("{what} of other than a table")));
    };
    if !item.joins.is_empty() {
        return Err(SqlError::unsupported(format!("{what} with a join")));
    }
    let table = catalog.resolve_table(&names::qualified(name, source)?, source)?;
    let alias = match alias {
        Some(alias) if !alias.columns.is_empty() => {
            return Err(SqlError::unsupported(format!("{what} with column aliases")));
        }
        Some(alias) => names::fold(&alias.name),
        None => table.name.clone(),
    };
    Ok((Arc::clone(table), alias))
}

/// Binds a DELETE. `text` is what it was parsed from.
///
/// # Errors
/// Names as [`crate::bind_query`]; 0A000 for USING and other databases' clauses.
pub fn plan_delete(catalog: &Catalog, delete: &Delete, text: &str) -> Result<DeletePlan, SqlError> {
    let source = Source::new(text);
    if delete.using.is_some() {
        return Err(SqlError::unsupported("DELETE ... USING").with_hint("Use a subquery in WHERE."));
    }
    if !delete.tables.is_empty()
        || delete.output.is_some()
        || !delete.order_by.is_empty()
        || delete.limit.is_some()
    {
        return Err(SqlError::unsupported("this form of DELETE"));
    }
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
    let [item] = from.as_slice() else {
        return Err(SqlError::unsupported("DELETE from several tables"));
    };
    let (table, alias) = target(catalog, item, source, "DELETE")?;
    let tree = target_tree(&table, &alias);
    let mut binder = Binder::new(catalog, source);
    let mut filter = delete.selection.clone();
    if let Some(filter) = &mut filter {
        binder.filter(filter, &Scope { tree: &tree, parent: None })?;
    }
    let returning = bind_returning(&mut binder, delete.returning.as_deref(), &tree)?;
    let (tables, _) = binder.used();
    let parameters = binder.parameters;
    Ok(DeletePlan { table, alias, filter, returning, parameters, tables })
}

impl InsertPlan {
    /// A query without FROM that gives one row of the source's VALUES, columns `__c0`, ...; `None`
    /// for a source that is a query. NULL stands for defaults, which the caller puts in.
    pub fn row_query(&self, row: usize) -> Option<BoundQuery> {
        let InsertSource::Values(rows) = &self.source else { return None };
        let exprs = rows.get(row)?.iter().map(value_expr);
        Some(self.bound(select(exprs.collect(), Vec::new(), None)))
    }

    fn bound(&self, (statement, output): (Statement, Vec<OutputColumn>)) -> BoundQuery {
        let (parameters, tables) = (self.parameters, self.tables.clone());
        BoundQuery { statement, output, exact: true, parameters, tables, files: Vec::new() }
    }
}

/// The expression a column gets its value from; NULL in place of its default.
fn value_expr(value: &NewValue) -> Expr {
    match value {
        NewValue::Expr(expr) => expr.clone(),
        NewValue::Default => Expr::Value(Value::Null.with_empty_span()),
    }
}

impl UpdatePlan {
    /// A query that gives one row for each row to change: first the columns of `address`, which
    /// are hidden columns of the table that say where a row is, then the new values in the order
    /// of `assignments`, NULL for defaults, which the caller puts in. Columns are `__c0`, ....
    pub fn rows_query(&self, address: &[&str]) -> BoundQuery {
        let values = self.assignments.iter().map(|(_, value)| value_expr(value));
        rows_query(&self.table, &self.alias, address, values, &self.filter, self.parameters, &self.tables)
    }
}

impl DeletePlan {
    /// A query that gives one row for each row to delete: first the columns of `address`, which
    /// are hidden columns of the table that say where a row is, then those of RETURNING. Columns
    /// are `__c0`, ....
    pub fn rows_query(&self, address: &[&str]) -> BoundQuery {
        let values = self.returning.iter().map(|column| column.expr.clone());
        rows_query(&self.table, &self.alias, address, values, &self.filter, self.parameters, &self.tables)
    }
}

fn rows_query(
    table: &TableDef,
    alias: &str,
    address: &[&str],
    values: impl Iterator<Item = Expr>,
    filter: &Option<Expr>,
    parameters: usize,
    tables: &[TableId],
) -> BoundQuery {
    let hidden = address
        .iter()
        .map(|column| Expr::CompoundIdentifier(vec![names::quoted(alias), names::quoted(column)]));
    let name = ObjectName::from(vec![names::quoted(&table.schema), names::quoted(&table.name)]);
    let relation = TableFactor::Table {
        name,
        alias: Some(table_alias(alias.to_owned())),
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    };
    let from = vec![TableWithJoins { relation, joins: Vec::new() }];
    let (statement, output) = select(hidden.chain(values).collect(), from, filter.clone());
    let mut tables = tables.to_vec();
    tables.push(table.id);
    tables.sort_unstable();
    tables.dedup();
    BoundQuery { statement, output, exact: true, parameters, tables, files: Vec::new() }
}

/// `SELECT exprs FROM from WHERE filter` with the internal names.
fn select(
    exprs: Vec<Expr>,
    from: Vec<TableWithJoins>,
    filter: Option<Expr>,
) -> (Statement, Vec<OutputColumn>) {
    let output = exprs.iter().map(|expr| OutputColumn { name: label(expr) }).collect();
    let projection = exprs.into_iter().enumerate();
    let projection = projection
        .map(|(i, expr)| SelectItem::ExprWithAlias { expr, alias: names::quoted(&output_name(i)) })
        .collect();
    let select = Select {
        select_token: AttachedToken::empty(),
        optimizer_hints: Vec::new(),
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: false,
        projection,
        exclude: None,
        into: None,
        from,
        lateral_views: Vec::new(),
        prewhere: None,
        selection: filter,
        connect_by: Vec::new(),
        group_by: GroupByExpr::Expressions(Vec::new(), Vec::new()),
        cluster_by: Vec::new(),
        distribute_by: Vec::new(),
        sort_by: Vec::new(),
        having: None,
        named_window: Vec::new(),
        qualify: None,
        window_before_qualify: false,
        value_table_mode: None,
        flavor: SelectFlavor::Standard,
    };
    let query = plain_query(SetExpr::Select(Box::new(select)));
    (Statement::Query(Box::new(query)), output)
}
