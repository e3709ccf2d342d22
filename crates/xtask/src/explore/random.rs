//! The random tests of the workspace, as the source has them.
//!
//! A test is random if it stands in `random_tests!` or names itself by `test!()`, which is how it gets its seeds.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use crate::tidy::tree::{self, File};
use crate::tidy::workspace;

/// The crate whose own tests are not explored.
const TESTING: &str = "testing";

/// The random tests of a library or of a test program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestTarget {
    /// The package.
    pub package: String,
    /// The test program; `None`: the library.
    pub test: Option<String>,
    /// Names of functions.
    pub tests: Vec<String>,
}

impl TestTarget {
    /// What cargo selects it by.
    pub fn selection(&self) -> Vec<&str> {
        match &self.test {
            Some(test) => vec!["-p", &self.package, "--test", test],
            None => vec!["-p", &self.package, "--lib"],
        }
    }
}

impl fmt::Display for TestTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let package = self.package.strip_prefix("albireo-").unwrap_or("engine");
        let tests = if self.tests.len() == 1 { "test" } else { "tests" };
        write!(f, "{package}/{} ({} {tests})", self.test.as_deref().unwrap_or("lib"), self.tests.len())
    }
}

/// Finds all of them.
///
/// # Errors
/// The tree cannot be read.
pub fn find(root: &Path) -> Result<Vec<TestTarget>, String> {
    let files = tree::read(root).map_err(|error| format!("cannot read the tree: {error}"))?;
    let workspace = workspace::read(root)?;
    let package = |directory: &str| workspace.crates.get(directory).map(|member| member.package.clone());
    Ok(targets(&files, package))
}

fn targets(files: &[File], package: impl Fn(&str) -> Option<String>) -> Vec<TestTarget> {
    let mut targets: BTreeMap<(String, Option<String>), Vec<String>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        let Some((directory, test)) = place(&file.path) else { continue };
        let Some(package) = package(directory).filter(|_| directory != TESTING) else { continue };
        let tests = tests_of(&file.text);
        if !tests.is_empty() {
            targets.entry((package, test)).or_default().extend(tests);
        }
    }
    targets.into_iter().map(|((package, test), tests)| TestTarget { package, test, tests }).collect()
}

/// The crate's directory and the test program that a file belongs to; not one for an example.
fn place(path: &str) -> Option<(&str, Option<String>)> {
    let (directory, rest) = path.strip_prefix("crates/")?.split_once('/')?;
    match rest.split_once('/')? {
        ("src", _) => Some((directory, None)),
        ("tests", rest) => {
            let name = rest.split_once('/').map_or(rest, |(name, _)| name);
            Some((directory, Some(name.trim_end_matches(".rs").to_owned())))
        }
        _ => None,
    }
}

/// Names of a file's random tests.
fn tests_of(text: &str) -> Vec<String> {
    let Ok(syntax) = syn::parse_file(text) else { return Vec::new() };
    let mut visitor = Visitor::default();
    visitor.visit_file(&syntax);
    visitor.tests
}

#[derive(Default)]
struct Visitor {
    tests: Vec<String>,
    /// The functions around what is visited.
    functions: Vec<String>,
}

impl<'ast> Visit<'ast> for Visitor {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.functions.push(function.sig.ident.to_string());
        visit::visit_item_fn(self, function);
        self.functions.pop();
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let name = call.path.segments.last().map(|segment| segment.ident.to_string());
        match (name.as_deref(), self.functions.first()) {
            (Some("random_tests"), _) => self.tests.extend(functions(call.tokens.clone())),
            (Some("test"), Some(function)) if call.tokens.is_empty() && !self.tests.contains(function) => {
                self.tests.push(function.clone());
            }
            _ => {}
        }
    }
}

/// Names behind `fn`, outside of any brackets.
fn functions(tokens: TokenStream) -> Vec<String> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let pairs = tokens.windows(2);
    pairs
        .filter_map(|pair| match pair {
            [TokenTree::Ident(word), TokenTree::Ident(name)] if word == "fn" => Some(name.to_string()),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_in_the_macro_and_those_that_name_themselves_are_found_and_others_not() {
        let text = "
            random_tests! { #![cases(3)] #[test] fn first(a in 0..3) { fn inner() {} } #[test] fn second(b in c) {} }
            #[test] fn third() { let test = test!(); spawn(move || run(test)); }
            #[test] fn fourth() { test!().for_each_seed(0..3, |seed| {}); test!().seeds(0..2); }
            #[test] fn other() { assert!(a); test(); }";
        let files = [
            File { path: "crates/storage/tests/model/cells.rs".to_owned(), text: text.to_owned() },
            File { path: "crates/storage/tests/model.rs".to_owned(), text: "#[test] fn no() {}".to_owned() },
            File { path: "crates/storage/src/key.rs".to_owned(), text: text.to_owned() },
            File { path: "crates/storage/examples/speed.rs".to_owned(), text: text.to_owned() },
            File { path: "crates/testing/src/lib.rs".to_owned(), text: text.to_owned() },
        ];
        let tests: Vec<String> = ["first", "second", "third", "fourth"].map(str::to_owned).to_vec();
        let found = targets(&files, |directory| Some(format!("albireo-{directory}")));
        let target = |test: Option<&str>| TestTarget {
            package: "albireo-storage".to_owned(),
            test: test.map(str::to_owned),
            tests: tests.clone(),
        };
        assert_eq!(found, [target(None), target(Some("model"))]);
        assert_eq!(found[1].selection(), ["-p", "albireo-storage", "--test", "model"]);
    }
}
