//! New values that are written where they lie, without a cell for each.
//!
//! ```text
//! values -- is one NULL that may not be? -- runtime: vacant_row -- a store for each value -- enter_row
//!                      | yes              or overwrite --
//!                      cells -- runtime: insert or update, which says what is wrong
//! ```

use albireo_base::ColumnId;
use albireo_semantics::expr::Expr;
use albireo_semantics::query::tree::Insert;
use albireo_sql::{ColumnDef, TableDef};
use albireo_storage::{ColumnAddress, Physical};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

use super::super::{Emitter, Null, Operand, memory};
use crate::kind::Kind;
use crate::layout::TableLayout;
use crate::runtime::changes;
use crate::runtime::rows::At;

/// Columns beyond have no bit among the NULLs.
const MOST_COLUMNS: usize = 64;

/// Whether a column's values are written by stores.
fn is_direct(at: &ColumnAddress, def: &ColumnDef) -> bool {
    matches!(
        (at.physical, Kind::of_column(def.ty)),
        (Physical::Bool | Physical::I16 | Physical::I32 | Physical::I64, Kind::Int(_))
            | (Physical::I64, Kind::Narrow { .. })
            | (Physical::F64, Kind::Double)
    )
}

impl<'r> Emitter<'_, 'r> {
    /// The columns of a new row that are written by stores; none if the row is left to the runtime.
    pub(super) fn direct_columns(&self, table: &TableDef, site: &At) -> Vec<ColumnId> {
        let Some(layout) = self.layouts.layout(table.id) else { return Vec::new() };
        if table.columns.len() > MOST_COLUMNS || !matches!(site, At::Shared | At::Key(_)) {
            return Vec::new();
        }
        let all = layout.columns.iter().zip(&table.columns).zip(0..);
        let direct = all.filter(|((at, def), _)| is_direct(at, def));
        direct.map(|(_, n)| ColumnId(n)).collect()
    }

    /// Gives the row at `row` new values of some columns, and tells there where it is then.
    pub(super) fn update(&mut self, table: &TableDef, set: &'r [(ColumnId, Expr)], row: Value) {
        let (columns, values) = self.new_values(table, set);
        let Some(layout) = self.layouts.layout(table.id) else { return };
        let Some(writing) = self.writing(table, &columns, At::Shared, false) else { return };
        let slowly = |this: &mut Self| {
            let cells = this.in_cells(&values);
            this.ask(changes::update as *const (), &[writing, cells, row]);
        };
        let defs =
            || columns.iter().map(|column| (&layout.columns[column.index()], &table.columns[column.index()]));
        if columns.len() > MOST_COLUMNS || !defs().all(|(at, def)| is_direct(at, def)) {
            return slowly(self);
        }
        let must = values.iter().zip(defs()).filter(|(_, (_, def))| !def.nullable);
        let refused = must.fold(Null::Never, |all, (value, _)| self.either_null(all, value.null));
        let (other, done) = (self.cold_block(), self.b.create_block());
        if let Null::Always | Null::If(_) = refused {
            let good = self.b.create_block();
            let refused = self.null_flag(refused);
            self.branch(refused, other, good);
            self.go_to(good);
        }
        let nulls = self.nulls(values.iter().enumerate().map(|(n, value)| (n, *value)));
        let status = self.ask_for(changes::overwrite as *const (), &[writing, row, nulls]);
        self.row_or(status, other);
        let values_of = columns.iter().copied().zip(values.iter().copied());
        self.write_values(row, &layout, &values_of.collect::<Vec<_>>());
        self.jump(done);
        self.go_to(other);
        slowly(self);
        self.jump(done);
        self.go_to(done);
    }

    /// Inserts a row of these values, by column, and puts its address into `row`.
    pub(super) fn insert_filled(
        &mut self,
        insert: &'r Insert,
        values: &[Operand],
        (site, direct): (At, &[ColumnId]),
        row: Value,
    ) {
        let table = &insert.table;
        let Some(layout) = self.layouts.layout(table.id) else { return };
        let done = self.b.create_block();
        let key = match site {
            At::Key(n) => Some(n),
            _ => None,
        };
        let must = values.iter().zip(&table.columns).enumerate();
        let must = must.filter(|(n, (_, def))| !def.nullable || Some(*n) == key);
        let refused = must.fold(Null::Never, |all, (_, (value, _))| self.either_null(all, value.null));
        if let Null::Always | Null::If(_) = refused {
            let (other, good) = (self.cold_block(), self.b.create_block());
            let refused = self.null_flag(refused);
            self.branch(refused, other, good);
            self.go_to(other);
            self.insert_cells(insert, values, site, row);
            self.jump(done);
            self.go_to(good);
        }
        let returns = !insert.returning.is_empty();
        if let Some(writing) = self.writing(table, direct, site, returns) {
            let key = key.map_or_else(|| self.int(0), |n| values[n].a);
            self.ask(changes::vacant_row as *const (), &[writing, key, row]);
            let written = direct.iter().map(|column| (*column, values[column.index()]));
            self.write_values(row, &layout, &written.collect::<Vec<_>>());
            let others = (0..).zip(values).filter(|(n, _)| !direct.contains(&ColumnId(*n)));
            let cells = self.in_cells(&others.map(|(_, value)| *value).collect::<Vec<_>>());
            let nulls = self.nulls(direct.iter().map(|column| (column.index(), values[column.index()])));
            self.ask(changes::enter_row as *const (), &[writing, row, cells, nulls]);
        }
        self.jump(done);
        self.go_to(done);
    }

    /// Writes values to their places in a row.
    fn write_values(&mut self, row: Value, layout: &TableLayout, values: &[(ColumnId, Operand)]) {
        let used: Vec<u16> = values.iter().map(|(column, _)| column.0).collect();
        let row = self.row_of(row, layout, &used);
        for (column, value) in values {
            let at = layout.columns[column.index()];
            let place = self.place(&row, &at);
            let a = self.or_zero(*value);
            match at.physical {
                Physical::Bool => self.b.ins().istore8(memory(), a, place, 0),
                Physical::I16 => self.b.ins().istore16(memory(), a, place, 0),
                Physical::I32 => self.b.ins().istore32(memory(), a, place, 0),
                _ => self.b.ins().store(memory(), a, place, 0),
            };
        }
    }

    /// The number itself, 0 for NULL.
    fn or_zero(&mut self, value: Operand) -> Value {
        let zero = match value.kind {
            Kind::Double => self.b.ins().f64const(0.0),
            _ => self.int(0),
        };
        match value.null {
            Null::Never => value.a,
            Null::Always => zero,
            Null::If(flag) => self.b.ins().select(flag, zero, value.a),
        }
    }

    /// A bit for each value: whether it is NULL.
    fn nulls(&mut self, values: impl Iterator<Item = (usize, Operand)>) -> Value {
        let mut nulls = self.int(0);
        for (n, value) in values {
            let flag = match value.null {
                Null::Never => continue,
                Null::Always => self.int(1),
                Null::If(flag) => {
                    let flag = self.b.ins().icmp_imm_u(IntCC::NotEqual, flag, 0);
                    self.b.ins().uextend(types::I64, flag)
                }
            };
            let bit = self.b.ins().ishl_imm_u(flag, n as i64);
            nulls = self.b.ins().bor(nulls, bit);
        }
        nulls
    }
}
