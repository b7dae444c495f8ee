//! The APIServices of the versions that this server answers for: those of the built-in kinds, made once at the start, and
//! those of custom kinds, kept in step with their definitions. What somebody else has made is never touched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use api_machinery::meta::ObjectMeta;
use api_types::apiregistration_v1::constants::{AVAILABLE, condition_status};
use api_types::apiregistration_v1::{APIService, APIServiceSpec, GROUP};
use component_base::health::CheckResult;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::custom_resources::ServedKinds;

/// Says that an APIService is kept by the server, and how.
const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
/// Made at the start, and left alone after that.
pub(super) const AT_START: &str = "onstart";
/// Kept in step at all times.
pub(super) const ALWAYS: &str = "true";
/// The priorities of groups of custom kinds, and of their versions.
const CUSTOM: (i32, i32) = (1000, 100);

/// What is registered, and what was seen of it.
pub(super) struct Registration {
    pub(super) built_in: Vec<APIService>,
    /// The built-in ones that nobody has seen available.
    unseen: Mutex<BTreeSet<String>>,
    pub(super) definitions: Definitions,
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

    /// Notes which of the stored ones are available.
    pub(super) fn see(&self, objects: &[Arc<APIService>]) {
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
pub(super) struct Definitions {
    pub(super) served: Mutex<BTreeMap<String, (String, Vec<String>)>>,
    pub(super) is_complete: AtomicBool,
    pub(super) changed: Notify,
}

impl Definitions {
    /// The APIServices that they want.
    pub(super) fn wanted(&self) -> Vec<APIService> {
        let served = self.served.lock();
        let versions = served.values().flat_map(|(group, versions)| versions.iter().map(move |own| (group, own)));
        let distinct: BTreeSet<(&String, &String)> = versions.collect();
        distinct.into_iter().map(|(group, version)| local(group, version, CUSTOM, ALWAYS)).collect()
    }
}

/// What has to be done with a stored APIService.
#[derive(Debug, Clone)]
pub(super) enum Action {
    Create(APIService),
    Update(APIService),
    Delete(ObjectMeta),
}

/// What has to be done with the APIServices that are kept in one way, so that they are those that are wanted. Pure.
pub(super) fn plan(stored: &[Arc<APIService>], wanted: &[APIService], managed: &str) -> Vec<Action> {
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
        type Case = (&'static str, Vec<APIService>, Vec<APIService>, &'static [&'static str]);
        let cases: Vec<Case> = vec![
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
