//! Settings of databases that the program opens.

use albireo::Config;

/// As a program that embeds a database has them; the benchmarks' procedures are known, so that what a benchmark
/// has left can be opened.
pub fn config() -> Config {
    Config { procedures: albireo_bench::tpcc::procedures::logged(), ..Config::default() }
}
