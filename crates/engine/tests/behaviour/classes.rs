//! Where calls of routines run, what EXPLAIN says of it, and versions of definitions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use albireo::{Abort, Argument, Config, Database, Outcome, Procedure, Route, SqlState, Transaction, Value};
use parking_lot::Mutex;

use crate::support::{ask, fails, is_well, rows_stay, run, small, state};

fn bank(partitions: u16) -> Database {
    let db = Database::in_memory(Config { partitions, ..small() }).unwrap();
    run(
        &db,
        "CREATE TABLE account (id INTEGER PRIMARY KEY, cents BIGINT NOT NULL) PARTITION BY HASH (id);
         CREATE TABLE rate (currency TEXT PRIMARY KEY, cents BIGINT);
         INSERT INTO account VALUES (0, 100), (1, 100), (2, 100), (3, 100), (4, 100);
         INSERT INTO rate VALUES ('x', 1);
         CREATE PROCEDURE give(p_from integer, p_to integer, p_cents bigint) LANGUAGE plpgsql AS $$
         BEGIN
             UPDATE account SET cents = cents - p_cents WHERE id = p_from;
             UPDATE account SET cents = cents + p_cents WHERE id = p_to;
             IF p_cents > 50 THEN RAISE EXCEPTION 'too much'; END IF;
         END $$;
         CREATE FUNCTION given(p_note text, p_from integer, p_to integer, p_cents bigint, OUT r_left bigint)
         LANGUAGE plpgsql AS $$
         BEGIN
             CALL give(p_from, p_to, p_cents);
             SELECT cents INTO r_left FROM account WHERE id = p_from;
         END $$;
         CREATE PROCEDURE note(p_cents bigint, p_id integer) LANGUAGE sql AS
             'UPDATE account SET cents = p_cents WHERE id = p_id';
         CREATE FUNCTION noted(p_cents bigint, p_id integer) RETURNS bigint LANGUAGE sql AS
             'UPDATE account SET cents = p_cents WHERE id = p_id RETURNING cents';
         CREATE PROCEDURE hold(p_id integer) LANGUAGE plpgsql AS
             $$ BEGIN UPDATE account SET cents = 7 WHERE id = p_id; LOOP NULL; END LOOP; END $$;
         CREATE PROCEDURE convert(p_cents bigint) LANGUAGE plpgsql AS $$ BEGIN
             UPDATE account SET cents = cents + (SELECT cents FROM rate);
             UPDATE rate SET cents = p_cents; END $$",
    );
    db
}

fn balances(db: &Database) -> String {
    ask(db, "SELECT cents FROM account ORDER BY id")
}

fn plan(db: &Database, sql: &str) -> Vec<String> {
    let outcomes = db.execute(sql).unwrap_or_else(|error| panic!("{sql}\n{error}"));
    let [Outcome::Rows(rows)] = outcomes.as_slice() else { panic!("{outcomes:?}") };
    assert_eq!(rows.columns[0].name, "QUERY PLAN");
    rows.rows().iter().map(|row| row[0].to_string()).collect()
}

fn notices(db: &Database, sql: &str) -> Vec<String> {
    match db.execute(sql).unwrap().remove(0) {
        Outcome::Done { notices, .. } => notices,
        other => panic!("{other:?}"),
    }
}

/// Says that it has the partition of a key, and keeps it until told to end, or the test has ended.
struct Busy {
    has_begun: Sender<()>,
    may_end: Mutex<Receiver<()>>,
}

impl Procedure for Busy {
    type Args = i64;
    type Output = ();

    fn name(&self) -> &str {
        "busy"
    }

    fn route(&self, key: &i64) -> Route {
        Route::Key(*key)
    }

    fn run(&self, _: &mut Transaction, _: &i64) -> Result<(), Abort> {
        let _ = self.has_begun.send(());
        let _ = self.may_end.lock().recv();
        Err(Abort::raise(SqlState::RAISE_EXCEPTION, "told to end"))
    }
}

