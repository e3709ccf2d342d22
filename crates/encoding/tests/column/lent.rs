//! Texts of dictionaries that somebody lends.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;

use albireo_encoding::{Choose, Column, Kind, SectionName, TextList};
use albireo_testing::{Random, test};

use crate::support::{CHOICES, Data, Lender, draw, lender_of};

fn header(column: &Column<Vec<u8>>) -> Vec<u8> {
    let mut header = Vec::new();
    column.header(&mut header);
    header
}

fn sections(column: &Column<Vec<u8>>) -> Vec<(SectionName, Vec<u8>)> {
    column.sections().map(|(name, section)| (name, section.clone())).collect()
}

#[test]
fn lent_column_is_written_as_the_same_bytes() {
    let mut lent_ones = 0;
    test!().for_each_seed(0..60, |seed| {
        let data = draw(Kind::Text, &mut Random::new(seed));
        for own in CHOICES.map(|choose| data.encode(choose)) {
            let Some(lender) = lender_of(&own) else { continue };
            let lent = own.clone().borrowing(lender);
            assert_eq!(header(&lent), header(&own));
            assert_eq!((lent.form(), lent.shared()), (own.form(), own.shared()));
            assert_eq!(format!("{:?}", lent.unshared()), format!("{own:?}"));
            // What is the column's own stays in its sections, and nothing else is there.
            let of_texts =
                |(name, _): &(SectionName, _)| matches!(name, SectionName::Offsets | SectionName::Values);
            let (texts, others): (Vec<_>, Vec<_>) = sections(&own).into_iter().partition(of_texts);
            assert_eq!(sections(&lent), others);
            assert_eq!((lent.lent_texts(), own.lent_texts()), (own.own_texts(), None));
            assert_eq!(own.own_texts(), Some(texts.iter().map(|(_, section)| section.len()).sum()));
            lent_ones += 1;
        }
    });
    assert!(lent_ones > 60, "{lent_ones} were lent");
}

#[test]
fn text_is_lent_from_where_the_lender_has_it() {
    let own = Data::texts((0..100).map(|row| format!("text {}", row % 7))).encode(Choose::Dictionary);
    let lender = lender_of(&own).expect("a dictionary of texts");
    let (lent, dictionary) = (own.borrowing(Arc::clone(&lender) as Arc<dyn TextList>), 7);
    for row in 0..100 {
        let code = lent.dictionary().expect("it stays").code(row);
        assert!(code < dictionary);
        assert!(matches!(lent.text(row), Cow::Borrowed(text) if std::ptr::eq(text, &*lender.0[code])));
        assert!(std::ptr::eq(&*lent.stored().text(code), &*lender.0[code]));
    }
    assert!(lent.lends_texts());
}

#[test]
fn list_is_held_by_each_column_and_let_go_with_the_last() {
    let own = Data::texts(["a", "b", "a", "b", "c"]).encode(Choose::RunsOfDictionary);
    let lender = lender_of(&own).expect("a dictionary of texts");
    let lent = own.borrowing(Arc::clone(&lender) as Arc<dyn TextList>);
    assert_eq!(lent.lender().map(|list| (list.count(), list.memory_bytes())), Some((3, 3)));
    let Ok(elsewhere) = lent.clone().map_sections(|_, bytes| Ok::<_, Infallible>(bytes.into_boxed_slice()));
    drop(lent);
    let borrowed = elsewhere.as_borrowed();
    assert_eq!(Arc::strong_count(&lender), 3);
    assert!(borrowed.unshared().lender().is_none());
    drop(borrowed);
    assert_eq!((&*elsewhere.text(4), Arc::strong_count(&lender)), (&b"c"[..], 2));
    drop(elsewhere);
    assert_eq!(Arc::strong_count(&lender), 1);
}

#[test]
fn only_a_dictionary_of_own_texts_can_be_lent() {
    let texts = Data::texts((0..50).map(|row| format!("{row:03}")));
    for choose in [Choose::Plain, Choose::Packed, Choose::Compressed, Choose::Runs] {
        assert_eq!(texts.encode(choose).own_texts(), None);
    }
    assert_eq!(texts.encode(Choose::Dictionary).own_texts(), Some(150));
    assert_eq!(Data::texts(["a"; 50]).encode(Choose::Best).own_texts(), None);
    assert_eq!(Data::integers(Kind::I64, [1, 2, 1]).encode(Choose::Dictionary).own_texts(), None);
    let lent = texts.forms(&[Choose::Dictionary]).pop().expect("the lent one is behind the other");
    assert_eq!((lent.own_texts(), lent.lender().is_some()), (None, true));
}

fn lend(texts: &[&str]) {
    let own = Data::texts(["a", "b", "a"]).encode(Choose::Dictionary);
    own.borrowing(Arc::new(Lender(texts.iter().map(|text| text.as_bytes().into()).collect())));
}

#[test]
#[should_panic(expected = "as many texts")]
fn list_of_fewer_texts_is_refused() {
    lend(&["a"]);
}

#[test]
#[should_panic(expected = "texts")]
fn list_of_longer_texts_is_refused() {
    lend(&["a", "bc"]);
}

#[test]
#[should_panic(expected = "a dictionary of the column's own texts")]
fn column_without_dictionary_is_lent_nothing() {
    Data::texts(["a", "b"]).encode(Choose::Plain).borrowing(Arc::new(Lender(Vec::new())));
}
