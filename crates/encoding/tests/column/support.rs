//! Values to encode, drawn and at the edges, and what plain Rust says of them.

use std::cmp::Ordering;
use std::sync::Arc;

use albireo_encoding::{Choose, Column, Encoder, Kind, Scalar, ScalarRef, Source, SourceValues, TextList};
use albireo_testing::Random;

pub const CHOICES: [Choose; 7] = [
    Choose::Best,
    Choose::Plain,
    Choose::Packed,
    Choose::Compressed,
    Choose::Dictionary,
    Choose::Runs,
    Choose::RunsOfDictionary,
];

/// Texts that are lent.
#[derive(Debug)]
pub struct Lender(pub Vec<Box<[u8]>>);

impl TextList for Lender {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn text(&self, place: usize) -> &[u8] {
        &self.0[place]
    }

    fn memory_bytes(&self) -> u64 {
        self.0.iter().map(|text| text.len() as u64).sum()
    }
}

/// The texts of a column's dictionary, if they are its own.
pub fn lender_of(column: &Column<Vec<u8>>) -> Option<Arc<Lender>> {
    column.own_texts()?;
    let dictionary = column.dictionary()?;
    let texts = (0..dictionary.entries()).map(|code| text(dictionary.entry(code)).into());
    Some(Arc::new(Lender(texts.collect())))
}

/// A column before it is encoded.
#[derive(Clone, Debug)]
pub struct Data {
    pub kind: Kind,
    pub values: Vec<Scalar>,
    pub nulls: Vec<bool>,
    pub live: Vec<bool>,
}

pub fn bits(flags: &[bool]) -> Vec<u64> {
    let mut words = vec![0; flags.len().div_ceil(64)];
    for (at, _) in flags.iter().enumerate().filter(|(_, flag)| **flag) {
        words[at / 64] |= 1 << (at % 64);
    }
    words
}

impl Data {
    /// All alive, none NULL.
    pub fn of(kind: Kind, values: Vec<Scalar>) -> Self {
        let rows = values.len();
        Self { kind, values, nulls: vec![false; rows], live: vec![true; rows] }
    }

    pub fn integers(kind: Kind, values: impl IntoIterator<Item = i64>) -> Self {
        Self::of(kind, values.into_iter().map(Scalar::Integer).collect())
    }

    pub fn texts<T: AsRef<[u8]>>(values: impl IntoIterator<Item = T>) -> Self {
        Self::of(Kind::Text, values.into_iter().map(|text| Scalar::Text(text.as_ref().into())).collect())
    }

    pub fn rows(&self) -> usize {
        self.values.len()
    }

    /// The value of a row that has one.
    pub fn value(&self, row: usize) -> Option<ScalarRef<'_>> {
        (self.live[row] && !self.nulls[row]).then(|| self.values[row].as_ref())
    }

    /// Values of the rows that have one.
    pub fn valid(&self) -> impl Iterator<Item = (usize, ScalarRef<'_>)> {
        (0..self.rows()).filter_map(|row| Some((row, self.value(row)?)))
    }

    pub fn encode(&self, choose: Choose) -> Column<Vec<u8>> {
        self.encode_with(&mut Encoder::new(choose))
    }

    /// In each of these forms; dictionaries of texts as the column's own, and lent.
    pub fn forms(&self, choices: &[Choose]) -> Vec<Column<Vec<u8>>> {
        let mut forms: Vec<_> = choices.iter().map(|choose| self.encode(*choose)).collect();
        for own in 0..forms.len() {
            if let Some(lender) = lender_of(&forms[own]) {
                forms.push(forms[own].clone().borrowing(lender));
            }
        }
        forms
    }

    pub fn encode_with(&self, encoder: &mut Encoder) -> Column<Vec<u8>> {
        let (nulls, live) = (bits(&self.nulls), bits(&self.live));
        let any = self.nulls.contains(&true);
        let mut encode = |values| {
            let nulls = any.then_some(&nulls[..]);
            encoder.encode(&Source { kind: self.kind, values, nulls, live: &live, rows: self.rows() })
        };
        match self.kind {
            Kind::Bool | Kind::I16 | Kind::I32 | Kind::I64 => {
                let values: Vec<i64> = self.values.iter().map(|value| integer(value.as_ref())).collect();
                encode(SourceValues::Integers(&values))
            }
            Kind::I128 | Kind::Uuid => {
                let values: Vec<_> = self.values.iter().map(|value| wide(value.as_ref())).collect();
                encode(SourceValues::Wide(&values))
            }
            Kind::F32 | Kind::F64 => {
                let values: Vec<_> = self.values.iter().map(|value| float_bits(value.as_ref())).collect();
                encode(SourceValues::Floats(&values))
            }
            Kind::Text => {
                let (mut ends, mut bytes) = (Vec::new(), Vec::new());
                for value in &self.values {
                    bytes.extend_from_slice(text(value.as_ref()));
                    ends.push(bytes.len() as u32);
                }
                encode(SourceValues::Texts { ends: &ends, bytes: &bytes })
            }
        }
    }
}

