//! What tables there are: immutable, versioned, shared behind `Arc`.
//!
//! Responsible for: schemas, tables, indexes by name and id, and the next version after a change.
//! Not responsible for: whether a definition makes sense (`ddl`), the rows (`storage`).
//!
//! Invariants:
//! I-1 A catalog never changes; [`Catalog::with`] makes another one with the next version.
//! I-2 Ids of tables are never used again, nor those of the indexes of one table.
//! I-3 Tables and indexes of one schema have different names.

mod stored;
mod table;

use std::collections::BTreeMap;
use std::sync::Arc;

use albireo_base::{IndexId, SqlError, SqlState, TableId};

use crate::names::{self, QualifiedName};
use crate::source::Source;

pub use stored::{
    StoredCatalog, StoredCheck, StoredColumn, StoredIndex, StoredLayout, StoredRole, StoredTable,
};
pub use table::{
    CheckDef, ColumnDef, Freeze, IndexDef, IndexKeys, IndexKind, IndexRole, Layout, StoredExpr, TableDef,
};

/// One change of the catalog.
#[derive(Clone, PartialEq, Debug)]
pub enum DdlChange {
    /// A new schema.
    CreateSchema(String),
    /// A schema less; its tables are dropped by changes before this one.
    DropSchema(String),
    /// A new table with all its indexes.
    CreateTable(Arc<TableDef>),
    /// A table less, with its indexes.
    DropTable(TableId),
    /// A new index of a table that may have rows.
    CreateIndex {
        /// The table.
        table: TableId,
        /// The index.
        index: IndexDef,
    },
    /// An index less.
    DropIndex {
        /// The table.
        table: TableId,
        /// The index.
        index: IndexId,
    },
    /// When a table's rows are frozen.
    SetFreeze {
        /// The table.
        table: TableId,
        /// When.
        freeze: Freeze,
    },
    /// A table's rows less; the catalog stays as it is.
    Truncate(TableId),
}

/// The schema that names without a schema mean.
pub const DEFAULT_SCHEMA: &str = "public";

/// All schemas, tables and indexes at one version.
#[derive(Clone, Debug)]
pub struct Catalog {
    version: u64,
    next_table: u32,
    schemas: BTreeMap<String, Schema>,
    tables: BTreeMap<TableId, Arc<TableDef>>,
}

#[derive(Clone, Default, Debug)]
struct Schema {
    relations: BTreeMap<String, Relation>,
}

/// What a name in a schema stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    /// A table.
    Table(TableId),
    /// An index of a table.
    Index(TableId, IndexId),
}

impl Default for Catalog {
    fn default() -> Self {
        Self::new()
    }
}

impl Catalog {
    /// The catalog of a new database: the schema `public`, empty.
    pub fn new() -> Self {
        let schemas = BTreeMap::from([(DEFAULT_SCHEMA.to_owned(), Schema::default())]);
        Self { version: 1, next_table: 1, schemas, tables: BTreeMap::new() }
    }

    /// Grows by one with every change: two catalogs of one database with equal versions are equal.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The id the next table will get.
    pub fn next_table_id(&self) -> TableId {
        TableId(self.next_table)
    }

    /// The names of the schemas, sorted.
    pub fn schemas(&self) -> impl Iterator<Item = &str> {
        self.schemas.keys().map(String::as_str)
    }

    /// Whether there is such a schema.
    pub fn has_schema(&self, name: &str) -> bool {
        self.schemas.contains_key(name)
    }

