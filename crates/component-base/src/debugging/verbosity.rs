//! `PUT /debug/flags/v`: another verbosity of the log while the process runs.

use http::{Method, StatusCode};
use http_body_util::BodyExt as _;

use crate::logging::Logging;
use crate::serving::{Body, Response, text};

/// The longest body that is read: a verbosity is a small number.
const BODY_BYTES: usize = 1024;
/// How much of what is no number is told back.
const SHOWN_LETTERS: usize = 64;

/// Sets the verbosity to the number in a body.
pub async fn set_verbosity(logging: Option<&Logging>, method: &Method, mut body: Body) -> Response {
    if method != Method::PUT {
        return text(StatusCode::NOT_ACCEPTABLE, "unsupported http method\n");
    }
    let failed = |why: &str| {
        let message = format!("error set flag value: failed set klog.logging.verbosity: {why}\n");
        text(StatusCode::BAD_REQUEST, message)
    };
    let mut content = Vec::new();
    while content.len() < BODY_BYTES
        && let Some(Ok(frame)) = body.frame().await
    {
        content.extend_from_slice(frame.data_ref().map(AsRef::as_ref).unwrap_or_default());
    }
    let content = String::from_utf8_lossy(&content);
    let content = content.trim();
    let Ok(level) = content.parse::<i32>() else {
        let shown: String = content.chars().take(SHOWN_LETTERS).collect();
        return failed(&format!("strconv.ParseInt: parsing {shown:?}: invalid syntax"));
    };
    let Some(logging) = logging else { return failed("the log belongs to another process") };
    logging.set_verbosity(level);
    text(StatusCode::OK, format!("successfully set klog.logging.verbosity to {level}\n"))
}
