//! The laws of the encoding, on tuples of one shape (the only ones that are ever compared) and on garbage.

use super::{KeyBuilder, KeyReader, TupleError};
use crate::Key;
use proptest::prelude::*;

/// A shape is a list of kinds; a tuple of that shape is a list of elements of these kinds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Element {
    U64(u64),
    Bytes(Vec<u8>),
    Str(String),
    Raw([u8; 3]),
    Tag(u8),
}

fn build(prefix: &[u8], elements: &[Element]) -> KeyBuilder {
    elements.iter().fold(KeyBuilder::new(prefix), |builder, element| match element {
        Element::U64(v) => builder.u64(*v),
        Element::Bytes(v) => builder.bytes(v),
        Element::Str(v) => builder.str(v),
        Element::Raw(v) => builder.raw(v),
        Element::Tag(v) => builder.tag(*v),
    })
}

/// Reads a tuple with the shape of `like`.
fn read(reader: &mut KeyReader<'_>, like: &[Element]) -> Result<Vec<Element>, TupleError> {
    like.iter()
        .map(|element| {
            Ok(match element {
                Element::U64(_) => Element::U64(reader.u64()?),
                Element::Bytes(_) => Element::Bytes(reader.bytes()?),
                Element::Str(_) => Element::Str(reader.str()?),
                Element::Raw(_) => Element::Raw(reader.raw()?),
                Element::Tag(_) => Element::Tag(reader.tag()?),
            })
        })
        .collect()
}

/// Bytes that make trouble far more often than chance would.
fn byte() -> impl Strategy<Value = u8> {
    prop_oneof![Just(0u8), Just(1), Just(2), Just(0xFE), Just(0xFF), any::<u8>()]
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0u64..4, (0u32..64).prop_map(|bit| 1 << bit), (0u32..64).prop_map(|bit| (1 << bit) - 1)]
}

fn element(kind: u8) -> BoxedStrategy<Element> {
    match kind {
        0 => number().prop_map(Element::U64).boxed(),
        1 => prop::collection::vec(byte(), 0..5).prop_map(Element::Bytes).boxed(),
        2 => "[\\x00\\x01\\x02a-c\u{7f}\u{ff}\u{10ffff}]{0,4}".prop_map(Element::Str).boxed(),
        3 => [byte(), byte(), byte()].prop_map(Element::Raw).boxed(),
        _ => byte().prop_map(Element::Tag).boxed(),
    }
}

fn tuple(shape: &[u8]) -> Vec<BoxedStrategy<Element>> {
    shape.iter().map(|kind| element(*kind)).collect()
}

fn shape() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0u8..5, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn order_of_keys_is_order_of_tuples((a, b) in shape().prop_flat_map(|s| (tuple(&s), tuple(&s)))) {
        prop_assert_eq!(build(b"p", &a).key().cmp(&build(b"p", &b).key()), a.cmp(&b));
    }

    #[test]
    fn reading_returns_what_was_built(prefix in prop::collection::vec(byte(), 0..4), t in shape().prop_flat_map(|s| tuple(&s))) {
        let key = build(&prefix, &t).key();
        let mut reader = KeyReader::new(key.as_bytes());
        reader.strip(&prefix)?;
        prop_assert_eq!(read(&mut reader, &t)?, t);
        reader.end()?;
    }

    #[test]
    fn no_tuple_is_a_prefix_of_another_of_its_shape((a, b) in shape().prop_flat_map(|s| (tuple(&s), tuple(&s)))) {
        let (key_a, key_b) = (build(b"", &a), build(b"", &b));
        prop_assert_eq!(key_b.as_bytes().starts_with(key_a.as_bytes()), a == b);
    }

    #[test]
    fn any_bytes_give_an_element_or_an_error_and_have_one_encoding(
        bytes in prop::collection::vec(byte(), 0..12),
        like in shape().prop_flat_map(|s| tuple(&s)),
    ) {
        let mut reader = KeyReader::new(&bytes);
        if let Ok(elements) = read(&mut reader, &like) && reader.end().is_ok() {
            prop_assert_eq!(build(b"", &elements).key(), Key::from(bytes));
        }
    }

    #[test]
    fn range_holds_exactly_the_extensions(
        start in prop::collection::vec(byte(), 0..4),
        other in prop::collection::vec(byte(), 0..6),
    ) {
        let range = KeyBuilder::new(&start).range();
        prop_assert_eq!(range.contains(&Key::from(&other[..])), other.starts_with(&start));
        prop_assert!(range.contains(&KeyBuilder::new(&start).raw(&other).key()));
    }

    #[test]
    fn range_of_a_tuple_holds_exactly_the_tuples_that_begin_with_it(
        (head, tail, other) in (shape(), shape()).prop_flat_map(|(h, t)| (tuple(&h), tuple(&t), tuple(&[h, t].concat()))),
    ) {
        let range = build(b"p", &head).range();
        prop_assert_eq!(range.contains(&build(b"p", &other).key()), other.starts_with(&head));
        prop_assert!(range.contains(&build(b"p", &[head, tail].concat()).key()));
    }
}

