use super::*;
use crate::sql::{About, Answer, Canceller, Chunks, Column, Index, ProgressReader, Routine, TableColumn};
use albireo_base::{SqlError, SqlState, SqlType};
use albireo_env::MemoryDisk;
use arrow::array::{ArrayRef, Int32Array};
use arrow::record_batch::RecordBatch;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A database that answers by rule: `fail` fails at its fourth character, `wait` waits until
/// cancelled, `create` does something, everything else gives the row 7.
#[derive(Default)]
pub(super) struct Fake {
    executed: Mutex<Vec<String>>,
    cancelled: Arc<AtomicBool>,
}

impl Sql for Fake {
    fn execute(&self, sql: &str) -> Result<Answer, SqlError> {
        self.executed.lock().push(sql.to_owned());
        match sql.split_whitespace().next() {
            Some("fail") => Err(SqlError::new(SqlState::SYNTAX_ERROR, "it fails").with_position(4)),
            Some("wait") => {
                while !self.cancelled.load(Ordering::SeqCst) {
                    std::hint::spin_loop();
                }
                Err(SqlError::new(SqlState::QUERY_CANCELED, "cancelled"))
            }
            Some("create") => {
                let done = Outcome::Done { tag: "CREATE TABLE".to_owned() };
                Ok(Answer { notices: vec!["it was there".to_owned()], outcomes: vec![done] })
            }
            _ => {
                let array: ArrayRef = Arc::new(Int32Array::from(vec![7]));
                let batches = vec![RecordBatch::try_from_iter([("n", array)]).unwrap()];
                let columns = vec![Column { name: "n".to_owned(), ty: SqlType::Integer }];
                Ok(Answer { notices: Vec::new(), outcomes: vec![Outcome::Rows { columns, batches }] })
            }
        }
    }

    fn canceller(&self) -> Canceller {
        let cancelled = self.cancelled.clone();
        Box::new(move || cancelled.store(true, Ordering::SeqCst))
    }

    fn progress(&self) -> ProgressReader {
        Box::new(|| None)
    }

    fn about(&self) -> About {
        About { data: Some("/bank".into()), partitions: 2 }
    }

    fn routines(&self) -> Vec<Routine> {
        let routine = |name: &str, is_procedure| Routine {
            name: name.to_owned(),
            is_procedure,
            result: if is_procedure { "" } else { "integer" }.to_owned(),
            arguments: "a integer".to_owned(),
            language: "sql",
            source: format!("create function {name}(a int) ...;"),
        };
        vec![routine("pay", true), routine("plus", false)]
    }

    fn schemas(&self) -> Vec<String> {
        vec!["public".to_owned()]
    }

    fn tables(&self) -> Vec<crate::sql::Table> {
        let column = |name: &str, ty, nullable, default: Option<&str>| TableColumn {
            name: name.to_owned(),
            ty,
            nullable,
            default: default.map(str::to_owned),
        };
        let index = |name: &str, primary| Index {
            name: name.to_owned(),
            method: if primary { "hash" } else { "ordered" }.to_owned(),
            options: None,
            columns: vec!["w_id".to_owned(), "id".to_owned()],
            unique: primary,
            primary,
        };
        vec![crate::sql::Table {
            schema: "public".to_owned(),
            name: "orders".to_owned(),
            rows: 3,
            columns: vec![
                column("w_id", SqlType::Integer, false, None),
                column("id", SqlType::BigInt, false, None),
                column("note", SqlType::Varchar(24), true, Some("'none'")),
            ],
            indexes: vec![index("orders_pkey", true), index("orders_by_note", false)],
            checks: vec!["id > 0".to_owned()],
            partition_by: Some("w_id".to_owned()),
            layout: "groups ((w_id, id), (note))".to_owned(),
        }]
    }

    fn chunks(&self, _: &crate::sql::Table) -> Vec<Chunks> {
        let chunks = |state: &str, count: i64, bytes, reasons| Chunks {
            state: state.to_owned(),
            count,
            rows: 16_384 * count,
            bytes,
            block_bytes: 500_000 * count,
            reasons,
        };
        let reasons = vec![("new rows come to it".to_owned(), 1)];
        vec![chunks("frozen", 12, 61_440, Vec::new()), chunks("hot", 1, 500_000, reasons)]
    }
}

/// What a script gave: exit status, standard output, standard error.
struct Ran {
    status: u8,
    out: String,
    err: String,
    executed: Vec<String>,
    disk: MemoryDisk,
}

