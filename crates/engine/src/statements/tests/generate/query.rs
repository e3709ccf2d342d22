//! SELECT, set operations, WITH, ORDER BY and LIMIT.

use super::{Float, Generator, Kind, Scope};

/// What a SELECT is made of.
struct Select {
    sql: String,
    kinds: Vec<Kind>,
    /// Expressions that tell its rows apart and may follow ORDER BY.
    keys: Vec<String>,
    /// The ORDER BY that DISTINCT ON needs.
    order: Option<String>,
    /// Whether windows tell rows apart that are equal otherwise.
    ties: bool,
}

impl Generator {
    /// A whole query, and whether its rows have an order.
    pub(super) fn statement_query(&mut self) -> (String, bool) {
        let with = if self.one_in(6) { self.with() } else { String::new() };
        let (sql, ordered) = match self.below(8) {
            0 | 1 => self.set_operation(),
            _ => {
                let select = self.select(None);
                self.ordered(&select)
            }
        };
        (format!("{with}{sql}"), ordered)
    }

    fn with(&mut self) -> String {
        let mut parts = Vec::new();
        for number in 0..1 + self.below(2) {
            let (sql, kinds) = self.closed(Self::select_for_from);
            let columns: Vec<(String, Kind)> =
                kinds.into_iter().enumerate().map(|(at, kind)| (format!("o{at}"), kind)).collect();
            let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
            let name = format!("w{number}");
            let materialized = self.pick(&["", "", "MATERIALIZED ", "NOT MATERIALIZED "]);
            parts.push(format!("{name} ({}) AS {materialized}({sql})", names.join(", ")));
            self.ctes.push((name, columns));
        }
        format!("WITH {} ", parts.join(", "))
    }

    /// What `make` makes one level deeper.
    fn closed<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> T {
        self.nesting += 1;
        let made = make(self);
        self.nesting -= 1;
        made
    }

