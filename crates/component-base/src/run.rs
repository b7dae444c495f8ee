//! The frame around a component's main function: flags in, exit code out.
//!
//! `--help` and `--version` are answered, mistakes in flags are reported, the log is started, signals begin the
//! shutdown, and tasks are drained. A second signal ends the process at once with code 1.

use std::future::Future;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use base::{Drained, SystemClock, Tidy};
use feature_gates::{Known, Resolved};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::flags::{self, Errors, FlagSet, Invalid, Options, Versions};
use crate::idle::Idle;
use crate::lifecycle::Lifecycle;
use crate::logging::{LogOptions, Logging};
use crate::serving::BoxError;
use crate::{notify, tls, version};

/// A binary.
#[derive(Debug, Clone, Copy)]
pub struct Component {
    /// Its name, as upstream's binary is called.
    pub name: &'static str,
    /// What it does, for `--help`.
    pub about: &'static str,
    /// Its flags. [`flags::GLOBAL`] and [`flags::LOGS`] must be among them.
    pub flags: &'static [FlagSet],
    /// The feature gates it knows, and those that its code can switch.
    pub gates: Known,
    /// Called with the flags before anything reads them: the place to load a configuration file and hand its log
    /// settings and feature gates to [`Options::set_from_file`] and [`Options::merge_from_file`]. Components without
    /// one use [`no_config_file`].
    pub prepare: fn(&mut Options) -> Result<(), Invalid>,
    /// How long its tasks may take to end.
    pub drain: Duration,
}

/// For [`Component::prepare`] of components without a configuration file.
///
/// # Errors
/// Never.
pub fn no_config_file(_: &mut Options) -> Result<(), Invalid> {
    Ok(())
}

/// Runs a component with the arguments of the process. `main` returns when the component has ended: after
/// [`Lifecycle::shutdown_requested`], or with an error. `tidy` is called now and then by the threads of the runtime
/// before they sleep.
pub fn run<F, A>(component: &Component, tidy: Tidy, main: F) -> ExitCode
where
    F: FnOnce(Options, Lifecycle) -> A,
    A: Future<Output = Result<(), BoxError>>,
{
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    run_with(component, arguments, tidy, main)
}

/// Runs a component with other arguments than those of the process.
pub fn run_with<F, A>(
    component: &Component,
    arguments: impl IntoIterator<Item = String>,
    tidy: Tidy,
    main: F,
) -> ExitCode
where
    F: FnOnce(Options, Lifecycle) -> A,
    A: Future<Output = Result<(), BoxError>>,
{
    match start(component, arguments) {
        Ok(Start::Say(text)) => {
            // A reader that has gone away has seen enough.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Ok(Start::Go { options, versions, gates, log }) => {
            match live(component, *options, (versions, gates), &log, (tidy, main)) {
                Ok(code) => code,
                Err(error) => refuse(component, &error),
            }
        }
        Err(error) => refuse(component, &error),
    }
}

/// What the arguments ask for.
enum Start {
    Say(String),
    Go { options: Box<Options>, versions: Versions, gates: Resolved, log: LogOptions },
}

fn start(component: &Component, arguments: impl IntoIterator<Item = String>) -> Result<Start, Invalid> {
    let mut options = flags::parse(component.flags, arguments)?;
    if options.bool("help") {
        return Ok(Start::Say(flags::help(component.name, component.about, component.flags, &component.gates)));
    }
    match options.string("version") {
        "true" => return Ok(Start::Say(format!("{}\n", version::line()))),
        "raw" => return Ok(Start::Say(format!("{}\n", version::raw()))),
        told if told.starts_with('v') => version::tell_as(told).map_err(Invalid::one)?,
        _ => {}
    }
    (component.prepare)(&mut options)?;
    let mut errors = Errors::new();
    let arguments = options.arguments();
    errors.check(
        arguments.is_empty(),
        format!("{:?} does not take any arguments, got [{}]", component.name, quoted(arguments)),
    );
    let versions = Versions::from_options(&options, &mut errors);
    let gates = flags::gates(&options, &component.gates, versions, &mut errors);
    let log = LogOptions::from_options(&options, &gates.gates, &mut errors);
    errors.into_result()?;
    Ok(Start::Go { options: Box::new(options), versions, gates, log })
}

fn quoted(arguments: &[String]) -> String {
    arguments.iter().map(|argument| format!("{argument:?}")).collect::<Vec<_>>().join(" ")
}

fn refuse(component: &Component, error: &dyn std::fmt::Display) -> ExitCode {
    say(&format!("Error: {error}\nSee '{} --help' for usage.\n", component.name));
    ExitCode::FAILURE
}

