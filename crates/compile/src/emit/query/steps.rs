//! Finding rows: loops in loops.

use std::collections::BTreeMap;

use albireo_base::{ColumnId, SqlType, TableId};
use albireo_execute::tables::handle;
use albireo_semantics::expr::{Expr, ExprKind};
use albireo_semantics::query::tree::{self, Bound, IndexUse, RelationSource, Select, Step};
use albireo_semantics::types::Scalar;
use albireo_sql::TableDef;
use albireo_storage::RowLines;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};

use super::super::prefetch::Asked;
use super::super::{Emitter, Null, Operand, memory};
use super::Source;
use super::keys::{
    bounds, integer_bits, integer_width, integers, is_ordered, is_unique, plain, same_key, site_of, text_key,
    types_of, whole,
};
use crate::frame::Slot;
use crate::kind::Kind;
use crate::runtime;
use crate::runtime::prefetch::Ask;
use crate::runtime::rows::{Access, At, ENTRIES_OFFSET, IndexOf, RowAt, SLOT_OFFSET};
use crate::runtime::statements::DONE;

/// What is done with each combination of rows; the block is where the next one is looked for.
pub(super) type Give<'g, 'f, 'r> = &'g mut dyn FnMut(&mut Emitter<'f, 'r>, Block);

impl<'f, 'r> Emitter<'f, 'r> {
    /// Whether rows are found by code: all by indexes.
    pub(super) fn takes_steps(&self, steps: &[Step], relations: usize) -> bool {
        steps.iter().all(|step| match step {
            Step::Inner { access, filters } => {
                let Some(index) = &access.index else { return false };
                let bounds = bounds(index).chain(access.site.iter().map(|site| &site.value));
                let known = self
                    .query
                    .relations
                    .get(usize::from(access.relation))
                    .is_some_and(|source| source.layout.indexes.contains_key(&index.name));
                known
                    && access.hash.is_none()
                    && bounds.into_iter().all(|bound| self.takes(bound, relations))
                    && filters.iter().all(|filter| self.takes(filter, relations))
            }
            Step::Left { .. } => false,
        })
    }

    /// Whether the rows of the first step are in one partition.
    pub(super) fn in_one_site(&self, select: &Select) -> bool {
        let Some(Step::Inner { access, .. }) = select.steps.first() else { return false };
        match &select.relations[usize::from(access.relation)].source {
            RelationSource::Table(table) => table.is_shared() || access.site.is_some(),
            _ => false,
        }
    }

