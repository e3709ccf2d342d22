//! Which tables a routine and all that it calls reach, and by what.
//!
//! What a called routine reaches by its own argument, the caller reaches by what it passes. All routines
//! that can be reached are followed until nothing more is found; keys are arguments, constants that are
//! written somewhere, or unknown, so that this comes to an end, and after [`MAX_STEPS`] at the latest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use albireo_sql::TableDef;

use super::part::{Inner, Part, each_inner, each_of_query, each_of_statement, each_part};
use super::source::{Sources, shown};
use super::{Classes, Key};
use crate::body::{BoundCall, Query, Routine, Routines};
use crate::expr::{Expr, ExprKind, RoutineId};
use crate::plan::SelectPlan;
use crate::plan::tree::{AccessInfo, AccessKind};

/// How many accesses of called routines are looked at before a routine is given up.
const MAX_STEPS: usize = 200_000;

/// An access to a table.
#[derive(Clone, Debug)]
pub struct Touch {
    /// The table.
    pub table: Arc<TableDef>,
    /// What is done.
    pub kind: AccessKind,
    /// What places it.
    pub key: Key,
    /// That in words, where the statement stands.
    pub by: Arc<str>,
    /// Whether it is behind a condition.
    pub guarded: bool,
    /// Where it stands.
    pub origin: Origin,
}

/// A place in a routine.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The routine; `None` for a statement of a client's.
    pub routine: Option<RoutineId>,
    /// Its name and parameters.
    pub name: Arc<str>,
    /// The line of its body, if it is known.
    pub line: Option<usize>,
    /// The number of the access in the routine.
    number: u32,
}

impl Touch {
    /// What it does and where, for a reader of `routine`.
    pub(super) fn shown(&self, reader: Option<RoutineId>) -> String {
        let verb = match self.kind {
            AccessKind::Read => "reads",
            AccessKind::Change => "changes",
            AccessKind::Insert => "inserts into",
            AccessKind::Move => "moves rows of",
        };
        format!("{} {verb} \"{}\"", self.place(reader), self.table.name)
    }

    /// Where it is.
    pub(super) fn place(&self, reader: Option<RoutineId>) -> String {
        let line = self.origin.line.map_or("a statement".to_owned(), |line| format!("line {line}"));
        match self.origin.routine == reader {
            true => line,
            false => format!("{line} of {}", self.origin.name),
        }
    }

    /// The touch as the caller of its routine makes it.
    fn called(&self, args: &[Key], guarded: bool) -> Self {
        let key = match &self.key {
            Key::Argument(number) => args.get(*number).cloned().unwrap_or(Key::Computed),
            other => other.clone(),
        };
        Self { key, guarded: self.guarded || guarded, ..self.clone() }
    }

    /// What tells it from others.
    fn identity(&self) -> (Option<u32>, u32, Key, bool) {
        (self.origin.routine.map(|id| id.0), self.origin.number, self.key.clone(), self.guarded)
    }
}

/// A call of a routine.
struct CallSite {
    callee: RoutineId,
    args: Vec<Key>,
    guarded: bool,
    /// How many of the callee's touches the caller has already.
    taken: usize,
}

/// What a routine does itself.
struct Local<'r> {
    routine: Option<&'r Routine>,
    id: Option<RoutineId>,
    name: Arc<str>,
    sources: Sources,
    guarded: bool,
    touches: Vec<Touch>,
    calls: Vec<CallSite>,
}

impl<'r> Local<'r> {
    fn new(routine: Option<&'r Routine>, id: Option<RoutineId>) -> Self {
        let name = routine.map_or_else(String::new, |routine| routine.signature.shown());
        let sources = routine.map_or_else(Sources::default, Sources::of);
        let (touches, calls) = (Vec::new(), Vec::new());
        Self { routine, id, name: name.into(), sources, guarded: false, touches, calls }
    }

    fn of(routine: &'r Routine, id: RoutineId) -> Self {
        let mut local = Self::new(Some(routine), Some(id));
        each_part(routine, &mut |part, guarded| {
            local.guarded = guarded;
            match part {
                Part::Query(query) => local.statement(query),
                Part::Expr(expr) => local.expr(expr),
                Part::Call(call) => {
                    local.call(call.routine, &call.args);
                    call.args.iter().for_each(|arg| local.expr(arg));
                }
                Part::Initial(_) | Part::Assigned(_) => {}
            }
        });
        local
    }

    fn statement(&mut self, query: &Query) {
        match query {
            Query::Select(plan) => self.accesses(&plan.accesses, plan.line),
            Query::Change(plan) => self.accesses(&plan.accesses, plan.line),
        }
        each_of_statement(query, &mut |inner| self.inner(&inner));
    }

    fn expr(&mut self, expr: &Expr) {
        expr.walk(&mut |part| {
            // What queries within it reach is noted with it.
            if let ExprKind::Subquery(subquery) = &part.kind {
                self.accesses(&subquery.plan.accesses, subquery.plan.line);
            }
        });
        each_inner(expr, &mut |inner| self.inner(&inner));
    }

    fn inner(&mut self, inner: &Inner<'_>) {
        match inner {
            Inner::Expr(Expr { kind: ExprKind::Call(callee, args), .. }) => self.call(*callee, args),
            Inner::Rows(rows) => self.call(rows.routine, &rows.args),
            Inner::Expr(_) => {}
        }
    }

