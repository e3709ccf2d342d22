//! Whether nothing that a routine does can fail once it has changed a row.
//!
//! Read in the order it runs, a loop twice. Careful: an expression may fail unless it is made of values,
//! comparisons, connectives, CASE, COALESCE and conversions that every value survives; so may all that
//! PL/pgSQL checks (STRICT, bounds of loops, arrays, CASE without ELSE, NOT NULL, ASSERT), every call, and
//! every change that a constraint can refuse. A change of at most one row may itself fail, because it
//! changes nothing then; a block with EXCEPTION may not hold one, because it takes it back.

use albireo_sql::TableDef;

use super::Verdict;
use super::part::{Inner, each_inner, each_of_statement};
use super::touch::Reach;
use crate::body::{
    Block, Call, Code, Fit, Into, Loop, LoopKind, Place, Query, Routine, RowFit, Sink, Statement, Target,
};
use crate::define::RoutineKind;
use crate::expr::{Conversion, Expr, ExprKind, SubqueryKind, VariableId};
use crate::parse::ast::{DiagnosticItem, RaiseLevel};
use crate::plan::ChangePlan;
use crate::plan::tree::{AggregateKind, Body, Change, MergeAction, Query as Tree, RelationSource, Step};
use crate::types::{Scalar, Type};

/// Why undo is needed.
type Reason = String;

/// Looks at a routine.
pub(super) fn verdict(routine: &Routine, reach: &Reach) -> Verdict {
    let mut phase = Phase { routine, reach, written: None };
    let done = match &routine.code {
        Code::Block(block) => phase.block(block).and_then(|()| phase.end(block)),
        Code::Queries(queries, fits) => queries
            .iter()
            .try_for_each(|query| phase.query(query))
            .and_then(|()| fits.iter().try_for_each(|fit| phase.fit(fit))),
    };
    match done {
        Err(why) => Verdict::no(why),
        Ok(()) => Verdict::yes(match phase.written {
            None => "it changes nothing".to_owned(),
            Some(first) => format!("nothing after {first} can fail"),
        }),
    }
}

struct Phase<'r> {
    routine: &'r Routine,
    reach: &'r Reach,
    /// The first change, which may have been made.
    written: Option<String>,
}

