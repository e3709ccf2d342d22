//! CREATE TABLE.

use std::ops::ControlFlow;
use std::sync::Arc;

use albireo_base::{ColumnId, IndexId, SqlError, SqlState};
use sqlparser::ast::{
    self, ColumnOption, CreateTable, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    NullsDistinctOption, TableConstraint,
};
use sqlparser::tokenizer::Span;

use super::index::{can_partition_by, check_partitioned_key, free_name, index_kind, key_columns};
use super::{DdlPlan, layout, object, options};
use crate::catalog::{
    Catalog, CheckDef, ColumnDef, DEFAULT_SCHEMA, DdlChange, Freeze, IndexDef, IndexKeys, IndexKind,
    IndexRole, Layout, StoredExpr, TableDef,
};
use crate::names::{self, QualifiedName};
use crate::source::Source;
use crate::types;
use crate::walk::Walk as _;

const TAG: &str = "CREATE TABLE";
/// How many columns a table may have; PostgreSQL's limit.
const MAX_COLUMNS: usize = 1600;

/// A key as written, before the indexes are made.
struct Key {
    name: Option<Ident>,
    columns: Vec<ColumnId>,
    kind: IndexKind,
    role: IndexRole,
}

/// A table in the making.
struct Builder<'a> {
    catalog: &'a Catalog,
    source: Source<'a>,
    table: TableDef,
    keys: Vec<Key>,
    /// Columns that said NULL in so many words.
    said_null: Vec<ColumnId>,
}

pub(super) fn plan(catalog: &Catalog, create: &CreateTable, source: Source<'_>) -> Result<DdlPlan, SqlError> {
    refuse_clauses(create)?;
    let name = names::qualified(&create.name, source)?;
    let schema = name.schema.clone().unwrap_or_else(|| DEFAULT_SCHEMA.to_owned());
    check_schema(catalog, &schema, &name, source)?;
    if catalog.relation(Some(&schema), &name.name).is_some() {
        let message = format!("relation \"{}\" already exists", name.name);
        return match create.if_not_exists {
            true => Ok(DdlPlan::nothing(TAG, format!("{message}, skipping"))),
            false => Err(source.locate(SqlError::new(SqlState::DUPLICATE_TABLE, message), name.span)),
        };
    }
    let table = TableDef {
        id: catalog.next_table_id(),
        schema,
        name: name.name,
        columns: Vec::with_capacity(create.columns.len()),
        indexes: Vec::new(),
        checks: Vec::new(),
        partition_by: None,
        layout: Layout::default(),
        freeze: Freeze::default(),
        next_index: 0,
    };
    let mut builder = Builder { catalog, source, table, keys: Vec::new(), said_null: Vec::new() };
    builder.columns(&create.columns)?;
    for column in &create.columns {
        builder.column_constraints(column)?;
    }
    for constraint in &create.constraints {
        builder.constraint(constraint)?;
    }
    builder.table.partition_by = builder.partition_by(create.partition_by.as_deref())?;
    builder.indexes()?;
    let options = options::read(&create.table_options, source)?;
    builder.table.layout = layout::layout(&builder.table, &options, source)?;
    builder.table.freeze = options.freeze(source)?;
    Ok(DdlPlan::one(TAG, DdlChange::CreateTable(Arc::new(builder.table))))
}

fn check_schema(
    catalog: &Catalog,
    schema: &str,
    name: &QualifiedName,
    source: Source<'_>,
) -> Result<(), SqlError> {
    if catalog.has_schema(schema) {
        return Ok(());
    }
    let error = SqlError::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{schema}\" does not exist"));
    let error = match names::closest(schema, catalog.schemas()) {
        Some(near) => error.with_hint(format!("Perhaps you meant the schema \"{near}\".")),
        None if object::is_system(schema) => error,
        None => error.with_hint(format!("CREATE SCHEMA {} makes it.", names::display(schema))),
    };
    Err(source.locate(error, name.span))
}

fn refuse_clauses(create: &CreateTable) -> Result<(), SqlError> {
    if create.query.is_some() {
        return Err(SqlError::unsupported("CREATE TABLE ... AS")
            .with_hint("Create the table first, then INSERT INTO ... SELECT."));
    }
    let refused = [
        (create.or_replace, "CREATE OR REPLACE TABLE"),
        (create.temporary || create.global.is_some(), "a temporary table"),
        (create.external, "an external table"),
        (create.like.is_some() || create.clone.is_some(), "CREATE TABLE ... LIKE"),
        (create.inherits.is_some(), "INHERITS"),
        (create.partition_of.is_some() || create.for_values.is_some(), "PARTITION OF"),
        (create.on_commit.is_some(), "ON COMMIT"),
        (create.transient || create.volatile || create.iceberg || create.dynamic, "this kind of table"),
        (create.primary_key.is_some() || create.order_by.is_some(), "ORDER BY in CREATE TABLE"),
        (create.cluster_by.is_some() || create.clustered_by.is_some(), "CLUSTER BY in CREATE TABLE"),
        (create.without_rowid || create.strict, "this option of CREATE TABLE"),
        (create.comment.is_some(), "COMMENT in CREATE TABLE"),
    ];
    match refused.into_iter().find(|(present, _)| *present) {
        Some((_, what)) => Err(SqlError::unsupported(what)),
        None => Ok(()),
    }
}

