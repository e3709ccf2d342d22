//! Repository rules: what `cargo fmt` and `clippy` cannot check, the sanitizers, exploration, packages, and README's picture.
//!
//! Responsible for: `cargo xtask tidy`, `sanitize`, `explore`, `simulate`, `package` and `picture`. Not responsible for: style within
//! a line (rustfmt) and lints (clippy; `clippy.toml` bans calls).
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "a tool for developers, never part of a database")]

mod explore;
mod package;
mod picture;
mod sanitize;
mod simulate;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

const HELP: &str = "\
Repository rules of Albireo

Usage: cargo xtask <COMMAND>

Commands:
  tidy                       Layering, crate map, lengths, unsafe, banned words, documents
  sanitize [address|thread]  Tests of storage, partition, redo, archive, encoding and compile under sanitizers
                             (default: both); needs a nightly toolchain and is skipped, loudly, without one
  sanitize engine [ARGS...]  Tests of the engine under AddressSanitizer, with these arguments of `cargo test`
  picture JSON SVG           README's picture from what `albireo bench ch --format json` printed
  explore [--minutes N] [--seed S] [--release] [WHAT...]
                             Random tests, kills and simulations with fresh seeds, for 10 minutes or so many;
                             WHAT: words of names of parts, as it prints them, or of tests. A finding says how to repeat it
  simulate [--minutes N]     Simulations of new seeds, for 10 minutes or so many, with optimized code
  package                    Packs every crate, then builds and runs README's example against the packages
  help                       This text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // Of the checkout that cargo runs this for: two may build into one directory. The manifest is two levels down there.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").into());
    let root = Path::new(&manifest).ancestors().nth(2).expect("xtask lies in crates/");
    let outcome = match arguments.as_slice() {
        ["tidy"] => tidy::run(root),
        ["sanitize"] => sanitize::run(root, &sanitize::ALL),
        ["sanitize", "engine", arguments @ ..] => sanitize::engine(root, arguments),
        ["sanitize", name] => match sanitize::Sanitizer::from_name(name) {
            Some(sanitizer) => sanitize::run(root, &[sanitizer]),
            None => Err(format!("there is no sanitizer `{name}`; choose address, thread or engine")),
        },
        ["package"] => package::run(root),
        ["picture", json, picture] => picture::run(json, picture),
        ["explore", arguments @ ..] => explore::run(root, arguments),
        ["simulate", arguments @ ..] => simulate::run(root, arguments),
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        _ => Err(format!("what to do?\n\n{HELP}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
