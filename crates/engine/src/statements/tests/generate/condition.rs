//! Conditions, and queries in expressions.

use super::{Big, Char, Day, Float, Generator, Int, Kind, Num, Scope, Small, Text, Truth, Wide};

impl Generator {
    /// A condition, at most so deep.
    pub(super) fn condition(&mut self, depth: u32) -> String {
        let queries = depth > 0 && self.nesting < 2 && !self.plain;
        match self.below(if depth > 0 { 24 } else { 15 }) {
            0 => {
                let kind = self.own_kind();
                let not = self.pick(&["", "NOT "]);
                format!("{} IS {not}NULL", self.first(kind))
            }
            1 => {
                let kind = self.comparable();
                let not = self.pick(&["", "NOT "]);
                format!("{} {not}BETWEEN {} AND {}", self.first(kind), self.leaf(kind), self.leaf(kind))
            }
            2 => {
                let kind = self.comparable();
                let not = self.pick(&["", "NOT "]);
                let items: Vec<String> = (0..1 + self.below(3)).map(|_| self.leaf(kind)).collect();
                format!("{} {not}IN ({})", self.first(kind), items.join(", "))
            }
            3 => self.pattern(),
            4 => {
                let kind = self.comparable();
                let not = self.pick(&["", "NOT "]);
                format!("{} IS {not}DISTINCT FROM {}", self.first(kind), self.leaf(kind))
            }
            5 => match self.column(Truth) {
                Some(column) => {
                    let is = self.pick(&["", " IS TRUE", " IS NOT FALSE", " IS UNKNOWN", " = true"]);
                    format!("{column}{is}")
                }
                None => "true".to_owned(),
            },
            6 => {
                let numbers = [Small, Int, Big, Num, Wide, Float];
                let (a, b) = (self.below(6) as usize, self.below(6) as usize);
                let op = self.operator();
                format!("{} {op} {}", self.leaf(numbers[a]), self.leaf(numbers[b]))
            }
            7 => {
                let op = self.operator();
                format!(
                    "({}, {}) {op} ({}, {})",
                    self.first(Int),
                    self.leaf(Text),
                    self.leaf(Int),
                    self.leaf(Text)
                )
            }
            8 => match self.column(Int) {
                Some(column) => {
                    let op = self.operator();
                    format!("{column} {op} {}", self.whole(9))
                }
                None => "false".to_owned(),
            },
            9 => match self.column(Day) {
                Some(column) => format!("{column} >= '2024-01-01'"),
                None => "NOT false".to_owned(),
            },
            15 | 16 => {
                let (a, b) = (self.condition(depth - 1), self.condition(depth - 1));
                format!("({a} {} {b})", self.pick(&["AND", "OR"]))
            }
            17 => format!("NOT ({})", self.condition(depth - 1)),
            18 | 19 if queries => self.quantified(),
            20 if queries => self.exists(),
            21 => {
                let op = self.operator();
                let kind = self.comparable();
                format!("{} {op} {}", self.expr(kind, depth - 1), self.expr(kind, depth - 1))
            }
            _ => {
                let op = self.operator();
                let kind = self.comparable();
                format!("{} {op} {}", self.first(kind), self.leaf(kind))
            }
        }
    }

