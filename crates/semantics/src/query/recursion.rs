//! Whether a recursive query refers to itself only where it may.
//!
//! Responsible for: PostgreSQL's rules, which it applies to the text before it binds. Not responsible for:
//! binding WITH (`with`).

use std::collections::HashMap;
use std::ops::ControlFlow;

use albireo_base::{SqlError, SqlState};
use albireo_sql::ast::{
    Expr as Ast, GroupByExpr, Ident, JoinConstraint, JoinOperator, LimitClause, ObjectName, ObjectNamePart,
    OrderByKind, Query as AstQuery, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    SetOperator, SetQuantifier, TableFactor, TableWithJoins, Visitor,
};
use albireo_sql::names;
use albireo_sql::source::{Source, Span};
use albireo_sql::walk::Walk;

type Result = std::result::Result<(), SqlError>;

/// The places where a reference is an error.
#[derive(Clone, Copy)]
enum Clause {
    Anywhere,
    First,
    Subquery,
    OuterJoin,
    Intersect,
    Except,
}

/// How often a query is referred to by parts of itself.
pub(super) struct Check<'a> {
    name: &'a str,
    source: Source<'a>,
    place: Clause,
    count: usize,
}

/// The names without schema that a query refers to in FROM, those of its own WITH aside.
pub(super) fn names_in(tree: &dyn Walk) -> HashMap<String, Ident> {
    let mut find = Find::default();
    // The visitor never breaks.
    let _ = tree.walk(&mut find);
    find.found
}

#[derive(Default)]
struct Find {
    /// The names that the queries around define.
    hidden: HashMap<String, usize>,
    found: HashMap<String, Ident>,
}

fn defined(query: &AstQuery) -> impl Iterator<Item = String> + '_ {
    query.with.iter().flat_map(|with| &with.cte_tables).map(|cte| names::fold(&cte.alias.name))
}

impl Visitor for Find {
    type Break = ();

    fn pre_visit_query(&mut self, query: &AstQuery) -> ControlFlow<()> {
        defined(query).for_each(|name| *self.hidden.entry(name).or_default() += 1);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &AstQuery) -> ControlFlow<()> {
        defined(query).for_each(|name| *self.hidden.entry(name).or_default() -= 1);
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        if let [ObjectNamePart::Identifier(ident)] = relation.0.as_slice() {
            let name = names::fold(ident);
            if self.hidden.get(&name).is_none_or(|count| *count == 0) {
                self.found.entry(name).or_insert_with(|| ident.clone());
            }
        }
        ControlFlow::Continue(())
    }
}

impl<'a> Check<'a> {
    pub(super) fn new(name: &'a str, source: Source<'a>) -> Self {
        Self { name, source, place: Clause::Anywhere, count: 0 }
    }

    /// 42P19 if the part that begins refers to the query.
    pub(super) fn first(&mut self, tree: &SetExpr) -> Result {
        self.in_place(Clause::First, |check| check.body(tree))
    }

    /// 42P19 if the repeated part refers to it otherwise than once, where it may; whether it does.
    pub(super) fn repeated(mut self, tree: &SetExpr) -> std::result::Result<bool, SqlError> {
        self.body(tree)?;
        Ok(self.count > 0)
    }

    fn in_place(&mut self, place: Clause, check: impl FnOnce(&mut Self) -> Result) -> Result {
        let outer = std::mem::replace(&mut self.place, place);
        let result = check(self);
        self.place = outer;
        result
    }

    fn error(&self, what: &str, span: Span) -> SqlError {
        let message = format!("recursive reference to query \"{}\" must not appear {what}", self.name);
        self.source.locate(SqlError::new(SqlState::INVALID_RECURSION, message), span)
    }

    fn relation(&mut self, name: &ObjectName) -> Result {
        match name.0.as_slice() {
            [ObjectNamePart::Identifier(ident)] if names::fold(ident) == self.name => {
                self.reference(ident.span)
            }
            _ => Ok(()),
        }
    }

    fn reference(&mut self, span: Span) -> Result {
        let refused = match self.place {
            Clause::Anywhere => {
                self.count += 1;
                if self.count == 1 {
                    return Ok(());
                }
                "more than once"
            }
            Clause::First => "within its non-recursive term",
            Clause::Subquery => "within a subquery",
            Clause::OuterJoin => "within an outer join",
            Clause::Intersect => "within INTERSECT",
            Clause::Except => "within EXCEPT",
        };
        Err(self.error(refused, span))
    }

