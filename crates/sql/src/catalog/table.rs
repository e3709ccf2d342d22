//! One table's definition.

use std::fmt;
use std::time::Duration;

use albireo_base::{ColumnId, IndexId, SqlError, SqlState, SqlType, TableId};
use sqlparser::ast::{Expr, Ident};

use crate::names;
use crate::source::Source;

/// A table's columns, keys, constraints and placing.
#[derive(Clone, PartialEq, Debug)]
pub struct TableDef {
    /// Its id, never used again.
    pub id: TableId,
    /// The schema it is in.
    pub schema: String,
    /// Its name in the schema.
    pub name: String,
    /// Its columns; a [`ColumnId`] is the place in here.
    pub columns: Vec<ColumnDef>,
    /// All indexes: first the primary key's, then those of UNIQUE constraints, then those made by
    /// CREATE INDEX. A table has its own ids for them, see [`TableDef::index`].
    pub indexes: Vec<IndexDef>,
    /// CHECK constraints, those of columns included.
    pub checks: Vec<CheckDef>,
    /// The column whose hash places a row; `None` for a shared table.
    pub partition_by: Option<ColumnId>,
    /// How its columns lie in memory.
    pub layout: Layout,
    /// When its rows are frozen without anybody asking for it.
    pub freeze: Freeze,
    /// The id the next index will get.
    pub(crate) next_index: u16,
}

/// One column.
#[derive(Clone, PartialEq, Debug)]
pub struct ColumnDef {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: SqlType,
    /// Whether it may be NULL; false for the columns of a primary key.
    pub nullable: bool,
    /// What a row gets that says nothing; NULL if not given.
    pub default: Option<StoredExpr>,
}

/// An expression kept in the catalog.
#[derive(Clone, PartialEq, Debug)]
pub struct StoredExpr {
    /// The tree. Its places are those of the defining statement and mean nothing any more.
    pub ast: Expr,
    /// The tree as SQL.
    pub text: String,
}

/// An index, or the key of a constraint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexDef {
    /// Its id among the indexes of its table, never used again.
    pub id: IndexId,
    /// Its name, of its schema's.
    pub name: String,
    /// The key's columns, the first first.
    pub columns: Vec<ColumnId>,
    /// Whether two rows may not have the same key. Keys with a NULL are never the same.
    pub unique: bool,
    /// What it is made for.
    pub kind: IndexKind,
    /// What it holds of its rows' keys.
    pub keys: IndexKeys,
    /// What it was made by.
    pub role: IndexRole,
}

/// What an index can answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IndexKind {
    /// Equality of all columns.
    Hash,
    /// Equality, ranges, prefixes, order.
    Ordered,
}

/// What an index holds of its rows' keys: `WITH (keys = ...)`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum IndexKeys {
    /// Their beginnings, or what else its form wants: `keys = 'prefix'`.
    #[default]
    Prefix,
    /// Nothing, so that it takes the least memory, and searches look at rows: `keys = 'none'`. Of ordered ones only.
    None,
}

impl IndexDef {
    /// What its definition says behind WITH, if that is not the default.
    pub fn options(&self) -> Option<&'static str> {
        match self.keys {
            IndexKeys::Prefix => None,
            IndexKeys::None => Some("keys='none'"),
        }
    }
}

/// What made an index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IndexRole {
    /// PRIMARY KEY.
    PrimaryKey,
    /// UNIQUE in CREATE TABLE.
    Unique,
    /// CREATE INDEX.
    Plain,
}

/// A CHECK constraint.
#[derive(Clone, PartialEq, Debug)]
pub struct CheckDef {
    /// Its name, of its table's.
    pub name: String,
    /// What must not be false.
    pub expr: StoredExpr,
    /// The columns it looks at, ascending.
    pub columns: Vec<ColumnId>,
}

