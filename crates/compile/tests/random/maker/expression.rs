//! Expressions of any type: leaves, and what is the same for all types.

use super::super::types::{INTEGERS, Kind, NUMBERS, Ty, literal};
use super::{Ex, HelperResult, Maker, Mode, Variable};

impl Maker {
    /// An expression of exactly this type.
    pub(super) fn expr(&mut self, kind: Kind, depth: usize) -> Ex {
        if depth == 0 || self.rng.chance(22) {
            return self.leaf(kind);
        }
        let made = match self.rng.below(100) {
            // What is not reached is computed all the same in a statement that is no expression.
            0..=13 if self.mode == Mode::Alone => self.in_mode(Mode::Safe, |maker| maker.common(kind, depth)),
            0..=13 => self.common(kind, depth),
            14..=19 if self.mode == Mode::Safe && self.queries < 2 => self.subquery(kind),
            14..=17 if self.mode == Mode::Free => self.called(kind, depth),
            18..=22 => self.element(kind),
            _ => None,
        };
        let made = match made {
            Some(made) => made,
            None => match kind {
                Kind::Small | Kind::Int | Kind::Big => self.integer(kind, depth),
                Kind::Num => self.numeric(depth),
                Kind::Double => self.double(depth),
                Kind::Text => self.text(depth),
                Kind::Bool => self.condition(depth),
                Kind::Date => self.date(depth),
                Kind::Stamp => self.stamp(depth),
                Kind::Array(item) => self.array(item, depth),
                Kind::Char => self.leaf(kind),
            },
        };
        // What PostgreSQL computes while it plans fails there too.
        if made.constant { self.leaf(kind) } else { made }
    }

    /// A variable, column or literal.
    pub(super) fn leaf(&mut self, kind: Kind) -> Ex {
        let mut all = self.values(|ty| ty.kind() == kind);
        if kind == Kind::Bool && self.rng.chance(15) {
            all.push(Variable { name: "found".to_owned(), ty: Ty::Bool, writable: false });
        }
        if all.is_empty() || self.rng.chance(18) {
            return self.literal(kind);
        }
        let chosen = self.rng.pick(&all);
        Ex { text: chosen.name, digits: chosen.ty.digits(), constant: false }
    }

    pub(super) fn literal(&mut self, kind: Kind) -> Ex {
        let (text, digits) = literal(&mut self.rng, kind);
        Ex { text, digits, constant: true }
    }

    /// A variable, or an expression with one.
    pub(super) fn changing(&mut self, kind: Kind) -> Ex {
        let all = self.values(|ty| ty.kind() == kind);
        if all.is_empty() {
            return self.literal(kind);
        }
        let chosen = self.rng.pick(&all);
        Ex { text: chosen.name, digits: chosen.ty.digits(), constant: false }
    }

    /// A leaf, or NULL.
    fn leaf_or_null(&mut self, kind: Kind, depth: usize) -> Ex {
        if self.rng.chance(12) { Ex::null() } else { self.expr(kind, depth) }
    }

    /// CASE, COALESCE and their like.
    fn common(&mut self, kind: Kind, depth: usize) -> Option<Ex> {
        let depth = depth - 1;
        let (a, b) = (self.expr(kind, depth), self.leaf_or_null(kind, depth));
        let digits = (a.digits.0.max(b.digits.0), a.digits.1.max(b.digits.1));
        let (mut x, mut y) = (a.clone(), b.clone());
        if self.rng.chance(50) {
            std::mem::swap(&mut x, &mut y);
        }
        let made = match self.rng.below(8) {
            0 | 1 => {
                let condition = self.term(depth);
                let text = format!("CASE WHEN {} THEN {} ELSE {} END", condition.text, x.text, y.text);
                Ex::new(text, kind, &[&condition, &a, &b])
            }
            2 => {
                let (one, two) = (self.term(depth), self.term(depth));
                let text =
                    format!("CASE WHEN {} THEN {} WHEN {} THEN {} END", one.text, x.text, two.text, y.text);
                Ex::new(text, kind, &[&one, &two, &a, &b])
            }
            3 => {
                let of = self.rng.pick(&[Kind::Int, Kind::Text, Kind::Small, Kind::Bool, Kind::Num]);
                let operand = self.changing(of);
                let (one, two) = (self.literal(of), self.expr(of, 0));
                let text = format!(
                    "CASE {} WHEN {} THEN {} WHEN {} THEN {} ELSE {} END",
                    operand.text, one.text, x.text, two.text, y.text, a.text
                );
                Ex::new(text, kind, &[&operand, &a, &b])
            }
            4 | 5 => Ex::new(format!("COALESCE({}, {})", x.text, y.text), kind, &[&a, &b]),
            6 if kind != Kind::Bool => {
                let other = self.expr(kind, 0);
                Ex::new(format!("NULLIF({}, {})", a.text, other.text), kind, &[&a, &other])
            }
            _ => {
                let which = self.rng.pick(&["GREATEST", "LEAST"]);
                Ex::new(format!("{which}({}, {})", x.text, y.text), kind, &[&a, &b])
            }
        };
        Some(made.with_digits(digits))
    }

