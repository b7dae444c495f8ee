//! gRPC health checks (`grpc.health.v1.Health/Check`), with the two tiny messages written out by hand.

use std::time::Duration;

use base::host_and_port;
use bytes::{BufMut as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use node_api::cri::{Code, CriError};

use super::dial::{DialError, dial};
use crate::runtime::text::go_duration;

/// An answer is one byte of status in a short message.
const MESSAGE_LIMIT_BYTES: usize = 4096;
const UNIMPLEMENTED: &str = "12";
/// `HealthCheckResponse.ServingStatus` of a service that is well.
const SERVING: u64 = 1;

/// Why a service is not healthy: the probe's output, in upstream's words.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GrpcError {
    #[error("error: failed to connect service at {address:?}: {source}")]
    Connect { address: String, source: DialError },
    #[error("timeout: failed to connect service {address:?} within {}: context deadline exceeded", go_duration(*.limit))]
    ConnectLate { address: String, limit: Duration },
    #[error("timeout: health rpc did not complete within {}", go_duration(*.limit))]
    AnswerLate { limit: Duration },
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("service unhealthy (responded with {:?})", status_name(*.status))]
    Unhealthy { status: u64 },
}

/// Why a service does not say how it is.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {0}")]
    Unimplemented(String),
    #[error("error: health rpc probe failed: {0}")]
    Refused(CriError),
    #[error("error: health rpc probe failed: {0}")]
    Exchange(#[from] hyper::Error),
    #[error("error: health rpc probe failed: {0}")]
    Message(#[from] http::Error),
    #[error("error: health rpc probe failed: the answer is too large")]
    TooLarge,
}

/// Asks `host:port` for the health of `service`.
pub(super) async fn check(host: &str, port: u16, service: &str, limit: Duration) -> Result<(), GrpcError> {
    let address = host_and_port(host, port);
    let deadline = tokio::time::Instant::now() + limit;
    let stream = match tokio::time::timeout_at(deadline, dial(host, port)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(source)) => return Err(GrpcError::Connect { address, source }),
        Err(_) => return Err(GrpcError::ConnectLate { address, limit }),
    };
    let answered = tokio::time::timeout_at(deadline, call(stream, &address, service)).await;
    match answered.map_err(|_| GrpcError::AnswerLate { limit })?? {
        SERVING => Ok(()),
        status => Err(GrpcError::Unhealthy { status }),
    }
}

fn status_name(status: u64) -> String {
    match status {
        0 => "UNKNOWN".to_owned(),
        2 => "NOT_SERVING".to_owned(),
        3 => "SERVICE_UNKNOWN".to_owned(),
        other => other.to_string(),
    }
}

