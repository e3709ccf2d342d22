//! Indexes without keys, which compare rows: what ordered ones answer, whatever happens to the rows.

use albireo::{Config, Database, Outcome};
use albireo_env::CrashDisk;
use albireo_testing::Random;

use crate::recovery::{config, env_of};
use crate::support::{ask, database, fails, rows_stay, run, small, state};

/// Two databases with the same rows and indexes, which have keys in the first and none in the second.
struct Pair([Database; 2]);

const OPTIONS: [&str; 2] = ["", "WITH (keys = 'none')"];

fn create(db: &Database, options: &str) {
    run(
        db,
        &format!(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, n INTEGER NOT NULL, tag VARCHAR(40), d DATE);
             CREATE INDEX by_name ON t (name) {options};
             CREATE INDEX by_n ON t (n) {options};
             CREATE INDEX by_both ON t (n, name, id) {options};
             CREATE UNIQUE INDEX by_tag ON t (tag) {options}"
        ),
    );
}

impl Pair {
    fn new(config: &Config) -> Self {
        let made = |options: &str| {
            let db = Database::in_memory(config.clone()).unwrap();
            create(&db, options);
            db
        };
        Self(OPTIONS.map(made))
    }

    /// Both do the same, and both fail in the same way.
    fn run(&self, sql: &str) {
        let [keyed, bare] = self.0.each_ref().map(|db| match db.execute(sql) {
            // How many chunks are frozen: where everything is again and again, not at the same statements of both.
            Ok(_) if sql.starts_with("CALL albireo.freeze") => String::new(),
            Ok(outcomes) => format!("{outcomes:?}"),
            // Of many rows that may not be, any is named.
            Err(error) => format!("{} {}", error.state(), error.message()),
        });
        assert_eq!(bare, keyed, "{sql}");
    }

    fn ask(&self, sql: &str) -> String {
        let [keyed, bare] = self.0.each_ref().map(|db| ask(db, sql));
        assert_eq!(bare, keyed, "{sql}");
        bare
    }

    /// Keys, ranges, prefixes and order, from either end.
    fn compare(&self, random: &mut Random) {
        let (name, n) = (name(random.below(NAMES)), random.below(40));
        self.ask("SELECT count(*), count(name), sum(n), count(tag) FROM t");
        self.ask(&format!("SELECT id, n FROM t WHERE name = '{name}' ORDER BY id LIMIT 30"));
        self.ask(&format!("SELECT name, id FROM t WHERE name >= '{name}' ORDER BY name, id LIMIT 5"));
        self.ask(&format!("SELECT id FROM t WHERE n = {n} AND name > '{name}' ORDER BY name, id LIMIT 7"));
        self.ask(&format!(
            "SELECT name FROM t WHERE n = {n} AND name <= '{name}' ORDER BY name DESC LIMIT 7"
        ));
        self.ask(&format!("SELECT max(name), min(name) FROM t WHERE n = {n}"));
        self.ask(&format!("SELECT id FROM t WHERE n BETWEEN {n} AND {n} + 1 ORDER BY id LIMIT 40"));
        self.ask(&format!("SELECT id, name FROM t WHERE tag = 'tag of a row that is long {n}'"));
        self.ask(&format!("SELECT count(*) FROM t WHERE name LIKE '{}%'", &name[..name.len().min(3)]));
        self.ask("SELECT max(n), min(n), max(tag) FROM t");
    }
}

const NAMES: u64 = 300;

/// Many are equal in their first 16 bytes.
fn name(number: u64) -> String {
    match number % 3 {
        0 => format!("a beginning that all of these have {number}"),
        1 => format!("{number}"),
        _ => format!("Ж{}", "long ".repeat(number as usize % 9)),
    }
}

