//! Documents that speak of the code: the crate map, the paths and commands they name.

use super::Finding;
use super::tree::File;
use super::workspace::Workspace;
use std::collections::BTreeSet;

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const ARCHITECTURE_LINES: usize = 400;
const README: &str = "README.md";
const CI: &str = ".ci/run";

/// The two commands that README.md promises; `.ci/run` runs the second.
const MAIN_JOB: &str = "cargo run --release -- bench ch";
const ALL_TESTS: &str = "cargo test --workspace";

/// What a reader needs beside cargo itself, and subcommands that cargo has.
const TOOLS: &[&str] = &["git", "cd", "rustup", "curl"];
const CARGO: &[&str] = &["bench", "build", "check", "clippy", "doc", "fmt", "install", "run", "test"];
const XTASK: &[&str] = &["tidy", "sanitize", "explore", "simulate", "package", "picture"];

pub fn check(files: &[File], workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    match files.iter().find(|file| file.path == ARCHITECTURE) {
        Some(file) => {
            findings.extend(check_map(file, workspace));
            findings.extend(check_reasons(file, files, workspace));
        }
        None => findings.push(Finding::new("documents", ARCHITECTURE, "is missing")),
    }
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        findings.extend(check_paths(file, files));
        findings.extend(check_commands(file, files));
    }
    findings.extend(check_promises(files));
    findings
}

/// Every crate has a section ``### `crates/name` `` with an invariant, and every section a crate.
fn check_map(file: &File, workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = file.text.lines().count();
    if lines > ARCHITECTURE_LINES {
        let message = format!("{lines} lines; {ARCHITECTURE_LINES} is the limit");
        findings.push(Finding::new("documents", ARCHITECTURE, message));
    }
    let mut mapped = BTreeSet::new();
    for section in file.text.split("\n### `crates/").skip(1) {
        let Some((name, body)) = section.split_once('`') else { continue };
        mapped.insert(name);
        let body = body.split("\n## ").next().unwrap_or(body);
        if !body.contains("**Invariant:**") {
            let message = format!("the section of `crates/{name}` states no **Invariant:**");
            findings.push(Finding::new("documents", ARCHITECTURE, message));
        }
    }
    for name in workspace.crates.keys().filter(|name| !mapped.contains(name.as_str())) {
        let message = format!("the code map has no section ### `crates/{name}`");
        findings.push(Finding::new("documents", ARCHITECTURE, message));
    }
    for name in mapped.into_iter().filter(|name| !workspace.crates.contains_key(*name)) {
        let message = format!("the code map describes `crates/{name}`, which is gone");
        findings.push(Finding::new("documents", ARCHITECTURE, message));
    }
    findings
}

/// Every dependency on a crate of somebody else has a user and stands with a reason under `## ... Dependencies`, and
/// only those.
fn check_reasons(file: &File, files: &[File], workspace: &Workspace) -> Vec<Finding> {
    let manifest = files.iter().find(|file| file.path == "Cargo.toml").map_or("", |file| &file.text);
    let section = manifest.split("[workspace.dependencies]").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    let used: BTreeSet<&str> = section
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_alphabetic()))
        .filter_map(|line| line.split([' ', '=', '.']).next())
        .filter(|name| !name.starts_with("albireo"))
        .collect();
    let table = file.text.split("Dependencies\n").nth(1).unwrap_or_default();
    // The first cell of a row: names in backquotes, the odd parts.
    let cells = table.lines().filter_map(|line| line.strip_prefix("| `")?.split('|').next());
    let explained: BTreeSet<&str> = cells.flat_map(|cell| cell.split('`').step_by(2)).collect();
    let explained: BTreeSet<&str> = explained.into_iter().filter(|name| !name.trim().is_empty()).collect();
    let lacking =
        used.difference(&explained).map(|name| format!("gives no reason for the dependency `{name}`"));
    let idle =
        explained.difference(&used).map(|name| format!("gives a reason for `{name}`, which is not used"));
    let is_needed =
        |name: &str| workspace.crates.values().any(|member| member.dependencies.iter().any(|d| d == name));
    let needless = used.iter().filter(|name| !is_needed(name));
    let needless = needless.map(|name| {
        Finding::new(
            "documents",
            "Cargo.toml",
            format!("no crate uses `{name}` of the workspace's dependencies"),
        )
    });
    let here = lacking.chain(idle).map(|message| Finding::new("documents", ARCHITECTURE, message));
    here.chain(needless).collect()
}

/// Every path in backquotes that starts like one of ours is there.
fn check_paths(file: &File, files: &[File]) -> Vec<Finding> {
    let exists = |path: &str| {
        let below = format!("{}/", path.trim_end_matches('/'));
        files.iter().any(|file| file.path == path || file.path.starts_with(&below))
    };
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        // Between backquotes are the odd parts.
        for path in line.split('`').skip(1).step_by(2) {
            let is_ours = path.starts_with("crates/") || path.starts_with(".ci/");
            if is_ours && !path.contains(['*', ' ']) && !exists(path) {
                let message = format!("names `{path}`, which is not there");
                findings.push(Finding::new("documents", &file.path, message).at(index + 1));
            }
        }
    }
    findings
}

