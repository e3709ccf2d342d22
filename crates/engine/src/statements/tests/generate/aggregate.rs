//! Groups, aggregates and windows.

use super::{Big, Char, Column, Day, Float, Generator, Int, KEY_KINDS, Kind, Num, Small, Text, Truth, Wide};

impl Generator {
    /// GROUP BY of the innermost scope, whose columns become the groups' keys and aggregates.
    pub(super) fn group_by(&mut self) -> String {
        let mut keys: Vec<Column> = Vec::new();
        let sets = self.one_in(5);
        for _ in 0..self.below(3) + u64::from(sets) {
            let kind = self.key_kind();
            let Some(sql) = self.own_column(kind) else { continue };
            let key = match self.one_in(4) && !sets && kind != Char {
                true => Column { sql: self.plainly(|made| made.settled(kind, 1)), kind, plain: false },
                false => Column { sql, kind, plain: !sets },
            };
            // A constant number in GROUP BY is a place in the select list.
            let names_column = self.scopes.last().is_some_and(|scope| {
                scope.columns.iter().any(|column| key.sql.contains(column.sql.as_str()))
            });
            if names_column && !keys.iter().any(|known| known.sql == key.sql) {
                keys.push(key);
            }
        }
        let names: Vec<String> = keys.iter().map(|key| key.sql.clone()).collect();
        let clause = match (names.len(), sets) {
            (0, _) => String::new(),
            (1, true) => format!(" GROUP BY GROUPING SETS (({}), ())", names[0]),
            (_, true) => match self.below(3) {
                0 => format!(" GROUP BY ROLLUP ({})", names.join(", ")),
                1 => format!(" GROUP BY CUBE ({})", names.join(", ")),
                _ => format!(" GROUP BY GROUPING SETS (({}), ({}))", names.join(", "), names[0]),
            },
            _ => format!(" GROUP BY {}", names.join(", ")),
        };
        let mut columns = keys.clone();
        for _ in 0..1 + self.below(3) {
            columns.push(self.aggregate());
        }
        if sets && !names.is_empty() {
            let sql = format!("GROUPING({})", names.join(", "));
            columns.push(Column { sql, kind: Int, plain: false });
        }
        let Some(scope) = self.scopes.last_mut() else { return clause };
        scope.columns = columns;
        scope.keys = names;
        clause
    }

    /// A column of the innermost scope.
    pub(super) fn own_column(&mut self, kind: Kind) -> Option<String> {
        let columns = &self.scopes.last()?.columns;
        let found: Vec<String> =
            columns.iter().filter(|column| column.kind == kind).map(|column| column.sql.clone()).collect();
        match found.len() {
            0 => None,
            count => {
                let at = self.below(count as u64) as usize;
                Some(found[at].clone())
            }
        }
    }

    fn aggregate(&mut self) -> Column {
        let (sql, kind) = self.plainly(Self::aggregate_call);
        let filter = match self.one_in(5) {
            true => format!(" FILTER (WHERE {})", self.plainly(|made| made.condition(0))),
            false => String::new(),
        };
        Column { sql: format!("{sql}{filter}"), kind, plain: false }
    }

    fn aggregate_call(&mut self) -> (String, Kind) {
        let distinct = self.pick(&["", "", "DISTINCT "]);
        match self.below(14) {
            0 | 1 => ("count(*)".to_owned(), Big),
            2 => {
                let kind = self.key_kind();
                (format!("count({distinct}{})", self.settled(kind, 1)), Big)
            }
            3 => (format!("sum({distinct}{})", self.expr(Int, 1)), Big),
            4 => (format!("sum({})", self.expr(Num, 2)), Num),
            5 => (format!("sum(DISTINCT {})", self.settled(Num, 1)), Num),
            6 => (format!("avg({distinct}{})", self.expr(Int, 1)), Wide),
            7 => (format!("avg({})", self.expr(Num, 1)), Wide),
            8 | 9 => {
                let kind = KEY_KINDS[self.below(5) as usize];
                let function = self.pick(&["min", "max"]);
                (format!("{function}({})", self.settled(kind, 2)), kind)
            }
            10 => (format!("{}({})", self.pick(&["bool_and", "bool_or", "every"]), self.condition(1)), Truth),
            11 => {
                let Some(text) = self.own_column(Text) else { return ("count(*)".to_owned(), Big) };
                let keys = self.order_by_keys();
                match self.one_in(2) || keys.is_empty() {
                    true => (format!("string_agg(DISTINCT {text}, ',' ORDER BY {text})"), Text),
                    false => (format!("string_agg({text}, '-'{keys})"), Text),
                }
            }
            12 => {
                let function = self.pick(&["var_pop", "var_samp", "stddev", "stddev_pop"]);
                (format!("{function}({})", self.leaf(Int)), Wide)
            }
            _ => match self.own_column(Float) {
                Some(column) => (format!("sum({column})"), Float),
                None => ("count(*)".to_owned(), Big),
            },
        }
    }

