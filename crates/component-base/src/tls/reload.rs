//! Files that are read again while the process runs: every 60 seconds, as upstream does. Content that does not parse
//! keeps the former one, with an error in the log.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::TaskGroup;
use parking_lot::Mutex;

use super::{CaBundle, SharedCaBundle, TlsError, read_file};

/// How often files are read again.
pub const RELOAD_INTERVAL: Duration = Duration::from_secs(60);

/// Something that comes from files and can be read again.
pub trait Reload: Send + Sync + 'static {
    /// What it is, for the log.
    fn describe(&self) -> String;

    /// Reads the files; answers whether something changed.
    ///
    /// # Errors
    /// When a file cannot be read or does not parse; the former content stays in use.
    fn reload(&self) -> Result<bool, TlsError>;
}

/// Reads all targets again every [`RELOAD_INTERVAL`] until the group ends.
pub fn spawn_reloader(tasks: &TaskGroup, targets: Vec<Arc<dyn Reload>>) {
    tasks.spawn_cancellable("certificate-reloader", async move {
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
        Ok(true) => tracing::info!(what = %target.describe(), "Reloaded certificates"),
        Ok(false) => {}
        Err(error) => {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::error!(what = %target.describe(), %error, cause, "Reloading certificates failed, keeping the old ones");
        }
    }
}

/// What is told about a new bundle.
type Observer = Box<dyn Fn(&CaBundle) + Send + Sync>;

/// A CA bundle that follows its file.
pub struct CaFile {
    path: PathBuf,
    raw: Mutex<Vec<u8>>,
    bundle: SharedCaBundle,
    observers: Mutex<Vec<Observer>>,
}

impl CaFile {
    /// Reads the bundle for the first time.
    ///
    /// # Errors
    /// When the file cannot be read or holds no certificate.
    pub fn load(path: impl Into<PathBuf>) -> Result<Arc<Self>, TlsError> {
        let path = path.into();
        let raw = read_file(&path)?;
        let bundle = CaBundle::from_pem(&path.display().to_string(), &raw)?.into_shared();
        Ok(Arc::new(Self { path, raw: Mutex::new(raw), bundle, observers: Mutex::default() }))
    }

    /// The bundle, which changes with the file.
    #[must_use]
    pub fn bundle(&self) -> SharedCaBundle {
        Arc::clone(&self.bundle)
    }

    /// The text of the file as last accepted.
    #[must_use]
    pub fn pem(&self) -> Vec<u8> {
        self.raw.lock().clone()
    }

    /// Calls `observer` with every later content of the file.
    pub fn on_change(&self, observer: impl Fn(&CaBundle) + Send + Sync + 'static) {
        self.observers.lock().push(Box::new(observer));
    }
}

impl Reload for CaFile {
    fn describe(&self) -> String {
        self.path.display().to_string()
    }

    fn reload(&self) -> Result<bool, TlsError> {
        let raw = read_file(&self.path)?;
        if *self.raw.lock() == raw {
            return Ok(false);
        }
        let bundle = CaBundle::from_pem(&self.describe(), &raw)?;
        *self.raw.lock() = raw;
        let bundle = Arc::new(bundle);
        self.bundle.store(Arc::clone(&bundle));
        for observer in self.observers.lock().iter() {
            observer(&bundle);
        }
        Ok(true)
    }
}
