//! A short string without a heap: rows and inputs are made of it.

use std::fmt;

/// A string of at most `N` bytes (`N < 65,536`), all of them ASCII.
#[derive(Clone, Copy)]
pub struct Text<const N: usize> {
    length: u16,
    bytes: [u8; N],
}

impl<const N: usize> Text<N> {
    /// The empty string.
    pub const EMPTY: Self = Self { length: 0, bytes: [0; N] };

    /// The string, which must be ASCII and fit.
    pub fn new(text: &str) -> Self {
        let mut result = Self::EMPTY;
        result.push(text);
        result
    }

    /// Appends `text`, which must be ASCII and fit.
    pub fn push(&mut self, text: &str) {
        assert!(text.is_ascii(), "only ASCII is written here");
        self.grow(text.len()).copy_from_slice(text.as_bytes());
    }

    /// Makes the string longer and hands out the new bytes, which the caller must fill with ASCII.
    pub(super) fn grow(&mut self, by: usize) -> &mut [u8] {
        let (from, to) = (usize::from(self.length), usize::from(self.length) + by);
        assert!(to <= N, "{to} bytes do not fit in {N}");
        self.length = to as u16;
        &mut self.bytes[from..to]
    }

    /// The string as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// The bytes, to be changed into other ASCII.
    pub(super) fn as_bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..usize::from(self.length)]
    }

    /// The string.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("only ASCII is written here")
    }
}

impl<const N: usize> PartialEq for Text<N> {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl<const N: usize> Eq for Text<N> {}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
