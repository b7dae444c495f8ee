//! Objects that a test makes up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use api_types::core_v1::{ConfigMap, Secret};
use async_trait::async_trait;

use super::{ObjectError, Objects};

/// A fixed set of objects.
#[derive(Default)]
pub struct FixedObjects {
    config_maps: BTreeMap<(String, String), Arc<ConfigMap>>,
    secrets: BTreeMap<(String, String), Arc<Secret>>,
    gone: AtomicBool,
}

impl FixedObjects {
    /// From now on there is none of them.
    pub fn forget_all(&self) {
        self.gone.store(true, Ordering::Relaxed);
    }

    fn pick<T>(&self, of: &BTreeMap<(String, String), Arc<T>>, namespace: &str, name: &str) -> Option<Arc<T>> {
        let there = !self.gone.load(Ordering::Relaxed);
        of.get(&(namespace.into(), name.into())).filter(|_| there).cloned()
    }

    pub fn put_config_map(&mut self, namespace: &str, name: &str, data: impl IntoIterator<Item = (String, String)>) {
        let map = ConfigMap { data: data.into_iter().collect(), ..ConfigMap::default() };
        self.config_maps.insert((namespace.into(), name.into()), Arc::new(map));
    }

    pub fn put_secret(&mut self, namespace: &str, name: &str, data: impl IntoIterator<Item = (String, Vec<u8>)>) {
        let data = data.into_iter().map(|(key, value)| (key, value.into())).collect();
        self.secrets.insert((namespace.into(), name.into()), Arc::new(Secret { data, ..Secret::default() }));
    }
}

#[async_trait]
impl Objects for FixedObjects {
    async fn config_map(&self, namespace: &str, name: &str) -> Result<Option<Arc<ConfigMap>>, ObjectError> {
        Ok(self.pick(&self.config_maps, namespace, name))
    }

    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<Arc<Secret>>, ObjectError> {
        Ok(self.pick(&self.secrets, namespace, name))
    }
}
