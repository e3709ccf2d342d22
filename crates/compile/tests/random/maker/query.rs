//! Queries: what they read, their conditions, their columns and order.

use super::super::types::{Kind, SCALARS, Ty, any_item};
use super::{Ex, Helper, HelperResult, Maker, Mode, Relation, Variable};

/// A query's text up to what is selected from, and its condition.
struct From {
    with: String,
    from: String,
    conditions: Vec<String>,
    /// How many relations were in scope before its own.
    outer: usize,
}

impl Maker {
    /// A query of columns of these types, in an order, and the columns as fields of a record.
    pub(super) fn query(&mut self, kinds: &[Kind]) -> (String, Vec<Variable>) {
        let fields: Vec<Variable> = kinds
            .iter()
            .enumerate()
            .map(|(n, kind)| Variable { name: format!("c{}", n + 1), ty: plain(*kind), writable: true })
            .collect();
        let text = self.in_query(|maker| match maker.rng.below(20) {
            0 | 1 if maker.queries == 1 => maker.helper_query(kinds),
            0..=9 => maker.plain_query(kinds),
            10..=12 => maker.totals(kinds),
            13..=15 => maker.groups(kinds),
            16 | 17 => maker.distinct(kinds),
            _ => maker.combined(kinds),
        });
        (text, fields)
    }

    /// In a query: nothing fails.
    pub(super) fn in_query<R>(&mut self, act: impl FnOnce(&mut Self) -> R) -> R {
        self.queries += 1;
        let result = self.in_mode(Mode::Safe, act);
        self.queries -= 1;
        result
    }

    /// What a query reads, its relations in scope.
    fn from(&mut self) -> From {
        let outer = self.relations.len();
        let mut from = From { with: String::new(), from: String::new(), conditions: Vec::new(), outer };
        match self.rng.weighted(&[45, 22, 7, 7, 5, 5, 4, 5, 4]) {
            0 => from.from = self.table(),
            1 => from.from = self.join(),
            2 => {
                let (a, b) = (self.table(), self.table());
                from.from = format!("{a}, {b}");
                from.conditions.extend(self.equality());
            }
            3 => from.from = self.derived(),
            4 => from.from = self.series(),
            5 => from.from = self.listed_rows(),
            6 => from.from = self.unnested(),
            7 => {
                let name = self.fresh("w");
                let alias = self.fresh("q");
                let query = self.inner_query(&alias);
                from.with = format!("WITH {name} AS ({query}) ");
                from.from = format!("{name} {alias}");
            }
            _ => {
                let (a, b) = (self.join(), self.table());
                from.from = format!("{a} JOIN {b} ON {}", self.equality().unwrap_or("true".to_owned()));
            }
        }
        from.conditions.extend(self.predicate(outer));
        from
    }

    fn alias_table(&mut self, n: usize) -> (String, Relation) {
        let alias = self.fresh("q");
        let relation = self.relation(n, &alias);
        (format!("{} {alias}", self.tables[n].name), relation)
    }

    /// A table as a relation of a query.
    pub(super) fn relation(&self, n: usize, alias: &str) -> Relation {
        let table = &self.tables[n];
        let columns = table.columns.iter().map(|column| Variable {
            name: column.name.to_owned(),
            ty: column.ty,
            writable: false,
        });
        let key = table.key.iter().map(|n| format!("{alias}.{}", table.columns[*n].name));
        Relation { alias: alias.to_owned(), columns: columns.collect(), key: key.collect() }
    }

    fn table(&mut self) -> String {
        let n = self.rng.below(self.tables.len());
        let (text, relation) = self.alias_table(n);
        self.relations.push(relation);
        text
    }

    fn join(&mut self) -> String {
        let (a, b) = (self.table(), self.table());
        let how = self.rng.pick(&["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN"]);
        let on = self.equality().unwrap_or("true".to_owned());
        let more = match self.rng.chance(20) {
            true => format!(" AND {}", self.expr(Kind::Bool, 1).text),
            false => String::new(),
        };
        format!("{a} {how} {b} ON {on}{more}")
    }

