//! Which resource has which providers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::gvk::GroupResource;
use api_types::apiserver_config_v1::EncryptionConfiguration;
use base::TaskGroup;
use futures_util::future::join_all;

use crate::Surroundings;
use crate::kms::{Kms, Version};
use crate::providers::{Provider, ProviderError, Providers};

const ANY: &str = "*";

/// The names under which the file may speak of a resource, the closest first: its own, all of its group, everything.
pub(crate) type Names = [GroupResource; 3];

/// The names of a resource.
pub(crate) fn names(resource: &GroupResource) -> Names {
    [resource.clone(), GroupResource::named(&resource.group, ANY), GroupResource::named(ANY, ANY)]
}

/// The providers of each name in the file.
pub(crate) struct Rules {
    by_name: HashMap<GroupResource, Providers>,
    others: Providers,
    /// All providers in the file's order.
    all: Vec<Arc<Provider>>,
    /// What is done for as long as the rules are used.
    tasks: TaskGroup,
}

/// Why rules cannot be made of a configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RulesError {
    #[error("resource {resource:?} is masked by earlier rule {earlier:?}")]
    Masked { resource: String, earlier: String },
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

impl Rules {
    /// Of a configuration that was found valid.
    ///
    /// # Errors
    /// When a rule can never apply, or names a provider that this server does not have.
    pub(crate) fn new(configuration: &EncryptionConfiguration, around: &Surroundings) -> Result<Self, RulesError> {
        let mut by_name: HashMap<GroupResource, Vec<Arc<Provider>>> = HashMap::new();
        let mut all = Vec::new();
        for element in &configuration.resources {
            // The resources of an element share its providers, and the connections of those.
            let made = element.providers.iter().map(|own| Ok(Arc::new(Provider::new(own, around)?)));
            let providers = made.collect::<Result<Vec<_>, ProviderError>>()?;
            for text in &element.resources {
                let resource = GroupResource::parse(text);
                let [_, group, everything] = names(&resource);
                if let Some(earlier) = [group, everything].iter().find(|earlier| by_name.contains_key(*earlier)) {
                    let (resource, earlier) = (shown(&resource), shown(earlier));
                    return Err(RulesError::Masked { resource, earlier });
                }
                by_name.entry(resource).or_default().extend(providers.iter().cloned());
            }
            all.extend(providers);
        }
        let by_name = by_name.into_iter().map(|(name, all)| (name, Providers::new(all))).collect();
        let tasks = around.tasks.child("encryption-providers");
        Ok(Self { by_name, others: Providers::identity(), all, tasks })
    }

    /// The providers of a resource.
    pub(crate) fn find(&self, names: &Names) -> &Providers {
        names.iter().find_map(|name| self.by_name.get(name)).unwrap_or(&self.others)
    }

    /// Those of the providers whose keys plug-ins keep, in the file's order.
    pub(crate) fn kms(&self) -> impl Iterator<Item = &Kms> {
        self.all.iter().filter_map(|provider| if let Provider::Kms(own) = &**provider { Some(own) } else { None })
    }

    /// Begins what is done for as long as the rules are used.
    pub(crate) fn begin(&self) {
        for own in self.kms() {
            self.tasks.spawn_cancellable("kms-plugin", Arc::clone(&own.plugin).follow());
        }
    }

    /// Ends it.
    pub(crate) fn end(&self) {
        self.tasks.cancel();
    }

    /// How long it may take to ask all plug-ins whether they are well.
    pub(crate) fn check_limit(&self) -> Duration {
        let of = |own: &Kms| own.check_limit.saturating_mul(if own.version == Version::V1 { 2 } else { 1 });
        self.kms().map(of).fold(Duration::ZERO, Duration::saturating_add)
    }

    /// Whether all plug-ins are well; all are asked at once.
    ///
    /// # Errors
    /// What is wrong with those that are not.
    pub(crate) async fn check(&self) -> Result<(), String> {
        let answers = join_all(self.kms().map(|own| own.plugin.check())).await;
        let wrong: Vec<String> = answers.into_iter().filter_map(Result::err).collect();
        match wrong.as_slice() {
            [] => Ok(()),
            [only] => Err(only.clone()),
            all => Err(format!("[{}]", all.join(", "))),
        }
    }
}

/// As the file has it: the core group's resources end in a dot where they are all meant.
fn shown(resource: &GroupResource) -> String {
    if resource.group.is_empty() && resource.resource == ANY { "*.".to_owned() } else { resource.to_string() }
}
