//! Archives of random tables: written, read back, in part written again, thrown away, crashed into and damaged.

mod crash;
mod damage;
mod disk;
mod frozen;
mod limits;
mod python;
mod retention;
mod round_trip;
#[allow(dead_code, reason = "what other tests of tables use besides")]
#[path = "../../../storage/tests/model/shape.rs"]
mod shape;
mod world;
