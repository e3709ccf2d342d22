//! Modules of a crate use each other one way: no top-level module needs itself through others.
//!
//! What counts is a path that begins with `crate::` and the module's name, outside of tests. The crate's root names what
//! all modules may use: a type that it re-exports is no use of the module that has it.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Finding;
use super::tree::File;

/// By module: the modules that it names.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Checks all crates; the subject of a finding is the crate.
pub fn check(files: &[File]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Uses> = BTreeMap::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs") && !file.is_test()) {
        let (Some(name), Some((_, path))) = (file.crate_dir(), file.path.split_once("/src/")) else {
            continue;
        };
        let module = path.split('/').next().unwrap_or(path).trim_end_matches(".rs");
        let Ok(tokens) = file.text.parse::<TokenStream>() else { continue };
        if !["lib", "main", "bin"].contains(&module) {
            let uses = crates.entry(name).or_default().entry(module.to_owned()).or_default();
            names(tokens, uses);
        }
    }
    let finding = |(name, uses): (&str, &Uses)| {
        let circle = circle(uses)?;
        let message = format!("modules use each other in a circle: {}", circle.join(" -> "));
        Some(Finding::new("circles", format!("crates/{name}"), message))
    };
    crates.iter().filter_map(|(name, uses)| finding((name, uses))).collect()
}

/// The first names behind `crate::`, but not those of test modules.
fn names(tokens: TokenStream, found: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        if is_test_attribute(&tokens[at..]) {
            let behind = |token: &TokenTree| match token {
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                TokenTree::Punct(punct) => punct.as_char() == ';',
                _ => false,
            };
            at += 1 + tokens[at..].iter().position(behind).unwrap_or(tokens.len() - at);
            continue;
        }
        if is_ident(&tokens[at], "crate") && tokens.get(at + 1).is_some_and(is_colon) {
            match tokens.get(at + 3) {
                Some(TokenTree::Ident(name)) => drop(found.insert(name.to_string())),
                Some(TokenTree::Group(group)) => first_names(group.stream(), found),
                _ => {}
            }
        }
        if let TokenTree::Group(group) = &tokens[at] {
            names(group.stream(), found);
        }
        at += 1;
    }
}

/// The first name of each part of `{a::b, c}`.
fn first_names(tokens: TokenStream, found: &mut BTreeSet<String>) {
    let mut is_first = true;
    for token in tokens {
        if let (true, TokenTree::Ident(name)) = (is_first, &token) {
            found.insert(name.to_string());
        }
        is_first = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ',');
    }
}

fn is_ident(token: &TokenTree, name: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == name)
}

fn is_colon(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':')
}

/// Whether `#[cfg(test)]` is next.
fn is_test_attribute(tokens: &[TokenTree]) -> bool {
    match tokens {
        [TokenTree::Punct(hash), TokenTree::Group(group), ..] if hash.as_char() == '#' => {
            group.delimiter() == Delimiter::Bracket
                && group.stream().to_string().replace(' ', "") == "cfg(test)"
        }
        _ => false,
    }
}

/// A circle, its first module named again at the end; `None` if there is none.
fn circle(uses: &Uses) -> Option<Vec<String>> {
    let mut left: BTreeSet<&String> = uses.keys().collect();
    // Modules that use none of those left are in no circle.
    loop {
        let is_needed =
            |module: &&String| uses[*module].iter().any(|used| used != *module && left.contains(used));
        let kept: BTreeSet<&String> = left.iter().copied().filter(is_needed).collect();
        if kept.len() == left.len() {
            break;
        }
        left = kept;
    }
    let mut way: Vec<&String> = vec![left.first().copied()?];
    loop {
        let last = way[way.len() - 1];
        let next = uses[last].iter().find(|used| *used != last && left.contains(used))?;
        if let Some(begin) = way.iter().position(|module| *module == next) {
            return Some(way[begin..].iter().copied().chain([next]).cloned().collect());
        }
        way.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> =
            files.iter().map(|(path, text)| File::sample(&format!("crates/some/src/{path}"), text)).collect();
        check(&files).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn modules_that_use_each_other_one_way_pass() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; use crate::a::A;"),
            ("a.rs", "use crate::b::B; use crate::{c::C, Root}; fn f() { crate::a::g() }"),
            ("b/mod.rs", "fn f() { crate::c::f() }"),
            ("c.rs", "/// See [`crate::a`].\nfn f() {}\n#[cfg(test)]\nmod tests { use crate::a::A; }"),
            ("c/tests.rs", "use crate::b::B;"),
        ];
        assert_eq!(messages(&files), [] as [String; 0]);
    }

    #[test]
    fn circle_is_found_through_groups_paths_and_folders() {
        let files = [
            ("a.rs", "use crate::{Root, b::B};"),
            ("b/deep.rs", "fn f() { let x = crate::c::f(); }"),
            ("c.rs", "#[cfg(test)]\nmod tests { use crate::d::D; }\nfn f(a: &crate::a::A) {}"),
            ("d.rs", "use crate::a::A;"),
        ];
        let found = messages(&files);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("crates/some: "), "{found:?}");
        assert!(found[0].contains("a -> b -> c -> a"), "{found:?}");
    }
}
