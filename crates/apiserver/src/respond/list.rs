//! Lists as responses. Items are sent from the bytes that they share with get and watch.

use api_machinery::cbor;
use api_machinery::json as codec;
use api_machinery::meta::{ListMeta, ShardInfo};
use api_machinery::protobuf;
use api_machinery::status::ApiError;
use api_machinery::value::Value;
use bytes::Bytes;
use component_base::serving::{Response, full};
use http::StatusCode;
use http_body_util::BodyExt as _;
use registry::List;
use watch_cache::{Pace, Stored};

use super::chunks::Chunks;
use super::document::{cbor_document, rewritten, sent};
use super::projection::{metadata_json, metadata_message};
use super::rendering::Rendering;
use super::table;
use crate::negotiate::{MediaType, Target};

/// Lists from this size on are sent, and compressed, while they are put together; others in one piece.
const STREAMED_BYTES: u64 = 256 * 1024;

const METADATA_LIST: &str = "PartialObjectMetadataList";

/// A list of a resource. However long it is, others get their turns while it is put together.
///
/// # Errors
/// 406 when the client wants the metadata of one object.
pub(crate) async fn list(rendering: &Rendering<'_>, list: &List) -> Result<Response, ApiError> {
    let meta = ListMeta {
        resource_version: list.revision.to_string(),
        continue_: list.continue_token.clone(),
        remaining_item_count: list.remaining_item_count,
        shard_info: (!list.shards.is_empty()).then(|| ShardInfo { selector: list.shards.clone() }),
        ..ListMeta::default()
    };
    note(rendering, list, &meta).await;
    let (kind, api_version) = (rendering.list_kind.as_str(), rendering.api_version());
    let is_protobuf = rendering.choice.media == MediaType::Protobuf;
    let pieces = match &rendering.choice.target {
        Target::Metadata(_) => {
            return Err(ApiError::not_acceptable(format!(
                "you requested PartialObjectMetadata, but the requested object is a list ({})",
                rendering.type_name(kind)
            )));
        }
        Target::Object if is_protobuf => {
            let items = encoded(list, Stored::protobuf_item).await;
            protobuf_list(kind, &api_version, &meta, items)
        }
        Target::Object if rendering.choice.media == MediaType::Cbor => {
            let items = encoded(list, |item| cbor::encode(item.object().as_reflect()).into()).await;
            return Ok(cbor_document(
                rendering.preferences,
                StatusCode::OK,
                cbor_list(kind, &api_version, &meta, &items),
            ));
        }
        Target::MetadataList(version) if is_protobuf => {
            let items = encoded(list, |item| metadata_message(item.object()).into()).await;
            protobuf_list(METADATA_LIST, &format!("meta.k8s.io/{version}"), &meta, items)
        }
        _ => json_pieces(rendering, list, &meta).await,
    };
    send(rendering, pieces).await
}

/// The list as JSON, projected as the client wants it.
async fn json_pieces(rendering: &Rendering<'_>, list: &List, meta: &ListMeta) -> Chunks {
    match &rendering.choice.target {
        Target::Table(version) => table::of_list(rendering, list, meta.clone(), version).await,
        Target::MetadataList(version) => {
            let items = encoded(list, |item| metadata_json(item.object(), version).into()).await;
            json_list(METADATA_LIST, &format!("meta.k8s.io/{version}"), &codec::encode(meta), items)
        }
        Target::Object | Target::Metadata(_) => {
            let text = if rendering.is_custom() { custom_list_meta(meta) } else { codec::encode(meta) };
            json_list(&rendering.list_kind, &rendering.api_version(), &text, encoded(list, Stored::json_item).await)
        }
    }
}

