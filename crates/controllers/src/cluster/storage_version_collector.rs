//! Takes out of StorageVersions what API servers said that are gone: whoever migrates what is stored would wait for them for
//! ever (KEP-2339). A server is gone when it has no lease.

use std::collections::BTreeSet;
use std::sync::Arc;

use api_machinery::meta::{DeleteOptions, ListOptions, Preconditions};
use api_machinery::time::Time;
use api_types::apiserverinternal_v1alpha1::StorageVersion;
use api_types::coordination_v1::Lease;
use client::{Change, ClientError, ObjectKey, Scope};
use component_base::shared_gates::{API_SERVER_IDENTITY, STORAGE_VERSION_API};
use component_helpers::api_server_leases;
use component_helpers::storage_versions::set_common_version;
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "storageversion-garbage-collector-controller",
    aliases: &["storage-version-gc"],
    gates: &[API_SERVER_IDENTITY, STORAGE_VERSION_API],
    identity: "storage-version-garbage-collector",
    event_component: "",
    disabled_by_default: false,
    build,
};

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let gone = build.queue("storage_version_garbage_collector_leases");
    let doubtful = build.queue("storage_version_garbage_collector_storageversions");
    let scope = Scope {
        namespace: api_server_leases::NAMESPACE.to_owned(),
        label_selector: api_server_leases::SELECTOR.to_owned(),
        ..Scope::default()
    };
    let deleted = |change: &Change<Lease>| change.is_deleted().then(|| change.key());
    let leases = build.watch_scoped::<Lease>(&scope).enqueue_keys(&gone, deleted).informer();
    let of_unknown = move |change: &Change<StorageVersion>| {
        let is_known = |id: &str| leases.find(api_server_leases::NAMESPACE, id).is_some();
        let mut servers = change.object().status.storage_versions.iter();
        let is_doubtful = !change.is_deleted() && servers.any(|server| !is_known(&server.api_server_id));
        is_doubtful.then(|| change.key())
    };
    let _ = build.watch::<StorageVersion>().enqueue_keys(&doubtful, of_unknown);
    build.run(&gone, 1, Arc::new(GoneServers));
    build.run(&doubtful, 1, Arc::new(DoubtfulVersions));
    Ok(())
}

/// What becomes of an object once some servers are gone.
#[derive(Debug, PartialEq)]
enum Plan {
    Keep,
    Write(Box<StorageVersion>),
    /// Nobody says anything of the resource any more.
    Delete,
}

fn plan(object: &StorageVersion, gone: &BTreeSet<String>, now: Time) -> Plan {
    let mut next = object.clone();
    let all = &mut next.status.storage_versions;
    all.retain(|server| !gone.contains(&server.api_server_id));
    if all.len() == object.status.storage_versions.len() {
        return Plan::Keep;
    }
    if all.is_empty() {
        return Plan::Delete;
    }
    set_common_version(&mut next, now);
    Plan::Write(Box::new(next))
}