    /// An equality of columns of the last two relations.
    fn equality(&mut self) -> Option<String> {
        let [.., a, b] = self.relations.as_slice() else { return None };
        let (a, b) = (a.clone(), b.clone());
        let mut pairs = Vec::new();
        for x in &a.columns {
            for y in &b.columns {
                let (kx, ky) = (x.ty.kind(), y.ty.kind());
                let alike = kx == ky || kx.is_number() && ky.is_number();
                if alike && kx != Kind::Double && ky != Kind::Double {
                    pairs.push(format!("{}.{} = {}.{}", a.alias, x.name, b.alias, y.name));
                }
            }
        }
        (!pairs.is_empty()).then(|| self.rng.pick(&pairs))
    }

    /// A query that becomes a relation; it knows no other relations.
    fn inner_query(&mut self, alias: &str) -> String {
        let outer = std::mem::take(&mut self.relations);
        let kinds: Vec<Kind> = (0..self.rng.between(1, 3)).map(|_| self.any_kind()).collect();
        let (text, fields) = self.query(&kinds);
        self.relations = outer;
        let columns: Vec<Variable> =
            fields.into_iter().map(|field| Variable { writable: false, ..field }).collect();
        // Rows alike in all columns may come in any order.
        let key = columns.iter().map(|column| format!("{alias}.{}", column.name)).collect();
        self.relations.push(Relation { alias: alias.to_owned(), columns, key });
        text
    }

    fn derived(&mut self) -> String {
        if self.queries > 2 {
            return self.table();
        }
        let alias = self.fresh("q");
        format!("({}) {alias}", self.inner_query(&alias))
    }

    fn one_column(&mut self, ty: Ty) -> String {
        let alias = self.fresh("q");
        let key = vec![format!("{alias}.g")];
        let columns = vec![Variable { name: "g".to_owned(), ty, writable: false }];
        self.relations.push(Relation { alias: alias.clone(), columns, key });
        format!("{alias}(g)")
    }

    fn series(&mut self) -> String {
        let outer = std::mem::take(&mut self.relations);
        let low = self.rng.between(-2, 4).to_string();
        let high = match self.rng.chance(50) {
            true => self.rng.between(0, 7).to_string(),
            false => self.small_integer().text,
        };
        self.relations = outer;
        let by = self.rng.pick(&["", ", 2", ", -1"]);
        format!("generate_series({low}, ({high})::integer{by}) {}", self.one_column(Ty::Int))
    }

    fn listed_rows(&mut self) -> String {
        let outer = std::mem::take(&mut self.relations);
        let kinds = [self.any_kind(), self.rng.pick(&[Kind::Int, Kind::Text])];
        let mut rows = Vec::new();
        for _ in 0..self.rng.between(1, 3) {
            let (a, b) = (self.leaf(kinds[0]), self.leaf(kinds[1]));
            rows.push(format!("(({})::{}, ({})::{})", a.text, kinds[0].sql(), b.text, kinds[1].sql()));
        }
        self.relations = outer;
        let alias = self.fresh("q");
        let columns = ["x1", "x2"].iter().zip(kinds).map(|(name, kind)| Variable {
            name: (*name).to_owned(),
            ty: plain(kind),
            writable: false,
        });
        let key = vec![format!("{alias}.x1"), format!("{alias}.x2")];
        let relation = Relation { alias: alias.clone(), columns: columns.collect(), key };
        self.relations.push(relation);
        format!("(VALUES {}) {alias}(x1, x2)", rows.join(", "))
    }

    fn unnested(&mut self) -> String {
        let item = any_item(&mut self.rng);
        let outer = std::mem::take(&mut self.relations);
        let array = self.leaf(Kind::Array(item));
        self.relations = outer;
        let column = self.one_column(plain(item.kind()));
        format!("unnest({}) {column}", array.text)
    }

