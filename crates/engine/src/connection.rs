//! A connection: statements one after another, with settings and an open transaction between them.

mod advisory;
mod block;

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use albireo_base::budget::Budget;
use albireo_base::progress::{Progress, StatementProgress};
use albireo_base::{SqlError, SqlState, Value};
use albireo_olap::CancelToken;
use albireo_olap::relation::Snapshot;
use albireo_partition::LockOwner;
use albireo_sql::ScriptStatement;
use albireo_sql::ast::Statement;
use albireo_sql::classify::{self, Explain, Setting, StatementClass, classify};
use albireo_sql::names::QualifiedName;
use parking_lot::Mutex;

use crate::adapters::StorageSnapshot;
use crate::cold::{self, VerifyReport};
use crate::copy::{Client, Watched};
use crate::durability;
use crate::interactive::{self, Interactive, Registered};
use crate::outcome::text_column;
use crate::query::options;
use crate::routines::{self, RoutineStatement};
use crate::settings::{NAMES, Settings};
use crate::statements::{Entry, Explained, Kept, Parsed, Trial, Wanted};
use crate::{BackupOptions, Database, Outcome, QueryResult, ReadOnlySession};
use block::Block;

/// One client of a database: its settings and at most one open transaction. Statements run one
/// after another; [`Connection::cancel`] stops the running one from another thread.
pub struct Connection {
    database: Database,
    state: Mutex<State>,
    cancel: Mutex<Cancelling>,
    progress: StatementProgress,
    /// What it has locked.
    locks: Arc<LockOwner>,
}

/// What stops a connection's statements.
#[derive(Default)]
struct Cancelling {
    /// That of the running statement, or of the next one.
    token: CancelToken,
    /// Somebody has asked for the token of the next statement, so that one takes it, cancelled or not.
    handed_out: bool,
}

#[derive(Default)]
struct State {
    settings: Settings,
    /// The open transaction.
    block: Option<Block>,
    /// Its place among those of all connections.
    registered: Option<Registered>,
    /// The settings after its COMMIT, and after its ROLLBACK.
    afterwards: (Settings, Settings),
    /// A statement of the open transaction failed: only ROLLBACK and COMMIT are taken.
    failed: bool,
}

impl State {
    /// Whether a transaction is open.
    fn in_block(&self) -> bool {
        self.block.is_some()
    }

    /// The open transaction, if it may write.
    fn writing(&self) -> Option<Arc<Mutex<Interactive>>> {
        match &self.block {
            Some(Block::Writing(open)) => Some(Arc::clone(open)),
            Some(Block::ReadOnly(..)) | None => None,
        }
    }

    /// The level of the open transaction.
    fn level(&self) -> Option<&'static str> {
        match &self.block {
            Some(Block::Writing(open)) => Some(open.lock().isolation().name()),
            _ => None,
        }
    }

    /// The snapshot of an open BEGIN READ ONLY.
    fn session(&self) -> Option<&Arc<ReadOnlySession>> {
        match &self.block {
            Some(Block::ReadOnly(session, _)) => Some(session),
            _ => None,
        }
    }

    /// Sets a setting; one that is not `local` also for the time after the open transaction.
    fn set(&mut self, name: &str, value: Option<&str>, local: bool) -> Result<(), SqlError> {
        self.settings.set(name, value)?;
        if !local && self.in_block() {
            self.afterwards.0.set(name, value)?;
        }
        Ok(())
    }
}

impl Connection {
    pub(crate) fn new(database: Database) -> Self {
        Self {
            database,
            state: Mutex::default(),
            cancel: Mutex::default(),
            progress: StatementProgress::default(),
            locks: LockOwner::new(),
        }
    }

    /// The database.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Stops the running statement, and those of its text that follow: they end with 57014 within
    /// about ten milliseconds. Without a running statement nothing happens, unless the token of the next
    /// one was asked for ([`Connection::cancel_token`]).
    pub fn cancel(&self) {
        self.cancel.lock().token.cancel();
    }

