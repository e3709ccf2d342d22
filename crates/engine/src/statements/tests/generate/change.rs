//! INSERT, UPDATE and DELETE.

use super::{Big, Char, Day, Float, Generator, Int, Kind, Num, Small, Stamp, Text, Truth};

/// A column's name, its kind, and what fits it.
type Settable = (&'static str, Kind, &'static str);

/// Columns that are set, with what fits them for sure: `{}` is an expression of their kind.
const SET: [(&str, &[Settable]); 3] = [
    (
        "p",
        &[
            ("k", Small, "coalesce(({})::smallint, 3)"),
            ("a", Int, "({}) % 1000"),
            ("n", Num, "mod({}, 10000)"),
            ("m", Num, "mod({}, 1000)"),
            ("s", Text, "left({}, 12)"),
            ("c", Char, "left({}, 4)"),
            ("d", Day, "{}"),
            ("b", Big, "({}) % 10000000000"),
            ("r", Float, "abs(trunc({}))"),
            ("f", Truth, "{}"),
            ("ts", Stamp, "{}"),
        ],
    ),
    ("q", &[("amount", Num, "coalesce(mod({}, 1000), 0.5)"), ("note", Text, "{}"), ("day", Day, "{}")]),
    ("g", &[("b", Text, "{}"), ("c", Num, "mod({}, 100)")]),
];

impl Generator {
    pub(super) fn any_change(&mut self) -> String {
        match self.below(10) {
            0 | 1 => self.insert_values(),
            2 | 3 => self.insert_query(),
            4..=7 => self.update(),
            _ => self.delete(),
        }
    }

    fn table(&mut self) -> (&'static str, &'static [(&'static str, Kind, &'static str)]) {
        SET[[0, 0, 1, 2][self.below(4) as usize]]
    }

    fn returning(&mut self, table: &str) -> String {
        match self.below(5) {
            0 => " RETURNING *".to_owned(),
            1 => {
                self.only_table(table);
                let (a, b) =
                    (self.plainly(|made| made.expr(Num, 1)), self.plainly(|made| made.expr(Text, 1)));
                format!(" RETURNING {a}, {b} AS t")
            }
            _ => String::new(),
        }
    }

    /// A value that may not fit; no other part of its statement fails.
    fn raw(&mut self, kind: Kind) -> String {
        match kind {
            Small => self.pick(&["3", "89", "90", "NULL", "70000", "'7'"]).to_owned(),
            Text | Char => self
                .pick(&["'x'", "NULL", "'four'", "'far too long for it'", "'ä   '", "'abcd   '"])
                .to_owned(),
            Num => self.pick(&["1", "2.5", "NULL", "1234567890.5", "0.00049", "'1.25'"]).to_owned(),
            Day => self.pick(&["'2024-02-29'", "DATE '2000-01-01' + 3", "NULL"]).to_owned(),
            _ => self.literal(kind),
        }
    }

    fn insert_values(&mut self) -> String {
        let (table, _) = self.table();
        let key = self.below(14);
        let sql = match table {
            "p" => {
                let raw = self.below(4);
                let mut value = |at, kind, plain: &str| match at == raw {
                    true => self.raw(kind),
                    false => plain.to_owned(),
                };
                let (k, n, s, c) = (
                    value(0, Small, "5"),
                    value(1, Num, "1.5"),
                    value(2, Text, "'Ärger'"),
                    value(3, Char, "'c'"),
                );
                format!(
                    "INSERT INTO p (id, k, a, n, s, c, d) VALUES ({key}, {k}, {}, {n}, {s}, {c}, {})",
                    self.whole(9),
                    self.literal(Day)
                )
            }
            "q" => format!(
                "INSERT INTO q VALUES ({key}, {}, {}, 'n'), ({}, 8, 0.5 + 1, NULL)",
                self.whole(9),
                self.raw(Num),
                self.below(14)
            ),
            _ => format!(
                "INSERT INTO g VALUES ({key}, {}, {})",
                self.pick(&["DEFAULT", "'ß'", "NULL", "upper('é')"]),
                self.pick(&["DEFAULT", "7.125", "NULL", "1 / 3.0"])
            ),
        };
        let conflict = self.conflict(table);
        format!("{sql}{conflict}{}", self.returning(table))
    }

    fn conflict(&mut self, table: &str) -> String {
        let keys = if table == "q" {
            "id, line"
        } else if table == "p" {
            "id"
        } else {
            "a"
        };
        match (self.below(5), table) {
            (0, _) => " ON CONFLICT DO NOTHING".to_owned(),
            (1, _) => format!(" ON CONFLICT ({keys}) DO NOTHING"),
            (2, "p") => {
                " ON CONFLICT (id) DO UPDATE SET a = excluded.a + p.id, s = left(p.s || 'x', 12)".to_owned()
            }
            (2, "q") => {
                " ON CONFLICT (id, line) DO UPDATE SET amount = q.amount + 1 WHERE q.note IS NOT NULL"
                    .to_owned()
            }
            (2, _) => " ON CONFLICT (a) DO UPDATE SET b = coalesce(excluded.b, g.b) || '+'".to_owned(),
            _ => String::new(),
        }
    }

