//! EXPLAIN: where a statement runs, how it finds its rows, and why on this path.

use albireo_base::{SqlError, Value};
use albireo_execute::Execution;
use albireo_partition::{Call, Route};
use albireo_semantics::datum::Datum;
use albireo_semantics::expr::{Expr, ExprKind};
use albireo_semantics::query::tree::{AccessInfo, AccessKind};
use albireo_sql::ast::Statement;

use super::bind::{Bound, Parsed};
use super::cache::Entry;
use super::live::Live;
use super::path::{Costs, ExecutionPath, Extent};
use super::routing::Routing;
use super::run::{Attempt, Explained, Judged, abort};
use crate::routines::Limits;
use crate::{Database, Outcome};

impl Database {
    /// The plan of a statement that runs as a transaction now, a line each, with what it did if it is to run
    /// (`analyze`), or why it takes the other path.
    ///
    /// # Errors
    /// It cannot run here at all.
    pub(crate) fn explain_statement(
        &self,
        statement: &Statement,
        text: &str,
        limits: &Limits,
        analyze: bool,
    ) -> Result<Explained, SqlError> {
        let generation = self.inner.definitions.read();
        // Not kept: the text is that of EXPLAIN.
        let entry = Entry::new(
            &self.library(),
            Parsed::Statement(statement),
            text,
            &[],
            *generation,
            Some(&self.sources()),
        );
        let bound = entry.bound.as_ref().map_err(Clone::clone)?;
        let live = entry.live(self.inner.partitions.count())?;
        let statements = &self.inner.statements;
        let mut judged = self.judge(bound, live, limits)?;
        if let Some(left) = statements.overruns(explained_text(text), *generation).filter(|left| *left > 0)
            && live.extent == Extent::Estimated
        {
            let why = format!(
                "  path: it read more than expected as a transaction; the next {left} times it is not begun as one"
            );
            judged = (ExecutionPath::Analytical, why);
        }
        let (path, reason) = judged;
        if path == ExecutionPath::Analytical {
            return Ok(Explained::Elsewhere(reason));
        }
        let mut lines = live.explain(bound);
        lines.push(reason);
        if analyze {
            let values: &[Value] = &[];
            let arguments = bound.arguments(values)?;
            match self.run_live(bound, live, &arguments, Judged::Runs, limits) {
                Attempt::Ran(Outcome::Rows(rows)) => {
                    let time = rows.execution.as_secs_f64() * 1e3;
                    lines.push(format!("{} rows in {time:.3} ms", rows.row_count()));
                }
                Attempt::Ran(Outcome::Done { tag, .. }) => lines.push(tag.into_owned()),
                Attempt::Failed(error) | Attempt::Not(Some(error)) => return Err(error),
                Attempt::Not(None) => return Ok(Explained::Elsewhere(String::new())),
            }
        }
        Ok(Explained::Here(lines))
    }

    /// The path that a statement takes now, and why in a line.
    fn judge(
        &self,
        bound: &Bound,
        live: &Live,
        limits: &Limits,
    ) -> Result<(ExecutionPath, String), SqlError> {
        let here = |why: String| Ok((ExecutionPath::Transactional, format!("  path: {why}")));
        if let Some(path) = self.inner.statements.forced() {
            return Ok((path, "  path: forced".to_owned()));
        }
        match live.extent {
            Extent::Whatever => here("only transactions call routines".to_owned()),
            Extent::Keys(0) => here("it reads no rows".to_owned()),
            Extent::Keys(1) => here("it reads one row at most".to_owned()),
            Extent::Keys(most) => here(format!("it reads {most} rows at most")),
            Extent::Unknown => {
                let why = "  path: nothing tells how many rows a transaction would read";
                Ok((ExecutionPath::Analytical, why.to_owned()))
            }
            Extent::Estimated => {
                let costs = self.estimated(bound, live, limits)?;
                let path = costs.path(live.most_rows());
                Ok((path, format!("  path: {}", in_words(&costs))))
            }
        }
    }

    /// What it would cost now. Of parameters nothing is known.
    fn estimated(&self, bound: &Bound, live: &Live, limits: &Limits) -> Result<Costs, SqlError> {
        let given = bound.around.parameters.is_empty();
        let nothing = vec![Datum::NULL; bound.around.parameters.len()];
        let call = Call::new(Route::Crossing, "EXPLAIN");
        let estimate = self.inner.partitions.transact(&call, |tx| {
            let mut execution = Execution::new(tx, &bound.library.catalog, &limits.interrupts);
            live.estimate(bound, &mut execution, &nothing, given).map_err(abort)
        });
        let estimate = estimate.map_err(|error| self.explain_call(error))?;
        Ok(live.costs(&estimate, u32::MAX))
    }
}

impl Live {
    /// Where it runs on live rows, and how it finds them.
    pub(crate) fn explain(&self, bound: &Bound) -> Vec<String> {
        let mut lines = vec![head(bound, self)];
        for access in self.work.accesses() {
            let line = format!("  {}", access_line(access));
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines
    }
}

/// The statement in the text of an EXPLAIN.
fn explained_text(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        let word = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let skipped = match rest[..word].to_ascii_lowercase().as_str() {
            "explain" | "analyze" | "verbose" => word,
            "" if rest.starts_with('(') => rest.find(')').map_or(rest.len(), |at| at + 1),
            _ => return rest,
        };
        rest = rest[skipped..].trim_start();
    }
}

fn in_words(costs: &Costs) -> String {
    let ms = |ns: f64| ns / 1e6;
    let away = match costs.fetched < 0.5 {
        true => String::new(),
        false => format!("; about {:.0} chunks with them are not in memory", costs.fetched),
    };
    format!(
        "about {:.0} rows would take {:.3} ms as a transaction, {:.3} ms on a snapshot{away}",
        costs.rows,
        ms(costs.transactional_ns),
        ms(costs.analytical_ns)
    )
}

fn head(bound: &Bound, live: &Live) -> String {
    let place = match &live.routing {
        Routing::Partition(partition) => format!("partition {partition}"),
        Routing::Keys(keys) => format!("partition by {}", parameters(bound, keys)),
        Routing::Any => "any partition".to_owned(),
        Routing::All => "all partitions (crossing)".to_owned(),
        Routing::Classes(_) => "where its routines say".to_owned(),
    };
    let mut indexes: Vec<&str> = Vec::new();
    for index in live.work.accesses().iter().filter_map(|access| access.index.as_deref()) {
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
        (None, true) if access.kind != AccessKind::Change => {
            return format!("writes {}", table.name);
        }
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
