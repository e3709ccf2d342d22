//! Which form is chosen, and for how many bytes.

use albireo_encoding::{Choose, Kind, Scalar, StoreForm};
use albireo_testing::{Random, test};

use crate::support::{Data, near};

const ROWS: u64 = 16_384;

fn form(data: &Data) -> String {
    data.encode(Choose::Best).form().to_string()
}

/// Numbers in no order.
fn mixed(row: u64) -> u64 {
    row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
}

/// A text of so many bytes, each one of so many.
fn letters(row: u64, length: usize, count: u64) -> Vec<u8> {
    let mut random = Random::new(row);
    (0..length).map(|_| (b' ' as u64 + random.below(count)) as u8).collect()
}

fn integers(value: impl Fn(u64) -> u64) -> Data {
    Data::integers(Kind::I64, (0..ROWS).map(|row| value(row) as i64))
}

#[test]
fn form_is_the_one_with_the_fewest_bytes() {
    for (data, expected) in [
        (integers(|_| 7), "constant"),
        (integers(|row| mixed(row) % 200), "integers of 1 byte"),
        (integers(|row| mixed(row) % 1000), "integers of 2 bytes"),
        (integers(|row| (1 << 40) | (mixed(row) % 65_536)), "integers of 2 bytes"),
        (integers(|row| mixed(row) % 100_000), "integers of 4 bytes"),
        (integers(mixed), "integers of 8 bytes"),
        (integers(|row| (mixed(row) % 200) << 30), "dictionary of 200 in 1 byte"),
        (integers(|row| (mixed(row) % 1000) << 30), "dictionary of 1000 in 2 bytes"),
        (integers(|row| (row / 1000) << 30), "17 runs"),
        (integers(|row| row / 10), "1639 runs"),
        (Data::of(Kind::Uuid, (0..ROWS).map(|row| near(Kind::Uuid, row)).collect()), "values of 16 bytes"),
        (Data::texts((0..ROWS).map(|row| format!("{:024}", mixed(row)))), "texts of 24 bytes of 4 bits"),
        (Data::texts((0..ROWS).map(|row| format!("{}", mixed(row) >> (row % 30)))), "texts of 4 bits a byte"),
        (Data::texts((0..ROWS).map(|row| letters(row, 24, 128))), "texts of 24 bytes"),
        (Data::texts((0..ROWS).map(|row| letters(row, row as usize % 30, 128))), "texts"),
        (Data::texts((0..ROWS).map(|row| format!("{:024}", mixed(row) % 50))), "dictionary of 50 in 1 byte"),
        (Data::texts((0..ROWS).map(|row| format!("{:024}", row / 100))), "164 runs"),
        (Data::texts((0..ROWS).map(|row| format!("{:024}", row / 8 % 3))), "2048 runs, dictionary of 3"),
    ] {
        assert_eq!(form(&data), expected);
    }
}

#[test]
fn texts_are_packed_where_a_sixth_of_their_bytes_is_saved() {
    let form =
        |length: usize, count: u64| form(&Data::texts((0..ROWS).map(|row| letters(row, length, count))));
    assert_eq!(form(24, 64), "texts of 24 bytes of 6 bits");
    assert_eq!(form(24, 65), "texts of 24 bytes");
    assert_eq!(form(24, 16), "texts of 24 bytes of 4 bits");
    // Two bits of eight are saved, and nothing of the four bytes of an offset.
    let varied = |length: u64, longest: u64| {
        let texts = (0..ROWS).map(|row| letters(row, (length + row % (1 + longest - length)) as usize, 64));
        Data::texts(texts)
    };
    assert_eq!(self::form(&varied(9, 10)), "texts of 6 bits a byte");
    assert_eq!(self::form(&varied(6, 7)), "texts");
    // Few texts are shorter than what stands behind their codes.
    assert_eq!(self::form(&Data::texts(["ab", "ba"])), "texts of 2 bytes");
    assert_eq!(
        Data::texts(["ab", "ba"]).encode(Choose::Packed).form().to_string(),
        "texts of 2 bytes of 1 bit"
    );
}

