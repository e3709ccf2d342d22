//! The shell's database: an embedded one, as [`Sql`].

use crate::catalog;
use crate::recovering::Shown;
use crate::settings::{EvictedFiles, Settings};
use crate::sql::{About, Answer, Canceller, Chunks, Column, Outcome, ProgressReader, Routine, Sql, Table};
use albireo::{Config, Connection, Database, QueryResult, RecoveryReport, SqlError, Value};
use albireo_env::Env;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A connection to a database that is open as long as this.
pub struct Embedded {
    connection: Arc<Connection>,
    /// Where it is kept; `None`: in memory.
    data: Option<PathBuf>,
    /// Dropped last: the database has files open there.
    _evicted: EvictedFiles,
}

impl Embedded {
    /// Opens the database in `data`, or makes an empty one in memory. Without `partitions` it has as many
    /// as there were, or one; the other settings are those of `settings`.
    ///
    /// # Errors
    /// A setting is out of range, or the system refuses threads; the directory cannot be used, or what is in
    /// it is damaged.
    pub fn open(
        partitions: Option<u16>,
        data: Option<&Path>,
        settings: Settings,
        env: &Env,
    ) -> Result<Self, SqlError> {
        let Settings { config, evicted } = settings;
        // What is wrong with the directory is for opening it to say.
        let there = || data.and_then(|path| Database::kept_partitions(path, env).ok().flatten());
        let partitions = partitions.or_else(there).unwrap_or(1);
        let config = Config { partitions, ..config };
        let database = match data {
            Some(path) => {
                let mut shown = Shown::on_stderr();
                let mut listener = |progress| shown.tell(progress);
                let opened = Database::open_with_progress(path, config, env.clone(), &mut listener);
                shown.end();
                opened?
            }
            None => Database::in_memory_in(config, env.clone())?,
        };
        let connection = Arc::new(database.connect());
        Ok(Self { connection, data: data.map(Path::to_owned), _evicted: evicted })
    }

    /// The database.
    pub fn database(&self) -> &Database {
        self.connection.database()
    }

    /// What opening it did, in lines for people; none for a database in memory.
    pub fn recovered(&self) -> Vec<String> {
        let Some(data) = &self.data else { return Vec::new() };
        let report = self.connection.database().recovery();
        let RecoveryReport { archive, archive_rows, load_ns, records, rows, log_bytes, replay_ns, .. } =
            report;
        let place = data.display();
        let from_archive = archive.map_or_else(String::new, |number| {
            format!("{archive_rows} rows of archive {number} in {:.1} s, ", load_ns as f64 / 1e9)
        });
        let did = match (archive, records) {
            (None, 0) => format!("albireo: an empty database in {place}"),
            _ => format!(
                "albireo: recovered {place}: {from_archive}{records} records with {rows} rows from {:.1} MB of log \
                 in {:.1} s",
                log_bytes as f64 / 1e6,
                replay_ns as f64 / 1e9
            ),
        };
        let notices = report.left_out.into_iter().chain(report.torn).chain(report.notices);
        let notices = notices.map(|notice| format!("albireo: {notice}"));
        std::iter::once(did).chain(notices).collect()
    }
}

impl Sql for Embedded {
    fn execute(&self, sql: &str) -> Result<Answer, SqlError> {
        let mut answer = Answer::default();
        for outcome in self.connection.execute(sql)? {
            answer.outcomes.push(match outcome {
                albireo::Outcome::Rows(result) => {
                    let column =
                        |column: &albireo::Column| Column { name: column.name.clone(), ty: column.ty };
                    let columns = result.columns.iter().map(column).collect();
                    Outcome::Rows { columns, batches: result.batches().into_owned() }
                }
                albireo::Outcome::Done { tag, notices, .. } => {
                    answer.notices.extend(notices);
                    Outcome::Done { tag: tag.into_owned() }
                }
            });
        }
        Ok(answer)
    }

    fn copy_from(&self, sql: &str, reader: &mut (dyn Read + Send)) -> Result<u64, SqlError> {
        self.connection.copy_from(sql, reader)
    }

    fn copy_to(&self, sql: &str, writer: &mut (dyn Write + Send)) -> Result<u64, SqlError> {
        self.connection.copy_to(sql, writer)
    }

    fn canceller(&self) -> Canceller {
        let token = self.connection.cancel_token();
        Box::new(move || token.cancel())
    }

    fn progress(&self) -> ProgressReader {
        let connection = self.connection.clone();
        Box::new(move || connection.progress())
    }

    fn about(&self) -> About {
        About { data: self.data.clone(), partitions: self.database().partitions() }
    }

