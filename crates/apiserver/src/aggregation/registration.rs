//! The APIServices of the versions that this server answers for: those of the built-in kinds, made once at the start, and
//! those of custom kinds, kept in step with their definitions. What somebody else has made is never touched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api_machinery::meta::{DeleteOptions, ObjectMeta, Preconditions};
use api_machinery::object::{Kind as _, Object};
use api_types::apiextensions_v1::CustomResourceDefinition;
use api_types::apiregistration_v1::constants::{AVAILABLE, condition_status};
use api_types::apiregistration_v1::{APIService, APIServiceSpec, GROUP};
use async_trait::async_trait;
use client::{Client, ClientError};
use component_base::health::CheckResult;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Aggregation;
use crate::custom_resources::ServedKinds;
use crate::cx::ApiCx;
use crate::follow::{Follower, follow};
use crate::hooks::PostStartHook;

/// Says that an APIService is kept by the server, and how.
const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
/// Made at the start, and left alone after that.
const AT_START: &str = "onstart";
/// Kept in step at all times.
const ALWAYS: &str = "true";
/// The priorities of groups of custom kinds, and of their versions.
const CUSTOM: (i32, i32) = (1000, 100);
/// Pause before work that failed is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// What is registered, and what was seen of it.
pub(super) struct Registration {
    built_in: Vec<APIService>,
    /// The built-in ones that nobody has seen available.
    unseen: Mutex<BTreeSet<String>>,
    definitions: Definitions,
}

impl Registration {
    pub(super) fn new(served: &ServedKinds) -> Self {
        let is_served = |version: &&kinds::groups::Version| {
            version.group() != GROUP && version.kinds.iter().any(|rules| served.is_enabled(rules.info()))
        };
        let versions = kinds::VERSIONS.iter().filter(is_served);
        let own = |version: &kinds::groups::Version| {
            let priorities = (version.group_priority, version.priority);
            local(version.group(), version.name(), priorities, AT_START)
        };
        let built_in: Vec<APIService> = versions.map(own).collect();
        let unseen = built_in.iter().map(|own| own.metadata.name.clone()).collect();
        Self { built_in, unseen: Mutex::new(unseen), definitions: Definitions::default() }
    }

    /// Whether each built-in version was seen available once.
    pub(super) fn is_complete(&self) -> CheckResult {
        let unseen = self.unseen.lock();
        if unseen.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = unseen.iter().map(String::as_str).collect();
        Err(format!("missing APIService: [{}]", names.join(" ")))
    }

    fn see(&self, objects: &[Arc<APIService>]) {
        let mut unseen = self.unseen.lock();
        for object in objects {
            let available = object.status.conditions.iter().find(|own| own.type_ == AVAILABLE);
            if available.is_some_and(|own| own.status == condition_status::TRUE) {
                unseen.remove(&object.metadata.name);
            }
        }
    }
}

/// An APIService of this server itself.
fn local(group: &str, version: &str, (group_priority, version_priority): (i32, i32), managed: &str) -> APIService {
    APIService {
        metadata: ObjectMeta {
            name: format!("{version}.{group}"),
            labels: BTreeMap::from([(MANAGED.to_owned(), managed.to_owned())]),
            ..ObjectMeta::default()
        },
        spec: APIServiceSpec {
            group: group.to_owned(),
            version: version.to_owned(),
            group_priority_minimum: group_priority,
            version_priority,
            ..APIServiceSpec::default()
        },
        ..APIService::default()
    }
}

/// Group and served versions of each definition of a custom kind, by its name.
#[derive(Default)]
struct Definitions {
    served: Mutex<BTreeMap<String, (String, Vec<String>)>>,
    is_complete: AtomicBool,
    changed: Notify,
}

