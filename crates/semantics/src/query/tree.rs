//! The typed tree of queries and changes.
//!
//! Responsible for: its nodes. Not responsible for: making them (`bind`, `from`), running them.
//!
//! A tree has two states. *Bound*, it says in [`Select::from`] what is read. The transactional path turns
//! that into [`Select::steps`], which say by which index ([`Access`]) and in which order: then it is *planned*.
//!
//! Depths of columns: a SELECT is a level of its own. What stands in VALUES, LIMIT, WITH and in derived
//! tables stands outside of the level of the SELECT around it, and counts from there.

use std::sync::Arc;

use albireo_base::{ColumnId, SqlType};
use albireo_sql::{IndexKind, TableDef};

use crate::expr::Expr;
use crate::types::Type;

pub use super::access::{AccessInfo, AccessKind};
pub use super::row_lock::{LockMode, LockWait, RowLock};

/// A query with its WITH, ORDER BY and LIMIT.
#[derive(Clone, PartialEq, Debug)]
pub struct Query {
    /// The queries of WITH that are used, in order.
    pub ctes: Vec<Cte>,
    /// What gives the rows.
    pub body: Body,
    /// ORDER BY.
    pub order: Vec<OrderKey>,
    /// LIMIT, a BIGINT.
    pub limit: Option<Expr>,
    /// OFFSET, a BIGINT.
    pub offset: Option<Expr>,
}

/// A query of WITH; its rows are computed once.
#[derive(Clone, PartialEq, Debug)]
pub struct Cte {
    /// Its number, of one per statement.
    pub id: u32,
    /// The query; of a recursive one the part that begins.
    pub query: Query,
    /// What is repeated, if the query refers to itself.
    pub repeated: Option<Repeated>,
    /// MATERIALIZED, or NOT MATERIALIZED, if the text says either.
    pub materialized: Option<bool>,
    /// How often the text refers to it, not counting the references in itself.
    pub uses: u32,
}

/// The part of a recursive query that is run again over the rows that its last run gave, which
/// [`RelationSource::Cte`] of the same number stands for, until there are none.
#[derive(Clone, PartialEq, Debug)]
pub struct Repeated {
    /// It, with the same columns as the part that begins.
    pub query: Query,
    /// UNION ALL rather than UNION.
    pub all: bool,
}

/// What gives a query's rows.
#[derive(Clone, PartialEq, Debug)]
pub enum Body {
    /// SELECT.
    Select(Box<Select>),
    /// VALUES.
    Values(Vec<Vec<Expr>>),
    /// A query in parentheses.
    Nested(Box<Query>),
    /// UNION, INTERSECT, EXCEPT.
    Set(Box<SetOperation>),
}

/// A set operation.
#[derive(Clone, PartialEq, Debug)]
pub struct SetOperation {
    /// Which.
    pub kind: SetKind,
    /// Whether rows may come several times.
    pub all: bool,
    /// The left query.
    pub left: Query,
    /// The right query.
    pub right: Query,
}

/// The set operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetKind {
    /// UNION.
    Union,
    /// INTERSECT.
    Intersect,
    /// EXCEPT.
    Except,
}

/// One key of an order.
#[derive(Clone, PartialEq, Debug)]
pub struct OrderKey {
    /// By what.
    pub by: OrderBy,
    /// Whether the greatest come first.
    pub descending: bool,
    /// Whether NULLs come first.
    pub nulls_first: bool,
}

/// What a key of an order compares.
#[derive(Clone, PartialEq, Debug)]
pub enum OrderBy {
    /// A column of the result.
    Output(usize),
    /// An expression over the rows of the SELECT.
    Expr(Expr),
}

