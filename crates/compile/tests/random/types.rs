//! Types of variables and columns, and literals of them.

use super::rng::Rng;

/// The type of an expression: a type without its modifier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Small,
    Int,
    Big,
    Num,
    Double,
    /// TEXT and VARCHAR.
    Text,
    Char,
    Bool,
    Date,
    Stamp,
    Array(Item),
}

/// The type of an array's elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Item {
    Int,
    Big,
    Num,
    Text,
    Bool,
    Date,
}

/// The type of a variable or column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ty {
    Small,
    Int,
    Big,
    /// With its digits, all and behind the point.
    Numeric(u32, u32),
    Num,
    Double,
    Text,
    Varchar(u32),
    Char(u32),
    Bool,
    Date,
    Stamp,
    Array(Item),
}

pub const NUMBERS: [Kind; 5] = [Kind::Small, Kind::Int, Kind::Big, Kind::Num, Kind::Double];
pub const INTEGERS: [Kind; 3] = [Kind::Small, Kind::Int, Kind::Big];
pub const SCALARS: [Kind; 10] = [
    Kind::Int,
    Kind::Text,
    Kind::Num,
    Kind::Small,
    Kind::Big,
    Kind::Double,
    Kind::Char,
    Kind::Bool,
    Kind::Date,
    Kind::Stamp,
];

impl Item {
    pub fn kind(self) -> Kind {
        match self {
            Self::Int => Kind::Int,
            Self::Big => Kind::Big,
            Self::Num => Kind::Num,
            Self::Text => Kind::Text,
            Self::Bool => Kind::Bool,
            Self::Date => Kind::Date,
        }
    }
}

impl Kind {
    pub fn is_number(self) -> bool {
        NUMBERS.contains(&self)
    }

    pub fn is_integer(self) -> bool {
        INTEGERS.contains(&self)
    }

    /// The arrays of it, if there are any here.
    pub fn item(self) -> Option<Item> {
        match self {
            Self::Int => Some(Item::Int),
            Self::Big => Some(Item::Big),
            Self::Num => Some(Item::Num),
            Self::Text => Some(Item::Text),
            Self::Bool => Some(Item::Bool),
            Self::Date => Some(Item::Date),
            _ => None,
        }
    }

    /// Its name, for casts.
    pub fn sql(self) -> &'static str {
        match self {
            Self::Small => "smallint",
            Self::Int => "integer",
            Self::Big => "bigint",
            Self::Num => "numeric",
            Self::Double => "double precision",
            Self::Text => "text",
            Self::Char => "char(4)",
            Self::Bool => "boolean",
            Self::Date => "date",
            Self::Stamp => "timestamp",
            Self::Array(Item::Int) => "integer[]",
            Self::Array(Item::Big) => "bigint[]",
            Self::Array(Item::Num) => "numeric[]",
            Self::Array(Item::Text) => "text[]",
            Self::Array(Item::Bool) => "boolean[]",
            Self::Array(Item::Date) => "date[]",
        }
    }

    /// Digits before the point and behind it that values have at most, unless more is known.
    pub fn digits(self) -> (u32, u32) {
        match self {
            Self::Small => (5, 0),
            Self::Int => (10, 0),
            Self::Big => (19, 0),
            // What variables of type NUMERIC are kept to.
            Self::Num => (14, 6),
            _ => (0, 0),
        }
    }
}

impl Ty {
    pub fn kind(self) -> Kind {
        match self {
            Self::Small => Kind::Small,
            Self::Int => Kind::Int,
            Self::Big => Kind::Big,
            Self::Numeric(..) | Self::Num => Kind::Num,
            Self::Double => Kind::Double,
            Self::Text | Self::Varchar(_) => Kind::Text,
            Self::Char(_) => Kind::Char,
            Self::Bool => Kind::Bool,
            Self::Date => Kind::Date,
            Self::Stamp => Kind::Stamp,
            Self::Array(item) => Kind::Array(item),
        }
    }

    pub fn sql(self) -> String {
        match self {
            Self::Numeric(precision, scale) => format!("numeric({precision},{scale})"),
            Self::Varchar(n) => format!("varchar({n})"),
            Self::Char(n) => format!("char({n})"),
            other => other.kind().sql().to_owned(),
        }
    }

    pub fn digits(self) -> (u32, u32) {
        match self {
            Self::Numeric(precision, scale) => (precision - scale, scale),
            other => other.kind().digits(),
        }
    }
}

/// A type of a variable, those of numbers and texts more often.
pub fn any_type(rng: &mut Rng) -> Ty {
    match rng.weighted(&[8, 22, 9, 10, 5, 6, 12, 6, 5, 6, 4, 3, 8]) {
        0 => Ty::Small,
        1 => Ty::Int,
        2 => Ty::Big,
        3 => {
            let (precision, scale) = rng.pick(&[(4, 0), (5, 2), (8, 2), (10, 4), (12, 3), (3, 3)]);
            Ty::Numeric(precision, scale)
        }
        4 => Ty::Num,
        5 => Ty::Double,
        6 => Ty::Text,
        7 => Ty::Varchar(rng.pick(&[1, 3, 6, 12])),
        8 => Ty::Char(rng.pick(&[1, 4, 8])),
        9 => Ty::Bool,
        10 => Ty::Date,
        11 => Ty::Stamp,
        _ => Ty::Array(any_item(rng)),
    }
}

