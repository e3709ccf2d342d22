//! Expressions of numbers.

use super::super::types::{INTEGERS, Item, Kind};
use super::{Ex, Maker};

/// So many digits a NUMERIC may have in all; 38 is the most there can be.
const MOST_DIGITS: u32 = 34;

/// An integer literal of a type.
fn whole(kind: Kind, n: i64) -> String {
    match kind {
        Kind::Small => format!("{n}::smallint"),
        Kind::Big => format!("{n}::bigint"),
        _ => n.to_string(),
    }
}

impl Maker {
    pub(super) fn integer(&mut self, kind: Kind, depth: usize) -> Ex {
        if self.free() && self.rng.chance(55) {
            return self.risky_integer(kind, depth - 1);
        }
        match self.rng.below(if kind == Kind::Int { 12 } else { 6 }) {
            0 | 1 => self.bounded(kind, depth - 1),
            2 => self.bits(kind, depth - 1),
            3 => self.cast(kind, depth),
            4 | 5 => {
                let value = self.expr(kind, depth - 1);
                let by = whole(kind, self.rng.pick(&[2, 3, 7, 10, 100]));
                let op = self.rng.pick(&["/", "%"]);
                Ex::new(format!("({} {op} {by})", value.text), kind, &[&value])
            }
            _ => self.counted(depth - 1),
        }
    }

    /// Arithmetic that may overflow or divide by zero.
    fn risky_integer(&mut self, kind: Kind, depth: usize) -> Ex {
        let narrower: &[Kind] = match kind {
            Kind::Small => &INTEGERS[..1],
            Kind::Int => &INTEGERS[..2],
            _ => &INTEGERS,
        };
        let mut kinds = [kind, self.rng.pick(narrower)];
        if self.rng.chance(50) {
            kinds.swap(0, 1);
        }
        let (a, b) = (self.expr(kinds[0], depth), self.expr(kinds[1], depth));
        let text = match self.rng.below(12) {
            0..=7 => {
                let op = self.rng.pick(&["+", "-", "*", "/", "%", "+", "-", "*"]);
                format!("({} {op} {})", a.text, b.text)
            }
            8 => {
                let value = self.expr(kind, depth);
                return Ex::new(format!("(- {})", value.text), kind, &[&value]);
            }
            9 => {
                let value = self.expr(kind, depth);
                return Ex::new(format!("abs({})", value.text), kind, &[&value]);
            }
            10 if kind != Kind::Small => {
                let function = self.rng.pick(&["mod", "gcd", "lcm"]);
                let text = format!("{function}(({})::{1}, ({2})::{1})", a.text, kind.sql(), b.text);
                return Ex::new(text, kind, &[&a, &b]);
            }
            _ => return self.cast(kind, depth + 1),
        };
        Ex::new(text, kind, &[&a, &b])
    }

    /// Arithmetic on numbers of a few digits.
    fn bounded(&mut self, kind: Kind, depth: usize) -> Ex {
        let (a, b) = (self.expr(kind, depth), self.expr(kind, depth));
        let bound = whole(kind, self.rng.pick(&[5, 10, 100]));
        let text = match self.rng.below(5) {
            0 => format!("({} % {bound} + {} % {bound})", a.text, b.text),
            1 => format!("({} % {bound} - {} % {bound})", a.text, b.text),
            2 => format!("({} % {bound} * ({} % {bound}))", a.text, b.text),
            3 => {
                let text = format!("abs({} % {bound})", a.text);
                return Ex::new(text, kind, &[&a]);
            }
            _ => {
                let text = format!("(- ({} % {bound}))", a.text);
                return Ex::new(text, kind, &[&a]);
            }
        };
        Ex::new(text, kind, &[&a, &b])
    }

    fn bits(&mut self, kind: Kind, depth: usize) -> Ex {
        let (a, b) = (self.expr(kind, depth), self.expr(kind, depth));
        let text = match self.rng.below(5) {
            0..=2 => {
                let op = self.rng.pick(&["&", "|", "#"]);
                format!("({} {op} {})", a.text, b.text)
            }
            3 => return Ex::new(format!("(~ {})", a.text), kind, &[&a]),
            _ => {
                let (op, by) = (self.rng.pick(&["<<", ">>"]), self.rng.below(10));
                return Ex::new(format!("({} {op} {by})", a.text), kind, &[&a]);
            }
        };
        Ex::new(text, kind, &[&a, &b])
    }

