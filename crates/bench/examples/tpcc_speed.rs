//! How many TPC-C transactions a second one partition runs, straight on the partitions: no SQL, no
//! queries. For profiling: `cargo run --release -p albireo-bench --example tpcc_speed -- 5 groups 10`.
#![allow(clippy::print_stdout, reason = "a program")]

use std::sync::Arc;

use albireo_base::{ColumnId, TableId};
use albireo_bench::tpcc::Scale;
use albireo_bench::tpcc::input::{Inputs, Mix, Transaction};
use albireo_bench::tpcc::population::{Population, Sink};
use albireo_bench::tpcc::procedures::{Procedures, Resolver};
use albireo_bench::tpcc::rows::{Row, Timestamp};
use albireo_bench::tpcc::schema::{Definition, Layout, Table};
use albireo_env::Env;
use albireo_partition::{Partitions, PartitionsConfig, TableHandle};
use albireo_storage::{
    BlockPool, BudgetPolicy, ColumnSpec, HandleError, IndexKind, IndexSpec, LayoutChoice, SnapshotRegistry,
    Table as StoredTable, TableSpec,
};

struct Database {
    partitions: Partitions,
    handles: Vec<(Table, TableHandle)>,
}

fn spec(definition: &Definition, layout: Layout) -> TableSpec {
    let column = |name: &str| {
        let position = definition.columns.iter().position(|c| c.name == name).expect("a column of the table");
        ColumnId(position as u16)
    };
    let columns = |names: &[&str]| names.iter().map(|name| column(name)).collect::<Vec<_>>();
    let mut indexes = Vec::new();
    if !definition.primary_key.is_empty() {
        let name = format!("{}_pkey", definition.name);
        let kind = match definition.table {
            Table::Orders | Table::NewOrder | Table::OrderLine => IndexKind::Ordered,
            _ => IndexKind::Hash,
        };
        indexes.push(IndexSpec { name, columns: columns(definition.primary_key), unique: true, kind });
    }
    if let Some((name, names)) = definition.index {
        let kind = IndexKind::Ordered;
        indexes.push(IndexSpec { name: name.to_owned(), columns: columns(names), unique: false, kind });
    }
    TableSpec {
        id: TableId(definition.table as u32),
        name: definition.name.to_owned(),
        columns: definition
            .columns
            .iter()
            .map(|c| ColumnSpec { name: c.name.to_owned(), ty: c.ty, nullable: c.nullable })
            .collect(),
        layout: match layout {
            Layout::Column => LayoutChoice::Columns,
            Layout::Row => LayoutChoice::Rows,
            Layout::Groups => LayoutChoice::Groups(definition.groups.iter().map(|g| columns(g)).collect()),
        },
        indexes,
        partition_by: definition.partition_by.map(column),
        checks: Vec::new(),
    }
}

impl Sink for &Database {
    type Error = String;

    fn row<R: Row>(&mut self, row: &R) -> Result<(), String> {
        let handle = self.handles.iter().find(|(table, _)| *table == R::TABLE).expect("the table exists").1;
        let values = row.cells(|cells| cells.iter().map(|&cell| cell.into()).collect::<Vec<_>>());
        let insert = |tx: &mut albireo_partition::Transaction<'_, '_>| {
            let site = tx.home();
            tx.insert_values_at(site, handle, &values)
        };
        self.partitions.crossing("load", insert).map(|_| ()).map_err(|error| error.to_string())
    }
}

