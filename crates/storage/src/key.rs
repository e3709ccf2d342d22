//! Normalized keys: bytes whose unsigned order is the order of the values they were built from.
//!
//! Responsible for: encoding key columns, the 16-byte prefix, bounds of ranges, the shape of a key.
//! Not responsible for: comparing rows (the tables do), storing keys (`index`).
//!
//! Encoding of one column, most significant byte first:
//!
//! | value | bytes |
//! |---|---|
//! | nullable column | one byte before the value: 0 = present, 1 = null and no value follows (nulls last) |
//! | bool | 1 |
//! | i16, i32, i64, i128 | 2, 4, 8, 16, sign bit flipped |
//! | f32, f64 | 4, 8: IEEE total order, -0 as 0, one NaN above everything |
//! | uuid | 16 |
//! | text | its bytes, then 0 (text never holds 0) |
//! | bytea | its bytes with 0 written as 0 255, then 0 0 |
//!
//! The first 16 bytes, left-aligned in a big-endian `u128` and filled up with zeros, are the
//! *prefix*. A key that fits is *short*: the prefix is the whole key.
//!
//! K-1 Among keys of one shape no encoding is a prefix of another, so filling up with zeros makes
//! no two of them equal and comparing `(prefix, rest)` is comparing the encodings.
//! K-2 If `a < b` then `prefix(a) <= prefix(b)`.
//! (Both: `keys_of_random_rows_order_like_the_rows`.)

use std::cmp::Ordering;

/// Bytes of a key that the prefix holds.
pub const PREFIX_BYTES: usize = 16;

const PREFIX_BITS: u32 = 128;
const PRESENT: u8 = 0;
const NULL: u8 = 1;

/// A float's bits so that unsigned order is SQL order.
#[inline]
const fn order_f64(v: f64) -> u64 {
    let v = if v.is_nan() { f64::NAN.abs() } else { v + 0.0 };
    let bits = v.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// See [`order_f64`].
#[inline]
const fn order_f32(v: f32) -> u32 {
    let v = if v.is_nan() { f32::NAN.abs() } else { v + 0.0 };
    let bits = v.to_bits();
    if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }
}

/// A key of at most 16 bytes under construction; compiles to shifts and never allocates.
///
/// It is also a *partial* key: with only the leading columns pushed, [`ShortKey::range`],
/// [`ShortKey::before`] and [`ShortKey::after`] bound all keys that begin with them.
///
/// ```ignore
/// let (low, high) = ShortKey::new().i16(warehouse).i16(district).range();
/// let newer = ShortKey::new().i16(warehouse).i16(district).i32(order).after(); // order > ?
/// ```
///
/// # Panics
/// Every method that appends panics when the key would pass 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ShortKey {
    bits: u128,
    used: u32,
}

impl ShortKey {
    /// The empty key: its range is everything.
    #[inline]
    pub const fn new() -> Self {
        Self { bits: 0, used: 0 }
    }

    /// The key of so many bytes that an index stores as `bits`, which are as [`ShortKey::get`] gives them.
    ///
    /// # Panics
    /// There are more than 16 bytes.
    #[inline]
    pub const fn from_bits(bits: u128, bytes: u32) -> Self {
        assert!(bytes <= PREFIX_BYTES as u32, "a short key has at most 16 bytes");
        let is_filled = bytes == PREFIX_BYTES as u32 || bits & u128::MAX >> (8 * bytes) == 0;
        debug_assert!(is_filled, "a key is filled up with zeros");
        Self { bits, used: 8 * bytes }
    }

    #[inline]
    const fn append(self, value: u128, width: u32) -> Self {
        let used = self.used + width;
        assert!(used <= PREFIX_BITS, "a short key has at most 16 bytes");
        debug_assert!(width == PREFIX_BITS || value >> width == 0, "a column's bytes are its own");
        Self { bits: self.bits | value << (PREFIX_BITS - used), used }
    }

    /// Appends the mark of a nullable column whose value follows.
    #[inline]
    pub const fn present(self) -> Self {
        self.append(PRESENT as u128, 8)
    }

    /// Appends a null (mark only).
    #[inline]
    pub const fn null(self) -> Self {
        self.append(NULL as u128, 8)
    }

    /// Appends a boolean.
    #[inline]
    pub const fn bool(self, v: bool) -> Self {
        self.append(v as u128, 8)
    }

    /// Appends a 16-bit integer.
    #[inline]
    pub const fn i16(self, v: i16) -> Self {
        self.append((v as u16 ^ 1 << 15) as u128, 16)
    }

    /// Appends a 32-bit integer or a date.
    #[inline]
    pub const fn i32(self, v: i32) -> Self {
        self.append((v as u32 ^ 1 << 31) as u128, 32)
    }

