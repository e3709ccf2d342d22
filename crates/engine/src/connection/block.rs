//! Transaction blocks: BEGIN, COMMIT and ROLLBACK, savepoints, and the statements between.

use std::sync::Arc;

use albireo_base::{SqlError, SqlState, Value};
use albireo_olap::CancelToken;
use albireo_sql::classify::{Isolation, TransactionCommand, TransactionModes};
use parking_lot::Mutex;

use super::{Connection, State};
use crate::interactive::{Interactive, Overdue, Statement};
use crate::settings::Settings;
use crate::statements::{Parsed, Wanted};
use crate::{Outcome, ReadOnlySession};

/// What is open between BEGIN and COMMIT.
pub(super) enum Block {
    /// READ ONLY: queries on one snapshot, and the names of its savepoints, which have nothing to take back.
    ReadOnly(Arc<ReadOnlySession>, Vec<String>),
    /// Any other.
    Writing(Arc<Mutex<Interactive>>),
}

impl State {
    /// A statement begins: what is set for it. It may take no longer than the open transaction.
    ///
    /// # Errors
    /// That has taken too long.
    fn begin(&self, text: &str) -> Result<Settings, Overdue> {
        if let Some(registered) = &self.registered {
            registered.begin(text)?;
        }
        Ok(self.settings_in_block())
    }

    /// What is set for a statement that has begun.
    pub(super) fn settings_in_block(&self) -> Settings {
        let mut settings = self.settings.clone();
        if let Some(registered) = &self.registered {
            let all = [settings.statement_timeout, registered.left(&settings)];
            settings.statement_timeout = all.into_iter().flatten().min();
        }
        settings
    }
}

impl Connection {
    /// Begins a transaction, as BEGIN does: the statements until [`Connection::commit`] or
    /// [`Connection::rollback`] are one transaction, SERIALIZABLE if `default_transaction_isolation` is not set.
    ///
    /// ```
    /// # use albireo::{Config, Database};
    /// let db = Database::in_memory(Config::default())?;
    /// db.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, cents BIGINT NOT NULL);
    ///             INSERT INTO account VALUES (1, 100), (2, 0)")?;
    /// let (one, other) = (db.connect(), db.connect());
    /// one.begin()?;
    /// let cents = one.query("SELECT cents FROM account WHERE id = 1", &[])?.value(0, 0);
    /// assert_eq!(cents.to_string(), "100");
    /// // Nobody waits for the open transaction, but what it has read is not so any more.
    /// other.execute("UPDATE account SET cents = 50 WHERE id = 1")?;
    /// let error = one.execute("UPDATE account SET cents = cents + 100 WHERE id = 2").unwrap_err();
    /// assert_eq!(error.state().to_string(), "40001");
    /// one.rollback()?;
    /// # Ok::<(), albireo::SqlError>(())
    /// ```
    ///
    /// # Errors
    /// 25001 if one is open already; those of `BEGIN READ ONLY` if that is the default.
    pub fn begin(&self) -> Result<(), SqlError> {
        let mut state = self.state.lock();
        if state.block.is_some() {
            return Err(SqlError::new(SqlState(*b"25001"), "there is already a transaction in progress"));
        }
        self.open(&mut state, TransactionModes::default())
    }

    /// Ends the open transaction, as COMMIT does.
    ///
    /// # Errors
    /// 40001 if somebody has changed what it has read, 25P02 if one of its statements failed, 25P01 if none is
    /// open. It has changed nothing then.
    pub fn commit(&self) -> Result<(), SqlError> {
        let failed = {
            let state = self.state.lock();
            if state.block.is_none() {
                return Err(SqlError::new(SqlState(*b"25P01"), "there is no transaction in progress"));
            }
            state.failed
        };
        self.end(!failed)?;
        if failed { Err(super::aborted()) } else { Ok(()) }
    }

    /// Ends the open transaction, as ROLLBACK does: it has changed nothing. Without one nothing happens.
    ///
    /// # Errors
    /// None so far.
    pub fn rollback(&self) -> Result<(), SqlError> {
        self.end(false)
    }