    /// The rows of steps, from the first on; `most` of the first in a partition are enough. Ends by going
    /// to `next`.
    pub(super) fn steps(
        &mut self,
        steps: &'r [Step],
        most: Option<i64>,
        next: Block,
        give: Give<'_, 'f, 'r>,
    ) {
        let Some((Step::Inner { access, filters }, rest)) = steps.split_first() else {
            give(self, next);
            return;
        };
        let Some(index) = &access.index else { return self.jump(next) };
        let relation = usize::from(access.relation);
        let Some(source) = self.query.relations.get(relation) else { return self.jump(next) };
        let table = std::sync::Arc::clone(&source.table);
        let used = source.used.clone();
        let (operands, site) = self.keys(&table, index, access.site.as_ref());
        let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind).collect();
        let unique = index.whole && is_unique(&table, &index.name) && !matches!(site, At::Anywhere);
        let access = self.access(&table, relation, index, &kinds, site, unique);
        let short = unique && access.integers.is_some() && matches!(site, At::Shared | At::Key(_));
        let access = self.parts.access(access);
        let access = self.address(access);
        let row = self.room(size_of::<RowAt>().div_ceil(size_of::<albireo_storage::Cell>()));
        // With filters any number of rows may be needed for one that is wanted.
        let most = most.filter(|_| filters.is_empty() && rest.is_empty());
        let (again, row) = match (short, unique) {
            (true, _) => {
                let key = self.short_key(&types_of(index), &operands, site, next);
                (next, self.row_of_key(index, key, (access, row), next))
            }
            (false, true) => {
                let cells = self.in_cells(&operands);
                let status = self.ask_for(runtime::rows::find as *const (), &[access, cells, row]);
                self.row_or(status, next);
                (next, row)
            }
            (false, false) => {
                let (rows, count) = match self.query.changes {
                    true => {
                        let cells = self.in_cells(&operands);
                        let (most, found) = (self.int(most.unwrap_or(i64::MAX)), self.room(1));
                        self.ask(runtime::rows::search as *const (), &[access, cells, most, found]);
                        (None, self.b.ins().load(types::I64, memory(), found, 0))
                    }
                    false => {
                        let found = self.rows_of_key(index, &operands, (access, site), most);
                        (Some(found.rows), found.count)
                    }
                };
                self.search((access, rows, count), (relation, row), rest, next)
            }
        };
        self.take_row(relation, row, &used);
        for filter in filters {
            let holds = self.holds(filter);
            let good = self.b.create_block();
            self.branch(holds, good, again);
            self.go_to(good);
        }
        self.steps(rest, None, again, give);
    }

    /// The row of a key: the one that was prefetched, or else by a lookup.
    fn row_of_key(
        &mut self,
        index: &'r IndexUse,
        key: [Value; 3],
        (access, row): (Value, Value),
        none: Block,
    ) -> Value {
        let known = self.known.get(&std::ptr::from_ref(index)).copied();
        let (found, other) = (self.b.create_block(), self.b.create_block());
        let at = self.b.append_block_param(found, types::I64);
        if let Some(known) = known {
            let answer = self.row_ahead(known, key, other);
            self.b.ins().jump(found, &[answer.into()]);
            self.b.set_cold_block(other);
        } else {
            self.jump(other);
        }
        self.go_to(other);
        let [high, low, place] = key;
        let find = runtime::rows::find_short as *const ();
        let status = self.ask_for(find, &[access, high, low, place, row]);
        self.row_or(status, none);
        self.b.ins().jump(found, &[row.into()]);
        self.go_to(found);
        at
    }

    /// Goes on with a row, elsewhere without one, or where errors go.
    pub(super) fn row_or(&mut self, status: Value, none: Block) {
        let (other, found) = (self.cold_block(), self.b.create_block());
        self.branch(status, other, found);
        self.go_to(other);
        let done = self.equals(status, i64::from(DONE));
        let catch = self.catch_block();
        self.branch(done, none, catch);
        self.go_to(found);
    }

    /// Goes over so many rows that a search found: they lie at an address, or the runtime is asked for each
    /// because they may change meanwhile. Gives the block where the next one is taken, and where the row at
    /// hand is told.
    fn search(
        &mut self,
        (access, rows, count): (Value, Option<Value>, Value),
        (relation, row): (usize, Value),
        rest: &'r [Step],
        next: Block,
    ) -> (Block, Value) {
        let (head, body, again) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        let at = self.b.append_block_param(head, types::I64);
        let zero = self.int(0);
        self.b.ins().jump(head, &[zero.into()]);
        self.go_to(head);
        let more = self.b.ins().icmp(IntCC::UnsignedLessThan, at, count);
        self.branch(more, body, next);
        self.go_to(again);
        let following = self.b.ins().iadd_imm_u(at, 1);
        self.b.ins().jump(head, &[following.into()]);
        self.go_to(body);
        if let Some(rows) = rows {
            if let Some(joined) = self.joined(rest) {
                let asked = self.ask_ahead_of_join(rows, (at, count), relation, &joined);
                let round = self.b.ins().band_imm_u(at, ROWS_PREFETCHED - 1);
                self.know(&asked, round, false);
            }
            return (again, self.nth_row(rows, at));
        }
        let status = self.ask_for(runtime::rows::row as *const (), &[access, at, row]);
        self.row_or(status, again);
        (again, row)
    }

    /// Looks for the rows of steps that are one search without filters, which is no lookup by a unique key.
    pub(super) fn found_by_one_search(&mut self, steps: &'r [Step]) -> Option<Found> {
        let [Step::Inner { access, filters }] = steps else { return None };
        let (index, relation) = (access.index.as_ref()?, usize::from(access.relation));
        let table = std::sync::Arc::clone(&self.query.relations.get(relation)?.table);
        if !filters.is_empty() || (index.whole && is_unique(&table, &index.name)) {
            return None;
        }
        let (operands, site) = self.keys(&table, index, access.site.as_ref());
        let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind).collect();
        let access = self.access(&table, relation, index, &kinds, site, false);
        let access = self.parts.access(access);
        let access = self.address(access);
        Some(self.rows_of_key(index, &operands, (access, site), None))
    }

    /// The rows of a search that nothing changes while they are looked at: those prefetched, or else what the
    /// runtime finds. `most` of them are enough.
    fn rows_of_key(
        &mut self,
        index: &'r IndexUse,
        operands: &[Operand],
        (access, site): (Value, At),
        most: Option<i64>,
    ) -> Found {
        let known = self.known.get(&std::ptr::from_ref(index)).copied();
        let known = known.filter(|_| matches!(site, At::Shared | At::Key(_)));
        let join = self.b.create_block();
        let (rows, count) =
            (self.b.append_block_param(join, types::I64), self.b.append_block_param(join, types::I64));
        if let Some(known) = known {
            let other = self.cold_block();
            let key = self.short_key(&types_of(index), operands, site, other);
            let answer = self.row_ahead(known, key, other);
            let rows = self.b.ins().load(types::I64, memory(), answer, ENTRIES_OFFSET);
            let mut count = self.b.ins().load(types::I64, memory(), answer, SLOT_OFFSET);
            if let Some(most) = most {
                let most = self.int(most);
                count = self.b.ins().umin(count, most);
            }
            self.b.ins().jump(join, &[rows.into(), count.into()]);
            self.go_to(other);
        }
        let cells = self.in_cells(operands);
        let (most, found) = (self.int(most.unwrap_or(i64::MAX)), self.room(1));
        self.ask(runtime::rows::search_rows as *const (), &[access, cells, most, found]);
        let all = [0, 8].map(|part| self.b.ins().load(types::I64, memory(), found, part).into());
        self.b.ins().jump(join, &all);
        self.go_to(join);
        Found { rows, count }
    }

    /// Where a row of those that a search found is told.
    fn nth_row(&mut self, rows: Value, n: Value) -> Value {
        let offset = self.b.ins().imul_imm_u(n, size_of::<RowAt>() as i64);
        self.b.ins().iadd(rows, offset)
    }

    /// What follows a search, if it is a lookup whose key can be computed of the row at hand.
    fn joined(&self, rest: &'r [Step]) -> Option<Joined<'r>> {
        let Step::Inner { access, .. } = rest.first()? else { return None };
        let (index, relation) = (access.index.as_ref()?, usize::from(access.relation));
        let source = self.query.relations.get(relation)?;
        let placed = source.table.is_shared() || access.site.is_some();
        let known = source.layout.indexes.contains_key(&index.name);
        let keys = || bounds(index).chain(access.site.iter().map(|site| &site.value));
        if !placed
            || !known
            || !index.whole
            || index.range.is_some()
            || !is_unique(&source.table, &index.name)
        {
            return None;
        }
        let mut columns = Vec::new();
        let plain = keys().all(|key| match plain(key) {
            Some(ExprKind::Column(column)) if usize::from(column.relation) != relation => {
                columns.push(column.column);
                true
            }
            Some(ExprKind::Variable(id)) => matches!(self.frame.slot(*id), Slot::Cell(_)),
            Some(ExprKind::Constant(_)) => true,
            _ => false,
        });
        plain.then_some(Joined { index, site: access.site.as_ref(), relation, columns })
    }

    /// Before the first of some rows: asks for the rows of another table that they are joined with.
    fn ask_ahead_of_join(
        &mut self,
        rows: Value,
        (at, count): (Value, Value),
        relation: usize,
        joined: &Joined<'r>,
    ) -> Vec<Asked<'r>> {
        let (ask, done) = (self.b.create_block(), self.b.create_block());
        let (head, body, next) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        let within = self.b.ins().band_imm_u(at, ROWS_PREFETCHED - 1);
        self.branch(within, done, ask);
        self.go_to(ask);
        let last = self.b.ins().iadd_imm_u(at, ROWS_PREFETCHED);
        let last = self.b.ins().umin(last, count);
        let n = self.b.append_block_param(head, types::I64);
        self.b.ins().jump(head, &[at.into()]);
        self.go_to(head);
        let more = self.b.ins().icmp(IntCC::UnsignedLessThan, n, last);
        let fetch = self.b.create_block();
        self.branch(more, body, fetch);
        self.go_to(body);
        let row = self.nth_row(rows, n);
        self.take_row(relation, row, &joined.columns);
        let source = &self.query.relations[joined.relation];
        let (table, used) = (std::sync::Arc::clone(&source.table), source.used.clone());
        let round = self.b.ins().isub(n, at);
        let by = (joined.index, joined.site);
        let needs = Needs { used, ..Needs::default() };
        let asked = self.announce(&table, joined.relation, by, &needs, round);
        let asked = Vec::from_iter(asked);
        self.jump(next);
        self.go_to(next);
        let following = self.b.ins().iadd_imm_u(n, 1);
        self.b.ins().jump(head, &[following.into()]);
        self.go_to(fetch);
        let count = self.b.ins().isub(n, at);
        self.find_ahead(&asked.iter().map(|asked| (asked, count)).collect::<Vec<_>>());
        self.jump(done);
        self.go_to(done);
        asked
    }

    /// Makes the key of a lookup or search the one of a round's answer.
    fn announce(
        &mut self,
        table: &TableDef,
        relation: usize,
        (index, site): (&'r IndexUse, Option<&'r Bound>),
        needs: &Needs<'r>,
        round: Value,
    ) -> Option<Asked<'r>> {
        let (operands, site) = self.keys(table, index, site);
        let kinds: Vec<Kind> = operands.iter().map(|operand| operand.kind).collect();
        let access = self.access(table, relation, index, &kinds, site, needs.most.is_none());
        if access.integers.is_none() || !matches!(site, At::Shared | At::Key(_)) {
            return None;
        }
        let lines = self.lines_of(relation, &needs.used);
        let choices = needs.choices.iter().map(|(number, used)| (*number, self.lines_of(relation, used)));
        let (choices, number) = (choices.collect(), self.parts.asks());
        let (most, keeps) = (needs.most, needs.most == Some(SEARCH_AHEAD));
        let ask = self.parts.ask(Ask { of: access.of, lines, choices, most, keeps, number });
        let next = self.b.create_block();
        let answer = self.ask_for_nothing(number, round);
        let key = self.short_key(&types_of(index), &operands, site, next);
        self.ask_for_key(answer, key);
        self.jump(next);
        self.go_to(next);
        let mut indexes = Vec::new();
        if most.is_none() || keeps {
            indexes.push(std::ptr::from_ref(index));
            indexes.extend(&needs.also);
        }
        Some(Asked { indexes, finds: true, choice: needs.choice, ask, number })
    }

    /// Of columns as many as it takes to touch each line of memory that they lie in: the first and last byte
    /// of each is touched, and where a row begins in its line is not known.
    fn lines_of(&self, relation: usize, used: &[u16]) -> RowLines {
        let layout = &self.query.relations[relation].layout;
        let mut groups = BTreeMap::<_, Vec<_>>::new();
        for column in used {
            let Some(at) = layout.columns.get(usize::from(*column)) else { continue };
            let bytes = (at.offset, at.offset + at.width.max(1) - 1);
            groups.entry((at.entry, at.stride)).or_default().push((bytes, ColumnId(*column)));
        }
        let mut columns = Vec::new();
        for mut group in groups.into_values() {
            group.sort_unstable();
            group.dedup();
            let mut rest = group.as_slice();
            while let Some(((_, last), column)) = rest.first() {
                columns.push(*column);
                // What lies between two bytes of less distance than a line is in the line of one of them.
                let near = rest[1..].iter().take_while(|((first, _), _)| first - last < LINE).count();
                rest = &rest[near.max(1)..];
            }
        }
        layout.whole.lines(&columns)
    }

    /// What an index is asked for, in the order in which the runtime wants it, and in which partition.
    fn keys(&mut self, table: &TableDef, index: &'r IndexUse, site: Option<&'r Bound>) -> (Vec<Operand>, At) {
        let mut operands = Vec::new();
        for bound in bounds(index) {
            let operand = self.expr(bound);
            operands.push(operand);
        }
        let site = match site {
            _ if table.is_shared() => At::Shared,
            None => At::Anywhere,
            Some(bound) => {
                let operand = self.expr(&bound.value);
                operands.push(operand);
                site_of(bound, operands.len() - 1, operand.kind)
            }
        };
        (operands, site)
    }

    /// The bits of a key of whole numbers, as [`albireo_storage::ShortKey`] has them, and the value that
    /// says in which partition its row is; goes elsewhere if no row can have it.
    pub(super) fn short_key(
        &mut self,
        types: &[SqlType],
        operands: &[Operand],
        site: At,
        none: Block,
    ) -> [Value; 3] {
        let mut halves = [self.int(0), self.int(0)];
        let mut used = 0;
        for (ty, operand) in types.iter().zip(operands) {
            let bits = 8 * integer_width(*ty).unwrap_or(8);
            self.leave_if_null(*operand, none);
            if integer_bits(operand.kind) > bits {
                let fits = self.fits(operand.a, if bits == 16 { Scalar::SmallInt } else { Scalar::Integer });
                let next = self.b.create_block();
                self.branch(fits, next, none);
                self.go_to(next);
            }
            // Numbers compare as their bits do with the sign turned.
            let turned = self.b.ins().bxor_imm_s(operand.a, i64::MIN >> (64 - bits));
            let shifted = match bits {
                64 => turned,
                _ => self.b.ins().band_imm_u(turned, (1 << bits) - 1),
            };
            for (n, half) in halves.iter_mut().enumerate() {
                // How far the number's end is above the end of this half.
                let above = 64 * (n as i64 + 1) - (used + bits);
                let part = match above {
                    0 => shifted,
                    1..64 => self.b.ins().ishl_imm_u(shifted, above),
                    -63..0 => self.b.ins().ushr_imm_u(shifted, -above),
                    _ => continue,
                };
                *half = self.b.ins().bor(*half, part);
            }
            used += bits;
        }
        let place = match site {
            At::Key(n) => {
                self.leave_if_null(operands[n], none);
                operands[n].a
            }
            _ => self.int(0),
        };
        [halves[0], halves[1], place]
    }

    fn leave_if_null(&mut self, operand: Operand, none: Block) {
        match operand.null {
            Null::Never => {}
            null => {
                let flag = self.null_flag(null);
                let next = self.b.create_block();
                self.branch(flag, none, next);
                self.go_to(next);
            }
        }
    }

    /// What the runtime must know to look for rows.
    fn access(
        &mut self,
        table: &TableDef,
        relation: usize,
        index: &'r IndexUse,
        kinds: &[Kind],
        site: At,
        unique: bool,
    ) -> Access {
        // Hash indexes are asked for whole keys only.
        let by_key = unique && matches!(site, At::Shared | At::Key(_));
        let integers = if by_key || is_ordered(index) { integers(index, kinds) } else { None };
        let Source { layout, used, read, .. } = &self.query.relations[relation];
        let read = read.clone();
        let lines = self.lines_of(relation, if unique { used } else { &[] });
        let (layout, index_ref) = (layout.id, layout.indexes[&index.name]);
        let number = self.parts.searches();
        let bytes = integers.iter().flatten().map(|width| u32::from(*width)).sum();
        let table = handle(table);
        Access {
            of: IndexOf { table, layout, index: index_ref, bytes },
            by: index,
            kinds: kinds.into(),
            integers,
            text_key: text_key(index, kinds).filter(|_| is_ordered(index)),
            site,
            lines,
            read,
            changes: self.query.changes,
            number,
        }
    }
}