    /// What stops the next statement, or all of the next text of statements, or the next
    /// [`Connection::rolled_back`]. Unlike [`Connection::cancel`] it is never too early: a statement whose
    /// token was cancelled before it began ends with 57014 too. To be called while nothing runs.
    pub fn cancel_token(&self) -> CancelToken {
        let token = CancelToken::new();
        *self.cancel.lock() = Cancelling { token: token.clone(), handed_out: true };
        token
    }

    /// How far the running statement is, asked from another thread: a COPY or CREATE INDEX. `None` if no
    /// such statement runs, or none of their phases has begun.
    pub fn progress(&self) -> Option<Progress> {
        self.progress.get()
    }

    /// Runs one or more statements until the first that fails; see [`Database::execute`].
    ///
    /// # Errors
    /// The first failing statement's; its position counts in the whole text.
    pub fn execute(&self, sql: &str) -> Result<Vec<Outcome>, SqlError> {
        let cancel = self.begin_statement()?;
        if let Some(outcome) = self.run_kept(sql, &[], Wanted::Any, &cancel) {
            return outcome.map(|outcome| vec![outcome]);
        }
        let mut outcomes = Vec::new();
        let split = self.budget(&cancel).within(|| albireo_sql::split(sql));
        for statement in self.failing(split)? {
            let outcome = match self.run_kept(statement.text, &[], Wanted::Any, &cancel) {
                Some(outcome) => outcome,
                None => self.run_text(statement.text, &[], &cancel),
            };
            outcomes.push(outcome.map_err(|error| shift(error, &statement))?);
        }
        Ok(outcomes)
    }

    /// Runs one statement with parameters; see [`Database::execute_with`].
    ///
    /// # Errors
    /// As [`Database::execute_with`].
    pub fn execute_with(&self, sql: &str, parameters: &[Value]) -> Result<Outcome, SqlError> {
        let cancel = self.begin_statement()?;
        match self.run_kept(sql, parameters, Wanted::Any, &cancel) {
            Some(outcome) => outcome,
            None => self.run_text(sql, parameters, &cancel),
        }
    }

    /// Runs one query with parameters; see [`Database::query`].
    ///
    /// # Errors
    /// As [`Database::query`].
    pub fn query(&self, sql: &str, parameters: &[Value]) -> Result<QueryResult, SqlError> {
        let cancel = self.begin_statement()?;
        if let Some(outcome) = self.run_kept(sql, parameters, Wanted::Queries, &cancel) {
            return outcome.and_then(Outcome::into_rows);
        }
        let done = self.budget(&cancel).within(|| {
            let statement = albireo_sql::parse_one(sql)?;
            let done = match advisory::calls(&statement) {
                Some(calls) => self.run_advisory((&calls, sql), parameters, &cancel),
                None => self.query_parsed(&statement, sql, parameters, &cancel),
            };
            done.and_then(Outcome::into_rows)
        });
        self.failing(done)
    }

    /// Runs `COPY ... FROM STDIN`: loads the rows that `reader` gives until its end, or until the line `\\.` in
    /// the text format. Gives their number.
    ///
    /// ```
    /// # use albireo::{Config, Database};
    /// let db = Database::in_memory(Config::default())?;
    /// db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)")?;
    /// let connection = db.connect();
    /// let rows = connection.copy_from("COPY t FROM STDIN (FORMAT csv)", "1,Ada\n2,Grace\n".as_bytes())?;
    /// assert_eq!(rows, 2);
    /// let mut text = Vec::new();
    /// connection.copy_to("COPY (SELECT * FROM t ORDER BY id) TO STDOUT", &mut text)?;
    /// assert_eq!(text, b"1\tAda\n2\tGrace\n");
    /// # Ok::<(), albireo::SqlError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Connection::execute`]; no row is loaded then. 0A000 for any other statement.
    pub fn copy_from(&self, sql: &str, reader: impl Read + Send) -> Result<u64, SqlError> {
        self.copy_client(sql, Client::Reader(Box::new(reader)))
    }

    /// Runs `COPY ... TO STDOUT`: writes the rows to `writer`, and flushes it. Gives their number.
    ///
    /// # Errors
    /// As [`Connection::execute`]; a part of the rows may have been written then. 0A000 for any other
    /// statement.
    pub fn copy_to(&self, sql: &str, mut writer: impl Write + Send) -> Result<u64, SqlError> {
        self.copy_client(sql, Client::Writer(&mut writer))
    }

