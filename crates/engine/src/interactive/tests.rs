//! Random transactions of several connections, interleaved statement by statement: those that committed have told
//! their clients what they would have told them one after another.

use std::fmt::Write as _;

use albireo_olap::CancelToken;
use albireo_partition::LockOwner;
use albireo_sql::classify::Isolation;
use albireo_testing::Random;

use super::{Interactive, Statement};
use crate::settings::Settings;
use crate::statements::ExecutionPath;
use crate::{Config, Connection, Database, Outcome, SqlError};

const CONNECTIONS: usize = 4;
const STEPS: usize = 120;

fn database(partitions: u16, path: Option<ExecutionPath>) -> Database {
    let db = Database::in_memory(Config { partitions, query_threads: 1, ..Config::default() }).unwrap();
    let by = if partitions > 1 { " PARTITION BY HASH (id)" } else { "" };
    db.execute(&format!(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, kind INTEGER, value INTEGER, note TEXT){by};
         CREATE INDEX t_kind ON t (kind);
         CREATE TABLE rate (id INTEGER PRIMARY KEY, value INTEGER);
         CREATE TABLE log (id INTEGER, what INTEGER){by};
         INSERT INTO t SELECT i, i % 4, i * 10, repeat('n', i * 3) FROM generate_series(1, 12) AS s(i);
         INSERT INTO rate VALUES (1, 7), (2, 11);
         INSERT INTO log VALUES (1, 1), (1, 1), (2, 1);
         CREATE PROCEDURE move(a INTEGER, b INTEGER) LANGUAGE plpgsql AS $$
         DECLARE had INTEGER;
         BEGIN
             SELECT value INTO had FROM t WHERE id = a;
             IF had > 3 THEN
                 UPDATE t SET value = value - 3 WHERE id = a;
                 UPDATE t SET value = value + 3 WHERE id = b;
             END IF;
         END $$"
    ))
    .unwrap();
    db.inner.statements.force(path);
    db
}

/// A statement with one answer.
fn statement(random: &mut Random) -> String {
    let (id, other, kind) = (random.between(1, 15), random.between(1, 15), random.between(0, 4));
    match random.below(28) {
        0 | 1 => format!("SELECT value, note FROM t WHERE id = {id}"),
        2 => format!("SELECT count(*), sum(value) FROM t WHERE kind = {kind}"),
        3 => "SELECT count(*), sum(value), max(length(note)) FROM t".to_owned(),
        4 => format!("SELECT id, value FROM t WHERE id BETWEEN {id} AND {other} ORDER BY id"),
        5 => "SELECT id, rank() OVER (ORDER BY value, id) FROM t ORDER BY id".to_owned(),
        6 => format!("SELECT id FROM t WHERE kind = {kind} ORDER BY id LIMIT 1"),
        7 => format!("SELECT t.id, r.value FROM t JOIN rate r ON r.id = t.kind WHERE t.id = {id}"),
        8 => format!("SELECT what, count(*) FROM log WHERE id = {id} GROUP BY what ORDER BY what"),
        9 | 10 => format!("UPDATE t SET value = value + {kind} WHERE id = {id}"),
        11 => format!("UPDATE t SET kind = {kind} WHERE kind = {}", random.below(5)),
        12 => {
            format!("UPDATE t SET value = (SELECT count(*) FROM t x WHERE x.kind = t.kind) WHERE id = {id}")
        }
        13 => format!("UPDATE t SET id = {other} WHERE id = {id}"),
        14 => format!("UPDATE t SET note = repeat('m', {}) WHERE id = {id}", other * 4),
        15 => "UPDATE t SET value = value + 1".to_owned(),
        16 => format!("INSERT INTO t VALUES ({id}, {kind}, 1, 'new') RETURNING id, value"),
        17 => format!(
            "INSERT INTO t VALUES ({id}, {kind}, 1, 'new') ON CONFLICT (id) DO UPDATE SET value = t.value + 100"
        ),
        18 => {
            format!("INSERT INTO t SELECT id + 15, kind, value, note FROM t WHERE kind = {kind} AND id < 16")
        }
        19 => format!("DELETE FROM t WHERE id = {id}"),
        20 => format!("DELETE FROM t WHERE kind = {kind} AND value > 60"),
        21 => format!("SELECT value FROM rate WHERE id = {}", 1 + random.below(2)),
        22 => format!("UPDATE rate SET value = value + 1 WHERE id = {}", 1 + random.below(2)),
        23 | 24 => format!("CALL move({id}, {other})"),
        25 => format!("INSERT INTO log VALUES ({id}, {kind})"),
        26 => format!("DELETE FROM log WHERE what = {kind}"),
        _ => format!(
            "MERGE INTO t USING (VALUES ({id}, 5), ({}, 6)) AS v (id, value) ON t.id = v.id
             WHEN MATCHED AND t.value > 50 THEN DELETE
             WHEN MATCHED THEN UPDATE SET value = t.value + v.value
             WHEN NOT MATCHED THEN INSERT VALUES (v.id, 0, v.value, NULL)",
            (id + 1) % 15 + 1
        ),
    }
}

