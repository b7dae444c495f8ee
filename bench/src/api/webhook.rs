//! An admission webhook that allows everything: what a webhook costs is then what asking it costs.

use std::ffi::OsString;

use anyhow::Result;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::bare::{Body, listen};

/// Serves until it is killed. `arguments` are the port and the directory of certificates.
///
/// # Errors
/// Arguments are missing, or the port is taken.
pub async fn serve(arguments: &[OsString]) -> Result<()> {
    let [port, identity] = arguments else { anyhow::bail!("want: PORT CERTIFICATES") };
    listen(port, identity.as_ref(), answer).await
}

async fn answer(request: Request<Incoming>) -> Response<Body> {
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let review = serde_json::from_slice::<Value>(&body).unwrap_or_default();
    let Some(uid) = review["request"]["uid"].as_str() else { return respond(StatusCode::BAD_REQUEST, Bytes::new()) };
    respond(StatusCode::OK, verdict(uid))
}

fn verdict(uid: &str) -> Bytes {
    let verdict = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {"uid": uid, "allowed": true}});
    verdict.to_string().into()
}

fn respond(status: StatusCode, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Full::new(body).boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}
