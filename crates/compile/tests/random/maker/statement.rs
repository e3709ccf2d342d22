//! Statements that are no control flow: assignments, queries into variables, RAISE, calls.

use super::super::program::Node;
use super::super::types::{Kind, Ty, quoted};
use super::{Ex, HelperResult, Maker, Mode, Record, Shape, Variable};

const CODES: [&str; 12] = [
    "division_by_zero",
    "22012",
    "22003",
    "P0001",
    "12345",
    "unique_violation",
    "A1B2C",
    "P0004",
    "string_data_right_truncation",
    "no_data_found",
    "query_canceled",
    "no_such_condition",
];

impl Maker {
    pub(super) fn simple(&mut self) -> Node {
        let text = match self.rng.below(100) {
            0..=33 => self.assignment(),
            34..=49 if self.rounds <= 30 && !self.read_only => {
                let change = self.change();
                self.counted_rows(change)
            }
            50..=63 if self.rounds <= 60 => {
                let query = self.select_into();
                self.counted_rows(query)
            }
            64..=66 if self.rounds <= 60 => {
                let kinds = [self.any_kind()];
                let query = self.query(&kinds).0;
                let text = match query.strip_prefix("SELECT") {
                    Some(rest) => format!("PERFORM{rest};"),
                    None => format!("PERFORM * FROM ({query}) z;"),
                };
                self.counted_rows(text)
            }
            67..=74 => self.notice(),
            75..=77 => self.raise(),
            78..=79 => self.assertion(),
            80..=84 => self.diagnostics(),
            85..=90 => self.call().unwrap_or_else(|| self.assignment()),
            91 => "NULL;".to_owned(),
            92..=94 => match self.shape {
                Shape::Set(_) | Shape::Table(_) => return self.next(),
                _ => self.notice(),
            },
            95 if self.rng.chance(50) => return self.returned(),
            _ => self.assignment(),
        };
        Node::line(text)
    }

    fn assignment(&mut self) -> String {
        let sign = self.rng.pick(&[":=", ":=", "="]);
        if self.rng.chance(15)
            && let Some(text) = self.row_assignment(sign)
        {
            return text;
        }
        let targets = self.writable(|_| true);
        if targets.is_empty() {
            return "NULL;".to_owned();
        }
        let target = self.rng.pick(&targets);
        if let Ty::Array(item) = target.ty
            && self.rng.chance(50)
        {
            let subscript = match self.rng.chance(60) {
                true => self.rng.between(1, 5).to_string(),
                false => self.small_integer().text,
            };
            let value = self.assignable(plain_item(item.kind()), 2);
            return format!("{}[{subscript}] {sign} {};", target.name, value.text);
        }
        let value = match self.rng.chance(8) {
            true => Ex::null(),
            false => match self.rng.chance(12) && !matches!(target.ty, Ty::Array(_)) {
                true => self.in_mode(Mode::Safe, |maker| maker.for_target(target.ty, 2)),
                false => self.assignable(target.ty, 3),
            },
        };
        format!("{} {sign} {};", target.name, value.text)
    }

    /// A whole row to another of its table.
    fn row_assignment(&mut self, sign: &str) -> Option<String> {
        let rows: Vec<Record> = self.records().into_iter().filter(|record| record.table.is_some()).collect();
        if rows.is_empty() {
            return None;
        }
        let to = self.rng.pick(&rows);
        let fitting: Vec<Record> = rows.into_iter().filter(|row| row.table == to.table).collect();
        let from = self.rng.pick(&fitting);
        Some(match self.rng.chance(80) {
            true => format!("{} {sign} {};", to.name, from.name),
            false => format!("{} {sign} NULL;", to.name),
        })
    }

    /// An expression of a query whose value goes into a variable of this type.
    pub(super) fn for_target(&mut self, ty: Ty, depth: usize) -> Ex {
        let value = self.expr(ty.kind(), depth);
        match ty {
            Ty::Text => Ex { text: format!("left({}, 40)", value.text), ..value },
            Ty::Num => self.narrow(value, 14, 6),
            _ => value,
        }
    }