    /// Runs `work` between BEGIN and COMMIT, again and again as long as others change what it has read, or wait for what
    /// it has locked while it waits for them. What it does besides must bear to be done several times.
    ///
    /// ```
    /// # use albireo::{Config, Database};
    /// # let db = Database::in_memory(Config::default())?;
    /// # db.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, cents BIGINT NOT NULL);
    /// #             INSERT INTO account VALUES (1, 100), (2, 0)")?;
    /// db.connect().transaction(|connection| {
    ///     connection.execute("UPDATE account SET cents = cents - 10 WHERE id = 1")?;
    ///     connection.execute("UPDATE account SET cents = cents + 10 WHERE id = 2")
    /// })?;
    /// # Ok::<(), albireo::SqlError>(())
    /// ```
    ///
    /// # Errors
    /// Those of `work` and of COMMIT but 40001 and 40P01; the transaction has changed nothing then. 25001 if one is open
    /// already.
    pub fn transaction<R>(&self, mut work: impl FnMut(&Self) -> Result<R, SqlError>) -> Result<R, SqlError> {
        loop {
            self.begin()?;
            let done = work(self).and_then(|value| self.commit().map(|()| value));
            match done {
                Ok(value) => return Ok(value),
                Err(error) => {
                    self.rollback()?;
                    let again = [SqlState::SERIALIZATION_FAILURE, SqlState::DEADLOCK_DETECTED];
                    if !again.contains(&error.state()) {
                        return Err(error);
                    }
                }
            }
        }
    }

    fn open(&self, state: &mut State, modes: TransactionModes) -> Result<(), SqlError> {
        let read_only = modes.read_only.unwrap_or(state.settings.read_only);
        let block = match read_only {
            true => {
                let session = Arc::new(self.database.begin_read_only()?);
                state.registered = Some(self.database.register(&self.locks, None, &state.settings)?);
                Block::ReadOnly(session, Vec::new())
            }
            false => {
                let isolation = modes.isolation.unwrap_or(state.settings.isolation);
                let open = Arc::new(Mutex::new(self.database.begin_interactive(isolation, &self.locks)));
                let registered = self.database.register(&self.locks, Some(&open), &state.settings)?;
                open.lock().show(registered.activity());
                state.registered = Some(registered);
                Block::Writing(open)
            }
        };
        state.block = Some(block);
        state.afterwards = (state.settings.clone(), state.settings.clone());
        state.failed = false;
        Ok(())
    }

    /// Ends what is open.
    fn end(&self, commits: bool) -> Result<(), SqlError> {
        // One that has taken too long does not commit.
        let in_time = if commits { self.enter_block("COMMIT").map(drop) } else { Ok(()) };
        let commits = commits && in_time.is_ok();
        let (block, synchronous) = {
            let mut state = self.state.lock();
            let Some(block) = state.block.take() else { return Ok(()) };
            state.registered = None;
            let synchronous = state.settings.synchronous;
            let (committed, rolled_back) = std::mem::take(&mut state.afterwards);
            state.settings = if commits { committed } else { rolled_back };
            state.failed = false;
            (block, synchronous)
        };
        let Block::Writing(open) = block else {
            self.database.inner.advisory.release_since(&self.locks, 0);
            return in_time;
        };
        let over = self.database.begin_interactive(Isolation::Serializable, &self.locks);
        let open = std::mem::replace(&mut *open.lock(), over);
        match commits {
            true => self.database.commit_interactive(open, synchronous),
            false => {
                self.database.end_interactive(&open);
                in_time
            }
        }
    }

    /// A statement of the open transaction begins, if one is open: what is set for it.
    ///
    /// # Errors
    /// 25P03, 25P04: the transaction has taken too long, and is ended.
    pub(super) fn enter_block(&self, text: &str) -> Result<Settings, SqlError> {
        let (overdue, open) = {
            let state = self.state.lock();
            match state.begin(text) {
                Ok(settings) => return Ok(settings),
                Err(overdue) => (overdue, state.writing()),
            }
        };
        Err(self.expire(open, overdue))
    }

    /// The open transaction has taken too long.
    fn expire(&self, open: Option<Arc<Mutex<Interactive>>>, overdue: Overdue) -> SqlError {
        if let Some(open) = open {
            self.database.expire(&mut open.lock(), overdue);
        }
        self.fail();
        overdue.error()
    }

    /// It has ended.
    ///
    /// # Errors
    /// Those of the statement; 25P04 instead of 57014 if it was the transaction that took too long.
    pub(super) fn leave_block<T>(&self, done: Result<T, SqlError>) -> Result<T, SqlError> {
        let (open, late) = {
            let state = self.state.lock();
            let Some(registered) = &state.registered else { return done };
            registered.end(done.is_err() || state.failed, state.level(), &state.settings);
            let late = registered.left(&state.settings).is_some_and(|left| left.is_zero());
            (state.writing(), late)
        };
        match done {
            Err(error) if late && error.state() == SqlState::QUERY_CANCELED => {
                if let Some(open) = open {
                    self.database.expire(&mut open.lock(), Overdue::Transaction);
                }
                Err(Overdue::Transaction.error())
            }
            done => done,
        }
    }

