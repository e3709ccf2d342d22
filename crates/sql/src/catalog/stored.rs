//! A catalog as it is kept in files: plain data with names, types and expressions as SQL texts.
//!
//! Responsible for: the way there and back. Not responsible for: the files.
//!
//! I-1 A catalog that was kept and restored is equal, ids and version included, so that records of the
//! redo log mean the same tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use albireo_base::{ColumnId, IndexId, SqlError, SqlState, SqlType, TableId};
use serde::{Deserialize, Serialize};
use sqlparser::ast::Expr;

use super::{
    Catalog, CheckDef, ColumnDef, Freeze, IndexDef, IndexKeys, IndexKind, IndexRole, Layout, Relation,
    Schema, StoredExpr, TableDef,
};
use crate::parse::parse_expr;
use crate::types;

/// A [`Catalog`] as plain data.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct StoredCatalog {
    /// Its version.
    pub version: u64,
    /// The id that the next table will get.
    pub next_table: u32,
    /// The schemas' names.
    pub schemas: Vec<String>,
    /// Its tables, by id.
    pub tables: Vec<StoredTable>,
}

/// A [`TableDef`] as plain data.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct StoredTable {
    /// Its id.
    pub id: u32,
    /// The schema it is in.
    pub schema: String,
    /// Its name there.
    pub name: String,
    /// Its columns.
    pub columns: Vec<StoredColumn>,
    /// Its indexes.
    pub indexes: Vec<StoredIndex>,
    /// Its CHECK constraints.
    pub checks: Vec<StoredCheck>,
    /// The place of the column that places rows.
    pub partition_by: Option<u16>,
    /// `column`, `row` or `groups`.
    pub layout: StoredLayout,
    /// `off` or a duration, if it was said when its rows are frozen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freeze: Option<String>,
    /// The id that the next index will get.
    pub next_index: u16,
}

/// A column.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct StoredColumn {
    /// Its name.
    pub name: String,
    /// Its type's name.
    #[serde(rename = "type")]
    pub ty: String,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Its default, an expression.
    pub default: Option<String>,
}

/// An index.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct StoredIndex {
    /// Its id.
    pub id: u16,
    /// Its name.
    pub name: String,
    /// The places of its columns.
    pub columns: Vec<u16>,
    /// Whether two rows may not have the same key.
    pub unique: bool,
    /// Whether it is ordered (btree), not hash.
    pub ordered: bool,
    /// Whether it has no keys; archives from before there were such say nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_keys: bool,
    /// What made it.
    pub role: StoredRole,
}

/// What made an index.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum StoredRole {
    /// PRIMARY KEY.
    PrimaryKey,
    /// UNIQUE in CREATE TABLE.
    Unique,
    /// CREATE INDEX.
    Plain,
}

/// A CHECK constraint.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct StoredCheck {
    /// Its name.
    pub name: String,
    /// What must not be false.
    pub expression: String,
    /// The places of the columns it looks at.
    pub columns: Vec<u16>,
}

/// How columns lie in memory.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum StoredLayout {
    /// Each on its own.
    Column,
    /// Row by row.
    Row,
    /// The places of those that lie together, group by group.
    Groups(Vec<Vec<u16>>),
}

impl Catalog {
    /// The catalog as plain data.
    pub fn stored(&self) -> StoredCatalog {
        StoredCatalog {
            version: self.version,
            next_table: self.next_table,
            schemas: self.schemas.keys().cloned().collect(),
            tables: self.tables.values().map(|table| StoredTable::of(table)).collect(),
        }
    }

    /// The catalog that was kept so.
    ///
    /// # Errors
    /// XX001 if the data are not a catalog's.
    pub fn restored(stored: &StoredCatalog) -> Result<Self, SqlError> {
        let schemas = stored.schemas.iter().map(|name| (name.clone(), Schema::default())).collect();
        let (version, next_table) = (stored.version, stored.next_table);
        let mut catalog = Self { version, next_table, schemas, tables: BTreeMap::new() };
        for table in &stored.tables {
            let table = table.restored()?;
            catalog.enter(Arc::new(table))?;
        }
        Ok(catalog)
    }

    /// Puts a table with its names into an unfinished catalog.
    fn enter(&mut self, table: Arc<TableDef>) -> Result<(), SqlError> {
        if table.id.0 >= self.next_table {
            return Err(damaged(format!("table {} has an id that was not given yet", table.name)));
        }
        let Some(schema) = self.schemas.get_mut(&table.schema) else {
            return Err(damaged(format!("table {} is in no schema", table.name)));
        };
        let named = std::iter::once((&table.name, Relation::Table(table.id)));
        let indexes = table.indexes.iter().map(|i| (&i.name, Relation::Index(table.id, i.id)));
        for (name, relation) in named.chain(indexes) {
            if schema.relations.insert(name.clone(), relation).is_some() {
                return Err(damaged(format!("two relations have the name {name}")));
            }
        }
        match self.tables.insert(table.id, table) {
            None => Ok(()),
            Some(table) => Err(damaged(format!("two tables have the id of {}", table.name))),
        }
    }
}

