//! Where the variables of a routine are while generated code runs it.

use albireo_plpgsql::body::{Place, Routine};
use albireo_semantics::expr::VariableId;

use super::kind::Kind;

/// Where a variable is.
#[derive(Clone, Debug)]
pub(super) enum Slot {
    /// In a cell.
    Cell(CellSlot),
    /// A row: each field in a cell.
    Fields(Vec<CellSlot>),
    /// An array: its number, and what its elements are.
    Array(u32, Kind),
    /// Among the interpreter's variables.
    Boxed,
}

/// A cell of the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CellSlot {
    /// Its number.
    pub(super) at: u32,
    /// What it holds.
    pub(super) kind: Kind,
}

/// The frame of a routine.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    slots: Vec<Slot>,
    /// How many cells there are.
    pub(super) cells: usize,
    /// How many arrays there are.
    pub(super) arrays: usize,
    /// Whether a variable is among the interpreter's.
    pub(super) boxes: bool,
}

impl Frame {
    pub(super) fn of(routine: &Routine) -> Self {
        let mut frame = Self { slots: Vec::new(), cells: 0, arrays: 0, boxes: false };
        for variable in &routine.variables {
            let slot = match &variable.place {
                Place::Row(row) => {
                    // A record may hold rows of several queries, whose numbers have different digits.
                    let kind = |field: &Place| field.scalar().map_or(Kind::Boxed, Kind::of_scalar);
                    let kinds: Vec<Kind> = row.fields.iter().map(kind).collect();
                    match kinds.contains(&Kind::Boxed) {
                        true => Slot::Boxed,
                        false => Slot::Fields(kinds.into_iter().map(|kind| frame.cell(kind)).collect()),
                    }
                }
                Place::Array(element) => match element.scalar().map(Kind::of_scalar) {
                    None | Some(Kind::Boxed) => Slot::Boxed,
                    Some(kind) => {
                        frame.arrays += 1;
                        Slot::Array(frame.arrays as u32 - 1, kind)
                    }
                },
                place => match Kind::of_place(place) {
                    Kind::Boxed => Slot::Boxed,
                    kind => Slot::Cell(frame.cell(kind)),
                },
            };
            frame.boxes |= matches!(slot, Slot::Boxed);
            frame.slots.push(slot);
        }
        frame
    }

    fn cell(&mut self, kind: Kind) -> CellSlot {
        let at = self.cells as u32;
        self.cells += 1;
        CellSlot { at, kind }
    }

    /// Where a variable is.
    pub(super) fn slot(&self, variable: VariableId) -> &Slot {
        self.slots.get(variable.0 as usize).unwrap_or(&Slot::Boxed)
    }

    /// All variables with where they are.
    pub(super) fn slots(&self) -> impl Iterator<Item = (VariableId, &Slot)> {
        self.slots.iter().enumerate().map(|(n, slot)| (VariableId(n as u32), slot))
    }
}
