//! The definitions at each place of a log, by which its records are understood.

use std::collections::BTreeMap;
use std::sync::Arc;

use albireo_base::{ColumnId, SqlError, TableId, Value};
use albireo_env::Env;
use albireo_procedure::body::find_removed;
use albireo_procedure::expr::RoutineId;
use albireo_redo::{Kind, Record};
use albireo_sql::{Catalog, DdlChange, TableDef, plan_ddl};
use albireo_storage::{RowWrite, SHARED_SITE, Shape, WriteReader};

use super::{LogContent, LogWrite, RowChange};
use crate::routines::{self, Library, RoutineStatement};

/// Tables and routines as the records so far define them.
pub(super) struct Names {
    library: Library,
    /// Of the tables that records of rows have named since the catalog changed.
    tables: BTreeMap<TableId, Arc<Table>>,
    routines: BTreeMap<u32, Arc<str>>,
}

impl std::fmt::Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Names").field("catalog", &self.library.catalog.version()).finish_non_exhaustive()
    }
}

/// What a change of definitions is about.
struct Defined {
    tables: Vec<Arc<str>>,
    routines: Vec<Arc<str>>,
}

/// What records of a table's rows are read by.
struct Table {
    name: Arc<str>,
    columns: Vec<Arc<str>>,
    shape: Shape,
    is_shared: bool,
}

impl Table {
    fn of(def: &TableDef) -> Self {
        Self {
            name: name_of(def),
            columns: def.columns.iter().map(|column| column.name.as_str().into()).collect(),
            shape: Shape::of_spec(&crate::ddl::spec_of(def)),
            is_shared: def.is_shared(),
        }
    }

    fn named(&self, columns: &[ColumnId], values: Vec<Value>) -> Vec<(Arc<str>, Value)> {
        columns.iter().map(|column| Arc::clone(&self.columns[column.index()])).zip(values).collect()
    }

    fn row(self: &Arc<Self>, id: TableId, partition: Option<u16>, row: RowWrite) -> LogWrite {
        let (table, identity) = (Arc::clone(&self.name), self.shape.identity());
        let (change, key, values) = match row {
            RowWrite::Delete { identity: key } => (RowChange::Delete, self.named(identity, key), Vec::new()),
            RowWrite::Update { identity: key, values } => {
                let (columns, values): (Vec<ColumnId>, Vec<Value>) = values.into_iter().unzip();
                (RowChange::Update, self.named(identity, key), self.named(&columns, values))
            }
            RowWrite::Insert { values } => {
                (RowChange::Insert, Vec::new(), self.columns.iter().cloned().zip(values).collect())
            }
        };
        LogWrite { id, table, partition, change, key, values }
    }
}

/// A table's name as statements write it.
fn name_of(def: &TableDef) -> Arc<str> {
    match def.schema.as_str() {
        "public" => def.name.as_str().into(),
        schema => format!("{schema}.{}", def.name).into(),
    }
}

impl Names {
    /// Those of an empty database.
    pub(super) fn new(env: &Env) -> Self {
        let library = Library::new(Arc::new(Catalog::new()), env.clock.clone());
        Self { library, tables: BTreeMap::new(), routines: BTreeMap::new() }
    }

    /// What a record says; one that changes definitions does so for those after it.
    ///
    /// # Errors
    /// Why it cannot be understood.
    pub(super) fn content(&mut self, record: &Record<'_>, partitions: u16) -> Result<LogContent, String> {
        match record.kind {
            Kind::WRITE => self.writes(record, partitions).map(LogContent::Writes),
            Kind::DEFINITION => {
                let text = std::str::from_utf8(record.payload);
                let text = text.map_err(|_| "the definition is no text".to_owned())?;
                let defined = self
                    .define(text)
                    .map_err(|error| format!("the definition cannot be made here: {}", error.message()))?;
                let Defined { tables, routines } = defined;
                Ok(LogContent::Definition { text: text.to_owned(), tables, routines })
            }
            Kind::COMMAND => self.command(record.payload),
            Kind(kind) => Err(format!("the record is of kind {kind}, which this program does not know")),
        }
    }

