use super::*;
use crate::ddl::plan_ddl;
use crate::parse::{parse, parse_one};

/// Two tables that share a column name, one in another schema, and one with an odd name.
fn catalog() -> Catalog {
    let script = "create table customer (id int primary key, name text, balance numeric(12,2));
        create table orders (id int primary key, customer_id int, total numeric(12,2), note text);
        create schema app;
        create table app.orders (id int, flag bool);
        create table \"Odd Name\" (\"A b\" int)";
    let mut catalog = Catalog::new();
    for statement in parse(script).unwrap() {
        let plan = plan_ddl(&catalog, &statement, script).unwrap();
        catalog = catalog.with(&plan.changes);
    }
    catalog
}

fn bind(text: &str) -> Result<BoundQuery, SqlError> {
    bind_query(&catalog(), &parse_one(text).unwrap(), text)
}

#[track_caller]
fn names(text: &str) -> Vec<String> {
    let bound = bind(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    bound.output.into_iter().map(|column| column.name).collect()
}

#[track_caller]
fn assert_names(text: &str, expected: &[&str]) {
    assert_eq!(names(text), expected, "{text}");
}

#[track_caller]
fn assert_text(text: &str, expected: &str) {
    let bound = bind(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let shown = bound.text();
    assert_eq!(shown, expected, "{text}");
    // What the engine gets must be SQL again.
    parse_one(&shown).unwrap();
}

#[track_caller]
fn assert_refused(text: &str, code: &str, message: &str, position: usize) -> SqlError {
    let error = bind(text).expect_err(text);
    let found = (error.state().to_string(), error.message().to_owned(), error.position());
    let position = (position > 0).then_some(position);
    assert_eq!(found, (code.to_owned(), message.to_owned(), position), "{text}");
    error
}

#[test]
fn output_column_is_named_as_postgresql_does() {
    let cases = [
        ("id", "id"),
        ("customer.name", "name"),
        ("(name)", "name"),
        ("id + 1", "?column?"),
        ("'x'", "?column?"),
        ("true", "?column?"),
        ("-id", "?column?"),
        ("id = 1", "?column?"),
        ("name is null", "?column?"),
        ("count(*)", "count"),
        ("SUM(balance)", "sum"),
        ("sum(balance) over (order by id)", "sum"),
        ("coalesce(name, 'x')", "coalesce"),
        ("nullif(name, 'x')", "nullif"),
        ("greatest(1, 2)", "greatest"),
        ("1::int", "int4"),
        ("id::text", "id"),
        ("'1'::varchar(3)", "varchar"),
        ("cast('1' as double precision)", "float8"),
        ("(1 + 1)::numeric(4,1)", "numeric"),
        ("count(*)::int", "count"),
        ("date '2024-01-05'", "date"),
        ("interval '1 day'", "interval"),
        ("case when id > 1 then 1 end", "case"),
        ("case when id > 1 then 1 else id end", "id"),
        ("case when id > 1 then 1 else 2 end", "case"),
        ("case when id > 1 then 1 else 2::int end", "case"),
        ("(select max(id) from orders)", "max"),
        ("(select max(id) as most from orders)", "most"),
        ("(select 1)", "?column?"),
        ("exists (select 1)", "exists"),
        ("array[1, 2]", "array"),
        ("extract(year from now())", "extract"),
        ("substring(name from 1 for 2)", "substring"),
        ("position('a' in name)", "position"),
        ("trim(name)", "btrim"),
        ("trim(leading ' ' from name)", "ltrim"),
        ("upper(name) as \"Up\"", "Up"),
        ("id as Total", "total"),
        ("current_date", "current_date"),
        ("name collate \"C\"", "name"),
        ("now() at time zone 'UTC'", "timezone"),
        ("floor(balance)", "floor"),
    ];
    for (expr, expected) in cases {
        assert_names(&format!("select {expr} from customer"), &[expected]);
    }
}

#[test]
fn output_columns_get_unique_internal_names() {
    assert_text("select id, id from customer", "SELECT id AS \"__c0\", id AS \"__c1\" FROM customer");
    let bound = bind("select id, count(*) as n from customer group by id").unwrap();
    assert_eq!(bound.column_name("__c1"), "n");
    assert_eq!(bound.column_name("other"), "other");
    assert!(bound.exact);
}

#[test]
fn wildcard_is_written_out_in_order() {
    assert_text(
        "select * from customer",
        "SELECT \"customer\".\"id\" AS \"__c0\", \"customer\".\"name\" AS \"__c1\", \
         \"customer\".\"balance\" AS \"__c2\" FROM customer",
    );
    assert_names("select * from customer c, app.orders", &["id", "name", "balance", "id", "flag"]);
    assert_names(
        "select o.*, c.name from customer c join orders o on c.id = o.customer_id",
        &["id", "customer_id", "total", "note", "name"],
    );
    assert_text(
        "select app.orders.* from app.orders",
        "SELECT \"app\".\"orders\".\"id\" AS \"__c0\", \"app\".\"orders\".\"flag\" AS \"__c1\" FROM app.orders",
    );
    assert_text("select * from \"Odd Name\"", "SELECT \"Odd Name\".\"A b\" AS \"__c0\" FROM \"Odd Name\"");
}

#[test]
fn using_merges_columns_and_takes_the_side_that_has_values() {
    assert_names(
        "select * from customer join orders using (id)",
        &["id", "name", "balance", "customer_id", "total", "note"],
    );
    assert_text(
        "select id from customer c right join orders o using (id) where id > 1",
        "SELECT \"o\".\"id\" AS \"__c0\" FROM customer c RIGHT JOIN orders o USING(id) WHERE \"o\".\"id\" > 1",
    );
    assert_text(
        "select id, count(*) from customer c full join orders o using (id) group by id order by id",
        "SELECT coalesce(\"c\".\"id\", \"o\".\"id\") AS \"__c0\", count(*) AS \"__c1\" FROM customer c FULL JOIN \
         orders o USING(id) GROUP BY coalesce(\"c\".\"id\", \"o\".\"id\") ORDER BY \"__c0\"",
    );
    assert_names("select * from customer c natural join app.orders o", &["id", "name", "balance", "flag"]);
    assert_names("select c.id, o.id from customer c join orders o using (id)", &["id", "id"]);
    let message = "column \"name\" specified in USING clause does not exist in right table";
    assert_refused("select 1 from customer join orders using (name)", "42703", message, 43);
}

#[test]
fn order_by_finds_outputs_by_name_place_and_expression() {
    let from = "FROM customer";
    let cases = [
        ("id as a, name as id {} order by id", "id AS \"__c0\", name AS \"__c1\" {} ORDER BY \"__c1\""),
        ("name {} order by 1 desc", "name AS \"__c0\" {} ORDER BY 1 DESC"),
        ("name {} order by id", "name AS \"__c0\" {} ORDER BY id"),
        ("id + 1 {} order by customer.id + 1", "id + 1 AS \"__c0\" {} ORDER BY \"__c0\""),
        ("distinct id {} order by customer.id", "DISTINCT id AS \"__c0\" {} ORDER BY \"__c0\""),
        ("id, id {} order by id", "id AS \"__c0\", id AS \"__c1\" {} ORDER BY \"__c0\""),
        ("name n {} order by upper(name)", "name AS \"__c0\" {} ORDER BY upper(name)"),
        (
            "name, count(*) {} group by name order by count(*) desc, sum(balance)",
            "name AS \"__c0\", count(*) AS \"__c1\" {} GROUP BY name ORDER BY \"__c1\" DESC, sum(balance)",
        ),
        (
            "distinct on (n) name as n, id {} order by n, id",
            "DISTINCT ON (name) name AS \"__c0\", id AS \"__c1\" {} ORDER BY name, id",
        ),
    ];
    for (list, expected) in cases {
        let text = format!("select {}", list.replace("{}", "from customer"));
        assert_text(&text, &format!("SELECT {}", expected.replace("{}", from)));
    }
    let message = "ORDER BY position 3 is not in select list";
    assert_refused("select id, name from customer order by 3", "42P10", message, 40);
    let message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
    assert_refused("select distinct name from customer order by id", "42P10", message, 45);
    let message = "ORDER BY \"x\" is ambiguous";
    assert_refused("select id x, name x from customer order by x", "42702", message, 44);
}

#[test]
fn group_by_prefers_input_columns_to_output_names() {
    assert_text(
        "select upper(name) as initial, count(*) from customer group by initial",
        "SELECT upper(name) AS \"__c0\", count(*) AS \"__c1\" FROM customer GROUP BY upper(name)",
    );
    assert_text(
        "select upper(name) as name from customer group by name",
        "SELECT upper(name) AS \"__c0\" FROM customer GROUP BY name",
    );
    assert_text(
        "select id as k, name as n, count(*) from customer group by rollup (k, n), 1",
        "SELECT id AS \"__c0\", name AS \"__c1\", count(*) AS \"__c2\" FROM customer GROUP BY ROLLUP (id, name), 1",
    );
    let message = "GROUP BY position 0 is not in select list";
    assert_refused("select id from customer group by 0", "42P10", message, 34);
    // HAVING and WHERE do not see output names.
    let message = "column \"n\" does not exist";
    assert_refused("select count(*) n from customer having n > 1", "42703", message, 40);
}

#[test]
fn set_operation_is_ordered_by_its_first_names() {
    assert_text(
        "select id as a, name from customer union all select id, note from orders order by name, a desc",
        "SELECT id AS \"__c0\", name AS \"__c1\" FROM customer UNION ALL SELECT id AS \"__c0\", note AS \"__c1\" \
         FROM orders ORDER BY \"__c1\", \"__c0\" DESC",
    );
    let message = "each UNION query must have the same number of columns";
    assert_refused("select 1 union select 1, 2", "42601", message, 0);
    let message = "invalid UNION/INTERSECT/EXCEPT ORDER BY clause";
    assert_refused("select id from customer union select 1 order by id + 1", "0A000", message, 49);
    assert_names("values (1, 'a'), (2, 'b')", &["column1", "column2"]);
    assert_names("table customer", &["id", "name", "balance"]);
    assert_names("(select id from customer) order by id", &["id"]);
}

#[test]
fn derived_table_keeps_postgresql_names() {
    assert_text(
        "select x.count, \"?column?\" from (select count(*), 1 from customer) x",
        "SELECT x.count AS \"__c0\", \"?column?\" AS \"__c1\" FROM (SELECT count(*) AS \"count\", 1 AS \"?column?\" \
         FROM customer) x",
    );
    assert_text(
        "select * from (select id, id from customer) x",
        "SELECT \"x\".\"id\" AS \"__c0\", \"x\".\"id#2\" AS \"__c1\" FROM (SELECT id, id AS \"id#2\" FROM customer) x",
    );
    assert_names(
        "select * from (select * from customer c, orders o) x",
        &["id", "name", "balance", "id", "customer_id", "total", "note"],
    );
    assert_text(
        "select b, name from (select id, name from customer) as x(b)",
        "SELECT b AS \"__c0\", name AS \"__c1\" FROM (SELECT id, name FROM customer) AS x (b, \"name\")",
    );
    assert_names("select * from (values (1, 2)) v(a)", &["a", "column2"]);
    assert_names("select * from (select id from customer)", &["id"]);
    let message = "table \"x\" has 1 columns available but 2 columns specified";
    assert_refused("select * from (select id from customer) as x(a, b)", "42P10", message, 44);
    let message = "column reference \"id\" is ambiguous";
    assert_refused("select id from (select id, id from customer) x", "42702", message, 8);
}

#[test]
fn with_query_is_seen_where_it_should_be() {
    assert_names("with x as (select id from customer) select * from x", &["id"]);
    assert_names(
        "with x(k) as (select id from customer), y as (select k + 1 from x) select * from x, y",
        &["k", "?column?"],
    );
    assert_names("with customer as (select 1 as one) select * from customer", &["one"]);
    assert_names(
        "with recursive r(n) as (select 1 union all select n + 1 from r where n < 5) select * from r",
        &["n"],
    );
    assert_names(
        "with recursive r as (select 1 as n union all select n + 1 from r where n < 5) select n from r",
        &["n"],
    );
    let bound = bind("with customer as (select 1) select * from customer").unwrap();
    assert!(bound.tables.is_empty());
    let text = "select * from (with x as (select 1) select * from x) y, x";
    assert_refused(text, "42P01", "relation \"x\" does not exist", 57);
}

#[test]
fn unknown_table_gets_a_position_and_a_suggestion() {
    let error = assert_refused("select 1 from custmer", "42P01", "relation \"custmer\" does not exist", 15);
    assert_eq!(error.hint(), Some("Perhaps you meant the table \"customer\"."));
    let error = assert_refused(
        "select 1\n  from app.customer",
        "42P01",
        "relation \"app.customer\" does not exist",
        17,
    );
    assert_eq!(error.hint(), Some("There is a table \"public.customer\"."));
    assert_refused("select 1 from a.b.c", "0A000", "cross-database references are not implemented: a.b.c", 0);
    let error = assert_refused(
        "select 1 from \"data.parquet\"",
        "42P01",
        "relation \"data.parquet\" does not exist",
        15,
    );
    assert_eq!(error.hint(), Some("Write a file's name in single quotes."));
}

#[test]
fn unknown_column_gets_a_position_and_a_suggestion() {
    let error = assert_refused("select nme from customer", "42703", "column \"nme\" does not exist", 8);
    assert_eq!(error.hint(), Some("Perhaps you meant to reference the column \"customer.name\"."));
    let error =
        assert_refused("select c.balanc from customer c", "42703", "column c.balanc does not exist", 8);
    assert_eq!(error.hint(), Some("Perhaps you meant to reference the column \"c.balance\"."));
    let message = "missing FROM-clause entry for table \"o\"";
    assert_refused("select o.id from customer c", "42P01", message, 8);
    let message = "invalid reference to FROM-clause entry for table \"customer\"";
    let error = assert_refused("select customer.id from customer c", "42P01", message, 8);
    assert_eq!(error.hint(), Some("Perhaps you meant to reference the table alias \"c\"."));
    let message = "column reference \"id\" is ambiguous";
    let error = assert_refused("select id from customer, orders", "42702", message, 8);
    assert_eq!(error.hint(), Some("Qualify it: \"customer.id\" or \"orders.id\"."));
    let message = "table name \"customer\" specified more than once";
    assert_refused("select 1 from customer, customer", "42712", message, 0);
    assert_refused("select *", "42601", "SELECT * with no tables specified is not valid", 8);
    assert_refused("select \"ID\" from customer", "42703", "column \"ID\" does not exist", 8);
}

#[test]
fn subquery_sees_the_queries_around_it() {
    for text in [
        "select 1 from customer c where exists (select * from orders where customer_id = c.id)",
        "select (select name from customer c where c.id = o.customer_id) from orders o",
        "select 1 from customer where id in (select customer_id from orders where total > balance)",
        "select 1 from customer c where balance > all (select total from orders where customer_id = c.id)",
        "select x.t from customer c, lateral (select total as t from orders o where o.customer_id = c.id) x",
        "select 1 from orders where total > (select avg(total) as m from orders order by m)",
        "select 1 from customer a join orders b on a.id = b.id join app.orders c on c.id = b.id",
    ] {
        if let Err(error) = bind(text) {
            panic!("{text}: {error}");
        }
    }
    let text = "select x.t from customer c, (select c.id as t from orders o) x";
    assert_refused(text, "42P01", "missing FROM-clause entry for table \"c\"", 37);
    let message = "subquery must return only one column";
    assert_refused("select (select id, name from customer)", "42601", message, 0);
    let text = "select 1 from customer where id in (select id, note from orders)";
    assert_refused(text, "42601", "subquery has too many columns", 0);
}

#[test]
fn subquery_in_an_expression_is_put_back_bound() {
    assert_text(
        "select (select id from customer c full join orders o using (id)) as x",
        "SELECT (SELECT coalesce(\"c\".\"id\", \"o\".\"id\") FROM customer c FULL JOIN orders o USING(id)) AS \"__c0\"",
    );
    assert_text(
        "select 1 from customer where id in (select max(id) from orders) and exists (select * from orders)",
        "SELECT 1 AS \"__c0\" FROM customer WHERE id IN (SELECT max(id) FROM orders) AND EXISTS (SELECT * FROM orders)",
    );
}

#[test]
fn tables_parameters_and_files_are_collected() {
    let bound = bind(
        "select $2::int from orders where id = $1 and exists (select 1 from customer limit $3) union select 1 from orders",
    )
    .unwrap();
    assert_eq!(bound.parameters, 3);
    let catalog = catalog();
    let id = |name: &str| catalog.table_named(None, name).unwrap().id;
    assert_eq!(bound.tables, [id("customer"), id("orders")]);
    assert_refused("select $0", "42P02", "there is no parameter $0", 8);
}

#[test]
fn file_is_a_table_of_unknown_columns() {
    let bound = bind("select *, total * 2 from 'dir/Part-0.parquet' where x.y > 1").unwrap_err();
    assert_eq!(bound.message(), "missing FROM-clause entry for table \"x\"");
    let bound = bind("select *, total * 2 from 'dir/Part-0.parquet' join orders using (id)").unwrap();
    assert_eq!(bound.files, ["dir/Part-0.parquet"]);
    assert!(!bound.exact);
    assert_eq!(bound.output, [OutputColumn { name: "?column?".to_owned() }]);
    assert_eq!(
        bound.text(),
        "SELECT *, total * 2 AS \"__c0\" FROM \"dir/Part-0.parquet\" AS \"Part-0\" JOIN orders USING(id)"
    );
    assert_names("select a, f.b from 'x.parquet' f", &["a", "b"]);
    assert_names("select value from generate_series(1, 3)", &["value"]);
}

#[test]
fn clause_we_do_not_have_is_refused() {
    for text in [
        "select id into x from customer",
        "select id from customer for update",
        "select * exclude (id) from customer",
        "with x as (insert into customer values (1) returning id) select * from x",
        "select id from customer fetch first 1 rows with ties",
        "select customer from customer",
    ] {
        let Ok(statement) = parse_one(text) else { continue };
        let error = bind_query(&catalog(), &statement, text).expect_err(text);
        assert_eq!(error.state().to_string(), "0A000", "{text}: {error}");
    }
}

#[test]
fn query_of_the_greatest_allowed_depth_is_bound_on_a_small_stack() {
    use crate::parse::{MAX_DEPTH, MAX_LOGIC, MAX_SET_OPERATIONS};
    let chain = " or id = 1 and id in (2, 3)".repeat(MAX_LOGIC / 2);
    let sum = " + 1".repeat(MAX_DEPTH - 20);
    let cast = "::int".repeat(MAX_DEPTH - 20);
    let union = " union all select 1".repeat(MAX_SET_OPERATIONS);
    let (open, close) = ("(1 + ".repeat(45), ")".repeat(45));
    let (from, end) = ("select * from (".repeat(18), ") x".repeat(18));
    let (exists, ends) = ("select 1 where exists (".repeat(18), ")".repeat(18));
    for text in [
        format!("select 1 from customer where id = 0{chain}"),
        format!("select id{sum} from customer order by id{sum}"),
        format!("select 1{cast}"),
        format!("select 1{union}"),
        format!("select {open}1{close}"),
        format!("{from}select 1{end}"),
        format!("{exists}select 1{ends}"),
    ] {
        let bound = bind(&text).unwrap();
        assert_eq!(bound.clone(), bound);
    }
}
