//! Doing what the command line asks for.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use base::{Rng, SystemClock, TaskGroup};

use crate::cli::{self, Subcommand};
use crate::cluster::{self, ClusterError, Progress, Settings};

const DRAIN: Duration = Duration::from_secs(2);
/// Manifests hold no secrets, but say much about a cluster.
const MANIFEST_MODE: u32 = 0o600;
const UNIT_MODE: u32 = 0o644;

/// Runs `coxswain` with these arguments, the program's own name first.
#[must_use]
pub async fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let matches = match cli::command().try_get_matches_from(&arguments) {
        Ok(matches) => matches,
        Err(error) => {
            // The help and the usage error go to where they belong.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("coxswain"));
    let Some((wish, settings)) = cli::wish(&matches, &program) else { return ExitCode::from(2) };
    match fulfil(&wish, &settings).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            Progress::default().failure(&error);
            ExitCode::FAILURE
        }
    }
}

async fn fulfil(wish: &Subcommand, settings: &Settings) -> Result<(), ClusterError> {
    let (clock, rng, progress) = (SystemClock::shared(), Rng::from_os(), Progress::default());
    match wish {
        Subcommand::Up => {
            let tasks = TaskGroup::new("coxswain");
            cluster::up(settings, clock, rng, &tasks, progress).await?;
            tasks.shutdown(DRAIN).await;
            progress.result(&cluster::usage(settings));
        }
        Subcommand::Down(data) => cluster::down(settings, *data, progress).await?,
        Subcommand::Certs => cluster::tell(&cluster::certificates(settings, &clock, &rng)?, progress),
        Subcommand::RenewCerts => {
            for name in cluster::renew(settings, clock.wall(), &rng)? {
                progress.note(&format!("renewed {name}"));
            }
            progress.result(cluster::RENEWED);
        }
        Subcommand::Kubeconfig => {
            cluster::certificates(settings, &clock, &rng)?;
            for name in cluster::write_kubeconfigs(settings, clock.wall(), &rng)? {
                progress.note(&format!("wrote {name}"));
            }
        }
        Subcommand::Manifests(out) => {
            write_all(out, cluster::static_pods(settings, &cluster::image), MANIFEST_MODE, progress)?;
        }
        Subcommand::Units(out) => write_all(out, cluster::units(settings, &clock, &rng)?, UNIT_MODE, progress)?,
        Subcommand::Prepare => cluster::prepare(settings).await?,
        Subcommand::Addons => {
            let tasks = TaskGroup::new("coxswain");
            cluster::apply_addons(settings, clock, rng, &tasks).await?;
            tasks.shutdown(DRAIN).await;
        }
    }
    Ok(())
}

fn write_all(out: &Path, files: Vec<(String, String)>, mode: u32, progress: Progress) -> Result<(), ClusterError> {
    let failed = |action: &'static str, path: &Path| {
        let path = path.to_owned();
        move |source| ClusterError::File { action, path, source }
    };
    std::fs::create_dir_all(out).map_err(failed("creating", out))?;
    for (name, text) in files {
        let path = out.join(name);
        sys::fs::write_atomic(&path, text.as_bytes(), mode).map_err(failed("writing", &path))?;
        progress.note(&format!("wrote {}", path.display()));
    }
    Ok(())
}
