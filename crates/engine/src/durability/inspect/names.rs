//! The definitions at each place of a log, by which its records are understood.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use albireo_archive::Manifest;
use albireo_base::packed::{Input, Malformed};
use albireo_base::{SqlError, TableId, Value};
use albireo_env::Env;
use albireo_plpgsql::body::{Routines, find_removed};
use albireo_plpgsql::define::RoutineName;
use albireo_redo::{Frame, Kind, Record};
use albireo_semantics::expr::RoutineId;
use albireo_sql::ast::{ObjectName, ObjectNamePart, ObjectType, Statement};
use albireo_sql::{Catalog, DdlChange, TableDef, plan_ddl};
use albireo_storage::{SHARED_SITE, Shape, WriteReader};

use super::super::recovery::{joined_of, part_of};
use super::LogContent;
use super::rows::{LogRows, Part, Table};
use crate::routines::{self, Argument, CommandRecord, Library, RoutineStatement, StatementRecord};
use crate::stored::Definitions;

/// Tables and routines as the records so far define them.
pub(super) struct Names {
    library: Library,
    /// Of the tables that records of rows have named since the catalog changed.
    tables: BTreeMap<TableId, Arc<Table>>,
    routines: BTreeMap<u32, Arc<str>>,
    /// What was taken from an archive, if the log's beginning is gone.
    base: Option<Base>,
}

/// The definitions of an archive, in which the records up to it have been done already.
struct Base {
    archive: u64,
    /// The last frame that is in it.
    sequence: u64,
    /// Tables whose indexes these records change, so that rows may have been named by other columns than now.
    reindexed: BTreeSet<Arc<str>>,
    /// They drop an index, of some table.
    drops_index: bool,
}

impl Base {
    fn knows_rows_of(&self, table: &Table) -> bool {
        !self.drops_index && !self.reindexed.contains(&table.name)
    }
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

impl Table {
    fn of(def: &TableDef) -> Self {
        Self {
            name: name_of(def),
            columns: def.columns.iter().map(|column| column.name.as_str().into()).collect(),
            shape: Shape::of_spec(&crate::ddl::spec_of(def)),
            is_shared: def.is_shared(),
        }
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
        Self { library, tables: BTreeMap::new(), routines: BTreeMap::new(), base: None }
    }

    /// Those of an archive.
    ///
    /// # Errors
    /// Its definitions are damaged.
    pub(super) fn of_archive(manifest: &Manifest, env: &Env) -> Result<Self, SqlError> {
        let (definitions, catalog) = Definitions::from_json(&manifest.catalog)?;
        let clock = env.clock.clone();
        let library = Library::restored(Arc::new(catalog), Arc::default(), clock, &definitions)?;
        let routines = library.signatures().map(|(id, signature)| (id, signature.name.as_str().into()));
        let base = Base {
            archive: manifest.number,
            sequence: manifest.log.sequence,
            reindexed: BTreeSet::new(),
            drops_index: false,
        };
        Ok(Self { routines: routines.collect(), library, tables: BTreeMap::new(), base: Some(base) })
    }

    /// Remembers what a record changes that the archive has already.
    pub(super) fn note_change(&mut self, record: &Record<'_>) {
        let Some(base) = self.base.as_mut().filter(|_| record.kind == Kind::DEFINITION) else { return };
        let text = std::str::from_utf8(record.payload);
        let Some(statement) = text.ok().and_then(|text| albireo_sql::parse_one(text).ok()) else { return };
        match &statement {
            Statement::CreateIndex(create) => {
                base.reindexed.insert(written_name(&create.table_name));
            }
            Statement::Drop { object_type: ObjectType::Index, .. } => base.drops_index = true,
            _ => {}
        }
    }

