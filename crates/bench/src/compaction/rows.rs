//! Single rows by their key: reading frozen ones, and changing them.
//!
//! Rows are read by queries that were prepared once. Such a query finds its plan by its text each time, and nothing of it
//! belongs to a connection.

use albireo::{Database, Outcome, PreparedQuery, QueryResult, SqlError, Value};

use super::report::InTurns;
use super::{Bench, Pair, wrong};
use crate::tpcc::DISTRICTS;
use crate::tpcc::random::Random;

const SELECT: &str = "SELECT ol_i_id, ol_quantity, ol_amount, ol_dist_info FROM order_line \
                      WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3 AND ol_number = $4";
const UPDATE: &str = "UPDATE order_line SET ol_quantity = ol_quantity + 1 \
                      WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3";
/// What the updates change, and with it all else of the rows.
pub(super) const SUMS: &str = "SELECT ol_w_id, ol_d_id, ol_number, count(*), sum(ol_o_id), sum(ol_i_id), \
                               sum(ol_supply_w_id), count(ol_delivery_d), max(ol_delivery_d), sum(ol_quantity), \
                               sum(ol_amount), min(ol_dist_info), max(ol_dist_info) \
                               FROM order_line GROUP BY ol_w_id, ol_d_id, ol_number";

/// SELECTs of each turn.
const SELECTS: usize = 50_000;
/// Lines that every order has at least.
const LINES: i32 = 5;
/// Orders whose lines are changed in each turn: they have 10 on average.
const ORDERS: usize = 10_000;

/// An order: its warehouse, its district and its number.
pub(super) type Order = (i16, i16, i32);

impl Bench<'_> {
    /// Nanoseconds of a SELECT of one row, in turns.
    pub(super) fn selects(&self, pair: &Pair) -> Result<InTurns, SqlError> {
        let workload = &self.config.workload;
        let [hot, frozen] = pair.both();
        let (hot, frozen) = (hot.prepare(SELECT)?, frozen.prepare(SELECT)?);
        let mut random = Random::stream(workload.seed, &[1]);
        let mut times = InTurns::default();
        // The first turn is not measured.
        for turn in 0..=self.config.turns {
            let keys: Vec<[Value; 4]> = (0..SELECTS.min(workload.scale.customers as usize * 20))
                .map(|_| {
                    [
                        Value::SmallInt(random.uniform(1, workload.warehouses.into()) as i16),
                        Value::SmallInt(random.uniform(1, DISTRICTS.into()) as i16),
                        Value::Integer(random.uniform(1, workload.scale.customers)),
                        Value::SmallInt(random.uniform(1, LINES) as i16),
                    ]
                })
                .collect();
            let [(hot_ms, expected), (frozen_ms, found)] =
                [self.select(&hot, &keys)?, self.select(&frozen, &keys)?];
            if expected != found {
                return Err(wrong(
                    "SELECTs of frozen rows give other rows than those of hot ones".to_owned(),
                ));
            }
            if turn > 0 {
                times.push(hot_ms * 1e6 / keys.len() as f64, frozen_ms * 1e6 / keys.len() as f64);
            }
        }
        Ok(times)
    }

    /// Reads rows: milliseconds, and the rows.
    fn select(&self, query: &PreparedQuery, keys: &[[Value; 4]]) -> Result<(f64, Vec<Vec<Value>>), SqlError> {
        let mut results = Vec::with_capacity(keys.len());
        let (took_ms, ()) = self.timed(|| {
            for key in keys {
                results.push(query.query(key)?);
            }
            Ok(())
        })?;
        let rows: Vec<Vec<Value>> = results.into_iter().flat_map(QueryResult::into_rows).collect();
        if rows.len() != keys.len() {
            return Err(wrong(format!("{} keys have {} rows", keys.len(), rows.len())));
        }
        Ok((took_ms, rows))
    }

    /// Nanoseconds of a line whose order's lines are changed by one statement, in turns.
    pub(super) fn updates(&self, pair: &Pair) -> Result<InTurns, SqlError> {
        let workload = &self.config.workload;
        let mut orders: Vec<Order> = (1..=workload.warehouses)
            .flat_map(|w_id| (1..=DISTRICTS).map(move |d_id| (w_id, d_id)))
            .flat_map(|(w_id, d_id)| (1..=workload.scale.customers).map(move |o_id| (w_id, d_id, o_id)))
            .collect();
        Random::stream(workload.seed, &[2]).shuffle(&mut orders);
        let of_turn = ORDERS.min(orders.len() / (self.config.turns + 1)).max(1);
        let mut times = InTurns::default();
        // Each order is changed once; those of the first turn are not measured.
        for (turn, orders) in orders.chunks(of_turn).take(self.config.turns + 1).enumerate() {
            let [(hot, expected), (frozen, found)] = {
                let [hot, frozen] = pair.both();
                [self.update(hot, orders)?, self.update(frozen, orders)?]
            };
            if expected != found {
                return Err(wrong(format!(
                    "{found} frozen order lines were changed, but {expected} hot ones"
                )));
            }
            if turn > 0 {
                times.push(hot * 1e6 / expected as f64, frozen * 1e6 / found as f64);
            }
        }
        pair.check("updates", SUMS)?;
        Ok(times)
    }

    /// Changes the lines of orders: milliseconds, and how many lines there were.
    pub(super) fn update(&self, db: &Database, orders: &[Order]) -> Result<(f64, u64), SqlError> {
        let connection = db.connect();
        self.timed(|| {
            let mut lines = 0;
            for &(w_id, d_id, o_id) in orders {
                match connection.execute_with(UPDATE, &[w_id.into(), d_id.into(), o_id.into()])? {
                    Outcome::Done { rows, .. } => lines += rows,
                    other => return Err(wrong(format!("{other:?}"))),
                }
            }
            Ok(lines)
        })
    }
}
