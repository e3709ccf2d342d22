use super::*;
use crate::ddl::plan_ddl;
use crate::parse::{parse, parse_one};

fn catalog() -> Catalog {
    let script = "create table t (id int primary key, n numeric(8,2) default 1.5, s text);
        create table other (id int, v int)";
    parse(script).unwrap().iter().fold(Catalog::new(), |catalog, statement| {
        let plan = plan_ddl(&catalog, statement, script).unwrap();
        catalog.with(&plan.changes)
    })
}

fn insert(text: &str) -> Result<InsertPlan, SqlError> {
    let Statement::Insert(insert) = parse_one(text).unwrap() else { panic!("{text}") };
    plan_insert(&catalog(), &insert, text)
}

fn update(text: &str) -> Result<UpdatePlan, SqlError> {
    let Statement::Update(update) = parse_one(text).unwrap() else { panic!("{text}") };
    plan_update(&catalog(), &update, text)
}

fn delete(text: &str) -> Result<DeletePlan, SqlError> {
    let Statement::Delete(delete) = parse_one(text).unwrap() else { panic!("{text}") };
    plan_delete(&catalog(), &delete, text)
}

#[track_caller]
fn assert_error<T>(result: Result<T, SqlError>, code: &str, message: &str) -> SqlError {
    let Err(error) = result else { panic!("expected: {message}") };
    assert_eq!((error.state().to_string().as_str(), error.message()), (code, message));
    error
}

#[test]
fn insert_of_values_keeps_defaults_and_expressions() {
    let plan = insert("insert into t (s, id, n) values ('a', $1, default), (upper('b'), 2 + 1, -1)").unwrap();
    assert_eq!(plan.columns, [ColumnId(2), ColumnId(0), ColumnId(1)]);
    assert_eq!(plan.parameters, 1);
    let InsertSource::Values(rows) = &plan.source else { panic!("no values") };
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0][2], NewValue::Default);
    let row = plan.row_query(0).unwrap();
    assert_eq!(row.text(), "SELECT 'a' AS \"__c0\", $1 AS \"__c1\", NULL AS \"__c2\"");
    assert!(plan.row_query(2).is_none());
}

#[test]
fn insert_without_columns_fills_the_first_ones() {
    assert_eq!(insert("insert into t values (1, 2)").unwrap().columns, [ColumnId(0), ColumnId(1)]);
    let plan = insert("insert into t default values").unwrap();
    assert_eq!((plan.columns.len(), plan.source), (0, InsertSource::Values(vec![vec![]])));
    let plan = insert("insert into t select id, v from other where v > $2 returning id, n * 2").unwrap();
    assert_eq!((plan.columns.len(), plan.parameters), (2, 2));
    assert_eq!(plan.tables.len(), 1);
    let names: Vec<_> = plan.returning.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["id", "?column?"]);
}

#[test]
fn insert_that_does_not_match_the_table_is_refused() {
    let message = "INSERT has more expressions than target columns";
    assert_error(insert("insert into t values (1, 2, 'c', 4)"), "42601", message);
    let message = "INSERT has more target columns than expressions";
    assert_error(insert("insert into t (id, n) values (1)"), "42601", message);
    assert_error(insert("insert into t (id, n) select 1"), "42601", message);
    let message = "VALUES lists must all be the same length";
    assert_error(insert("insert into t values (1, 2), (3)"), "42601", message);
    let message = "column \"sn\" of relation \"t\" does not exist";
    let error = assert_error(insert("insert into t (id, sn) values (1, 2)"), "42703", message);
    assert_eq!(error.position(), Some(20));
    assert_error(
        insert("insert into t (id, id) values (1, 2)"),
        "42701",
        "column \"id\" specified more than once",
    );
    assert_error(insert("insert into t values (id)"), "42703", "column \"id\" does not exist");
    assert_error(insert("insert into x values (1)"), "42P01", "relation \"x\" does not exist");
    let text = "insert into t values (1) on conflict do nothing";
    assert_error(insert(text), "0A000", "ON CONFLICT is not supported");
}

#[test]
fn update_becomes_a_query_for_rows_and_new_values() {
    let plan =
        update("update t as x set n = n + $1, s = default where id in (select id from other) returning x.*")
            .unwrap();
    let columns: Vec<_> = plan.assignments.iter().map(|(column, _)| *column).collect();
    assert_eq!(columns, [ColumnId(1), ColumnId(2)]);
    assert_eq!(plan.returning.len(), 3);
    let query = plan.rows_query(&["__part", "__tid"]);
    assert_eq!(
        query.text(),
        "SELECT \"x\".\"__part\" AS \"__c0\", \"x\".\"__tid\" AS \"__c1\", n + $1 AS \"__c2\", NULL AS \"__c3\" \
         FROM \"public\".\"t\" AS \"x\" WHERE id IN (SELECT id FROM other)"
    );
    assert_eq!((query.tables.len(), query.parameters), (2, 1));
    let plan = update("update t set (id, n) = (1, n)").unwrap();
    assert_eq!(plan.assignments.len(), 2);
}

#[test]
fn update_that_names_wrong_columns_is_refused() {
    let message = "column \"m\" of relation \"t\" does not exist";
    assert_eq!(assert_error(update("update t set m = 1"), "42703", message).position(), Some(14));
    assert_error(update("update t set n = m"), "42703", "column \"m\" does not exist");
    let message = "multiple assignments to same column \"n\"";
    assert_error(update("update t set n = 1, n = 2"), "42601", message);
    let text = "update t set n = v from other where other.id = t.id";
    assert_error(update(text), "0A000", "UPDATE ... FROM is not supported");
    assert_error(update("update x set n = 1"), "42P01", "relation \"x\" does not exist");
}

#[test]
fn delete_becomes_a_query_for_rows() {
    let plan = delete("delete from t where n > (select max(v) from other) returning id").unwrap();
    assert_eq!(
        plan.rows_query(&["__tid"]).text(),
        "SELECT \"t\".\"__tid\" AS \"__c0\", id AS \"__c1\" FROM \"public\".\"t\" AS \"t\" WHERE n > (SELECT \
         max(v) FROM other)"
    );
    assert_error(delete("delete from t where x = 1"), "42703", "column \"x\" does not exist");
    assert_error(delete("delete from t using other"), "0A000", "DELETE ... USING is not supported");
}
