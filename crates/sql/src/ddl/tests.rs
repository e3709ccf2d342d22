use std::sync::Arc;

use albireo_base::{ColumnId, SqlState, SqlType};

use super::*;
use crate::TableDef;
use crate::catalog::{Freeze, IndexKeys, IndexKind, IndexRole, Layout};
use crate::parse::parse_one;

fn plan(catalog: &Catalog, text: &str) -> Result<DdlPlan, SqlError> {
    plan_ddl(catalog, &parse_one(text).unwrap_or_else(|error| panic!("{text}: {error}")), text)
}

/// The catalog after these statements.
fn after(statements: &[&str]) -> Catalog {
    statements.iter().fold(Catalog::new(), |catalog, text| {
        let plan = plan(&catalog, text).unwrap_or_else(|error| panic!("{text}: {error}"));
        catalog.with(&plan.changes)
    })
}

fn table(text: &str) -> Arc<TableDef> {
    let catalog = after(&[text]);
    Arc::clone(catalog.tables().next().expect("a table was made"))
}

#[track_caller]
fn assert_refused(catalog: &Catalog, text: &str, code: &str, message: &str) -> SqlError {
    let error = plan(catalog, text).expect_err(text);
    assert_eq!((error.state().to_string().as_str(), error.message()), (code, message), "{text}");
    error
}

#[test]
fn create_table_keeps_columns_keys_defaults_and_checks() {
    let t = table(
        "create table stock (
            w int not null,
            i int,
            qty numeric(4,0) default 100 check (qty >= 0),
            tag varchar(10) unique,
            made timestamptz default now(),
            primary key (w, i),
            constraint small check (i < 100 and qty < 1000)
        ) partition by hash (w) with (layout = 'row')"
            .replace(" unique", "")
            .as_str(),
    );
    let shown: Vec<_> = t.columns.iter().map(|c| format!("{} {} {}", c.name, c.ty, c.nullable)).collect();
    assert_eq!(
        shown,
        [
            "w integer false",
            "i integer false",
            "qty numeric(4,0) true",
            "tag character varying(10) true",
            "made timestamp with time zone true",
        ]
    );
    assert_eq!(t.primary_key(), Some([ColumnId(0), ColumnId(1)].as_slice()));
    assert_eq!(t.partition_by, Some(ColumnId(0)));
    assert_eq!(t.layout, Layout::Row);
    assert_eq!(t.columns[2].default.as_ref().unwrap().text, "100");
    assert_eq!(t.columns[4].default.as_ref().unwrap().text, "now()");
    let checks: Vec<_> = t.checks.iter().map(|c| (c.name.as_str(), c.columns.as_slice())).collect();
    let expected: [(&str, &[ColumnId]); 2] =
        [("stock_qty_check", &[ColumnId(2)]), ("small", &[ColumnId(1), ColumnId(2)])];
    assert_eq!(checks, expected);
    assert_eq!(t.checks[0].expr.text, "qty >= 0");
    assert_eq!(t.schema, "public");
}

#[test]
fn keys_become_indexes_named_as_postgresql_does() {
    let t = table(
        "create table t (a int unique, b int primary key, c int, constraint bc unique (b, c), unique (a))",
    );
    let shown: Vec<_> = t.indexes.iter().map(|i| (i.id.0, i.name.as_str(), i.role, i.unique)).collect();
    assert_eq!(
        shown,
        [
            (0, "t_pkey", IndexRole::PrimaryKey, true),
            (1, "t_a_key", IndexRole::Unique, true),
            (2, "bc", IndexRole::Unique, true),
        ]
    );
    assert_eq!(t.next_index_id().0, 3);
    assert_eq!(t.unique_keys().count(), 3);
}