#[test]
fn call_needs_no_partition_but_that_of_its_argument() {
    if !rows_stay() {
        return;
    }
    let db = bank(3);
    let ((has_begun, begun), (end, may_end)) = (channel(), channel());
    let busy = db.register_procedure(Busy { has_begun, may_end: Mutex::new(may_end) });
    let busy = albireo_env::spawn("busy", move || busy.call(&0).unwrap_err()).unwrap();
    begun.recv().unwrap();
    // Of the partitions, 0 is busy. A call that waited for it would hang.
    let note = db.routine("note").unwrap();
    note.call(&[11_i64.into(), 1.into()]).unwrap();
    note.call(&[12_i64.into(), 2.into()]).unwrap();
    run(&db, "CALL note(13, 4); SELECT noted(14, 1); SELECT * FROM noted(15, 2)");
    run(&db, "SELECT id, noted(cents + 1, id) FROM account WHERE id = 4");
    let with = |sql: &str, values: &[Value]| drop(db.execute_with(sql, values).unwrap());
    with("CALL note($1, $2)", &[16_i64.into(), 1.into()]);
    with("SELECT noted($1, $2)", &[17_i64.into(), Value::SmallInt(2)]);
    end.send(()).unwrap();
    assert_eq!(state(&busy.join().unwrap()), "P0001");
    assert_eq!(balances(&db), "100 16 17 100 14");
    is_well(&db);
}

#[test]
fn call_that_reaches_another_partition_is_run_again_over_all() {
    for partitions in [1, 2, 4] {
        let db = bank(partitions);
        let plan = plan(&db, "EXPLAIN FUNCTION given");
        assert_eq!(
            plan[1..3],
            [
                "class: probably partition of p_from; 2 of 3 accesses to partitioned tables are by it, \
                 but line 4 of give(integer, integer, bigint) changes \"account\" by p_to",
                "route: by argument 2 (p_from); over all partitions once it reaches another",
            ]
        );
        let mut expected = [100_i64; 5];
        let given = db.routine("given").unwrap();
        for from in 0..5_i32 {
            for to in 0..5_i32 {
                expected[from as usize] -= 3;
                expected[to as usize] += 3;
                let left = expected[from as usize];
                let args = ["x".into(), from.into(), to.into(), 1_i64.into()];
                given.call(&args).unwrap();
                run(&db, &format!("CALL give({from}, {to}, 1)"));
                assert_eq!(ask(&db, &format!("SELECT given('x', {from}, {to}, 1)")), left.to_string());
                let before = balances(&db);
                let args: [Argument; 4] = ["x".into(), from.into(), to.into(), 51_i64.into()];
                assert_eq!(state(&given.call(&args).unwrap_err()), "P0001");
                assert_eq!(state(&fails(&db, &format!("CALL give({from}, {to}, 51)"))), "P0001");
                assert_eq!(balances(&db), before);
            }
        }
        assert_eq!(balances(&db), expected.map(|cents| cents.to_string()).join(" "));
        is_well(&db);
    }
}

#[test]
fn crossing_routine_writes_shared_tables_and_all_partitions() {
    for partitions in [1, 3] {
        let db = bank(partitions);
        db.routine("convert").unwrap().call(&[5_i64.into()]).unwrap();
        run(&db, "CALL convert(1)");
        assert_eq!(balances(&db), "106 106 106 106 106");
        assert_eq!(ask(&db, "SELECT cents FROM rate"), "1");
        is_well(&db);
    }
}