impl Phase<'_> {
    /// Something that may fail.
    fn may_fail(&self, what: impl std::fmt::Display) -> Result<(), Reason> {
        match &self.written {
            None => Ok(()),
            Some(first) => Err(format!("{what} may fail after {first}")),
        }
    }

    fn expr(&self, expr: &Expr) -> Result<(), Reason> {
        let mut writes = false;
        each_inner(expr, &mut |inner| writes |= self.calls_writer(&inner));
        if writes {
            return Err("an expression calls a routine that writes".to_owned());
        }
        fallible(expr).map_or(Ok(()), |what| self.may_fail(what))
    }

    fn calls_writer(&self, inner: &Inner<'_>) -> bool {
        match inner {
            Inner::Expr(Expr { kind: ExprKind::Call(callee, _), .. }) => self.reach.writes(*callee),
            Inner::Rows(rows) => self.reach.writes(rows.routine),
            Inner::Expr(_) => false,
        }
    }

    fn fit(&self, fit: &Fit) -> Result<(), Reason> {
        match fit {
            Fit::Same => Ok(()),
            Fit::Cast(_, cast) => fallible(cast).map_or(Ok(()), |what| self.may_fail(what)),
        }
    }

    fn row_fit(&self, fit: &RowFit) -> Result<(), Reason> {
        match fit {
            RowFit::Value(fit) => self.fit(fit),
            RowFit::Fields(fits) => fits.iter().try_for_each(|fit| self.fit(fit)),
        }
    }

    fn variable(&self, id: VariableId) -> Result<(), Reason> {
        match self.routine.variables.get(id.0 as usize) {
            Some(variable) if variable.not_null => {
                self.may_fail(format!("an assignment to {}, which is NOT NULL,", variable.name))
            }
            _ => Ok(()),
        }
    }

    fn target(&self, target: &Target) -> Result<(), Reason> {
        match target {
            Target::Variable(id) | Target::Field(id, _) => self.variable(*id),
            Target::Element(_, subscript) => {
                self.expr(subscript)?;
                self.may_fail("an assignment to an element of an array")
            }
        }
    }

    fn sink(&self, sink: &Sink) -> Result<(), Reason> {
        match sink {
            Sink::Targets(targets) => targets.iter().try_for_each(|(target, fit)| {
                self.fit(fit)?;
                self.target(target)
            }),
            Sink::Row(id, fits) => {
                fits.iter().try_for_each(|fit| self.fit(fit))?;
                self.variable(*id)
            }
        }
    }

    fn query(&mut self, query: &Query) -> Result<(), Reason> {
        let mut writes = false;
        each_of_statement(query, &mut |inner| writes |= self.calls_writer(&inner));
        if writes {
            return Err("a statement calls a routine that writes".to_owned());
        }
        match query {
            Query::Select(plan) => fallible_query(&plan.query).map_or(Ok(()), |what| self.may_fail(what)),
            Query::Change(plan) => self.change(plan),
        }
    }

    fn change(&mut self, plan: &ChangePlan) -> Result<(), Reason> {
        let what = name_of(plan);
        let mut cause = None;
        plan.change.each_cause(&mut |expr| cause = cause.or(fallible(expr)));
        if let Change::Insert(insert) = &*plan.change {
            cause = cause.or(fallible_query(&insert.source));
        }
        cause.map_or(Ok(()), |cause| self.may_fail(format!("{cause} of {what}")))?;
        let one = at_most_one_row(&plan.change);
        if let Some(constraint) = refusal(&plan.change) {
            self.may_fail(format!("{what}, by {constraint},"))?;
            if !one {
                return Err(format!("{what} may fail at a later row, by {constraint}"));
            }
        }
        if let (Change::Insert(insert), false) = (&*plan.change, one)
            && let Some(cause) = insert.defaults.iter().find_map(|(_, default)| fallible(default))
        {
            return Err(format!("{cause} in a default may fail at a later row of {what}"));
        }
        if moves(&plan.change) {
            return Err(format!("{what} may move a row to another partition"));
        }
        self.written.get_or_insert(what.clone());
        let mut returned = None;
        plan.change.returning().iter().for_each(|expr| returned = returned.or(fallible(expr)));
        match (returned, &*plan.change) {
            // Evaluated before the row is deleted.
            (Some(_), Change::Delete(_)) if one => Ok(()),
            (Some(cause), _) => Err(format!("{cause} in RETURNING may fail after {what}")),
            (None, _) => Ok(()),
        }
    }

    fn call(&self, call: &Call) -> Result<(), Reason> {
        call.args.iter().try_for_each(|arg| self.expr(arg))?;
        if self.reach.writes(call.routine) {
            return Err("it calls a procedure that writes".to_owned());
        }
        self.may_fail("a call")
    }

    fn block(&mut self, block: &Block) -> Result<(), Reason> {
        for initial in &block.initial {
            if let Some(assignment) = &initial.value {
                self.expr(&assignment.value)?;
                self.row_fit(&assignment.fit)?;
                self.target(&assignment.target)?;
            }
        }
        let before = self.written.clone();
        self.statements(&block.statements)?;
        if !block.handlers.is_empty() && before != self.written {
            let first = self.written.clone().unwrap_or_default();
            return Err(format!("EXCEPTION takes back what {first} does"));
        }
        block.handlers.iter().try_for_each(|handler| self.statements(&handler.statements))
    }

    fn statements(&mut self, all: &[Statement]) -> Result<(), Reason> {
        all.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &Statement) -> Result<(), Reason> {
        match statement {
            Statement::Block(block) => self.block(block),
            Statement::Assign(assignment) => {
                self.expr(&assignment.value)?;
                self.row_fit(&assignment.fit)?;
                self.target(&assignment.target)
            }
            Statement::If(branches, otherwise) => {
                for (condition, statements) in branches {
                    self.expr(condition)?;
                    self.statements(statements)?;
                }
                self.statements(otherwise)
            }
            Statement::Case(case) => {
                case.operand.iter().try_for_each(|(operand, _)| self.expr(operand))?;
                for (conditions, statements) in &case.branches {
                    conditions.iter().try_for_each(|condition| self.expr(condition))?;
                    self.statements(statements)?;
                }
                match &case.otherwise {
                    Some(otherwise) => self.statements(otherwise),
                    None => self.may_fail("CASE without ELSE"),
                }
            }
            Statement::Loop(a_loop) => self.a_loop(a_loop),
            Statement::Jump(jump) => jump.when.iter().try_for_each(|when| self.expr(when)),
            Statement::Perform(query) | Statement::Execute(query) => self.query(query),
            Statement::ReturnQuery(query, fits) => {
                self.query(query)?;
                fits.iter().try_for_each(|fit| self.fit(fit))
            }
            Statement::Into(into) => self.into(into),
            Statement::Call(call) => self.call(call),
            Statement::Diagnostics(items) => items.iter().try_for_each(|(target, fit, item)| {
                if *item != DiagnosticItem::RowCount {
                    self.may_fail("GET STACKED DIAGNOSTICS")?;
                }
                self.fit(fit)?;
                self.target(target)
            }),
            Statement::Raise(raise) => {
                let values = raise.arguments.iter().chain(raise.options.iter().map(|(_, value)| value));
                values.into_iter().try_for_each(|value| self.expr(value))?;
                match raise.level == RaiseLevel::Exception || !raise.options.is_empty() {
                    true => self.may_fail("RAISE"),
                    false => Ok(()),
                }
            }
            Statement::RaiseAgain => self.may_fail("RAISE"),
            Statement::Assert(..) => self.may_fail("ASSERT"),
            Statement::ReturnValue(value, fit) | Statement::ReturnNextValue(value, fit) => {
                self.expr(value)?;
                self.row_fit(fit)
            }
            Statement::Return | Statement::ReturnNext | Statement::SynchronousCommit(_) => Ok(()),
        }
    }

    fn into(&mut self, into: &Into) -> Result<(), Reason> {
        self.query(&into.query)?;
        if into.strict {
            self.may_fail("INTO STRICT")?;
        }
        if let Query::Change(plan) = &into.query
            && !at_most_one_row(&plan.change)
        {
            self.may_fail("INTO of several rows")?;
        }
        self.sink(&into.sink)
    }

    fn a_loop(&mut self, a_loop: &Loop) -> Result<(), Reason> {
        // What one round changes, the next may fail behind.
        for _ in 0..2 {
            match &a_loop.kind {
                LoopKind::Endless => {}
                LoopKind::While(condition) => self.expr(condition)?,
                LoopKind::Range { from, to, step, .. } => {
                    for bound in [from, to].into_iter().chain(step) {
                        self.expr(bound)?;
                        if !matches!(bound.kind, ExprKind::Constant(_)) {
                            self.may_fail("a bound of FOR, which may be NULL,")?;
                        }
                    }
                }
                LoopKind::Query { sink, query } => {
                    self.query(query)?;
                    self.sink(sink)?;
                }
                LoopKind::Array { target, fit, array } => {
                    self.expr(array)?;
                    self.may_fail("FOREACH, whose array may be NULL,")?;
                    self.fit(fit)?;
                    self.target(target)?;
                }
            }
            self.statements(&a_loop.statements)?;
        }
        Ok(())
    }

    /// Behind the last statement.
    fn end(&self, block: &Block) -> Result<(), Reason> {
        let signature = &self.routine.signature;
        let result = &signature.result;
        let needs_value = !result.setof
            && !result.from_variables
            && signature.kind == RoutineKind::Function
            && result.place != Place::Void;
        let last = matches!(block.statements.last(), Some(Statement::ReturnValue(..)));
        match needs_value && !last {
            true => self.may_fail("the end without RETURN"),
            false => Ok(()),
        }
    }
}

