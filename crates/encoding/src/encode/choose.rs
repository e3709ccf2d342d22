//! Chooses a form by what it costs, in bytes.

use super::Choose;
use super::compress;
use super::dictionary::{Dictionary, Distinct, ENTRIES, width};
use super::pack;
use super::values::{Values, for_each_run};
use crate::layers::{Codes, Runs, Store};
use crate::scalar::Scalar;

/// What a column is made of, but for its NULLs.
pub(super) struct Chosen {
    pub(super) runs: Option<Runs<Vec<u8>>>,
    pub(super) codes: Option<Codes<Vec<u8>>>,
    pub(super) store: Store<Vec<u8>>,
}

impl Chosen {
    pub(super) fn constant(scalar: Scalar) -> Self {
        Self::flat(Store::Constant(scalar))
    }

    fn flat(store: Store<Vec<u8>>) -> Self {
        Self { runs: None, codes: None, store }
    }

    fn plain<V: Values>(values: &V) -> Self {
        Self::flat(values.plain())
    }
}

/// Chooses; keeps its buffers.
#[derive(Debug, Default)]
pub(super) struct Chooser {
    choose: Choose,
    distinct: Distinct,
    /// The first row of each run.
    starts: Vec<u32>,
}

impl Chooser {
    pub(super) fn new(choose: Choose) -> Self {
        Self { choose, ..Self::default() }
    }

    /// `values` in the form with the fewest bytes, or in the one that was asked for.
    pub(super) fn choose<V: Values>(&mut self, values: &V) -> Chosen {
        match self.choose {
            Choose::Best => self.best(values),
            Choose::Plain => Chosen::plain(values),
            Choose::Packed => Chosen::flat(pack::at_any_rate(values.plain())),
            Choose::Compressed => Chosen::flat(compress::at_any_rate(values.plain(), values.len())),
            Choose::Dictionary => self.any_dictionary(values),
            Choose::Runs => self.runs(values, |_, values| Chosen::plain(values)),
            Choose::RunsOfDictionary => self.runs(values, Self::any_dictionary),
        }
    }

    fn best<V: Values>(&mut self, values: &V) -> Chosen {
        let (rows, runs, plain) = (values.len(), values.runs(), values.plain_bytes());
        if runs == 1 {
            return Chosen::constant(V::scalar(values.at(0)));
        }
        let run_bytes = runs * (2 + values.bytes_each());
        let pays = |bytes: usize, other: usize| bytes * 2 < other;
        // No dictionary has less than a byte for each row.
        if pays(run_bytes, plain.min(rows)) {
            return self.runs(values, Self::flat);
        }
        if let Some((entries, bytes)) = self.guess(values) {
            let run_codes = runs * (2 + width(entries).bytes()) + entries * values.bytes_each();
            if pays(run_bytes.min(run_codes), bytes) {
                return self.runs(values, Self::flat);
            }
            if let Some(chosen) = self.dictionary(values, entries) {
                return or_compressed(values, chosen);
            }
        }
        match pays(run_bytes, plain) {
            true => self.runs(values, Self::flat),
            false => Chosen::flat(shortest(values.plain(), rows)),
        }
    }

    /// How many entries a dictionary has and what it costs, if that is less than without one; from a sample.
    fn guess<V: Values>(&mut self, values: &V) -> Option<(usize, usize)> {
        let (rows, plain, each) = (values.len(), values.plain_bytes(), values.bytes_each());
        if plain <= rows + each {
            return None;
        }
        let entries = self.distinct.estimate(values);
        let bytes = rows * width(entries).bytes() + entries * each;
        (entries <= ENTRIES && bytes < plain).then_some((entries, bytes))
    }

    /// A dictionary, if it has fewer bytes than `values` as they are.
    fn dictionary<V: Values>(&mut self, values: &V, expected: usize) -> Option<Chosen> {
        let (rows, plain, each) = (values.len(), values.plain_bytes(), values.bytes_each().max(1));
        let limit = match plain.saturating_sub(2 * rows) / each {
            few @ 0..=256 => few.max((plain.saturating_sub(rows) / each).min(256)),
            many => many,
        };
        let dictionary = self.distinct.build(values, limit, expected)?;
        let codes = dictionary.codes.len();
        let chosen = with_dictionary(values, dictionary);
        (chosen.store.len() + codes < plain).then_some(chosen)
    }

