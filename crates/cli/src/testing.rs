//! `albireo test`: runs tests of procedures, each in a transaction that is rolled back.
//!
//! Responsible for: databases for files, running set-up and tests, what makes one fail, the exit status.
//! Not responsible for: the form of files (`file`), how results are said (`report`), the transaction
//! ([`Connection::rolled_back`]).
//!
//! I-1 Every file has a database of its own, so the order of files does not matter. I-2 No test sees what
//! another did (`engine`'s `tests/behaviour/trials.rs`).

mod file;
mod report;

use crate::args::TestArgs;
use crate::interrupt::{EXIT_STATUS, Interrupt};
use albireo::{Config, Connection, Database, Outcome, QueryResult, SqlError, SqlType, Trial, Value};
use albireo_env::Env;
use file::{Mistake, Script, Step, Test};
use report::Reporter;
use std::cell::Cell;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// Exit status when a test failed, or a file could not be run.
const FAILED: u8 = 1;

/// Why a test failed.
pub struct Failure {
    /// The statement.
    pub step: Step,
    /// What was wrong with it.
    pub reason: Reason,
    /// What RAISE said in it.
    pub notices: Vec<String>,
}

/// What was wrong with a statement of a test.
pub enum Reason {
    /// It failed; if it was to, then with another SQLSTATE.
    Error(SqlError),
    /// It was to fail and did not.
    NoError,
    /// These rows were to be true, at least one of them.
    NotTrue(QueryResult),
}

/// A test that ran.
pub struct Ran {
    /// Its name.
    pub name: String,
    /// The line of its name.
    pub line: usize,
    /// How long it took.
    pub elapsed_ns: u64,
    /// `None`: it passed.
    pub failure: Option<Failure>,
}

/// Why a file was not run to its end.
pub enum Stop {
    /// It has been reported.
    Said,
    /// Ctrl-C.
    Interrupted,
    /// Results cannot be written.
    Output(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Runs the tests of all files; returns the exit status.
pub fn run(args: &TestArgs, env: &Env, interrupt: &Interrupt) -> u8 {
    let (mut out, mut err) = (io::stdout().lock(), io::stderr().lock());
    let mut reporter = Reporter::new(args.format, &mut out, &mut err);
    let result = run_files(args, env, interrupt, &mut reporter);
    let interrupted = matches!(result, Err(Stop::Interrupted));
    let written = match result {
        Err(Stop::Output(error)) => Err(error),
        Ok(()) | Err(_) => reporter.finish(interrupted),
    };
    let failed = reporter.has_failed();
    match written {
        // Whoever reads has read enough, as `head` does.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let _ = writeln!(err, "albireo: cannot write: {error}");
            FAILED
        }
        _ if interrupted => EXIT_STATUS,
        _ => u8::from(failed) * FAILED,
    }
}

fn run_files(
    args: &TestArgs,
    env: &Env,
    interrupt: &Interrupt,
    reporter: &mut Reporter<'_>,
) -> Result<(), Stop> {
    for path in &args.files {
        reporter.begin_file(path.display().to_string());
        match run_file(args, path, env, interrupt, reporter) {
            Ok(()) | Err(Stop::Said) => {}
            Err(stop) => return Err(stop),
        }
    }
    Ok(())
}

/// Runs one file in a database of its own.
fn run_file(
    args: &TestArgs,
    path: &Path,
    env: &Env,
    interrupt: &Interrupt,
    reporter: &mut Reporter<'_>,
) -> Result<(), Stop> {
    let script = read(path, env, reporter, Script::parse)?;
    let config = Config { partitions: args.partitions, ..Config::default() };
    let database = match Database::with_env(config, env.clone()) {
        Ok(database) => database,
        Err(error) => return reporter.stop_file(&format!("ERROR {error}")),
    };
    let connection = Arc::new(database.connect());
    let cancelled = Arc::clone(&connection);
    interrupt.during(Box::new(move || cancelled.cancel()), || {
        let run = TestRun { connection: &connection, env, interrupt };
        for path in &args.load {
            let statements = read(path, env, reporter, file::statements)?;
            run.set_up(&path.display().to_string(), &statements, reporter)?;
        }
        run.set_up(&path.display().to_string(), &script.setup, reporter)?;
        script.tests.iter().try_for_each(|test| run.test(test, reporter))
    })
}

/// Reads a file and what it has; says what is wrong with it.
fn read<T>(
    path: &Path,
    env: &Env,
    reporter: &mut Reporter<'_>,
    parse: impl FnOnce(&str) -> Result<T, Mistake>,
) -> Result<T, Stop> {
    let name = path.display();
    let bytes = env.disk.open(path).and_then(|mut file| {
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut file, &mut bytes).map(|_| bytes)
    });
    let message = match bytes.map(String::from_utf8) {
        Ok(Ok(text)) => match parse(&text) {
            Ok(parsed) => return Ok(parsed),
            Err(mistake) => format!("{name}:{}: {}", mistake.line, mistake.message),
        },
        Ok(Err(_)) => format!("{name} is not UTF-8"),
        Err(error) => format!("cannot read {name}: {error}"),
    };
    reporter.stop_file(&message)?;
    Err(Stop::Said)
}

