//! What is asked of the machine's logs in a query: services and files by name, and which of their lines.
//!
//! See KEP-2258 and <https://kubernetes.io/docs/concepts/cluster-administration/system-logs/#log-query>.

use std::path::{Path, PathBuf};

use api_machinery::field_path::{self, BadValue, ErrorList, FieldError};
use api_machinery::time::Time;
use component_base::serving::Query;
use sys::exec::Command;

/// The most lines that can be asked for.
const MAX_TAIL_LINES: i64 = 100_000;
/// How many services one request may name, and how long their names may be.
const MAX_SERVICES: usize = 4;
const MAX_SERVICE_LENGTH: usize = 256;

/// Which lines; all where nothing is said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Options {
    since: Option<Time>,
    until: Option<Time>,
    /// The last so many.
    tail: Option<i64>,
    /// A regular expression.
    pattern: String,
    /// Which start of the machine: 0 is the current one, -1 that before it.
    boot: Option<i64>,
}

/// A query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LogQuery {
    services: Vec<String>,
    files: Vec<String>,
    options: Options,
}

/// What a query that is allowed comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// A file, relative to the directory of logs.
    File(String),
    /// The logs of services.
    Services(ServiceQuery),
}

/// Services by name, and which of their lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ServiceQuery {
    pub(super) services: Vec<String>,
    options: Options,
}

impl LogQuery {
    /// Reads the parameters of a request; nothing where it has none of a query's.
    ///
    /// # Errors
    /// All that are none.
    pub(super) fn parse(query: &Query) -> Result<Option<Self>, ErrorList> {
        let mut errors = ErrorList::new();
        let mut own = Self::default();
        let named: Vec<&str> = query.all("query").collect();
        for name in &named {
            if name.contains(['/', '\\']) {
                own.files.push((*name).to_owned());
            } else if !name.trim().is_empty() {
                own.services.push((*name).to_owned());
            }
        }
        if !named.is_empty() && own.files.is_empty() && own.services.is_empty() {
            errors.push(path("query").invalid(BadValue::list(&named), "query cannot be empty"));
        }
        let given = |name: &'static str| query.get(name).filter(|text| !text.is_empty());
        let mut time = |name: &'static str| {
            let text = given(name)?;
            let time = Time::parse(text).map_err(|_| path(name).invalid(text, "invalid time format"));
            keep(time, &mut errors)
        };
        (own.options.since, own.options.until) = (time("sinceTime"), time("untilTime"));
        let mut number = |name: &'static str| {
            let text = given(name)?;
            let wrong = |_| path(name).invalid(text, format!("strconv.Atoi: parsing {text:?}: invalid syntax"));
            keep(text.parse::<i64>().map_err(wrong), &mut errors)
        };
        (own.options.boot, own.options.tail) = (number("boot"), number("tailLines"));
        given("pattern").unwrap_or_default().clone_into(&mut own.options.pattern);
        errors.into_result()?;
        Ok((own != Self::default()).then_some(own))
    }

    /// What it comes to, if it may be asked; files lie below `directory`.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub(super) fn allowed(self, directory: &Path) -> Result<Asked, ErrorList> {
        let mut errors = self.service_errors();
        errors.extend(self.name_error(directory));
        errors.extend(self.options.errors());
        errors.into_result()?;
        let Self { services, files, options } = self;
        Ok(match files.into_iter().next() {
            Some(file) => Asked::File(relative(&file)),
            None => Asked::Services(ServiceQuery { services, options }),
        })
    }

    fn service_errors(&self) -> ErrorList {
        let mut errors = ErrorList::new();
        let is_safe = |c: char| c.is_ascii_alphanumeric() || "._:@-".contains(c);
        for service in &self.services {
            if service.len() > MAX_SERVICE_LENGTH {
                errors.push(path("query").invalid(service, format!("length must be less than {MAX_SERVICE_LENGTH}")));
            } else if !service.chars().all(is_safe) {
                errors.push(path("query").invalid(service, "input contains unsupported characters"));
            }
        }
        if self.services.len() > MAX_SERVICES {
            errors.push(path("query").too_many(self.services.len(), MAX_SERVICES));
        }
        errors
    }

    /// Either services or one file, and options with services alone.
    fn name_error(&self, directory: &Path) -> Option<FieldError> {
        let refused = |why: String| Some(path("query").invalid(BadValue::list(&self.files), why));
        match (self.files.as_slice(), self.services.as_slice()) {
            ([], []) => Some(path("query").required("cannot be empty with options")),
            ([], _) => None,
            ([_, ..], [_, ..]) => {
                let both = format!("[{}], [{}]", self.files.join(" "), self.services.join(" "));
                Some(path("query").invalid(both, "cannot specify a file and service"))
            }
            ([_, _, ..], []) => refused("cannot specify more than one file".to_owned()),
            (_, []) if self.options != Options::default() => refused("cannot specify file with options".to_owned()),
            ([file], []) => {
                let error = sys::fs::open_beneath(directory, Path::new(&relative(file))).err()?;
                let why = match error.kind() {
                    std::io::ErrorKind::NotFound => "no such file or directory".to_owned(),
                    _ => error.to_string(),
                };
                refused(format!("stat {}: {why}", directory.join(relative(file)).display()))
            }
        }
    }
}

