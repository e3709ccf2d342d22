//! What the analytical engine asks for, answered by the catalog and by snapshots.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use albireo_base::{ColumnId, SqlError, SqlType, TableId, Value};
use albireo_encoding::{Groups, MaskedRuns, Selection, Sum, Summary, Test};
use albireo_olap::Prepared;
use albireo_olap::relation::{
    ChunkData, ChunkVersion, EncodedColumn, Integers, ReadAhead, Relation, RelationColumn, RelationData,
    Relations, Snapshot,
};
use albireo_sql::{Catalog, TableDef};
use albireo_storage::{
    ChunkView, ColumnSet, DatabaseSnapshot, EncodedView, FetchedChunk, SnapshotScope, TableView,
};
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};

/// One version of the catalog, as relations.
pub(crate) struct CatalogRelations(pub(crate) Arc<Catalog>);

impl fmt::Debug for CatalogRelations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CatalogRelations(version {})", self.0.version())
    }
}

impl Relations for CatalogRelations {
    fn relation(&self, schema: Option<&str>, name: &str) -> Option<Arc<Relation>> {
        self.0.table_named(schema, name).map(|table| Arc::new(relation(table)))
    }

    fn version(&self) -> u64 {
        self.0.version()
    }
}

fn relation(table: &TableDef) -> Relation {
    let column =
        |c: &albireo_sql::ColumnDef| RelationColumn { name: c.name.clone(), ty: c.ty, nullable: c.nullable };
    Relation {
        id: table.id,
        schema: table.schema.clone(),
        name: table.name.clone(),
        columns: table.columns.iter().map(column).collect(),
        primary_key: table.primary_key().map(<[_]>::to_vec).unwrap_or_default(),
        unique_keys: table.unique_keys().map(<[_]>::to_vec).collect(),
    }
}

/// A snapshot of storage, as the analytical engine wants it.
pub(crate) struct StorageSnapshot(pub(crate) Arc<DatabaseSnapshot>);

impl fmt::Debug for StorageSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StorageSnapshot(epoch {})", self.0.epoch())
    }
}

impl Snapshot for StorageSnapshot {
    fn relation(&self, id: TableId) -> Option<Arc<dyn RelationData>> {
        self.0.table(id).map(|view| Arc::new(StorageTable(view)) as Arc<dyn RelationData>)
    }

    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

/// The tables and columns that queries read, all a snapshot for them need cover.
pub(crate) fn scope_of(queries: &[Arc<Prepared>]) -> SnapshotScope {
    let mut tables: BTreeMap<TableId, BTreeSet<ColumnId>> = BTreeMap::new();
    for (relation, columns) in queries.iter().flat_map(|query| query.reads()) {
        tables.entry(TableId(relation.id.0 & !ADDRESSED)).or_default().extend(columns);
    }
    SnapshotScope::Tables(tables.into_iter().map(|(id, columns)| (id, ColumnSet::of(columns))).collect())
}

struct StorageTable(TableView);

impl fmt::Debug for StorageTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StorageTable({} rows)", self.0.row_count())
    }
}

impl RelationData for StorageTable {
    fn row_count(&self) -> u64 {
        self.0.row_count()
    }

    fn chunk_count(&self) -> usize {
        self.0.chunk_count()
    }

    fn covers(&self, column: ColumnId) -> bool {
        self.0.covers(column)
    }

    fn chunk(&self, i: usize) -> Box<dyn ChunkData + '_> {
        Box::new(StorageChunk::new(self.0.chunk(i)))
    }
}

/// A chunk, and what was fetched of it if it is evicted.
struct StorageChunk<'a> {
    view: ChunkView<'a>,
    fetched: OnceCell<FetchedChunk>,
}

impl<'a> StorageChunk<'a> {
    fn new(view: ChunkView<'a>) -> Self {
        Self { view, fetched: OnceCell::new() }
    }

    /// The chunk as it can be read.
    fn now(&self) -> ChunkView<'_> {
        self.fetched.get().map_or(self.view, |fetched| self.view.reading(fetched))
    }
}