/// Runs `script` as the file `main.sql`, beside other files.
fn run_with(script: &str, files: &[(&str, &str)]) -> Ran {
    let disk = MemoryDisk::default();
    disk.put("main.sql", script.as_bytes());
    files.iter().for_each(|(path, text)| disk.put(path, text.as_bytes()));
    let (mut env, _) = Env::simulated(1);
    env.disk = Arc::new(disk.clone());
    let (fake, interrupt) = (Fake::default(), Interrupt::default());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let args = ShellArgs { file: Some("main.sql".into()), ..ShellArgs::default() };
    let mut shell = Shell::new(&fake, &env, &interrupt, &mut out, &mut err);
    let result = shell.run(&args);
    let status = shell.exit_status(result);
    drop(shell);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { status, out: text(out), err: text(err), executed: fake.executed.lock().clone(), disk }
}

fn run(script: &str) -> Ran {
    run_with(script, &[])
}

const SEVEN: &str = "┌───┐\n│ n │\n├───┤\n│ 7 │\n└───┘\n(1 row)\n\n";

#[test]
fn script_without_failure_prints_rows_only_and_leaves_with_zero() {
    let ran = run("create table t (a int);\nselect 7;\n-- done\n");
    assert_eq!((ran.status, ran.out.as_str()), (0, SEVEN));
    assert_eq!(ran.err, "NOTICE: it was there\n");
    assert_eq!(ran.executed, ["create table t (a int)", "select 7"]);
}

#[test]
fn script_stops_at_the_first_failure_with_its_line_and_status_three() {
    let ran = run("select 7;\n\n-- next fails\nfail here;\nselect 8;\n");
    assert_eq!(ran.status, SCRIPT_FAILED);
    let expected = "main.sql:4: ERROR 42601: it fails\nLINE 4: fail here\n           ^\nmain.sql:4: the script stopped \
                    here: 1 statement before was executed and stays in effect; nothing after was run\n";
    assert_eq!(ran.err, expected);
    assert_eq!(ran.executed, ["select 7", "fail here"]);
}

#[test]
fn script_that_stops_counts_the_statements_of_included_files() {
    let files = [("one.sql", "select 1;\nselect 2;"), ("two.sql", "select 3;\n\nfail;")];
    let ran = run_with("\\i one.sql\nselect 4;\n\\i two.sql\nselect 5;", &files);
    let said = "two.sql:3: the script stopped here: 4 statements before were executed and stay in effect; nothing \
                after was run\n";
    assert!(ran.err.ends_with(said), "{}", ran.err);
    assert_eq!(ran.err.matches("stopped here").count(), 1, "{}", ran.err);
    let ran = run("fail;\nselect 1;");
    let said =
        "main.sql:1: the script stopped here: no statement was executed before; nothing after was run\n";
    assert!(ran.err.ends_with(said), "{}", ran.err);
    let ran = run("select 1;\n\\fly\n");
    assert!(ran.err.contains("main.sql:2: the script stopped here: 1 statement before"), "{}", ran.err);
}

#[test]
fn single_statement_of_the_command_line_that_fails_says_its_error_alone() {
    let said = |commands: &[&str]| {
        let (env, _) = Env::simulated(1);
        let (fake, interrupt) = (Fake::default(), Interrupt::default());
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let commands = commands.iter().map(|&text| text.to_owned()).collect();
        let args = ShellArgs { commands, ..ShellArgs::default() };
        let mut shell = Shell::new(&fake, &env, &interrupt, &mut out, &mut err);
        let result = shell.run(&args);
        assert_eq!(shell.exit_status(result), SCRIPT_FAILED);
        drop(shell);
        String::from_utf8(err).unwrap().lines().last().unwrap().to_owned()
    };
    assert_eq!(said(&["fail"]).trim(), "^");
    assert!(said(&["fail; select 7"]).starts_with("-c:1: the script stopped here: no statement"));
    assert!(said(&["fail", "select 7"]).starts_with("-c #1:1: the script stopped here: no statement"));
    assert!(said(&["select 7", "fail"]).starts_with("-c #2:1: the script stopped here: 1 statement before"));
}

#[test]
fn failure_in_an_included_file_names_that_file_and_ends_all() {
    let ran = run_with("\\i inner.sql\nselect 8;", &[("inner.sql", "select 7;\nfail;")]);
    assert_eq!(ran.status, SCRIPT_FAILED);
    assert!(ran.err.starts_with("inner.sql:2: ERROR"), "{}", ran.err);
    assert_eq!(ran.executed, ["select 7", "fail"]);
}

#[test]
fn file_that_runs_itself_is_refused() {
    let ran = run("\\i main.sql");
    assert_eq!(ran.status, SCRIPT_FAILED);
    assert!(ran.err.contains("one runs itself?"), "{}", ran.err);
}

