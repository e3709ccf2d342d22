//! CREATE INDEX, and the rules that all keys share.

use albireo_base::{ColumnId, SqlError, SqlState, SqlType};
use sqlparser::ast::{BinaryOperator, CreateIndex, Expr, Ident, IndexColumn, IndexType};

use super::DdlPlan;
use super::options::text_of;
use crate::catalog::{Catalog, DdlChange, IndexDef, IndexKeys, IndexKind, IndexRole, TableDef};
use crate::names;
use crate::source::Source;

/// How many columns a key may have; PostgreSQL's limit.
pub(super) const MAX_KEY_COLUMNS: usize = 32;

pub(super) fn plan_create(
    catalog: &Catalog,
    create: &CreateIndex,
    source: Source<'_>,
) -> Result<DdlPlan, SqlError> {
    const TAG: &str = "CREATE INDEX";
    refuse_clauses(create)?;
    let table_name = names::qualified(&create.table_name, source)?;
    let table = catalog.resolve_table(&table_name, source)?;
    let columns = key_columns(table, &create.columns, source)?;
    let kind = match &create.using {
        None => IndexKind::Ordered,
        Some(using) => index_kind(using, source)?,
    };
    let keys = index_keys(kind, &create.with, source)?;
    let name = match &create.name {
        Some(name) => {
            let name = names::qualified(name, source)?;
            if name.schema.as_ref().is_some_and(|schema| *schema != table.schema) {
                let message = "an index lies in the schema of its table";
                return Err(source.locate(SqlError::new(SqlState::SYNTAX_ERROR, message), name.span));
            }
            if catalog.relation(Some(&table.schema), &name.name).is_some() {
                let message = format!("relation \"{}\" already exists", name.name);
                if create.if_not_exists {
                    return Ok(DdlPlan::nothing(TAG, format!("{message}, skipping")));
                }
                return Err(source.locate(SqlError::new(SqlState::DUPLICATE_TABLE, message), name.span));
            }
            name.name
        }
        None => {
            let taken = |name: &str| catalog.relation(Some(&table.schema), name).is_some();
            free_name(table, &columns, "idx", taken)
        }
    };
    if create.unique {
        check_partitioned_key(table, &columns, "UNIQUE")?;
    }
    let id = table.next_index_id();
    let index = IndexDef { id, name, columns, unique: create.unique, kind, keys, role: IndexRole::Plain };
    Ok(DdlPlan::one(TAG, DdlChange::CreateIndex { table: table.id, index }))
}

fn refuse_clauses(create: &CreateIndex) -> Result<(), SqlError> {
    let refused = [
        (create.concurrently, "CREATE INDEX CONCURRENTLY"),
        (!create.include.is_empty(), "INCLUDE in CREATE INDEX"),
        (create.nulls_distinct == Some(false), "NULLS NOT DISTINCT"),
        (create.predicate.is_some(), "a partial index"),
        (!create.index_options.is_empty() || !create.alter_options.is_empty(), "this option of CREATE INDEX"),
    ];
    match refused.into_iter().find(|(present, _)| *present) {
        Some((_, what)) => Err(SqlError::unsupported(what)),
        None => Ok(()),
    }
}

/// `btree` (also `ordered`) or `hash`.
pub(super) fn index_kind(using: &IndexType, source: Source<'_>) -> Result<IndexKind, SqlError> {
    match using {
        IndexType::BTree => Ok(IndexKind::Ordered),
        IndexType::Hash => Ok(IndexKind::Hash),
        IndexType::Custom(name) if names::fold(name) == "ordered" => Ok(IndexKind::Ordered),
        other => {
            let (name, span) = match other {
                IndexType::Custom(ident) => (names::fold(ident), Some(ident.span)),
                other => (other.to_string().to_lowercase(), None),
            };
            let message = format!("access method \"{name}\" does not exist");
            let error = SqlError::new(SqlState::UNDEFINED_OBJECT, message)
                .with_hint("There are \"btree\" (also called \"ordered\") and \"hash\".");
            Err(span.map_or(error.clone(), |span| source.locate(error, span)))
        }
    }
}