async fn call(stream: tokio::net::TcpStream, address: &str, service: &str) -> Result<u64, CallError> {
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    let request = http::Request::post(format!("http://{address}/grpc.health.v1.Health/Check"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("user-agent", "kube-probe/1.36")
        .body(Full::new(request_message(service)))?;
    let asking = async {
        let response = sender.send_request(request).await?;
        let (parts, mut body) = response.into_parts();
        let (mut data, mut trailers) = (BytesMut::new(), parts.headers);
        while let Some(frame) = body.frame().await {
            match frame?.into_data() {
                Ok(more) if data.len() + more.len() <= MESSAGE_LIMIT_BYTES => data.extend_from_slice(&more),
                Ok(_) => return Err(CallError::TooLarge),
                Err(frame) => trailers.extend(frame.into_trailers().unwrap_or_default()),
            }
        }
        let text = |name: &str| trailers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        match text("grpc-status").as_str() {
            "0" => Ok(answer_status(&data)),
            UNIMPLEMENTED => Err(CallError::Unimplemented(text("grpc-message"))),
            code => {
                let code = Code::from_bytes(code.as_bytes());
                Err(CallError::Refused(CriError::rpc("health_check", code, text("grpc-message"))))
            }
        }
    };
    tokio::pin!(asking);
    tokio::pin!(connection);
    tokio::select! {
        answer = &mut asking => answer,
        _ = &mut connection => asking.await,
    }
}

/// `HealthCheckRequest { string service = 1; }` in its frame. Services have short names, so lengths take one byte each
/// up to 127 and two above.
fn request_message(service: &str) -> Bytes {
    let mut message = BytesMut::new();
    if !service.is_empty() {
        message.put_u8(0x0a);
        put_varint(&mut message, service.len() as u64);
        message.put_slice(service.as_bytes());
    }
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    frame.put(message);
    frame.freeze()
}

fn put_varint(out: &mut BytesMut, mut value: u64) {
    while value >= 0x80 {
        out.put_u8(u8::try_from(value & 0x7f).unwrap_or(0) | 0x80);
        value >>= 7;
    }
    out.put_u8(u8::try_from(value).unwrap_or(0));
}

/// Field 1 of `HealthCheckResponse`, 0 where it is absent. Other fields are not defined.
fn answer_status(frame: &[u8]) -> u64 {
    let message = frame.get(5..).unwrap_or_default();
    let Some((0x08, rest)) = message.split_first().map(|(tag, rest)| (*tag, rest)) else { return 0 };
    rest.iter().take(2).enumerate().fold(0, |value, (at, byte)| value | (u64::from(byte & 0x7f) << (7 * at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_those_of_the_protocol() {
        assert_eq!(request_message("").as_ref(), [0, 0, 0, 0, 0]);
        assert_eq!(request_message("ab").as_ref(), [0, 0, 0, 0, 4, 0x0a, 2, b'a', b'b']);
        assert_eq!(answer_status(&[0, 0, 0, 0, 2, 8, 1]), 1);
        assert_eq!(answer_status(&[0, 0, 0, 0, 0]), 0);
        assert_eq!(answer_status(&[]), 0);
    }

    #[tokio::test]
    async fn a_closed_port_is_an_error() {
        let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let error = check("127.0.0.1", port, "", Duration::from_secs(5)).await.unwrap_err().to_string();
        assert!(error.starts_with("error: failed to connect service at \"127.0.0.1:"), "{error}");
    }

    /// Answers one health check with this message and these trailers, over real HTTP/2.
    async fn serve(status: u8, code: &'static str) -> u16 {
        use hyper::service::service_fn;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        #[expect(clippy::disallowed_methods, reason = "a test's own server")]
        let _server = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let service = service_fn(move |request: http::Request<hyper::body::Incoming>| async move {
                assert_eq!(request.uri().path(), "/grpc.health.v1.Health/Check");
                assert_eq!(request.headers()["user-agent"], "kube-probe/1.36");
                let asked = request.into_body().collect().await.unwrap().to_bytes();
                assert_eq!(asked, request_message("web"));
                let trailers = [("grpc-status", code), ("grpc-message", "why")]
                    .into_iter()
                    .map(|(name, value)| (http::HeaderName::from_static(name), http::HeaderValue::from_static(value)));
                let data = Bytes::copy_from_slice(&[0, 0, 0, 0, 2, 8, status]);
                let body = Full::new(data).with_trailers(std::future::ready(Some(Ok(trailers.collect()))));
                let answer = http::Response::builder().header("content-type", "application/grpc").body(body);
                Ok::<_, std::convert::Infallible>(answer.unwrap())
            });
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            // The client goes away first.
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
        });
        port
    }

    #[tokio::test]
    async fn services_are_healthy_or_not() {
        for (status, code, expected) in [
            (1, "0", Ok(())),
            (2, "0", Err("service unhealthy (responded with \"NOT_SERVING\")")),
            (
                0,
                "12",
                Err("error: this server does not implement the grpc health protocol (grpc.health.v1.Health): why"),
            ),
            (0, "5", Err("error: health rpc probe failed: rpc error: code = NotFound desc = why")),
            (0, "99", Err("error: health rpc probe failed: rpc error: code = Unknown desc = why")),
        ] {
            let port = serve(status, code).await;
            let found = check("127.0.0.1", port, "web", Duration::from_secs(5)).await;
            assert_eq!(found.map_err(|error| error.to_string()), expected.map_err(str::to_owned));
        }
    }
}
