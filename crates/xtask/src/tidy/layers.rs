//! Layering: a crate uses crates of lower tiers only, and DataFusion is reached through `olap` alone.

use super::Finding;
use super::workspace::{Crate, Workspace};
use std::collections::BTreeSet;

/// Every crate's tier by its directory; dependencies point down.
const TIERS: &[(&str, u8)] = &[
    ("base", 0),
    ("encoding", 0),
    ("env", 1),
    ("redo", 1),
    ("storage", 1),
    ("allocator", 2),
    ("sql", 2),
    ("files", 2),
    ("partition", 2),
    ("semantics", 3),
    ("archive", 3),
    ("plpgsql", 4),
    ("olap", 4),
    ("execute", 5),
    ("compile", 6),
    ("engine", 7),
    ("bench", 8),
    ("cli", 9),
    ("sim", 9),
];

/// Dependencies allowed within one tier.
const SAME_TIER: &[(&str, &str)] = &[("storage", "env"), ("redo", "env")];

/// Stands alone: uses no crate of ours, and none of ours uses it.
const ALONE: &str = "xtask";

/// Uses no crate of ours; every one may use it, for its tests.
const TESTING: &str = "testing";

/// The only crate that may name DataFusion.
const ANALYTICAL: &str = "olap";

pub fn check(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (directory, member) in &workspace.crates {
        if ![ALONE, TESTING].contains(&directory.as_str()) && tier(directory).is_none() {
            let message = "is not in the tier table of xtask's layers.rs; give it a tier";
            findings.push(Finding::new("layers", directory, message));
        }
        findings.extend(check_dependencies(workspace, directory, member));
        findings.extend(check_testing(workspace, directory, member));
        if directory != ANALYTICAL {
            findings.extend(check_datafusion(workspace, directory, member));
        }
    }
    for (directory, _) in TIERS {
        if !workspace.crates.contains_key(*directory) {
            let message = "is in the tier table of xtask's layers.rs but not in the workspace";
            findings.push(Finding::new("layers", *directory, message));
        }
    }
    findings
}

fn tier(directory: &str) -> Option<u8> {
    TIERS.iter().find(|(name, _)| *name == directory).map(|(_, tier)| *tier)
}

fn check_dependencies(workspace: &Workspace, directory: &str, member: &Crate) -> Vec<Finding> {
    let allowed = |used: &str| {
        ![ALONE, TESTING].contains(&directory)
            && used != ALONE
            && (used == TESTING || tier(used) < tier(directory) || SAME_TIER.contains(&(directory, used)))
    };
    let ours = workspace.crates.iter().filter(|(_, other)| member.dependencies.contains(&other.package));
    ours.filter(|(used, _)| !allowed(used))
        .map(|(used, _)| {
            let message = format!("uses `{used}`, which is not in a lower tier");
            Finding::new("layers", directory, message)
        })
        .collect()
}

/// Outside of tests nobody uses the crate for tests; `graph` has no development dependencies.
fn check_testing(workspace: &Workspace, directory: &str, member: &Crate) -> Option<Finding> {
    let testing = &workspace.crates.get(TESTING)?.id;
    let uses = workspace.graph.get(&member.id).is_some_and(|(_, needs)| needs.contains(testing));
    uses.then(|| Finding::new("layers", directory, format!("uses `{TESTING}` outside of its tests")))
}

/// Walks everything `member` needs without going through `olap`.
fn check_datafusion(workspace: &Workspace, directory: &str, member: &Crate) -> Option<Finding> {
    let is_datafusion = |name: &str| name == "datafusion" || name.starts_with("datafusion-");
    let analytical = workspace.crates.get(ANALYTICAL).map(|olap| olap.id.as_str());
    if let Some(name) = member.dependencies.iter().find(|name| is_datafusion(name)) {
        return Some(Finding::new("layers", directory, format!("names `{name}`; only `olap` may")));
    }
    let mut seen = BTreeSet::new();
    let mut waiting = vec![member.id.as_str()];
    while let Some(id) = waiting.pop() {
        if Some(id) == analytical || !seen.insert(id) {
            continue;
        }
        let Some((name, needs)) = workspace.graph.get(id) else { continue };
        if is_datafusion(name) {
            let message = format!("reaches `{name}` around `olap`");
            return Some(Finding::new("layers", directory, message));
        }
        waiting.extend(needs.iter().map(String::as_str));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace with all crates of the tier table and the given dependencies between packages;
    /// names without a directory are packages from outside.
    fn workspace(dependencies: &[(&str, &str)]) -> Workspace {
        let mut workspace = Workspace::default();
        let directories = TIERS.iter().map(|(directory, _)| *directory).chain([ALONE, TESTING]);
        for directory in directories {
            let member = Crate { id: directory.into(), package: directory.into(), ..Crate::default() };
            workspace.crates.insert(directory.to_owned(), member);
        }
        for (from, to) in dependencies {
            if let Some(member) = workspace.crates.get_mut(*from) {
                member.dependencies.push((*to).to_owned());
            }
            let node = |name: &str| (name.to_owned(), Vec::new());
            workspace.graph.entry((*to).to_owned()).or_insert_with(|| node(to));
            let from = workspace.graph.entry((*from).to_owned()).or_insert_with(|| node(from));
            from.1.push((*to).to_owned());
        }
        workspace
    }

    fn messages(dependencies: &[(&str, &str)]) -> Vec<String> {
        check(&workspace(dependencies)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn dependencies_that_point_down_pass() {
        let fine = [("storage", "env"), ("sql", "base"), ("olap", "datafusion"), ("engine", "olap")];
        assert_eq!(messages(&fine), [] as [String; 0]);
    }

    #[test]
    fn dependency_that_points_up_or_sideways_is_found() {
        assert_eq!(messages(&[("storage", "sql")]).len(), 1);
        assert_eq!(messages(&[("env", "storage")]).len(), 1);
        assert_eq!(messages(&[("olap", "plpgsql")]).len(), 1);
        assert_eq!(messages(&[("xtask", "base")]).len(), 1);
        assert_eq!(messages(&[("cli", "xtask")]).len(), 1);
        assert_eq!(messages(&[("testing", "base")]).len(), 1);
    }

    #[test]
    fn crate_for_tests_used_outside_of_tests_is_found() {
        assert!(messages(&[("base", "testing")])[0].contains("outside of its tests"));
        let mut workspace = workspace(&[]);
        workspace.crates.get_mut("base").unwrap().dependencies.push("testing".to_owned());
        assert_eq!(check(&workspace), []);
    }

    #[test]
    fn datafusion_named_or_reached_outside_olap_is_found() {
        assert!(messages(&[("engine", "datafusion-common")])[0].contains("only `olap` may"));
        let around = [("partition", "helper"), ("helper", "datafusion")];
        assert!(messages(&around)[0].contains("around `olap`"));
    }

    #[test]
    fn crate_outside_the_tier_table_and_table_entry_without_crate_are_found() {
        let mut workspace = workspace(&[]);
        let member = workspace.crates.remove("sql").unwrap();
        workspace.crates.insert("novel".to_owned(), member);
        let subjects: Vec<_> = check(&workspace).into_iter().map(|finding| finding.subject).collect();
        assert_eq!(subjects, ["novel", "sql"]);
    }
}
