//! What statistical aggregates know of floating-point numbers met so far.
//!
//! Paper: Youngs and Cramer, *Some Results Relevant to Choice of Sum and Sum-of-Product Algorithms*, 1971: the
//! same steps as PostgreSQL's, so that the same rows in the same order give the same bits.

use albireo_base::{SqlError, SqlState};

use super::tree::{AggregateKind, Regression};

/// Sums over pairs `(y, x)`; of single numbers both are the same.
#[derive(Clone, Default, Debug)]
pub(super) struct FloatMoments {
    count: f64,
    sum: [f64; 2],
    squares: [f64; 2],
    products: f64,
}

impl FloatMoments {
    /// Takes a pair in, or a single number.
    pub(super) fn add(&mut self, y: f64, x: Option<f64>) -> Result<(), SqlError> {
        let before = self.clone();
        let single = x.is_none();
        let x = x.unwrap_or(y);
        self.count += 1.0;
        self.sum[0] += y;
        self.sum[1] += x;
        if before.count == 0.0 {
            for (at, value) in [y, x].into_iter().enumerate() {
                if !value.is_finite() {
                    self.squares[at] = f64::NAN;
                    self.products = f64::NAN;
                }
            }
            return Ok(());
        }
        let [off_y, off_x] = [y * self.count - self.sum[0], x * self.count - self.sum[1]];
        if single {
            // Rounded otherwise than below.
            self.squares[0] += off_y * off_y / (self.count * before.count);
            return self.check(&before, [y, x]);
        }
        let scale = 1.0 / (self.count * before.count);
        self.squares[0] += off_y * off_y * scale;
        self.squares[1] += off_x * off_x * scale;
        self.products += off_x * off_y * scale;
        self.check(&before, [y, x])
    }

    /// 22003 if finite numbers have overflown.
    fn check(&mut self, before: &Self, [y, x]: [f64; 2]) -> Result<(), SqlError> {
        let finite = |at: usize, value: f64| !before.sum[at].is_infinite() && !value.is_infinite();
        let over = |at: usize| self.sum[at].is_infinite() || self.squares[at].is_infinite();
        let both = self.products.is_infinite() && finite(0, y) && finite(1, x);
        if over(0) && finite(0, y) || over(1) && finite(1, x) || both {
            let state = SqlState::NUMERIC_VALUE_OUT_OF_RANGE;
            return Err(SqlError::new(state, "value out of range: overflow"));
        }
        for sum in self.squares.iter_mut().chain([&mut self.products]) {
            if sum.is_infinite() {
                *sum = f64::NAN;
            }
        }
        Ok(())
    }

    /// The variance of single numbers, or its root.
    pub(super) fn variance(&self, sample: bool, root: bool) -> Option<f64> {
        let others = if sample { self.count - 1.0 } else { self.count };
        let variance = (others > 0.0).then(|| self.squares[0] / others)?;
        Some(if root { variance.sqrt() } else { variance })
    }

    /// The result of an aggregate of pairs but `regr_count`.
    pub(super) fn of_pairs(&self, kind: AggregateKind) -> Option<f64> {
        use AggregateKind as K;
        let (n, [sum_y, sum_x], [yy, xx], xy) = (self.count, self.sum, self.squares, self.products);
        if n < 1.0 {
            return None;
        }
        match kind {
            K::CovarPop => Some(xy / n),
            K::CovarSamp => (n > 1.0).then(|| xy / (n - 1.0)),
            K::Corr => (xx != 0.0 && yy != 0.0).then(|| xy / (xx * yy).sqrt()),
            K::Regression(Regression::AvgX) => Some(sum_x / n),
            K::Regression(Regression::AvgY) => Some(sum_y / n),
            K::Regression(Regression::Sxx) => Some(xx),
            K::Regression(Regression::Syy) => Some(yy),
            K::Regression(Regression::Sxy) => Some(xy),
            K::Regression(_) if xx == 0.0 => None,
            K::Regression(Regression::R2) if yy == 0.0 => Some(1.0),
            K::Regression(Regression::R2) => Some((xy * xy) / (xx * yy)),
            K::Regression(Regression::Slope) => Some(xy / xx),
            K::Regression(Regression::Intercept) => Some((sum_y - sum_x * xy / xx) / n),
            _ => None,
        }
    }

    /// How many pairs there were.
    pub(super) fn count(&self) -> i64 {
        self.count as i64
    }
}
