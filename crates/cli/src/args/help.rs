//! What `--help` says after the options.
//!
//! The lines of a paragraph are one for clap, which breaks them at the width of the terminal. Lines that begin with a
//! blank stay as they are.

/// A text with each of its paragraphs on one line.
pub fn flowing(text: &str) -> String {
    let mut flowing = String::with_capacity(text.len());
    let mut flows = false;
    for line in text.lines() {
        let is_text = !line.is_empty() && !line.starts_with(' ');
        match (flowing.is_empty(), flows && is_text) {
            (true, _) => {}
            (false, true) => flowing.push(' '),
            (false, false) => flowing.push('\n'),
        }
        flowing.push_str(line);
        flows = is_text && !line.ends_with(':');
    }
    flowing
}

/// Of the program.
pub const EXAMPLES: &str = "\
Examples:
  albireo shell
      Type SQL; \\? lists the shell's commands, \\q quits
  albireo shell schema.sql
      Run a script; stop at the first statement that fails
  echo \"SELECT 40 + 2 AS answer\" | albireo shell --format json
      Run SQL from a pipe
  albireo shell --data bank
      Use the database in the directory bank; create it if there is none
  albireo bench ch
      TPC-C transactions and CH-benCHmark queries on the same data: 5 warehouses, 20 seconds
  albireo bench tpcc --warehouses 10 --seconds 60 --mix two --format json > result.json
      Transactions only; one JSON object on standard output, progress on standard error
  albireo test bank.test.sql --load bank.sql
      Tests of procedures, each in a transaction that is rolled back
  albireo log bank --table account --limit 10
      The first changes of a table in the redo log
  albireo verify bank
      Check the archives and the redo log of a database
  albireo backup bank bank.tar
      Back up a database to one file
  albireo restore bank.tar bank2
      Create a database from a backup
  albireo restore bank bank-before --until 2026-01-31T12:00:00Z
      Create a database with the contents of another at an earlier time

Exit status: 0 success; 1 a benchmark failed or found the data inconsistent, a test failed, or files are damaged or
cannot be read; 2 invalid command line; 3 a statement of a script failed; 70 a bug in the program; 130 interrupted by
Ctrl-C.";

/// Of `shell`.
pub const SHELL: &str = "\
At a terminal, \\? lists the shell's commands and \\h the SQL statements; Ctrl-C cancels a statement, \\q and Ctrl-D
quit. A result wider than the terminal is printed one value per line (\\x), a longer one goes through the pager.

Each statement of a script is its own transaction. The script stops at the first failure; the statements before it stay
in effect, and standard error says how many they were.

Environment:
  ALBIREO_PAGER, PAGER            pager; less by default, none if empty
  ALBIREO_EDITOR, EDITOR, VISUAL  editor of \\e; vi by default
  XDG_DATA_HOME                   the history is albireo/history below it; ~/.local/share by default

Exit status: 0 success, also if whoever read the output closed it; 1 the database cannot be opened, or output cannot be
written; 2 invalid command line; 3 a statement or command of a script failed; 130 interrupted by Ctrl-C.";

/// Of `test`.
pub const TEST: &str = "\
A test file is plain SQL. Everything before the first line `-- test: NAME` runs once and stays in effect: tables, rows,
functions. Each test is one transaction that is rolled back, so no test sees what another did. A test fails
  - if a statement fails: by ASSERT, RAISE EXCEPTION, a constraint, ...
  - if a statement returns a single boolean column, and it has no rows or not all of them are true.
`-- error: SQLSTATE` on the line before a statement expects it to fail with that code; the test continues as if the
statement had not been there.

  CREATE TABLE account (id integer PRIMARY KEY, cents bigint CHECK (cents >= 0));
  INSERT INTO account VALUES (1, 100), (2, 0);
  CREATE PROCEDURE pay(p_from integer, p_to integer, p_cents bigint) LANGUAGE plpgsql AS $$
  BEGIN
      UPDATE account SET cents = cents - p_cents WHERE id = p_from;
      UPDATE account SET cents = cents + p_cents WHERE id = p_to;
  END $$;

  -- test: money moves
  CALL pay(1, 2, 30);
  SELECT cents = 70 FROM account WHERE id = 1;
  SELECT cents = 30 FROM account WHERE id = 2;

  -- test: nobody pays more than there is
  -- error: 23514
  CALL pay(1, 2, 101);
  SELECT sum(cents) = 100 FROM account;

A test may run SELECT, INSERT, UPDATE, DELETE and CALL, with the queries that procedures can run. Definitions, COPY and
settings belong before the first test.

Exit status: 0 all tests passed; 1 a test failed or a file could not be run; 2 invalid command line; 130 interrupted by
Ctrl-C.";

