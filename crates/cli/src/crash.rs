//! What is shown of a bug: one line, and a file with what its report needs.
//!
//! Responsible for: the panic hook, the exit status after a panic of the main thread. Not responsible for: errors,
//! which are values; panics of queries and procedures become errors where they are caught, after this has spoken.
//!
//! I-1 Standard error's lock is not waited for: standard error is written past its lock, which another thread may hold.

use std::backtrace::Backtrace;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};

/// Exit status after a bug, as `sysexits.h` has it.
pub const EXIT_STATUS: u8 = 70;

/// The most characters of a panic's message in the line; the file has all.
const MESSAGE_CHARS: usize = 300;

/// The most reports of a process: a bug that shows in every query must not fill the disk.
const MOST_REPORTS: u32 = 10;

/// Has every panic from now on say one line.
pub fn install() {
    let panics = AtomicU32::new(0);
    set_hook(Box::new(move |panic| {
        let (message, place) = (message(panic), place(panic));
        let is_reported = panics.fetch_add(1, Ordering::Relaxed) < MOST_REPORTS;
        let saved = is_reported.then(|| save(&report(&message, &place, &Backtrace::force_capture())));
        say(&line(&message, &place, saved.flatten()));
    }));
}

/// Runs `main`; the exit status says if it panicked.
pub fn guard(main: impl FnOnce() -> ExitCode) -> ExitCode {
    catch_unwind(AssertUnwindSafe(main)).unwrap_or(ExitCode::from(EXIT_STATUS))
}

fn message(panic: &PanicHookInfo<'_>) -> String {
    let payload = panic.payload();
    match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "no message".to_owned(),
    }
}

fn place(panic: &PanicHookInfo<'_>) -> String {
    panic.location().map_or_else(|| "unknown place".to_owned(), |at| format!("{}:{}", at.file(), at.line()))
}

fn report(message: &str, place: &str, backtrace: &Backtrace) -> String {
    let thread = std::thread::current();
    format!(
        "albireo {}\nthread {}\n{message}\nat {place}\n\n{backtrace}\n",
        env!("CARGO_PKG_VERSION"),
        thread.name().unwrap_or("without a name"),
    )
}

/// Where the report was put, if it could be.
fn save(report: &str) -> Option<PathBuf> {
    let mut file = tempfile::Builder::new().prefix("albireo-crash-").suffix(".txt").tempfile().ok()?;
    file.write_all(report.as_bytes()).ok()?;
    Some(file.keep().ok()?.1)
}

fn line(message: &str, place: &str, saved: Option<PathBuf>) -> String {
    let message: String =
        message.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MESSAGE_CHARS).collect();
    let with = saved.map_or_else(
        || "; its backtrace was not written to a file".to_owned(),
        |path| format!(" with {}, which has the backtrace", path.display()),
    );
    format!("albireo: internal error: {message} ({place}). This is a bug; please report it{with}.\n")
}

fn say(line: &str) {
    // Whoever cannot be told need not be.
    if let Ok(stderr) = std::io::stderr().as_fd().try_clone_to_owned() {
        let _ = File::from(stderr).write_all(line.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "looks at the files from outside")]

    use super::*;

    #[test]
    fn panic_is_told_in_one_line_with_the_place_of_its_report() {
        let told =
            line("index out\nof bounds", "crates/a.rs:7", Some("/somewhere/albireo-crash-x.txt".into()));
        let expected = "albireo: internal error: index out of bounds (crates/a.rs:7). This is a bug; please report \
                        it with /somewhere/albireo-crash-x.txt, which has the backtrace.\n";
        assert_eq!(told, expected);
        let told = line(&"x".repeat(100_000), "a.rs:1", None);
        assert!(told.len() < 500 && told.contains("was not written"), "{told}");
    }

    #[test]
    fn panic_of_the_main_thread_gives_a_status_of_its_own() {
        let status = |code: ExitCode| format!("{code:?}");
        let panicked = guard(|| std::panic::resume_unwind(Box::new("a bug")));
        assert_eq!(status(panicked), status(ExitCode::from(EXIT_STATUS)));
        assert_eq!(status(guard(|| ExitCode::SUCCESS)), status(ExitCode::SUCCESS));
    }

    /// Panics as the program does, in a process of its own.
    #[test]
    fn hook_of_a_process_that_panics_says_one_line_and_writes_the_report() {
        const CHILD: &str = "ALBIREO_TEST_PANICS";
        if std::env::var_os(CHILD).is_some() {
            install();
            (0..=MOST_REPORTS).for_each(|bug| drop(catch_unwind(|| panic!("bug number {bug}"))));
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args([
            "--exact",
            "crash::tests::hook_of_a_process_that_panics_says_one_line_and_writes_the_report",
        ]);
        let output =
            child.arg("--nocapture").env(CHILD, "").env("TMPDIR", directory.path()).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        let told: Vec<&str> =
            told.lines().filter(|line| line.starts_with("albireo: internal error: ")).collect();
        assert_eq!(told.len(), 1 + MOST_REPORTS as usize, "{told:?}");
        assert!(told[0].contains("bug number 0 (crates/cli/src/crash.rs:"), "{}", told[0]);
        let path = told[0].split(" with ").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
        let report = std::io::read_to_string(File::open(path).unwrap()).unwrap();
        assert!(report.contains("bug number 0\nat ") && report.contains("catch_unwind"), "{report}");
        assert!(told[MOST_REPORTS as usize].contains("was not written"), "{told:?}");
    }

    #[test]
    fn report_has_message_place_and_backtrace_and_lies_in_a_file_of_its_own() {
        let text = report("a bug", "a.rs:1", &Backtrace::force_capture());
        assert!(text.contains("a bug\nat a.rs:1\n") && text.contains("crash"), "{text}");
        let (first, second) = (save(&text).unwrap(), save(&text).unwrap());
        assert_ne!(first, second);
        for path in [first, second] {
            assert_eq!(
                tempfile::TempPath::try_from_path(path).unwrap().metadata().unwrap().len(),
                text.len() as u64
            );
        }
    }
}