/// SELECT without ORDER BY and LIMIT.
#[derive(Clone, PartialEq, Debug)]
pub struct Select {
    /// The relations of FROM, by number.
    pub relations: Vec<Relation>,
    /// FROM and WHERE; taken away once access paths are chosen.
    pub from: Pool,
    /// Conditions that hold for all rows or none, once access paths are chosen.
    pub constants: Vec<Expr>,
    /// How the rows of FROM and WHERE are found, once access paths are chosen.
    pub steps: Vec<Step>,
    /// GROUP BY, aggregates, HAVING.
    pub grouping: Option<Grouping>,
    /// The calls of window functions. Their results stand in the columns of a relation whose number is two
    /// after the last of FROM.
    pub windows: Vec<WindowCall>,
    /// The columns of the result.
    pub outputs: Vec<Expr>,
    /// DISTINCT.
    pub distinct: Distinct,
    /// Whether the query has a LIMIT.
    pub limited: bool,
    /// Whether the first step gives its rows in the order that ORDER BY asks for, in one partition; known
    /// once access paths are chosen.
    pub ordered: bool,
    /// Whether of each partition the first row is enough, which has the least or greatest value of the
    /// one aggregate `min` or `max`.
    pub ends: bool,
    /// FOR UPDATE and FOR SHARE.
    pub locks: Vec<RowLock>,
}

impl Select {
    /// The outputs of the rows of FROM and WHERE, and no more.
    pub(super) fn plain(relations: Vec<Relation>, from: Pool, outputs: Vec<Expr>) -> Self {
        Self {
            relations,
            from,
            constants: Vec::new(),
            steps: Vec::new(),
            grouping: None,
            windows: Vec::new(),
            outputs,
            distinct: Distinct::No,
            limited: false,
            ordered: false,
            ends: false,
            locks: Vec::new(),
        }
    }

    /// Whether it asks which rows others have locked, rather than wait for them.
    pub fn asks_for_locks(&self) -> bool {
        self.locks.iter().any(|lock| lock.wait != LockWait::Waits)
    }
}

/// Which rows of several equal ones are left out.
#[derive(Clone, PartialEq, Debug)]
pub enum Distinct {
    /// None.
    No,
    /// All but one.
    All,
    /// All but the first of those that agree in this.
    On(Vec<Expr>),
}

/// Something in FROM.
#[derive(Clone, PartialEq, Debug)]
pub struct Relation {
    /// What it is.
    pub source: RelationSource,
    /// The names and types of its columns.
    pub columns: Vec<(String, Type)>,
}

/// The kinds of relations.
#[derive(Clone, PartialEq, Debug)]
pub enum RelationSource {
    /// A table.
    Table(Arc<TableDef>),
    /// A query.
    Query(Box<Query>),
    /// A query after LATERAL, inside of the level of the SELECT: it may refer to relations before it.
    Lateral(Box<Query>),
    /// A query of WITH, and the columns around the SELECT that say which of its rows are meant: none, until
    /// [`super::inline::keyed`] finds such ones.
    Cte(u32, Vec<Expr>),
    /// `generate_series(from, to [, step])`, all of one type of numbers, or of moments with an interval.
    Series(Vec<Expr>),
    /// `unnest(array)`.
    Unnest(Expr),
    /// A file.
    File(Arc<super::File>),
    /// A routine, and whether its arguments are the same for all rows of other relations.
    Routine(crate::expr::RowsOf, bool),
    /// One row that is there already: EXCLUDED.
    Given,
}

/// A condition of WHERE or ON without AND.
#[derive(Clone, PartialEq, Debug)]
pub struct Condition {
    /// It, of type BOOLEAN.
    pub expr: Expr,
    /// How often it refers to each relation.
    pub uses: Uses,
}

impl Condition {
    /// The relations it refers to.
    pub fn relations(&self) -> u64 {
        mask(&self.uses)
    }
}

/// The relations that are referred to.
pub fn mask(uses: &Uses) -> u64 {
    uses.iter().enumerate().filter(|(_, count)| **count > 0).fold(0, |set, (at, _)| set | 1 << at)
}

/// How often each relation is referred to.
pub type Uses = Vec<u32>;

