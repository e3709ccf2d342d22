//! The routines of a database: immutable, versioned, shared behind `Arc`.
//!
//! A change makes another library, and so does one of the catalog; calls under way keep theirs. A
//! routine is bound when it is first run in a library, and classified when it is first asked where a call
//! of it goes. CREATE OR REPLACE gives the routine its next version.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use albireo_base::{SqlError, SqlState, TableId, budget};
use albireo_compile::{Compiled, Layouts, TableLayout, compile};
use albireo_env::Clock;
use albireo_execute::{Executables, RoutineCode};
use albireo_plpgsql::body::{self, BindError, Routine, Routines, Signature};
use albireo_plpgsql::classify::{Class, remarks};
use albireo_plpgsql::define::{self, Definition, Language, RoutineStatement};
use albireo_semantics::expr::RoutineId;
use albireo_sql::Catalog;

use super::log_policy::{Costs, Logged};
use crate::stored::{Definitions, StoredRoutine};

/// A routine as it was defined.
struct Registered {
    /// The statement that defined it.
    source: Arc<str>,
    definition: Arc<Definition>,
    signature: Arc<Signature>,
    /// How many definitions the routine has had, this one included.
    version: u32,
    /// Bound to this library's catalog and routines.
    bound: OnceLock<Result<Arc<Routine>, SqlError>>,
    /// Its class in this library; none if it cannot be bound.
    class: OnceLock<Option<Arc<Class>>>,
    /// Its machine code; `None` if it has none.
    code: OnceLock<Option<Arc<Code>>>,
    /// What its calls leave in the redo log; of this version, in whatever library.
    costs: Arc<Costs>,
}

impl Registered {
    fn new(source: Arc<str>, definition: Arc<Definition>, signature: Arc<Signature>, version: u32) -> Self {
        let (bound, class, code) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self { source, definition, signature, version, bound, class, code, costs: Arc::default() }
    }
}

/// Where the tables of a catalog lie.
#[derive(Default)]
pub(crate) struct TableLayouts(pub(crate) BTreeMap<TableId, Arc<TableLayout>>);

impl Layouts for TableLayouts {
    fn layout(&self, table: TableId) -> Option<Arc<TableLayout>> {
        self.0.get(&table).cloned()
    }
}

/// A compiled routine, and how long that took.
pub(crate) struct Code {
    pub(crate) compiled: Arc<Compiled>,
    pub(crate) compile_ns: u64,
}

/// The routines there are, and the catalog that they are bound to.
pub(crate) struct Library {
    pub(crate) catalog: Arc<Catalog>,
    layouts: Arc<TableLayouts>,
    clock: Clock,
    routines: BTreeMap<u32, Registered>,
    /// The id of the next routine; none is used twice.
    next: u32,
    /// Counts calls that may run in any partition.
    turns: AtomicUsize,
}

impl Library {
    pub(crate) fn new(catalog: Arc<Catalog>, clock: Clock) -> Self {
        let (layouts, routines) = (Arc::default(), BTreeMap::new());
        Self { catalog, layouts, clock, routines, next: 1, turns: AtomicUsize::new(0) }
    }

    /// The routines that were kept so.
    ///
    /// # Errors
    /// XX001 if a definition cannot be read.
    pub(crate) fn restored(
        catalog: Arc<Catalog>,
        layouts: Arc<TableLayouts>,
        clock: Clock,
        stored: &Definitions,
    ) -> Result<Self, SqlError> {
        let mut routines = BTreeMap::new();
        for StoredRoutine { id, version, source } in &stored.routines {
            let damaged = |what: String| {
                SqlError::new(SqlState::DATA_CORRUPTED, format!("the definition of routine {id}: {what}"))
            };
            let definition = match define::parse(source).map_err(|error| damaged(error.to_string()))? {
                Some(RoutineStatement::Create(definition)) => *definition,
                _ => return Err(damaged("it is none".to_owned())),
            };
            let signature = Signature::new(&catalog, &definition);
            let signature = Arc::new(signature.map_err(|error| damaged(error.to_string()))?);
            let registered =
                Registered::new(source.as_str().into(), Arc::new(definition), signature, *version);
            routines.insert(*id, registered);
        }
        Ok(Self { catalog, layouts, clock, routines, next: stored.next_routine, turns: AtomicUsize::new(0) })
    }

