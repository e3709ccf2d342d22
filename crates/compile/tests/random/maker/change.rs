//! INSERT, UPDATE, DELETE.

use super::super::types::{Kind, NUMBERS, Ty};
use super::{Ex, Maker, Mode, Relation, Variable};

impl Maker {
    /// A change, with what may stand behind it.
    pub(super) fn change(&mut self) -> String {
        match self.rng.below(12) {
            0..=3 => self.insert_row(),
            4 | 5 => self.insert_rows(),
            6..=9 => self.update(),
            _ => self.delete(),
        }
    }

    /// The columns that an INSERT names: all that must have a value, in the table's order.
    fn inserted(&mut self, table: usize) -> Vec<usize> {
        let columns = self.tables[table].columns.clone();
        let all = self.rng.chance(40);
        (0..columns.len()).filter(|n| all || columns[*n].not_null || self.rng.chance(60)).collect()
    }

    /// An expression that INSERT converts to the type of a column; it may fail.
    fn insertable(&mut self, ty: Ty, depth: usize) -> Ex {
        let kind = ty.kind();
        let from = match kind {
            _ if self.rng.chance(75) => kind,
            kind if kind.is_number() => self.rng.pick(&NUMBERS),
            Kind::Text | Kind::Char => self.rng.pick(&[Kind::Text, Kind::Int, Kind::Bool, Kind::Num]),
            Kind::Date => Kind::Stamp,
            Kind::Stamp => Kind::Date,
            kind => kind,
        };
        let value = match (from, kind) {
            // Too many digits for a NUMERIC of ours.
            (Kind::Double, Kind::Num) => self.expr(Kind::Num, depth),
            (Kind::Char, _) => self.expr(Kind::Text, depth),
            (from, _) => self.expr(from, depth),
        };
        match (ty, from) {
            (Ty::Text, Kind::Text) => Ex { text: format!("left({}, 40)", value.text), ..value },
            (Ty::Varchar(n) | Ty::Char(n), Kind::Text) if self.rng.chance(70) => {
                Ex { text: format!("left({}, {n})", value.text), ..value }
            }
            _ => value,
        }
    }

    /// A value for a key, of which there are not too many.
    fn key_value(&mut self, ty: Ty) -> String {
        match ty {
            Ty::Small | Ty::Int | Ty::Big => match self.rng.below(3) {
                0 => self.rng.below(14).to_string(),
                1 => format!("abs({})", self.small_integer().text),
                _ => {
                    let kind = self.rng.pick(&[Kind::Int, Kind::Small]);
                    let value = self.expr(kind, 1);
                    format!("(({}) % 15)", value.text)
                }
            },
            _ => self.fitting(ty, 1).text,
        }
    }

    fn insert_row(&mut self) -> String {
        let table = self.rng.below(self.tables.len());
        let columns = self.inserted(table);
        let mut values = Vec::new();
        for n in &columns {
            let column = self.tables[table].columns[*n].clone();
            let is_key = self.tables[table].key.contains(n) || self.tables[table].unique == Some(*n);
            values.push(match is_key && self.rng.chance(85) {
                true => self.in_mode(Mode::Safe, |maker| maker.key_value(column.ty)),
                false
                    if self.tables[table].default.is_some_and(|(at, _)| at == *n) && self.rng.chance(30) =>
                {
                    "DEFAULT".to_owned()
                }
                false if column.not_null && self.rng.chance(85) => {
                    let value = self.in_mode(Mode::Alone, |maker| maker.expr(column.ty.kind(), 1));
                    self.filled(value, column.ty)
                }
                false if self.rng.chance(10) => "NULL".to_owned(),
                false => self.in_mode(Mode::Alone, |maker| maker.insertable(column.ty, 2)).text,
            });
        }
        let target = self.target(table, &columns);
        let conflict = self.conflict(table, true);
        let relation = self.relation(table, self.tables[table].name);
        self.relations.push(relation);
        let rest = self.returning();
        self.relations.pop();
        format!("{target} VALUES ({}){conflict}{rest};", values.join(", "))
    }

