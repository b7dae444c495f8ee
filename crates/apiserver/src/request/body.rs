//! Reading request bodies within a limit.

use api_machinery::status::ApiError;
use bytes::{Bytes, BytesMut};
use component_base::serving::Body;
use http_body_util::BodyExt as _;

/// The greatest body of a write, as upstream.
pub(crate) const BODY_LIMIT_BYTES: usize = 3 * 1024 * 1024;

/// Reads a whole body.
///
/// # Errors
/// 413 beyond the limit, 400 when the client stops sending.
pub(crate) async fn read_limited(mut body: Body) -> Result<Bytes, ApiError> {
    let mut out = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| ApiError::bad_request(format!("unable to read the request body: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if out.len() + data.len() > BODY_LIMIT_BYTES {
            return Err(ApiError::request_entity_too_large(format_args!("limit is {BODY_LIMIT_BYTES}")));
        }
        if out.is_empty() && http_body::Body::is_end_stream(&body) {
            return Ok(data);
        }
        out.extend_from_slice(&data);
    }
    Ok(out.freeze())
}

#[cfg(test)]
mod tests {
    use component_base::serving::full;

    use super::*;

    #[tokio::test]
    async fn bodies_are_bounded() {
        assert_eq!(read_limited(full("abc")).await.unwrap(), "abc");
        let error = read_limited(full(vec![b'x'; BODY_LIMIT_BYTES + 1])).await.unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (413, "Request entity too large: limit is 3145728"));
    }
}