/// Of `log`.
pub const LOG: &str = "\
Each line is one change: the number of its record, the record's time (UTC), its partition, or `crossing` for a
transaction over all partitions, its kind, and the change:
  definition  a statement that created, altered or dropped something
  write       a row that a transaction inserted, updated or deleted, as the transaction left it;
              the columns before the colon identify the row
  command     a call of a function or procedure that recovery repeats, with version and arguments

  1  2026-01-31T12:00:00.000000Z  crossing     definition  CREATE TABLE t (id INT PRIMARY KEY,n INT)
  2  2026-01-31T12:00:01.500000Z  partition 0  write       insert t: id=1 n=10
  2  2026-01-31T12:00:01.500000Z  partition 0  write       update t id=2: n=7
  2  2026-01-31T12:00:01.500000Z  partition 0  write       ... and 98 more rows in t (98 updated)

With --format json each line is an object with the same fields and the position in the log's files; \"row\" is a change,
\"more_rows\" the number of rows that are not printed.

If the beginning of the log was removed after an archive, names come from the oldest archive; rows of tables that were
dropped before it, or whose indexes have changed since, cannot be printed.

Nothing is locked or changed. The log of an open database can be read; its latest records may be missing. A write at the
end that was interrupted by a crash is left out, with a message on standard error.

Exit status: 0 success; 1 the log is damaged (standard error says where) or cannot be read; 2 invalid command line.";

/// Of `verify`.
pub const VERIFY: &str = "\
Reads all archives and the whole redo log, and checks that no file is missing, that checksums match, that every record
fits the tables at its position, and that the log has what each archive needs; of a backup also that it is complete.
Prints what there is, and each fault with file, byte and record. Nothing is locked or changed: the files may be
read-only or in use.

The end of the log is checked against its control files. They say once a second how far the log was durable, and after a
clean close where it ends; anything missing before that is a fault. If the database is open or was not closed cleanly,
what was acknowledged after the control files were last written cannot be checked, and the result is \"sound, as far as
can be known\". A write at the end that was interrupted by a crash is no fault.

Exit status: 0 sound; 1 something is damaged or cannot be read; 2 invalid command line.";

/// Of `archive`.
pub const ARCHIVE: &str = "\
Opens the database, which takes as long as starting it, writes an archive, and removes older archives and the segments
of the redo log that no archive needs any more. Any Arrow tool can read an archive's files.

While a process has the database open, its statement CHECKPOINT does the same beside running transactions.

Exit status: 0 the archive is complete; 1 it failed, and nothing was removed; 2 invalid command line; 130 interrupted by
Ctrl-C.";

/// Of `backup`.
pub const BACKUP: &str = "\
Opens the database, which takes as long as starting it, writes a fresh archive, and copies it with the redo log after it
to TARGET, and last a list of all files with their checksums: without the list the backup is incomplete. `albireo verify
TARGET` checks it; `albireo restore TARGET DIRECTORY` creates a database from it.

While a process has the database open, its statement BACKUP TO 'TARGET' and Database::backup do the same beside running
transactions.

Exit status: 0 the backup is complete; 1 it failed; 2 invalid command line; 130 interrupted by Ctrl-C.";

/// Of `restore`.
pub const RESTORE: &str = "\
Checks everything first and reports all problems at once: whether the backup is complete, sound and of a format that
this program reads, whether DIRECTORY is new or empty, and whether disk and memory suffice. Then it copies the files and
opens the database once. A directory whose restore was interrupted cannot be opened: remove it and restore again.

With --until the database is recovered to that moment and written to DIRECTORY. `albireo log` prints the numbers and
times of records; a time without a zone is UTC. Archives after the moment are skipped; the moment must not be before the
oldest archive, unless the log is there from its beginning. BACKUP must be a directory.

  albireo restore bank.backup bank2
  albireo restore bank bank-before --until 2026-01-31T12:00:00Z
  albireo restore bank bank-before --until 4711

Exit status: 0 the database is complete; 1 it failed; 2 invalid command line; 130 interrupted by Ctrl-C.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_flow_and_indented_lines_stay() {
        let text = "one\ntwo:\n  a\n  b\nthree\nfour\n\nfive\nsix";
        assert_eq!(flowing(text), "one two:\n  a\n  b\nthree four\n\nfive six");
    }

    #[test]
    fn indented_lines_fit_the_width_of_help() {
        for text in [EXAMPLES, SHELL, TEST, LOG, VERIFY, ARCHIVE, BACKUP, RESTORE] {
            for line in text.lines().filter(|line| line.starts_with(' ')) {
                assert!(line.chars().count() <= 100, "{line}");
            }
        }
    }
}
