//! Settings of databases that the program opens.

use crate::args::MemoryArgs;
use albireo::Config;

/// As a program that embeds a database has them, with memory limits as the command line says; the benchmarks'
/// procedures are known, so that what a benchmark has left can be opened.
pub fn config(memory: &MemoryArgs) -> Config {
    Config { procedures: albireo_bench::tpcc::procedures::logged(), ..memory.config() }
}