    fn copy_client(&self, sql: &str, client: Client<'_>) -> Result<u64, SqlError> {
        let cancel = self.begin_statement()?;
        let done = self.budget(&cancel).within(|| self.copy_within(sql, client, &cancel));
        self.failing(done)
    }

    fn copy_within(&self, sql: &str, client: Client<'_>, cancel: &CancelToken) -> Result<u64, SqlError> {
        let parsed = albireo_sql::parse_one(sql)?;
        if classify(&parsed)? != StatementClass::Copy {
            let what = format!("{} with rows from or for the client", classify::name_of(&parsed));
            return Err(SqlError::unsupported(what).with_hint("Use Connection::execute."));
        }
        let settings = {
            let state = self.state.lock();
            if state.failed {
                return Err(aborted());
            }
            state.settings.clone()
        };
        let copied = self.copy(&parsed, sql, &settings, cancel, client);
        copied.map(|outcome| match outcome {
            Outcome::Done { rows, .. } => rows,
            Outcome::Rows(_) => 0,
        })
    }

    fn copy(
        &self,
        parsed: &Statement,
        text: &str,
        settings: &Settings,
        cancel: &CancelToken,
        client: Client<'_>,
    ) -> Result<Outcome, SqlError> {
        let session = self.state.lock().session().cloned();
        let watched = Watched { cancel, progress: &self.progress };
        let outcome = self.database.run_copy(parsed, text, session.as_deref(), settings, watched, client);
        self.progress.end();
        outcome
    }

