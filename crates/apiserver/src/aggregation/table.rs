//! Who answers for which version of a group. The table is replaced whole whenever an APIService changes, and read without
//! a lock: a request is decided by one table.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use api_machinery::object::{Kind as _, Object};
use api_types::apiregistration_v1::constants::{AVAILABLE, condition_status};
use api_types::apiregistration_v1::{APIService, GROUP};
use arc_swap::{ArcSwap, Guard};
use async_trait::async_trait;
use component_base::tls::ClientIdentity;
use tokio::sync::{Notify, watch};

use super::connections::Connections;
use super::queues::Queues;
use super::transport::{self, Tls};
use crate::cx::ApiCx;
use crate::follow::{Follower, follow};
use crate::hooks::{HookError, PostStartHook};

const HTTPS: u16 = 443;

/// Another server, and the version of a group that it answers for.
pub(crate) struct Remote {
    /// The name of the APIService.
    pub(super) name: String,
    pub(super) group: String,
    pub(super) version: String,
    /// Namespace and name of the Service, and the port.
    pub(super) service: (String, String),
    pub(super) port: u16,
    /// How it is spoken to, or why it cannot be.
    pub(super) tls: Arc<Result<Tls, String>>,
    /// Connections that were made so.
    pub(super) connections: Arc<Connections>,
    /// What the condition says.
    pub(super) is_available: bool,
}

impl Remote {
    /// Its path below the root of the API.
    pub(super) fn path(&self) -> String {
        format!("/apis/{}/{}", self.group, self.version)
    }
}

/// An APIService.
struct Entry {
    object: Arc<APIService>,
    remote: Option<Arc<Remote>>,
}

/// One state of the table.
#[derive(Default, Clone)]
pub(crate) struct GroupVersions {
    entries: BTreeMap<String, Arc<Entry>>,
    /// By group, then by version.
    remotes: HashMap<String, HashMap<String, Arc<Remote>>>,
}

impl GroupVersions {
    pub(super) fn has_remotes(&self) -> bool {
        !self.remotes.is_empty()
    }

    pub(super) fn remote(&self, group: &str, version: &str) -> Option<Arc<Remote>> {
        self.remotes.get(group)?.get(version).cloned()
    }

    /// By the name of the APIService.
    pub(super) fn named(&self, name: &str) -> Option<(&Arc<APIService>, Option<&Arc<Remote>>)> {
        self.entries.get(name).map(|entry| (&entry.object, entry.remote.as_ref()))
    }

    /// Every APIService, with the server that answers where it is not this one.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Arc<APIService>, Option<&Arc<Remote>>)> {
        self.entries.values().map(|entry| (&entry.object, entry.remote.as_ref()))
    }

    pub(super) fn remotes(&self) -> impl Iterator<Item = &Arc<Remote>> {
        self.entries.values().filter_map(|entry| entry.remote.as_ref())
    }

    fn put(&mut self, entry: Entry) {
        let name = entry.object.metadata.name.clone();
        self.remove(&name);
        if let Some(remote) = &entry.remote {
            let versions = self.remotes.entry(remote.group.clone()).or_default();
            versions.insert(remote.version.clone(), Arc::clone(remote));
        }
        self.entries.insert(name, Arc::new(entry));
    }

    fn remove(&mut self, name: &str) {
        let Some(entry) = self.entries.remove(name) else { return };
        let Some(remote) = &entry.remote else { return };
        if let Some(versions) = self.remotes.get_mut(&remote.group) {
            versions.remove(&remote.version);
            if versions.is_empty() {
                self.remotes.remove(&remote.group);
            }
        }
    }
}

/// The table, as it follows the stored APIServices.
pub(super) struct GroupTable {
    current: ArcSwap<GroupVersions>,
    generation: AtomicU64,
    identity: Arc<ClientIdentity>,
    queues: Queues,
    is_complete: watch::Sender<bool>,
    changed: Notify,
}