#[test]
fn explain_shows_class_version_and_access_paths() {
    let db = bank(2);
    let mut lines = plan(&db, "EXPLAIN PROCEDURE hold");
    let execution = lines.remove(8);
    assert!(execution.starts_with("execution: machine code of "), "{execution}");
    assert!(execution.ends_with("statements compiled: 1, left to the interpreter: 0"), "{execution}");
    assert_eq!(
        lines,
        [
            "procedure hold(integer), version 1",
            "class: partition of p_id; the one access to a partitioned table is by it",
            "route: by argument 1 (p_id)",
            "read-only: no, line 1 changes \"account\"",
            "sterile: no, give(integer, integer, bigint) writes \"account\"",
            "one-shot: yes, no statement needs what another one finds",
            "two-phase: yes, nothing after UPDATE of \"account\" in line 1 can fail",
            "repeatable: yes, the order in which rows lie decides about nothing",
            "line 1: UPDATE",
            "  account: write, index account_pkey (id), partition by p_id",
        ]
    );
    run(
        &db,
        "CREATE OR REPLACE PROCEDURE hold(p_id integer) LANGUAGE sql AS 'SELECT 1';
         CREATE OR REPLACE PROCEDURE hold(p_id integer) LANGUAGE sql AS 'SELECT 2';
         CREATE TABLE unrelated (a INTEGER);
         CREATE FUNCTION hold(p text) RETURNS integer LANGUAGE sql AS 'SELECT 3';
         CREATE PROCEDURE hold(p date) LANGUAGE sql AS 'SELECT 4'",
    );
    assert_eq!(plan(&db, "EXPLAIN PROCEDURE hold(integer)")[0], "procedure hold(integer), version 3");
    // The word tells the one function from the two procedures, or does not matter.
    assert_eq!(plan(&db, "EXPLAIN FUNCTION hold")[0], "function hold(text), version 1");
    assert_eq!(plan(&db, "EXPLAIN PROCEDURE noted;")[0], "function noted(bigint, integer), version 1");
    for (sql, code, position) in [
        ("EXPLAIN PROCEDURE hold", "42725", Some(19)),
        ("EXPLAIN ROUTINE hold", "42725", Some(17)),
        ("EXPLAIN PROCEDURE nix", "42883", Some(19)),
        ("EXPLAIN PROCEDURE hold(bigint)", "42883", Some(19)),
        ("EXPLAIN FUNCTION", "42601", Some(17)),
    ] {
        let error = fails(&db, sql);
        assert_eq!((state(&error).as_str(), error.position()), (code, position), "{sql}: {error}");
    }
    let error = db.execute_with("EXPLAIN PROCEDURE noted", &[1.into()]).unwrap_err();
    assert_eq!(state(&error), "0A000");
    let reader = db.connect();
    reader.execute("BEGIN READ ONLY; EXPLAIN PROCEDURE noted").unwrap();
    // A routine that cannot be bound says why.
    run(&db, "DROP TABLE rate");
    assert_eq!(state(&fails(&db, "EXPLAIN PROCEDURE convert")), "42P01");
}

#[test]
fn create_remarks_the_index_that_is_missing() {
    let db = bank(2);
    let create = "CREATE OR REPLACE FUNCTION rich(p bigint) RETURNS bigint LANGUAGE plpgsql AS $$
        BEGIN
            RETURN (SELECT count(*) FROM account
                     WHERE cents = p);
        END $$";
    let remark = "line 3 reads all rows of \"account\"; hint: CREATE INDEX ON account (cents)";
    assert_eq!(notices(&db, create), [remark]);
    run(&db, "CREATE INDEX ON account (cents)");
    assert!(notices(&db, create).is_empty());
    assert!(notices(&db, &create.replace("cents = p", "cents > p")).is_empty());
}

#[test]
fn replaced_routine_gives_the_old_answer_or_the_new_one_and_no_error() {
    let db = bank(2);
    let define = |n: i32| {
        run(
            &db,
            &format!(
                "CREATE OR REPLACE FUNCTION answer(p integer) RETURNS integer LANGUAGE plpgsql AS $$
                 DECLARE a integer := part(); BEGIN UPDATE account SET cents = {n} WHERE id = p;
                 RETURN (SELECT cents FROM account WHERE id = p); END $$"
            ),
        );
    };
    run(&db, "CREATE FUNCTION part() RETURNS integer LANGUAGE sql AS 'SELECT 1'");
    define(1);
    let done = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..2_i32)
        .map(|id| {
            let (db, done, answer) = (db.clone(), Arc::clone(&done), db.routine("answer").unwrap());
            let call = move || {
                let (mut last, mut calls) = (Value::Integer(1), 0);
                while !done.load(Ordering::SeqCst) || calls < 20 {
                    let by_handle = answer.call(&[id.into()]).unwrap().remove(0).remove(0);
                    let Argument::Value(by_handle) = by_handle else { panic!("{by_handle:?}") };
                    let by_text = db.query(&format!("SELECT answer({id})"), &[]).unwrap().value(0, 0);
                    assert!(last <= by_handle && by_handle <= by_text, "{last} {by_handle} {by_text}");
                    last = by_text;
                    calls += 1;
                }
                last
            };
            albireo_env::spawn("caller", call).unwrap()
        })
        .collect();
    for n in 2..=100 {
        define(n);
    }
    done.store(true, Ordering::SeqCst);
    for caller in callers {
        assert_eq!(caller.join().unwrap(), Value::Integer(100));
    }
    assert_eq!(plan(&db, "EXPLAIN FUNCTION answer")[0], "function answer(integer), version 100");
    is_well(&db);
}
