//! Lists, objects and errors in both encodings, and watches cut at every byte.

use api_machinery::protobuf::Encoder;
use api_types::core_v1::Pod;
use component_base::serving;
use http::HeaderValue;
use http_body_util::BodyExt as _;

use super::*;
use crate::resource::{ResourceInfo, downcast};
use crate::watch::{RawEvent, RawWatch, WatchEvent};

fn pod(name: &str) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.name = name.to_owned();
    pod.metadata.resource_version = "7".to_owned();
    pod
}

fn names(codec: &Codec, body: Vec<u8>) -> (String, Vec<String>) {
    let list = decode_list(codec, &Bytes::from(body)).unwrap();
    let names = list.items.iter().map(|item| item.meta().name.clone()).collect();
    (list.metadata.resource_version, names)
}

#[test]
fn lists_are_read_from_both_encodings() {
    let wire = protobuf::seal("v1", "PodList", |out: &mut Encoder| {
        out.message(2, |out| out.members(&pod("b")));
        out.message(2, |out| out.members(&pod("a")));
        out.message(1, |out| out.bytes(2, b"9"));
    });
    let text = br#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},
        "items":[{"metadata":{"name":"a"},"spec":{"containers":[]}},{"metadata":{"name":"b"}}]}"#;
    let expected = ("9".to_owned(), vec!["a".to_owned(), "b".to_owned()]);
    let info = ResourceInfo::of::<Pod>();
    assert_eq!(names(&Codec::typed::<Pod>(), wire.clone()), expected);
    assert_eq!(names(&Codec::typed::<Pod>(), text.to_vec()), expected);
    assert_eq!(names(&Codec::metadata(&info), wire), expected);
    assert_eq!(names(&Codec::metadata(&info), text.to_vec()), expected);
    assert_eq!(names(&Codec::unstructured(&info), text.to_vec()), expected);
    let free = decode_list(&Codec::unstructured(&info), &Bytes::from_static(text)).unwrap();
    assert_eq!((free.items[0].kind(), free.items[0].api_version().as_str()), ("Pod", "v1"));
    let table = Bytes::from_static(br#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[]}"#);
    assert!(decode_list(&Codec::typed::<Pod>(), &table).is_err());
}

#[test]
fn errors_are_read_from_both_encodings() {
    let status = Status { status: "Failure".into(), reason: "NotFound".into(), code: 404, ..Status::default() };
    let wire = protobuf::seal("v1", "Status", |out: &mut Encoder| out.members(&status));
    let text = json::encode_typed("Status", "v1", &status);
    for (media_type, body) in [(PROTOBUF, wire), (JSON, text.into_bytes())] {
        assert!(decode_status(media_type, &body).unwrap().is_not_found());
    }
    assert!(decode_status("text/plain", b"404 page not found").is_none());
    assert!(decode_status(JSON, br#"{"kind":"Pod"}"#).is_none());
}

/// A body that comes in pieces of `size` bytes.
fn pieces(content: &[u8], size: usize) -> serving::Body {
    let frames: Vec<_> =
        content.chunks(size).map(|piece| Ok(http_body::Frame::data(Bytes::copy_from_slice(piece)))).collect();
    http_body_util::StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync()
}

fn response(media_type: &'static str, body: serving::Body) -> http::Response<serving::Body> {
    let mut response = http::Response::new(body);
    response.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

fn wire_event(kind: &str, object: &[u8]) -> Vec<u8> {
    let mut out = Encoder::default();
    out.message(2, |out| out.bytes(1, object));
    out.bytes(1, kind.as_bytes());
    let event = out.into_vec();
    let mut frame = u32::try_from(event.len()).unwrap().to_be_bytes().to_vec();
    frame.extend(event);
    frame
}

async fn read(response: http::Response<serving::Body>) -> Vec<String> {
    let mut watch = RawWatch::new(response, Codec::typed::<Pod>()).unwrap();
    let mut seen = Vec::new();
    while let Some(event) = watch.next().await {
        let event: RawEvent = match event {
            Ok(event) => event,
            Err(error) => {
                seen.push(error.to_string());
                continue;
            }
        };
        let name = |object: Box<dyn Object>| downcast::<Pod>(object).unwrap().metadata.name;
        seen.push(match event {
            WatchEvent::Added(object) => format!("+{}", name(object)),
            WatchEvent::Modified(object) => format!("~{}", name(object)),
            WatchEvent::Deleted(object) => format!("-{}", name(object)),
            WatchEvent::Bookmark { resource_version, initial_events_end } => {
                format!("@{resource_version} {initial_events_end}")
            }
            WatchEvent::Error(error) => format!("!{}", error.code),
        });
    }
    seen
}

#[tokio::test]
async fn watches_are_cut_into_events_wherever_the_pieces_end() {
    let object = |name| (&pod(name) as &dyn Object).to_protobuf();
    let status = Status { status: "Failure".into(), reason: "Expired".into(), code: 410, ..Status::default() };
    let status = protobuf::seal("v1", "Status", |out: &mut Encoder| out.members(&status));
    let parts = [("ADDED", object("a")), ("MODIFIED", object("b")), ("BOOKMARK", object("")), ("ERROR", status)];
    let wire: Vec<u8> = parts.iter().flat_map(|(kind, object)| wire_event(kind, object)).collect();
    let text = br#"{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"a"}}}

{"type":"MODIFIED","object":{"metadata":{"name":"b"}}}
{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}
{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":410}}
"#;
    let expected = ["+a", "~b", "@7 false", "!410"];
    for size in [1, 2, 3, 7, 64, 4096] {
        let watch = response("application/vnd.kubernetes.protobuf;stream=watch", pieces(&wire, size));
        assert_eq!(read(watch).await, expected, "protobuf in pieces of {size}");
        let watch = response("application/json;stream=watch", pieces(text, size));
        assert_eq!(read(watch).await, expected, "JSON in pieces of {size}");
    }
}

#[tokio::test]
async fn broken_watches_end_with_an_error() {
    let cut = response(JSON, pieces(br#"{"type":"ADDED","obj"#, 100));
    assert!(read(cut).await[0].contains("unexpected EOF"));
    let huge = response(PROTOBUF, pieces(&[0xff, 0xff, 0xff, 0xff, 0], 100));
    assert!(read(huge).await[0].contains("too large"));
    let unknown = response(JSON, pieces(b"{\"type\":\"WHAT\",\"object\":{}}\n", 100));
    assert!(read(unknown).await[0].contains("invalid watch event type"));
    assert!(RawWatch::new(response("text/html", serving::empty()), Codec::typed::<Pod>()).is_err());
}
