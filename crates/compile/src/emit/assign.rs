//! Values on their way to targets.

use albireo_plpgsql::body::{Assignment, Fit, Initial, Place, RowFit, Sink, Target};
use albireo_semantics::expr::{Expr, VariableId};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

use super::{CELL, Emitter, Null, Operand, memory};
use crate::frame::{CellSlot, Slot};
use crate::kind::Kind;
use crate::runtime;
use crate::runtime::arrays;
use crate::runtime::variables::Placing;

impl<'r> Emitter<'_, 'r> {
    /// Whether values go to a target by code.
    pub(super) fn has_place(&self, target: &Target) -> bool {
        match target {
            Target::Variable(id) => !matches!(self.frame.slot(*id), Slot::Fields(_)) && !self.is_row(*id),
            Target::Field(id, _) => matches!(self.frame.slot(*id), Slot::Fields(_)),
            Target::Element(..) => true,
        }
    }

    fn is_row(&self, id: VariableId) -> bool {
        self.routine.variables.get(id.0 as usize).is_some_and(|v| matches!(v.place, Place::Row(_)))
    }

    pub(super) fn assign(&mut self, assignment: &'r Assignment) {
        let RowFit::Value(fit) = &assignment.fit else { return };
        let Target::Element(id, subscript) = &assignment.target else {
            let value = self.expr(&assignment.value);
            return self.fit_and_put(fit, &assignment.target, value);
        };
        let subscript = self.subscript(subscript);
        let value = self.expr(&assignment.value);
        let value = self.fit(fit, value);
        self.set_element(*id, subscript, value);
    }

    /// The subscript of an element that is assigned to.
    fn subscript(&mut self, subscript: &'r Expr) -> Value {
        let subscript = self.expr(subscript);
        match subscript.null {
            Null::Never => {}
            null => {
                let flag = self.null_flag(null);
                self.ask_if(flag, runtime::variables::no_subscript as *const (), &[]);
            }
        }
        subscript.a
    }

    fn set_element(&mut self, id: VariableId, subscript: Value, value: Operand) {
        if let Slot::Array(number, kind) = self.frame.slot(id) {
            let (number, kind) = (*number, *kind);
            let value = self.as_kind(value, kind);
            return self.set_item(number, kind, subscript, value);
        }
        let cell = self.in_cell(value);
        let (variable, kind) = (self.word(id.0), self.int(value.kind.code() as i64));
        let set = runtime::variables::set_element as *const ();
        self.ask(set, &[variable, subscript, cell, kind]);
    }

    /// Casts a value as its target wants it, and puts it there.
    pub(super) fn fit_and_put(&mut self, fit: &'r Fit, target: &'r Target, value: Operand) {
        if !self.has_place(target) {
            let sink = self.parts.place(Placing { target, fit, changes: target.variable() });
            let (sink, cell) = (self.address(sink), self.in_cell(value));
            let kind = self.int(value.kind.code() as i64);
            self.ask(runtime::variables::place as *const (), &[sink, cell, kind]);
            return;
        }
        let value = self.fit(fit, value);
        self.put(target, value);
    }

    /// A value as its target wants it.
    pub(super) fn fit(&mut self, fit: &'r Fit, value: Operand) -> Operand {
        match fit {
            Fit::Same => value,
            Fit::Cast(scratch, expr) => {
                let before = self.scratch.insert(*scratch, value);
                let fitted = self.expr(expr);
                match before {
                    Some(before) => self.scratch.insert(*scratch, before),
                    None => self.scratch.remove(scratch),
                };
                fitted
            }
        }
    }

    /// Puts a value of the right type into a target.
    pub(super) fn put(&mut self, target: &'r Target, value: Operand) {
        match target {
            Target::Variable(id) => self.set_variable(*id, value),
            Target::Field(id, n) => {
                if let Slot::Fields(fields) = self.frame.slot(*id)
                    && let Some(slot) = fields.get(*n)
                {
                    self.set_cell(*slot, value);
                }
            }
            Target::Element(id, subscript) => {
                let subscript = self.subscript(subscript);
                self.set_element(*id, subscript, value);
            }
        }
    }

    /// Puts a value into an element of an array: where there is room by code, unless it is a text that
    /// must be copied.
    fn set_item(&mut self, number: u32, kind: Kind, subscript: Value, value: Operand) {
        let copied = kind == Kind::Text && !self.constants.contains(&value.a);
        let next = self.b.create_block();
        if !copied {
            let head = self.head(number);
            let length = self.b.ins().load(types::I64, memory(), head, arrays::LENGTH_OFFSET);
            let lower = self.b.ins().load(types::I64, memory(), head, arrays::LOWER_OFFSET);
            let room = self.b.ins().load(types::I64, memory(), head, arrays::ROOM_OFFSET);
            let at = self.b.ins().isub(subscript, lower);
            // A negative distance is a very large one.
            let joins = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, at, length);
            let fits = self.b.ins().icmp(IntCC::UnsignedLessThan, at, room);
            let good = self.b.ins().band(joins, fits);
            let (near, far) = (self.b.create_block(), self.cold_block());
            self.branch(good, near, far);
            self.go_to(near);
            let items = self.b.ins().load(types::I64, memory(), head, arrays::ITEMS_OFFSET);
            let offset = self.b.ins().imul_imm_u(at, i64::from(CELL));
            let cell = self.b.ins().iadd(items, offset);
            self.store_cell(value, cell, 0);
            let behind = self.b.ins().iadd_imm_u(at, 1);
            let length = self.b.ins().umax(length, behind);
            self.b.ins().store(memory(), length, head, arrays::LENGTH_OFFSET);
            let no = self.int(0);
            self.b.ins().store(memory(), no, head, arrays::LENT_OFFSET);
            self.jump(next);
            self.go_to(far);
        }
        let (cell, number) = (self.in_cell(value), self.word(number));
        let is_text = self.word(u32::from(copied));
        self.ask(arrays::set_item as *const (), &[number, subscript, cell, is_text]);
        self.jump(next);
        self.go_to(next);
    }

    /// Calls a function of the runtime if a flag is set, which is rare.
    pub(super) fn ask_if(&mut self, flag: Value, function: *const (), args: &[Value]) {
        let (failing, next) = (self.cold_block(), self.b.create_block());
        self.branch(flag, failing, next);
        self.go_to(failing);
        self.ask(function, args);
        self.jump(next);
        self.go_to(next);
    }

    /// Puts a value of the right type into a variable.
    pub(super) fn set_variable(&mut self, id: VariableId, value: Operand) {
        let not_null = self.routine.variables.get(id.0 as usize).is_some_and(|v| v.not_null);
        match self.frame.slot(id) {
            Slot::Cell(slot) => {
                if not_null && !matches!(value.null, Null::Never) {
                    let flag = self.null_flag(value.null);
                    let variable = self.word(id.0);
                    self.ask_if(flag, runtime::variables::refuse_null as *const (), &[variable]);
                }
                self.set_cell(*slot, value);
            }
            Slot::Boxed | Slot::Fields(_) | Slot::Array(..) => {
                let cell = self.in_cell(value);
                let (variable, kind) = (self.word(id.0), self.int(value.kind.code() as i64));
                self.ask(runtime::variables::set_boxed as *const (), &[variable, cell, kind]);
            }
        }
    }

    /// Puts a value into a cell of the frame.
    pub(super) fn set_cell(&mut self, slot: CellSlot, value: Operand) {
        let value = self.as_kind(value, slot.kind);
        let offset = slot.at as i32 * CELL;
        if slot.kind != Kind::Text {
            self.store_cell(value, self.cells, offset);
            return;
        }
        let next = self.b.create_block();
        match value.null {
            Null::Never => {}
            Null::Always => {
                self.clear(slot);
                self.jump(next);
                return self.go_to(next);
            }
            Null::If(flag) => {
                let (null, present) = (self.b.create_block(), self.b.create_block());
                self.branch(flag, null, present);
                self.go_to(null);
                self.clear(slot);
                self.jump(next);
                self.go_to(present);
            }
        }
        let length = value.b.unwrap_or(value.a);
        let at = self.word(slot.at);
        self.ask(runtime::variables::set_text as *const (), &[at, value.a, length]);
        self.jump(next);
        self.go_to(next);
    }

    /// What a variable of a block begins with.
    pub(super) fn initial(&mut self, initial: &'r Initial) {
        if let Some(assignment) = &initial.value {
            self.assign(assignment);
            return;
        }
        match self.frame.slot(initial.variable) {
            Slot::Cell(slot) => self.clear(*slot),
            Slot::Fields(fields) => {
                for slot in fields {
                    self.clear(*slot);
                }
            }
            Slot::Boxed | Slot::Array(..) => {
                let variable = self.word(initial.variable.0);
                self.ask(runtime::variables::clear_boxed as *const (), &[variable]);
            }
        }
    }

    fn clear(&mut self, slot: CellSlot) {
        let offset = slot.at as i32 * CELL;
        let zero = self.int(0);
        for word in [0, 8, 16] {
            self.b.ins().store(memory(), zero, self.cells, offset + word);
        }
    }

    /// Whether rows go to a sink by code.
    pub(super) fn has_sink(&self, sink: &Sink) -> bool {
        match sink {
            Sink::Targets(targets) => targets.iter().all(|(target, _)| self.has_place(target)),
            Sink::Row(id, fits) => match self.frame.slot(*id) {
                Slot::Fields(fields) => fits.len() <= fields.len(),
                _ => false,
            },
        }
    }

    /// Puts a row where it goes; missing columns are NULL.
    pub(super) fn sink(&mut self, sink: &'r Sink, row: &[Operand]) {
        match sink {
            Sink::Targets(targets) => {
                for (n, (target, fit)) in targets.iter().enumerate() {
                    match row.get(n) {
                        Some(value) => self.fit_and_put(fit, target, *value),
                        None => {
                            let nothing = self.null(self.target_kind(target));
                            self.put(target, nothing);
                        }
                    }
                }
            }
            Sink::Row(id, fits) => {
                let Slot::Fields(fields) = self.frame.slot(*id) else { return };
                // All values are made before the first is stored.
                let mut values = Vec::with_capacity(fields.len());
                for (fit, value) in fits.iter().zip(row) {
                    let value = self.fit(fit, *value);
                    values.push(value);
                }
                for (n, slot) in fields.iter().enumerate() {
                    match values.get(n) {
                        Some(value) => self.set_cell(*slot, *value),
                        None => self.clear(*slot),
                    }
                }
            }
        }
    }

    /// Of what kind a target's values are.
    fn target_kind(&self, target: &Target) -> Kind {
        match target {
            Target::Variable(id) => match self.frame.slot(*id) {
                Slot::Cell(slot) => slot.kind,
                _ => Kind::Boxed,
            },
            Target::Field(id, n) => match self.frame.slot(*id) {
                Slot::Fields(fields) => fields.get(*n).map_or(Kind::Boxed, |slot| slot.kind),
                _ => Kind::Boxed,
            },
            Target::Element(..) => Kind::Boxed,
        }
    }
}
