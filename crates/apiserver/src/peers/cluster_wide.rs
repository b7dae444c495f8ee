//! Versions that are the cluster's and not one server's: those of definitions, and of servers behind this one. Every server
//! has them or soon will, so that nobody is asked for them, and what a peer once said of them does not outlive them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api_machinery::object::{Kind as _, Object};
use api_types::apiextensions_v1::CustomResourceDefinition;
use api_types::apiregistration_v1::APIService;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::cx::ApiCx;
use crate::follow::{Follower, follow};

/// How long a version still counts that is gone: peers may be slower to see that, and are asked seldom.
const REMEMBERED: Duration = Duration::from_secs(5 * 60);

/// Group and version.
pub(super) type Version = (String, String);

/// The versions.
pub(super) struct ClusterWide {
    known: Mutex<Known>,
    changed: Arc<Notify>,
}

#[derive(Default)]
struct Known {
    /// By the object that says so: its resource and its name.
    live: BTreeMap<(&'static str, String), Vec<Version>>,
    /// When they went.
    gone: BTreeMap<Version, Instant>,
}

impl ClusterWide {
    /// Knows of none, and tells whenever there are others.
    pub(super) fn new(changed: &Arc<Notify>) -> Arc<Self> {
        Arc::new(Self { known: Mutex::default(), changed: Arc::clone(changed) })
    }

    /// Learns from definitions and APIServices from now on.
    pub(super) fn follow(self: &Arc<Self>, cx: &ApiCx) {
        for of in [CustomResourceDefinition::TYPE, APIService::TYPE] {
            let follower = Source { resource: of.resource, all: Arc::clone(self) };
            follow(cx.registry(), (of.group, of.version, of.resource), Arc::new(follower), cx.tasks());
        }
    }

    /// Those that count now.
    pub(super) fn covered(&self, now: Instant) -> BTreeSet<Version> {
        let mut known = self.known.lock();
        known.gone.retain(|_, gone| now < *gone + REMEMBERED);
        known.live.values().flatten().chain(known.gone.keys()).cloned().collect()
    }

    fn put(&self, place: (&'static str, String), versions: Vec<Version>) {
        let mut known = self.known.lock();
        let former = known.live.remove(&place).unwrap_or_default();
        let is_changed = former != versions;
        let lost = former.into_iter().filter(|own| !versions.contains(own));
        let now = Instant::now();
        known.gone.extend(lost.map(|version| (version, now)));
        if !versions.is_empty() {
            known.live.insert(place, versions);
        }
        drop(known);
        if is_changed {
            self.changed.notify_one();
        }
    }
}

/// The objects of one resource.
struct Source {
    resource: &'static str,
    all: Arc<ClusterWide>,
}

impl Follower for Source {
    fn set(&self, _: &Arc<str>, object: &dyn Object) {
        self.all.put((self.resource, object.meta().name.clone()), versions(object));
    }

    fn gone(&self, _: &str, name: &str) {
        self.all.put((self.resource, name.to_owned()), Vec::new());
    }
}

/// The versions that an object brings. An APIService without a Service tells of one that this server has anyway.
fn versions(object: &dyn Object) -> Vec<Version> {
    if let Some(definition) = object.downcast_ref::<CustomResourceDefinition>() {
        let spec = &definition.spec;
        return spec.versions.iter().map(|own| (spec.group.clone(), own.name.clone())).collect();
    }
    let service = object.downcast_ref::<APIService>().filter(|own| own.spec.service.is_some());
    service.into_iter().map(|own| (own.spec.group.clone(), own.spec.version.clone())).collect()
}

#[cfg(test)]
mod tests {
    use api_machinery::json;

    use super::*;

    fn definition(versions: &[&str]) -> CustomResourceDefinition {
        let versions: Vec<_> = versions.iter().map(|name| format!(r#"{{"name":"{name}"}}"#)).collect();
        let text =
            format!(r#"{{"metadata":{{"name":"a.x"}},"spec":{{"group":"x","versions":[{}]}}}}"#, versions.join(","));
        let mut definition = CustomResourceDefinition::default();
        json::decode(text.as_bytes(), &mut definition).unwrap();
        definition
    }

    #[test]
    fn servers_behind_count_but_not_what_is_served_here() {
        for (service, expected) in [(r#","service":{"namespace":"n","name":"s"}"#, 1), ("", 0)] {
            let text = format!(r#"{{"metadata":{{"name":"v1.x"}},"spec":{{"group":"x","version":"v1"{service}}}}}"#);
            let mut own = APIService::default();
            json::decode(text.as_bytes(), &mut own).unwrap();
            assert_eq!(versions(&own).len(), expected, "{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_gone_counts_for_five_minutes() {
        let changed = Arc::new(Notify::new());
        let all = ClusterWide::new(&changed);
        let source = Source { resource: "customresourcedefinitions", all: Arc::clone(&all) };
        let covered = || all.covered(Instant::now()).into_iter().map(|(_, version)| version).collect::<Vec<_>>();
        let is_told = async || tokio::time::timeout(Duration::from_secs(1), changed.notified()).await.is_ok();
        source.set(&"".into(), &definition(&["v1", "v2"]));
        assert_eq!(covered(), ["v1", "v2"]);
        assert!(is_told().await);
        source.set(&"".into(), &definition(&["v1", "v2"]));
        assert!(!is_told().await, "nothing is new");
        source.set(&"".into(), &definition(&["v2"]));
        assert_eq!(covered(), ["v1", "v2"]);
        tokio::time::advance(REMEMBERED).await;
        assert_eq!(covered(), ["v2"]);
        source.gone("", "a.x");
        assert_eq!(covered(), ["v2"]);
        tokio::time::advance(REMEMBERED).await;
        assert_eq!(covered(), [""; 0]);
    }
}
