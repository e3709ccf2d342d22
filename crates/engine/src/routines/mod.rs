//! Stored routines: defined by CREATE FUNCTION and CREATE PROCEDURE, called by CALL and in queries.
//!
//! Responsible for: keeping definitions (`library`), which partition a call goes to (`route`), running
//! calls as transactions of a partition or over all (`handle`), what ends them (`limits`), EXPLAIN (`explain`),
//! calls as records of the redo log (`command`, `log_policy`). Not responsible for: the language and the classes of
//! routines, what a routine sees of its transaction (`albireo_plpgsql`, `albireo_execute`, `albireo_compile`), statements that call them
//! (`statements`).
//!
//! A statement that calls a routine is a transaction: it sees and changes the live rows, while a query
//! that calls none reads a snapshot.

mod command;
mod explain;
mod handle;
mod library;
mod limits;
mod list;
mod log_policy;
mod route;

use std::sync::Arc;

use albireo_base::{PartitionId, SqlError, Value};
use albireo_compile::TableLayout;
use albireo_execute::Interrupts;
use albireo_execute::tables::handle;
use albireo_partition::Receipt;
use albireo_plpgsql::body::{Signature, find_removed};
use albireo_plpgsql::define::{self, Definition, Removal};
use albireo_semantics::query::is_aggregate;
use albireo_sql::ast::{Expr, ObjectName, Statement, TableFactor, Visitor};
use albireo_sql::names::fold;
use albireo_sql::walk::Walk as _;
use albireo_sql::{Catalog, TableDef};

use crate::{Database, Outcome};

pub(crate) use albireo_plpgsql::define::RoutineStatement;
pub(crate) use command::{CommandRecord, StatementRecord, put_statement};
pub use handle::{Argument, ArgumentRef, Items, Output, Reply, RoutineHandle};
pub(crate) use handle::{Callee, argument, borrowed};
pub(crate) use library::{Interpreted, Library, TableLayouts};
pub(crate) use limits::Limits;
pub use list::RoutineSummary;
pub(crate) use log_policy::Costs;
pub use log_policy::LogRecords;

/// What statements about routines begin with.
const FIRST_WORDS: [&str; 4] = ["call", "create", "drop", "explain"];

/// Reads a statement about routines; `None` for any other.
pub(crate) fn parse(text: &str) -> Result<Option<RoutineStatement>, SqlError> {
    let text_from_word = text.trim_start();
    let word: String = text_from_word.chars().take_while(char::is_ascii_alphabetic).collect();
    // Behind a comment anything may come.
    let may_be = word.is_empty() || FIRST_WORDS.iter().any(|first| word.eq_ignore_ascii_case(first));
    if may_be { define::parse(text) } else { Ok(None) }
}

/// What of a statement about routines cannot be done in a read-only transaction.
pub(crate) fn deed(statement: &RoutineStatement) -> Option<&'static str> {
    match statement {
        RoutineStatement::Create(_) | RoutineStatement::Drop(_) => Some("change anything"),
        RoutineStatement::Call(_) => Some("call a routine"),
        RoutineStatement::Explain(_) => None,
    }
}

impl Database {
    /// The routines, bound to the catalog as it is now.
    pub(crate) fn library(&self) -> Arc<Library> {
        let catalog = self.catalog();
        let known = Arc::clone(&self.inner.routines.read());
        if known.catalog.version() == catalog.version() {
            return known;
        }
        let mut routines = self.inner.routines.write();
        if routines.catalog.version() != catalog.version() {
            let layouts = Arc::new(self.layouts(&catalog));
            *routines = Arc::new(routines.with_catalog(catalog, layouts));
        }
        Arc::clone(&routines)
    }

    /// Where the tables of the catalog lie.
    pub(crate) fn layouts(&self, catalog: &Catalog) -> TableLayouts {
        let layout = |def: &Arc<TableDef>| {
            let handle = handle(def);
            let place = PartitionId(0);
            // One that was dropped since has another catalog, and another library.
            let layout = self.inner.partitions.with_table_if_there(handle, place, TableLayout::of)?;
            Some((def.id, Arc::new(layout)))
        };
        TableLayouts(catalog.tables().filter_map(layout).collect())
    }