    /// All tables, by id.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableDef>> {
        self.tables.values()
    }

    /// The table with this id.
    pub fn table(&self, id: TableId) -> Option<&Arc<TableDef>> {
        self.tables.get(&id)
    }

    /// The table with this name; `schema` is `public` if not given.
    pub fn table_named(&self, schema: Option<&str>, name: &str) -> Option<&Arc<TableDef>> {
        match self.relation(schema, name)? {
            Relation::Table(id) => self.table(id),
            Relation::Index(..) => None,
        }
    }

    /// What the name stands for; `schema` is `public` if not given.
    pub fn relation(&self, schema: Option<&str>, name: &str) -> Option<Relation> {
        let schema = self.schemas.get(schema.unwrap_or(DEFAULT_SCHEMA))?;
        schema.relations.get(name).copied()
    }

    /// The table with this name.
    ///
    /// # Errors
    /// 42P01 with a suggestion if there is none, 42809 if the name is an index's.
    pub fn resolve_table(
        &self,
        name: &QualifiedName,
        source: Source<'_>,
    ) -> Result<&Arc<TableDef>, SqlError> {
        match self.relation(name.schema.as_deref(), &name.name) {
            Some(Relation::Table(id)) => Ok(&self.tables[&id]),
            Some(Relation::Index(..)) => {
                let message = format!("\"{}\" is an index", name.name);
                Err(source.locate(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message), name.span))
            }
            None => Err(source.locate(self.undefined_table(name), name.span)),
        }
    }

    /// 42P01 for a table that does not exist, with the nearest name as a hint.
    pub(crate) fn undefined_table(&self, name: &QualifiedName) -> SqlError {
        let error = SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"));
        let schema = name.schema.as_deref().unwrap_or(DEFAULT_SCHEMA);
        if let Some(hint) = self.table_suggestion(schema, &name.name) {
            return error.with_hint(format!("Perhaps you meant the table \"{hint}\"."));
        }
        // The table may be right and the schema wrong.
        let elsewhere = self.tables.values().find(|table| table.name == name.name);
        match elsewhere {
            Some(table) => error.with_hint(format!("There is a table \"{}.{}\".", table.schema, table.name)),
            None => error,
        }
    }

    fn table_suggestion(&self, schema: &str, name: &str) -> Option<&str> {
        let relations = &self.schemas.get(schema)?.relations;
        let tables = relations.iter().filter(|(_, relation)| matches!(relation, Relation::Table(_)));
        names::closest(name, tables.map(|(name, _)| name.as_str()))
    }

    /// The catalog after `changes`, one version on.
    ///
    /// # Panics
    /// If a change was not planned against this catalog (an unknown table or schema): our bug.
    #[must_use]
    pub fn with(&self, changes: &[DdlChange]) -> Self {
        let mut next = self.clone();
        next.version += 1;
        for change in changes {
            next.apply(change);
        }
        next
    }

    fn apply(&mut self, change: &DdlChange) {
        match change {
            DdlChange::CreateSchema(name) => {
                self.schemas.entry(name.clone()).or_default();
            }
            DdlChange::DropSchema(name) => {
                let schema = self.schemas.remove(name).expect("the schema exists");
                assert!(schema.relations.is_empty(), "a schema with tables is not dropped");
            }
            DdlChange::CreateTable(table) => self.add_table(table),
            DdlChange::DropTable(id) => {
                let table = self.tables.remove(id).expect("the table exists");
                let relations = &mut self.schema_mut(&table.schema).relations;
                relations.retain(|_, relation| relation.table() != *id);
            }
            DdlChange::CreateIndex { table, index } => {
                let entry = Relation::Index(*table, index.id);
                let schema = self.change_table(*table, |table| {
                    table.indexes.push(index.clone());
                    table.next_index = table.next_index.max(index.id.0 + 1);
                });
                let old = self.schema_mut(&schema).relations.insert(index.name.clone(), entry);
                assert!(old.is_none(), "I-3");
            }
            DdlChange::DropIndex { table, index } => {
                let schema = self.change_table(*table, |table| table.indexes.retain(|i| i.id != *index));
                let dropped = Relation::Index(*table, *index);
                self.schema_mut(&schema).relations.retain(|_, relation| *relation != dropped);
            }
            DdlChange::SetFreeze { table, freeze } => {
                self.change_table(*table, |table| table.freeze = *freeze);
            }
            DdlChange::Truncate(_) => {}
        }
    }

    fn add_table(&mut self, table: &Arc<TableDef>) {
        assert!(table.id.0 >= self.next_table, "I-2");
        self.next_table = table.id.0 + 1;
        let schema = self.schema_mut(&table.schema);
        let named = std::iter::once((&table.name, Relation::Table(table.id)));
        let indexes = table.indexes.iter().map(|i| (&i.name, Relation::Index(table.id, i.id)));
        for (name, relation) in named.chain(indexes) {
            let old = schema.relations.insert(name.clone(), relation);
            assert!(old.is_none(), "I-3");
        }
        self.tables.insert(table.id, Arc::clone(table));
    }

    /// Replaces a table by a changed copy and returns its schema's name.
    fn change_table(&mut self, id: TableId, change: impl FnOnce(&mut TableDef)) -> String {
        let table = self.tables.get_mut(&id).expect("the table exists");
        let table = Arc::make_mut(table);
        change(table);
        table.schema.clone()
    }

    fn schema_mut(&mut self, name: &str) -> &mut Schema {
        self.schemas.get_mut(name).expect("the schema exists")
    }
}

impl Relation {
    /// The table, or the table of the index.
    pub fn table(self) -> TableId {
        match self {
            Self::Table(id) | Self::Index(id, _) => id,
        }
    }
}
