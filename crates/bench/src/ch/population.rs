//! REGION, NATION and SUPPLIER as the original CH-benCHmark has them.
//!
//! Nation keys are the codes of the 62 characters that random strings are made of, so that
//! `ascii(substr(c_state, 1, 1))` finds a customer's nation. Supplier keys are 0 to 9,999, so that
//! `mod(s_w_id * s_i_id, 10000)` finds the supplier of every row of STOCK.

use crate::tpcc::population::Population;
use crate::tpcc::random::ALPHANUMERIC;
use crate::tpcc::rows::{Fixed, NationRow, RegionRow, SupplierRow};
use crate::tpcc::schema::Table;
use crate::tpcc::text::Text;

/// Rows of SUPPLIER.
pub const SUPPLIERS: i32 = 10_000;

/// Names, by key from 1.
const REGIONS: [&str; 5] = ["Africa", "America", "Asia", "Australia", "Europe"];

/// Names and regions, by key in the order of [`ALPHANUMERIC`]; their spelling and geography are the
/// original's.
const NATIONS: [(&str, i32); 62] = [
    ("Australia", 4),
    ("Belgium", 5),
    ("Cameroon", 1),
    ("Denmark", 5),
    ("Ecuador", 2),
    ("France", 5),
    ("Germany", 5),
    ("Hungary", 5),
    ("Italy", 5),
    ("Japan", 3),
    ("Kenya", 1),
    ("Lithuania", 5),
    ("Mexico", 2),
    ("Netherlands", 5),
    ("Oman", 1),
    ("Portugal", 5),
    ("Qatar", 1),
    ("Rwanda", 1),
    ("Serbia", 5),
    ("Togo", 1),
    ("United States", 2),
    ("Vietnam", 3),
    ("Singapore", 3),
    ("Cambodia", 3),
    ("Yemen", 1),
    ("Zimbabwe", 1),
    ("Argentina", 2),
    ("Bolivia", 2),
    ("Canada", 2),
    ("Dominican Republic", 2),
    ("Egypt", 1),
    ("Finnland", 5),
    ("Ghana", 1),
    ("Haiti", 2),
    ("India", 3),
    ("Jamaica", 4),
    ("Kazakhstan", 3),
    ("Luxembourg", 5),
    ("Morocco", 1),
    ("Norway", 5),
    ("Poland", 5),
    ("Peru", 2),
    ("Nicaragua", 2),
    ("Romania", 5),
    ("South Africa", 1),
    ("Thailand", 3),
    ("United Kingdom", 5),
    ("Venezuela", 2),
    ("Liechtenstein", 5),
    ("Austria", 5),
    ("Laos", 3),
    ("Zambia", 1),
    ("Switzerland", 5),
    ("China", 3),
    ("Papua New Guinea", 4),
    ("East Timor", 4),
    ("Bulgaria", 5),
    ("Brazil", 2),
    ("Albania", 5),
    ("Andorra", 5),
    ("Belize", 2),
    ("Botswana", 1),
];

impl Population {
    /// The rows of REGION.
    pub fn regions(&self) -> impl Iterator<Item = RegionRow> {
        let this = *self;
        REGIONS.iter().zip(1..).map(move |(name, r_regionkey)| RegionRow {
            r_regionkey,
            r_name: Text::new(name),
            r_comment: this.random(Table::Region, &[r_regionkey as u64]).alphanumeric(31, 115),
        })
    }

    /// The rows of NATION.
    pub fn nations(&self) -> impl Iterator<Item = NationRow> {
        let this = *self;
        NATIONS.iter().zip(ALPHANUMERIC).map(move |(&(name, n_regionkey), &key)| NationRow {
            n_nationkey: key.into(),
            n_name: Text::new(name),
            n_regionkey,
            n_comment: this.random(Table::Nation, &[key.into()]).alphanumeric(31, 114),
        })
    }

    /// The rows of SUPPLIER.
    pub fn suppliers(&self) -> impl Iterator<Item = SupplierRow> {
        let this = *self;
        (0..SUPPLIERS).map(move |su_suppkey| {
            let random = &mut this.random(Table::Supplier, &[su_suppkey as u64]);
            SupplierRow {
                su_suppkey,
                su_name: Text::new(&format!("Supplier#{su_suppkey:09}")),
                su_address: random.alphanumeric(10, 40),
                su_nationkey: ALPHANUMERIC[random.below(62) as usize].into(),
                su_phone: random.digits(15, 15),
                su_acctbal: Fixed(random.uniform(-999_99, 9_999_99).into()),
                su_comment: random.alphanumeric(25, 100),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::tpcc::Scale;
    use crate::tpcc::rows::Timestamp;

    const POPULATION: Population =
        Population { scale: Scale::SMALL, warehouses: 1, seed: 1, loaded_at: Timestamp(0) };

    #[test]
    fn nation_of_germany_and_cambodia_have_the_keys_of_their_characters() {
        let nations: Vec<_> = POPULATION.nations().collect();
        let key = |name| nations.iter().find(|row| row.n_name.as_str() == name).unwrap().n_nationkey;
        assert_eq!((key("Germany"), key("Cambodia")), (i32::from(b'6'), i32::from(b'N')));
        let keys: HashSet<_> = nations.iter().map(|row| row.n_nationkey).collect();
        assert_eq!(keys.len(), 62);
        assert!(nations.iter().all(|row| (1..=5).contains(&row.n_regionkey)));
    }

    #[test]
    fn every_supplier_and_customer_has_a_nation() {
        let keys: HashSet<_> = POPULATION.nations().map(|row| row.n_nationkey).collect();
        let used: HashSet<_> = POPULATION.suppliers().map(|row| row.su_nationkey).collect();
        assert_eq!(keys, used);
        let states = POPULATION.customers(1, 1).map(|row| i32::from(row.c_state.as_bytes()[0]));
        assert!(states.into_iter().all(|key| keys.contains(&key)));
    }
}