    /// A query over all rows that a routine gives: how many of them PostgreSQL computes for another one
    /// depends on its plan.
    fn helper_query(&mut self, kinds: &[Kind]) -> String {
        let gives_rows = |helper: &&Helper| matches!(helper.result, HelperResult::Rows(_));
        let fitting: Vec<Helper> = self.helpers.iter().filter(gives_rows).cloned().collect();
        if fitting.is_empty() || self.rounds > 12 {
            return self.plain_query(kinds);
        }
        let helper = self.rng.pick(&fitting);
        let HelperResult::Rows(columns) = &helper.result else { return self.plain_query(kinds) };
        let arguments = self.arguments(&helper.parameters, 0);
        let alias = self.fresh("q");
        let key: Vec<String> = columns.iter().map(|(name, _)| format!("{alias}.{name}")).collect();
        let order = key.join(", ");
        let columns = columns.iter().map(|(name, kind)| Variable {
            name: name.clone(),
            ty: plain(*kind),
            writable: false,
        });
        let outer = self.relations.len();
        self.relations.push(Relation { alias: alias.clone(), columns: columns.collect(), key });
        let list = self.select_list(kinds, |maker, kind| maker.expr(kind, 1));
        self.relations.truncate(outer);
        format!("SELECT {list} FROM {}({arguments}) {alias} ORDER BY {order}", helper.name)
    }

    /// A condition on the rows of relations from `outer` on.
    pub(super) fn predicate(&mut self, outer: usize) -> Option<String> {
        let mut parts = Vec::new();
        let mut keys = if self.rng.chance(60) { 1 } else { 0 };
        keys += usize::from(self.rng.chance(25));
        for _ in 0..keys {
            parts.push(self.key_condition(outer));
        }
        if self.rng.chance(40) {
            parts.push(self.expr(Kind::Bool, 2).text);
        }
        if parts.is_empty() {
            return None;
        }
        let op = if self.rng.chance(88) { " AND " } else { " OR " };
        Some(format!("({})", parts.join(op)))
    }

    /// A condition on one column that an index may answer.
    pub(super) fn key_condition(&mut self, outer: usize) -> String {
        let own = self.relations.split_off(outer);
        let relation = self.rng.pick(&own);
        // The first columns are keys.
        let n = if self.rng.chance(70) { 0 } else { self.rng.below(relation.columns.len()) };
        let column = &relation.columns[n];
        let name = format!("{}.{}", relation.alias, column.name);
        let text = self.about_column(&name, column.ty);
        self.relations.extend(own);
        text
    }

    fn about_column(&mut self, name: &str, ty: Ty) -> String {
        let kind = ty.kind();
        let other = match kind {
            kind if kind.is_number() && self.rng.chance(40) => {
                self.rng.pick(&[Kind::Small, Kind::Int, Kind::Big, Kind::Num, Kind::Double])
            }
            Kind::Char if self.rng.chance(30) => Kind::Text,
            Kind::Date if self.rng.chance(30) => Kind::Stamp,
            kind => kind,
        };
        let value = |maker: &mut Self| match maker.rng.chance(75) {
            true => maker.leaf(other).text,
            false => maker.expr(other, 1).text,
        };
        match self.rng.below(14) {
            0..=5 => format!("{name} = {}", value(self)),
            6 | 7 => {
                let op = self.rng.pick(&["<", "<=", ">", ">="]);
                format!("{name} {op} {}", value(self))
            }
            8 => format!("{name} BETWEEN {} AND {}", value(self), value(self)),
            // A query in parentheses does not stand first: that would be taken for all of the list.
            9 | 10 => {
                format!("{name} IN ({}, {}, {})", self.leaf(other).text, value(self), value(self))
            }
            11 => format!("{name} IS {}NULL", self.rng.pick(&["", "NOT "])),
            12 => match kind.item().and_then(|item| self.array_of(item)) {
                Some(array) => format!("{name} = ANY ({})", array.name),
                None => format!("{name} = {}", value(self)),
            },
            _ if kind == Kind::Text => {
                format!("{name} LIKE '{}'", self.rng.pick(&["a%", "%", "ab_", "äö%", "_%", "A%b"]))
            }
            _ => format!("{} <= {name} AND {name} < {}", value(self), value(self)),
        }
    }

