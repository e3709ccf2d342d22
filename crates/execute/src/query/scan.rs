//! Finding rows: joins as loops in loops, by index, hash table or over all rows.
//!
//! The addresses of rows are fetched before expressions are evaluated, because routines that these call
//! may change tables: few at first, then all others at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use albireo_base::{ColumnId, SqlError, SqlState, TableId, Tid, Value, text};
use albireo_partition::Site;
use albireo_plpgsql::plan::key::{self, Fit};
use albireo_semantics::query::accumulate::Sorted;
use albireo_semantics::query::series::Series;
use albireo_semantics::query::tree::{Access, HashUse, IndexUse, RangeUse, Relation, RelationSource, Step};
use albireo_sql::{IndexKind, TableDef};
use albireo_storage::{IndexRef, KeyBuilder, Table};

use super::frame::{Row, Running};
use super::keys;
use crate::Stop;
use crate::datum::Datum;
use crate::execution::LiveRows;
use crate::expr::Expr;

/// Whether a loop goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flow {
    /// With the next row.
    More,
    /// With the next partition.
    NextSite,
    /// No.
    Stop,
}

/// What is done with each row, or combination of rows.
pub(super) type Each<'e, 'h> = &'e mut dyn FnMut(&mut Running<'h>) -> Result<Flow, Stop>;

/// The least and greatest prefix of keys, where there is one.
type Bounds = (Option<u128>, Option<u128>);

/// Addresses fetched first.
const FIRST: usize = 64;

/// What is looked for in a table.
pub enum Search {
    /// No row: a value is NULL, or one that no column has.
    Nothing,
    /// All rows.
    Everything,
    /// Rows with this key.
    Equal(KeyBuilder),
    /// Rows whose keys' first bytes are between two.
    Between {
        /// The least.
        low: u128,
        /// The greatest.
        high: u128,
        /// Whether the greatest comes first.
        backward: bool,
        /// What the first bytes do not decide.
        tests: Vec<Test>,
    },
}

/// What must be asked of a row because its key is longer than what an index compares.
pub enum Test {
    /// The column has this value.
    Equal(ColumnId, Value),
    /// It is above this one, or equal to it if that is said.
    Low(ColumnId, Value, bool),
    /// It is below this one, or equal to it if that is said.
    High(ColumnId, Value, bool),
}

impl Test {
    /// Whether a row passes.
    pub fn holds(&self, table: &Table, tid: Tid) -> bool {
        let (Self::Equal(column, bound) | Self::Low(column, bound, _) | Self::High(column, bound, _)) = self;
        let order = match bound {
            Value::Text(bound) if !table.spec().columns[column.index()].nullable => {
                (*table.text_bytes_at(tid, *column)).cmp(bound.as_bytes())
            }
            _ => match table.value(tid, *column) {
                Value::Null => return false,
                value => value.cmp(bound),
            },
        };
        match self {
            Self::Equal(..) => order.is_eq(),
            Self::Low(_, _, inclusive) => order.is_gt() || (*inclusive && order.is_eq()),
            Self::High(_, _, inclusive) => order.is_lt() || (*inclusive && order.is_eq()),
        }
    }
}

impl<'h> Running<'h> {
    /// Runs the steps from `at` on.
    pub(super) fn steps(
        &mut self,
        relations: &[Relation],
        steps: &[Step],
        each: Each<'_, 'h>,
    ) -> Result<Flow, Stop> {
        let Some((step, rest)) = steps.split_first() else { return each(self) };
        match step {
            Step::Inner { access, filters } => {
                self.access(relations, access, &mut |running| match running.all(filters)? {
                    true => running.steps(relations, rest, each),
                    false => Ok(Flow::More),
                })
            }
            Step::Left { steps, relations: absent, filters } => {
                let mut found = false;
                let flow = self.steps(relations, steps, &mut |running| {
                    found = true;
                    match running.all(filters)? {
                        true => running.steps(relations, rest, each),
                        false => Ok(Flow::More),
                    }
                })?;
                if found || flow == Flow::Stop {
                    return Ok(flow);
                }
                for relation in absent {
                    self.set(*relation, Row::Missing);
                }
                match self.all(filters)? {
                    true => self.steps(relations, rest, each),
                    false => Ok(Flow::More),
                }
            }
        }
    }

