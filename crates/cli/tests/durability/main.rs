//! A database in a directory, as its users meet it: the commands for it, processes that are killed, a disk
//! that is full.
#![allow(clippy::disallowed_methods, reason = "tests look at real files, processes and clocks")]

mod backup;
mod check;
mod directory;
mod full;
mod kill;
mod mounted;
mod tools;
mod verify;
mod writer;
