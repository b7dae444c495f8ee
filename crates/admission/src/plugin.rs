//! What a plugin is.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::sync::Arc;

use api_machinery::object::{KindType, Object};
use api_machinery::status::ApiError;
use api_machinery::value::Value;
use async_trait::async_trait;
use base::{SharedClock, SharedRng};
use component_helpers::taints::Comparing;

use crate::webhook::Callers;
use crate::{ALL, Attributes, Lookup, Manifests, Pass, Recorder, Selection, Versions};

/// What plugins are given besides the request.
#[derive(Clone)]
pub struct Context {
    /// Reads of cluster state.
    pub lookup: Arc<dyn Lookup>,
    /// What files state of webhooks and policies.
    pub manifests: Arc<dyn Manifests>,
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
    /// Whether nodes say which features they have, and updates of pods are held against it (gate `NodeDeclaredFeatures`).
    pub node_declared_features: bool,
    /// Whether policies may change what is written (gate `MutatingAdmissionPolicy`).
    pub mutating_policies: bool,
    /// Whether groups of pods have a priority (gate `WorkloadAwarePreemption`).
    pub group_priorities: bool,
    /// Whether devices can be had as extended resources, which quotas count then (gate `DRAExtendedResource`).
    pub extended_resources: bool,
    /// Whether what pods ask for as a whole counts (gate `PodLevelResources`).
    pub pod_level_resources: bool,
    /// Whether pods learn where their node is by labels (gate `PodTopologyLabelsAdmission`).
    pub topology_labels: bool,
    /// Whether a node gets tokens only for the audiences that its pods ask for (gate `ServiceAccountNodeAudienceRestriction`).
    pub node_audiences: bool,
    /// Whether a node may ask for a certificate of a kubelet with any name (gate
    /// `AllowInsecureKubeletCertificateSigningRequests`).
    pub insecure_kubelet_requests: bool,
    /// What `--admission-control-config-file` says of plugins.
    pub configured: Configurations,
}

/// What a configuration says of a plugin, as the plugin's own type.
pub type Configured = Arc<dyn Any + Send + Sync>;

/// What a plugin's configuration is read from.
#[derive(Debug, Clone, Copy)]
pub struct Stated<'a> {
    /// What a file says of the plugin; nothing where none does.
    pub value: Option<&'a Value>,
    /// How tolerations in it may compare (gate `TaintTolerationComparisonOperators`).
    pub comparing: Comparing,
}

#[cfg(test)]
impl<'a> Stated<'a> {
    /// As a file says it, all gates as they are by default.
    pub(crate) fn by_default(value: &'a Value) -> Self {
        Self { value: Some(value), comparing: Comparing::Texts }
    }
}

/// Reads what a configuration says of a plugin.
pub type ReadConfiguration = fn(Stated<'_>) -> Result<Configured, String>;

/// The configuration of a plugin is wrong, or missing where it may not be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("couldn't init admission plugin {plugin:?}: {why}")]
pub struct ConfigurationError {
    /// The plugin.
    pub plugin: &'static str,
    /// What is wrong.
    pub why: String,
}

/// The configurations of plugins, by their types.
#[derive(Debug, Clone, Default)]
pub struct Configurations(BTreeMap<TypeId, Configured>);

impl Configurations {
    /// Reads the configurations of all plugins that a file has something for, and of all that run and may have one.
    ///
    /// # Errors
    /// What is wrong with each.
    pub fn read(
        selection: &Selection,
        of: &BTreeMap<String, Value>,
        comparing: Comparing,
    ) -> Result<Self, Vec<ConfigurationError>> {
        let (mut read_ones, mut problems) = (Self::default(), Vec::new());
        for entry in ALL {
            let (Some(read), value) = (entry.configuration, of.get(entry.name)) else { continue };
            if value.is_none() && !selection.chooses(entry) {
                continue;
            }
            match read(Stated { value, comparing }) {
                Ok(configured) => read_ones.put(configured),
                Err(why) => problems.push(ConfigurationError { plugin: entry.name, why }),
            }
        }
        if problems.is_empty() { Ok(read_ones) } else { Err(problems) }
    }

    /// Keeps a configuration that was read.
    pub(crate) fn put(&mut self, configured: Configured) {
        self.0.insert((*configured).type_id(), configured);
    }

    /// The configuration of this type.
    #[must_use]
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(self.0.get(&TypeId::of::<T>())?).downcast().ok()
    }
}

impl Default for Settings {
    fn default() -> Self {
        let (not_ready_toleration_seconds, unreachable_toleration_seconds) = (300, 300);
        Self {
            not_ready_toleration_seconds,
            unreachable_toleration_seconds,
            node_declared_features: true,
            mutating_policies: true,
            group_priorities: true,
            extended_resources: true,
            pod_level_resources: true,
            topology_labels: true,
            node_audiences: true,
            insecure_kubelet_requests: false,
            configured: Configurations::default(),
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
    /// Reads its configuration, if it has one.
    pub configuration: Option<ReadConfiguration>,
    /// Makes the plugin.
    pub build: fn(&Settings) -> Box<dyn Plugin>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn configurations_are_read_of_plugins_that_run_or_are_named() {
        let missing = "couldn't init admission plugin \"ImagePolicyWebhook\": no config specified";
        let wrong = "couldn't init admission plugin \"PodSecurity\": no kind \"X\" is registered for version \"v1\"";
        let of_kind_x = || json!({"apiVersion": "v1", "kind": "X"});
        for (enabled, of, expected) in [
            ("", None, vec![]),
            ("PodNodeSelector", None, vec![]),
            ("ImagePolicyWebhook", None, vec![missing]),
            ("", Some(("PodSecurity", of_kind_x())), vec![wrong]),
            ("ImagePolicyWebhook", Some(("PodSecurity", of_kind_x())), vec![missing, wrong]),
            ("", Some(("PodNodeSelector", json!({"podNodeSelectorPluginConfig": {"n": "a=b"}}))), vec![]),
        ] {
            let selection = Selection { enabled: vec![enabled.to_owned()], disabled: Vec::new() };
            let of = of.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            let problems = Configurations::read(&selection, &of, Comparing::Texts).err().unwrap_or_default();
            let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
            assert_eq!(texts, expected, "{enabled} {of:?}");
        }
    }
}