impl Emitter<'_, '_> {
    /// Whether steps find one row at most: they are one lookup by a unique key.
    pub(super) fn is_one_lookup(&self, relations: &[tree::Relation], steps: &[Step]) -> bool {
        let [Step::Inner { access, .. }] = steps else { return false };
        let Some(index) = &access.index else { return false };
        let Some(relation) = relations.get(usize::from(access.relation)) else { return false };
        let RelationSource::Table(table) = &relation.source else { return false };
        let placed = table.is_shared() || access.site.is_some();
        placed && index.whole && is_unique(table, &index.name)
    }
}

/// For so many rows of a search, a power of 2, those joined with them are asked for together.
const ROWS_PREFETCHED: i64 = runtime::prefetch::ROUNDS as i64;

/// Rows that a search found.
pub(super) struct Found {
    /// The address of the first, a [`RowAt`].
    pub(super) rows: Value,
    pub(super) count: Value,
}

/// A lookup by a unique key for each row of a search.
struct Joined<'r> {
    index: &'r IndexUse,
    site: Option<&'r Bound>,
    relation: usize,
    /// The columns of the search's rows that make the key.
    columns: Vec<u16>,
}

/// A lookup by a unique key, or a search for the rows whose keys begin with it.
pub(in crate::emit) struct Lookup<'r> {
    relations: &'r [tree::Relation],
    index: &'r IndexUse,
    site: Option<&'r Bound>,
    needs: Needs<'r>,
}

