//! At a terminal.

use crate::session::Session;
use std::os::unix::fs::PermissionsExt;

/// Ctrl-C and Ctrl-D.
const INTERRUPT: &str = "\u{3}";
const END: &str = "\u{4}";

/// The prompt when nothing is open.
const READY: &str = "albireo=> ";

fn with_variable(name: &str, value: &str) -> Session {
    Session::start_with(80, |command| {
        command.env(name, value);
    })
}

#[test]
fn statements_typed_before_the_first_prompt_are_run_in_order() {
    let mut session = Session::start();
    for number in 0..150 {
        session.enter(format!("select 1000 + {number};\n"));
    }
    session.enter("\\q\n");
    for number in 0..150 {
        session.expect(&format!("│     {} │", 1000 + number));
    }
    assert_eq!(session.end().1, Some(0));
}

#[test]
fn statements_typed_while_one_runs_are_run_when_it_is_done() {
    let mut session = Session::start();
    session.expect(READY);
    session.enter("select count(*) as first from generate_series(1, 300000);\r");
    session.enter("select\n  40 + 2 as second;\nselect 'th' || 'ird';\nexit\n");
    session.expect("│ 300000 │");
    session.expect("│     42 │");
    session.expect("│ third ");
    assert_eq!(session.end().1, Some(0));
}

#[test]
fn key_for_the_end_typed_while_a_statement_runs_ends_the_shell() {
    let mut session = Session::start();
    session.expect(READY);
    session.enter(format!("select count(*) from generate_series(1, 300000);\r{END}"));
    let (shown, status) = session.end();
    assert!(shown.contains("│ 300000 │"), "{shown}");
    assert_eq!(status, Some(0));
}

#[test]
fn paste_of_several_lines_is_run_whole() {
    let mut session = Session::start();
    session.expect(READY);
    // As terminals mark it.
    session.enter("\u{1b}[200~select 40\r  + 2 as a;\rselect 'ta\tb' as b,\r 43 - 1 as \u{1b}[201~c;\r");
    session.expect("│ 42 │");
    session.expect("│ ta    b │ 42 │");
    session.expect(READY);
    // As terminals send it that do not.
    session.enter("select 40\r  + 3\r   as a;\r\rselect 40 + 4;\r\\q\r");
    session.expect("│ 43 │");
    session.expect("│       44 │");
    assert_eq!(session.end().1, Some(0));
}

#[test]
fn prompt_shows_what_is_open() {
    let mut session = Session::start();
    session.expect(READY);
    for (line, prompt) in [
        ("select", "albireo-> "),
        ("(", "albireo(> "),
        ("1 + (2)", "albireo(> "),
        (") as \"a", "albireo\"> "),
        ("b\" /* a comment", "albireo*> "),
        ("*/ , 'text", "albireo'> "),
        ("', $x$ also", "albireo$> "),
        ("$x$", "albireo-> "),
        ("-- that was all", "albireo-> "),
        (";", READY),
    ] {
        session.enter(format!("{line}\r"));
        session.expect(prompt);
    }
    session.enter("\\q\r");
    session.end();
}

#[test]
fn words_that_people_try_are_answered() {
    let mut session = Session::start();
    session.expect(READY);
    session.enter("help\r");
    session.expect("\\q to quit");
    session.expect(READY);
    session.enter("select 'it\r");
    session.expect("albireo'> ");
    session.enter("quit\r");
    session.expect("Use \\q on a line of its own, or Ctrl-D, to quit.");
    session.expect("albireo'> ");
    session.enter("help\r");
    session.expect("press Ctrl-C to discard what is typed.");
    session.expect("albireo'> ");
    session.enter(INTERRUPT);
    session.expect(READY);
    session.enter("select\r");
    session.expect("albireo-> ");
    session.enter("exit\r");
    session.expect("Use \\q to quit.");
    session.expect("albireo-> ");
    session.enter(INTERRUPT);
    session.expect(READY);
    session.enter("QUIT;\r");
    assert_eq!(session.end().1, Some(0));
}

#[test]
fn shell_can_be_left_whatever_is_open() {
    for open in ["", "select (1", "select 'text", "/* begun", "do $$ begin"] {
        for leave in ["\\q\r", END] {
            let mut session = Session::start();
            session.expect(READY);
            session.enter(format!("{open}\r{leave}"));
            let (shown, status) = session.end();
            assert_eq!(status, Some(0), "{open} {leave:?}: {shown}");
        }
    }
}

#[test]
fn ctrl_c_stops_a_statement_and_discards_what_is_typed() {
    let mut session = Session::start();
    session.expect(READY);
    session.enter("select 1,\r");
    session.expect("albireo-> ");
    session.enter(format!("2, {INTERRUPT}"));
    session.expect(READY);
    // Shows how far it is, so that it runs for certain.
    session.enter(
        "copy (select i from generate_series(1, 1000000000000) g(i)) to '/dev/null' with (format csv);\r",
    );
    session.expect("writing the file: ");
    session.enter(INTERRUPT);
    session.expect("ERROR 57014");
    session.expect(READY);
    session.enter("select 40 + 2;\r");
    session.expect("│       42 │");
    session.enter("\\q\r");
    assert_eq!(session.end().1, Some(0));
}

