//! Transformers that follow the file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use api_machinery::gvk::GroupResource;
use arc_swap::ArcSwap;
use async_trait::async_trait;
use base::Backoff;
use bytes::Bytes;
use component_base::health::{Check, CheckResult};
use parking_lot::Mutex;
use storage::{Key, ReadValue, TransformError, Transformer};

use crate::Surroundings;
use crate::config::{self, ConfigError};
use crate::kms::Version;
use crate::metrics::Way;
use crate::providers::Attempt;
use crate::rules::{Names, Rules, names};

/// How often it is looked whether the file changed.
pub(crate) const INTERVAL: Duration = Duration::from_secs(60);
/// How soon after a failure, at first.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// How long the plug-ins of a changed file are given to be well, at least.
const LEAST_WAIT: Duration = Duration::from_secs(10);
/// How often they are asked meanwhile.
const WAIT_INTERVAL: Duration = Duration::from_millis(100);

/// The rules that are in force.
pub struct Live {
    path: PathBuf,
    follows: bool,
    rules: Arc<ArcSwap<Rules>>,
    /// The hash of the file in force.
    hash: Mutex<String>,
    around: Surroundings,
}

impl Live {
    /// Reads the file; `follows` is whether changes of it will be taken. Must be called within a runtime: what providers
    /// do all the time begins.
    ///
    /// # Errors
    /// Everything that is wrong with the file.
    pub fn load(path: impl Into<PathBuf>, follows: bool, around: Surroundings) -> Result<Arc<Self>, ConfigError> {
        let path = path.into();
        let document = config::read(&path).map_err(while_parsing)?;
        let rules = rules(&path, &document.text, follows, &around)?;
        rules.begin();
        around.metrics.in_force(&document.hash, None);
        let rules = Arc::new(ArcSwap::from_pointee(rules));
        Ok(Arc::new(Self { path, follows, rules, hash: Mutex::new(document.hash), around }))
    }

    /// What the values of a resource pass; it follows the rules.
    #[must_use]
    pub fn transformer(&self, resource: &GroupResource) -> Arc<dyn Transformer> {
        Arc::new(OfResource {
            resource: resource.to_string(),
            names: names(resource),
            rules: Arc::clone(&self.rules),
            around: self.around.clone(),
        })
    }

    /// The health checks of the plug-ins: one for all where they may change or are of the new version, one for each
    /// otherwise.
    #[must_use]
    pub fn checks(self: &Arc<Self>) -> Vec<Check> {
        let rules = self.rules.load_full();
        let is_empty = rules.kms().next().is_none();
        if self.follows || (!is_empty && rules.kms().all(|own| own.version == Version::V2)) {
            let own = Arc::clone(self);
            return vec![Check::new("kms-providers", move || {
                let own = Arc::clone(&own);
                async move { own.check().await }
            })];
        }
        let check = |(index, own): (usize, &crate::kms::Kms)| {
            let plugin = Arc::clone(&own.plugin);
            Check::new(format!("kms-provider-{index}"), move || {
                let plugin = Arc::clone(&plugin);
                async move { plugin.check().await }
            })
        };
        rules.kms().enumerate().map(check).collect()
    }

    async fn check(&self) -> CheckResult {
        let rules = self.rules.load_full();
        rules.check().await
    }

    /// Whether changes of the file are taken.
    #[must_use]
    pub fn follows(&self) -> bool {
        self.follows
    }

    /// Follows the file for ever.
    pub async fn follow(self: Arc<Self>) {
        let mut retries = Backoff::new(FIRST_RETRY, 2.0, INTERVAL, 0.1);
        loop {
            let pause = match self.look_again().await {
                Ok(changed) => {
                    if changed {
                        tracing::info!(file = %self.path.display(), "Values are encrypted as the changed file says");
                    }
                    retries.reset();
                    INTERVAL
                }
                Err(error) => {
                    tracing::error!(%error, "A changed encryption configuration is not used, the former is kept");
                    retries.step(&self.around.rng)
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Takes the file if it changed, once the plug-ins that it names are well; answers whether it did.
    ///
    /// # Errors
    /// When it is not used; the former stays in force.
    pub async fn look_again(&self) -> Result<bool, ConfigError> {
        let document = config::read(&self.path)?;
        let former = self.hash.lock().clone();
        if former == document.hash {
            return Ok(false);
        }
        let taken = self.take(&document.text).await;
        // One with a mistake is tried, and told of, each time.
        self.around.metrics.reloaded(taken.is_ok(), self.around.clock.wall());
        taken?;
        self.around.metrics.in_force(&document.hash, Some(&former));
        *self.hash.lock() = document.hash;
        Ok(true)
    }

    async fn take(&self, text: &str) -> Result<(), ConfigError> {
        let rules = Arc::new(rules(&self.path, text, self.follows, &self.around)?);
        rules.begin();
        if let Err(error) = wait_until_well(&rules).await {
            rules.end();
            return Err(error);
        }
        let former = self.rules.swap(rules);
        // Whoever began with the former is given the time that its calls may take.
        self.around.tasks.spawn_cancellable("former-encryption-providers", async move {
            tokio::time::sleep(former.check_limit()).await;
            former.end();
        });
        Ok(())
    }
}

async fn wait_until_well(rules: &Rules) -> Result<(), ConfigError> {
    let mut last = Ok(());
    let waiting = async {
        loop {
            last = rules.check().await;
            if last.is_ok() {
                return;
            }
            tokio::time::sleep(WAIT_INTERVAL).await;
        }
    };
    let waited = tokio::time::timeout(rules.check_limit().max(LEAST_WAIT), waiting).await;
    let why = last.err().unwrap_or_else(|| "timed out waiting for the condition".to_owned());
    waited.map_err(|_| ConfigError(format!("the KMS providers of the changed file are not healthy: {why}")))
}

fn rules(path: &Path, text: &str, follows: bool, around: &Surroundings) -> Result<Rules, ConfigError> {
    let configuration = config::parse(path, text, follows).map_err(while_parsing)?;
    Rules::new(&configuration, around).map_err(|why| ConfigError(format!("error while building transformers: {why}")))
}

fn while_parsing(ConfigError(why): ConfigError) -> ConfigError {
    ConfigError(format!("error while parsing file: {why}"))
}

struct OfResource {
    resource: String,
    names: Names,
    rules: Arc<ArcSwap<Rules>>,
    around: Surroundings,
}

impl OfResource {
    fn counted<T>(&self, way: Way, began: tokio::time::Instant, attempt: Attempt<'_, T>) -> Result<T, TransformError> {
        let Attempt { prefix, result } = attempt;
        let failed = result.as_ref().err().map(|failure| failure.code);
        let took = self.around.clock.monotonic() - began;
        self.around.metrics.transformed(&self.resource, way, prefix, failed, took);
        result.map_err(TransformError::from)
    }
}

#[async_trait]
impl Transformer for OfResource {
    async fn on_read(&self, key: &Key, stored: &Bytes) -> Result<ReadValue, TransformError> {
        let (began, rules) = (self.around.clock.monotonic(), self.rules.load_full());
        self.counted(Way::FromStorage, began, rules.find(&self.names).open(key.as_bytes(), stored).await)
    }

    async fn on_write(&self, key: &Key, value: &Bytes) -> Result<Bytes, TransformError> {
        let (began, rules) = (self.around.clock.monotonic(), self.rules.load_full());
        self.counted(Way::ToStorage, began, rules.find(&self.names).seal(key.as_bytes(), value).await)
    }
}