    fn insert_query(&mut self) -> String {
        self.scopes.clear();
        let sql = match self.below(3) {
            0 => {
                let rows = self.rows_for(&[Num, Text, Day]);
                let (low, high) = (20 + self.below(20), self.below(20));
                format!(
                    "INSERT INTO q (id, line, amount, note, day) SELECT {low}, row_number() OVER (ORDER BY y.e0, y.e1, y.e2) + {high}, coalesce(mod(y.e0, 1000), 0), y.e1, y.e2 FROM ({rows}) AS y (e0, e1, e2)"
                )
            }
            1 => {
                let text = self.literal(Text);
                format!(
                    "INSERT INTO g SELECT x.id + {}, coalesce(x.s, {text}), mod(x.n, 100) FROM p AS x{}",
                    10 + self.below(50),
                    self.over("p", "x")
                )
            }
            _ => {
                let line = 10 + self.below(50);
                format!(
                    "INSERT INTO q SELECT x.id, {line}, coalesce(mod(x.n, 1000), 1), x.s, x.d FROM p AS x{}",
                    self.over("p", "x")
                )
            }
        };
        let conflict = if self.one_in(3) { " ON CONFLICT DO NOTHING" } else { "" };
        let returning = if self.one_in(4) { " RETURNING *" } else { "" };
        format!("{sql}{conflict}{returning}")
    }

    /// WHERE over a table under an alias.
    fn over(&mut self, table: &str, alias: &str) -> String {
        self.only_table(table);
        let prefix = format!("{table}.");
        for column in &mut self.scopes[0].columns {
            column.sql = column.sql.replacen(&prefix, &format!("{alias}."), 1);
        }
        let filter = self.filter();
        self.scopes.clear();
        filter
    }

    /// Which rows, over the table's scope: by its key, or by anything.
    fn which(&mut self, table: &str) -> String {
        match (self.below(4), table) {
            (0, "g") => format!(" WHERE g.a = {}", self.whole(8)),
            (0, table) => format!(" WHERE {table}.id = {} AND {}", self.whole(8), self.condition(1)),
            (1, "p") => format!(" WHERE p.k = {}", self.whole(4)),
            _ => format!(" WHERE {}", self.condition(2)),
        }
    }

    fn update(&mut self) -> String {
        let (table, columns) = self.table();
        self.only_table(table);
        let mut from = String::new();
        let mut joined = String::new();
        if self.one_in(5) && table != "g" {
            // At most one row for each.
            from = " FROM g AS y".to_owned();
            joined = format!(" AND y.a = {table}.id");
            self.scopes[0].columns.extend(
                [("y.a", Int), ("y.b", Text), ("y.c", Num)].map(|(sql, kind)| super::Column {
                    sql: sql.to_owned(),
                    kind,
                    plain: true,
                }),
            );
        }
        let mut set = Vec::new();
        for (column, kind, fits) in columns {
            if self.one_in(columns.len() as u64 / 2 + 1) {
                let value = if self.one_in(4) { self.leaf(*kind) } else { self.expr(*kind, 2) };
                set.push(format!("{column} = {}", fits.replace("{}", &value)));
            }
        }
        if set.is_empty() {
            let (column, kind, _) = columns[self.below(columns.len() as u64) as usize];
            set.push(format!("{column} = {}", self.raw(kind)));
        }
        let condition = self.which(table);
        let which = format!(" WHERE ({})", condition.trim_start_matches(" WHERE "));
        let returning = self.returning(table);
        format!("UPDATE {table} SET {}{from}{which}{joined}{returning}", set.join(", "))
    }

    fn delete(&mut self) -> String {
        let (table, _) = self.table();
        self.only_table(table);
        let (using, joined) = match self.one_in(5) && table == "q" {
            true => (" USING p AS y", " AND y.id = q.id AND y.f"),
            false => ("", ""),
        };
        let condition = self.which(table);
        let which = format!(" WHERE ({})", condition.trim_start_matches(" WHERE "));
        // So that rows are left.
        let few = match table {
            "g" => format!(" AND g.a % 3 = {}", self.below(3)),
            _ => format!(" AND {table}.id % 4 = {}", self.below(4)),
        };
        format!("DELETE FROM {table}{using}{which}{joined}{few}{}", self.returning(table))
    }
}
