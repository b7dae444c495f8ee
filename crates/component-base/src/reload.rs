//! Files that are read again while the process runs: every 60 seconds, as upstream does. Content that does not parse
//! keeps the former one, with an error in the log.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use base::TaskGroup;

/// How often files are read again.
pub const RELOAD_INTERVAL: Duration = Duration::from_secs(60);

/// Why a file could not be taken.
pub type ReloadError = Box<dyn Error + Send + Sync>;

/// Something that comes from files and can be read again.
pub trait Reload: Send + Sync + 'static {
    /// What it is, for the log.
    fn describe(&self) -> String;

    /// Reads the files; answers whether something changed.
    ///
    /// # Errors
    /// When a file cannot be read or does not parse; the former content stays in use.
    fn reload(&self) -> Result<bool, ReloadError>;
}

/// Reads all targets again every [`RELOAD_INTERVAL`] until the group ends.
pub fn spawn_reloader(tasks: &TaskGroup, targets: Vec<Arc<dyn Reload>>) {
    tasks.spawn_cancellable("reloader", async move {
        loop {
            tokio::time::sleep(RELOAD_INTERVAL).await;
            for target in &targets {
                reload_one(target.as_ref());
            }
        }
    });
}

fn reload_one(target: &dyn Reload) {
    match target.reload() {
        Ok(true) => tracing::info!(what = %target.describe(), "Reloaded"),
        Ok(false) => {}
        Err(error) => {
            let cause = error.source().map(ToString::to_string);
            tracing::error!(what = %target.describe(), %error, cause, "Reloading failed, keeping what was there");
        }
    }
}
