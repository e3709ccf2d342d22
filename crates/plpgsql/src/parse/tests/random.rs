//! Random texts: none may make the parser panic, and what it reads must have right spans.

use albireo_testing::random_tests;
use proptest::prelude::*;

use super::{EVERYTHING, outline};

/// Words and signs that mean something, and some that do not.
const TOKENS: &str = "begin end declare exception when then others or if elsif else case loop while for foreach \
    in array reverse by exit continue perform call select insert update delete with values into strict from \
    where returning get stacked diagnostics row_count message_text raise notice using errcode hint assert \
    return next query null execute commit cursor alias constant not default collate record %type %rowtype \
    integer text[] a b.c \"q ä\" $1 1 2.5 .. . , ; := = ( ) [ ] << >> :: + - * / % # || 'x' 'it''s' E'\\'' \
    '% %%' $$ $a$ $a$;$a$ -- /* */ ' \" ä \u{1F600} \u{a0} \\ { } sqlstate 'P0001' unique_violation \
    variable_conflict use_column : @ ~ x slice open fetch array<int>";

fn token() -> impl Strategy<Value = &'static str> {
    let words: Vec<&'static str> = TOKENS.split(' ').filter(|word| !word.is_empty()).collect();
    prop::sample::select(words)
}

fn blank() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![" ", " ", " ", "\n", ""])
}

fn soup(most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec((token(), blank()), 0..most)
        .prop_map(|words| words.iter().map(|(word, blank)| format!("{word}{blank}")).collect())
}

/// The byte of the character of `text` that `share` parts of 65,536 come before.
fn place(text: &str, share: u16) -> usize {
    let at = (text.len() * usize::from(share)) >> 16;
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// A change to a text: its bytes between two places become something else.
fn mutate(text: &str, at: u16, length: u16, with: &str) -> String {
    let start = place(text, at);
    let end = place(&text[start..], length / 64) + start;
    format!("{}{with}{}", &text[..start], &text[end..])
}

fn check(text: &str) {
    match outline(text) {
        Ok(_) => {}
        Err(error) => {
            let position = error.position().unwrap_or_else(|| panic!("{error} has no position"));
            assert!((1..=text.chars().count() + 1).contains(&position), "{error} in {text}");
            assert_ne!(error.state().to_string(), "XX000", "{error} in {text}");
        }
    }
}

/// The semicolons and where they are, to cut statements out of a text.
fn statements(text: &str) -> Vec<&str> {
    text.split_inclusive(';').collect()
}

random_tests! {
    #![cases(400)]

    #[test]
    fn random_characters_do_not_panic(text in any::<String>()) {
        check(&text);
        check(&format!("begin {text} end"));
        check(&format!("begin x := {text}; end"));
    }

    #[test]
    fn random_tokens_do_not_panic(text in soup(60)) {
        check(&text);
        check(&format!("begin {text}; end"));
        check(&format!("declare x {text}; begin end"));
        check(&format!("begin select {text}; end"));
    }

    #[test]
    fn changed_body_does_not_panic(changes in prop::collection::vec((any::<u16>(), any::<u16>(), soup(3)), 1..4)) {
        let mut text = EVERYTHING.to_owned();
        for (at, length, with) in &changes {
            text = mutate(&text, *at, *length, with);
            check(&text);
        }
    }

    #[test]
    fn body_with_statements_in_another_order_does_not_panic(order in prop::collection::vec(any::<prop::sample::Index>(), 0..40)) {
        let all = statements(EVERYTHING);
        let text: String = order.iter().map(|index| *index.get(&all)).collect();
        check(&text);
        check(&format!("begin {text} end"));
    }
}

/// Every beginning of a body, as it is while somebody writes it.
#[test]
fn unfinished_body_is_an_error_with_position_and_no_panic() {
    let last = EVERYTHING.rfind("END").unwrap();
    for (end, _) in EVERYTHING.char_indices().filter(|(end, _)| *end <= last) {
        let text = &EVERYTHING[..end];
        assert!(outline(text).is_err(), "{text}");
        check(text);
    }
}