    /// Some variables to be written, none twice.
    pub(super) fn targets(&mut self) -> Vec<Variable> {
        let mut all = self.writable(|_| true);
        let mut chosen = Vec::new();
        for _ in 0..self.rng.between(1, 3) {
            if !all.is_empty() {
                let n = self.rng.below(all.len());
                chosen.push(all.remove(n));
            }
        }
        chosen
    }

    fn select_into(&mut self) -> String {
        let strict = self.rng.pick(&["", "", "", "STRICT "]);
        if self.rng.chance(25) {
            let rows: Vec<Record> = self.records().into_iter().filter(|row| row.table.is_some()).collect();
            if !rows.is_empty() {
                let row = self.rng.pick(&rows);
                let query = self.whole_rows(row.table.unwrap_or(0));
                return with_into(&query, &format!("{strict}{}", row.name));
            }
        }
        if self.rng.chance(30) {
            return self.select_into_record(strict);
        }
        let targets = self.targets();
        if targets.is_empty() {
            return "NULL;".to_owned();
        }
        let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
        let names = names.join(", ");
        if self.rng.chance(15) {
            // Without a table, and it may fail.
            let mut values = Vec::new();
            for target in &targets {
                let value = self.in_mode(Mode::Alone, |maker| maker.for_target(target.ty, 2));
                values.push(value.text);
            }
            return format!("SELECT {} INTO {strict}{names};", values.join(", "));
        }
        let kinds: Vec<Kind> = targets.iter().map(|target| target.ty.kind()).collect();
        with_into(&self.query(&kinds).0, &format!("{strict}{names}"))
    }

    /// A query into a record: a fresh one, or one that has such columns.
    fn select_into_record(&mut self, strict: &str) -> String {
        let known: Vec<Record> = self.records().into_iter().filter(|record| record.table.is_none()).collect();
        let (name, kinds) = match known.is_empty() || self.rng.chance(60) {
            false => {
                let record = self.rng.pick(&known);
                let kinds = record.fields.iter().map(|field| field.ty.kind()).collect();
                (Some(record.name), kinds)
            }
            true => (None, (0..self.rng.between(1, 3)).map(|_| self.any_kind()).collect::<Vec<Kind>>()),
        };
        let (query, fields) = self.query(&kinds);
        let name = match name {
            Some(name) => name,
            None => {
                let name = self.record(fields);
                self.declared(format!("{name} RECORD;"));
                name
            }
        };
        with_into(&query, &format!("{strict}{name}"))
    }

    /// A record in scope from here on.
    pub(super) fn record(&mut self, fields: Vec<Variable>) -> String {
        let name = self.fresh("r");
        if let Some(scope) = self.scopes.last_mut() {
            scope.records.push(Record { name: name.clone(), fields, table: None });
        }
        name
    }

    /// A declaration of the block around.
    pub(super) fn declared(&mut self, text: String) {
        if let Some(declarations) = self.declarations.last_mut() {
            declarations.push(Node::Line(text));
        }
    }

    /// Some values as arguments of RAISE.
    fn shown(&mut self, most: usize) -> (String, String) {
        let mut places = self.places();
        let mut names = Vec::new();
        for _ in 0..self.rng.between(1, most as i64) {
            if !places.is_empty() {
                let n = self.rng.below(places.len());
                let place = places.remove(n);
                names.push(match place.ty {
                    // We do not show the blanks at its end.
                    Ty::Char(_) => format!("{}::text", place.name),
                    _ => place.name,
                });
            }
        }
        let marks = vec!["%"; names.len()].join(" ");
        let names: String = names.iter().map(|name| format!(", {name}")).collect();
        (marks, names)
    }