impl Builder<'_> {
    fn error(&self, state: SqlState, message: impl Into<String>, span: Span) -> SqlError {
        self.source.locate(SqlError::new(state, message), span)
    }

    /// Names and types.
    fn columns(&mut self, columns: &[ast::ColumnDef]) -> Result<(), SqlError> {
        if columns.is_empty() {
            return Err(SqlError::unsupported("a table without columns"));
        }
        if columns.len() > MAX_COLUMNS {
            let message = format!("tables can have at most {MAX_COLUMNS} columns");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        for column in columns {
            let name = names::checked(&column.name, self.source)?;
            if self.table.column(&name).is_some() {
                let message = format!("column \"{name}\" specified more than once");
                return Err(self.error(SqlState::DUPLICATE_COLUMN, message, column.name.span));
            }
            let ty = types::sql_type(&column.data_type)
                .map_err(|error| self.source.locate(error, column.name.span))?;
            self.table.columns.push(ColumnDef { name, ty, nullable: true, default: None });
        }
        Ok(())
    }

    /// What stands behind a column's type.
    fn column_constraints(&mut self, column: &ast::ColumnDef) -> Result<(), SqlError> {
        let id = self.table.resolve_column(&column.name, self.source)?;
        for option in &column.options {
            let span = column.name.span;
            match &option.option {
                ColumnOption::Null => self.said_null.push(id),
                ColumnOption::NotNull => self.table.columns[id.index()].nullable = false,
                ColumnOption::Default(expr) => self.default(id, expr, span)?,
                ColumnOption::PrimaryKey(key) => {
                    let name = option.name.clone().or_else(|| key.name.clone());
                    self.primary_key(name, vec![id], IndexKind::Ordered, span)?;
                }
                ColumnOption::Unique(unique) => {
                    refuse_nulls_not_distinct(&unique.nulls_distinct)?;
                    let name = option.name.clone().or_else(|| unique.name.clone());
                    self.keys.push(Key {
                        name,
                        columns: vec![id],
                        kind: IndexKind::Ordered,
                        role: IndexRole::Unique,
                    });
                }
                ColumnOption::Check(check) => {
                    let name = option.name.clone().or_else(|| check.name.clone());
                    self.check(name, &check.expr, check.enforced, Some(id))?;
                }
                ColumnOption::ForeignKey(_) => return Err(foreign_key(self.source, span)),
                ColumnOption::Collation(name) => {
                    let error = SqlError::unsupported(format!("COLLATE {name}"))
                        .with_hint("Strings are compared by their UTF-8 bytes, like COLLATE \"C\".");
                    return Err(self.source.locate(error, span));
                }
                ColumnOption::Generated { .. } | ColumnOption::Identity(_) => {
                    return Err(self.source.locate(SqlError::unsupported("a generated column"), span));
                }
                other => {
                    let error = SqlError::unsupported(format!("the column option {other}"));
                    return Err(self.source.locate(error, span));
                }
            }
        }
        if self.said_null.contains(&id) && !self.table.column_def(id).nullable {
            let message = format!(
                "conflicting NULL/NOT NULL declarations for column \"{}\" of table \"{}\"",
                self.table.column_def(id).name,
                self.table.name
            );
            return Err(self.error(SqlState::SYNTAX_ERROR, message, column.name.span));
        }
        Ok(())
    }

    fn default(&mut self, id: ColumnId, expr: &Expr, span: Span) -> Result<(), SqlError> {
        if self.table.column_def(id).default.is_some() {
            let message = format!(
                "multiple default values specified for column \"{}\" of table \"{}\"",
                self.table.column_def(id).name,
                self.table.name
            );
            return Err(self.error(SqlState::SYNTAX_ERROR, message, span));
        }
        refuse_parts(expr, "DEFAULT expression", self.source)?;
        if let Some([column, ..]) = referenced_columns(expr).first().map(Vec::as_slice) {
            let message = "cannot use column reference in DEFAULT expression";
            return Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, column.span));
        }
        self.table.columns[id.index()].default = Some(StoredExpr::new(expr.clone()));
        Ok(())
    }

    /// What stands among the columns.
    fn constraint(&mut self, constraint: &TableConstraint) -> Result<(), SqlError> {
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                let columns = key_columns(&self.table, &key.columns, self.source)?;
                let kind = self.key_kind(key.index_type.as_ref(), &key.index_options)?;
                let span = key.name.as_ref().map_or(Span::empty(), |name| name.span);
                self.primary_key(key.name.clone(), columns, kind, span)
            }
            TableConstraint::Unique(unique) => {
                refuse_nulls_not_distinct(&unique.nulls_distinct)?;
                let columns = key_columns(&self.table, &unique.columns, self.source)?;
                let kind = self.key_kind(unique.index_type.as_ref(), &unique.index_options)?;
                self.keys.push(Key { name: unique.name.clone(), columns, kind, role: IndexRole::Unique });
                Ok(())
            }
            TableConstraint::Check(check) => {
                self.check(check.name.clone(), &check.expr, check.enforced, None)
            }
            TableConstraint::ForeignKey(key) => {
                let span = key.columns.first().map_or(Span::empty(), |column| column.span);
                Err(foreign_key(self.source, span))
            }
            other => Err(SqlError::unsupported(format!("the constraint {other}"))),
        }
    }

    /// What `USING ...` says, which may stand before the key's columns or behind them.
    fn key_kind(
        &self,
        before: Option<&ast::IndexType>,
        behind: &[ast::IndexOption],
    ) -> Result<IndexKind, SqlError> {
        let mut using = before;
        for option in behind {
            match option {
                ast::IndexOption::Using(kind) if using.is_none() => using = Some(kind),
                other => return Err(SqlError::unsupported(format!("the key option {other}"))),
            }
        }
        using.map_or(Ok(IndexKind::Ordered), |using| index_kind(using, self.source))
    }

    fn primary_key(
        &mut self,
        name: Option<Ident>,
        columns: Vec<ColumnId>,
        kind: IndexKind,
        span: Span,
    ) -> Result<(), SqlError> {
        if self.keys.iter().any(|key| key.role == IndexRole::PrimaryKey) {
            let message = format!("multiple primary keys for table \"{}\" are not allowed", self.table.name);
            return Err(self.error(SqlState::INVALID_TABLE_DEFINITION, message, span));
        }
        for column in &columns {
            self.table.columns[column.index()].nullable = false;
        }
        self.keys.push(Key { name, columns, kind, role: IndexRole::PrimaryKey });
        Ok(())
    }

    fn check(
        &mut self,
        name: Option<Ident>,
        expr: &Expr,
        enforced: Option<bool>,
        column: Option<ColumnId>,
    ) -> Result<(), SqlError> {
        if enforced == Some(false) {
            return Err(SqlError::unsupported("NOT ENFORCED"));
        }
        refuse_parts(expr, "check constraint", self.source)?;
        let mut columns = Vec::new();
        for parts in referenced_columns(expr) {
            let [.., ident] = parts.as_slice() else { continue };
            // Whoever binds the condition refuses those of other tables.
            if let [.., table, _] = parts.as_slice()
                && names::fold(table) != self.table.name
            {
                continue;
            }
            let found = self.table.column(&names::fold(ident));
            let Some(id) = found else {
                let message = format!("column \"{}\" does not exist", names::fold(ident));
                let error = self.error(SqlState::UNDEFINED_COLUMN, message, ident.span);
                let like = self.table.resolve_column(ident, self.source).err();
                let hint = like.as_ref().and_then(SqlError::hint);
                return Err(hint.map_or(error.clone(), |hint| error.with_hint(hint)));
            };
            columns.push(id);
        }
        columns.sort_unstable();
        columns.dedup();
        let taken = |name: &str| self.table.checks.iter().any(|check| check.name == name);
        let name = match name {
            Some(ident) => {
                let name = names::checked(&ident, self.source)?;
                if taken(&name) {
                    let message =
                        format!("constraint \"{name}\" for relation \"{}\" already exists", self.table.name);
                    return Err(self.error(SqlState::DUPLICATE_OBJECT, message, ident.span));
                }
                name
            }
            // PostgreSQL names it after its column, or its only column.
            None => {
                let named_after = column.or(if columns.len() == 1 { columns.first().copied() } else { None });
                free_name(&self.table, named_after.as_slice(), "check", taken)
            }
        };
        self.table.checks.push(CheckDef { name, expr: StoredExpr::new(expr.clone()), columns });
        Ok(())
    }

    fn partition_by(&self, clause: Option<&Expr>) -> Result<Option<ColumnId>, SqlError> {
        let Some(clause) = clause else { return Ok(None) };
        let hint = "Write PARTITION BY HASH (column).";
        let Expr::Function(function) = clause else {
            return Err(SqlError::unsupported("this form of PARTITION BY").with_hint(hint));
        };
        let method = function.name.to_string().to_lowercase();
        if method != "hash" {
            return Err(
                SqlError::unsupported(format!("PARTITION BY {}", method.to_uppercase())).with_hint(hint)
            );
        }
        let FunctionArguments::List(list) = &function.args else {
            return Err(SqlError::unsupported("this form of PARTITION BY").with_hint(hint));
        };
        let [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(column)))] = list.args.as_slice()
        else {
            return Err(SqlError::unsupported("partitioning by other than one column").with_hint(hint));
        };
        let name = names::fold(column);
        let id = self.table.resolve_column(column, self.source).map_err(|like| {
            let message = format!("column \"{name}\" named in partition key does not exist");
            let error = self.error(SqlState::UNDEFINED_COLUMN, message, column.span);
            like.hint().map_or(error.clone(), |hint| error.with_hint(hint))
        })?;
        let ty = self.table.column_def(id).ty;
        if !can_partition_by(ty) {
            let error = SqlError::unsupported(format!("partitioning by a column of type {ty}"));
            return Err(self.source.locate(error, column.span));
        }
        Ok(Some(id))
    }

    /// Gives the keys names and ids, the primary key first.
    fn indexes(&mut self) -> Result<(), SqlError> {
        let mut keys = std::mem::take(&mut self.keys);
        keys.sort_by_key(|key| key.role != IndexRole::PrimaryKey);
        for key in keys {
            // The same key twice is one index, as in PostgreSQL.
            if key.name.is_none() && self.table.indexes.iter().any(|index| index.columns == key.columns) {
                continue;
            }
            let what = if key.role == IndexRole::PrimaryKey { "PRIMARY KEY" } else { "UNIQUE" };
            check_partitioned_key(&self.table, &key.columns, what)?;
            let name = self.index_name(&key)?;
            let id = IndexId(self.table.next_index);
            self.table.next_index += 1;
            let Key { columns, kind, role, .. } = key;
            self.table.indexes.push(IndexDef {
                id,
                name,
                columns,
                unique: true,
                kind,
                keys: IndexKeys::Prefix,
                role,
            });
        }
        Ok(())
    }

    fn index_name(&self, key: &Key) -> Result<String, SqlError> {
        let taken = |name: &str| {
            name == self.table.name
                || self.table.indexes.iter().any(|index| index.name == name)
                || self.catalog.relation(Some(&self.table.schema), name).is_some()
        };
        let Some(ident) = &key.name else {
            return Ok(match key.role {
                IndexRole::PrimaryKey => free_name(&self.table, &[], "pkey", taken),
                _ => free_name(&self.table, &key.columns, "key", taken),
            });
        };
        let name = names::checked(ident, self.source)?;
        if taken(&name) {
            let message = format!("relation \"{name}\" already exists");
            return Err(self.error(SqlState::DUPLICATE_TABLE, message, ident.span));
        }
        Ok(name)
    }
}