    fn access(&mut self, relations: &[Relation], access: &Access, each: Each<'_, 'h>) -> Result<Flow, Stop> {
        if let Some(hash) = &access.hash {
            return self.probe(relations, access, hash, each);
        }
        match &relations[usize::from(access.relation)].source {
            RelationSource::Table(table) => self.table_rows(table, access, each),
            // LATERAL and files are refused before (`refuse`).
            RelationSource::Given | RelationSource::Lateral(_) | RelationSource::File(_) => each(self),
            RelationSource::Query(_) | RelationSource::Cte(..) => {
                let rows = self.level().derived.get(usize::from(access.relation)).cloned().flatten();
                let rows = rows.unwrap_or_default();
                self.made_rows(access.relation, rows.iter().cloned(), each)
            }
            RelationSource::Series(args) => self.series(access.relation, args, each),
            RelationSource::Routine(call, once) => {
                let rows = self.routine_rows(access.relation, call, *once)?;
                self.made_rows(access.relation, rows.iter().cloned(), each)
            }
            RelationSource::Unnest(array) => {
                let Datum::Array(array) = self.value(array)? else { return Ok(Flow::More) };
                let rows = array.items.clone().into_iter().map(|item| Arc::from(vec![item]));
                self.made_rows(access.relation, rows, each)
            }
        }
    }

    /// The rows of a routine, which is run once if its arguments are always the same.
    fn routine_rows(
        &mut self,
        relation: u16,
        call: &crate::expr::RowsOf,
        once: bool,
    ) -> Result<super::frame::Rows, Stop> {
        let at = usize::from(relation);
        if let Some(rows) = self.level().derived.get(at).cloned().flatten().filter(|_| once) {
            return Ok(rows);
        }
        let args = call.args.iter().map(|arg| self.value(arg)).collect::<Result<Vec<_>, _>>()?;
        let rows = self.host.call_rows(call.routine, args)?;
        let rows: super::frame::Rows = rows.into_iter().map(Arc::from).collect::<Vec<_>>().into();
        if let Some(place) = self.level().derived.get_mut(at) {
            *place = Some(rows.clone());
        }
        Ok(rows)
    }

    fn made_rows(
        &mut self,
        relation: u16,
        rows: impl Iterator<Item = Arc<[Datum]>>,
        each: Each<'_, 'h>,
    ) -> Result<Flow, Stop> {
        for row in rows {
            self.tick()?;
            self.set(relation, Row::Made(row));
            if each(self)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::More)
    }

    fn series(&mut self, relation: u16, args: &[Expr], each: Each<'_, 'h>) -> Result<Flow, Stop> {
        let args = args.iter().map(|arg| self.value(arg)).collect::<Result<Vec<_>, _>>()?;
        for value in Series::new(&args)? {
            self.tick()?;
            self.set(relation, Row::Made(Arc::from(vec![value?])));
            if each(self)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::More)
    }

    /// The partitions where the rows are.
    pub(super) fn sites(&mut self, table: &TableDef, access: &Access) -> Result<Vec<Site>, Stop> {
        if table.is_shared() {
            return Ok(self.host.live().sites(table.id).into_iter().take(1).collect());
        }
        let Some(bound) = &access.site else { return self.host.live().all_sites(table.id) };
        match self.fitting(&bound.value, bound.ty)? {
            Fit::Exact(value) => Ok(vec![self.host.live().site_of(table.id, &value)?]),
            _ => Ok(Vec::new()),
        }
    }

    fn fitting(&mut self, expr: &Expr, ty: albireo_base::SqlType) -> Result<Fit, Stop> {
        fitting(expr, ty, &mut |expr| self.plain_value(expr))
    }

