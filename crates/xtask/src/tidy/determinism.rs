//! Tests that run the same each time: no sleeping, no clock, no timeouts, no seeds but fixed ones.
//!
//! Reads the tokens of test code, those inside of macros too. A test that has to wait for another process or for a
//! real clock is an exception with a reason; the subject is `path::function`.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::Finding;
use super::code::is_test_attribute;
use super::tree::File;

/// The crate that other tests take their seeds and their waiting from.
const TESTING: &str = "testing";

/// Calls that tests do without.
const CALLS: &[(&str, &str)] = &[
    ("sleep", "sleeps; wait for the event: a channel, `albireo_testing::wait_until`, a simulated clock"),
    ("elapsed", "measures time; count instead, or wait for the outcome"),
    ("recv_timeout", "waits for so long; wait for the outcome"),
    ("wait_timeout", "waits for so long; wait for the outcome"),
    ("park_timeout", "waits for so long; wait for the outcome"),
    ("thread_rng", "draws from the system; take a fixed seed"),
];

/// Types whose `now` or `new` tests do without.
const PATHS: &[(&str, &str, &str)] = &[
    ("Instant", "now", "reads a clock; count instead, or take a simulated clock"),
    ("SystemTime", "now", "reads a clock; take a simulated clock"),
    ("RandomState", "new", "draws from the system; take a fixed seed"),
];

/// Names of proptest whose defaults come from the system or the environment.
const NAMES: &[&str] = &["ProptestConfig", "TestRunner"];

/// Checks one source file.
pub fn check(file: &File) -> Vec<Finding> {
    let (Ok(syntax), Ok(tokens)) = (syn::parse_file(&file.text), file.text.parse::<TokenStream>()) else {
        // The check of the code says so.
        return Vec::new();
    };
    if file.crate_dir() == Some(TESTING) {
        return Vec::new();
    }
    let mut regions = Regions { tests: Vec::new(), functions: Vec::new() };
    if file.is_test() {
        regions.tests.push((1, usize::MAX));
    }
    regions.visit_file(&syntax);
    let mut found = Vec::new();
    scan(tokens, &mut found);
    found.retain(|(line, _)| regions.tests.iter().any(|(first, last)| (first..=last).contains(&line)));
    let finding = |(line, message): (usize, String)| {
        let subject = match regions.function(line) {
            Some(name) => format!("{}::{name}", file.path),
            None => file.path.clone(),
        };
        Finding::new("determinism", subject, message).at(line)
    };
    found.into_iter().map(finding).collect()
}

/// First and last line.
type Lines = (usize, usize);

/// Where tests are, and which functions are where.
struct Regions {
    tests: Vec<Lines>,
    functions: Vec<(String, Lines)>,
}

impl Regions {
    /// The innermost function at a line.
    fn function(&self, line: usize) -> Option<&str> {
        let around = self.functions.iter().filter(|(_, (first, last))| (*first..=*last).contains(&line));
        around.min_by_key(|(_, (first, last))| last - first).map(|(name, _)| name.as_str())
    }

    fn item(&mut self, attributes: &[syn::Attribute], lines: Lines) {
        if attributes.iter().any(is_test_attribute) {
            self.tests.push(lines);
        }
    }
}

fn lines(item: &impl Spanned) -> Lines {
    (item.span().start().line, item.span().end().line)
}

impl<'ast> Visit<'ast> for Regions {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        self.item(&module.attrs, lines(module));
        visit::visit_item_mod(self, module);
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.item(&function.attrs, lines(function));
        self.functions.push((function.sig.ident.to_string(), lines(function)));
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.functions.push((function.sig.ident.to_string(), lines(function)));
        visit::visit_impl_item_fn(self, function);
    }
}