    /// Whether a transaction is open that may write.
    pub(super) fn is_writing(&self) -> bool {
        matches!(self.state.lock().block, Some(Block::Writing(_)))
    }

    #[cfg(test)]
    pub(crate) fn has_written(&self) -> bool {
        matches!(&self.state.lock().block, Some(Block::Writing(open)) if open.lock().has_written())
    }

    /// Runs a statement of the open transaction; `None` if none is open that may write, or it is not kept.
    pub(super) fn run_writing(
        &self,
        statement: Statement<'_>,
        wanted: Wanted,
        text: &str,
        parameters: &[Value],
        cancel: &CancelToken,
    ) -> Option<Result<Outcome, SqlError>> {
        let (open, began) = {
            let state = self.state.lock();
            (state.writing()?, state.begin(text))
        };
        let settings = match (began, statement) {
            (Ok(settings), _) => settings,
            // What it is must be known first: it may end the transaction.
            (Err(_), Statement::Kept) => return None,
            (Err(overdue), Statement::Parsed(_)) => return Some(Err(self.expire(Some(open), overdue))),
        };
        let queries = wanted == Wanted::Queries;
        let source = (text, parameters, queries);
        let done = self.database.run_interactive(&mut open.lock(), statement, source, &settings, cancel);
        let Some(done) = done else {
            // It is another path's, which begins it again.
            return self.leave_block(Ok(None)).ok()?;
        };
        let done = self.leave_block(done);
        if done.is_err() {
            self.fail();
        }
        Some(done)
    }

    /// A statement has failed: the open transaction takes only ROLLBACK and COMMIT, and has no locks since its last
    /// savepoint.
    pub(super) fn fail(&self) {
        let open = {
            let mut state = self.state.lock();
            state.failed |= state.in_block();
            state.writing()
        };
        if let Some(open) = open {
            self.database.fail_interactive(&open.lock());
        }
    }

    /// As [`Connection::run_writing`], of a statement that was parsed.
    pub(super) fn run_parsed_writing(
        &self,
        parsed: Parsed<'_>,
        text: &str,
        parameters: &[Value],
        cancel: &CancelToken,
    ) -> Option<Result<Outcome, SqlError>> {
        self.run_writing(Statement::Parsed(parsed), Wanted::Any, text, parameters, cancel)
    }

    /// # Errors
    /// 0A000 if a transaction is open that may write.
    pub(super) fn refuse_writing(&self, what: &str) -> Result<(), SqlError> {
        match self.is_writing() {
            true => Err(SqlError::unsupported(format!("{what} in a transaction block"))
                .with_hint("Run it before BEGIN or after COMMIT: it is a transaction of its own.")),
            false => Ok(()),
        }
    }

    /// BEGIN, what ends it and what stands between.
    pub(super) fn command(&self, command: TransactionCommand) -> Result<Outcome, SqlError> {
        let done = |tag: &str| Ok(told(tag, None));
        match command {
            TransactionCommand::Begin(modes) => {
                let mut state = self.state.lock();
                if state.block.is_some() {
                    return Ok(told("BEGIN", Some("there is already a transaction in progress")));
                }
                self.open(&mut state, modes)?;
                done("BEGIN")
            }
            TransactionCommand::Commit { chain } => self.end_by_command(true, chain),
            TransactionCommand::Rollback { chain } => self.end_by_command(false, chain),
            TransactionCommand::Savepoint(name) => {
                self.savepoint(&name, Step::Set).and_then(|()| done("SAVEPOINT"))
            }
            TransactionCommand::RollbackTo(name) => {
                self.savepoint(&name, Step::RollBack)?;
                self.state.lock().failed = false;
                done("ROLLBACK")
            }
            TransactionCommand::Release(name) => {
                self.savepoint(&name, Step::Release).and_then(|()| done("RELEASE"))
            }
            TransactionCommand::Set(modes) => self.set_modes(modes),
            TransactionCommand::SetDefault(modes) => {
                let mut state = self.state.lock();
                let levels = modes.isolation.map(|level| ("default_transaction_isolation", level.name()));
                let reads = modes.read_only.map(|on| if on { "on" } else { "off" });
                for (name, value) in
                    levels.into_iter().chain(reads.map(|on| ("default_transaction_read_only", on)))
                {
                    state.set(name, Some(value), false)?;
                }
                done("SET")
            }
        }
    }

