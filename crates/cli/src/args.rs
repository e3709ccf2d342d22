//! What can be said on the command line.

mod memory;
mod tools;

use albireo::{SqlType, Value};
use albireo_bench::ch::queries::Selection;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

pub use memory::MemoryArgs;
pub use tools::{ArchiveArgs, BackupArgs, RestoreArgs, VerifyArgs};

/// A main-memory SQL database: transactions and analytics on the same live data.
///
/// Transactions run one after another on a thread that owns the data, at full speed and without
/// locks; every analytical query sees a consistent snapshot of that data and does not slow them.
#[derive(Debug, Parser)]
#[command(name = "albireo", version, after_help = EXAMPLES, subcommand_required = true)]
#[command(arg_required_else_help = true, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  albireo shell
      type SQL; \\? lists what else the shell knows, \\q leaves
  albireo shell schema.sql
      run a file; at the first statement that fails, say where and leave with status 3
  echo \"SELECT 40 + 2 AS answer\" | albireo shell --format json
      run what comes from a pipe
  albireo bench ch
      TPC-C transactions and CH-benCHmark queries on the same data, 5 warehouses, 20 seconds
  albireo bench tpcc --warehouses 10 --seconds 60 --mix two --format json > result.json
      transactions only; one JSON object on standard output, progress on standard error
  albireo test bank.test.sql --load bank.sql
      tests of procedures, each in a transaction that is rolled back
  albireo shell --data bank
      SQL on the database that is kept in the directory bank, which is made if it is not there
  albireo log bank --table account --limit 10
      what transactions wrote to a table, from the redo log of that database
  albireo verify bank
      whether its archives and its log are sound
  albireo backup bank bank.tar
      a copy of that database that needs nothing but itself
  albireo restore bank.tar bank2
      a database made of the copy
  albireo restore bank bank-before --until 2026-01-31T12:00:00Z
      a new database of what that one was then

Exit status: 0 all went well; 1 a benchmark failed or found the data inconsistent, a test failed, or
files are damaged or cannot be read; 2 the command line makes no sense; 3 a statement of a script failed; 130 interrupted by Ctrl-C.";

impl Cli {
    /// The command line of this process; one that makes no sense ends it with status 2.
    pub fn of_process() -> Self {
        let cli = Self::parse();
        cli.check().unwrap_or_else(|error| error.exit());
        cli
    }

    /// Refuses options that are known from psql and would promise what is not there.
    fn check(&self) -> Result<(), clap::Error> {
        match &self.command {
            Command::Shell(args) if args.single_transaction => {
                let text = "--single-transaction (-1) is not supported yet: there are no transactions of several \
                            statements; each statement of a script is a transaction of its own";
                Err(Self::command().error(clap::error::ErrorKind::ArgumentConflict, text))
            }
            _ => Ok(()),
        }
    }
}

/// The program's commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure: transactions alone, with queries on the same data, or snapshots
    #[command(subcommand)]
    Bench(Bench),
    /// Type SQL, or run it from a file or a pipe, in a database in memory or in a directory
    #[command(after_help = SHELL_HELP)]
    Shell(ShellArgs),
    /// Run tests of procedures, each in a transaction that is rolled back
    #[command(after_help = TEST_HELP)]
    Test(TestArgs),
    /// Print the changes in a redo log, one on each line
    #[command(after_help = LOG_HELP)]
    Log(LogArgs),
    /// Check that the files of a database, or of a backup, are sound
    #[command(after_help = tools::VERIFY_HELP)]
    Verify(VerifyArgs),
    /// Write an archive of a database that nobody has open, and remove what it makes superfluous
    #[command(after_help = tools::ARCHIVE_HELP)]
    Archive(ArchiveArgs),
    /// Copy a database that nobody has open to a directory or a file of its own
    #[command(after_help = tools::BACKUP_HELP)]
    Backup(BackupArgs),
    /// Make a database of a backup
    #[command(after_help = tools::RESTORE_HELP)]
    Restore(RestoreArgs),
}

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// TPC-C: the five transactions without think time
    Tpcc(BenchArgs),
    /// CH-benCHmark: TPC-C, in turns alone and with analytical queries on fresh snapshots
    Ch(ChArgs),
    /// What snapshots cost: the pause to take one and the blocks copied while it lives
    Snapshot(BenchArgs),
    /// What the redo log and archives cost, and how fast they give back; in the new directory --data
    Recovery(BenchArgs),
}

