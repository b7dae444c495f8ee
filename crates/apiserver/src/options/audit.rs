//! The flags of the audit log.

use std::time::Duration;

use audit::{Batching, Delivery, Format, Mode, Rate, Rotation, Truncation};
use component_base::flags::{Errors, Flag, FlagSet, Options};

use super::durations::not_negative;
use crate::config::{AuditConfig, AuditLogConfig, AuditWebhookConfig};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const MEGABYTE: u64 = 1024 * 1024;
/// The one version of events that there is.
const VERSION: &str = "audit.k8s.io/v1";
const OLD_BACKOFF: &str = "audit-webhook-batch-initial-backoff";

pub(super) const FLAGS: FlagSet = FlagSet {
    title: "auditing",
    flags: &[
        Flag::string("audit-policy-file", "")
            .help("The file of the policy that says how much is told of which requests. Without one nothing is."),
        Flag::string("audit-log-path", "")
            .help("The file that events are written to, a line each. - means the standard output."),
        Flag::string("audit-log-mode", "blocking").help(
            "What becomes of a request until its events are written: batch (it goes on), blocking (it waits), \
             blocking-strict (it waits, and is refused when that it came cannot be written).",
        ),
        Flag::string("audit-log-format", "json")
            .help("The form of events: json, or legacy for a line of text that tells of no objects."),
        Flag::string("audit-log-version", VERSION).help("The version of events that are written."),
        Flag::int("audit-log-maxage", "366").help("Days that older files are kept, 0 for ever."),
        Flag::int("audit-log-maxbackup", "100").help("Older files that are kept, 0 for all."),
        Flag::int("audit-log-maxsize", "100").help("Megabytes after which a new file is begun, 0 for never."),
        Flag::bool("audit-log-compress", "false").help("Whether older files are compressed by gzip."),
        Flag::int("audit-log-batch-buffer-size", "10000")
            .help("Events that may wait to be written. Only in mode batch."),
        Flag::int("audit-log-batch-max-size", "1").help("Events of a batch. Only in mode batch."),
        Flag::duration("audit-log-batch-max-wait", "0s")
            .help("How long a batch waits to become full. Only in mode batch."),
        Flag::bool("audit-log-batch-throttle-enable", "false")
            .help("Whether batches are written at a bounded rate. Only in mode batch."),
        Flag::float("audit-log-batch-throttle-qps", "0").help("Batches in a second on average. Only in mode batch."),
        Flag::int("audit-log-batch-throttle-burst", "0").help("Batches at once after a pause. Only in mode batch."),
        Flag::bool("audit-log-truncate-enabled", "false")
            .help("Whether events and batches that are too large are made smaller."),
        Flag::int("audit-log-truncate-max-event-size", "102400").help(
            "Bytes beyond which an event loses the objects of request and answer; it is dropped if that is not enough.",
        ),
        Flag::int("audit-log-truncate-max-batch-size", "10485760")
            .help("Bytes beyond which a batch is written as several."),
        Flag::string("audit-webhook-config-file", "")
            .help("File in kubeconfig format that says where the service is that events are sent to."),
        Flag::string("audit-webhook-mode", "batch").help(
            "What becomes of a request until its events are sent: batch (it goes on), blocking (it waits), \
             blocking-strict (it waits, and is refused when that it came cannot be sent).",
        ),
        Flag::string("audit-webhook-version", VERSION).help("The version of events that are sent."),
        Flag::duration("audit-webhook-initial-backoff", "10s").help("The first wait before a batch is sent again."),
        Flag::duration(OLD_BACKOFF, "10s")
            .help("The old name of --audit-webhook-initial-backoff.")
            .deprecated("Deprecated, use --audit-webhook-initial-backoff instead."),
        Flag::int("audit-webhook-batch-buffer-size", "10000")
            .help("Events that may wait to be sent. Only in mode batch."),
        Flag::int("audit-webhook-batch-max-size", "400").help("Events of a batch. Only in mode batch."),
        Flag::duration("audit-webhook-batch-max-wait", "30s")
            .help("How long a batch waits to become full. Only in mode batch."),
        Flag::bool("audit-webhook-batch-throttle-enable", "true")
            .help("Whether batches are sent at a bounded rate. Only in mode batch."),
        Flag::float("audit-webhook-batch-throttle-qps", "10")
            .help("Batches in a second on average. Only in mode batch."),
        Flag::int("audit-webhook-batch-throttle-burst", "15")
            .help("Batches at once after a pause. Only in mode batch."),
        Flag::bool("audit-webhook-truncate-enabled", "false")
            .help("Whether events and batches that are too large are made smaller."),
        Flag::int("audit-webhook-truncate-max-event-size", "102400").help(
            "Bytes beyond which an event loses the objects of request and answer; it is dropped if that is not enough.",
        ),
        Flag::int("audit-webhook-truncate-max-batch-size", "10485760")
            .help("Bytes beyond which a batch is sent as several."),
    ],
};