    /// A value that may be a key: NULL for what none can be.
    pub(super) fn plain_value(&mut self, expr: &Expr) -> Result<Value, Stop> {
        match self.value(expr)? {
            Datum::Value(value) => Ok(value),
            _ => Ok(Value::Null),
        }
    }

    fn table_rows(&mut self, table: &TableDef, access: &Access, each: Each<'_, 'h>) -> Result<Flow, Stop> {
        let search = match &access.index {
            Some(index) => self.search(index)?,
            None => Search::Everything,
        };
        if matches!(search, Search::Nothing) {
            return Ok(Flow::More);
        }
        let name = access.index.as_ref().map(|index| index.name.as_str());
        for site in self.sites(table, access)? {
            match self.site_rows(site, table.id, name, access.relation, &search, each)? {
                Flow::Stop => return Ok(Flow::Stop),
                Flow::More | Flow::NextSite => {}
            }
        }
        Ok(Flow::More)
    }

    fn site_rows(
        &mut self,
        site: Site,
        table: TableId,
        index: Option<&str>,
        relation: u16,
        search: &Search,
        each: Each<'_, 'h>,
    ) -> Result<Flow, Stop> {
        let mut seen = BTreeSet::new();
        let mut from = Tid(0);
        note(&mut self.host.live(), site, table, index, search);
        loop {
            let live = self.host.live();
            let tids = fetch(live.table(site, table), index, search, from, &seen)?;
            let last = tids.len() < FIRST || !seen.is_empty();
            let scan = matches!(search, Search::Everything);
            if scan {
                from = tids.last().map_or(from, |tid| Tid(tid.0 + 1));
            } else if !last {
                seen.extend(tids.iter().copied());
            }
            for tid in &tids {
                self.tick()?;
                let live = self.host.live();
                if !live.table(site, table).is_live(*tid) {
                    continue;
                }
                live.tx.note_row(site, table, *tid);
                self.set(relation, Row::Stored(site, *tid));
                match each(self)? {
                    Flow::More => {}
                    flow => return Ok(flow),
                }
            }
            if (scan && tids.is_empty()) || (!scan && last) {
                return Ok(Flow::More);
            }
        }
    }

    fn search(&mut self, index: &IndexUse) -> Result<Search, Stop> {
        search_of(index, &mut |expr| self.plain_value(expr))
    }

    fn probe(
        &mut self,
        relations: &[Relation],
        access: &Access,
        hash: &HashUse,
        each: Each<'_, 'h>,
    ) -> Result<Flow, Stop> {
        let made = self.level().hashes.get(hash.number).cloned().flatten();
        let made = match made {
            Some(made) => made,
            None => {
                let mut made: BTreeMap<Sorted, Vec<Row>> = BTreeMap::new();
                let plain = Access { hash: None, ..access.clone() };
                self.access(relations, &plain, &mut |running| {
                    running.enter(access.relation, hash, &mut made)
                })?;
                let made = Arc::new(made);
                let hashes = &mut self.level().hashes;
                if hashes.len() <= hash.number {
                    hashes.resize(hash.number + 1, None);
                }
                hashes[hash.number] = Some(Arc::clone(&made));
                made
            }
        };
        let mut key = Vec::with_capacity(hash.keys.len());
        for (_, expr) in &hash.keys {
            let value = self.value(expr)?;
            if value.is_null() {
                return Ok(Flow::More);
            }
            key.push(value);
        }
        let Some(rows) = made.get(&Sorted(key)) else { return Ok(Flow::More) };
        for row in rows {
            self.tick()?;
            self.set(access.relation, row.clone());
            match each(self)? {
                Flow::Stop => return Ok(Flow::Stop),
                Flow::More | Flow::NextSite => {}
            }
        }
        Ok(Flow::More)
    }