/// How a table's columns lie in memory.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub enum Layout {
    /// Each column on its own: `layout = 'column'`.
    #[default]
    Column,
    /// All columns of a row side by side: `layout = 'row'`.
    Row,
    /// These columns side by side, group by group; a column in none of them is on its own:
    /// `groups = 'a b; c d'`.
    Groups(Vec<Vec<ColumnId>>),
}

/// When rows of a table are frozen, which is: encoded, so that they take less memory and are scanned faster.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Freeze {
    /// When the database's configuration says so: `freeze = auto`.
    #[default]
    Auto,
    /// Only by a call: `freeze = off`.
    Off,
    /// When nobody has written them for so long, at least a millisecond: `freeze = '10 min'`.
    After(Duration),
}

impl Freeze {
    /// `auto`, `off`, or a duration; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        match text.to_lowercase().as_str() {
            "auto" | "on" | "true" => Some(Self::Auto),
            "off" | "false" => Some(Self::Off),
            text => {
                let after = albireo_base::duration::parse(text)?;
                (after >= Duration::from_millis(1)).then_some(Self::After(after))
            }
        }
    }
}

impl fmt::Display for Freeze {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Off => f.write_str("off"),
            Self::After(after) if after.subsec_micros() == 0 => write!(f, "{}s", after.as_secs()),
            Self::After(after) => write!(f, "{}us", after.as_micros()),
        }
    }
}

impl TableDef {
    /// The column with this name.
    pub fn column(&self, name: &str) -> Option<ColumnId> {
        let at = self.columns.iter().position(|column| column.name == name)?;
        Some(ColumnId(at as u16))
    }

    /// The column with this id, which must be this table's.
    pub fn column_def(&self, id: ColumnId) -> &ColumnDef {
        &self.columns[id.index()]
    }

    /// All columns' ids.
    pub fn column_ids(&self) -> impl Iterator<Item = ColumnId> + use<> {
        (0..self.columns.len()).map(|at| ColumnId(at as u16))
    }

    /// The index with this id.
    pub fn index(&self, id: IndexId) -> Option<&IndexDef> {
        self.indexes.iter().find(|index| index.id == id)
    }

    /// The id the next index will get.
    pub fn next_index_id(&self) -> IndexId {
        IndexId(self.next_index)
    }

    /// The primary key's columns.
    pub fn primary_key(&self) -> Option<&[ColumnId]> {
        let index = self.indexes.iter().find(|index| index.role == IndexRole::PrimaryKey)?;
        Some(&index.columns)
    }

    /// The column sets no two rows agree in, the primary key's first.
    pub fn unique_keys(&self) -> impl Iterator<Item = &[ColumnId]> {
        self.indexes.iter().filter(|index| index.unique).map(|index| index.columns.as_slice())
    }

    /// Whether every partition reads one copy of it.
    pub fn is_shared(&self) -> bool {
        self.partition_by.is_none()
    }

    /// The column an identifier means.
    ///
    /// # Errors
    /// 42703 with a suggestion.
    pub fn resolve_column(&self, ident: &Ident, source: Source<'_>) -> Result<ColumnId, SqlError> {
        let name = names::fold(ident);
        self.column(&name).ok_or_else(|| source.locate(self.undefined_column(&name), ident.span))
    }

    fn undefined_column(&self, name: &str) -> SqlError {
        let message = format!("column \"{name}\" of relation \"{}\" does not exist", self.name);
        let error = SqlError::new(SqlState::UNDEFINED_COLUMN, message);
        match names::closest(name, self.columns.iter().map(|column| column.name.as_str())) {
            Some(near) => error.with_hint(format!("Perhaps you meant the column \"{near}\".")),
            None => error,
        }
    }
}

impl StoredExpr {
    /// Keeps `ast` and its text.
    pub fn new(ast: Expr) -> Self {
        let text = ast.to_string();
        Self { ast, text }
    }
}

impl fmt::Display for StoredExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for IndexKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hash => "hash",
            Self::Ordered => "btree",
        })
    }
}
