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
mod describe;
mod editor;
pub mod report;
pub mod split;
#[cfg(test)]
mod tests;

use crate::args::{Format, ShellArgs};
use crate::interrupt::Interrupt;
use crate::output::{self, Style, Table};
use crate::sql::{Outcome, Sql};
use albireo_env::Env;
use command::Command;
use editor::{Input, LineEditor};
use split::{Piece, Splitter};
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Exit status when a statement or command of a script failed; psql's as well.
pub const SCRIPT_FAILED: u8 = 3;

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
    expanded: bool,
    timing: bool,
    /// Whether a person reads the results, so that statements without rows are confirmed.
    confirms: bool,
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
    let (mut out, mut err) = (io::stdout(), io::stderr());
    let mut shell = Shell::new(sql, env, interrupt, &mut out, &mut err);
    shell.format = args.format;
    let result = shell.run(args);
    shell.exit_status(result)
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
            expanded: false,
            timing: false,
            confirms: false,
            include_depth: 0,
            done: report::Done::default(),
        }
    }

    fn run(&mut self, args: &ShellArgs) -> Result<(), Stop> {
        let result = self.run_all(args);
        self.tell_stopped(&result)?;
        result
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
                return self.run_interactive(args.data.as_deref());
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
                let _ = writeln!(self.err, "albireo: cannot write: {error}");
                1
            }
        }
    }

    /// Reads from the terminal until `\q` or Ctrl-D; failures are said and forgotten.
    fn run_interactive(&mut self, data: Option<&Path>) -> Result<(), Stop> {
        let mut editor = match LineEditor::new(self.sql, self.env) {
            Ok(editor) => editor,
            Err(error) => {
                writeln!(self.err, "albireo: no line editing on this terminal: {error}")?;
                return self.run_script("stdin", io::stdin().lock());
            }
        };
        writeln!(
            self.err,
            "albireo {}: a database {}.\nType SQL ending with ;, \\? for help, \\q to quit.\n",
            env!("CARGO_PKG_VERSION"),
            data.map_or_else(
                || "in memory, gone when you leave".to_owned(),
                |data| format!("kept in {}", data.display())
            )
        )?;
        self.confirms = true;
        loop {
            match editor.read() {
                Ok(Input::Lines(text)) => {
                    let mut splitter = Splitter::default();
                    for piece in text.lines().flat_map(|line| splitter.push(line)).collect::<Vec<_>>() {
                        self.done = report::Done::default();
                        let result = self.run_piece(None, &piece, &mut client::typed_line);
                        self.tell_stopped(&result)?;
                        match result {
                            Ok(_) => {}
                            Err(Stop::Failed) => break,
                            Err(stop) => return Err(stop),
                        }
                    }
                }
                Ok(Input::Abandoned) => {}
                Ok(Input::End) => return Ok(()),
                Err(error) => {
                    writeln!(self.err, "albireo: cannot read the terminal: {error}")?;
                    return Err(Stop::Failed);
                }
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
            match input.read_until(b'\n', &mut bytes) {
                Ok(0) => break,
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
                let is_last_known = index + 1 == pieces.len() && splitter.is_between();
                let mut next_line = |rows: &mut Vec<u8>| input.read_until(b'\n', rows);
                let rows = self.run_script_piece(name, piece, is_last_known, &mut next_line)?;
                splitter.skip_lines(rows);
                line += rows;
            }
        }
        let piece = splitter.finish();
        piece.map_or(Ok(()), |piece| self.run_script_piece(name, &piece, true, &mut |_| Ok(0)).map(drop))
    }

    /// Runs a statement or command of a script, and remembers where the script stopped. Gives the number of lines
    /// taken as rows of COPY.
    fn run_script_piece(
        &mut self,
        name: &str,
        piece: &Piece,
        is_last_known: bool,
        next_line: client::NextLine<'_>,
    ) -> Result<usize, Stop> {
        let result = self.run_piece(Some(name), piece, next_line);
        if matches!(result, Err(Stop::Failed)) {
            self.done.stop(name, piece.line(), is_last_known);
        }
        result
    }

    /// After a failure in a script: what of the script was run, and what was not.
    fn tell_stopped<T>(&mut self, result: &Result<T, Stop>) -> io::Result<()> {
        match (result, self.done.told()) {
            (Err(Stop::Failed), Some(message)) => writeln!(self.err, "{message}"),
            _ => Ok(()),
        }
    }

    /// Runs a statement or command of the script `name`, or of the terminal. Gives the number of lines taken as
    /// rows of COPY.
    fn run_piece(
        &mut self,
        name: Option<&str>,
        piece: &Piece,
        next_line: client::NextLine<'_>,
    ) -> Result<usize, Stop> {
        match piece {
            Piece::Statement(text, line) => match client::end_of(text) {
                Some(end) => return self.run_client_copy(name, (text, *line), end, next_line),
                None => self.run_statement(name, text, *line)?,
            },
            Piece::Command(text, line) => {
                let command = match Command::parse(text) {
                    Ok(command) => command,
                    Err(message) => return self.fail(&report::located(name, *line, &message)).map(|()| 0),
                };
                self.run_command(command)?;
            }
        }
        Ok(0)
    }

    fn run_statement(&mut self, name: Option<&str>, text: &str, line: usize) -> Result<(), Stop> {
        let started = self.env.clock.now();
        let (sql, interrupt) = (self.sql, self.interrupt);
        let answer = interrupt.during(sql.canceller(), || {
            let answer = sql.execute(text)?;
            Ok((answer, self.env.clock.now() - started))
        });
        let (answer, elapsed_ns) = match answer {
            Ok(answer) => answer,
            Err(error) => {
                let message = report::error(name, line, text, &error);
                return self.fail(message.trim_end());
            }
        };
        for notice in &answer.notices {
            writeln!(self.err, "NOTICE: {notice}")?;
        }
        self.done.statements += 1;
        // Drawing a large result takes its time, so Ctrl-C reaches it too.
        interrupt.during(Box::new(|| {}), || self.print_outcomes(&answer.outcomes))?;
        if self.timing {
            writeln!(self.results(), "Time: {}", report::milliseconds(elapsed_ns))?;
        }
        Ok(())
    }

    fn print_outcomes(&mut self, outcomes: &[Outcome]) -> Result<(), Stop> {
        for outcome in outcomes {
            match outcome {
                Outcome::Rows { columns, batches } => {
                    match self.print_table(&Table::of_result(columns, batches)) {
                        Err(_) if self.interrupt.requested() => {
                            return self.fail("the rest of the result was not printed: interrupted");
                        }
                        result => result?,
                    }
                }
                Outcome::Done { tag } if self.confirms => writeln!(self.results(), "{tag}")?,
                Outcome::Done { .. } => {}
            }
        }
        Ok(())
    }

    fn print_table(&mut self, table: &Table<'_>) -> io::Result<()> {
        let style = Style { format: self.format, expanded: self.expanded, interrupt: self.interrupt };
        output::print(table, style, self.results())
    }

    fn results(&mut self) -> &mut (dyn Write + Send) {
        match &mut self.file {
            Some(file) => file,
            None => self.out,
        }
    }

    /// Says what went wrong.
    fn fail(&mut self, message: &str) -> Result<(), Stop> {
        writeln!(self.err, "{message}")?;
        Err(Stop::Failed)
    }

    fn run_command(&mut self, command: Command) -> Result<(), Stop> {
        match command {
            Command::Describe(name) => self.describe(&name)?,
            Command::Tables => self.list(&describe::tables(self.sql))?,
            Command::Indexes => self.list(&describe::indexes(self.sql))?,
            Command::Schemas => self.list(&describe::schemas(self.sql))?,
            Command::Timing(wanted) => {
                self.timing = wanted.unwrap_or(!self.timing);
                self.confirm(if self.timing { "Timing is on." } else { "Timing is off." })?;
            }
            Command::Expanded(wanted) => {
                self.expanded = wanted.unwrap_or(!self.expanded);
                let is_on = self.expanded;
                self.confirm(if is_on { "Expanded display is on." } else { "Expanded display is off." })?;
            }
            Command::Format(format) => self.format = format,
            Command::Output(path) => self.redirect(path)?,
            Command::Include(path) => self.run_file(&path)?,
            Command::Help => self.results().write_all(command::HELP.as_bytes())?,
            Command::Quit => return Err(Stop::Quit),
        }
        Ok(())
    }

    fn confirm(&mut self, message: &str) -> io::Result<()> {
        if self.confirms { writeln!(self.err, "{message}") } else { Ok(()) }
    }

    fn list(&mut self, table: &Table<'_>) -> io::Result<()> {
        let interrupt = self.interrupt;
        let style = Style { format: self.format, expanded: false, interrupt };
        interrupt.during(Box::new(|| {}), || output::print(table, style, self.results()))
    }

    fn describe(&mut self, name: &str) -> Result<(), Stop> {
        let found = describe::find(self.sql, name);
        if found.is_empty() {
            return self.fail(&format!("there is no table \"{name}\"; \\dt lists those there are"));
        }
        for table in &found {
            let (columns, below) = describe::table(table);
            self.list(&columns)?;
            if self.format == Format::Box {
                self.results().write_all(below.as_bytes())?;
            }
        }
        Ok(())
    }

    fn redirect(&mut self, path: Option<PathBuf>) -> Result<(), Stop> {
        self.file = None;
        let Some(path) = path else { return Ok(()) };
        match self.env.disk.create(&path) {
            Ok(file) => {
                self.file = Some(file);
                Ok(())
            }
            Err(error) => self.fail(&format!("cannot create {}: {error}", path.display())),
        }
    }
}
