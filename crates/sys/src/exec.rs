//! Running programs: short ones to their end, with a deadline and bounded output, and long-running ones that outlive
//! the caller. Everything in the project that starts a program does it through [`Exec`].

mod fake;
mod linux;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc;

pub use fake::FakeExec;
pub use linux::LinuxExec;

use crate::process::Process;

/// A program that takes longer than this without a deadline of its own is killed.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(30);
/// Output kept per stream unless the caller asks for another bound.
const DEFAULT_OUTPUT_LIMIT_BYTES: usize = 1024 * 1024;

/// A program with its arguments and surroundings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// A path, or a name that is looked up in `PATH`.
    pub program: OsString,
    pub args: Vec<OsString>,
    /// Added to the caller's environment.
    pub env: Vec<(OsString, OsString)>,
    pub cwd: Option<PathBuf>,
    /// The network namespace to run in, as a path such as `/run/netns/blue`; the caller's own if absent.
    pub netns: Option<PathBuf>,
    /// The mount namespace to run in, as a path such as `/proc/PID/ns/mnt`.
    pub mount_ns: Option<PathBuf>,
    /// What the program reads; its standard input is empty otherwise.
    pub stdin: Vec<u8>,
    pub deadline: Duration,
    /// Output beyond this many bytes per stream is thrown away.
    pub output_limit_bytes: usize,
}

impl Command {
    /// A command without arguments, with the default bounds.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: None,
            netns: None,
            mount_ns: None,
            stdin: Vec::new(),
            deadline: DEFAULT_DEADLINE,
            output_limit_bytes: DEFAULT_OUTPUT_LIMIT_BYTES,
        }
    }

    /// A command with arguments that are text.
    #[must_use]
    pub fn with(program: &str, args: &[&str]) -> Self {
        Self::new(program).args(args)
    }

    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    #[must_use]
    pub fn args<I: Into<OsString>>(mut self, args: impl IntoIterator<Item = I>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    #[must_use]
    pub fn cwd(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cwd = Some(directory.into());
        self
    }

    #[must_use]
    pub fn netns(mut self, namespace: Option<impl AsRef<Path>>) -> Self {
        self.netns = namespace.map(|path| path.as_ref().to_owned());
        self
    }

    #[must_use]
    pub fn mount_ns(mut self, namespace: impl Into<PathBuf>) -> Self {
        self.mount_ns = Some(namespace.into());
        self
    }

    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    #[must_use]
    pub fn output_limit_bytes(mut self, limit: usize) -> Self {
        self.output_limit_bytes = limit;
        self
    }

    /// The command line for messages; not quoted for a shell.
    #[must_use]
    pub fn line(&self) -> String {
        let words = std::iter::once(&self.program).chain(&self.args);
        words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

/// What a program that ran to its end left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub exit: Exit,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// Whether some output was thrown away.
    pub truncated: bool,
}

impl Output {
    /// A successful end with this on standard output.
    pub fn ok(stdout: impl Into<Vec<u8>>) -> Self {
        Self { exit: Exit::Code(0), stdout: stdout.into(), stderr: Vec::new(), truncated: false }
    }

    /// An end with this code and this on standard error.
    pub fn failed(code: i32, stderr: impl Into<Vec<u8>>) -> Self {
        Self { exit: Exit::Code(code), stdout: Vec::new(), stderr: stderr.into(), truncated: false }
    }

    #[must_use]
    pub fn success(&self) -> bool {
        self.exit == Exit::Code(0)
    }

    /// Standard output as text; bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text, without surrounding blanks.
    #[must_use]
    pub fn error_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).trim().to_owned()
    }
}

/// A program that runs on after the caller ended. It leads a session of its own, so a terminal's signals pass it by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Daemon {
    /// `stdin`, `deadline` and `output_limit_bytes` do not apply.
    pub command: Command,
    /// Both output streams are appended here.
    pub log: PathBuf,
    /// Its process id is written here, in decimal, once it runs.
    pidfile: Option<PathBuf>,
    /// A host name of its own, seen by it and its children only.
    pub hostname: Option<String>,
    pub mounts: MountView,
}

/// Which mounts a daemon sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MountView {
    /// The caller's.
    #[default]
    Caller,
    /// Its own copy with everything shared between the daemon and what it starts, as mount propagation into containers
    /// needs; the machine sees none of its later mounts.
    OwnShared,
}

impl Daemon {
    /// A daemon that logs to `log` and has no pidfile.
    pub fn new(command: Command, log: impl Into<PathBuf>) -> Self {
        Self { command, log: log.into(), pidfile: None, hostname: None, mounts: MountView::Caller }
    }

    #[must_use]
    pub fn pidfile(mut self, path: impl Into<PathBuf>) -> Self {
        self.pidfile = Some(path.into());
        self
    }

    #[must_use]
    pub fn hostname(mut self, name: impl Into<String>) -> Self {
        self.hostname = Some(name.into());
        self
    }

    #[must_use]
    pub fn mounts(mut self, view: MountView) -> Self {
        self.mounts = view;
        self
    }
}

/// Starts programs.
#[async_trait]
pub trait Exec: Send + Sync {
    /// Runs the program to its end; whatever its exit code, that is a success here. Dropping the future kills it, with
    /// everything in its process group; what it leaves running in that group at its end is killed too.
    async fn run(&self, command: &Command) -> Result<Output, ExecError>;

    /// Runs the program and passes on what it writes to either stream, piece by piece; while nobody takes the pieces, the
    /// program waits. It is killed when nobody wants them any more, and at its deadline, and gets no standard input; the bound
    /// of the output does not apply.
    async fn pipe(&self, command: &Command, sink: mpsc::Sender<Vec<u8>>) -> Result<Exit, ExecError>;

    /// Starts a program that outlives the caller.
    async fn spawn(&self, daemon: &Daemon) -> Result<Process, ExecError>;

    /// Runs the program and takes any end but exit code 0 for an error.
    async fn run_ok(&self, command: &Command) -> Result<Output, ExecError> {
        let output = self.run(command).await?;
        if output.success() {
            return Ok(output);
        }
        Err(ExecError::Failed { line: command.line(), exit: output.exit, stderr: output.error_text() })
    }
}

/// Why a program did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// There is no such program.
    #[error("{program:?} is not installed")]
    NotFound { program: OsString },
    /// It, its namespace, its log or its pidfile could not be opened, or it could not be started.
    #[error("starting {line}: {what}")]
    Start {
        line: String,
        what: String,
        #[source]
        source: std::io::Error,
    },
    /// It was killed at its deadline.
    #[error("{line} took longer than {deadline:?}")]
    Deadline { line: String, deadline: Duration },
    /// Its output or its end could not be read.
    #[error("waiting for {line}")]
    Wait {
        line: String,
        #[source]
        source: std::io::Error,
    },
    /// It ended with another code than 0 (only [`Exec::run_ok`]).
    #[error("{line} ended with {exit:?}: {stderr}")]
    Failed { line: String, exit: Exit, stderr: String },
}