#[test]
fn layout_is_read_from_the_options() {
    let layout = |options: &str| {
        let text = format!("create table t (a int, b int, \"C d\" int, e int) with ({options})");
        plan(&Catalog::new(), &text).map(|plan| match &plan.changes[0] {
            DdlChange::CreateTable(table) => table.layout.clone(),
            other => panic!("{other:?}"),
        })
    };
    let groups = |groups: &[&[u16]]| {
        Layout::Groups(groups.iter().map(|g| g.iter().map(|c| ColumnId(*c)).collect()).collect())
    };
    assert_eq!(layout("layout = 'column'").unwrap(), Layout::Column);
    assert_eq!(layout("layout = row").unwrap(), Layout::Row);
    assert_eq!(layout("groups = 'b, a; \"C d\" e;'").unwrap(), groups(&[&[1, 0], &[2, 3]]));
    assert_eq!(layout("layout = 'groups', groups = 'a e'").unwrap(), groups(&[&[0, 3]]));
    let refused = [
        ("layout = 'columns'", "22023", "invalid value for parameter \"layout\": \"columns\""),
        ("layout = 'groups'", "22023", "layout \"groups\" needs the option \"groups\""),
        ("layout = 'row', groups = 'a b'", "22023", "the option \"groups\" goes with layout \"groups\" only"),
        ("groups = 'a x'", "42703", "column \"x\" of relation \"t\" does not exist"),
        ("groups = 'a b; a'", "42701", "column \"a\" is in two groups"),
        ("groups = ';'", "22023", "no columns in groups"),
        ("groups = 'a + b'", "22023", "unexpected \"+\" in groups \"a + b\""),
        ("layuot = 'row'", "22023", "unrecognized parameter \"layuot\""),
        ("fillfactor = 70", "22023", "unrecognized parameter \"fillfactor\""),
        ("layout = 'row', layout = 'row'", "22023", "parameter \"layout\" specified more than once"),
    ];
    for (options, code, message) in refused {
        let error = layout(options).expect_err(options);
        assert_eq!((error.state().to_string().as_str(), error.message()), (code, message), "{options}");
        assert!(error.position().is_some(), "{options}");
    }
    assert_eq!(layout("layuot = 'row'").unwrap_err().hint(), Some("Perhaps you meant \"layout\"."));
}

#[test]
fn when_rows_are_frozen_is_read_and_changed() {
    let made = |options: &str| -> Result<Freeze, SqlError> {
        let plan = plan(&Catalog::new(), &format!("create table t (a int) with ({options})"))?;
        match &plan.changes[0] {
            DdlChange::CreateTable(table) => Ok(table.freeze),
            other => panic!("{other:?}"),
        }
    };
    let after = |ms| Freeze::After(std::time::Duration::from_millis(ms));
    assert_eq!(made("layout = row").unwrap(), Freeze::Auto);
    let catalog = Catalog::new().with(&plan(&Catalog::new(), "create table t (a int)").unwrap().changes);
    let altered = |options: &str| -> Result<Freeze, SqlError> {
        let plan = plan(&catalog, &format!("alter table t set ({options})"))?;
        assert_eq!(plan.tag, "ALTER TABLE");
        let next = catalog.with(&plan.changes);
        Ok(next.tables().next().unwrap().freeze)
    };
    let times =
        [("off", Freeze::Off), ("auto", Freeze::Auto), ("'10 min'", after(600_000)), ("'20'", after(20))];
    for (text, freeze) in times {
        let options = format!("freeze = {text}");
        assert_eq!((made(&options), altered(&options)), (Ok(freeze), Ok(freeze)), "{text}");
        assert_eq!(Freeze::parse(&freeze.to_string()), Some(freeze), "what is kept is read");
    }
    for wrong in ["freeze = 'soon'", "freeze = '0 s'", "freeze = 10", "freeze = '10 us'", "thaw = off"] {
        let error = made(wrong).unwrap_err();
        assert_eq!(error.state(), SqlState::INVALID_PARAMETER_VALUE, "{wrong}");
        assert!(error.position().is_some() && altered(wrong).is_err(), "{wrong}");
    }
    assert_eq!(altered("freeze = off, freeze = off").unwrap_err().state(), SqlState::INVALID_PARAMETER_VALUE);
    assert_eq!(altered("layout = row").unwrap_err().state(), SqlState::FEATURE_NOT_SUPPORTED);
    let plan = |text| plan(&catalog, text);
    assert_eq!(plan("alter table x set (freeze = off)").unwrap_err().state(), SqlState::UNDEFINED_TABLE);
    let skipped = plan("alter table if exists x set (freeze = off)").unwrap();
    assert_eq!(skipped.notices, ["relation \"x\" does not exist, skipping"]);
}