/// Relations that may be read in any order, and what must be true of their rows together.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Pool {
    /// The relations and outer joins.
    pub items: Vec<Item>,
    /// What must be true.
    pub conditions: Vec<Condition>,
}

/// A part of a pool.
#[derive(Clone, PartialEq, Debug)]
pub enum Item {
    /// A relation, to be read after those it refers to.
    One {
        /// The relation.
        relation: u16,
        /// Those it refers to.
        requires: u64,
    },
    /// The right side of a left join, to be read after its left side.
    Left {
        /// What is joined, its conditions among it.
        pool: Pool,
        /// The relations of the left side and those it refers to.
        requires: u64,
    },
    /// A full outer join.
    Full {
        /// Its left side.
        left: Pool,
        /// Its right side.
        right: Pool,
        /// Its condition, cut at AND.
        on: Vec<Condition>,
        /// What both sides refer to outside of them.
        requires: u64,
    },
}

impl Pool {
    pub(super) fn one(relation: u16, requires: u64) -> Self {
        Self { items: vec![Item::One { relation, requires }], conditions: Vec::new() }
    }

    /// Its relations.
    pub fn relations(&self) -> u64 {
        self.items.iter().fold(0, |set, item| {
            set | match item {
                Item::One { relation, .. } => 1 << relation,
                Item::Left { pool, .. } => pool.relations(),
                Item::Full { left, right, .. } => left.relations() | right.relations(),
            }
        })
    }

    /// The relations that its items and conditions refer to.
    pub(super) fn requires(&self) -> u64 {
        let items = self.items.iter().fold(0, |set, item| {
            let (Item::One { requires, .. } | Item::Left { requires, .. } | Item::Full { requires, .. }) =
                item;
            set | requires
        });
        self.conditions.iter().fold(items, |set, condition| set | condition.relations())
    }

    pub(super) fn merge(&mut self, other: Pool) {
        self.items.extend(other.items);
        self.conditions.extend(other.conditions);
    }
}

/// A loop over rows.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// Over the rows of a relation.
    Inner {
        /// How they are found.
        access: Access,
        /// What must be true of them and of the rows of earlier steps.
        filters: Vec<Expr>,
    },
    /// Over the rows that other steps find, or one of NULLs if they find none.
    Left {
        /// These steps.
        steps: Vec<Step>,
        /// The relations in them.
        relations: Vec<u16>,
        /// What must be true afterwards.
        filters: Vec<Expr>,
    },
}

/// How the rows of a relation are found.
#[derive(Clone, PartialEq, Debug)]
pub struct Access {
    /// The relation's number.
    pub relation: u16,
    /// By an index; of all rows without.
    pub index: Option<IndexUse>,
    /// What the partitioning column must be.
    pub site: Option<Bound>,
    /// By a hash table made of all its rows, if there is no index.
    pub hash: Option<HashUse>,
    /// Columns that are compared by equality although no index has them; none if there is an index.
    pub unserved: Vec<ColumnId>,
}

/// A value of a column that an expression gives.
#[derive(Clone, PartialEq, Debug)]
pub struct Bound {
    /// The column.
    pub column: ColumnId,
    /// Its type.
    pub ty: SqlType,
    /// Whether it can be NULL.
    pub nullable: bool,
    /// The value; of another type it may be one that the column cannot have.
    pub value: Expr,
}

/// The use of an index.
#[derive(Clone, PartialEq, Debug)]
pub struct IndexUse {
    /// Its name.
    pub name: String,
    /// What it can do.
    pub kind: IndexKind,
    /// Whether `equal` are all its columns.
    pub whole: bool,
    /// What its first columns must be.
    pub equal: Vec<Bound>,
    /// What the column after these must be.
    pub range: Option<RangeUse>,
    /// Whether it is read from its end.
    pub backward: bool,
}

