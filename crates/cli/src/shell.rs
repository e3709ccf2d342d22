//! The shell: reads statements from a person, a file, a pipe or the command line, and prints what
//! they give.
//!
//! Responsible for: reading, the commands behind a backslash, printing results, errors and times,
//! the exit status. Not responsible for: executing SQL ([`Sql`]), formats (`output`).
//!
//! I-1 From a file, a pipe or the command line the first failure ends the shell with
//! [`SCRIPT_FAILED`]; at a terminal nothing but `\q` and Ctrl-D does. I-2 Results go to standard
//! output or to the file of `\o`; errors, notices and greetings to standard error.

mod client;
mod command;
mod copy;
mod describe;
mod editor;
mod interactive;
mod outside;
mod pager;
mod perform;
pub mod report;
pub mod split;
mod synopsis;
mod terminal;
#[cfg(test)]
mod tests;
mod watch;

use crate::args::{Format, ShellArgs};
use crate::interrupt::Interrupt;
use crate::output::{Expanded, Table};
use crate::sql::{Outcome, Sql};
use albireo::SqlError;
use albireo_env::Env;
use command::Command;
use pager::Pager;
use split::{Open, Piece, Splitter};
use std::io::{self, BufRead, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::Path;
use terminal::Terminal;

/// Exit status when a statement or command of a script failed; psql's as well.
pub const SCRIPT_FAILED: u8 = 3;

/// The longest line of a script, in bytes: whatever is longer is no script.
const LINE_BYTES: u64 = 256 << 20;

/// How deep files may run files.
const INCLUDE_DEPTH: usize = 16;

/// A shell on one database.
pub struct Shell<'a> {
    sql: &'a dyn Sql,
    env: &'a Env,
    interrupt: &'a Interrupt,
    /// Where results go unless `\o` says otherwise.
    out: &'a mut (dyn Write + Send),
    /// Where everything else goes.
    err: &'a mut dyn Write,
    /// The file of `\o`.
    file: Option<Box<dyn Write + Send>>,
    format: Format,
    expanded: Expanded,
    /// How NULL is drawn.
    null: String,
    pager: Pager,
    timing: bool,
    /// Whether a person reads the results, so that statements without rows are confirmed.
    confirms: bool,
    /// The person's terminal.
    terminal: Option<Terminal>,
    /// Columns and rows of the terminal that `out` is.
    size: fn() -> (Option<NonZeroUsize>, Option<NonZeroUsize>),
    /// Whether long statements show on the terminal how far they are.
    watches: bool,
    /// The statement that was run last, at a terminal.
    latest: String,
    include_depth: usize,
    /// What a script has done.
    done: report::Done,
}

/// Why the shell stops reading.
enum Stop {
    /// `\q`.
    Quit,
    /// Something failed; it has been said.
    Failed,
    /// The results have no reader any more (a closed pipe), or cannot be written.
    Output(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Runs the shell on standard input and output; returns the exit status.
pub fn run(args: &ShellArgs, sql: &dyn Sql, env: &Env, interrupt: &Interrupt) -> u8 {
    // Not locked: other threads write to standard error too.
    let (mut out, mut err) = (io::stdout(), io::stderr());
    let mut shell = Shell::new(sql, env, interrupt, &mut out, &mut err);
    shell.format = args.format;
    shell.size = terminal::size;
    shell.watches = io::stderr().is_terminal();
    let result = shell.run(args);
    shell.exit_status(result)
}

/// The text that a statement or command stands in.
struct Around<'a> {
    /// Has the statement that is open.
    splitter: &'a mut Splitter,
    /// Reads the lines that come after it, which may be rows of COPY.
    next_line: client::NextLine<'a>,
}

impl<'a> Shell<'a> {
    /// A shell that prints results to `out` and the rest to `err`.
    pub fn new(
        sql: &'a dyn Sql,
        env: &'a Env,
        interrupt: &'a Interrupt,
        out: &'a mut (dyn Write + Send),
        err: &'a mut dyn Write,
    ) -> Self {
        Self {
            sql,
            env,
            interrupt,
            out,
            err,
            file: None,
            format: Format::Box,
            expanded: Expanded::Auto,
            null: "NULL".to_owned(),
            pager: Pager::On,
            timing: false,
            confirms: false,
            terminal: None,
            size: || (None, None),
            watches: false,
            latest: String::new(),
            include_depth: 0,
            done: report::Done::default(),
        }
    }