/// Options of every benchmark.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct BenchArgs {
    /// Warehouses; each is about 100 MB
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(i16).range(1..))]
    pub warehouses: i16,
    /// Partitions, each with a thread of its own; warehouses are spread over them
    #[arg(long, default_value_t = 1, value_name = "P", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub partitions: u16,
    /// Seconds to measure: transactions alone, as many with queries, each rate of snapshots
    #[arg(long, default_value_t = 20, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub seconds: u32,
    /// So many transactions of each partition in each phase, instead of seconds: for tests
    #[arg(long, hide = true, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub transactions: Option<u64>,
    /// How rows lie in memory
    #[arg(long, value_enum, default_value_t = LayoutArg::Groups)]
    pub layout: LayoutArg,
    /// Which transactions
    #[arg(long, value_enum, default_value_t = MixArg::Spec)]
    pub mix: MixArg,
    /// What transactions are written in
    #[arg(long, value_enum, default_value_t = ProceduresArg::Plpgsql)]
    pub procedures: ProceduresArg,
    /// What becomes of the redo log's records
    #[arg(long, value_enum, default_value_t = LogArg::Off)]
    pub log: LogArg,
    /// Directory to keep the database in, for --log group and --log async; it should be new
    #[arg(long, value_name = "PATH")]
    pub data: Option<PathBuf>,
    /// Transactions that may have run and wait for the disk, in each partition
    #[arg(long, default_value_t = 1024, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub in_flight: u32,
    /// Seed of data and transactions: the same seed, the same rows and the same inputs
    #[arg(long, default_value_t = 42, value_name = "X")]
    pub seed: u64,
    /// How to print the result
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
    /// Streams of queries that run beside the transactions
    #[arg(long, default_value_t = 1, value_name = "Q", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub query_streams: u16,
    /// Which queries: all, or a list of top10 and numbers such as 1,6,12
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
    /// There are none
    Off,
    /// They are made and dropped: the log without the disk
    Null,
    /// They go to the disk, and nobody waits for them
    Async,
    /// They go to the disk together, and a transaction counts when its record is there
    Group,
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
    /// A file of statements to run; without it and without -c, standard input
    pub file: Option<PathBuf>,
    /// Statements to run (after FILE); may be given more than once
    #[arg(short, long = "command", value_name = "SQL")]
    pub commands: Vec<String>,
    /// Stay and read standard input after FILE and -c
    #[arg(short, long)]
    pub interactive: bool,
    /// How to print results
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Keep the database in this directory, which is made if it is not there; without, it is in memory and
    /// gone when you leave
    #[arg(short, long, value_name = "DIRECTORY")]
    pub data: Option<PathBuf>,
    /// Partitions, each with a thread of its own; without, as many as the database in DIRECTORY has, or 1
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub partitions: Option<u16>,
    /// How much memory the database may use.
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// As psql spells it; refused.
    #[arg(short = '1', long, hide = true)]
    pub single_transaction: bool,
}

const SHELL_HELP: &str = "\
Each statement of a script is a transaction of its own: what was executed before a statement that fails stays in
effect. The script stops there, and standard error says where that is and how many statements were executed.

Exit status: 0 all was run; 1 the database cannot be opened; 2 the command line makes no sense; 3 a statement or
command of a script failed; 130 interrupted by Ctrl-C.";

/// Options of `log`.
#[derive(Args, Clone, Debug)]
pub struct LogArgs {
    /// The directory of a database, or the directory `log` in it, or a backup
    pub path: PathBuf,
    /// Only what is about this table, written as in the log: NAME, or SCHEMA.NAME outside of public
    #[arg(long, value_name = "NAME", conflicts_with = "procedure")]
    pub table: Option<String>,
    /// Only calls and definitions of this function or procedure
    #[arg(long, value_name = "NAME")]
    pub procedure: Option<String>,
    /// Only from this record or time on
    #[arg(long, value_name = "RECORD|TIME")]
    pub from: Option<Moment>,
    /// Only up to this record or time, itself included
    #[arg(long, value_name = "RECORD|TIME")]
    pub until: Option<Moment>,
    /// Stop after so many records
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Rows to print of each record; the others are counted
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub rows: u64,
    /// Print all rows of each record
    #[arg(long, conflicts_with = "rows")]
    pub all: bool,
    /// How to print records
    #[arg(long, value_enum, default_value_t)]
    pub format: LogFormat,
    /// Go on behind a record that cannot be understood
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
    /// Files of tests; each is run in an empty database in memory of its own
    #[arg(required = true, value_name = "FILE.sql")]
    pub files: Vec<PathBuf>,
    /// A file to run before each of them, such as a schema or procedures; may be given more than once
    #[arg(long, value_name = "FILE.sql")]
    pub load: Vec<PathBuf>,
    /// How to print results
    #[arg(long, value_enum, default_value_t = ReportFormat::Table)]
    pub format: ReportFormat,
    /// Partitions of each database
    #[arg(long, default_value_t = 1, value_name = "P", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub partitions: u16,
}