/// For what comes before the log.
fn say(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn live<F, A>(
    component: &Component,
    options: Options,
    (versions, gates): (Versions, Resolved),
    log: &LogOptions,
    (tidy, main): (Tidy, F),
) -> Result<ExitCode, std::io::Error>
where
    F: FnOnce(Options, Lifecycle) -> A,
    A: Future<Output = Result<(), BoxError>>,
{
    for warning in options.warnings() {
        say(&format!("{warning}\n"));
    }
    let logging = Logging::start(log, SystemClock::shared())?;
    tls::install_default();
    for warning in &gates.warnings {
        tracing::warn!("{warning}");
    }
    tracing::info!(version = version::git_version(), component = component.name, "Starting");
    for (flag, value) in options.iter() {
        tracing::info!(v = 1, "FLAG: --{}={:?}", flag.name, value.to_string());
    }
    let flags = options.iter().map(|(flag, value)| (flag.name.to_owned(), value.to_string())).collect();
    let lifecycle = Lifecycle::of_process(component.name, versions, gates.gates, logging.clone());
    let lifecycle = lifecycle.with_command_line(flags);
    let idle = Idle::new(tidy);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().on_thread_park(move || idle.before_sleep()).build()?;
    let code = runtime.block_on(supervise(component, lifecycle, |lifecycle| main(options, lifecycle)));
    // What still runs was reported as stuck, or a second signal says not to wait.
    runtime.shutdown_background();
    logging.flush();
    code
}

/// Runs the main function until it ends or a second signal comes.
async fn supervise<F, A>(component: &Component, lifecycle: Lifecycle, main: F) -> Result<ExitCode, std::io::Error>
where
    F: FnOnce(Lifecycle) -> A,
    A: Future<Output = Result<(), BoxError>>,
{
    let mut signals = Signals::listen()?;
    let ending = lifecycle.clone();
    let work = async {
        let outcome = main(lifecycle.clone()).await;
        notify::stopping();
        let drained = lifecycle.tasks().shutdown(component.drain).await;
        (outcome, drained)
    };
    let second_signal = async {
        signals.next().await;
        ending.begin_shutdown();
        signals.next().await;
    };
    tokio::select! {
        biased;
        () = second_signal => {
            tracing::warn!("Received a second signal, exiting at once");
            Ok(ExitCode::FAILURE)
        }
        (outcome, drained) = work => Ok(report(outcome, &drained)),
    }
}

fn report(outcome: Result<(), BoxError>, drained: &Drained) -> ExitCode {
    match outcome {
        Ok(()) => {
            tracing::info!(drained = *drained == Drained::All, "Shutdown complete");
            ExitCode::SUCCESS
        }
        Err(error) => {
            tracing::error!(error = %chain(error.as_ref()), "command failed");
            ExitCode::FAILURE
        }
    }
}

/// An error with its causes; texts that already end with their cause are not repeated.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    /// Longer chains are a loop or noise.
    const DEPTH: usize = 16;
    let mut text = error.to_string();
    let causes = std::iter::successors(error.source(), |cause| cause.source()).take(DEPTH);
    for cause in causes.map(ToString::to_string) {
        if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPONENT: Component = Component {
        name: "kube-test",
        about: "Tests.",
        flags: &[flags::GLOBAL, flags::LOGS],
        gates: Known::KUBERNETES,
        prepare: |options| options.set_from_file("v", "3").map_err(Invalid::one),
        drain: Duration::from_secs(1),
    };

    fn starting(line: &str) -> Result<Start, String> {
        start(&COMPONENT, line.split_whitespace().map(str::to_owned)).map_err(|error| error.to_string())
    }

    #[test]
    fn arguments_decide_what_happens() {
        assert!(matches!(starting(""), Ok(Start::Go { options, .. }) if options.int("v") == 3));
        assert!(matches!(starting("-v=2"), Ok(Start::Go { options, .. }) if options.int("v") == 2));
        assert!(matches!(starting("--version"), Ok(Start::Say(text)) if text == "Kubernetes v1.36.3+coxswain\n"));
        assert!(matches!(starting("--version=raw"), Ok(Start::Say(text)) if text.starts_with("version.Info{")));
        let other = "invalid argument \"v1.35.0\" for \"--version\" flag: version \"v1.35.0\" must match \
                     major/minor/patch of default version \"v1.36.3+coxswain\"";
        assert_eq!(starting("--version=v1.35.0").err().as_deref(), Some(other));
        assert!(matches!(starting("-h --nope=x").err().as_deref(), Some("unknown flag: --nope")));
        assert!(matches!(starting("-h"), Ok(Start::Say(text)) if text.contains("Usage:\n  kube-test [flags]\n")));
        let arguments = "\"kube-test\" does not take any arguments, got [\"a\" \"b\"]";
        assert_eq!(starting("a b").err().as_deref(), Some(arguments));
        let both = "[format: Invalid value: \"xml\": Unsupported log format, \
                    options.text.splitStream: Forbidden: Feature LoggingAlphaOptions is disabled]";
        assert_eq!(starting("--logging-format=xml --log-text-split-stream").err().as_deref(), Some(both));
    }

    #[test]
    fn causes_are_told_once() {
        let inner = std::io::Error::other("disk full");
        let outer = crate::serving::ServeError::Generate("disk full".into());
        assert_eq!(chain(&outer), "unable to generate self signed cert: disk full");
        let read = tls::TlsError::Read { path: "/a".into(), source: inner };
        assert_eq!(chain(&read), "open /a: disk full");
    }
}
