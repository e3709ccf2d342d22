//! What columns take, hot and frozen: those of ORDER_LINE, the dates at which rows came, and names as the paper has them in
//! place of random texts. Paper: §5.5.

use albireo::{Database, SqlError};

use super::counts::RowCounts;
use super::pair::frozen_size;
use super::report::Size;
use super::{Bench, wrong};
use crate::target::Albireo;
use crate::tpcc::random::{ALPHANUMERIC, Random};
use crate::tpcc::schema::Table;

/// The columns of ORDERS and HISTORY that the paper speaks of.
const DATES: [&str; 2] = ["o_entry_d", "h_date"];
/// Names of the census that the paper draws from.
const NAMES: usize = 88_800;
/// How steeply their frequency falls.
const ZIPF: f64 = 1.2;
/// Their lengths.
const LENGTHS: [usize; 2] = [24, 240];
/// Rows of a table of names. The paper has a whole database of 50 GB, and says of no table how many.
const ROWS: RowCounts = RowCounts { few: 20_000, usual: 200_000, paper: 200_000 };

impl Bench<'_> {
    /// Each column in a table of its own.
    pub(super) fn sizes(&self, target: &Albireo) -> Result<Vec<Size>, SqlError> {
        let (db, mut all) = (target.database(), Vec::new());
        let columns_of = |table: Table| table.definition().columns.iter().map(move |column| (table, column));
        let columns = [Table::OrderLine, Table::Orders, Table::History].into_iter().flat_map(columns_of);
        let is_asked = |table: Table, name: &str| table == Table::OrderLine || DATES.contains(&name);
        for (table, column) in columns.filter(|(table, column)| is_asked(*table, column.name)) {
            let (name, table) = (column.name, table.name());
            db.execute(&format!("CREATE TABLE one ({})", column.declared()))?;
            db.execute(&format!("INSERT INTO one SELECT {name} FROM {table}"))?;
            all.push(size(
                db,
                name,
                "one",
                &format!("SELECT count({name}), count(DISTINCT {name}), max({name})"),
            )?);
        }
        let rows = self.count(ROWS);
        for length in LENGTHS {
            db.execute(&format!("CREATE TABLE one (name VARCHAR({length}) NOT NULL)"))?;
            let text = Names::new(length).rows(&mut Random::stream(self.config.workload.seed, &[3]), rows);
            let copied = db.connect().copy_from("COPY one FROM STDIN", text.as_bytes())?;
            if copied != rows as u64 {
                return Err(wrong(format!("{copied} names were loaded, not {rows}")));
            }
            let name = format!("names of {length} characters");
            all.push(size(db, &name, "one", "SELECT count(DISTINCT name), sum(length(name)), max(name)")?);
        }
        Ok(all)
    }
}

/// Freezes a table, asks it the same before and after, and drops it.
fn size(db: &Database, name: &str, table: &str, sums: &str) -> Result<Size, SqlError> {
    let sums = format!("{sums} FROM {table}");
    let before = db.query(&sums, &[])?.rows();
    let size = frozen_size(db, table, name)?;
    if db.query(&sums, &[])?.rows() != before {
        return Err(wrong(format!("{name} is another column than before it was frozen")));
    }
    db.execute(&format!("DROP TABLE {table}"))?;
    Ok(size)
}

/// Names of one length, by their rank.
pub(super) struct Names {
    length: usize,
    /// The sums of the frequencies up to each rank.
    sums: Vec<f64>,
}

impl Names {
    pub(super) fn new(length: usize) -> Self {
        let frequencies = (1..=NAMES).map(|rank| (rank as f64).powf(-ZIPF));
        let sums = frequencies.scan(0.0, |sum, frequency| {
            *sum += frequency;
            Some(*sum)
        });
        Self { length, sums: sums.collect() }
    }

    /// The name of a rank.
    pub(super) fn name(&self, rank: usize) -> String {
        let mut letters = Random::stream(rank as u64, &[4]);
        let letter = |_| char::from(ALPHANUMERIC[letters.below(ALPHANUMERIC.len() as u64) as usize]);
        (0..self.length).map(letter).collect()
    }

    /// So many names, one a line.
    pub(super) fn rows(&self, random: &mut Random, rows: usize) -> String {
        let all = *self.sums.last().expect("there are names");
        let mut text = String::with_capacity(rows * (self.length + 1));
        for _ in 0..rows {
            let drawn = random.next_u64() as f64 / u64::MAX as f64 * all;
            let rank = self.sums.partition_point(|sum| *sum < drawn).min(NAMES - 1);
            text.push_str(&self.name(rank));
            text.push('\n');
        }
        text
    }
}
