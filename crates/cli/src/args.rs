//! What can be said on the command line.

mod database;
mod help;
mod memory;
mod tools;

use albireo::{SqlType, Value};
use albireo_bench::ch::queries::Selection;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::str::FromStr;

pub use database::{DatabaseArgs, EvictionArg};
use help::flowing;
pub use memory::MemoryArgs;
pub use tools::{ArchiveArgs, BackupArgs, RestoreArgs, VerifyArgs};

/// A main-memory SQL database: transactions and analytics on the same live data.
///
/// Transactions run one after another on a thread that owns the data, at full speed and without
/// locks; every analytical query sees a consistent snapshot of that data and does not slow them.
#[derive(Debug, Parser)]
#[command(name = "albireo", version, after_help = flowing(help::EXAMPLES), subcommand_required = true)]
#[command(arg_required_else_help = true, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// The command line of this process; an invalid one ends it with status 2.
    pub fn of_process() -> Self {
        let cli = Self::parse();
        cli.check().unwrap_or_else(|error| error.exit());
        cli
    }

    /// Refuses options that are known from psql and would promise what is not there, and eviction without a directory.
    fn check(&self) -> Result<(), clap::Error> {
        let (kind, text) = match &self.command {
            Command::Shell(args) if args.single_transaction => (
                ErrorKind::ArgumentConflict,
                "--single-transaction (-1) is not supported yet: there are no transactions of several statements; \
                 each statement of a script is a transaction of its own",
            ),
            Command::Shell(args) if args.data.is_none() && args.database.evicts_into_its_own() => (
                ErrorKind::MissingRequiredArgument,
                "--eviction on needs a directory for rows that leave memory, and a database in memory has none: name \
                 one with --eviction-directory DIRECTORY, or keep the database in one with --data DIRECTORY",
            ),
            Command::Restore(args) if args.until.is_some() && args.database.evicts_into_its_own() => (
                ErrorKind::MissingRequiredArgument,
                "--eviction on needs a directory for rows that leave memory, and --until recovers them in memory \
                 first: name one with --eviction-directory DIRECTORY",
            ),
            _ => return Ok(()),
        };
        Err(Self::command().error(kind, text))
    }
}

/// The program's commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a benchmark: transactions alone, with queries on the same data, snapshots, or recovery
    #[command(subcommand)]
    Bench(Bench),
    /// Run SQL from the terminal, a file or a pipe, in a database in memory or in a directory
    #[command(after_help = flowing(help::SHELL))]
    Shell(ShellArgs),
    /// Run tests of procedures, each in a transaction that is rolled back
    #[command(after_help = flowing(help::TEST))]
    Test(TestArgs),
    /// Print the changes in a redo log, one per line
    #[command(after_help = flowing(help::LOG))]
    Log(LogArgs),
    /// Check the files of a database or of a backup for damage
    #[command(after_help = flowing(help::VERIFY))]
    Verify(VerifyArgs),
    /// Write an archive of a database that is not open, and remove what is no longer needed
    #[command(after_help = flowing(help::ARCHIVE))]
    Archive(ArchiveArgs),
    /// Back up a database that is not open, to a directory or a file
    #[command(after_help = flowing(help::BACKUP))]
    Backup(BackupArgs),
    /// Create a database from a backup, or from another database as of an earlier time
    #[command(after_help = flowing(help::RESTORE))]
    Restore(RestoreArgs),
}

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// TPC-C: the five transactions without think time
    Tpcc(BenchArgs),
    /// CH-benCHmark: TPC-C, in turns alone and with analytical queries on fresh snapshots
    Ch(ChArgs),
    /// What snapshots cost: the pause to take one, and the blocks copied while it lives
    Snapshot(BenchArgs),
    /// What the redo log and archives cost, and how fast recovery is; in the new directory --data
    Recovery(BenchArgs),
    /// How long updates of single rows wait beside statements over a whole table
    Stall(StallArgs),
    /// What transactions over several partitions cost, themselves and others
    Crossing(CrossingArgs),
    /// What open transactions cost procedures: TPC-C alone, beside ten idle ones and beside ten that write
    Open(OpenArgs),
    /// What changes of rows cost queries that read them: on snapshots, and on live rows
    Versions(VersionsArgs),
    /// What freezing costs transactions, what frozen rows take, and what reading and changing them costs
    Compaction(CompactionArgs),
    /// What it costs that data is larger than memory: TPC-C, transactions beside one that waits for a file, and queries
    LargerThanMemory(LargerArgs),
}

