//! Carries out the shell's own commands.

use super::command::{self, Command};
use super::pager::Pager;
use super::split::{Piece, Splitter};
use super::{Around, Shell, Stop, copy, describe, outside, synopsis};
use crate::args::Format;
use crate::output::{self, Expanded, Table};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}

impl Shell<'_> {
    /// Carries out a command of the script `name`, or of the terminal.
    pub(super) fn run_command(
        &mut self,
        name: Option<&str>,
        line: usize,
        command: Command,
        around: &mut Around<'_>,
    ) -> Result<(), Stop> {
        match command {
            Command::Describe { name, more } => self.describe(&name, more)?,
            Command::Tables(pattern) => self.list(&describe::tables(self.sql, pattern.as_deref()))?,
            Command::Indexes(pattern) => self.list(&describe::indexes(self.sql, pattern.as_deref()))?,
            Command::Schemas(pattern) => self.list(&describe::schemas(self.sql, pattern.as_deref()))?,
            Command::Routines(pattern) => self.list(&describe::routines(self.sql, pattern.as_deref()))?,
            Command::Source(name) => match describe::source(self.sql, &name) {
                Ok(source) => self.results().write_all(source.as_bytes())?,
                Err(message) => return self.fail(&message),
            },
            Command::About => {
                let about = describe::about(self.sql);
                writeln!(self.results(), "{about}")?;
            }
            Command::Timing(wanted) => {
                self.timing = wanted.unwrap_or(!self.timing);
                self.confirm(if self.timing { "Timing is on." } else { "Timing is off." });
            }
            Command::Format(format) => self.format = format,
            Command::Expanded(_) | Command::Null(_) | Command::Pager(_) | Command::Settings => {
                self.set(command)?;
            }
            Command::Output(path) => self.redirect(path)?,
            Command::Include(path) => self.run_file(&path)?,
            Command::Copy(text) => match copy::statement(&text, variable("HOME").map(PathBuf::from)) {
                Ok(statement) => self.run_statement(name, &statement, line, around)?,
                Err(message) => return self.fail(&message),
            },
            Command::Echo { warns: true, text } => self.say_text(&text),
            Command::Echo { warns: false, text } => self.results().write_all(text.as_bytes())?,
            Command::Edit(path) => self.edit(name, path.as_deref(), around)?,
            Command::Go { expanded, file } => self.go(name, line, expanded, file, around)?,
            Command::Print => {
                let text = self.buffer(around.splitter);
                let text = if text.is_empty() { "Nothing is typed yet.".to_owned() } else { text };
                writeln!(self.results(), "{text}")?;
            }
            Command::Reset => {
                around.splitter.reset();
                self.confirm("What was typed is discarded.");
            }
            Command::Write(path) => self.write_buffer(&path, around.splitter)?,
            Command::System(command) => self.system(&command)?,
            Command::Synopsis(topic) => match synopsis::of(&topic) {
                Ok(text) => self.results().write_all(text.as_bytes())?,
                Err(message) => return self.fail(&message),
            },
            Command::Help => self.results().write_all(command::HELP.as_bytes())?,
            Command::Quit => return Err(Stop::Quit),
        }
        Ok(())
    }

    /// Changes or shows how results are printed.
    fn set(&mut self, command: Command) -> io::Result<()> {
        match command {
            Command::Expanded(wanted) => {
                let toggled = if self.expanded == Expanded::On { Expanded::Off } else { Expanded::On };
                self.expanded = wanted.unwrap_or(toggled);
                self.confirm(match self.expanded {
                    Expanded::On => "Expanded display is on.",
                    Expanded::Off => "Expanded display is off.",
                    Expanded::Auto => "Expanded display is used where a table is wider than the terminal.",
                });
            }
            Command::Null(text) => self.null = text,
            Command::Pager(wanted) => {
                let toggled = if self.pager == Pager::Off { Pager::On } else { Pager::Off };
                self.pager = wanted.unwrap_or(toggled);
                self.confirm(match self.pager {
                    Pager::On => "The pager is used for what is longer than the screen.",
                    Pager::Off => "The pager is not used.",
                    Pager::Always => "The pager is always used.",
                });
            }
            _ => {
                let (expanded, format, pager) = (self.expanded, self.format, &self.pager);
                // Their variants are called as they are typed.
                let values = format!("expanded  {expanded:?}\nformat    {format:?}\npager     {pager:?}\n");
                let null = format!("null      '{}'\n", self.null.replace('\'', "''"));
                self.results().write_all((values.to_lowercase() + &null).as_bytes())?;
            }
        }
        Ok(())
    }

    fn list(&mut self, table: &Table<'_>) -> Result<(), Stop> {
        self.list_as(self.expanded, table)
    }

    fn list_as(&mut self, expanded: Expanded, table: &Table<'_>) -> Result<(), Stop> {
        let interrupt = self.interrupt;
        interrupt.during(Box::new(|| {}), || self.print_with(expanded, table))
    }

    fn describe(&mut self, name: &str, more: bool) -> Result<(), Stop> {
        let found = describe::find(self.sql, name);
        if found.is_empty() {
            return self.describe_other(name);
        }
        for table in &found {
            let (columns, below) = describe::table(table, &self.sql.chunks(table), more);
            // As psql has it: expanded, this cannot be read.
            let expanded = if self.expanded == Expanded::On { Expanded::Auto } else { self.expanded };
            self.list_as(expanded, &columns)?;
            if self.format == Format::Box {
                self.results().write_all(below.as_bytes())?;
            }
        }
        Ok(())
    }

    /// `\d` of what is no table.
    fn describe_other(&mut self, name: &str) -> Result<(), Stop> {
        let indexes = describe::indexes(self.sql, Some(name));
        if !indexes.is_empty() {
            return self.list(&indexes);
        }
        let is_pattern = name.contains(['*', '?']);
        if is_pattern {
            return self.list(&describe::tables(self.sql, Some(name)));
        }
        self.fail(&format!("there is no table \"{name}\"; \\dt lists those there are"))
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

    /// The statement that is open, or else the latest.
    fn buffer(&self, splitter: &Splitter) -> String {
        match splitter.open_text() {
            "" => self.latest.clone(),
            text => text.to_owned(),
        }
    }

    /// `\g`, `\gx`.
    fn go(
        &mut self,
        name: Option<&str>,
        line: usize,
        expanded: bool,
        file: Option<PathBuf>,
        around: &mut Around<'_>,
    ) -> Result<(), Stop> {
        let (text, line) = match around.splitter.finish() {
            Some(Piece::Statement(text, line)) => (text, line),
            _ => (self.latest.clone(), line),
        };
        if text.is_empty() {
            return self.fail("there is no statement to run yet");
        }
        let kept = self.expanded;
        if expanded {
            self.expanded = Expanded::On;
        }
        let result = match file {
            None => self.run_statement(name, &text, line, around),
            Some(path) => {
                let place = path.display().to_string();
                let kept = self.file.take();
                let result =
                    self.redirect(Some(path)).and_then(|()| self.run_statement(name, &text, line, around));
                self.file = kept;
                match result {
                    Err(Stop::Output(error)) => self.fail(&format!("cannot write {place}: {error}")),
                    result => result,
                }
            }
        };
        self.expanded = kept;
        result
    }

    /// `\w`.
    fn write_buffer(&mut self, path: &Path, splitter: &Splitter) -> Result<(), Stop> {
        let text = self.buffer(splitter);
        let written = self.env.disk.create(path).and_then(|mut file| writeln!(file, "{text};"));
        match written {
            Ok(()) => Ok(()),
            Err(error) => self.fail(&format!("cannot write {}: {error}", path.display())),
        }
    }

    /// `\e`: edits what is typed, the latest statement or a file, and runs the result as if it were typed.
    fn edit(&mut self, name: Option<&str>, path: Option<&Path>, around: &mut Around<'_>) -> Result<(), Stop> {
        if self.terminal.is_none() {
            return self.fail("\\e: only at a terminal");
        }
        let before = self.buffer(around.splitter);
        let edited = match path {
            Some(path) => self.lend(|| outside::edit(path, variable)).and_then(|()| self.read_text(path)),
            None => self.lend(|| outside::edit_text(&before, variable)),
        };
        let text = match edited {
            Ok(text) => text,
            Err(message) => return self.fail(&format!("\\e: {message}")),
        };
        // As psql has it: what was left as it was is not run.
        if path.is_none() && text.trim_end() == before.trim_end() {
            return Ok(());
        }
        around.splitter.reset();
        for line in text.lines() {
            self.say(line);
            for piece in around.splitter.push(line) {
                self.run_piece(name, &piece, around)?;
            }
        }
        Ok(())
    }

    fn read_text(&self, path: &Path) -> Result<String, String> {
        let mut text = String::new();
        let read = self.env.disk.open(path).and_then(|mut file| file.read_to_string(&mut text));
        read.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        Ok(text)
    }

    /// `\!`.
    fn system(&mut self, command: &str) -> Result<(), Stop> {
        self.out.flush()?;
        match self.lend(|| outside::run(command, variable)) {
            Ok(()) => Ok(()),
            Err(message) => self.fail(&format!("\\!: {message}")),
        }
    }

    /// Runs `work`, which starts a program that uses the terminal; Ctrl-C is for that program.
    fn lend<T>(&self, work: impl FnOnce() -> T) -> T {
        self.interrupt.during(Box::new(|| {}), || {
            let result = match &self.terminal {
                Some(terminal) => terminal.lend(work),
                None => work(),
            };
            self.interrupt.settle();
            result
        })
    }

    /// Prints a table where results go: through the pager if it is longer than the screen.
    pub(super) fn print_with(&mut self, expanded: Expanded, table: &Table<'_>) -> Result<(), Stop> {
        let null = self.null.clone();
        let (columns, rows) = if self.file.is_none() { (self.size)() } else { (None, None) };
        let width = columns.map(usize::from);
        let style =
            output::Style { format: self.format, expanded, width, null: &null, interrupt: self.interrupt };
        let printed = match self.pages(rows.map(usize::from)) {
            None => output::print(table, style, self.results()),
            Some((command, lines)) => {
                self.out.flush()?;
                let mut paged = super::pager::Paged::new(self.out, command, lines, self.terminal.as_ref());
                let printed = output::print(table, style, &mut paged);
                let printed = match printed {
                    // Whoever looks has seen enough.
                    Err(error) if paged.has_ended_early(&error) => Ok(()),
                    printed => printed,
                };
                let finished = paged.finish();
                self.interrupt.settle();
                finished.and(printed)
            }
        };
        match printed {
            Err(_) if self.interrupt.requested() => {
                self.fail("the rest of the result was not printed: interrupted")
            }
            printed => Ok(printed?),
        }
    }

    /// The pager for what is printed now, if there is one, and how many lines need none.
    fn pages(&self, rows: Option<usize>) -> Option<(std::ffi::OsString, usize)> {
        if self.file.is_some() || self.terminal.is_none() {
            return None;
        }
        let lines = match (&self.pager, rows) {
            (Pager::Off, _) | (Pager::On, None) => return None,
            (Pager::Always, _) => 0,
            // One for the prompt.
            (Pager::On, Some(rows)) => rows.saturating_sub(1),
        };
        Some((super::pager::command(variable)?, lines))
    }
}
