//! Every form of change leaves the same rows and gives the same, whichever way its rows are found.

use super::{forced, shown};
use crate::statements::path::ExecutionPath;
use crate::{Database, Outcome};

const TABLES: &str = "
CREATE TABLE u (id INTEGER PRIMARY KEY, g INTEGER, v INTEGER NOT NULL CHECK (v > -1000), w VARCHAR(6) DEFAULT 'none',
    m NUMERIC(6,2) DEFAULT 1.5, c CHAR(3)) PARTITION BY HASH (id);
CREATE TABLE o (k INTEGER, g INTEGER, x INTEGER, y TEXT, PRIMARY KEY (k)) PARTITION BY HASH (k);
CREATE TABLE shared (a INTEGER PRIMARY KEY, b TEXT);
INSERT INTO u SELECT i, i % 4, i * 10, 'u' || i, i / 3.0, 'c' FROM generate_series(1, 12) s (i);
INSERT INTO o SELECT i, i % 5, i * 100, chr(96 + i) FROM generate_series(1, 9) s (i);
INSERT INTO shared VALUES (1, 'one'), (2, 'two')";

/// Statements one after another; all that is wrong with one is its SQLSTATE and place.
const CHANGES: &[&str] = &[
    "UPDATE u SET v = u.v + o.x, c = o.y FROM o WHERE o.k = u.id RETURNING u.*, o.x, o.y || u.w AS yw",
    "UPDATE u SET v = q.s, m = q.s / 7.0 FROM (SELECT g, sum(x) AS s FROM o GROUP BY g) q WHERE q.g = u.g RETURNING id, v, m, q.s",
    "UPDATE u SET w = 'x' FROM o a JOIN o b ON b.k = a.k + 1 WHERE a.g = u.g AND b.x > 300 RETURNING id",
    "UPDATE u SET v = r.n FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM u) r WHERE r.id = u.id",
    "UPDATE u SET id = id + 100 WHERE id % 2 = 0 RETURNING id, v",
    "UPDATE u SET id = id - 100 WHERE id > 100 AND EXISTS (SELECT FROM o WHERE o.k = u.id - 100)",
    "UPDATE u SET v = (SELECT count(*) FROM o WHERE o.g = u.g) - 5, m = DEFAULT, c = NULL WHERE g IS NOT NULL",
    "UPDATE u SET (v, w) = (SELECT x, y FROM o WHERE o.k = u.id) WHERE id IN (SELECT k FROM o)",
    "UPDATE u SET (v, m, w) = (1 + id, DEFAULT, upper(w)), c = 'ab ' WHERE id = 3 RETURNING *",
    "UPDATE u SET (v, w) = ROW (id, 'row') WHERE w LIKE '%d%'",
    "UPDATE u AS t SET v = t.v * 2 WHERE t.m BETWEEN 1 AND 2 RETURNING t.id, (SELECT max(x) FROM o WHERE o.g = t.g) AS top",
    "WITH big AS (SELECT g, max(x) AS x FROM o GROUP BY g) UPDATE u SET v = big.x FROM big WHERE big.g = u.g AND u.g IN (SELECT g FROM big WHERE x > 500) RETURNING id, v, (SELECT count(*) FROM big)",
    "WITH e AS (SELECT k FROM o WHERE x >= 800) DELETE FROM o USING e WHERE o.k = e.k RETURNING o.*",
    "DELETE FROM u USING o WHERE o.g = u.g AND o.k = 7 RETURNING u.id, o.y, u.v + o.x",
    "DELETE FROM u WHERE v > (SELECT avg(v) FROM u) AND id NOT IN (SELECT k FROM o WHERE k < 3) RETURNING id",
    "INSERT INTO u (id, v) SELECT k + 200, x FROM o WHERE k < 5",
    "INSERT INTO u (v, id, w) SELECT x, k + 300, y || k FROM o ORDER BY k DESC LIMIT 3 RETURNING id, v, w, m, c",
    "INSERT INTO u SELECT k + 400, g, x, 'w', x / 300, 'z' FROM o UNION SELECT 499, NULL, 1, NULL, NULL, NULL",
    "WITH n (a, b) AS (VALUES (501, 'x'), (502, 'y')) INSERT INTO u (id, v, w) SELECT a, a, b FROM n RETURNING id, w, (SELECT min(a) FROM n)",
    "INSERT INTO u (id, g, v, w) VALUES (601, (SELECT max(g) FROM o), 1, DEFAULT), (602, 1, (SELECT sum(x) FROM o WHERE g = 2), 'b') RETURNING *",
    "WITH n AS (SELECT max(id) AS m FROM u) INSERT INTO u (id, v) VALUES ((SELECT m + 1 FROM n), (SELECT m FROM n)) RETURNING *",
    "INSERT INTO u (id, v) SELECT k + 200, x + 1 FROM o WHERE k < 7 ON CONFLICT (id) DO UPDATE SET v = excluded.v + u.v, w = (SELECT max(y) FROM o) WHERE u.id <> 202 RETURNING id, v, w",
    "INSERT INTO u (id, v) SELECT k + 200, 0 FROM o ON CONFLICT DO NOTHING",
    "INSERT INTO u (id, v) VALUES (201, (SELECT count(*) FROM o)) ON CONFLICT (id) DO UPDATE SET v = excluded.v RETURNING v",
    "INSERT INTO shared SELECT k + 10, y FROM o",
    "UPDATE shared SET b = b || '!' WHERE length(b) = 1 RETURNING a",
    "DELETE FROM shared WHERE b LIKE 't%'",
    "MERGE INTO u USING o ON u.id = o.k WHEN MATCHED AND o.x > 400 THEN DELETE WHEN MATCHED THEN UPDATE SET v = u.v + o.x, w = DEFAULT WHEN NOT MATCHED AND o.g = 1 THEN DO NOTHING WHEN NOT MATCHED THEN INSERT (id, v, c) VALUES (o.k + 700, o.x, o.y)",
    "MERGE INTO u t USING (VALUES (1, 'p'), (702, 'q'), (800, 'r')) s (id, w) ON t.id = s.id WHEN MATCHED THEN UPDATE SET w = s.w, id = t.id + 1000 WHEN NOT MATCHED THEN INSERT VALUES (s.id, DEFAULT, 5, s.w)",
    "MERGE INTO u USING (SELECT * FROM o WHERE k < 4) q ON u.g = q.g AND u.id < 500 WHEN MATCHED AND u.v > (SELECT min(x) FROM o) THEN UPDATE SET (v, w) = (SELECT max(x), 'm' FROM o WHERE o.k <= q.k)",
    "WITH s AS (SELECT k FROM o) MERGE INTO shared USING s ON shared.a = s.k WHEN MATCHED THEN DELETE WHEN NOT MATCHED AND s.k < 9 AND (SELECT count(*) FROM s) > 3 THEN INSERT (a) VALUES (s.k + 50)",
    // Mistakes.
    "UPDATE u SET v = 1 / (id - id) WHERE g = 1",
    "UPDATE u SET v = (SELECT x FROM o)",
    "UPDATE u SET (v, w) = (SELECT x, y FROM o) WHERE g > 0",
    "UPDATE u SET w = w || 'too long' WHERE g = 1",
    "UPDATE u SET m = m * 10000 WHERE g >= 0",
    "UPDATE u SET v = NULL WHERE g = 1",
    "UPDATE u SET v = -2000 WHERE g = 1",
    "UPDATE u SET id = 1 WHERE g = 1",
    "UPDATE u SET v = y FROM o WHERE o.g = u.g",
    "UPDATE u SET v = o.x FROM o WHERE o.g = u.g RETURNING 1 / (u.v - o.x)",
    "INSERT INTO u (id, v) SELECT k, y FROM o",
    "INSERT INTO u (id, v) SELECT k + 900, x, y FROM o",
    "INSERT INTO u (id, v, w) SELECT k + 900, x, y || 'too long' FROM o",
    "INSERT INTO u (id, v, m) SELECT k + 900, x, x * 100 FROM o",
    "INSERT INTO u (id, v) SELECT k + 900, nullif(x, 300) FROM o",
    "INSERT INTO u (id, v) SELECT k + 900, x - 1200 FROM o",
    "INSERT INTO u (id, v) SELECT id, v FROM u",
    "INSERT INTO u (id, v) VALUES (901, (SELECT x FROM o))",
    "INSERT INTO u (id, v) SELECT 901, x FROM o ON CONFLICT (id) DO UPDATE SET v = excluded.v",
    "DELETE FROM u WHERE 1 / (v - v) > 0",
    "MERGE INTO u USING o ON u.g = o.g WHEN MATCHED THEN UPDATE SET v = o.x",
    "MERGE INTO u USING o ON u.id = o.k WHEN NOT MATCHED THEN INSERT (id) VALUES (1001)",
    "MERGE INTO u USING o ON u.id = o.k WHEN MATCHED THEN UPDATE SET m = o.y",
];

