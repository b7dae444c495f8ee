//! Objects that a test makes up.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::core_v1::{ConfigMap, Secret};
use async_trait::async_trait;

use super::Objects;
use crate::border::SideError;

/// A fixed set of objects.
#[derive(Default)]
pub(crate) struct FixedObjects {
    config_maps: BTreeMap<(String, String), Arc<ConfigMap>>,
    secrets: BTreeMap<(String, String), Arc<Secret>>,
}

impl FixedObjects {
    pub(crate) fn put_config_map(
        &mut self,
        namespace: &str,
        name: &str,
        data: impl IntoIterator<Item = (String, String)>,
    ) {
        let map = ConfigMap { data: data.into_iter().collect(), ..ConfigMap::default() };
        self.config_maps.insert((namespace.into(), name.into()), Arc::new(map));
    }

    pub(crate) fn put_secret(
        &mut self,
        namespace: &str,
        name: &str,
        data: impl IntoIterator<Item = (String, Vec<u8>)>,
    ) {
        let data = data.into_iter().map(|(key, value)| (key, value.into())).collect();
        self.secrets.insert((namespace.into(), name.into()), Arc::new(Secret { data, ..Secret::default() }));
    }
}

#[async_trait]
impl Objects for FixedObjects {
    async fn config_map(&self, namespace: &str, name: &str) -> Result<Option<Arc<ConfigMap>>, SideError> {
        Ok(self.config_maps.get(&(namespace.into(), name.into())).cloned())
    }

    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<Arc<Secret>>, SideError> {
        Ok(self.secrets.get(&(namespace.into(), name.into())).cloned())
    }
}