    fn routines(&self) -> Vec<Routine> {
        self.database().routines()
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

    fn chunks(&self, table: &Table) -> Vec<Chunks> {
        let query = "SELECT state, reason, count(*), sum(rows)::bigint, sum(bytes)::bigint, sum(block_bytes)::bigint \
                     FROM albireo.chunks WHERE schema = $1 AND \"table\" = $2 GROUP BY state, reason";
        let of = [Value::Text(table.schema.clone()), Value::Text(table.name.clone())];
        self.database().query(query, &of).map_or_else(|_| Vec::new(), |result| by_states(&result))
    }
}

/// The chunks by their states, from rows by states and reasons: the most frequent come first.
fn by_states(result: &QueryResult) -> Vec<Chunks> {
    let number = |row: usize, column: usize| match result.value(row, column) {
        Value::BigInt(number) => number,
        _ => 0,
    };
    let mut states: BTreeMap<String, Chunks> = BTreeMap::new();
    for row in 0..result.row_count() {
        let state = result.value(row, 0).to_string();
        let chunks = states.entry(state.clone()).or_insert_with(|| Chunks { state, ..Chunks::default() });
        let count = number(row, 2);
        chunks.count += count;
        chunks.rows += number(row, 3);
        chunks.bytes += number(row, 4);
        chunks.block_bytes += number(row, 5);
        let Value::Text(reason) = result.value(row, 1) else { continue };
        // What is behind a colon differs from chunk to chunk.
        let reason = reason.split_once(':').map_or(reason.as_str(), |(reason, _)| reason);
        match chunks.reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, of_reason)) => *of_reason += count,
            None => chunks.reasons.push((reason.to_owned(), count)),
        }
    }
    let mut states: Vec<Chunks> = states.into_values().collect();
    states.sort_by_key(|chunks| Reverse(chunks.count));
    for chunks in &mut states {
        chunks.reasons.sort_by(|(one, some), (other, more)| more.cmp(some).then_with(|| one.cmp(other)));
    }
    states
}

#[cfg(test)]
mod tests {
    use super::*;
    use albireo_base::SqlState;
    use albireo_env::MemoryDisk;

    #[test]
    fn statements_reach_the_database_and_its_tables_are_listed() {
        let sql = Embedded::open(None, None, Settings::default(), &Env::real()).unwrap();
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
        let chunks = |table: usize| sql.chunks(&sql.tables()[table]);
        assert_eq!(chunks(0), []);
        let [hot] = chunks(1).try_into().unwrap();
        assert_eq!((hot.state.as_str(), hot.count, hot.rows), ("hot", 1, 2));
        assert_eq!((hot.bytes, hot.reasons), (hot.block_bytes, vec![("new rows come to it".to_owned(), 1)]));
        sql.execute("call albireo.freeze('b')").unwrap();
        let [frozen] = chunks(1).try_into().unwrap();
        assert_eq!((frozen.state.as_str(), frozen.count, frozen.rows), ("frozen", 1, 2));
        assert!(frozen.bytes < frozen.block_bytes / 4 && frozen.reasons.is_empty(), "{frozen:?}");
    }

    #[test]
    fn chunks_are_summed_up_by_state_and_reasons_but_for_their_figures() {
        let sql = Embedded::open(None, None, Settings::default(), &Env::real()).unwrap();
        let rows = "SELECT state, reason, a::bigint, b::bigint, c::bigint, d::bigint FROM (VALUES
                    ('cooling', 'rows that are written move out first: 17 so far', 1, 10, 5, 8),
                    ('cooling', 'rows that are written move out first: 4 so far', 1, 20, 5, 8),
                    ('cooling', 'transactions read it often', 3, 30, 5, 8),
                    ('frozen', NULL, 9, 40, 1, 8)) v (state, reason, a, b, c, d)";
        let reason = |reason: &str, count| (reason.to_owned(), count);
        let reasons =
            vec![reason("transactions read it often", 3), reason("rows that are written move out first", 2)];
        let chunks = |state: &str, count, rows, bytes, block_bytes, reasons| Chunks {
            state: state.to_owned(),
            count,
            rows,
            bytes,
            block_bytes,
            reasons,
        };
        let expected = [chunks("frozen", 9, 40, 1, 8, Vec::new()), chunks("cooling", 5, 60, 15, 24, reasons)];
        assert_eq!(by_states(&sql.database().query(rows, &[]).unwrap()), expected);
    }

    #[test]
    fn database_in_a_directory_is_opened_again_with_its_partitions() {
        let env = Env { disk: Arc::new(MemoryDisk::default()), ..Env::real() };
        let open =
            |partitions| Embedded::open(partitions, Some(Path::new("/data")), Settings::default(), &env);
        let sql = open(Some(3)).unwrap();
        assert_eq!(sql.recovered(), ["albireo: an empty database in /data"]);
        sql.execute("create table t (a int); insert into t values (1), (2)").unwrap();
        drop(sql);
        let sql = open(None).unwrap();
        let said = sql.recovered();
        assert!(said[0].starts_with("albireo: recovered /data: 2 records with 2 rows from "), "{said:?}");
        assert_eq!((said.len(), sql.tables()[0].rows), (1, 2));
        assert_eq!(sql.connection.database().partitions(), 3);
        drop(sql);
        assert_eq!(open(Some(2)).err().unwrap().hint(), Some("Open it with 3 partitions."));
    }

    #[test]
    fn query_gives_rows_and_a_mistake_an_error_with_its_place() {
        let sql = Embedded::open(None, None, Settings::default(), &Env::real()).unwrap();
        let answer = sql.execute("select 40 + 2 as answer").unwrap();
        let [Outcome::Rows { columns, batches }] = answer.outcomes.as_slice() else { panic!("{answer:?}") };
        assert_eq!((columns[0].name.as_str(), batches[0].num_rows()), ("answer", 1));
        let error = sql.execute("select nothing").unwrap_err();
        assert_eq!((error.state(), error.position()), (SqlState::UNDEFINED_COLUMN, Some(8)));
    }
}