fn name_of(plan: &ChangePlan) -> String {
    let verb = match &*plan.change {
        Change::Insert(_) => "INSERT into",
        Change::Update(_) => "UPDATE of",
        Change::Delete(_) => "DELETE from",
        Change::Merge(_) => "MERGE into",
    };
    let line = plan.line.map_or(String::new(), |line| format!(" in line {line}"));
    format!("{verb} \"{}\"{line}", plan.change.table().name)
}

/// Whether a change concerns one row, or none.
fn at_most_one_row(change: &Change) -> bool {
    let target = match change {
        Change::Insert(insert) => {
            return match &insert.source.body {
                Body::Values(rows) => rows.len() < 2,
                Body::Select(select) => select.relations.is_empty(),
                Body::Nested(_) | Body::Set(_) => false,
            };
        }
        Change::Update(update) => &update.target,
        Change::Delete(target) => target,
        Change::Merge(_) => return false,
    };
    let [Step::Inner { access, .. }] = target.steps.as_slice() else { return false };
    let index = access.index.as_ref().filter(|index| index.whole);
    index.is_some_and(|index| target.table.indexes.iter().any(|def| def.unique && def.name == index.name))
}

/// What may refuse a row.
fn refusal(change: &Change) -> Option<&'static str> {
    match change {
        Change::Delete(_) => None,
        Change::Insert(insert) => of_constraints(&insert.table, &|_| true),
        Change::Update(update) => {
            let set = |column| update.set.iter().any(|(other, _)| *other == column);
            of_constraints(&update.target.table, &set)
        }
        // A row may be hit twice.
        Change::Merge(_) => Some("a row hit twice"),
    }
}

fn of_constraints(table: &TableDef, set: &dyn Fn(albireo_base::ColumnId) -> bool) -> Option<&'static str> {
    let unique = table.indexes.iter().any(|index| index.unique && index.columns.iter().any(|c| set(*c)));
    let present = table.column_ids().any(|column| set(column) && !table.column_def(column).nullable);
    match () {
        () if unique => Some("a duplicate key"),
        () if present => Some("NULL"),
        () if !table.checks.is_empty() => Some("CHECK"),
        () => None,
    }
}