async fn clean(cx: &Cx, object: &StorageVersion, gone: &BTreeSet<String>) -> Result<(), ClientError> {
    let api = cx.client.all::<StorageVersion>();
    let written = match plan(object, gone, cx.clock.wall().into()) {
        Plan::Keep => Ok(()),
        Plan::Write(next) => api.update_status(&next).await.map(drop),
        Plan::Delete => {
            // A server that has just come must not lose its word.
            let version = Some(object.metadata.resource_version.clone());
            let preconditions = Some(Preconditions { resource_version: version, ..Preconditions::default() });
            let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
            api.delete(&object.metadata.name, &options).await.map(drop)
        }
    };
    match written {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// Works on servers whose lease has gone, by its name.
struct GoneServers;

#[async_trait::async_trait]
impl Controller for GoneServers {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let leases = cx.client.namespaced::<Lease>(&key.namespace);
        if leases.get_opt(&key.name).await?.is_some() {
            // It is there again.
            return Ok(Next::Done);
        }
        let gone = BTreeSet::from([key.name.clone()]);
        let mut errors = Vec::new();
        for object in cx.client.all::<StorageVersion>().list_all(&ListOptions::default()).await?.items {
            errors.extend(clean(cx, &object, &gone).await.err().map(ReconcileError::from));
        }
        ReconcileError::join(errors)?;
        Ok(Next::Done)
    }
}

/// Works on objects in which servers speak that no lease is known of.
struct DoubtfulVersions;

#[async_trait::async_trait]
impl Controller for DoubtfulVersions {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(object) = cx.client.all::<StorageVersion>().get_opt(&key.name).await? else { return Ok(Next::Done) };
        let leases = cx.client.namespaced::<Lease>(api_server_leases::NAMESPACE);
        let mut gone = BTreeSet::new();
        for server in &object.status.storage_versions {
            // A lease that cannot be read is not one that is gone.
            if !leases.get_opt(&server.api_server_id).await?.is_some_and(|lease| api_server_leases::is_one(&lease)) {
                gone.insert(server.api_server_id.clone());
            }
        }
        clean(cx, &object, &gone).await?;
        Ok(Next::Done)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use api_types::apiserverinternal_v1alpha1::ServerStorageVersion;

    use super::*;
    use crate::workloads::fixtures::{Running, at};

    const KNOWN: &[Descriptor] = &[Descriptor { gates: &[], ..DESCRIPTOR }];
    const LEASES: &str = "coordination.k8s.io/v1/leases";
    const VERSIONS: &str = "internal.apiserver.k8s.io/v1alpha1/storageversions";

    fn told(name: &str, servers: &[(&str, &str)]) -> StorageVersion {
        let mut object = StorageVersion::default();
        object.metadata.name = name.to_owned();
        let server = |(id, version): &(&str, &str)| ServerStorageVersion {
            api_server_id: (*id).to_owned(),
            encoding_version: (*version).to_owned(),
            ..ServerStorageVersion::default()
        };
        object.status.storage_versions = servers.iter().map(server).collect();
        set_common_version(&mut object, at(1));
        object
    }

    fn lease(name: &str, component: &str) -> Lease {
        let mut lease = Lease::default();
        lease.metadata.name = name.to_owned();
        lease.metadata.namespace = api_server_leases::NAMESPACE.to_owned();
        lease.metadata.labels.insert(api_server_leases::LABEL.to_owned(), component.to_owned());
        lease
    }

    #[test]
    fn the_others_agree_once_one_is_gone() {
        let gone = BTreeSet::from(["old".to_owned()]);
        let object = told("core.pods", &[("old", "v1beta1"), ("new", "v1")]);
        assert_eq!(object.status.common_encoding_version, None);
        let Plan::Write(next) = plan(&object, &gone, at(2)) else { panic!("it is written") };
        let [server] = &next.status.storage_versions[..] else { panic!("{:?}", next.status) };
        assert_eq!(
            (server.api_server_id.as_str(), next.status.common_encoding_version.as_deref()),
            ("new", Some("v1"))
        );
        let [condition] = &next.status.conditions[..] else { panic!("{:?}", next.status) };
        assert_eq!((condition.status.as_str(), condition.last_transition_time), ("True", at(2)));
        assert_eq!(plan(&next, &gone, at(3)), Plan::Keep);
        assert_eq!(plan(&told("core.pods", &[("old", "v1")]), &gone, at(2)), Plan::Delete);
        assert_eq!(plan(&told("core.pods", &[]), &gone, at(2)), Plan::Keep);
    }

    #[tokio::test(start_paused = true)]
    async fn what_servers_said_goes_with_their_leases() {
        let running = Running::start(KNOWN);
        for (name, component) in [("one", "kube-apiserver"), ("two", "kube-apiserver"), ("other", "another")] {
            running.put(LEASES, &lease(name, component));
        }
        let both = [("one", "v1"), ("two", "v1")];
        running.put(VERSIONS, &told("core.pods", &both));
        running.put(VERSIONS, &told("core.events", &[("other", "v1"), ("never", "v1")]));
        running.put(VERSIONS, &told("core.nodes", &[("one", "v1"), ("never", "v2")]));
        tokio::time::sleep(Duration::from_secs(10)).await;
        let said = |name: &str| {
            let objects = running.server.objects(VERSIONS);
            let object = objects.into_iter().find(|own| own["metadata"]["name"].as_str() == Some(name))?;
            let servers = object["status"]["storageVersions"].as_array().cloned().unwrap_or_default();
            Some(servers.iter().map(|own| own["apiServerID"].as_str().unwrap().to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(said("core.pods"), Some(vec!["one".to_owned(), "two".to_owned()]));
        assert_eq!(said("core.events"), None, "nobody who is there says anything of them");
        assert_eq!(said("core.nodes"), Some(vec!["one".to_owned()]));

        running.server.remove(LEASES, api_server_leases::NAMESPACE, "two");
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(said("core.pods"), Some(vec!["one".to_owned()]));
    }
}