/// Options of `bench stall`.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct StallArgs {
    /// Rows of the table; each is about 100 bytes
    #[arg(long, default_value_t = 2_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1_000..=1_000_000_000))]
    pub rows: u64,
    /// Milliseconds for which updates run alone before each statement
    #[arg(long, default_value_t = 2_000, value_name = "MS", value_parser = clap::value_parser!(u32).range(10..=3_600_000))]
    pub milliseconds: u32,
    /// Run only statements whose names contain this
    #[arg(long, default_value = "", value_name = "TEXT", hide_default_value = true)]
    pub only: String,
    /// Let the database take memory from the system as it grows, and not before
    #[arg(long)]
    pub new_memory: bool,
    /// How often all of it is run, each time on a new table; the JSON shows medians
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub turns: u32,
    /// Number of partitions over which the rows are spread
    #[arg(long, default_value_t = 1, value_name = "P", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub partitions: u16,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Table)]
    pub format: ReportFormat,
    /// How much memory the database may use.
    #[command(flatten)]
    pub memory: MemoryArgs,
}

/// Options of `bench open`.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct OpenArgs {
    /// Warehouses; each is about 100 MB
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(i16).range(1..))]
    pub warehouses: i16,
    /// How often each of the three is measured; the median counts
    #[arg(long, default_value_t = 11, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub turns: u32,
    /// Milliseconds of each
    #[arg(long, default_value_t = 500, value_name = "MS", value_parser = clap::value_parser!(u32).range(10..=3_600_000))]
    pub milliseconds: u32,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Table)]
    pub format: ReportFormat,
    /// How much memory the database may use.
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Few rows: for tests
    #[arg(long, hide = true)]
    pub small: bool,
}

/// Options of `bench versions`.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct VersionsArgs {
    /// Rows of LINEITEM, each about 150 bytes; ORDERS has a quarter, PART a thirtieth
    #[arg(long, default_value_t = 600_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1_000..=1_000_000_000))]
    pub rows: u64,
    /// Small transactions of each measurement of throughput
    #[arg(long, default_value_t = 500_000, value_name = "N", value_parser = clap::value_parser!(u64).range(100..=1_000_000_000))]
    pub transactions: u64,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Table)]
    pub format: ReportFormat,
    /// How much memory the database may use.
    #[command(flatten)]
    pub memory: MemoryArgs,
}

/// Options of `bench compaction`.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct CompactionArgs {
    /// Warehouses; each is about 100 MB, and there are two databases. With --paper-sizes, 12 if nothing is said
    #[arg(long, default_value_t = 5, default_value_if("paper_sizes", "true", Some("12")), value_name = "N",
        value_parser = clap::value_parser!(i16).range(1..))]
    pub warehouses: i16,
    /// Seconds for which TPC-C runs before rows are frozen
    #[arg(long, default_value_t = 3, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub seconds: u32,
    /// How often what is compared is measured; the median counts. What takes less than a second is measured more often,
    /// and scans in three tables
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub turns: u32,
    /// Run only what contains this: loss of throughput, observers, observers compared, archives, prefix scans, instant
    /// compression, sums of runs, updates in sequence, freezing, memory, queries, point SELECT, random update, scan with
    /// invalid rows, sizes
    #[arg(long, default_value = "", value_name = "TEXT", hide_default_value = true)]
    pub only: String,
    /// As many rows as in the paper, where it says how many: up to 500 million, and 18.3 million order lines that are frozen at
    /// once. Needs 24 GB of memory, and hours with more than one of --turns
    #[arg(long, conflicts_with = "small")]
    pub paper_sizes: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Table)]
    pub format: ReportFormat,
    /// How much memory each of the databases may use.
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Few rows and few transactions: for tests
    #[arg(long, hide = true)]
    pub small: bool,
}

