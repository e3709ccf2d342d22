//! Random statements over the tables of the random tests, the same for a seed.
//!
//! Responsible for: statements whose result SQL determines: rows (their order where ORDER BY is total), types,
//! and at most one kind of error. So there are no sums of rounded doubles, no DISTINCT over numbers that are
//! equal but have different digits, no LIMIT without a total order, and a division that may fail stands where
//! no other part can.
//!
//! `expr` has scalar expressions, `condition` conditions, `from` what follows FROM, `query` SELECT and set
//! operations, `aggregate` groups and windows, `change` INSERT, UPDATE and DELETE.

mod aggregate;
mod change;
mod condition;
mod expr;
mod from;
mod query;

use std::collections::BTreeMap;

use albireo_base::{Decimal, Value};

/// A statement with the values of its parameters.
pub(super) struct Statement {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
    /// Whether ORDER BY fixes the order of its rows.
    pub(super) ordered: bool,
}

/// What an expression gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Small,
    Int,
    Big,
    /// NUMERIC of few digits.
    Num,
    /// NUMERIC of so many digits that it is not multiplied.
    Wide,
    Float,
    Text,
    Char,
    Day,
    Stamp,
    Span,
    Truth,
}

use Kind::{Big, Char, Day, Float, Int, Num, Small, Span, Stamp, Text, Truth, Wide};

/// All kinds, those first that are met most.
const KINDS: [Kind; 15] =
    [Int, Num, Text, Int, Num, Text, Day, Truth, Big, Small, Wide, Float, Stamp, Char, Span];

/// Kinds whose equal values look the same, for GROUP BY and DISTINCT; NUMERIC after [`Generator::settled`].
const KEY_KINDS: [Kind; 9] = [Int, Text, Num, Int, Day, Truth, Small, Char, Stamp];

/// What a name of a scope means.
#[derive(Clone, Debug)]
struct Column {
    sql: String,
    kind: Kind,
    /// Whether it is a column of FROM, not an expression: a query inside may name it then.
    plain: bool,
}

/// The columns of one query.
#[derive(Clone, Default, Debug)]
struct Scope {
    columns: Vec<Column>,
    /// Expressions that together tell its rows apart.
    keys: Vec<String>,
    /// Whether rows of it may nevertheless be equal: those of a query.
    repeats: bool,
}

/// Makes statements.
pub(super) struct Generator {
    state: u64,
    values: Vec<Value>,
    /// Those of the queries around and of the query that is being made, innermost last.
    scopes: Vec<Scope>,
    /// Queries of WITH: their names and columns.
    ctes: Vec<(String, Vec<(String, Kind)>)>,
    aliases: u32,
    /// Queries around.
    nesting: u32,
    /// Whether no query and no parameter may stand here.
    plain: bool,
}

