//! CHECK constraints, evaluated row by row where rows change.
//!
//! Transactions run without the analytical engine, so the conditions that a table may have are
//! those that this small evaluator computes exactly as that one does: comparisons, AND, OR, NOT,
//! BETWEEN, IN, IS, LIKE, arithmetic, a few functions. CREATE TABLE refuses everything else.
//!
//! I-1 A condition that CREATE TABLE took evaluates to true, false, NULL or an error for every row;
//! it never panics. False and errors (overflow, division by zero) refuse the row; NULL is met.

mod compile;
mod evaluate;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use albireo_base::{ColumnId, SqlError, Value};
use albireo_sql::TableDef;
use albireo_sql::source::Source;
use albireo_storage::RowCheck;

use evaluate::Node;

/// One constraint, ready to run.
struct Check {
    name: String,
    condition: Node,
}

impl RowCheck for Check {
    fn name(&self) -> &str {
        &self.name
    }

    fn holds(&self, read: &dyn Fn(ColumnId) -> Value) -> bool {
        matches!(self.condition.evaluate(read), Ok(Value::Bool(true) | Value::Null))
    }
}

/// The constraints of a table, which [`validate`] has let pass.
pub(crate) fn checks_of(table: &TableDef) -> Vec<Arc<dyn RowCheck>> {
    let source = Source::new("");
    let check = |def: &albireo_sql::catalog::CheckDef| -> Arc<dyn RowCheck> {
        let condition = compile::condition(table, &def.expr.ast, source);
        // Refusing every row is the safe reading of a condition that nobody can evaluate.
        let condition = condition.unwrap_or(Node::Constant(Value::Bool(false)));
        Arc::new(Check { name: def.name.clone(), condition })
    };
    table.checks.iter().map(check).collect()
}

/// Refuses constraints that cannot be evaluated. `text` is the statement that defines the table.
pub(crate) fn validate(table: &TableDef, text: &str) -> Result<(), SqlError> {
    let source = Source::new(text);
    table.checks.iter().try_for_each(|def| compile::condition(table, &def.expr.ast, source).map(|_| ()))
}
