//! Conditions.

use super::super::types::{Item, Kind, NUMBERS, SCALARS, Ty};
use super::{Ex, Maker, Mode};

const COMPARISONS: [&str; 7] = ["=", "<>", "<", "<=", ">", ">=", "="];

impl Maker {
    pub(super) fn condition(&mut self, depth: usize) -> Ex {
        let depth = depth - 1;
        match self.rng.below(24) {
            0..=7 => self.comparison(depth),
            8..=10 => {
                let mode = if self.mode == Mode::Alone { Mode::Safe } else { self.mode };
                let (a, b) = self.in_mode(mode, |maker| (maker.term(depth), maker.term(depth)));
                let op = self.rng.pick(&["AND", "OR"]);
                Ex::new(format!("({} {op} {})", a.text, b.text), Kind::Bool, &[&a, &b])
            }
            11 => {
                let a = self.term(depth);
                Ex::new(format!("(NOT {})", a.text), Kind::Bool, &[&a])
            }
            12 | 13 => {
                let kind = self.any_kind();
                let a = self.expr(kind, depth);
                let is = self.rng.pick(&["IS NULL", "IS NOT NULL"]);
                Ex::new(format!("({} {is})", a.text), Kind::Bool, &[&a])
            }
            14 | 15 => self.like(depth),
            16 => self.listed(depth),
            17 => {
                let kind = self.any_kind();
                let (a, b, c) = (self.expr(kind, depth), self.expr(kind, 0), self.expr(kind, 0));
                let not = self.rng.pick(&["", "NOT "]);
                let text = format!("({} {not}BETWEEN {} AND {})", a.text, b.text, c.text);
                Ex::new(text, Kind::Bool, &[&a, &b, &c])
            }
            18 => {
                let kind = self.any_kind();
                let (a, b) = (self.expr(kind, depth), self.expr(kind, 0));
                let not = self.rng.pick(&["", "NOT "]);
                let text = format!("({} IS {not}DISTINCT FROM {})", a.text, b.text);
                Ex::new(text, Kind::Bool, &[&a, &b])
            }
            19 => self.any_of(depth),
            20 => {
                let a = self.term(depth);
                let is = self.rng.pick(&["IS TRUE", "IS NOT FALSE", "IS UNKNOWN", "IS NOT TRUE"]);
                Ex::new(format!("({} {is})", a.text), Kind::Bool, &[&a])
            }
            21 if self.mode == Mode::Safe && self.queries < 2 => self.exists(),
            22 => self.of_record(),
            _ => self.comparison(depth),
        }
    }

    /// A condition with a variable in it: PostgreSQL does not evaluate what stands beside a constant.
    pub(super) fn term(&mut self, depth: usize) -> Ex {
        let term = self.expr(Kind::Bool, depth);
        if !term.constant {
            return term;
        }
        let all = self.values(|ty| ty.kind() == Kind::Bool);
        let text = if all.is_empty() { "found".to_owned() } else { self.rng.pick(&all).name };
        Ex { text, digits: (0, 0), constant: false }
    }

    pub(super) fn any_kind(&mut self) -> Kind {
        self.rng.pick(&SCALARS)
    }

    pub(super) fn comparison(&mut self, depth: usize) -> Ex {
        let (kind, other) = match self.rng.below(10) {
            0..=4 => (self.rng.pick(&NUMBERS), self.rng.pick(&NUMBERS)),
            5 | 6 => (Kind::Text, self.rng.pick(&[Kind::Text, Kind::Text, Kind::Char])),
            7 => (Kind::Char, self.rng.pick(&[Kind::Char, Kind::Text])),
            8 => (Kind::Date, self.rng.pick(&[Kind::Date, Kind::Stamp])),
            _ => {
                let item = self.rng.pick(&[Item::Int, Item::Text, Item::Num]);
                let kind = self.rng.pick(&[Kind::Bool, Kind::Stamp, Kind::Array(item)]);
                (kind, kind)
            }
        };
        let (a, b) = (self.expr(kind, depth), self.expr(other, depth));
        let op = self.rng.pick(&COMPARISONS);
        Ex::new(format!("({} {op} {})", a.text, b.text), Kind::Bool, &[&a, &b])
    }

    fn like(&mut self, depth: usize) -> Ex {
        let a = self.expr(Kind::Text, depth);
        let op = self.rng.pick(&["LIKE", "NOT LIKE", "ILIKE", "LIKE"]);
        if self.rng.chance(25) {
            let b = self.expr(Kind::Text, 0);
            return Ex::new(format!("({} {op} {})", a.text, b.text), Kind::Bool, &[&a, &b]);
        }
        let pattern = self
            .rng
            .pick(&["a%", "%b", "%b%", "_b%", "abc", "%", "", "__", "%\\%%", "A_%", "%c_", "h%o", "%ö%"]);
        Ex::new(format!("({} {op} '{pattern}')", a.text), Kind::Bool, &[&a])
    }

    fn listed(&mut self, depth: usize) -> Ex {
        let kind = self.any_kind();
        let a = self.expr(kind, depth);
        let mut items = Vec::new();
        for _ in 0..self.rng.between(1, 4) {
            // PostgreSQL computes all or one after the other, as it happens.
            items.push(if !items.is_empty() && self.rng.chance(10) { Ex::null() } else { self.leaf(kind) });
        }
        let texts: Vec<&str> = items.iter().map(|item| item.text.as_str()).collect();
        let not = self.rng.pick(&["", "NOT "]);
        let text = format!("({} {not}IN ({}))", a.text, texts.join(", "));
        let mut parts: Vec<&Ex> = items.iter().collect();
        parts.push(&a);
        Ex::new(text, Kind::Bool, &parts)
    }

    fn any_of(&mut self, depth: usize) -> Ex {
        let item = self.rng.pick(&[Item::Int, Item::Text, Item::Num, Item::Date]);
        let Some(array) = self.array_of(item) else { return self.comparison(depth) };
        let value = self.expr(item.kind(), depth);
        let (op, which) = (self.rng.pick(&COMPARISONS), self.rng.pick(&["ANY", "ALL"]));
        let text = format!("({} {op} {which} ({}))", value.text, array.name);
        Ex { text, digits: (0, 0), constant: false }
    }

    fn of_record(&mut self) -> Ex {
        let records = self.records();
        if records.is_empty() {
            let all = self.values(|ty| !matches!(ty, Ty::Array(_)));
            if all.is_empty() {
                return self.leaf(Kind::Bool);
            }
            let text = format!("({} IS NULL)", self.rng.pick(&all).name);
            return Ex { text, digits: (0, 0), constant: false };
        }
        let record = self.rng.pick(&records);
        let is = self.rng.pick(&["IS NULL", "IS NOT NULL"]);
        Ex { text: format!("({} {is})", record.name), digits: (0, 0), constant: false }
    }
}
