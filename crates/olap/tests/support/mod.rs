//! What the tests share: a database in memory and rows as text.
#![allow(dead_code, reason = "each test program uses a part")]

mod bind;

use std::sync::Arc;

use albireo_base::{ColumnId, SqlError, SqlType, TableId, Value};
use albireo_olap::memory::{MemoryDatabase, MemoryRelation};
use albireo_olap::relation::{Relation, RelationColumn, Relations, Snapshot};
use albireo_olap::{Olap, OlapConfig, Query, QueryOutput, RunOptions};
use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

/// An engine over a database in memory.
pub struct Fixture {
    pub olap: Olap,
    pub database: Arc<MemoryDatabase>,
}

pub fn relation(id: u32, name: &str, columns: &[(&str, SqlType)], key: &[u16]) -> Relation {
    let is_key = |i: usize| key.contains(&(i as u16));
    Relation {
        id: TableId(id),
        schema: "public".to_owned(),
        name: name.to_owned(),
        columns: columns
            .iter()
            .enumerate()
            .map(|(i, (name, ty))| RelationColumn { name: (*name).to_owned(), ty: *ty, nullable: !is_key(i) })
            .collect(),
        primary_key: key.iter().map(|c| ColumnId(*c)).collect(),
        unique_keys: Vec::new(),
    }
}

pub fn decimal(precision: u8, scale: u8) -> SqlType {
    SqlType::Decimal { precision, scale }
}

impl Fixture {
    pub fn new(tables: Vec<(Relation, Vec<RecordBatch>)>) -> Self {
        Self::with_config(tables, OlapConfig::default())
    }

    pub fn with_config(tables: Vec<(Relation, Vec<RecordBatch>)>, config: OlapConfig) -> Self {
        let mut database = MemoryDatabase::default();
        for (relation, batches) in tables {
            database.add(relation, Arc::new(MemoryRelation::new(batches, 1)));
        }
        Self { olap: Olap::new(config).unwrap(), database: Arc::new(database) }
    }

    pub fn relations(&self) -> Arc<dyn Relations> {
        Arc::clone(&self.database) as _
    }

    pub fn snapshot(&self) -> Arc<dyn Snapshot> {
        Arc::clone(&self.database) as _
    }

    pub fn query(&self, sql: &str) -> Result<QueryOutput, SqlError> {
        self.query_with(sql, &[], RunOptions::default())
    }

    pub fn query_with(
        &self,
        sql: &str,
        parameters: &[Value],
        options: RunOptions,
    ) -> Result<QueryOutput, SqlError> {
        let prepared = self.olap.prepare(&self.relations(), parse(sql))?;
        self.olap.run(&prepared, parameters, &self.snapshot(), options)
    }

    /// The rows as `a|b` lines; NULL is empty.
    pub fn rows(&self, sql: &str) -> Vec<String> {
        match self.query(sql) {
            Ok(output) => rows(&output.batches),
            Err(e) => panic!("{sql}\n{e}"),
        }
    }

    /// The only value.
    pub fn value(&self, sql: &str) -> String {
        let rows = self.rows(sql);
        assert_eq!(rows.len(), 1, "{sql}: {rows:?}");
        rows[0].clone()
    }

    /// The SQL type of the only column.
    pub fn type_of(&self, expression: &str, from: &str) -> String {
        let sql = format!("select {expression} as x {from}");
        let prepared = self.olap.prepare(&self.relations(), parse(&sql));
        let prepared = prepared.unwrap_or_else(|e| panic!("{sql}\n{e}"));
        prepared.columns()[0].ty.map_or("none".to_owned(), |ty| ty.to_string())
    }

    /// The SQLSTATE the query fails with.
    pub fn state_of(&self, sql: &str) -> String {
        match self.query(sql) {
            Ok(output) => panic!("{sql} gave {:?}", rows(&output.batches)),
            Err(e) => e.state().to_string(),
        }
    }
}

pub fn parse(sql: &str) -> Query {
    let mut statements =
        Parser::parse_sql(&PostgreSqlDialect {}, sql).unwrap_or_else(|e| panic!("{sql}\n{e}"));
    assert_eq!(statements.len(), 1);
    Query::new(statements.remove(0))
}

pub fn rows(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::default();
    let mut lines = Vec::new();
    for batch in batches {
        let columns: Vec<ArrayFormatter> =
            batch.columns().iter().map(|c| ArrayFormatter::try_new(c, &options).unwrap()).collect();
        for row in 0..batch.num_rows() {
            let cells: Vec<String> = columns.iter().map(|c| c.value(row).to_string()).collect();
            lines.push(cells.join("|"));
        }
    }
    lines
}
