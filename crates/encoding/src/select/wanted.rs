//! Which keys pass a test: a range, or a set.

use std::ops::Bound;

use super::Test;
use crate::layers::wrong_kind;
use crate::numbers::{Code, Key};
use crate::scalar::ScalarRef;

/// Keys that pass.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wanted<K> {
    None,
    /// From the first to the last.
    Range(K, K),
    /// These, ascending; at least two.
    Set(Vec<K>),
}

impl<K: Key> Wanted<K> {
    fn range(first: K, last: K) -> Self {
        if first <= last { Self::Range(first, last) } else { Self::None }
    }

    fn set(mut keys: Vec<K>) -> Self {
        keys.dedup();
        match keys[..] {
            [] => Self::None,
            [only] => Self::Range(only, only),
            _ => Self::Set(keys),
        }
    }
}

/// The keys that pass `test`, which is of values and their order; `key` is of a value.
pub(super) fn wanted<K: Key>(test: &Test<'_>, key: impl Fn(ScalarRef<'_>) -> K) -> Wanted<K> {
    match test {
        Test::Equal(value) => Wanted::Range(key(*value), key(*value)),
        Test::In(list) => {
            let mut keys: Vec<K> = list.iter().map(|value| key(*value)).collect();
            keys.sort_unstable();
            Wanted::set(keys)
        }
        Test::Between(lower, upper) => {
            let first = match lower {
                Bound::Unbounded => Some(K::LEAST),
                Bound::Included(value) => Some(key(*value)),
                Bound::Excluded(value) => key(*value).next(),
            };
            let last = match upper {
                Bound::Unbounded => Some(K::GREATEST),
                Bound::Included(value) => Some(key(*value)),
                Bound::Excluded(value) => key(*value).previous(),
            };
            first.zip(last).map_or(Wanted::None, |(first, last)| Wanted::range(first, last))
        }
        Test::IsNull => Wanted::None,
        Test::IsNotNull => Wanted::Range(K::LEAST, K::GREATEST),
        Test::Prefix(_) | Test::Suffix(_) | Test::Each(_) | Test::Stored(_) => wrong_kind("keys"),
    }
}

/// The codes of integers with `base`, whose keys are `values`: integers with their sign bits flipped.
pub(super) fn codes<C: Code>(values: Wanted<u64>, base: i64) -> Wanted<C> {
    let greatest = C::WIDTH.greatest();
    let base = i128::from(base as u64 ^ 1 << 63);
    let code = |value: u64| u64::try_from(i128::from(value) - base).ok().filter(|code| *code <= greatest);
    match values {
        Wanted::None => Wanted::None,
        Wanted::Range(first, last) => {
            let clamp = |value: u64| (i128::from(value) - base).clamp(0, i128::from(greatest)) as u64;
            let reaches = i128::from(last) >= base && i128::from(first) - base <= i128::from(greatest);
            match reaches {
                true => Wanted::range(C::narrow(clamp(first)), C::narrow(clamp(last))),
                false => Wanted::None,
            }
        }
        Wanted::Set(values) => Wanted::set(values.into_iter().filter_map(code).map(C::narrow).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_of_values_is_clamped_to_codes() {
        let key = |value: i64| value as u64 ^ 1 << 63;
        let range = |first, last, base| codes::<u8>(Wanted::Range(key(first), key(last)), base);
        assert_eq!(range(-5, 10, 0), Wanted::Range(0, 10));
        assert_eq!(range(-5, 1000, -5), Wanted::Range(0, 255));
        assert_eq!(range(-5, -1, 0), Wanted::None);
        assert_eq!(range(256, 300, 0), Wanted::None);
        assert_eq!(range(i64::MIN, i64::MAX, 7), Wanted::Range(0, 255));
        assert_eq!(range(i64::MIN, i64::MIN, i64::MIN), Wanted::Range(0, 0));
        let all = Wanted::Range(key(i64::MIN), key(i64::MAX));
        assert_eq!(codes::<u64>(all, i64::MIN), Wanted::Range(0, u64::MAX));
        let set = Wanted::Set(vec![key(-1), key(3), key(258), key(259)]);
        assert_eq!(codes::<u8>(set, 3), Wanted::Set(vec![0, 255]));
    }

    #[test]
    fn bound_beyond_the_greatest_key_wants_nothing() {
        let value = ScalarRef::Integer(255);
        let test = Test::Between(Bound::Excluded(value), Bound::Unbounded);
        assert_eq!(wanted::<u8>(&test, |_| u8::MAX), Wanted::None);
        let test = Test::Between(Bound::Unbounded, Bound::Excluded(value));
        assert_eq!(wanted::<u8>(&test, |_| 0), Wanted::None);
        assert_eq!(wanted::<u8>(&test, |_| 1), Wanted::Range(0, 0));
    }
}