/// Notes the list for the audit log, where that is wanted.
async fn note(rendering: &Rendering<'_>, list: &List, meta: &ListMeta) {
    let audit = rendering.preferences.audit();
    if !audit.wants_answer() || matches!(rendering.choice.target, Target::Metadata(_)) {
        return;
    }
    let pieces = json_pieces(rendering, list, meta).await;
    if pieces.len() > audit::MAX_OBJECT_BYTES as u64 {
        audit.answer_left_out();
    } else if pieces.len() < STREAMED_BYTES {
        audit.answer(|| pieces.join());
    } else {
        let audit = audit.clone();
        if let Err(error) = tokio::task::spawn_blocking(move || audit.answer(|| pieces.join())).await {
            tracing::error!(%error, "A list could not be noted for the audit log");
        }
    }
}

/// The items in a form.
async fn encoded(list: &List, encode: impl Fn(&Stored) -> Bytes + Send) -> Vec<Bytes> {
    let (mut items, mut pace) = (Vec::with_capacity(list.items.len()), Pace::default());
    for item in &list.items {
        items.push(encode(item));
        pace.after(Pace::CODED).await;
    }
    items
}

async fn send(rendering: &Rendering<'_>, pieces: Chunks) -> Result<Response, ApiError> {
    let (preferences, media, pretty) = (rendering.preferences, rendering.choice.media, rendering.choice.pretty);
    let (length, as_is) = (pieces.len(), media == MediaType::Protobuf || (media == MediaType::Json && !pretty));
    if as_is && length >= STREAMED_BYTES {
        return Ok(sent(preferences, StatusCode::OK, media, pieces.boxed_unsync(), length));
    }
    if length >= STREAMED_BYTES {
        // Only people ask for this form, but they do ask for all of a large cluster.
        let content = tokio::task::spawn_blocking(move || rewritten(media, pretty, pieces.join())).await;
        let content = content.map_err(ApiError::internal)?;
        let length = u64::try_from(content.len()).unwrap_or(u64::MAX);
        return Ok(sent(preferences, StatusCode::OK, media, full(content), length));
    }
    let content = pieces.join();
    let content = if media == MediaType::Protobuf { content } else { rewritten(media, pretty, content) };
    let length = u64::try_from(content.len()).unwrap_or(u64::MAX);
    Ok(sent(preferences, StatusCode::OK, media, full(content), length))
}

/// The metadata of a list of custom objects: a free-form map, in which the token stands even where there is none.
fn custom_list_meta(meta: &ListMeta) -> String {
    let text = codec::encode(meta);
    match text.strip_prefix('{') {
        Some(rest) if meta.continue_.is_empty() => {
            let comma = if rest == "}" { "" } else { "," };
            format!("{{\"continue\":\"\"{comma}{rest}")
        }
        _ => text,
    }
}

fn json_list(kind: &str, api_version: &str, meta: &str, items: Vec<Bytes>) -> Chunks {
    let quoted = |text: &str| codec::encode_value(&Value::from(text));
    let head =
        format!("{{\"kind\":{},\"apiVersion\":{},\"metadata\":{},\"items\":[", quoted(kind), quoted(api_version), meta);
    let mut pieces = Chunks::default();
    pieces.push(head);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            pieces.push(Bytes::from_static(b","));
        }
        pieces.push(item);
    }
    pieces.push(Bytes::from_static(b"]}\n"));
    pieces
}

fn cbor_list(kind: &str, api_version: &str, meta: &ListMeta, items: &[Bytes]) -> Bytes {
    let mut list = cbor::Members::default();
    list.put_type(kind, api_version);
    list.put("metadata", cbor::encode(meta));
    list.put("items", cbor::array(items));
    list.document().into()
}

/// Field numbers of every list: its metadata is 1, its items are 2.
fn protobuf_list(kind: &str, api_version: &str, meta: &ListMeta, items: Vec<Bytes>) -> Chunks {
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
        let list = protobuf_list("ConfigMapList", "v1", &ListMeta::default(), vec![item.clone(), item.clone()]);
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
        let empty = json_list("PodList", "v1", &codec::encode(&ListMeta::default()), Vec::new()).join();
        assert_eq!(empty, "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[]}\n");
    }
}
