//! EXPLAIN: where a statement runs, and how it finds its rows.

use std::sync::Arc;

use albireo_base::{SqlError, Value};
use albireo_procedure::expr::{Expr, ExprKind};
use albireo_procedure::plan::tree::AccessInfo;
use albireo_sql::ast::Statement;

use super::bind::Bound;
use super::home::Home;
use super::road::Road;
use super::run::Tried;
use crate::routines::Limits;
use crate::{Database, Outcome};

impl Database {
    /// The plan of a statement that runs here, a line each, with what it did if it is to run (`analyze`);
    /// `None` if it takes the other road.
    pub(crate) fn explain_statement(
        &self,
        statement: &Statement,
        text: &str,
        analyze: Option<&Limits>,
    ) -> Result<Option<Vec<String>>, SqlError> {
        let _fixed = self.inner.definitions.read();
        let library = self.library();
        let values: &[Value] = &[];
        // Not kept: the text is that of EXPLAIN.
        let bound = Bound::new(&library, statement, text, values, self.inner.partitions.count())?;
        let bound = Arc::new(bound);
        let road = self.inner.statements.forced().unwrap_or_else(|| Road::of(&bound));
        if road == Road::Analytical {
            return Ok(None);
        }
        let mut lines = bound.explain();
        if let Some(limits) = analyze {
            match self.run_bound(&bound, values, limits, None) {
                Tried::Ran(Outcome::Rows(rows)) => {
                    let time = rows.execution.as_secs_f64() * 1e3;
                    lines.push(format!("{} rows in {time:.3} ms", rows.row_count()));
                }
                Tried::Ran(Outcome::Done { tag, .. }) => lines.push(tag),
                Tried::Failed(error) | Tried::Not(Some(error)) => return Err(error),
                Tried::Not(None) => return Ok(None),
            }
        }
        Ok(Some(lines))
    }
}

impl Bound {
    /// Where it runs on live rows, and how it finds them.
    pub(crate) fn explain(&self) -> Vec<String> {
        let mut lines = vec![head(self)];
        for access in self.work.accesses() {
            let line = format!("  {}", access_line(access));
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines
    }
}

fn head(bound: &Bound) -> String {
    let place = match &bound.home {
        Home::Partition(partition) => format!("partition {partition}"),
        Home::Keys(keys) => format!("partition by {}", parameters(bound, keys)),
        Home::Any => "any partition".to_owned(),
        Home::All => "all partitions (crossing)".to_owned(),
    };
    let mut indexes: Vec<&str> = Vec::new();
    for index in bound.work.accesses().iter().filter_map(|access| access.index.as_deref()) {
        if !indexes.contains(&index) {
            indexes.push(index);
        }
    }
    match indexes.as_slice() {
        [] => format!("transactional, {place}"),
        [one] => format!("transactional, {place}, index {one}"),
        several => format!("transactional, {place}, indexes {}", several.join(", ")),
    }
}

/// `$1`, or several, that say the partition.
fn parameters(bound: &Bound, keys: &[AccessInfo]) -> String {
    let mut names: Vec<String> = Vec::new();
    let mut see = |part: &Expr| {
        if let ExprKind::Variable(id) = part.kind
            && let Some(at) = bound.around.parameters.iter().position(|parameter| *parameter == id)
        {
            let name = format!("${}", at + 1);
            if !names.contains(&name) {
                names.push(name);
            }
        }
    };
    keys.iter().filter_map(|key| key.partition.as_ref()).for_each(|key| key.walk(&mut see));
    names.join(", ")
}

fn access_line(access: &AccessInfo) -> String {
    let table = &access.table;
    let does = match (&access.index, access.kind.writes()) {
        (None, true) => return format!("writes {}", table.name),
        (_, true) => "changes",
        (_, false) => "reads",
    };
    let columns: Vec<&str> = access.equal.iter().map(|id| table.column_def(*id).name.as_str()).collect();
    match &access.index {
        None => format!("{does} all rows of {}", table.name),
        Some(index) if columns.is_empty() => format!("{does} {} by {index}", table.name),
        Some(index) => format!("{does} {} by {index} ({})", table.name, columns.join(", ")),
    }
}
