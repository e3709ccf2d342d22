use std::time::Duration;

use albireo_base::SqlState;

use super::*;
use crate::ch::queries::Selection;
use crate::progress::Silent;
use crate::tpcc::Scale;
use crate::tpcc::input::Mix;
use crate::tpcc::schema::Layout;

/// A system that does nothing, as asked.
#[derive(Default)]
struct Hollow {
    /// The transaction that fails, if one does.
    failing: Option<u64>,
    /// The condition that is violated, if one is.
    violated: Option<&'static str>,
    transactions: AtomicU64,
    /// Cancelled when so many transactions have ended.
    cancel_after: Option<(u64, Cancel)>,
}

impl SystemUnderTest for Hollow {
    fn load(&self, config: &Config, population: &Population, loading: &Loading<'_>) -> Result<(), SqlError> {
        assert_eq!((population.warehouses, population.seed), (config.warehouses, config.seed));
        loading.add(1_000);
        loading.add(234);
        Ok(())
    }

    fn partition_of(&self, w_id: i16) -> u16 {
        w_id as u16 % 2
    }

    fn worker(&self, partition: u16) -> Result<Box<dyn Worker + '_>, SqlError> {
        Ok(Box::new(HollowWorker { target: self, partition }))
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, SqlError> {
        Ok(Box::new(HollowSnapshot { target: self }))
    }

    fn forget_pauses(&self) {}

    fn snapshot_costs(&self) -> SnapshotCosts {
        let mut pauses = Durations::default();
        pauses.record(9_000);
        SnapshotCosts { taken: 7, blocks_copied: 3, bytes_copied: 4_096, pauses }
    }

    fn memory_bytes(&self) -> BTreeMap<String, u64> {
        BTreeMap::from([("tables".into(), 7)])
    }
}

struct HollowWorker<'a> {
    target: &'a Hollow,
    partition: u16,
}

impl Worker for HollowWorker<'_> {
    fn run(&mut self, transactions: &[Transaction], ended: Ended<'_>) -> Result<(), SqlError> {
        for transaction in transactions {
            assert_eq!(self.target.partition_of(transaction.home()), self.partition);
            let number = self.target.transactions.fetch_add(1, Ordering::Relaxed);
            if self.target.failing == Some(number) {
                return Err(SqlError::new(SqlState::OUT_OF_MEMORY, "memory is spent"));
            }
            match &self.target.cancel_after {
                Some((count, cancel)) if number == *count => cancel.cancel(),
                _ => {}
            }
            match transaction {
                Transaction::NewOrder(order) if order.rolls_back => {
                    ended(Outcome::RolledBack, Receipt::default())?;
                }
                _ => ended(Outcome::Committed, Receipt::default())?,
            }
        }
        Ok(())
    }
}

struct HollowSnapshot<'a> {
    target: &'a Hollow,
}

impl Snapshot for HollowSnapshot<'_> {
    fn age_ns(&self) -> u64 {
        2_000_000
    }

    fn query(&mut self, query: &Query, parameters: &[i16]) -> Result<Answer, SqlError> {
        assert_eq!(parameters.len(), query.parameters);
        assert!(parameters.iter().all(|parameter| (1..=10).contains(parameter)));
        Ok(Answer { rows: 15, planning_ns: 1_000 })
    }

    fn count(&mut self, sql: &str) -> Result<u64, SqlError> {
        Ok(u64::from(self.target.violated.is_some_and(|part| sql.contains(part))))
    }
}

fn config(workload: Workload) -> Config {
    Config {
        workload,
        warehouses: 4,
        partitions: 2,
        transactions: Some(3_000),
        layout: Layout::Column,
        mix: Mix::Spec,
        procedures: crate::config::Procedures::Native,
        seed: 3,
        scale: Scale::SMALL,
        ..Config::default()
    }
}

fn mixed(queries: &str) -> Workload {
    Workload::Ch { queries: queries.parse::<Selection>().unwrap(), streams: 2 }
}

fn report(workload: Workload, target: &Hollow, cancel: &Cancel) -> Report {
    run(&config(workload), target, &Clock::real(), &Silent, cancel).unwrap()
}

