//! Executors, the barrier, crossing transactions and snapshots: stepped by a seeded scheduler in
//! one thread (`schedules`), and by real threads (`threads`), against the same bank.

mod bank;
mod bulk;
mod schedules;
mod several;
mod threads;