/// What is needed of the rows of a lookup or search.
#[derive(Default)]
struct Needs<'r> {
    /// These columns.
    used: Vec<u16>,
    /// And those that a CASE chooses by a number.
    choice: Option<&'r Expr>,
    choices: Vec<(i64, Vec<u16>)>,
    /// Of a search: of so many rows at most.
    most: Option<usize>,
    /// Searches for the same.
    also: Vec<*const IndexUse>,
}

/// So many rows of a search that is prefetched are kept, and what is needed of them is fetched.
const SEARCH_AHEAD: usize = 16;

impl<'r> Lookup<'r> {
    /// What its row is looked for by.
    pub(in crate::emit) fn keys(&self) -> impl Iterator<Item = &'r Expr> {
        bounds(self.index).chain(self.site.iter().map(|site| &site.value))
    }

    /// Whether it is a lookup by a unique key.
    pub(in crate::emit) fn is_unique(&self) -> bool {
        self.needs.most.is_none()
    }

    fn table(&self) -> Option<TableId> {
        match &self.relations.first()?.source {
            RelationSource::Table(table) => Some(table.id),
            _ => None,
        }
    }

    /// Whether another search is the same, so that it need not be asked for too; of its rows what the other
    /// needs is needed then.
    pub(in crate::emit) fn takes(&mut self, other: &Self) -> bool {
        let searches = self.needs.most.is_some() && self.needs.most == other.needs.most;
        let keys = self.keys().zip(other.keys()).all(|(a, b)| same_key(a, b));
        let index = self.index.name == other.index.name && self.index.equal.len() == other.index.equal.len();
        let same = searches && keys && index && self.table() == other.table();
        if same {
            let used = &mut self.needs.used;
            let more: Vec<u16> = other.needs.used.iter().filter(|c| !used.contains(c)).copied().collect();
            used.extend(more);
            self.needs.also.push(other.index);
        }
        same
    }
}

