//! What follows FROM: tables, joins, queries, VALUES.

use super::{Big, Char, Column, Day, Float, Generator, Int, Kind, Num, Scope, Small, Stamp, Text, Truth};

/// A column's name and kind.
type Named = (&'static str, Kind);

/// Tables with their columns, and how many of these are the primary key.
const TABLES: [(&str, usize, &[Named]); 3] = [
    (
        "p",
        1,
        &[
            ("id", Int),
            ("k", Small),
            ("a", Int),
            ("n", Num),
            ("m", Num),
            ("s", Text),
            ("c", Char),
            ("d", Day),
            ("b", Big),
            ("r", Float),
            ("f", Truth),
            ("ts", Stamp),
        ],
    ),
    ("q", 2, &[("id", Int), ("line", Int), ("amount", Num), ("note", Text), ("day", Day)]),
    ("g", 1, &[("a", Int), ("b", Text), ("c", Num)]),
];

impl Generator {
    /// Items of FROM, at most `most`, whose columns the innermost scope gets.
    pub(super) fn from(&mut self, most: u64) -> String {
        let mut sql = self.item(false);
        for _ in 1..1 + self.below(most + 1).min(most) {
            let lateral = self.nesting < 2 && self.one_in(6);
            match self.below(8) {
                0 if !lateral => {
                    let item = self.item(false);
                    sql = format!("{sql} CROSS JOIN {item}");
                }
                _ if lateral => {
                    let item = self.item(true);
                    let join = self.pick(&["CROSS JOIN LATERAL", "LEFT JOIN LATERAL", "JOIN LATERAL"]);
                    let on = match self.below(3) {
                        _ if join.starts_with("CROSS") => String::new(),
                        0 => format!(" ON {}", self.condition(1)),
                        _ => " ON true".to_owned(),
                    };
                    sql = format!("{sql} {join} {item}{on}");
                }
                // A side of an outer join that depends on what is beside the join.
                2 if self.nesting < 2 && self.one_in(2) => {
                    let (first, second) = (self.item(false), self.item(true));
                    let join = self.pick(&["CROSS JOIN", "LEFT JOIN"]);
                    let inner = if join.starts_with("LEFT") { " ON true" } else { "" };
                    let on = self.condition(1);
                    sql = format!("{sql} LEFT JOIN ({first} {join} LATERAL {second}{inner}) ON {on}");
                }
                1 => {
                    let before = self.scopes.last().map_or(0, |scope| scope.columns.len());
                    let item = self.item(false);
                    let on = self.equality(before).unwrap_or_else(|| "false".to_owned());
                    sql = format!("{sql} FULL JOIN {item} ON {on}");
                }
                _ => {
                    let before = self.scopes.last().map_or(0, |scope| scope.columns.len());
                    let item = self.item(false);
                    let join = self.pick(&["JOIN", "LEFT JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN"]);
                    let mut on = self.equality(before).unwrap_or_else(|| "true".to_owned());
                    match self.below(4) {
                        0 => on = format!("{on} AND {}", self.condition(u32::from(self.nesting == 0))),
                        1 => on = self.plainly(|made| made.condition(1)),
                        _ => {}
                    }
                    sql = format!("{sql} {join} {item} ON {on}");
                }
            }
        }
        sql
    }

    /// An equality of a column of the innermost scope before place `before` and one from there on.
    fn equality(&mut self, before: usize) -> Option<String> {
        let columns = self.scopes.last()?.columns.clone();
        let (left, right) = columns.split_at(before);
        let pairs: Vec<(String, String)> = left
            .iter()
            .flat_map(|a| right.iter().filter(|b| a.kind == b.kind).map(|b| (a.sql.clone(), b.sql.clone())))
            .collect();
        if pairs.is_empty() {
            return None;
        }
        // The keys come first.
        let most = if self.one_in(3) { pairs.len() } else { pairs.len().min(2) };
        let (a, b) = &pairs[self.below(most as u64) as usize];
        Some(format!("{a} = {b}"))
    }

    /// One item of FROM, LATERAL or not.
    fn item(&mut self, lateral: bool) -> String {
        let alias = self.alias();
        let own = self.scopes.len() - 1;
        match if lateral { 3 } else { self.below(14) } {
            0 => {
                self.add(&alias, &[("v".to_owned(), Int), ("w".to_owned(), Text)], 2);
                format!("(VALUES (1, 'x'), (2, NULL), (3, 'ä')) AS {alias} (v, w)")
            }
            1 => {
                self.add(&alias, &[("i".to_owned(), Int)], 1);
                format!("generate_series(1, {}) AS {alias} (i)", 1 + self.below(4))
            }
            2 if !self.ctes.is_empty() => {
                let at = self.below(self.ctes.len() as u64) as usize;
                let (name, columns) = self.ctes[at].clone();
                self.add_query(&alias, &columns);
                format!("{name} AS {alias}")
            }
            4 if self.scopes.len() > 1 && !lateral && self.one_in(2) => {
                let beside = std::mem::take(&mut self.scopes[own]);
                let until = self.plainly(|made| made.condition(0));
                self.scopes[own] = beside;
                self.add_query(&alias, &[("i".to_owned(), Int)]);
                let first = self.pick(&["SELECT 1", "SELECT 2 WHERE true"]);
                let next = format!("SELECT {alias}r.i + 1 FROM {alias}r WHERE {alias}r.i < 4 AND {until}");
                let rows = self.pick(&["", " LIMIT 9", " UNION ALL SELECT max(i) FROM "]);
                let rows = if rows.ends_with(' ') { format!("{rows}{alias}r") } else { rows.to_owned() };
                format!(
                    "(WITH RECURSIVE {alias}r (i) AS ({first} UNION ALL {next}) \
                     SELECT i FROM (SELECT i FROM {alias}r{rows}) AS {alias}q) AS {alias} (i)"
                )
            }
            3 | 4 if self.nesting < 2 => {
                // A query in FROM sees what is beside it only if it is LATERAL.
                let beside = if lateral { None } else { Some(std::mem::take(&mut self.scopes[own])) };
                self.nesting += 1;
                let (sql, kinds) = self.select_for_from();
                self.nesting -= 1;
                if let Some(beside) = beside {
                    self.scopes[own] = beside;
                }
                let columns: Vec<(String, Kind)> =
                    kinds.into_iter().enumerate().map(|(at, kind)| (format!("e{at}"), kind)).collect();
                self.add_query(&alias, &columns);
                let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
                format!("({sql}) AS {alias} ({})", names.join(", "))
            }
            3 => {
                self.add(&alias, &[("e".to_owned(), Int)], 1);
                format!("(SELECT 1) AS {alias} (e)")
            }
            _ => {
                let (name, keys, columns) = TABLES[self.below(3) as usize];
                let columns: Vec<(String, Kind)> =
                    columns.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
                self.add(&alias, &columns, keys);
                format!("{name} AS {alias}")
            }
        }
    }

    /// Adds a relation's columns to the innermost scope.
    fn add(&mut self, alias: &str, columns: &[(String, Kind)], keys: usize) {
        let Some(scope) = self.scopes.last_mut() else { return };
        scope.keys.extend(columns[..keys].iter().map(|(name, _)| format!("{alias}.{name}")));
        scope.columns.extend(columns.iter().map(|(name, kind)| Column {
            sql: format!("{alias}.{name}"),
            kind: *kind,
            plain: true,
        }));
    }

    fn add_query(&mut self, alias: &str, columns: &[(String, Kind)]) {
        self.add(alias, columns, columns.len());
        if let Some(scope) = self.scopes.last_mut() {
            scope.repeats = true;
        }
    }

    /// A table under its own name as the only scope: for changes.
    pub(super) fn only_table(&mut self, name: &str) {
        self.scopes = vec![Scope::default()];
        if let Some((name, keys, columns)) = TABLES.iter().find(|(table, ..)| *table == name) {
            let columns: Vec<(String, Kind)> =
                columns.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
            self.add(name, &columns, *keys);
        }
    }
}