/// Options of `bench larger-than-memory`.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct LargerArgs {
    /// Warehouses; each is about 100 MB
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(i16).range(1..))]
    pub warehouses: i16,
    /// Megabytes that the rows of TPC-C take, all in memory and hot, when it is measured; its indexes come on top. With few,
    /// the rows that transactions still use do not fit into the limit
    #[arg(long, default_value_t = 3_000, value_name = "MB", value_parser = clap::value_parser!(u64).range(16..=1_000_000))]
    pub megabytes: u64,
    /// How often what is compared is measured; the median counts
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub turns: u32,
    /// Transactions that make the orders that queries read
    #[arg(long, default_value_t = 3_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub transactions: u64,
    /// Directory for rows that leave memory; by default the system's for temporary files
    #[arg(long, value_name = "PATH")]
    pub directory: Option<PathBuf>,
    /// Run only what contains this: TPC-C, tenfold, fetches, queries
    #[arg(long, default_value = "", value_name = "TEXT", hide_default_value = true)]
    pub only: String,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Table)]
    pub format: ReportFormat,
    /// How much memory the databases may use that are not limited for the measurement.
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Few rows and few transactions: for tests
    #[arg(long, hide = true)]
    pub small: bool,
}

/// Options of `bench crossing`.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct CrossingArgs {
    /// Milliseconds of each of its 20 measurements
    #[arg(long, default_value_t = 1_000, value_name = "MS", value_parser = clap::value_parser!(u32).range(10..=3_600_000))]
    pub milliseconds: u32,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Table)]
    pub format: ReportFormat,
    /// How much memory the databases may use.
    #[command(flatten)]
    pub memory: MemoryArgs,
}

/// Options of every benchmark.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct BenchArgs {
    /// Warehouses; each is about 100 MB
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(i16).range(1..))]
    pub warehouses: i16,
    /// Number of partitions, each with its own thread; warehouses are spread over them
    #[arg(long, default_value_t = 1, value_name = "P", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub partitions: u16,
    /// Seconds to measure in each phase: transactions alone, transactions with queries, each rate of snapshots
    #[arg(long, default_value_t = 20, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub seconds: u32,
    /// How transactions run: `interactive` is statement by statement, between BEGIN and COMMIT, instead of --procedures; a
    /// number runs so many of each partition in each phase, instead of seconds
    #[arg(long, value_name = "interactive|N")]
    pub transactions: Option<TransactionsArg>,
    /// Layout of rows in memory
    #[arg(long, value_enum, default_value_t = LayoutArg::Groups)]
    pub layout: LayoutArg,
    /// Which transactions
    #[arg(long, value_enum, default_value_t = MixArg::Spec)]
    pub mix: MixArg,
    /// Language of the transactions
    #[arg(long, value_enum, default_value_t = ProceduresArg::Plpgsql)]
    pub procedures: ProceduresArg,
    /// Redo log
    #[arg(long, value_enum, default_value_t = LogArg::Off)]
    pub log: LogArg,
    /// Directory for the database, for --log group and --log async; it should be new
    #[arg(long, value_name = "PATH")]
    pub data: Option<PathBuf>,
    /// Transactions in each partition that may wait for the disk at the same time
    #[arg(long, default_value_t = 1024, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub in_flight: u32,
    /// Seed of data and transactions: the same seed gives the same rows and inputs
    #[arg(long, default_value_t = 42, value_name = "X")]
    pub seed: u64,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Table)]
    pub format: ReportFormat,
    /// How much memory the database may use.
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// A fiftieth of the specification's rows: for tests of the program, not for measuring
    #[arg(long, hide = true)]
    pub small: bool,
}