fn change(random: &mut Random) -> String {
    let (id, n, new) = (random.below(500), random.below(40), name(random.below(NAMES)));
    let name = match random.percent(10) {
        true => "NULL".to_owned(),
        false => format!("'{}'", name(random.below(NAMES))),
    };
    let tag = match random.percent(40) {
        true => "NULL".to_owned(),
        false => format!("'tag of a row that is long {}'", random.below(600)),
    };
    match random.below(16) {
        0..5 => format!("INSERT INTO t VALUES ({id}, {name}, {n}, {tag}, NULL)"),
        5 => format!("INSERT INTO t VALUES ({id}, {name}, {n}, {tag}) ON CONFLICT (id) DO UPDATE SET name = {name}, n = t.n + 1"),
        6 => format!("UPDATE t SET name = {name} WHERE id = {id}"),
        7 => format!("UPDATE t SET n = {n}, name = {name}, tag = {tag} WHERE id = {id}"),
        8 => format!("UPDATE t SET name = name || '!' WHERE name = '{new}'"),
        9 => format!("DELETE FROM t WHERE name = {name}"),
        10 => format!("UPDATE t SET n = n + 1 WHERE n = {n}"),
        11 => format!("BEGIN; UPDATE t SET name = {name}, n = {n} WHERE id < {id}; DELETE FROM t WHERE n = {n}; ROLLBACK"),
        12 => format!(
            "BEGIN; DELETE FROM t WHERE id = {id}; SAVEPOINT a; UPDATE t SET name = '{new}' WHERE n = {n}; ROLLBACK TO a;
             UPDATE t SET tag = NULL WHERE n = {n}; COMMIT"
        ),
        13 => format!("DELETE FROM t WHERE id = {id}"),
        14 => format!(
            "MERGE INTO t USING (SELECT id + 1 AS id, name FROM t WHERE n = {n}) AS u ON t.id = u.id
             WHEN MATCHED THEN UPDATE SET name = u.name WHEN NOT MATCHED THEN INSERT VALUES (u.id, u.name, {n})"
        ),
        _ => format!("UPDATE t SET tag = {tag} WHERE id = {id}"),
    }
}

#[test]
fn random_changes_leave_what_ordered_indexes_find() {
    albireo_testing::test!().for_each_seed(0..4, |seed| {
        let mut random = Random::new(seed);
        let pair = Pair::new(&small());
        for step in 0..600 {
            pair.run(&change(&mut random));
            if step % 10 == 0 {
                pair.compare(&mut random);
            }
            if step == 300 {
                pair.run("CALL albireo.freeze('t')");
            }
        }
    });
}

/// Enough for chunks, and for statements to be worked out beside the table.
fn fill(pair: &Pair, rows: u32) {
    pair.run(&format!(
        "INSERT INTO t SELECT g, CASE WHEN g % 11 = 0 THEN NULL ELSE 'a beginning of all of them ' || g % 4001 END, g % 700,
         CASE WHEN g % 3 = 0 THEN NULL ELSE 'the tag of a row that is long ' || g END FROM generate_series(1, {rows}) s (g)"
    ));
}

