//! What kind of statement one is, and what the small ones say.

use albireo_base::{SqlError, SqlState};
use sqlparser::ast::{
    AlterTable, AlterTableOperation, ContextModifier, Expr, ObjectName, ObjectType, Reset, Set, SetExpr,
    Statement, TransactionAccessMode, TransactionIsolationLevel, TransactionMode, Value,
};

use crate::names;

/// Which road a statement takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StatementClass {
    /// SELECT, VALUES, TABLE: reads, and gives rows.
    Query,
    /// INSERT, UPDATE, DELETE, MERGE, after WITH or not.
    Change,
    /// COPY, in either direction.
    Copy,
    /// CREATE, DROP, ALTER, TRUNCATE.
    Ddl,
    /// EXPLAIN of a query; see [`explain`].
    Explain,
    /// BEGIN, COMMIT, ROLLBACK, SAVEPOINT, SET TRANSACTION; see [`transaction`].
    Transaction,
    /// SET and RESET; see [`setting`].
    Set,
    /// SHOW; see [`setting`].
    Show,
}

/// The class of a statement.
///
/// # Errors
/// 0A000 with the statement's name for those we do not have.
pub fn classify(statement: &Statement) -> Result<StatementClass, SqlError> {
    Ok(match statement {
        statement if changes_rows(statement) => StatementClass::Change,
        Statement::Query(_) => StatementClass::Query,
        Statement::Copy { .. } => StatementClass::Copy,
        Statement::CreateTable(_)
        | Statement::CreateIndex(_)
        | Statement::CreateSchema { .. }
        | Statement::Truncate(_)
        | Statement::Drop {
            object_type: ObjectType::Table | ObjectType::Index | ObjectType::Schema, ..
        } => StatementClass::Ddl,
        Statement::AlterTable(alter) if sets_options(alter) => StatementClass::Ddl,
        Statement::Explain { .. } => StatementClass::Explain,
        Statement::StartTransaction { .. }
        | Statement::Commit { .. }
        | Statement::Rollback { .. }
        | Statement::Savepoint { .. }
        | Statement::ReleaseSavepoint { .. }
        | Statement::Set(Set::SetTransaction { .. }) => StatementClass::Transaction,
        Statement::Set(_) | Statement::Reset(_) => StatementClass::Set,
        Statement::ShowVariable { .. } => StatementClass::Show,
        other => return Err(SqlError::unsupported(name_of(other))),
    })
}

/// Whether a statement is INSERT, UPDATE, DELETE or MERGE, after WITH or not.
pub fn changes_rows(statement: &Statement) -> bool {
    match statement {
        Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) | Statement::Merge(_) => true,
        Statement::Query(query) => matches!(
            *query.body,
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_)
        ),
        _ => false,
    }
}

/// The statement's leading keywords, such as `ALTER TABLE`.
pub fn name_of(statement: &Statement) -> String {
    const SECOND: [&str; 4] = ["CREATE", "ALTER", "DROP", "COMMENT"];
    let text = statement.to_string();
    let mut words = text.split_whitespace().map(str::to_uppercase);
    let first = words.next().unwrap_or_default();
    let skip = ["OR", "REPLACE", "IF", "EXISTS", "TEMPORARY"];
    match words.find(|word| !skip.contains(&word.as_str())) {
        Some(second) if SECOND.contains(&first.as_str()) => format!("{first} {second}"),
        _ => first,
    }
}

/// What EXPLAIN is asked for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Explain<'a> {
    /// Whether to run the statement and measure.
    pub analyze: bool,
    /// Whether to say more.
    pub verbose: bool,
    /// The statement.
    pub statement: &'a Statement,
}

/// Reads EXPLAIN, in both its forms.
///
/// # Errors
/// 0A000 for a form of PostgreSQL we do not have or a statement that is no EXPLAIN, 42601 for an
/// unknown option.
pub fn explain(statement: &Statement) -> Result<Explain<'_>, SqlError> {
    let Statement::Explain { analyze, verbose, query_plan, estimate, statement, format, options, .. } =
        statement
    else {
        return Err(SqlError::unsupported(name_of(statement)));
    };
    if *query_plan || *estimate || format.is_some() {
        return Err(SqlError::unsupported("this form of EXPLAIN"));
    }
    let mut plan = Explain { analyze: *analyze, verbose: *verbose, statement };
    for option in options.iter().flatten() {
        let on = match &option.arg {
            None => true,
            Some(arg) => match arg.to_string().trim_matches('\'').to_lowercase().as_str() {
                "true" | "on" | "1" => true,
                "false" | "off" | "0" => false,
                "text" => true,
                other => return Err(SqlError::unsupported(format!("EXPLAIN ({} {other})", option.name))),
            },
        };
        match names::fold(&option.name).as_str() {
            "analyze" => plan.analyze = on,
            "verbose" => plan.verbose = on,
            // What these ask for is shown anyway, or there is nothing to show.
            "costs" | "timing" | "summary" | "buffers" | "format" | "settings" | "wal" => {}
            other => {
                let message = format!("unrecognized EXPLAIN option \"{other}\"");
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
        }
    }
    Ok(plan)
}