/// Every command in a block marked `sh` or `console` is one that we know to exist.
fn check_commands(file: &File, files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, command) in commands(&file.text) {
        let words: Vec<&str> = command.split_whitespace().collect();
        let known = match words.as_slice() {
            ["cargo", "xtask", task, ..] => XTASK.contains(task),
            ["cargo", subcommand, ..] => CARGO.contains(subcommand),
            ["albireo", ..] => true, // The program's own tests parse these.
            [tool, ..] => TOOLS.contains(tool) || files.iter().any(|file| file.path == *tool),
            [] => true,
        };
        if !known {
            let message = format!("`{command}` is not a command we know to exist");
            findings.push(Finding::new("documents", &file.path, message).at(line));
        }
    }
    findings
}

fn check_promises(files: &[File]) -> Vec<Finding> {
    let text = |path: &str| files.iter().find(|file| file.path == path).map_or("", |file| &file.text);
    let promised = |command: &str| commands(text(README)).iter().any(|(_, line)| line.starts_with(command));
    let mut findings = Vec::new();
    for command in [MAIN_JOB, ALL_TESTS] {
        if !promised(command) {
            findings.push(Finding::new("documents", README, format!("lacks the command `{command}`")));
        }
    }
    if !text(CI).contains(ALL_TESTS) {
        findings.push(Finding::new("documents", CI, format!("does not run README's `{ALL_TESTS}`")));
    }
    findings
}

/// Lines of the blocks marked `sh` or `console`, without prompt and comment, with their numbers.
fn commands(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut inside = None;
    for (index, line) in text.lines().enumerate() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            inside = if inside.is_some() { None } else { Some(language.trim()) };
            continue;
        }
        let command = match inside {
            Some("sh") => line,
            // Lines without a prompt are output there.
            Some("console") => match line.strip_prefix("$ ") {
                Some(command) => command,
                None => continue,
            },
            _ => continue,
        };
        let command = command.split(" #").next().unwrap_or(command).trim();
        if !command.is_empty() && !command.starts_with('#') {
            found.push((index + 1, command));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::workspace::Crate;
    use super::*;

    fn messages(architecture: &str, readme: &str) -> Vec<String> {
        let mut workspace = Workspace::default();
        workspace.crates.insert("sql".to_owned(), Crate::default());
        let files = [
            File::sample(ARCHITECTURE, architecture),
            File::sample(README, readme),
            File::sample(CI, ALL_TESTS),
            File::sample("crates/sql/src/lib.rs", ""),
        ];
        check(&files, &workspace).into_iter().map(|finding| finding.message).collect()
    }

    const MAP: &str = "# Map\n\n### `crates/sql`\n\n**Invariant:** knows no storage.\n";

    fn readme(more: &str) -> String {
        format!("```sh\n{MAIN_JOB}   # the main job\n{ALL_TESTS}\n{more}\n```\n")
    }

    #[test]
    fn documents_that_fit_the_code_pass() {
        let readme = readme("cargo xtask tidy\n.ci/run") + "See `crates/sql/src/lib.rs` and `crates/sql`.";
        assert_eq!(messages(MAP, &readme), [] as [&str; 0]);
    }

    #[test]
    fn crate_missing_from_the_map_and_crate_gone_are_found() {
        let other = MAP.replace("sql", "olap");
        let messages = messages(&other, &readme(""));
        assert!(messages[0].contains("no section ### `crates/sql`"), "{messages:?}");
        assert!(messages[1].contains("`crates/olap`, which is gone"), "{messages:?}");
    }

    #[test]
    fn map_without_invariant_or_too_long_is_found() {
        assert_eq!(messages("# Map\n\n### `crates/sql`\nText.\n", &readme("")).len(), 1);
        let long = format!("{MAP}{}", "line\n".repeat(ARCHITECTURE_LINES));
        assert_eq!(messages(&long, &readme("")).len(), 1);
    }

    #[test]
    fn dependency_without_reason_and_reason_without_dependency_are_found() {
        let manifest =
            "[workspace.dependencies]\nalbireo-base = {}\ncsv = \"1\"\nsyn = {\n}\n\n[profile.dev]\na = 1\n";
        let manifest = [File::sample("Cargo.toml", manifest)];
        let mut workspace = Workspace::default();
        let dependencies = vec!["csv".to_owned(), "syn".to_owned()];
        workspace.crates.insert("sql".to_owned(), Crate { dependencies, ..Crate::default() });
        let reasons = |rows: &str| {
            let text = format!("## 8. Dependencies\n\n| crate | why |\n|---|---|\n{rows}");
            check_reasons(&File::sample(ARCHITECTURE, &text), &manifest, &workspace).len()
        };
        assert_eq!(reasons("| `csv`, `syn` | both, and `more` |\n"), 0);
        assert_eq!(reasons("| `csv` | one |\n"), 1);
        assert_eq!(reasons("| `csv`, `syn` | both |\n| `rand` | gone |\n"), 1);
        let unused = check_reasons(&File::sample(ARCHITECTURE, ""), &manifest, &Workspace::default());
        assert!(unused.iter().any(|finding| finding.message.starts_with("no crate uses")));
    }

    #[test]
    fn path_that_is_not_there_is_found() {
        let named = readme("") + "See `crates/sql/src/gone.rs`.";
        assert!(messages(MAP, &named)[0].contains("gone.rs"));
    }

    #[test]
    fn command_that_does_not_exist_is_found() {
        for command in ["cargo xtask polish", "cargo fly", "make install", ".ci/walk"] {
            assert_eq!(messages(MAP, &readme(command)).len(), 1, "{command}");
        }
    }

    #[test]
    fn readme_without_the_promised_commands_is_found() {
        assert_eq!(messages(MAP, "Nothing.").len(), 2);
    }
}