/// The values between two bounds, or the texts that begin in one way, which are not NULL.
#[derive(Clone, PartialEq, Debug)]
pub struct RangeUse {
    /// The column.
    pub column: ColumnId,
    /// Its type.
    pub ty: SqlType,
    /// Whether it can be NULL.
    pub nullable: bool,
    /// The least value, and whether it is one of them.
    pub low: Option<(Expr, bool)>,
    /// The greatest value, and whether it is one of them.
    pub high: Option<(Expr, bool)>,
    /// With what they begin, of type TEXT.
    pub begins: Option<Expr>,
}

/// A hash table over the rows of a relation.
#[derive(Clone, PartialEq, Debug)]
pub struct HashUse {
    /// The columns of its key, and what they must equal.
    pub keys: Vec<(u16, Expr)>,
    /// Which rows enter.
    pub filters: Vec<Expr>,
    /// Its number in the SELECT.
    pub number: usize,
}

/// GROUP BY, aggregates, HAVING.
///
/// Results stand in the columns of a relation whose number is that after the last of FROM: first the
/// keys, then the aggregates. Wherever a key stands beside aggregates, it is that column; a column that
/// depends on the keys stays one of FROM. The relations of FROM have the first row of each group.
#[derive(Clone, PartialEq, Debug)]
pub struct Grouping {
    /// What the rows of a group agree in; without keys all rows are one group, even if there are none.
    pub keys: Vec<Expr>,
    /// Whether GROUP BY was written.
    pub written: bool,
    /// GROUPING SETS, ROLLUP, CUBE: which keys each grouping has, by position; a key that it does not have
    /// is NULL in its rows. Without them there is one grouping by all keys.
    pub sets: Option<Vec<Vec<usize>>>,
    /// What is computed of each group.
    pub aggregates: Vec<Aggregate>,
    /// Which groups are left.
    pub having: Option<Expr>,
}

/// An aggregate.
#[derive(Clone, PartialEq, Debug)]
pub struct Aggregate {
    /// Which.
    pub kind: AggregateKind,
    /// Of what; `string_agg` has two arguments, `count(*)` none.
    pub args: Vec<Expr>,
    /// Whether equal values count once.
    pub distinct: bool,
    /// FILTER.
    pub filter: Option<Expr>,
    /// ORDER BY; no [`OrderBy::Output`].
    pub order: Vec<OrderKey>,
    /// The type of its result.
    pub ty: Type,
}

/// A call of a window function.
#[derive(Clone, PartialEq, Debug)]
pub struct WindowCall {
    /// Which.
    pub function: WindowFunction,
    /// Its arguments.
    pub args: Vec<Expr>,
    /// FILTER; of aggregates only.
    pub filter: Option<Expr>,
    /// PARTITION BY.
    pub partition: Vec<Expr>,
    /// ORDER BY; no [`OrderBy::Output`].
    pub order: Vec<OrderKey>,
    /// Which rows of the partition count.
    pub frame: WindowFrame,
    /// The type of its result.
    pub ty: Type,
}

/// The window functions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowFunction {
    /// `row_number()`.
    RowNumber,
    /// `rank()`.
    Rank,
    /// `dense_rank()`.
    DenseRank,
    /// `percent_rank()`.
    PercentRank,
    /// `cume_dist()`.
    CumeDist,
    /// `ntile(n)`.
    Ntile,
    /// `lag(x [, n [, default]])`.
    Lag,
    /// `lead(x [, n [, default]])`.
    Lead,
    /// `first_value(x)`.
    FirstValue,
    /// `last_value(x)`.
    LastValue,
    /// `nth_value(x, n)`.
    NthValue,
    /// An aggregate over the frame.
    Aggregate(AggregateKind),
}

/// The rows that a window function counts.
#[derive(Clone, PartialEq, Debug)]
pub struct WindowFrame {
    /// What its bounds count.
    pub unit: FrameUnit,
    /// The first row.
    pub start: FrameBound,
    /// The last row.
    pub end: FrameBound,
}

