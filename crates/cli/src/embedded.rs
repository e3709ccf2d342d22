//! The shell's database: an embedded one, as [`Sql`].

use crate::catalog;
use crate::sql::{Answer, Canceller, Column, Outcome, Sql, Table};
use albireo::{Config, Connection, Database, SqlError};
use albireo_env::Env;
use std::sync::Arc;

/// A connection to a database that lives as long as this.
pub struct Embedded {
    connection: Arc<Connection>,
}

impl Embedded {
    /// Makes an empty database in memory.
    ///
    /// # Errors
    /// A setting is out of range, or the system refuses threads.
    pub fn open(partitions: u16, env: &Env) -> Result<Self, SqlError> {
        let database = Database::with_env(Config { partitions, ..Config::default() }, env.clone())?;
        Ok(Self { connection: Arc::new(database.connect()) })
    }
}

impl Sql for Embedded {
    fn execute(&self, sql: &str) -> Result<Answer, SqlError> {
        let mut answer = Answer::default();
        for outcome in self.connection.execute(sql)? {
            answer.outcomes.push(match outcome {
                albireo::Outcome::Rows(result) => {
                    let column = |column: albireo::Column| Column { name: column.name, ty: column.ty };
                    let columns = result.columns.into_iter().map(column).collect();
                    Outcome::Rows { columns, batches: result.batches }
                }
                albireo::Outcome::Done { tag, notices, .. } => {
                    answer.notices.extend(notices);
                    Outcome::Done { tag }
                }
            });
        }
        Ok(answer)
    }

    fn canceller(&self) -> Canceller {
        let connection = self.connection.clone();
        Box::new(move || connection.cancel())
    }

    fn schemas(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.connection.database().catalog().schemas().map(str::to_owned).collect();
        names.sort();
        names
    }

    fn tables(&self) -> Vec<Table> {
        let database = self.connection.database();
        let catalog = database.catalog();
        let mut tables: Vec<Table> =
            catalog.tables().map(|def| catalog::table(def, database.row_count(def.id))).collect();
        tables.sort_by(|a, b| (&a.schema, &a.name).cmp(&(&b.schema, &b.name)));
        tables
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use albireo_base::SqlState;

    #[test]
    fn statements_reach_the_database_and_its_tables_are_listed() {
        let sql = Embedded::open(1, &Env::real()).unwrap();
        let script =
            "create table b (id int primary key); create table a (id int); insert into b values (1), (2)";
        let answer = sql.execute(script).unwrap();
        let tags: Vec<_> = answer
            .outcomes
            .iter()
            .map(|outcome| match outcome {
                Outcome::Done { tag } => tag.as_str(),
                Outcome::Rows { .. } => "rows",
            })
            .collect();
        assert_eq!(tags, ["CREATE TABLE", "CREATE TABLE", "INSERT 0 2"]);
        let tables: Vec<_> = sql.tables().into_iter().map(|table| (table.name, table.rows)).collect();
        assert_eq!(tables, [("a".to_owned(), 0), ("b".to_owned(), 2)]);
        assert!(sql.schemas().contains(&"public".to_owned()));
    }

    #[test]
    fn query_gives_rows_and_a_mistake_an_error_with_its_place() {
        let sql = Embedded::open(1, &Env::real()).unwrap();
        let answer = sql.execute("select 40 + 2 as answer").unwrap();
        let [Outcome::Rows { columns, batches }] = answer.outcomes.as_slice() else { panic!("{answer:?}") };
        assert_eq!((columns[0].name.as_str(), batches[0].num_rows()), ("answer", 1));
        let error = sql.execute("select nothing").unwrap_err();
        assert_eq!((error.state(), error.position()), (SqlState::UNDEFINED_COLUMN, Some(8)));
    }
}
