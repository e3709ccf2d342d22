//! Scalar expressions.

use super::{Big, Char, Day, Float, Generator, Int, Kind, Num, Small, Span, Stamp, Text, Truth, Wide};

impl Generator {
    /// A column of this kind: of the query itself mostly, else of one around.
    pub(super) fn column(&mut self, kind: Kind) -> Option<String> {
        let innermost = self.scopes.len().checked_sub(1)?;
        let at = match innermost > 0 && !self.plain && self.one_in(3) {
            true => self.below(innermost as u64) as usize,
            false => innermost,
        };
        let usable = |column: &&super::Column| column.kind == kind && (column.plain || at == innermost);
        let found: Vec<String> =
            self.scopes[at].columns.iter().filter(usable).map(|column| column.sql.clone()).collect();
        if found.is_empty() {
            return None;
        }
        let at = self.below(found.len() as u64) as usize;
        Some(found[at].clone())
    }

    /// A column where there is one.
    pub(super) fn first(&mut self, kind: Kind) -> String {
        self.column(kind).unwrap_or_else(|| self.literal(kind))
    }

    pub(super) fn leaf(&mut self, kind: Kind) -> String {
        let column = if self.one_in(4) { None } else { self.column(kind) };
        column.unwrap_or_else(|| self.literal(kind))
    }

    /// An expression of a kind, at most so deep.
    pub(super) fn expr(&mut self, kind: Kind, depth: u32) -> String {
        if depth == 0 || self.one_in(4) {
            return self.leaf(kind);
        }
        let depth = depth - 1;
        match self.below(12) {
            0 => {
                let (test, a, b) = (self.condition(depth), self.expr(kind, depth), self.expr(kind, depth));
                match self.below(3) {
                    0 => format!("CASE WHEN {test} THEN {a} END"),
                    1 => {
                        let (other, c) = (self.condition(0), self.leaf(kind));
                        format!("CASE WHEN {test} THEN {a} WHEN {other} THEN {b} ELSE {c} END")
                    }
                    _ => format!("CASE WHEN {test} THEN {a} ELSE {b} END"),
                }
            }
            1 => {
                let of = self.expr(Int, depth);
                let (a, b) = (self.expr(kind, depth), self.leaf(kind));
                format!("CASE {of} WHEN 1 THEN {a} WHEN 2 THEN {b} ELSE {a} END")
            }
            2 => format!("coalesce({}, {})", self.expr(kind, depth), self.leaf(kind)),
            3 => format!("nullif({}, {})", self.expr(kind, depth), self.leaf(kind)),
            4 if kind != Truth && kind != Span && kind != Char => {
                let function = self.pick(&["greatest", "least"]);
                match kind {
                    // Equal numbers of different digits are the same to both.
                    Num | Wide => {
                        format!("{function}({}, {})", self.settled(Num, depth), self.settled(Num, depth))
                    }
                    _ => format!("{function}({}, {})", self.expr(kind, depth), self.leaf(kind)),
                }
            }
            5 => self.scalar_query(kind).unwrap_or_else(|| self.leaf(kind)),
            _ => self.computed(kind, depth),
        }
    }

    /// An expression whose equal values look the same.
    pub(super) fn settled(&mut self, kind: Kind, depth: u32) -> String {
        match kind {
            Num | Wide => match self.column(Num) {
                Some(column) if self.one_in(2) => format!("{column}::numeric(20,4)"),
                _ => format!("({})::numeric(20,4)", self.expr(Num, depth)),
            },
            Span => self.expr(Int, depth),
            _ => self.expr(kind, depth),
        }
    }

    fn computed(&mut self, kind: Kind, depth: u32) -> String {
        match kind {
            Small => format!("({}::smallint)", self.leaf(Small)),
            Int => self.integer(depth),
            Big => match self.below(4) {
                0 => format!("({} + {})", self.leaf(Big), self.expr(Int, depth)),
                1 => format!("({})::bigint", self.expr(Int, depth)),
                2 => format!("abs({})", self.leaf(Big)),
                _ => format!("({} - {})", self.leaf(Big), self.leaf(Small)),
            },
            Num => self.numeric(depth),
            Wide => match self.below(4) {
                0 => format!("({} / nullif({}, 0))", self.leaf(Num), self.leaf(Num)),
                1 => format!("({} / {})", self.leaf(Num), self.pick(&["3", "7.0", "0.3", "11.25"])),
                2 => format!("sqrt(abs({}))", self.leaf(Num)),
                _ => format!("({} + {})", self.leaf(Wide), self.leaf(Num)),
            },
            Float => match self.below(5) {
                0 => format!("({} + {})", self.expr(Float, depth), self.leaf(Float)),
                1 => format!("({} / 3)", self.expr(Float, depth)),
                2 => format!("sqrt(abs({}))", self.leaf(Float)),
                3 => format!("({})::float8", self.expr(Num, depth)),
                _ => format!("({} * 2.5::float8)", self.leaf(Float)),
            },
            Text | Char => self.string(depth),
            Day => match self.below(4) {
                0 => format!("({} + {}::integer)", self.expr(Day, depth), self.whole(40)),
                1 => format!("({} - {})", self.expr(Day, depth), self.below(400)),
                2 => format!("({})::date", self.expr(Stamp, depth)),
                _ => format!("date_trunc('month', {})::date", self.expr(Stamp, depth)),
            },
            Stamp => match self.below(4) {
                0 => format!("({} + {})", self.expr(Stamp, depth), self.literal(Span)),
                1 => {
                    let unit = self.pick(&["year", "month", "day", "hour", "week", "quarter", "minute"]);
                    format!("date_trunc('{unit}', {})", self.expr(Stamp, depth))
                }
                2 => format!("({} + {})", self.expr(Day, depth), self.literal(Span)),
                _ => format!("({})::timestamp", self.expr(Day, depth)),
            },
            Span => match self.below(4) {
                0 => format!("({} - {})", self.leaf(Stamp), self.leaf(Stamp)),
                1 => format!("({} + {})", self.literal(Span), self.literal(Span)),
                2 => format!("age({}, {})", self.leaf(Stamp), self.leaf(Stamp)),
                _ => format!("({} * 2)", self.literal(Span)),
            },
            Truth => format!("({})", self.condition(depth)),
        }
    }

