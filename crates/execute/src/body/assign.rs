//! What is assigned to variables, fields and elements.

use std::sync::Arc;

use albireo_base::{SqlError, SqlState, Value};
use albireo_plpgsql::body::{Assignment, Fit, Initial, RowFit, Sink, Target};

use super::Machine;
use crate::Stop;
use crate::datum::{Array, Datum};
use crate::expr::{Expr, Frame, VariableId};
use crate::host::Host;

/// The longest array, as in PostgreSQL.
const MAX_ITEMS: i64 = 134_217_727;

/// Whether an array has more elements than it may.
pub fn too_many_items(items: i64) -> bool {
    items > MAX_ITEMS
}

/// More elements than an array may have.
pub fn too_many() -> SqlError {
    let message = format!("array size exceeds the maximum allowed ({MAX_ITEMS})");
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}

impl Machine<'_> {
    /// Puts a value of the right type into a variable.
    pub(super) fn set(&mut self, id: VariableId, value: Datum) -> Result<(), Stop> {
        let at = id.0 as usize;
        let (Some(variable), Some(place)) = (self.routine.variables.get(at), self.variables.get_mut(at))
        else {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "no such variable").into());
        };
        if value.is_null() {
            if variable.not_null {
                let message = format!(
                    "null value cannot be assigned to variable \"{}\" declared NOT NULL",
                    variable.name
                );
                return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message).into());
            }
            *place = variable.place.initial();
        } else {
            *place = value;
        }
        Ok(())
    }

    /// A value as its target wants it.
    pub(super) fn fit(&mut self, fit: &Fit, value: Datum) -> Result<Datum, Stop> {
        match fit {
            Fit::Same => Ok(value),
            Fit::Cast(scratch, expr) => {
                if let Some(place) = self.variables.get_mut(scratch.0 as usize) {
                    *place = value;
                }
                self.evaluate(expr)
            }
        }
    }

    /// A value, or the fields of a row, as the target wants it.
    pub(super) fn fit_row(&mut self, fit: &RowFit, value: Datum) -> Result<Datum, Stop> {
        match (fit, value) {
            (RowFit::Value(fit), value) => self.fit(fit, value),
            (RowFit::Fields(fits), Datum::Row(fields)) => {
                let mut fitted = Vec::with_capacity(fits.len());
                for (fit, field) in fits.iter().zip(fields.iter()) {
                    fitted.push(self.fit(fit, field.clone())?);
                }
                Ok(Datum::Row(fitted.into()))
            }
            (RowFit::Fields(_), value) => Ok(value),
        }
    }

    pub(super) fn set_initial(&mut self, initial: &Initial) -> Result<(), Stop> {
        match &initial.value {
            Some(assignment) => self.assign(assignment),
            None => {
                self.clear(initial.variable);
                Ok(())
            }
        }
    }

    /// Gives a variable what it holds before anything is assigned to it.
    pub fn clear(&mut self, id: VariableId) {
        let at = id.0 as usize;
        if let (Some(variable), Some(place)) = (self.routine.variables.get(at), self.variables.get_mut(at)) {
            *place = variable.place.initial();
        }
    }

    pub(super) fn assign(&mut self, assignment: &Assignment) -> Result<(), Stop> {
        let subscript = match &assignment.target {
            Target::Element(_, subscript) => Some(self.subscript(subscript)?),
            _ => None,
        };
        let value = self.evaluate(&assignment.value)?;
        let value = self.fit_row(&assignment.fit, value)?;
        match (&assignment.target, subscript) {
            (Target::Element(id, _), Some(subscript)) => self.put_element(*id, subscript, value),
            (target, _) => self.put(target, value),
        }
    }

    /// The subscript of an element that is assigned to.
    fn subscript(&mut self, subscript: &Expr) -> Result<i32, Stop> {
        match self.evaluate(subscript)? {
            Datum::Value(Value::Integer(subscript)) => Ok(subscript),
            _ => {
                let message = "array subscript in assignment must not be null";
                Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message).into())
            }
        }
    }

    /// Puts a value of the right type into a target.
    pub(super) fn put(&mut self, target: &Target, value: Datum) -> Result<(), Stop> {
        match target {
            Target::Variable(id) => {
                let value = self.padded(*id, value);
                self.set(*id, value)
            }
            Target::Field(id, field) => {
                let Some(place @ Datum::Row(_)) = self.variables.get_mut(id.0 as usize) else {
                    return Ok(());
                };
                let Datum::Row(fields) = std::mem::replace(place, Datum::NULL) else { return Ok(()) };
                let mut fields = fields.to_vec();
                if let Some(old) = fields.get_mut(*field) {
                    *old = value;
                }
                *place = Datum::Row(fields.into());
                Ok(())
            }
            Target::Element(id, subscript) => {
                let subscript = self.subscript(subscript)?;
                self.put_element(*id, subscript, value)
            }
        }
    }

    /// A row with as many fields as its variable has.
    fn padded(&self, id: VariableId, value: Datum) -> Datum {
        match (&value, Frame::variable(self, id)) {
            (Datum::Row(fields), Datum::Row(old)) if fields.len() < old.len() => {
                let mut fields = fields.to_vec();
                fields.resize(old.len(), Datum::NULL);
                Datum::Row(fields.into())
            }
            _ => value,
        }
    }

    /// Puts a value of the right type into an element of an array.
    pub fn put_element(&mut self, id: VariableId, subscript: i32, value: Datum) -> Result<(), Stop> {
        let at = id.0 as usize;
        let Some(place) = self.variables.get_mut(at) else { return Ok(()) };
        // An element that is there, of an array that nobody shares.
        if let Datum::Array(array) = place
            && let Some(array) = Arc::get_mut(array)
            && let Ok(index) = usize::try_from(i64::from(subscript) - i64::from(array.lower))
            && let Some(item) = array.items.get_mut(index)
        {
            *item = value;
            return Ok(());
        }
        let mut array = match std::mem::replace(place, Datum::NULL) {
            Datum::Array(array) => array,
            _ => Arc::new(Array { lower: subscript, items: Vec::new() }),
        };
        let lower = if array.items.is_empty() { subscript } else { array.lower };
        let distance = i64::from(subscript) - i64::from(lower);
        let length = array.items.len() as i64;
        let grown = if distance < 0 { length - distance } else { length.max(distance + 1) };
        if too_many_items(grown) {
            self.variables[at] = Datum::Array(array);
            return Err(too_many().into());
        }
        let added = usize::try_from(grown - length).unwrap_or(0);
        if let Err(stop) = self.take_memory(added.saturating_mul(size_of::<Datum>())) {
            self.variables[at] = Datum::Array(array);
            return Err(stop);
        }
        {
            let array = Arc::make_mut(&mut array);
            array.lower = lower.min(subscript);
            if distance < 0 {
                array.items.splice(0..0, std::iter::repeat_n(Datum::NULL, added));
            } else if added > 0 {
                let length = array.items.len();
                array.items.resize(length + added, Datum::NULL);
            }
            let index = usize::try_from(distance.max(0)).unwrap_or(0);
            if let Some(item) = array.items.get_mut(index) {
                *item = value;
            }
        }
        self.variables[at] = Datum::Array(array);
        Ok(())
    }

    /// Puts a row of a query, or none, where it goes.
    pub fn sink(&mut self, sink: &Sink, row: Option<Vec<Datum>>) -> Result<(), Stop> {
        match sink {
            Sink::Row(id, fits) => {
                let Some(row) = row else { return self.set(*id, Datum::NULL) };
                let mut fields = Vec::with_capacity(fits.len());
                for (fit, value) in fits.iter().zip(row) {
                    fields.push(self.fit(fit, value)?);
                }
                let value = self.padded(*id, Datum::Row(fields.into()));
                self.set(*id, value)
            }
            Sink::Targets(targets) => {
                let mut row = row.unwrap_or_default().into_iter();
                for (target, fit) in targets {
                    let value = match row.next() {
                        Some(value) => self.fit(fit, value)?,
                        None => Datum::NULL,
                    };
                    self.put(target, value)?;
                }
                Ok(())
            }
        }
    }
}
