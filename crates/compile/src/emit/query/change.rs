//! INSERT, UPDATE and DELETE.

use std::sync::{Arc, OnceLock};

use albireo_base::{ColumnId, SqlType};
use albireo_execute::tables::handle;
use albireo_semantics::expr::{Conversion, Expr, ExprKind};
use albireo_semantics::query::tree::{Body, Change, Insert, Merge, RelationSource, Target};
use albireo_semantics::types::Scalar;
use albireo_sql::{IndexDef, IndexKind, TableDef};
use cranelift_codegen::ir::{InstBuilder, Value};

use super::super::prefetch::Asked;
use super::super::{CELL, Emitter, Operand, memory};
use super::keys::integer_width;
use super::steps::{Found, columns_of, exprs_of};
use super::{Source, State};
use crate::frame::Slot;
use crate::kind::Kind;
use crate::runtime;
use crate::runtime::changes::Writing;
use crate::runtime::prefetch::Ask;
use crate::runtime::rows::{At, IndexOf, ReadColumns, RowAt, code_of};

/// What is done with each row of RETURNING.
type Each<'q, 'f, 'r> = &'q mut dyn FnMut(&mut Emitter<'f, 'r>, &[Operand]);

impl<'f, 'r> Emitter<'f, 'r> {
    /// Whether a change has code.
    pub(super) fn takes_change(&mut self, change: &'r Change) -> bool {
        match change {
            Change::Insert(insert) => self.takes_insert(insert),
            Change::Update(update) => {
                let set = update.set.iter();
                let table = &update.target.table;
                let stays = set.clone().all(|(column, _)| Some(*column) != table.partition_by);
                let good = set.clone().all(|(column, expr)| writes(table, *column) && self.takes(expr, 1));
                stays && good && self.takes_target(&update.target)
            }
            Change::Delete(target) => self.takes_target(target),
            Change::Merge(_) => false,
        }
    }

    fn takes_target(&mut self, target: &'r Target) -> bool {
        let table = match target.relations.as_slice() {
            [relation] => matches!(relation.source, RelationSource::Table(_)),
            _ => false,
        };
        let Some(sources) = self.sources(&target.relations).filter(|_| table) else { return false };
        let outer = std::mem::replace(
            &mut self.query,
            State { relations: sources, changes: true, ..State::default() },
        );
        let good = target.steps.len() == 1
            && target.constants.is_empty()
            && target.ctes.is_empty()
            && self.takes_steps(&target.steps, 1)
            && target.returning.iter().all(|expr| self.takes(expr, 1));
        self.query = outer;
        good
    }

    fn takes_insert(&self, insert: &'r Insert) -> bool {
        let Body::Values(rows) = &insert.source.body else { return false };
        let plain = insert.source.ctes.is_empty()
            && insert.source.order.is_empty()
            && insert.source.limit.is_none()
            && insert.source.offset.is_none()
            && insert.conflict.is_none();
        let columns = insert.table.columns.iter().enumerate();
        let known = columns.into_iter().all(|(n, _)| writes(&insert.table, ColumnId(n as u16)));
        plain
            && known
            && self.layouts.layout(insert.table.id).is_some()
            && rows.iter().flatten().all(|value| self.takes(value, 0))
            && insert.defaults.iter().all(|(_, value)| self.takes(value, 0))
            && insert.returning.iter().all(|value| self.takes(value, 1))
    }

    /// Whether a change has one row at most, which it gives when all is done: DELETE gives its row before.
    pub(super) fn changes_one(&self, change: &'r Change) -> bool {
        match change {
            Change::Insert(insert) => matches!(&insert.source.body, Body::Values(rows) if rows.len() == 1),
            Change::Update(update) => self.is_one_lookup(&update.target.relations, &update.target.steps),
            Change::Delete(_) | Change::Merge(_) => false,
        }
    }

    /// Makes a change, each row of RETURNING given to `each`; gives the room of the number of rows.
    pub(super) fn change(&mut self, change: &'r Change, each: Each<'_, 'f, 'r>) -> Value {
        match change {
            Change::Insert(insert) => self.insert(insert, each),
            Change::Update(update) => self.target(&update.target, Some(&update.set), each),
            // MERGE has no code.
            Change::Delete(target) | Change::Merge(Merge { target, .. }) => self.target(target, None, each),
        }
    }