    fn integer(&mut self, depth: u32) -> String {
        match self.below(11) {
            0 => format!("({} + {})", self.expr(Int, depth), self.leaf(Int)),
            1 => format!("({} - {})", self.expr(Int, depth), self.leaf(Small)),
            2 => format!("({} * {})", self.expr(Int, depth), 1 + self.below(6)),
            3 => format!("abs({})", self.expr(Int, depth)),
            4 => format!("({} / {})", self.expr(Int, depth), self.pick(&["2", "3", "-4", "7::smallint"])),
            5 => format!("({} % {})", self.expr(Int, depth), self.pick(&["2", "3", "-5"])),
            6 => format!("length({})", self.expr(Text, depth)),
            7 => format!("strpos({}, {})", self.expr(Text, depth), self.literal(Text)),
            8 => format!("({} - {})", self.leaf(Day), self.leaf(Day)),
            9 => {
                let field = self.pick(&["year", "month", "day", "dow", "doy", "week", "quarter"]);
                format!("extract({field} FROM {})::integer", self.leaf(Day))
            }
            _ => format!("length({})", self.column(Char).unwrap_or_else(|| "'a'".to_owned())),
        }
    }

    fn numeric(&mut self, depth: u32) -> String {
        match self.below(13) {
            0 | 1 => {
                let op = self.pick(&["+", "-"]);
                format!("({} {op} {})", self.expr(Num, depth), self.leaf(Num))
            }
            2 => format!("({} + {})", self.leaf(Num), self.leaf(Int)),
            3 => format!("({} * {})", self.leaf(Num), self.leaf(Num)),
            4 => format!("({} * {})", self.leaf(Num), self.leaf(Int)),
            5 => format!("round({}, {})", self.expr(Num, depth), self.below(5)),
            6 => format!("round({}, 6)", self.expr(Wide, depth)),
            7 => format!("abs({})", self.expr(Num, depth)),
            8 => format!("-({})", self.leaf(Num)),
            9 => format!("{}({})", self.pick(&["ceil", "floor", "trunc", "sign"]), self.expr(Num, depth)),
            10 => {
                let ty = self.pick(&["numeric(14,3)", "numeric(16,1)", "numeric(20,6)", "numeric"]);
                format!("({})::{ty}", self.expr(Num, depth))
            }
            11 => format!("({})::numeric", self.expr(Int, depth)),
            _ => format!("mod({}, 3)", self.expr(Num, depth)),
        }
    }

    fn string(&mut self, depth: u32) -> String {
        let text = self.expr(Text, depth);
        match self.below(20) {
            0 | 1 => format!("({text} || {})", self.leaf(Text)),
            2 => format!("{}({text})", self.pick(&["upper", "lower", "initcap", "reverse", "btrim"])),
            3 => format!("substr({text}, {}, {})", self.pick(&["1", "2", "-1", "3"]), self.below(4)),
            4 => format!("{}({text}, {})", self.pick(&["left", "right"]), self.pick(&["1", "2", "-1", "0"])),
            5 => format!("replace({text}, {}, 'é')", self.literal(Text)),
            6 => format!("{}({text}, 6, 'äb')", self.pick(&["lpad", "rpad"])),
            7 => format!("repeat({text}, {})", self.below(3)),
            8 => format!("concat({text}, {}, {})", self.leaf(Int), self.leaf(Num)),
            9 => format!("split_part({text}, ' ', {})", 1 + self.below(2)),
            10 => format!("translate({text}, 'aeÄ', 'xy')"),
            11 => format!("({})::text", self.expr(Int, depth)),
            12 => format!("({})::text", self.expr(Num, depth)),
            13 => format!("({})::text", self.leaf(Day)),
            14 => format!(
                "to_char({}, '{}')",
                self.leaf(Stamp),
                self.pick(&["YYYY-MM-DD HH24:MI:SS", "Dy DD Mon", "Q"])
            ),
            15 => format!("regexp_replace({text}, '[aeiou]', '<\\&>', 'g')"),
            16 => {
                let column = self.column(Char).unwrap_or_else(|| "'ab'".to_owned());
                let function = self.pick(&["", "upper", "lower"]);
                format!("({function}({column}) || '.')")
            }
            17 => format!("({})::text", self.expr(Truth, depth)),
            18 => format!("to_char({}, '{}')", self.leaf(Num), self.pick(&["99990.00", "FM999.9", "S00000"])),
            _ => format!("concat_ws('-', {text}, {}, {})", self.leaf(Text), self.leaf(Truth)),
        }
    }
}
