//! Scans of a frozen table of which 1 of 36 rows is invalid, against one that never had these rows.
//!
//! Q6 of CH-benCHmark selects every line. Where none is invalid, what chunks know of their sums answers it, and nothing is
//! scanned; so here it is asked of half of the lines.

use albireo::{Database, SqlError};

use super::freezing::create_lines;
use super::pair::answer;
use super::report::InTurns;
use super::{Bench, freeze, row_count, wrong};
use crate::target::Albireo;

/// The rows that become invalid, each on its own: 1 of 36.
const INVALID: &str = "(ol_i_id * 7919 + ol_number * 31 + ol_o_id) % 36 = 0";

/// Scans, with a place for what makes each question a new one, of which nothing is kept.
const SCANS: [(&str, &str); 3] = [
    (
        "Q1",
        "SELECT ol_number, sum(ol_quantity), sum(ol_amount), avg(ol_quantity), avg(ol_amount), count(*) FROM lines \
         WHERE ol_delivery_d > '2007-01-02 00:00:00' AND ol_o_id > -{turn} GROUP BY ol_number ORDER BY ol_number",
    ),
    (
        "Q6 of half the items",
        "SELECT sum(ol_amount) FROM lines WHERE ol_delivery_d >= '1999-01-01' AND ol_delivery_d < '2120-01-01' \
         AND ol_quantity BETWEEN -{turn} AND 100000 AND ol_i_id <= 50000",
    ),
    (
        "Q1 with a prefix",
        "SELECT ol_number, sum(ol_quantity), sum(ol_amount), avg(ol_quantity), avg(ol_amount), count(*) FROM lines \
         WHERE ol_delivery_d > '2007-01-02 00:00:00' AND ol_dist_info LIKE 'a%' AND ol_o_id > -{turn} \
         GROUP BY ol_number ORDER BY ol_number",
    ),
];
/// A scan takes milliseconds: so many of them for each turn.
const RUNS: usize = 4;
/// How often the tables are made anew: which pages of the machine's memory one got decides for as long as it lives, and
/// makes a tenth in scans that wait for memory.
const TABLES: usize = 3;

impl Bench<'_> {
    /// Milliseconds of scans without and with invalid rows, in turns. Both read the same rows.
    pub(super) fn scans(&self, target: &Albireo) -> Result<Vec<(String, InTurns)>, SqlError> {
        let db = target.database();
        let mut all = SCANS.map(|(name, _)| (name.to_owned(), InTurns::default()));
        for _ in 0..TABLES {
            make(db)?;
            for ((name, text), (_, times)) in SCANS.iter().zip(&mut all) {
                // The first ones are not measured.
                for turn in 0..=(self.config.turns * RUNS).div_ceil(TABLES) {
                    let [dense, invalid] = match turn % 2 {
                        0 => [self.scan(db, text, "dense", turn)?, self.scan(db, text, "invalid", turn)?],
                        _ => {
                            let invalid = self.scan(db, text, "invalid", turn)?;
                            [self.scan(db, text, "dense", turn)?, invalid]
                        }
                    };
                    if dense.1 != invalid.1 {
                        return Err(wrong(format!("{name} gives another answer beside invalid rows")));
                    }
                    if turn > 0 {
                        times.push(dense.0, invalid.0);
                    }
                }
            }
            db.execute("DROP TABLE dense; DROP TABLE invalid")?;
        }
        Ok(all.into())
    }

    fn scan(
        &self,
        db: &Database,
        text: &str,
        table: &str,
        turn: usize,
    ) -> Result<(f64, Vec<String>), SqlError> {
        let text = text.replace("FROM lines", &format!("FROM {table}"));
        let text = text.replace("{turn}", &(turn + 1).to_string());
        let query = db.prepare(&text)?;
        let (took_ms, result) = self.timed(|| query.query(&[]))?;
        Ok((took_ms, answer(&result)))
    }
}

/// Makes both tables, frozen, one without the rows that are invalid in the other.
fn make(db: &Database) -> Result<(), SqlError> {
    for table in ["dense", "invalid"] {
        create_lines(db, table)?;
    }
    db.execute(&format!("INSERT INTO dense SELECT * FROM order_line WHERE NOT ({INVALID})"))?;
    db.execute("INSERT INTO invalid SELECT * FROM order_line")?;
    freeze(db, "dense")?;
    freeze(db, "invalid")?;
    db.execute(&format!("DELETE FROM invalid WHERE {INVALID}"))?;
    let (dense, invalid) = (row_count(db, "dense")?, row_count(db, "invalid")?);
    match dense == invalid {
        true => Ok(()),
        false => Err(wrong(format!("{invalid} rows are left of frozen ones, not {dense}"))),
    }
}
