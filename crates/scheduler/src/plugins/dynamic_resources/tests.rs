//! From the claims of a pod to what is written of them.

use std::sync::Arc;

use api_machinery::object::{Kind, Object};
use api_types::core_v1::{Node, Pod};
use api_types::resource_v1::ResourceSlice;
use component_base::metrics::{Metrics, MetricsOptions};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::super::hint_tests::{after_other, after_pod};
use super::super::tests::{build_cx, profile_in, verdicts_in};
use super::*;
use crate::framework::{Diagnosis, Profile};
use crate::known_answers::ShapeAnswers;
use crate::listers::Listers;
use crate::pod_class::ClassTable;
use crate::test_objects::{NodeBuilder, PodBuilder, node, object, pod, snapshot};
use crate::writer::WriteError;

/// Stands for the API server.
struct Server {
    listers: Arc<Listers>,
    lines: Mutex<Vec<String>>,
    /// How often others are faster.
    conflicts: Mutex<usize>,
}

impl Server {
    fn take(&self, what: &str, claim: &ResourceClaim) -> Result<ResourceClaim, WriteError> {
        self.lines.lock().push(format!("{what} {}", claim.metadata.name));
        let mut conflicts = self.conflicts.lock();
        if *conflicts > 0 {
            *conflicts -= 1;
            return Err(WriteError::Conflict("changed".into()));
        }
        let mut claim = claim.clone();
        let version: u64 = claim.metadata.resource_version.parse().unwrap();
        claim.metadata.resource_version = (version + 1).to_string();
        self.listers.of::<ResourceClaim>().put(Arc::new(claim.clone()));
        Ok(claim)
    }
}

#[async_trait]
impl ObjectWriter for Server {
    async fn device_claim(&self, namespace: &str, name: &str) -> Result<ResourceClaim, WriteError> {
        let found = self.listers.of::<ResourceClaim>().get(namespace, name);
        found.map(|claim| (*claim).clone()).map_err(|error| WriteError::NotFound(error.to_string()))
    }

    async fn create_device_claim(&self, claim: &ResourceClaim) -> Result<ResourceClaim, WriteError> {
        let mut claim = claim.clone();
        claim.metadata.name = format!("{}1", claim.metadata.generate_name);
        (claim.metadata.uid, claim.metadata.resource_version) = ("uid-made".into(), "1".into());
        self.take("create", &claim)
    }

    async fn delete_device_claim(&self, claim: &ResourceClaim) -> Result<(), WriteError> {
        self.lines.lock().push(format!("delete {}", claim.metadata.name));
        self.listers.of::<ResourceClaim>().remove(&claim.metadata.namespace, &claim.metadata.name);
        Ok(())
    }

    async fn update_device_claim(&self, claim: &ResourceClaim) -> Result<ResourceClaim, WriteError> {
        self.take("update", claim)
    }

    async fn update_device_claim_status(&self, claim: &ResourceClaim) -> Result<ResourceClaim, WriteError> {
        self.take("status", claim)
    }

    async fn release_device_claim(&self, claim: &ResourceClaim, consumer: &str) -> Result<ResourceClaim, WriteError> {
        let mut claim = claim.clone();
        claim.status.reserved_for.retain(|own| own.uid != consumer);
        self.take("release", &claim)
    }
}

pub(super) struct World {
    pub(super) cx: BuildCx,
    server: Arc<Server>,
}