    /// Changes or deletes the rows of a target.
    fn target(
        &mut self,
        target: &'r Target,
        set: Option<&'r [(ColumnId, Expr)]>,
        each: Each<'_, 'f, 'r>,
    ) -> Value {
        let count = self.counter();
        let mut sources = self.sources(&target.relations).unwrap_or_default();
        let values = set.iter().flat_map(|set| set.iter().map(|(_, expr)| expr));
        columns_of(exprs_of(&target.steps).chain(values).chain(&target.returning), &mut sources);
        let outer = std::mem::replace(
            &mut self.query,
            State { relations: sources, changes: true, ..State::default() },
        );
        if let Some(set) = set
            && let Some(found) = self.found_alike(target, set)
        {
            self.update_alike(&target.table, set, found, count);
            self.query = outer;
            return count;
        }
        let done = self.b.create_block();
        let code = code_of(handle(&target.table));
        self.steps(&target.steps, None, done, &mut |this, next| {
            let Some(row) = this.query.relations[0].row.as_ref().map(|row| row.at) else { return };
            match set {
                Some(set) => {
                    this.update(&target.table, set, row);
                    if !target.returning.is_empty() {
                        let used = this.query.relations[0].used.clone();
                        this.take_row(0, row, &used);
                        this.returning(&target.returning, false, each);
                    }
                }
                None => {
                    if !target.returning.is_empty() {
                        this.returning(&target.returning, true, each);
                    }
                    let code = this.int(code as i64);
                    this.ask(runtime::changes::delete as *const (), &[code, row]);
                }
            }
            this.count_up(count);
            this.jump(next);
        });
        self.go_to(done);
        self.query = outer;
        count
    }

    /// Looks for the rows of an UPDATE, if all get the same values, which are known before and cannot fail.
    fn found_alike(&mut self, target: &'r Target, set: &'r [(ColumnId, Expr)]) -> Option<Found> {
        let known = |(column, expr): &(ColumnId, Expr)| {
            let simple = match &expr.kind {
                ExprKind::Constant(_) | ExprKind::Now => true,
                ExprKind::Variable(id) => matches!(self.frame.slot(*id), Slot::Cell(_)),
                ExprKind::Convert(inner, Conversion::Scalar(Scalar::Timestamp | Scalar::TimestampTz)) => {
                    matches!(inner.kind, ExprKind::Now)
                }
                _ => false,
            };
            simple && self.kind(expr) == Kind::of_column(target.table.columns[column.index()].ty)
        };
        let alike = target.returning.is_empty() && set.iter().all(known);
        alike.then(|| self.found_by_one_search(&target.steps)).flatten()
    }

    fn update_alike(&mut self, table: &'r TableDef, set: &'r [(ColumnId, Expr)], found: Found, count: Value) {
        let (columns, values) = self.new_values(table, set);
        let cells = self.in_cells(&values);
        if let Some(writing) = self.writing(table, &columns, At::Shared, false) {
            self.ask(runtime::changes::update_alike as *const (), &[writing, cells, found.rows, found.count]);
        }
        self.b.ins().store(memory(), found.count, count, 0);
    }

    /// Gives what RETURNING says of a row; texts are copied if the row goes.
    fn returning(&mut self, returning: &'r [Expr], goes: bool, each: Each<'_, 'f, 'r>) {
        let mut outputs = Vec::with_capacity(returning.len());
        for expr in returning {
            let value = self.output(expr);
            let kept = match value.kind {
                Kind::Text if goes => self.copy_text(value),
                _ => value,
            };
            outputs.push(kept);
        }
        each(self, &outputs);
    }

    /// The columns of an UPDATE and their new values.
    pub(super) fn new_values(
        &mut self,
        table: &TableDef,
        set: &'r [(ColumnId, Expr)],
    ) -> (Vec<ColumnId>, Vec<Operand>) {
        set.iter().map(|(column, expr)| (*column, self.value_for(table, *column, expr))).unzip()
    }

    /// A new value of a column.
    fn value_for(&mut self, table: &TableDef, column: ColumnId, expr: &'r Expr) -> Operand {
        let value = self.expr(expr);
        let value = match value.kind {
            // It may be in the table that changes.
            Kind::Text if !matches!(expr.kind, ExprKind::Constant(_) | ExprKind::Variable(_)) => {
                self.copy_text(value)
            }
            _ => value,
        };
        self.as_kind(value, Kind::of_column(table.columns[column.index()].ty))
    }

    /// What the runtime must know to write rows.
    pub(super) fn writing(
        &mut self,
        table: &TableDef,
        columns: &[ColumnId],
        site: At,
        returns: bool,
    ) -> Option<Value> {
        let layout = self.layouts.layout(table.id)?;
        let writing = self.parts.writing(Writing {
            table: handle(table),
            layout,
            columns: columns.into(),
            site,
            shape: OnceLock::new(),
            fill: OnceLock::new(),
            returns,
        });
        Some(self.address(writing))
    }

    fn insert(&mut self, insert: &'r Insert, each: Each<'_, 'f, 'r>) -> Value {
        let count = self.counter();
        let Body::Values(rows) = &insert.source.body else { return count };
        let table = &insert.table;
        let site = match table.partition_by {
            None => At::Shared,
            Some(column) => match table.columns[column.index()].ty {
                SqlType::SmallInt | SqlType::Integer | SqlType::BigInt => At::Key(column.index()),
                ty => At::Column(column.index(), ty),
            },
        };
        // All values are made before the first row is.
        let mut made = Vec::with_capacity(rows.len());
        for values in rows {
            made.push(self.new_row(insert, values));
        }
        let row = self.room(size_of::<RowAt>().div_ceil(CELL as usize));
        let direct = match rows.len() {
            1 => self.direct_columns(table, &site),
            _ => Vec::new(),
        };
        for values in made {
            match direct.is_empty() {
                true => self.insert_cells(insert, &values, site, row),
                false => self.insert_filled(insert, &values, (site, &direct), row),
            }
            self.count_up(count);
            if !insert.returning.is_empty() {
                self.returning_of_new(insert, row, each);
            }
        }
        count
    }