#[test]
fn statements_over_many_rows_and_frozen_ones_leave_what_ordered_indexes_find() {
    let pair = Pair::new(&small());
    fill(&pair, 40_000);
    let mut random = Random::new(7);
    let all = |pair: &Pair, what: &str, random: &mut Random| {
        pair.ask("SELECT count(*), count(name), sum(n), count(tag), max(length(name)) FROM t");
        for n in (0..700).step_by(53) {
            pair.ask(&format!("SELECT id, name FROM t WHERE n = {n} ORDER BY name, id"));
            pair.ask(&format!("SELECT id FROM t WHERE name = 'a beginning of all of them {n}' ORDER BY id"));
            pair.ask(&format!(
                "SELECT id FROM t WHERE tag = 'the tag of a row that is long {n}' ORDER BY id"
            ));
        }
        pair.compare(random);
        println!("{what}");
    };
    let changes = [
        "UPDATE t SET name = name || '?' WHERE id % 2 = 0",
        "UPDATE t SET n = n + 1",
        "DELETE FROM t WHERE id % 5 = 0",
        "MERGE INTO t USING (SELECT id + 3 AS id, name FROM t WHERE n < 300) AS u ON t.id = u.id
         WHEN MATCHED THEN UPDATE SET name = u.name, n = t.n + 2
         WHEN NOT MATCHED THEN INSERT VALUES (u.id, u.name, 5, NULL, NULL)",
        "INSERT INTO t SELECT id + 100000, name, n, tag || ' again', d FROM t WHERE id < 30000",
        "BEGIN; UPDATE t SET name = 'gone'; DELETE FROM t WHERE id % 2 = 1; ROLLBACK",
        "UPDATE t SET name = NULL WHERE id % 7 = 0",
        "DELETE FROM t WHERE name LIKE '%9'",
        "INSERT INTO t SELECT id + 300000, name, n, tag FROM t",
    ];
    for (round, frozen) in [false, true].into_iter().enumerate() {
        if frozen {
            pair.run("CALL albireo.freeze('t')");
            all(&pair, "frozen", &mut random);
            for id in [3, 4, 17, 16_000] {
                pair.run(&format!("UPDATE t SET name = 'moved {id}', n = 3 WHERE id = {id}"));
                pair.run(&format!("UPDATE t SET tag = 'tag {id}' WHERE id = {}", id + 1));
                pair.run(&format!("DELETE FROM t WHERE id = {}", id + 5));
                pair.run(&format!("BEGIN; UPDATE t SET n = 9, name = 'x' WHERE id = {}; ROLLBACK", id + 9));
            }
            all(&pair, "single rows", &mut random);
        }
        for change in changes {
            pair.run(&change.replace("100000", &format!("{}00000", 1 + round)));
            all(&pair, change, &mut random);
        }
    }
    pair.run("TRUNCATE t");
    fill(&pair, 1000);
    all(&pair, "after TRUNCATE", &mut random);
}

#[test]
fn index_over_rows_that_are_there_is_the_same_as_one_made_before() {
    let (before, after) = (database(), database());
    create(&before, "");
    create(&after, "");
    run(&after, "DROP INDEX by_name; DROP INDEX by_n; DROP INDEX by_both; DROP INDEX by_tag");
    let pair = Pair([before, after]);
    fill(&pair, 30_000);
    pair.run("CALL albireo.freeze('t'); DELETE FROM t WHERE id % 4 = 0");
    let with = OPTIONS[1];
    run(
        &pair.0[1],
        &format!(
            "CREATE INDEX by_name ON t (name) {with}; CREATE INDEX by_n ON t (n) {with};
             CREATE INDEX by_both ON t (n, name, id) {with}; CREATE UNIQUE INDEX by_tag ON t (tag) {with}"
        ),
    );
    let mut random = Random::new(3);
    for n in (0..700).step_by(31) {
        pair.ask(&format!("SELECT id, name FROM t WHERE n = {n} ORDER BY name DESC, id DESC"));
        pair.ask(&format!("SELECT id FROM t WHERE name = 'a beginning of all of them {n}' ORDER BY id"));
    }
    pair.compare(&mut random);
    let twice = "UPDATE t SET n = 77 WHERE id IN (1, 2); CREATE UNIQUE INDEX u ON t (n) WITH (keys = 'none')";
    let error = fails(&pair.0[1], twice);
    assert_eq!((state(&error).as_str(), error.message()), ("23505", "could not create unique index \"u\""));
    pair.0[1].execute("DROP INDEX u").expect_err("there is none");
}

