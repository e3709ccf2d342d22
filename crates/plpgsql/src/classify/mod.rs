//! Classes of routines: where one can run, and what it never does, found in its code.
//!
//! Responsible for: what a bound routine and the routines it calls touch (`touch`, `source`, `part`), the
//! classes that follow from it (`routing`, `one_shot`, `two_phase`, `repeatable`), the text of EXPLAIN PROCEDURE
//! ([`explain()`]), remarks at creation ([`remarks()`]). Not responsible for: running (`body`), partitions
//! (`partition`, `engine`).
//!
//! Where it runs is after HyPer (Kemper, Neumann: TUM-I1010, 2010, §4.3): *partition-constrained*
//! transactions read and write one partition and read what is shared, *partition-crossing* ones do more,
//! and which of the two a procedure is comes from its code. A routine that reaches by its arguments into
//! several partitions is in between here: it is tried where most of its accesses lie. The other classes
//! are H-Store's (Stonebraker and others: VLDB 2007; the lecture on H-Store, "Transaction Classes"):
//! single-sited is partition-constrained, one-shot, two-phase, sterile.
//!
//! - *Partition*: every access to a partitioned table is by one value, an argument that the body never
//!   assigns, or a constant; no shared table is written. A cast to the type of the column counts as the
//!   value itself.
//! - *Anywhere*: no partitioned table is touched and no shared one written.
//! - *Probably*: some accesses are by an argument or constant, others by something else, or by nothing
//!   behind a condition.
//! - *Crossing*: a shared table is written, or a partitioned one read in all partitions, whatever the
//!   conditions; or no access is by anything that is known before the routine runs.
//! - *Read-only*: nothing is written.
//! - *One-shot* (no dependencies between queries): no statement uses what another one found or changed,
//!   nor runs only because of it, except that an error ends all; no access is placed by a row of another.
//! - *Two-phase* (no undo needed): once the first row is changed, nothing in the code can raise an error
//!   any more. What the machine may do, run out of memory or be told to stop, does not count.
//! - *Repeatable*: called again with the same arguments and time, on tables with the same rows in other
//!   places, it changes the same rows in the same way; so the redo log may have the call instead of the rows.
//! - *Sterile*: it commutes with all stored routines, itself included: what one of them writes, the other
//!   does not touch. Statements that clients write themselves are not known and do not count.
//!
//! All are careful guesses: a class is given only where the code shows it. None is trusted: a touch
//! outside of the partition ends the run and begins another over all partitions, whatever the class said.
//!
//! Invariants:
//! - I-1 Classifying takes bounded time, however routines call each other (`touch`).

mod explain;
mod one_shot;
mod part;
mod remarks;
mod repeatable;
mod routing;
mod source;
#[cfg(test)]
mod tests;
mod touch;
mod two_phase;

use std::sync::Arc;

use albireo_base::{SqlType, Value};

use crate::body::{BoundCall, Routine, Routines};
use crate::datum::Datum;
use crate::expr::RoutineId;
use crate::plan::{self, ChangePlan, SelectPlan};
use crate::types::Type;
pub use explain::explain;
pub use remarks::remarks;
pub use source::value_of;
pub use touch::{Origin, Touch};

/// What is known of a routine.
#[derive(Clone, Debug)]
pub struct Class {
    /// Where it runs.
    pub routing: RoutingClass,
    /// Whether it writes nothing.
    pub read_only: Verdict,
    /// Whether its statements do not depend on each other.
    pub one_shot: Verdict,
    /// Whether nothing fails behind its first write.
    pub two_phase: Verdict,
    /// Whether it does the same again on the same rows, wherever they lie.
    pub repeatable: Verdict,
    /// The tables that it and what it calls reach, with the reasons for all this.
    pub touches: Vec<Touch>,
}

/// Yes or no, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// Whether it is so.
    pub holds: bool,
    /// Why, in words.
    pub why: String,
}

impl Verdict {
    fn yes(why: impl Into<String>) -> Self {
        Self { holds: true, why: why.into() }
    }

    fn no(why: impl Into<String>) -> Self {
        Self { holds: false, why: why.into() }
    }
}

/// Where a routine or statement runs.
#[derive(Clone, Debug)]
pub enum RoutingClass {
    /// In the partition of a value.
    Partition {
        /// The value.
        place: Placing,
        /// Why.
        why: String,
    },
    /// In any partition.
    Anywhere {
        /// Why.
        why: String,
    },
    /// In the partition of a value, or over all.
    Probably {
        /// The value.
        place: Placing,
        /// Why, and why not surely.
        why: String,
    },
    /// Over all partitions.
    Crossing {
        /// Why.
        why: String,
    },
}

/// The value by which rows are placed.
#[derive(Clone, PartialEq, Debug)]
pub struct Placing {
    /// Which.
    pub key: Key,
    /// Its type.
    pub ty: Type,
    /// The type of the partitioning column it is looked for in.
    pub column: SqlType,
}

/// What gives a partitioning column its value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Key {
    /// An argument of the routine, by number among those that come in, from 0.
    Argument(usize),
    /// Always this value; a whole number as a BIGINT.
    Constant(Value),
    /// What is known only while the routine runs.
    Computed,
    /// Nothing: all partitions.
    Nothing,
}

/// Where a call goes.
#[derive(Clone, PartialEq, Debug)]
pub enum Destination {
    /// To any partition.
    Any,
    /// To that of rows whose partitioning column holds this value.
    Value(Value),
    /// To all partitions.
    All,
}