    pub(super) fn notice(&mut self) -> String {
        let level = self.rng.pick(&["NOTICE", "NOTICE", "NOTICE", "WARNING", "INFO", "LOG", "DEBUG"]);
        if self.rng.chance(35) {
            let kind = self.any_kind();
            let value = self.expr(kind, 2);
            let cast = if kind == Kind::Char { "::text" } else { "" };
            return format!("RAISE {level} '{kind:?} %', {}{cast};", value.text);
        }
        if self.handlers > 0 && self.rng.chance(50) {
            return format!("RAISE {level} '% %', SQLSTATE, SQLERRM;");
        }
        let (marks, names) = self.shown(4);
        let found = self.rng.pick(&["", ", found"]);
        let mark = if found.is_empty() { "" } else { " %" };
        format!("RAISE {level} 'at {marks}{mark}'{names}{found};")
    }

    /// What everything is at the end.
    pub(super) fn report(&mut self) -> String {
        let (marks, names) = self.shown(9);
        format!("RAISE NOTICE 'end {marks} %'{names}, found;")
    }

    pub(super) fn raise(&mut self) -> String {
        let code = self.rng.pick(&CODES);
        match self.rng.below(7) {
            0 => format!(
                "RAISE {};",
                self.rng.pick(&["division_by_zero", "unique_violation", "case_not_found"])
            ),
            1 => format!("RAISE SQLSTATE '{}';", self.rng.pick(&["12345", "22012", "A1B2C"])),
            2 if self.handlers > 0 => "RAISE;".to_owned(),
            3 => {
                let value = self.expr(Kind::Text, 1);
                format!("RAISE EXCEPTION USING ERRCODE = '{code}', MESSAGE = {};", value.text)
            }
            4 => {
                let (marks, names) = self.shown(2);
                let detail = self.expr(Kind::Text, 1);
                let hint = self.rng.pick(&["", ", HINT = 'try again'"]);
                format!(
                    "RAISE EXCEPTION 'bad {marks}'{names} USING ERRCODE = '{code}', DETAIL = {}{hint};",
                    detail.text
                )
            }
            5 => {
                let condition = self.expr(Kind::Bool, 1);
                let (marks, names) = self.shown(2);
                format!("IF ({}) THEN RAISE EXCEPTION 'no {marks}%%'{names}; END IF;", condition.text)
            }
            _ => {
                let (marks, names) = self.shown(2);
                format!("RAISE EXCEPTION 'no {marks}'{names};")
            }
        }
    }

    fn assertion(&mut self) -> String {
        let condition = self.expr(Kind::Bool, 2);
        match self.rng.chance(60) {
            true => {
                let message = self.expr(Kind::Text, 1);
                format!("ASSERT {}, {};", condition.text, message.text)
            }
            false => format!("ASSERT {};", condition.text),
        }
    }

    fn diagnostics(&mut self) -> String {
        if self.handlers > 0 && self.rng.chance(50) {
            let targets = self.writable(|ty| ty.kind() == Kind::Text);
            if !targets.is_empty() {
                let target = self.rng.pick(&targets).name;
                let item = self.rng.pick(&["RETURNED_SQLSTATE", "MESSAGE_TEXT", "RETURNED_SQLSTATE"]);
                return format!("GET STACKED DIAGNOSTICS {target} = {item};");
            }
        }
        self.notice()
    }

    /// The statement, and perhaps its ROW_COUNT behind it, before an expression with a query in it, which
    /// is a statement to PostgreSQL, changes that.
    fn counted_rows(&mut self, text: String) -> String {
        let targets = self.writable(|ty| matches!(ty, Ty::Int | Ty::Big | Ty::Small | Ty::Text));
        match targets.is_empty() || !self.rng.chance(25) {
            true => text,
            false => format!("{text} GET DIAGNOSTICS {} = ROW_COUNT;", self.rng.pick(&targets).name),
        }
    }