    /// Appends a 64-bit integer, timestamp or narrow decimal.
    #[inline]
    pub const fn i64(self, v: i64) -> Self {
        self.append((v as u64 ^ 1 << 63) as u128, 64)
    }

    /// Appends a wide decimal.
    #[inline]
    pub const fn i128(self, v: i128) -> Self {
        self.append(v as u128 ^ 1 << 127, 128)
    }

    /// Appends a 32-bit float.
    #[inline]
    pub const fn f32(self, v: f32) -> Self {
        self.append(order_f32(v) as u128, 32)
    }

    /// Appends a 64-bit float.
    #[inline]
    pub const fn f64(self, v: f64) -> Self {
        self.append(order_f64(v) as u128, 64)
    }

    /// Appends a UUID.
    #[inline]
    pub const fn uuid(self, v: [u8; 16]) -> Self {
        self.append(u128::from_be_bytes(v), 128)
    }

    /// Appends a text with its terminator.
    #[inline]
    pub fn str(self, v: &str) -> Self {
        self.str_prefix(v).append(0, 8)
    }

    /// Appends the beginning of a text (no terminator): for `LIKE 'abc%'` ranges.
    #[inline]
    pub fn str_prefix(self, v: &str) -> Self {
        debug_assert!(!v.as_bytes().contains(&0), "text holds no zero byte");
        assert!(v.len() <= PREFIX_BYTES, "a short key has at most 16 bytes");
        if v.is_empty() {
            return self;
        }
        let mut bytes = [0; PREFIX_BYTES];
        bytes[PREFIX_BYTES - v.len()..].copy_from_slice(v.as_bytes());
        self.append(u128::from_be_bytes(bytes), 8 * v.len() as u32)
    }

    /// The key as an index stores it: left-aligned, missing bytes zero.
    #[inline]
    pub const fn get(self) -> u128 {
        self.bits
    }

    /// Bytes pushed so far.
    #[inline]
    pub const fn len(self) -> usize {
        (self.used / 8) as usize
    }

    /// Whether nothing was pushed.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.used == 0
    }

    /// The lowest and the highest prefix, both inclusive, of all keys that begin with this one.
    #[inline]
    pub const fn range(self) -> (u128, u128) {
        let below = if self.used == PREFIX_BITS { 0 } else { u128::MAX >> self.used };
        (self.bits, self.bits | below)
    }

    /// The lowest prefix above all keys that begin with this one: the inclusive lower bound for
    /// "greater than". `None` when there is none.
    #[inline]
    pub const fn after(self) -> Option<u128> {
        self.range().1.checked_add(1)
    }

    /// The highest prefix below all keys that begin with this one: the inclusive upper bound for
    /// "less than". `None` when there is none.
    #[inline]
    pub const fn before(self) -> Option<u128> {
        self.bits.checked_sub(1)
    }
}

/// A key as the indexes see it, borrowed from a [`KeyBuilder`] or a [`Key`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KeyRef<'a> {
    /// The first 16 bytes.
    pub prefix: u128,
    /// The bytes after the first 16; empty for a short key.
    pub rest: &'a [u8],
}

impl KeyRef<'_> {
    /// A copy that owns its bytes.
    pub fn to_key(self) -> Key {
        Key { prefix: self.prefix, rest: self.rest.into() }
    }
}

impl From<ShortKey> for KeyRef<'static> {
    #[inline]
    fn from(key: ShortKey) -> Self {
        KeyRef { prefix: key.get(), rest: &[] }
    }
}

impl<'a> From<&'a Key> for KeyRef<'a> {
    #[inline]
    fn from(key: &'a Key) -> Self {
        key.as_ref()
    }
}

impl<'a> From<&'a KeyBuilder> for KeyRef<'a> {
    #[inline]
    fn from(builder: &'a KeyBuilder) -> Self {
        builder.key()
    }
}

/// A normalized key. On the heap only what passes 16 bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    prefix: u128,
    rest: Box<[u8]>,
}

impl Key {
    /// The first 16 bytes.
    #[inline]
    pub fn prefix(&self) -> u128 {
        self.prefix
    }

    /// The key, borrowed.
    #[inline]
    pub fn as_ref(&self) -> KeyRef<'_> {
        KeyRef { prefix: self.prefix, rest: &self.rest }
    }
}

/// Builds keys of any length; made once and reused, it allocates only while its longest key grows.
#[derive(Clone, Debug, Default)]
pub struct KeyBuilder {
    prefix: u128,
    /// Bytes in `prefix`; `rest` is empty while this is less than 16.
    used: usize,
    rest: Vec<u8>,
}

