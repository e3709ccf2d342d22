//! Prefix scans of falling selectivity by four ways: a scan of a hot column and of a frozen one, an ordered index with
//! keys and one of TIDs alone. Paper: §5.6.3, Figures 14 and 15.
//!
//! The tables that are searched by an index are frozen too: the paper's index goes with compressed rows. All four are
//! asked the same, through SQL, on the path that is meant. Names are drawn as for the sizes of columns.

use std::fmt::Write as _;

use albireo::{Database, ExecutionPath, SqlError, Value};

use super::counts::RowCounts;
use super::pair::answer;
use super::report::{PrefixScan, PrefixScans};
use super::sizes::Names;
use super::{Bench, freeze, wrong};
use crate::tpcc::random::Random;

/// Tables, what is done to each after it was filled, and the path of its queries.
const WAYS: [(&str, &str, ExecutionPath); 4] = [
    ("hot", "", ExecutionPath::Analytical),
    ("frozen", "", ExecutionPath::Analytical),
    ("keyed", "CREATE INDEX keyed_name ON keyed (name)", ExecutionPath::Transactional),
    ("bare", "CREATE INDEX bare_name ON bare (name) WITH (keys = 'none')", ExecutionPath::Transactional),
];
/// Rows of each.
const ROWS: RowCounts = RowCounts { few: 20_000, usual: 500_000, paper: 3_600_000 };
const LENGTH: usize = 24;
/// The ranks of the names whose beginnings are looked for, from frequent to rare.
const RANKS: [usize; 9] = [0, 1, 3, 7, 15, 40, 150, 1000, 8000];
/// Letters of a beginning: hardly another name has it.
const LETTERS: usize = 6;

impl Bench<'_> {
    /// Milliseconds of each scan by each way, in turns.
    pub(super) fn prefixes(&self) -> Result<PrefixScans, SqlError> {
        let workload = &self.config.workload;
        let db = Database::in_memory(albireo::Config {
            query_threads: 1,
            partitions: 1,
            ..workload.database.clone()
        })?;
        let rows = self.count(ROWS);
        let names = Names::new(LENGTH);
        self.fill(&db, &names, rows)?;
        let bytes = |table: &str| {
            db.with_table(table, |_, table| Ok(table.memory().indexes_bytes as f64 / rows as f64))
        };
        let (keyed_bytes, bare_bytes) = (bytes("keyed")?, bytes("bare")?);
        let mut scans = Vec::new();
        for rank in RANKS {
            if self.cancel.is_cancelled() {
                break;
            }
            scans.push(self.prefix(&db, &names.name(rank)[..LETTERS], rows)?);
        }
        Ok(PrefixScans { rows: rows as u64, keyed_bytes, bare_bytes, scans })
    }

    fn fill(&self, db: &Database, names: &Names, rows: usize) -> Result<(), SqlError> {
        let columns = format!(
            "id INTEGER NOT NULL, number SMALLINT NOT NULL, quantity SMALLINT NOT NULL, \
             amount NUMERIC(6,2) NOT NULL, name VARCHAR({LENGTH}) NOT NULL"
        );
        let drawn = names.rows(&mut Random::stream(self.config.workload.seed, &[14]), rows);
        let mut text = String::with_capacity(drawn.len() * 2);
        for (id, name) in drawn.lines().enumerate() {
            let (number, quantity, cents) = (id % 15, id % 10, id.wrapping_mul(7919) % 1_000_000);
            let _ = writeln!(text, "{id}\t{number}\t{quantity}\t{}.{:02}\t{name}", cents / 100, cents % 100);
        }
        for (table, made, _) in WAYS {
            db.execute(&format!("CREATE TABLE {table} ({columns}) WITH (layout = 'column')"))?;
            db.connect().copy_from(&format!("COPY {table} FROM STDIN"), text.as_bytes())?;
            if table != "hot" {
                freeze(db, table)?;
            }
            if !made.is_empty() {
                db.execute(made)?;
            }
        }
        Ok(())
    }

    /// One beginning, by all ways.
    fn prefix(&self, db: &Database, prefix: &str, rows: usize) -> Result<PrefixScan, SqlError> {
        // All names are of ASCII letters and digits, after each of which there is a character.
        let (head, last) = prefix.split_at(prefix.len() - 1);
        let behind = format!("{head}{}", last.bytes().map(|last| char::from(last + 1)).collect::<String>());
        let found = db.query(
            "SELECT count(*) FROM hot WHERE name >= $1 AND name < $2",
            &[Value::Text(prefix.to_owned()), Value::Text(behind.clone())],
        )?;
        let Some(Value::BigInt(found)) = found.rows().first().and_then(|row| row.first().cloned()) else {
            return Err(wrong("a count is no number".to_owned()));
        };
        let mut times: [Vec<f64>; 4] = Default::default();
        // The first turn is not measured.
        for turn in 0..=self.config.turns {
            let mut first = None;
            for at in 0..WAYS.len() {
                // Whoever is first finds another state of the caches.
                let way = (at + turn) % WAYS.len();
                let (table, _, path) = WAYS[way];
                // Each question is a new one, of which nothing is kept.
                let parameters = [
                    Value::Text(prefix.to_owned()),
                    Value::Text(behind.clone()),
                    Value::Integer(-1 - turn as i32),
                ];
                let text = format!(
                    "SELECT number, sum(quantity), sum(amount), avg(quantity), avg(amount), count(*) FROM {table} \
                     WHERE name >= $1 AND name < $2 AND id > $3 GROUP BY number ORDER BY number"
                );
                db.force_execution_path(Some(path));
                let (took_ms, result) = self.timed(|| db.query(&text, &parameters))?;
                let result = answer(&result);
                if *first.get_or_insert_with(|| result.clone()) != result {
                    return Err(wrong(format!("{table} gives another answer to names from {prefix}")));
                }
                if turn > 0 {
                    times[way].push(took_ms);
                }
            }
        }
        db.force_execution_path(None);
        let percent = found as f64 / rows as f64 * 100.0;
        let [hot, frozen, keyed, bare] = times;
        Ok(PrefixScan { prefix: prefix.to_owned(), percent, hot, frozen, keyed, bare })
    }
}
