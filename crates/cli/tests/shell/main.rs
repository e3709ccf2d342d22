//! The shell as its users meet it: at a terminal, in pipes, with files that are none, with more rows than memory holds.
#![allow(clippy::disallowed_methods, reason = "tests look at real files, processes and threads")]

mod eviction;
mod session;
mod spill;
mod streams;
mod terminal;