    /// Runs CREATE, DROP, CALL or EXPLAIN.
    pub(crate) fn run_routine_statement(
        &self,
        statement: RoutineStatement,
        text: &str,
        parameters: &[Value],
        limits: &Limits,
    ) -> Result<Outcome, SqlError> {
        match statement {
            RoutineStatement::Create(definition) => {
                self.create_routine(*definition, text, &limits.interrupts)
            }
            RoutineStatement::Drop(removal) => self.drop_routines(&removal, text, &limits.interrupts),
            RoutineStatement::Explain(explanation) => self.explain_routine(&explanation),
            RoutineStatement::Call(function) => self.run_call(&function, text, parameters, limits),
        }
    }

    pub(crate) fn create_routine(
        &self,
        definition: Definition,
        text: &str,
        interrupts: &Interrupts,
    ) -> Result<Outcome, SqlError> {
        // Alone, so that the library is the newest and the catalog does not change meanwhile.
        let changing = self.inner.definitions.begin(interrupts)?;
        let _alone = changing.write(interrupts, || Ok(()))?;
        let tag = format!("CREATE {}", definition.kind.word().to_uppercase()).into();
        let signature = Signature::new(&self.catalog(), &definition)?;
        let (library, id, wrong) = self.library().with(definition, text)?;
        let fails = wrong.iter().map(|error| format!("it will fail when it is called: {error}"));
        let mut notices: Vec<String> = fails.collect();
        notices.extend(library.remarks(id));
        let receipt = self.put_library(Arc::new(library), text)?;
        if signature.is_hidden() {
            let name = &signature.name;
            notices.push(format!("{name} without a schema means the built-in function: write public.{name}"));
        }
        self.acknowledge_call(None, receipt)?;
        Ok(Outcome::Done { tag, rows: 0, notices })
    }

    /// Puts other routines in the place of those there are, as `text` says.
    fn put_library(&self, library: Arc<Library>, text: &str) -> Result<Receipt, SqlError> {
        let receipt = self.inner.partitions.exclusively(|all| self.log_definition(all, text))?;
        *self.inner.routines.write() = library;
        Ok(receipt)
    }

    pub(crate) fn drop_routines(
        &self,
        removal: &Removal,
        text: &str,
        interrupts: &Interrupts,
    ) -> Result<Outcome, SqlError> {
        let changing = self.inner.definitions.begin(interrupts)?;
        let _alone = changing.write(interrupts, || Ok(()))?;
        let mut library = self.library();
        let mut notices = Vec::new();
        for reference in &removal.routines {
            match find_removed(&library.catalog, removal, reference, library.signatures())? {
                Some(id) => library = Arc::new(library.without(id)),
                None => {
                    notices.push(format!("routine \"{}\" does not exist, skipping", reference.name.name.text))
                }
            }
        }
        let receipt = self.put_library(library, text)?;
        self.acknowledge_call(None, receipt)?;
        let kind = removal.kind.map_or("ROUTINE".to_owned(), |kind| kind.word().to_uppercase());
        Ok(Outcome::Done { tag: format!("DROP {kind}").into(), rows: 0, notices })
    }
}

/// Whether a query calls a routine of `library`.
pub(crate) fn calls(library: &Library, query: &Statement) -> bool {
    if library.is_empty() {
        return false;
    }
    let mut finder = Finder { library, found: false };
    let _ = query.walk(&mut finder);
    finder.found
}

/// Looks for calls of routines.
struct Finder<'a> {
    library: &'a Library,
    found: bool,
}

/// Whether a call by this name may mean a routine of `library`.
pub(crate) fn is_routine(library: &Library, name: &ObjectName) -> bool {
    let parts: Vec<String> = name.0.iter().filter_map(|part| part.as_ident()).map(fold).collect();
    match parts.as_slice() {
        [.., schema, _] if schema == "pg_catalog" => false,
        [.., name] => library.has(name, parts.len() > 1),
        [] => false,
    }
}

impl Finder<'_> {
    fn look(&mut self, name: &ObjectName) -> std::ops::ControlFlow<()> {
        self.found = is_routine(self.library, name);
        if self.found { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
    }
}

impl Visitor for Finder<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> std::ops::ControlFlow<()> {
        match expr {
            Expr::Function(function) if !is_aggregate(function) => self.look(&function.name),
            _ => std::ops::ControlFlow::Continue(()),
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> std::ops::ControlFlow<()> {
        match factor {
            TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } => {
                self.look(name)
            }
            _ => std::ops::ControlFlow::Continue(()),
        }
    }
}