/// Reads the flags; nothing where there is no policy, or neither a file nor a service.
pub(super) fn read(options: &Options, errors: &mut Errors) -> Option<AuditConfig> {
    let (log, webhook) = (log(options, errors), webhook(options, errors));
    let policy = options.string("audit-policy-file");
    (!policy.is_empty() && (log.is_some() || webhook.is_some())).then(|| AuditConfig {
        policy: policy.into(),
        log,
        webhook,
    })
}

fn log(options: &Options, errors: &mut Errors) -> Option<AuditLogConfig> {
    let path = options.string("audit-log-path");
    if path.is_empty() {
        return None;
    }
    let delivery = delivery(options, "log", Mode::Blocking, errors);
    let format = match options.string("audit-log-format") {
        "legacy" => Format::Legacy,
        "json" | "" => Format::Json,
        other => {
            errors.push(format!("invalid audit log format {other}, allowed formats are \"legacy,json\""));
            Format::Json
        }
    };
    let mut count = |name: &str| {
        let value = options.int(name);
        u64::try_from(value).unwrap_or_else(|_| {
            errors.push(format!("--{name} {value} can't be a negative number"));
            0
        })
    };
    let (days, files, megabytes) =
        (count("audit-log-maxage"), count("audit-log-maxbackup"), count("audit-log-maxsize"));
    let rotation = Rotation {
        max_bytes: megabytes.saturating_mul(MEGABYTE),
        max_age: DAY.saturating_mul(u32::try_from(days).unwrap_or(u32::MAX)),
        max_files: usize::try_from(files).unwrap_or(usize::MAX),
        compresses: options.bool("audit-log-compress"),
    };
    Some(AuditLogConfig { path: path.into(), format, rotation, delivery })
}

fn webhook(options: &Options, errors: &mut Errors) -> Option<AuditWebhookConfig> {
    let file = options.string("audit-webhook-config-file");
    if file.is_empty() {
        return None;
    }
    let backoff = "audit-webhook-initial-backoff";
    let is_old = options.is_set(OLD_BACKOFF) && !options.is_set(backoff);
    let first_delay = not_negative(options, if is_old { OLD_BACKOFF } else { backoff }, errors);
    let delivery = delivery(options, "webhook", Mode::Batch, errors);
    Some(AuditWebhookConfig { kubeconfig: file.into(), first_delay, delivery })
}

/// The flags that both ways have, under the way's name.
fn delivery(options: &Options, way: &str, default: Mode, errors: &mut Errors) -> Delivery {
    let mode = match options.string(&format!("audit-{way}-mode")) {
        "batch" => Mode::Batch,
        "blocking" => Mode::Blocking,
        "blocking-strict" => Mode::BlockingStrict,
        "" => default,
        other => {
            let allowed = "allowed modes are \"batch,blocking,blocking-strict\"";
            errors.push(format!("invalid audit {way} mode {other}, {allowed}"));
            default
        }
    };
    let version = options.string(&format!("audit-{way}-version"));
    let is_known = matches!(version, VERSION | "");
    errors.check(is_known, format!("invalid group version, allowed versions are [{VERSION:?}]"));
    Delivery { mode, batching: batching(options, way, mode, errors), truncation: truncation(options, way, errors) }
}