/// BEGIN, what ends it and what stands between.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TransactionCommand {
    /// BEGIN or START TRANSACTION.
    Begin(TransactionModes),
    /// SET TRANSACTION.
    Set(TransactionModes),
    /// SET SESSION CHARACTERISTICS AS TRANSACTION.
    SetDefault(TransactionModes),
    /// COMMIT or END.
    Commit {
        /// Whether the next one begins at once: AND CHAIN.
        chain: bool,
    },
    /// ROLLBACK or ABORT.
    Rollback {
        /// Whether the next one begins at once: AND CHAIN.
        chain: bool,
    },
    /// SAVEPOINT, with its name.
    Savepoint(String),
    /// ROLLBACK TO SAVEPOINT.
    RollbackTo(String),
    /// RELEASE SAVEPOINT.
    Release(String),
}

/// What is said of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TransactionModes {
    /// `READ ONLY` or `READ WRITE`.
    pub read_only: Option<bool>,
    /// Its level.
    pub isolation: Option<Isolation>,
}

/// An isolation level.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Isolation {
    /// READ COMMITTED, and READ UNCOMMITTED, which is the same.
    ReadCommitted,
    /// REPEATABLE READ.
    RepeatableRead,
    /// SERIALIZABLE.
    #[default]
    Serializable,
}

impl Isolation {
    /// Its name as settings have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadCommitted => "read committed",
            Self::RepeatableRead => "repeatable read",
            Self::Serializable => "serializable",
        }
    }

    /// The level of this name.
    pub fn named(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "read committed" | "read uncommitted" => Some(Self::ReadCommitted),
            "repeatable read" => Some(Self::RepeatableRead),
            "serializable" => Some(Self::Serializable),
            _ => None,
        }
    }
}

/// Reads BEGIN, COMMIT, ROLLBACK, savepoints and SET TRANSACTION.
///
/// # Errors
/// 0A000 for their rarer forms, and for statements that are none of these.
pub fn transaction(statement: &Statement) -> Result<TransactionCommand, SqlError> {
    match statement {
        Statement::StartTransaction { modes, modifier: None, statements, exception: None, .. }
            if statements.is_empty() =>
        {
            transaction_modes(modes).map(TransactionCommand::Begin)
        }
        Statement::Set(Set::SetTransaction { modes, snapshot: None, session: false }) => {
            transaction_modes(modes).map(TransactionCommand::Set)
        }
        Statement::Set(Set::SetTransaction { modes, snapshot: None, session: true }) => {
            transaction_modes(modes).map(TransactionCommand::SetDefault)
        }
        Statement::Commit { chain, modifier: None, .. } => Ok(TransactionCommand::Commit { chain: *chain }),
        Statement::Rollback { chain, savepoint: None } => Ok(TransactionCommand::Rollback { chain: *chain }),
        Statement::Rollback { savepoint: Some(name), .. } => {
            Ok(TransactionCommand::RollbackTo(names::fold(name)))
        }
        Statement::Savepoint { name } => Ok(TransactionCommand::Savepoint(names::fold(name))),
        Statement::ReleaseSavepoint { name } => Ok(TransactionCommand::Release(names::fold(name))),
        other => Err(SqlError::unsupported(format!("this form of {}", name_of(other)))),
    }
}

fn transaction_modes(modes: &[TransactionMode]) -> Result<TransactionModes, SqlError> {
    let mut said = TransactionModes::default();
    for mode in modes {
        match mode {
            TransactionMode::AccessMode(mode) => {
                said.read_only = Some(*mode == TransactionAccessMode::ReadOnly);
            }
            TransactionMode::IsolationLevel(level) => said.isolation = Some(isolation_level(*level)?),
        }
    }
    Ok(said)
}

