//! Configurations, and what they come to.

use super::*;
use crate::classify::{Asked, AskedResource};
use crate::queue::Work;
use crate::queues::{Arrival, Passed};
use std::time::Duration;

struct Nobody;

impl Caller for Nobody {}

fn arcs<T>(objects: Vec<T>) -> Vec<Arc<T>> {
    objects.into_iter().map(Arc::new).collect()
}

fn everything() -> (Vec<Arc<PriorityLevelConfiguration>>, Vec<Arc<FlowSchema>>) {
    let levels = objects::mandatory_levels().into_iter().chain(objects::suggested_levels()).collect();
    let schemas = objects::suggested_schemas().into_iter().chain(objects::mandatory_schemas()).collect();
    (arcs(levels), arcs(schemas))
}

fn started() -> (Controller<Nobody>, Configured<Nobody>) {
    let (mut controller, _) = Controller::new(Duration::ZERO, 600);
    let (levels, schemas) = everything();
    let configured = controller.configure(Duration::ZERO, &levels, &schemas);
    (controller, configured)
}

#[test]
fn requests_fall_under_the_schemas_of_every_cluster() {
    let (_, configured) = started();
    let pods = AskedResource { resource: "pods", namespace: "n", ..AskedResource::default() };
    let leases = AskedResource { group: "coordination.k8s.io", resource: "leases", namespace: "kube-system", ..pods };
    let nodes = AskedResource { resource: "nodes", namespace: "", ..pods };
    let status = AskedResource { subresource: "status", ..nodes };
    for (user, groups, verb, resource, expected) in [
        ("root", &["system:masters"] as &[&str], "get", Some(pods), ("exempt", "exempt", "")),
        ("kubelet", &["system:nodes"], "update", Some(leases), ("system-node-high", "node-high", "kubelet")),
        ("kubelet", &["system:nodes"], "patch", Some(status), ("system-node-high", "node-high", "kubelet")),
        ("kubelet", &["system:nodes"], "get", Some(pods), ("system-nodes", "system", "kubelet")),
        (
            "system:kube-scheduler",
            &[],
            "update",
            Some(leases),
            ("system-leader-election", "leader-election", "system:kube-scheduler"),
        ),
        ("system:kube-scheduler", &[], "list", Some(pods), ("kube-scheduler", "workload-high", "n")),
        (
            "system:serviceaccount:a:b",
            &["system:serviceaccounts", "system:authenticated"],
            "get",
            Some(nodes),
            ("service-accounts", "workload-low", "system:serviceaccount:a:b"),
        ),
        ("alice", &["system:authenticated"], "get", Some(pods), ("global-default", "global-default", "alice")),
        ("alice", &["system:authenticated"], "get", None, ("probes", "exempt", "")),
        ("alice", &["system:authenticated"], "post", None, ("global-default", "global-default", "alice")),
        ("nobody", &[], "get", Some(pods), ("catch-all", "catch-all", "nobody")),
    ] {
        let groups: Vec<String> = groups.iter().map(|&group| group.to_owned()).collect();
        let asked = Asked { user, groups: &groups, verb, path: "/healthz", resource };
        let flow = configured.table.classify(&asked).expect("a flow");
        let own = (&*flow.schema.name, flow.schema.level.name(), flow.distinguisher);
        assert_eq!(own, expected, "{user} {verb}");
    }
}

#[test]
fn what_must_be_there_is_imagined() {
    let (_, configured) = Controller::<Nobody>::new(Duration::ZERO, 600);
    let names: Vec<&str> = configured.table.schemas().iter().map(|schema| &*schema.name).collect();
    assert_eq!(names, ["exempt", "catch-all"]);
    let schema = configured.table.schemas().first().expect("a schema");
    assert_eq!((schema.uid.as_str(), schema.level_uid.as_str()), ("", ""));
    let widest: Vec<u32> = configured.table.schemas().iter().map(|schema| schema.level.widest_request()).collect();
    assert_eq!(widest, [u32::MAX, 90], "nothing bounds what is exempt; of 600 seats a request takes 15 % at most");
}

#[test]
fn schemas_without_a_level_are_told() {
    let (mut controller, _) = started();
    let (levels, schemas) = everything();
    let few: Vec<_> = levels.iter().filter(|level| level.metadata.name != "system").cloned().collect();
    let mut broken = (*levels[2]).clone();
    broken.metadata.name = "broken".to_owned();
    broken.spec.limited = None;
    let with_broken: Vec<_> = few.into_iter().chain([Arc::new(broken)]).collect();
    let configured = controller.configure(Duration::from_secs(1), &with_broken, &schemas);
    let missing: Vec<&str> =
        configured.found.iter().filter(|(_, found)| !found).map(|(schema, _)| schema.metadata.name.as_str()).collect();
    assert_eq!((missing, configured.broken), (vec!["system-nodes"], vec!["broken".to_owned()]));
    assert!(configured.table.schemas().iter().all(|schema| &*schema.name != "system-nodes"));
}

#[test]
fn levels_that_are_gone_serve_what_they_have() {
    let (mut controller, configured) = started();
    let names = |controller: &Controller<Nobody>| {
        controller.states().map(|state| (state.level.name().to_owned(), state.is_removed)).collect::<Vec<_>>()
    };
    let old = configured.table.schemas().iter().find(|schema| &*schema.name == "system-nodes").expect("a schema");
    let arrival = Arrival { hash: 0, work: Work::default(), caller: Nobody };
    let Ok(Passed::Runs(ticket)) = old.level.queues().arrive(Duration::ZERO, arrival) else { panic!("no room") };
    let (levels, schemas) = everything();
    let few: Vec<_> = levels.iter().filter(|level| level.metadata.name != "system").cloned().collect();
    let nominal = |controller: &Controller<Nobody>, name: &str| {
        controller.states().find(|state| state.level.name() == name).map(|state| state.limits.nominal)
    };
    controller.configure(Duration::from_secs(1), &few, &schemas);
    assert!(names(&controller).contains(&("system".to_owned(), true)));
    assert_eq!(nominal(&controller, "workload-low"), Some(245), "the shares of what is drained count");
    old.level.queues().finish(Duration::from_secs(2), ticket);
    controller.configure(Duration::from_secs(3), &few, &schemas);
    assert!(!names(&controller).iter().any(|(name, _)| name == "system"));
    assert_eq!(nominal(&controller, "workload-low"), Some(280), "600 times 100 of 215");
}

/// The whole server lends a busy level what the others do not need, and takes it back slowly.
#[test]
fn a_busy_level_borrows() {
    let (mut controller, configured) = started();
    let schema =
        configured.table.schemas().iter().find(|schema| &*schema.name == "service-accounts").expect("a schema");
    let current = |controller: &Controller<Nobody>| {
        controller.states().find(|state| state.level.name() == "workload-low").expect("the level").current
    };
    for hash in 0..2000 {
        let arrival = Arrival { hash, work: Work::default(), caller: Nobody };
        _ = schema.level.queues().arrive(Duration::ZERO, arrival);
    }
    let adjustment = controller.adjust(Duration::from_secs(10));
    assert!(adjustment.fair_fraction.is_some_and(|fraction| fraction < 1.0));
    // What others keep: 50 + 73 + 25 + 49 + 24 + 13.
    assert_eq!(current(&controller), 602 - 234);
    assert_eq!(schema.level.queues().counts().executing, 602 - 234);
}
