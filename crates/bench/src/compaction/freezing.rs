//! How fast one core freezes order lines, with nothing else running.

use albireo::{Database, SqlError};

use super::pair::answer;
use super::report::Freezing;
use super::{Bench, freeze, row_count, wrong};
use crate::target::Albireo;
use crate::tpcc::schema::Table;

/// What must be the same before and after.
const SUMS: &str = "SELECT ol_number, count(*), sum(ol_o_id), sum(ol_i_id), count(ol_delivery_d), max(ol_delivery_d), \
                    sum(ol_quantity), sum(ol_amount), min(ol_dist_info), max(ol_dist_info) FROM copy GROUP BY ol_number";

/// Makes an empty table `name` with the columns of ORDER_LINE, without indexes.
pub(super) fn create_lines(db: &Database, name: &str) -> Result<(), SqlError> {
    let columns: Vec<_> =
        Table::OrderLine.definition().columns.iter().map(|column| column.declared()).collect();
    let sql = format!("CREATE TABLE {name} ({}) WITH (layout = 'column')", columns.join(", "));
    db.execute(&sql).map(drop)
}

impl Bench<'_> {
    /// Freezes a copy of ORDER_LINE in each turn.
    pub(super) fn freezing(&self, target: &Albireo) -> Result<Vec<Freezing>, SqlError> {
        let db = target.database();
        let turn = |_| {
            create_lines(db, "copy")?;
            db.execute("INSERT INTO copy SELECT * FROM order_line")?;
            let (rows, before) = (row_count(db, "copy")?, answer(&db.query(SUMS, &[])?));
            let cpu = albireo_env::cpu_time_ns();
            let (wall_ms, ()) = self.timed(|| freeze(db, "copy"))?;
            let cpu_ms = (albireo_env::cpu_time_ns() - cpu) as f64 / 1e6;
            if answer(&db.query(SUMS, &[])?) != before {
                return Err(wrong("order lines that were frozen are others than before".to_owned()));
            }
            db.execute("DROP TABLE copy")?;
            Ok(Freezing { rows, cpu_ms, wall_ms })
        };
        (0..self.config.turns).map(turn).collect()
    }
}