#[test]
fn numbers_are_short() {
    for (v, bytes) in [
        (0u64, &[0u8][..]),
        (1, &[1, 1]),
        (255, &[1, 255]),
        (256, &[2, 1, 0]),
        (u64::MAX, &[8, 255, 255, 255, 255, 255, 255, 255, 255]),
    ] {
        assert_eq!(KeyBuilder::new(b"").u64(v).as_bytes(), bytes);
    }
}

#[test]
fn bytes_are_escaped_and_ended() {
    assert_eq!(KeyBuilder::new(b"\0").bytes(b"a\0\x01\x02\xFF").as_bytes(), b"\0a\x01\x01\x01\x02\x02\xFF\0");
    assert_eq!(KeyBuilder::new(b"").str("").as_bytes(), b"\0");
}

#[test]
fn elements_do_not_run_into_each_other() {
    let joined = |a: &[u8], b: &[u8]| KeyBuilder::new(b"").bytes(a).bytes(b).key();
    assert!(joined(b"a", b"bc") < joined(b"ab", b"c"));
    assert_ne!(joined(b"", b"\xFF"), KeyBuilder::new(b"").bytes(b"\0").key());
    assert_ne!(KeyBuilder::new(b"").bytes(b"").tag(0xFF).tag(0).key(), KeyBuilder::new(b"").bytes(b"\0").key());
}

#[test]
fn each_fault_has_its_error_and_place() {
    let reader = KeyReader::new;
    assert_eq!(reader(b"").u64(), Err(TupleError::UnexpectedEnd { at: 0 }));
    assert_eq!(reader(b"\x02a").u64(), Err(TupleError::UnexpectedEnd { at: 2 }));
    assert_eq!(reader(b"\x09aaaaaaaaa").u64(), Err(TupleError::NotANumber { at: 0 }));
    assert_eq!(reader(b"\x01\x00").u64(), Err(TupleError::NotANumber { at: 0 }));
    assert_eq!(reader(b"abc").bytes(), Err(TupleError::UnexpectedEnd { at: 3 }));
    assert_eq!(reader(b"a\x01").bytes(), Err(TupleError::UnexpectedEnd { at: 2 }));
    assert_eq!(reader(b"a\x01\x03\x00").bytes(), Err(TupleError::BadEscape { at: 1 }));
    assert_eq!(reader(b"\xFF\x00").str(), Err(TupleError::NotUtf8 { at: 0 }));
    assert_eq!(reader(b"ab").raw::<3>(), Err(TupleError::UnexpectedEnd { at: 2 }));
    assert_eq!(reader(b"ab").strip(b"ac"), Err(TupleError::OtherPrefix { at: 0 }));
    assert_eq!(reader(b"ab").strip(b"abc"), Err(TupleError::OtherPrefix { at: 0 }));
    assert_eq!(reader(b"ab").end(), Err(TupleError::TrailingBytes { at: 0 }));
}