/// `WITH (keys = 'prefix' | 'none')`.
fn index_keys(kind: IndexKind, options: &[Expr], source: Source<'_>) -> Result<IndexKeys, SqlError> {
    let invalid = |message: String| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
    let mut keys = None;
    for option in options {
        let (ident, text) = match option {
            Expr::Identifier(ident) => (ident, Some("true".to_owned())),
            Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => match &**left {
                Expr::Identifier(ident) => (ident, text_of(right)),
                _ => return Err(SqlError::unsupported("this kind of index option")),
            },
            _ => return Err(SqlError::unsupported("this kind of index option")),
        };
        let refuse = |error: SqlError| Err(source.locate(error, ident.span));
        let name = names::fold(ident);
        if name != "keys" || kind != IndexKind::Ordered {
            let error = invalid(format!("unrecognized parameter \"{name}\""));
            return refuse(match kind {
                IndexKind::Ordered => error.with_hint("Ordered indexes have the option keys."),
                IndexKind::Hash => error.with_hint("Hash indexes have no options."),
            });
        }
        let chosen = match text.as_deref().map(str::to_lowercase).as_deref() {
            Some("prefix") => IndexKeys::Prefix,
            Some("none") => IndexKeys::None,
            _ => {
                let given = text.unwrap_or_else(|| right_side(option));
                let error = invalid(format!("invalid value for enum option \"keys\": {given}"));
                return refuse(error.with_detail("Valid values are \"prefix\" and \"none\"."));
            }
        };
        if keys.replace(chosen).is_some() {
            return refuse(invalid(format!("parameter \"{name}\" specified more than once")));
        }
    }
    Ok(keys.unwrap_or_default())
}

/// The value of an option as it was written.
fn right_side(option: &Expr) -> String {
    match option {
        Expr::BinaryOp { right, .. } => right.to_string(),
        other => other.to_string(),
    }
}

/// The columns of a key, each a plain column named once.
pub(super) fn key_columns(
    table: &TableDef,
    columns: &[IndexColumn],
    source: Source<'_>,
) -> Result<Vec<ColumnId>, SqlError> {
    let mut found: Vec<ColumnId> = Vec::with_capacity(columns.len());
    for column in columns {
        let ident = plain_column(column)?;
        let name = names::fold(ident);
        let Some(id) = table.column(&name) else {
            let error = match table.resolve_column(ident, source) {
                // PostgreSQL's words for a key.
                Err(error) => {
                    let message = format!("column \"{name}\" named in key does not exist");
                    let plain = SqlError::new(SqlState::UNDEFINED_COLUMN, message);
                    error.hint().map_or(plain.clone(), |hint| plain.with_hint(hint))
                }
                Ok(_) => unreachable!("the column was looked up just now"),
            };
            return Err(source.locate(error, ident.span));
        };
        if found.contains(&id) {
            let message = format!("column \"{name}\" appears twice in a key");
            return Err(source.locate(SqlError::new(SqlState::DUPLICATE_COLUMN, message), ident.span));
        }
        found.push(id);
    }
    if found.len() > MAX_KEY_COLUMNS {
        let message = format!("cannot use more than {MAX_KEY_COLUMNS} columns in an index");
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    Ok(found)
}

fn plain_column(column: &IndexColumn) -> Result<&Ident, SqlError> {
    let options = &column.column.options;
    let ascending = options.asc != Some(false) && options.nulls_first != Some(true);
    match &column.column.expr {
        _ if column.operator_class.is_some() => Err(SqlError::unsupported("an operator class in a key")),
        _ if !ascending => Err(SqlError::unsupported("a descending key")
            .with_hint("An ordered index is read in both directions; leave DESC and NULLS FIRST out.")),
        Expr::Identifier(ident) => Ok(ident),
        _ => Err(SqlError::unsupported("an index on an expression")),
    }
}

/// 42P16 if a unique key of a partitioned table lacks the partitioning column: rows with the same
/// key could then lie in different partitions, and nobody would see both.
pub(super) fn check_partitioned_key(table: &TableDef, key: &[ColumnId], what: &str) -> Result<(), SqlError> {
    let Some(partition_by) = table.partition_by.filter(|column| !key.contains(column)) else {
        return Ok(());
    };
    let column = &table.column_def(partition_by).name;
    let message = "unique constraint on partitioned table must include all partitioning columns";
    Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
        .with_detail(format!(
            "{what} constraint on table \"{}\" lacks column \"{column}\" which is part of the partition key.",
            table.name
        ))
        .with_hint(format!("Add \"{column}\" to the key, or leave PARTITION BY out.")))
}

/// A free name as PostgreSQL makes them: `table_column_suffix`, with a number if need be.
pub(super) fn free_name(
    table: &TableDef,
    columns: &[ColumnId],
    suffix: &str,
    taken: impl Fn(&str) -> bool,
) -> String {
    let mut stem = table.name.clone();
    for column in columns {
        stem.push('_');
        stem.push_str(&table.column_def(*column).name);
    }
    let room = names::MAX_NAME_BYTES - suffix.len() - 6;
    while stem.len() > room {
        stem.pop();
    }
    let first = format!("{stem}_{suffix}");
    if !taken(&first) {
        return first;
    }
    let numbered = (1_u32..).map(|n| format!("{stem}_{suffix}{n}")).find(|name| !taken(name));
    numbered.expect("names are never all taken")
}

/// Whether a column of this type can be hashed to place a row.
pub(super) fn can_partition_by(ty: SqlType) -> bool {
    !matches!(ty, SqlType::Real | SqlType::Double)
}