impl KeyBuilder {
    /// An empty builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets what was pushed and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.prefix = 0;
        self.used = 0;
        self.rest.clear();
    }

    #[inline]
    fn push_fixed<const N: usize>(&mut self, bytes: [u8; N]) {
        debug_assert!(self.used <= PREFIX_BYTES, "a prefix has 16 bytes");
        let used = self.used + N;
        if used <= PREFIX_BYTES {
            let mut wide = [0; PREFIX_BYTES];
            wide[PREFIX_BYTES - N..].copy_from_slice(&bytes);
            self.prefix |= u128::from_be_bytes(wide) << (8 * (PREFIX_BYTES - used));
            self.used = used;
        } else {
            self.push_raw(&bytes);
        }
    }

    fn push_raw(&mut self, bytes: &[u8]) {
        let (head, tail) = bytes.split_at(bytes.len().min(PREFIX_BYTES - self.used));
        if !head.is_empty() {
            let mut wide = [0; PREFIX_BYTES];
            wide[..head.len()].copy_from_slice(head);
            self.prefix |= u128::from_be_bytes(wide) >> (8 * self.used);
            self.used += head.len();
        }
        self.rest.extend_from_slice(tail);
        debug_assert!(self.rest.is_empty() || self.used == PREFIX_BYTES, "the rest is behind a full prefix");
    }

    /// Appends the mark of a nullable column whose value is pushed next.
    #[inline]
    pub fn push_present(&mut self) -> &mut Self {
        self.push_fixed([PRESENT]);
        self
    }

    /// Appends a null: the mark, and no value after it.
    #[inline]
    pub fn push_null(&mut self) -> &mut Self {
        self.push_fixed([NULL]);
        self
    }

    /// Appends a boolean.
    #[inline]
    pub fn push_bool(&mut self, v: bool) -> &mut Self {
        self.push_fixed([v as u8]);
        self
    }

    /// Appends a 16-bit integer.
    #[inline]
    pub fn push_i16(&mut self, v: i16) -> &mut Self {
        self.push_fixed((v ^ i16::MIN).to_be_bytes());
        self
    }

    /// Appends a 32-bit integer or a date.
    #[inline]
    pub fn push_i32(&mut self, v: i32) -> &mut Self {
        self.push_fixed((v ^ i32::MIN).to_be_bytes());
        self
    }

    /// Appends a 64-bit integer, timestamp or narrow decimal.
    #[inline]
    pub fn push_i64(&mut self, v: i64) -> &mut Self {
        self.push_fixed((v ^ i64::MIN).to_be_bytes());
        self
    }

    /// Appends a wide decimal.
    #[inline]
    pub fn push_i128(&mut self, v: i128) -> &mut Self {
        self.push_fixed((v ^ i128::MIN).to_be_bytes());
        self
    }

    /// Appends a 32-bit float.
    #[inline]
    pub fn push_f32(&mut self, v: f32) -> &mut Self {
        self.push_fixed(order_f32(v).to_be_bytes());
        self
    }

    /// Appends a 64-bit float.
    #[inline]
    pub fn push_f64(&mut self, v: f64) -> &mut Self {
        self.push_fixed(order_f64(v).to_be_bytes());
        self
    }

    /// Appends a UUID.
    #[inline]
    pub fn push_uuid(&mut self, v: [u8; 16]) -> &mut Self {
        self.push_fixed(v);
        self
    }

    /// Appends a text (without trailing blanks if it is a `char(n)`).
    #[inline]
    pub fn push_str(&mut self, v: &str) -> &mut Self {
        debug_assert!(!v.as_bytes().contains(&0), "text holds no zero byte");
        self.push_raw(v.as_bytes());
        self.push_fixed([0]);
        self
    }

    /// Appends a byte string, escaped.
    pub fn push_bytes(&mut self, v: &[u8]) -> &mut Self {
        for run in v.split_inclusive(|&b| b == 0) {
            self.push_raw(run);
            if run.ends_with(&[0]) {
                self.push_fixed([255]);
            }
        }
        self.push_fixed([0, 0]);
        self
    }

    /// The key built so far, borrowed.
    #[inline]
    pub fn key(&self) -> KeyRef<'_> {
        KeyRef { prefix: self.prefix, rest: &self.rest }
    }

    /// The lowest and the highest prefix, inclusive, of all keys that begin with what was pushed
    /// (or at least with its first 16 bytes: a longer partial key needs comparisons in the rows).
    #[inline]
    pub fn prefix_range(&self) -> (u128, u128) {
        ShortKey { bits: self.prefix, used: 8 * self.used as u32 }.range()
    }
}