impl World {
    /// Two devices on the node `a`, and a class.
    pub(super) fn new() -> Self {
        let mut cx = build_cx();
        for gate in Features::GATES.iter().chain(GATES) {
            cx.gates = cx.gates.with(*gate, true);
        }
        let listers = Arc::clone(&cx.listers);
        let server = Arc::new(Server { listers, lines: Mutex::default(), conflicts: Mutex::default() });
        cx.objects = server.clone();
        let world = Self { cx, server };
        world.with::<DeviceClass>(json!({"metadata": {"name": "any"}, "spec": {}})).with::<ResourceSlice>(json!({
            "metadata": {"name": "s"}, "spec": {"driver": "d", "nodeName": "a", "devices": [{"name": "one"}, {"name": "two"}],
                "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1}}}))
    }

    pub(super) fn with<T: Kind + Object + Default>(self, manifest: Value) -> Self {
        self.put::<T>(manifest);
        self
    }

    pub(super) fn put<T: Kind + Object + Default>(&self, manifest: Value) {
        self.cx.listers.of::<T>().put(Arc::new(object(manifest)));
    }

    pub(super) fn verdicts(&self, incoming: PodBuilder) -> Vec<String> {
        verdicts_in(&self.cx, &[NAME], incoming, vec![node("a"), node("b")], vec![])
    }

    pub(super) fn claim(&self, name: &str) -> Arc<ResourceClaim> {
        self.cx.listers.of::<ResourceClaim>().find("default", name).unwrap()
    }

    /// Others are faster, once.
    pub(super) fn outrun(&self) {
        *self.server.conflicts.lock() = 1;
    }

    pub(super) fn lines(&self) -> Vec<String> {
        std::mem::take(&mut *self.server.lines.lock())
    }
}

fn claim(name: &str, requests: Value) -> Value {
    json!({"metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": "1"},
        "spec": {"devices": {"requests": requests}}})
}

pub(super) fn one(name: &str) -> Value {
    claim(
        name,
        json!([{"name": "r", "exactly": {"deviceClassName": "any", "allocationMode": "ExactCount", "count": 1}}]),
    )
}

/// A claim that has the device `one` on the node `a`, reserved for these.
pub(super) fn allocated(name: &str, reserved: &[&str]) -> Value {
    let mut claim = one(name);
    let field = json!({"key": "metadata.name", "operator": "In", "values": ["a"]});
    let consumers: Vec<Value> =
        reserved.iter().map(|uid| json!({"resource": "pods", "name": uid, "uid": uid})).collect();
    claim["status"] = json!({"reservedFor": consumers, "allocation": {
        "devices": {"results": [{"request": "r", "driver": "d", "pool": "a", "device": "one"}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]}}});
    claim
}

impl PodBuilder {
    pub(super) fn device_claim(mut self, name: &str) -> Self {
        let claim = json!({"name": format!("c{}", self.0.spec.resource_claims.len()), "resourceClaimName": name});
        self.0.spec.resource_claims.push(object(claim));
        self
    }

    pub(super) fn templated(mut self, made: Option<Option<&str>>) -> Self {
        self.0.spec.resource_claims.push(object(json!({"name": "t", "resourceClaimTemplateName": "x"})));
        if let Some(name) = made {
            self.0.status.resource_claim_statuses.push(object(json!({"name": "t", "resourceClaimName": name})));
        }
        self
    }
}

#[test]
fn pods_wait_for_their_claims() {
    let mut leaving = one("leaving");
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut owned = one("owned");
    owned["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": true}]);
    let world =
        World::new().with::<ResourceClaim>(one("c")).with::<ResourceClaim>(leaving).with::<ResourceClaim>(owned);
    let mut odd = pod("p");
    odd.0.spec.resource_claims.push(object(json!({"name": "n"})));
    let profile = profile_in(&world.cx, &[NAME]);
    let cases = [
        (pod("p"), ""),
        (pod("p").device_claim("c"), ""),
        (pod("p").device_claim("gone"), "resourceclaim.resource.k8s.io \"gone\" not found"),
        (pod("p").device_claim("leaving"), "resourceclaim \"leaving\" is being deleted"),
        (pod("p").templated(None), "pod \"default/p\": ResourceClaim not created yet"),
        (pod("p").templated(Some(None)), ""),
        (pod("p").templated(Some(Some("owned"))), ""),
        (
            pod("p").templated(Some(Some("c"))),
            "ResourceClaim default/c was not created for Pod default/p (Pod is not owner)",
        ),
        (odd, "pod \"default/p\", spec.resourceClaim \"n\": none of the supported fields are set"),
    ];
    for (place, (incoming, expected)) in cases.into_iter().enumerate() {
        let gated = profile.pre_enqueue[0].plugin.pre_enqueue(&incoming.info(&ClassTable::default()));
        assert_eq!(gated.err().map(|status| status.message()).unwrap_or_default(), expected, "case {place}");
    }
}

#[test]
fn nodes_have_devices_or_not() {
    let request = |more: Value| {
        let mut request = json!({"name": "r"});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([request])
    };
    let exactly = |class: &str, count: i64| {
        request(json!({"exactly": {"deviceClassName": class, "allocationMode": "ExactCount", "count": count}}))
    };
    let no = "cannot allocate all claims";
    let away = "resourceclaim not available on the node";
    let broken = json!({"metadata": {"name": "broken"}, "spec": {"selectors": [{"cel": {"expression": "device.attributes['d'].x"}}]}});
    let world = || World::new().with::<DeviceClass>(broken.clone());
    let cases: Vec<(World, PodBuilder, Vec<&str>)> = vec![
        (world(), pod("p"), vec!["", ""]),
        (world().with::<ResourceClaim>(one("c")), pod("p").device_claim("c"), vec!["", no]),
        (world().with::<ResourceClaim>(claim("c", exactly("any", 3))), pod("p").device_claim("c"), vec![no, no]),
        (world().with::<ResourceClaim>(allocated("c", &[])), pod("p").device_claim("c"), vec!["", away]),
        (
            world()
                .with::<ResourceClaim>(allocated("x", &["other"]))
                .with::<ResourceClaim>(claim("c", exactly("any", 2))),
            pod("p").device_claim("c"),
            vec![no, no],
        ),
        (
            world().with::<ResourceClaim>(claim("c", exactly("gone", 1))),
            pod("p").device_claim("c"),
            vec!["request r: device class gone does not exist"],
        ),
        (
            world().with::<ResourceClaim>(claim("c", request(json!({})))),
            pod("p").device_claim("c"),
            vec!["resource claim c, request r: unknown request type"],
        ),
        (
            world().with::<ResourceClaim>(claim("c", exactly("broken", 1))),
            pod("p").device_claim("c"),
            vec![
                "running \"DynamicResources\" filter plugin: class broken: selector #0: CEL runtime error: no such key: x",
                no,
            ],
        ),
    ];
    for (place, (world, incoming, expected)) in cases.into_iter().enumerate() {
        assert_eq!(world.verdicts(incoming), expected, "case {place}");
    }
}

/// A pod on its way to the node `a`.
pub(super) struct Cycle {
    pub(super) world: World,
    pub(super) profile: Arc<Profile>,
    pub(super) state: CycleState,
    pub(super) info: Arc<PodInfo>,
    node: Arc<Node>,
}

impl Cycle {
    pub(super) fn filtered(world: World, incoming: PodBuilder) -> Self {
        Self::filtered_on(world, incoming, node("a"))
    }