pub fn integer(value: ScalarRef<'_>) -> i64 {
    match value {
        ScalarRef::Integer(value) => value,
        other => panic!("{other:?} is no integer"),
    }
}

pub fn wide(value: ScalarRef<'_>) -> [u8; 16] {
    match value {
        ScalarRef::I128(value) => value.to_le_bytes(),
        ScalarRef::Uuid(bytes) => bytes,
        other => panic!("{other:?} has not 16 bytes"),
    }
}

pub fn float_bits(value: ScalarRef<'_>) -> u64 {
    match value {
        ScalarRef::F32(bits) => bits.into(),
        ScalarRef::F64(bits) => bits,
        other => panic!("{other:?} is no float"),
    }
}

pub fn text(value: ScalarRef<'_>) -> &[u8] {
    match value {
        ScalarRef::Text(text) => text,
        other => panic!("{other:?} is no text"),
    }
}

/// SQL's order, in other words than the crate's.
pub fn compare(a: ScalarRef<'_>, b: ScalarRef<'_>) -> Ordering {
    let floats = |a: f64, b: f64| match (a.is_nan(), b.is_nan()) {
        (false, false) => a.partial_cmp(&b).expect("neither is NaN"),
        (a, b) => a.cmp(&b),
    };
    match (a, b) {
        (ScalarRef::F32(a), ScalarRef::F32(b)) => floats(f32::from_bits(a).into(), f32::from_bits(b).into()),
        (ScalarRef::F64(a), ScalarRef::F64(b)) => floats(f64::from_bits(a), f64::from_bits(b)),
        (ScalarRef::Integer(a), ScalarRef::Integer(b)) => a.cmp(&b),
        (ScalarRef::I128(a), ScalarRef::I128(b)) => a.cmp(&b),
        (ScalarRef::Uuid(a), ScalarRef::Uuid(b)) => a.cmp(&b),
        (ScalarRef::Text(a), ScalarRef::Text(b)) => a.cmp(b),
        _ => panic!("{a:?} and {b:?} are of two kinds"),
    }
}

pub fn limits(kind: Kind) -> (i64, i64) {
    match kind {
        Kind::Bool => (0, 1),
        Kind::I16 => (i16::MIN.into(), i16::MAX.into()),
        Kind::I32 => (i32::MIN.into(), i32::MAX.into()),
        _ => (i64::MIN, i64::MAX),
    }
}

/// Values at the edges of the kind.
pub fn edges(kind: Kind) -> Vec<Scalar> {
    let texts: [&[u8]; 9] =
        [b"", b"\0", b"a", b"a\0", b"ab", b"abcdefgh", b"abcdefghi", b"\xff\xff", b"\xff\xff\xff"];
    match kind {
        Kind::Bool => vec![Scalar::Integer(0), Scalar::Integer(1)],
        Kind::I16 | Kind::I32 | Kind::I64 => {
            let (least, most) = limits(kind);
            let all = [least, least + 1, -1, 0, 1, 255, 256, most - 1, most];
            all.into_iter().map(Scalar::Integer).collect()
        }
        Kind::I128 => {
            let all = [i128::MIN, -1, 0, 1, 1 << 64, -(1 << 64), i128::MAX - 1, i128::MAX];
            all.into_iter().map(Scalar::I128).collect()
        }
        Kind::F32 => {
            let all = [f32::NEG_INFINITY, f32::MIN, -0.0, 0.0, 1e-45, 1.5, f32::MAX, f32::INFINITY, f32::NAN];
            let nans = [0xffc0_0000, 0x7f80_0001, 0xffff_ffff];
            all.into_iter().map(f32::to_bits).chain(nans).map(Scalar::F32).collect()
        }
        Kind::F64 => {
            let all =
                [f64::NEG_INFINITY, f64::MIN, -0.0, 0.0, 5e-324, 1.5, f64::MAX, f64::INFINITY, f64::NAN];
            let nans = [0xfff8_0000_0000_0000, 0x7ff0_0000_0000_0001, u64::MAX];
            all.into_iter().map(f64::to_bits).chain(nans).map(Scalar::F64).collect()
        }
        Kind::Uuid => {
            let all = [[0; 16], [0xff; 16], *b"0123456789abcdef", *b"0123456789abcdeg", [0x80; 16]];
            all.into_iter().map(Scalar::Uuid).collect()
        }
        Kind::Text => texts.into_iter().map(|text| Scalar::Text(text.into())).collect(),
    }
}