fn damaged(what: String) -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, format!("the stored catalog is damaged: {what}"))
}

fn places(columns: &[ColumnId]) -> Vec<u16> {
    columns.iter().map(|column| column.0).collect()
}

impl StoredTable {
    fn of(table: &TableDef) -> Self {
        let column = |column: &ColumnDef| StoredColumn {
            name: column.name.clone(),
            ty: column.ty.to_string(),
            nullable: column.nullable,
            default: column.default.as_ref().map(|default| default.text.clone()),
        };
        let check = |check: &CheckDef| StoredCheck {
            name: check.name.clone(),
            expression: check.expr.text.clone(),
            columns: places(&check.columns),
        };
        Self {
            id: table.id.0,
            schema: table.schema.clone(),
            name: table.name.clone(),
            columns: table.columns.iter().map(column).collect(),
            indexes: table.indexes.iter().map(StoredIndex::of).collect(),
            checks: table.checks.iter().map(check).collect(),
            partition_by: table.partition_by.map(|column| column.0),
            layout: match &table.layout {
                Layout::Column => StoredLayout::Column,
                Layout::Row => StoredLayout::Row,
                Layout::Groups(groups) => {
                    StoredLayout::Groups(groups.iter().map(|group| places(group)).collect())
                }
            },
            freeze: (table.freeze != Freeze::Auto).then(|| table.freeze.to_string()),
            next_index: table.next_index,
        }
    }

    fn restored(&self) -> Result<TableDef, SqlError> {
        let ids = |places: &[u16]| places.iter().map(|place| self.column(*place)).collect();
        let columns: Result<_, SqlError> = self.columns.iter().map(StoredColumn::restored).collect();
        let index = |index: &StoredIndex| Ok(index.restored(ids(&index.columns)?));
        let indexes: Result<_, SqlError> = self.indexes.iter().map(index).collect();
        let check = |check: &StoredCheck| {
            let expr = expression(&check.expression)?;
            Ok(CheckDef { name: check.name.clone(), expr, columns: ids(&check.columns)? })
        };
        let checks: Result<_, SqlError> = self.checks.iter().map(check).collect();
        let layout = match &self.layout {
            StoredLayout::Column => Layout::Column,
            StoredLayout::Row => Layout::Row,
            StoredLayout::Groups(groups) => {
                Layout::Groups(groups.iter().map(|group| ids(group)).collect::<Result<_, _>>()?)
            }
        };
        let freeze = self.freeze.as_deref().map_or(Some(Freeze::Auto), Freeze::parse);
        let freeze =
            freeze.ok_or_else(|| damaged(format!("table {} says wrongly when it is frozen", self.name)))?;
        Ok(TableDef {
            id: TableId(self.id),
            schema: self.schema.clone(),
            name: self.name.clone(),
            columns: columns?,
            indexes: indexes?,
            checks: checks?,
            partition_by: self.partition_by.map(|place| self.column(place)).transpose()?,
            layout,
            freeze,
            next_index: self.next_index,
        })
    }

    fn column(&self, place: u16) -> Result<ColumnId, SqlError> {
        match usize::from(place) < self.columns.len() {
            true => Ok(ColumnId(place)),
            false => Err(damaged(format!("table {} has no column {place}", self.name))),
        }
    }
}

impl StoredColumn {
    fn restored(&self) -> Result<ColumnDef, SqlError> {
        let default = self.default.as_deref().map(expression).transpose()?;
        Ok(ColumnDef { name: self.name.clone(), ty: type_named(&self.ty)?, nullable: self.nullable, default })
    }
}

impl StoredIndex {
    fn of(index: &IndexDef) -> Self {
        Self {
            id: index.id.0,
            name: index.name.clone(),
            columns: places(&index.columns),
            unique: index.unique,
            ordered: index.kind == IndexKind::Ordered,
            without_keys: index.keys == IndexKeys::None,
            role: match index.role {
                IndexRole::PrimaryKey => StoredRole::PrimaryKey,
                IndexRole::Unique => StoredRole::Unique,
                IndexRole::Plain => StoredRole::Plain,
            },
        }
    }

    fn restored(&self, columns: Vec<ColumnId>) -> IndexDef {
        IndexDef {
            id: IndexId(self.id),
            name: self.name.clone(),
            columns,
            unique: self.unique,
            kind: if self.ordered { IndexKind::Ordered } else { IndexKind::Hash },
            keys: if self.without_keys { IndexKeys::None } else { IndexKeys::Prefix },
            role: match self.role {
                StoredRole::PrimaryKey => IndexRole::PrimaryKey,
                StoredRole::Unique => IndexRole::Unique,
                StoredRole::Plain => IndexRole::Plain,
            },
        }
    }
}

