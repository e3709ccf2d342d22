//! Variances and standard deviations of NUMERIC, exact, with the digits PostgreSQL gives.
//!
//! Units: a sum counts units of `10^-scale`, a sum of squares units of `10^-(2 * scale)`.

use albireo_base::{Decimal, SqlError};
use num_bigint::BigInt;

use super::exponential::{GROUP, SIGNIFICANT, rounded, rounded_quotient, ten_to};

/// What is known of numbers met so far.
#[derive(Clone, Default, Debug)]
pub(crate) struct Moments {
    count: i64,
    /// The most digits after the point of any of them.
    scale: u32,
    sum: BigInt,
    squares: BigInt,
}

impl Moments {
    /// Takes a number in.
    pub(crate) fn add(&mut self, number: Decimal) {
        let scale = u32::from(number.scale);
        if scale > self.scale {
            let more = scale - self.scale;
            self.sum *= ten_to(more);
            self.squares *= ten_to(2 * more);
            self.scale = scale;
        }
        let number = BigInt::from(number.unscaled) * ten_to(self.scale - scale);
        self.squares += &number * &number;
        self.sum += number;
        self.count += 1;
    }

    /// The variance, or its root; nothing where there are too few numbers.
    ///
    /// # Errors
    /// 22003 beyond 38 digits.
    pub(crate) fn variance(&self, sample: bool, root: bool) -> Result<Option<Decimal>, SqlError> {
        let count = BigInt::from(self.count);
        let others = if sample { self.count - 1 } else { self.count };
        if others <= 0 {
            return Ok(None);
        }
        let above = &count * &self.squares - &self.sum * &self.sum;
        if above <= BigInt::ZERO {
            return Ok(Some(Decimal::new(0, 0)));
        }
        let below = count * others;
        let places = 2 * self.scale;
        let scale = quotient_scale((&above, places), &below);
        let shifted = match scale.checked_sub(places) {
            Some(more) => (above * ten_to(more), below),
            None => (above, below * ten_to(places - scale)),
        };
        let variance = rounded_quotient(&shifted.0, &shifted.1);
        if !root {
            return rounded(&variance, scale, i64::from(scale)).map(Some);
        }
        // Two digits more than are kept.
        let root = (variance * ten_to(scale + 4)).sqrt();
        rounded(&root, scale + 2, i64::from(scale)).map(Some)
    }
}

/// The place of the first group of four digits that is not zero, and this group.
fn leading(number: &BigInt, places: u32) -> (i64, i64) {
    let digits = number.to_string();
    let exponent = digits.len() as i64 - 1 - i64::from(places);
    let weight = exponent.div_euclid(GROUP);
    // As many digits as the group has before the next one begins.
    let count = (exponent - GROUP * weight + 1) as usize;
    let group: String = digits.chars().chain(std::iter::repeat('0')).take(count).collect();
    (weight, group.parse().unwrap_or(0))
}

/// The digits after the point of a quotient: 16 significant ones, and no fewer than the dividend has.
fn quotient_scale((above, places): (&BigInt, u32), below: &BigInt) -> u32 {
    let ((weight_a, first_a), (weight_b, first_b)) = (leading(above, places), leading(below, 0));
    let weight = weight_a - weight_b - i64::from(first_a <= first_b);
    u32::try_from((SIGNIFICANT - weight * GROUP).max(i64::from(places))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(numbers: &[&str]) -> Moments {
        let mut moments = Moments::default();
        numbers.iter().for_each(|text| moments.add(Decimal::parse(text).unwrap()));
        moments
    }

    /// What PostgreSQL 15 gives.
    #[test]
    fn variances_have_the_digits_that_postgresql_gives() {
        let text = |moments: &Moments, sample, root| {
            moments.variance(sample, root).unwrap().map_or("NULL".to_owned(), |number| number.to_string())
        };
        let whole = of(&["1", "2", "4"]);
        assert_eq!(text(&whole, true, false), "2.3333333333333333");
        assert_eq!(text(&whole, false, false), "1.5555555555555556");
        assert_eq!(text(&whole, true, true), "1.5275252316519467");
        assert_eq!(text(&of(&["1.5"]), true, false), "NULL");
        assert_eq!(text(&of(&["1.5"]), false, false), "0");
        assert_eq!(text(&of(&[]), false, false), "NULL");
    }
}