#[test]
fn mixed_run_measures_both_phases_and_checks_twice() {
    let report = report(mixed("top10,6"), &Hollow::default(), &Cancel::default());
    assert_eq!((report.rows_loaded, report.error.as_ref(), report.interrupted), (1_234, None, false));
    for oltp in [report.oltp_alone.as_ref().unwrap(), report.oltp_mixed.as_ref().unwrap()] {
        assert_eq!(oltp.committed + oltp.rolled_back, 6_000, "3,000 in each of two partitions");
        assert!(oltp.latency_us.is_some() && oltp.seconds >= 0.0, "{oltp:?}");
        let ended = (oltp.committed + oltp.rolled_back) as f64;
        let share = oltp.new_orders_per_second / oltp.transactions_per_second;
        assert!((0.44..0.46).contains(&share), "{share}");
        assert!(oltp.rolled_back > 0 && (oltp.rolled_back as f64) < ended * 0.01);
    }
    let names: Vec<_> = report.queries.iter().map(|query| query.name.as_str()).collect();
    assert_eq!(names, ["top10", "Q6"]);
    assert!(report.queries.iter().all(|query| query.runs > 0 && query.rows == Some(15)));
    assert_eq!(report.snapshots.taken, 7);
    assert!(report.snapshots.pause_us.is_some_and(|pause| (8.9..9.1).contains(&pause.p50)));
    assert_eq!((report.snapshots.blocks_copied, report.memory_bytes["tables"]), (3, 7));
    assert!(report.freshness_ms.is_some_and(|age| (1.99..2.01).contains(&age.max)) && report.passed());
    assert_eq!(report.consistency.under_load, [Some(0); 12]);
    assert_eq!(report.consistency.at_end, [Some(0); 12]);
}

#[test]
fn transactions_alone_are_checked_under_load_too() {
    let report = report(Workload::Tpcc, &Hollow::default(), &Cancel::default());
    assert!(report.oltp_alone.is_some() && report.oltp_mixed.is_none() && report.queries.is_empty());
    assert_eq!(report.consistency.under_load, [Some(0); 12]);
}

#[test]
fn timed_run_measures_the_time_asked_for() {
    let mut config = config(mixed("6"));
    (config.duration, config.transactions) = (Duration::from_millis(60), None);
    let report = run(&config, &Hollow::default(), &Clock::real(), &Silent, &Cancel::default()).unwrap();
    for oltp in [report.oltp_alone.as_ref().unwrap(), report.oltp_mixed.as_ref().unwrap()] {
        assert_eq!(oltp.seconds, 0.06, "however late its end was noticed");
        let ended = (oltp.committed + oltp.rolled_back) as f64;
        assert!(
            (oltp.transactions_per_second * oltp.seconds - ended).abs() <= 1.0 + ended / 10.0,
            "{oltp:?}"
        );
    }
    assert!(report.passed());
}

#[test]
fn run_of_so_many_transactions_runs_just_these() {
    let target = Hollow::default();
    let report = report(Workload::Tpcc, &target, &Cancel::default());
    let oltp = report.oltp_alone.as_ref().unwrap();
    assert_eq!((oltp.committed + oltp.rolled_back, target.transactions.into_inner()), (6_000, 6_000));
    assert_eq!(report.consistency.under_load, [Some(0); 12]);
}

#[test]
fn violated_condition_fails_the_run() {
    let target = Hollow { violated: Some("span <> new_orders"), ..Hollow::default() };
    let report = report(Workload::Tpcc, &target, &Cancel::default());
    assert!(!report.passed());
    assert_eq!(report.consistency.holds(3), Some(false));
    assert_eq!(report.consistency.holds(4), Some(true));
}

#[test]
fn failing_transaction_ends_the_run_and_keeps_the_figures() {
    let target = Hollow { failing: Some(5_000), ..Hollow::default() };
    let report = report(mixed("all"), &target, &Cancel::default());
    let error = report.error.as_deref().unwrap();
    assert!(error.starts_with("running transactions: ERROR 53200: memory is spent"), "{error}");
    assert!(report.oltp_alone.is_some() && report.oltp_mixed.is_none() && !report.passed());
}

#[test]
fn cancelled_run_ends_soon_with_what_it_has() {
    let cancel = Cancel::default();
    let target = Hollow { cancel_after: Some((3_000, cancel.clone())), ..Hollow::default() };
    let told = Arc::new(AtomicBool::new(false));
    let hook = Arc::clone(&told);
    cancel.on_cancel(move || hook.store(true, Ordering::Relaxed));
    let mut config = config(mixed("all"));
    (config.duration, config.transactions) = (Duration::from_secs(3_600), None);
    let report = run(&config, &target, &Clock::real(), &Silent, &cancel).unwrap();
    assert!(report.interrupted && report.error.is_none());
    // The first of many phases is a mixed one.
    assert!(report.oltp_alone.is_none() && report.oltp_mixed.is_some());
    assert_eq!(report.consistency.holds(1), None);
    assert!(told.load(Ordering::Relaxed));
}

#[test]
fn snapshots_that_nobody_waited_for_have_pauses_of_nothing() {
    let costs = |taken| SnapshotCosts { taken, ..SnapshotCosts::default() };
    assert_eq!(costs(0).pause_us(), None);
    assert_eq!(costs(3).pause_us().map(|pauses| (pauses.p50, pauses.max)), Some((0.0, 0.0)));
}