const TEST_HELP: &str = "\
A file of tests is plain SQL. What stands before the first line `-- test: NAME` is run once and
stays: tables, rows, functions. Each test is one transaction that is always rolled back, so none
sees what another did. It fails
  - if a statement fails: by ASSERT, RAISE EXCEPTION, a constraint, ...
  - if the result of a statement is a single boolean column, and not every row is true or there is
    none.
`-- error: SQLSTATE` on a line before a statement says that it must fail so; the test goes on as
if that statement had not been there.

  CREATE TABLE account (id integer PRIMARY KEY, cents bigint CHECK (cents >= 0));
  INSERT INTO account VALUES (1, 100), (2, 0);
  CREATE PROCEDURE pay(p_from integer, p_to integer, p_cents bigint) LANGUAGE plpgsql AS $$
  BEGIN
      UPDATE account SET cents = cents - p_cents WHERE id = p_from;
      UPDATE account SET cents = cents + p_cents WHERE id = p_to;
  END $$;

  -- test: money moves
  CALL pay(1, 2, 30);
  SELECT cents = 70 FROM account WHERE id = 1;
  SELECT cents = 30 FROM account WHERE id = 2;

  -- test: nobody pays more than there is
  -- error: 23514
  CALL pay(1, 2, 101);
  SELECT sum(cents) = 100 FROM account;

A test may run SELECT, INSERT, UPDATE, DELETE and CALL; its queries are those that procedures can
make. Definitions, COPY and settings stand before the first test.

Exit status: 0 all passed; 1 a test failed or a file could not be run; 2 the command line makes no
sense; 130 interrupted by Ctrl-C.";

const LOG_HELP: &str = "\
Each line is a change. It has the number of its record, the record's time (UTC), its partition or the word
crossing for a record that is ordered against all partitions, its kind, and what was changed:
  definition  the statement that created, altered or dropped something
  write       a row that a transaction inserted, updated or deleted, after all of its statements; the columns
              before the colon identify the row
  command     a call of a function or procedure that recovery repeats, with its version and its arguments

  1  2026-01-31T12:00:00.000000Z  crossing     definition  CREATE TABLE t (id INT PRIMARY KEY, n INT)
  2  2026-01-31T12:00:01.500000Z  partition 0  write       insert t: id=1 n=10
  2  2026-01-31T12:00:01.500000Z  partition 0  write       update t id=2: n=7
  2  2026-01-31T12:00:01.500000Z  partition 0  write       ... and 98 more rows in t (98 updated)

With --format json each line is an object with the same, and its place in the log's files: \"row\" has a change,
\"more_rows\" the number of those that are not printed.

If an archive has made the log's beginning superfluous and it was removed, names are taken from the oldest archive;
rows of tables that were dropped before it, or whose indexes have changed since, can no longer be shown.

Nothing is locked or changed, so the log of an open database can be read; its latest records may be missing then. A
write that a crash interrupted at the end of the log is left out, and standard error says so.

Exit status: 0 the log was printed; 1 it is damaged (standard error says where) or cannot be read; 2 the command
line makes no sense.";

/// How the shell prints results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table drawn with lines
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
    fn places_in_a_log_are_records_or_times() {
        let line = "albireo log data --from 17 --until 1970-01-01T00:00:01.5Z";
        let Ok(Command::Log(args)) = parse(line) else { panic!("must parse") };
        assert_eq!((args.from, args.until), (Some(Moment::Record(17)), Some(Moment::Time(1_500_000))));
    }

    /// Documents drift; the program that they describe is the judge.
    #[test]
    fn commands_in_the_documents_parse() {
        let documents =
            [include_str!("../../../README.md"), include_str!("../../../CONTRIBUTING.md"), EXAMPLES];
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