    fn query(&mut self, query: &AstQuery) -> Result {
        if defined(query).any(|name| name == self.name) {
            return Ok(());
        }
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.in_place(Clause::Subquery, |check| check.query(&cte.query))?;
        }
        self.body(&query.body)?;
        if let Some(order) = &query.order_by
            && let OrderByKind::Expressions(keys) = &order.kind
        {
            keys.iter().try_for_each(|key| self.expr(&key.expr))?;
        }
        match &query.limit_clause {
            Some(LimitClause::LimitOffset { limit, offset, .. }) => {
                let offset = offset.iter().map(|offset| &offset.value);
                limit.iter().chain(offset).try_for_each(|expr| self.expr(expr))
            }
            _ => Ok(()),
        }
    }

    fn body(&mut self, tree: &SetExpr) -> Result {
        match tree {
            SetExpr::Select(select) => self.select(select),
            SetExpr::Query(query) => self.query(query),
            SetExpr::Values(rows) => {
                rows.rows.iter().flat_map(|row| &row.content).try_for_each(|expr| self.expr(expr))
            }
            SetExpr::SetOperation { .. } => self.sets(tree),
            SetExpr::Table(_)
            | SetExpr::Insert(_)
            | SetExpr::Update(_)
            | SetExpr::Delete(_)
            | SetExpr::Merge(_) => Ok(()),
        }
    }

    /// Along the left side, which may be deep.
    fn sets(&mut self, tree: &SetExpr) -> Result {
        let mut left = tree;
        let place = self.place;
        while let SetExpr::SetOperation { left: next, op, set_quantifier, right } = left {
            let all = *set_quantifier == SetQuantifier::All;
            let within = match op {
                SetOperator::Intersect if all => Clause::Intersect,
                SetOperator::Except | SetOperator::Minus => Clause::Except,
                _ => self.place,
            };
            self.in_place(within, |check| check.body(right))?;
            if all && !matches!(op, SetOperator::Union) {
                self.place = within;
            }
            left = next;
        }
        let result = self.body(left);
        self.place = place;
        result
    }

    fn select(&mut self, select: &Select) -> Result {
        select.from.iter().try_for_each(|item| self.joined(item))?;
        for item in &select.projection {
            match item {
                SelectItem::UnnamedExpr(expr)
                | SelectItem::ExprWithAlias { expr, .. }
                | SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(expr), _) => {
                    self.expr(expr)?;
                }
                _ => {}
            }
        }
        select.selection.iter().chain(&select.having).try_for_each(|expr| self.expr(expr))?;
        match &select.group_by {
            GroupByExpr::Expressions(keys, _) => keys.iter().try_for_each(|key| self.expr(key)),
            GroupByExpr::All(_) => Ok(()),
        }
    }

    fn joined(&mut self, item: &TableWithJoins) -> Result {
        self.joins(item, item.joins.len())
    }

    /// The first `count` joins of an item of FROM: of each, its left side and then its right side.
    fn joins(&mut self, item: &TableWithJoins, count: usize) -> Result {
        let outer = |at: usize| match &item.joins[at].join_operator {
            JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => (false, true),
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => (true, false),
            JoinOperator::FullOuter(_) => (true, true),
            _ => (false, false),
        };
        // What stands left of a join that may leave it without a partner.
        let behind = |at: usize| (at..count).any(|at| outer(at).0);
        let place = |check: &Self, outer: bool| if outer { Clause::OuterJoin } else { check.place };
        let first = place(self, behind(0));
        self.in_place(first, |check| check.factor(&item.relation))?;
        for (at, join) in item.joins[..count].iter().enumerate() {
            let within = place(self, outer(at).1 || behind(at + 1));
            self.in_place(within, |check| check.factor(&join.relation))?;
            let (JoinOperator::Join(on)
            | JoinOperator::Inner(on)
            | JoinOperator::Left(on)
            | JoinOperator::LeftOuter(on)
            | JoinOperator::Right(on)
            | JoinOperator::RightOuter(on)
            | JoinOperator::FullOuter(on)) = &join.join_operator
            else {
                continue;
            };
            if let JoinConstraint::On(on) = on {
                self.expr(on)?;
            }
        }
        Ok(())
    }

    fn factor(&mut self, factor: &TableFactor) -> Result {
        match factor {
            TableFactor::Table { name, args: None, .. } => self.relation(name),
            TableFactor::Derived { subquery, .. } => self.query(subquery),
            TableFactor::NestedJoin { table_with_joins, .. } => self.joined(table_with_joins),
            _ => Ok(()),
        }
    }

    /// Queries in expressions.
    fn expr(&mut self, expr: &Ast) -> Result {
        let Some(ident) = names_in(expr).remove(self.name) else { return Ok(()) };
        let place = match self.place {
            Clause::Anywhere => Clause::Subquery,
            place => place,
        };
        self.in_place(place, |check| check.reference(ident.span))
    }
}
