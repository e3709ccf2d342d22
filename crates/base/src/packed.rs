//! Numbers and texts as few bytes: what records of the redo log are made of.
//!
//! Whole numbers are of variable length: seven bits a byte, the lowest first; signed ones in zigzag, so that
//! small ones are short whatever their sign.

/// What is wrong with packed bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("at byte {offset} of the record: {what}")]
pub struct Malformed {
    /// Where, in bytes from the beginning.
    pub offset: usize,
    /// What.
    pub what: &'static str,
}

/// Appends a number.
#[inline(always)]
pub fn put_number(out: &mut Vec<u8>, number: u64) {
    if number < 0x80 {
        out.push(number as u8);
    } else {
        put_long_number(out, number);
    }
}

/// [`put_number`] of one that has more than seven bits.
#[inline]
fn put_long_number(out: &mut Vec<u8>, mut number: u64) {
    let (mut bytes, mut length) = ([0; 10], 0);
    while number >= 0x80 {
        bytes[length] = number as u8 | 0x80;
        number >>= 7;
        length += 1;
    }
    bytes[length] = number as u8;
    out.extend_from_slice(&bytes[..=length]);
}

/// Appends a signed number.
#[inline(always)]
pub fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_number(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// Appends a signed number of up to 128 bits.
#[inline]
pub fn put_wide(out: &mut Vec<u8>, number: i128) {
    if let Ok(number) = i64::try_from(number) {
        // The same bytes.
        return put_signed(out, number);
    }
    let mut zigzag = ((number << 1) ^ (number >> 127)) as u128;
    while zigzag >= 0x80 {
        out.push(zigzag as u8 | 0x80);
        zigzag >>= 7;
    }
    out.push(zigzag as u8);
}

/// Appends bytes, with how many they are before.
#[inline(always)]
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Bytes that are read from the front.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    rest: &'a [u8],
    /// How many there were.
    length: usize,
}

impl<'a> Input<'a> {
    /// All of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, length: bytes.len() }
    }

    /// Whether all have been read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Those that are left.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Something is wrong here.
    pub fn wrong(&self, what: &'static str) -> Malformed {
        Malformed { offset: self.length - self.rest.len(), what }
    }

    /// The next bytes.
    ///
    /// # Errors
    /// There are fewer.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let Some((head, rest)) = self.rest.split_at_checked(count) else {
            return Err(self.wrong("the record ends too early"));
        };
        self.rest = rest;
        Ok(head)
    }

    /// The next byte.
    ///
    /// # Errors
    /// There is none.
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.bytes(1)?[0])
    }

    /// What [`put_number`] wrote.
    ///
    /// # Errors
    /// There is no such number.
    #[inline]
    pub fn number(&mut self) -> Result<u64, Malformed> {
        if let [byte @ 0..0x80, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(u64::from(*byte));
        }
        let wide = self.unsigned_wide()?;
        u64::try_from(wide).map_err(|_| self.wrong("a number has more than 64 bits"))
    }

    #[inline]
    fn unsigned_wide(&mut self) -> Result<u128, Malformed> {
        let (mut number, mut shift) = (0_u128, 0);
        loop {
            let byte = self.byte()?;
            let bits = u128::from(byte & 0x7f);
            if shift > 121 && bits >> (128 - shift) != 0 {
                return Err(self.wrong("a number has more than 128 bits"));
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
            shift += 7;
            if shift > 127 {
                return Err(self.wrong("a number has more than 128 bits"));
            }
        }
    }

    /// What [`put_signed`] wrote.
    ///
    /// # Errors
    /// There is no such number.
    #[inline]
    pub fn signed(&mut self) -> Result<i64, Malformed> {
        let zigzag = self.number()?;
        Ok((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }

    /// What [`put_signed`] wrote, of a narrower type.
    ///
    /// # Errors
    /// There is no such number.
    #[inline]
    pub fn narrow<T: TryFrom<i64>>(&mut self) -> Result<T, Malformed> {
        let number = self.signed()?;
        T::try_from(number).map_err(|_| self.wrong("a number does not fit its type"))
    }

    /// What [`put_wide`] wrote.
    ///
    /// # Errors
    /// There is no such number.
    pub fn signed_wide(&mut self) -> Result<i128, Malformed> {
        let zigzag = self.unsigned_wide()?;
        Ok((zigzag >> 1) as i128 ^ -((zigzag & 1) as i128))
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// There are fewer.
    pub fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        Ok(self.bytes(N)?.try_into().expect("as many as were asked for"))
    }

    /// What [`put_bytes`] wrote.
    ///
    /// # Errors
    /// There is no such thing.
    pub fn string(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.number()?;
        self.bytes(usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// As [`Input::string`], of text.
    ///
    /// # Errors
    /// There is no such thing, or it is not UTF-8.
    pub fn text(&mut self) -> Result<&'a str, Malformed> {
        let bytes = self.string()?;
        std::str::from_utf8(bytes).map_err(|_| self.wrong("a text is not UTF-8"))
    }
}

#[cfg(test)]
mod tests {
    use albireo_testing::random_tests;
    use proptest::prelude::*;

    use super::*;

    random_tests! {
        #![cases(256)]

        #[test]
        fn what_was_put_is_read(
            number in any::<u64>(), signed in any::<i64>(), wide in any::<i128>(), text in any::<String>(),
        ) {
            let mut out = Vec::new();
            put_number(&mut out, number);
            put_signed(&mut out, signed);
            put_wide(&mut out, wide);
            put_wide(&mut out, i128::from(signed));
            put_bytes(&mut out, text.as_bytes());
            let mut input = Input::new(&out);
            prop_assert_eq!(input.number(), Ok(number));
            prop_assert_eq!(input.signed(), Ok(signed));
            prop_assert_eq!(input.signed_wide(), Ok(wide));
            prop_assert_eq!(input.signed_wide(), Ok(i128::from(signed)));
            prop_assert_eq!(input.text(), Ok(&*text));
            prop_assert!(input.is_empty());
            // Cut short, something is missing.
            let mut input = Input::new(&out[..out.len() - 1]);
            let read = input.number().and_then(|_| input.signed());
            let read = read.and_then(|_| input.signed_wide()).and_then(|_| input.signed_wide());
            prop_assert!(read.and_then(|_| input.text()).is_err());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in any::<Vec<u8>>()) {
            let _ = Input::new(&bytes).signed_wide();
            let _ = Input::new(&bytes).text();
            let _ = Input::new(&bytes).narrow::<i16>();
        }
    }
}