#[test]
fn bytes_that_are_rare_are_in_the_alphabet_too() {
    for rare in [0, 1, 9_000, ROWS - 1] {
        let mut texts: Vec<Vec<u8>> = (0..ROWS).map(|row| letters(row, 24, 16)).collect();
        texts[rare as usize][7] = b'~';
        assert_eq!(form(&Data::texts(&texts)), "texts of 24 bytes of 5 bits");
        texts[rare as usize].copy_from_slice(&(100..124).collect::<Vec<u8>>());
        texts[ROWS as usize / 3].copy_from_slice(&(124..148).collect::<Vec<u8>>());
        texts[ROWS as usize / 4][0] = 150;
        assert_eq!(form(&Data::texts(&texts)), "texts of 24 bytes", "of 65 different bytes at least");
    }
}

#[test]
fn texts_of_runs_and_dictionaries_are_not_packed() {
    let texts = |value: fn(u64) -> u64| Data::texts((0..ROWS).map(move |row| format!("{:024}", value(row))));
    for (data, expected) in [
        (texts(|row| row / 100), "164 runs"),
        (texts(|row| mixed(row) % 300), "dictionary of 300 in 2 bytes"),
        (texts(|row| row / 8 % 3), "2048 runs, dictionary of 3"),
        (texts(|_| 7), "constant"),
    ] {
        let column = data.encode(Choose::Best);
        assert_eq!(column.form().to_string(), expected);
        assert!(column.lends_texts());
    }
}

/// An address with number `number`.
fn address(number: u64) -> String {
    let page = number % 7;
    format!("https://www.example.com/department/customers/{number}/orders/history?page={page}&sort=ascending")
}

#[test]
fn texts_of_frequent_strings_are_compressed() {
    let data = Data::texts((0..ROWS).map(|row| address(mixed(row) % 10_000_000)));
    let best = data.encode(Choose::Best);
    assert!(matches!(best.form().store, StoreForm::CompressedTexts { .. }), "{}", best.form());
    assert!(best.form().to_string().starts_with("texts compressed by "), "{}", best.form());
    for (choose, times) in [(Choose::Plain, 3), (Choose::Packed, 2)] {
        let other = data.encode(choose).bytes();
        assert!(best.bytes() * times < other, "{} bytes, and {other}", best.bytes());
    }
    // Few texts are shorter than a table.
    assert!(form(&Data::texts((0..20).map(address))).starts_with("texts of 6 bits a byte"));
}

#[test]
fn texts_are_compressed_instead_of_a_dictionary_only_where_that_is_long() {
    let form = |values: u64| form(&Data::texts((0..ROWS).map(|row| address(mixed(row) % values))));
    assert!(form(4_000).starts_with("dictionary of "), "{}", form(4_000));
    assert!(form(12_000).starts_with("texts compressed by "), "{}", form(12_000));
}

#[test]
fn two_values_in_turns_are_no_runs() {
    assert_eq!(form(&integers(|row| row % 2)), "integers of 1 byte");
    assert_eq!(form(&integers(|row| (row % 2) << 40)), "dictionary of 2 in 1 byte");
}

#[test]
fn runs_are_chosen_only_below_half_of_the_bytes_of_the_best_other() {
    // Codes of one byte and ends of two: three for each run, against one for each row.
    for (length, expected) in [(5, "integers of 1 byte"), (7, "2341 runs")] {
        assert_eq!(form(&integers(|row| row / length % 200)), expected);
    }
}

#[test]
fn nulls_and_dead_rows_cost_neither_width_nor_values_nor_runs() {
    let with = |value: fn(u64) -> u64, gap: fn(u64) -> bool| {
        let mut data = integers(value);
        let gaps: Vec<bool> = (0..ROWS).map(gap).collect();
        for (row, _) in gaps.iter().enumerate().filter(|(_, gap)| **gap) {
            data.values[row] = Scalar::Integer((mixed(row as u64) << 20) as i64);
        }
        let dead = Data { live: gaps.iter().map(|gap| !gap).collect(), ..data.clone() };
        (form(&Data { nulls: gaps, ..data }), form(&dead))
    };
    let same = |form: &str| (form.to_owned(), form.to_owned());
    assert_eq!(with(|_| 1 << 50, |row| row % 3 == 0), same("constant"));
    assert_eq!(with(|row| mixed(row) % 200, |row| row % 3 == 0), same("integers of 1 byte"));
    assert_eq!(with(|row| (mixed(row) % 200) << 40, |row| row % 3 == 0), same("dictionary of 200 in 1 byte"));
    assert_eq!(with(|row| (row / 1024) << 40, |row| row % 3 == 1), same("16 runs"));
    assert_eq!(with(|row| (row / 1024) << 40, |row| row / 64 % 2 == 0), same("16 runs"));
}