#[test]
fn create_table_that_contradicts_itself_is_refused() {
    let cases = [
        ("(a int, a text)", "42701", "column \"a\" specified more than once", 24),
        (
            "(a int primary key, b int primary key)",
            "42P16",
            "multiple primary keys for table \"t\" are not allowed",
            36,
        ),
        ("(a int, primary key (b))", "42703", "column \"b\" named in key does not exist", 37),
        ("(a int, unique (a, a))", "42701", "column \"a\" appears twice in a key", 35),
        ("(a int check (b > 0))", "42703", "column \"b\" does not exist", 30),
        ("(a int, b int default a)", "0A000", "cannot use column reference in DEFAULT expression", 38),
        (
            "(a int default 1 default 2)",
            "42601",
            "multiple default values specified for column \"a\" of table \"t\"",
            17,
        ),
        (
            "(a int null not null)",
            "42601",
            "conflicting NULL/NOT NULL declarations for column \"a\" of table \"t\"",
            17,
        ),
        ("(a blob)", "42704", "type \"blob\" does not exist", 17),
        ("(a int references x)", "0A000", "FOREIGN KEY is not supported", 17),
        ("(a int, foreign key (a) references x (b))", "0A000", "FOREIGN KEY is not supported", 37),
        ("(a int check (a > $1))", "42P02", "there is no parameter $1", 34),
        ("(a int) partition by hash (b)", "42703", "column \"b\" named in partition key does not exist", 43),
        (
            "(a real) partition by hash (a)",
            "0A000",
            "partitioning by a column of type real is not supported",
            44,
        ),
    ];
    for (rest, code, message, position) in cases {
        let text = format!("create table t {rest}");
        let error = assert_refused(&Catalog::new(), &text, code, message);
        assert_eq!(error.position(), Some(position), "{text}");
    }
    let cases = [
        ("(a int check (a > (select 1)))", "cannot use subquery in check constraint"),
        ("(a int) partition by range (a)", "PARTITION BY RANGE is not supported"),
        ("(a int, b int) partition by hash (a, b)", "partitioning by other than one column is not supported"),
        ("(a int generated always as identity)", "a generated column is not supported"),
        ("(a text collate \"de_DE\")", "COLLATE \"de_DE\" is not supported"),
        ("as select 1", "CREATE TABLE ... AS is not supported"),
        ("(a numeric)", "type numeric without a precision is not supported"),
    ];
    for (rest, message) in cases {
        assert_refused(&Catalog::new(), &format!("create table t {rest}"), "0A000", message);
    }
}

#[test]
fn unique_key_without_the_partitioning_column_is_refused() {
    let catalog = after(&["create table p (a int, b int) partition by hash (a)"]);
    let message = "unique constraint on partitioned table must include all partitioning columns";
    for text in [
        "create table t (a int, b int primary key) partition by hash (a)",
        "create table t (a int, b int unique) partition by hash (a)",
        "create unique index i on p (b)",
    ] {
        let error = assert_refused(&catalog, text, "0A000", message);
        assert!(error.detail().unwrap().contains("lacks column \"a\""), "{error}");
        assert_eq!(error.hint(), Some("Add \"a\" to the key, or leave PARTITION BY out."));
    }
    assert!(plan(&catalog, "create index i on p (b)").is_ok());
    assert!(plan(&catalog, "create unique index i on p (b, a)").is_ok());
}

#[test]
fn existing_table_is_an_error_or_a_notice() {
    let catalog = after(&["create table t (a int primary key)"]);
    let error = assert_refused(&catalog, "create table t (a int)", "42P07", "relation \"t\" already exists");
    assert_eq!(error.position(), Some(14));
    assert_refused(&catalog, "create table t_pkey (a int)", "42P07", "relation \"t_pkey\" already exists");
    let plan = plan(&catalog, "create table if not exists t (b text)").unwrap();
    assert!(plan.changes.is_empty());
    assert_eq!(plan.notices, ["relation \"t\" already exists, skipping"]);
    assert_eq!(plan.tag, "CREATE TABLE");
}

