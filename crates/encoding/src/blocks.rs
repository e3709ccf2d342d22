//! Short runs of equal values, written in blocks of a fixed length.
//!
//! Responsible for: appending runs to a vector, what is too much of each being written over by the next. Not responsible
//! for: where runs come from (`decode`).
//!
//! A run of ten values is too short for a loop: what is vectorised of it is less than what is not, and where it ends is
//! mispredicted. A block is whole vectors, and there is one branch, which is hardly ever taken. Blocks are written to a
//! buffer that the first cache holds, since room at the end of a vector is no place that safe code can write to.

/// Values of a block.
const BLOCK: usize = 16;
/// Values after which the buffer is emptied.
const FULL: usize = 1008;
/// Rows of a run, in the mean, from which on it is long.
const LONG: usize = 100;

/// Appends each value as often as its run is long; `lasts` are the last rows of the runs, which ascend.
///
/// Where a run begins is known without the one before, so several are written at a time. The vector is filled before,
/// because there must be something; that costs less than to copy the blocks.
pub(crate) fn repeat_all<T: Copy>(values: &[T], lasts: &[[u8; 2]], out: &mut Vec<T>) {
    let (Some(any), Some(last)) = (values.first(), lasts.last()) else { return };
    let (before, rows) = (out.len(), usize::from(u16::from_le_bytes(*last)) + 1);
    if values.len() * LONG < rows {
        return repeat_long(values, lasts, out);
    }
    out.resize(before + rows, *any);
    let out = &mut out[before..];
    let mut from = 0;
    for (value, last) in values.iter().zip(lasts) {
        let end = usize::from(u16::from_le_bytes(*last)) + 1;
        match out[from..].first_chunk_mut::<BLOCK>() {
            Some(block) if end - from <= BLOCK => *block = [*value; BLOCK],
            _ => out[from..end].fill(*value),
        }
        from = end;
    }
}

/// As [`repeat_all`], where runs are so long that each is a loop.
fn repeat_long<T: Copy>(values: &[T], lasts: &[[u8; 2]], out: &mut Vec<T>) {
    let mut from = 0;
    for (value, last) in values.iter().zip(lasts) {
        let end = usize::from(u16::from_le_bytes(*last)) + 1;
        out.extend(std::iter::repeat_n(*value, end - from));
        from = end;
    }
}

/// What is appended to a vector, but has not been.
pub(crate) struct Blocks<'o, T> {
    values: [T; FULL + BLOCK],
    count: usize,
    out: &'o mut Vec<T>,
}

impl<'o, T: Copy> Blocks<'o, T> {
    /// Nothing yet; `any` is any value.
    pub(crate) fn new(any: T, out: &'o mut Vec<T>) -> Self {
        Self { values: [any; FULL + BLOCK], count: 0, out }
    }

    /// Appends `value` so many times.
    #[inline(always)]
    pub(crate) fn repeat(&mut self, value: T, times: usize) {
        if let Some(block) = self.values.get_mut(self.count..).and_then(|room| room.first_chunk_mut()) {
            *block = [value; BLOCK];
        }
        if times > BLOCK {
            return self.repeat_many(value, times);
        }
        self.count += times;
        if self.count > FULL {
            self.flush();
        }
    }

    /// As [`Blocks::repeat`], of a run that is longer than a block.
    #[inline(never)]
    fn repeat_many(&mut self, value: T, times: usize) {
        self.flush();
        self.out.extend(std::iter::repeat_n(value, times));
    }

    #[inline(never)]
    fn flush(&mut self) {
        self.out.extend_from_slice(&self.values[..self.count]);
        self.count = 0;
    }

    /// Appends the rest.
    pub(crate) fn finish(mut self) {
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_every_length_follow_each_other() {
        let (mut out, mut expected) = (vec![7_u32], vec![7_u32]);
        let mut blocks = Blocks::new(0, &mut out);
        for run in (0..600).chain((0..1000).map(|run| run % 19)) {
            blocks.repeat(run, run as usize);
            expected.extend(std::iter::repeat_n(run, run as usize));
        }
        blocks.finish();
        assert_eq!(out, expected);
    }

    #[test]
    fn all_runs_of_every_length_follow_each_other() {
        for longest in [1, 2, 15, 16, 17, 40, 3000] {
            let (mut expected, mut lasts, mut values) = (vec![7_u64], Vec::new(), Vec::new());
            for run in 0..200 {
                let times = (run as usize * 7919 % longest + 1).min(30_000 - expected.len().min(29_999));
                expected.extend(std::iter::repeat_n(run, times));
                values.push(run);
                lasts.push((expected.len() as u16 - 2).to_le_bytes());
            }
            let mut out = vec![7];
            repeat_all(&values, &lasts, &mut out);
            assert_eq!(out, expected);
        }
        repeat_all(&[], &[], &mut vec![1]);
    }
}