    /// A call of another routine.
    fn called(&mut self, kind: Kind, depth: usize) -> Option<Ex> {
        if self.rounds > 12 || self.read_only {
            return None;
        }
        let fitting: Vec<_> = self
            .helpers
            .iter()
            .filter(|helper| helper.result == HelperResult::Value(kind))
            .cloned()
            .collect();
        if fitting.is_empty() {
            return None;
        }
        let helper = self.rng.pick(&fitting);
        let arguments = self.arguments(&helper.parameters, depth.min(2) - 1);
        let text = format!("{}({arguments})", helper.name);
        Some(Ex { text, digits: kind.digits(), constant: false })
    }

    /// Arguments, each cast to what the parameter is.
    pub(super) fn arguments(&mut self, parameters: &[Kind], depth: usize) -> String {
        let mut all = Vec::new();
        for kind in parameters {
            let argument = self.expr(*kind, depth);
            let fitted = if *kind == Kind::Num { self.narrow(argument, 14, 6) } else { argument };
            all.push(format!("({})::{}", fitted.text, kind.sql()));
        }
        all.join(", ")
    }

    /// An element of an array.
    fn element(&mut self, kind: Kind) -> Option<Ex> {
        let array = self.array_of(kind.item()?)?;
        let subscript = match self.rng.below(3) {
            0 => self.rng.between(-1, 5).to_string(),
            _ => self.in_mode(Mode::Safe, |maker| maker.small_integer()).text,
        };
        Some(Ex { text: format!("{}[{subscript}]", array.name), digits: kind.digits(), constant: false })
    }

    /// An integer of a few units, without failing.
    pub(super) fn small_integer(&mut self) -> Ex {
        let kind = self.rng.pick(&[Kind::Int, Kind::Int, Kind::Small]);
        let value = self.changing(kind);
        let bound = self.rng.pick(&[3, 4, 5, 7, 12]);
        Ex::new(format!("({} % {bound})", value.text), kind, &[&value])
    }

    /// A query of one value.
    fn subquery(&mut self, kind: Kind) -> Option<Ex> {
        if matches!(kind, Kind::Array(_)) {
            return None;
        }
        let query = self.one_value(kind);
        Some(Ex { text: format!("({})", query.0), digits: query.1, constant: false })
    }

    /// A cast from another type, in parentheses.
    pub(super) fn cast(&mut self, to: Kind, depth: usize) -> Ex {
        let depth = depth - 1;
        let safe: &[Kind] = match to {
            Kind::Small => &[Kind::Small],
            Kind::Int => &[Kind::Small, Kind::Bool],
            Kind::Big => &[Kind::Small, Kind::Int],
            Kind::Num | Kind::Double => &[Kind::Small, Kind::Int, Kind::Big],
            Kind::Date => &[Kind::Stamp],
            Kind::Stamp => &[Kind::Date],
            Kind::Bool => &[Kind::Int],
            _ => &[Kind::Int],
        };
        let risky: &[Kind] = match to {
            Kind::Small | Kind::Int => &NUMBERS,
            Kind::Big => &[Kind::Num, Kind::Double, Kind::Text],
            Kind::Num | Kind::Double => &[Kind::Text, Kind::Num],
            Kind::Bool => &[Kind::Text],
            _ => safe,
        };
        let from = match self.free() && self.rng.chance(60) {
            true if self.rng.chance(25) && to.is_integer() => Kind::Text,
            true => self.rng.pick(risky),
            false => self.rng.pick(safe),
        };
        let value = self.expr(from, depth);
        let value = match (from, to) {
            // Longer ones may have an exponent.
            (Kind::Text, Kind::Num | Kind::Double) => {
                Ex { text: format!("left({}, 5)", value.text), ..value }
            }
            _ => value,
        };
        let digits = match (to, from) {
            (Kind::Num, Kind::Text) => (5, 5),
            (Kind::Num, _) if from.is_number() => value.digits,
            _ => to.digits(),
        };
        let made = Ex::new(format!("({})::{}", value.text, to.sql()), to, &[&value]);
        made.with_digits(digits)
    }

