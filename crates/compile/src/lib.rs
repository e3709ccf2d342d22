//! Machine code for routines.
//!
//! Responsible for: compiling a bound routine ([`compile`]), running what was made
//! ([`run_in_place`]), giving its memory back. Not responsible for: what statements mean, which
//! the interpreter in `body` says: where a construct has no code of its own, generated code asks the
//! interpreter for it, so that every routine compiles and both give the same.
//!
//! How it is made: a routine's variables lie in a frame of cells ([`frame`], [`kind`]); `emit` walks the
//! typed tree once and makes one function by Cranelift; `runtime` is what that function calls; `parts` are
//! the things that it names by address; `abi` is how arguments come in and results go out. This follows HyPer's compiled transactions (Kemper and Neumann,
//! ICDE 2011, section 4) and Hekaton's native procedures (Diaconu et al., SIGMOD 2013, section 5).
//!
//! Invariant C-1: a [`Compiled`] owns its routine, its parts and its code, and nothing of them is
//! changed or freed while it lives; whoever runs it holds it.

mod abi;
mod emit;
mod frame;
mod kind;
mod layout;
mod parts;
mod runtime;

use std::sync::Arc;

use albireo_base::{SqlError, SqlState};
use albireo_execute::{
    Executables, Execution, Limits, Machine, RoutineCode, nothing, with_machine, wrong_arguments,
};
use albireo_plpgsql::body::{Code, FOUND, Place, Routine};
use albireo_semantics::Stop;
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::VariableId;
use cranelift_codegen::Context as Function;
use cranelift_codegen::ir::{AbiParam, types};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Linkage, Module, default_libcall_names};
use parking_lot::Mutex;

use abi::Arguments;
pub use abi::{ArgumentRef, Items, Output, Ran, Reply};
use emit::Emitter;
use frame::{Frame, Slot};
pub use layout::{Layouts, NoLayouts, TableLayout};
use parts::Parts;
use runtime::Context;
use runtime::space::Space;

/// A function that was generated: takes the context of a call, gives a status of `emit`.
type Entry = unsafe extern "C" fn(*mut Context<'_>) -> u32;

/// A compiled routine.
pub struct Compiled {
    routine: Arc<Routine>,
    frame: Frame,
    /// What the code names by address.
    parts: Parts,
    entry: Entry,
    /// Owner of the code; `None` only while it is dropped.
    module: Option<JITModule>,
    code_bytes: usize,
    /// By argument: its variable, and which parameter it is for.
    inputs: Vec<(VariableId, usize)>,
    /// Whether a call's result is read from its variables.
    replies: bool,
    /// Memory of calls that are over.
    #[allow(clippy::vec_box, reason = "a call moves it in and out, and it is large")]
    spare: Mutex<Vec<Box<Space>>>,
}

/// The memory of so many calls is kept for others.
const SPARES: usize = 4;

// SAFETY: the module is only touched when it is dropped, by whoever drops it; code and parts are read only.
unsafe impl Send for Compiled {}
// SAFETY: as above.
unsafe impl Sync for Compiled {}

/// Our own bug, or a processor that Cranelift does not know.
fn failed(error: impl std::fmt::Display) -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, format!("a routine cannot be compiled: {error}"))
}

