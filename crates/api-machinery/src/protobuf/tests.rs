use proptest::prelude::*;

use super::*;
use crate::intstr::IntOrString;
use crate::meta::{LabelSelector, ObjectMeta, OwnerReference, Status};
use crate::time::Time;

fn sample() -> ObjectMeta {
    ObjectMeta {
        name: "name".into(),
        labels: [("b".to_owned(), "2".to_owned()), ("a".to_owned(), String::new())].into(),
        creation_timestamp: Time::from_unix_seconds(-5),
        deletion_grace_period_seconds: Some(0),
        owner_references: vec![OwnerReference { uid: "u".into(), ..OwnerReference::default() }],
        ..ObjectMeta::default()
    }
}

#[test]
fn scalars_are_written_even_when_zero_and_pointers_only_when_set() {
    let empty = encode(&LabelSelector::default());
    assert_eq!(empty, Vec::<u8>::new(), "lists and maps of nothing are nothing");
    let status = encode(&Status::default());
    // metadata {selfLink "" resourceVersion "" continue ""}, status "", message "", reason "", code 0.
    assert_eq!(status, [10, 6, 10, 0, 18, 0, 26, 0, 18, 0, 26, 0, 34, 0, 48, 0]);
}

#[test]
fn messages_read_back() {
    let (meta, mut back) = (sample(), ObjectMeta::default());
    decode(&encode(&meta), &mut back).unwrap();
    assert_eq!(meta, back);
}

#[test]
fn unknown_fields_are_passed_over() {
    let mut bytes = encode(&sample());
    let mut extra = Encoder::default();
    extra.bytes(1000, b"new");
    extra.double(1001, 0.5);
    extra.int(1002, -1);
    bytes.extend(extra.into_vec());
    let mut back = ObjectMeta::default();
    decode(&bytes, &mut back).unwrap();
    assert_eq!(back, sample());
}

#[test]
fn leaves_have_their_own_messages() {
    use crate::leaf::Leaf as _;

    for value in [IntOrString::Int(-7), IntOrString::Str("50%".into()), IntOrString::Int(0)] {
        let mut out = Encoder::default();
        value.write_wire(&mut out);
        let (bytes, mut back) = (out.into_vec(), IntOrString::default());
        back.read_wire(&mut Decoder::new(&bytes)).unwrap();
        assert_eq!(back, value);
    }
}

#[test]
fn envelopes_open_and_close() {
    let sealed = seal("apps/v1", "Deployment", |out| out.members(&sample()));
    assert!(is_enveloped(&sealed));
    let envelope = open(&sealed).unwrap();
    assert_eq!((envelope.api_version.as_str(), envelope.kind.as_str()), ("apps/v1", "Deployment"));
    assert_eq!(envelope.raw, encode(&sample()));
    assert_eq!(open(b"").unwrap_err(), WireError::Empty);
    assert_eq!(
        open(b"{}").unwrap_err().to_string(),
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    );
}

#[test]
fn hostile_lengths_are_refused() {
    for bytes in [
        &[10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f][..],
        &[10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[10, 5, 1],
        &[0, 1],
        &[11],
        &[8, 1],
    ] {
        assert!(decode(bytes, &mut ObjectMeta::default()).is_err(), "{bytes:?}");
    }
}

proptest! {
    #[test]
    fn no_input_is_fatal(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes, &mut ObjectMeta::default());
        let _ = decode(&bytes, &mut Status::default());
        let _ = open(&bytes);
    }

    #[test]
    fn cut_messages_are_refused_or_shorter(cut in 0_usize..60) {
        let bytes = encode(&sample());
        let mut back = ObjectMeta::default();
        if let Some(part) = bytes.get(..cut).filter(|part| part.len() < bytes.len()) {
            prop_assert!(decode(part, &mut back).is_err() || back != sample());
        }
    }
}