    fn run(&mut self, args: &ShellArgs) -> Result<(), Stop> {
        let result = self.run_all(args);
        self.tell_stopped(&result);
        // What is not printed is an error now or never.
        match self.out.flush() {
            Err(error) if !matches!(result, Err(Stop::Output(_))) => Err(Stop::Output(error)),
            _ => result,
        }
    }

    fn run_all(&mut self, args: &ShellArgs) -> Result<(), Stop> {
        if let Some(path) = &args.file {
            self.run_file(path)?;
        }
        for (index, text) in args.commands.iter().enumerate() {
            let name = if args.commands.len() == 1 { "-c".to_owned() } else { format!("-c #{}", index + 1) };
            self.run_script(&name, text.as_bytes())?;
        }
        if args.interactive || (args.file.is_none() && args.commands.is_empty()) {
            if io::stdin().is_terminal() {
                return self.run_interactive();
            }
            self.run_script("stdin", io::stdin().lock())?;
        }
        Ok(())
    }

    fn exit_status(&mut self, result: Result<(), Stop>) -> u8 {
        match result {
            Ok(()) | Err(Stop::Quit) => 0,
            Err(Stop::Failed) if self.interrupt.requested() => crate::interrupt::EXIT_STATUS,
            Err(Stop::Failed) => SCRIPT_FAILED,
            // Whoever reads has read enough, as `head` does.
            Err(Stop::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            Err(Stop::Output(error)) => {
                self.say(&format!("albireo: cannot write: {error}"));
                1
            }
        }
    }

    /// Runs a file; paths are relative to the working directory.
    fn run_file(&mut self, path: &Path) -> Result<(), Stop> {
        let name = path.display().to_string();
        if self.include_depth == INCLUDE_DEPTH {
            return self.fail(&format!("{name}: files run files {INCLUDE_DEPTH} deep; one runs itself?"));
        }
        let file = match self.env.disk.open(path) {
            Ok(file) => file,
            Err(error) => return self.fail(&format!("cannot open {name}: {error}")),
        };
        self.include_depth += 1;
        let result = self.run_script(&name, io::BufReader::new(file));
        self.include_depth -= 1;
        result
    }

    /// Runs what `input` has, as it comes, until the first failure.
    fn run_script(&mut self, name: &str, mut input: impl BufRead) -> Result<(), Stop> {
        let mut splitter = Splitter::default();
        let (mut bytes, mut line) = (Vec::new(), 0);
        loop {
            bytes.clear();
            line += 1;
            match io::Read::take(&mut input, LINE_BYTES + 1).read_until(b'\n', &mut bytes) {
                Ok(0) => break,
                Ok(count) if count as u64 > LINE_BYTES => {
                    self.done.stop(name, line, false);
                    let longest = LINE_BYTES >> 20;
                    return self.fail(&format!("{name}:{line}: the line is longer than {longest} MiB"));
                }
                Ok(_) => {}
                Err(error) => {
                    self.done.stop(name, line, false);
                    return self.fail(&format!("cannot read {name}: {error}"));
                }
            }
            let Ok(text) = std::str::from_utf8(&bytes) else {
                self.done.stop(name, line, false);
                return self.fail(&format!("{name}:{line}: the line is not UTF-8"));
            };
            // Some editors put a mark of the encoding before the first line.
            let text = if line == 1 { text.trim_start_matches('\u{feff}') } else { text };
            let pieces = splitter.push(text);
            for (index, piece) in pieces.iter().enumerate() {
                let is_last_known = index + 1 == pieces.len() && splitter.open() == Open::Nothing;
                let mut next_line = |rows: &mut Vec<u8>| {
                    let read = input.read_until(b'\n', rows)?;
                    line += usize::from(read > 0);
                    Ok(read)
                };
                let mut around = Around { splitter: &mut splitter, next_line: &mut next_line };
                self.run_script_piece(name, piece, is_last_known, &mut around)?;
            }
        }
        match splitter.finish() {
            Some(piece) => {
                let mut around = Around { splitter: &mut splitter, next_line: &mut |_| Ok(0) };
                self.run_script_piece(name, &piece, true, &mut around)
            }
            None => Ok(()),
        }
    }

    /// Runs a statement or command of a script, and remembers where the script stopped.
    fn run_script_piece(
        &mut self,
        name: &str,
        piece: &Piece,
        is_last_known: bool,
        around: &mut Around<'_>,
    ) -> Result<(), Stop> {
        let result = self.run_piece(Some(name), piece, around);
        if matches!(result, Err(Stop::Failed)) {
            self.done.stop(name, piece.line(), is_last_known);
        }
        result
    }

    /// After a failure in a script: what of the script was run, and what was not.
    fn tell_stopped(&mut self, result: &Result<(), Stop>) {
        if let (Err(Stop::Failed), Some(message)) = (result, self.done.told()) {
            self.say(&message);
        }
    }

    /// Runs a statement or command of the script `name`, or of the terminal.
    fn run_piece(&mut self, name: Option<&str>, piece: &Piece, around: &mut Around<'_>) -> Result<(), Stop> {
        match piece {
            Piece::Statement(text, line) => self.run_statement(name, text, *line, around),
            Piece::Command(text, line) => match Command::parse(text) {
                Ok(command) => self.run_command(name, *line, command, around),
                Err(message) => self.fail(&report::located(name, *line, &message)),
            },
        }
    }

    fn run_statement(
        &mut self,
        name: Option<&str>,
        text: &str,
        line: usize,
        around: &mut Around<'_>,
    ) -> Result<(), Stop> {
        if self.confirms && name.is_none() {
            text.clone_into(&mut self.latest);
        }
        if let Some(end) = client::end_of(text) {
            return self.run_client_copy(name, (text, line), end, around);
        }
        let started = self.env.clock.now();
        let (sql, interrupt, clock) = (self.sql, self.interrupt, &self.env.clock);
        let execute = || {
            let answer = sql.execute(text)?;
            Ok((answer, clock.now() - started))
        };
        let answer = interrupt.during(sql.canceller(), || match self.watches && watch::may_tell(text) {
            true => watch::during(sql.progress(), clock, execute),
            false => execute(),
        });
        let (answer, elapsed_ns) = match answer {
            Ok(answer) => answer,
            Err(error) => return self.fail_statement(name, (text, line), &error),
        };
        for notice in &answer.notices {
            self.say(&format!("NOTICE: {notice}"));
        }
        self.done.statements += 1;
        // Drawing a large result takes its time, so Ctrl-C reaches it too.
        interrupt.during(Box::new(|| {}), || self.print_outcomes(&answer.outcomes))?;
        if self.timing {
            writeln!(self.results(), "Time: {}", report::milliseconds(elapsed_ns))?;
        }
        Ok(())
    }

    /// Says why a statement failed.
    fn fail_statement(
        &mut self,
        name: Option<&str>,
        (text, line): (&str, usize),
        error: &SqlError,
    ) -> Result<(), Stop> {
        if self.terminal.is_some() && self.interrupt.requested() {
            // The terminal shows ^C where the cursor is.
            self.say("");
        }
        let message = report::error(name, line, text, error);
        self.fail(message.trim_end())
    }

    fn print_outcomes(&mut self, outcomes: &[Outcome]) -> Result<(), Stop> {
        for outcome in outcomes {
            match outcome {
                Outcome::Rows { columns, batches } => {
                    self.print_with(self.expanded, &Table::of_result(columns, batches))?;
                }
                Outcome::Done { tag } if self.confirms => writeln!(self.results(), "{tag}")?,
                Outcome::Done { .. } => {}
            }
        }
        Ok(())
    }

    fn results(&mut self) -> &mut (dyn Write + Send) {
        match &mut self.file {
            Some(file) => file,
            None => self.out,
        }
    }

    /// Says what went wrong.
    fn fail(&mut self, message: &str) -> Result<(), Stop> {
        self.say(message);
        Err(Stop::Failed)
    }

    /// Confirms to a person what was set.
    fn confirm(&mut self, message: &str) {
        if self.confirms {
            self.say(message);
        }
    }

    /// Prints a line beside the results.
    fn say(&mut self, line: &str) {
        self.say_text(&format!("{line}\n"));
    }

    /// As [`Shell::say`], without a line break. Whoever cannot be told need not be.
    fn say_text(&mut self, text: &str) {
        let _ = self.err.write_all(text.as_bytes()).and_then(|()| self.err.flush());
    }
}
