//! A bank: accounts spread over partitions, a shared table of rates. Money moves; its sum does not.

use std::sync::Arc;

use albireo_base::{ColumnId, SqlState, SqlType, TableId, Value};
use albireo_env::Env;
use albireo_partition::{
    Abort, Call, Partitions, PartitionsConfig, Procedure, Route, TableHandle, Transaction,
};
use albireo_storage::{
    BlockPool, BudgetPolicy, Col, ColumnSpec, DatabaseSnapshot, IndexKind, IndexRef, IndexSpec, LayoutChoice,
    ShortKey, SnapshotRegistry, Table, TableSpec,
};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;

pub const ACCOUNTS: i32 = 40;
pub const OPENING: i64 = 1_000;

pub struct Bank {
    pub partitions: Arc<Partitions>,
    pub pool: BlockPool,
    pub account: AccountTable,
    pub rates: TableHandle,
    pub rate: Col<i64>,
}

#[derive(Clone, Copy)]
pub struct AccountTable {
    pub table: TableHandle,
    pub by_id: IndexRef,
    pub cents: Col<i64>,
}

fn spec(id: u32, name: &str, partitioned: bool) -> TableSpec {
    let column = |name: &str, ty| ColumnSpec { name: name.to_owned(), ty, nullable: false };
    TableSpec {
        id: TableId(id),
        name: name.to_owned(),
        columns: vec![column("id", SqlType::Integer), column("cents", SqlType::BigInt)],
        layout: LayoutChoice::Columns,
        indexes: vec![IndexSpec {
            name: "pkey".to_owned(),
            columns: vec![ColumnId(0)],
            unique: true,
            kind: IndexKind::Hash,
        }],
        partition_by: partitioned.then_some(ColumnId(0)),
        checks: Vec::new(),
    }
}

impl Bank {
    pub fn new(partitions: u16, queue_capacity: usize, env: &Env) -> Self {
        let pool = BlockPool::new(256 << 20);
        let registry = Arc::new(SnapshotRegistry::new(pool.clone(), 64 << 20, BudgetPolicy::RefuseNew));
        let partitions = Partitions::new(PartitionsConfig { partitions, queue_capacity }, registry, env);
        let create = |id, name: &str, partitioned| {
            let spec = spec(id, name, partitioned);
            let layout = Table::layout_of(&spec).unwrap();
            partitions.exclusively(|all| all.create_table(spec, &layout))
        };
        let (table, rates) = (create(1, "account", true), create(2, "rates", false));
        let home = albireo_base::PartitionId(0);
        let account = partitions.with_table(table, home, |t| AccountTable {
            table,
            by_id: t.index("pkey").unwrap(),
            cents: t.column("cents").unwrap(),
        });
        let rate = partitions.with_table(rates, home, |t| t.column("cents").unwrap());
        partitions
            .crossing(&Call::new(Route::Crossing, "open"), |tx| {
                for id in 0..ACCOUNTS {
                    let site = tx.site_of(id.into())?;
                    tx.insert_values_at(site, table, &[Value::Integer(id), Value::BigInt(OPENING)])?;
                }
                let home = tx.home();
                tx.insert_values_at(home, rates, &[Value::Integer(1), Value::BigInt(7)]).map(|_| ())
            })
            .unwrap();
        Self { partitions: Arc::new(partitions), pool, account, rates, rate }
    }

    /// All balances by account, as a snapshot shows them.
    pub fn balances(snapshot: &Arc<DatabaseSnapshot>) -> Vec<(i32, i64)> {
        let view = snapshot.table(TableId(1)).unwrap();
        let mut balances = Vec::new();
        for i in 0..view.chunk_count() {
            let chunk = view.chunk(i);
            let live = chunk.live();
            let ids = chunk.column(ColumnId(0));
            let cents = chunk.column(ColumnId(1));
            let ids = ids.as_primitive::<arrow_array::types::Int32Type>();
            let cents = cents.as_primitive::<Int64Type>();
            for slot in 0..chunk.slots() {
                if live.as_ref().is_none_or(|live| live.value(slot)) {
                    balances.push((ids.value(slot), cents.value(slot)));
                }
            }
        }
        balances.sort_unstable();
        assert_eq!(balances.len(), view.row_count() as usize);
        balances
    }

    /// The one rate, as a snapshot shows it.
    pub fn rate(snapshot: &Arc<DatabaseSnapshot>) -> i64 {
        let view = snapshot.table(TableId(2)).unwrap();
        view.chunk(0).raw_i64(ColumnId(1)).unwrap()[0]
    }
}

/// How a transfer ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    Commits,
    /// After the first account was charged.
    Aborts,
    /// After both were changed.
    Panics,
}

/// Moves money between accounts, perhaps of two partitions.
pub struct Transfer(pub AccountTable);

#[derive(Clone, Copy, Debug)]
pub struct TransferArgs {
    pub from: i32,
    pub to: i32,
    pub cents: i64,
    pub ending: Ending,
}

impl Procedure for Transfer {
    type Args = TransferArgs;
    type Output = i64;

    fn name(&self) -> &str {
        "transfer"
    }

    fn route(&self, args: &TransferArgs) -> Route {
        Route::Key(args.from.into())
    }

    fn run(&self, tx: &mut Transaction, args: &TransferArgs) -> Result<i64, Abort> {
        let AccountTable { table, by_id, cents } = self.0;
        let home = tx.site_of(args.from.into())?;
        let from =
            tx.table_at(home, table).find(by_id, ShortKey::new().i32(args.from)).expect("the account exists");
        let left = tx.update_at(home, table, from, |row| row.modify(cents, |old| old - args.cents))?;
        if args.ending == Ending::Aborts {
            return Err(Abort::raise(SqlState::RAISE_EXCEPTION, "changed its mind"));
        }
        let site = tx.site_of(args.to.into())?;
        let to =
            tx.table_at(site, table).find(by_id, ShortKey::new().i32(args.to)).expect("the account exists");
        tx.update_at(site, table, to, |row| row.modify(cents, |old| old + args.cents))?;
        assert!(args.ending != Ending::Panics, "a bug in the procedure");
        Ok(left)
    }
}

/// Sets the shared rate: every partition reads it, only a crossing transaction writes it.
pub struct SetRate(pub TableHandle, pub Col<i64>);

impl Procedure for SetRate {
    type Args = i64;
    type Output = ();

    fn name(&self) -> &str {
        "set_rate"
    }

    fn route(&self, _: &i64) -> Route {
        // Wrong on purpose with several partitions: it must be found out and run again.
        Route::Key(0)
    }

    fn run(&self, tx: &mut Transaction, rate: &i64) -> Result<(), Abort> {
        tx.update(self.0, albireo_base::Tid(0), |row| row.set(self.1, *rate))
    }
}
