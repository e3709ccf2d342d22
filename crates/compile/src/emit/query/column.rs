//! Columns of rows at hand.

use std::collections::BTreeMap;

use albireo_base::{ColumnId, SqlType};
use albireo_execute::tables::handle;
use albireo_partition::TableHandle;
use albireo_semantics::expr::ColumnRef;
use albireo_storage::{
    ColumnAddress, ENTRY_BLOCK_OFFSET, ENTRY_BYTES, INLINE_TEXT_APART, Physical, VIEW_TEXT_BYTES,
};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

use super::super::{Emitter, Null, Operand, memory};
use crate::kind::Kind;
use crate::layout::TableLayout;
use crate::runtime;
use crate::runtime::rows::{ENTRIES_OFFSET, SLOT_OFFSET, code_of};
use crate::runtime::values::PRESENT;

/// A row at hand.
#[derive(Clone)]
pub(super) struct Row {
    /// Where the runtime has put its address.
    pub(super) at: Value,
    entries: Value,
    slot: Value,
    /// By first entry and row width of a group of columns: where the row is in it.
    bases: BTreeMap<(u32, u32), Value>,
}

impl<'r> Emitter<'_, 'r> {
    /// The kind of a column of a row at hand.
    pub(in crate::emit) fn column_kind(&self, column: ColumnRef) -> Kind {
        let relation = usize::from(column.relation);
        match self.query.relations.get(relation) {
            Some(source) => match source.table.columns.get(usize::from(column.column)) {
                Some(def) => Kind::of_column(def.ty),
                None => Kind::Boxed,
            },
            None => self.query.groups.get(usize::from(column.column)).map_or(Kind::Boxed, |group| group.kind),
        }
    }

    /// A column of a row at hand.
    pub(in crate::emit) fn column(&mut self, column: ColumnRef) -> Operand {
        let (relation, n) = (usize::from(column.relation), usize::from(column.column));
        let kind = self.column_kind(column);
        let Some(source) = self.query.relations.get(relation) else {
            return match self.query.groups.get(n) {
                Some(group) => *group,
                None => self.null(kind),
            };
        };
        let (Some(row), Some(at)) = (source.row.clone(), source.layout.columns.get(n).copied()) else {
            return self.null(kind);
        };
        source.read.add(ColumnId(n as u16));
        let ty = source.table.columns[n].ty;
        let table = handle(&source.table);
        let null = self.null_bit(&row, &at);
        if let Some(operand) = self.fixed_column(&row, &at, kind, null) {
            return operand;
        }
        match (at.physical, ty) {
            (Physical::Inline(_), _) if kind == Kind::Text => {
                self.inline_text(&row, &at, table, ColumnId(n as u16), null)
            }
            (Physical::View, _) if kind == Kind::Text => {
                self.view_text(&row, &at, table, ColumnId(n as u16), null)
            }
            (_, SqlType::Decimal { scale, .. }) => {
                let place = self.place(&row, &at);
                let cell = self.room(1);
                for part in [0, 8] {
                    let word = self.b.ins().load(types::I64, memory(), place, part);
                    self.b.ins().store(memory(), word, cell, part);
                }
                let tag = self.int(PRESENT as i64 | i64::from(scale) << 8);
                let tag = match null {
                    Null::If(flag) => {
                        let zero = self.int(0);
                        self.b.ins().select(flag, zero, tag)
                    }
                    _ => tag,
                };
                self.b.ins().store(memory(), tag, cell, 16);
                Operand::new(Kind::Numeric, cell, null)
            }
            _ => {
                let (code, column) = (self.int(code_of(table) as i64), self.word(n as u32));
                let (kind_code, out) = (self.int(kind.code() as i64), self.room(1));
                let get = runtime::rows::column as *const ();
                self.ask(get, &[code, row.at, column, kind_code, out]);
                self.load_cell(out, 0, kind)
            }
        }
    }

    /// A value of fixed width that fits a register.
    fn fixed_column(&mut self, row: &Row, at: &ColumnAddress, kind: Kind, null: Null) -> Option<Operand> {
        let a = match (at.physical, kind) {
            (Physical::Bool, _) => {
                let place = self.place(row, at);
                self.b.ins().uload8(types::I64, memory(), place, 0)
            }
            (Physical::I16, Kind::Int(_)) => {
                let place = self.place(row, at);
                self.b.ins().sload16(types::I64, memory(), place, 0)
            }
            (Physical::I32, Kind::Int(_)) => {
                let place = self.place(row, at);
                self.b.ins().sload32(memory(), place, 0)
            }
            (Physical::I64, Kind::Int(_) | Kind::Narrow { .. }) => {
                let place = self.place(row, at);
                self.b.ins().load(types::I64, memory(), place, 0)
            }
            (Physical::F64, Kind::Double) => {
                let place = self.place(row, at);
                self.b.ins().load(types::F64, memory(), place, 0)
            }
            _ => return None,
        };
        Some(Operand::new(kind, a, null))
    }

    /// Whether a column is NULL, by its bitmap.
    fn null_bit(&mut self, row: &Row, at: &ColumnAddress) -> Null {
        let Some(entry) = at.null_entry else { return Null::Never };
        let block = self.block_at(row, entry);
        let byte = self.b.ins().ushr_imm_u(row.slot, 3);
        let place = self.b.ins().iadd(block, byte);
        let byte = self.b.ins().uload8(types::I64, memory(), place, 0);
        let bit = self.b.ins().band_imm_u(row.slot, 7);
        let shifted = self.b.ins().ushr(byte, bit);
        let present = self.b.ins().band_imm_u(shifted, 1);
        Null::If(self.b.ins().icmp_imm_u(IntCC::Equal, present, 0))
    }

    /// The address of a block of a chunk.
    fn block_at(&mut self, row: &Row, entry: u32) -> Value {
        let offset = entry as usize * ENTRY_BYTES + ENTRY_BLOCK_OFFSET;
        self.b.ins().load(types::I64, memory(), row.entries, offset as i32)
    }

    /// The address of a value.
    pub(super) fn place(&mut self, row: &Row, at: &ColumnAddress) -> Value {
        let base = match row.bases.get(&(at.entry, at.stride)) {
            Some(base) => *base,
            // Met first where it may not be known elsewhere: it is not kept.
            None => self.base(row, at),
        };
        self.b.ins().iadd_imm_u(base, i64::from(at.offset))
    }

    /// Where a row is in a group of columns.
    fn base(&mut self, row: &Row, at: &ColumnAddress) -> Value {
        let block = match at.is_plain() {
            true => self.block_at(row, at.entry),
            false => {
                let block = self.b.ins().ushr_imm_u(row.slot, i64::from(at.shift));
                let offset = self.b.ins().imul_imm_u(block, ENTRY_BYTES as i64);
                let entry = self.b.ins().iadd(row.entries, offset);
                let first = at.entry as usize * ENTRY_BYTES + ENTRY_BLOCK_OFFSET;
                self.b.ins().load(types::I64, memory(), entry, first as i32)
            }
        };
        let within = match at.is_plain() {
            true => row.slot,
            false => self.b.ins().band_imm_u(row.slot, i64::from(at.mask)),
        };
        let offset = self.b.ins().imul_imm_u(within, i64::from(at.stride));
        self.b.ins().iadd(block, offset)
    }

    /// Takes the row whose address the runtime has put at `at`, for a relation; `used` are the columns
    /// that will be asked for.
    pub(super) fn take_row(&mut self, relation: usize, at: Value, used: &[u16]) {
        let Some(layout) = self.query.relations.get(relation).map(|source| source.layout.clone()) else {
            return;
        };
        let row = self.row_of(at, &layout, used);
        if let Some(source) = self.query.relations.get_mut(relation) {
            source.row = Some(row);
        }
    }

    /// The row of a table whose address is at `at`; `used` are the columns that will be asked for.
    pub(super) fn row_of(&mut self, at: Value, layout: &TableLayout, used: &[u16]) -> Row {
        let entries = self.b.ins().load(types::I64, memory(), at, ENTRIES_OFFSET);
        let slot = self.b.ins().load(types::I64, memory(), at, SLOT_OFFSET);
        let mut row = Row { at, entries, slot, bases: BTreeMap::new() };
        for column in used {
            let Some(address) = layout.columns.get(usize::from(*column)) else { continue };
            let key = (address.entry, address.stride);
            if !row.bases.contains_key(&key) {
                let base = self.base(&row, address);
                row.bases.insert(key, base);
            }
        }
        row
    }

    /// A text in its slot: a byte that says its length, then the bytes.
    fn inline_text(
        &mut self,
        row: &Row,
        at: &ColumnAddress,
        table: TableHandle,
        column: ColumnId,
        null: Null,
    ) -> Operand {
        let place = self.place(row, at);
        let length = self.b.ins().uload8(types::I64, memory(), place, 0);
        let text = self.b.ins().iadd_imm_u(place, 1);
        let near = self.b.ins().icmp_imm_u(IntCC::NotEqual, length, i64::from(INLINE_TEXT_APART));
        self.near_or_far(near, (text, length), row, table, column, null)
    }

    /// A text behind four bytes that say its length, if it is short.
    fn view_text(
        &mut self,
        row: &Row,
        at: &ColumnAddress,
        table: TableHandle,
        column: ColumnId,
        null: Null,
    ) -> Operand {
        let place = self.place(row, at);
        let length = self.b.ins().uload32(memory(), place, 0);
        let text = self.b.ins().iadd_imm_u(place, 4);
        let most = VIEW_TEXT_BYTES as i64;
        let near = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThanOrEqual, length, most);
        self.near_or_far(near, (text, length), row, table, column, null)
    }

    /// A text at hand, or one that the runtime finds.
    fn near_or_far(
        &mut self,
        near: Value,
        (text, length): (Value, Value),
        row: &Row,
        table: TableHandle,
        column: ColumnId,
        null: Null,
    ) -> Operand {
        let join = self.b.create_block();
        let (a, b) =
            (self.b.append_block_param(join, types::I64), self.b.append_block_param(join, types::I64));
        let far = self.cold_block();
        self.b.ins().brif(near, join, &[text.into(), length.into()], far, &[]);
        self.go_to(far);
        let (code, column) = (self.int(code_of(table) as i64), self.word(column.0.into()));
        let out = self.room(1);
        self.ask(runtime::rows::text as *const (), &[code, row.at, column, out]);
        let text = self.b.ins().load(types::I64, memory(), out, 0);
        let length = self.b.ins().load(types::I64, memory(), out, 8);
        self.b.ins().jump(join, &[text.into(), length.into()]);
        self.go_to(join);
        Operand { kind: Kind::Text, a, b: Some(b), null }
    }
}