    /// Window functions over the innermost scope, as columns of it.
    pub(super) fn windows(&mut self) {
        let made: Vec<Column> = (0..1 + self.below(2)).map(|_| self.plainly(Self::window)).collect();
        if let Some(scope) = self.scopes.last_mut() {
            scope.columns.extend(made);
        }
    }

    fn window(&mut self) -> Column {
        let keys = self.scopes.last().map(|scope| scope.keys.clone()).unwrap_or_default();
        let kind = self.key_kind();
        let partition = match (self.below(3), self.own_column(kind)) {
            (0, _) | (_, None) => String::new(),
            (_, Some(column)) => format!("PARTITION BY {column} "),
        };
        let by_kind = [Int, Num, Text, Day][self.below(4) as usize];
        let by = self.own_column(by_kind);
        let direction = self.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
        // What looks at single rows needs an order that tells them apart.
        let total = match &by {
            Some(by) => format!("ORDER BY {by}{direction}, {}", keys.join(", ")),
            None => format!("ORDER BY {}", keys.join(", ")),
        };
        if keys.is_empty() {
            return Column { sql: format!("count(*) OVER ({})", partition.trim()), kind: Big, plain: false };
        }
        let loose = by.map_or_else(|| total.clone(), |by| format!("ORDER BY {by}{direction}"));
        let (sql, kind) = match self.below(10) {
            0 => (format!("row_number() OVER ({partition}{total})"), Big),
            1 => {
                let function = self.pick(&["rank", "dense_rank"]);
                (format!("{function}() OVER ({partition}{loose})"), Big)
            }
            2 => {
                let function = self.pick(&["percent_rank", "cume_dist"]);
                (format!("{function}() OVER ({partition}{loose})"), Float)
            }
            3 => (format!("ntile({}) OVER ({partition}{total})", 1 + self.below(3)), Int),
            4 | 5 => {
                let kind = [Int, Text, Num, Day][self.below(4) as usize];
                let value = self.typed_leaf(kind);
                let call = match self.below(4) {
                    0 => format!("lag({value})"),
                    1 => format!("lead({value}, {})", self.below(3)),
                    2 => format!("lag({value}, 1, {})", self.typed_leaf(kind)),
                    _ => format!("nth_value({value}, {})", 1 + self.below(2)),
                };
                (format!("{call} OVER ({partition}{total})"), kind)
            }
            6 => {
                let kind = [Int, Text, Num, Day][self.below(4) as usize];
                let function = self.pick(&["first_value", "last_value"]);
                let frame = self.frame();
                (format!("{function}({}) OVER ({partition}{total}{frame})", self.typed_leaf(kind)), kind)
            }
            _ => {
                let (call, kind) = match self.below(6) {
                    0 => ("count(*)".to_owned(), Big),
                    1 => (format!("sum({})", self.leaf(Int)), Big),
                    2 => (format!("sum({})", self.leaf(Num)), Num),
                    3 => (format!("avg({})", self.leaf(Int)), Wide),
                    4 => (format!("min({})", self.leaf(Text)), Text),
                    _ => (format!("max({})", self.leaf(Int)), Int),
                };
                match self.below(4) {
                    0 => (format!("{call} OVER ({})", partition.trim()), kind),
                    1 => (format!("{call} OVER ({partition}{loose})"), kind),
                    _ => {
                        let frame = self.frame();
                        (format!("{call} OVER ({partition}{total}{frame})"), kind)
                    }
                }
            }
        };
        Column { sql, kind, plain: false }
    }

    /// A column, or a literal with its type.
    fn typed_leaf(&mut self, kind: Kind) -> String {
        match self.own_column(kind) {
            Some(column) => column,
            None => format!("{}::{}", self.literal(kind), kind.name()),
        }
    }

    fn frame(&mut self) -> &'static str {
        self.pick(&[
            "",
            " ROWS UNBOUNDED PRECEDING",
            " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
            " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
            " ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
            " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
            " GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
            " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW",
        ])
    }

    /// Whether equal values of a kind look the same.
    pub(super) fn is_key(kind: Kind) -> bool {
        matches!(kind, Small | Int | Big | Text | Char | Day | Truth | super::Stamp)
    }
}
