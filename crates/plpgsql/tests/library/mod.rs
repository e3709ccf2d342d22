//! Definitions for tests: a catalog, and routines that are bound to it when they are first needed. No rows.

#![allow(dead_code, reason = "every test uses a part of it")]
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use albireo_base::{SqlError, SqlState};
use albireo_plpgsql::body::{BindError, Routine, Routines, Signature, bind, find_removed};
use albireo_plpgsql::define::{self, Definition, Removal, RoutineStatement};
use albireo_semantics::expr::RoutineId;
use albireo_sql::{Catalog, DdlChange, ast};

/// A routine as it was defined; bound when it is first needed.
struct Registered {
    definition: Definition,
    signature: Arc<Signature>,
    bound: OnceCell<Result<Arc<Routine>, SqlError>>,
}

impl Registered {
    fn new(definition: Definition, signature: Arc<Signature>) -> Rc<Self> {
        Rc::new(Self { definition, signature, bound: OnceCell::new() })
    }
}

/// The catalog and the routines.
#[derive(Clone)]
pub struct Library {
    pub catalog: Catalog,
    routines: BTreeMap<u32, Rc<Registered>>,
    next: u32,
}

impl Library {
    /// An empty one.
    pub fn new() -> Self {
        Self { catalog: Catalog::new(), routines: BTreeMap::new(), next: 1 }
    }

    /// Forgets what was bound to definitions that may have changed.
    fn unbind(&mut self) {
        for routine in self.routines.values_mut() {
            *routine = Registered::new(routine.definition.clone(), Arc::clone(&routine.signature));
        }
    }

    fn signatures(&self) -> impl Iterator<Item = (u32, &Signature)> {
        self.routines.iter().map(|(id, routine)| (*id, routine.signature.as_ref()))
    }

    /// Reads and binds the definition of a routine, which is not kept.
    pub fn check(&self, sql: &str) -> Result<(), SqlError> {
        match define::parse(sql)? {
            Some(RoutineStatement::Create(definition)) => {
                let signature = Arc::new(Signature::new(&self.catalog, &definition)?);
                let bound = bind(&self.catalog, self, &definition, &signature);
                bound.map(|_| ()).map_err(|BindError { error, .. }| error)
            }
            _ => Ok(()),
        }
    }

    /// The routine of this name, bound.
    pub fn routine(&self, name: &str) -> Result<(RoutineId, Arc<Routine>), SqlError> {
        let named = self.named(name);
        let missing = || SqlError::new(SqlState::UNDEFINED_FUNCTION, "no such function");
        let (id, _) = named.first().ok_or_else(missing)?;
        Ok((*id, self.bound(*id)?))
    }

    /// Runs a statement that defines something.
    pub fn run(&mut self, sql: &str) -> Result<(), SqlError> {
        match define::parse(sql)? {
            Some(RoutineStatement::Create(definition)) => self.create(*definition),
            Some(RoutineStatement::Drop(removal)) => self.remove(&removal),
            Some(_) => panic!("{sql}"),
            None => self.change(&albireo_sql::parse_one(sql)?, sql).map(|_| ()),
        }
    }

    /// Runs a statement about tables: what it changes.
    pub fn change(&mut self, statement: &ast::Statement, sql: &str) -> Result<Vec<DdlChange>, SqlError> {
        let changes = albireo_sql::plan_ddl(&self.catalog, statement, sql)?.changes;
        self.catalog = self.catalog.with(&changes);
        self.unbind();
        Ok(changes)
    }

    /// DROP of routines.
    pub fn remove(&mut self, removal: &Removal) -> Result<(), SqlError> {
        for routine in &removal.routines {
            if let Some(id) = find_removed(&self.catalog, removal, routine, self.signatures())? {
                self.routines.remove(&id);
            }
        }
        self.unbind();
        Ok(())
    }

    /// CREATE of a routine.
    pub fn create(&mut self, definition: Definition) -> Result<(), SqlError> {
        let signature = Arc::new(Signature::new(&self.catalog, &definition)?);
        let mut known = self.signatures();
        let same = known.find(|(_, s)| s.name == signature.name && s.key() == signature.key());
        let id = match same {
            Some((id, old)) if definition.replace => {
                old.check_replacement(&signature)?;
                id
            }
            Some(_) => {
                let name = &definition.name.name.text;
                let message = format!("function \"{name}\" already exists with same argument types");
                return Err(SqlError::new(SqlState(*b"42723"), message));
            }
            None => self.next,
        };
        drop(known);
        let mut library = self.clone();
        library.unbind();
        library.routines.insert(id, Registered::new(definition, signature));
        library.next = library.next.max(id + 1);
        let routine = &library.routines[&id];
        match bind(&library.catalog, &library, &routine.definition, &routine.signature) {
            Err(BindError { error, deferred: false }) => Err(error),
            _ => {
                *self = library;
                Ok(())
            }
        }
    }
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
        let missing = || SqlError::new(SqlState::UNDEFINED_FUNCTION, "no such function");
        let routine = self.routines.get(&routine.0).ok_or_else(missing)?;
        let bind = || {
            let bound = bind(&self.catalog, self, &routine.definition, &routine.signature);
            bound.map(Arc::new).map_err(|BindError { error, .. }| error)
        };
        routine.bound.get_or_init(bind).clone()
    }
}
