//! What `\h` prints: the forms of SQL statements.

const FORMS: &[(&str, &str)] = &[
    ("ALTER TABLE", "ALTER TABLE [ IF EXISTS ] name SET ( freeze = { auto | off | '10 min' } )"),
    ("BACKUP", "BACKUP TO 'DIRECTORY' | 'FILE.tar'"),
    ("BEGIN", "BEGIN READ ONLY   queries see one snapshot until COMMIT or ROLLBACK"),
    ("CALL", "CALL procedure ( [ argument [, ...] ] )"),
    ("CHECKPOINT", "CHECKPOINT   write an archive of the database"),
    ("COMMIT", "COMMIT"),
    (
        "COPY",
        "COPY table [ ( column [, ...] ) ] FROM { 'file' | STDIN } [ WITH ( option [, ...] ) ]
COPY { table [ ( column [, ...] ) ] | ( query ) } TO { 'file' | STDOUT } [ WITH ( option [, ...] ) ]
    option: FORMAT { text | csv | json | parquet }, HEADER [ MATCH ], DELIMITER 'c', NULL 'text', QUOTE 'c',
            ESCAPE 'c', ENCODING 'name', FORCE_NULL ( column [, ...] ), FORCE_NOT_NULL ( column [, ...] )",
    ),
    (
        "CREATE FUNCTION",
        "CREATE [ OR REPLACE ] FUNCTION name ( [ [ mode ] name type [ DEFAULT value ] [, ...] ] )
    RETURNS { type | SETOF type | TABLE ( name type [, ...] ) } LANGUAGE { plpgsql | sql } AS $$ body $$",
    ),
    (
        "CREATE INDEX",
        "CREATE [ UNIQUE ] INDEX [ IF NOT EXISTS ] [ name ] ON table [ USING { hash | btree } ] ( column [, ...] )
    [ WITH ( keys = { 'prefix' | 'none' } ) ]",
    ),
    (
        "CREATE PROCEDURE",
        "CREATE [ OR REPLACE ] PROCEDURE name ( [ [ mode ] name type [ DEFAULT value ] [, ...] ] )
    LANGUAGE { plpgsql | sql } AS $$ body $$",
    ),
    ("CREATE SCHEMA", "CREATE SCHEMA [ IF NOT EXISTS ] name"),
    (
        "CREATE TABLE",
        "CREATE TABLE [ IF NOT EXISTS ] name (
    { column type [ NOT NULL ] [ DEFAULT value ] [ PRIMARY KEY ] [ UNIQUE ] [ CHECK ( condition ) ]
    | PRIMARY KEY ( column [, ...] ) | UNIQUE ( column [, ...] ) | CHECK ( condition ) } [, ...]
) [ PARTITION BY HASH ( column ) ] [ WITH ( [ layout = { 'column' | 'row' } | groups = 'a b; c d' ] [,] [ freeze = { auto | off | '10 min' } ] ) ]",
    ),
    ("DELETE", "DELETE FROM table [ USING table [, ...] ] [ WHERE condition ] [ RETURNING expression [, ...] ]"),
    ("DROP FUNCTION", "DROP FUNCTION [ IF EXISTS ] name [ ( type [, ...] ) ]"),
    ("DROP INDEX", "DROP INDEX [ IF EXISTS ] name"),
    ("DROP PROCEDURE", "DROP PROCEDURE [ IF EXISTS ] name [ ( type [, ...] ) ]"),
    ("DROP SCHEMA", "DROP SCHEMA [ IF EXISTS ] name [ CASCADE ]"),
    ("DROP TABLE", "DROP TABLE [ IF EXISTS ] name [, ...]"),
    ("EXPLAIN", "EXPLAIN [ ANALYZE ] [ VERBOSE ] statement\nEXPLAIN { PROCEDURE | FUNCTION } name"),
    (
        "INSERT",
        "INSERT INTO table [ ( column [, ...] ) ] { VALUES ( value [, ...] ) [, ...] | query }
    [ ON CONFLICT [ ( column [, ...] ) ] { DO NOTHING | DO UPDATE SET column = value [, ...] [ WHERE condition ] } ]
    [ RETURNING expression [, ...] ]",
    ),
    ("RESET", "RESET { setting | ALL }"),
    ("ROLLBACK", "ROLLBACK"),
    (
        "SELECT",
        "[ WITH name AS ( query ) [, ...] ] SELECT [ DISTINCT ] expression [ AS name ] [, ...]
    [ FROM table [ [ LEFT | RIGHT | FULL | CROSS ] JOIN table [ ON condition ] ] [, ...] ] [ WHERE condition ]
    [ GROUP BY expression [, ...] ] [ HAVING condition ] [ { UNION | INTERSECT | EXCEPT } [ ALL ] query ]
    [ ORDER BY expression [ ASC | DESC ] [, ...] ] [ LIMIT count ] [ OFFSET count ]",
    ),
    ("SET", "SET [ LOCAL ] setting { = | TO } value"),
    ("SHOW", "SHOW { setting | ALL }"),
    ("TRUNCATE", "TRUNCATE [ TABLE ] table [, ...]"),
    (
        "UPDATE",
        "UPDATE table SET column = value [, ...] [ FROM table [, ...] ] [ WHERE condition ] [ RETURNING expression [, ...] ]",
    ),
    ("VALUES", "VALUES ( value [, ...] ) [, ...]"),
];

/// The forms of the statements that `topic` begins or names; for nothing, which statements there are.
pub fn of(topic: &str) -> Result<String, String> {
    let topic = topic.split_whitespace().collect::<Vec<_>>().join(" ").to_uppercase();
    if topic.is_empty() {
        let names: Vec<&str> = FORMS.iter().map(|(name, _)| *name).collect();
        let lines: Vec<String> = names.chunks(5).map(|row| format!("  {}\n", row.join(", "))).collect();
        return Ok(format!("\\h STATEMENT shows the form of one of these:\n{}", lines.concat()));
    }
    let is_meant =
        |name: &str| topic == "*" || name.starts_with(&topic) || topic.starts_with(&format!("{name} "));
    let found: Vec<&str> = FORMS.iter().filter(|(name, _)| is_meant(name)).map(|(_, form)| *form).collect();
    match found.is_empty() {
        true => Err(format!("\\h: no statement begins with {topic}; \\h lists those there are")),
        false => Ok(found.join("\n\n") + "\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_found_by_their_first_words() {
        assert!(of("").unwrap().contains("CREATE TABLE"));
        assert_eq!(of(" commit").unwrap(), "COMMIT\n");
        assert_eq!(of("drop").unwrap().matches("DROP ").count(), 5);
        assert!(of("update t set").unwrap().starts_with("UPDATE table"));
        assert!(of("vacuum").unwrap_err().contains("no statement begins with VACUUM"));
    }
}