/// What a statement told its client.
fn told(done: &Result<Vec<Outcome>, SqlError>) -> String {
    match done {
        Err(error) => error.state().to_string(),
        Ok(outcomes) => match outcomes.last() {
            Some(Outcome::Rows(result)) => {
                let row = |row: &Vec<albireo_base::Value>| {
                    row.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
                };
                result.rows().iter().map(row).collect::<Vec<_>>().join(" ")
            }
            Some(Outcome::Done { rows, .. }) => format!("{rows} rows"),
            None => String::new(),
        },
    }
}

/// A transaction under way.
#[derive(Default)]
struct Open {
    steps: Vec<(String, String)>,
    /// When its last statement ran.
    ran: usize,
}

/// What was committed: when it was as if it had run, and what its client was told.
#[derive(Default)]
struct Units {
    now: usize,
    all: Vec<(usize, Vec<(String, String)>)>,
}

/// What one history did.
#[derive(Default)]
struct Counts {
    committed: usize,
    ended: usize,
    writing: usize,
}

fn contents(db: &Database) -> String {
    db.inner.statements.force(None);
    let mut text = String::new();
    for sql in [
        "SELECT * FROM t ORDER BY id",
        "SELECT * FROM rate ORDER BY id",
        "SELECT * FROM log ORDER BY id, what",
    ] {
        writeln!(text, "{}", told(&db.execute(sql))).unwrap();
    }
    text
}

/// Runs a history, and what was committed of it again, one after another.
fn history(seed: u64, counts: &mut Counts) {
    let mut random = Random::new(seed);
    let partitions = 1 + (seed % 3) as u16;
    let path = match seed / 3 % 3 {
        0 => None,
        1 => Some(ExecutionPath::Transactional),
        _ => Some(ExecutionPath::Analytical),
    };
    let db = database(partitions, path);
    let connections: Vec<Connection> = (0..CONNECTIONS).map(|_| db.connect()).collect();
    let mut open: Vec<Option<Open>> = (0..CONNECTIONS).map(|_| None).collect();
    let mut units = Units::default();
    for _ in 0..STEPS {
        units.now += 1;
        let at = random.index(CONNECTIONS);
        step(&mut random, &connections[at], &mut open[at], &mut units, counts);
    }
    connections.iter().for_each(|connection| drop(connection.execute("ROLLBACK")));
    let again = database(partitions, path);
    let one = again.connect();
    units.all.sort_by_key(|(at, _)| *at);
    for (number, (_, unit)) in units.all.iter().enumerate() {
        for (sql, expected) in unit {
            assert_eq!(told(&one.execute(sql)), *expected, "unit {number} of seed {seed}: {sql}\n{unit:#?}");
        }
    }
    assert_eq!(contents(&db), contents(&again), "seed {seed}: what is left");
}

fn step(
    random: &mut Random,
    connection: &Connection,
    open: &mut Option<Open>,
    units: &mut Units,
    counts: &mut Counts,
) {
    let Some(block) = open else {
        if random.percent(30) {
            let sql = statement(random);
            let answer = told(&connection.execute(&sql));
            return units.all.push((units.now, vec![(sql, answer)]));
        }
        connection.execute("BEGIN").unwrap();
        *open = Some(Open { steps: vec![("BEGIN".to_owned(), "0 rows".to_owned())], ran: units.now });
        return;
    };
    let sql = match random.below(20) {
        0..=2 => "COMMIT".to_owned(),
        3 => "ROLLBACK".to_owned(),
        4 => "SAVEPOINT s".to_owned(),
        5 => "ROLLBACK TO s".to_owned(),
        _ => statement(random),
    };
    let writes = connection.has_written();
    let done = connection.execute(&sql);
    let answer = told(&done);
    match (sql.as_str(), answer.as_str()) {
        (_, "40001") => {
            counts.ended += 1;
            drop(connection.execute("ROLLBACK"));
            *open = None;
        }
        ("ROLLBACK", _) => *open = None,
        ("COMMIT", _) if was_rolled_back(&done) => *open = None,
        ("COMMIT", _) => {
            let mut block = open.take().unwrap();
            block.steps.push((sql, answer));
            counts.committed += 1;
            counts.writing += usize::from(writes);
            // One that has written nothing ran at its last statement.
            let at = if writes { units.now } else { block.ran };
            units.all.push((at, block.steps));
        }
        _ => {
            // A savepoint reads nothing, and what is refused after an error does not either.
            if !sql.ends_with(" s") && answer != "25P02" {
                block.ran = units.now;
            }
            block.steps.push((sql, answer));
        }
    }
}

