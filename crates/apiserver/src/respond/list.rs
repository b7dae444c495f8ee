//! Lists as responses. Items are sent from the bytes that they share with get and watch.

use api_machinery::json as codec;
use api_machinery::meta::ListMeta;
use api_machinery::protobuf;
use api_machinery::status::ApiError;
use api_machinery::value::Value;
use bytes::Bytes;
use component_base::serving::Response;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt as _;
use registry::List;

use super::chunks::Chunks;
use super::document::{json_document, protobuf_document};
use super::projection::{metadata_json, metadata_message};
use super::resource::Shown;
use crate::negotiate::{MediaType, Target};
use crate::table;

/// Lists from this size on are sent while they are put together, unless they must be compressed or rewritten.
const STREAMED_BYTES: u64 = 256 * 1024;

/// A list of a resource.
///
/// # Errors
/// 406 when the client wants the metadata of one object.
pub(crate) fn list(shown: &Shown<'_>, list: &List) -> Result<Response, ApiError> {
    let meta = ListMeta {
        resource_version: list.revision.to_string(),
        continue_: list.continue_token.clone(),
        remaining_item_count: list.remaining_item_count,
        ..ListMeta::default()
    };
    let (kind, api_version) = (shown.list_kind.as_str(), shown.api_version());
    let is_protobuf = shown.choice.media == MediaType::Protobuf;
    let pieces = match &shown.choice.target {
        Target::Table(version) => {
            let table = table::of_list(shown, list, meta, version);
            return Ok(json_document(shown.wish, &shown.choice, StatusCode::OK, table.into()));
        }
        Target::Metadata(_) => {
            return Err(ApiError::not_acceptable(format!(
                "you requested PartialObjectMetadata, but the requested object is a list ({})",
                shown.type_name(kind)
            )));
        }
        Target::Object if is_protobuf => {
            protobuf_list(kind, &api_version, &meta, list.items.iter().map(|item| item.protobuf_item()))
        }
        Target::Object => json_list(kind, &api_version, &meta, list.items.iter().map(|item| item.json_item())),
        Target::MetadataList(version) => {
            let api_version = format!("meta.k8s.io/{version}");
            let kind = "PartialObjectMetadataList";
            if is_protobuf {
                let items = list.items.iter().map(|item| Bytes::from(metadata_message(item.object())));
                protobuf_list(kind, &api_version, &meta, items)
            } else {
                let items = list.items.iter().map(|item| Bytes::from(metadata_json(item.object(), version)));
                json_list(kind, &api_version, &meta, items)
            }
        }
    };
    Ok(send(shown, pieces))
}

fn send(shown: &Shown<'_>, pieces: Chunks) -> Response {
    let as_is =
        shown.choice.media == MediaType::Protobuf || (shown.choice.media == MediaType::Json && !shown.choice.pretty);
    if as_is && !shown.wish.gzip && pieces.len() >= STREAMED_BYTES {
        let mut response = Response::new(pieces.boxed_unsync());
        response.headers_mut().insert(CONTENT_TYPE, shown.choice.media.header());
        return response;
    }
    let content = pieces.join();
    if shown.choice.media == MediaType::Protobuf {
        return protobuf_document(shown.wish, StatusCode::OK, content);
    }
    json_document(shown.wish, &shown.choice, StatusCode::OK, content)
}

fn json_list(kind: &str, api_version: &str, meta: &ListMeta, items: impl Iterator<Item = Bytes>) -> Chunks {
    let quoted = |text: &str| codec::encode_value(&Value::from(text));
    let head = format!(
        "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{},\"items\":[",
        quoted(kind),
        quoted(api_version),
        codec::encode(meta)
    );
    let mut pieces = Chunks::default();
    pieces.push(head);
    for (index, item) in items.enumerate() {
        if index > 0 {
            pieces.push(Bytes::from_static(b","));
        }
        pieces.push(item);
    }
    pieces.push(Bytes::from_static(b"]}\n"));
    pieces
}

/// Field numbers of every list: its metadata is 1, its items are 2.
fn protobuf_list(kind: &str, api_version: &str, meta: &ListMeta, items: impl Iterator<Item = Bytes>) -> Chunks {
    let mut body = Chunks::default();
    let meta = protobuf::encode(meta);
    body.push(header(1, meta.len()));
    body.push(meta);
    for item in items {
        body.push(header(2, item.len()));
        body.push(item);
    }
    // The envelope around an empty body, opened where the body goes: its length and what follows it.
    let mut type_meta = Vec::new();
    for (number, text) in [(1, api_version), (2, kind)] {
        type_meta.extend(header(number, text.len()));
        type_meta.extend(text.as_bytes());
    }
    let mut pieces = Chunks::default();
    pieces.push(Bytes::from_static(protobuf::MAGIC));
    pieces.push(header(1, type_meta.len()));
    pieces.push(type_meta);
    pieces.push(header(2, usize::try_from(body.len()).unwrap_or(usize::MAX)));
    pieces.append(body);
    pieces.push([header(3, 0), header(4, 0)].concat());
    pieces
}

/// The tag of a length-delimited field and the length.
fn header(number: u8, length: usize) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut rest = length;
    loop {
        let low = u8::try_from(rest & 0x7f).unwrap_or(0);
        rest >>= 7;
        if rest == 0 {
            out.push(low);
            return out;
        }
        out.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::object::Object as _;
    use api_types::core_v1::ConfigMap;

    use super::*;

    #[test]
    fn protobuf_lists_open_as_envelopes() {
        let mut map = ConfigMap::default();
        map.meta_mut().name = "x".repeat(300);
        let item = Bytes::from(protobuf::encode(&map));
        let list = protobuf_list("ConfigMapList", "v1", &ListMeta::default(), [item.clone(), item.clone()].into_iter());
        let bytes = list.join();
        let envelope = protobuf::open(&bytes).unwrap();
        assert_eq!((envelope.kind.as_str(), envelope.api_version.as_str()), ("ConfigMapList", "v1"));
        let mut decoder = protobuf::Decoder::new(envelope.raw);
        let mut items = 0;
        while let Some((number, value)) = decoder.next().unwrap() {
            if number == 2 {
                assert_eq!(value.bytes().unwrap(), item);
                items += 1;
            }
        }
        assert_eq!(items, 2);
    }

    #[test]
    fn json_lists_are_never_null() {
        let empty = json_list("PodList", "v1", &ListMeta::default(), std::iter::empty()).join();
        assert_eq!(empty, "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[]}\n");
    }
}
