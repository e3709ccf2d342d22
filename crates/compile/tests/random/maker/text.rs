//! Expressions of texts, days, times and arrays.

use super::super::types::{Item, Kind, NUMBERS, SCALARS, TEXTS};
use super::{Ex, Maker, Mode};

impl Maker {
    pub(super) fn text(&mut self, depth: usize) -> Ex {
        let depth = depth - 1;
        match self.rng.below(20) {
            0..=4 => self.joined(depth),
            5 => {
                let from = self.rng.pick(self.shown_kinds());
                let value = self.expr(from, depth);
                Ex::new(format!("({})::text", value.text), Kind::Text, &[&value])
            }
            6 | 7 => {
                let a = self.expr(Kind::Text, depth);
                let function = self.rng.pick(&[
                    "upper",
                    "lower",
                    "initcap",
                    "reverse",
                    "btrim",
                    "ltrim",
                    "rtrim",
                    "quote_literal",
                    "quote_ident",
                ]);
                Ex::new(format!("{function}({})", a.text), Kind::Text, &[&a])
            }
            8..=11 => self.cut(depth),
            12 | 13 => self.replaced(depth),
            14 => {
                let value = self.expr(Kind::Char, 0);
                let function = self.rng.pick(&["upper", "lower", "rtrim"]);
                Ex::new(format!("{function}({})", value.text), Kind::Text, &[&value])
            }
            15 => {
                let item = self.rng.pick(&[Item::Int, Item::Text, Item::Num]);
                let Some(array) = self.array_of(item) else { return self.leaf(Kind::Text) };
                let null = self.rng.pick(&["", ", '?'"]);
                let text = format!("array_to_string({}, ','{null})", array.name);
                Ex { text, digits: (0, 0), constant: false }
            }
            16 if self.free() => {
                let n = self.expr(Kind::Int, depth);
                Ex::new(format!("chr({} % 90 + 33)", n.text), Kind::Text, &[&n])
            }
            17 if self.free() && self.handlers > 0 => {
                let text = self.rng.pick(&["SQLERRM", "SQLSTATE"]).to_owned();
                Ex { text, digits: (0, 0), constant: false }
            }
            _ => self.joined(depth),
        }
    }

