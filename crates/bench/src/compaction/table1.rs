//! What it costs to compress a text when its row is inserted, against freezing the row later. Paper: §5.4, Table 1.
//!
//! The engine compresses nothing on insertion, so the eager way is emulated on it. Both ways are compiled procedures that
//! insert order lines one by one into a table with the primary key of ORDER_LINE. One puts `ol_dist_info`, 24 characters, into
//! the line. The other looks the text up in a table with a hash index, adds it there if it is absent, and puts its number of
//! four bytes into the line. The paper also counts the references to each entry; here nothing does. The lazy way is
//! `CALL albireo.freeze` of the lines that were inserted without.
//!
//! Texts are random, as TPC-C has them, and drawn uniformly from as many different ones as the paper has: it says no more.
//! By default here are fewer lines. So that new texts are as rare as among the paper's first 10 million lines, the dictionary begins with
//! most of the texts: the share of them that is absent is the share that the lines are of 10 million.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use albireo::{ArgumentRef, Database, Outcome, RoutineHandle, SqlError, Value};

use super::counts::{RowCounts, Sizes};
use super::report::{InTurns, InstantCompression};
use super::{Bench, freeze, row_count, wrong};
use crate::tpcc::random::Random;
use crate::tpcc::schema::{Column, Table};

/// Different texts, and the paper's milliseconds for each million lines: without, with, and what that is relative to without.
const TEXTS: [(usize, &str); 2] = [
    (1 << 15, "of 10 M: 279.0, 424.9, 1.52x; of 50 M: 251.1, 393.3, 1.57x"),
    (1 << 18, "of 10 M: 279.1, 558.9, 2.00x; of 50 M: 252.3, 525.1, 2.08x"),
];
/// Lines of the paper, by which it is decided how many texts are new.
const PAPER_LINES: usize = 10_000_000;
/// Lines of each way. Of the paper's two numbers the smaller one: 50 million in both tables take 20 GB.
const ROWS: RowCounts = RowCounts { few: 20_000, usual: 500_000, paper: PAPER_LINES };
/// Lines of one call.
const LINES_A_CALL: usize = 1_000;
/// What a line takes of the database, indexes, both tables and the dictionary counted: at most so many bytes.
const LINE_BYTES: usize = 384;
/// The column that is compressed.
const COMPRESSED: &str = "ol_dist_info";

/// The dictionary, the number of its next entry, and the two procedures, which make the same lines.
const PROCEDURES: &str = "
    CREATE TABLE dictionary (d_value VARCHAR(24) NOT NULL, d_key INTEGER NOT NULL, PRIMARY KEY (d_value) USING HASH)
        WITH (layout = 'column');
    CREATE TABLE counter (c_id INTEGER PRIMARY KEY, c_next INTEGER NOT NULL);
    CREATE PROCEDURE insert_plain(p_first integer, p_dist_info text[]) LANGUAGE plpgsql AS $$
    DECLARE
        v_line integer := p_first;
        v_amount numeric(6,2) := 42.50;
        v_dist_info text;
    BEGIN
        FOREACH v_dist_info IN ARRAY p_dist_info LOOP
            INSERT INTO plain (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id,
                               ol_delivery_d, ol_quantity, ol_amount, ol_dist_info)
            VALUES (v_line / 10 + 1, 1, 1, v_line % 10 + 1, v_line % 100000 + 1, 1, NULL, 5, v_amount, v_dist_info);
            v_line := v_line + 1;
        END LOOP;
    END $$;
    CREATE PROCEDURE insert_compressed(p_first integer, p_dist_info text[]) LANGUAGE plpgsql AS $$
    DECLARE
        v_line integer := p_first;
        v_amount numeric(6,2) := 42.50;
        v_dist_info text;
        v_key integer;
        v_next integer;
    BEGIN
        SELECT c_next INTO STRICT v_next FROM counter WHERE c_id = 1;
        FOREACH v_dist_info IN ARRAY p_dist_info LOOP
            SELECT d_key INTO v_key FROM dictionary WHERE d_value = v_dist_info;
            IF NOT FOUND THEN
                v_key := v_next;
                v_next := v_next + 1;
                INSERT INTO dictionary (d_value, d_key) VALUES (v_dist_info, v_key);
            END IF;
            INSERT INTO compressed (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id,
                                    ol_delivery_d, ol_quantity, ol_amount, ol_dist_info)
            VALUES (v_line / 10 + 1, 1, 1, v_line % 10 + 1, v_line % 100000 + 1, 1, NULL, 5, v_amount, v_key);
            v_line := v_line + 1;
        END LOOP;
        UPDATE counter SET c_next = v_next WHERE c_id = 1;
    END $$;";

