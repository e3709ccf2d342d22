//! Machine code for a routine, by Cranelift.
//!
//! Responsible for: the state of generation (here), values and their joins (`operand`), expressions
//! (`expr`, `number`, `condition`, `cast`), assignments (`assign`), statements (`statement`, `control`),
//! queries and changes by index (`query`), rows prefetched for loops (`prefetch`). Not responsible for: what the runtime does (`runtime`).
//!
//! The function that is made takes the call's context and gives [`END`], [`RETURNED`] or [`ERROR`].
//! Variables are in memory, in the frame; values of expressions are in registers. Where a check fails,
//! code out of the way asks the runtime to compute the same node as the interpreter does, so that errors
//! and rare values are the same by construction.

mod assign;
mod cast;
mod condition;
mod control;
mod expr;
mod number;
mod operand;
mod prefetch;
mod query;
mod statement;

use std::collections::{BTreeMap, BTreeSet};

use cranelift_codegen::ir::{
    AbiParam, Block, InstBuilder, MemFlagsData, SigRef, Signature, StackSlot, StackSlotData, StackSlotKind,
    Type, Value, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::FunctionBuilder;

pub(super) use operand::{Null, Operand};

use super::frame::Frame;
use super::kind::Kind;
use super::layout::Layouts;
use super::parts::Parts;
use super::runtime::{self, nodes::Node};
use albireo_plpgsql::body::{Routine, Statement};
use albireo_semantics::expr::{Expr, VariableId};
use albireo_semantics::query::tree::IndexUse;

/// The body came to its end.
pub(super) const END: i64 = 0;
/// RETURN ended it.
pub(super) const RETURNED: i64 = 1;
/// An error did.
pub(super) const ERROR: i64 = 2;

/// Bytes of a cell.
pub(super) const CELL: i32 = size_of::<albireo_storage::Cell>() as i32;

/// Something that EXIT, CONTINUE, RETURN or an error leaves.
enum Scope<'r> {
    /// A loop or labelled block: where EXIT and CONTINUE go.
    Target { label: Option<&'r str>, exit: Block, next: Option<Block> },
    /// A loop over rows or elements, whose cursor is to be closed.
    Cursor,
    /// A loop that says by FOUND whether it had a round.
    Counted,
    /// A block with handlers.
    Protected,
    /// A handler.
    Handler,
}

/// Code under generation.
pub(super) struct Emitter<'f, 'r> {
    b: FunctionBuilder<'f>,
    routine: &'r Routine,
    frame: &'r Frame,
    parts: &'r mut Parts,
    call_conv: CallConv,
    context: Value,
    cells: Value,
    /// Rooms in use, with their numbers of cells.
    rooms: Vec<(usize, StackSlot)>,
    /// By number of cells: rooms that were used by statements before.
    free_rooms: BTreeMap<usize, Vec<StackSlot>>,
    /// Addresses of texts that stay as long as the code.
    constants: BTreeSet<Value>,
    signatures: BTreeMap<(Vec<Width>, Width), SigRef>,
    scopes: Vec<Scope<'r>>,
    /// Where errors go, the innermost block with handlers last.
    catch: Vec<Block>,
    /// Values on their way to targets, which stand for variables of the binder's.
    scratch: BTreeMap<VariableId, Operand>,
    /// The statements behind the one under generation.
    rest: &'r [Statement],
    /// By lookup: where its answer is.
    known: BTreeMap<*const IndexUse, prefetch::Known>,
    layouts: &'r dyn Layouts,
    /// The query under generation.
    query: query::State,
    /// Whether GET DIAGNOSTICS may ask how many rows there were.
    counts: bool,
}

/// The type of an argument or result of a runtime function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Width {
    W32,
    W64,
}

impl Width {
    fn ty(self) -> Type {
        match self {
            Self::W32 => types::I32,
            Self::W64 => types::I64,
        }
    }

    fn of(ty: Type) -> Self {
        if ty == types::I32 { Self::W32 } else { Self::W64 }
    }
}

/// Memory that is there and aligned to nothing in particular.
fn memory() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

