//! Seeded schedules in one thread: same seed, same run.

use std::collections::VecDeque;
use std::sync::Arc;

use albireo_base::PartitionId;
use albireo_env::Env;
use albireo_partition::{CallError, Pending, Step, SubmitError};
use albireo_storage::{DatabaseSnapshot, SnapshotScope};
use albireo_testing::{Random, test};

use crate::bank::{ACCOUNTS, Bank, Ending, OPENING, SetRate, Transfer, TransferArgs};

/// The bank as it should be.
struct Model {
    balances: Vec<i64>,
    rate: i64,
}

type Queued = (TransferArgs, Pending<i64>);

struct World {
    bank: Bank,
    transfer: Arc<Transfer>,
    model: Model,
    /// By partition, the queued calls in order.
    queued: Vec<VecDeque<Queued>>,
    /// Live snapshots and what they must show.
    snapshots: Vec<(Arc<DatabaseSnapshot>, Vec<i64>, i64)>,
    random: Random,
}

const PARTITIONS: u16 = 4;
const CAPACITY: usize = 3;

impl World {
    fn new(seed: u64) -> Self {
        let (env, _) = Env::simulated(seed);
        let bank = Bank::new(PARTITIONS, CAPACITY, &env);
        let transfer = Arc::new(Transfer(bank.account));
        let model = Model { balances: vec![OPENING; ACCOUNTS as usize], rate: 7 };
        let queued = (0..PARTITIONS).map(|_| VecDeque::new()).collect();
        let random = Random::new(seed);
        Self { bank, transfer, model, queued, snapshots: Vec::new(), random }
    }

    fn account(&mut self) -> i32 {
        self.random.below(ACCOUNTS as u64) as i32
    }

    fn args(&mut self) -> TransferArgs {
        let ending = match self.random.below(10) {
            0 => Ending::Panics,
            1 => Ending::Aborts,
            _ => Ending::Commits,
        };
        TransferArgs { from: self.account(), to: self.account(), cents: self.random.below(90) as i64, ending }
    }

    /// What the model says of a transfer; it is applied.
    fn expect(&mut self, args: &TransferArgs) -> Option<i64> {
        if args.ending != Ending::Commits {
            return None;
        }
        self.model.balances[args.from as usize] -= args.cents;
        let left = self.model.balances[args.from as usize];
        self.model.balances[args.to as usize] += args.cents;
        Some(left)
    }

    fn check(&mut self, args: &TransferArgs, result: Result<i64, CallError>) {
        let expected = self.expect(args);
        match (args.ending, result) {
            (Ending::Commits, Ok(left)) => assert_eq!(Some(left), expected),
            (Ending::Aborts, Err(CallError::Aborted(_))) => {}
            (Ending::Panics, Err(CallError::Panicked { procedure, message })) => {
                assert_eq!((procedure.as_str(), message.as_str()), ("transfer", "a bug in the procedure"));
            }
            (ending, result) => panic!("{ending:?} gave {result:?}"),
        }
    }

    fn submit(&mut self) {
        let mut args = self.args();
        // A queued call stays in its partition, so that no thread of its own is started for it.
        args.to = args.to - args.to % i32::from(PARTITIONS) + args.from % i32::from(PARTITIONS);
        let partition = (args.from % i32::from(PARTITIONS)) as usize;
        match self.bank.partitions.try_submit(Arc::clone(&self.transfer), args) {
            Ok(pending) => self.queued[partition].push_back((args, pending)),
            Err(SubmitError::Full { partition: full, capacity }) => {
                assert_eq!((full as usize, capacity), (partition, CAPACITY));
                assert_eq!(self.queued[partition].len(), CAPACITY, "refused only when full");
            }
            Err(other) => panic!("{other}"),
        }
    }

    fn step(&mut self) {
        let partition = self.random.below(PARTITIONS.into()) as usize;
        let executor = self.bank.partitions.executor(PartitionId(partition as u16));
        match (executor.step(), self.queued[partition].pop_front()) {
            (Step::Ran, Some((args, pending))) => {
                let result = pending.try_take().expect("the step ran the oldest call");
                self.check(&args, result);
            }
            (Step::Idle, None) => {}
            (step, queued) => panic!("{step:?} with {:?} queued", queued.map(|(args, _)| args)),
        }
    }

    fn act(&mut self) {
        match self.random.below(12) {
            0..4 => self.submit(),
            4..8 => self.step(),
            8 => {
                // The caller's thread runs it, crossing or not.
                let args = self.args();
                let result = self.bank.partitions.call(&*self.transfer, &args);
                self.check(&args, result);
            }
            9 => {
                self.model.rate = self.random.below(1_000) as i64;
                let set = SetRate(self.bank.rates, self.bank.rate);
                self.bank.partitions.call(&set, &self.model.rate).unwrap();
            }
            10 => {
                let snapshot = self.bank.partitions.snapshot(&SnapshotScope::All).unwrap();
                self.snapshots.push((snapshot, self.model.balances.clone(), self.model.rate));
            }
            _ if !self.snapshots.is_empty() => {
                let victim = self.random.below(self.snapshots.len() as u64) as usize;
                self.snapshots.swap_remove(victim);
            }
            _ => {}
        }
    }

    fn check_snapshots(&self) {
        for (snapshot, balances, rate) in &self.snapshots {
            let shown: Vec<i64> = Bank::balances(snapshot).into_iter().map(|(_, cents)| cents).collect();
            assert_eq!(&shown, balances);
            assert_eq!(Bank::rate(snapshot), *rate);
        }
    }
}

#[test]
fn seeded_schedule_keeps_every_snapshot_and_every_result() {
    test!().for_each_seed(1..61, |seed| {
        let mut world = World::new(seed);
        for turn in 0..300 {
            world.act();
            if turn % 25 == 0 {
                world.check_snapshots();
            }
        }
        world.check_snapshots();
        let total: i64 = world.model.balances.iter().sum();
        assert_eq!(total, i64::from(ACCOUNTS) * OPENING, "money is neither made nor lost");
        let pool = world.bank.pool.clone();
        drop(world);
        assert_eq!(pool.in_use_bytes(), 0, "every block comes back");
    });
}

#[test]
fn closing_tells_calls_still_queued() {
    let (env, _) = Env::simulated(1);
    let bank = Bank::new(1, CAPACITY, &env);
    let transfer = Arc::new(Transfer(bank.account));
    let args = TransferArgs { from: 1, to: 2, cents: 5, ending: Ending::Commits };
    let pending = bank.partitions.try_submit(Arc::clone(&transfer), args).unwrap();
    bank.partitions.close();
    assert_eq!(bank.partitions.try_submit(transfer, args).err(), Some(SubmitError::Closed));
    bank.partitions.drain();
    assert!(matches!(pending.wait(), Err(CallError::Closed)));
}