impl GroupTable {
    pub(super) fn new(identity: Arc<ClientIdentity>, queues: Queues) -> Self {
        Self {
            current: ArcSwap::default(),
            generation: AtomicU64::new(0),
            identity,
            queues,
            is_complete: watch::Sender::new(false),
            changed: Notify::new(),
        }
    }

    pub(super) fn current(&self) -> Guard<Arc<GroupVersions>> {
        self.current.load()
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Whether all that was stored at the start has been seen.
    pub(super) fn is_complete(&self) -> bool {
        *self.is_complete.borrow()
    }

    /// Waits until it is so.
    pub(super) async fn completed(&self) {
        // The sender lives as long as this.
        drop(self.is_complete.subscribe().wait_for(|is_complete| *is_complete).await);
    }

    /// Waits for a change; one that happened since the last wait counts.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    fn replace(&self, change: impl Fn(&mut GroupVersions)) {
        self.current.rcu(|current| {
            let mut next = GroupVersions::clone(current);
            change(&mut next);
            next
        });
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.changed.notify_one();
    }

    fn entry(&self, object: &APIService) -> Entry {
        let spec = &object.spec;
        let object = Arc::new(object.clone());
        // The core version and this group itself are always this server's own.
        let Some(service) = spec.service.as_ref().filter(|_| !spec.group.is_empty() && spec.group != GROUP) else {
            return Entry { object, remote: None };
        };
        let current = self.current();
        let former = current.named(&object.metadata.name).filter(|(former, _)| former.spec == *spec);
        let (tls, connections) = match former.and_then(|(_, remote)| remote) {
            Some(remote) => (Arc::clone(&remote.tls), Arc::clone(&remote.connections)),
            None => (Arc::new(transport::tls(spec, &self.identity)), Arc::default()),
        };
        let available = object.status.conditions.iter().find(|own| own.type_ == AVAILABLE);
        let remote = Remote {
            name: object.metadata.name.clone(),
            group: spec.group.clone(),
            version: spec.version.clone(),
            service: (service.namespace.clone(), service.name.clone()),
            port: service.port.and_then(|port| u16::try_from(port).ok()).unwrap_or(HTTPS),
            tls,
            connections,
            is_available: available.is_some_and(|own| own.status == condition_status::TRUE),
        };
        Entry { object, remote: Some(Arc::new(remote)) }
    }
}

impl Follower for GroupTable {
    fn set(&self, _: &Arc<str>, object: &dyn Object) {
        let Some(object) = object.downcast_ref::<APIService>() else { return };
        let (entry, name) = (self.entry(object), object.metadata.name.as_str());
        let (object, remote) = (entry.object, entry.remote);
        let former = self.current().named(name).map(|(object, remote)| (Arc::clone(object), remote.cloned()));
        self.replace(|table| table.put(Entry { object: Arc::clone(&object), remote: remote.clone() }));
        match former {
            // What was found is not looked for again, or two servers that find different things would never rest.
            Some((former, Some(was))) if former.spec == object.spec && former.status != object.status => {
                if remote.is_some_and(|remote| remote.is_available != was.is_available) {
                    self.queues.add_documents(name);
                }
            }
            _ => self.queues.add(name),
        }
    }

    fn gone(&self, _: &str, name: &str) {
        self.replace(|table| table.remove(name));
        self.queues.add(name);
    }

    fn complete(&self) {
        self.is_complete.send_replace(true);
        self.changed.notify_one();
    }
}

/// The hook `apiservice-registration-controller`: the table follows what is stored.
pub(super) struct Follow(pub(super) Arc<GroupTable>);

