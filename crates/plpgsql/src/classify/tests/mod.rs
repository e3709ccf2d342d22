mod repeatable;
mod routing;
mod tpcc;
mod verdicts;

use std::sync::Arc;

use super::{Class, explain, remarks};
use crate::body::{Routine, Routines};
use crate::expr::RoutineId;
use crate::library::Library;

const TABLES: &str = "
    CREATE TABLE account (id integer PRIMARY KEY, cents numeric(12,2), note text) PARTITION BY HASH (id);
    CREATE TABLE entry (account bigint, line integer, said text, PRIMARY KEY (account, line))
        PARTITION BY HASH (account);
    CREATE TABLE person (name varchar(20) PRIMARY KEY, age integer) PARTITION BY HASH (name);
    CREATE TABLE rate (currency text PRIMARY KEY, value numeric(8,4));";

/// A database with these tables and routines.
fn database(routines: &str) -> Library {
    let mut database = Library::new();
    for script in [TABLES, routines] {
        for statement in albireo_sql::split(script).unwrap() {
            database.run(statement.text).unwrap_or_else(|error| panic!("{}\n{error}", statement.text));
        }
    }
    database
}

fn id_of(database: &Library, name: &str) -> RoutineId {
    database.named(name)[0].0
}

fn routine(database: &Library, name: &str) -> Arc<Routine> {
    database.bound(id_of(database, name)).unwrap()
}

fn class_in(database: &Library, name: &str) -> Class {
    Class::of_routine(id_of(database, name), database).unwrap()
}

/// The lines of EXPLAIN of a routine, from `first` on.
fn lines(database: &Library, name: &str) -> Vec<String> {
    let class = class_in(database, name);
    let sterile = class.sterile([("itself", &class)].into_iter());
    let routine = routine(database, name);
    explain(&routine, 1, &class, &sterile, "execution: interpreted", database)
}

/// A procedure `f` with these parameters and this body.
fn procedure(parameters: &str, body: &str) -> String {
    format!("CREATE PROCEDURE f({parameters}) LANGUAGE plpgsql AS $$ {body} $$")
}

/// The class of procedure `f` in one line, without the word before it.
fn home(parameters: &str, body: &str) -> String {
    let database = database(&procedure(parameters, body));
    lines(&database, "f")[1].trim_start_matches("class: ").to_owned()
}

#[test]
fn remark_names_the_index_that_a_read_of_all_rows_wants() {
    let database = database(
        "CREATE PROCEDURE f(p integer, q text) LANGUAGE plpgsql AS $$
         DECLARE n integer := (SELECT count(*) FROM rate WHERE value = 2);
         BEGIN
             UPDATE entry SET said = 'x' WHERE said = q AND account = p;
             DELETE FROM entry WHERE line = p;
             PERFORM 1 FROM account a JOIN entry e ON e.said = a.note WHERE a.id = p;
             PERFORM 1 FROM account WHERE cents > 5;
             PERFORM 1 FROM account WHERE id = p AND note = q;
             PERFORM count(*) FROM rate;
         END $$",
    );
    assert_eq!(
        remarks(&routine(&database, "f")),
        [
            "line 2 reads all rows of \"rate\"; hint: CREATE INDEX ON rate (value)",
            "line 5 reads all rows of \"entry\"; hint: CREATE INDEX ON entry (line)",
            "line 6 reads all rows of \"entry\"; hint: CREATE INDEX ON entry (said)",
        ]
    );
}

#[test]
fn explain_shows_each_statement_with_its_access_paths() {
    let database = database(
        "CREATE FUNCTION g(p integer) RETURNS text LANGUAGE sql AS
             'SELECT note FROM account WHERE id = p';
         CREATE FUNCTION f(p integer, q text, OUT total bigint) LANGUAGE plpgsql AS $$
         DECLARE last integer;
         BEGIN
             SELECT max(line) INTO last FROM entry WHERE account = p;
             INSERT INTO entry VALUES (p, last + 1, q || g(p)), (7, 1, q);
             IF last > (SELECT count(*) FROM rate) THEN
                 UPDATE account SET id = id + 1 WHERE id = last AND cents > 0;
             END IF;
             FOR total IN
                 SELECT e.account FROM account a JOIN entry e ON e.account = a.id WHERE a.note = q AND e.line > last
             LOOP
                 DELETE FROM entry WHERE account = total AND line BETWEEN 1 AND last;
             END LOOP;
         END $$",
    );
    let lines = lines(&database, "f");
    assert_eq!(lines[0], "function f(integer, text), version 1");
    assert_eq!(lines[8], "execution: interpreted");
    assert_eq!(
        lines[9..].join("\n"),
        "line 4: SELECT
  entry: read, index entry_pkey (account, range of line), partition by p
line 5: INSERT
  entry: insert, partition by p
  entry: insert, partition by 7
line 6: SELECT
  rate: read, all rows, shared
line 7: UPDATE
  account: write, index account_pkey (id), partition by last
  account: new partition, partition by an expression
line 10: SELECT
  account: read, all rows, all partitions
  entry: read, index entry_pkey (account, range of line), partition by id
line 12: DELETE
  entry: write, index entry_pkey (account, range of line), partition by total
calls g(integer)"
    );
}
