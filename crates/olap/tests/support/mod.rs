//! What the tests share: a database in memory, queries bound as the database binds them, and rows as text.
#![allow(dead_code, reason = "each test program uses a part")]

use std::sync::Arc;

use albireo_base::{ColumnId, SqlError, SqlState, SqlType, TableId};
use albireo_olap::memory::{MemoryDatabase, MemoryRelation};
use albireo_olap::relation::{Relation, RelationColumn, Relations, Snapshot};
use albireo_olap::{Olap, OlapConfig, Prepared, QueryOutput, RunOptions, StatementFiles};
use albireo_semantics::expr::{Expr, ExprKind, Names, VariableId, undefined};
use albireo_semantics::query::{Files, SelectPlan, bind_select};
use albireo_semantics::types::{Scalar, Type};
use albireo_sql::ast::{Function, Ident, Query, Statement};
use albireo_sql::source::Source;
use albireo_sql::{Catalog, names, parse_one, plan_ddl};
use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};

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

    /// Binds a query without parameters and makes it ready to run.
    pub fn prepare(&self, sql: &str) -> Result<Arc<Prepared>, SqlError> {
        self.prepare_with(sql, &[])
    }

    /// Binds a query with parameters of these types and makes it ready to run.
    pub fn prepare_with(&self, sql: &str, parameters: &[SqlType]) -> Result<Arc<Prepared>, SqlError> {
        self.prepare_of(sql, parameters.iter().map(|ty| Type::Scalar(Scalar::of(*ty))).collect())
    }

    /// The same with parameters of any types.
    pub fn prepare_of(&self, sql: &str, parameters: Vec<Type>) -> Result<Arc<Prepared>, SqlError> {
        let statement = parse_one(sql)?;
        let mut catalog = Catalog::new();
        for relation in self.database.relations() {
            let ddl = definition(relation);
            let changes = plan_ddl(&catalog, &parse_one(&ddl).unwrap(), &ddl).unwrap().changes;
            catalog = catalog.with(&changes);
        }
        let Statement::Query(query) = &statement else { panic!("{sql} is no query") };
        let mut outside = Outside { text: sql, files: self.olap.files(), parameters: &parameters };
        let plan = bind_select(&catalog, query, &mut outside)?;
        let known: Vec<_> = (0..).map(VariableId).zip(parameters.into_iter().map(Some)).collect();
        self.olap.prepare(&self.relations(), &plan, &known)
    }

    pub fn query(&self, sql: &str) -> Result<QueryOutput, SqlError> {
        self.query_with(sql, RunOptions::default())
    }

    pub fn query_with(&self, sql: &str, options: RunOptions) -> Result<QueryOutput, SqlError> {
        self.olap.run(&self.prepare(sql)?, &[], &self.snapshot(), options)
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
        let prepared = self.prepare(&sql).unwrap_or_else(|e| panic!("{sql}\n{e}"));
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

fn definition(relation: &Relation) -> String {
    let column = |c: &RelationColumn| {
        let null = if c.nullable { "" } else { " NOT NULL" };
        format!("{} {}{null}", names::display(&c.name), c.ty)
    };
    let mut parts: Vec<String> = relation.columns.iter().map(column).collect();
    if !relation.primary_key.is_empty() {
        let key =
            relation.primary_key.iter().map(|id| names::display(&relation.columns[usize::from(id.0)].name));
        parts.push(format!("PRIMARY KEY ({})", key.collect::<Vec<_>>().join(", ")));
    }
    format!("CREATE TABLE {} ({})", names::display(&relation.name), parts.join(", "))
}

/// What is around a query: its parameters, and files.
struct Outside<'a> {
    text: &'a str,
    files: StatementFiles,
    parameters: &'a [Type],
}

impl Names for Outside<'_> {
    fn name(&mut self, parts: &[Ident]) -> Result<Expr, SqlError> {
        Err(undefined(parts, self.source()))
    }

    fn parameter(&mut self, number: usize) -> Result<Expr, SqlError> {
        let at = number.checked_sub(1);
        let Some((at, ty)) = at.and_then(|at| Some((at, self.parameters.get(at)?))) else {
            let text = format!("there is no parameter ${number}");
            return Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, text));
        };
        Ok(Expr { kind: ExprKind::Variable(VariableId(at as u32)), ty: ty.clone() })
    }

    fn call(&mut self, _: &Function) -> Result<Option<Expr>, SqlError> {
        Ok(None)
    }

    fn conflict(&mut self, _: &[Ident]) -> Result<Option<Expr>, SqlError> {
        Ok(None)
    }

    fn query(&mut self, _: &Query) -> Result<SelectPlan, SqlError> {
        Err(SqlError::unsupported("a query here"))
    }

    fn files(&self) -> Option<&dyn Files> {
        Some(&self.files)
    }

    fn source(&self) -> Source<'_> {
        Source::new(self.text)
    }
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