/// Notes every line that breaks a rule.
fn scan(tokens: TokenStream, found: &mut Vec<(usize, String)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => scan(group.stream(), found),
            TokenTree::Ident(ident) => {
                let message = complaint(&ident.to_string(), &tokens[..at], &tokens[at + 1..]);
                found.extend(message.map(|message| (ident.span().start().line, message)));
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// What is wrong with a name between what is before it and what is behind it.
fn complaint(name: &str, before: &[TokenTree], after: &[TokenTree]) -> Option<String> {
    let is_called =
        matches!(after.first(), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis);
    let is_defined = matches!(before.last(), Some(TokenTree::Ident(before)) if before == "fn");
    if name == "proptest" && matches!(after.first(), Some(TokenTree::Punct(punct)) if punct.as_char() == '!')
    {
        return Some(
            "`proptest!` takes its seeds from the system; use `albireo_testing::random_tests!`".to_owned(),
        );
    }
    if NAMES.contains(&name) {
        return Some(format!("`{name}` reads the environment; use `albireo_testing::random_tests!`"));
    }
    let call = CALLS.iter().filter(|_| is_called && !is_defined).find(|(call, _)| *call == name);
    if let Some((_, reason)) = call {
        return Some(format!("`{name}` {reason}"));
    }
    if name.starts_with("assert") && bounds_time(after) {
        return Some("a bound on time; count instead, or wait for the outcome".to_owned());
    }
    let path = PATHS.iter().find(|(ty, function, _)| *ty == name && leads_to(function, after));
    path.map(|(ty, function, reason)| format!("`{ty}::{function}` {reason}"))
}

/// Whether `tokens` begin with a macro's arguments that say of a clock that it is before something.
fn bounds_time(tokens: &[TokenTree]) -> bool {
    let [TokenTree::Punct(bang), TokenTree::Group(arguments), ..] = tokens else { return false };
    let is_before = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == '<');
    bang.as_char() == '!'
        && arguments.stream().into_iter().any(|token| is_before(&token))
        && reads_clock(arguments.stream())
}

/// Whether something's `now` is called.
fn reads_clock(tokens: TokenStream) -> bool {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is_now = |pair: &[TokenTree]| {
        matches!(pair, [TokenTree::Ident(name), TokenTree::Group(arguments)]
            if name == "now" && arguments.stream().is_empty())
    };
    let is_inside =
        |token: &TokenTree| matches!(token, TokenTree::Group(group) if reads_clock(group.stream()));
    tokens.windows(2).any(is_now) || tokens.iter().any(is_inside)
}

/// Whether `tokens` begin with `::function`.
fn leads_to(function: &str, tokens: &[TokenTree]) -> bool {
    match tokens {
        [TokenTree::Punct(a), TokenTree::Punct(b), TokenTree::Ident(name), ..] => {
            a.as_char() == ':' && a.spacing() == Spacing::Joint && b.as_char() == ':' && name == function
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        check(&File::sample(path, text)).into_iter().map(|finding| finding.to_string()).collect()
    }

    /// What is said of a test with this body.
    fn of_body(body: &str) -> Vec<String> {
        found("crates/sql/tests/names.rs", &format!("#[test]\nfn name_is_found() {{\n    {body}\n}}\n"))
    }

    #[test]
    fn test_that_sleeps_reads_a_clock_or_waits_for_so_long_is_found() {
        for body in [
            "std::thread::sleep(second);",
            "env.clock.sleep(second);",
            "assert!(start.elapsed() < second);",
            "let start = Instant::now();",
            "let start = std::time::SystemTime::now();",
            "let told = channel.recv_timeout(second);",
            "wake.wait_timeout(guard, second);",
            "std::thread::park_timeout(second);",
            "assert!(clock.now() < 60_000_000_000, \"in vain\");",
            "assert!(Duration::from_nanos(env.clock.now() - start) <= second);",
        ] {
            let found = of_body(body);
            assert_eq!(found.len(), 1, "{body}: {found:?}");
            assert!(found[0].starts_with("crates/sql/tests/names.rs::name_is_found (line 3): "), "{found:?}");
            assert!(found[0].ends_with(" [determinism]"), "{found:?}");
        }
    }

    #[test]
    fn seeds_of_the_system_are_found() {
        for text in [
            "proptest! {\n    #[test]\n    fn f(a: u8) {}\n}",
            "fn f() { let runner = TestRunner::default(); }",
            "fn f() { let config = ProptestConfig { cases: 3 }; }",
            "fn f() { let keys = RandomState::new(); }",
            "fn f() { let n = rand::thread_rng().next(); }",
        ] {
            assert_eq!(found("crates/sql/tests/names.rs", text).len(), 1, "{text}");
        }
    }

    #[test]
    fn what_is_inside_of_a_macro_is_found() {
        let text =
            "random_tests! {\n    #![cases(3)]\n    #[test]\n    fn f(a in any::<u8>()) { sleep(a); }\n}";
        assert_eq!(found("crates/sql/tests/names.rs", text).len(), 1);
        assert_eq!(of_body("assert!({ sleep(second); true });").len(), 1);
    }

    #[test]
    fn code_that_is_no_test_and_words_that_are_no_calls_pass() {
        let sleeps = "fn waits() { clock.sleep(second); }\n";
        assert_eq!(found("crates/sql/src/names.rs", sleeps), [] as [String; 0]);
        let both = format!("{sleeps}#[cfg(test)]\nmod tests {{\n    {sleeps}}}\n");
        assert_eq!(found("crates/sql/src/names.rs", &both).len(), 1);
        assert_eq!(found("crates/testing/src/lib.rs", &both), [] as [String; 0]);
        for body in [
            "// sleep(1)",
            "let sleep = \"sleep(1)\";",
            "fn sleep() {}",
            "let soon = Instant::later();",
            "assert_eq!(clock.now(), 203); assert!(a < b);",
            "assert!(clock.now() >= deadline);",
        ] {
            assert_eq!(of_body(body), [] as [String; 0], "{body}");
        }
    }
}