#[test]
fn missing_file_and_unknown_command_fail_the_script() {
    let ran = run("\\i nowhere.sql\n");
    assert_eq!(ran.status, SCRIPT_FAILED);
    assert!(ran.err.starts_with("cannot open nowhere.sql: "), "{}", ran.err);
    let ran = run("\n\\fly\n");
    assert_eq!(ran.status, SCRIPT_FAILED);
    assert!(ran.err.starts_with("main.sql:2: no command \\fly"), "{}", ran.err);
}

#[test]
fn line_that_is_not_utf8_is_refused_with_its_line() {
    let disk = MemoryDisk::default();
    disk.put("main.sql", b"select 7;\nselect '\xff';\n");
    let (mut env, _) = Env::simulated(1);
    env.disk = Arc::new(disk);
    let (fake, interrupt) = (Fake::default(), Interrupt::default());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut shell = Shell::new(&fake, &env, &interrupt, &mut out, &mut err);
    let result = shell.run_file(Path::new("main.sql"));
    assert_eq!(shell.exit_status(result), SCRIPT_FAILED);
    assert!(shell.done.told().unwrap().starts_with("main.sql:2: the script stopped here: 1 statement"));
    drop(shell);
    assert_eq!(String::from_utf8(err).unwrap(), "main.sql:2: the line is not UTF-8\n");
}

#[test]
fn byte_order_mark_and_windows_line_breaks_are_not_part_of_statements() {
    assert_eq!(run("\u{feff}select\r\n 1;\r\n").executed, ["select\n 1"]);
}

#[test]
fn quit_in_a_script_ends_it_with_zero() {
    let ran = run("select 7;\n\\q\nfail;");
    assert_eq!(ran.status, 0);
    assert_eq!(ran.executed, ["select 7"]);
}

#[test]
fn format_expanded_and_timing_change_what_is_printed() {
    let ran = run("\\format csv\nselect 7;\n\\format json\nselect 7;\n\\format box\n\\x\nselect 7;\n");
    assert_eq!(ran.out, "n\n7\n[\n{\"n\": 7}\n]\n─[ RECORD 1 ]\nn │ 7\n(1 row)\n\n");
    assert_eq!(run("\\timing on\nselect 7;").out, format!("{SEVEN}Time: 0.000 ms\n"));
}

#[test]
fn output_redirected_to_a_file_returns_when_told() {
    let ran = run("\\o rows.txt\nselect 7;\n\\o\nselect 7;\n");
    assert_eq!(ran.out, SEVEN);
    assert_eq!(ran.disk.get("rows.txt").unwrap(), SEVEN.as_bytes());
}

#[test]
fn describe_shows_columns_indexes_constraints_and_placement() {
    let out = run("\\d ORDERS\n").out;
    let expected = "\
Table \"public.orders\"
┌────────┬───────────────────────┬──────────┬─────────┐
│ Column │         Type          │ Nullable │ Default │
├────────┼───────────────────────┼──────────┼─────────┤
│ w_id   │ integer               │ not null │         │
│ id     │ bigint                │ not null │         │
│ note   │ character varying(24) │          │ 'none'  │
└────────┴───────────────────────┴──────────┴─────────┘
(3 rows)

Indexes:
    \"orders_pkey\" primary key, hash (w_id, id)
    \"orders_by_note\" ordered (w_id, id)
Check constraints:
    CHECK (id > 0)
Partitioning: hash (w_id)
Layout: groups ((w_id, id), (note))
Rows: 3
Chunks: 12 frozen in 61440 bytes instead of 6000000; 1 hot in 500000 bytes

";
    assert_eq!(out, expected);
    let (before, _) = expected.split_once("Chunks:").unwrap();
    let more = "\
Chunks:
    12 frozen: 196608 rows in 61440 bytes instead of 6000000
    1 hot: 16384 rows in 500000 bytes
        1: new rows come to it

";
    assert_eq!(run("\\d+ orders\n").out, format!("{before}{more}"));
    assert!(run("\\d public.orders").out.starts_with("Table"));
    assert!(run("\\d other.orders").err.contains("there is no table \"other.orders\""));
}

