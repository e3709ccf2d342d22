//! Statements on tables in memory. Expected rows are PostgreSQL 15's.

mod changes;
mod paths;
mod queries;
mod world;

use world::World;

/// Runs statements and compares their results.
fn check(world: &mut World, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(world.run(text), *expected, "{text}");
    }
}