const CONTENTS: [&str; 3] =
    ["SELECT * FROM u ORDER BY id", "SELECT * FROM o ORDER BY k", "SELECT * FROM shared ORDER BY a"];

#[test]
fn changes_of_every_form_are_the_same_on_both_paths() {
    for partitions in [1, 3] {
        let made = |path| {
            let db = forced(partitions, path);
            db.execute(TABLES).unwrap();
            db
        };
        let (live, snapshot) = (made(ExecutionPath::Transactional), made(ExecutionPath::Analytical));
        let (mut failed, mut changed) = (0, 0);
        for sql in CHANGES {
            let (a, b) = (run(&live, sql), run(&snapshot, sql));
            assert_eq!(a, b, "{partitions} partitions:\n{sql}");
            failed += usize::from(a.starts_with("error"));
            changed += usize::from(!a.starts_with("error") && !a.contains(" 0 rows"));
            for contents in CONTENTS {
                let all = |db: &Database| shown(db.query(contents, &[]).map(Outcome::Rows));
                assert_eq!(all(&live), all(&snapshot), "{partitions} partitions, after {sql}");
            }
        }
        let mistakes = CHANGES.iter().position(|sql| sql.contains("1 / (id - id)")).unwrap();
        assert_eq!((failed, changed), (CHANGES.len() - mistakes, mistakes));
    }
}

/// The outcome, of a mistake its place too.
fn run(db: &Database, sql: &str) -> String {
    match db.execute(sql) {
        Ok(mut outcomes) => shown(Ok(outcomes.remove(0))),
        Err(error) => format!("error {} at {:?}: {}", error.state(), error.position(), error.message()),
    }
}
