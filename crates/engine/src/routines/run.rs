//! Statements that call routines, as transactions.
use std::sync::Arc;

use albireo_base::SqlError;
use albireo_execute::{Executables, Execution, Host, Notice, query, run_call, with_host};
use albireo_partition::{Abort, Call as TransactionCall, Transaction};
use albireo_plpgsql::body::{self, BoundCall, Outside, Routine, bind_call};
use albireo_plpgsql::classify::{home_of_call, home_of_query, value_of};
use albireo_plpgsql::plan;
use albireo_semantics::Stop;
use albireo_semantics::datum::Datum;
use albireo_semantics::query::SelectPlan;
use albireo_semantics::types::Type;
use albireo_sql::ast::{Function, Statement};

use super::choice::Logged;
use super::handle::{argument, borrowed};
use super::library::{Interpreted, Library};
use super::limits::Limits;
use super::{Argument, parameters, rows};
use crate::{Database, Outcome, QueryResult};

/// A bound statement.
enum Work {
    /// One call; its result's columns are those of the statement.
    Call(BoundCall),
    /// A query, and what surrounds it.
    Query(SelectPlan, Routine),
}

/// A statement that runs as a transaction.
struct Run<'a> {
    work: Work,
    library: &'a Arc<Library>,
    limits: &'a Limits,
}

/// What it gave.
struct Ran {
    /// How many rows.
    count: usize,
    /// The rows, if they have columns.
    result: Option<QueryResult>,
    notices: Vec<Notice>,
}

impl Run<'_> {
    fn columns(&self) -> Vec<(String, Type)> {
        match &self.work {
            Work::Call(call) => call.columns(),
            Work::Query(plan, _) => plan.columns.clone(),
        }
    }

    /// The call, if it may stand in the redo log: one of a repeatable routine with literals.
    fn as_command(&self) -> Option<(Logged, Vec<Argument>)> {
        let Work::Call(call) = &self.work else { return None };
        let logged = self.library.logged(call.id)?;
        let is_value = |datum: &Datum| matches!(datum, Datum::Value(_));
        let args = call.args.iter().map(|arg| match value_of(arg)? {
            Datum::Array(array) if array.lower != 1 || !array.items.iter().all(is_value) => None,
            value @ (Datum::Value(_) | Datum::Array(_)) => Some(argument(value)),
            _ => None,
        });
        Some((logged, args.collect::<Option<_>>()?))
    }

    fn run(&self, tx: &mut Transaction) -> Result<Ran, Abort> {
        let mut execution = Execution::new(tx, &self.library.catalog, &self.limits.interrupts);
        let interpreted = Interpreted(self.library);
        let library: &dyn Executables =
            if self.limits.interprets { &interpreted } else { self.library.as_ref() };
        let limits = albireo_execute::Limits::default();
        let ran = match &self.work {
            Work::Call(call) => run_call(call, &mut execution, library, limits),
            Work::Query(plan, around) => with_host(&mut execution, library, limits, around, |host| {
                let host: &mut dyn Host = host;
                query::select(plan, host, usize::MAX)
            }),
        };
        match ran {
            // Made before the commit, as a result that cannot be shown undoes the changes.
            Ok(rows) => {
                let columns = self.columns();
                let result = (!columns.is_empty()).then(|| rows::result(&columns, &rows)).transpose();
                let result = result.map_err(Abort::Raised)?;
                Ok(Ran { count: rows.len(), result, notices: execution.take_notices() })
            }
            Err(Stop::Crossing) => Err(Abort::Crossing),
            Err(Stop::Error(error) | Stop::Fatal(error)) => Err(Abort::Raised(*error)),
        }
    }
}