fn refuse_nulls_not_distinct(option: &NullsDistinctOption) -> Result<(), SqlError> {
    match option {
        NullsDistinctOption::NotDistinct => Err(SqlError::unsupported("NULLS NOT DISTINCT")),
        _ => Ok(()),
    }
}

fn foreign_key(source: Source<'_>, span: Span) -> SqlError {
    let error = SqlError::unsupported("FOREIGN KEY")
        .with_detail("References between tables are not enforced yet, so they are not accepted either.")
        .with_hint("Leave the REFERENCES or FOREIGN KEY clause out.");
    source.locate(error, span)
}

/// Refuses what no stored expression may contain.
fn refuse_parts(expr: &Expr, place: &str, source: Source<'_>) -> Result<(), SqlError> {
    let mut found = None;
    expr.any_expression(&mut |part| {
        found = Some(match part {
            Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => {
                SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("cannot use subquery in {place}"))
            }
            Expr::Value(value) => match &value.value {
                ast::Value::Placeholder(name) => {
                    let message = format!("there is no parameter {name}");
                    source.locate(SqlError::new(SqlState::UNDEFINED_PARAMETER, message), value.span)
                }
                _ => return ControlFlow::Continue(()),
            },
            Expr::Function(function) if function.over.is_some() => {
                let message = format!("window functions are not allowed in {place}s");
                SqlError::new(SqlState::WINDOWING_ERROR, message)
            }
            _ => return ControlFlow::Continue(()),
        });
        ControlFlow::Break(())
    });
    found.map_or(Ok(()), Err)
}

/// All column references, each in its parts.
fn referenced_columns(expr: &Expr) -> Vec<Vec<Ident>> {
    let mut found = Vec::new();
    expr.any_expression(&mut |part| {
        match part {
            Expr::Identifier(ident) => found.push(vec![ident.clone()]),
            Expr::CompoundIdentifier(parts) => found.push(parts.clone()),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    found
}
