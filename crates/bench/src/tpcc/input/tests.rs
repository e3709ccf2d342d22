use std::collections::HashMap;

use super::*;

fn inputs(mix: Mix, warehouses: i16, homes: &[i16]) -> Inputs {
    Inputs::new(mix, Scale::SPEC, warehouses, homes, 11, 0)
}

fn sample(inputs: &mut Inputs, count: usize) -> Vec<Transaction> {
    std::iter::repeat_with(|| inputs.next_transaction()).take(count).collect()
}

/// `share` of `total` within `tolerance`, both in per cent.
#[track_caller]
fn assert_share(count: usize, total: usize, share: f64, tolerance: f64) {
    let found = 100.0 * count as f64 / total as f64;
    assert!((found - share).abs() <= tolerance, "{found:.2} % instead of {share} %");
}

#[test]
fn deck_gives_exact_shares_in_changing_order() {
    let mut kinds = HashMap::new();
    let mut all = inputs(Mix::Spec, 5, &[1, 2, 3, 4, 5]);
    let first: Vec<_> = sample(&mut all, 100).iter().map(Transaction::kind).collect();
    let second: Vec<_> = sample(&mut all, 100).iter().map(Transaction::kind).collect();
    assert_ne!(first, second);
    for kind in first {
        *kinds.entry(kind).or_insert(0) += 1;
    }
    assert_eq!(kinds, HashMap::from_iter(Mix::Spec.cards().iter().copied()));
    let two = sample(&mut inputs(Mix::Two, 1, &[1]), 880);
    let new_orders = two.iter().filter(|input| input.kind() == Kind::NewOrder).count();
    assert_eq!(new_orders, 450);
}

#[test]
fn new_orders_follow_clause_2_4_1() {
    let orders: Vec<_> = sample(&mut inputs(Mix::Two, 4, &[2]), 200_000)
        .into_iter()
        .filter_map(|input| match input {
            Transaction::NewOrder(order) => Some(order),
            _ => None,
        })
        .collect();
    let (mut remote, mut lines) = (0, 0);
    for order in &orders {
        assert!(order.w_id == 2 && (1..=10).contains(&order.d_id) && (1..=3_000).contains(&order.c_id));
        assert!((5..=15).contains(&order.lines().len()));
        let (last, others) = order.lines().split_last().unwrap();
        assert_eq!(order.rolls_back, last.i_id == 100_001);
        assert!(others.iter().all(|line| (1..=100_000).contains(&line.i_id)));
        assert!(order.lines().iter().all(|line| (1..=10).contains(&line.quantity)));
        assert!(order.lines().iter().all(|line| (1..=4).contains(&line.supply_w_id)));
        let away = order.lines().iter().filter(|line| line.supply_w_id != 2).count();
        assert_eq!(order.all_local, away == 0);
        remote += away;
        lines += order.lines().len();
    }
    assert_share(orders.iter().filter(|order| order.rolls_back).count(), orders.len(), 1.0, 0.15);
    assert_share(remote, lines, 1.0, 0.05);
    assert_share(lines, orders.len() * 10, 100.0, 0.5);
}

#[test]
fn payments_follow_clause_2_5_1() {
    let payments: Vec<_> = sample(&mut inputs(Mix::Two, 4, &[1, 3]), 200_000)
        .into_iter()
        .filter_map(|input| match input {
            Transaction::Payment(payment) => Some(payment),
            _ => None,
        })
        .collect();
    let by_name = |payment: &&Payment| matches!(payment.customer, CustomerKey::LastName(_));
    let remote = |payment: &&Payment| payment.c_w_id != payment.w_id;
    assert_share(payments.iter().filter(by_name).count(), payments.len(), 60.0, 0.6);
    assert_share(payments.iter().filter(remote).count(), payments.len(), 15.0, 0.5);
    assert_share(payments.iter().filter(|payment| payment.w_id == 3).count(), payments.len(), 50.0, 0.7);
    assert_share(payments.iter().filter(|payment| payment.c_w_id == 4).count(), payments.len(), 5.0, 0.3);
    for payment in payments {
        assert!((100..=500_000).contains(&payment.h_amount.0));
        assert!(payment.c_w_id != payment.w_id || payment.c_d_id == payment.d_id);
    }
}

#[test]
fn single_warehouse_has_no_remote_one() {
    for input in sample(&mut inputs(Mix::Spec, 1, &[1]), 5_000) {
        assert_eq!(input.home(), 1);
        assert!(!input.leaves(|w_id| w_id != 1));
    }
}

#[test]
fn rest_of_the_mix_stays_in_range() {
    for input in sample(&mut inputs(Mix::Spec, 2, &[1, 2]), 20_000) {
        match input {
            Transaction::Delivery(delivery) => assert!((1..=10).contains(&delivery.o_carrier_id)),
            Transaction::StockLevel(level) => assert!((10..=20).contains(&level.threshold)),
            Transaction::OrderStatus(status) => assert!((1..=10).contains(&status.d_id)),
            Transaction::NewOrder(_) | Transaction::Payment(_) => {}
        }
    }
}

#[test]
fn inputs_of_a_seed_and_stream_are_fixed_and_streams_differ() {
    let generate = |stream| {
        let mut inputs = Inputs::new(Mix::Spec, Scale::SMALL, 2, &[1, 2], 5, stream);
        format!("{:?}", sample(&mut inputs, 50))
    };
    assert_eq!(generate(1), generate(1));
    assert_ne!(generate(1), generate(2));
}