impl Database {
    /// Runs a query that calls routines.
    pub(crate) fn run_calling_query(
        &self,
        statement: &Statement,
        text: &str,
        values: &[albireo_base::Value],
        limits: &Limits,
    ) -> Result<Outcome, SqlError> {
        let _fixed = self.inner.definitions.read();
        // Of the catalog as it is now that it does not change any more.
        let library = &self.library();
        let mut statement = statement.clone();
        parameters::fill(&mut statement, values)?;
        let Statement::Query(query) = &statement else {
            return Err(SqlError::unsupported("a call of a routine here"));
        };
        let mut outside = Outside::new(&library.catalog, library.as_ref(), text);
        let plan = plan::bind_select(&library.catalog, query, &mut outside)?;
        let work = Work::Query(plan, outside.into_routine());
        self.run_work(library, "SELECT", work, limits)
    }

    /// Calls a procedure of `library`.
    pub(super) fn call_procedure(
        &self,
        library: &Arc<Library>,
        function: &Function,
        text: &str,
        limits: &Limits,
    ) -> Result<Outcome, SqlError> {
        let call = bind_call(&library.catalog, library.as_ref(), function, text)?;
        let name = call.signature.name.clone();
        Ok(match self.run_work(library, &name, Work::Call(call), limits)? {
            Outcome::Done { notices, .. } => Outcome::Done { tag: "CALL".to_owned(), rows: 0, notices },
            rows => rows,
        })
    }

    fn run_work(
        &self,
        library: &Arc<Library>,
        name: &str,
        work: Work,
        limits: &Limits,
    ) -> Result<Outcome, SqlError> {
        let route = self.route_of_statement(library, |classes| match &work {
            Work::Call(call) => home_of_call(call, classes),
            Work::Query(plan, _) => home_of_query(plan, classes),
        });
        let run = Run { work, library, limits };
        let call = TransactionCall { synchronous: limits.synchronous, ..TransactionCall::new(route, name) };
        let start = |call: &TransactionCall<'_>| self.inner.partitions.transact(call, |tx| run.run(tx));
        let ran = match run.as_command().filter(|_| self.log().is_some()) {
            Some((logged, args)) => logged.start(self, &borrowed(&args), call, start),
            None => start(&call),
        };
        let ran = ran.map_err(|error| self.explain_call(error))?;
        let notices: Vec<String> =
            ran.notices.into_iter().filter(Notice::is_for_client).map(|n| n.message).collect();
        Ok(match ran.result {
            Some(result) => Outcome::Rows(result),
            None => Outcome::Done { tag: format!("SELECT {}", ran.count), rows: 0, notices },
        })
    }
}

/// A CALL in a transaction that is under way.
pub(crate) struct Call {
    call: BoundCall,
    library: Arc<Library>,
}

impl Call {
    /// Binds a call that stands in `text`.
    ///
    /// # Errors
    /// There is no such routine; its arguments'.
    pub(crate) fn new(
        library: &Arc<Library>,
        mut function: Function,
        text: &str,
        values: &[albireo_base::Value],
    ) -> Result<Self, SqlError> {
        parameters::fill(&mut function, values)?;
        let call = bind_call(&library.catalog, library.as_ref(), &function, text)?;
        Ok(Self { call, library: Arc::clone(library) })
    }

    /// Makes the call.
    pub(crate) fn run(&self, execution: &mut Execution<'_>) -> Result<Vec<Vec<Datum>>, Stop> {
        run_call(&self.call, execution, self.library.as_ref(), albireo_execute::Limits::default())
    }

    /// What it gave, as clients see it.
    pub(crate) fn outcome(&self, rows: &[Vec<Datum>], notices: Vec<Notice>) -> Result<Outcome, SqlError> {
        let columns = self.call.columns();
        if !columns.is_empty() {
            return rows::result(&columns, rows).map(Outcome::Rows);
        }
        let notices =
            notices.into_iter().filter(Notice::is_for_client).map(|notice| notice.message).collect();
        Ok(Outcome::Done { tag: "CALL".to_owned(), rows: 0, notices })
    }
}
