//! Which API servers live, and where they are: each keeps a key in the store that ends with its lease.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::object::{self, Object};
use api_types::core_v1::{EndpointAddress, EndpointSubset, Endpoints};
use storage::{Backend, Expect, Key, KeyRange, StorageError, Write};

/// How long a server is believed in after it was last heard of.
const TTL: Duration = Duration::from_secs(15);

/// The keys of all servers.
pub(crate) struct MasterLeases {
    backend: Arc<dyn Backend>,
    prefix: String,
}

impl MasterLeases {
    /// Keys of this kind, below the root of the store.
    pub(crate) fn new(backend: Arc<dyn Backend>, root: &str, kind: &str) -> Self {
        Self { backend, prefix: format!("{}/{kind}/", root.trim_end_matches('/')) }
    }

    fn key(&self, name: &str) -> Key {
        Key::from(format!("{}{name}", self.prefix))
    }

    /// What a server's key says of where it is.
    pub(crate) async fn get(&self, name: &str) -> Result<Option<Endpoints>, StorageError> {
        let stored = self.backend.get(&self.key(name)).await?.kv;
        Ok(stored.and_then(|kv| object::from_protobuf::<Endpoints>(&kv.value).ok()).map(|(endpoints, _)| endpoints))
    }

    /// Renews a server's key.
    pub(crate) async fn renew(&self, name: &str, mut endpoints: Endpoints) -> Result<(), StorageError> {
        endpoints.metadata.generation = self.get(name).await?.map_or(0, |former| former.metadata.generation) + 1;
        let value = (&endpoints as &dyn Object).to_protobuf();
        let lease = Some(self.backend.lease_grant(TTL).await?);
        self.backend.txn(&self.key(name), Expect::Any, Write::Put { value: value.into(), lease }).await?;
        Ok(())
    }

    /// Removes a server's key.
    pub(crate) async fn remove(&self, name: &str) -> Result<(), StorageError> {
        self.backend.txn(&self.key(name), Expect::Any, Write::Delete).await?;
        Ok(())
    }

    /// The names of all servers that live.
    pub(super) async fn names(&self) -> Result<BTreeSet<String>, StorageError> {
        let slice = self.backend.range(&KeyRange::prefix(self.prefix.clone()), 0, None).await?;
        let name = |key: &Key| Some(String::from_utf8_lossy(key.as_bytes()).strip_prefix(&self.prefix)?.to_owned());
        Ok(slice.kvs.iter().filter_map(|kv| name(&kv.key)).collect())
    }
}

/// Nothing but an address.
pub(crate) fn at(ip: String) -> Endpoints {
    let address = EndpointAddress { ip, ..EndpointAddress::default() };
    let subset = EndpointSubset { addresses: vec![address], ..EndpointSubset::default() };
    Endpoints { subsets: vec![subset], ..Endpoints::default() }
}
