//! Whole runs of the benchmarks on our own database, in small.

use albireo::{Abort, Procedure, Route, SqlState, TableHandle, Transaction};
use albireo_bench::config::{Config, Procedures, Workload};
use albireo_bench::driver::{Cancel, Loading, SystemUnderTest, run, run_snapshots};
use albireo_bench::progress::Silent;
use albireo_bench::target::Albireo;
use albireo_bench::tpcc::input::{Inputs, Mix};
use albireo_bench::tpcc::population::Population;
use albireo_bench::tpcc::rows::Timestamp;
use albireo_bench::tpcc::schema::Layout;
use albireo_bench::tpcc::{Scale, consistency};
use albireo_env::Env;

fn config(workload: Workload, partitions: u16, layout: Layout) -> Config {
    Config {
        workload,
        warehouses: 4,
        partitions,
        transactions: Some(600),
        layout,
        mix: Mix::Spec,
        procedures: Procedures::Native,
        seed: 11,
        scale: Scale::SMALL,
        ..Config::default()
    }
}

fn loaded(config: &Config) -> Albireo {
    let (env, cancel) = (Env::real(), Cancel::default());
    let target = Albireo::open(config, &env, &cancel).unwrap();
    let loaded_at = Timestamp(env.clock.unix_us());
    let Config { scale, warehouses, seed, .. } = *config;
    let population = Population { scale, warehouses, seed, loaded_at };
    target.load(config, &population, &Loading::new(&population, &Silent, &cancel)).unwrap();
    target
}

fn violated(target: &Albireo, scale: Scale) -> Vec<usize> {
    let mut snapshot = target.snapshot().unwrap();
    let mut violations =
        |condition: &usize| snapshot.count(&consistency::violations(*condition, scale)).unwrap();
    (1..=consistency::COUNT).filter(|condition| violations(condition) > 0).collect()
}

#[test]
fn four_partitions_with_queries_keep_all_conditions() {
    // More partitions than cores starve the queries, for which transactions go on: one is enough.
    let workload = Workload::Ch { queries: "top10".parse().unwrap(), streams: 1 };
    let config = config(workload, 4, Layout::Groups);
    let (env, cancel) = (Env::real(), Cancel::default());
    let target = Albireo::open(&config, &env, &cancel).unwrap();
    let report = run(&config, &target, &env.clock, &Silent, &cancel).unwrap();
    assert_eq!(report.error, None);
    assert_eq!(report.consistency.under_load, [Some(0); 12]);
    assert_eq!(report.consistency.at_end, [Some(0); 12]);
    let mixed = report.oltp_mixed.as_ref().unwrap();
    assert_eq!(mixed.committed + mixed.rolled_back, 2_400, "600 in each partition");
    assert!(mixed.transactions_per_cpu_second > 0.0, "{mixed:?}");
    assert!(report.queries.iter().any(|query| query.runs > 0), "{:?}", report.queries);
    assert!(report.snapshots.taken > 2 && report.snapshots.blocks_copied > 0, "{:?}", report.snapshots);
    assert!(report.memory_bytes["rows"] > 0 && report.memory_bytes["in_use"] > 0);
}

#[test]
fn snapshots_of_one_partition_are_measured_at_every_rate() {
    let config = config(Workload::Tpcc, 1, Layout::Column);
    let (env, cancel) = (Env::real(), Cancel::default());
    let target = Albireo::open(&config, &env, &cancel).unwrap();
    let report = run_snapshots(&config, &target, &env.clock, &Silent, &cancel).unwrap();
    assert!(report.run.passed(), "{}", report.table());
    assert_eq!(report.run.consistency.under_load, [Some(0); 12]);
    let rates: Vec<_> = report.rates.iter().map(|rate| rate.snapshots_per_second).collect();
    assert_eq!(rates, [0, 1, 10, 100]);
    assert_eq!((report.rates[0].taken, report.rates[0].kept), (0, None));
    let many = &report.rates[3];
    // Whether one of them comes in the way of a transaction is a matter of luck.
    assert!(many.taken > 0 && many.blocks_per_snapshot > 0.0, "{many:?}");
    assert!(report.memory.unwrap().held_bytes > 0);
    let json: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
    assert!(json["rates"][3]["blocks_per_snapshot"].is_number() && json["warehouses"] == 4, "{json}");
}

#[test]
fn cancelled_load_ends_early_and_reports() {
    let config = config(Workload::Tpcc, 2, Layout::Row);
    let (env, cancel) = (Env::real(), Cancel::default());
    let target = Albireo::open(&config, &env, &cancel).unwrap();
    cancel.cancel();
    let report = run(&config, &target, &env.clock, &Silent, &cancel).unwrap();
    assert!(report.interrupted && report.error.is_none() && report.passed());
    assert_eq!((report.rows_loaded, report.oltp_alone.is_some()), (0, false));
}

/// Deletes a warehouse's row and then fails as a bug would.
struct Panicking(TableHandle);

impl Procedure for Panicking {
    type Args = i16;
    type Output = ();

    fn name(&self) -> &str {
        "panicking"
    }

    fn route(&self, w_id: &i16) -> Route {
        Route::Key((*w_id).into())
    }

    fn run(&self, tx: &mut Transaction, _: &i16) -> Result<(), Abort> {
        let first = tx.table(self.0).scan_from(albireo_base::Tid(0)).next().unwrap();
        tx.delete(self.0, first)?;
        panic!("a bug")
    }
}

#[test]
fn procedure_that_panics_leaves_everything_consistent() {
    let config = config(Workload::Tpcc, 2, Layout::Groups);
    let target = loaded(&config);
    let database = target.database();
    let panicking = database.with_table("warehouse", |handle, _| Ok(Panicking(handle))).unwrap();
    let panicking = database.register_procedure(panicking);
    let transactions = target.transactions().unwrap();
    let mut inputs = Inputs::new(Mix::Spec, Scale::SMALL, 4, &[1, 2, 3, 4], 5, 0);
    for i in 0..400 {
        transactions.run(&inputs.next_transaction()).unwrap();
        if i % 40 == 0 {
            let error = panicking.call(&(i as i16 % 4 + 1)).unwrap_err();
            assert_eq!(error.state(), SqlState::INTERNAL_ERROR);
            assert!(error.to_string().contains("panicked: a bug"), "{error}");
        }
    }
    assert_eq!(violated(&target, config.scale), Vec::<usize>::new());
    assert!(database.statistics().transactions.rolled_back >= 10);
}