/// What the bounds of a frame count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameUnit {
    /// Rows.
    Rows,
    /// Distances of values of the one key of the order.
    Range,
    /// Groups of rows that the order does not tell apart.
    Groups,
}

/// A bound of a frame.
#[derive(Clone, PartialEq, Debug)]
pub enum FrameBound {
    /// UNBOUNDED PRECEDING.
    First,
    /// So much before the current row.
    Before(Expr),
    /// CURRENT ROW.
    Current,
    /// So much after the current row.
    After(Expr),
    /// UNBOUNDED FOLLOWING.
    Last,
}

/// The aggregates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AggregateKind {
    /// `count(*)`, `count(x)`.
    Count,
    /// `sum`.
    Sum,
    /// `avg`.
    Avg,
    /// `min`.
    Min,
    /// `max`.
    Max,
    /// `bool_and`, `every`.
    BoolAnd,
    /// `bool_or`.
    BoolOr,
    /// `string_agg`.
    StringAgg,
    /// `array_agg`.
    ArrayAgg,
    /// `grouping(...)`, whose arguments are keys, as columns of the groups: a bit for each that the row's
    /// grouping does not have.
    Grouping,
    /// `stddev_pop`.
    StddevPop,
    /// `stddev_samp`, `stddev`.
    StddevSamp,
    /// `var_pop`.
    VarPop,
    /// `var_samp`, `variance`.
    VarSamp,
    /// `covar_pop`.
    CovarPop,
    /// `covar_samp`.
    CovarSamp,
    /// `corr`.
    Corr,
    /// `regr_avgx` and the others of its family.
    Regression(Regression),
    /// `bit_and`.
    BitAnd,
    /// `bit_or`.
    BitOr,
    /// `bit_xor`.
    BitXor,
    /// `mode() WITHIN GROUP (ORDER BY x)`; the argument is x.
    Mode,
    /// `percentile_cont(p) WITHIN GROUP (ORDER BY x)`; the arguments are p and x.
    PercentileCont,
    /// `percentile_disc(p) WITHIN GROUP (ORDER BY x)`; the arguments are p and x.
    PercentileDisc,
}

/// The aggregates of a linear regression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Regression {
    /// `regr_avgx`.
    AvgX,
    /// `regr_avgy`.
    AvgY,
    /// `regr_count`.
    Count,
    /// `regr_intercept`.
    Intercept,
    /// `regr_r2`.
    R2,
    /// `regr_slope`.
    Slope,
    /// `regr_sxx`.
    Sxx,
    /// `regr_sxy`.
    Sxy,
    /// `regr_syy`.
    Syy,
}

/// An INSERT, UPDATE, DELETE or MERGE.
#[derive(Clone, Debug)]
pub enum Change {
    /// INSERT.
    Insert(Insert),
    /// UPDATE.
    Update(Update),
    /// DELETE: relation 0 is the table.
    Delete(Target),
    /// MERGE.
    Merge(Merge),
}

impl Change {
    /// The table that is changed.
    pub fn table(&self) -> &Arc<TableDef> {
        match self {
            Self::Insert(insert) => &insert.table,
            Self::Update(Update { target, .. })
            | Self::Delete(target)
            | Self::Merge(Merge { target, .. }) => &target.table,
        }
    }

    /// The rows that it concerns; none for INSERT, which makes them.
    pub fn target(&self) -> Option<&Target> {
        match self {
            Self::Insert(_) => None,
            Self::Update(Update { target, .. })
            | Self::Delete(target)
            | Self::Merge(Merge { target, .. }) => Some(target),
        }
    }

    /// The queries of WITH.
    pub fn ctes_mut(&mut self) -> &mut Vec<Cte> {
        match self {
            Self::Insert(insert) => &mut insert.source.ctes,
            Self::Update(Update { target, .. })
            | Self::Delete(target)
            | Self::Merge(Merge { target, .. }) => &mut target.ctes,
        }
    }

    /// The first word of the statement.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Insert(_) => "INSERT",
            Self::Update(_) => "UPDATE",
            Self::Delete(_) => "DELETE",
            Self::Merge(_) => "MERGE",
        }
    }
}