    /// The types whose text may be taken: that of days depends on settings, so PostgreSQL computes it
    /// later than other constants.
    fn shown_kinds(&self) -> &'static [Kind] {
        if self.mode == Mode::Alone { &NUMBERS } else { &SCALARS }
    }

    fn joined(&mut self, depth: usize) -> Ex {
        let a = self.expr(Kind::Text, depth);
        let other = self.rng.pick(self.shown_kinds());
        let mut b = self.expr(other, depth);
        if other == Kind::Char {
            // We do not show the blanks at its end.
            b.text.push_str("::text");
        }
        let text = match self.rng.below(7) {
            0 | 1 => {
                let c = self.expr(Kind::Text, 0);
                return Ex::new(format!("({} || {})", a.text, c.text), Kind::Text, &[&a, &c]);
            }
            2 | 3 => format!("({}::text || {})", a.text, b.text),
            // As constants for a plan they are none.
            _ if self.mode == Mode::Alone => format!("({}::text || {})", a.text, b.text),
            4 => format!("concat({}, {})", a.text, b.text),
            5 => format!("concat_ws('-', {}, {}, 'z')", a.text, b.text),
            _ => format!("format('%s|%s', {}, {})", a.text, b.text),
        };
        Ex::new(text, Kind::Text, &[&a, &b])
    }

    /// A number of characters: of a few units, without failing in safe mode.
    fn length(&mut self) -> String {
        match self.rng.chance(60) {
            true => self.rng.between(if self.free() { -2 } else { 0 }, 6).to_string(),
            false => {
                let n = self.small_integer().text;
                if self.free() { n } else { format!("abs({n})") }
            }
        }
    }

    fn cut(&mut self, depth: usize) -> Ex {
        let a = self.expr(Kind::Text, depth);
        let (n, m) = (self.length(), self.length());
        let of = &a.text;
        let text = match self.rng.below(8) {
            0 => format!("left({of}, {n})"),
            1 => format!("right({of}, {n})"),
            2 => format!("substr({of}, {n})"),
            3 => format!("substr({of}, {n}, {m})"),
            4 => format!("substring({of} FROM {n} FOR {m})"),
            5 => format!("lpad({of}, {n}, 'xy')"),
            6 => format!("rpad({of}, {n})"),
            _ => {
                let n = if self.free() { n } else { "2".to_owned() };
                format!("split_part({of}, ',', {n})")
            }
        };
        Ex::new(text, Kind::Text, &[&a])
    }

    fn replaced(&mut self, depth: usize) -> Ex {
        let a = self.expr(Kind::Text, depth);
        let of = &a.text;
        let (x, y) = (self.rng.pick(&TEXTS), self.rng.pick(&TEXTS));
        let text = match self.rng.below(6) {
            0 | 1 => format!("replace({of}, '{x}', '{y}')"),
            2 => format!("translate({of}, '{x}', '{y}')"),
            3 => {
                let side = self.rng.pick(&["BOTH", "LEADING", "TRAILING"]);
                format!("trim({side} '{x}' FROM {of})")
            }
            4 => {
                let n = self.rng.between(if self.free() { 0 } else { 1 }, 4);
                format!("overlay({of} PLACING '{x}' FROM {n} FOR 2)")
            }
            _ => format!("repeat(left({of}, 6), {})", self.rng.between(-1, 3)),
        };
        Ex::new(text, Kind::Text, &[&a])
    }

    pub(super) fn date(&mut self, depth: usize) -> Ex {
        let depth = depth - 1;
        let a = self.expr(Kind::Date, depth);
        let text = match self.rng.below(8) {
            0 | 1 => {
                let n = self.small_integer();
                let op = self.rng.pick(&["+", "-"]);
                return Ex::new(format!("({} {op} {})", a.text, n.text), Kind::Date, &[&a, &n]);
            }
            2 if self.free() => {
                let n = self.expr(Kind::Int, depth);
                let op = self.rng.pick(&["+", "-"]);
                return Ex::new(format!("({} {op} {})", a.text, n.text), Kind::Date, &[&a, &n]);
            }
            3 if self.free() => {
                let (y, m, d) = (self.small_integer(), self.small_integer(), self.small_integer());
                let text = format!("make_date(2020 + {}, {}, {})", y.text, m.text, d.text);
                return Ex::new(text, Kind::Date, &[&y, &m, &d]);
            }
            4 if self.mode == Mode::Free => {
                let condition = self.expr(Kind::Bool, depth);
                let day = self.rng.pick(&["2023-02-29", "2024-13-01", "soon", "2024-02-28"]);
                let text =
                    format!("(CASE WHEN {} THEN '{day}'::text ELSE '2000-01-01' END)::date", condition.text);
                return Ex::new(text, Kind::Date, &[&condition]);
            }
            5 => {
                let field = self.rng.pick(&["month", "year", "week", "quarter"]);
                format!("date_trunc('{field}', {})::date", a.text)
            }
            6 => format!("({} + interval '{}')::date", a.text, self.interval()),
            _ => return self.cast(Kind::Date, depth + 1),
        };
        Ex::new(text, Kind::Date, &[&a])
    }

    fn interval(&mut self) -> &'static str {
        self.rng.pick(&[
            "1 mon",
            "1 day",
            "-3 days",
            "2 hours 30 minutes",
            "1 year 2 mons",
            "-1 mon 1 day 00:00:01.5",
        ])
    }

    pub(super) fn stamp(&mut self, depth: usize) -> Ex {
        let depth = depth - 1;
        let a = self.expr(Kind::Stamp, depth);
        let text = match self.rng.below(5) {
            0 | 1 => {
                let op = self.rng.pick(&["+", "-"]);
                format!("({} {op} interval '{}')", a.text, self.interval())
            }
            2 => {
                let date = self.expr(Kind::Date, depth);
                let text = format!("({} + interval '{}')", date.text, self.interval());
                return Ex::new(text, Kind::Stamp, &[&date]);
            }
            3 => {
                let field = self.rng.pick(&["hour", "day", "month", "minute", "year"]);
                format!("date_trunc('{field}', {})", a.text)
            }
            _ => return self.cast(Kind::Stamp, depth + 1),
        };
        Ex::new(text, Kind::Stamp, &[&a])
    }

    pub(super) fn array(&mut self, item: Item, depth: usize) -> Ex {
        let kind = Kind::Array(item);
        let a = self.leaf(kind);
        let made = match self.rng.below(6) {
            0..=2 => return self.list(item, depth - 1),
            3 => {
                let value = self.expr(item.kind(), depth - 1);
                let value = if item == Item::Num { self.narrow(value, 14, 6) } else { value };
                let (value_text, ty) = (&value.text, item.kind().sql());
                let text = match self.rng.chance(50) {
                    true => format!("({} || ({value_text})::{ty})", a.text),
                    false => format!("array_prepend(({value_text})::{ty}, {})", a.text),
                };
                Ex::new(text, kind, &[&a, &value])
            }
            4 => {
                let value = self.expr(item.kind(), 0);
                let text = format!("array_remove({}, ({})::{})", a.text, value.text, item.kind().sql());
                Ex::new(text, kind, &[&a, &value])
            }
            _ if item == Item::Text => {
                let text = self.expr(Kind::Text, depth - 1);
                Ex::new(format!("string_to_array({}, ',')", text.text), kind, &[&text])
            }
            _ => {
                let b = self.leaf(kind);
                Ex::new(format!("({} || {})", a.text, b.text), kind, &[&a, &b])
            }
        };
        // None grows without end.
        let of = made.text;
        Ex { text: format!("CASE WHEN cardinality({}) < 12 THEN {of} ELSE NULL END", a.text), ..made }
    }

    /// `ARRAY[...]`
    fn list(&mut self, item: Item, depth: usize) -> Ex {
        let kind = item.kind();
        let mut items = Vec::new();
        for _ in 0..self.rng.between(1, 4) {
            let value = match self.rng.chance(10) {
                true => Ex::null(),
                false => self.expr(kind, depth.min(1)),
            };
            items.push(if kind == Kind::Num { self.narrow(value, 14, 6) } else { value });
        }
        let texts: Vec<&str> = items.iter().map(|item| item.text.as_str()).collect();
        let text = format!("ARRAY[{}]::{}", texts.join(", "), Kind::Array(item).sql());
        Ex::new(text, Kind::Array(item), &items.iter().collect::<Vec<_>>())
    }
}
