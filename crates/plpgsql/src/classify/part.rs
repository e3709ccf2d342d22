//! What a body is made of, in the order in which it is written.

use crate::body::{
    Assignment, Block, Call, Case, Code, Initial, Loop, LoopKind, Query, Routine, Sink, Statement, Target,
};
use crate::expr::{Expr, ExprKind, RoutineId, RowsOf, VariableId};
use crate::plan;
use crate::plan::tree::AccessInfo;

/// A part of a body.
pub(super) enum Part<'r> {
    /// A statement in SQL.
    Query(&'r Query),
    /// An expression outside of such statements.
    Expr(&'r Expr),
    /// CALL, whose arguments do not come on their own.
    Call(&'r Call),
    /// A variable is declared. Its first value comes on its own.
    Initial(&'r Initial),
    /// A variable, or a part of one, is assigned.
    Assigned(VariableId),
}

/// What is called for each part, and whether the part is behind a condition.
type Visit<'v, 'r> = &'v mut dyn FnMut(Part<'r>, bool);

/// Calls `visit` for all parts of a routine. What stands in a loop is not behind a condition: loops are
/// written to be run.
pub(super) fn each_part<'r>(routine: &'r Routine, visit: Visit<'_, 'r>) {
    let mut walk = Walk { visit, guarded: false };
    match &routine.code {
        Code::Block(block) => walk.block(block),
        Code::Queries(queries, _) => queries.iter().for_each(|query| walk.part(Part::Query(query))),
    }
}

struct Walk<'v, 'r> {
    visit: Visit<'v, 'r>,
    guarded: bool,
}

impl<'r> Walk<'_, 'r> {
    fn part(&mut self, part: Part<'r>) {
        (self.visit)(part, self.guarded);
    }

    fn expr(&mut self, expr: &'r Expr) {
        self.part(Part::Expr(expr));
    }

    fn behind_condition(&mut self, walk: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.guarded, true);
        walk(self);
        self.guarded = before;
    }

    fn block(&mut self, block: &'r Block) {
        for initial in &block.initial {
            self.part(Part::Initial(initial));
            if let Some(assignment) = &initial.value {
                self.expr(&assignment.value);
            }
        }
        self.statements(&block.statements);
        self.behind_condition(|walk| {
            for handler in &block.handlers {
                walk.part(Part::Assigned(handler.variables.0));
                walk.part(Part::Assigned(handler.variables.1));
                walk.statements(&handler.statements);
            }
        });
    }

    fn statements(&mut self, all: &'r [Statement]) {
        all.iter().for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &'r Statement) {
        match statement {
            Statement::Block(block) => self.block(block),
            Statement::Assign(assignment) => self.assignment(assignment),
            Statement::If(branches, otherwise) => self.branches(branches, otherwise),
            Statement::Case(case) => self.case(case),
            Statement::Loop(a_loop) => self.a_loop(a_loop),
            Statement::Jump(jump) => jump.when.iter().for_each(|when| self.expr(when)),
            Statement::Perform(query) | Statement::Execute(query) | Statement::ReturnQuery(query, _) => {
                self.part(Part::Query(query));
            }
            Statement::Into(into) => {
                self.part(Part::Query(&into.query));
                self.sink(&into.sink);
            }
            Statement::Call(call) => {
                self.part(Part::Call(call));
                call.outputs.iter().for_each(|(target, _)| self.target(target));
            }
            Statement::Diagnostics(items) => items.iter().for_each(|(target, ..)| self.target(target)),
            Statement::Raise(raise) => {
                raise.arguments.iter().for_each(|argument| self.expr(argument));
                raise.options.iter().for_each(|(_, value)| self.expr(value));
            }
            Statement::Assert(condition, message) => {
                self.expr(condition);
                message.iter().for_each(|message| self.expr(message));
            }
            Statement::ReturnValue(value, _) | Statement::ReturnNextValue(value, _) => self.expr(value),
            Statement::RaiseAgain
            | Statement::Return
            | Statement::ReturnNext
            | Statement::SynchronousCommit(_) => {}
        }
    }

    fn assignment(&mut self, assignment: &'r Assignment) {
        self.expr(&assignment.value);
        self.target(&assignment.target);
    }

    fn target(&mut self, target: &'r Target) {
        match target {
            Target::Variable(id) | Target::Field(id, _) => self.part(Part::Assigned(*id)),
            Target::Element(id, subscript) => {
                self.expr(subscript);
                self.part(Part::Assigned(*id));
            }
        }
    }

    fn sink(&mut self, sink: &'r Sink) {
        match sink {
            Sink::Targets(targets) => targets.iter().for_each(|(target, _)| self.target(target)),
            Sink::Row(id, _) => self.part(Part::Assigned(*id)),
        }
    }

    fn branches(&mut self, branches: &'r [(Expr, Vec<Statement>)], otherwise: &'r [Statement]) {
        let before = self.guarded;
        for (condition, statements) in branches {
            self.expr(condition);
            // Only the first condition is always asked.
            self.guarded = true;
            self.statements(statements);
        }
        self.guarded = true;
        self.statements(otherwise);
        self.guarded = before;
    }

    fn case(&mut self, case: &'r Case) {
        let before = self.guarded;
        if let Some((operand, variable)) = &case.operand {
            self.expr(operand);
            self.part(Part::Assigned(*variable));
        }
        for (conditions, statements) in &case.branches {
            for condition in conditions {
                self.expr(condition);
                self.guarded = true;
            }
            self.statements(statements);
        }
        self.guarded = true;
        case.otherwise.iter().for_each(|otherwise| self.statements(otherwise));
        self.guarded = before;
    }

    fn a_loop(&mut self, a_loop: &'r Loop) {
        match &a_loop.kind {
            LoopKind::Endless => {}
            LoopKind::While(condition) => self.expr(condition),
            LoopKind::Range { variable, from, to, step, .. } => {
                [from, to].into_iter().chain(step).for_each(|bound| self.expr(bound));
                self.part(Part::Assigned(*variable));
            }
            LoopKind::Query { sink, query } => {
                self.part(Part::Query(query));
                self.sink(sink);
            }
            LoopKind::Array { target, array, .. } => {
                self.expr(array);
                self.target(target);
            }
        }
        self.statements(&a_loop.statements);
    }
}