/// The rows that UPDATE, DELETE or MERGE concerns.
#[derive(Clone, Debug)]
pub struct Target {
    /// The queries of WITH that are used, in order.
    pub ctes: Vec<Cte>,
    /// The table.
    pub table: Arc<TableDef>,
    /// The relations, the table first.
    pub relations: Vec<Relation>,
    /// FROM and WHERE; taken away once access paths are chosen.
    pub from: Pool,
    /// Conditions that hold for all rows or none, once access paths are chosen.
    pub constants: Vec<Expr>,
    /// How they are found, once access paths are chosen.
    pub steps: Vec<Step>,
    /// Of an UPDATE or DELETE that calls routines, once it has a query which finds its rows and calls none: conditions that
    /// are left for these rows. New values are made of them then too.
    pub late: Option<Vec<Expr>>,
    /// RETURNING.
    pub returning: Vec<Expr>,
}

/// UPDATE.
#[derive(Clone, Debug)]
pub struct Update {
    /// The rows.
    pub target: Target,
    /// New values, of their columns' types.
    pub set: Vec<(ColumnId, Expr)>,
}

/// MERGE.
#[derive(Clone, Debug)]
pub struct Merge {
    /// The rows of the source, each with those of the table (relation 0) that it is merged into; NULLs without.
    pub target: Target,
    /// What is done: the first that fits.
    pub clauses: Vec<MergeClause>,
}

/// WHEN of MERGE.
#[derive(Clone, Debug)]
pub struct MergeClause {
    /// Whether it is for rows of the source with one of the table; else for those without.
    pub matched: bool,
    /// Only if this is true.
    pub condition: Option<Expr>,
    /// What is done.
    pub action: MergeAction,
}

/// What MERGE does with a row.
#[derive(Clone, Debug)]
pub enum MergeAction {
    /// Nothing.
    Nothing,
    /// It deletes the table's.
    Delete,
    /// It gives the table's new values, of their columns' types.
    Update(Vec<(ColumnId, Expr)>),
    /// It inserts one with these values; other columns are NULL.
    Insert(Vec<(ColumnId, Expr)>),
}

impl MergeAction {
    /// The values of columns.
    pub fn values(&self) -> &[(ColumnId, Expr)] {
        match self {
            Self::Nothing | Self::Delete => &[],
            Self::Update(values) | Self::Insert(values) => values,
        }
    }

    /// As [`MergeAction::values`].
    pub fn values_mut(&mut self) -> &mut [(ColumnId, Expr)] {
        match self {
            Self::Nothing | Self::Delete => &mut [],
            Self::Update(values) | Self::Insert(values) => values,
        }
    }
}

/// INSERT.
#[derive(Clone, Debug)]
pub struct Insert {
    /// The table.
    pub table: Arc<TableDef>,
    /// One row or several; the outputs are the values of `columns`, of their types.
    pub source: Query,
    /// The columns that the source gives.
    pub columns: Vec<ColumnId>,
    /// What all other columns get that have a default.
    pub defaults: Vec<(ColumnId, Expr)>,
    /// ON CONFLICT.
    pub conflict: Option<Conflict>,
    /// RETURNING; relation 0 is the table.
    pub returning: Vec<Expr>,
}

/// ON CONFLICT.
#[derive(Clone, Debug)]
pub struct Conflict {
    /// The unique indexes that count: names and columns.
    pub indexes: Vec<(String, Vec<ColumnId>)>,
    /// DO UPDATE: relation 0 is the table, 1 is EXCLUDED.
    pub update: Option<ConflictUpdate>,
}

/// DO UPDATE.
#[derive(Clone, Debug)]
pub struct ConflictUpdate {
    /// New values, of their columns' types.
    pub set: Vec<(ColumnId, Expr)>,
    /// Only if this is true.
    pub filter: Option<Expr>,
}