/// Any value of the kind; `spread`: of about so many.
pub fn any(kind: Kind, random: &mut Random, spread: u64) -> Scalar {
    if random.percent(2) {
        return random.pick(&edges(kind));
    }
    near(kind, random.below(spread.max(1)))
}

/// The value of the kind with number `number`.
pub fn near(kind: Kind, number: u64) -> Scalar {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    match kind {
        Kind::Bool => Scalar::Integer((number % 2) as i64),
        Kind::I16 => Scalar::Integer(i64::from(number as u16 as i16)),
        Kind::I32 => Scalar::Integer(i64::from(number as u32 as i32) - 1000),
        Kind::I64 => Scalar::Integer(1_700_000_000_000_000_i64.wrapping_add(number as i64)),
        Kind::I128 => Scalar::I128((i128::from(number) << 60) - (1 << 70)),
        Kind::F32 => Scalar::F32((number as f32 - 50.0).to_bits()),
        Kind::F64 => Scalar::F64((number as f64 / 8.0 - 50.0).to_bits()),
        Kind::Uuid => Scalar::Uuid((u128::from(mixed) << 64 | u128::from(number)).to_be_bytes()),
        Kind::Text if number % 7 == 3 => Scalar::Text(format!("{mixed:016x} and more").into_bytes().into()),
        Kind::Text => Scalar::Text(format!("{number:05}").into_bytes().into()),
    }
}

/// Whether each of `rows` rows is marked, `percent` of them: by themselves, or in ranges.
fn marks(random: &mut Random, rows: usize, percent: u64) -> Vec<bool> {
    let length = if random.percent(50) { 1 } else { 1 + random.index(200) };
    let mut marks = Vec::with_capacity(rows + length);
    while marks.len() < rows {
        let mark = random.percent(percent);
        marks.extend(std::iter::repeat_n(mark, 1 + random.index(length)));
    }
    marks.truncate(rows);
    marks
}

/// A column that `random` draws: of few or many rows and values, in any order or in runs, with NULLs and dead rows.
pub fn draw(kind: Kind, random: &mut Random) -> Data {
    let most = random.pick(&[1, 2, 63, 64, 65, 129, 700, 700, 3000, 3000]);
    let rows = if most < 200 { most } else { 1 + random.index(most) };
    let spread = random.pick(&[1, 2, 5, 256, 257, 300, 70_000, 1 << 33, u64::MAX]);
    let run = random.pick(&[1, 1, 1, 4, 50, 1000]);
    let mut values = Vec::with_capacity(rows + run);
    while values.len() < rows {
        let value = any(kind, random, spread);
        values.extend(std::iter::repeat_n(value, 1 + random.index(run)));
    }
    values.truncate(rows);
    let null = random.pick(&[0, 0, 0, 3, 50, 98, 100]);
    let dead = random.pick(&[0, 0, 0, 3, 50, 98, 100]);
    let nulls = marks(random, rows, null);
    let live = marks(random, rows, 100 - dead);
    Data { kind, values, nulls, live }
}

/// `data` with rows that are NULL and rows that are dead, drawn.
pub fn with_gaps(data: Data, random: &mut Random) -> Data {
    let rows = data.rows();
    let gaps = |random: &mut Random| {
        let percent = random.pick(&[0, 0, 5, 60]);
        let every = random.percent(30);
        let mut gaps: Vec<bool> = (0..rows).map(|_| random.percent(percent)).collect();
        if every {
            gaps[rows / 3..rows - rows / 3].fill(percent > 0);
        }
        gaps
    };
    let nulls = gaps(random);
    let live = gaps(random).into_iter().map(|dead| !dead).collect();
    Data { nulls, live, ..data }
}

/// Rows that are selected, in one of many ways.
pub fn draw_mask(random: &mut Random, rows: usize) -> Vec<bool> {
    let percent = random.pick(&[0, 1, 10, 50, 97, 100, 100]);
    marks(random, rows, percent)
}