/// An expression or a routine in FROM, however deep within others.
pub(super) enum Inner<'e> {
    /// An expression.
    Expr(&'e Expr),
    /// A routine in FROM; its arguments come on their own too.
    Rows(&'e RowsOf),
}

/// Calls `visit` for an expression and all within it, those of its queries included.
pub(super) fn each_inner(expr: &Expr, visit: &mut dyn FnMut(Inner<'_>)) {
    expr.walk(&mut |part| {
        visit(Inner::Expr(part));
        if let ExprKind::Subquery(subquery) = &part.kind {
            each_of_query(&subquery.plan.query, visit);
        }
    });
}

/// Calls `visit` for all expressions of a query, those of queries inside of it included.
pub(super) fn each_of_query(query: &plan::tree::Query, visit: &mut dyn FnMut(Inner<'_>)) {
    query.each_routine(&mut |rows| visit(Inner::Rows(rows)));
    query.each_expr(&mut |expr| each_inner(expr, visit));
}

/// Calls `visit` for all expressions of a statement.
pub(super) fn each_of_statement(query: &Query, visit: &mut dyn FnMut(Inner<'_>)) {
    match query {
        Query::Select(plan) => each_of_query(&plan.query, visit),
        Query::Change(plan) => {
            plan.change.each_routine(&mut |rows| visit(Inner::Rows(rows)));
            plan.change.each_expr(&mut |expr| each_inner(expr, visit));
        }
    }
}

/// What is called for each statement in SQL: its verb, its line, and the tables that it reaches.
type VisitSql<'v> = &'v mut dyn FnMut(&str, Option<usize>, &[AccessInfo]);

/// Calls `visit` for every statement in SQL and every query in an expression outside of these.
pub(super) fn each_sql(routine: &Routine, visit: VisitSql<'_>) {
    each_part(routine, &mut |part, _| match part {
        Part::Query(Query::Select(plan)) => visit("SELECT", plan.line, &plan.accesses),
        Part::Query(Query::Change(plan)) => {
            visit(plan.change.verb(), plan.line, &plan.accesses);
        }
        Part::Expr(expr) => sql_in(expr, visit),
        Part::Call(call) => call.args.iter().for_each(|arg| sql_in(arg, visit)),
        Part::Initial(_) | Part::Assigned(_) => {}
    });
}

fn sql_in(expr: &Expr, visit: VisitSql<'_>) {
    expr.walk(&mut |part| {
        if let ExprKind::Subquery(subquery) = &part.kind {
            visit("SELECT", subquery.plan.line, &subquery.plan.accesses);
        }
    });
}

/// Calls `visit` for every call of a routine, however deep within others.
pub(super) fn each_call(routine: &Routine, visit: &mut dyn FnMut(RoutineId)) {
    let mut inner = |inner: Inner<'_>| match inner {
        Inner::Expr(Expr { kind: ExprKind::Call(callee, _), .. }) => visit(*callee),
        Inner::Rows(rows) => visit(rows.routine),
        Inner::Expr(_) => {}
    };
    let mut procedures = Vec::new();
    each_part(routine, &mut |part, _| match part {
        Part::Query(query) => each_of_statement(query, &mut inner),
        Part::Expr(expr) => each_inner(expr, &mut inner),
        Part::Call(call) => {
            procedures.push(call.routine);
            call.args.iter().for_each(|arg| each_inner(arg, &mut inner));
        }
        Part::Initial(_) | Part::Assigned(_) => {}
    });
    procedures.into_iter().for_each(visit);
}