impl ChunkData for StorageChunk<'_> {
    fn slots(&self) -> usize {
        self.view.slots()
    }

    fn live(&self) -> Option<BooleanBuffer> {
        self.view.live()
    }

    fn column(&self, column: ColumnId) -> ArrayRef {
        self.now().column(column)
    }

    fn raw_i64(&self, column: ColumnId) -> Option<ScalarBuffer<i64>> {
        self.now().raw_i64(column)
    }

    fn raw_nulls(&self, column: ColumnId) -> Option<NullBuffer> {
        self.now().nulls(column)
    }

    fn version(&self, column: ColumnId) -> ChunkVersion {
        ChunkVersion(self.view.version(column).as_u128())
    }

    fn is_away(&self) -> bool {
        self.view.is_evicted()
    }

    fn plan(&self, columns: &BTreeSet<ColumnId>, ahead: &mut ReadAhead) {
        self.view.plan(ColumnSet::of(columns.iter().copied()), ahead.get_mut());
    }

    fn fetch(&self, columns: &BTreeSet<ColumnId>, ahead: &mut ReadAhead) -> Result<(), SqlError> {
        let columns = ColumnSet::of(columns.iter().copied());
        if let Some(fetched) = self.view.fetch(columns, ahead.get_mut())? {
            let _ = self.fetched.set(fetched);
        }
        Ok(())
    }

    fn encoded(&self, column: ColumnId) -> Option<Box<dyn EncodedColumn + '_>> {
        self.now().encoded(column).map(|view| Box::new(StorageColumn(view)) as Box<dyn EncodedColumn + '_>)
    }
}

/// A column of a frozen chunk.
struct StorageColumn<'a>(EncodedView<'a>);

impl EncodedColumn for StorageColumn<'_> {
    fn summary(&self) -> &Summary {
        self.0.summary()
    }

    fn is_cheap(&self) -> bool {
        self.0.column().is_cheap()
    }

    fn select(&self, test: &mut Test<'_>, mask: &mut [u64]) {
        self.0.column().select(test, mask);
    }

    fn array(&self, rows: &Selection<'_>) -> ArrayRef {
        self.0.array(rows)
    }

    fn append(&self, rows: &Selection<'_>, to: Integers<'_>) {
        let column = self.0.column();
        match to {
            Integers::I16(values) => column.integers_into(rows, values),
            Integers::I32(values) => column.integers_into(rows, values),
            Integers::I64(values) => column.integers_into(rows, values),
            Integers::I128(values) => column.integers_into(rows, values),
        }
    }

    fn nulls(&self, rows: &Selection<'_>) -> Option<NullBuffer> {
        self.0.nulls(rows)
    }

    fn shared(&self) -> Option<usize> {
        self.0.shared()
    }

    fn shared_texts(&self) -> Option<ArrayRef> {
        self.0.shared_texts()
    }

    fn places(&self, rows: &Selection<'_>, to: &mut Vec<u16>) {
        self.0.column().places_into(rows, to);
    }

    fn sum(&self, mask: &[u64]) -> Sum {
        self.0.column().sum(mask)
    }

    fn split(&self, groups: &mut Groups) -> bool {
        groups.split(self.0.column())
    }

    fn sum_by(&self, groups: &Groups) -> Option<Vec<Sum>> {
        self.0.column().sum_by(groups)
    }

    fn masked_runs(&self, mask: &[u64], runs: &mut MaskedRuns) -> bool {
        self.0.column().masked_runs(mask, runs)
    }

    fn sum_by_runs(&self, runs: &MaskedRuns, mask: &[u64], to: &mut Vec<i128>) -> bool {
        self.0.column().sum_by_runs(runs, mask, to)
    }
}

