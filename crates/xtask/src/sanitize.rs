//! `cargo xtask sanitize`: the tests of the crates with `unsafe` code or lock-free hand-over, under
//! AddressSanitizer and ThreadSanitizer; `sanitize engine`: those of the engine, under the former.
//!
//! Needs a nightly toolchain. Without the component `rust-src` the standard library is the ordinary,
//! uninstrumented one: AddressSanitizer loses little, ThreadSanitizer needs suppressions
//! (`tsan-suppressions.txt`) and reports the waits of a contended `std::sync::Mutex` or a
//! `OnceLock` as races; `parking_lot`, built here, is seen through.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The packages whose tests run.
const PACKAGES: [&str; 5] =
    ["albireo-storage", "albireo-partition", "albireo-redo", "albireo-archive", "albireo-encoding"];

/// Those of [`engine`]: what uses all of the above, by SQL.
const ENGINE: [&str; 2] = ["albireo-olap", "albireo"];

/// One more for addresses: generated code, whose runtime reads what it passes by address. Its calls share
/// nothing but memory behind a lock.
const COMPILER: &str = "albireo-compile";

/// Bytes of a thread's stack there, whose frames are several times as large: tests of hostile depths are made
/// for 2 MiB.
const STACK: &str = "33554432";

/// Tells tests of random routines, each of which runs several times, that fewer will do.
const SANITIZED: &str = "ALBIREO_SANITIZED";

/// Every sanitizer, in the order of a full run.
pub const ALL: [Sanitizer; 2] = [Sanitizer::Address, Sanitizer::Thread];

/// One sanitizer of the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sanitizer {
    /// Out of bounds, use after free, leaks.
    Address,
    /// Data races.
    Thread,
}

impl Sanitizer {
    /// The sanitizer that the compiler calls `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        ALL.into_iter().find(|sanitizer| sanitizer.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Thread => "thread",
        }
    }
}

/// The nightly toolchain, as far as it matters here.
struct Nightly {
    host: String,
    has_source: bool,
}

/// Runs the tests under each of `sanitizers`; without a nightly toolchain it says so and succeeds.
///
/// # Errors
/// A test fails or a sanitizer reports.
pub fn run(root: &Path, sanitizers: &[Sanitizer]) -> Result<(), String> {
    let Some(nightly) = find_nightly() else {
        eprintln!("SKIPPED: sanitizers did not run; they need `rustup toolchain install nightly`");
        return Ok(());
    };
    for sanitizer in sanitizers {
        finished(&mut command(root, *sanitizer, &nightly), *sanitizer)?;
    }
    Ok(())
}

/// Runs the engine's tests under AddressSanitizer: as they are, or as `ALBIREO_FREEZE` and `ALBIREO_EVICT` of the
/// environment say. DataFusion is built for it, which takes long, so this is no part of [`run`]. ThreadSanitizer would
/// report DataFusion's and tokio's use of the standard library, which is not instrumented.
///
/// # Errors
/// As of [`run`].
pub fn engine(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let Some(nightly) = find_nightly() else {
        eprintln!("SKIPPED: sanitizers did not run; they need `rustup toolchain install nightly`");
        return Ok(());
    };
    let mut command = toolchain(root, Sanitizer::Address, &nightly);
    command.args(ENGINE.iter().flat_map(|package| ["-p", package])).arg("--no-fail-fast").args(arguments);
    command.env(SANITIZED, "1").env("RUST_MIN_STACK", STACK);
    finished(&mut command, Sanitizer::Address)
}

fn finished(command: &mut Command, sanitizer: Sanitizer) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("cannot run rustup: {error}"))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("{} sanitizer: {status}", sanitizer.name())),
    }
}

fn command(root: &Path, sanitizer: Sanitizer, nightly: &Nightly) -> Command {
    let mut command = toolchain(root, sanitizer, nightly);
    if sanitizer == Sanitizer::Address {
        command.args(["-p", COMPILER]).env(SANITIZED, "1").env("RUST_MIN_STACK", STACK);
    }
    command.args(PACKAGES.iter().flat_map(|package| ["-p", package]));
    command
}

/// Cargo's tests with a sanitizer, of packages yet to be named.
fn toolchain(root: &Path, sanitizer: Sanitizer, nightly: &Nightly) -> Command {
    let name = sanitizer.name();
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let mut flags = format!("-Zsanitizer={name}");
    if !nightly.has_source {
        // The library that comes with the toolchain is linked although it is not instrumented.
        flags.push_str(" -Cunsafe-allow-abi-mismatch=sanitizer");
    }
    let mut command = Command::new("rustup");
    command.current_dir(root).args(["run", "nightly", "cargo", "test", "--lib", "--tests"]);
    // A target named explicitly keeps the flags away from build scripts and procedural macros.
    command.args(["--target", &nightly.host]);
    if nightly.has_source {
        command.arg("-Zbuild-std");
    }
    // This variable, unlike RUSTFLAGS, adds to the flags of .cargo/config.toml.
    let variable = format!("CARGO_TARGET_{}_RUSTFLAGS", nightly.host.to_uppercase().replace('-', "_"));
    command.env(variable, flags).env("CARGO_TARGET_DIR", target.join(format!("sanitize-{name}")));
    command.env_remove("RUSTFLAGS").env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
    if sanitizer == Sanitizer::Thread && !nightly.has_source {
        let suppressions = root.join("crates/xtask/tsan-suppressions.txt");
        command.env("TSAN_OPTIONS", format!("suppressions={}", suppressions.display()));
    }
    command
}

fn find_nightly() -> Option<Nightly> {
    let rustc = |arguments: &[&str]| {
        let mut command = Command::new("rustup");
        command.args(["run", "nightly", "rustc"]).args(arguments).env_remove("RUSTUP_TOOLCHAIN");
        let output = command.output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let version = rustc(&["-vV"])?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "))?.to_owned();
    let sysroot = rustc(&["--print", "sysroot"])?;
    let source = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/Cargo.lock");
    Some(Nightly { host, has_source: source.exists() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sanitizer_is_found_by_the_compilers_name_only() {
        assert_eq!(Sanitizer::from_name("thread"), Some(Sanitizer::Thread));
        assert_eq!(Sanitizer::from_name("memory"), None);
    }

    #[test]
    fn command_without_library_source_suppresses_and_never_builds_the_library() {
        let nightly = Nightly { host: "x86_64-unknown-linux-gnu".to_owned(), has_source: false };
        let shown = format!("{:?}", command(Path::new("r"), Sanitizer::Thread, &nightly));
        assert!(shown.contains("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS"), "{shown}");
        assert!(shown.contains("suppressions=r/crates/xtask/tsan-suppressions.txt"), "{shown}");
        assert!(!shown.contains("build-std"), "{shown}");
        assert!(PACKAGES.iter().all(|package| shown.contains(&format!("-p\" \"{package}"))), "{shown}");
        assert!(!shown.contains(COMPILER), "{shown}");
        let addresses = format!("{:?}", command(Path::new("r"), Sanitizer::Address, &nightly));
        assert!(addresses.contains(COMPILER) && addresses.contains(STACK), "{addresses}");
    }
}
