//! Stored routines: defined by CREATE FUNCTION and CREATE PROCEDURE, called by CALL and in queries.
//!
//! Responsible for: keeping definitions (`library`), running calls as transactions of a partition or
//! over all (`run`), what a routine sees of its transaction (`store`), results (`rows`). Not responsible
//! for: the language (`albireo_procedure`).
//!
//! A statement that calls a routine is a transaction: it sees and changes the live rows, while a query
//! that calls none reads a snapshot.

mod handle;
mod library;
mod parameters;
mod rows;
mod run;
mod store;

use std::sync::Arc;

use albireo_base::{SqlError, Value};
use albireo_procedure::body::find_removed;
use albireo_procedure::define::{self, Definition, Removal, RoutineKind};
use albireo_sql::ast::{Expr, ObjectName, Statement, TableFactor, Visit, Visitor};

use crate::{Database, Outcome};

pub(crate) use albireo_procedure::define::RoutineStatement;
pub use handle::{Argument, RoutineHandle};
pub(crate) use library::Library;
pub(crate) use parameters::fill;
pub(crate) use rows::{column_type, value};
pub(crate) use run::{Call, is_for_client, only_call};
pub(crate) use store::{Limits, Notice, TransactionStore};

/// Reads a statement about routines; `None` for any other.
pub(crate) fn parse(text: &str) -> Result<Option<RoutineStatement>, SqlError> {
    let text_from_word = text.trim_start();
    let word: String = text_from_word.chars().take_while(char::is_ascii_alphabetic).collect();
    // Behind a comment anything may come.
    let may_be = word.is_empty() || ["call", "create", "drop"].iter().any(|w| word.eq_ignore_ascii_case(w));
    if may_be { define::parse(text) } else { Ok(None) }
}

/// Whether a statement about routines changes what is there.
pub(crate) fn defines(statement: &RoutineStatement) -> bool {
    !matches!(statement, RoutineStatement::Call(_))
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
            *routines = Arc::new(routines.with_catalog(catalog));
        }
        Arc::clone(&routines)
    }

    /// Runs CREATE, DROP or CALL.
    pub(crate) fn run_routine_statement(
        &self,
        statement: RoutineStatement,
        text: &str,
        parameters: &[Value],
        limits: &Limits,
    ) -> Result<Outcome, SqlError> {
        match statement {
            RoutineStatement::Create(definition) => self.create_routine(*definition),
            RoutineStatement::Drop(removal) => self.drop_routines(&removal),
            RoutineStatement::Call(mut function) => {
                parameters::fill(function.as_mut(), parameters)?;
                let _fixed = self.inner.definitions.read();
                self.call_routine(&self.library(), &function, RoutineKind::Procedure, text, limits)
            }
        }
    }

    fn create_routine(&self, definition: Definition) -> Result<Outcome, SqlError> {
        // Alone, so that the library is the newest and the catalog does not change meanwhile.
        let _alone = self.inner.definitions.write();
        let tag = format!("CREATE {}", definition.kind.word().to_uppercase());
        let (library, wrong) = self.library().with(definition)?;
        *self.inner.routines.write() = Arc::new(library);
        let notices = wrong.iter().map(|error| format!("it will fail when it is called: {error}")).collect();
        Ok(Outcome::Done { tag, rows: 0, notices })
    }

    fn drop_routines(&self, removal: &Removal) -> Result<Outcome, SqlError> {
        let _alone = self.inner.definitions.write();
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
        *self.inner.routines.write() = library;
        let kind = removal.kind.map_or("ROUTINE".to_owned(), |kind| kind.word().to_uppercase());
        Ok(Outcome::Done { tag: format!("DROP {kind}"), rows: 0, notices })
    }

    /// Whether the query calls a routine, which makes it a transaction.
    pub(crate) fn calls_routines(&self, query: &Statement) -> bool {
        calls(&self.library(), query)
    }
}

/// Whether a query calls a routine of `library`.
pub(crate) fn calls(library: &Library, query: &Statement) -> bool {
    if library.is_empty() {
        return false;
    }
    let mut finder = Finder { library, found: false };
    let _ = query.visit(&mut finder);
    finder.found
}

/// Looks for calls of routines.
struct Finder<'a> {
    library: &'a Library,
    found: bool,
}

impl Finder<'_> {
    fn look(&mut self, name: &ObjectName) -> std::ops::ControlFlow<()> {
        self.found = self.library.has_function(name);
        if self.found { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
    }
}

impl Visitor for Finder<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> std::ops::ControlFlow<()> {
        match expr {
            Expr::Function(function) => self.look(&function.name),
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