impl<'f, 'r> Emitter<'f, 'r> {
    /// Generates the function's body.
    pub(super) fn run(
        b: FunctionBuilder<'f>,
        routine: &'r Routine,
        frame: &'r Frame,
        parts: &'r mut Parts,
        layouts: &'r dyn Layouts,
        call_conv: CallConv,
    ) -> FunctionBuilder<'f> {
        let mut b = b;
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        let context = b.block_params(entry)[0];
        let cells = b.ins().load(types::I64, memory(), context, runtime::CELLS_OFFSET);
        let failed = b.create_block();
        let mut emitter = Self {
            b,
            routine,
            frame,
            parts,
            call_conv,
            context,
            cells,
            rooms: Vec::new(),
            free_rooms: BTreeMap::new(),
            constants: BTreeSet::new(),
            signatures: BTreeMap::new(),
            scopes: Vec::new(),
            catch: vec![failed],
            scratch: BTreeMap::new(),
            rest: &[],
            known: BTreeMap::new(),
            layouts,
            query: query::State::default(),
            counts: statement::asks_for_counts(routine),
        };
        emitter.body();
        emitter.go_to(failed);
        emitter.give(ERROR);
        emitter.b.seal_all_blocks();
        emitter.b
    }

    /// Ends the function.
    fn give(&mut self, status: i64) {
        let status = self.b.ins().iconst(types::I32, status);
        self.b.ins().return_(&[status]);
    }

    /// Goes on generating in a block.
    fn go_to(&mut self, block: Block) {
        self.b.switch_to_block(block);
    }

    /// A block that is rarely run.
    fn cold_block(&mut self) -> Block {
        let block = self.b.create_block();
        self.b.set_cold_block(block);
        block
    }

    fn jump(&mut self, block: Block) {
        self.b.ins().jump(block, &[]);
    }

    fn branch(&mut self, condition: Value, then: Block, otherwise: Block) {
        self.b.ins().brif(condition, then, &[], otherwise, &[]);
    }

    fn int(&mut self, value: i64) -> Value {
        self.b.ins().iconst(types::I64, value)
    }

    fn word(&mut self, value: u32) -> Value {
        self.b.ins().iconst(types::I32, i64::from(value))
    }

    /// The address of something that the compiled routine keeps.
    fn address<T>(&mut self, of: *const T) -> Value {
        self.int(of.expose_provenance() as i64)
    }

    /// The address of room for some cells on the stack, until the statement ends.
    fn room(&mut self, cells: usize) -> Value {
        let cells = cells.max(1);
        let slot = match self.free_rooms.get_mut(&cells).and_then(Vec::pop) {
            Some(slot) => slot,
            None => {
                let bytes = (cells * CELL as usize) as u32;
                let data = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 3);
                self.b.create_sized_stack_slot(data)
            }
        };
        self.rooms.push((cells, slot));
        self.b.ins().stack_addr(types::I64, slot, 0)
    }

    /// Gives back all rooms but the first so many.
    fn free_rooms(&mut self, but: usize) {
        for (cells, slot) in self.rooms.drain(but..) {
            self.free_rooms.entry(cells).or_default().push(slot);
        }
    }

    /// Calls a function of the runtime.
    fn call(&mut self, function: *const (), args: &[Value], gives: Width) -> Value {
        let widths: Vec<Width> = args.iter().map(|arg| Width::of(self.b.func.dfg.value_type(*arg))).collect();
        let signature = match self.signatures.get(&(widths.clone(), gives)) {
            Some(known) => *known,
            None => {
                let mut signature = Signature::new(self.call_conv);
                signature.params = widths.iter().map(|w| AbiParam::new(w.ty())).collect();
                signature.returns = vec![AbiParam::new(gives.ty())];
                let known = self.b.import_signature(signature);
                self.signatures.insert((widths, gives), known);
                known
            }
        };
        let callee = self.address(function);
        let call = self.b.ins().call_indirect(signature, callee, args);
        self.b.inst_results(call)[0]
    }

    /// Calls a function of the runtime with the context before its arguments, and goes where errors go if
    /// it fails.
    fn ask(&mut self, function: *const (), args: &[Value]) {
        let status = self.ask_for(function, args);
        let (next, catch) = (self.b.create_block(), self.catch_block());
        self.branch(status, catch, next);
        self.go_to(next);
    }

    /// The status that a function of the runtime gives.
    fn ask_for(&mut self, function: *const (), args: &[Value]) -> Value {
        let mut all = vec![self.context];
        all.extend_from_slice(args);
        self.call(function, &all, Width::W32)
    }

    fn catch_block(&self) -> Block {
        self.catch[self.catch.len() - 1]
    }

    /// Forgets the temporaries of a statement, if there are any.
    fn reset(&mut self) {
        let dirty = self.b.ins().load(types::I64, memory(), self.context, runtime::DIRTY_OFFSET);
        let (reset, next) = (self.cold_block(), self.b.create_block());
        self.branch(dirty, reset, next);
        self.go_to(reset);
        self.ask(runtime::statements::reset as *const (), &[]);
        self.jump(next);
        self.go_to(next);
    }

    /// What the runtime must know of a node.
    fn node_of(&mut self, expr: &'r Expr, parts: &[Kind], kind: Kind) -> Value {
        let node = self.parts.node(Node { expr, parts: parts.into(), kind });
        self.address(node)
    }
}