#[test]
fn index_is_made_named_and_dropped() {
    let catalog = after(&[
        "create table t (a int, b text)",
        "create index on t (b, a)",
        "create index on t (b, a)",
        "create unique index u on t using hash (a)",
        "create index o on t using ordered (b)",
    ]);
    let t = catalog.table_named(None, "t").unwrap();
    let shown: Vec<_> = t.indexes.iter().map(|i| (i.name.as_str(), i.unique, i.kind)).collect();
    assert_eq!(
        shown,
        [
            ("t_b_a_idx", false, IndexKind::Ordered),
            ("t_b_a_idx1", false, IndexKind::Ordered),
            ("u", true, IndexKind::Hash),
            ("o", false, IndexKind::Ordered),
        ]
    );
    let plan_ = plan(&catalog, "create index if not exists u on t (b)").unwrap();
    assert_eq!(plan_.notices, ["relation \"u\" already exists, skipping"]);
    let dropped = catalog.with(&plan(&catalog, "drop index t_b_a_idx, u").unwrap().changes);
    let t = dropped.table_named(None, "t").unwrap();
    assert_eq!(t.indexes.iter().map(|i| i.id.0).collect::<Vec<_>>(), [1, 3]);
    // Ids are not used again.
    let again = dropped.with(&plan(&dropped, "create index u on t (b)").unwrap().changes);
    assert_eq!(again.table_named(None, "t").unwrap().indexes.last().unwrap().id.0, 4);

    let cases = [
        ("create index i on x (a)", "42P01", "relation \"x\" does not exist"),
        ("create index i on t (c)", "42703", "column \"c\" named in key does not exist"),
        ("create index i on t using gist (a)", "42704", "access method \"gist\" does not exist"),
        ("create index i on t (a desc)", "0A000", "a descending key is not supported"),
        ("create index i on t (lower(b))", "0A000", "an index on an expression is not supported"),
        ("create index i on t (a) where a > 1", "0A000", "a partial index is not supported"),
        ("create index u on t (a)", "42P07", "relation \"u\" already exists"),
        ("drop index t", "42809", "\"t\" is not an index"),
        ("drop table u", "42809", "\"u\" is not a table"),
        ("drop index v", "42704", "index \"v\" does not exist"),
    ];
    for (text, code, message) in cases {
        assert_refused(&catalog, text, code, message);
    }
    let keyed = after(&["create table k (a int primary key)"]);
    let message = "cannot drop index k_pkey because constraint k_pkey on table k requires it";
    assert_refused(&keyed, "drop index k_pkey", "2BP01", message);
}

#[test]
fn index_without_keys_is_asked_for_by_an_option() {
    let catalog = after(&["create table t (a int, b text)"]);
    let keys = |what: &str| {
        plan(&catalog, &format!("create unique index i on t {what}")).map(|plan| match &plan.changes[0] {
            DdlChange::CreateIndex { index, .. } => (index.kind, index.keys, index.options()),
            other => panic!("{other:?}"),
        })
    };
    let (none, prefix) = (IndexKeys::None, IndexKeys::Prefix);
    assert_eq!(keys("(b)").unwrap(), (IndexKind::Ordered, prefix, None));
    assert_eq!(keys("(b) with (keys = 'prefix')").unwrap(), (IndexKind::Ordered, prefix, None));
    for with in ["keys = 'none'", "KEYS = none", "keys='NONE'"] {
        let asked = keys(&format!("using btree (b, a) with ({with})")).unwrap();
        assert_eq!(asked, (IndexKind::Ordered, none, Some("keys='none'")), "{with}");
    }
    // Codes and words are those of PostgreSQL 15 for its own options.
    let invalid = |value: &str| format!("invalid value for enum option \"keys\": {value}");
    let unknown = |name: &str| format!("unrecognized parameter \"{name}\"");
    let refused = [
        ("(b) with (keys = 'all')", invalid("all")),
        ("(b) with (keys = '')", invalid("")),
        ("(b) with (keys = 1)", invalid("1")),
        ("(b) with (keys)", invalid("true")),
        ("(b) with (key = 'none')", unknown("key")),
        ("(b) with (fillfactor = 70)", unknown("fillfactor")),
        ("(b) with (keys = 'none', fillfactor = 70)", unknown("fillfactor")),
        ("using hash (b) with (keys = 'none')", unknown("keys")),
        ("(b) with (keys = 'none', keys = 'none')", "parameter \"keys\" specified more than once".to_owned()),
    ];
    for (what, message) in refused {
        let error = keys(what).expect_err(what);
        assert_eq!((error.state().to_string().as_str(), error.message()), ("22023", &*message), "{what}");
        assert!(error.position().is_some(), "{what}");
    }
    let error = keys("(b) with (keys = 'all')").unwrap_err();
    assert_eq!(error.detail(), Some("Valid values are \"prefix\" and \"none\"."));
    assert_eq!(error.position(), Some(38));
    assert_eq!(keys("(b) with (a.keys = 'none')").unwrap_err().state().to_string(), "0A000");
}

