//! Nodes of expressions that have no code of their own: their parts are computed by generated code, they
//! themselves as the interpreter does it.

use std::fmt::{Display, Write as _};

use albireo_base::ValueRef;
use albireo_semantics::Stop;
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::{self, Arithmetic, Expr, VariableId};
use albireo_storage::Cell;
use memchr::memmem::Finder;

use super::{Context, OK, guard, values};
use crate::kind::Kind;

/// A node of an expression.
pub(crate) struct Node {
    /// Itself.
    pub(crate) expr: *const Expr,
    /// Of what kinds its parts are, in the order of evaluation.
    pub(crate) parts: Box<[Kind]>,
    /// Of what kind its value is.
    pub(crate) kind: Kind,
}

// SAFETY: it is never changed, nor what it points at.
unsafe impl Send for Node {}
// SAFETY: as above.
unsafe impl Sync for Node {}

impl Node {
    /// A node, and the cells of its parts.
    ///
    /// # Safety
    /// R-2 holds of the node, and it has as many parts as there are cells, for `'a`.
    unsafe fn with_parts<'a>(node: *const Self, parts: *const Cell) -> (&'a Self, &'a [Cell]) {
        // SAFETY: the caller's.
        unsafe {
            let node = &*node;
            (node, std::slice::from_raw_parts(parts, node.parts.len()))
        }
    }
}

/// Computes a node from its parts.
pub(crate) unsafe extern "C" fn node(
    context: *mut Context<'_>,
    node: *const Node,
    parts: *const Cell,
    out: *mut Cell,
) -> u32 {
    guard(context, |context| {
        // SAFETY: generated code passes a node and its parts.
        let (node, parts) = unsafe { Node::with_parts(node, parts) };
        let parts = parts.iter().zip(&node.parts).map(|(cell, kind)| context.datum(cell, *kind)).collect();
        // SAFETY: R-2.
        let value = expr::evaluate_node(unsafe { &*node.expr }, parts, &mut context.machine)?;
        // SAFETY: generated code passes room for a cell.
        unsafe { *out = context.cell(value, node.kind)? };
        Ok(OK)
    })
}

/// Computes an expression by the interpreter alone: its variables are handed over before.
pub(crate) unsafe extern "C" fn whole(context: *mut Context<'_>, node: *const Node, out: *mut Cell) -> u32 {
    guard(context, |context| {
        // SAFETY: R-2, and generated code passes room for a cell.
        let (node, out) = unsafe { (&*node, &mut *out) };
        context.lend_all();
        // SAFETY: R-2.
        let value = expr::evaluate(unsafe { &*node.expr }, &mut context.machine)?;
        *out = context.cell(value, node.kind)?;
        Ok(OK)
    })
}

/// Arithmetic on NUMERIC; NULL if one is.
pub(crate) unsafe extern "C" fn numeric(
    context: *mut Context<'_>,
    op: u32,
    a: *const Cell,
    b: *const Cell,
    out: *mut Cell,
) -> u32 {
    // SAFETY: generated code passes the addresses of two cells, and of room for one.
    let (a, b, out) = unsafe { (&*a, &*b, &mut *out) };
    if values::is_null(a) || values::is_null(b) {
        *out = values::NULL;
        return OK;
    }
    debug_assert!(op <= 4, "there are five operators");
    let op = match op {
        0 => Arithmetic::Add,
        1 => Arithmetic::Subtract,
        2 => Arithmetic::Multiply,
        3 => Arithmetic::Divide,
        _ => Arithmetic::Modulo,
    };
    guard(context, |_| {
        *out = values::decimal(expr::numeric(op, values::decimal_of(a), values::decimal_of(b))?);
        Ok(OK)
    })
}

/// A NUMERIC with so many digits after the point; NULL of NULL.
pub(crate) unsafe extern "C" fn round(
    context: *mut Context<'_>,
    number: *const Cell,
    digits: u32,
    out: *mut Cell,
) -> u32 {
    debug_assert!(u8::try_from(digits).is_ok(), "a scale is a byte");
    guard(context, |_| {
        // SAFETY: generated code passes the addresses of a cell and of room for one.
        let (number, out) = unsafe { (&*number, &mut *out) };
        *out = match values::is_null(number) {
            true => values::NULL,
            false => values::decimal(expr::round_to(values::decimal_of(number), digits as u8)?),
        };
        Ok(OK)
    })
}

/// How two NUMERICs compare: -1, 0 or 1.
pub(crate) unsafe extern "C" fn compare_numeric(a: *const Cell, b: *const Cell) -> i32 {
    // SAFETY: generated code passes the addresses of two cells that are not NULL.
    let (a, b) = unsafe { (values::decimal_of(&*a), values::decimal_of(&*b)) };
    a.cmp(&b) as i32
}

