//! The flags of the audit log.

use std::time::Duration;

use audit::{Mode, Rotation};
use component_base::flags::{Errors, Flag, FlagSet, Options};

use crate::config::AuditConfig;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const MEGABYTE: u64 = 1024 * 1024;

pub(super) const FLAGS: FlagSet = FlagSet {
    title: "auditing",
    flags: &[
        Flag::string("audit-policy-file", "").help(
            "The file of the policy that says how much is told of which requests. Without one nothing is. The levels \
             None and Metadata are supported.",
        ),
        Flag::string("audit-log-path", "")
            .help("The file that events are written to, a line each. - means the standard output."),
        Flag::string("audit-log-mode", "blocking").help(
            "What becomes of a request until its events are written: batch (it goes on), blocking (it waits), \
             blocking-strict (it waits, and is refused when that it came cannot be written).",
        ),
        Flag::string("audit-log-format", "json").help("The form of events: json."),
        Flag::int("audit-log-maxage", "366").help("Days that older files are kept, 0 for ever."),
        Flag::int("audit-log-maxbackup", "100").help("Older files that are kept, 0 for all."),
        Flag::int("audit-log-maxsize", "100").help("Megabytes after which a new file is begun, 0 for never."),
        Flag::int("audit-log-batch-buffer-size", "10000").help("Events that may wait to be written."),
    ],
};

/// Reads the flags; nothing where there is no policy or no file.
pub(super) fn read(options: &Options, errors: &mut Errors) -> Option<AuditConfig> {
    let mode = mode(options.string("audit-log-mode"), errors);
    let format = options.string("audit-log-format");
    match format {
        "json" | "" => {}
        "legacy" => {
            errors.push("--audit-log-format=legacy is not supported by this server; events are written as json")
        }
        other => errors.push(format!("invalid audit log format {other}, allowed formats are \"legacy,json\"")),
    }
    let mut count = |name: &str| {
        let value = options.int(name);
        u64::try_from(value).unwrap_or_else(|_| {
            errors.push(format!("--{name} {value} can't be a negative number"));
            0
        })
    };
    let (days, files, megabytes) =
        (count("audit-log-maxage"), count("audit-log-maxbackup"), count("audit-log-maxsize"));
    let room = options.int("audit-log-batch-buffer-size");
    errors.check(room > 0, format!("invalid audit batch log buffer size {room}, must be a positive number"));
    let (policy, path) = (options.string("audit-policy-file"), options.string("audit-log-path"));
    (!policy.is_empty() && !path.is_empty()).then(|| AuditConfig {
        policy: policy.into(),
        path: path.into(),
        mode,
        rotation: Rotation {
            max_bytes: megabytes.saturating_mul(MEGABYTE),
            max_age: DAY.saturating_mul(u32::try_from(days).unwrap_or(u32::MAX)),
            max_files: usize::try_from(files).unwrap_or(usize::MAX),
        },
        room: usize::try_from(room).unwrap_or(1),
    })
}

fn mode(text: &str, errors: &mut Errors) -> Mode {
    match text {
        "batch" => Mode::Batch,
        "blocking" | "" => Mode::Blocking,
        "blocking-strict" => Mode::BlockingStrict,
        other => {
            let allowed = "allowed modes are \"batch,blocking,blocking-strict\"";
            errors.push(format!("invalid audit log mode {other}, {allowed}"));
            Mode::Blocking
        }
    }
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

    #[test]
    fn a_log_needs_a_policy_and_a_file() {
        assert!(read_line("").expect("defaults").is_none());
        assert!(read_line("--audit-log-path=/x").expect("a file").is_none());
        let config =
            read_line("--audit-log-path=- --audit-policy-file=/p --audit-log-maxsize=1 --audit-log-mode=batch");
        let config = config.expect("flags").expect("a log");
        assert_eq!((config.mode, config.room, config.rotation.max_bytes), (Mode::Batch, 10_000, MEGABYTE));
        assert_eq!((config.rotation.max_files, config.rotation.max_age), (100, 366 * DAY));
    }

    #[test]
    fn mistakes_are_told() {
        for (line, expected) in [
            ("--audit-log-mode=fast", "invalid audit log mode fast, allowed modes are"),
            ("--audit-log-format=legacy", "--audit-log-format=legacy is not supported"),
            ("--audit-log-format=xml", "invalid audit log format xml, allowed formats are \"legacy,json\""),
            ("--audit-log-maxage=-1", "--audit-log-maxage -1 can't be a negative number"),
            ("--audit-log-batch-buffer-size=0", "invalid audit batch log buffer size 0, must be a positive number"),
        ] {
            let error = read_line(line).expect_err(line);
            assert!(error.contains(expected), "{error}");
        }
    }
}