/// The value in a row of a result's column of type `ty`.
pub(crate) fn value_at(array: &ArrayRef, row: usize, ty: SqlType) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    let known = match array.data_type() {
        DataType::Boolean => Some(Value::Bool(array.as_boolean().value(row))),
        DataType::Int16 => Some(Value::SmallInt(array.as_primitive::<Int16Type>().value(row))),
        DataType::Int32 => Some(Value::Integer(array.as_primitive::<Int32Type>().value(row))),
        DataType::Int64 => Some(Value::BigInt(array.as_primitive::<Int64Type>().value(row))),
        DataType::Float32 => Some(Value::Real(array.as_primitive::<Float32Type>().value(row))),
        DataType::Float64 => Some(Value::Double(array.as_primitive::<Float64Type>().value(row))),
        DataType::Date32 => Some(Value::Date(array.as_primitive::<Date32Type>().value(row))),
        DataType::Time64(_) => Some(Value::Time(array.as_primitive::<Time64MicrosecondType>().value(row))),
        DataType::Decimal128(_, scale) => {
            let unscaled = array.as_primitive::<Decimal128Type>().value(row);
            u8::try_from(*scale).ok().map(|scale| Value::Decimal(albireo_base::Decimal { unscaled, scale }))
        }
        DataType::Timestamp(_, zone) => {
            let us = array.as_primitive_opt::<TimestampMicrosecondType>().map(|a| a.value(row));
            let with_zone = zone.is_some();
            us.map(|us| if with_zone { Value::TimestampTz(us) } else { Value::Timestamp(us) })
        }
        DataType::Utf8 => Some(Value::Text(array.as_string::<i32>().value(row).to_owned())),
        DataType::LargeUtf8 => Some(Value::Text(array.as_string::<i64>().value(row).to_owned())),
        DataType::Utf8View => Some(Value::Text(array.as_string_view().value(row).to_owned())),
        DataType::Binary => Some(Value::Bytea(array.as_binary::<i32>().value(row).to_vec())),
        DataType::BinaryView => Some(Value::Bytea(array.as_binary_view().value(row).to_vec())),
        DataType::FixedSizeBinary(16) => {
            array.as_fixed_size_binary().value(row).try_into().ok().map(Value::Uuid)
        }
        _ => None,
    };
    let value = known.unwrap_or_else(|| Value::Text(display(array, row)));
    // A result typed more narrowly than Arrow shows it (CHAR as text, say) is read as its type.
    match (&value, ty) {
        (Value::Text(text), SqlType::Uuid) => Value::parse(text, ty).unwrap_or(value),
        // Numbers of several scales.
        (Value::Text(text), SqlType::Decimal { .. }) => {
            albireo_base::Decimal::parse(text).map_or(value, Value::Decimal)
        }
        _ => value,
    }
}

fn display(array: &ArrayRef, row: usize) -> String {
    let options = FormatOptions::default();
    match ArrayFormatter::try_new(array.as_ref(), &options) {
        Ok(formatter) => formatter.value(row).to_string(),
        Err(error) => format!("<{error}>"),
    }
}

/// The hidden columns that say where a row is: partition and TID.
pub(crate) const HIDDEN: [&str; 2] = ["__partition", "__tid"];

/// Set in the id of a relation with hidden columns, whose statistics are its own.
const ADDRESSED: u32 = 1 << 31;

/// A catalog in which one table has the hidden columns.
pub(crate) struct AddressedRelations {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) addressed: Option<TableId>,
}

impl fmt::Debug for AddressedRelations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AddressedRelations(version {})", self.catalog.version())
    }
}

impl Relations for AddressedRelations {
    fn relation(&self, schema: Option<&str>, name: &str) -> Option<Arc<Relation>> {
        let table = self.catalog.table_named(schema, name)?;
        let mut relation = relation(table);
        if self.addressed == Some(table.id) {
            relation.id = TableId(table.id.0 | ADDRESSED);
            relation.columns.extend(HIDDEN.iter().map(|name| RelationColumn {
                name: (*name).to_owned(),
                ty: SqlType::BigInt,
                nullable: false,
            }));
        }
        Some(Arc::new(relation))
    }

    fn version(&self) -> u64 {
        self.catalog.version()
    }
}

/// A snapshot that also knows relations with hidden columns.
pub(crate) struct AddressedSnapshot(pub(crate) Arc<DatabaseSnapshot>);

