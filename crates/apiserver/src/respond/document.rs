//! One document as a response.

use api_machinery::cbor;
use api_machinery::json as codec;
use api_machinery::meta::Status;
use api_machinery::object::{Object, Unstructured};
use api_machinery::protobuf;
use api_machinery::status::ApiError;
use api_machinery::yaml;
use bytes::Bytes;
use component_base::serving::{Body, Response, compressed, full, text};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER, VARY};
use http::{HeaderValue, StatusCode, Uri};

use super::indent::indent;
use super::status::status_of;
use crate::negotiate::{Choice, MediaType, Offer, Preferences, is_worth_compressing};

/// Any object, in the form that the client wants.
///
/// # Errors
/// 406 when it wants none that there is.
pub(crate) fn object(preferences: &Preferences, status: StatusCode, object: &dyn Object) -> Result<Response, ApiError> {
    let is_custom = object.downcast_ref::<Unstructured>().is_some();
    let choice = preferences.choose(Offer { protobuf: !is_custom, ..Offer::PLAIN })?;
    Ok(match choice.media {
        MediaType::Protobuf => {
            preferences.audit().answer(|| object.to_json().into());
            protobuf_document(preferences, status, object.to_protobuf().into())
        }
        MediaType::Cbor => {
            preferences.audit().answer(|| object.to_json().into());
            cbor_document(preferences, status, object.to_cbor().into())
        }
        MediaType::Json | MediaType::Yaml => json_document(preferences, &choice, status, object.to_json().into()),
    })
}

/// A document that is JSON whatever the client wants, and no object of the API.
#[must_use]
pub(crate) fn json(preferences: &Preferences, status: StatusCode, content: impl Into<Bytes>) -> Response {
    document(preferences, status, MediaType::Json, rewritten(MediaType::Json, false, content.into()))
}

/// A `Status`, of which clients take every form.
pub(crate) fn success(preferences: &Preferences, code: StatusCode, status: &Status) -> Response {
    status_response(preferences, code, status)
}

/// An error as a `Status`, with the header that tells when to come back.
pub(crate) fn error(preferences: &Preferences, error: &ApiError) -> Response {
    let code = StatusCode::from_u16(error.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = status_response(preferences, code, &status_of(error));
    if let Some(seconds) = error.retry_after_seconds() {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn status_response(preferences: &Preferences, code: StatusCode, status: &Status) -> Response {
    let choice = preferences.choose_for_error();
    let json = || Bytes::from(codec::encode_typed("Status", "v1", status));
    preferences.audit().answered(status);
    match choice.media {
        MediaType::Protobuf => {
            preferences.audit().answer(json);
            let sealed = protobuf::seal("v1", "Status", |out| out.members(status));
            protobuf_document(preferences, code, sealed.into())
        }
        _ => json_document(preferences, &choice, code, json()),
    }
}

/// An error from before the API begins: plain text, with what came from the client escaped.
pub(crate) fn plain_error(uri: &Uri, why: &str) -> Response {
    let uri = path_and_query(uri);
    let escape = |raw: &str| raw.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let body = format!("Internal Server Error: {}: {}\n", escape(&format!("{uri:?}")), escape(why));
    text(StatusCode::INTERNAL_SERVER_ERROR, body)
}

/// What was asked for, as in the first line of an HTTP/1.1 request: HTTP/2 adds scheme and host.
pub(crate) fn path_and_query(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str)
}

/// An object as compact JSON, as JSON or YAML.
pub(crate) fn json_document(
    preferences: &Preferences,
    choice: &Choice,
    status: StatusCode,
    compact: Bytes,
) -> Response {
    preferences.audit().answer(|| compact.clone());
    document(preferences, status, choice.media, rewritten(choice.media, choice.pretty, compact))
}

/// Compact JSON in the form that was chosen.
pub(super) fn rewritten(media: MediaType, pretty: bool, compact: Bytes) -> Bytes {
    let text = || String::from_utf8_lossy(&compact).into_owned();
    match media {
        MediaType::Yaml => codec::parse_value(&text()).map(|value| yaml::to_yaml(&value)).unwrap_or_default().into(),
        MediaType::Cbor => cbor_of(&compact),
        _ if pretty => indent(&text()).into(),
        _ if compact.last() == Some(&b'\n') => compact,
        _ => [compact.as_ref(), b"\n"].concat().into(),
    }
}

/// A JSON document as CBOR.
pub(crate) fn cbor_of(json: &[u8]) -> Bytes {
    codec::parse_value(&String::from_utf8_lossy(json))
        .map(|value| cbor::encode_value(&value))
        .unwrap_or_default()
        .into()
}

/// A JSON document, sent as CBOR.
pub(crate) fn cbor_of_json(preferences: &Preferences, status: StatusCode, json: &[u8]) -> Response {
    cbor_document(preferences, status, cbor_of(json))
}

/// CBOR.
pub(crate) fn cbor_document(preferences: &Preferences, status: StatusCode, content: Bytes) -> Response {
    document(preferences, status, MediaType::Cbor, content)
}

/// Enveloped protobuf.
pub(crate) fn protobuf_document(preferences: &Preferences, status: StatusCode, content: Bytes) -> Response {
    document(preferences, status, MediaType::Protobuf, content)
}

fn document(preferences: &Preferences, status: StatusCode, media: MediaType, content: Bytes) -> Response {
    let length = u64::try_from(content.len()).unwrap_or(u64::MAX);
    sent(preferences, status, media, full(content), length)
}

/// A body of so many bytes, compressed where that is worth it and the client takes it.
pub(super) fn sent(
    preferences: &Preferences,
    status: StatusCode,
    media: MediaType,
    body: Body,
    length: u64,
) -> Response {
    let is_compressed = preferences.compresses && is_worth_compressing(length);
    let mut response = Response::new(if is_compressed { compressed(body) } else { body });
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, media.header());
    if is_compressed {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    response
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use http::header::ACCEPT;
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::request::Query;

    async fn sent(accept: &str, query: &str, error: &ApiError) -> (u16, String, String) {
        let headers = HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]);
        let response = super::error(&Preferences::new(&headers, &Query::parse(query)), error);
        let content_type = response.headers()[CONTENT_TYPE].to_str().unwrap().to_owned();
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (code, content_type, String::from_utf8_lossy(&body).into_owned())
    }

    #[tokio::test]
    async fn errors_follow_the_client() {
        let error = ApiError::bad_request("no");
        let (code, kind, body) = sent("application/json", "", &error).await;
        assert_eq!((code, kind.as_str()), (400, "application/json"));
        assert!(body.starts_with("{\"kind\":\"Status\"") && body.ends_with("}\n"), "{body}");
        assert!(sent("application/json", "pretty=1", &error).await.2.starts_with("{\n  \"kind\""));
        assert!(sent("application/yaml", "", &error).await.2.starts_with("apiVersion: v1\ncode: 400\n"));
        assert!(sent("application/vnd.kubernetes.protobuf", "", &error).await.2.starts_with("k8s\0"));
        assert!(sent("text/html", "", &error).await.2.starts_with("{\n"), "what cannot be negotiated is indented");
    }
}