    fn set_operation(&mut self) -> (String, bool) {
        let operator =
            self.pick(&["UNION ALL", "UNION", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL"]);
        let all = operator == "UNION ALL";
        let kinds: Vec<Kind> = (0..1 + self.below(3)).map(|_| self.key_kind()).collect();
        let left = self.branch(&kinds, all);
        let right = self.branch(&kinds, all);
        let mut sql = format!("{left} {operator} {right}");
        if self.one_in(4) {
            sql = format!("{sql} {operator} {}", self.branch(&kinds, all));
        }
        match self.one_in(2) {
            true => (sql, false),
            false => {
                let order = self.ordinals(kinds.len());
                let limit = if all { String::new() } else { self.limit() };
                (format!("{sql} ORDER BY {order}{limit}"), true)
            }
        }
    }

    fn branch(&mut self, kinds: &[Kind], all: bool) -> String {
        self.scopes.push(Scope::default());
        let from = self.from(1);
        let filter = self.filter();
        let items: Vec<String> =
            kinds.iter().map(|kind| if all { self.expr(*kind, 2) } else { self.settled(*kind, 1) }).collect();
        self.scopes.pop();
        format!("SELECT {} FROM {from}{filter}", items.join(", "))
    }

    fn ordinals(&mut self, count: usize) -> String {
        let direction = |made: &mut Self| made.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
        let ordinals: Vec<String> = (1..=count).map(|at| format!("{at}{}", direction(self))).collect();
        ordinals.join(", ")
    }

    fn limit(&mut self) -> String {
        match self.below(5) {
            0 => format!(" LIMIT {}", self.whole(6)),
            1 => format!(" LIMIT {} OFFSET {}", 1 + self.below(5), self.below(3)),
            2 => format!(" OFFSET {}", self.below(4)),
            _ => String::new(),
        }
    }

    /// A query for FROM and for WITH, with the kinds of its columns.
    pub(super) fn select_for_from(&mut self) -> (String, Vec<Kind>) {
        let select = self.select(None);
        (select.sql + &select.order.unwrap_or_default(), select.kinds)
    }

    fn ordered(&mut self, select: &Select) -> (String, bool) {
        let Select { sql, kinds, keys, order, ties } = select;
        if *ties {
            return (sql.clone(), false);
        }
        if let Some(order) = order {
            return (format!("{sql}{order}{}", self.limit()), true);
        }
        // Spans and numbers that are equal may look different, so only keys tell them apart.
        let settled = kinds.iter().all(|kind| Self::is_key(*kind) || *kind == Float);
        match self.below(3) {
            0 => (sql.clone(), false),
            1 if !keys.is_empty() => {
                let by = self.pick(&["", "1 DESC, ", "2 NULLS FIRST, "]);
                let by = if by.starts_with('2') && kinds.len() < 2 { "" } else { by };
                let limit = self.limit();
                (format!("{sql} ORDER BY {by}{}{limit}", keys.join(", ")), true)
            }
            _ if settled => {
                let (order, limit) = (self.ordinals(kinds.len()), self.limit());
                (format!("{sql} ORDER BY {order}{limit}"), true)
            }
            _ => (sql.clone(), false),
        }
    }

    /// A SELECT without ORDER BY.
    fn select(&mut self, kinds: Option<&[Kind]>) -> Select {
        self.scopes.push(Scope::default());
        let from = self.from(if self.nesting > 0 { 1 } else { 2 });
        let filter = self.filter();
        let mut keys = self.scopes.last().map(|scope| scope.keys.clone()).unwrap_or_default();
        let (mut rest, mut distinct, mut order) = (String::new(), String::new(), None);
        let (mut settled, mut ties) = (false, false);
        match self.below(9) {
            0..=2 => {
                rest = self.group_by();
                keys = if rest.contains('(')
                    && (rest.contains("SETS") || rest.contains("ROLLUP") || rest.contains("CUBE"))
                {
                    Vec::new()
                } else {
                    self.scopes.last().map(|scope| scope.keys.clone()).unwrap_or_default()
                };
                if self.one_in(3) {
                    rest = format!("{rest} HAVING {}", self.on_groups(|made| made.condition(1)));
                }
            }
            3 => {
                (distinct, settled) = ("DISTINCT ".to_owned(), true);
                keys = Vec::new();
            }
            4 => {
                ties = self.scopes.last().is_some_and(|scope| scope.repeats);
                self.windows();
            }
            5 if !keys.is_empty() => {
                let kind = self.own_kind();
                if let Some(on) = self.own_column(kind) {
                    distinct = format!("DISTINCT ON ({on}) ");
                    let direction = self.pick(&["", " DESC", " NULLS FIRST"]);
                    order = Some(format!(" ORDER BY {on}{direction}, {}", keys.join(", ")));
                }
            }
            6 if !keys.is_empty() && self.nesting == 0 => {
                if let Some(query) = self.scalar_query(Kind::Big) {
                    order = Some(format!(" ORDER BY {query}, {}", keys.join(", ")));
                }
            }
            _ => {}
        }
        let grouped = !rest.is_empty()
            || self.scopes.last().is_some_and(|scope| scope.columns.iter().any(|c| !c.plain));
        let kinds: Vec<Kind> = match kinds {
            Some(kinds) => kinds.to_vec(),
            None => (0..1 + self.below(4))
                .map(|_| if settled { self.key_kind() } else { self.own_kind() })
                .collect(),
        };
        let mut items = Vec::with_capacity(kinds.len());
        for kind in &kinds {
            let item = match (settled, grouped) {
                (true, _) => self.settled(*kind, 1),
                (false, true) => self.on_groups(|made| made.expr(*kind, 1)),
                (false, false) => self.expr(*kind, 2),
            };
            items.push(match self.below(4) {
                0 if self.nesting == 0 => format!("{item} AS c{}", items.len()),
                _ => item,
            });
        }
        self.scopes.pop();
        let sql = format!("SELECT {distinct}{} FROM {from}{filter}{rest}", items.join(", "));
        Select { sql, kinds, keys, order, ties }
    }

    /// What `make` makes where columns stand for groups: queries in it may name only those that are keys.
    fn on_groups<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> T {
        let sets = self.scopes.last().is_some_and(|scope| scope.columns.iter().all(|column| !column.plain));
        match sets {
            true => self.plainly(make),
            false => make(self),
        }
    }

    /// A query with one part that may fail, or that something before it keeps from failing.
    pub(super) fn fallible(&mut self) -> String {
        self.scopes.push(Scope::default());
        let table = self.pick(&["p AS x", "q AS x", "g AS x"]);
        let (number, text) = match &table[..1] {
            "p" => (self.pick(&["x.a", "x.k", "x.id", "x.b"]), "x.s"),
            "q" => (self.pick(&["x.line", "x.id"]), "x.note"),
            _ => ("x.a", "x.b"),
        };
        let key = if table.starts_with('g') { "x.a" } else { "x.id" };
        let less = self.below(4);
        let (guard, part) = match self.below(6) {
            0 => (format!("{number} <> {less}"), format!("10 / ({number} - {less})")),
            1 => (format!("{number} > {less}"), format!("100.5 / ({number} - {less})")),
            2 => (format!("{text} ~ '^[0-9]+$'"), format!("{text}::integer")),
            3 => (format!("{number} < 30"), format!("({number} + 32760)::smallint")),
            4 => (
                format!("{number} >= {less}"),
                format!("length(repeat('x', ({number} - {less})::integer)) / ({number} - {less} + 1)"),
            ),
            _ => (format!("{number} NOT IN ({less}, 77)"), format!("{number} % ({number} - {less})")),
        };
        self.scopes.pop();
        match self.below(9) {
            0 => format!("SELECT {key}, {part} FROM {table}"),
            1 => format!("SELECT {key} FROM {table} WHERE {part} > 1"),
            2 | 3 => format!("SELECT {key} FROM {table} WHERE {guard} AND {part} > 1"),
            4 => format!("SELECT {key} FROM {table} WHERE NOT ({guard}) OR {part} > 1"),
            5 | 6 => format!("SELECT {key}, CASE WHEN {guard} THEN {part} ELSE -1 END FROM {table}"),
            7 => format!("SELECT {key}, {guard} AND {part} > 1 FROM {table}"),
            _ => format!("SELECT sum({part}) FILTER (WHERE {guard}) FROM {table} WHERE {guard}"),
        }
    }

    /// A query of one row for each of a table's with these kinds, for INSERT.
    pub(super) fn rows_for(&mut self, kinds: &[Kind]) -> String {
        self.closed(|made| made.select_plain(kinds))
    }

    fn select_plain(&mut self, kinds: &[Kind]) -> String {
        self.scopes.push(Scope::default());
        let from = self.from(1);
        let filter = self.filter();
        let items: Vec<String> = kinds.iter().map(|kind| self.expr(*kind, 1)).collect();
        self.scopes.pop();
        format!("SELECT {} FROM {from}{filter}", items.join(", "))
    }
}