fn batching(options: &Options, way: &str, mode: Mode, errors: &mut Errors) -> Batching {
    let flag = |rest: &str| format!("audit-{way}-batch-{rest}");
    // Nobody looks at these flags in the other modes.
    let is_used = mode == Mode::Batch;
    let mut count = |rest: &str, what: &str| {
        let value = options.int(&flag(rest));
        let text = format!("invalid audit batch {way} {what} {value}, must be a positive number");
        errors.check(!is_used || value > 0, text);
        usize::try_from(value).unwrap_or(1).max(1)
    };
    let (room, max_events) = (count("buffer-size", "buffer size"), count("max-size", "max batch size"));
    let rate = options.bool(&flag("throttle-enable")).then(|| {
        let burst = u32::try_from(count("throttle-burst", "throttle burst")).unwrap_or(u32::MAX);
        Rate { per_second: options.float(&flag("throttle-qps")), burst }
    });
    if let Some(Rate { per_second, .. }) = rate {
        let text = format!("invalid audit batch {way} throttle QPS {per_second}, must be a positive number");
        errors.check(!is_used || per_second > 0.0, text);
    }
    let max_wait = if is_used { not_negative(options, &flag("max-wait"), errors) } else { Duration::ZERO };
    Batching { room, max_events, max_wait, rate }
}

fn truncation(options: &Options, way: &str, errors: &mut Errors) -> Option<Truncation> {
    let flag = |rest: &str| format!("audit-{way}-truncate-{rest}");
    if !options.bool(&flag("enabled")) {
        return None;
    }
    let (event, batch) = (options.int(&flag("max-event-size")), options.int(&flag("max-batch-size")));
    if event <= 0 {
        errors.push(format!("invalid audit truncate {way} max event size {event}, must be a positive number"));
    } else {
        let text = format!(
            "invalid audit truncate {way} max batch size {batch}, must be greater than max event size ({event})"
        );
        errors.check(batch >= event, text);
    }
    let bytes = |value: i64| usize::try_from(value).unwrap_or(0);
    Some(Truncation { max_event_bytes: bytes(event), max_batch_bytes: bytes(batch) })
}

#[cfg(test)]
mod tests {
    use component_base::flags::parse;

    use super::*;

    fn read_line(line: &str) -> Result<Option<AuditConfig>, String> {
        let options = parse(&[FLAGS], line.split_whitespace().map(str::to_owned)).expect("flags");
        let mut errors = Errors::new();
        let config = read(&options, &mut errors);
        errors.into_result().map(|()| config).map_err(|error| error.to_string())
    }

    fn log(line: &str) -> AuditLogConfig {
        let config = read_line(&format!("--audit-policy-file=/p --audit-log-path=- {line}"));
        config.expect("flags").and_then(|config| config.log).expect("a log")
    }

    fn webhook(line: &str) -> AuditWebhookConfig {
        let config = read_line(&format!("--audit-policy-file=/p --audit-webhook-config-file=/w {line}"));
        config.expect("flags").and_then(|config| config.webhook).expect("a webhook")
    }

    #[test]
    fn a_log_needs_a_policy_and_somewhere_to_go() {
        assert!(read_line("").expect("defaults").is_none());
        assert!(read_line("--audit-log-path=/x").expect("a file").is_none());
        assert!(read_line("--audit-policy-file=/x").expect("a policy").is_none());
        let both = read_line("--audit-policy-file=/p --audit-log-path=- --audit-webhook-config-file=/w");
        let both = both.expect("flags").expect("a log");
        assert!(both.log.is_some() && both.webhook.is_some());
    }

    #[test]
    fn defaults_are_upstreams() {
        let plain = log("");
        assert_eq!(
            (plain.format, plain.delivery.mode, plain.delivery.truncation),
            (Format::Json, Mode::Blocking, None)
        );
        let rotation = Rotation { max_bytes: 100 * MEGABYTE, max_age: 366 * DAY, max_files: 100, compresses: false };
        assert_eq!(plain.rotation, rotation);
        let batching = Batching { room: 10_000, max_events: 1, max_wait: Duration::ZERO, rate: None };
        assert_eq!(log("--audit-log-mode=batch").delivery, Delivery { mode: Mode::Batch, batching, truncation: None });
        let rate = Some(Rate { per_second: 10.0, burst: 15 });
        let batching = Batching { room: 10_000, max_events: 400, max_wait: Duration::from_secs(30), rate };
        let plain = webhook("");
        assert_eq!(plain.delivery, Delivery { mode: Mode::Batch, batching, truncation: None });
        assert_eq!(plain.first_delay, Duration::from_secs(10));
    }

