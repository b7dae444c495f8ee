//! Transformers that follow the file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use api_machinery::gvk::GroupResource;
use arc_swap::ArcSwap;
use async_trait::async_trait;
use base::SharedClock;
use bytes::Bytes;
use component_base::reload::{Reload, ReloadError};
use parking_lot::Mutex;
use storage::{Key, ReadValue, TransformError, Transformer};

use crate::config::{self, ConfigError, Document};
use crate::metrics::EncryptionMetrics;
use crate::providers::Attempt;
use crate::rules::{Names, Rules, names};

/// The rules that are in force.
pub struct Live {
    path: PathBuf,
    follows: bool,
    rules: Arc<ArcSwap<Rules>>,
    /// The hash of the file that was last looked at, used or not.
    seen: Mutex<String>,
    clock: SharedClock,
    metrics: EncryptionMetrics,
}

impl Live {
    /// Reads the file; `follows` is whether changes of it are to be taken.
    ///
    /// # Errors
    /// Everything that is wrong with the file.
    pub fn load(
        path: impl Into<PathBuf>,
        follows: bool,
        clock: SharedClock,
        metrics: EncryptionMetrics,
    ) -> Result<Arc<Self>, ConfigError> {
        let path = path.into();
        let (rules, hash) = read(&path, follows)?;
        let rules = Arc::new(ArcSwap::from_pointee(rules));
        Ok(Arc::new(Self { path, follows, rules, seen: Mutex::new(hash), clock, metrics }))
    }

    /// What the values of a resource pass; it follows the rules.
    #[must_use]
    pub fn transformer(&self, resource: &GroupResource) -> Arc<dyn Transformer> {
        Arc::new(OfResource {
            resource: resource.to_string(),
            names: names(resource),
            rules: Arc::clone(&self.rules),
            clock: Arc::clone(&self.clock),
            metrics: self.metrics.clone(),
        })
    }

    fn take(&self, document: &Document) -> Result<(), ConfigError> {
        self.rules.store(Arc::new(rules(&self.path, document, self.follows)?));
        Ok(())
    }
}

fn read(path: &Path, follows: bool) -> Result<(Rules, String), ConfigError> {
    let document = config::read(path).map_err(while_parsing)?;
    Ok((rules(path, &document, follows)?, document.hash))
}

fn rules(path: &Path, document: &Document, follows: bool) -> Result<Rules, ConfigError> {
    let configuration = config::parse(path, &document.text, follows).map_err(while_parsing)?;
    Rules::new(&configuration).map_err(|why| ConfigError(format!("error while building transformers: {why}")))
}

fn while_parsing(ConfigError(why): ConfigError) -> ConfigError {
    ConfigError(format!("error while parsing file: {why}"))
}

impl Reload for Live {
    fn describe(&self) -> String {
        self.path.display().to_string()
    }

    fn reload(&self) -> Result<bool, ReloadError> {
        let document = config::read(&self.path)?;
        if *self.seen.lock() == document.hash {
            return Ok(false);
        }
        let taken = self.take(&document);
        let now = self.clock.wall().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.metrics.reloaded(taken.is_ok(), now.as_secs_f64());
        // One with a mistake is tried, and told of, each time.
        taken?;
        *self.seen.lock() = document.hash;
        Ok(true)
    }
}

struct OfResource {
    resource: String,
    names: Names,
    rules: Arc<ArcSwap<Rules>>,
    clock: SharedClock,
    metrics: EncryptionMetrics,
}

impl OfResource {
    fn counted<T>(&self, way: &str, attempt: impl FnOnce(&Rules) -> Attempt<T>) -> Result<T, TransformError> {
        let began = self.clock.monotonic();
        let Attempt { prefix, result } = attempt(&self.rules.load());
        self.metrics.transformed(&self.resource, way, prefix, result.is_ok(), self.clock.monotonic() - began);
        result
    }
}

#[async_trait]
impl Transformer for OfResource {
    async fn on_read(&self, key: &Key, stored: &Bytes) -> Result<ReadValue, TransformError> {
        self.counted("from_storage", |rules| rules.find(&self.names).open(key.as_bytes(), stored))
    }

    async fn on_write(&self, key: &Key, value: &Bytes) -> Result<Bytes, TransformError> {
        self.counted("to_storage", |rules| rules.find(&self.names).seal(key.as_bytes(), value))
    }
}
