//! What the configuration says of the webhook: where it is, and how long its answers are remembered.

use std::path::Path;
use std::time::Duration;

use api_machinery::api;
use api_machinery::json;
use api_machinery::time::GoDuration;
use api_machinery::value::Value;
use client::{ClientConfig, ClientCx, ConfigError, Webhook, WebhookRetry};

/// The configuration's only member.
const MEMBER: &str = "imagePolicy";
const COMPONENT: &str = "kube-apiserver";
const SECOND: i64 = 1_000_000_000;
const MILLISECOND: i64 = 1_000_000;

/// What may be said of a time: in which unit, in which bounds, and what holds where nothing is said. In nanoseconds.
struct Range {
    name: &'static str,
    unit: i64,
    min: i64,
    max: i64,
    default: i64,
}

const ALLOW_TTL: Range =
    Range { name: "allowTTL", unit: SECOND, min: SECOND, max: 1800 * SECOND, default: 300 * SECOND };
const DENY_TTL: Range = Range { name: "denyTTL", unit: SECOND, min: SECOND, max: 1800 * SECOND, default: 30 * SECOND };
const RETRY_BACKOFF: Range =
    Range { name: "retryBackoff", unit: MILLISECOND, min: 1, max: 300 * SECOND, default: 500 * MILLISECOND };

impl Range {
    /// The time that a number stands for: 0 for the default, -1 for none.
    fn read(&self, number: i64) -> Result<Duration, String> {
        let nanos = match number {
            -1 => return Ok(Duration::ZERO),
            0 => self.default,
            number => number.saturating_mul(self.unit),
        };
        if nanos < self.min || nanos > self.max {
            let [min, max, own] = [self.min, self.max, nanos].map(GoDuration::from_nanos);
            return Err(format!("{MEMBER}.{}: valid value is between {min} and {max}, got {own}", self.name));
        }
        Ok(GoDuration::from_nanos(nanos).to_std())
    }
}

/// `imagePolicy` as the file has it.
#[api]
pub(super) struct ImagePolicy {
    /// Where the webhook is, and who the server is to it.
    #[field(0, always)]
    pub(super) kube_config_file: String,
    /// Seconds for which a yes is remembered.
    #[field(0, always, name = "allowTTL")]
    pub(super) allow_ttl: i64,
    /// Seconds for which a no is remembered.
    #[field(0, always, name = "denyTTL")]
    pub(super) deny_ttl: i64,
    /// Milliseconds before the second try.
    #[field(0, always)]
    pub(super) retry_backoff: i64,
    /// Whether images may run when the webhook cannot be asked.
    #[field(0, always)]
    pub(super) default_allow: bool,
}

/// The configuration of `ImagePolicyWebhook`.
#[derive(Debug, Clone, Default)]
pub struct ImagePolicyConfig {
    /// Nothing where the plugin has no configuration.
    pub(super) connection: Option<ClientConfig>,
    pub(super) retry_backoff: Duration,
    pub(super) allow_ttl: Duration,
    pub(super) deny_ttl: Duration,
    pub(super) default_allow: bool,
}

impl ImagePolicyConfig {
    pub(super) fn read(value: Option<&Value>) -> Result<Self, String> {
        let Some(value) = value.filter(|value| !value.is_null()) else { return Err("no config specified".to_owned()) };
        let members = value.as_object().ok_or("configuration: must be a map")?;
        if let Some(name) = members.keys().find(|name| *name != MEMBER) {
            return Err(format!("strict decoding error: unknown field {name:?}"));
        }
        let (mut policy, own) = (ImagePolicy::default(), members.get(MEMBER).unwrap_or(&Value::Null));
        let decoded = json::decode(own.to_string().as_bytes(), &mut policy).map_err(|error| error.to_string())?;
        if !decoded.problems.is_empty() {
            return Err(format!("{MEMBER}: strict decoding error: {}", decoded.problems.join(", ")));
        }
        if policy.kube_config_file.is_empty() {
            return Err(format!("{MEMBER}.kubeConfigFile: Required value"));
        }
        let connection = Webhook::config(Path::new(&policy.kube_config_file), COMPONENT);
        Ok(Self {
            allow_ttl: ALLOW_TTL.read(policy.allow_ttl)?,
            deny_ttl: DENY_TTL.read(policy.deny_ttl)?,
            retry_backoff: RETRY_BACKOFF.read(policy.retry_backoff)?,
            default_allow: policy.default_allow,
            connection: Some(connection.map_err(|error| error.to_string())?),
        })
    }

    /// The webhook, where the configuration names one.
    ///
    /// # Errors
    /// When what the kubeconfig file says cannot be used.
    pub fn webhook(&self, cx: ClientCx) -> Result<Option<Webhook>, ConfigError> {
        let connect = |config| Webhook::new(config, None, self.retry_backoff, WebhookRetry::Passing, cx);
        self.connection.clone().map(connect).transpose()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_have_bounds() {
        let seconds = Duration::from_secs;
        for (range, number, expected) in [
            (&ALLOW_TTL, 0, Ok(seconds(300))),
            (&ALLOW_TTL, -1, Ok(Duration::ZERO)),
            (&ALLOW_TTL, 1800, Ok(seconds(1800))),
            (&ALLOW_TTL, 1801, Err("allowTTL: valid value is between 1s and 30m0s, got 30m1s")),
            (&ALLOW_TTL, -2, Err("allowTTL: valid value is between 1s and 30m0s, got -2s")),
            (&DENY_TTL, 0, Ok(seconds(30))),
            (&DENY_TTL, 7, Ok(seconds(7))),
            (&RETRY_BACKOFF, 0, Ok(Duration::from_millis(500))),
            (&RETRY_BACKOFF, 300_000, Ok(seconds(300))),
            (&RETRY_BACKOFF, 300_001, Err("retryBackoff: valid value is between 1ns and 5m0s, got 5m0.001s")),
        ] {
            let expected = expected.map_err(|text| format!("imagePolicy.{text}"));
            assert_eq!(range.read(number), expected, "{} {number}", range.name);
        }
    }

    #[test]
    fn configurations_are_read_strictly() {
        let read = |value: &Value| ImagePolicyConfig::read(Some(value)).err().unwrap_or_default();
        assert_eq!(ImagePolicyConfig::read(None).err().as_deref(), Some("no config specified"));
        for (bad, expected) in [
            (json!([]), "configuration: must be a map"),
            (json!({"kind": "x"}), "unknown field \"kind\""),
            (json!({}), "imagePolicy.kubeConfigFile: Required value"),
            (json!({MEMBER: {"kubeConfigFile": "k", "ttl": 1}}), "imagePolicy: strict decoding error: unknown field"),
            (json!({MEMBER: {"kubeConfigFile": "/does/not/exist"}}), "/does/not/exist"),
        ] {
            assert!(read(&bad).contains(expected), "{bad}: {}", read(&bad));
        }
    }
}