    #[test]
    fn every_flag_is_heard() {
        let own = log("--audit-log-mode=batch --audit-log-format=legacy --audit-log-compress --audit-log-maxsize=1 \
            --audit-log-batch-buffer-size=2 --audit-log-batch-max-size=3 --audit-log-batch-max-wait=4s \
            --audit-log-batch-throttle-enable --audit-log-batch-throttle-qps=5 --audit-log-batch-throttle-burst=6 \
            --audit-log-truncate-enabled --audit-log-truncate-max-event-size=7 --audit-log-truncate-max-batch-size=8");
        assert_eq!((own.format, own.rotation.compresses, own.rotation.max_bytes), (Format::Legacy, true, MEGABYTE));
        let rate = Some(Rate { per_second: 5.0, burst: 6 });
        let batching = Batching { room: 2, max_events: 3, max_wait: Duration::from_secs(4), rate };
        let truncation = Some(Truncation { max_event_bytes: 7, max_batch_bytes: 8 });
        assert_eq!(own.delivery, Delivery { mode: Mode::Batch, batching, truncation });
        let own = webhook(
            "--audit-webhook-mode=blocking-strict --audit-webhook-batch-initial-backoff=3s \
            --audit-webhook-batch-throttle-enable=false --audit-webhook-truncate-enabled",
        );
        assert_eq!((own.delivery.mode, own.delivery.batching.rate), (Mode::BlockingStrict, None));
        assert_eq!(own.delivery.truncation.map(|own| own.max_event_bytes), Some(102_400));
        assert_eq!(own.first_delay, Duration::from_secs(3));
        let both = "--audit-webhook-batch-initial-backoff=3s --audit-webhook-initial-backoff=4s";
        assert_eq!(webhook(both).first_delay, Duration::from_secs(4), "the new name wins");
    }

    #[test]
    fn mistakes_are_told() {
        for (line, expected) in [
            ("--audit-log-mode=fast", "invalid audit log mode fast, allowed modes are"),
            ("--audit-log-format=xml", "invalid audit log format xml, allowed formats are \"legacy,json\""),
            ("--audit-log-maxage=-1", "--audit-log-maxage -1 can't be a negative number"),
            ("--audit-log-version=v1", "invalid group version, allowed versions are [\"audit.k8s.io/v1\"]"),
            (
                "--audit-log-mode=batch --audit-log-batch-buffer-size=0",
                "invalid audit batch log buffer size 0, must be a positive number",
            ),
            (
                "--audit-webhook-batch-max-size=0",
                "invalid audit batch webhook max batch size 0, must be a positive number",
            ),
            (
                "--audit-webhook-batch-throttle-qps=0",
                "invalid audit batch webhook throttle QPS 0, must be a positive number",
            ),
            (
                "--audit-log-mode=batch --audit-log-batch-throttle-enable --audit-log-batch-throttle-qps=1",
                "invalid audit batch log throttle burst 0, must be a positive number",
            ),
            (
                "--audit-webhook-truncate-enabled --audit-webhook-truncate-max-event-size=0",
                "invalid audit truncate webhook max event size 0, must be a positive number",
            ),
            (
                "--audit-log-truncate-enabled --audit-log-truncate-max-batch-size=1",
                "invalid audit truncate log max batch size 1, must be greater than max event size (102400)",
            ),
        ] {
            let all = format!("--audit-log-path=- --audit-webhook-config-file=/w {line}");
            let error = read_line(&all).expect_err(line);
            assert!(error.contains(expected), "{error}");
        }
        read_line("--audit-log-path=- --audit-log-batch-buffer-size=0")
            .expect("it is of no matter where nothing waits");
        read_line("--audit-log-maxage=-1").expect("nor is this where there is no file");
    }
}