/// How two texts compare: below, equal to or above 0.
pub(crate) unsafe extern "C" fn compare_text(
    a: *const u8,
    a_length: u64,
    b: *const u8,
    b_length: u64,
) -> i32 {
    let cell = |at: *const u8, length| Cell { lo: at.addr() as u64, hi: length, tag: values::PRESENT };
    // SAFETY: R-3.
    let (a, b) = unsafe { (values::text(&cell(a, a_length)), values::text(&cell(b, b_length))) };
    a.cmp(b) as i32
}

/// One text behind the other.
pub(crate) unsafe extern "C" fn concat(
    context: *mut Context<'_>,
    a: *const Cell,
    b: *const Cell,
    out: *mut Cell,
) -> u32 {
    guard(context, |context| {
        // SAFETY: generated code passes the addresses of two texts, and of room for a cell; R-3.
        let (a, b, out) = unsafe { (values::text(&*a), values::text(&*b), &mut *out) };
        expr::check_joined(a, b)?;
        *out = context.keep_joined(a, b);
        Ok(OK)
    })
}

/// Texts and numbers one behind the other; NULL if one is.
pub(crate) unsafe extern "C" fn join(
    context: *mut Context<'_>,
    node: *const Node,
    parts: *const Cell,
    out: *mut Cell,
) -> u32 {
    guard(context, |context| {
        // SAFETY: generated code passes a node, its parts, and room for a cell.
        let ((node, parts), out) = unsafe { (Node::with_parts(node, parts), &mut *out) };
        let whole = &mut context.space.joined;
        whole.clear();
        for (cell, kind) in parts.iter().zip(&node.parts) {
            // SAFETY: R-3.
            match unsafe { values::value_of(cell, *kind) } {
                ValueRef::Null => {
                    *out = values::NULL;
                    return Ok(OK);
                }
                ValueRef::Text(text) => {
                    expr::check_joined(whole, text)?;
                    whole.push_str(text);
                }
                ValueRef::SmallInt(n) => show(whole, n)?,
                ValueRef::Integer(n) => show(whole, n)?,
                ValueRef::BigInt(n) => show(whole, n)?,
                ValueRef::Decimal(n) => show(whole, n)?,
                other => show(whole, other.to_value())?,
            }
        }
        let whole = std::mem::take(whole);
        *out = context.keep_text(&whole);
        context.space.joined = whole;
        Ok(OK)
    })
}

/// Appends what a number looks like.
fn show(whole: &mut String, number: impl Display) -> Result<(), Stop> {
    // Writing to a text does not fail.
    let _ = write!(whole, "{number}");
    Ok(expr::check_joined(whole, "")?)
}

/// How many bytes the first so many characters of a text have.
pub(crate) unsafe extern "C" fn head(text: *const u8, length: u64, count: u64) -> u64 {
    let text = Cell { lo: text.addr() as u64, hi: length, tag: values::PRESENT };
    // SAFETY: R-3.
    let text = unsafe { values::text(&text) };
    match text.as_bytes().get(..count as usize).is_some_and(<[u8]>::is_ascii) {
        true => count,
        false => expr::byte_of(text, count as usize) as u64,
    }
}

/// Whether a text holds another: `LIKE '%...%'` without other wildcards.
pub(crate) unsafe extern "C" fn contains(
    text: *const u8,
    length: u64,
    finder: *const Finder<'static>,
) -> u32 {
    let text = Cell { lo: text.addr() as u64, hi: length, tag: values::PRESENT };
    // SAFETY.
    let (text, finder) = unsafe { (values::text(&text), &*finder) };
    u32::from(finder.find(text.as_bytes()).is_some())
}

/// An element of an array variable; NULL outside of it.
pub(crate) unsafe extern "C" fn element(
    context: *mut Context<'_>,
    variable: u32,
    subscript: i64,
    kind: u64,
    out: *mut Cell,
) -> u32 {
    guard(context, |context| {
        let array = context.machine.boxed(VariableId(variable));
        let item = match array {
            Datum::Array(array) => {
                let at = subscript - i64::from(array.lower);
                usize::try_from(at).ok().and_then(|at| array.items.get(at)).cloned()
            }
            _ => None,
        };
        // SAFETY: generated code passes room for a cell.
        unsafe { *out = context.cell(item.unwrap_or(Datum::NULL), Kind::from_code(kind))? };
        Ok(OK)
    })
}

/// Puts the transaction's time, in microseconds since 1970, where generated code reads it.
pub(crate) unsafe extern "C" fn now(context: *mut Context<'_>) -> u32 {
    guard(context, |context| {
        context.now = expr::Frame::now(&mut context.machine);
        Ok(OK)
    })
}