#[test]
fn drop_table_takes_several_and_suggests() {
    let catalog = after(&["create table orders (a int)", "create table b (a int)"]);
    let plan_ = plan(&catalog, "drop table if exists orders, missing, b, b").unwrap();
    assert_eq!(plan_.changes.len(), 2);
    assert_eq!(plan_.notices, ["table \"missing\" does not exist, skipping"]);
    let empty = catalog.with(&plan_.changes);
    assert_eq!(empty.tables().count(), 0);
    assert_eq!(empty.version(), catalog.version() + 1);
    let error = assert_refused(&catalog, "drop table ordres", "42P01", "table \"ordres\" does not exist");
    assert_eq!(error.hint(), Some("Perhaps you meant the table \"orders\"."));
    assert_eq!(error.position(), Some(12));
    let next = plan(&empty, "create table orders (a int)").unwrap();
    assert!(matches!(&next.changes[0], DdlChange::CreateTable(table) if table.id.0 == 3));
}

#[test]
fn schema_is_made_filled_and_dropped() {
    let catalog =
        after(&["create schema app", "create table app.t (a int unique)", "create table t (a int)"]);
    assert_eq!(catalog.schemas().collect::<Vec<_>>(), ["app", "public"]);
    assert!(catalog.table_named(Some("app"), "t").is_some());
    let plan_ = plan(&catalog, "create schema if not exists app").unwrap();
    assert_eq!(plan_.notices, ["schema \"app\" already exists, skipping"]);
    let dropped = catalog.with(&plan(&catalog, "drop schema app cascade").unwrap().changes);
    assert!(!dropped.has_schema("app"));
    assert_eq!(dropped.tables().count(), 1);
    let cases = [
        ("create schema app", "42P06", "schema \"app\" already exists"),
        ("create schema pg_x", "42939", "unacceptable schema name \"pg_x\""),
        ("drop schema app", "2BP01", "cannot drop schema app because other objects depend on it"),
        ("drop schema nope", "3F000", "schema \"nope\" does not exist"),
        ("drop schema public", "0A000", "dropping the schema \"public\" is not supported"),
        ("create table nope.t (a int)", "3F000", "schema \"nope\" does not exist"),
    ];
    for (text, code, message) in cases {
        assert_refused(&catalog, text, code, message);
    }
}

#[test]
fn truncate_names_tables_that_exist() {
    let catalog = after(&["create table t (a int)"]);
    let plan_ = plan(&catalog, "truncate table t").unwrap();
    assert!(matches!(plan_.changes.as_slice(), [DdlChange::Truncate(_)]));
    assert_refused(&catalog, "truncate x", "42P01", "relation \"x\" does not exist");
}

#[test]
fn earlier_catalog_stays_as_it_was() {
    let before = after(&["create table t (a int)"]);
    let later = before.with(&plan(&before, "create index i on t (a)").unwrap().changes);
    assert!(before.table_named(None, "t").unwrap().indexes.is_empty());
    assert_eq!(later.table_named(None, "t").unwrap().indexes.len(), 1);
    assert!(before.relation(None, "i").is_none());
    assert_eq!(later.table_named(None, "t").unwrap().columns[0].ty, SqlType::Integer);
    let name = crate::names::QualifiedName {
        schema: None,
        name: "i".to_owned(),
        span: sqlparser::tokenizer::Span::empty(),
    };
    let error = later.resolve_table(&name, Source::new("")).unwrap_err();
    assert_eq!(error.state(), SqlState::WRONG_OBJECT_TYPE);
}