    /// The value, or another if it is NULL.
    fn filled(&mut self, value: Ex, ty: Ty) -> String {
        let value = match ty {
            Ty::Varchar(n) => Ex { text: format!("left({}, {n})", value.text), ..value },
            _ => value,
        };
        let other = self.literal(ty.kind());
        match ty {
            Ty::Numeric(..) => format!("COALESCE({}, 1.5)", value.text),
            Ty::Varchar(_) => format!("COALESCE({}, 'n')", value.text),
            _ => format!("COALESCE({}, {})", value.text, other.text),
        }
    }

    /// `INSERT INTO t (a, b)`
    fn target(&mut self, table: usize, columns: &[usize]) -> String {
        let name = self.tables[table].name;
        let all = columns.len() == self.tables[table].columns.len();
        match all && self.rng.chance(40) {
            true => format!("INSERT INTO {name}"),
            false => format!("INSERT INTO {name} ({})", self.tables[table].names(columns)),
        }
    }

    /// Several rows whose values fit.
    fn insert_rows(&mut self) -> String {
        let table = self.rng.below(self.tables.len());
        let columns = self.inserted(table);
        let target = self.target(table, &columns);
        let source = match self.rng.chance(50) {
            true => {
                let mut rows = Vec::new();
                for _ in 0..self.rng.between(1, 3) {
                    rows.push(format!("({})", self.in_query(|maker| maker.row(table, &columns))));
                }
                format!("VALUES {}", rows.join(", "))
            }
            false => self.in_query(|maker| {
                let outer = maker.relations.len();
                let n = maker.rng.below(maker.tables.len());
                let alias = maker.fresh("q");
                let relation = maker.relation(n, &alias);
                let order = relation.key.join(", ");
                maker.relations.push(relation);
                let row = maker.row(table, &columns);
                let condition = maker.predicate(outer).map_or(String::new(), |text| format!(" WHERE {text}"));
                maker.relations.truncate(outer);
                format!(
                    "SELECT {row} FROM {} {alias}{condition} ORDER BY {order} LIMIT 4",
                    maker.tables[n].name
                )
            }),
        };
        let conflict = self.conflict(table, false);
        format!("{target} {source}{conflict};")
    }

    fn row(&mut self, table: usize, columns: &[usize]) -> String {
        let mut values = Vec::new();
        for n in columns {
            let column = self.tables[table].columns[*n].clone();
            let is_key = self.tables[table].key.contains(n) || self.tables[table].unique == Some(*n);
            let value = match is_key {
                true => self.key_value(column.ty),
                false => self.fitting(column.ty, 1).text,
            };
            let value = match column.not_null {
                true => {
                    let other = self.in_mode(Mode::Safe, |maker| maker.default_of(column.ty));
                    format!("COALESCE({value}, {other})")
                }
                false => value,
            };
            // All rows of VALUES have one type.
            values.push(format!("({value})::{}", column.ty.sql()));
        }
        values.join(", ")
    }

