//! How a command ended, as the error stream carries it.

use serde_json::{Value, json};

use crate::protocol::Protocol;

/// The end of a remote command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandStatus {
    /// It ended well; attachments always do.
    Success,
    /// It ended with a code other than 0.
    Exit {
        /// The exit code.
        code: u8,
        /// The executor's words, usually `command terminated with exit code {n}`.
        text: String,
    },
    /// It could not be run or watched to its end; the text has no `Internal error occurred` prefix.
    Failure(String),
    /// A ready-made API Status object, for refusals that keep their own code.
    Status(Value),
}

/// How much of a Status object is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusForm {
    /// As runtimes write it.
    Short,
    /// As translators write it: with `metadata` and causes.
    Full,
}

/// What is wrong with the bytes of an error stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("error stream protocol error: {0}")]
pub struct ErrorStreamError(String);

impl CommandStatus {
    /// An exit with the usual text; 0 is success.
    #[must_use]
    pub fn exit(code: u8) -> Self {
        match code {
            0 => Self::Success,
            code => Self::Exit { code, text: format!("command terminated with exit code {code}") },
        }
    }

    /// The status code that means the same in HTTP: a command that ran is fine, whatever its exit code.
    #[must_use]
    pub fn http_code(&self) -> u16 {
        match self {
            Self::Success | Self::Exit { .. } => 200,
            Self::Failure(_) => 500,
            Self::Status(status) => {
                let code = status.get("code").and_then(Value::as_u64);
                code.and_then(|code| u16::try_from(code).ok()).unwrap_or(500)
            }
        }
    }

    /// The bytes for the error stream; empty means that nothing is written.
    #[must_use]
    pub fn to_error_stream(&self, protocol: Protocol, form: StatusForm) -> Vec<u8> {
        let status = self.to_status(form);
        if protocol.has_status() {
            return status.to_string().into_bytes();
        }
        match self {
            Self::Success => Vec::new(),
            _ => status.get("message").and_then(Value::as_str).unwrap_or_default().as_bytes().to_vec(),
        }
    }

    fn to_status(&self, form: StatusForm) -> Value {
        let mut status = match self {
            Self::Success => json!({"status": "Success"}),
            Self::Exit { code, text } => json!({
                "status": "Failure",
                "message": format!("command terminated with non-zero exit code: {text}"),
                "reason": "NonZeroExitCode",
                "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
            }),
            Self::Failure(text) => json!({
                "status": "Failure",
                "message": format!("Internal error occurred: {text}"),
                "reason": "InternalError",
                "code": 500,
            }),
            Self::Status(status) => return status.clone(),
        };
        if form == StatusForm::Full {
            status["metadata"] = json!({});
            if let Self::Failure(text) = self {
                status["details"] = json!({"causes": [{"message": text}]});
            }
        }
        status
    }

    /// Reads what a server wrote to the error stream.
    ///
    /// # Errors
    /// When it is not what the protocol allows.
    pub fn from_error_stream(protocol: Protocol, bytes: &[u8]) -> Result<Self, ErrorStreamError> {
        if bytes.is_empty() {
            return Ok(Self::Success);
        }
        let text = String::from_utf8_lossy(bytes);
        if !protocol.has_status() {
            return Ok(Self::Failure(format!("error executing remote command: {text}")));
        }
        let status: Value =
            serde_json::from_slice(bytes).map_err(|error| ErrorStreamError(format!("{error} in {text:?}")))?;
        match status.get("status").and_then(Value::as_str) {
            Some("Success") => Ok(Self::Success),
            Some("Failure") if status.get("reason").and_then(Value::as_str) == Some("NonZeroExitCode") => {
                exit_code(&status)
            }
            Some("Failure") => {
                let message = status.get("message").and_then(Value::as_str).unwrap_or_default();
                Ok(Self::Failure(message.to_owned()))
            }
            _ => Err(ErrorStreamError("unknown error".to_owned())),
        }
    }
}

fn exit_code(status: &Value) -> Result<CommandStatus, ErrorStreamError> {
    let details = status.get("details").ok_or_else(|| ErrorStreamError("details must be set".to_owned()))?;
    let causes = details.get("causes").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let cause = causes.iter().find(|cause| cause.get("reason").and_then(Value::as_str) == Some("ExitCode"));
    let cause = cause.ok_or_else(|| ErrorStreamError("no ExitCode cause given".to_owned()))?;
    let text = cause.get("message").and_then(Value::as_str).unwrap_or_default();
    let code: u8 = text.parse().map_err(|_| ErrorStreamError(format!("invalid exit code value {text:?}")))?;
    Ok(CommandStatus::Exit { code, text: format!("command terminated with exit code {code}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json_of(outcome: &CommandStatus, form: StatusForm) -> Value {
        serde_json::from_slice(&outcome.to_error_stream(Protocol::V4, form)).unwrap()
    }

    #[test]
    fn short_and_full_forms() {
        assert_eq!(json_of(&CommandStatus::Success, StatusForm::Short), json!({"status": "Success"}));
        assert_eq!(json_of(&CommandStatus::Success, StatusForm::Full), json!({"metadata": {}, "status": "Success"}));
        let exit = json_of(&CommandStatus::exit(3), StatusForm::Short);
        let text = "command terminated with non-zero exit code: command terminated with exit code 3";
        assert_eq!(exit["message"], text);
        assert_eq!(exit["details"]["causes"], json!([{"reason": "ExitCode", "message": "3"}]));
        let failure = json_of(&CommandStatus::Failure("x".into()), StatusForm::Full);
        assert_eq!(failure["message"], "Internal error occurred: x");
        assert_eq!(failure["details"]["causes"], json!([{"message": "x"}]));
    }

    #[test]
    fn old_protocols_carry_plain_text() {
        assert!(CommandStatus::Success.to_error_stream(Protocol::V3, StatusForm::Short).is_empty());
        let bytes = CommandStatus::Failure("no".into()).to_error_stream(Protocol::V1, StatusForm::Short);
        assert_eq!(bytes, b"Internal error occurred: no");
        let read = CommandStatus::from_error_stream(Protocol::V2, b"boom").unwrap();
        assert_eq!(read, CommandStatus::Failure("error executing remote command: boom".into()));
    }

    #[test]
    fn every_outcome_reads_back() {
        for outcome in [CommandStatus::Success, CommandStatus::exit(1), CommandStatus::exit(255)] {
            let bytes = outcome.to_error_stream(Protocol::V4, StatusForm::Short);
            assert_eq!(CommandStatus::from_error_stream(Protocol::V4, &bytes).unwrap(), outcome);
        }
    }

    #[test]
    fn what_is_wrong_with_an_error_stream() {
        let cases = [
            (r#"{"status":"Failure","reason":"NonZeroExitCode"}"#, "details must be set"),
            (r#"{"status":"Failure","reason":"NonZeroExitCode","details":{}}"#, "no ExitCode cause given"),
            (
                r#"{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"300"}]}}"#,
                "invalid exit code value \"300\"",
            ),
            (r#"{"status":"Maybe"}"#, "unknown error"),
        ];
        for (text, expected) in cases {
            let error = CommandStatus::from_error_stream(Protocol::V4, text.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), format!("error stream protocol error: {expected}"));
        }
        assert!(CommandStatus::from_error_stream(Protocol::V4, b"not json").is_err());
    }
}