impl Options {
    fn errors(&self) -> ErrorList {
        let mut errors = ErrorList::new();
        if let (Some(since), Some(until)) = (self.since, self.until)
            && since > until
        {
            errors.push(path("untilTime").invalid(until, "must be after `sinceTime`"));
        }
        if let Some(boot) = self.boot.filter(|boot| *boot > 0) {
            errors.push(path("boot").invalid(boot, "must be less than 1"));
        }
        if let Some(tail) = self.tail.filter(|tail| !(0..=MAX_TAIL_LINES).contains(tail)) {
            let range = format!("must be between 0 and {MAX_TAIL_LINES}, inclusive");
            errors.push(path("tailLines").invalid(tail, range));
        }
        if let Err(why) = schema::structural::compile_pattern(&self.pattern) {
            errors.push(path("pattern").invalid(&self.pattern, why));
        }
        errors
    }
}

impl ServiceQuery {
    /// Whether only some lines are asked for.
    pub(super) fn has_options(&self) -> bool {
        self.options != Options::default()
    }

    /// What shows the journal's lines of some services.
    pub(super) fn journal(&self, services: &[String]) -> Command {
        let options = &self.options;
        let mut command = Command::with("journalctl", &["--utc", "--no-pager", "--output=short-precise"]);
        // Named as UTC: without that it is the machine's own time.
        let moment = |time: Time| format!("{} UTC", time.to_string().trim_end_matches('Z').replace('T', " "));
        command = command.args(options.since.map(|time| format!("--since={}", moment(time))));
        command = command.args(options.until.map(|time| format!("--until={}", moment(time))));
        command = command.args(options.tail.map(|lines| format!("--lines={lines}")));
        command = command.args(services.iter().map(|service| format!("--unit={service}")));
        if !options.pattern.is_empty() {
            let pattern = format!("--grep={}", options.pattern);
            command = command.args([pattern, "--case-sensitive=false".to_owned()]);
        }
        command.args(options.boot.map(|boot| format!("--boot={boot}")))
    }
}

fn path(parameter: &'static str) -> field_path::Path {
    field_path::Path::new(parameter)
}

/// The value, or nothing and the error noted.
fn keep<T>(value: Result<T, FieldError>, errors: &mut ErrorList) -> Option<T> {
    value.map_err(|error| errors.push(error)).ok()
}