    /// A dictionary, whatever it costs.
    fn any_dictionary<V: Values>(&mut self, values: &V) -> Chosen {
        match self.distinct.build(values, ENTRIES, values.len()) {
            Some(dictionary) => with_dictionary(values, dictionary),
            None => Chosen::plain(values),
        }
    }

    /// A dictionary or values as they are, whichever has fewer bytes.
    fn flat<V: Values>(&mut self, values: &V) -> Chosen {
        let guess = self.guess(values);
        let chosen = guess.and_then(|(entries, _)| self.dictionary(values, entries));
        chosen.unwrap_or_else(|| Chosen::plain(values))
    }

    /// Runs, whose values `encode` encodes.
    fn runs<V: Values>(&mut self, values: &V, encode: impl Fn(&mut Self, &V) -> Chosen) -> Chosen {
        self.starts.clear();
        for_each_run(values, |at| self.starts.push(at as u32));
        // The last row of a run is the one before the next run; of the last run the last row.
        let ends = self.starts[1..].iter().map(|start| start - 1).chain([values.len() as u32 - 1]);
        let ends: Vec<u8> = ends.flat_map(|end| (end as u16).to_le_bytes()).collect();
        let count = self.starts.len() as u32;
        let first = values.pick(&self.starts);
        let chosen = encode(self, &first);
        Chosen { runs: Some(Runs { count, ends }), ..chosen }
    }
}

/// `plain`, of so many places: compressed, packed or as it is.
fn shortest(plain: Store<Vec<u8>>, places: usize) -> Store<Vec<u8>> {
    let limit = compress::worth(plain.len(), pack::least_bytes(&plain));
    compress::below(&plain, places, limit).unwrap_or_else(|| pack::if_it_pays(plain))
}

/// A dictionary, or texts compressed if they have less than half of its bytes. Where it has few entries they never have.
fn or_compressed<V: Values>(values: &V, dictionary: Chosen) -> Chosen {
    let is_texts = matches!(dictionary.store, Store::FixedTexts { .. } | Store::Texts { .. });
    let codes = dictionary.codes.as_ref();
    let (entries, codes) = codes.map_or((0, 0), |codes| (codes.entries as usize, codes.section.len()));
    if !is_texts || entries * 2 < values.len() {
        return dictionary;
    }
    let limit = (dictionary.store.len() + codes) / 2;
    compress::below(&values.plain(), values.len(), limit).map_or(dictionary, Chosen::flat)
}

fn with_dictionary<V: Values>(values: &V, dictionary: Dictionary) -> Chosen {
    let Dictionary { entries, width, codes } = dictionary;
    let store = values.pick(&entries).plain();
    let codes = Codes { width, section: codes, entries: entries.len() as u32 };
    Chosen { runs: None, codes: Some(codes), store }
}

#[cfg(test)]
mod tests {
    use super::super::texts::Texts;
    use super::*;

    #[test]
    fn dictionary_that_turns_out_longer_than_texts_as_they_are_is_not_taken() {
        // Two of five are empty, so that one text of the others is longer than one on average.
        let (mut ends, mut bytes) = (Vec::new(), Vec::new());
        for row in 0..10_000_u32 {
            if row % 5 > 1 {
                bytes.extend_from_slice(format!("{row:0width$}", width = 8 + row as usize % 5).as_bytes());
            }
            ends.push(bytes.len() as u32);
        }
        let texts = Texts::new(&ends, &bytes, None);
        let mut chooser = Chooser::default();
        let taken = |chosen: &Chosen| {
            chosen.store.len() + chosen.codes.as_ref().map_or(0, |codes| codes.section.len())
        };
        assert!(taken(&chooser.any_dictionary(&texts)) > texts.plain_bytes());
        assert!(chooser.dictionary(&texts, 6001).is_none());
    }
}
