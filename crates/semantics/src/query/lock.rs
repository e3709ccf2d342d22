//! FOR UPDATE and FOR SHARE, bound.
//!
//! Responsible for: which relations of a SELECT they concern, and where they may stand. Not responsible for: locking
//! rows.

use albireo_base::{SqlError, SqlState};
use albireo_sql::ast::{Ident, LockClause, LockType, NonBlock, ObjectName, ObjectNamePart};
use albireo_sql::names;

use super::scope::Scope;
use super::tree::{Body, Distinct, Item, LockMode, LockWait, Pool, Query, RelationSource, RowLock, Select};

/// A clause, without the relations that it names.
#[derive(Clone, Copy)]
struct Clause {
    mode: LockMode,
    wait: LockWait,
}

impl Clause {
    fn of(clause: &LockClause) -> Self {
        let mode = match clause.lock_type {
            LockType::Share => LockMode::Share,
            LockType::Update => LockMode::Update,
        };
        let wait = match clause.nonblock {
            None => LockWait::Waits,
            Some(NonBlock::Nowait) => LockWait::Fails,
            Some(NonBlock::SkipLocked) => LockWait::Skips,
        };
        Self { mode, wait }
    }
}

/// Adds the clauses behind a SELECT, whose names `scope` knows.
pub(super) fn add(scope: &Scope<'_>, clauses: &[LockClause], select: &mut Select) -> Result<(), SqlError> {
    for clause in clauses {
        let what = Clause::of(clause);
        refuse(select, what)?;
        let Some(names) = &clause.of else {
            (0..select.relations.len()).try_for_each(|at| lock(select, at, what, false))?;
            continue;
        };
        for name in idents(names) {
            let folded = names::fold(name);
            let Some(at) = scope.relations.iter().position(|relation| relation.name == folded) else {
                let text =
                    format!("relation \"{folded}\" in {} clause not found in FROM clause", what.mode.name());
                return Err(scope.error(SqlState::UNDEFINED_TABLE, text, name));
            };
            let locked = lock(select, at, what, true);
            locked.map_err(|error| scope.error(error.state(), error.message(), name))?;
        }
    }
    Ok(())
}

/// The names behind OF, of which the parser makes one with several parts.
fn idents(names: &ObjectName) -> impl Iterator<Item = &Ident> {
    names.0.iter().filter_map(|part| match part {
        ObjectNamePart::Identifier(ident) => Some(ident),
        ObjectNamePart::Function(_) => None,
    })
}

/// Locks the rows of a relation; one that is not `named` may be of a kind that has none.
fn lock(select: &mut Select, at: usize, what: Clause, named: bool) -> Result<(), SqlError> {
    let kind = match &mut select.relations[at].source {
        RelationSource::Table(_) => {
            if is_nullable(&select.from, at as u16, false) {
                let text = "cannot be applied to the nullable side of an outer join";
                return Err(refused(what.mode, text));
            }
            put(&mut select.locks, at as u16, what);
            return Ok(());
        }
        RelationSource::Query(query) | RelationSource::Lateral(query) => return lock_all(query, what),
        RelationSource::Cte(..) => "a WITH query",
        RelationSource::Series(_) | RelationSource::Unnest(_) | RelationSource::Routine(..) => "a function",
        RelationSource::File(_) => "a file",
        RelationSource::Given => "EXCLUDED",
    };
    match named {
        true => Err(refused(what.mode, &format!("cannot be applied to {kind}"))),
        false => Ok(()),
    }
}

fn put(locks: &mut Vec<RowLock>, relation: u16, Clause { mode, wait }: Clause) {
    match locks.iter_mut().find(|lock| lock.relation == relation) {
        None => locks.push(RowLock { relation, mode, wait }),
        Some(lock) => {
            lock.mode = lock.mode.max(mode);
            lock.wait = lock.wait.max(wait);
        }
    }
}

/// Locks the rows of all tables of a query in FROM.
fn lock_all(query: &mut Query, what: Clause) -> Result<(), SqlError> {
    match &mut query.body {
        Body::Select(select) => {
            refuse(select, what)?;
            (0..select.relations.len()).try_for_each(|at| lock(select, at, what, false))
        }
        Body::Nested(inner) => lock_all(inner, what),
        Body::Set(_) => Err(not_with(what.mode, "UNION/INTERSECT/EXCEPT")),
        Body::Values(_) => Ok(()),
    }
}

/// Whether a relation may be missing beside rows of others.
fn is_nullable(pool: &Pool, relation: u16, inside: bool) -> bool {
    pool.items.iter().any(|item| match item {
        Item::One { relation: one, .. } => inside && *one == relation,
        Item::Left { pool, .. } => is_nullable(pool, relation, true),
        Item::Full { left, right, .. } => {
            is_nullable(left, relation, true) || is_nullable(right, relation, true)
        }
    })
}

/// # Errors
/// 0A000 where what comes out is not a row of a table any more.
fn refuse(select: &Select, what: Clause) -> Result<(), SqlError> {
    let grouping = select.grouping.as_ref();
    let clauses = [
        (!matches!(select.distinct, Distinct::No), "DISTINCT clause"),
        (grouping.is_some_and(|grouping| grouping.written), "GROUP BY clause"),
        (grouping.is_some_and(|grouping| grouping.having.is_some()), "HAVING clause"),
        (grouping.is_some(), "aggregate functions"),
        (!select.windows.is_empty(), "window functions"),
    ];
    match clauses.into_iter().find(|(there, _)| *there) {
        Some((_, clause)) => Err(not_with(what.mode, clause)),
        None => Ok(()),
    }
}

/// # Errors
/// 0A000 if there are any, behind what is no SELECT.
pub(super) fn none(clauses: &[LockClause], body: Option<&Body>) -> Result<(), SqlError> {
    match (clauses.first().map(|clause| Clause::of(clause).mode), body) {
        (None, _) => Ok(()),
        (Some(mode), Some(Body::Values(_))) => Err(refused(mode, "cannot be applied to VALUES")),
        (Some(mode), _) => Err(not_with(mode, "UNION/INTERSECT/EXCEPT")),
    }
}

fn not_with(mode: LockMode, clause: &str) -> SqlError {
    refused(mode, &format!("is not allowed with {clause}"))
}

fn refused(mode: LockMode, text: &str) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("{} {text}", mode.name()))
}