/// Options of `bench ch`.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct ChArgs {
    /// Options it shares with the others.
    #[command(flatten)]
    pub bench: BenchArgs,
    /// Streams of queries beside the transactions
    #[arg(long, default_value_t = 1, value_name = "Q", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub query_streams: u16,
    /// Queries: all, or a list of numbers and top10, such as 1,6,top10
    #[arg(long, default_value = "all", value_name = "all|LIST")]
    pub queries: Selection,
}

/// How rows lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LayoutArg {
    /// Every column by itself
    Column,
    /// Every row by itself
    Row,
    /// Columns that transactions use together lie together
    Groups,
}

/// What becomes of the redo log's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogArg {
    /// No redo log
    Off,
    /// Records are made and discarded: the cost of logging without the disk
    Null,
    /// Records are written to disk, and nobody waits for them
    Async,
    /// Records are written to disk in groups, and a transaction counts once its record is durable
    Group,
}

/// How transactions run, or how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionsArg {
    /// Statement by statement.
    Interactive,
    /// So many of each partition in each phase.
    Count(u64),
}

impl FromStr for TransactionsArg {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match (text, text.parse()) {
            ("interactive", _) => Ok(Self::Interactive),
            (_, Ok(count)) if count > 0 => Ok(Self::Count(count)),
            _ => Err("neither `interactive` nor a number of transactions"),
        }
    }
}

/// Which transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MixArg {
    /// All five in the specification's ratio, 45:43:4:4:4
    Spec,
    /// New-Order and Payment only
    Two,
}

/// What transactions are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProceduresArg {
    /// Rust, compiled with the program
    Native,
    /// PL/pgSQL, the same source as in PostgreSQL, compiled to machine code
    Plpgsql,
    /// The same PL/pgSQL without machine code
    Interpreted,
    /// No procedures: statement by statement, between BEGIN and COMMIT
    Statements,
}

/// How a benchmark's result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// One screen for people
    Table,
    /// One object for programs
    Json,
}

/// Options of `shell`.
#[derive(Args, Clone, Debug, Default)]
pub struct ShellArgs {
    /// Script to run; without it and without -c, statements come from standard input
    pub file: Option<PathBuf>,
    /// SQL to run after FILE; may be repeated
    #[arg(short, long = "command", value_name = "SQL")]
    pub commands: Vec<String>,
    /// Read standard input, too, after FILE and -c
    #[arg(short, long)]
    pub interactive: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Directory of the database, created if missing; without it the database is in memory and lost on exit
    #[arg(short, long, value_name = "DIRECTORY")]
    pub data: Option<PathBuf>,
    /// Number of partitions, each with its own thread; by default that of the database in DIRECTORY, else 1
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub partitions: Option<u16>,
    /// How the database is opened.
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// As psql spells it; refused.
    #[arg(short = '1', long, hide = true)]
    pub single_transaction: bool,
}

/// Options of `log`.
#[derive(Args, Clone, Debug)]
pub struct LogArgs {
    /// Directory of a database, the directory `log` in it, or a backup
    pub path: PathBuf,
    /// Only changes of this table: NAME, or SCHEMA.NAME outside of public
    #[arg(long, value_name = "NAME", conflicts_with = "procedure")]
    pub table: Option<String>,
    /// Only calls and definitions of this function or procedure
    #[arg(long, value_name = "NAME")]
    pub procedure: Option<String>,
    /// First record or time to print
    #[arg(long, value_name = "RECORD|TIME")]
    pub from: Option<Moment>,
    /// Last record or time to print
    #[arg(long, value_name = "RECORD|TIME")]
    pub until: Option<Moment>,
    /// Stop after this many records
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Rows to print of each record; further rows are counted
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub rows: u64,
    /// Print all rows of each record
    #[arg(long, conflicts_with = "rows")]
    pub all: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: LogFormat,
    /// Continue after a record that cannot be decoded
    #[arg(long)]
    pub skip_damage: bool,
}