fn moves(change: &Change) -> bool {
    match change {
        Change::Update(update) => {
            update.set.iter().any(|(column, _)| Some(*column) == update.target.table.partition_by)
        }
        Change::Insert(insert) => {
            let set = insert.conflict.iter().filter_map(|conflict| conflict.update.as_ref());
            set.flat_map(|update| &update.set).any(|(column, _)| Some(*column) == insert.table.partition_by)
        }
        Change::Merge(merge) => merge.clauses.iter().any(|clause| match &clause.action {
            MergeAction::Update(set) => {
                set.iter().any(|(column, _)| Some(*column) == merge.target.table.partition_by)
            }
            _ => false,
        }),
        Change::Delete(_) => false,
    }
}

/// What in a query may fail.
pub(super) fn fallible_query(query: &Tree) -> Option<&'static str> {
    let mut what = (query.limit.is_some() || query.offset.is_some()).then_some("LIMIT or OFFSET");
    query.each_expr(&mut |expr| what = what.or(fallible(expr)));
    query.each_routine(&mut |_| what = Some("a call"));
    let ctes = || query.ctes.iter().find_map(|cte| fallible_query(&cte.query));
    what.or_else(ctes).or_else(|| fallible_body(&query.body))
}

fn fallible_body(body: &Body) -> Option<&'static str> {
    match body {
        Body::Values(_) => None,
        Body::Nested(inner) => fallible_query(inner),
        Body::Set(set) => fallible_query(&set.left).or_else(|| fallible_query(&set.right)),
        Body::Select(select) => {
            let sums = select.grouping.iter().flat_map(|grouping| &grouping.aggregates).any(|aggregate| {
                !matches!(aggregate.kind, AggregateKind::Count | AggregateKind::Min | AggregateKind::Max)
            });
            let other = select.relations.iter().find_map(|relation| match &relation.source {
                RelationSource::Series(_) => Some("generate_series"),
                RelationSource::Query(query) => fallible_query(query),
                _ => None,
            });
            if sums { Some("an aggregate") } else { other }
        }
    }
}

/// What in an expression may fail.
fn fallible(expr: &Expr) -> Option<&'static str> {
    let own = match &expr.kind {
        ExprKind::Constant(_)
        | ExprKind::Variable(_)
        | ExprKind::Column(_)
        | ExprKind::Field(..)
        | ExprKind::Element(..)
        | ExprKind::Compare(..)
        | ExprKind::CompareRows(..)
        | ExprKind::Logic(..)
        | ExprKind::Not(_)
        | ExprKind::IsNull(_)
        | ExprKind::IsNotNull(_)
        | ExprKind::Is(..)
        | ExprKind::IsDistinct(_)
        | ExprKind::Case(..)
        | ExprKind::CaseOf(..)
        | ExprKind::Coalesce(_)
        | ExprKind::Extreme(..)
        | ExprKind::In(..)
        | ExprKind::Row(_)
        | ExprKind::Array(_)
        | ExprKind::Now => None,
        ExprKind::Convert(inner, conversion) if widens(&inner.ty, conversion) => None,
        ExprKind::Between { conversions, .. } if *conversions == [None, None] => None,
        ExprKind::Subquery(subquery) if matches!(subquery.kind, SubqueryKind::Exists) => {
            fallible_query(&subquery.plan.query)
        }
        ExprKind::Subquery(_) => Some("a query within an expression"),
        ExprKind::Cast(..) | ExprKind::Convert(..) | ExprKind::Between { .. } | ExprKind::NullIf(..) => {
            Some("a cast")
        }
        ExprKind::Call(..) => Some("a call"),
        ExprKind::Unary(..) | ExprKind::Binary(..) => Some("an operator"),
        ExprKind::AnyOf { .. } | ExprKind::Function(..) | ExprKind::General(..) => Some("a function"),
    };
    let mut what = own;
    if what.is_none() {
        expr.each_part(&mut |part| what = what.or(fallible(part)));
    }
    what
}

/// Whether every value survives a conversion.
fn widens(from: &Type, conversion: &Conversion) -> bool {
    let (Type::Scalar(from), Conversion::Scalar(to)) = (from, conversion) else {
        return matches!((from, conversion), (Type::Scalar(_), Conversion::Text));
    };
    let width = |scalar: Scalar| match scalar {
        Scalar::SmallInt => Some(1),
        Scalar::Integer => Some(2),
        Scalar::BigInt => Some(3),
        Scalar::Numeric { .. } => Some(4),
        _ => None,
    };
    match (width(*from), width(*to)) {
        (Some(from), Some(to)) => from <= to,
        _ => matches!((from, to), (Scalar::Bpchar | Scalar::Text, Scalar::Text)),
    }
}