    /// An expression that a place of this type takes in a statement of PL/pgSQL: of the type, or of one
    /// that it is converted from; the conversion may fail.
    pub(super) fn assignable(&mut self, ty: Ty, depth: usize) -> Ex {
        let kind = ty.kind();
        let from = match self.rng.below(100) {
            0..=69 => kind,
            _ => match kind {
                Kind::Small | Kind::Int | Kind::Big => {
                    self.rng.pick(&[Kind::Small, Kind::Int, Kind::Big, Kind::Num, Kind::Double, Kind::Text])
                }
                Kind::Num => self.rng.pick(&[Kind::Int, Kind::Big, Kind::Small, Kind::Num]),
                Kind::Double => self.rng.pick(&[Kind::Int, Kind::Num, Kind::Big]),
                Kind::Text | Kind::Char => {
                    let of = [Kind::Int, Kind::Num, Kind::Bool, Kind::Date, Kind::Double, Kind::Text];
                    self.rng.pick(&of)
                }
                Kind::Bool => self.rng.pick(&[Kind::Bool, Kind::Text, Kind::Int]),
                Kind::Date => self.rng.pick(&[Kind::Date, Kind::Stamp]),
                Kind::Stamp => self.rng.pick(&[Kind::Date, Kind::Stamp]),
                Kind::Array(_) => kind,
            },
        };
        let value = match from {
            Kind::Char => self.expr(Kind::Text, depth),
            from => self.expr(from, depth),
        };
        match ty {
            Ty::Text if from == Kind::Text => Ex { text: format!("left({}, 40)", value.text), ..value },
            Ty::Num => self.narrow(value, 14, 6),
            _ => value,
        }
    }

    /// An expression whose value a column of this type can hold, whatever is in the rows.
    pub(super) fn fitting(&mut self, ty: Ty, depth: usize) -> Ex {
        debug_assert!(self.mode == Mode::Safe);
        match ty {
            Ty::Small => {
                let from = self.rng.pick(&INTEGERS);
                let value = self.expr(from, depth);
                match from {
                    Kind::Small => value,
                    _ => Ex { text: format!("({} % 30000)", value.text), ..value },
                }
            }
            Ty::Int => {
                let from = self.rng.pick(&[Kind::Small, Kind::Int, Kind::Int]);
                self.expr(from, depth)
            }
            Ty::Big => {
                let from = self.rng.pick(&INTEGERS);
                self.expr(from, depth)
            }
            Ty::Numeric(precision, scale) => {
                let from = self.rng.pick(&[Kind::Num, Kind::Num, Kind::Int, Kind::Small]);
                let value = self.expr(from, depth);
                // One less, because it may be rounded up.
                self.narrow(value, (precision - scale).saturating_sub(1).max(1), scale)
            }
            Ty::Num => {
                let value = self.expr(Kind::Num, depth);
                self.narrow(value, 14, 6)
            }
            Ty::Varchar(n) | Ty::Char(n) => {
                let value = self.expr(Kind::Text, depth);
                Ex { text: format!("left({}, {n})", value.text), ..value }
            }
            Ty::Text => {
                let value = self.expr(Kind::Text, depth);
                Ex { text: format!("left({}, 40)", value.text), ..value }
            }
            other => self.expr(other.kind(), depth),
        }
    }
}
