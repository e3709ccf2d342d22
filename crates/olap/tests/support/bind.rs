//! Queries bound as the database binds them, over relations in memory.

use std::ops::ControlFlow;
use std::sync::Arc;

use albireo_base::{SqlError, SqlState};
use albireo_olap::relation::{Relation, Relations as _};
use albireo_olap::{Prepared, QueryOutput, RunOptions, StatementFiles};
use albireo_semantics::expr::{Expr, Names, undefined};
use albireo_semantics::query::{Files, SelectPlan, bind_select};
use albireo_sql::ast::{Function, Ident, Query, Statement};
use albireo_sql::source::Source;
use albireo_sql::walk::Walk as _;
use albireo_sql::{Catalog, names, parse_one, plan_ddl};

use super::Fixture;

/// Nothing around the query but files.
struct Outside<'a> {
    text: &'a str,
    files: StatementFiles,
}

impl Names for Outside<'_> {
    fn name(&mut self, parts: &[Ident]) -> Result<Expr, SqlError> {
        Err(undefined(parts, self.source()))
    }

    fn parameter(&mut self, number: usize) -> Result<Expr, SqlError> {
        Err(SqlError::new(SqlState::UNDEFINED_PARAMETER, format!("there is no parameter ${number}")))
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

impl Fixture {
    /// Binds a query without parameters and makes it ready to run.
    pub fn prepare_bound(&self, sql: &str) -> Result<Arc<Prepared>, SqlError> {
        let statement = parse_one(sql)?;
        let mut catalog = Catalog::new();
        let _ = statement.any_relation(&mut |name| {
            let table = name.0.first().and_then(|part| part.as_ident()).map(names::fold);
            if let Some(relation) = table.and_then(|table| self.database.relation(None, &table))
                && catalog.table_named(None, &relation.name).is_none()
            {
                let ddl = definition(&relation);
                let changes = plan_ddl(&catalog, &parse_one(&ddl).unwrap(), &ddl).unwrap().changes;
                catalog = catalog.with(&changes);
            }
            ControlFlow::Continue(())
        });
        let Statement::Query(query) = &statement else { panic!("{sql} is no query") };
        let mut outside = Outside { text: sql, files: self.olap.files() };
        let plan = bind_select(&catalog, query, &mut outside)?;
        self.olap.prepare_bound(&self.relations(), &plan, &[])
    }

    /// Runs a query by its bound form.
    pub fn query_bound(&self, sql: &str) -> Result<QueryOutput, SqlError> {
        let prepared = self.prepare_bound(sql)?;
        self.olap.run(&prepared, &[], &self.snapshot(), RunOptions::default())
    }

    /// The rows as `a|b` lines; NULL is empty.
    pub fn rows_bound(&self, sql: &str) -> Vec<String> {
        match self.query_bound(sql) {
            Ok(output) => super::rows(&output.batches),
            Err(error) => panic!("{sql}\n{error}"),
        }
    }
}

fn definition(relation: &Relation) -> String {
    let column = |c: &albireo_olap::relation::RelationColumn| format!("{} {}", names::display(&c.name), c.ty);
    let columns: Vec<String> = relation.columns.iter().map(column).collect();
    format!("CREATE TABLE {} ({})", names::display(&relation.name), columns.join(", "))
}
