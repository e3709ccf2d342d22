//! Which snapshot a session gets: its own, or one that others took before it.

use std::sync::Arc;
use std::time::Duration;

use albireo_base::{ColumnId, SqlType, TableId};
use albireo_env::{Clock, Env, SimulatedClock};
use albireo_partition::{Partitions, PartitionsConfig, QuerySession, Sessions};
use albireo_storage::{
    BlockPool, BudgetPolicy, ColumnSet, ColumnSpec, LayoutChoice, SnapshotRegistry, SnapshotScope, Table,
    TableSpec,
};

const SECOND: u64 = 1_000_000_000;

fn sessions() -> (Sessions, SimulatedClock) {
    let (clock, hand) = Clock::simulated();
    let registry = SnapshotRegistry::new(BlockPool::new(64 << 20), 64 << 20, BudgetPolicy::RefuseNew);
    let env = Env { clock: clock.clone(), ..Env::real() };
    let config = PartitionsConfig { partitions: 1, queue_capacity: 1 };
    let partitions = Partitions::new(config, Arc::new(registry), &env);
    let spec = TableSpec {
        id: TableId(1),
        name: "t".to_owned(),
        columns: vec![ColumnSpec { name: "a".to_owned(), ty: SqlType::Integer, nullable: false }],
        layout: LayoutChoice::Columns,
        indexes: Vec::new(),
        partition_by: None,
        checks: Vec::new(),
    };
    let layout = Table::layout_of(&spec).unwrap();
    partitions.exclusively(|all| all.create_table(spec, &layout));
    (Sessions::new(Arc::new(partitions), clock), hand)
}

fn one_column() -> SnapshotScope {
    SnapshotScope::Tables(vec![(TableId(1), ColumnSet::of([ColumnId(0)]))].into())
}

fn same(a: &QuerySession, b: &QuerySession) -> bool {
    Arc::ptr_eq(&a.snapshot().unwrap(), &b.snapshot().unwrap())
}

#[test]
fn without_staleness_every_session_has_its_own_snapshot() {
    let (sessions, _) = sessions();
    let all = sessions.open_within(0, &SnapshotScope::All).unwrap();
    let again = sessions.open_within(0, &SnapshotScope::All).unwrap();
    let one = sessions.open_within(0, &one_column()).unwrap();
    assert!(!same(&all, &again));
    assert_eq!(*one.snapshot().unwrap().scope(), one_column());
}

#[test]
fn stale_snapshot_is_shared_while_it_lives_and_is_young_enough() {
    let (sessions, hand) = sessions();
    let first = sessions.open_within(SECOND, &one_column()).unwrap();
    assert_eq!(*first.snapshot().unwrap().scope(), SnapshotScope::All, "others can share it");
    hand.advance(Duration::from_secs(1));
    let second = sessions.open_within(SECOND, &one_column()).unwrap();
    assert!(same(&first, &second));
    assert_eq!(second.age_ns(), SECOND);
    hand.advance(Duration::from_nanos(1));
    let third = sessions.open_within(SECOND, &SnapshotScope::All).unwrap();
    assert!(!same(&first, &third), "too old");
    assert_eq!(third.age_ns(), 0);
    drop(third);
    let fourth = sessions.open_within(SECOND, &SnapshotScope::All).unwrap();
    assert_eq!(fourth.age_ns(), 0, "the newest has ended; the older one is not shared again");
    assert_eq!(sessions.statistics().counters.taken, 3);
}

#[test]
fn snapshot_of_some_columns_is_not_shared() {
    let (sessions, _) = sessions();
    let all = sessions.open(&SnapshotScope::All).unwrap();
    let one = sessions.open(&one_column()).unwrap();
    let shared = sessions.open_within(SECOND, &one_column()).unwrap();
    assert!(same(&all, &shared) && !same(&one, &shared));
}