    fn call(&mut self, callee: RoutineId, args: &[Expr]) {
        let args = args.iter().map(|arg| self.sources.key(arg)).collect();
        self.calls.push(CallSite { callee, args, guarded: self.guarded, taken: 0 });
    }

    fn accesses(&mut self, accesses: &[AccessInfo], line: Option<usize>) {
        for access in accesses {
            let key = match &access.partition {
                Some(expr) => self.sources.key(expr),
                None if access.kind == AccessKind::Insert => Key::Computed,
                None => Key::Nothing,
            };
            let by = match &access.partition {
                Some(expr) => shown(expr, self.routine, &access.columns),
                None => "the values of other rows".to_owned(),
            };
            self.touches.push(Touch {
                table: Arc::clone(&access.table),
                kind: access.kind,
                key,
                by: by.into(),
                guarded: self.guarded,
                origin: Origin {
                    routine: self.id,
                    name: Arc::clone(&self.name),
                    line,
                    number: self.touches.len() as u32,
                },
            });
        }
    }

    /// With all that the routines reach that it calls.
    fn with_called(self, classes: Classes<'_>) -> Vec<Touch> {
        let mut touches = self.touches;
        for call in &self.calls {
            if let Some(class) = classes(call.callee) {
                touches.extend(class.touches.iter().map(|touch| touch.called(&call.args, call.guarded)));
            }
        }
        touches
    }
}

/// What a query of a client's reaches.
pub(super) fn of_query(plan: &SelectPlan, around: &Routine, classes: Classes<'_>) -> Vec<Touch> {
    let mut local = Local::new(Some(around), None);
    local.accesses(&plan.accesses, plan.line);
    each_of_query(&plan.query, &mut |inner| local.inner(&inner));
    local.with_called(classes)
}

/// What a call of a client's reaches.
pub(super) fn of_call(call: &BoundCall, around: &Routine, classes: Classes<'_>) -> Vec<Touch> {
    let mut local = Local::new(Some(around), None);
    local.call(call.id, &call.args);
    call.args.iter().for_each(|arg| local.expr(arg));
    local.with_called(classes)
}

/// Gives every routine the touches of those that it calls; `None` if that is too much work.
fn closed(
    mut of: BTreeMap<RoutineId, Vec<Touch>>,
    calls: &mut BTreeMap<RoutineId, Vec<CallSite>>,
) -> Option<BTreeMap<RoutineId, Vec<Touch>>> {
    let identities = |(id, touches): (&RoutineId, &Vec<Touch>)| {
        (*id, touches.iter().map(Touch::identity).collect::<BTreeSet<_>>())
    };
    let mut known: BTreeMap<RoutineId, BTreeSet<_>> = of.iter().map(identities).collect();
    let mut steps = 0;
    loop {
        let mut grew = false;
        for (caller, sites) in calls.iter_mut() {
            for site in sites {
                let callee = of.get(&site.callee).map_or(&[][..], Vec::as_slice);
                let fresh = callee.get(site.taken..).unwrap_or_default();
                let fresh: Vec<Touch> =
                    fresh.iter().map(|touch| touch.called(&site.args, site.guarded)).collect();
                site.taken += fresh.len();
                steps += fresh.len();
                if steps > MAX_STEPS {
                    return None;
                }
                for touch in fresh {
                    if known.entry(*caller).or_default().insert(touch.identity()) {
                        of.entry(*caller).or_default().push(touch);
                        grew = true;
                    }
                }
            }
        }
        if !grew {
            return Some(of);
        }
    }
}

/// What all routines reach that one can call.
pub(super) struct Reach {
    of: BTreeMap<RoutineId, Vec<Touch>>,
}

impl Reach {
    /// Of a routine; `None` if that is too much work.
    pub(super) fn of(id: RoutineId, routines: &dyn Routines) -> Option<Self> {
        let mut of: BTreeMap<RoutineId, Vec<Touch>> = BTreeMap::new();
        let mut calls: BTreeMap<RoutineId, Vec<CallSite>> = BTreeMap::new();
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            if of.contains_key(&id) {
                continue;
            }
            // One that cannot be bound fails when it is called, before it does anything.
            let Ok(routine) = routines.bound(id) else {
                of.insert(id, Vec::new());
                continue;
            };
            let local = Local::of(&routine, id);
            open.extend(local.calls.iter().map(|call| call.callee));
            of.insert(id, local.touches);
            calls.insert(id, local.calls);
        }
        Some(Self { of: closed(of, &mut calls)? })
    }

    /// All of them.
    pub(super) fn routines(&self) -> impl Iterator<Item = RoutineId> {
        self.of.keys().copied()
    }

    /// What one of them reaches.
    pub(super) fn touches(&self, id: RoutineId) -> &[Touch] {
        self.of.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Whether one of them reaches any table.
    pub(super) fn touches_any(&self, id: RoutineId) -> bool {
        !self.touches(id).is_empty()
    }

    /// Whether one of them writes.
    pub(super) fn writes(&self, id: RoutineId) -> bool {
        self.touches(id).iter().any(|touch| touch.kind.writes())
    }
}