/// COMMIT after an error is ROLLBACK.
fn was_rolled_back(done: &Result<Vec<Outcome>, SqlError>) -> bool {
    let last = done.as_ref().ok().and_then(|outcomes| outcomes.last());
    matches!(last, Some(Outcome::Done { tag, .. }) if tag == "ROLLBACK")
}

#[test]
fn committed_transactions_told_their_clients_what_they_would_have_told_them_one_after_another() {
    let test = albireo_testing::test!();
    let mut counts = Counts::default();
    test.for_each_seed(1..101, |seed| history(seed, &mut counts));
    let Counts { committed, ended, writing } = counts;
    println!("{committed} committed, {writing} of them wrote, {ended} ended by others");
    // Else it would have tested little.
    assert!(!test.has_usual_seeds() || writing > 300 && ended > 200, "{committed} {writing} {ended}");
}

#[test]
fn what_either_path_has_read_counts() {
    let reads = [
        "UPDATE t SET value = value + 1",
        "DELETE FROM t WHERE value > 50",
        "SELECT sum(value) FROM t",
        "INSERT INTO log SELECT id, value FROM t",
    ];
    let rivals = [
        "INSERT INTO t SELECT id + 15, kind, value, note FROM t WHERE kind = 1 AND id < 16",
        "INSERT INTO t VALUES (40, 1, 1, 'a')",
        "DELETE FROM t WHERE id = 3",
        "UPDATE t SET value = 1 WHERE id = 3",
    ];
    for path in [ExecutionPath::Transactional, ExecutionPath::Analytical] {
        for (read, rival) in reads.iter().flat_map(|read| rivals.iter().map(move |rival| (read, rival))) {
            let db = database(1, Some(path));
            let one = db.connect();
            one.execute("BEGIN").unwrap();
            one.execute(read).unwrap();
            one.execute("INSERT INTO log VALUES (8, 8)").unwrap();
            db.execute(rival).unwrap();
            assert_eq!(told(&one.execute("COMMIT")), "40001", "{read}, then {rival}");
        }
    }
}

/// One statement, and then a change of what it has read, before its client is told.
fn changed_after(db: &Database, open: &mut Interactive, id: i64) {
    let text = format!("SELECT value FROM t WHERE id = {id}");
    db.query(&text, &[]).unwrap();
    let (settings, cancel) = (Settings::default(), CancelToken::default());
    let source = (text.as_str(), &[][..], true);
    let done = db.run_interactive(open, Statement::Kept, source, &settings, &cancel);
    done.expect("it is kept").unwrap();
    db.execute(&format!("UPDATE t SET value = value + 1 WHERE id = {id}")).unwrap();
    assert!(open.check(&db.catalog()).is_err());
}

#[test]
fn what_was_read_at_one_moment_is_told_whatever_has_changed_since() {
    for path in [ExecutionPath::Transactional, ExecutionPath::Analytical] {
        let db = database(2, Some(path));
        let elsewhere = |id: &i64| {
            let home = |id: i64| db.inner.partitions.partition_of_key(id);
            home(*id) != home(1)
        };
        let other = (2..13).find(elsewhere).unwrap();
        let mut open = db.begin_interactive(Isolation::Serializable, &LockOwner::new());
        changed_after(&db, &mut open, 1);
        assert!(open.check_answer(&db.catalog()).is_ok(), "its only statement");
        db.end_interactive(&open);

        let mut open = db.begin_interactive(Isolation::Serializable, &LockOwner::new());
        let (settings, cancel) = (Settings::default(), CancelToken::default());
        let source = ("SELECT value FROM t WHERE id = 1", &[][..], true);
        db.run_interactive(&mut open, Statement::Kept, source, &settings, &cancel).unwrap().unwrap();
        changed_after(&db, &mut open, other);
        let told = open.check_answer(&db.catalog());
        // Over a snapshot it had all partitions.
        assert_eq!(told.is_ok(), path == ExecutionPath::Analytical, "its second, of another partition");
        db.end_interactive(&open);
    }
}