fn isolation_level(level: TransactionIsolationLevel) -> Result<Isolation, SqlError> {
    Ok(match level {
        TransactionIsolationLevel::ReadUncommitted | TransactionIsolationLevel::ReadCommitted => {
            Isolation::ReadCommitted
        }
        TransactionIsolationLevel::RepeatableRead => Isolation::RepeatableRead,
        TransactionIsolationLevel::Serializable => Isolation::Serializable,
        TransactionIsolationLevel::Snapshot => {
            return Err(SqlError::unsupported("ISOLATION LEVEL SNAPSHOT")
                .with_hint("REPEATABLE READ is snapshot isolation."));
        }
    })
}

/// SET, RESET and SHOW.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Setting {
    /// `SET [LOCAL] name = value`; `None` is `DEFAULT`.
    Set {
        /// The setting, in lower case.
        name: String,
        /// Its value as text.
        value: Option<String>,
        /// Whether for this transaction only.
        local: bool,
    },
    /// `SHOW name`; the name is `all` for all.
    Show(String),
    /// `RESET name`; `None` is `ALL`.
    Reset(Option<String>),
}

/// Reads SET, RESET and SHOW.
///
/// # Errors
/// 0A000 for their rarer forms and for statements that are none of these.
pub fn setting(statement: &Statement) -> Result<Setting, SqlError> {
    match statement {
        Statement::Set(Set::SingleAssignment { scope, hivevar: false, variable, values }) => {
            let values: Vec<String> = values.iter().map(setting_text).collect();
            let value = values.join(", ");
            let is_default = values.len() == 1 && value.eq_ignore_ascii_case("default");
            Ok(Setting::Set {
                name: variable_name(variable),
                value: (!is_default).then_some(value),
                local: *scope == Some(ContextModifier::Local),
            })
        }
        Statement::Set(Set::SetTimeZone { local, value }) => {
            let text = setting_text(value);
            let is_default = text.eq_ignore_ascii_case("default");
            let value = (!is_default).then_some(text);
            Ok(Setting::Set { name: "timezone".to_owned(), value, local: *local })
        }
        Statement::Set(Set::SetNames { charset_name, .. }) => Ok(Setting::Set {
            name: "client_encoding".to_owned(),
            value: Some(charset_name.value.clone()),
            local: false,
        }),
        Statement::ShowVariable { variable } => {
            let parts: Vec<String> = variable.iter().map(names::fold).collect();
            Ok(Setting::Show(match parts.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
                ["time", "zone"] => "timezone".to_owned(),
                ["transaction", "isolation", "level"] => "transaction_isolation".to_owned(),
                _ => parts.join("."),
            }))
        }
        Statement::Reset(reset) => Ok(Setting::Reset(match &reset.reset {
            Reset::ALL => None,
            Reset::ConfigurationParameter(name) => Some(variable_name(name)),
        })),
        other => Err(SqlError::unsupported(format!("this form of {}", name_of(other)))),
    }
}

/// Reads a value of synchronous_commit; `None` is `DEFAULT`. One that waits for other servers waits for this
/// one's disk, there being no others.
///
/// # Errors
/// 22023.
pub fn synchronous_commit(value: Option<&str>) -> Result<Option<bool>, SqlError> {
    let Some(value) = value else { return Ok(None) };
    match value.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" | "local" | "remote_write" | "remote_apply" => Ok(Some(true)),
        "off" | "false" | "no" | "0" => Ok(Some(false)),
        _ => {
            let text = format!("invalid value for parameter \"synchronous_commit\": \"{value}\"");
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text).with_hint("Use on or off."))
        }
    }
}

fn variable_name(name: &ObjectName) -> String {
    let parts: Vec<String> = name.0.iter().filter_map(|part| part.as_ident().map(names::fold)).collect();
    parts.join(".")
}

/// Whether this is an ALTER TABLE that we have.
fn sets_options(alter: &AlterTable) -> bool {
    let sets =
        |operation: &AlterTableOperation| matches!(operation, AlterTableOperation::SetOptionsParens { .. });
    alter.location.is_none() && alter.on_cluster.is_none() && alter.operations.iter().all(sets)
}

