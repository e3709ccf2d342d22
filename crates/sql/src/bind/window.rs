//! Windows that refer to others: `OVER (w ORDER BY x)` and `WINDOW v AS (w ORDER BY x)`, of which the
//! engine would forget `w`.
//!
//! Responsible for: copying what a window takes over from the one it names, and PostgreSQL's errors.
//! Not responsible for: `OVER w`, which the engine knows, and the expressions in windows.

use albireo_base::{SqlError, SqlState};
use sqlparser::ast::{Ident, NamedWindowDefinition, NamedWindowExpr, WindowSpec};

use super::Binder;
use crate::names;

impl Binder<'_> {
    /// Completes the windows of a WINDOW clause, each by those before it, and keeps them for
    /// [`Binder::complete_window`].
    pub(super) fn define_windows(
        &mut self,
        definitions: &mut [NamedWindowDefinition],
    ) -> Result<(), SqlError> {
        for NamedWindowDefinition(ident, definition) in definitions {
            let name = names::fold(ident);
            if self.windows.iter().any(|(other, _)| *other == name) {
                let message = format!("window \"{name}\" is already defined");
                return Err(self.error(SqlState::WINDOWING_ERROR, message, ident.span));
            }
            let spec = match definition {
                NamedWindowExpr::NamedWindow(other) => self.named_window(other)?.clone(),
                NamedWindowExpr::WindowSpec(spec) => {
                    self.complete_window(spec)?;
                    spec.clone()
                }
            };
            self.windows.push((name, spec));
        }
        Ok(())
    }

    /// Puts into a window what it takes over from the one it names.
    ///
    /// # Errors
    /// 42704: there is no such window. 42P20: it would override a clause, or copy a frame.
    pub(super) fn complete_window(&self, spec: &mut WindowSpec) -> Result<(), SqlError> {
        let Some(ident) = spec.window_name.take() else { return Ok(()) };
        let base = self.named_window(&ident)?;
        let name = names::fold(&ident);
        let refused = if !spec.partition_by.is_empty() {
            format!("cannot override PARTITION BY clause of window \"{name}\"")
        } else if !spec.order_by.is_empty() && !base.order_by.is_empty() {
            format!("cannot override ORDER BY clause of window \"{name}\"")
        } else if base.window_frame.is_some() {
            format!("cannot copy window \"{name}\" because it has a frame clause")
        } else {
            spec.partition_by.clone_from(&base.partition_by);
            if spec.order_by.is_empty() {
                spec.order_by.clone_from(&base.order_by);
            }
            return Ok(());
        };
        Err(self.error(SqlState::WINDOWING_ERROR, refused, ident.span))
    }

    fn named_window(&self, ident: &Ident) -> Result<&WindowSpec, SqlError> {
        let name = names::fold(ident);
        let found = self.windows.iter().find(|(other, _)| *other == name);
        found.map(|(_, spec)| spec).ok_or_else(|| {
            let message = format!("window \"{name}\" does not exist");
            self.error(SqlState::UNDEFINED_OBJECT, message, ident.span)
        })
    }
}