/// A file at work.
struct TestRun<'a> {
    connection: &'a Connection,
    env: &'a Env,
    interrupt: &'a Interrupt,
}

impl TestRun<'_> {
    /// Runs statements whose changes stay.
    fn set_up(&self, name: &str, steps: &[Step], reporter: &mut Reporter<'_>) -> Result<(), Stop> {
        for step in steps {
            self.begin()?;
            let outcome = self.connection.execute(&step.text);
            self.check_interrupt()?;
            match outcome {
                Ok(outcomes) => reporter.notices(&outcomes)?,
                Err(error) => {
                    reporter.fail_set_up(name, step, &error)?;
                    return Err(Stop::Said);
                }
            }
        }
        Ok(())
    }

    fn test(&self, test: &Test, reporter: &mut Reporter<'_>) -> Result<(), Stop> {
        let started = self.env.clock.now();
        let at = Cell::new(0);
        self.begin()?;
        let outcome = self.connection.rolled_back(|trial| {
            let steps = test.steps.iter().enumerate();
            steps.map(|(index, step)| (at.set(index), check(trial, step)).1).find_map(|failure| failure)
        });
        self.check_interrupt()?;
        let failure = outcome.unwrap_or_else(|error| {
            let step = test.steps[at.get()].clone();
            Some(Failure { step, reason: Reason::Error(error), notices: Vec::new() })
        });
        let elapsed_ns = self.env.clock.now() - started;
        reporter.test(Ran { name: test.name.clone(), line: test.line, elapsed_ns, failure })?;
        Ok(())
    }

    /// To be called before what can be interrupted: a Ctrl-C is seen here, or stops that however late it begins.
    fn begin(&self) -> Result<(), Stop> {
        drop(self.connection.cancel_token());
        self.check_interrupt()
    }

    fn check_interrupt(&self) -> Result<(), Stop> {
        if self.interrupt.requested() { Err(Stop::Interrupted) } else { Ok(()) }
    }
}

/// Runs a statement of a test; `None` if it did as it should.
fn check(trial: &mut Trial<'_>, step: &Step) -> Option<Failure> {
    let reason = match (trial.run(&step.text, &[]), step.error) {
        (Err(error), Some(wanted)) if error.state() == wanted => return None,
        (Err(error), _) => Reason::Error(error),
        (Ok(_), Some(_)) => Reason::NoError,
        (Ok(Outcome::Rows(rows)), None) if !is_true(&rows) => Reason::NotTrue(rows),
        (Ok(_), None) => return None,
    };
    let notices = trial.notices().map(str::to_owned).collect();
    Some(Failure { step: step.clone(), reason, notices })
}

/// Whether a result is no condition, or one that holds. A condition without rows does not: it would hold
/// whatever the procedures do.
fn is_true(result: &QueryResult) -> bool {
    let [column] = &*result.columns else { return true };
    if column.ty != SqlType::Bool {
        return true;
    }
    let rows = result.rows();
    !rows.is_empty() && rows.iter().all(|row| row[0] == Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::ReportFormat;

    /// Is read by somebody who presses Ctrl-C at the first line.
    struct Pressing<'a> {
        interrupt: &'a Interrupt,
        written: Vec<u8>,
    }

    impl Write for Pressing<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.interrupt.request();
            self.written.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn interrupt_between_two_tests_ends_the_run_before_the_second() {
        let interrupt = Interrupt::default();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/procedures/endless.sql");
        let args =
            TestArgs { files: vec![path], load: Vec::new(), format: ReportFormat::Table, partitions: 1 };
        let mut out = Pressing { interrupt: &interrupt, written: Vec::new() };
        let mut err = Vec::new();
        let mut reporter = Reporter::new(args.format, &mut out, &mut err);
        let result = run_files(&args, &Env::real(), &interrupt, &mut reporter);
        assert!(matches!(result, Err(Stop::Interrupted)));
        assert!(out.written.starts_with(b"ok short"));
    }
}
