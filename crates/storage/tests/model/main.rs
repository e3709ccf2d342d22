//! Tables against a naive model: random operations, snapshots at any time, memory that runs out,
//! readers on other threads.

mod append;
mod cells;
mod check;
mod concurrent;
mod cooling;
mod evicting;
mod freezing;
mod ghosts;
mod large;
mod limits;
mod load;
mod random;
mod reads;
mod rewrites;
mod shape;
mod sharing;
mod tuples;
mod world;
