//! The routines of a database: immutable, versioned, shared behind `Arc`.
//!
//! A change makes another library, and so does one of the catalog; calls under way keep theirs. A
//! routine is bound when it is first run in a library.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use albireo_base::{SqlError, SqlState};
use albireo_procedure::body::{self, BindError, Routine, Routines, Signature};
use albireo_procedure::define::Definition;
use albireo_procedure::expr::RoutineId;
use albireo_sql::Catalog;
use albireo_sql::ast::ObjectName;
use albireo_sql::names::fold;

/// A routine as it was defined.
struct Registered {
    definition: Arc<Definition>,
    signature: Arc<Signature>,
    /// Bound to this library's catalog and routines.
    bound: OnceLock<Result<Arc<Routine>, SqlError>>,
}

/// The routines there are, and the catalog that they are bound to.
pub(crate) struct Library {
    pub(crate) catalog: Arc<Catalog>,
    routines: BTreeMap<u32, Registered>,
    /// The id of the next routine; none is used twice.
    next: u32,
}

impl Library {
    pub(crate) fn new(catalog: Arc<Catalog>) -> Self {
        Self { catalog, routines: BTreeMap::new(), next: 1 }
    }

    /// The same routines, to be bound to another catalog.
    pub(crate) fn with_catalog(&self, catalog: Arc<Catalog>) -> Self {
        let again = |(id, routine): (&u32, &Registered)| {
            let (definition, signature) = (Arc::clone(&routine.definition), Arc::clone(&routine.signature));
            (*id, Registered { definition, signature, bound: OnceLock::new() })
        };
        Self { catalog, routines: self.routines.iter().map(again).collect(), next: self.next }
    }

    /// With one more, or a new version of one.
    ///
    /// # Errors
    /// 42723 if there is one with the same parameters that is not to be replaced, 42P13 if it cannot be;
    /// whatever is wrong with the body that PostgreSQL says when a routine is created. What it says when
    /// one is called comes beside the library: tables and other routines may be made before the first call.
    pub(crate) fn with(&self, definition: Definition) -> Result<(Self, Option<SqlError>), SqlError> {
        let signature = Arc::new(Signature::new(&self.catalog, &definition)?);
        let id = self.id_for(&definition, &signature)?;
        let mut library = self.with_catalog(Arc::clone(&self.catalog));
        library.next = library.next.max(id + 1);
        let (definition, bound) = (Arc::new(definition), OnceLock::new());
        library.routines.insert(id, Registered { definition, signature, bound });
        match library.bind(id) {
            Ok(_) => Ok((library, None)),
            Err(BindError { error, deferred: true }) => Ok((library, Some(error))),
            Err(BindError { error, deferred: false }) => Err(error),
        }
    }

    fn id_for(&self, definition: &Definition, signature: &Signature) -> Result<u32, SqlError> {
        let same =
            |(_, other): &(u32, &Signature)| other.name == signature.name && other.key() == signature.key();
        match self.signatures().find(same) {
            Some((id, old)) if definition.replace => old.check_replacement(signature).map(|()| id),
            Some((_, old)) => {
                let message = format!(
                    "{} \"{}\" already exists with same argument types",
                    old.kind.word(),
                    signature.name
                );
                Err(SqlError::new(SqlState(*b"42723"), message)
                    .with_hint("Use CREATE OR REPLACE to put another in its place."))
            }
            None => Ok(self.next),
        }
    }

    /// Without one.
    pub(crate) fn without(&self, id: u32) -> Self {
        let mut library = self.with_catalog(Arc::clone(&self.catalog));
        library.routines.remove(&id);
        library
    }

    /// All of them.
    pub(crate) fn signatures(&self) -> impl Iterator<Item = (u32, &Signature)> {
        self.routines.iter().map(|(id, routine)| (*id, routine.signature.as_ref()))
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.routines.is_empty()
    }

    /// Whether there is one of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.routines.values().any(|routine| routine.signature.name == name)
    }

    /// Whether there is one that a call may mean by this name.
    pub(crate) fn has_function(&self, name: &ObjectName) -> bool {
        name.0.last().and_then(|part| part.as_ident()).map(fold).is_some_and(|name| self.has(&name))
    }

    fn bind(&self, id: u32) -> Result<Routine, BindError> {
        let routine = self.routines.get(&id).ok_or_else(|| BindError { error: gone(), deferred: true })?;
        body::bind(&self.catalog, self, &routine.definition, &routine.signature)
    }
}

fn gone() -> SqlError {
    SqlError::new(SqlState::UNDEFINED_FUNCTION, "the routine does not exist any more")
}

impl Routines for Library {
    fn named(&self, name: &str) -> Vec<(RoutineId, Arc<Signature>)> {
        let all = self.routines.iter().filter(|(_, routine)| routine.signature.name == name);
        all.map(|(id, routine)| (RoutineId(*id), Arc::clone(&routine.signature))).collect()
    }

    fn signature(&self, routine: RoutineId) -> Option<Arc<Signature>> {
        self.routines.get(&routine.0).map(|routine| Arc::clone(&routine.signature))
    }

    fn bound(&self, routine: RoutineId) -> Result<Arc<Routine>, SqlError> {
        let registered = self.routines.get(&routine.0).ok_or_else(gone)?;
        let bind = || self.bind(routine.0).map(Arc::new).map_err(|BindError { error, .. }| error);
        registered.bound.get_or_init(bind).clone()
    }
}