    /// Puts the current row of a relation into a hash table.
    fn enter(
        &mut self,
        relation: u16,
        hash: &HashUse,
        made: &mut BTreeMap<Sorted, Vec<Row>>,
    ) -> Result<Flow, Stop> {
        if !self.all(&hash.filters)? {
            return Ok(Flow::More);
        }
        let mut key = Vec::with_capacity(hash.keys.len());
        for (column, _) in &hash.keys {
            let column = crate::expr::ColumnRef { depth: 0, relation, column: *column };
            let value = crate::expr::Frame::column(self, column)?;
            if value.is_null() {
                return Ok(Flow::More);
            }
            key.push(value);
        }
        self.keep(&key)?;
        let row = self.level().rows[usize::from(relation)].clone();
        made.entry(Sorted(key)).or_default().push(row);
        Ok(Flow::More)
    }
}

/// Notes what a search reads, if the transaction wants to know it; the rows that it comes by are noted as they are
/// looked at.
fn note(live: &mut LiveRows<'_>, site: Site, table: TableId, index: Option<&str>, search: &Search) {
    match (search, index) {
        (Search::Nothing, _) => {}
        (Search::Equal(key), Some(index)) => live.note_key(site, table, index, key.key().prefix),
        (Search::Between { low, high, .. }, Some(index)) => live.note_range(site, table, index, *low, *high),
        (Search::Everything | Search::Equal(_) | Search::Between { .. }, _) => {
            live.tx.note_table(site, table)
        }
    }
}

/// How the value of a bound is found.
pub type ValueOf<'v> = &'v mut dyn FnMut(&Expr) -> Result<Value, Stop>;

fn fitting(expr: &Expr, ty: albireo_base::SqlType, value: ValueOf<'_>) -> Result<Fit, Stop> {
    Ok(key::fit(value(expr)?, &expr.ty, ty))
}

/// What an index is asked for, its bounds computed by `value` in the order in which they stand.
pub fn search_of(index: &IndexUse, value: ValueOf<'_>) -> Result<Search, Stop> {
    let mut builder = KeyBuilder::new();
    let mut tests = Vec::new();
    for bound in &index.equal {
        let Fit::Exact(value) = fitting(&bound.value, bound.ty, value)? else {
            return Ok(Search::Nothing);
        };
        keys::push(&mut builder, &value, bound.ty, bound.nullable);
        // What the index compares needs no test.
        if !index.whole && !builder.key().rest.is_empty() {
            tests.push(Test::Equal(bound.column, value));
        }
    }
    if index.whole {
        return Ok(Search::Equal(builder));
    }
    debug_assert_eq!(index.kind, IndexKind::Ordered);
    let (mut low, mut high) = builder.prefix_range();
    if let Some(range) = &index.range {
        if range.nullable {
            let mut present = builder.clone();
            present.push_present();
            (low, high) = present.prefix_range();
        }
        let Some((from, to)) = bounds(range, &builder, &mut tests, value)? else {
            return Ok(Search::Nothing);
        };
        low = from.unwrap_or(low);
        high = to.unwrap_or(high);
    }
    match low <= high {
        true => Ok(Search::Between { low, high, backward: index.backward, tests }),
        false => Ok(Search::Nothing),
    }
}