/// Lines whose texts are the same in both tables.
const SAME: &str = "SELECT count(*) FROM compressed c JOIN dictionary d ON d.d_key = c.ol_dist_info \
                    JOIN plain p ON p.ol_w_id = c.ol_w_id AND p.ol_d_id = c.ol_d_id AND p.ol_o_id = c.ol_o_id \
                    AND p.ol_number = c.ol_number WHERE p.ol_dist_info::text = d.d_value::text";

/// What is inserted.
struct Lines {
    /// Different texts. All but the last ones are in the dictionary before.
    texts: Vec<String>,
    /// Texts that are in the dictionary before.
    known: usize,
    /// Texts that the lines bring.
    added: usize,
    /// Of each line: which text it has.
    drawn: Vec<usize>,
}

impl Lines {
    fn new(seed: u64, rows: usize, different: usize) -> Self {
        let mut random = Random::stream(seed, &[15, different as u64]);
        let texts = (0..different).map(|_| random.alphanumeric::<24>(24, 24).as_str().to_owned()).collect();
        let drawn: Vec<usize> = (0..rows).map(|_| random.below(different as u64) as usize).collect();
        let known = different - (different * rows / PAPER_LINES).max(1);
        let new: BTreeSet<usize> = drawn.iter().copied().filter(|text| *text >= known).collect();
        Self { texts, known, added: new.len(), drawn }
    }

    /// The texts that the dictionary begins with and their numbers, as COPY reads them.
    fn dictionary(&self) -> String {
        let mut copied = String::with_capacity(self.known * 32);
        for (key, text) in self.texts[..self.known].iter().enumerate() {
            let _ = writeln!(copied, "{text}\t{key}");
        }
        copied
    }
}

impl Bench<'_> {
    /// Milliseconds of inserting order lines, without and with compressing a text at once, in turns; and of freezing those
    /// that were inserted without. Each turn has a database of its own.
    pub(super) fn instant_compression(&self) -> Result<Vec<InstantCompression>, SqlError> {
        let workload = &self.config.workload;
        let mut all = Vec::new();
        for (different, paper) in TEXTS {
            let (rows, different) = match self.config.sizes {
                Sizes::Few => (self.count(ROWS), different / 32),
                Sizes::Usual | Sizes::Paper => (self.count(ROWS), different),
            };
            let lines = Lines::new(workload.seed, rows, different);
            let mut found = InstantCompression {
                texts: different as u64,
                rows: rows as u64,
                added: lines.added as u64,
                insert_ms: InTurns::default(),
                freeze_ms: Vec::new(),
                paper,
            };
            for turn in 0..self.config.turns {
                if self.cancel.is_cancelled() {
                    return Ok(all);
                }
                self.compress_of_turn(&lines, turn, &mut found)?;
            }
            all.push(found);
        }
        Ok(all)
    }

    fn compress_of_turn(
        &self,
        lines: &Lines,
        turn: usize,
        found: &mut InstantCompression,
    ) -> Result<(), SqlError> {
        let rows = lines.drawn.len();
        let db = Database::in_memory(albireo::Config {
            query_threads: 1,
            partitions: 1,
            ..self.config.workload.database.clone()
        })?;
        // Nobody waits for the system while lines are inserted.
        db.preallocate((rows * LINE_BYTES) as u64, |_| !self.cancel.is_cancelled());
        create(&db, lines)?;
        let (plain, compressed) = (compiled(&db, "insert_plain")?, compiled(&db, "insert_compressed")?);
        // Whoever is second finds another state of the caches.
        let (without, with) = match turn % 2 {
            0 => {
                let without = self.insert(lines, &plain)?;
                (without, self.insert(lines, &compressed)?)
            }
            _ => {
                let with = self.insert(lines, &compressed)?;
                (self.insert(lines, &plain)?, with)
            }
        };
        found.insert_ms.push(without, with);
        let (freeze_ms, ()) = self.timed(|| freeze(&db, "plain"))?;
        found.freeze_ms.push(freeze_ms);
        check(&db, lines)
    }

    /// Inserts all lines by a procedure: milliseconds of its calls.
    fn insert(&self, lines: &Lines, procedure: &RoutineHandle) -> Result<f64, SqlError> {
        let mut all_ms = 0.0;
        for (call, drawn) in lines.drawn.chunks(LINES_A_CALL).enumerate() {
            let first = (call * LINES_A_CALL) as i32;
            let texts: Vec<Value> =
                drawn.iter().map(|text| Value::Text(lines.texts[*text].clone())).collect();
            let arguments = [ArgumentRef::from(first), ArgumentRef::Values(&texts)];
            let (took_ms, ()) = self.timed(|| procedure.invoke(&arguments).map(drop))?;
            all_ms += took_ms;
        }
        Ok(all_ms)
    }
}

