//! What a plugin is.

use std::sync::Arc;

use api_machinery::object::{KindType, Object};
use api_machinery::status::ApiError;
use async_trait::async_trait;
use base::{SharedClock, SharedRng};

use crate::webhook::Callers;
use crate::{Attributes, Lookup, Pass, PodSecurityConfig, Recorder, Versions};

/// What plugins are given besides the request.
#[derive(Clone)]
pub struct Context {
    /// Reads of cluster state.
    pub lookup: Arc<dyn Lookup>,
    /// The versions in which kinds are served.
    pub versions: Arc<dyn Versions>,
    /// Who brings questions to webhooks.
    pub callers: Callers,
    /// The time.
    pub clock: SharedClock,
    /// Randomness for generated names.
    pub rng: SharedRng,
    /// What is counted and timed.
    pub recorder: Arc<dyn Recorder>,
}

/// The flags that configure plugins.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `--default-not-ready-toleration-seconds`
    pub not_ready_toleration_seconds: i64,
    /// `--default-unreachable-toleration-seconds`
    pub unreachable_toleration_seconds: i64,
    /// What `--admission-control-config-file` says of PodSecurity.
    pub pod_security: PodSecurityConfig,
}

impl Default for Settings {
    fn default() -> Self {
        let (not_ready_toleration_seconds, unreachable_toleration_seconds) = (300, 300);
        Self {
            not_ready_toleration_seconds,
            unreachable_toleration_seconds,
            pod_security: PodSecurityConfig::default(),
        }
    }
}

/// A plugin. Mutation must be idempotent, as it can run twice for a request; validation cannot change anything.
#[async_trait]
pub trait Plugin: Send + Sync {
    /// Whether the plugin has anything to do with the request.
    fn handles(&self, attributes: &Attributes) -> bool;

    /// The same, for plugins that have nothing to do with any request unless the cluster has objects that say so.
    fn is_needed(&self, _cx: &Context, attributes: &Attributes) -> bool {
        self.handles(attributes)
    }

    /// May change the new object.
    async fn mutate(
        &self,
        _cx: &Context,
        _attributes: &Attributes,
        _object: Option<&mut dyn Object>,
        _old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        Ok(())
    }

    /// May refuse the request.
    async fn validate(
        &self,
        _cx: &Context,
        _attributes: &Attributes,
        _object: Option<&dyn Object>,
        _old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        Ok(())
    }
}

/// The passes of a plugin. It is not asked, and not measured, in the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passes {
    /// It changes objects.
    Mutating,
    /// It refuses requests.
    Validating,
    /// It does both.
    Both,
}

impl Passes {
    /// Whether this pass is one of them.
    pub(crate) fn has(self, pass: Pass) -> bool {
        matches!(
            (self, pass),
            (Self::Both, _) | (Self::Mutating, Pass::Mutating) | (Self::Validating, Pass::Validating)
        )
    }
}

/// A line of the list of plugins.
pub struct PluginEntry {
    /// The name in flags.
    pub name: &'static str,
    /// Whether it runs unless it is switched off.
    pub enabled_by_default: bool,
    /// In which passes it does anything.
    pub passes: Passes,
    /// The kinds that it looks up: of these the API server keeps a cache, whatever `--watch-cache-sizes` says, as upstream
    /// has informers of them.
    pub reads: &'static [&'static KindType],
    /// Makes the plugin.
    pub build: fn(&Settings) -> Box<dyn Plugin>,
}