/// The type of a key column, as far as its encoding goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartKind {
    /// Boolean.
    Bool,
    /// 16-bit integer.
    I16,
    /// 32-bit integer, date.
    I32,
    /// 64-bit integer, time, timestamp, decimal of up to 18 digits.
    I64,
    /// Decimal of up to 38 digits.
    I128,
    /// 32-bit float.
    F32,
    /// 64-bit float.
    F64,
    /// UUID.
    Uuid,
    /// Text of at most so many bytes (not characters); `None` = unlimited.
    Text(Option<u32>),
    /// Byte string of any length.
    Bytes,
}

impl PartKind {
    /// The most bytes the value's encoding takes, the null mark apart; `None` = unlimited.
    pub const fn max_len(self) -> Option<usize> {
        Some(match self {
            PartKind::Bool => 1,
            PartKind::I16 => 2,
            PartKind::I32 | PartKind::F32 => 4,
            PartKind::I64 | PartKind::F64 => 8,
            PartKind::I128 | PartKind::Uuid => 16,
            PartKind::Text(Some(bytes)) => bytes as usize + 1,
            PartKind::Text(None) | PartKind::Bytes => return None,
        })
    }
}

/// One column of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyPart {
    /// The column's type.
    pub kind: PartKind,
    /// Whether a null mark precedes the value.
    pub nullable: bool,
}

/// One integer column of a short key: where its order-preserving unsigned form lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Component {
    /// Bits to the right of the component in the prefix.
    pub shift: u32,
    /// Its width in bits: 16, 32 or 64.
    pub bits: u32,
}

impl Component {
    /// The component of `key`, sign bit flipped (so that unsigned order is its order).
    #[inline]
    pub const fn unsigned(self, key: u128) -> u64 {
        debug_assert!(0 < self.bits && self.bits <= 64, "a component is a whole number");
        (key >> self.shift) as u64 & (u64::MAX >> (64 - self.bits))
    }

    /// The component of `key` as the integer that was pushed.
    #[inline]
    pub const fn decode(self, key: u128) -> i64 {
        let flipped = self.unsigned(key) ^ 1 << (self.bits - 1);
        ((flipped << (64 - self.bits)) as i64) >> (64 - self.bits)
    }
}

/// What the keys of one index look like.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyShape {
    parts: Vec<KeyPart>,
    max_len: Option<usize>,
}

impl KeyShape {
    /// The most integer components a dense key may have.
    pub const MAX_COMPONENTS: usize = 4;

    /// The shape of keys with these columns, most significant first.
    pub fn new(parts: Vec<KeyPart>) -> Self {
        let max_len = parts.iter().try_fold(0usize, |sum, part| {
            sum.checked_add(part.kind.max_len()?)?.checked_add(part.nullable as usize)
        });
        Self { parts, max_len }
    }

    /// The shape of keys with these columns, none nullable.
    pub fn of(kinds: &[PartKind]) -> Self {
        Self::new(kinds.iter().map(|&kind| KeyPart { kind, nullable: false }).collect())
    }

    /// The columns.
    pub fn parts(&self) -> &[KeyPart] {
        &self.parts
    }

    /// The most bytes a key takes; `None` = unlimited.
    pub fn max_len(&self) -> Option<usize> {
        self.max_len
    }

    /// Whether every key fits its prefix, so that equal prefixes mean equal keys.
    pub fn is_short(&self) -> bool {
        self.max_len.is_some_and(|len| len <= PREFIX_BYTES)
    }

    /// Whether every key fits the upper 8 bytes of its prefix.
    pub fn is_narrow(&self) -> bool {
        self.max_len.is_some_and(|len| len <= PREFIX_BYTES / 2)
    }

    /// The components, most significant first, if keys are 1 to 4 integers that are never null and
    /// fit 16 bytes: what a dense array can index.
    pub fn components(&self) -> Option<Vec<Component>> {
        let suits = self.is_short() && (1..=Self::MAX_COMPONENTS).contains(&self.parts.len());
        if !suits {
            return None;
        }
        let mut shift = PREFIX_BITS;
        self.parts
            .iter()
            .map(|part| {
                let bits = match part.kind {
                    PartKind::I16 => 16,
                    PartKind::I32 => 32,
                    PartKind::I64 => 64,
                    _ => return None,
                };
                shift -= bits;
                (!part.nullable).then_some(Component { shift, bits })
            })
            .collect()
    }

    /// The integers of a short key; `None` if [`KeyShape::components`] is.
    pub fn decode(&self, key: u128) -> Option<Vec<i64>> {
        Some(self.components()?.into_iter().map(|c| c.decode(key)).collect())
    }
}

/// The order of a probe among rows with its prefix when the whole key is in the prefix.
#[inline]
pub fn always_equal(_tid: u64) -> Ordering {
    Ordering::Equal
}

#[cfg(test)]
#[path = "index/key_tests.rs"]
mod tests;