#[test]
fn lists_show_tables_indexes_and_schemas() {
    let out = run("\\format csv\n\\dt\n\\di\n\\dn\n\\df p?y\n\\dt x*\n").out;
    let expected = "\
Schema,Name,Rows,Partitioning,Layout
public,orders,3,hash (w_id),\"groups ((w_id, id), (note))\"
Schema,Name,Table,Columns,Method,Keys
public,orders_pkey,orders,\"w_id, id\",hash,primary key
public,orders_by_note,orders,\"w_id, id\",ordered,\"\"
Name
public
Schema,Name,Result data type,Argument data types,Type,Language
public,pay,\"\",a integer,procedure,sql
Schema,Name,Rows,Partitioning,Layout
";
    assert_eq!(out, expected);
    assert_eq!(run("\\sf public.plus(int)\n").out, "create function plus(a int) ...;\n");
    assert!(run("\\sf minus\n").err.contains("no function or procedure \"minus\""));
    let said = "You are using the database kept in /bank, in this process, with 2 partitions.\n";
    assert_eq!([run("\\conninfo\n").out, run("\\l\n").out], [said, said]);
    assert!(run("\\d orders_pkey\n").out.contains("primary key"));
}

#[test]
fn commands_work_in_the_middle_of_a_statement() {
    let ran =
        run("select\n\\echo here\n7 \\g\nselect 7 \\gx\n\\echo 'there  is'\n\\warn beside\nselect 8\n\\r\n");
    let expanded = "─[ RECORD 1 ]\nn │ 7\n(1 row)\n\n";
    assert_eq!(ran.out, format!("here\n{SEVEN}{expanded}there  is\n"));
    assert_eq!((ran.status, ran.err.as_str()), (0, "beside\n"));
    assert_eq!(ran.executed, ["select\n\n7", "select 7"]);
    let ran = run("select 7 \\g rows.txt\n\\p\n\\g\n");
    assert_eq!(
        (ran.out.as_str(), ran.disk.get("rows.txt").unwrap()),
        ("Nothing is typed yet.\n", SEVEN.into())
    );
    assert!(ran.err.starts_with("there is no statement to run yet"), "{}", ran.err);
    let ran = run("select 7,\n\\w kept.sql\n8 \\q\n");
    assert_eq!((ran.status, ran.disk.get("kept.sql").unwrap()), (0, b"select 7,;\n".to_vec()));
    assert_eq!(ran.executed.len(), 0);
}

#[test]
fn copy_as_psql_spells_it_is_the_statement_copy() {
    let ran = run("\\copy t from 'a.csv' csv header;\n\\copy t\n");
    assert_eq!(ran.executed, ["COPY t from 'a.csv' csv header"]);
    assert!(ran.err.contains("main.sql:2") && ran.err.contains("say \\copy TABLE from"), "{}", ran.err);
}

#[test]
fn settings_of_printing_are_shown_and_obeyed() {
    let ran = run("\\pset\n\\pset null '?'\n\\pset expanded on\n\\pset pager off\n\\pset\n");
    let expected = "expanded  auto\nformat    box\npager     on\nnull      'NULL'\nexpanded  on\nformat    box\npager     \
                    off\nnull      '?'\n";
    assert_eq!(ran.out, expected);
}

#[test]
fn interrupt_cancels_the_statement_that_runs() {
    let (env, _) = Env::simulated(1);
    let (fake, interrupt) = (Fake::default(), Interrupt::default());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let presser = interrupt.clone();
    let pressing = albireo_env::spawn("presser", move || while !presser.request() {}).unwrap();
    let mut shell = Shell::new(&fake, &env, &interrupt, &mut out, &mut err);
    let result = shell.run_script("pipe", b"wait;".as_slice());
    assert_eq!(shell.exit_status(result), crate::interrupt::EXIT_STATUS);
    drop(shell);
    pressing.join().unwrap();
    assert_eq!(String::from_utf8(err).unwrap(), "pipe:1: ERROR 57014: cancelled\n");
}

#[test]
fn list_after_an_interrupt_is_printed() {
    let (env, _) = Env::simulated(1);
    let (fake, interrupt) = (Fake::default(), Interrupt::default());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    interrupt.request();
    let mut shell = Shell::new(&fake, &env, &interrupt, &mut out, &mut err);
    assert!(shell.run_script("pipe", b"\\dn".as_slice()).is_ok());
    drop(shell);
    assert!(String::from_utf8(out).unwrap().contains("public"));
}

/// Writes nothing: whoever read has gone.
struct ClosedPipe;

impl Write for ClosedPipe {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn closed_pipe_ends_the_shell_quietly() {
    let (env, _) = Env::simulated(1);
    let (fake, interrupt) = (Fake::default(), Interrupt::default());
    let (mut out, mut err) = (ClosedPipe, Vec::new());
    let mut shell = Shell::new(&fake, &env, &interrupt, &mut out, &mut err);
    let result = shell.run_script("pipe", b"select 7; select 7;".as_slice());
    assert_eq!(shell.exit_status(result), 0);
    drop(shell);
    assert_eq!((fake.executed.lock().len(), err.len()), (1, 0));
}