/// The least and greatest prefix of a range, where it is bounded; `None` if nothing is in it.
fn bounds(
    range: &RangeUse,
    prefix: &KeyBuilder,
    tests: &mut Vec<Test>,
    value_of: ValueOf<'_>,
) -> Result<Option<Bounds>, Stop> {
    let (mut low, mut high) = (None, None);
    let mut ends = Ends { range, prefix, tests };
    if let Some((expr, inclusive)) = &range.low {
        let (value, inclusive) = match fitting(expr, range.ty, value_of)? {
            Fit::Exact(value) => (Some(value), *inclusive),
            Fit::After(value) => (Some(value), false),
            Fit::Below => (None, true),
            Fit::Above | Fit::Null => return Ok(None),
        };
        if let Some(value) = value {
            let Some(from) = ends.low(value, inclusive) else { return Ok(None) };
            low = Some(from);
        }
    }
    if let Some((expr, inclusive)) = &range.high {
        let (value, inclusive) = match fitting(expr, range.ty, value_of)? {
            Fit::Exact(value) => (Some(value), *inclusive),
            Fit::After(value) => (Some(value), true),
            Fit::Above => (None, true),
            Fit::Below | Fit::Null => return Ok(None),
        };
        if let Some(value) = value {
            let Some(to) = ends.high(value, inclusive) else { return Ok(None) };
            high = Some(to);
        }
    }
    if let Some(expr) = &range.begins {
        let Fit::Exact(Value::Text(beginning)) = fitting(expr, range.ty, value_of)? else { return Ok(None) };
        if let Some(above) = text::above(&beginning) {
            let Some(to) = ends.high(Value::Text(above), false) else { return Ok(None) };
            high = Some(high.map_or(to, |high| high.min(to)));
        }
        if !beginning.is_empty() {
            low = low.max(ends.low(Value::Text(beginning), true));
        }
    }
    Ok(Some((low, high)))
}

/// The ends of a range behind the columns before it.
struct Ends<'k> {
    range: &'k RangeUse,
    prefix: &'k KeyBuilder,
    /// What the first bytes do not decide.
    tests: &'k mut Vec<Test>,
}

impl Ends<'_> {
    /// The least prefix of values above this one, or from it on; `None` if there is none.
    fn low(&mut self, value: Value, inclusive: bool) -> Option<u128> {
        let (from, to, is_long) = self.place(&value);
        if is_long {
            self.tests.push(Test::Low(self.range.column, value, inclusive));
            return Some(from);
        }
        if inclusive { Some(from) } else { to.checked_add(1) }
    }

    /// The greatest prefix of values below this one, or up to it; `None` if there is none.
    fn high(&mut self, value: Value, inclusive: bool) -> Option<u128> {
        let (from, to, is_long) = self.place(&value);
        if is_long {
            self.tests.push(Test::High(self.range.column, value, inclusive));
            return Some(to);
        }
        if inclusive { Some(to) } else { from.checked_sub(1) }
    }

    /// The least and the greatest prefix of keys with a value, and whether those do not decide.
    fn place(&self, value: &Value) -> (u128, u128, bool) {
        let mut key = self.prefix.clone();
        keys::push(&mut key, value, self.range.ty, self.range.nullable);
        let (from, to) = key.prefix_range();
        (from, to, !key.key().rest.is_empty())
    }
}

/// Addresses of rows: of a search in an index the first ones, or all others if some have been `seen`; of
/// all rows so many `from` an address on.
pub fn fetch(
    table: &Table,
    index: Option<&str>,
    search: &Search,
    from: Tid,
    seen: &BTreeSet<Tid>,
) -> Result<Vec<Tid>, Stop> {
    let handle = || -> Result<IndexRef, Stop> {
        let missing =
            |_| SqlError::new(SqlState::UNDEFINED_OBJECT, "an index was dropped during the statement");
        Ok(table.index(index.unwrap_or_default()).map_err(missing)?)
    };
    let count = if seen.is_empty() { FIRST } else { usize::MAX };
    Ok(match search {
        Search::Nothing => Vec::new(),
        Search::Everything => table.scan_from(from).take(16 * FIRST).collect(),
        Search::Equal(key) => {
            let found = table.find_all(handle()?, key.key());
            found.into_iter().filter(|tid| !seen.contains(tid)).collect()
        }
        Search::Between { low, high, backward, tests } => {
            let rows = table.between(handle()?, *low, *high);
            let wanted = |tid: &Tid| !seen.contains(tid) && tests.iter().all(|test| test.holds(table, *tid));
            match backward {
                true => rows.rev().filter(wanted).take(count).collect(),
                false => rows.filter(wanted).take(count).collect(),
            }
        }
    })
}