impl RoutingClass {
    /// Where a call with these values of its input parameters goes.
    pub fn destination(&self, args: &[Datum]) -> Destination {
        let place = match self {
            Self::Anywhere { .. } => return Destination::Any,
            Self::Crossing { .. } => return Destination::All,
            Self::Partition { place, .. } | Self::Probably { place, .. } => place,
        };
        let value = match &place.key {
            Key::Argument(number) => match args.get(*number) {
                Some(Datum::Value(value)) => value.clone(),
                _ => Value::Null,
            },
            Key::Constant(value) => value.clone(),
            Key::Computed | Key::Nothing => Value::Null,
        };
        // A value that the column cannot have is not found anywhere.
        plan::placing(value, &place.ty, place.column).map_or(Destination::Any, Destination::Value)
    }

    /// The value that decides, if one does.
    pub fn place(&self) -> Option<&Placing> {
        match self {
            Self::Partition { place, .. } | Self::Probably { place, .. } => Some(place),
            Self::Anywhere { .. } | Self::Crossing { .. } => None,
        }
    }

    /// Why.
    pub fn why(&self) -> &str {
        match self {
            Self::Partition { why, .. }
            | Self::Anywhere { why }
            | Self::Probably { why, .. }
            | Self::Crossing { why } => why,
        }
    }
}

impl Class {
    /// The class of a routine; `None` if it cannot be bound, as a call will say.
    pub fn of_routine(id: RoutineId, routines: &dyn Routines) -> Option<Self> {
        let routine = routines.bound(id).ok()?;
        let Some(reach) = touch::Reach::of(id, routines) else {
            let why = "the routines that it calls are too many to follow";
            return Some(Self {
                routing: RoutingClass::Crossing { why: why.to_owned() },
                read_only: Verdict::no(why),
                one_shot: Verdict::no(why),
                two_phase: Verdict::no(why),
                repeatable: Verdict::no(why),
                touches: Vec::new(),
            });
        };
        let touches = reach.touches(id).to_vec();
        let types = inputs_of(&routine);
        let writes = touches.iter().find(|touch| touch.kind.writes());
        let routing = routing::decide(&touches, Some(id), &types);
        let two_phase = match routing {
            RoutingClass::Probably { .. } if writes.is_some() => {
                Verdict::no("what it did is taken back where it reaches another partition")
            }
            _ => two_phase::verdict(&routine, &reach),
        };
        Some(Self {
            routing,
            read_only: match writes {
                None => Verdict::yes("it writes nothing"),
                Some(touch) => Verdict::no(touch.shown(Some(id))),
            },
            one_shot: one_shot::verdict(&routine, &reach),
            two_phase,
            repeatable: repeatable::verdict(id, &reach, routines),
            touches,
        })
    }

    /// Whether it commutes with all of these routines, itself among them.
    pub fn sterile<'c>(&self, all: impl Iterator<Item = (&'c str, &'c Class)>) -> Verdict {
        if self.touches.is_empty() {
            return Verdict::yes("it touches no table");
        }
        for (name, other) in all {
            let clash = self.touches.iter().find_map(|own| {
                let clashes = |touch: &&Touch| {
                    touch.table.id == own.table.id && (touch.kind.writes() || own.kind.writes())
                };
                other.touches.iter().find(clashes).map(|theirs| (own, theirs))
            });
            if let Some((own, theirs)) = clash {
                let table = &own.table.name;
                return Verdict::no(match theirs.kind.writes() {
                    true => format!("{name} writes \"{table}\""),
                    false => format!("it writes \"{table}\", which {name} reads"),
                });
            }
        }
        Verdict::yes("no stored routine writes what it touches, nor touches what it writes")
    }
}

/// Whether a change whose rows a query on a snapshot finds changes the same rows in the same way whenever it runs at the
/// same time on the same rows, in whatever places these lie: as [`Class::repeatable`]. `false` for INSERT. A change that
/// finds a row twice is not meant.
pub fn is_repeatable_change(plan: &ChangePlan) -> bool {
    plan::planned(plan.clone()).is_ok_and(repeatable::holds_for_found)
}

/// The name and type of a routine's input.
fn input(routine: &Routine, id: crate::expr::VariableId) -> (String, Type) {
    let number = routine.parameters.iter().position(|other| *other == id).unwrap_or_default() + 1;
    match routine.variables.get(id.0 as usize) {
        Some(variable) if variable.name.is_empty() => (format!("${number}"), variable.place.ty()),
        Some(variable) => (variable.name.clone(), variable.place.ty()),
        None => (format!("${number}"), Type::Void),
    }
}

/// The classes of a database's routines.
pub type Classes<'c> = &'c dyn Fn(RoutineId) -> Option<Arc<Class>>;

/// Where a query of a client's runs that calls routines; `around` has its parameters.
pub fn routing_of_query(plan: &SelectPlan, around: &Routine, classes: Classes<'_>) -> RoutingClass {
    routing::decide(&touch::of_query(plan, around, classes), None, &inputs_of(around))
}

/// Where a call of a client's runs; `around` has its parameters.
pub fn routing_of_call(call: &BoundCall, around: &Routine, classes: Classes<'_>) -> RoutingClass {
    routing::decide(&touch::of_call(call, around, classes), None, &inputs_of(around))
}

fn inputs_of(routine: &Routine) -> Vec<(String, Type)> {
    source::inputs(routine).iter().map(|id| input(routine, *id)).collect()
}