fn setting_text(value: &Expr) -> String {
    match value {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => text.clone(),
            other => other.to_string(),
        },
        Expr::Identifier(ident) => names::fold(ident),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse_one;

    fn class(text: &str) -> Result<StatementClass, String> {
        classify(&parse_one(text).unwrap()).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn statement_of_every_class_is_recognised() {
        let cases = [
            ("select 1", StatementClass::Query),
            ("values (1)", StatementClass::Query),
            ("with x as (select 1) select * from x", StatementClass::Query),
            ("insert into t values (1)", StatementClass::Change),
            ("update t set a = 1", StatementClass::Change),
            ("delete from t", StatementClass::Change),
            ("with x as (select 1) update t set a = 1", StatementClass::Change),
            ("merge into t using u on t.a = u.a when matched then do nothing", StatementClass::Change),
            ("copy t from 'x.csv'", StatementClass::Copy),
            ("create table t (a int)", StatementClass::Ddl),
            ("drop index i", StatementClass::Ddl),
            ("truncate t", StatementClass::Ddl),
            ("create schema s", StatementClass::Ddl),
            ("explain analyze select 1", StatementClass::Explain),
            ("begin", StatementClass::Transaction),
            ("rollback", StatementClass::Transaction),
            ("set a = 1", StatementClass::Set),
            ("show a", StatementClass::Show),
        ];
        for (text, expected) in cases {
            assert_eq!(class(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn statement_we_do_not_have_is_refused_by_name() {
        let cases = [
            ("alter table t add column b int", "ALTER TABLE is not supported"),
            ("create view v as select 1", "CREATE VIEW is not supported"),
            ("create or replace view v as select 1", "CREATE VIEW is not supported"),
            ("drop view v", "DROP VIEW is not supported"),
            ("grant select on t to x", "GRANT is not supported"),
            ("listen s", "LISTEN is not supported"),
            ("call p(1)", "CALL is not supported"),
            ("vacuum", "VACUUM is not supported"),
        ];
        for (text, expected) in cases {
            assert_eq!(class(text), Err(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn explain_is_read_in_both_forms() {
        for text in
            ["explain analyze verbose select 1", "explain (analyze, verbose true, costs off) select 1"]
        {
            let statement = parse_one(text).unwrap();
            let plan = explain(&statement).unwrap();
            assert!(plan.analyze && plan.verbose, "{text}");
            assert_eq!(plan.statement.to_string(), "SELECT 1");
        }
        let statement = parse_one("explain (nonsense) select 1").unwrap();
        assert_eq!(explain(&statement).unwrap_err().message(), "unrecognized EXPLAIN option \"nonsense\"");
    }

    #[test]
    fn transaction_modes_are_read() {
        let read = |text: &str| transaction(&parse_one(text).unwrap());
        let modes = |read_only, isolation| TransactionModes { read_only, isolation };
        let begin = |read_only, isolation| Ok(TransactionCommand::Begin(modes(read_only, isolation)));
        assert_eq!(read("begin"), begin(None, None));
        assert_eq!(read("begin read only"), begin(Some(true), None));
        assert_eq!(
            read("start transaction isolation level repeatable read, read write"),
            begin(Some(false), Some(Isolation::RepeatableRead))
        );
        assert_eq!(read("end"), Ok(TransactionCommand::Commit { chain: false }));
        assert_eq!(read("commit and chain"), Ok(TransactionCommand::Commit { chain: true }));
        assert_eq!(read("rollback work"), Ok(TransactionCommand::Rollback { chain: false }));
        assert_eq!(read("savepoint S"), Ok(TransactionCommand::Savepoint("s".to_owned())));
        assert_eq!(read("rollback to savepoint s"), Ok(TransactionCommand::RollbackTo("s".to_owned())));
        assert_eq!(read("rollback to \"S\""), Ok(TransactionCommand::RollbackTo("S".to_owned())));
        assert_eq!(read("release s"), Ok(TransactionCommand::Release("s".to_owned())));
        assert_eq!(
            read("set transaction isolation level read committed, read only"),
            Ok(TransactionCommand::Set(modes(Some(true), Some(Isolation::ReadCommitted))))
        );
        assert_eq!(
            read("set session characteristics as transaction isolation level repeatable read"),
            Ok(TransactionCommand::SetDefault(modes(None, Some(Isolation::RepeatableRead))))
        );
    }

    #[test]
    fn settings_are_read() {
        let read = |text: &str| setting(&parse_one(text).unwrap()).unwrap();
        let set = |name: &str, value: Option<&str>, local| Setting::Set {
            name: name.to_owned(),
            value: value.map(str::to_owned),
            local,
        };
        assert_eq!(read("set work_mem = '64MB'"), set("work_mem", Some("64MB"), false));
        assert_eq!(read("set local jit to off"), set("jit", Some("off"), true));
        assert_eq!(read("set jit to default"), set("jit", None, false));
        assert_eq!(read("set time zone 'UTC'"), set("timezone", Some("UTC"), false));
        assert_eq!(read("show time zone"), Setting::Show("timezone".to_owned()));
        assert_eq!(read("reset all"), Setting::Reset(None));
        assert_eq!(read("reset jit"), Setting::Reset(Some("jit".to_owned())));
    }
}