#[async_trait]
impl PostStartHook for Follow {
    fn name(&self) -> &'static str {
        "apiservice-registration-controller"
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError> {
        let place = (APIService::TYPE.group, APIService::TYPE.version, APIService::TYPE.resource);
        follow(cx.registry(), place, Arc::clone(&self.0) as _, cx.tasks());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use base::{Rng, TokioClock};
    use component_base::lifecycle::Lifecycle;

    use super::*;

    fn table() -> GroupTable {
        let lifecycle = Lifecycle::new("test", TokioClock::shared(), Rng::seeded(1));
        GroupTable::new(ClientIdentity::none(), Queues::new(&lifecycle))
    }

    fn service(name: &str, status: &str) -> APIService {
        let (version, group) = name.split_once('.').unwrap();
        let text = format!(
            r#"{{"metadata":{{"name":"{name}"}},"spec":{{"group":"{group}","version":"{version}",
            "service":{{"namespace":"n","name":"s","port":8443}},"insecureSkipTLSVerify":true}},
            "status":{{"conditions":[{{"type":"Available","status":"{status}"}}]}}}}"#
        );
        let mut object = APIService::default();
        api_machinery::json::decode(text.as_bytes(), &mut object).unwrap();
        object
    }

    #[tokio::test]
    async fn versions_are_found_by_group_and_name() {
        component_base::tls::install_default();
        let table = table();
        for (name, status) in [("v1.g.io", "True"), ("v2.g.io", "False"), ("v1.apiregistration.k8s.io", "True")] {
            table.set(&"".into(), &service(name, status));
        }
        table.set(&"".into(), &service("v1.", "True"));
        let before = table.current.load_full();
        let found = |group: &str, version: &str| table.current().remote(group, version).map(|own| own.is_available);
        assert_eq!(found("g.io", "v1"), Some(true));
        assert_eq!(found("g.io", "v2"), Some(false));
        assert_eq!(found("g.io", "v3"), None);
        assert_eq!(found("", "v1"), None, "the core version is never another server's");
        assert_eq!(found("apiregistration.k8s.io", "v1"), None, "nor is the group of APIServices");
        table.gone("", "v1.g.io");
        table.gone("", "v2.g.io");
        assert_eq!(found("g.io", "v1"), None);
        assert!(!table.current().has_remotes());
        assert!(before.remote("g.io", "v1").is_some(), "who has a table keeps it");
    }

    #[tokio::test]
    async fn what_a_check_has_found_makes_no_other() {
        component_base::tls::install_default();
        let table = table();
        let mut object = service("v1.g.io", "False");
        let mut lengths = |change: fn(&mut APIService)| {
            change(&mut object);
            table.set(&"".into(), &object);
            let lengths = [&table.queues.availability, &table.queues.discovery].map(client::WorkQueue::len);
            for queue in [&table.queues.availability, &table.queues.discovery] {
                while let Some(Some(name)) = futures_util::FutureExt::now_or_never(queue.next()) {
                    queue.done(&name);
                }
            }
            lengths
        };
        assert_eq!(lengths(|_| {}), [1, 1], "new");
        assert_eq!(lengths(|own| own.status.conditions[0].message = "still".to_owned()), [0, 0]);
        assert_eq!(lengths(|own| own.status.conditions[0].status = "True".to_owned()), [0, 1], "it has come");
        assert_eq!(lengths(|own| own.spec.version_priority = 7), [1, 1], "another spec");
        assert_eq!(lengths(|own| drop(own.metadata.labels.insert("a".to_owned(), "b".to_owned()))), [1, 1]);
    }

    #[tokio::test]
    async fn connections_are_made_anew_only_with_another_spec() {
        component_base::tls::install_default();
        let table = table();
        let tls = |object: &APIService| {
            table.set(&"".into(), object);
            Arc::clone(&table.current().remote("g.io", "v1").unwrap().tls)
        };
        let first = tls(&service("v1.g.io", "False"));
        assert!(Arc::ptr_eq(&first, &tls(&service("v1.g.io", "True"))), "a status changes nothing");
        let mut other = service("v1.g.io", "True");
        other.spec.insecure_skip_tls_verify = false;
        other.spec.ca_bundle = b"no certificate".to_vec().into();
        let second = tls(&other);
        assert!(!Arc::ptr_eq(&first, &second));
        assert!(second.is_err(), "a bundle without certificates trusts nobody, not everybody");
    }
}
