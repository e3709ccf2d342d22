//! What the killed process does: transactions from several threads over two partitions, some of them
//! crossing. It tells of each on standard output as soon as it is acknowledged.
//!
//! Transaction `number` of a writer moves money between two accounts, both of its partition or one of the
//! other, says so in two entries, gives each the next position of its partition, and counts itself. So
//! whether it is there wholly, once and in its place can be seen in the rows.

use std::io::Write;
use std::path::Path;

use albireo::{Argument, Config, Database, Durability, SqlError, Value};

/// Where to write, in the environment of the process that is to be killed.
pub const DIRECTORY: &str = "ALBIREO_TEST_WRITES_TO";
/// `async`: acknowledge before the log is written.
pub const DURABILITY: &str = "ALBIREO_TEST_DURABILITY";
/// The test that is the process.
pub const NAME: &str = "writer::writes_until_it_is_killed";

/// Threads of the process.
pub const WRITERS: i32 = 8;
/// Accounts; the even ones are in one partition, the odd ones in the other.
pub const ACCOUNTS: i32 = 32;
/// What each begins with.
pub const CENTS: i64 = 1_000_000;

const TABLES: &str = "
    CREATE TABLE account (id INTEGER PRIMARY KEY, cents BIGINT NOT NULL) PARTITION BY HASH (id);
    CREATE TABLE entry (account INTEGER, writer INTEGER, number BIGINT, position BIGINT NOT NULL,
        amount BIGINT NOT NULL, PRIMARY KEY (account, writer, number)) PARTITION BY HASH (account);
    CREATE TABLE place (id INTEGER PRIMARY KEY, last BIGINT NOT NULL) PARTITION BY HASH (id);
    CREATE TABLE progress (writer INTEGER PRIMARY KEY, last BIGINT NOT NULL) PARTITION BY HASH (writer);
    CREATE FUNCTION move(p_writer integer, p_number bigint, p_from integer, p_to integer,
        p_from_place integer, p_to_place integer, p_amount bigint) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE v_position bigint;
    BEGIN
        UPDATE account SET cents = cents - p_amount WHERE id = p_from;
        UPDATE place SET last = last + 1 WHERE id = p_from_place RETURNING last INTO v_position;
        INSERT INTO entry VALUES (p_from, p_writer, p_number, v_position, -p_amount);
        UPDATE account SET cents = cents + p_amount WHERE id = p_to;
        UPDATE place SET last = last + 1 WHERE id = p_to_place RETURNING last INTO v_position;
        INSERT INTO entry VALUES (p_to, p_writer, p_number, v_position, p_amount);
        UPDATE progress SET last = p_number WHERE writer = p_writer;
        RETURN v_position;
    END $$;";

/// Two partitions, and segments that are often full.
pub fn config(durability: Durability) -> Config {
    Config { partitions: 2, log_segment_bytes: 256 << 10, query_threads: 1, durability, ..Config::default() }
}

/// A transaction: from which account to which, and how much.
pub fn transaction(writer: i32, number: i64) -> (i32, i32, i64) {
    let mixed = mix((writer as u64) << 40 ^ number as u64);
    let pairs = ACCOUNTS / 2;
    let from = writer % 2 + 2 * (mixed % pairs as u64) as i32;
    let step = 1 + ((mixed >> 8) % (pairs as u64 - 1)) as i32;
    let same = (from + 2 * step) % ACCOUNTS;
    let is_crossing = (mixed >> 32).is_multiple_of(5);
    let to = if is_crossing { same ^ 1 } else { same };
    (from, to, 1 + (mixed >> 48) as i64)
}

/// Numbers that look random (SplitMix64).
pub fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Makes what the writers need.
pub fn prepare(directory: &Path) {
    let db = Database::open(directory, config(Durability::Group)).unwrap();
    db.execute(TABLES).unwrap();
    for id in 0..ACCOUNTS {
        db.execute(&format!("INSERT INTO account VALUES ({id}, {CENTS})")).unwrap();
    }
    for writer in 0..WRITERS {
        db.execute(&format!("INSERT INTO progress VALUES ({writer}, 0)")).unwrap();
    }
    db.execute("INSERT INTO place VALUES (0, 0); INSERT INTO place VALUES (1, 0)").unwrap();
}

/// The process that is killed; without a directory in its environment there is nothing to do.
#[test]
fn writes_until_it_is_killed() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let durability = match std::env::var(DURABILITY).as_deref() {
        Ok("async") => Durability::Async,
        _ => Durability::Group,
    };
    let db = Database::open(directory, config(durability)).unwrap();
    // The test harness has begun a line.
    say("\nready\n");
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let db = &db;
            scope.spawn(move || {
                let error = write(db, writer).unwrap_err();
                say(&format!("failed {writer}: {error}\n"));
            });
        }
    });
}

/// One call of the system, so that it is read wholly or not at all.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).expect("somebody reads");
    out.flush().expect("somebody reads");
}

/// Runs transactions until one fails, from a program and as statements.
fn write(db: &Database, writer: i32) -> Result<(), SqlError> {
    let call = db.routine("move")?;
    let last = db.query("SELECT last FROM progress WHERE writer = $1", &[Value::Integer(writer)])?;
    let Value::BigInt(last) = last.value(0, 0) else { panic!("the column is BIGINT") };
    for number in last + 1.. {
        let (from, to, amount) = transaction(writer, number);
        let values = [
            Value::Integer(writer),
            Value::BigInt(number),
            Value::Integer(from),
            Value::Integer(to),
            Value::Integer(from % 2),
            Value::Integer(to % 2),
            Value::BigInt(amount),
        ];
        if number % 3 == 0 {
            db.execute_with("SELECT move($1, $2, $3, $4, $5, $6, $7)", &values)?;
        } else {
            call.call(&values.map(Argument::Value))?;
        }
        say(&format!("{writer} {number}\n"));
    }
    Ok(())
}
