use std::collections::{BTreeMap, HashSet};

use super::*;
use crate::tpcc::rows::Cell;

fn small() -> Population {
    population(Scale::SMALL)
}

fn population(scale: Scale) -> Population {
    Population { scale, warehouses: 2, seed: 7, loaded_at: Timestamp(1_300_000_000_000_000) }
}

/// Counts rows and checks each value against its column's type.
#[derive(Default)]
struct Check {
    rows: BTreeMap<Table, u64>,
}

impl Sink for Check {
    type Error = std::convert::Infallible;

    fn row<R: Row>(&mut self, row: &R) -> Result<(), Self::Error> {
        *self.rows.entry(R::TABLE).or_default() += 1;
        row.cells(|cells| {
            for (cell, column) in cells.iter().zip(R::TABLE.definition().columns) {
                let value = albireo_base::Value::from(*cell);
                assert!(value.fits(column.ty), "{cell:?} in {}", column.name);
                assert!(column.nullable || *cell != Cell::Null, "NULL in {}", column.name);
            }
        });
        Ok(())
    }
}

#[test]
fn population_of_the_specification_has_its_cardinalities() {
    let population = Population { warehouses: 1, ..population(Scale::SPEC) };
    let mut check = Check::default();
    population.all(&mut check).unwrap();
    let lines = check.rows[&Table::OrderLine];
    assert!((298_000..302_000).contains(&lines), "{lines} order lines, about 300,000 wanted");
    let expected = [
        (Table::Warehouse, 1),
        (Table::District, 10),
        (Table::Customer, 30_000),
        (Table::History, 30_000),
        (Table::NewOrder, 9_000),
        (Table::Orders, 30_000),
        (Table::OrderLine, lines),
        (Table::Item, 100_000),
        (Table::Stock, 100_000),
        (Table::Supplier, 10_000),
        (Table::Nation, 62),
        (Table::Region, 5),
    ];
    assert_eq!(check.rows, BTreeMap::from(expected));
    assert_eq!(population.expected_rows(), check.rows.values().sum::<u64>() - lines + 300_000);
}

#[test]
fn warehouse_and_districts_of_the_specification_start_with_its_sums() {
    let population = population(Scale::SPEC);
    assert_eq!(population.warehouse(2).w_ytd, Fixed(300_000_00));
    let district = population.district(2, 10);
    assert_eq!((district.d_ytd, district.d_next_o_id), (Fixed(30_000_00), 3_001));
    assert!((0..=2_000).contains(&district.d_tax.0));
}

#[test]
fn row_made_alone_equals_the_row_made_in_order() {
    let population = small();
    assert_eq!(population.items().nth(41), Some(population.item(42)));
    assert_eq!(population.stock(2).nth(9), Some(population.stock_of(2, 10)));
    assert_eq!(population.customers(1, 4).nth(20), Some(population.customer(1, 4, 21)));
    assert!(population.order_lines(2, 3).any(|line| line == population.order_line(2, 3, 17, 5)));
    assert_ne!(population.item(1).i_name, Population { seed: 8, ..population }.item(1).i_name);
    assert_ne!(population.stock_of(1, 1).s_dist_01, population.stock_of(2, 1).s_dist_01);
}

#[test]
fn tenth_of_items_stock_and_customers_is_marked_exactly() {
    let population = population(Scale::SPEC);
    let original = |text: &Text<50>| text.as_str().contains("ORIGINAL");
    assert_eq!(population.items().filter(|row| original(&row.i_data)).count(), 10_000);
    assert_eq!(population.stock(1).filter(|row| original(&row.s_data)).count(), 10_000);
    let bad = population.customers(1, 1).filter(|row| row.c_credit.as_str() == "BC").count();
    assert_eq!(bad, 300);
    let places: HashSet<_> = (1..=3_000)
        .filter(|&c_id| population.one_in_ten(Table::Customer, &[1, 1], c_id))
        .map(|c_id| c_id % 10)
        .collect();
    assert_eq!(places.len(), 10, "a random place among ten");
}

#[test]
fn first_thousand_customers_have_all_last_names_and_the_rest_nurand_ones() {
    let population = population(Scale::SPEC);
    let names: Vec<_> = population.customers(1, 1).map(|row| row.c_last).collect();
    for (number, name) in names[..1_000].iter().enumerate() {
        assert_eq!(*name, last_name(number as i32));
    }
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for name in &names[1_000..] {
        *counts.entry(name.as_str()).or_default() += 1;
    }
    assert!(counts.len() < 900 && *counts.values().max().unwrap() > 10, "NURand is not uniform");
}

#[test]
fn every_customer_has_one_order_and_the_last_third_is_undelivered() {
    let population = population(Scale::SPEC);
    let orders: Vec<_> = population.orders(1, 1).collect();
    let customers: HashSet<_> = orders.iter().map(|order| order.o_c_id).collect();
    assert_eq!(customers.len(), 3_000);
    assert!(orders.iter().zip(1..).filter(|(order, o_id)| order.o_c_id == *o_id).count() < 20, "permuted");
    for order in &orders {
        assert_eq!(order.o_carrier_id.is_some(), order.o_id < 2_101);
        assert!(order.o_entry_d <= population.loaded_at);
    }
    let new_orders: Vec<_> = population.new_orders(1, 1).map(|row| row.no_o_id).collect();
    assert_eq!(new_orders, (2_101..=3_000).collect::<Vec<_>>());
}

#[test]
fn order_lines_are_as_many_as_their_order_says_and_cost_nothing_when_delivered() {
    let population = population(Scale::SPEC);
    let mut lines = BTreeMap::new();
    for line in population.order_lines(1, 2) {
        *lines.entry(line.ol_o_id).or_insert(0) += 1;
        assert_eq!(line.ol_number, lines[&line.ol_o_id]);
        assert_eq!(line.ol_delivery_d.is_some(), line.ol_o_id < 2_101);
        match line.ol_delivery_d {
            Some(_) => assert_eq!(line.ol_amount, Fixed(0)),
            None => assert!((1..=999_999).contains(&line.ol_amount.0)),
        }
        assert!(line.ol_quantity == 5 && (1..=100_000).contains(&line.ol_i_id));
    }
    let mut sizes = [0u32; 11];
    for order in population.orders(1, 2) {
        assert_eq!(lines[&order.o_id], order.o_ol_cnt);
        sizes[usize::from(order.o_ol_cnt as u16) - 5] += 1;
    }
    assert!(sizes.iter().all(|&count| (180..370).contains(&count)), "{sizes:?}");
}

#[test]
fn small_scale_keeps_the_proportions() {
    let mut check = Check::default();
    small().all(&mut check).unwrap();
    assert_eq!(check.rows[&Table::Customer], 2 * 10 * 60);
    assert_eq!(check.rows[&Table::NewOrder], 2 * 10 * 18);
}