    fn limit(&mut self) -> String {
        match self.rng.below(12) {
            0 | 1 => format!(" LIMIT {}", self.rng.between(0, 4)),
            2 => format!(" LIMIT {} OFFSET {}", self.rng.between(1, 3), self.rng.between(0, 2)),
            3 => format!(" OFFSET {}", self.rng.between(0, 2)),
            4 => {
                let outer = std::mem::take(&mut self.relations);
                let n = self.small_integer();
                self.relations = outer;
                format!(" LIMIT abs({})", n.text)
            }
            _ => String::new(),
        }
    }

    /// The columns of a query, with names.
    fn select_list(&mut self, kinds: &[Kind], mut make: impl FnMut(&mut Self, Kind) -> Ex) -> String {
        let mut all = Vec::new();
        for (n, kind) in kinds.iter().enumerate() {
            let value = make(self, *kind);
            all.push(format!("{} AS c{}", exact(self, value, *kind).text, n + 1));
        }
        all.join(", ")
    }

    /// The order of rows by the keys of all relations from `outer` on.
    fn order(&mut self, outer: usize) -> String {
        let mut keys: Vec<String> =
            self.relations[outer..].iter().flat_map(|relation| relation.key.clone()).collect();
        if self.rng.chance(40) {
            let values = self.relations[outer..].iter().flat_map(|relation| {
                relation.columns.iter().map(move |column| format!("{}.{}", relation.alias, column.name))
            });
            let values: Vec<String> = values.collect();
            keys.insert(0, self.rng.pick(&values));
        }
        let keys: Vec<String> = keys.iter().map(|key| self.directed(key)).collect();
        keys.join(", ")
    }

