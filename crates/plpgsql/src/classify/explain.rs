//! EXPLAIN PROCEDURE: a routine's class and its statements with their access paths.

use albireo_base::ColumnId;

use super::part::{each_call, each_sql};
use super::routing::named;
use super::source::shown;
use super::{Class, Key, RoutingClass, Verdict, inputs_of};
use crate::body::{Routine, Routines};
use crate::plan::tree::{AccessInfo, AccessKind};
use crate::types::Type;

/// The text, a line each. `execution` says how it is run.
pub fn explain(
    routine: &Routine,
    version: u32,
    class: &Class,
    sterile: &Verdict,
    execution: &str,
    routines: &dyn Routines,
) -> Vec<String> {
    let signature = &routine.signature;
    let mut lines = vec![format!("{} {}, version {version}", signature.kind.word(), signature.shown())];
    let inputs = inputs_of(routine);
    lines.push(class_line(&class.routing, &inputs));
    lines.push(route_line(&class.routing, &inputs));
    let verdicts = [
        ("read-only", &class.read_only),
        ("sterile", sterile),
        ("one-shot", &class.one_shot),
        ("two-phase", &class.two_phase),
        ("repeatable", &class.repeatable),
    ];
    for (name, verdict) in verdicts {
        let word = if verdict.holds { "yes" } else { "no" };
        lines.push(format!("{name}: {word}, {}", verdict.why));
    }
    lines.push(execution.to_owned());
    each_sql(routine, &mut |verb, line, accesses| {
        lines.push(line.map_or_else(|| verb.to_owned(), |line| format!("line {line}: {verb}")));
        lines.extend(accesses.iter().map(|access| format!("  {}", access_line(access, routine))));
    });
    let mut called = Vec::new();
    each_call(routine, &mut |id| {
        if !called.contains(&id) {
            called.push(id);
            lines.extend(routines.signature(id).map(|callee| format!("calls {}", callee.shown())));
        }
    });
    lines
}

fn class_line(routing: &RoutingClass, inputs: &[(String, Type)]) -> String {
    let class = match routing {
        RoutingClass::Partition { place, .. } => format!("partition of {}", named(&place.key, inputs)),
        RoutingClass::Probably { place, .. } => {
            format!("probably partition of {}", named(&place.key, inputs))
        }
        RoutingClass::Anywhere { .. } => "any partition".to_owned(),
        RoutingClass::Crossing { .. } => "crossing".to_owned(),
    };
    format!("class: {class}; {}", routing.why())
}

fn route_line(routing: &RoutingClass, inputs: &[(String, Type)]) -> String {
    let place = match routing {
        RoutingClass::Anywhere { .. } => return "route: any partition".to_owned(),
        RoutingClass::Crossing { .. } => return "route: all partitions".to_owned(),
        RoutingClass::Partition { place, .. } | RoutingClass::Probably { place, .. } => place,
    };
    let by = match &place.key {
        Key::Argument(number) => format!("argument {} ({})", number + 1, named(&place.key, inputs)),
        other => format!("always {}", named(other, inputs)),
    };
    match routing {
        RoutingClass::Probably { .. } => {
            format!("route: by {by}; over all partitions once it reaches another")
        }
        _ => format!("route: by {by}"),
    }
}

fn access_line(access: &AccessInfo, routine: &Routine) -> String {
    let table = &access.table;
    let name = |column: ColumnId| table.column_def(column).name.as_str();
    let kind = match access.kind {
        AccessKind::Read => "read",
        AccessKind::Change => "write",
        AccessKind::Insert => "insert",
        AccessKind::Move => "new partition",
    };
    let mut line = format!("{}: {kind}", table.name);
    if let Some(index) = &access.index {
        let mut columns: Vec<String> = access.equal.iter().map(|column| name(*column).to_owned()).collect();
        columns.extend(access.range.map(|column| format!("range of {}", name(column))));
        line.push_str(&match columns.is_empty() {
            true => format!(", index {index} in its order"),
            false => format!(", index {index} ({})", columns.join(", ")),
        });
    } else if matches!(access.kind, AccessKind::Read | AccessKind::Change) {
        line.push_str(", all rows");
    }
    line.push_str(&match &access.partition {
        _ if table.is_shared() && access.kind.writes() => ", shared by all partitions".to_owned(),
        _ if table.is_shared() => ", shared".to_owned(),
        Some(by) => format!(", partition by {}", shown(by, Some(routine), &access.columns)),
        None if access.kind == AccessKind::Insert => ", partition by the values of other rows".to_owned(),
        None => ", all partitions".to_owned(),
    });
    line
}