impl Generator {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            values: Vec::new(),
            scopes: Vec::new(),
            ctes: Vec::new(),
            aliases: 0,
            nesting: 0,
            plain: false,
        }
    }

    /// The next query.
    pub(super) fn query(&mut self) -> Statement {
        self.begin();
        let (sql, ordered) = match self.below(8) {
            0 => (self.fallible(), false),
            _ => self.statement_query(),
        };
        self.made(&sql, ordered)
    }

    /// The next change.
    pub(super) fn change(&mut self) -> Statement {
        self.begin();
        let sql = self.any_change();
        self.made(&sql, false)
    }

    /// The statement, whose parameters are numbered as they stand: some were made for parts that are not in it.
    fn made(&mut self, text: &str, ordered: bool) -> Statement {
        let made = std::mem::take(&mut self.values);
        let (mut sql, mut values, mut numbers) = (String::new(), Vec::new(), BTreeMap::new());
        let mut parts = text.split('$');
        sql.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, rest) = part.split_at(digits);
            sql.push('$');
            if let Ok(number) = number.parse::<usize>() {
                let number = numbers.entry(number).or_insert_with(|| {
                    values.push(made[number - 1].clone());
                    values.len()
                });
                sql.push_str(&number.to_string());
            }
            sql.push_str(rest);
        }
        Statement { sql, values, ordered }
    }

    fn begin(&mut self) {
        self.values.clear();
        self.scopes.clear();
        self.ctes.clear();
        self.aliases = 0;
        self.nesting = 0;
        self.plain = false;
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

    fn kind(&mut self) -> Kind {
        KINDS[self.below(KINDS.len() as u64) as usize]
    }

    fn key_kind(&mut self) -> Kind {
        KEY_KINDS[self.below(KEY_KINDS.len() as u64) as usize]
    }

    /// The kind of a column of the innermost scope, mostly.
    fn own_kind(&mut self) -> Kind {
        let columns = self.scopes.last().map_or(0, |scope| scope.columns.len());
        if columns == 0 || self.one_in(6) {
            return self.kind();
        }
        let at = self.below(columns as u64) as usize;
        self.scopes.last().map_or(Int, |scope| scope.columns[at].kind)
    }

    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("x{}", self.aliases)
    }

    /// What `make` makes without queries and parameters.
    fn plainly<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.plain, true);
        let made = make(self);
        self.plain = before;
        made
    }

    /// A parameter with this value, or the value as a literal where no parameter may stand.
    fn parameter(&mut self, value: Value, literal: &str) -> String {
        if self.plain {
            return literal.to_owned();
        }
        self.values.push(value);
        format!("${}", self.values.len())
    }

    /// A whole number where something says that it is one.
    fn whole(&mut self, most: u64) -> String {
        let n = self.below(most) as i32;
        let literal = n.to_string();
        match self.below(6) {
            0 => self.parameter(Value::Integer(n), &literal),
            1 => self.parameter(Value::Text(n.to_string()), &literal),
            _ => literal,
        }
    }

    /// A literal or parameter with its type.
    fn literal(&mut self, kind: Kind) -> String {
        if self.one_in(14) {
            return format!("NULL::{}", kind.name());
        }
        match kind {
            Small => format!("{}::smallint", self.below(9)),
            Int => match self.below(4) {
                0 => {
                    let n = self.whole(12);
                    format!("{n}::integer")
                }
                _ => self.below(12).to_string(),
            },
            Big => self.pick(&["7::bigint", "5000000000", "-3::bigint", "0::bigint"]).to_owned(),
            Num => match self.below(3) {
                0 => {
                    let unscaled = i128::from(self.below(2000));
                    let number = Decimal { unscaled, scale: 2 };
                    let text = number.to_string();
                    let parameter = self.parameter(Value::Decimal(number), &text);
                    format!("{parameter}::numeric")
                }
                _ => self.pick(&["1.5", "0.25", "-3.125", "100.0", "7.00", "0.001", "12345.678"]).to_owned(),
            },
            Wide => self.pick(&["(1.0 / 3)", "0.1234567890123456", "(2 / 7.00)"]).to_owned(),
            Float => self.pick(&["0.5::float8", "'1e10'::float8", "-1.25::float8", "3::float8"]).to_owned(),
            Text | Char => {
                let text = self.text();
                match self.one_in(3) {
                    true => {
                        let quoted = quoted(text);
                        let parameter = self.parameter(text.into(), &quoted);
                        format!("{parameter}::text")
                    }
                    false => quoted(text),
                }
            }
            Day => {
                let text =
                    self.pick(&["2024-02-29", "1999-12-31", "2024-01-01", "1970-01-31", "0044-03-15 BC"]);
                format!("DATE '{text}'")
            }
            Stamp => {
                let text =
                    self.pick(&["2024-02-29 12:34:56.789", "1999-12-31 23:59:59.999999", "2024-01-01"]);
                format!("TIMESTAMP '{text}'")
            }
            Span => {
                let text =
                    self.pick(&["1 day", "2 mons", "-3 hours", "1 year 2 days 00:00:01.5", "36:00:00"]);
                format!("INTERVAL '{text}'")
            }
            Truth => self.pick(&["true", "false"]).to_owned(),
        }
    }

    fn text(&mut self) -> &'static str {
        self.pick(&["x", "one", "a b", "", "Ä", "äöÜ ß", "four", "two  ", "日本", "%", "O'Neil", "42"])
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Small => "smallint",
            Int => "integer",
            Big => "bigint",
            Num | Wide => "numeric",
            Float => "double precision",
            Text | Char => "text",
            Day => "date",
            Stamp => "timestamp",
            Span => "interval",
            Truth => "boolean",
        }
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