    /// What a record says; one that changes definitions does so for those after it.
    ///
    /// # Errors
    /// Why it cannot be understood.
    pub(super) fn content<'a>(
        &mut self,
        record: &Record<'a>,
        frame: &Frame,
    ) -> Result<LogContent<'a>, String> {
        let is_done = self.base.as_ref().is_some_and(|base| frame.sequence <= base.sequence);
        match record.kind {
            Kind::WRITE => self.writes(record, frame.lanes, is_done),
            Kind::DEFINITION => {
                let text = std::str::from_utf8(record.payload);
                let text = text.map_err(|_| "the definition is no text".to_owned())?;
                let defined = if is_done { defined_by(text) } else { self.define(text) };
                let defined = defined
                    .map_err(|error| format!("the definition cannot be made here: {}", error.message()))?;
                let Defined { tables, routines } = defined;
                Ok(LogContent::Definition { text: text.to_owned(), tables, routines })
            }
            Kind::COMMAND => self.command(record.payload, is_done),
            Kind::PART => {
                let (transaction, _, rows) = part_of(record.payload).map_err(|error| error.to_string())?;
                let part = Record { payload: rows, crossing: true, ..*record };
                match self.writes(&part, frame.lanes, is_done)? {
                    LogContent::Writes(rows) => Ok(LogContent::Part { transaction, rows }),
                    other => Ok(other),
                }
            }
            Kind::JOINED => {
                let (transaction, parts) = joined_of(record.payload).map_err(|error| error.to_string())?;
                Ok(LogContent::Joined { transaction, parts })
            }
            Kind::STATEMENT => {
                let statement = StatementRecord::read(record.payload).map_err(|error| error.to_string())?;
                let StatementRecord { table, rows, text, parameters } = statement;
                let known = self.table(table).map(|table| Arc::clone(&table.name));
                let table = known.ok_or_else(|| format!("it changes table {table}, which does not exist"));
                Ok(LogContent::Statement { table: table?, text, rows, parameters })
            }
            Kind(kind) => Err(format!("the record is of kind {kind}, which this program does not know")),
        }
    }

    /// `is_done`: the definitions are those after the record.
    fn writes<'a>(
        &mut self,
        record: &Record<'a>,
        partitions: u16,
        is_done: bool,
    ) -> Result<LogContent<'a>, String> {
        let mut reader = WriteReader::new(record.payload);
        let mut parts = Vec::new();
        while let Some((site, id)) = reader.next_table().map_err(|error| error.to_string())? {
            let table = self.table(id);
            if let Some(base) = self.base.as_ref().filter(|_| is_done)
                && !table.as_ref().is_some_and(|table| base.knows_rows_of(table))
            {
                let name = table.map_or_else(|| id.0.to_string().into(), |table| Arc::clone(&table.name));
                return Ok(LogContent::Untold { archive: base.archive, table: name });
            }
            let table = table.ok_or_else(|| format!("it writes to table {id}, which does not exist"))?;
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
            let mut part = Part::new(id, Arc::clone(&table), partition);
            let shape = || table.shape.clone();
            while let Some(row) = reader.next_row(shape).map_err(|error| error.to_string())? {
                part.count(&row);
            }
            parts.push(part);
        }
        Ok(LogContent::Writes(LogRows::new(record.payload, parts)))
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
                DdlChange::CreateIndex { table, .. }
                | DdlChange::DropIndex { table, .. }
                | DdlChange::SetFreeze { table, .. } => *table,
                DdlChange::CreateSchema(_) | DdlChange::DropSchema(_) => continue,
            };
            let name = next.table(id).or_else(|| old.table(id)).map(|def| name_of(def));
            names.extend(name.filter(|name| !names.contains(name)));
        }
        self.tables.clear();
        self.library = self.library.with_catalog(next, Arc::default());
        Ok(names)
    }

    /// What a call says.
    fn command(&self, payload: &[u8], is_done: bool) -> Result<LogContent<'static>, String> {
        if let [0, native @ ..] = payload {
            return native_command(native).map_err(|error| error.to_string());
        }
        let command = CommandRecord::read(payload).map_err(|error| error.to_string())?;
        let CommandRecord { routine: id, version, moved, .. } = command;
        let known = u32::try_from(id).ok().and_then(|id| self.routines.get(&id)).cloned();
        // One that was dropped before the archive has no name any more.
        let known = known.or_else(|| is_done.then(|| format!("routine {id}").into()));
        let routine = known.ok_or_else(|| format!("it calls routine {id}, which does not exist"))?;
        let signature = u32::try_from(id).ok().and_then(|id| self.library.signature(RoutineId(id)));
        let names: Vec<&str> =
            signature.iter().flat_map(|of| of.inputs()).map(|of| of.name.as_str()).collect();
        let named = command.into_arguments().into_iter().enumerate().map(|(n, argument)| {
            let name = names.get(n).filter(|name| !name.is_empty());
            (name.map_or_else(|| format!("${}", n + 1).into(), |name| (*name).into()), argument)
        });
        Ok(LogContent::Command { routine, id, version, moved, arguments: named.collect() })
    }
}

/// What a call of a native procedure says, whose arguments only the program knows that has it.
fn native_command(payload: &[u8]) -> Result<LogContent<'static>, Malformed> {
    let mut input = Input::new(payload);
    let routine = input.text()?.into();
    let (version, moved) = (input.number()?, input.number()?);
    let bytes = Argument::Value(Value::Bytea(input.rest().to_vec()));
    let arguments = if input.is_empty() { Vec::new() } else { vec![("arguments".into(), bytes)] };
    Ok(LogContent::Command { routine, id: 0, version, moved, arguments })
}

/// The names in a change of definitions, as they are written in it.
fn defined_by(text: &str) -> Result<Defined, SqlError> {
    let routine = |name: &RoutineName| name.name.text.as_str().into();
    let (tables, routines) = match routines::parse(text)? {
        Some(RoutineStatement::Create(definition)) => (Vec::new(), vec![routine(&definition.name)]),
        Some(RoutineStatement::Drop(removal)) => {
            (Vec::new(), removal.routines.iter().map(|reference| routine(&reference.name)).collect())
        }
        _ => (tables_of(&albireo_sql::parse_one(text)?), Vec::new()),
    };
    Ok(Defined { tables, routines })
}

fn tables_of(statement: &Statement) -> Vec<Arc<str>> {
    match statement {
        Statement::CreateTable(create) => vec![written_name(&create.name)],
        Statement::CreateIndex(create) => vec![written_name(&create.table_name)],
        Statement::Truncate(truncate) => {
            truncate.table_names.iter().map(|target| written_name(&target.name)).collect()
        }
        Statement::Drop { object_type: ObjectType::Table, names, .. } => {
            names.iter().map(written_name).collect()
        }
        _ => Vec::new(),
    }
}

/// A table's name as [`name_of`] has it.
fn written_name(name: &ObjectName) -> Arc<str> {
    let part = |part: &ObjectNamePart| match part {
        ObjectNamePart::Identifier(word) => albireo_sql::names::fold(word),
        other => other.to_string(),
    };
    let parts: Vec<String> = name.0.iter().map(part).collect();
    let text = parts.join(".");
    text.strip_prefix("public.").unwrap_or(&text).into()
}
