//! Random appends, steps, seals and restarts against a list.

use albireo_env::Env;
use albireo_redo::{Header, Kind, Log, Step, Ticket};
use albireo_testing::random_tests;
use proptest::prelude::*;

use crate::support::{Entry, Frames, config, read, reopen};

const LANES: usize = 3;
const SEGMENT_BYTES: u64 = 4096 + 2048;

#[derive(Clone, Debug)]
enum Action {
    Append {
        lane: Option<usize>,
        kind: u8,
        time_us: i64,
        payload: Vec<u8>,
    },
    Step,
    Seal,
    Prepare,
    /// Reads and goes on, after closing or as if the process had died.
    Restart {
        close: bool,
    },
}

fn action() -> impl Strategy<Value = Action> {
    let lane = prop_oneof![5 => (0..LANES).prop_map(Some), 1 => Just(None)];
    let time = prop_oneof![0..100_000i64, any::<i64>()];
    let payload = prop_oneof![
        10 => prop::collection::vec(any::<u8>(), 0..40),
        2 => prop::collection::vec(any::<u8>(), 400..3_000),
    ];
    let append = (lane, 0..128u8, time, payload).prop_map(|(lane, kind, time_us, payload)| Action::Append {
        lane,
        kind,
        time_us,
        payload,
    });
    prop_oneof![
        12 => append,
        3 => Just(Action::Step),
        1 => Just(Action::Seal),
        1 => Just(Action::Prepare),
        1 => any::<bool>().prop_map(|close| Action::Restart { close }),
    ]
}

/// What the log should hold: frames that are durable, closed, and open.
#[derive(Default)]
struct Model {
    durable: Frames,
    closed: Frames,
    open: Vec<Entry>,
}

impl Model {
    /// Records in frames, durable or closed.
    fn records(&self) -> u64 {
        self.durable.iter().chain(&self.closed).map(|(_, records)| records.len() as u64).sum()
    }

    fn next_sequence(&self) -> u64 {
        (self.durable.len() + self.closed.len()) as u64 + 1
    }

    fn close(&mut self) {
        if self.open.is_empty() {
            return;
        }
        // Between two crossing records: by lanes, each in its order.
        let mut spans = 0;
        let mut keyed: Vec<((usize, bool, u16), Entry)> = Vec::new();
        for entry in std::mem::take(&mut self.open) {
            keyed.push(((spans, entry.crossing, entry.lane), entry.clone()));
            spans += usize::from(entry.crossing);
        }
        keyed.sort_by_key(|(key, _)| *key);
        let frames = self.durable.iter().chain(&self.closed);
        let next_ordinal = 1 + frames.map(|(_, entries)| entries.len() as u64).sum::<u64>();
        let mut entries: Vec<Entry> = keyed.into_iter().map(|(_, entry)| entry).collect();
        for (ordinal, entry) in (next_ordinal..).zip(&mut entries) {
            entry.ordinal = ordinal;
        }
        self.closed.push((self.next_sequence(), entries));
    }

    fn step(&mut self) -> Option<u64> {
        if self.closed.is_empty() {
            self.close();
        }
        if self.closed.is_empty() {
            return None;
        }
        self.durable.push(self.closed.remove(0));
        Some(self.durable.len() as u64)
    }
}

fn append(log: &Log, model: &mut Model, lane: Option<usize>, header: Header, payload: &[u8]) {
    let encode = |out: &mut Vec<u8>| out.extend_from_slice(payload);
    let ticket = match lane {
        Some(lane) => log.append(lane, header, encode),
        None => log.append_crossing(header, encode),
    };
    assert_eq!(ticket.unwrap(), Ticket(model.next_sequence()));
    model.open.push(Entry {
        ordinal: 0,
        lane: lane.unwrap_or(0) as u16,
        crossing: lane.is_none(),
        kind: header.kind,
        time_us: header.time_us,
        payload: payload.to_vec(),
    });
}

fn check(log: &Log, model: &Model) {
    assert_eq!(log.durable(), model.durable.len() as u64);
    let waiting = model.closed.iter().map(|(sequence, entries)| (*sequence, entries));
    let waiting: Vec<_> = waiting.chain([(model.next_sequence(), &model.open)]).collect();
    for lane in 0..LANES {
        let last = waiting.iter().rev().find(|(_, entries)| {
            entries.iter().any(|entry| entry.crossing || usize::from(entry.lane) == lane)
        });
        assert_eq!(log.last_ticket(lane), Ticket(last.map_or(0, |(sequence, _)| *sequence)));
    }
    let empty = waiting.iter().all(|(_, entries)| entries.is_empty());
    assert_eq!(log.pending_bytes() == 0, empty);
}

random_tests! {
    #![cases(300)]

    #[test]
    fn log_read_back_is_what_was_appended_in_a_serial_order(actions in prop::collection::vec(action(), 1..80)) {
        let (env, _) = Env::simulated(7);
        let config = config(LANES, SEGMENT_BYTES);
        let mut model = Model::default();
        let (_, _, mut log) = reopen(&env, config.clone());
        for action in actions {
            match action {
                Action::Append { lane, kind, time_us, payload } => {
                    let header = Header { kind: Kind(kind), time_us };
                    append(&log, &mut model, lane, header, &payload);
                }
                Action::Step => match (log.step(), model.step()) {
                    (Step::Wrote { sequence, records, .. }, Some(expected)) => {
                        prop_assert_eq!(sequence, expected);
                        prop_assert_eq!(records as usize, model.durable.last().unwrap().1.len());
                    }
                    (step, expected) => prop_assert_eq!((step, expected), (Step::Idle, None)),
                },
                Action::Seal => {
                    model.close();
                    let sealed = log.seal();
                    prop_assert_eq!(sealed.sequence, model.next_sequence() - 1);
                    prop_assert_eq!(sealed.next_ordinal, model.records() + 1);
                }
                Action::Prepare => drop(log.prepare()),
                Action::Restart { close } => {
                    if close {
                        log.close().unwrap();
                        while model.step().is_some() {}
                    }
                    model.closed.clear();
                    model.open.clear();
                    let (frames, end, next) = reopen(&env, config.clone());
                    prop_assert_eq!(&frames, &model.durable);
                    prop_assert_eq!(end.torn, None);
                    log = next;
                }
            }
            check(&log, &model);
        }
        log.close().unwrap();
        while model.step().is_some() {}
        let (frames, end) = read(&env.disk, 0);
        prop_assert_eq!(&frames, &model.durable);
        prop_assert_eq!(end.unwrap().torn, None);
        // From any frame on, the rest is the same.
        for from in 1..=frames.len() + 1 {
            let (rest, end) = read(&env.disk, from as u64);
            prop_assert_eq!(&rest[..], &frames[from - 1..]);
            prop_assert_eq!(end.unwrap().next_sequence, frames.len() as u64 + 1);
        }
    }
}