    fn directed(&mut self, key: &str) -> String {
        let how = self.rng.pick(&["", "", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
        format!("{key}{how}")
    }

    fn finish(&mut self, from: &From, list: &str, rest: &str) -> String {
        let conditions = match from.conditions.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", from.conditions.join(" AND ")),
        };
        let text = format!("{}SELECT {list} FROM {}{conditions}{rest}", from.with, from.from);
        self.relations.truncate(from.outer);
        text
    }

    fn plain_query(&mut self, kinds: &[Kind]) -> String {
        let from = self.from();
        let list = self.select_list(kinds, |maker, kind| maker.expr(kind, 2));
        let rest = format!(" ORDER BY {}{}", self.order(from.outer), self.limit());
        self.finish(&from, &list, &rest)
    }

    /// All columns of the rows of a table.
    pub(super) fn whole_rows(&mut self, table: usize) -> String {
        self.in_query(|maker| {
            let outer = maker.relations.len();
            let (text, relation) = maker.alias_table(table);
            maker.relations.push(relation);
            let conditions = maker.predicate(outer).into_iter().collect();
            let from = From { with: String::new(), from: text, conditions, outer };
            let rest = format!(" ORDER BY {}{}", maker.order(outer), maker.limit());
            let list = if maker.rng.chance(50) {
                "*".to_owned()
            } else {
                format!("{}.*", maker.relations[outer].alias)
            };
            maker.finish(&from, &list, &rest)
        })
    }

    /// Aggregates over everything.
    fn totals(&mut self, kinds: &[Kind]) -> String {
        let from = self.from();
        let outer = from.outer;
        let list = self.select_list(kinds, |maker, kind| maker.aggregate(kind, outer));
        self.finish(&from, &list, "")
    }

    fn groups(&mut self, kinds: &[Kind]) -> String {
        let from = self.from();
        let outer = from.outer;
        let mut keys: Vec<(String, Ty)> = Vec::new();
        for _ in 0..self.rng.between(1, 2) {
            let relation = self.relations[outer..].to_vec();
            let relation = self.rng.pick(&relation);
            let column = self.rng.pick(&relation.columns);
            keys.push((format!("{}.{}", relation.alias, column.name), column.ty));
        }
        let list = self.select_list(kinds, |maker, kind| {
            let fitting = keys.iter().find(|(_, ty)| ty.kind() == kind);
            match fitting {
                Some((name, ty)) if maker.rng.chance(60) => {
                    Ex { text: name.clone(), digits: ty.digits(), constant: false }
                }
                _ => maker.aggregate(kind, outer),
            }
        });
        let having = match self.rng.chance(30) {
            true => {
                let op = self.rng.pick(&[">", "<", "="]);
                format!(" HAVING count(*) {op} {}", self.rng.between(1, 2))
            }
            false => String::new(),
        };
        let names: Vec<&str> = keys.iter().map(|(name, _)| name.as_str()).collect();
        let order: Vec<String> = names.iter().map(|name| self.directed(name)).collect();
        let rest =
            format!(" GROUP BY {}{having} ORDER BY {}{}", names.join(", "), order.join(", "), self.limit());
        self.finish(&from, &list, &rest)
    }

    fn by_all(&mut self, kinds: &[Kind]) -> String {
        let keys: Vec<String> = (1..=kinds.len()).map(|n| self.directed(&n.to_string())).collect();
        format!(" ORDER BY {}{}", keys.join(", "), self.limit())
    }

    fn distinct(&mut self, kinds: &[Kind]) -> String {
        let from = self.from();
        let list = self.select_list(kinds, |maker, kind| maker.expr(kind, 1));
        let rest = self.by_all(kinds);
        self.finish(&from, &format!("DISTINCT {list}"), &rest)
    }

    fn combined(&mut self, kinds: &[Kind]) -> String {
        let mut sides = Vec::new();
        for _ in 0..2 {
            let from = self.from();
            if !from.with.is_empty() {
                self.relations.truncate(from.outer);
                return self.distinct(kinds);
            }
            let list = self.select_list(kinds, |maker, kind| maker.expr(kind, 1));
            sides.push(self.finish(&from, &list, ""));
        }
        let how = self.rng.pick(&["UNION", "UNION ALL", "EXCEPT", "INTERSECT"]);
        format!("{} {how} {}{}", sides[0], sides[1], self.by_all(kinds))
    }

    /// An aggregate over the relations from `outer` on, the only ones it may name.
    fn aggregate(&mut self, kind: Kind, outer: usize) -> Ex {
        let own = self.relations.split_off(outer);
        let around = std::mem::replace(&mut self.relations, own);
        let made = self.aggregate_of_all(kind);
        let own = std::mem::replace(&mut self.relations, around);
        self.relations.extend(own);
        made
    }

    fn aggregate_of_all(&mut self, kind: Kind) -> Ex {
        let own = self.relations.clone();
        let keys: Vec<String> = own.iter().flat_map(|relation| relation.key.clone()).collect();
        let (text, digits) = match kind {
            Kind::Big if self.rng.chance(60) => match self.rng.below(4) {
                0 => ("count(*)".to_owned(), kind.digits()),
                1 => {
                    let of = self.rng.pick(&SCALARS);
                    let value = self.expr(of, 1);
                    let distinct = self.rng.pick(&["", "DISTINCT "]);
                    (format!("count({distinct}{})", value.text), kind.digits())
                }
                _ => {
                    let of = self.rng.pick(&[Kind::Int, Kind::Small]);
                    (format!("sum({})", self.column(of, &own).text), kind.digits())
                }
            },
            Kind::Num if self.rng.chance(70) => {
                let of = self.rng.pick(&[Kind::Num, Kind::Int, Kind::Big]);
                let value = self.column(of, &own);
                match self.rng.chance(50) && of != Kind::Int {
                    true => {
                        let distinct = self.rng.pick(&["", "", "DISTINCT "]);
                        let digits = (value.digits.0 + 4, value.digits.1);
                        (format!("sum({distinct}{})", value.text), digits)
                    }
                    false => (format!("avg({})", value.text), (value.digits.0 + 1, 28)),
                }
            }
            Kind::Bool => {
                let value = self.expr(Kind::Bool, 1);
                let function = self.rng.pick(&["bool_and", "bool_or", "every"]);
                (format!("{function}({})", value.text), (0, 0))
            }
            Kind::Text if self.rng.chance(50) => {
                let value = self.expr(Kind::Text, 1);
                let text = format!("left(string_agg({}, ',' ORDER BY {}), 30)", value.text, keys.join(", "));
                (text, (0, 0))
            }
            Kind::Array(item) => {
                let value = self.expr(item.kind(), 0);
                let value = exact(self, value, item.kind());
                (format!("array_agg({} ORDER BY {})", value.text, keys.join(", ")), (0, 0))
            }
            _ => {
                let value = self.column(kind, &own);
                let function = self.rng.pick(&["min", "max"]);
                (format!("{function}({})", value.text), value.digits)
            }
        };
        let filtered = match self.rng.chance(15) && !text.starts_with("left") {
            true => format!("{text} FILTER (WHERE {})", self.expr(Kind::Bool, 1).text),
            false => text,
        };
        Ex { text: filtered, digits, constant: false }
    }

    /// A column of the type, or an expression if there is none.
    fn column(&mut self, kind: Kind, own: &[Relation]) -> Ex {
        let columns = own.iter().flat_map(|relation| {
            let of_kind = relation.columns.iter().filter(|column| column.ty.kind() == kind);
            of_kind.map(move |column| (format!("{}.{}", relation.alias, column.name), column.ty))
        });
        let columns: Vec<(String, Ty)> = columns.collect();
        if columns.is_empty() || self.rng.chance(20) {
            let value = self.expr(kind, 1);
            return if kind == Kind::Num { self.narrow(value, 14, 6) } else { value };
        }
        let (text, ty) = self.rng.pick(&columns);
        Ex { text, digits: ty.digits(), constant: false }
    }

    /// A query of one row and column at most, and the digits of its value.
    pub(super) fn one_value(&mut self, kind: Kind) -> (String, (u32, u32)) {
        let text = self.in_query(|maker| match maker.rng.chance(60) {
            true => maker.totals(&[kind]),
            false => {
                let from = maker.from();
                let list = maker.select_list(&[kind], |maker, kind| maker.expr(kind, 1));
                let rest = format!(" ORDER BY {} LIMIT 1", maker.order(from.outer));
                maker.finish(&from, &list, &rest)
            }
        });
        (text, plain(kind).digits())
    }

    /// EXISTS, IN and their like.
    pub(super) fn exists(&mut self) -> Ex {
        let kind = self.rng.pick(&[Kind::Int, Kind::Text, Kind::Num, Kind::Date, Kind::Big]);
        let value = self.expr(kind, 1);
        let query = self.in_query(|maker| {
            let from = maker.from();
            let list = maker.select_list(&[kind], |maker, kind| maker.expr(kind, 1));
            maker.finish(&from, &list, "")
        });
        let value = value.text;
        let text = match self.rng.below(6) {
            0 | 1 => format!("EXISTS ({query})"),
            2 => format!("NOT EXISTS ({query})"),
            3 => format!("({value} IN ({query}))"),
            4 => format!("({value} NOT IN ({query}))"),
            _ => {
                let op = self.rng.pick(&["<", ">=", "=", "<>"]);
                format!("({value} {op} {} ({query}))", self.rng.pick(&["ANY", "ALL"]))
            }
        };
        Ex { text, digits: (0, 0), constant: false }
    }
}

/// An expression with exactly the type, and not too many digits.
fn exact(maker: &mut Maker, value: Ex, kind: Kind) -> Ex {
    match kind {
        // A literal alone has no type yet, and VARCHAR is another one.
        Kind::Text => Ex { text: format!("({})::text", value.text), ..value },
        Kind::Num => {
            let value = maker.narrow(value, 14, 6);
            match maker.rng.below(10) {
                // Fields of records keep the digits of a column, or of a cast.
                0..=5 => value,
                6 | 7 => {
                    let value = maker.narrow(value, 5, 6);
                    Ex { text: format!("({})::numeric(10,3)", value.text), ..value }
                }
                _ => Ex { text: format!("({})::numeric", value.text), ..value },
            }
        }
        _ => value,
    }
}

/// The type of a query's column.
pub(super) fn plain(kind: Kind) -> Ty {
    match kind {
        Kind::Small => Ty::Small,
        Kind::Int => Ty::Int,
        Kind::Big => Ty::Big,
        Kind::Num => Ty::Num,
        Kind::Double => Ty::Double,
        Kind::Text => Ty::Text,
        Kind::Char => Ty::Char(8),
        Kind::Bool => Ty::Bool,
        Kind::Date => Ty::Date,
        Kind::Stamp => Ty::Stamp,
        Kind::Array(item) => Ty::Array(item),
    }
}