    /// The routines as they are kept.
    pub(crate) fn stored(&self) -> Vec<StoredRoutine> {
        let stored = |(id, routine): (&u32, &Registered)| StoredRoutine {
            id: *id,
            version: routine.version,
            source: routine.source.to_string(),
        };
        self.routines.iter().map(stored).collect()
    }

    /// The id that the next routine will get.
    pub(crate) fn next_id(&self) -> u32 {
        self.next
    }

    /// The same routines, to be bound to another catalog, whose tables lie so.
    pub(crate) fn with_catalog(&self, catalog: Arc<Catalog>, layouts: Arc<TableLayouts>) -> Self {
        let again = |(id, routine): (&u32, &Registered)| {
            let (definition, signature) = (Arc::clone(&routine.definition), Arc::clone(&routine.signature));
            let source = Arc::clone(&routine.source);
            let again = Registered::new(source, definition, signature, routine.version);
            (*id, Registered { costs: Arc::clone(&routine.costs), ..again })
        };
        let routines = self.routines.iter().map(again).collect();
        let (clock, turns) = (self.clock.clone(), AtomicUsize::new(0));
        Self { catalog, layouts, clock, routines, next: self.next, turns }
    }

    /// The same, to be bound again because another routine changed.
    fn again(&self) -> Self {
        self.with_catalog(Arc::clone(&self.catalog), Arc::clone(&self.layouts))
    }

    /// The machine code of a routine, made if it has not been; `None` if it has none, or cannot be bound.
    pub(crate) fn code(&self, routine: RoutineId) -> Option<&Arc<Code>> {
        let registered = self.routines.get(&routine.0)?;
        let make = || {
            let bound = self.bound(routine).ok()?;
            let start = self.clock.now();
            // Without code the interpreter runs it.
            let compiled = Arc::new(compile(&bound, self.layouts.as_ref()).ok()??);
            Some(Arc::new(Code { compiled, compile_ns: self.clock.now().saturating_sub(start) }))
        };
        kept(&registered.code, make, Option::is_some)?.as_ref()
    }

    /// The machine code of a routine that is none of these, or `None` if it has none.
    pub(crate) fn compile(&self, routine: &Arc<Routine>) -> Option<Arc<Compiled>> {
        compile(routine, self.layouts.as_ref()).ok()?.map(Arc::new)
    }

    /// With one more, or a new version of one; its id.
    ///
    /// # Errors
    /// 42723 if there is one with the same parameters that is not to be replaced, 42P13 if it cannot be;
    /// whatever is wrong with the body that PostgreSQL says when a routine is created. What it says when
    /// one is called comes beside the library: tables and other routines may be made before the first call.
    pub(crate) fn with(
        &self,
        definition: Definition,
        source: &str,
    ) -> Result<(Self, RoutineId, Option<SqlError>), SqlError> {
        let signature = Arc::new(Signature::new(&self.catalog, &definition)?);
        let id = self.id_for(&definition, &signature)?;
        let mut library = self.again();
        library.next = library.next.max(id + 1);
        let version = self.routines.get(&id).map_or(0, |old| old.version) + 1;
        library.routines.insert(id, Registered::new(source.into(), Arc::new(definition), signature, version));
        let (bound, wrong) = match library.bind(id) {
            Ok(routine) => (Ok(Arc::new(routine)), None),
            Err(BindError { error, deferred: true }) => (Err(error.clone()), Some(error)),
            Err(BindError { error, deferred: false }) => return Err(error),
        };
        if let Some(registered) = library.routines.get(&id) {
            registered.bound.get_or_init(|| bound);
            library.code(RoutineId(id));
        }
        budget::check()?;
        Ok((library, RoutineId(id), wrong))
    }

    /// How many definitions a routine has had.
    pub(crate) fn version(&self, id: RoutineId) -> u32 {
        self.routines.get(&id.0).map_or(0, |routine| routine.version)
    }