/// Makes the tables and procedures, and fills the dictionary.
fn create(db: &Database, lines: &Lines) -> Result<(), SqlError> {
    let definition = Table::OrderLine.definition();
    for table in ["plain", "compressed"] {
        let declared = |column: &Column| match column.name {
            COMPRESSED if table == "compressed" => format!("{COMPRESSED} INTEGER NOT NULL"),
            _ => column.declared(),
        };
        let columns: Vec<String> = definition.columns.iter().map(declared).collect();
        let (columns, key) = (columns.join(", "), definition.primary_key.join(", "));
        db.execute(&format!(
            "CREATE TABLE {table} ({columns}, PRIMARY KEY ({key})) WITH (layout = 'column')"
        ))?;
    }
    db.execute(PROCEDURES)?;
    db.execute(&format!("INSERT INTO counter VALUES (1, {})", lines.known))?;
    let copied = db.connect().copy_from("COPY dictionary FROM STDIN", lines.dictionary().as_bytes())?;
    match copied == lines.known as u64 {
        true => Ok(()),
        false => Err(wrong(format!("{copied} texts were loaded, not {}", lines.known))),
    }
}

/// A procedure by its name, which must be machine code from its first statement to its last.
fn compiled(db: &Database, name: &str) -> Result<RoutineHandle, SqlError> {
    let Some(Outcome::Rows(explained)) = db.execute(&format!("EXPLAIN PROCEDURE {name}"))?.pop() else {
        return Err(wrong(format!("nothing is known of {name}")));
    };
    let is_it = |row: &Vec<Value>| match row.first() {
        Some(Value::Text(line)) => {
            line.starts_with("execution: machine code") && line.ends_with("left to the interpreter: 0")
        }
        _ => false,
    };
    match explained.rows().iter().any(is_it) {
        true => db.routine(name),
        false => Err(wrong(format!("{name} is not compiled as a whole"))),
    }
}

/// Both tables have all lines and the same texts, and the dictionary has all texts once.
fn check(db: &Database, lines: &Lines) -> Result<(), SqlError> {
    let rows = lines.drawn.len() as u64;
    for (table, expected) in
        [("plain", rows), ("compressed", rows), ("dictionary", (lines.known + lines.added) as u64)]
    {
        let found = row_count(db, table)?;
        if found != expected {
            return Err(wrong(format!("{table} has {found} rows, not {expected}")));
        }
    }
    match db.query(SAME, &[])?.value(0, 0) {
        Value::BigInt(same) if same as u64 == rows => Ok(()),
        same => Err(wrong(format!("{same} of {rows} lines have the texts that they were given"))),
    }
}
