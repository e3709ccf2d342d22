//! The tables that routines read and write.

use super::rng::Rng;
use super::types::{Ty, quoted, value};

#[derive(Clone, Debug)]
pub struct Column {
    pub name: &'static str,
    pub ty: Ty,
    pub not_null: bool,
}

#[derive(Clone, Debug)]
pub struct Table {
    pub name: &'static str,
    pub columns: Vec<Column>,
    /// The primary key, by columns.
    pub key: Vec<usize>,
    /// Another unique key.
    pub unique: Option<usize>,
    /// Indexes that are not unique: columns, and whether by hash.
    pub indexes: Vec<(Vec<usize>, bool)>,
    /// A column with a default.
    pub default: Option<(usize, &'static str)>,
}

fn table(name: &'static str, columns: &[(&'static str, Ty, bool)], key: &[usize]) -> Table {
    let columns = columns.iter().map(|(name, ty, not_null)| Column { name, ty: *ty, not_null: *not_null });
    Table {
        name,
        columns: columns.collect(),
        key: key.to_vec(),
        unique: None,
        indexes: Vec::new(),
        default: None,
    }
}

/// Two or three tables, with one or the other index.
pub fn tables(rng: &mut Rng) -> Vec<Table> {
    let mut t1 = table(
        "t1",
        &[
            ("k", Ty::Int, true),
            ("a", Ty::Int, false),
            ("b", Ty::Text, false),
            ("n", Ty::Numeric(8, 2), true),
            ("s", Ty::Small, false),
            ("d", Ty::Date, false),
        ],
        &[0],
    );
    t1.indexes.extend(rng.chance(50).then(|| (vec![1], rng.chance(40))));
    t1.indexes.extend(rng.chance(30).then(|| (vec![2], rng.chance(30))));
    t1.indexes.extend(rng.chance(20).then(|| (vec![3, 1], false)));
    t1.default = rng.chance(50).then_some((4, "7"));
    let mut t2 = table(
        "t2",
        &[
            ("x", Ty::Small, true),
            ("y", Ty::Varchar(6), true),
            ("z", Ty::Big, true),
            ("f", Ty::Double, false),
            ("u", Ty::Bool, false),
        ],
        if rng.chance(80) { &[0, 1] } else { &[1, 0] },
    );
    t2.indexes.extend(rng.chance(50).then(|| (vec![2], rng.chance(40))));
    let mut t3 = table(
        "t3",
        &[
            ("i", Ty::Big, true),
            ("r", Ty::Int, false),
            ("c", Ty::Char(4), false),
            ("q", Ty::Stamp, false),
            ("w", Ty::Numeric(12, 4), false),
        ],
        &[0],
    );
    t3.unique = rng.chance(60).then_some(1);
    t3.indexes.extend(rng.chance(40).then(|| (vec![2], rng.chance(40))));
    t3.indexes.extend(rng.chance(30).then(|| (vec![4], false)));
    let mut all = vec![t1, t2, t3];
    if rng.chance(20) {
        all.remove(rng.below(3));
    }
    all
}

impl Table {
    pub fn create(&self) -> Vec<String> {
        let mut parts: Vec<String> = Vec::new();
        for (n, column) in self.columns.iter().enumerate() {
            let not_null = if column.not_null { " NOT NULL" } else { "" };
            let default = match self.default {
                Some((at, value)) if at == n => format!(" DEFAULT {value}"),
                _ => String::new(),
            };
            parts.push(format!("{} {}{not_null}{default}", column.name, column.ty.sql()));
        }
        parts.push(format!("PRIMARY KEY ({})", self.names(&self.key)));
        parts.extend(self.unique.map(|n| format!("UNIQUE ({})", self.columns[n].name)));
        let mut all = vec![format!("CREATE TABLE {} ({})", self.name, parts.join(", "))];
        for (columns, hash) in &self.indexes {
            let using = if *hash { " USING hash" } else { "" };
            all.push(format!("CREATE INDEX ON {}{using} ({})", self.name, self.names(columns)));
        }
        all
    }

    pub fn names(&self, columns: &[usize]) -> String {
        let names: Vec<&str> = columns.iter().map(|n| self.columns[*n].name).collect();
        names.join(", ")
    }

    /// All rows, in order; CHAR without the blanks at its end, which we do not show.
    pub fn dump(&self) -> String {
        let column = |column: &Column| match column.ty {
            Ty::Char(_) => format!("{}::text", column.name),
            _ => column.name.to_owned(),
        };
        let columns: Vec<String> = self.columns.iter().map(column).collect();
        format!("SELECT {} FROM {} ORDER BY {}", columns.join(", "), self.name, self.names(&self.key))
    }

    /// Statements that insert some rows, no two of the same key.
    pub fn rows(&self, rng: &mut Rng) -> Vec<String> {
        let mut keys = Vec::new();
        let mut all = Vec::new();
        for n in 0..rng.below(9) {
            let mut row: Vec<String> = Vec::new();
            for (at, column) in self.columns.iter().enumerate() {
                row.push(match column.ty {
                    _ if !column.not_null && rng.chance(15) => "NULL".to_owned(),
                    Ty::Varchar(length) => {
                        let text: String =
                            value(rng, Ty::Text.kind()).chars().take(length as usize).collect();
                        quoted(&text)
                    }
                    Ty::Small | Ty::Int | Ty::Big if self.key.contains(&at) => rng.below(14).to_string(),
                    Ty::Int if self.unique == Some(at) => (n * 2).to_string(),
                    ty => quoted(&value(rng, ty.kind())),
                });
            }
            let key: Vec<String> = self.key.iter().map(|n| row[*n].clone()).collect();
            if !keys.contains(&key) {
                keys.push(key);
                all.push(format!("INSERT INTO {} VALUES ({})", self.name, row.join(", ")));
            }
        }
        all
    }
}