/// A file's name as a path below the directory of logs; those who ask from Windows write `\`.
fn relative(file: &str) -> String {
    let path: PathBuf = file.replace('\\', "/").trim_start_matches('/').into();
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<LogQuery>, String> {
        LogQuery::parse(&Query::parse(text).unwrap()).map_err(|errors| errors.to_string())
    }

    #[test]
    fn what_is_no_value_is_told() {
        assert_eq!(parse("").unwrap(), None);
        assert_eq!(parse("tail=3").unwrap(), None, "not a query's parameter");
        for (text, expected) in [
            ("query=", "query: Invalid value: [\"\"]: query cannot be empty"),
            ("query=+", "query: Invalid value: [\" \"]: query cannot be empty"),
            ("query=a&sinceTime=yesterday", "sinceTime: Invalid value: \"yesterday\": invalid time format"),
            ("query=a&untilTime=1", "untilTime: Invalid value: \"1\": invalid time format"),
            (
                "query=a&boot=x&tailLines=y",
                "[boot: Invalid value: \"x\": strconv.Atoi: parsing \"x\": invalid syntax, tailLines: Invalid value: \"y\": \
                 strconv.Atoi: parsing \"y\": invalid syntax]",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err(), expected, "{text}");
        }
    }

    #[test]
    fn what_may_not_be_asked_is_told() {
        let logs = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc", logs.path().join("etc")).unwrap();
        let absent = format!("stat {}: no such file or directory", logs.path().join("no.log").display());
        let long = "a".repeat(257);
        for (text, expected) in [
            ("query=a&query=b&query=c&query=d&query=e", "query: Too many: 5: must have at most 4 items"),
            ("query=a%3Bb", "query: Invalid value: \"a;b\": input contains unsupported characters"),
            ("query=a%22", "query: Invalid value: \"a\\\"\": input contains unsupported characters"),
            (&format!("query={long}"), "length must be less than 256"),
            ("tailLines=3", "query: Required value: cannot be empty with options"),
            ("query=a&query=/b", "query: Invalid value: \"[/b], [a]\": cannot specify a file and service"),
            ("query=/a&query=/b", "query: Invalid value: [\"/a\",\"/b\"]: cannot specify more than one file"),
            ("query=/a&boot=0", "query: Invalid value: [\"/a\"]: cannot specify file with options"),
            ("query=/no.log", &format!("query: Invalid value: [\"/no.log\"]: {absent}")),
            ("query=/etc/passwd", "query: Invalid value: [\"/etc/passwd\"]: stat "),
            ("query=../../etc/passwd", "query: Invalid value: [\"../../etc/passwd\"]: stat "),
            ("query=a&boot=1", "boot: Invalid value: 1: must be less than 1"),
            ("query=a&tailLines=-1", "tailLines: Invalid value: -1: must be between 0 and 100000, inclusive"),
            ("query=a&tailLines=100001", "tailLines: Invalid value: 100001: must be between"),
            ("query=a&pattern=(", "pattern: Invalid value: \"(\": error parsing regexp: missing closing ): `(`"),
            (
                "query=a&sinceTime=2024-01-01T00:00:01Z&untilTime=2024-01-01T00:00:00Z",
                "untilTime: Invalid value: \"2024-01-01T00:00:00Z\": must be after `sinceTime`",
            ),
        ] {
            let error = parse(text).unwrap().unwrap().allowed(logs.path()).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn queries_lead_to_files_and_to_the_journal() {
        let logs = tempfile::tempdir().unwrap();
        std::fs::create_dir(logs.path().join("pods")).unwrap();
        for text in ["query=/pods", "query=%5Cpods"] {
            let asked = parse(text).unwrap().unwrap().allowed(logs.path()).unwrap();
            assert_eq!(asked, Asked::File("pods".to_owned()));
        }
        let text = "query=kubelet&query=containerd&query=&sinceTime=2024-03-02T03:04:05%2B02:00&untilTime=2024-03-03T00:00:00Z\
                    &tailLines=7&pattern=a.*b&boot=-1";
        let Asked::Services(query) = parse(text).unwrap().unwrap().allowed(logs.path()).unwrap() else {
            panic!("no services")
        };
        assert!(query.has_options());
        assert_eq!(query.services, ["kubelet", "containerd"]);
        assert_eq!(
            query.journal(&query.services).line(),
            "journalctl --utc --no-pager --output=short-precise --since=2024-03-02 01:04:05 UTC \
             --until=2024-03-03 00:00:00 UTC --lines=7 --unit=kubelet --unit=containerd --grep=a.*b --case-sensitive=false \
             --boot=-1"
        );
    }
}