pub fn any_item(rng: &mut Rng) -> Item {
    rng.pick(&[Item::Int, Item::Int, Item::Text, Item::Text, Item::Num, Item::Big, Item::Bool, Item::Date])
}

const INTS: [&str; 16] = [
    "0",
    "1",
    "2",
    "3",
    "5",
    "7",
    "10",
    "17",
    "100",
    "1000",
    "32767",
    "-1",
    "-2",
    "-7",
    "2147483647",
    "-2147483648",
];
const SMALLS: [&str; 10] = ["0", "1", "2", "3", "12", "100", "-1", "-5", "32767", "-32768"];
const BIGS: [&str; 11] = [
    "0",
    "1",
    "3",
    "12",
    "-1",
    "-40",
    "2147483648",
    "-5000000000",
    "9223372036854775807",
    "-9223372036854775808",
    "1000000",
];
const NUMS: [&str; 18] = [
    "0",
    "1",
    "0.5",
    "1.50",
    "2.25",
    "-0.75",
    "-3",
    "10.00",
    "99.99",
    "0.001",
    "-0.005",
    "12345.678",
    "100",
    "0.125",
    "-2.5",
    "3.14159",
    "9999",
    "0.000",
];
const DOUBLES: [&str; 14] = [
    "0",
    "1",
    "0.5",
    "-0.25",
    "2.5",
    "3.5",
    "-1.5",
    "0.1",
    "1e10",
    "1e15",
    "1e-5",
    "1e300",
    "-7",
    "123456.789",
];
pub const TEXTS: [&str; 26] = [
    "", "a", "ab", "abc", "b", "B", "Hello", "x%", "a_c", "12", "-3", "4.5", " pad ", "it''s", "true", "f",
    "NULL", "a,b,c", "äöü", "zz", "0", "x y", "abcabc", "q", "xyz", "A1",
];
const DATES: [&str; 8] = [
    "2024-02-29",
    "2023-01-31",
    "1999-12-31",
    "2000-01-01",
    "1970-01-01",
    "2024-12-30",
    "0001-01-01",
    "9999-12-31",
];
const STAMPS: [&str; 6] = [
    "2024-02-29 13:14:15.678",
    "1999-12-31 23:59:59.999999",
    "2000-01-01 00:00:00",
    "1970-01-01 00:00:01",
    "2023-03-31 06:30:00",
    "1900-02-28 12:00:00",
];

/// The text of a value that is not NULL, as input functions read it.
pub fn value(rng: &mut Rng, kind: Kind) -> String {
    let text: &str = match kind {
        Kind::Small if rng.chance(60) => return rng.between(-5, 20).to_string(),
        Kind::Int | Kind::Big if rng.chance(60) => return rng.between(-5, 20).to_string(),
        Kind::Small => rng.pick(&SMALLS),
        Kind::Int => rng.pick(&INTS),
        Kind::Big => rng.pick(&BIGS),
        Kind::Num => rng.pick(&NUMS),
        Kind::Double => rng.pick(&DOUBLES),
        Kind::Text => &rng.pick(&TEXTS).replace("''", "'"),
        Kind::Char => rng.pick(&["", "a", "ab", "abcd", "b", "B", "x y", "12", "äö"]),
        Kind::Bool => rng.pick(&["t", "f"]),
        Kind::Date => rng.pick(&DATES),
        Kind::Stamp => rng.pick(&STAMPS),
        Kind::Array(item) => return array(rng, item),
    };
    text.to_owned()
}

/// The text of an array; now and then it does not begin at 1.
fn array(rng: &mut Rng, item: Item) -> String {
    let count = rng.below(5);
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(match rng.chance(12) {
            true => "NULL".to_owned(),
            false => match item {
                Item::Text => format!("\"{}\"", value(rng, Kind::Text)),
                _ => value(rng, item.kind()),
            },
        });
    }
    let lower = if rng.chance(8) { rng.between(-1, 3) } else { 1 };
    let bounds = match lower {
        1 => String::new(),
        _ if count == 0 => String::new(),
        _ => format!("[{lower}:{}]=", lower + count as i64 - 1),
    };
    format!("{bounds}{{{}}}", items.join(","))
}

/// The text in quotes.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A literal of exactly this type, with the digits it has before and behind the point.
pub fn literal(rng: &mut Rng, kind: Kind) -> (String, (u32, u32)) {
    let value = value(rng, kind);
    let signed = if value.starts_with('-') { format!("({value})") } else { value.clone() };
    let text = match kind {
        Kind::Int => signed,
        Kind::Num if value.contains('.') => signed,
        Kind::Small | Kind::Big | Kind::Num | Kind::Double => format!("{signed}::{}", kind.sql()),
        Kind::Bool => if value == "t" { "true" } else { "false" }.to_owned(),
        Kind::Text if rng.chance(70) => quoted(&value),
        _ => format!("{}::{}", quoted(&value), kind.sql()),
    };
    (text, digits_of(&value))
}

fn digits_of(text: &str) -> (u32, u32) {
    let (whole, fraction) = text.trim_start_matches('-').split_once('.').unwrap_or((text, ""));
    (whole.len() as u32, fraction.len() as u32)
}
