//! `cargo xtask tidy`: reads the tree and reports every breach of the repository's rules.
//!
//! Each check is a function from what was read to findings, so that a test can feed it a bad sample.
//! I-1 A check is passed only by mending the tree or by a line with a reason in `exceptions.txt`.

mod circles;
mod code;
mod determinism;
mod documents;
mod exceptions;
mod layers;
pub(crate) mod tree;
mod words;
pub(crate) mod workspace;

use std::fmt;
use std::path::Path;

/// One breach of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    /// The rule's short name, as exceptions write it.
    check: &'static str,
    /// What breaks it, as exceptions write it: a path, `path::function` or a crate.
    subject: String,
    /// The line, where there is one.
    line: Option<usize>,
    /// What is wrong and what to do.
    message: String,
}

impl Finding {
    fn new(check: &'static str, subject: impl Into<String>, message: impl Into<String>) -> Self {
        Self { check, subject: subject.into(), line: None, message: message.into() }
    }

    fn at(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.subject)?;
        if let Some(line) = self.line {
            write!(f, " (line {line})")?;
        }
        write!(f, ": {} [{}]", self.message, self.check)
    }
}

/// Runs all checks over the repository at `root`.
///
/// # Errors
/// The tree cannot be read, or rules are broken; the findings are printed before.
pub fn run(root: &Path) -> Result<(), String> {
    let files = tree::read(root).map_err(|error| format!("cannot read the tree: {error}"))?;
    let workspace = workspace::read(root)?;
    let mut findings = Vec::new();
    for file in &files {
        if file.path.ends_with(".rs") {
            findings.extend(code::check(file, &workspace));
            findings.extend(determinism::check(file));
        }
        findings.extend(code::check_manifest(file));
        findings.extend(words::check(file, &files));
    }
    findings.extend(words::check_lock_file(&files));
    findings.extend(layers::check(&workspace));
    findings.extend(circles::check(&files));
    findings.extend(documents::check(&files, &workspace));
    let findings = exceptions::apply(&files, findings)?;
    for finding in &findings {
        eprintln!("{finding}");
    }
    match findings.len() {
        0 => {
            println!("tidy: {} files, {} crates, no finding", files.len(), workspace.crates.len());
            Ok(())
        }
        count => Err(format!("tidy: {count} finding(s)")),
    }
}
