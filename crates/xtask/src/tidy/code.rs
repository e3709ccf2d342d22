//! Rules about Rust source: lengths, `unsafe`, and which lints may be switched off where.

use super::Finding;
use super::tree::File;
use super::workspace::Workspace;
use proc_macro2::{Span, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, Meta, Signature};

/// Lines a file may have, tests not counted.
const FILE_LINES: usize = 800;

/// Lines a function may have, attributes and documentation not counted.
const FUNCTION_LINES: usize = 70;

/// Crates that may contain `unsafe` code.
const UNSAFE_CRATES: &[&str] = &["allocator", "compile", "storage"];

/// Crates that may go around `albireo-env`: the door itself, tools, and what only tests use.
const DOOR_CRATES: &[&str] = &["env", "testing", "xtask"];

/// Checks one source file.
pub fn check(file: &File, workspace: &Workspace) -> Vec<Finding> {
    let syntax = match syn::parse_file(&file.text) {
        Ok(syntax) => syntax,
        Err(error) => {
            let message = format!("does not parse: {error}");
            return vec![Finding::new("syntax", &file.path, message).at(error.span().start().line)];
        }
    };
    let mut visitor = Visitor { file, in_tests: file.is_test(), test_lines: 0, findings: Vec::new() };
    visitor.visit_file(&syntax);
    let Visitor { test_lines, mut findings, .. } = visitor;

    let lines = file.text.lines().count() - test_lines;
    if lines > FILE_LINES && !file.is_test() {
        let message = format!("{lines} lines without tests; split it, {FILE_LINES} is the limit");
        findings.push(Finding::new("length", &file.path, message));
    }
    findings.extend(check_root(file, workspace, &syntax.attrs));
    findings
}

/// The root file of a library or program forbids `unsafe`, where the crate has none.
fn check_root(file: &File, workspace: &Workspace, attributes: &[Attribute]) -> Option<Finding> {
    let (directory, _) = workspace.crates.iter().find(|(_, member)| member.roots.contains(&file.path))?;
    let forbids = attributes
        .iter()
        .any(|attribute| attribute.path().is_ident("forbid") && mentions(attribute, "unsafe_code"));
    if forbids || UNSAFE_CRATES.contains(&directory.as_str()) {
        return None;
    }
    Some(Finding::new("unsafe", &file.path, "lacks #![forbid(unsafe_code)]"))
}

/// Every crate takes its lints from the workspace.
pub fn check_manifest(file: &File) -> Option<Finding> {
    let inherits =
        file.text.split("[lints]").nth(1).is_some_and(|rest| rest.trim().starts_with("workspace = true"));
    let is_manifest = file.crate_dir().is_some() && file.path.ends_with("/Cargo.toml");
    (is_manifest && !inherits).then(|| Finding::new("lints", &file.path, "lacks `[lints] workspace = true`"))
}

struct Visitor<'a> {
    file: &'a File,
    in_tests: bool,
    /// Lines of `#[cfg(test)]` modules.
    test_lines: usize,
    findings: Vec<Finding>,
}

impl Visitor<'_> {
    fn found(&mut self, check: &'static str, line: usize, message: String) {
        self.findings.push(Finding::new(check, &self.file.path, message).at(line));
    }

    fn check_length(&mut self, signature: &Signature, body: &Block) {
        let first = signature.span().start().line;
        let lines = body.span().end().line - first + 1;
        if lines > FUNCTION_LINES && !self.in_tests {
            let subject = format!("{}::{}", self.file.path, signature.ident);
            let message = format!("a function of {lines} lines; {FUNCTION_LINES} is the limit");
            self.findings.push(Finding::new("length", subject, message).at(first));
        }
    }

    /// Visits with `self.in_tests` set if `attributes` say so.
    fn within(&mut self, attributes: &[Attribute], visit: impl FnOnce(&mut Self)) {
        let outside = self.in_tests;
        self.in_tests |= attributes.iter().any(is_test_attribute);
        visit(self);
        self.in_tests = outside;
    }
}

impl<'ast> Visit<'ast> for Visitor<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let was_in_tests = self.in_tests;
        self.within(&module.attrs, |visitor| {
            if visitor.in_tests && !was_in_tests && module.content.is_some() {
                visitor.test_lines += lines(module.span());
            }
            visit::visit_item_mod(visitor, module);
        });
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.within(&function.attrs, |visitor| {
            visitor.check_length(&function.sig, &function.block);
            visit::visit_item_fn(visitor, function);
        });
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.within(&function.attrs, |visitor| {
            visitor.check_length(&function.sig, &function.block);
            visit::visit_impl_item_fn(visitor, function);
        });
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        self.within(&function.attrs, |visitor| {
            if let Some(body) = &function.default {
                visitor.check_length(&function.sig, body);
            }
            visit::visit_trait_item_fn(visitor, function);
        });
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let line = attribute.span().start().line;
        let switches_off = attribute.path().is_ident("allow") || attribute.path().is_ident("expect");
        if switches_off && !mentions(attribute, "reason") {
            self.found("attributes", line, "switches off a lint without a `reason`".to_owned());
        }
        let goes_around = switches_off && mentions(attribute, "disallowed_methods");
        let may = self.in_tests || self.file.crate_dir().is_some_and(|dir| DOOR_CRATES.contains(&dir));
        if goes_around && !may {
            self.found(
                "door",
                line,
                "goes around `albireo-env`; only env, testing, xtask and tests may".to_owned(),
            );
        }
        if attribute.path().is_ident("ignore") {
            self.found("attributes", line, "a test that does not run; mend or remove it".to_owned());
        }
    }
}