impl Definitions {
    /// The APIServices that they want.
    fn wanted(&self) -> Vec<APIService> {
        let served = self.served.lock();
        let versions = served.values().flat_map(|(group, versions)| versions.iter().map(move |own| (group, own)));
        let distinct: BTreeSet<(&String, &String)> = versions.collect();
        distinct.into_iter().map(|(group, version)| local(group, version, CUSTOM, ALWAYS)).collect()
    }
}

/// The hook `kube-apiserver-autoregistration`.
pub(super) struct Controller(pub(super) Arc<Aggregation>);

impl Follower for Controller {
    fn set(&self, object: &dyn Object) {
        let Some(definition) = object.downcast_ref::<CustomResourceDefinition>() else { return };
        let versions = definition.spec.versions.iter().filter(|own| own.served).map(|own| own.name.clone());
        let served = (definition.spec.group.clone(), versions.collect());
        let definitions = &self.0.registration.definitions;
        definitions.served.lock().insert(definition.metadata.name.clone(), served);
        definitions.changed.notify_one();
    }

    fn gone(&self, _: &str, name: &str) {
        let definitions = &self.0.registration.definitions;
        definitions.served.lock().remove(name);
        definitions.changed.notify_one();
    }

    fn complete(&self) {
        let definitions = &self.0.registration.definitions;
        definitions.is_complete.store(true, Ordering::Release);
        definitions.changed.notify_one();
    }
}

#[async_trait]
impl PostStartHook for Controller {
    fn name(&self) -> &'static str {
        "kube-apiserver-autoregistration"
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), String> {
        let of = CustomResourceDefinition::TYPE;
        let follower = Arc::new(Self(Arc::clone(&self.0)));
        follow(cx.registry(), (of.group, of.version, of.resource), follower, cx.tasks());
        let (own, client) = (Arc::clone(&self.0), cx.loopback().clone());
        cx.tasks().spawn_cancellable("apiservice-registration", async move { own.register_all(&client).await });
        Ok(())
    }
}

impl Aggregation {
    /// Keeps the APIServices of this server for as long as it runs.
    async fn register_all(&self, client: &Client) {
        let (registration, mut is_first) = (&self.registration, true);
        loop {
            let mut failed = false;
            if self.table.is_complete() {
                let stored: Vec<Arc<APIService>> = self.table.current().objects().cloned().collect();
                registration.see(&stored);
                let mut actions = Vec::new();
                if is_first {
                    actions.extend(plan(&stored, &registration.built_in, AT_START));
                }
                if registration.definitions.is_complete.load(Ordering::Acquire) {
                    actions.extend(plan(&stored, &registration.definitions.wanted(), ALWAYS));
                }
                for action in actions {
                    if let Err(error) = action.run(client).await {
                        tracing::debug!(%error, "Registering a version failed; it will be tried again");
                        failed = true;
                    }
                }
                is_first &= failed;
            }
            tokio::select! {
                () = self.table.changed() => {}
                () = registration.definitions.changed.notified() => {}
                () = tokio::time::sleep(RETRY_DELAY), if failed => {}
            }
        }
    }
}

/// What has to be done with a stored APIService.
#[derive(Debug, Clone)]
enum Action {
    Create(APIService),
    Update(APIService),
    Delete(ObjectMeta),
}

impl Action {
    async fn run(self, client: &Client) -> Result<(), ClientError> {
        let api = client.all::<APIService>();
        let outcome = match self {
            Self::Create(object) => api.create(&object).await.map(drop),
            Self::Update(object) => api.update(&object).await.map(drop),
            Self::Delete(meta) => {
                let preconditions = Some(Preconditions { uid: Some(meta.uid), ..Preconditions::default() });
                let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
                api.delete(&meta.name, &options).await.map(drop)
            }
        };
        match outcome {
            // Another server may have been faster.
            Err(error) if error.is_already_exists() || error.is_not_found() => Ok(()),
            outcome => outcome,
        }
    }
}