impl<'f, 'r> Emitter<'f, 'r> {
    /// The lookup or search of the first step, if that is one; of the row's columns those that `asked`
    /// names and `written` are needed, and if `ends` of the first row only. What is the same in all rounds
    /// `stays`.
    pub(in crate::emit) fn lookup(
        &self,
        (relations, steps): (&'r [tree::Relation], &'r [Step]),
        asked: impl IntoIterator<Item = &'r Expr>,
        written: impl IntoIterator<Item = ColumnId>,
        ends: bool,
        stays: &dyn Fn(&Expr) -> bool,
    ) -> Option<Lookup<'r>> {
        let Step::Inner { access, .. } = steps.first()? else { return None };
        let (index, relation) = (access.index.as_ref()?, usize::from(access.relation));
        let RelationSource::Table(table) = &relations.get(relation)?.source else { return None };
        let mut sources = self.sources(relations)?;
        let placed = table.is_shared() || access.site.is_some();
        let lookup = index.whole && is_unique(table, &index.name);
        let search = is_ordered(index) && !index.whole && !index.backward && !index.equal.is_empty();
        if !placed || !(lookup || search) || index.range.is_some() {
            return None;
        }
        let mut needs = Needs::default();
        for expr in asked {
            match &expr.kind {
                ExprKind::CaseOf(by, branches, otherwise)
                    if needs.choice.is_none()
                        && stays(by)
                        && branches.iter().all(|(n, _)| whole(n).is_some()) =>
                {
                    needs.choice = Some(by);
                    for (number, result) in branches {
                        columns_of([result].into_iter(), &mut sources);
                        let used = std::mem::take(&mut sources[relation].used);
                        needs.choices.extend(whole(number).map(|number| (number, used)));
                    }
                    columns_of([otherwise.as_ref()].into_iter(), &mut sources);
                }
                _ => columns_of([expr].into_iter(), &mut sources),
            }
            for column in std::mem::take(&mut sources[relation].used) {
                if !needs.used.contains(&column) {
                    needs.used.push(column);
                }
            }
        }
        needs.used.extend(written.into_iter().map(|column| column.0));
        needs.most = (!lookup).then_some(if ends { 1 } else { SEARCH_AHEAD });
        // A relation of one step has the number that a state of one source gives it.
        (relation == 0).then_some(Lookup { relations, index, site: access.site.as_ref(), needs })
    }

    /// Makes the key of a lookup the one of a round's answer.
    pub(in crate::emit) fn look_ahead(&mut self, lookup: &Lookup<'r>, round: Value) -> Option<Asked<'r>> {
        let sources = self.sources(lookup.relations)?;
        let table = std::sync::Arc::clone(&sources[0].table);
        let layout = std::sync::Arc::clone(&sources[0].layout);
        if !layout.indexes.contains_key(&lookup.index.name) {
            return None;
        }
        let outer = std::mem::replace(
            &mut self.query,
            super::State { relations: sources, ..super::State::default() },
        );
        let by = (lookup.index, lookup.site);
        let asked = self.announce(&table, 0, by, &lookup.needs, round);
        self.query = outer;
        asked
    }
}

/// Bytes of a line of memory.
const LINE: u32 = 64;

/// The columns of relations that expressions ask for.
pub(super) fn columns_of<'e>(exprs: impl Iterator<Item = &'e Expr>, sources: &mut [Source]) {
    for expr in exprs {
        expr.walk(&mut |part| {
            if let ExprKind::Column(column) = &part.kind
                && let Some(source) = sources.get_mut(usize::from(column.relation))
                && !source.used.contains(&column.column)
            {
                source.used.push(column.column);
            }
        });
    }
}

/// The expressions in steps.
pub(super) fn exprs_of(steps: &[tree::Step]) -> impl Iterator<Item = &Expr> {
    steps.iter().flat_map(|step| -> Box<dyn Iterator<Item = &Expr>> {
        match step {
            Step::Inner { access, filters } => {
                let keys = access.index.iter().flat_map(bounds);
                Box::new(keys.chain(access.site.iter().map(|site| &site.value)).chain(filters))
            }
            Step::Left { steps, filters, .. } => Box::new(exprs_of(steps).chain(filters)),
        }
    })
}
