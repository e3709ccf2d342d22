//! Updates of order lines in sequence: where they are hot, where they cool, and where they are frozen. Paper: §5.2.
//!
//! A statement changes the lines of one order, as where random orders are updated (`rows`). The orders follow each other as
//! they lie in the table. In the paper all rows of cooling chunks move before they are written. Here an eighth of a chunk
//! moves at most, and from then on the others are written in place: so many writes say that it is not cold. So every tenth
//! order is updated besides, in tables of its own: all lines of these move.

use std::fmt::Write as _;

use albireo::{Config as Settings, Database, SqlError};

use super::counts::RowCounts;
use super::freezing::create_lines;
use super::pair::answer;
use super::report::SequenceUpdates;
use super::rows::{Order, SUMS};
use super::{Bench, freeze, wrong};
use crate::tpcc::DISTRICTS;
use crate::tpcc::random::Random;
use crate::tpcc::schema::Table;

/// Orders of the table, by default as many as one warehouse has, and lines of each.
const ORDERS: RowCounts = RowCounts { few: 1_200, usual: 30_000, paper: 5_000_000 };
const LINES: usize = 10;
/// Orders whose lines are loaded at once.
const LOADED: usize = 30_000;
/// One order in so many is updated.
const EVERY: [usize; 2] = [1, 10];
/// What a line takes of the database, in both tables, one of which is frozen, and where it moves to, indexes counted: at most so
/// many bytes.
const LINE_BYTES: usize = 240;
/// Orders that are not there, which are updated first, so that the statement is bound and hot.
const WARM_UPS: i32 = 100;

/// What the lines are before they are updated.
#[derive(Clone, Copy)]
enum State {
    Hot,
    Cooling,
    Frozen,
}

/// What was measured of one table.
struct Updated {
    /// Nanoseconds of a line.
    ns: f64,
    /// Lines that were updated.
    lines: u64,
    /// Those of them that moved.
    moved: u64,
    /// What the table has then.
    sums: Vec<String>,
}

impl Bench<'_> {
    /// Nanoseconds of a line where all orders are updated in sequence, and where every tenth is, in turns.
    pub(super) fn sequences(&self) -> Result<Vec<SequenceUpdates>, SqlError> {
        let workload = &self.config.workload;
        let orders = orders(self.count(ORDERS));
        let settings = Settings { query_threads: 1, partitions: 1, ..workload.database.clone() };
        // Nothing is frozen or cools in it by itself.
        let db = Database::with_env(settings, self.env.clone())?;
        // Nobody waits for the system while lines move.
        db.preallocate((orders.len() * LINES * LINE_BYTES) as u64, |_| !self.cancel.is_cancelled());
        fill(&db, &orders, workload.seed)?;
        let mut all = EVERY.map(|every| SequenceUpdates::new(every as u64));
        for turn in 0..self.config.turns {
            for (every, found) in EVERY.into_iter().zip(&mut all) {
                if self.cancel.is_cancelled() {
                    return Ok(Vec::new());
                }
                let written: Vec<Order> = orders.iter().copied().step_by(every).collect();
                self.sequences_of_turn(&db, &written, turn, found)?;
            }
        }
        Ok(all.into())
    }

    /// The same updates of lines in the three states, which must give the same lines.
    fn sequences_of_turn(
        &self,
        db: &Database,
        orders: &[Order],
        turn: usize,
        found: &mut SequenceUpdates,
    ) -> Result<(), SqlError> {
        let mut states = [State::Hot, State::Cooling, State::Frozen];
        // Whoever is first finds another state of the caches.
        let first = turn % states.len();
        states.rotate_left(first);
        let [one, other, last] = states.map(|state| self.sequence(db, orders, state));
        let mut updated = [one?, other?, last?];
        updated.rotate_right(first);
        let [hot, cooling, frozen] = updated;
        let lines = (orders.len() * LINES) as u64;
        for these in [&hot, &cooling, &frozen] {
            if these.lines != lines || these.sums != hot.sums {
                return Err(wrong(format!(
                    "updates in sequence changed {} of {lines} lines, or others than hot ones",
                    these.lines
                )));
            }
        }
        if hot.moved > 0 || cooling.moved == 0 || frozen.moved != lines {
            return Err(wrong(format!(
                "of {lines} lines that were updated in sequence {} moved that were hot, {} that cooled, and {} that were \
                 frozen",
                hot.moved, cooling.moved, frozen.moved
            )));
        }
        found.lines = lines;
        (found.cooling_moved, found.frozen_moved) = (cooling.moved, frozen.moved);
        found.hot_ns.push(hot.ns);
        found.cooling_ns.push(cooling.ns);
        found.frozen_ns.push(frozen.ns);
        Ok(())
    }

    /// Makes the table anew, brings its lines into a state, and updates those of the orders.
    fn sequence(&self, db: &Database, orders: &[Order], state: State) -> Result<Updated, SqlError> {
        db.execute(&Table::OrderLine.definition().create(self.config.workload.layout))?;
        db.execute("INSERT INTO order_line SELECT * FROM original")?;
        let absent: Vec<Order> = (0..WARM_UPS).map(|order| (1, 1, -order)).collect();
        self.update(db, &absent)?;
        match state {
            State::Hot => {}
            State::Cooling => {
                if db.cool_table("order_line", true)? == 0 {
                    return Err(wrong("no chunk of order lines cools".to_owned()));
                }
            }
            State::Frozen => freeze(db, "order_line")?,
        }
        // A line that moves comes to a slot that no line had: those of cooling and frozen chunks are not used again.
        let slots = || db.with_table("order_line", |_, table| Ok(table.slots()));
        let before = slots()?;
        let (took_ms, lines) = self.update(db, orders)?;
        let moved = slots()?.saturating_sub(before);
        let sums = answer(&db.query(SUMS, &[])?);
        db.execute("DROP TABLE order_line")?;
        Ok(Updated { ns: took_ms * 1e6 / lines.max(1) as f64, lines, moved, sums })
    }
}

/// So many orders of one warehouse, by district and number.
fn orders(count: usize) -> Vec<Order> {
    let of_district = count as i32 / i32::from(DISTRICTS);
    (1..=DISTRICTS).flat_map(|d_id| (1..=of_district).map(move |o_id| (1, d_id, o_id))).collect()
}

/// Makes a table without indexes that has all lines, in the order in which they are to lie, and freezes it: it is only read.
fn fill(db: &Database, orders: &[Order], seed: u64) -> Result<(), SqlError> {
    create_lines(db, "original")?;
    let (mut random, mut copied, mut order) = (Random::stream(seed, &[16]), 0, 0);
    for loaded in orders.chunks(LOADED) {
        let mut text = String::with_capacity(loaded.len() * LINES * 96);
        for (w_id, d_id, o_id) in loaded {
            for number in 1..=LINES {
                let drawn = (order * LINES + number) * 7_919;
                let (item, cents) = (drawn % 100_000 + 1, drawn % 1_000_000);
                let info = random.alphanumeric::<24>(24, 24);
                let _ = writeln!(
                    text,
                    "{o_id}\t{d_id}\t{w_id}\t{number}\t{item}\t{w_id}\t2012-08-27 10:00:00\t5\t{}.{:02}\t{}",
                    cents / 100,
                    cents % 100,
                    info.as_str()
                );
            }
            order += 1;
        }
        copied += db.connect().copy_from("COPY original FROM STDIN", text.as_bytes())?;
    }
    let rows = (orders.len() * LINES) as u64;
    match copied == rows {
        true => freeze(db, "original"),
        false => Err(wrong(format!("{copied} order lines were loaded, not {rows}"))),
    }
}