#[test]
fn key_that_is_there_is_refused_in_the_words_of_ordered_indexes() {
    let pair = Pair::new(&small());
    pair.run("INSERT INTO t VALUES (1, 'a', 1, 'a long tag, longer than 16 bytes'), (2, NULL, 2, NULL), (3, NULL, 2, NULL)");
    for change in [
        "INSERT INTO t VALUES (4, 'b', 1, 'a long tag, longer than 16 bytes')",
        "UPDATE t SET tag = 'a long tag, longer than 16 bytes' WHERE id = 2",
        "UPDATE t SET tag = 'the same'",
        "INSERT INTO t SELECT g, 'b', 1, 'x' FROM generate_series(10, 12) s (g)",
        "INSERT INTO t VALUES (5, 'b', 1, 'a long tag, longer than 16 byteS')",
        "INSERT INTO t VALUES (6, 'b', 1, '') ON CONFLICT (tag) DO NOTHING",
        "INSERT INTO t VALUES (7, 'b', 1, '') ON CONFLICT (tag) DO NOTHING",
        "INSERT INTO t VALUES (8, 'c', 1, '') ON CONFLICT (tag) DO UPDATE SET name = 'met'",
    ] {
        pair.run(change);
        pair.ask("SELECT * FROM t ORDER BY id");
    }
    let error = fails(&pair.0[1], "INSERT INTO t VALUES (9, 'b', 1, '')");
    assert_eq!(state(&error), "23505");
    assert_eq!(error.message(), "duplicate key value violates unique constraint \"by_tag\"");
}

#[test]
fn index_without_keys_is_there_after_a_restart() {
    for checkpoint in [false, true] {
        let disk = CrashDisk::new(1);
        let open = || Database::open_in("/data", config(1, 1), env_of(&disk)).unwrap();
        let db = open();
        create(&db, OPTIONS[1]);
        let pair = Pair([Pair::new(&small()).0.into_iter().next().unwrap(), db]);
        fill(&pair, 3000);
        if checkpoint {
            run(&pair.0[1], "CHECKPOINT");
        }
        pair.run("DELETE FROM t WHERE id % 9 = 0; UPDATE t SET name = 'changed ' || id WHERE n < 50");
        let Pair([keyed, db]) = pair;
        let bytes = |db: &Database| db.with_table("t", |_, table| Ok(table.memory().indexes_bytes)).unwrap();
        assert!(bytes(&db) < bytes(&keyed), "{} and {} bytes", bytes(&db), bytes(&keyed));
        drop(db);
        let pair = Pair([keyed, open()]);
        let options = |db: &Database| {
            let catalog = db.catalog();
            let t = catalog.tables().next().unwrap();
            t.indexes.iter().map(|index| index.options()).collect::<Vec<_>>()
        };
        assert_eq!(options(&pair.0[1]), [&[None][..], &[Some("keys='none'"); 4]].concat());
        assert!(bytes(&pair.0[1]) < bytes(&pair.0[0]));
        let mut random = Random::new(3);
        (0..20).for_each(|_| pair.compare(&mut random));
        pair.run("INSERT INTO t VALUES (9000, 'b', 1, 'the tag of a row that is long 1')");
        pair.run("INSERT INTO t VALUES (9001, 'b', 1, 'new')");
        pair.compare(&mut random);
    }
}