/// Compiles a PL/pgSQL routine; `None` for one in SQL, which is one query after another.
///
/// # Errors
/// XX000: Cranelift refused; the interpreter can run it still. As [`albireo_base::budget::take`].
pub fn compile(routine: &Arc<Routine>, layouts: &dyn Layouts) -> Result<Option<Compiled>, SqlError> {
    if !matches!(routine.code, Code::Block(_)) {
        return Ok(None);
    }
    let mut flags = settings::builder();
    flags.set("opt_level", "speed").map_err(failed)?;
    flags.set("is_pic", "false").map_err(failed)?;
    let isa = cranelift_native::builder().map_err(failed)?;
    let isa = isa.finish(settings::Flags::new(flags)).map_err(failed)?;
    let mut module = JITModule::new(JITBuilder::with_isa(isa, default_libcall_names()));
    let mut function = Function::new();
    function.func.signature = module.make_signature();
    function.func.signature.params.push(AbiParam::new(types::I64));
    function.func.signature.returns.push(AbiParam::new(types::I32));
    let call_conv = function.func.signature.call_conv;

    let frame = Frame::of(routine);
    let mut parts = Parts::default();
    let mut builder = FunctionBuilderContext::new();
    let builder = FunctionBuilder::new(&mut function.func, &mut builder);
    let builder = Emitter::run(builder, routine, &frame, &mut parts, layouts, call_conv);
    builder.finalize(module.isa().frontend_config());

    let made = match parts.ended.take() {
        None => make(&mut module, &mut function, &routine.signature.name),
        Some(ended) => Err(ended),
    };
    match made {
        Ok((entry, code_bytes)) => {
            // SAFETY: the function was generated with this signature, and the module keeps it.
            let entry = unsafe { std::mem::transmute::<*const u8, Entry>(entry) };
            let routine = Arc::clone(routine);
            let (replies, spare) = (replies(&routine, &frame), Mutex::default());
            let module = Some(module);
            let inputs = inputs(&routine);
            Ok(Some(Compiled { routine, frame, parts, entry, module, code_bytes, inputs, replies, spare }))
        }
        Err(error) => {
            // SAFETY: nothing that was made in it is used.
            unsafe { module.free_memory() };
            Err(error)
        }
    }
}

/// Makes the code of a function, which profilers know by this name: its address and how many bytes it has.
fn make(module: &mut JITModule, function: &mut Function, name: &str) -> Result<(*const u8, usize), SqlError> {
    let failed = |error: cranelift_module::ModuleError| failed(format!("{error:?}"));
    let signature = function.func.signature.clone();
    let id = module.declare_function(name, Linkage::Export, &signature).map_err(failed)?;
    module.define_function(id, function).map_err(failed)?;
    let bytes = function.compiled_code().map_or(0, |code| code.code_buffer().len());
    module.finalize_definitions().map_err(failed)?;
    Ok((module.get_finalized_function(id), bytes))
}