    /// The class of a routine; `None` if it cannot be bound.
    pub(crate) fn class(&self, id: RoutineId) -> Option<&Arc<Class>> {
        let class = || Class::of_routine(id, self).map(Arc::new);
        kept(&self.routines.get(&id.0)?.class, class, Option::is_some)?.as_ref()
    }

    /// How calls of a routine stand in the redo log; `None` if they may not, or leave nothing.
    pub(crate) fn logged(&self, id: RoutineId) -> Option<Logged> {
        let class = self.class(id).filter(|class| class.repeatable.holds && !class.read_only.holds);
        let routine = class.and(self.routines.get(&id.0))?;
        Some(Logged { id, version: routine.version, costs: Arc::clone(&routine.costs) })
    }

    /// What is to be said of a routine when it is created.
    pub(crate) fn remarks(&self, id: RoutineId) -> Vec<String> {
        self.bound(id).map_or_else(|_| Vec::new(), |routine| remarks(&routine))
    }

    /// A number for each call that may run in any partition, so that they spread.
    pub(crate) fn turn(&self) -> usize {
        self.turns.fetch_add(1, Ordering::Relaxed)
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
        let mut library = self.again();
        library.routines.remove(&id);
        library
    }

    /// All of them.
    pub(crate) fn signatures(&self) -> impl Iterator<Item = (u32, &Signature)> {
        self.routines.iter().map(|(id, routine)| (*id, routine.signature.as_ref()))
    }

    /// All of them: signatures, languages, and the statements that defined them.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = (&Signature, Language, &str)> {
        let of = |routine| {
            let Registered { signature, definition, source, .. }: &Registered = routine;
            (signature.as_ref(), definition.language, source.as_ref())
        };
        self.routines.values().map(of)
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.routines.is_empty()
    }

    /// Whether a call by this name may mean one; without a schema it does not mean one that a built-in
    /// function hides.
    pub(crate) fn has(&self, name: &str, with_schema: bool) -> bool {
        let mut named = self.signatures().filter(|(_, signature)| signature.name == name);
        named.any(|(_, signature)| with_schema || !signature.is_hidden())
    }

    fn bind(&self, id: u32) -> Result<Routine, BindError> {
        let routine = self.routines.get(&id).ok_or_else(|| BindError { error: gone(), deferred: true })?;
        body::bind(&self.catalog, self, &routine.definition, &routine.signature)
    }
}

/// What is made once and kept; nothing, if it was not made because the statement was ended: another one makes it.
fn kept<T>(cell: &OnceLock<T>, make: impl FnOnce() -> T, is_made: impl FnOnce(&T) -> bool) -> Option<&T> {
    if let Some(known) = cell.get() {
        return Some(known);
    }
    let new = make();
    if !is_made(&new) && budget::check().is_err() {
        return None;
    }
    Some(cell.get_or_init(|| new))
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
        match kept(&registered.bound, bind, Result::is_ok) {
            Some(bound) => bound.clone(),
            None => budget::check().and_then(|()| bind()),
        }
    }
}

impl Executables for Library {
    fn machine_code(&self, routine: RoutineId) -> Option<Arc<dyn RoutineCode>> {
        Some(Arc::clone(&self.code(routine)?.compiled) as _)
    }
}

/// The same routines without their code: `SET jit = off`.
pub(crate) struct Interpreted<'a>(pub(crate) &'a Library);

impl Routines for Interpreted<'_> {
    fn named(&self, name: &str) -> Vec<(RoutineId, Arc<Signature>)> {
        self.0.named(name)
    }

    fn signature(&self, routine: RoutineId) -> Option<Arc<Signature>> {
        self.0.signature(routine)
    }

    fn bound(&self, routine: RoutineId) -> Result<Arc<Routine>, SqlError> {
        self.0.bound(routine)
    }
}

impl Executables for Interpreted<'_> {
    fn machine_code(&self, _: RoutineId) -> Option<Arc<dyn RoutineCode>> {
        None
    }
}