    fn writes(&mut self, record: &Record<'_>, partitions: u16) -> Result<Vec<LogWrite>, String> {
        let mut reader = WriteReader::new(record.payload);
        let mut rows = Vec::new();
        while let Some((site, id)) = reader.next_table().map_err(|error| error.to_string())? {
            let table =
                self.table(id).ok_or_else(|| format!("it writes to table {id}, which does not exist"))?;
            let partition = match (site, record.crossing) {
                (SHARED_SITE, _) => None,
                (0, false) => Some(record.lane),
                (site, true) if site < partitions => Some(site),
                _ => {
                    return Err(format!("it writes to partition {site} of the transaction, which has fewer"));
                }
            };
            if table.is_shared != partition.is_none() {
                let (is, not) =
                    if table.is_shared { ("shared", "partitioned") } else { ("partitioned", "shared") };
                return Err(format!("table \"{}\" is {is}, and it writes to a {not} one", table.name));
            }
            let shape = || table.shape.clone();
            while let Some(row) = reader.next_row(shape).map_err(|error| error.to_string())? {
                rows.push(table.row(id, partition, row));
            }
        }
        Ok(rows)
    }

    fn table(&mut self, id: TableId) -> Option<Arc<Table>> {
        if let Some(table) = self.tables.get(&id) {
            return Some(Arc::clone(table));
        }
        let table = Arc::new(Table::of(self.library.catalog.table(id)?));
        self.tables.insert(id, Arc::clone(&table));
        Some(table)
    }

    /// Follows a change of definitions: the names of the tables and of the routines that it is about.
    fn define(&mut self, text: &str) -> Result<Defined, SqlError> {
        match routines::parse(text)? {
            Some(RoutineStatement::Create(definition)) => {
                let (library, id, _) = self.library.with(*definition, text)?;
                let named = library.signatures().find(|(other, _)| RoutineId(*other) == id);
                let name: Arc<str> = named.map_or("", |(_, signature)| signature.name.as_str()).into();
                self.routines.insert(id.0, Arc::clone(&name));
                self.library = library;
                Ok(Defined { tables: Vec::new(), routines: vec![name] })
            }
            Some(RoutineStatement::Drop(removal)) => {
                let mut names = Vec::new();
                for reference in &removal.routines {
                    let (catalog, signatures) = (&self.library.catalog, self.library.signatures());
                    if let Some(id) = find_removed(catalog, &removal, reference, signatures)? {
                        names.extend(self.routines.get(&id).cloned());
                        self.library = self.library.without(id);
                    }
                }
                Ok(Defined { tables: Vec::new(), routines: names })
            }
            _ => self.define_tables(text).map(|tables| Defined { tables, routines: Vec::new() }),
        }
    }

    fn define_tables(&mut self, text: &str) -> Result<Vec<Arc<str>>, SqlError> {
        let old = Arc::clone(&self.library.catalog);
        let plan = plan_ddl(&old, &albireo_sql::parse_one(text)?, text)?;
        let next = Arc::new(old.with(&plan.changes));
        let mut names: Vec<Arc<str>> = Vec::new();
        for change in &plan.changes {
            let id = match change {
                DdlChange::CreateTable(table) => table.id,
                DdlChange::DropTable(id) | DdlChange::Truncate(id) => *id,
                DdlChange::CreateIndex { table, .. } | DdlChange::DropIndex { table, .. } => *table,
                DdlChange::CreateSchema(_) | DdlChange::DropSchema(_) => continue,
            };
            let name = next.table(id).or_else(|| old.table(id)).map(|def| name_of(def));
            names.extend(name.filter(|name| !names.contains(name)));
        }
        self.tables.clear();
        self.library = self.library.with_catalog(next, Arc::default());
        Ok(names)
    }

    fn command(&self, payload: &[u8]) -> Result<LogContent, String> {
        let head = number(payload).and_then(|(id, rest)| {
            let (version, arguments) = number(rest)?;
            Some((id, version, arguments))
        });
        let (id, version, arguments) = head.ok_or("the record ends before it says which routine it calls")?;
        let known = u32::try_from(id).ok().and_then(|id| self.routines.get(&id));
        let routine = known.ok_or_else(|| format!("it calls routine {id}, which does not exist"))?;
        Ok(LogContent::Command { routine: Arc::clone(routine), id, version, arguments: arguments.to_vec() })
    }
}

/// A number of variable length, and what follows: seven bits a byte, the lowest first.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (index, byte) in bytes.iter().enumerate().take(9) {
        number |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((number, &bytes[index + 1..]));
        }
    }
    None
}
