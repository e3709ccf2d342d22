//! Our own SQL takes every statement of the workloads.

use albireo::{Database, Value};
use albireo_bench::ch::queries::{QUERIES, TOP10};
use albireo_bench::tpcc::schema::{Layout, Table, ddl};
use albireo_bench::tpcc::{Scale, consistency};
use albireo_sql::ast::Statement;
use albireo_sql::catalog::IndexRole;
use albireo_sql::{Catalog, IndexKind, parse_one, plan_ddl};

fn parsed(sql: &str) -> Statement {
    parse_one(sql).unwrap_or_else(|error| panic!("{sql}\n{error}"))
}

fn catalog(layout: Layout) -> Catalog {
    ddl(layout).iter().fold(Catalog::new(), |catalog, sql| {
        let plan = plan_ddl(&catalog, &parsed(sql), sql).unwrap_or_else(|error| panic!("{sql}\n{error}"));
        catalog.with(&plan.changes)
    })
}

#[test]
fn ddl_makes_the_tables_it_means() {
    for layout in [Layout::Column, Layout::Row, Layout::Groups] {
        let catalog = catalog(layout);
        for table in Table::ALL.map(Table::definition) {
            let found = catalog.table_named(None, table.name).unwrap();
            assert_eq!(found.columns.len(), table.columns.len());
            for (found, column) in found.columns.iter().zip(table.columns) {
                assert_eq!((found.name.as_str(), found.ty), (column.name, column.ty));
                assert_eq!(found.nullable, column.nullable, "{}", column.name);
            }
            let name = |id: &albireo_base::ColumnId| found.columns[id.index()].name.as_str();
            assert_eq!(found.partition_by.as_ref().map(name), table.partition_by);
            for index in &found.indexes {
                let needs_order = index.role != IndexRole::PrimaryKey || table.key_has_ranges;
                assert!(!needs_order || index.kind == IndexKind::Ordered, "{}", index.name);
            }
            let keys = usize::from(!table.primary_key.is_empty()) + usize::from(table.index.is_some());
            assert_eq!(found.indexes.len(), keys, "{}", table.name);
        }
    }
}

#[test]
fn groups_are_those_of_the_definition() {
    let catalog = catalog(Layout::Groups);
    for table in Table::ALL.map(Table::definition) {
        let found = catalog.table_named(None, table.name).unwrap();
        let groups = match &found.layout {
            albireo_sql::Layout::Groups(groups) => groups.as_slice(),
            albireo_sql::Layout::Column => &[],
            albireo_sql::Layout::Row => panic!("{} lies in rows", table.name),
        };
        let names = groups
            .iter()
            .map(|group| group.iter().map(|id| found.columns[id.index()].name.as_str()).collect::<Vec<_>>());
        assert_eq!(names.collect::<Vec<_>>(), table.groups, "{}", table.name);
    }
}

#[test]
fn queries_and_conditions_run_on_the_tables() {
    let db = Database::in_memory(albireo::Config::default()).unwrap();
    for sql in ddl(Layout::Column) {
        db.execute(&sql).unwrap_or_else(|error| panic!("{sql}\n{error}"));
    }
    for query in QUERIES.iter().chain([&TOP10]) {
        // As many values as it has parameters, no more and no less.
        let values = vec![Value::Null; query.parameters];
        db.query(query.sql, &values).unwrap_or_else(|error| panic!("{}: {error}", query.name));
        let error = db.query(query.sql, &vec![Value::Null; query.parameters + 1]).unwrap_err();
        assert_eq!(error.state().to_string(), "42P02", "{}: {error}", query.name);
    }
    for condition in 1..=consistency::COUNT {
        let sql = consistency::violations(condition, Scale::SPEC);
        let rows = db.query(&sql, &[]).unwrap_or_else(|error| panic!("condition {condition}: {error}"));
        assert_eq!(rows.columns.len(), 1);
    }
}