    /// An INTEGER that says something of a value of another type.
    fn counted(&mut self, depth: usize) -> Ex {
        match self.rng.below(9) {
            0 | 1 => {
                let text = self.expr(Kind::Text, depth);
                let function = self.rng.pick(&["length", "ascii", "char_length", "octet_length"]);
                Ex::new(format!("{function}({})", text.text), Kind::Int, &[&text])
            }
            2 => {
                let (a, b) = (self.expr(Kind::Text, depth), self.expr(Kind::Text, depth));
                let text = match self.rng.chance(50) {
                    true => format!("strpos({}, {})", a.text, b.text),
                    false => format!("position({} IN {})", a.text, b.text),
                };
                Ex::new(text, Kind::Int, &[&a, &b])
            }
            3 => {
                let (a, b) = (self.expr(Kind::Date, depth), self.expr(Kind::Date, 0));
                Ex::new(format!("({} - {})", a.text, b.text), Kind::Int, &[&a, &b])
            }
            4 => {
                let of = self.rng.pick(&[Kind::Date, Kind::Stamp]);
                let field = self.rng.pick(&["year", "month", "day", "dow", "doy", "week", "quarter"]);
                let value = self.expr(of, depth);
                let text = format!("extract({field} FROM {})::integer", value.text);
                Ex::new(text, Kind::Int, &[&value])
            }
            5 => {
                let value = self.expr(Kind::Char, 0);
                Ex::new(format!("length({})", value.text), Kind::Int, &[&value])
            }
            _ => {
                let item = self.rng.pick(&[Item::Int, Item::Text, Item::Num, Item::Big]);
                let Some(array) = self.array_of(item) else { return self.leaf(Kind::Int) };
                let array = Ex { text: array.name, digits: (0, 0), constant: false };
                self.measured(&array, item)
            }
        }
    }

    fn measured(&mut self, array: &Ex, item: Item) -> Ex {
        let name = &array.text;
        let text = match self.rng.below(6) {
            0 | 1 => format!("cardinality({name})"),
            2 => format!("array_length({name}, 1)"),
            3 => format!("array_upper({name}, 1)"),
            4 => format!("array_lower({name}, 1)"),
            _ => {
                let value = self.expr(item.kind(), 0);
                let text = format!("array_position({name}, ({})::{})", value.text, item.kind().sql());
                return Ex::new(text, Kind::Int, &[array, &value]);
            }
        };
        Ex::new(text, Kind::Int, &[array])
    }

    /// A number made to have at most so many digits before and behind the point, without failing.
    pub(super) fn narrow(&mut self, value: Ex, digits: u32, scale: u32) -> Ex {
        let mut value = value;
        if value.digits.1 > scale {
            value.text = format!("round({}, {scale})", value.text);
            value.digits = (value.digits.0 + 1, scale);
        }
        if value.digits.0 > digits {
            value.text = format!("({} % {})", value.text, 10_u64.pow(digits));
            value.digits.0 = digits;
        }
        value
    }

    /// A NUMERIC, or an integer now and then where a NUMERIC stands beside it.
    fn numeric_part(&mut self, depth: usize) -> Ex {
        let kind = self.rng.pick(&[Kind::Num, Kind::Num, Kind::Num, Kind::Int, Kind::Big, Kind::Small]);
        self.expr(kind, depth)
    }