    pub(super) fn filtered_on(world: World, incoming: PodBuilder, node: NodeBuilder) -> Self {
        let mut cycle = Self { node: node.build(), ..Self::new(world, incoming) };
        cycle.filter().unwrap();
        cycle
    }

    pub(super) fn new(world: World, incoming: PodBuilder) -> Self {
        let (profile, info) = (profile_in(&world.cx, &[NAME]), incoming.info(&ClassTable::default()));
        Self { world, profile, state: CycleState::default(), info, node: node("a").build() }
    }

    pub(super) fn filter(&mut self) -> StatusResult {
        let node = NodeBuilder((*self.node).clone());
        let snapshot = snapshot(vec![node], vec![], &ClassTable::default());
        let cycle = CycleCx { snapshot: &snapshot };
        self.state = CycleState::default();
        self.profile.run_pre_filter(cycle, &mut self.state, &self.info, &mut Diagnosis::default())?;
        self.profile.run_filters(&self.state, &self.info, snapshot.view(0).unwrap())
    }

    pub(super) fn reserve(&mut self) {
        self.profile.run_reserve(&mut self.state, &self.info, "a").unwrap();
    }

    pub(super) async fn bind(&self) -> Result<(), String> {
        let plugin = &self.profile.pre_bind[0].plugin;
        assert_eq!(plugin.has_work(&self.state, &self.info, "a"), Ok(true));
        plugin
            .pre_bind(&self.state, &self.info, "a", &CancellationToken::new())
            .await
            .map_err(|status| status.message())
    }
}

#[tokio::test(start_paused = true)]
async fn claims_get_their_devices_and_the_pod() {
    let mut cycle = Cycle::filtered(World::new().with::<ResourceClaim>(one("c")), pod("p").device_claim("c"));
    cycle.reserve();
    *cycle.world.server.conflicts.lock() = 2;
    assert_eq!(cycle.bind().await, Ok(()));
    assert_eq!(cycle.world.lines(), ["update c", "update c", "update c", "status c"]);
    let claim = cycle.world.claim("c");
    assert_eq!(claim.metadata.finalizers, ["resource.kubernetes.io/delete-protection"]);
    assert_eq!(claim.status.allocation.as_ref().unwrap().devices.results[0].device, "one");
    let consumer = &claim.status.reserved_for[0];
    assert_eq!((consumer.resource.as_str(), consumer.name.as_str(), consumer.uid.as_str()), ("pods", "p", "uid-p"));
    // Whoever cannot be bound after all lets the claim go; its devices stay.
    cycle.profile.run_unreserve(&cycle.state, &cycle.info, "a");
    tokio::task::yield_now().await;
    let claim = cycle.world.claim("c");
    assert!(claim.status.reserved_for.is_empty() && claim.status.allocation.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_has_devices_is_only_reserved() {
    let world = World::new().with::<ResourceClaim>(allocated("c", &["other"]));
    let mut cycle = Cycle::filtered(world, pod("p").device_claim("c"));
    cycle.reserve();
    assert_eq!(cycle.bind().await, Ok(()));
    assert_eq!(cycle.world.lines(), ["status c"]);
    assert_eq!(cycle.world.claim("c").status.reserved_for.len(), 2);
    let world = World::new().with::<ResourceClaim>(allocated("c", &["uid-p"]));
    let mut cycle = Cycle::filtered(world, pod("p").device_claim("c"));
    cycle.reserve();
    assert_eq!(cycle.profile.pre_bind[0].plugin.has_work(&cycle.state, &cycle.info, "a"), Ok(false));
}

#[tokio::test(start_paused = true)]
async fn what_others_did_in_the_meantime() {
    let mut leaving = one("c");
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let cases = [
        (one("c"), leaving, "claim default/c got deleted in the meantime"),
        (one("c"), allocated("c", &[]), "claim default/c got allocated elsewhere in the meantime"),
        (allocated("c", &[]), one("c"), "claim default/c got deallocated elsewhere in the meantime"),
    ];
    for (before, after, expected) in cases {
        let mut cycle = Cycle::filtered(World::new().with::<ResourceClaim>(before), pod("p").device_claim("c"));
        cycle.reserve();
        cycle.world.put::<ResourceClaim>(after);
        *cycle.world.server.conflicts.lock() = 1;
        assert_eq!(cycle.bind().await, Err(expected.to_owned()));
    }
    let mut cycle = Cycle::filtered(World::new().with::<ResourceClaim>(one("c")), pod("p").device_claim("c"));
    cycle.reserve();
    *cycle.world.server.conflicts.lock() = 9;
    assert_eq!(cycle.bind().await, Err("add finalizer to claim default/c: changed".to_owned()));
    assert_eq!(cycle.world.lines().len(), 5);
}

#[test]
fn devices_on_their_way_are_nobody_elses() {
    let world = World::new().with::<ResourceClaim>(one("c")).with::<ResourceClaim>(one("other"));
    let mut cycle = Cycle::filtered(world, pod("p").device_claim("c"));
    cycle.reserve();
    let (first, state) = (Arc::clone(&cycle.info), cycle.state.clone());
    let refusal = |cycle: &mut Cycle, incoming: PodBuilder| {
        cycle.info = incoming.info(&ClassTable::default());
        cycle.filter().map_err(|status| status.message())
    };
    let again = "resource claim default/c is in the process of being allocated";
    assert_eq!(refusal(&mut cycle, pod("q").device_claim("c")), Err(again.to_owned()));
    assert_eq!(refusal(&mut cycle, pod("q").device_claim("other")), Ok(()));
    cycle.reserve();
    cycle.world.put::<ResourceClaim>(one("third"));
    let full = "cannot allocate all claims";
    assert_eq!(refusal(&mut cycle, pod("q").device_claim("third")), Err(full.to_owned()));
    cycle.profile.run_unreserve(&state, &first, "a");
    assert_eq!(refusal(&mut cycle, pod("q").device_claim("third")), Ok(()));
    cycle.world.put::<ResourceClaim>(allocated("watched", &[]));
    assert_eq!(refusal(&mut cycle, pod("q").device_claim("third")), Err(full.to_owned()));
    cycle.world.cx.listers.of::<ResourceClaim>().remove("default", "watched");
    assert_eq!(refusal(&mut cycle, pod("q").device_claim("third")), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn the_way_out_is_to_give_devices_back() {
    let away = |reserved: &[&str]| {
        let mut claim = allocated("c", reserved);
        claim["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"] =
            json!(["z"]);
        World::new().with::<ResourceClaim>(claim)
    };
    let cases = [
        (World::new(), pod("p"), "no new claims to deallocate", vec![]),
        (away(&[]), pod("p").device_claim("c"), "deallocation of ResourceClaim completed", vec!["status c"]),
        (away(&["uid-p"]), pod("p").device_claim("c"), "deallocation of ResourceClaim completed", vec!["status c"]),
        (away(&["other"]), pod("p").device_claim("c"), "still not schedulable", vec![]),
    ];
    for (world, incoming, expected, lines) in cases {
        let mut cycle = Cycle::new(world, incoming);
        let _ = cycle.filter();
        assert_eq!(cycle.post_filter().await, expected);
        assert_eq!(cycle.world.lines(), lines);
        if !lines.is_empty() {
            let status = &cycle.world.claim("c").status;
            assert!(status.allocation.is_none() && status.reserved_for.is_empty());
        }
    }
    let cycle = Cycle::new(World::new(), pod("p"));
    assert_eq!(cycle.post_filter().await, "not found", "an earlier plugin rejected the pod");
}

impl Cycle {
    pub(super) async fn post_filter(&self) -> String {
        let snapshot = snapshot(vec![node("a")], vec![], &ClassTable::default());
        let (diagnosis, nominated) = (Diagnosis::default(), crate::pod_info::NominatedPods::default());
        let cx = PostFilterCx {
            cycle: CycleCx { snapshot: &snapshot },
            profile: &self.profile,
            diagnosis: &diagnosis,
            nominated: &nominated,
            rng: &self.world.cx.rng,
            now: api_machinery::time::Time::from_unix_seconds(0),
        };
        let plugin = &self.profile.post_filter[0].plugin;
        plugin.post_filter(cx, &self.state, &self.info).await.status.map(|status| status.message()).unwrap_or_default()
    }
}

#[test]
fn earlier_alternatives_are_better() {
    let world = World::new();
    world.put::<ResourceSlice>(json!({
        "metadata": {"name": "t"}, "spec": {"driver": "d", "nodeName": "b", "devices": [{"name": "big"}],
            "pool": {"name": "b", "generation": 1, "resourceSliceCount": 1}}}));
    world.put::<ResourceSlice>(json!({
        "metadata": {"name": "u"}, "spec": {"driver": "e", "nodeName": "b", "devices": [{"name": "fast"}],
            "pool": {"name": "c", "generation": 1, "resourceSliceCount": 1}}}));
    world.put::<DeviceClass>(json!({"metadata": {"name": "of-e"}, "spec": {"selectors": [
        {"cel": {"expression": "device.driver == 'e'"}}]}}));
    let part = |name: &str, class: &str| json!({"name": name, "deviceClassName": class, "allocationMode": "ExactCount", "count": 1});
    world.put::<ResourceClaim>(claim(
        "c",
        json!([{"name": "r", "firstAvailable": [part("e", "of-e"), part("any", "any")]}]),
    ));
    let profile = profile_in(&world.cx, &[NAME]);
    let classes = ClassTable::default();
    let snapshot = snapshot(vec![node("a"), node("b")], vec![], &classes);
    let (cycle, incoming) = (CycleCx { snapshot: &snapshot }, pod("p").device_claim("c").info(&classes));
    let views: Vec<NodeView<'_>> = snapshot.views().collect();
    let mut state = CycleState::default();
    profile.run_pre_filter(cycle, &mut state, &incoming, &mut Diagnosis::default()).unwrap();
    views.iter().for_each(|view| profile.run_filters(&state, &incoming, *view).unwrap());
    let scores = profile.run_scores(cycle, &mut state, &incoming, &views, &mut ShapeAnswers::default()).unwrap();
    assert_eq!(scores, [7 * 100 / 8, 100]);
}

#[test]
fn events_that_wake() {
    // A profile of its own, which knows of no claims: those of the pod cannot be found.
    let changed = |old: Option<Value>, new: Value| {
        after_other::<ResourceClaim>(NAME, pod("p").device_claim("c"), old.map(object), Some(object(new)))
    };
    assert!(!changed(None, one("c")), "claims of the pod are missing");
    for (waiting, old, new, expected) in [
        (pod("p"), Some(allocated("x", &[])), one("x"), true),
        (pod("p"), Some(one("x")), allocated("x", &[]), false),
        (pod("p"), None, one("x"), false),
    ] {
        let woken = after_other::<ResourceClaim>(NAME, waiting, old.map(object), Some(object(new)));
        assert_eq!(woken, expected);
    }
    let slice = || {
        object::<ResourceSlice>(
            json!({"metadata": {"name": "s"}, "spec": {"driver": "d", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}}),
        )
    };
    assert!(after_other(NAME, pod("p"), None, Some(slice())));
    assert!(!after_other(NAME, pod("p"), Some(slice()), None), "less is no help");
    assert!(after_pod(
        NAME,
        pod("p").templated(None),
        Some(pod("p").templated(None)),
        Some(pod("p").templated(Some(None)))
    ));
    assert!(!after_pod(NAME, pod("q"), Some(pod("p").templated(None)), Some(pod("p").templated(Some(None)))));
}

#[test]
fn claims_of_the_pod_that_wake() {
    let world = World::new().with::<ResourceClaim>(one("c"));
    let tracker = Tracker::of(world.cx.listers.of(), true);
    let groups = Groups::of(&build_cx());
    let registrations = hints::registrations(&tracker, &groups, false);
    let by_rules = hints::registrations(&tracker, &groups, true);
    assert_eq!(by_rules.len(), registrations.len() + 1, "rules that go wake, too");
    let hint = registrations[1].hint.clone().unwrap();
    let waiting: Arc<Pod> = pod("p").device_claim("c").build();
    let asked = |old: Option<Value>, new: Value| {
        let whole = |manifest: Value| -> Arc<dyn Object> { Arc::new(object::<ResourceClaim>(manifest)) };
        let change = crate::framework::EventObject::Other { old: old.map(whole), new: Some(whole(new)) };
        hint(&waiting, &change) == crate::framework::Hint::Queue
    };
    assert!(asked(None, one("c")) && asked(Some(one("c")), allocated("c", &[])));
    assert!(!asked(Some(one("c")), one("c")) && !asked(None, one("other")));
}

/// A claim whose device waits for a condition, with what its driver tells.
fn conditional(conditions: Value) -> Value {
    let mut claim = allocated("c", &["uid-p"]);
    let allocation = &mut claim["status"]["allocation"];
    allocation["devices"]["results"][0]["bindingConditions"] = json!(["Ready"]);
    allocation["devices"]["results"][0]["bindingFailureConditions"] = json!(["Broken"]);
    allocation["allocationTimestamp"] = json!("2026-01-01T00:00:00Z");
    claim["status"]["devices"] = json!([{"driver": "d", "pool": "a", "device": "one", "conditions": conditions}]);
    claim
}

fn condition(name: &str, status: &str) -> Value {
    json!({"type": name, "status": status, "reason": "Because", "message": "so it is",
        "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

#[test]
fn devices_are_ready_failed_or_late() {
    let outcome = |conditions: Value, late: bool| {
        let claim: ResourceClaim = object(conditional(conditions));
        conditions::are_ready(&claim, |_| late).map_err(|error| error.to_string())
    };
    let broken = "device binding failed: claim=c, reason=Because, message=\"so it is\"";
    assert_eq!(outcome(json!([]), false), Ok(false));
    assert_eq!(outcome(json!([condition("Ready", "False")]), false), Ok(false));
    assert_eq!(outcome(json!([condition("Ready", "True")]), true), Ok(true));
    assert_eq!(
        outcome(json!([condition("Ready", "True"), condition("Broken", "True")]), false),
        Err(broken.to_owned())
    );
    assert_eq!(outcome(json!([condition("Broken", "False")]), true), Err("device binding timeout: claim=c".to_owned()));
    let plain: ResourceClaim = object(allocated("c", &[]));
    assert_eq!(conditions::are_ready(&plain, |_| true), Ok(true));
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_when_its_devices_are_ready() {
    let mut slice = json!({"metadata": {"name": "s"}, "spec": {"driver": "d", "nodeName": "a",
        "devices": [{"name": "one", "bindingConditions": ["Ready"]}],
        "pool": {"name": "a", "generation": 2, "resourceSliceCount": 1}}});
    slice["spec"]["devices"][0]["bindingFailureConditions"] = json!(["Broken"]);
    for (conditions, expected) in [
        (json!([condition("Ready", "True")]), Ok(())),
        (
            json!([condition("Broken", "True")]),
            Err("device binding failed: claim=c, reason=Because, message=\"so it is\"".to_owned()),
        ),
        (json!([]), Err("device binding timeout: claim=c".to_owned())),
    ] {
        let mut world = World::new().with::<ResourceClaim>(one("c")).with::<ResourceSlice>(slice.clone());
        let shown = Metrics::new(MetricsOptions::default());
        world.cx.metrics = Arc::new(SchedulerMetrics::new(&shown));
        let mut cycle = Cycle::filtered(world, pod("p").device_claim("c"));
        cycle.reserve();
        let lister = cycle.world.cx.listers.of::<ResourceClaim>();
        let driver = async {
            tokio::time::sleep(Duration::from_secs(7)).await;
            let mut claim = (*lister.find("default", "c").unwrap()).clone();
            assert!(claim.status.allocation.as_ref().unwrap().allocation_timestamp.is_some());
            claim.metadata.resource_version = "99".into();
            claim.status.devices = object::<ResourceClaim>(conditional(conditions)).status.devices;
            lister.put(Arc::new(claim));
        };
        let started = Instant::now();
        let bound = async { (cycle.bind().await, started.elapsed().as_secs()) };
        let seconds = if expected.as_ref().is_err_and(|error| error.contains("timeout")) { 600 } else { 7 };
        let status = match &expected {
            Ok(()) => "success",
            Err(_) if seconds == 600 => "timeout",
            Err(_) => "failure",
        };
        assert_eq!(tokio::join!(bound, driver).0, (expected, seconds));
        let labels = format!("{{driver=\"d\",profile=\"default-scheduler\",status=\"{status}\"}}");
        for line in [format!("allocations_total{labels} 1\n"), format!("wait_duration_seconds_sum{labels} {seconds}\n")]
        {
            let text = shown.text();
            assert!(text.contains(&format!("scheduler_dra_bindingconditions_{line}")), "{line}\nin\n{text}");
        }
    }
}

#[test]
fn devices_that_failed_are_no_ones_on_any_node() {
    let verdicts = |conditions: Value| {
        World::new().with::<ResourceClaim>(conditional(conditions)).verdicts(pod("p").device_claim("c"))
    };
    let away = "resourceclaim not available on the node";
    assert_eq!(verdicts(json!([condition("Ready", "True")])), ["", away]);
    assert_eq!(verdicts(json!([condition("Broken", "True")])), [away, away]);
}
