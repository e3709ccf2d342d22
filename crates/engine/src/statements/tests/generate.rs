//! Random statements over the tables of these tests, the same for a seed.

use albireo_base::{Decimal, Value};

/// Makes statements.
pub(super) struct Generator {
    state: u64,
    values: Vec<Value>,
}

/// What an expression gives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Exact,
    Text,
    Day,
    Truth,
}

impl Generator {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, values: Vec::new() }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % n
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// The next statement and the values of its parameters.
    pub(super) fn statement(&mut self) -> (String, Vec<Value>) {
        self.values.clear();
        let sql = match self.below(10) {
            0 | 1 => self.insert(),
            2..=4 => self.update(),
            5 => self.delete(),
            _ => self.select(),
        };
        (sql, std::mem::take(&mut self.values))
    }

    /// A parameter with this value.
    fn parameter(&mut self, value: Value) -> String {
        self.values.push(value);
        format!("${}", self.values.len())
    }

    fn whole(&mut self, most: u64) -> String {
        let n = self.below(most) as i32;
        match self.below(5) {
            0 => self.parameter(Value::Integer(n)),
            1 => self.parameter(Value::BigInt(n.into())),
            2 => self.parameter(Value::Text(n.to_string())),
            _ => n.to_string(),
        }
    }

    fn literal(&mut self, kind: Kind) -> String {
        if self.one_in(12) {
            return if self.one_in(2) { "NULL".to_owned() } else { self.parameter(Value::Null) };
        }
        match kind {
            Kind::Number => self.whole(12),
            Kind::Exact => match self.below(3) {
                0 => {
                    let unscaled = self.below(2000).into();
                    self.parameter(Value::Decimal(Decimal { unscaled, scale: 2 }))
                }
                1 => self.pick(&["1.5", "0.25", "-3.125", "100", "7"]).to_owned(),
                _ => self.whole(50),
            },
            Kind::Text => {
                let text = self.pick(&["x", "one", "a b", "", "Ä", "it", "four", "two  "]);
                match self.one_in(2) {
                    true => self.parameter(text.into()),
                    false => format!("'{text}'"),
                }
            }
            Kind::Day => {
                let text = self.pick(&["2024-02-29", "1999-12-31", "2024-01-01"]);
                match self.one_in(2) {
                    true => self.parameter(text.into()),
                    false => format!("DATE '{text}'"),
                }
            }
            Kind::Truth => self.pick(&["true", "false"]).to_owned(),
        }
    }

    /// A column of the table that is called `of`.
    fn column(&mut self, of: &str, kind: Kind) -> Option<String> {
        let names: &[&str] = match (of, kind) {
            ("p", Kind::Number) => &["id", "k", "b"],
            ("p", Kind::Exact) => &["n"],
            ("p", Kind::Text) => &["s", "c"],
            ("p", Kind::Day) => &["d"],
            ("p", Kind::Truth) => &["f"],
            ("q", Kind::Number) => &["id", "line"],
            ("q", Kind::Exact) => &["amount"],
            ("q", Kind::Text) => &["note"],
            ("g", Kind::Number) => &["a"],
            ("g", Kind::Exact) => &["c"],
            ("g", Kind::Text) => &["b"],
            _ => return None,
        };
        let name = self.pick(names);
        Some(format!("{of}.{name}"))
    }

    fn leaf(&mut self, of: &str, kind: Kind) -> String {
        let column = if self.one_in(4) { None } else { self.column(of, kind) };
        column.unwrap_or_else(|| self.literal(kind))
    }

    /// An expression over a table.
    fn expr(&mut self, of: &str, kind: Kind, depth: u32) -> String {
        // Typed by a column where an operator of two parameters would not know.
        let Some(column) = self.column(of, kind) else { return self.literal(kind) };
        if depth == 0 {
            return self.leaf(of, kind);
        }
        let inner = self.expr(of, kind, depth - 1);
        match (kind, self.below(6)) {
            (_, 0) => column,
            (_, 1) => {
                let test = self.condition(of, depth - 1);
                format!("CASE WHEN {test} THEN {column} ELSE {inner} END")
            }
            (_, 2) => format!("coalesce({column}, {inner})"),
            (Kind::Number | Kind::Exact, 3) => {
                let op = self.pick(&["+", "-", "*"]);
                format!("({column} {op} {inner})")
            }
            (Kind::Number, 4) => format!(
                "({column} / {})",
                self.pick(&["2", "3", "(id - 1)", "7"]).replace("id", if of == "g" { "a" } else { "id" })
            ),
            (Kind::Number, _) => format!("abs({column})"),
            (Kind::Exact, 4) => format!("round({column}, 1)"),
            (Kind::Exact, _) => format!("-{column}"),
            (Kind::Text, 3) => format!("({column} || {inner})"),
            (Kind::Text, 4) => {
                let function = self.pick(&["upper", "lower", "btrim"]);
                format!("{function}({column})")
            }
            (Kind::Text, _) => format!("substr({column}, 2, 3)"),
            (Kind::Day, _) => format!("({column} + {})", self.below(40)),
            (Kind::Truth, _) => format!("(NOT {column})"),
        }
    }

    fn condition(&mut self, of: &str, depth: u32) -> String {
        let kind = [Kind::Number, Kind::Exact, Kind::Text][self.below(3) as usize];
        let Some(column) = self.column(of, kind) else { return "true".to_owned() };
        match self.below(7) {
            0 => format!("{column} IS NULL"),
            1 => format!("{column} IS NOT NULL"),
            2 => {
                let (low, high) = (self.literal(kind), self.literal(kind));
                format!("{column} BETWEEN {low} AND {high}")
            }
            3 => {
                let (a, b) = (self.literal(kind), self.literal(kind));
                format!("{column} IN ({a}, {b})")
            }
            4 if kind == Kind::Text => format!("{column} LIKE '%o%'"),
            5 if depth > 0 => {
                let (a, b) = (self.condition(of, depth - 1), self.condition(of, depth - 1));
                let op = self.pick(&["AND", "OR"]);
                format!("({a} {op} {b})")
            }
            _ => {
                let op = self.pick(&["=", "<>", "<", "<=", ">", ">="]);
                let value = self.literal(kind);
                format!("{column} {op} {value}")
            }
        }
    }

    /// Which rows, by an index.
    fn by_index(&mut self, of: &str) -> String {
        let key = self.whole(8);
        let mut filter = match (of, self.below(3)) {
            ("p", 0) => format!("p.k = {key}"),
            ("g", _) => format!("g.a = {key}"),
            (of, _) => format!("{of}.id = {key}"),
        };
        if self.one_in(2) {
            filter = format!("{filter} AND {}", self.condition(of, 1));
        }
        filter
    }

    fn returning(&mut self, of: &str) -> String {
        match self.below(4) {
            0 => " RETURNING *".to_owned(),
            1 => {
                let (a, b) = (self.expr(of, Kind::Exact, 1), self.expr(of, Kind::Text, 1));
                format!(" RETURNING {a}, {b} AS t")
            }
            _ => String::new(),
        }
    }

    fn insert(&mut self) -> String {
        let key = self.whole(14);
        let sql = match self.below(4) {
            0 => {
                let (n, s) = (self.literal(Kind::Exact), self.literal(Kind::Text));
                let (k, c, d, b) = (
                    self.whole(100),
                    self.literal(Kind::Text),
                    self.literal(Kind::Day),
                    self.literal(Kind::Number),
                );
                format!("INSERT INTO p (id, k, n, s, c, d, b) VALUES ({key}, {k}, {n}, {s}, {c}, {d}, {b})")
            }
            1 => {
                let (line, amount) = (self.whole(9), self.literal(Kind::Exact));
                let other = self.whole(14);
                format!("INSERT INTO q VALUES ({key}, {line}, {amount}, 'n'), ({other}, 1, 0.5 + 1, NULL)")
            }
            2 => {
                let (b, c) = (self.literal(Kind::Text), self.literal(Kind::Exact));
                let (b, c) = match self.below(3) {
                    0 => ("DEFAULT".to_owned(), c),
                    1 => (b, "DEFAULT".to_owned()),
                    _ => (b, c),
                };
                format!("INSERT INTO g VALUES ({key}, {b}, {c})")
            }
            _ => {
                let filter = self.by_index("p");
                let (amount, note) = (self.expr("p", Kind::Exact, 1), self.expr("p", Kind::Text, 1));
                return format!("INSERT INTO q SELECT p.id, {key}, {amount}, {note} FROM p WHERE {filter}");
            }
        };
        let of = &sql["INSERT INTO ".len().."INSERT INTO ".len() + 1].to_owned();
        sql + &self.returning(of)
    }

    fn update(&mut self) -> String {
        let of = self.pick(&["p", "p", "q", "g"]);
        let columns: &[(&str, Kind)] = match of {
            "p" => &[
                ("k", Kind::Number),
                ("n", Kind::Exact),
                ("s", Kind::Text),
                ("c", Kind::Text),
                ("d", Kind::Day),
                ("b", Kind::Number),
                ("f", Kind::Truth),
                ("id", Kind::Number),
            ],
            "q" => &[("amount", Kind::Exact), ("note", Kind::Text), ("line", Kind::Number)],
            _ => &[("b", Kind::Text), ("c", Kind::Exact)],
        };
        let mut set = Vec::new();
        for (column, kind) in columns {
            if self.one_in(columns.len() as u64 / 2 + 1) {
                let value = if self.one_in(3) { self.literal(*kind) } else { self.expr(of, *kind, 2) };
                set.push(format!("{column} = {value}"));
            }
        }
        if set.is_empty() {
            let value = self.literal(columns[0].1);
            set.push(format!("{} = {value}", columns[0].0));
        }
        let filter = self.by_index(of);
        format!("UPDATE {of} SET {} WHERE {filter}{}", set.join(", "), self.returning(of))
    }

    fn delete(&mut self) -> String {
        let of = self.pick(&["p", "q", "g"]);
        let filter = self.by_index(of);
        format!("DELETE FROM {of} WHERE {filter}{}", self.returning(of))
    }

    fn select(&mut self) -> String {
        let of = self.pick(&["p", "p", "q", "g"]);
        match self.below(6) {
            0 => {
                let filter = self.by_index("p");
                let (a, b) = (self.expr("p", Kind::Text, 1), self.expr("q", Kind::Exact, 1));
                let join = self.pick(&["JOIN", "LEFT JOIN"]);
                format!("SELECT p.id, {a}, {b} FROM p {join} q ON q.id = p.id WHERE {filter}")
            }
            1 => {
                let filter = self.by_index(of);
                let inner = self.expr(of, Kind::Exact, 1);
                format!("SELECT count(*), sum({inner}), min({inner}), avg({inner}) FROM {of} WHERE {filter}")
            }
            2 => {
                let filter = self.by_index("q");
                let having = self.whole(3);
                format!(
                    "SELECT line, count(*) AS n, sum(amount) FROM q WHERE {filter} GROUP BY line HAVING count(*) > {having}"
                )
            }
            3 => {
                let filter = self.by_index("p");
                format!(
                    "SELECT id, (SELECT max(amount) FROM q WHERE q.id = p.id) AS top FROM p WHERE {filter} AND EXISTS (SELECT 1 FROM q WHERE q.id = p.id)"
                )
            }
            4 => {
                let filter = self.by_index(of);
                format!("SELECT * FROM {of} WHERE {filter} ORDER BY 1, 2")
            }
            _ => {
                let filter = self.by_index(of);
                let (a, b, c) = (
                    self.expr(of, Kind::Number, 2),
                    self.expr(of, Kind::Exact, 2),
                    self.expr(of, Kind::Text, 2),
                );
                format!("SELECT {a} AS a, {b}, {c} AS c FROM {of} WHERE {filter}")
            }
        }
    }
}