/// What has to be done with the APIServices that are kept in one way, so that they are those that are wanted. Pure.
fn plan(stored: &[Arc<APIService>], wanted: &[APIService], managed: &str) -> Vec<Action> {
    let by_name = |name: &str| stored.iter().find(|own| own.metadata.name == name);
    let is_managed = |object: &APIService| object.metadata.labels.get(MANAGED).is_some_and(|own| own == managed);
    let mut actions = Vec::new();
    for own in wanted {
        match by_name(&own.metadata.name) {
            None => actions.push(Action::Create(own.clone())),
            Some(object) if is_managed(object) && object.spec != own.spec => {
                actions.push(Action::Update(APIService { spec: own.spec.clone(), ..APIService::clone(object) }));
            }
            Some(_) => {}
        }
    }
    let is_unwanted = |object: &&Arc<APIService>| {
        is_managed(object) && !wanted.iter().any(|own| own.metadata.name == object.metadata.name)
    };
    actions.extend(stored.iter().filter(is_unwanted).map(|object| Action::Delete(object.metadata.clone())));
    actions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_made_is_left_alone() {
        let own = |group: &str, managed: &str| local(group, "v1", CUSTOM, managed);
        let changed = |mut object: APIService| {
            object.spec.version_priority = 1;
            object
        };
        let foreign = |mut object: APIService| {
            object.metadata.labels.clear();
            changed(object)
        };
        let cases: Vec<(&str, Vec<APIService>, Vec<APIService>, &[&str])> = vec![
            ("new", vec![], vec![own("g.io", ALWAYS)], &["create v1.g.io"]),
            ("as it is", vec![own("g.io", ALWAYS)], vec![own("g.io", ALWAYS)], &[]),
            ("changed", vec![changed(own("g.io", ALWAYS))], vec![own("g.io", ALWAYS)], &["update v1.g.io 100"]),
            ("foreign", vec![foreign(own("g.io", ALWAYS))], vec![own("g.io", ALWAYS)], &[]),
            ("not wanted", vec![own("g.io", ALWAYS)], vec![], &["delete v1.g.io"]),
            ("foreign and not wanted", vec![foreign(own("g.io", ALWAYS))], vec![], &[]),
            ("kept in another way", vec![own("g.io", AT_START)], vec![], &[]),
        ];
        for (name, stored, wanted, expected) in cases {
            let stored: Vec<Arc<APIService>> = stored.into_iter().map(Arc::new).collect();
            let told: Vec<String> = plan(&stored, &wanted, ALWAYS)
                .into_iter()
                .map(|action| match action {
                    Action::Create(object) => format!("create {}", object.metadata.name),
                    Action::Update(object) => {
                        format!("update {} {}", object.metadata.name, object.spec.version_priority)
                    }
                    Action::Delete(meta) => format!("delete {}", meta.name),
                })
                .collect();
            assert_eq!(told, expected, "{name}");
        }
    }

    #[test]
    fn every_built_in_version_is_registered_but_that_of_registrations() {
        let registration = Registration::new(&ServedKinds::default());
        let named = |name: &str| registration.built_in.iter().find(|own| own.metadata.name == name);
        let core = named("v1.").expect("the core version");
        assert_eq!((core.spec.group_priority_minimum, core.spec.version_priority), (18_000, 1));
        assert_eq!(named("v1.apps").map(|own| own.spec.version_priority), Some(15));
        assert!(named("v1.apiregistration.k8s.io").is_none());
        let missing = registration.is_complete().unwrap_err();
        assert!(missing.starts_with("missing APIService: [v1. "), "{missing}");
        let seen: Vec<Arc<APIService>> = registration
            .built_in
            .iter()
            .map(|own| {
                let mut own = own.clone();
                own.status.conditions =
                    vec![super::super::service_checks::Finding::passed().condition(None, Default::default())];
                Arc::new(own)
            })
            .collect();
        registration.see(&seen);
        assert_eq!(registration.is_complete(), Ok(()));
    }
}
