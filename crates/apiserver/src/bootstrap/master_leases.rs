//! Which API servers live: each keeps a key in the store that ends with its lease.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::ObjectMeta;
use api_machinery::object::{self, Object};
use api_types::core_v1::{EndpointAddress, EndpointSubset, Endpoints};
use storage::{Backend, Expect, Key, KeyRange, StorageError, Write};

/// How long a server is believed in after it was last heard of.
const TTL: Duration = Duration::from_secs(15);

/// The keys of all servers.
pub(super) struct MasterLeases {
    backend: Arc<dyn Backend>,
    prefix: String,
}

impl MasterLeases {
    /// Keys below the root of the store.
    pub(super) fn new(backend: Arc<dyn Backend>, root: &str) -> Self {
        Self { backend, prefix: format!("{}/masterleases/", root.trim_end_matches('/')) }
    }

    fn key(&self, address: IpAddr) -> Key {
        Key::from(format!("{}{address}", self.prefix))
    }

    /// Renews a server's key.
    pub(super) async fn renew(&self, address: IpAddr) -> Result<(), StorageError> {
        let key = self.key(address);
        let former = self.backend.get(&key).await?.kv;
        let generation = former.and_then(|kv| object::from_protobuf::<Endpoints>(&kv.value).ok());
        let generation = generation.map_or(0, |(endpoints, _)| endpoints.metadata.generation) + 1;
        let address = EndpointAddress { ip: address.to_string(), ..EndpointAddress::default() };
        let endpoints = Endpoints {
            metadata: ObjectMeta { generation, ..ObjectMeta::default() },
            subsets: vec![EndpointSubset { addresses: vec![address], ..EndpointSubset::default() }],
        };
        let value = (&endpoints as &dyn Object).to_protobuf();
        let lease = Some(self.backend.lease_grant(TTL).await?);
        self.backend.txn(&key, Expect::Any, Write::Put { value: value.into(), lease }).await?;
        Ok(())
    }

    /// Removes a server's key.
    pub(super) async fn remove(&self, address: IpAddr) -> Result<(), StorageError> {
        self.backend.txn(&self.key(address), Expect::Any, Write::Delete).await?;
        Ok(())
    }

    /// The addresses of all servers that live.
    pub(super) async fn addresses(&self) -> Result<BTreeSet<String>, StorageError> {
        let slice = self.backend.range(&KeyRange::prefix(self.prefix.clone()), 0, None).await?;
        let address = |key: &Key| Some(String::from_utf8_lossy(key.as_bytes()).strip_prefix(&self.prefix)?.to_owned());
        Ok(slice.kvs.iter().filter_map(|kv| address(&kv.key)).collect())
    }
}
