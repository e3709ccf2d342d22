//! What tests need to ask SQLite the same questions: the queries in its dialect.
//!
//! Not responsible for: loading it (see `tests/`: [`crate::tpcc::population::Sink`] over
//! [`crate::tpcc::rows::Row::cells`] is all it takes) and for `mod` and `ascii`, which have to be
//! registered as functions of integers and text. Timestamps are expected as text of 26 characters,
//! `YYYY-MM-DD HH:MM:SS.ffffff`, which compares as it should.

/// `sql`, one of this crate's queries, as SQLite understands it.
pub fn sqlite(sql: &str) -> String {
    sql.replace("extract(year FROM o_entry_d)", "CAST(substr(o_entry_d, 1, 4) AS INTEGER)")
        .replace("$1", "?1")
        .replace("$2", "?2")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ch::queries::{QUERIES, TOP10};

    #[test]
    fn queries_for_sqlite_have_neither_extract_nor_dollars() {
        for query in QUERIES.iter().chain([&TOP10]) {
            let sql = sqlite(query.sql);
            let body: String = sql.lines().filter(|line| !line.starts_with("--")).collect();
            assert!(!body.contains("extract(") && !body.contains('$'), "{}", query.name);
        }
    }
}
