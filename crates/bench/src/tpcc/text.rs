//! A short string without a heap: rows and inputs are made of it.

use std::fmt;

use arrayvec::ArrayString;

/// A string of at most `N` bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text<const N: usize>(ArrayString<N>);

impl<const N: usize> Text<N> {
    /// The empty string.
    pub const EMPTY: Self = Self(ArrayString::new_const());

    /// The string, which must fit.
    #[inline(always)]
    pub fn new(text: &str) -> Self {
        let mut result = Self::EMPTY;
        result.push(text);
        result
    }

    /// The string of these bytes, which must be ASCII and fit.
    pub(super) fn from_ascii(bytes: &[u8]) -> Self {
        Self::new(std::str::from_utf8(bytes).expect("only ASCII is written here"))
    }

    /// Becomes `text`, which must fit.
    #[inline(always)]
    pub fn set(&mut self, text: &str) {
        self.0.clear();
        self.push(text);
    }

    /// Appends `text`, which must fit.
    #[inline(always)]
    pub fn push(&mut self, text: &str) {
        self.0.push_str(text);
    }

    /// Appends the beginning of `text` that fits; all of it must be ASCII.
    pub fn push_fitting(&mut self, text: &str) {
        self.push(&text[..text.len().min(self.0.remaining_capacity())]);
    }

    /// The string as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The string.
    #[inline(always)]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl<const N: usize> fmt::Write for Text<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push_fitting(text);
        Ok(())
    }
}

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