impl fmt::Debug for AddressedSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AddressedSnapshot(epoch {})", self.0.epoch())
    }
}

impl Snapshot for AddressedSnapshot {
    fn relation(&self, id: TableId) -> Option<Arc<dyn RelationData>> {
        let view = self.0.table(TableId(id.0 & !ADDRESSED))?;
        Some(match id.0 & ADDRESSED {
            0 => Arc::new(StorageTable(view)),
            _ => Arc::new(AddressedTable {
                columns: view.arrow_schema().fields().len(),
                table: StorageTable(view),
            }),
        })
    }

    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

struct AddressedTable {
    table: StorageTable,
    columns: usize,
}

impl fmt::Debug for AddressedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AddressedTable({} rows)", self.row_count())
    }
}

impl RelationData for AddressedTable {
    fn row_count(&self) -> u64 {
        self.table.row_count()
    }

    fn chunk_count(&self) -> usize {
        self.table.chunk_count()
    }

    fn covers(&self, column: ColumnId) -> bool {
        column.index() >= self.columns || self.table.covers(column)
    }

    fn chunk(&self, i: usize) -> Box<dyn ChunkData + '_> {
        Box::new(AddressedChunk { chunk: StorageChunk::new(self.table.0.chunk(i)), columns: self.columns })
    }
}

struct AddressedChunk<'a> {
    chunk: StorageChunk<'a>,
    columns: usize,
}

impl AddressedChunk<'_> {
    /// Those of some columns that are of the table.
    fn without_addresses(&self, columns: &BTreeSet<ColumnId>) -> BTreeSet<ColumnId> {
        columns.iter().copied().filter(|column| column.index() < self.columns).collect()
    }

    /// The address column that `column` is, if it is one: its values.
    fn address(&self, column: ColumnId) -> Option<ScalarBuffer<i64>> {
        let slots = self.chunk.slots();
        match column.index().checked_sub(self.columns)? {
            0 => Some(vec![i64::from(self.chunk.view.partition().0); slots].into()),
            _ => Some((0..slots).map(|slot| self.chunk.view.tid(slot).0 as i64).collect()),
        }
    }
}

impl ChunkData for AddressedChunk<'_> {
    fn slots(&self) -> usize {
        self.chunk.slots()
    }

    fn live(&self) -> Option<BooleanBuffer> {
        self.chunk.live()
    }

    fn column(&self, column: ColumnId) -> ArrayRef {
        match self.address(column) {
            Some(values) => Arc::new(arrow::array::Int64Array::new(values, None)),
            None => self.chunk.column(column),
        }
    }

    fn raw_i64(&self, column: ColumnId) -> Option<ScalarBuffer<i64>> {
        self.address(column).or_else(|| self.chunk.raw_i64(column))
    }

    fn raw_nulls(&self, column: ColumnId) -> Option<NullBuffer> {
        match column.index() < self.columns {
            true => self.chunk.raw_nulls(column),
            false => None,
        }
    }

    fn is_away(&self) -> bool {
        self.chunk.is_away()
    }

    fn plan(&self, columns: &BTreeSet<ColumnId>, ahead: &mut ReadAhead) {
        self.chunk.plan(&self.without_addresses(columns), ahead);
    }

    fn fetch(&self, columns: &BTreeSet<ColumnId>, ahead: &mut ReadAhead) -> Result<(), SqlError> {
        self.chunk.fetch(&self.without_addresses(columns), ahead)
    }

    fn encoded(&self, column: ColumnId) -> Option<Box<dyn EncodedColumn + '_>> {
        match column.index() < self.columns {
            true => self.chunk.encoded(column),
            false => None,
        }
    }

    fn version(&self, column: ColumnId) -> ChunkVersion {
        match column.index() < self.columns {
            true => self.chunk.version(column),
            false => {
                let first = self.chunk.view.tid(0).0;
                ChunkVersion(
                    (u128::from(self.chunk.view.partition().0) << 96)
                        | (u128::from(first) << 16)
                        | self.slots() as u128,
                )
            }
        }
    }
}