    /// Runs `work` in one transaction over all partitions, which is rolled back whatever happens in it, a
    /// panic included: a test of procedures that leaves no trace. Nobody else runs a transaction meanwhile.
    ///
    /// ```
    /// # use albireo::{Config, Database, Outcome};
    /// let db = Database::in_memory(Config::default())?;
    /// db.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, cents BIGINT CHECK (cents >= 0));
    ///             INSERT INTO account VALUES (7, 100)")?;
    /// db.execute("CREATE PROCEDURE withdraw(p_id integer, p_cents bigint) LANGUAGE plpgsql AS $$
    ///             BEGIN UPDATE account SET cents = cents - p_cents WHERE id = p_id; END $$")?;
    /// let left = db.connect().rolled_back(|trial| {
    ///     trial.run("CALL withdraw($1, $2)", &[7.into(), 30_i64.into()])?;
    ///     // A statement that fails takes back only what it did itself.
    ///     assert!(trial.run("CALL withdraw(7, 71)", &[]).is_err());
    ///     trial.run("SELECT cents FROM account WHERE id = 7", &[])
    /// })??;
    /// let Outcome::Rows(left) = left else { panic!("a query gives rows") };
    /// assert_eq!(left.value(0, 0).to_string(), "70");
    /// assert_eq!(db.query("SELECT cents FROM account", &[])?.value(0, 0).to_string(), "100");
    /// # Ok::<(), albireo::SqlError>(())
    /// ```
    ///
    /// `work` must not use the database in another way than through the [`Trial`]: it would wait for
    /// itself for ever.
    ///
    /// # Errors
    /// 25006 if a read-only transaction is open; 57014 if its token was cancelled before it began; XX000 if
    /// `work` panicked.
    pub fn rolled_back<R>(&self, work: impl FnOnce(&mut Trial<'_>) -> R) -> Result<R, SqlError> {
        self.refuse_in_session("change anything")?;
        self.refuse_writing("a transaction that is rolled back")?;
        let cancel = self.begin_statement()?;
        let settings = self.state.lock().settings.clone();
        self.database.try_out(&settings, &cancel, work)
    }

    /// Runs a statement that was bound before; `None` if there is none or it must be looked at first.
    #[inline]
    fn run_kept(
        &self,
        text: &str,
        parameters: &[Value],
        wanted: Wanted,
        cancel: &CancelToken,
    ) -> Option<Result<Outcome, SqlError>> {
        let limits = {
            let state = self.state.lock();
            if state.failed || cancel.is_cancelled() {
                return None;
            }
            if state.session().is_some() {
                drop(state);
                return self.run_kept_in_session(text, parameters, cancel);
            }
            if state.block.is_some() {
                drop(state);
                return self.run_writing(interactive::Statement::Kept, wanted, text, parameters, cancel);
            }
            self.database.limits(&state.settings, cancel)
        };
        match self.database.run_kept(text, parameters, wanted, &limits) {
            Kept::Ran(outcome) => Some(outcome),
            Kept::Query(entry) => {
                let settings = self.state.lock().settings.clone();
                let rows = self.database.run_query(&entry, parameters, None, &settings, cancel);
                Some(rows.map(Outcome::Rows))
            }
            Kept::Unknown => None,
        }
    }

    /// Runs a query that was bound before on the snapshot of the open transaction.
    fn run_kept_in_session(
        &self,
        text: &str,
        parameters: &[Value],
        cancel: &CancelToken,
    ) -> Option<Result<Outcome, SqlError>> {
        let open = {
            let state = self.state.lock();
            if state.registered.as_ref().is_some_and(Registered::is_overdue) {
                return None;
            }
            state.session().cloned()?
        };
        let entry =
            self.database.kept_query(text, parameters).filter(|entry| !entry.calls && !entry.locks.any)?;
        let rows = self.run_in_session(&entry, &open, (text, parameters), cancel);
        if rows.is_err() {
            self.fail();
        }
        Some(rows)
    }

    fn run_in_session(
        &self,
        entry: &Entry,
        open: &ReadOnlySession,
        (text, parameters): (&str, &[Value]),
        cancel: &CancelToken,
    ) -> Result<Outcome, SqlError> {
        let settings = self.enter_block(text)?;
        let rows = self.database.run_query(entry, parameters, Some(open.session()), &settings, cancel);
        self.leave_block(rows.map(Outcome::Rows))
    }

    /// # Errors
    /// 57014 if it was cancelled before.
    fn begin_statement(&self) -> Result<CancelToken, SqlError> {
        self.database.before_statement();
        let (token, handed_out) = {
            let mut current = self.cancel.lock();
            let handed_out = std::mem::take(&mut current.handed_out);
            if current.token.is_cancelled() && !handed_out {
                current.token = CancelToken::new();
            }
            (current.token.clone(), handed_out)
        };
        match handed_out && token.is_cancelled() {
            true => self.failing(Err(cancelled())),
            false => Ok(token),
        }
    }

    /// What a statement gave; its error, one in its syntax too, fails the open transaction.
    fn failing<T>(&self, done: Result<T, SqlError>) -> Result<T, SqlError> {
        if done.is_err() {
            self.fail();
        }
        done
    }

    /// What working out the next statement may take.
    fn budget(&self, cancel: &CancelToken) -> Arc<Budget> {
        self.database.budget(&self.state.lock().settings, cancel)
    }

    fn run_text(&self, text: &str, parameters: &[Value], cancel: &CancelToken) -> Result<Outcome, SqlError> {
        let run = || self.budget(cancel).within(|| self.run_within(text, parameters, cancel));
        self.failing(crate::errors::or_unreadable(run))
    }

    fn run_within(
        &self,
        text: &str,
        parameters: &[Value],
        cancel: &CancelToken,
    ) -> Result<Outcome, SqlError> {
        if cancel.is_cancelled() {
            return Err(cancelled());
        }
        if durability::is_checkpoint(text)? {
            return self.checkpoint();
        }
        if let Some(table) = cold::freeze_target(text)? {
            return self.freeze(&table, cancel);
        }
        if cold::is_verify(text)? {
            return self.verify(cancel);
        }
        if let Some(target) = durability::backup_target(text)? {
            return self.backup(&target, cancel);
        }
        if let Some(statement) = routines::parse(text)? {
            return self.run_routine(statement, text, parameters, cancel);
        }
        let parsed = albireo_sql::parse_one(text)?;
        let class = classify(&parsed)?;
        if self.state.lock().failed && class != StatementClass::Transaction {
            return Err(aborted());
        }
        self.run_class(class, &parsed, text, parameters, cancel)
    }

    fn run_class(
        &self,
        class: StatementClass,
        parsed: &Statement,
        text: &str,
        parameters: &[Value],
        cancel: &CancelToken,
    ) -> Result<Outcome, SqlError> {
        match class {
            StatementClass::Ddl | StatementClass::Change => self.refuse_in_session("change anything")?,
            _ => {}
        }
        match class {
            StatementClass::Change => {
                let statement = Parsed::Statement(parsed);
                if let Some(done) = self.run_parsed_writing(statement, text, parameters, cancel) {
                    return done;
                }
            }
            StatementClass::Ddl | StatementClass::Copy => self.refuse_writing(&classify::name_of(parsed))?,
            StatementClass::Query
            | StatementClass::Explain
            | StatementClass::Transaction
            | StatementClass::Set
            | StatementClass::Show => {}
        }
        let settings = self.state.lock().settings.clone();
        match class {
            StatementClass::Query => match advisory::calls(parsed) {
                Some(calls) => self.run_advisory((&calls, text), parameters, cancel),
                None => self.query_parsed(parsed, text, parameters, cancel),
            },
            StatementClass::Change => self.database.run_change(parsed, text, parameters, &settings, cancel),
            _ if !parameters.is_empty() => {
                Err(SqlError::unsupported(format!("{} with parameters", classify::name_of(parsed))))
            }
            StatementClass::Ddl => {
                let interrupts = self.database.limits(&settings, cancel).interrupts;
                let outcome = self.database.run_ddl(parsed, text, &self.progress, &interrupts);
                self.progress.end();
                outcome
            }
            StatementClass::Copy => self.copy(parsed, text, &settings, cancel, Client::None),
            StatementClass::Explain => self.explain(parsed, text, cancel),
            StatementClass::Transaction => self.command(classify::transaction(parsed)?),
            StatementClass::Set | StatementClass::Show => self.setting(&classify::setting(parsed)?),
        }
    }

    fn checkpoint(&self) -> Result<Outcome, SqlError> {
        if self.state.lock().failed {
            return Err(aborted());
        }
        let report = self.database.checkpoint()?;
        let written = format!(
            "archive {}: {} rows, {} bytes written, {} of older archives used again",
            report.number, report.rows, report.bytes_written, report.bytes_reused
        );
        let gone = report.gone.as_ref().map(durability::gone_text);
        let notices = [written].into_iter().chain(gone).collect();
        Ok(Outcome::Done { tag: "CHECKPOINT".into(), rows: 0, notices })
    }

    /// CALL albireo.freeze: the rows of a table, encoded.
    fn freeze(&self, table: &QualifiedName, cancel: &CancelToken) -> Result<Outcome, SqlError> {
        if self.state.lock().failed {
            return Err(aborted());
        }
        let report = self.database.freeze_table(table, &|| !cancel.is_cancelled())?;
        if cancel.is_cancelled() {
            return Err(cancelled());
        }
        let done = format!(
            "{} chunks of \"{table}\" frozen, in {} bytes; {} left as they are",
            report.chunks, report.bytes, report.left
        );
        let emptied = (report.emptied > 0).then(|| {
            format!(
                "{} frozen chunks emptied, most of whose rows were gone; {} rows moved",
                report.emptied, report.moved
            )
        });
        let unfetched = (report.unfetched > 0).then(|| {
            format!(
                "{} evicted chunks left as they are, most of whose rows are gone: there was no memory for the others, or they \
                 cannot be read",
                report.unfetched
            )
        });
        let notices = emptied.into_iter().chain(unfetched).chain([done]).collect();
        Ok(Outcome::Done { tag: "CALL".into(), rows: 0, notices })
    }

    /// CALL albireo.verify: all that has left memory, read.
    fn verify(&self, cancel: &CancelToken) -> Result<Outcome, SqlError> {
        if self.state.lock().failed {
            return Err(aborted());
        }
        let report = self.database.verify_evicted(&|| !cancel.is_cancelled());
        if cancel.is_cancelled() {
            return Err(cancelled());
        }
        let VerifyReport { chunks, bytes } = report?;
        let read = format!("evicted rows of {chunks} chunks are sound: {bytes} bytes read");
        Ok(Outcome::Done { tag: "CALL".into(), rows: 0, notices: vec![read] })
    }

    /// BACKUP TO: a copy of the database, taken while transactions run.
    fn backup(&self, target: &str, cancel: &CancelToken) -> Result<Outcome, SqlError> {
        if self.state.lock().failed {
            return Err(aborted());
        }
        let options = BackupOptions::default();
        let report = self.database.backup(target, &options, |_| {
            if cancel.is_cancelled() {
                options.cancel.store(true, Ordering::Relaxed);
            }
        })?;
        let written = format!(
            "backup of archive {} with {} rows and {} records of the log after it, {} bytes in {} files",
            report.archive, report.rows, report.records, report.bytes, report.files
        );
        Ok(Outcome::Done { tag: "BACKUP".into(), rows: 0, notices: vec![written] })
    }

    /// 25006 if a read-only transaction is open.
    fn refuse_in_session(&self, what: &str) -> Result<(), SqlError> {
        if self.state.lock().session().is_none() {
            return Ok(());
        }
        let text = format!("cannot {what} in a read-only transaction");
        Err(SqlError::new(SqlState::READ_ONLY_SQL_TRANSACTION, text))
    }

    fn run_routine(
        &self,
        statement: RoutineStatement,
        text: &str,
        parameters: &[Value],
        cancel: &CancelToken,
    ) -> Result<Outcome, SqlError> {
        let (settings, failed) = {
            let state = self.state.lock();
            (state.settings.clone(), state.failed)
        };
        if failed {
            return Err(aborted());
        }
        if let RoutineStatement::Call(function) = &statement
            && let Some(done) = self.run_parsed_writing(Parsed::Call(function), text, parameters, cancel)
        {
            return done;
        }
        let calls = matches!(statement, RoutineStatement::Call(_));
        if let Some(deed) = routines::deed(&statement) {
            self.refuse_writing("a definition of a routine")?;
            self.refuse_in_session(deed)?;
        }
        if !calls && !parameters.is_empty() {
            return Err(SqlError::unsupported("a definition or EXPLAIN of a routine with parameters"));
        }
        let limits = self.database.limits(&settings, cancel);
        self.database.run_routine_statement(statement, text, parameters, &limits)
    }

    fn query_parsed(
        &self,
        parsed: &Statement,
        text: &str,
        parameters: &[Value],
        cancel: &CancelToken,
    ) -> Result<Outcome, SqlError> {
        let statement = Parsed::Statement(parsed);
        if let Some(done) = self.run_parsed_writing(statement, text, parameters, cancel) {
            return done;
        }
        let (settings, open) = {
            let state = self.state.lock();
            (state.settings.clone(), state.session().cloned())
        };
        let Some(open) = open else {
            return self.database.run_read(parsed, text, parameters, &settings, cancel);
        };
        let entry = self.database.query_entry(parsed, text, parameters);
        if entry.calls {
            self.refuse_in_session("call a routine")?;
        }
        if entry.locks.any {
            let mode = if entry.locks.updates { "UPDATE" } else { "SHARE" };
            self.refuse_in_session(&format!("execute SELECT FOR {mode}"))?;
        }
        self.run_in_session(&entry, &open, (text, parameters), cancel)
    }

    fn explain(&self, parsed: &Statement, text: &str, cancel: &CancelToken) -> Result<Outcome, SqlError> {
        let plan = classify::explain(parsed)?;
        let settings = self.state.lock().settings.clone();
        let lines = match classify(plan.statement)? {
            StatementClass::Query => self.explain_query(&plan, text, &settings, cancel)?,
            StatementClass::Change if plan.analyze => {
                return Err(SqlError::unsupported("EXPLAIN ANALYZE of a statement that changes rows")
                    .with_hint("Use EXPLAIN alone, which changes nothing."));
            }
            StatementClass::Change => {
                self.database.explain_change(plan.statement, text, &settings, cancel)?
            }
            _ => {
                let what = format!("EXPLAIN of {}", classify::name_of(plan.statement));
                return Err(SqlError::unsupported(what));
            }
        };
        Ok(Outcome::Rows(text_column("QUERY PLAN", lines.iter().map(String::as_str))))
    }

    fn explain_query(
        &self,
        plan: &Explain<'_>,
        text: &str,
        settings: &Settings,
        cancel: &CancelToken,
    ) -> Result<Vec<String>, SqlError> {
        let open = self.state.lock().session().cloned();
        let mut reason = None;
        if open.is_none() {
            let limits = self.database.limits(settings, cancel);
            // What is wrong with it, the other path says.
            match self.database.explain_statement(plan.statement, text, &limits, plan.analyze) {
                Ok(Explained::Here(lines)) => return Ok(lines),
                Ok(Explained::Elsewhere(why)) => reason = Some(why),
                Err(_) => {}
            }
        }
        let prepared = self.database.plan_of_part(plan.statement, text)?;
        let session = match open {
            Some(open) => open.session().clone(),
            None => self.database.session_for(&prepared, settings)?,
        };
        let snapshot = session.snapshot().map_err(crate::errors::session)?;
        let epoch = snapshot.epoch();
        let snapshot: Arc<dyn Snapshot> = Arc::new(StorageSnapshot(snapshot));
        let olap = &self.database.inner.olap;
        let options = options(settings, cancel);
        let plan = match plan.analyze {
            true => olap.explain_analyze(&prepared, &[], &snapshot, options)?,
            false => olap.explain(&prepared, &[], &snapshot, options)?,
        };
        let head = format!("analytical, snapshot {epoch} (copy-on-write)");
        Ok(std::iter::once(head).chain(reason).chain(plan.lines().map(str::to_owned)).collect())
    }

    fn setting(&self, setting: &Setting) -> Result<Outcome, SqlError> {
        let mut state = self.state.lock();
        let done = |tag: &str| Outcome::Done { tag: tag.to_owned().into(), rows: 0, notices: Vec::new() };
        match setting {
            Setting::Set { name, value, local: true } if !state.in_block() => {
                state.settings.clone().set(name, value.as_deref())?;
                let notice = "SET LOCAL can only be used in transaction blocks".to_owned();
                Ok(Outcome::Done { tag: "SET".into(), rows: 0, notices: vec![notice] })
            }
            Setting::Set { name, value, local } => {
                state.set(name, value.as_deref(), *local)?;
                Ok(done("SET"))
            }
            Setting::Reset(Some(name)) => {
                state.set(name, None, false)?;
                Ok(done("RESET"))
            }
            Setting::Reset(None) => {
                (state.settings, state.afterwards.0) = (Settings::default(), Settings::default());
                Ok(done("RESET"))
            }
            Setting::Show(name) if name == "all" => {
                let lines: Result<Vec<String>, SqlError> =
                    NAMES.iter().map(|name| Ok(format!("{name} = {}", state.settings.show(name)?))).collect();
                Ok(Outcome::Rows(text_column("setting", lines?.iter().map(String::as_str))))
            }
            Setting::Show(name)
                if let Some(level) = state.level().filter(|_| name == "transaction_isolation") =>
            {
                Ok(Outcome::Rows(text_column(name, std::iter::once(level))))
            }
            Setting::Show(name) => {
                Ok(Outcome::Rows(text_column(name, std::iter::once(state.settings.show(name)?.as_str()))))
            }
        }
    }
}

/// 57014.
fn cancelled() -> SqlError {
    SqlError::new(SqlState::QUERY_CANCELED, "canceling statement due to user request")
}

/// 25P02.
fn aborted() -> SqlError {
    let text = "current transaction is aborted, commands ignored until end of transaction block";
    SqlError::new(SqlState(*b"25P02"), text).with_hint("Use ROLLBACK.")
}

/// Moves an error's position from the statement to the whole text.
fn shift(error: SqlError, statement: &ScriptStatement<'_>) -> SqlError {
    match error.position() {
        Some(position) => error.with_position(position + statement.position - 1),
        None => error,
    }
}