    pub(super) fn operator(&mut self) -> &'static str {
        self.pick(&["=", "<>", "<", "<=", ">", ">=", "="])
    }

    fn comparable(&mut self) -> Kind {
        match self.own_kind() {
            super::Span => Int,
            kind => kind,
        }
    }

    fn pattern(&mut self) -> String {
        let not = self.pick(&["", "", "NOT "]);
        let text = match self.column(Char) {
            Some(column) if self.one_in(3) => column,
            _ => self.first(Text),
        };
        match self.below(4) {
            0 => format!(
                "{text} {not}LIKE '{}'",
                self.pick(&["%o%", "a_", "%", "_%e", "ab", "Ä%", "%ß", "x  "])
            ),
            1 => format!("{text} {not}ILIKE '{}'", self.pick(&["%O%", "ä%", "A_", "%Ü%", "ONE"])),
            2 => {
                let op = self.pick(&["~", "~*", "!~", "!~*"]);
                format!("{text} {op} '{}'", self.pick(&["^[a-m]", "o", "^.$", "ä|x", "[[:digit:]]+", "e$"]))
            }
            _ => format!("{text} {not}LIKE {}", self.leaf(Text)).replace("LIKE ''", "LIKE 'f%'"),
        }
    }

    /// A table with its condition, for a query in an expression: text behind FROM, and WHERE if any. The
    /// scope stays open.
    fn open_query(&mut self) -> String {
        self.nesting += 1;
        self.scopes.push(Scope::default());
        let from = self.from(1);
        let filter = self.filter();
        format!(" FROM {from}{filter}")
    }

    fn close_query(&mut self) {
        self.nesting -= 1;
        self.scopes.pop();
    }

    /// WHERE with a condition that mostly names a query around.
    pub(super) fn filter(&mut self) -> String {
        let depth = 2_u32.saturating_sub(self.nesting);
        match self.below(8) {
            0 | 5 => String::new(),
            1..=4 if self.scopes.len() > 1 => {
                let outer = self.below(self.scopes.len() as u64 - 1) as usize;
                let op = self.pick(&["=", "=", "=", "<", "<=", "<>"]);
                let kind = [Int, Int, Text, Num, Day][self.below(5) as usize];
                let theirs: Vec<String> = self.scopes[outer]
                    .columns
                    .iter()
                    .filter(|column| column.kind == kind && column.plain)
                    .map(|column| column.sql.clone())
                    .collect();
                if theirs.is_empty() {
                    return format!(" WHERE {}", self.condition(depth));
                }
                let theirs = theirs[self.below(theirs.len() as u64) as usize].clone();
                let own = self.scopes.last().and_then(|scope| {
                    let own = scope.columns.iter().find(|column| column.kind == kind);
                    own.map(|column| column.sql.clone())
                });
                let own = own.unwrap_or_else(|| self.literal(kind));
                match self.one_in(2) {
                    true => format!(" WHERE {own} {op} {theirs}"),
                    false => format!(" WHERE {own} {op} {theirs} AND {}", self.condition(depth)),
                }
            }
            _ => format!(" WHERE {}", self.condition(depth)),
        }
    }

    fn exists(&mut self) -> String {
        let from = self.open_query();
        let sql = match self.below(3) {
            0 => format!("EXISTS (SELECT{from})"),
            1 => format!("EXISTS (SELECT 1{from})"),
            _ => format!("NOT EXISTS (SELECT *{from})"),
        };
        self.close_query();
        sql
    }

    /// IN, ANY, ALL.
    fn quantified(&mut self) -> String {
        let kind = [Int, Int, Num, Text, Day, Big][self.below(6) as usize];
        let value = self.first(kind);
        let second = self.leaf(Int);
        let from = self.open_query();
        let (item, other) = (self.expr(kind, 1), self.leaf(Int));
        let op = self.operator();
        let keys = self.order_by_keys();
        let sql = match self.below(9) {
            8 => format!("({value}, {second}) {op} (SELECT {item}, {other}{from}{keys} LIMIT 1)"),
            0 | 1 => format!("{value} IN (SELECT {item}{from})"),
            2 | 3 => format!("{value} NOT IN (SELECT {item}{from})"),
            4 => format!("{value} {op} ANY (SELECT {item}{from})"),
            5 => format!("{value} {op} ALL (SELECT {item}{from})"),
            6 => format!("({value}, {second}) IN (SELECT {item}, {other}{from})"),
            _ => format!("({value}, {second}) NOT IN (SELECT {item}, {other}{from})"),
        };
        self.close_query();
        sql
    }

    /// A query of one value, if one may stand here.
    pub(super) fn scalar_query(&mut self, kind: Kind) -> Option<String> {
        if self.plain || self.nesting >= 2 {
            return None;
        }
        let from = self.open_query();
        let sql = match (kind, self.below(4)) {
            (Big, 0 | 1) => format!("(SELECT count(*){from})"),
            (Num, 0) => format!("(SELECT sum({}){from})", self.plainly(|made| made.expr(Num, 1))),
            (Wide, 0) => format!("(SELECT avg({}){from})", self.plainly(|made| made.expr(Int, 1))),
            (Truth, _) => format!("(SELECT bool_or({}){from})", self.plainly(|made| made.condition(0))),
            (Int | Text | Day | Num, 2 | 3) => {
                let (item, keys) = (self.expr(kind, 1), self.order_by_keys());
                format!("(SELECT {item}{from}{keys} LIMIT 1)")
            }
            (kind, _) => {
                let item = self.plainly(|made| made.settled(kind, 1));
                let function = self.pick(&["min", "max"]);
                match kind {
                    super::Span => format!("(SELECT make_interval(days => {function}({item})){from})"),
                    _ => format!("(SELECT {function}({item}){from})"),
                }
            }
        };
        self.close_query();
        Some(sql)
    }

    /// ORDER BY that tells the rows of the innermost scope apart.
    pub(super) fn order_by_keys(&mut self) -> String {
        let keys = self.scopes.last().map(|scope| scope.keys.clone()).unwrap_or_default();
        match keys.is_empty() {
            true => String::new(),
            false => {
                let direction = self.pick(&["", " DESC", " NULLS FIRST"]);
                format!(" ORDER BY {}{direction}", keys.join(", "))
            }
        }
    }
}