#[test]
fn second_ctrl_c_leaves_a_shell_that_waits_for_a_file() {
    let mut session = Session::start();
    let fifo = session.home().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    session.expect(READY);
    session.enter(format!("\\i {}\r", fifo.display()));
    // Whoever has it open too knows that the shell has; then it waits for its first line.
    let writer = std::fs::File::options().write(true).open(&fifo).unwrap();
    session.enter(INTERRUPT);
    session.expect("Press Ctrl-C again to leave the shell.");
    session.enter(INTERRUPT);
    assert_eq!(session.end().1, Some(130));
    drop(writer);
}

#[test]
fn table_wider_than_the_terminal_is_expanded_and_long_results_go_through_the_pager() {
    let mut session = with_variable("PAGER", "sed s/^/paged:/");
    session.expect(READY);
    session.enter("select repeat('x', 40) as a, repeat('y', 40) as b;\r");
    session.expect("─[ RECORD 1 ]");
    session.enter("\\x off\rselect repeat('x', 40) as a, repeat('y', 40) as b;\r");
    session.expect("┌────");
    session.enter("select i from generate_series(1, 17) g(i);\r");
    assert!(!session.expect("(17 rows)").contains("paged"));
    session.enter("select i from generate_series(1, 18) g(i);\r");
    assert!(session.expect("(18 rows)").contains("paged:│  7 │"));
    session.expect(READY);
    session.enter("\\pset pager off\rselect i from generate_series(1, 100) g(i);\r");
    assert!(!session.expect("(100 rows)").contains("paged"));
    session.enter("\\q\r");
    assert_eq!(session.end().1, Some(0));
}

#[test]
fn pager_that_ends_early_fails_nothing() {
    let mut session = with_variable("PAGER", "head -n 2");
    session.expect(READY);
    session.enter("select i from generate_series(1, 100000) g(i);\r");
    session.expect("┌");
    let shown = session.expect(READY);
    assert!(!shown.contains("albireo:"), "{shown}");
    session.enter("\\q\r");
    assert_eq!(session.end().1, Some(0));
}

#[test]
fn editor_changes_the_latest_statement_and_the_result_is_run() {
    let mut session = with_variable("EDITOR", "sed -i -e 's/40 + 2/50 + 3/;$a;'");
    session.expect(READY);
    session.enter("select 40 + 2 as n;\r");
    session.expect("│ 42 │");
    session.enter("\\e\r");
    session.expect("select 50 + 3 as n");
    session.expect("│ 53 │");
    session.enter("\\q\r");
    assert_eq!(session.end().1, Some(0));
}

#[test]
fn program_of_the_system_has_the_terminal_and_ctrl_c_for_itself() {
    let mut session = Session::start();
    session.expect(READY);
    session.enter("\\! echo 'wait'ing; cat; echo never\r");
    session.expect("waiting");
    session.enter("a line\r");
    session.expect("a line");
    session.expect("a line");
    session.enter(INTERRUPT);
    session.expect(READY);
    session.enter("\\! exit 3\rselect 40 + 2;\r\\q\r");
    session.expect("│       42 │");
    assert_eq!(session.end().1, Some(0));
}

#[test]
fn history_is_kept_below_home() {
    let mut session = Session::start();
    session.expect(READY);
    session.enter("select\r 40 + 2;\r");
    session.expect("│       42 │");
    session.expect(READY);
    // The last entry, and away with it.
    session.enter(format!("\u{1b}[A{INTERRUPT}"));
    session.expect(" 40 + 2;");
    let kept = session.home().join(".local/share/albireo/history");
    let text = std::fs::read_to_string(kept).unwrap();
    assert!(text.contains("select\\n 40 + 2;"), "{text}");
    session.enter("\\q\r");
    session.end();
}

#[test]
fn strange_terminals_and_homes_are_served() {
    let locked = tempfile::tempdir().unwrap();
    std::fs::set_permissions(locked.path(), std::fs::Permissions::from_mode(0o500)).unwrap();
    type Change<'a> = (&'a str, Option<&'a std::ffi::OsStr>);
    let changes: [(u16, Change<'_>); 8] = [
        (80, ("TERM", None)),
        (80, ("TERM", Some("dumb".as_ref()))),
        (80, ("TERM", Some("no such terminal".as_ref()))),
        (0, ("TERM", Some("xterm".as_ref()))),
        (1, ("TERM", Some("xterm".as_ref()))),
        (80, ("HOME", Some("/dev/null".as_ref()))),
        (80, ("HOME", Some(locked.path().as_os_str()))),
        (80, ("HOME", None)),
    ];
    for (columns, (name, value)) in changes {
        let mut session = Session::start_with(columns, |command| {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        });
        session.enter("select 40 + 2 as a, 1 as b;\r\\dt\r\\q\r");
        let (shown, status) = session.end();
        assert!(shown.contains("│ 42"), "{columns} {name} {value:?}: {shown}");
        assert_eq!(status, Some(0), "{columns} {name} {value:?}: {shown}");
    }
}

#[test]
fn key_that_is_no_text_is_said_and_the_next_statement_runs() {
    use std::os::unix::ffi::OsStrExt;
    let mut session = Session::start();
    session.expect(READY);
    session.enter(std::ffi::OsStr::from_bytes(b"select '\xff"));
    session.expect("not UTF-8");
    session.expect(READY);
    session.enter("select 40 + 2;\r\\q\r");
    session.expect("│       42 │");
    assert_eq!(session.end().1, Some(0));
}
