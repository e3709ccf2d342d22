//! What users may rely on, above all when something goes wrong: a clear error, nothing half done,
//! and a database that goes on.

mod advisory_locks;
mod archiving;
mod blocks;
mod bulk;
mod changes;
mod classes;
mod commands;
mod conditions;
mod constraints;
mod copy;
mod copy_bulk;
mod copy_formats;
mod crafted;
mod definitions;
mod durable;
mod errors;
mod files;
mod frozen;
mod headroom;
mod histories;
mod in_place;
mod limits;
mod open_transactions;
mod partitions;
mod progress;
mod recovery;
mod restore;
mod routines;
mod row_locks;
mod row_locks_random;
mod sessions;
mod statements;
mod support;
mod trials;
mod waiting;
