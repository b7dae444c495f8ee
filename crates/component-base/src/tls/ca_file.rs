//! A CA bundle in a file that may change.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{CaBundle, SharedCaBundle, TlsError, read_file};
use crate::reload::{Reload, ReloadError};

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

    fn reload(&self) -> Result<bool, ReloadError> {
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
