//! Figures beside what is asked of them, in the form that programs read.

use serde::Serialize;

/// One figure, and whether it is what it must be.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Shown {
    /// What it is.
    pub what: String,
    /// In which unit.
    pub unit: &'static str,
    /// How much.
    pub value: f64,
    /// What it must be: at most, if `aim` is less, else at least.
    pub at_least: f64,
    /// What it should be.
    pub aim: f64,
    /// Whether it is what it must be.
    pub holds: bool,
    /// Of how much it was measured, where that is worth saying.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<String>,
}

impl Shown {
    /// A figure of which `at_least` is asked.
    pub fn new(what: impl Into<String>, unit: &'static str, value: f64, at_least: f64, aim: f64) -> Self {
        let holds = if aim < at_least { value <= at_least } else { value >= at_least };
        Self { what: what.into(), unit, value, at_least, aim, holds, scale: None }
    }
}