    /// Has the runtime insert a row of these values.
    pub(super) fn insert_cells(&mut self, insert: &'r Insert, values: &[Operand], site: At, row: Value) {
        let Some(writing) = self.writing(&insert.table, &[], site, false) else { return };
        let cells = self.in_cells(values);
        let row = if insert.returning.is_empty() { self.int(0) } else { row };
        self.ask(runtime::changes::insert as *const (), &[writing, cells, row]);
    }

    /// Asks for the places of a new row in indexes that are not unique, as far as their first columns are
    /// known: those of a unique one are mostly at its end, which is at hand.
    pub(in crate::emit) fn announce_insert(
        &mut self,
        insert: &'r Insert,
        known: &dyn Fn(&Expr) -> bool,
        round: Value,
    ) -> Vec<Asked<'r>> {
        let mut asked = Vec::new();
        let Body::Values(rows) = &insert.source.body else { return asked };
        let ([values], Some(layout)) = (rows.as_slice(), self.layouts.layout(insert.table.id)) else {
            return asked;
        };
        let table = &insert.table;
        let ordered = |index: &&IndexDef| !index.unique && index.kind == IndexKind::Ordered;
        for index in table.indexes.iter().filter(ordered) {
            let mut parts = Vec::new();
            for column in &index.columns {
                let def = &table.columns[column.index()];
                let given = insert.columns.iter().position(|given| given == column);
                let Some(value) = given.and_then(|n| values.get(n)).filter(|value| known(value)) else {
                    break;
                };
                let whole = Kind::Int(Scalar::of(def.ty)) == self.kind(value);
                if def.nullable || !whole || integer_width(def.ty).is_none() {
                    break;
                }
                parts.push((def.ty, value));
            }
            let places = index.columns.iter().take(parts.len());
            let site = match table.partition_by {
                None => Some(At::Shared),
                Some(by) => places.into_iter().position(|column| *column == by).map(At::Key),
            };
            let (Some(site), Some(index)) = (site, layout.indexes.get(&index.name)) else { continue };
            let types: Vec<SqlType> = parts.iter().map(|(ty, _)| *ty).collect();
            let bytes: i64 = types.iter().filter_map(|ty| integer_width(*ty)).sum();
            if parts.is_empty() || bytes > 16 {
                continue;
            }
            let operands: Vec<Operand> = parts.iter().map(|(_, value)| self.expr(value)).collect();
            let of = IndexOf { table: handle(table), layout: layout.id, index: *index, bytes: bytes as u32 };
            let number = self.parts.asks();
            let (lines, choices) = (layout.whole.lines(&[]), Box::default());
            let ask = self.parts.ask(Ask { of, lines, choices, most: Some(0), keeps: false, number });
            let next = self.b.create_block();
            let answer = self.ask_for_nothing(number, round);
            let key = self.short_key(&types, &operands, site, next);
            self.ask_for_key(answer, key);
            self.jump(next);
            self.go_to(next);
            asked.push(Asked { indexes: Vec::new(), finds: false, choice: None, ask, number });
        }
        asked
    }

    /// The values of a new row, by column.
    fn new_row(&mut self, insert: &'r Insert, values: &'r [Expr]) -> Vec<Operand> {
        let table = &insert.table;
        let mut made: Vec<Option<Operand>> = vec![None; table.columns.len()];
        let given = insert.columns.iter().copied().zip(values);
        let defaults = insert.defaults.iter().map(|(column, value)| (*column, value));
        for (column, value) in given.chain(defaults) {
            made[column.index()] = Some(self.value_for(table, column, value));
        }
        let all = made.into_iter().zip(&table.columns);
        all.map(|(value, def)| value.unwrap_or_else(|| self.null(Kind::of_column(def.ty)))).collect()
    }

    fn returning_of_new(&mut self, insert: &'r Insert, row: Value, each: Each<'_, 'f, 'r>) {
        let Some(layout) = self.layouts.layout(insert.table.id) else { return };
        let table = Arc::clone(&insert.table);
        let mut sources =
            vec![Source { table, layout, row: None, used: Vec::new(), read: ReadColumns::default() }];
        columns_of(insert.returning.iter(), &mut sources);
        let used = sources[0].used.clone();
        let outer = std::mem::replace(
            &mut self.query,
            State { relations: sources, changes: true, ..State::default() },
        );
        self.take_row(0, row, &used);
        self.returning(&insert.returning, false, each);
        self.query = outer;
    }
}

/// Whether values of a column are written as cells.
fn writes(table: &TableDef, column: ColumnId) -> bool {
    table.columns.get(column.index()).is_some_and(|def| Kind::of_column(def.ty) != Kind::Boxed)
}