    fn call(&mut self) -> Option<String> {
        if self.helpers.is_empty() || self.rounds > 12 || self.read_only {
            return None;
        }
        let helper = self.rng.pick(&self.helpers.clone());
        match &helper.result {
            HelperResult::Value(kind) => {
                let arguments = self.arguments(&helper.parameters, 2);
                let targets = self.writable(|ty| ty.kind() == *kind && ty != Ty::Text);
                Some(match targets.is_empty() {
                    true => format!("PERFORM {}({arguments});", helper.name),
                    false => format!("{} := {}({arguments});", self.rng.pick(&targets).name, helper.name),
                })
            }
            HelperResult::Outs(outs) => {
                let mut arguments: Vec<String> = vec![self.arguments(&helper.parameters, 2)]
                    .into_iter()
                    .filter(|a| !a.is_empty())
                    .collect();
                let mut used: Vec<String> = Vec::new();
                for (ty, _) in outs {
                    let targets: Vec<Variable> = self
                        .variables()
                        .into_iter()
                        .filter(|v| v.writable && v.ty.kind() == ty.kind() && !used.contains(&v.name))
                        // A cast would stand around it.
                        .filter(|v| !matches!(v.ty, Ty::Varchar(_)))
                        .collect();
                    if targets.is_empty() {
                        return None;
                    }
                    let target = self.rng.pick(&targets).name;
                    used.push(target.clone());
                    arguments.push(target);
                }
                Some(format!("CALL {}({});", helper.name, arguments.join(", ")))
            }
            HelperResult::Rows(_) => None,
        }
    }

    /// A part of the set that is returned.
    pub(super) fn next(&mut self) -> Node {
        let shape = self.shape.clone();
        let text = match shape {
            Shape::Set(kind) => match self.rng.chance(50) {
                true => format!("RETURN NEXT {};", self.assignable(super::query::plain(kind), 2).text),
                false => format!("RETURN QUERY {};", self.query(&[kind]).0),
            },
            Shape::Table(columns) => match self.rng.chance(50) {
                true => "RETURN NEXT;".to_owned(),
                false => {
                    let kinds: Vec<Kind> = columns.iter().map(|(_, kind)| *kind).collect();
                    format!("RETURN QUERY {};", self.query(&kinds).0)
                }
            },
            _ => "NULL;".to_owned(),
        };
        Node::line(text)
    }

    /// The end of the routine.
    pub(super) fn returned(&mut self) -> Node {
        let shape = self.shape.clone();
        Node::line(match shape {
            Shape::Value(ty) => {
                let value = if self.rng.chance(5) { Ex::null() } else { self.assignable(ty, 3) };
                format!("RETURN {};", value.text)
            }
            Shape::RowOf(table) => {
                let rows: Vec<Record> =
                    self.records().into_iter().filter(|row| row.table == Some(table)).collect();
                match rows.is_empty() {
                    true => "RETURN NULL;".to_owned(),
                    false => format!("RETURN {};", self.rng.pick(&rows).name),
                }
            }
            _ => "RETURN;".to_owned(),
        })
    }

    /// A literal that a declaration of this type may begin with.
    pub(super) fn first_value(&mut self, ty: Ty) -> String {
        let value = super::super::types::value(&mut self.rng, ty.kind());
        let value = match ty {
            Ty::Varchar(n) | Ty::Char(n) => value.chars().take(n as usize).collect(),
            Ty::Numeric(3, 3) => "0.25".to_owned(),
            Ty::Numeric(precision, scale) => {
                let whole = value.trim_start_matches('-').split('.').next().map_or(0, str::len);
                if whole as u32 > precision - scale { "1.5".to_owned() } else { value }
            }
            _ => value,
        };
        quoted(&value)
    }
}

fn plain_item(kind: Kind) -> Ty {
    super::query::plain(kind)
}

/// The query with INTO behind the list of what is selected, or at its end.
fn with_into(query: &str, into: &str) -> String {
    format!("{query} INTO {into};")
}
