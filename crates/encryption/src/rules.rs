//! Which resource has which providers.

use std::collections::HashMap;
use std::sync::Arc;

use api_machinery::gvk::GroupResource;
use api_types::apiserver_config_v1::{EncryptionConfiguration, ProviderConfiguration};

use crate::providers::{ProviderError, Providers};

const ANY: &str = "*";

/// The names under which the file may speak of a resource, the closest first: its own, all of its group, everything.
pub(crate) type Names = [GroupResource; 3];

/// The names of a resource.
pub(crate) fn names(resource: &GroupResource) -> Names {
    [resource.clone(), GroupResource::named(&resource.group, ANY), GroupResource::named(ANY, ANY)]
}

/// The providers of each name in the file.
pub(crate) struct Rules {
    by_name: HashMap<GroupResource, Arc<Providers>>,
    others: Arc<Providers>,
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
    pub(crate) fn new(configuration: &EncryptionConfiguration) -> Result<Self, RulesError> {
        let mut by_name: HashMap<GroupResource, Vec<ProviderConfiguration>> = HashMap::new();
        for element in &configuration.resources {
            for text in &element.resources {
                let resource = GroupResource::parse(text);
                let [_, group, everything] = names(&resource);
                if let Some(earlier) = [group, everything].iter().find(|earlier| by_name.contains_key(*earlier)) {
                    let (resource, earlier) = (shown(&resource), shown(earlier));
                    return Err(RulesError::Masked { resource, earlier });
                }
                by_name.entry(resource).or_default().extend(element.providers.iter().cloned());
            }
        }
        let made = |(name, all): (_, Vec<_>)| Ok((name, Arc::new(Providers::new(&all)?)));
        let by_name = by_name.into_iter().map(made).collect::<Result<_, ProviderError>>()?;
        Ok(Self { by_name, others: Arc::new(Providers::identity()) })
    }

    /// The providers of a resource.
    pub(crate) fn find(&self, names: &Names) -> &Arc<Providers> {
        names.iter().find_map(|name| self.by_name.get(name)).unwrap_or(&self.others)
    }
}

/// As the file has it: the core group's resources end in a dot where they are all meant.
fn shown(resource: &GroupResource) -> String {
    if resource.group.is_empty() && resource.resource == ANY { "*.".to_owned() } else { resource.to_string() }
}