fn lines(span: Span) -> usize {
    span.end().line - span.start().line + 1
}

/// `#[test]`, `#[cfg(test)]`, `#[cfg(all(test, ...))]`; not `#[cfg(not(test))]`.
pub(super) fn is_test_attribute(attribute: &Attribute) -> bool {
    attribute.path().is_ident("test")
        || attribute.path().is_ident("cfg") && mentions(attribute, "test") && !mentions(attribute, "not")
}

/// Whether the attribute's arguments contain `word` as an identifier, at any depth.
fn mentions(attribute: &Attribute, word: &str) -> bool {
    fn any(tokens: TokenStream, word: &str) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Ident(ident) => ident == word,
            TokenTree::Group(group) => any(group.stream(), word),
            TokenTree::Punct(_) | TokenTree::Literal(_) => false,
        })
    }
    match &attribute.meta {
        Meta::List(list) => any(list.tokens.clone(), word),
        Meta::Path(_) | Meta::NameValue(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::workspace::Crate;
    use super::*;

    fn found(path: &str, text: &str) -> Vec<&'static str> {
        let mut workspace = Workspace::default();
        for directory in ["sql", "storage"] {
            let roots = vec![format!("crates/{directory}/src/lib.rs")];
            workspace.crates.insert(directory.to_owned(), Crate { roots, ..Crate::default() });
        }
        check(&File::sample(path, text), &workspace).into_iter().map(|finding| finding.check).collect()
    }

    const FILE: &str = "crates/sql/src/parse.rs";

    fn function(lines: usize) -> String {
        format!("/// Documented.\nfn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2))
    }

    #[test]
    fn function_over_the_limit_is_found_and_one_at_the_limit_passes() {
        assert_eq!(found(FILE, &function(FUNCTION_LINES)), [] as [&str; 0]);
        assert_eq!(found(FILE, &function(FUNCTION_LINES + 1)), ["length"]);
        let method = format!("impl T {{\n{}}}", function(FUNCTION_LINES + 1));
        assert_eq!(found(FILE, &method), ["length"]);
        let provided = format!("trait T {{\n{}}}", function(FUNCTION_LINES + 1));
        assert_eq!(found(FILE, &provided), ["length"]);
    }

    #[test]
    fn function_over_the_limit_in_a_test_passes() {
        let long = function(FUNCTION_LINES + 1);
        assert_eq!(found("crates/sql/src/parse/tests.rs", &long), [] as [&str; 0]);
        assert_eq!(found(FILE, &format!("#[cfg(test)]\nmod tests {{\n{long}}}\n")), [] as [&str; 0]);
        assert_eq!(found(FILE, &format!("#[cfg(not(test))]\nmod real {{\n{long}}}\n")), ["length"]);
    }

    #[test]
    fn file_over_the_limit_is_found_unless_tests_make_it_so() {
        let items = "const A: u8 = 1;\n".repeat(FILE_LINES);
        assert_eq!(found(FILE, &items), [] as [&str; 0]);
        assert_eq!(found(FILE, &format!("{items}const B: u8 = 1;\n")), ["length"]);
        let tests = format!("{items}#[cfg(test)]\nmod tests {{\n{items}}}\n");
        assert_eq!(found(FILE, &tests), [] as [&str; 0]);
    }

    #[test]
    fn crate_root_without_forbid_unsafe_is_found_outside_storage() {
        assert_eq!(found("crates/sql/src/lib.rs", "pub fn f() {}"), ["unsafe"]);
        assert_eq!(found("crates/sql/src/lib.rs", "#![forbid(unsafe_code)]"), [] as [&str; 0]);
        assert_eq!(found("crates/storage/src/lib.rs", "pub fn f() {}"), [] as [&str; 0]);
    }

    #[test]
    fn manifest_without_the_workspace_lints_is_found() {
        let manifest = |text: &str| check_manifest(&File::sample("crates/sql/Cargo.toml", text));
        assert_eq!(manifest("[lints]\nworkspace = true\n"), None);
        assert!(manifest("[package]\n").is_some());
        assert!(manifest("[lints]\n[lints.clippy]\n").is_some());
        assert_eq!(check_manifest(&File::sample("Cargo.toml", "")), None);
    }

    #[test]
    fn lint_switched_off_without_reason_is_found() {
        assert_eq!(found(FILE, "#[allow(dead_code)]\nfn f() {}"), ["attributes"]);
        assert_eq!(found(FILE, "#[expect(dead_code)]\nfn f() {}"), ["attributes"]);
        assert_eq!(found(FILE, "#[allow(dead_code, reason = \"soon used\")]\nfn f() {}"), [] as [&str; 0]);
    }

    #[test]
    fn ignored_test_is_found() {
        assert_eq!(found(FILE, "#[test]\n#[ignore]\nfn t() {}"), ["attributes"]);
        assert_eq!(found(FILE, "#[test]\n#[ignore = \"slow\"]\nfn t() {}"), ["attributes"]);
    }

    #[test]
    fn way_around_the_door_is_found_outside_env_and_tests() {
        let text = "#![allow(clippy::disallowed_methods, reason = \"quicker\")]";
        assert_eq!(found(FILE, text), ["door"]);
        assert_eq!(found("crates/env/src/disk.rs", text), [] as [&str; 0]);
        assert_eq!(found("crates/sql/tests/files.rs", text), [] as [&str; 0]);
    }

    #[test]
    fn file_that_does_not_parse_is_found() {
        assert_eq!(found(FILE, "fn f( {"), ["syntax"]);
    }
}