/// Runs a compiled routine with arguments that are still to be converted; a row of the result stays where the
/// routine put it.
///
/// # Errors
/// As [`albireo_execute::run`]; what [`ArgumentRef::datum`] says of an argument.
pub fn run_in_place(
    code: &Arc<Compiled>,
    args: &[ArgumentRef<'_>],
    execution: &mut Execution<'_>,
    routines: &dyn Executables,
    limits: Limits,
) -> Result<Ran, Stop> {
    let (routine, args) = (code.routine(), Arguments::Borrowed(args));
    with_machine(routine, execution, routines, limits, |machine| {
        match routine.signature.strict && args.any_null() {
            true => Ok(Ran::Values(nothing(routine))),
            false => code.reply(machine, args),
        }
    })
}

/// As [`run_in_place`], of a statement that was made a routine; its parameters have these values.
///
/// # Errors
/// As [`albireo_execute::run`].
pub fn run_statement(
    code: &Arc<Compiled>,
    values: &[Datum],
    execution: &mut Execution<'_>,
    routines: &dyn Executables,
    limits: Limits,
) -> Result<Ran, Stop> {
    let values = Arguments::Datums(values);
    with_machine(code.routine(), execution, routines, limits, |machine| code.reply(machine, values))
}

impl RoutineCode for Compiled {
    fn run(&self, machine: Machine<'_>, args: &[Datum]) -> Result<Vec<Datum>, Stop> {
        let (space, values) = self.call(machine, Arguments::Datums(args), false);
        self.give_back(space);
        values
    }
}

impl Compiled {
    /// The routine that it was made from.
    pub fn routine(&self) -> &Arc<Routine> {
        &self.routine
    }

    /// Bytes of machine code.
    pub fn code_bytes(&self) -> usize {
        self.code_bytes
    }

    /// How many statements have code, and how many are left to the interpreter.
    pub fn statements(&self) -> (usize, usize) {
        (self.parts.compiled, self.parts.interpreted)
    }

    /// As [`RoutineCode::run`]; a row is left where it is.
    fn reply<'a>(self: &'a Arc<Self>, machine: Machine<'a>, args: Arguments<'_>) -> Result<Ran, Stop> {
        match self.call(machine, args, self.replies) {
            (space, Ok(_)) if self.replies => Ok(Ran::Reply(Reply::new(Arc::clone(self), space))),
            (space, values) => {
                self.give_back(space);
                values.map(Ran::Values)
            }
        }
    }

    /// Runs it: what it worked on, and what it gives back unless that stays where it is.
    fn call<'a>(
        &'a self,
        mut machine: Machine<'a>,
        args: Arguments<'_>,
        stays: bool,
    ) -> (Box<Space>, Result<Vec<Datum>, Stop>) {
        let mut space = self.space();
        machine.set_variables(std::mem::take(&mut space.variables));
        let mut context = Context {
            cells: space.cells.as_mut_ptr(),
            dirty: 0,
            heads: space.heads.as_mut_ptr(),
            shorts: space.shorts.as_mut_ptr(),
            rounds: runtime::ROUNDS,
            now: 0,
            answers: space.answers.as_mut_ptr(),
            machine,
            stop: None,
            panic: None,
            frame: &self.frame,
            space,
        };
        let values = match self.run_code(&mut context, args) {
            Ok(_) if stays => {
                context.finish_arrays();
                Ok(Vec::new())
            }
            Ok(returned) => self.values(&mut context, returned),
            Err(stop) => Err(stop),
        };
        let Context { mut space, machine, .. } = context;
        space.variables = machine.into_variables();
        (space, values)
    }

    fn run_code(&self, context: &mut Context<'_>, args: Arguments<'_>) -> Result<bool, Stop> {
        if let Slot::Cell(slot) = self.frame.slot(FOUND) {
            context.store(*slot, runtime::values::number(0));
        }
        self.take_arguments(context, args)?;
        // SAFETY: C-1; the context is ours and its cells are there.
        let status = unsafe { (self.entry)(&raw mut *context) };
        if let Some(panic) = context.panic.take() {
            std::panic::resume_unwind(panic);
        }
        match i64::from(status) {
            emit::ERROR => Err(context.stop.take().unwrap_or_else(|| failed("no error was told").into())),
            status => Ok(status == emit::RETURNED),
        }
    }

    fn values(&self, context: &mut Context<'_>, returned: bool) -> Result<Vec<Datum>, Stop> {
        for id in &self.routine.results {
            context.lend(*id);
        }
        context.machine.result(returned)
    }

    /// Memory for a call.
    fn space(&self) -> Box<Space> {
        let spare = self.spare.lock().pop();
        spare.unwrap_or_else(|| Space::new(&self.routine, &self.frame, &self.parts))
    }

    /// Keeps the memory of a call that is over for the next.
    fn give_back(&self, mut space: Box<Space>) {
        space.tidy(&self.routine, &self.frame);
        let mut spare = self.spare.lock();
        if spare.len() < SPARES {
            spare.push(space);
        }
    }

    /// Puts the arguments into the variables of the parameters that they are for.
    fn take_arguments(&self, context: &mut Context<'_>, args: Arguments<'_>) -> Result<(), Stop> {
        if args.count() != self.inputs.len() {
            return Err(wrong_arguments(args.count(), self.inputs.len()).into());
        }
        for (n, (id, formal)) in self.inputs.iter().enumerate() {
            args.put(context, n, *id, &self.routine.signature.parameters[*formal].place)?;
        }
        Ok(())
    }
}

/// The variables of what comes in, each with the number of its parameter.
fn inputs(routine: &Routine) -> Vec<(VariableId, usize)> {
    let formals = routine.signature.parameters.iter().zip(&routine.parameters).enumerate();
    let inputs = formals.filter(|(_, (formal, _))| formal.mode.is_in());
    inputs.map(|(n, (_, id))| (*id, n)).collect()
}

/// Whether a routine's result is one row, in variables that are not boxed.
fn replies(routine: &Routine, frame: &Frame) -> bool {
    let result = &routine.signature.result;
    let plain = |id| matches!(frame.slot(id), Slot::Cell(_) | Slot::Array(..));
    let row = matches!(result.place, Place::Row(_)) || routine.results.len() == 1;
    result.from_variables && !result.setof && row && routine.results.iter().all(|id| plain(*id))
}

impl Drop for Compiled {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: whoever ran the code held this, C-1, so nobody is in it.
            unsafe { module.free_memory() };
        }
    }
}