    fn default_of(&mut self, ty: Ty) -> &'static str {
        match ty.kind() {
            kind if kind.is_number() => "1",
            Kind::Text | Kind::Char => "'n'",
            Kind::Bool => "true",
            _ => "'2020-02-02'",
        }
    }

    /// ON CONFLICT; with queries in it only if there is but one row.
    fn conflict(&mut self, table: usize, one_row: bool) -> String {
        let def = self.tables[table].clone();
        let key = match def.unique {
            Some(unique) if self.rng.chance(30) => vec![unique],
            _ => def.key.clone(),
        };
        match self.rng.below(10) {
            0 => " ON CONFLICT DO NOTHING".to_owned(),
            1 => format!(" ON CONFLICT ({}) DO NOTHING", def.names(&key)),
            2..=4 => {
                let mut old = self.relation(table, def.name);
                let outer = self.relations.len();
                let new = self.relation(table, "excluded");
                old.key.clear();
                self.relations.extend([old, new]);
                self.queries += if one_row { 0 } else { 2 };
                let text = self.in_query(|maker| {
                    let set = maker.settings(table, false);
                    let condition = match maker.rng.chance(25) {
                        true => format!(" WHERE {}", maker.expr(Kind::Bool, 1).text),
                        false => String::new(),
                    };
                    format!(" ON CONFLICT ({}) DO UPDATE SET {set}{condition}", def.names(&key))
                });
                self.queries -= if one_row { 0 } else { 2 };
                self.relations.truncate(outer);
                text
            }
            _ => String::new(),
        }
    }

    /// `a = ..., b = ...` for columns that are no key; one of them may fail.
    fn settings(&mut self, table: usize, may_fail: bool) -> String {
        let def = self.tables[table].clone();
        let mut columns: Vec<usize> =
            (0..def.columns.len()).filter(|n| !def.key.contains(n) && def.unique != Some(*n)).collect();
        let mut set = Vec::new();
        let fails = may_fail && self.rng.chance(20);
        for n in 0..self.rng.between(1, 3).min(columns.len() as i64) {
            let at = columns.remove(self.rng.below(columns.len()));
            let column = &def.columns[at];
            let value = match fails && n == 0 {
                true => self.risky(column.ty),
                false => {
                    let value = self.fitting(column.ty, 2).text;
                    match column.not_null {
                        true => format!("COALESCE({value}, {})", self.default_of(column.ty)),
                        false => value,
                    }
                }
            };
            set.push(format!("{} = {value}", column.name));
        }
        set.join(", ")
    }

    /// An expression of a column that may fail, but only where there is a row.
    fn risky(&mut self, ty: Ty) -> String {
        let own = self.relations.last().cloned();
        let numbers: Vec<Variable> = own
            .iter()
            .flat_map(|relation| {
                relation
                    .columns
                    .iter()
                    .filter(|column| matches!(column.ty, Ty::Small | Ty::Int | Ty::Big))
                    .map(|column| Variable {
                        name: format!("{}.{}", relation.alias, column.name),
                        ..column.clone()
                    })
            })
            .collect();
        if numbers.is_empty() || !ty.kind().is_number() || ty == Ty::Double {
            return self.fitting(ty, 1).text;
        }
        let column = self.rng.pick(&numbers);
        let relations = std::mem::take(&mut self.relations);
        let of = self.rng.pick(&[Kind::Int, Kind::Small, Kind::Int]);
        let other = self.changing(of);
        self.relations = relations;
        let op = self.rng.pick(&["*", "/", "%", "+"]);
        let text = format!("({} {op} {})", column.name, other.text);
        match ty {
            Ty::Numeric(..) => format!("COALESCE({text}, 1)"),
            _ => text,
        }
    }

    /// The relation that UPDATE and DELETE have, and how they name it.
    fn changed(&mut self, table: usize) -> (String, Relation) {
        let name = self.tables[table].name;
        match self.rng.chance(50) {
            true => (name.to_owned(), self.relation(table, name)),
            false => {
                let alias = self.fresh("q");
                (format!("{name} {alias}"), self.relation(table, &alias))
            }
        }
    }

    fn update(&mut self) -> String {
        let table = self.rng.below(self.tables.len());
        let (name, relation) = self.changed(table);
        let alias = relation.alias.clone();
        let outer = self.relations.len();
        self.relations.push(relation);
        let text = self.in_query(|maker| {
            let by_key = maker.rng.chance(45);
            let mut set = maker.settings(table, true);
            let mut from = String::new();
            let condition = match by_key {
                true => {
                    if maker.rng.chance(20) {
                        let key = maker.tables[table].key[0];
                        let column = maker.tables[table].columns[key].clone();
                        let value = maker.key_value(column.ty);
                        set = format!("{} = {value}", column.name);
                    }
                    Some(maker.whole_key(table, &alias))
                }
                false if maker.rng.chance(25) => {
                    let (partner, condition) = maker.partner(&alias);
                    from = format!(" FROM {partner}");
                    Some(condition)
                }
                false => maker.predicate(outer),
            };
            let condition = condition.map_or(String::new(), |text| format!(" WHERE {text}"));
            format!("UPDATE {name} SET {set}{from}{condition}")
        });
        let rest = self.returning();
        self.relations.truncate(outer);
        format!("{text}{rest};")
    }

    /// Another table with a row at most for each, and the condition.
    fn partner(&mut self, alias: &str) -> (String, String) {
        let all: Vec<usize> = (0..self.tables.len()).filter(|n| self.tables[*n].key.len() == 1).collect();
        if all.is_empty() {
            return ("generate_series(1, 1) q0(g)".to_owned(), "q0.g = 1".to_owned());
        }
        let n = self.rng.pick(&all);
        let other = self.fresh("q");
        let relation = self.relation(n, &other);
        let key = self.tables[n].columns[self.tables[n].key[0]].name;
        let own = self.relations.last().cloned();
        let numbers: Vec<String> = own
            .iter()
            .flat_map(|relation| &relation.columns)
            .filter(|column| matches!(column.ty, Ty::Small | Ty::Int | Ty::Big))
            .map(|column| format!("{alias}.{}", column.name))
            .collect();
        let number = self.rng.pick(&numbers);
        self.relations.push(relation);
        (format!("{} {other}", self.tables[n].name), format!("{other}.{key} = {number}"))
    }

    /// The whole key of a row.
    fn whole_key(&mut self, table: usize, alias: &str) -> String {
        let key = self.tables[table].key.clone();
        let relations = std::mem::take(&mut self.relations);
        let mut parts = Vec::new();
        for n in key {
            let column = self.tables[table].columns[n].clone();
            let value = match self.rng.chance(50) {
                true => self.key_value(column.ty),
                false => self.leaf(column.ty.kind()).text,
            };
            parts.push(format!("{alias}.{} = {value}", column.name));
        }
        self.relations = relations;
        parts.join(" AND ")
    }

    fn delete(&mut self) -> String {
        let table = self.rng.below(self.tables.len());
        let (name, relation) = self.changed(table);
        let alias = relation.alias.clone();
        let outer = self.relations.len();
        self.relations.push(relation);
        let text = self.in_query(|maker| {
            let condition = match maker.rng.below(10) {
                0..=3 => format!(" WHERE {}", maker.whole_key(table, &alias)),
                4 => {
                    let (partner, condition) = maker.partner(&alias);
                    format!(" USING {partner} WHERE {condition} AND {}", maker.key_condition(outer))
                }
                _ => format!(" WHERE {}", maker.key_condition(outer)),
            };
            format!("DELETE FROM {name}{condition}")
        });
        let rest = self.returning();
        self.relations.truncate(outer);
        format!("{text}{rest};")
    }

    /// RETURNING of columns of the relations INTO variables; several rows are an error.
    fn returning(&mut self) -> String {
        if !self.rng.chance(30) {
            return String::new();
        }
        let targets = self.targets();
        if targets.is_empty() {
            return String::new();
        }
        let mut values = Vec::new();
        // No queries in it: they must not read the table.
        self.queries += 2;
        for target in &targets {
            let value = self.in_query(|maker| maker.for_target(target.ty, 1));
            values.push(value.text);
        }
        self.queries -= 2;
        let names: Vec<String> = targets.into_iter().map(|target| target.name).collect();
        let strict = self.rng.pick(&["", "", "STRICT "]);
        format!(" RETURNING {} INTO {strict}{}", values.join(", "), names.join(", "))
    }
}