    pub(super) fn numeric(&mut self, depth: usize) -> Ex {
        let depth = depth - 1;
        let a = self.expr(Kind::Num, depth);
        match self.rng.below(14) {
            0..=7 => {
                let b = self.numeric_part(depth);
                let (a, b) = if self.rng.chance(50) { (a, b) } else { (b, a) };
                self.numeric_pair(a, b)
            }
            8 => {
                let places = self.rng.between(-1, 4);
                let function = self.rng.pick(&["round", "trunc"]);
                let digits = (a.digits.0 + 1, places.max(0) as u32);
                Ex::new(format!("{function}({}, {places})", a.text), Kind::Num, &[&a]).with_digits(digits)
            }
            9 => {
                let function = self.rng.pick(&["round", "trunc", "ceil", "floor"]);
                let digits = (a.digits.0 + 1, 0);
                Ex::new(format!("{function}({})", a.text), Kind::Num, &[&a]).with_digits(digits)
            }
            10 => {
                let function = self.rng.pick(&["abs", "-", "sign", "trim_scale"]);
                Ex::new(format!("{function}({})", a.text), Kind::Num, &[&a]).with_digits(a.digits)
            }
            11 => {
                let value = self.expr(Kind::Stamp, depth);
                let field = self.rng.pick(&["second", "epoch", "millisecond", "year", "hour"]);
                let text = format!("extract({field} FROM {})", value.text);
                Ex::new(text, Kind::Num, &[&value]).with_digits((12, 6))
            }
            12 if self.free() => {
                // It may fail: the digits are those that are written.
                let (precision, scale) = self.rng.pick(&[(3, 1), (6, 2), (10, 4), (5, 5)]);
                let text = format!("({})::numeric({precision},{scale})", a.text);
                Ex::new(text, Kind::Num, &[&a]).with_digits((precision - scale, scale))
            }
            _ => self.cast(Kind::Num, depth + 1),
        }
    }

    /// An operator on two numbers, which are made smaller if the result had too many digits.
    fn numeric_pair(&mut self, a: Ex, b: Ex) -> Ex {
        let mut op = self.rng.pick(&["+", "-", "*", "/", "%", "*", "+"]);
        if !self.free() && matches!(op, "/" | "%") {
            op = "-";
        }
        let (a, b) = match of_pair(op, &a, &b) {
            (whole, scale) if whole + scale <= MOST_DIGITS => (a, b),
            _ => (self.narrow(a, 6, 3), self.narrow(b, 6, 3)),
        };
        let digits = of_pair(op, &a, &b);
        let text = format!("({} {op} {})", a.text, b.text);
        Ex::new(text, Kind::Num, &[&a, &b]).with_digits(digits)
    }

    pub(super) fn double(&mut self, depth: usize) -> Ex {
        let depth = depth - 1;
        let a = self.expr(Kind::Double, depth);
        let one = |text: String| Ex::new(text, Kind::Double, &[&a]);
        if !self.free() || self.rng.chance(35) {
            return match self.rng.below(4) {
                0 => self.cast(Kind::Double, depth + 1),
                1 => one(format!("(- {})", a.text)),
                _ => {
                    let function = self.rng.pick(&["abs", "floor", "ceil", "round", "trunc", "sign"]);
                    one(format!("{function}({})", a.text))
                }
            };
        }
        match self.rng.below(8) {
            0 => one(format!("sqrt({})", a.text)),
            1 => {
                let by = self.rng.pick(&["2", "0.5", "-1", "3"]);
                one(format!("power({}, {by})", a.text))
            }
            2 => one(format!("ln({})", a.text)),
            3 => one(format!("exp({})", a.text)),
            _ => {
                let kind = self.rng.pick(&[Kind::Double, Kind::Double, Kind::Int, Kind::Num, Kind::Small]);
                let b = self.expr(kind, depth);
                let op = self.rng.pick(&["+", "-", "*", "/"]);
                let text = match self.rng.chance(50) {
                    true => format!("({} {op} {})", a.text, b.text),
                    false => format!("({} {op} {})", b.text, a.text),
                };
                Ex::new(text, Kind::Double, &[&a, &b])
            }
        }
    }
}

/// The digits of a result before and behind the point.
fn of_pair(op: &str, a: &Ex, b: &Ex) -> (u32, u32) {
    let ((whole_a, scale_a), (whole_b, scale_b)) = (a.digits, b.digits);
    match op {
        "*" => (whole_a + whole_b, scale_a + scale_b),
        // Sixteen digits that count, in groups of four; the quotient may begin behind the point.
        "/" => {
            let fraction = 16 + 4 * (scale_a.div_ceil(4) + whole_b.div_ceil(4));
            (whole_a + scale_b, fraction.max(scale_a).max(scale_b))
        }
        "%" => (whole_a.max(whole_b), scale_a.max(scale_b)),
        _ => (whole_a.max(whole_b) + 1, scale_a.max(scale_b)),
    }
}