/// A place in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A record by its number.
    Record(u64),
    /// Microseconds since 1970.
    Time(i64),
}

impl std::str::FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(record) = text.parse() {
            return Ok(Self::Record(record));
        }
        match Value::parse(text, SqlType::TimestampTz) {
            Ok(Value::TimestampTz(time_us)) => Ok(Self::Time(time_us)),
            _ => Err("neither the number of a record nor a time such as 2026-01-31T12:00:00.5Z".to_owned()),
        }
    }
}

/// How `log` prints records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people
    #[default]
    Text,
    /// An object on each line
    Json,
}

/// Options of `test`.
#[derive(Args, Clone, Debug)]
pub struct TestArgs {
    /// Test files; each runs in its own empty database in memory
    #[arg(required = true, value_name = "FILE.sql")]
    pub files: Vec<PathBuf>,
    /// Script to run before each of them, such as a schema or procedures; may be repeated
    #[arg(long, value_name = "FILE.sql")]
    pub load: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Table)]
    pub format: ReportFormat,
    /// Number of partitions of each database
    #[arg(long, default_value_t = 1, value_name = "P", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub partitions: u16,
}

/// How the shell prints results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables drawn with lines
    #[default]
    Box,
    /// Comma-separated values with a header; NULL is empty, the empty string is ""
    Csv,
    /// An array with one object per row
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Command, clap::Error> {
        let cli = Cli::try_parse_from(line.split_whitespace())?;
        cli.check().map(|()| cli.command)
    }

    #[test]
    fn definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn bench_ch_without_options_has_the_documented_defaults() {
        let Ok(Command::Bench(Bench::Ch(args))) = parse("albireo bench ch") else { panic!("must parse") };
        let bench = BenchArgs {
            warehouses: 5,
            partitions: 1,
            seconds: 20,
            transactions: None,
            layout: LayoutArg::Groups,
            mix: MixArg::Spec,
            procedures: ProceduresArg::Plpgsql,
            log: LogArg::Off,
            data: None,
            in_flight: 1024,
            seed: 42,
            format: ReportFormat::Table,
            memory: MemoryArgs::default(),
            small: false,
        };
        assert_eq!(args, ChArgs { bench, query_streams: 1, queries: Selection::all() });
    }

    #[test]
    fn bench_compaction_with_the_sizes_of_the_paper_has_its_warehouses() {
        let of = |line: &str| match parse(line) {
            Ok(Command::Bench(Bench::Compaction(args))) => (args.warehouses, args.paper_sizes),
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(of("albireo bench compaction"), (5, false));
        assert_eq!(of("albireo bench compaction --paper-sizes"), (12, true));
        assert_eq!(of("albireo bench compaction --paper-sizes --warehouses 3"), (3, true));
        assert!(parse("albireo bench compaction --paper-sizes --small").is_err());
    }

    #[test]
    fn bench_ch_takes_every_option_of_the_contract() {
        let line = "albireo bench ch --warehouses 2 --partitions 2 --seconds 3 --query-streams 4 \
                    --queries 1,6,12 --layout column --mix two --seed 7 --format json";
        let Ok(Command::Bench(Bench::Ch(args))) = parse(line) else { panic!("must parse") };
        let names: Vec<_> = args.queries.queries().iter().map(|query| query.name).collect();
        assert_eq!(names, ["Q1", "Q6", "Q12"]);
        assert_eq!((args.bench.layout, args.bench.mix), (LayoutArg::Column, MixArg::Two));
        assert_eq!((args.query_streams, args.bench.format), (4, ReportFormat::Json));
    }

    #[test]
    fn values_out_of_range_are_refused_as_usage_errors() {
        for line in [
            "albireo bench ch --queries 0",
            "albireo bench ch --query-streams 0",
            "albireo bench ch --queries 23",
            "albireo bench ch --queries top11",
            "albireo bench ch --warehouses 0",
            "albireo bench tpcc --seconds 0",
            "albireo bench tpcc --queries all",
            "albireo bench tpcc --layout diagonal",
            "albireo shell --format xml",
            "albireo shell -1 schema.sql",
            "albireo shell --eviction auto --data bank",
            "albireo shell --eviction on",
            "albireo restore bank copy --until 5 --eviction on",
            "albireo bench tpcc --eviction on",
            "albireo shell --single-transaction schema.sql",
            "albireo fly",
            "albireo test",
            "albireo log",
            "albireo log data --from yesterday",
            "albireo log data --table a --procedure b",
            "albireo log data --rows 5 --all",
            "albireo verify data --format xml",
            "albireo archive data --keep 0",
            "albireo archive data --limit-rate 0",
            "albireo backup data",
            "albireo restore backup",
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
        }
    }

    #[test]
    fn single_transaction_is_refused_with_the_reason() {
        let said = parse("albireo shell -1 schema.sql").unwrap_err().to_string();
        assert!(said.contains("each statement of a script is a transaction of its own"), "{said}");
    }

    #[test]
    fn eviction_is_accepted_where_there_is_a_directory_and_refused_with_what_to_do() {
        for line in [
            "albireo shell --data bank --eviction on",
            "albireo shell --eviction off",
            "albireo shell --eviction-directory cold",
            "albireo shell --eviction on --eviction-directory cold",
            "albireo archive bank --eviction on",
            "albireo backup bank bank.tar --eviction on",
            "albireo restore bank.tar copy --eviction on",
            "albireo restore bank copy --until 5 --eviction-directory cold",
        ] {
            assert!(parse(line).is_ok(), "{line}");
        }
        for line in ["albireo shell --eviction on", "albireo restore bank copy --until 5 --eviction on"] {
            let said = parse(line).unwrap_err().to_string();
            assert!(said.contains("--eviction-directory DIRECTORY"), "{said}");
        }
    }

    #[test]
    fn places_in_a_log_are_records_or_times() {
        let line = "albireo log data --from 17 --until 1970-01-01T00:00:01.5Z";
        let Ok(Command::Log(args)) = parse(line) else { panic!("must parse") };
        assert_eq!((args.from, args.until), (Some(Moment::Record(17)), Some(Moment::Time(1_500_000))));
    }

    /// Documents drift; the program that they describe is the judge.
    #[test]
    fn commands_in_the_documents_parse() {
        let documents =
            [include_str!("../../../README.md"), include_str!("../../../CONTRIBUTING.md"), help::EXAMPLES];
        let mut checked = 0;
        for line in documents.iter().flat_map(|document| document.lines()) {
            let line = line.trim().trim_start_matches("$ ");
            let line = line.rsplit(" | ").next().unwrap_or(line);
            let line = line.split(" #").next().unwrap_or(line).split(" > ").next().unwrap_or(line);
            let arguments = line
                .strip_prefix("cargo run --release -- ")
                .or_else(|| line.strip_prefix("albireo ").filter(|rest| !rest.contains('<')));
            if let Some(arguments) = arguments {
                // A quoted argument is one word; that it has blanks does not matter here.
                let quoted = arguments.split('"').enumerate();
                let arguments: Vec<String> = quoted
                    .map(
                        |(index, part)| if index % 2 == 1 { part.replace(' ', "_") } else { part.to_owned() },
                    )
                    .collect();
                let line = format!("albireo {}", arguments.concat());
                parse(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
                checked += 1;
            }
        }
        assert!(checked >= 10, "found {checked} commands only");
    }
}