    fn end_by_command(&self, commits: bool, chain: bool) -> Result<Outcome, SqlError> {
        let (modes, failed) = {
            let state = self.state.lock();
            let modes = match &state.block {
                None => None,
                Some(Block::ReadOnly(..)) => {
                    Some(TransactionModes { read_only: Some(true), isolation: None })
                }
                Some(Block::Writing(open)) => Some(TransactionModes {
                    read_only: Some(false),
                    isolation: Some(open.lock().isolation()),
                }),
            };
            (modes, state.failed)
        };
        let tag = if commits && !failed { "COMMIT" } else { "ROLLBACK" };
        let Some(modes) = modes else {
            if chain {
                let text = format!("{tag} AND CHAIN can only be used in transaction blocks");
                return Err(SqlError::new(SqlState(*b"25P01"), text));
            }
            return Ok(told(tag, Some("there is no transaction in progress")));
        };
        self.end(tag == "COMMIT")?;
        if chain {
            self.open(&mut self.state.lock(), modes)?;
        }
        Ok(told(tag, None))
    }

    fn savepoint(&self, name: &str, step: Step) -> Result<(), SqlError> {
        let mut state = self.state.lock();
        if state.failed && step != Step::RollBack {
            return Err(super::aborted());
        }
        match &mut state.block {
            None => {
                let text = format!("{} can only be used in transaction blocks", step.name());
                Err(SqlError::new(SqlState(*b"25P01"), text))
            }
            Some(Block::Writing(open)) => {
                let mut open = open.lock();
                match step {
                    Step::Set => {
                        self.database.set_savepoint(&mut open, name.to_owned());
                        Ok(())
                    }
                    Step::RollBack => self.database.roll_back_to(&mut open, name),
                    Step::Release => open.release(name),
                }
            }
            Some(Block::ReadOnly(_, names)) => {
                let at = names.iter().rposition(|other| other == name);
                match (step, at) {
                    (Step::Set, _) => names.push(name.to_owned()),
                    (Step::RollBack, Some(at)) => names.truncate(at + 1),
                    (Step::Release, Some(at)) => names.truncate(at),
                    (_, None) => {
                        let text = format!("savepoint \"{name}\" does not exist");
                        return Err(SqlError::new(SqlState(*b"3B001"), text));
                    }
                }
                Ok(())
            }
        }
    }

    fn set_modes(&self, modes: TransactionModes) -> Result<Outcome, SqlError> {
        let mut state = self.state.lock();
        if state.failed {
            return Err(super::aborted());
        }
        let open = match &state.block {
            None => return Ok(told("SET", Some("SET TRANSACTION can only be used in transaction blocks"))),
            Some(Block::ReadOnly(..)) if modes.read_only == Some(false) => {
                let text = "cannot set transaction read-write mode inside a read-only transaction";
                return Err(SqlError::new(SqlState(*b"25001"), text));
            }
            Some(Block::ReadOnly(..)) => return Ok(told("SET", None)),
            Some(Block::Writing(open)) => Arc::clone(open),
        };
        if let Some(isolation) = modes.isolation {
            open.lock().set_isolation(isolation)?;
        }
        if modes.read_only == Some(true) {
            open.lock().set_isolation(Isolation::Serializable)?;
            let session = self.database.begin_read_only()?;
            state.block = Some(Block::ReadOnly(Arc::new(session), Vec::new()));
        }
        Ok(told("SET", None))
    }
}

/// What is done with a savepoint.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Set,
    RollBack,
    Release,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Self::Set => "SAVEPOINT",
            Self::RollBack => "ROLLBACK TO SAVEPOINT",
            Self::Release => "RELEASE SAVEPOINT",
        }
    }
}

fn told(tag: &str, notice: Option<&str>) -> Outcome {
    Outcome::Done {
        tag: tag.to_owned().into(),
        rows: 0,
        notices: notice.map(str::to_owned).into_iter().collect(),
    }
}

impl Drop for Connection {
    /// What is open is rolled back.
    fn drop(&mut self) {
        if let Some(Block::Writing(open)) = &self.state.get_mut().block {
            self.database.end_interactive(&open.lock());
        }
        let advisory = &self.database.inner.advisory;
        advisory.unlock_all(&self.locks);
        advisory.release_since(&self.locks, 0);
    }
}
