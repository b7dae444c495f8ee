//! What went wrong with a call, in upstream's words where it has some for it.

use std::io::ErrorKind;

use admission::webhook::CallError;
use client::{ClientError, TransportError};

/// A call that failed before there was an answer.
pub(super) fn of_post(url: &str, why: &str) -> CallError {
    CallError::Call { text: format!("Post {url:?}: {why}"), code: None }
}

/// A call that failed.
pub(super) fn of_call(url: &str, error: &ClientError) -> CallError {
    match error {
        ClientError::Api(answer) => CallError::Call { text: answer.message.clone(), code: Some(answer.code) },
        ClientError::Timeout { .. } => of_post(url, "context deadline exceeded"),
        ClientError::Transport { source, .. } => of_post(url, &transport(source)),
        other => CallError::Call { text: other.to_string(), code: None },
    }
}

fn transport(error: &TransportError) -> String {
    match error {
        TransportError::Dial { address, source } => {
            let why = match source.kind() {
                ErrorKind::ConnectionRefused => "connection refused".to_owned(),
                ErrorKind::HostUnreachable => "no route to host".to_owned(),
                ErrorKind::NetworkUnreachable => "network is unreachable".to_owned(),
                ErrorKind::ConnectionReset => "connection reset by peer".to_owned(),
                _ => source.to_string(),
            };
            format!("dial tcp {address}: connect: {why}")
        }
        other => other.to_string(),
    }
}
