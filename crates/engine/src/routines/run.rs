//! Statements that call routines, as transactions.

use std::sync::Arc;

use albireo_base::{PartitionId, SqlError};
use albireo_partition::{Abort, Procedure, Route, Transaction};
use albireo_procedure::body::{self, BoundCall, Outside, Routine, Routines, bind_call, with_host};
use albireo_procedure::datum::Datum;
use albireo_procedure::define::RoutineKind;
use albireo_procedure::host::Host;
use albireo_procedure::plan::{self, SelectPlan};
use albireo_procedure::store::{RaiseLevel, Stop};
use albireo_procedure::types::Type;
use albireo_sql::ast::{
    Function, FunctionArg, FunctionArgumentList, FunctionArguments, Query, SelectItem, SetExpr, Statement,
    TableFactor,
};

use super::library::Library;
use super::store::{Limits, Notice, TransactionStore};
use super::{parameters, rows};
use crate::{Database, Outcome};

/// A bound statement.
enum Work {
    /// One call; its result's columns are those of the statement.
    Call(BoundCall),
    /// A query, and what surrounds it.
    Query(SelectPlan, Routine),
}

/// A statement that runs as a transaction.
struct Run {
    name: String,
    work: Work,
    library: Arc<Library>,
    limits: Limits,
}

/// What it gave.
struct Ran {
    rows: Vec<Vec<Datum>>,
    notices: Vec<Notice>,
}

impl Run {
    fn columns(&self) -> Vec<(String, Type)> {
        match &self.work {
            Work::Call(call) => call.columns(),
            Work::Query(plan, _) => plan.columns.clone(),
        }
    }
}

impl Procedure for Run {
    type Args = Route;
    type Output = Ran;

    fn name(&self) -> &str {
        &self.name
    }

    fn route(&self, route: &Route) -> Route {
        *route
    }

    fn run(&self, tx: &mut Transaction<'_, '_>, _: &Route) -> Result<Ran, Abort> {
        let mut store = TransactionStore::new(tx, &self.library.catalog, &self.limits);
        let library: &dyn Routines = self.library.as_ref();
        let limits = body::Limits::default();
        let ran = match &self.work {
            Work::Call(call) => call.run(&mut store, library, limits),
            Work::Query(plan, around) => with_host(&mut store, library, limits, around, |host| {
                let host: &mut dyn Host = host;
                plan::select(plan, host, usize::MAX)
            }),
        };
        match ran {
            Ok(rows) => Ok(Ran { rows, notices: store.notices }),
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
        if let Some(function) = only_call(query) {
            return self.call_routine(library, &function, RoutineKind::Function, text, limits);
        }
        let mut outside = Outside::new(&library.catalog, library.as_ref(), text);
        let plan = plan::bind_select(&library.catalog, query, &mut outside)?;
        let work = Work::Query(plan, outside.into_routine());
        self.run_work(library, "SELECT", work, limits)
    }

    /// Calls a routine of `library`.
    pub(super) fn call_routine(
        &self,
        library: &Arc<Library>,
        function: &Function,
        kind: RoutineKind,
        text: &str,
        limits: &Limits,
    ) -> Result<Outcome, SqlError> {
        let call = bind_call(&library.catalog, library.as_ref(), function, kind, text)?;
        let name = call.signature.name.clone();
        let done = self.run_work(library, &name, Work::Call(call), limits)?;
        match (kind, done) {
            (RoutineKind::Procedure, Outcome::Done { notices, .. }) => {
                Ok(Outcome::Done { tag: "CALL".to_owned(), rows: 0, notices })
            }
            (_, done) => Ok(done),
        }
    }

    fn run_work(
        &self,
        library: &Arc<Library>,
        name: &str,
        work: Work,
        limits: &Limits,
    ) -> Result<Outcome, SqlError> {
        let library = Arc::clone(library);
        let run = Run { name: name.to_owned(), work, library, limits: limits.clone() };
        // Whatever reaches for another partition is run again over all.
        let route = Route::Partition(PartitionId(0));
        let ran = self.inner.partitions.call(&run, &route).map_err(|error| self.explain_call(error))?;
        let notices: Vec<String> = ran.notices.into_iter().filter(is_for_client).map(|n| n.message).collect();
        let columns = run.columns();
        if columns.is_empty() {
            return Ok(Outcome::Done { tag: format!("SELECT {}", ran.rows.len()), rows: 0, notices });
        }
        rows::result(&columns, &ran.rows).map(Outcome::Rows)
    }
}

/// A call in a transaction that is under way.
pub(crate) struct Call {
    call: BoundCall,
    kind: RoutineKind,
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
        kind: RoutineKind,
        text: &str,
        values: &[albireo_base::Value],
    ) -> Result<Self, SqlError> {
        parameters::fill(&mut function, values)?;
        let call = bind_call(&library.catalog, library.as_ref(), &function, kind, text)?;
        Ok(Self { call, kind, library: Arc::clone(library) })
    }

    /// Makes the call.
    pub(crate) fn run(&self, store: &mut TransactionStore<'_, '_, '_>) -> Result<Vec<Vec<Datum>>, Stop> {
        self.call.run(store, self.library.as_ref(), body::Limits::default())
    }

    /// What it gave, as clients see it.
    pub(crate) fn outcome(&self, rows: &[Vec<Datum>], notices: Vec<Notice>) -> Result<Outcome, SqlError> {
        let columns = self.call.columns();
        if !columns.is_empty() {
            return rows::result(&columns, rows).map(Outcome::Rows);
        }
        let notices = notices.into_iter().filter(is_for_client).map(|notice| notice.message).collect();
        let tag = match self.kind {
            RoutineKind::Procedure => "CALL".to_owned(),
            RoutineKind::Function => format!("SELECT {}", rows.len()),
        };
        Ok(Outcome::Done { tag, rows: 0, notices })
    }
}

/// As `client_min_messages = notice` has it.
pub(crate) fn is_for_client(notice: &Notice) -> bool {
    matches!(notice.level, RaiseLevel::Info | RaiseLevel::Notice | RaiseLevel::Warning)
}

/// The call in `SELECT * FROM f(...)`.
pub(crate) fn only_call(query: &Query) -> Option<Function> {
    let plain = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none();
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let all = matches!(select.projection.as_slice(), [SelectItem::Wildcard(_)]);
    let rest = select.selection.is_none() && select.having.is_none() && select.distinct.is_none();
    let [from] = select.from.as_slice() else { return None };
    if !(plain && all && rest && from.joins.is_empty()) {
        return None;
    }
    let (name, args) = match &from.relation {
        TableFactor::Table { name, args: Some(args), alias: None, .. } => (name, args.args.clone()),
        TableFactor::Function { name, args, alias: None, lateral: false, .. } => (name, args.clone()),
        _ => return None,
    };
    Some(call_of(name.clone(), args))
}

fn call_of(name: albireo_sql::ast::ObjectName, args: Vec<FunctionArg>) -> Function {
    Function {
        name,
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args,
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }
}
