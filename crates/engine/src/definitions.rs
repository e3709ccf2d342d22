//! Who may change the catalog and the routines, and when.
//!
//! ```text
//! statements        read ─────────────────── keep the definitions as they are while they run
//! a change of them  begin ─► ... ─► write ── one at a time; alone only to put the new ones in place
//! ```
//!
//! I-1 Between `begin` and `write` the definitions are those that `begin` found: whoever changes them begins.
//! I-2 Nobody stands in line behind a change that waits for a long statement: it asks for a moment, and lets others
//! through for ten times as long.

use std::time::Duration;

use albireo_base::SqlError;
use albireo_execute::Interrupts;
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// How long a change stands in line, and how long it then lets others through.
const IN_LINE: Duration = Duration::from_millis(1);
const ASIDE: Duration = Duration::from_millis(10);

/// The lock of the definitions, and how often they may have changed.
#[derive(Default)]
pub(crate) struct Definitions {
    generation: RwLock<u64>,
    changing: Mutex<()>,
}

/// Somebody is about to change them, and nobody else.
pub(crate) struct Changing<'d> {
    definitions: &'d Definitions,
    _alone: MutexGuard<'d, ()>,
}

impl Definitions {
    /// Keeps them as they are; the guard is their generation.
    #[inline]
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, u64> {
        self.generation.read()
    }

    /// As [`Definitions::read`], if nobody changes them or waits to.
    pub(crate) fn try_read(&self) -> Option<RwLockReadGuard<'_, u64>> {
        self.generation.try_read()
    }

    /// Begins to change them, once those have ended who began before.
    ///
    /// # Errors
    /// 57014 if it is to end before.
    pub(crate) fn begin(&self, interrupts: &Interrupts) -> Result<Changing<'_>, SqlError> {
        loop {
            if let Some(alone) = self.changing.try_lock_for(ASIDE) {
                return Ok(Changing { definitions: self, _alone: alone });
            }
            interrupts.check()?;
        }
    }
}

impl<'d> Changing<'d> {
    /// Alone, to put the new ones in place: the next generation. While statements run that keep the present ones,
    /// `meanwhile` is called again and again.
    ///
    /// # Errors
    /// 57014 if it is to end before; those of `meanwhile`.
    pub(crate) fn write(
        &self,
        interrupts: &Interrupts,
        mut meanwhile: impl FnMut() -> Result<(), SqlError>,
    ) -> Result<RwLockWriteGuard<'d, u64>, SqlError> {
        loop {
            if let Some(mut generation) = self.definitions.generation.try_write_for(IN_LINE) {
                *generation += 1;
                return Ok(generation);
            }
            interrupts.check()?;
            meanwhile()?;
            interrupts.clock.sleep(ASIDE);
        }
    }
}