#[test]
fn rows_that_were_archived_frozen_are_found_without_keys() {
    let disk = CrashDisk::new(3);
    let open = || Database::open_in("/data", config(1, 1), env_of(&disk)).unwrap();
    let db = open();
    create(&db, OPTIONS[1]);
    // Names with one beginning are compressed, and keys longer than 16 bytes are compared in the rows.
    run(
        &db,
        "INSERT INTO t SELECT g, 'a name that is long ' || g * 7919 % 30011, g % 40, 'tag ' || g, NULL
             FROM generate_series(1, 20000) s (g);
         CALL albireo.freeze('t'); DELETE FROM t WHERE id % 36 = 0",
    );
    let questions = [
        "SELECT id FROM t WHERE name = 'a name that is long 12345'",
        "SELECT id, name FROM t WHERE name >= 'a name that is long 2' ORDER BY name LIMIT 5",
        "SELECT id FROM t WHERE tag = 'tag 36'",
        "SELECT id FROM t WHERE tag = 'tag 37'",
        "SELECT count(*), sum(id) FROM t WHERE n = 17",
    ];
    let before = questions.map(|question| ask(&db, question));
    db.checkpoint().unwrap();
    drop(db);
    let db = open();
    assert_ne!(ask(&db, "SELECT count(*) FROM albireo.chunks WHERE state = 'frozen'"), "0");
    assert_eq!(questions.map(|question| ask(&db, question)), before);
    run(&db, "UPDATE t SET name = 'moved' WHERE tag = 'tag 37'; DELETE FROM t WHERE tag = 'tag 38'");
    assert_eq!(ask(&db, "SELECT id FROM t WHERE name = 'moved'"), "37");
    assert_eq!(state(&fails(&db, "INSERT INTO t VALUES (99999, 'x', 1, 'tag 37', NULL)")), "23505");
}

#[test]
fn rows_are_found_by_an_index_without_keys() {
    if !rows_stay() {
        return;
    }
    let pair = Pair::new(&small());
    fill(&pair, 20_000);
    for query in [
        "SELECT id FROM t WHERE name = 'a beginning of all of them 7'",
        "SELECT id FROM t WHERE n = 7 AND name > 'a'",
        "SELECT id FROM t WHERE tag = 'the tag of a row that is long 7'",
        "SELECT id FROM t WHERE n BETWEEN 7 AND 7",
        "SELECT n FROM t ORDER BY n LIMIT 3",
        "UPDATE t SET d = '2024-01-01' WHERE name = 'a beginning of all of them 7'",
    ] {
        let plan = pair.ask_plan(query);
        assert!(plan.contains("by_"), "{query}\n{plan}");
    }
}

impl Pair {
    fn ask_plan(&self, query: &str) -> String {
        let [keyed, bare] = self.0.each_ref().map(|db| {
            let mut outcomes = db.execute(&format!("EXPLAIN {query}")).unwrap();
            format!("{:?}", outcomes.remove(0))
        });
        assert_eq!(bare, keyed, "{query}");
        bare
    }
}

/// The first line of what EXPLAIN says.
fn path_of(db: &Database, query: &str) -> String {
    match db.execute(&format!("EXPLAIN {query}")).unwrap().remove(0) {
        Outcome::Rows(rows) => rows.rows()[0][0].to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn index_without_keys_is_read_for_few_rows_and_not_for_many() {
    if !rows_stay() {
        return;
    }
    for options in OPTIONS {
        let db = database();
        run(
            &db,
            &format!(
                "CREATE TABLE t (k INTEGER NOT NULL, g INTEGER NOT NULL, n INTEGER NOT NULL);
                 INSERT INTO t SELECT x * 7919 % 100000, x % 15, x FROM generate_series(0, 99999) s (x);
                 CREATE INDEX by_k ON t (k) {options}"
            ),
        );
        for freeze in [false, true] {
            if freeze {
                run(&db, "CALL albireo.freeze('t')");
            }
            let path = |what: &str, rows: u32| {
                let groups = if what == "count(*)" { "" } else { " GROUP BY g" };
                let end = 5_000 + rows;
                path_of(&db, &format!("SELECT {what} FROM t WHERE k >= 5000 AND k < {end}{groups}"))
            };
            // A scan takes 0.17 to 0.27 ms; a row 0.15 µs, and 0.12 µs more for each of two aggregates and a key but one.
            for (what, few, many) in
                [("count(*)", 700, 2_500), ("g, count(*)", 400, 1_600), ("g, count(*), sum(n)", 400, 1_100)]
            {
                let few = path(what, few);
                assert!(few.starts_with("transactional") && few.ends_with("index by_k"), "{what}: {few}");
                let many = path(what, many);
                assert!(many.starts_with("analytical"), "{what}: {many}");
            }
        }
    }
}