impl Resolver for Database {
    fn with_table(
        &self,
        name: &str,
        look: &mut dyn FnMut(TableHandle, &StoredTable) -> Result<(), HandleError>,
    ) -> Result<(), HandleError> {
        let handle = self.handles.iter().find(|(table, _)| table.name() == name).expect("the table exists").1;
        self.partitions.with_table(handle, albireo_base::PartitionId(0), |table| look(handle, table))
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let warehouses: i16 = args.next().map_or(5, |a| a.parse().expect("warehouses"));
    let layout: Layout = args.next().map_or(Layout::Groups, |a| a.parse().expect("layout"));
    let seconds: u64 = args.next().map_or(5, |a| a.parse().expect("seconds"));
    let snapshots: u64 = args.next().map_or(0, |a| a.parse().expect("snapshots per second"));
    let env = Env::real();
    let pool = BlockPool::new(16 << 30);
    let toucher = pool.clone();
    let touching = albireo_env::spawn("toucher", move || toucher.run_toucher()).expect("a thread");
    let registry = Arc::new(SnapshotRegistry::new(pool.clone(), 8 << 30, BudgetPolicy::RefuseNew));
    let partitions = Partitions::new(PartitionsConfig::default(), registry, &env);
    let handles = Table::ALL
        .iter()
        .map(|table| {
            let spec = spec(table.definition(), layout);
            let layout = StoredTable::layout_of(&spec).expect("a possible layout");
            (*table, partitions.create_table(spec, &layout))
        })
        .collect();
    let database = Database { partitions, handles };
    let start = env.clock.now();
    let population =
        Population { scale: Scale::SPEC, warehouses, seed: 42, loaded_at: Timestamp(env.clock.unix_us()) };
    population.all(&mut &database).expect("the population loads");
    println!("loaded in {:.1} s", (env.clock.now() - start) as f64 / 1e9);
    let procedures = Procedures::new(&database).expect("the tables fit");
    let homes: Vec<i16> = (1..=warehouses).collect();
    let mut inputs = Inputs::new(Mix::Spec, Scale::SPEC, warehouses, &homes, 42, 0);
    for _ in 0..3 {
        let (start, cpu) = (env.clock.now(), albireo_env::cpu_time_ns());
        let end = start + seconds * 1_000_000_000;
        let (mut done, mut rolled_back, mut next_snapshot) = (0_u64, 0_u64, start);
        let mut pauses = Vec::new();
        let mut held = None;
        loop {
            for _ in 0..64 {
                let ok = run(&database, &procedures, &inputs.next_transaction());
                done += u64::from(ok);
                rolled_back += u64::from(!ok);
            }
            let now = env.clock.now();
            if now > end {
                break;
            }
            if snapshots > 0 && now >= next_snapshot {
                next_snapshot = now + 1_000_000_000 / snapshots;
                held = Some(database.partitions.snapshot().expect("room for a snapshot"));
                pauses.push((env.clock.now() - now) / 1000);
            }
        }
        drop(held);
        let elapsed = (env.clock.now() - start) as f64 / 1e9;
        let cpu = (albireo_env::cpu_time_ns() - cpu) as f64 / 1e9;
        pauses.sort_unstable();
        println!(
            "{:.0} per CPU second, {:.0} tps ({done} committed, {rolled_back} rolled back), snapshots: {} median {:?} us, copied {:?}",
            done as f64 / cpu,
            done as f64 / elapsed,
            pauses.len(),
            pauses.get(pauses.len() / 2),
            database.partitions.registry().counters(),
        );
    }
    pool.stop_toucher();
    touching.join().expect("the toucher ends");
}

fn run(database: &Database, procedures: &Procedures, transaction: &Transaction) -> bool {
    let p = &database.partitions;
    match transaction {
        Transaction::NewOrder(input) => match p.call(&*procedures.new_order, input) {
            Ok(result) => result.o_id > 0,
            Err(error) => {
                assert!(input.rolls_back, "{error}");
                false
            }
        },
        Transaction::Payment(input) => p.call(&*procedures.payment, input).expect("payment").c_id > 0,
        Transaction::OrderStatus(input) => p.call(&*procedures.order_status, input).expect("status").o_id > 0,
        Transaction::Delivery(input) => p.call(&*procedures.delivery, input).is_ok(),
        Transaction::StockLevel(input) => p.call(&*procedures.stock_level, input).expect("level") >= 0,
    }
}