#[test]
fn texts_of_nulls_have_no_bytes() {
    let mut data = Data::texts((0..ROWS).map(|row| format!("{:0200}", mixed(row))));
    data.nulls = (0..ROWS).map(|row| row % 10 != 0).collect();
    let column = data.encode(Choose::Plain);
    assert_eq!(column.form().store, StoreForm::Texts);
    // Those of 1,639 texts, an offset for each row and one, and bits.
    assert_eq!(column.bytes(), 1639 * 200 + 4 * 16_385 + 2048);
}

#[test]
fn bytes_of_nulls_are_the_shorter_of_bits_and_ranges() {
    let nulls = |null: fn(u64) -> bool| {
        let mut data = integers(|_| 7);
        data.nulls = (0..ROWS).map(null).collect();
        data.encode(Choose::Best).bytes()
    };
    assert_eq!(nulls(|row| row % 2 == 0), 2048);
    assert_eq!(nulls(|row| (500..12_000).contains(&row)), 4);
    let mut data = integers(|_| 7);
    data.nulls = (0..ROWS).map(|row| (500..12_000).contains(&row) && row % 2 == 1).collect();
    data.live = (0..ROWS).map(|row| row % 2 == 1).collect();
    assert_eq!(data.encode(Choose::Best).bytes(), 4);
}

#[test]
fn sample_that_sees_few_values_costs_no_more_than_another_form() {
    // Mostly one value, and in the middle of each part of the list others, each once.
    for every in [3, 5, 16, 17, 40] {
        let data = integers(|row| if row % every == 1 { mixed(row) } else { 5 });
        let best = data.encode(Choose::Best).bytes();
        let plain = data.encode(Choose::Plain).bytes();
        assert!(best <= plain, "every {every}: {best} bytes instead of {plain}");
    }
    // One half is all different, the other all the same.
    let data = integers(|row| if row < ROWS / 2 { 5 } else { mixed(row) });
    assert!(data.encode(Choose::Best).bytes() <= data.encode(Choose::Plain).bytes());
    let data = Data::texts(
        (0..ROWS).map(|row| if row % 16 == 0 { format!("{row:09}") } else { "123456789".into() }),
    );
    assert!(data.encode(Choose::Best).bytes() <= data.encode(Choose::Plain).bytes());
}

#[test]
fn best_is_never_longer_than_values_as_they_are() {
    test!().for_each_seed(0..120, |seed| {
        let mut random = Random::new(seed);
        let data = crate::support::draw(random.pick(&Kind::ALL), &mut random);
        let [best, plain] = [Choose::Best, Choose::Plain].map(|choose| data.encode(choose).bytes());
        assert!(best <= plain, "{best} bytes instead of {plain}");
    });
}

/// What an odd number is multiplied with to get 1.
fn inverse(odd: u64) -> u64 {
    (0..6).fold(odd, |inverse, _| inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse))))
}

#[test]
fn hashes_that_collide_cost_a_dictionary_and_no_more() {
    // Undoes the hash of integers, so that the upper halves of all hashes are the same.
    let (first, second) = (inverse(0x9e37_79b9_7f4a_7c15), inverse(0xd6e8_feb8_6659_fd93));
    let with_hash = |hash: u64| {
        let mixed = hash.wrapping_mul(second);
        (mixed ^ mixed >> 32).wrapping_mul(first)
    };
    let data = |values: u64| integers(move |row| with_hash(0x1234_5678_0000_0000 + row % values));
    assert_eq!(form(&data(200)), "dictionary of 200 in 1 byte");
    for choose in [Choose::Best, Choose::Dictionary] {
        let data = data(2000);
        let column = data.encode(choose);
        assert_eq!(column.form().to_string(), "integers of 8 bytes");
        assert!(data.valid().all(|(row, value)| column.scalar(row).as_ref() == value));
    }
}

#[test]
fn form_says_what_it_is() {
    let data = integers(|row| (row / 64 % 2) << 40);
    let forms = [Choose::Plain, Choose::Dictionary, Choose::Runs, Choose::RunsOfDictionary]
        .map(|choose| data.encode(choose).form().to_string());
    assert_eq!(
        forms,
        ["integers of 8 bytes", "dictionary of 2 in 1 byte", "256 runs", "256 runs, dictionary of 2"]
    );
}
