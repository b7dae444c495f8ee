//! One run of a plugin: the program, its bounds, and what is said where it fails.

use std::time::Duration;

use sys::exec::{Command, Exec, ExecError, Exit, Output};
use tokio::time::Instant;

use super::metrics::PluginMetrics;
use super::plugin::ExecPlugin;
use crate::config::system_text;

const INFO_VARIABLE: &str = "KUBERNETES_EXEC_INFO";
/// No token takes longer to get that is worth waiting for; upstream waits for ever.
const LIMIT: Duration = Duration::from_mins(1);
/// A token or a certificate with its chain is a few kilobytes.
const OUTPUT_BYTES: usize = 256 * 1024;
/// What of a plugin's complaints goes into the log.
const LOGGED_BYTES: usize = 4096;
const HELP: &str = "

It looks like you are trying to use a client-go credential plugin that is not installed.

To learn more about this feature, consult the documentation available at:
      https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins";
/// How often an hour help is given, as upstream.
const HELPS: u32 = 10;
const HELP_WINDOW: Duration = Duration::from_hours(1);

/// Counts how often help was given, so that logs are not full of it.
#[derive(Debug, Default)]
pub(super) struct Helps {
    window: Option<Instant>,
    given: u32,
}

impl Helps {
    fn may_give(&mut self, now: Instant) -> bool {
        if self.window.is_none_or(|began| now.saturating_duration_since(began) >= HELP_WINDOW) {
            (self.window, self.given) = (Some(now), 0);
        }
        self.given += 1;
        self.given <= HELPS
    }
}

/// Runs a plugin to its end and gives what it wrote. It inherits the process's environment and has no standard input.
///
/// # Errors
/// When it cannot be started, does not end in time, fails, or writes more than it may.
pub(super) async fn run(
    plugin: &ExecPlugin,
    exec: &dyn Exec,
    metrics: Option<&PluginMetrics>,
) -> Result<Vec<u8>, RunError> {
    let outcome = exec.run(&command(plugin)).await;
    if let Some(metrics) = metrics {
        let (code, status) = counted(&outcome);
        metrics.called(code, status);
    }
    let output = outcome.map_err(|error| RunError::of(plugin, &error))?;
    log_complaints(plugin, &output);
    match output.exit {
        Exit::Code(0) if output.truncated => Err(RunError::Other(format!("output of more than {OUTPUT_BYTES} bytes"))),
        Exit::Code(0) => Ok(output.stdout),
        exit => Err(RunError::Failed { command: plugin.command.clone(), code: code(exit) }),
    }
}

fn command(plugin: &ExecPlugin) -> Command {
    let command = Command::new(&plugin.command).args(&plugin.args).deadline(LIMIT).output_limit_bytes(OUTPUT_BYTES);
    let command = plugin.env.iter().fold(command, |command, (name, value)| command.env(name, value));
    command.env(INFO_VARIABLE, &plugin.info)
}

/// A program that a signal ended has no code of its own.
const fn code(exit: Exit) -> i32 {
    match exit {
        Exit::Code(code) => code,
        Exit::Signal(_) => -1,
    }
}

fn counted(outcome: &Result<Output, ExecError>) -> (i32, &'static str) {
    match outcome {
        Ok(output) if output.success() => (0, "no_error"),
        Ok(output) => (code(output.exit), "plugin_execution_error"),
        Err(ExecError::NotFound { .. } | ExecError::Start { .. }) => (1, "plugin_not_found_error"),
        Err(_) => (1, "client_internal_error"),
    }
}

fn log_complaints(plugin: &ExecPlugin, output: &Output) {
    let text = output.stderr.get(..LOGGED_BYTES).unwrap_or(&output.stderr);
    if !text.is_empty() {
        let text = String::from_utf8_lossy(text);
        tracing::info!(command = %plugin.command, stderr = text.trim(), "A credential plugin wrote to its standard error");
    }
}

/// Why a plugin wrote nothing of use; the texts are upstream's.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error("exec: executable {0} not found")]
    NotFound(String),
    #[error("exec: executable {command} failed with exit code {code}")]
    Failed { command: String, code: i32 },
    #[error("exec: {0}")]
    Other(String),
}

impl RunError {
    fn of(plugin: &ExecPlugin, error: &ExecError) -> Self {
        let command = &plugin.command;
        let unstarted = |why: &str| Self::Other(format!("fork/exec {command}: {why}"));
        match error {
            // A bare name is looked up, and only that is called not found.
            ExecError::NotFound { .. } | ExecError::Start { .. } if !command.contains('/') => {
                Self::NotFound(command.clone())
            }
            ExecError::NotFound { .. } => unstarted("no such file or directory"),
            ExecError::Start { source, .. } => unstarted(&system_text(source)),
            ExecError::Deadline { deadline, .. } => Self::Other(format!("{command} took longer than {deadline:?}")),
            // Other errors would show the arguments.
            _ => Self::Other(format!("waiting for {command} failed")),
        }
    }

    /// The text, with help for who has to install the plugin.
    pub(super) fn text(&self, hint: &str, helps: &mut Helps, now: Instant) -> String {
        let mut text = self.to_string();
        if matches!(self, Self::NotFound(_)) && helps.may_give(now) {
            text.push_str(HELP);
            if !hint.is_empty() {
                text.push_str("\n\n");
                text.push_str(hint);
            }
        }
        text
    }
}