fn expression(text: &str) -> Result<StoredExpr, SqlError> {
    let ast = parse_expr(text).map_err(|error| damaged(format!("expression {text}: {error}")))?;
    Ok(StoredExpr { ast, text: text.to_owned() })
}

fn type_named(name: &str) -> Result<SqlType, SqlError> {
    let unknown = |error: SqlError| damaged(format!("type {name}: {error}"));
    match parse_expr(&format!("CAST(NULL AS {name})")).map_err(unknown)? {
        Expr::Cast { data_type, .. } => types::sql_type(&data_type).map_err(unknown),
        _ => Err(damaged(format!("type {name}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::DdlChange;
    use crate::{parse_one, plan_ddl};

    fn catalog(script: &str) -> Catalog {
        let mut catalog = Catalog::new();
        for statement in crate::split(script).unwrap() {
            let text = statement.text;
            let plan = plan_ddl(&catalog, &parse_one(text).unwrap(), text).unwrap();
            catalog = catalog.with(&plan.changes);
        }
        catalog
    }

    const SCRIPT: &str = "create schema s; create table gone (a int); drop table gone;
        create table t (a integer primary key, \"B c\" numeric(38,4) not null default 1.5 + 2,
            d character varying(9) default 'it''s', e timestamptz default now(), f char(3), g uuid, unique (a, g),
            check (a > 0 and \"B c\" < 7 or d in ('x', 'y')), h double precision check (h <> 'NaN'))
            partition by hash (a) with (layout = 'groups', groups = 'a d; e f');
        create index i on t (d, e); create unique index j on t using hash (a, f); drop index i;
        create index n on t (d) with (keys = 'none');
        create table s.t (a date, b time, c bytea, d boolean, e smallint, f real, g bigint, h text, i timestamp)
            with (layout = 'row', freeze = '90 s'); alter table t set (freeze = off)";

    #[test]
    fn catalog_that_was_kept_and_restored_is_the_same() {
        let catalog = catalog(SCRIPT);
        let text = serde_json::to_string(&catalog.stored()).unwrap();
        let stored: StoredCatalog = serde_json::from_str(&text).unwrap();
        let restored = Catalog::restored(&stored).unwrap();
        assert_eq!(restored.stored(), stored);
        assert_eq!(restored.version(), catalog.version());
        assert_eq!(restored.next_table_id(), catalog.next_table_id());
        for (name, schema) in [("t", None), ("t", Some("s")), ("i", None), ("j", None), ("t_pkey", None)] {
            assert_eq!(restored.relation(schema, name), catalog.relation(schema, name), "{name}");
        }
        for table in catalog.tables() {
            let other = restored.table(table.id).unwrap();
            assert_eq!((&other.columns.len(), &other.indexes), (&table.columns.len(), &table.indexes));
            assert_eq!((&other.layout, other.partition_by), (&table.layout, table.partition_by));
            assert_eq!(other.freeze, table.freeze);
            assert_ne!(table.freeze, Freeze::Auto);
            for (a, b) in table.columns.iter().zip(&other.columns) {
                assert_eq!((&a.name, a.ty, a.nullable), (&b.name, b.ty, b.nullable));
                assert_eq!(
                    a.default.as_ref().map(|d| d.ast.to_string()),
                    b.default.as_ref().map(|d| d.ast.to_string())
                );
            }
        }
        // The next table gets the next id, in both.
        let text = "create table u (a int)";
        let plan = |catalog: &Catalog| plan_ddl(catalog, &parse_one(text).unwrap(), text).unwrap().changes;
        let (DdlChange::CreateTable(a), DdlChange::CreateTable(b)) =
            (&plan(&catalog)[0], &plan(&restored)[0])
        else {
            panic!("a table")
        };
        assert_eq!(a.id, b.id);
    }

    #[test]
    fn damaged_catalogs_are_refused() {
        let stored = catalog(SCRIPT).stored();
        let damages: [fn(&mut StoredCatalog); 8] = [
            |stored| stored.tables[0].freeze = Some("soon".to_owned()),
            |stored| stored.tables[0].columns[0].ty = "blob".to_owned(),
            |stored| stored.tables[0].checks[0].expression = "a >".to_owned(),
            |stored| stored.tables[0].indexes[0].columns[0] = 99,
            |stored| stored.tables[1].id = stored.tables[0].id,
            |stored| stored.tables[0].indexes[0].name = "t".to_owned(),
            |stored| stored.schemas.clear(),
            |stored| stored.next_table = 1,
        ];
        for (number, damage) in damages.into_iter().enumerate() {
            let mut stored = stored.clone();
            damage(&mut stored);
            let error = Catalog::restored(&stored).unwrap_err();
            assert_eq!(error.state(), SqlState::DATA_CORRUPTED, "{number}: {error}");
        }
    }
}
