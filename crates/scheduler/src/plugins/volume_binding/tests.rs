//! Tables of the filter and the score, and bindings from the choice of a node to the end.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::object::{Kind, Object};
use api_types::core_v1::{Node, PersistentVolume, PersistentVolumeClaim};
use api_types::storage_v1::{CSIDriver, CSINode, CSIStorageCapacity, StorageClass};
use async_trait::async_trait;
use component_base::metrics::{Metrics, MetricsOptions};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::super::hint_tests::after_other;
use super::super::tests::build_cx;
use super::*;
use crate::framework::{Diagnosis, Profile};
use crate::known_answers::ShapeAnswers;
use crate::listers::Listers;
use crate::pod_class::ClassTable;
use crate::test_objects::{NodeBuilder, PodBuilder, node, object, pod, snapshot};
use crate::writer::WriteError;

const CONFLICT: &str = "node(s) didn't match PersistentVolume's node affinity";
const NOTHING: &str = "node(s) didn't find available persistent volumes to bind";
const NO_SPACE: &str = "node(s) did not have enough free storage";
const MISSING: &str = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";

/// Stands for the API server: what is written is what the listers show then, in a newer version.
struct Server {
    listers: Arc<Listers>,
    refuses: Mutex<Option<&'static str>>,
}

impl Server {
    fn take<T: Kind + Object + Clone>(&self, object: &T) -> Result<T, WriteError> {
        if self.refuses.lock().is_some_and(|kind| kind == T::TYPE.kind) {
            return Err(WriteError::Failed("no".into()));
        }
        let mut object = object.clone();
        let version: u64 = object.meta().resource_version.parse().unwrap();
        object.meta_mut().resource_version = (version + 1).to_string();
        self.listers.of::<T>().put(Arc::new(object.clone()));
        Ok(object)
    }
}

#[async_trait]
impl ObjectWriter for Server {
    async fn update_volume(&self, volume: &PersistentVolume) -> Result<PersistentVolume, WriteError> {
        self.take(volume)
    }

    async fn update_claim(&self, claim: &PersistentVolumeClaim) -> Result<PersistentVolumeClaim, WriteError> {
        self.take(claim)
    }
}

/// A cluster with what was put there.
struct World {
    cx: BuildCx,
    server: Arc<Server>,
}

impl World {
    fn new() -> Self {
        let mut cx = build_cx();
        let server = Arc::new(Server { listers: Arc::clone(&cx.listers), refuses: Mutex::default() });
        cx.objects = server.clone();
        let world = Self { cx, server };
        world.with::<StorageClass>(class("made", "d", "WaitForFirstConsumer")).with::<StorageClass>(class(
            "found",
            "kubernetes.io/no-provisioner",
            "WaitForFirstConsumer",
        ))
    }

    fn with<T: Kind + Object + Default>(self, manifest: Value) -> Self {
        self.put::<T>(manifest);
        self
    }

    fn put<T: Kind + Object + Default>(&self, manifest: Value) {
        self.cx.listers.of::<T>().put(Arc::new(object(manifest)));
    }

    fn change<T: Kind + Object + Clone>(&self, namespace: &str, name: &str, change: impl FnOnce(&mut T)) {
        let lister = self.cx.listers.of::<T>();
        let mut object = (*lister.find(namespace, name).unwrap()).clone();
        change(&mut object);
        object.meta_mut().resource_version = "9".into();
        lister.put(Arc::new(object));
    }

    fn verdicts(&self, incoming: PodBuilder, nodes: Vec<NodeBuilder>) -> Vec<String> {
        super::super::tests::verdicts_in(&self.cx, &["VolumeBinding"], incoming, nodes, vec![])
    }
}

fn class(name: &str, provisioner: &str, mode: &str) -> Value {
    json!({"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode})
}

fn claim_with(name: &str, annotations: Value, class: &str, size: &str, volume: &str) -> Value {
    let meta = json!({"name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": "1",
        "annotations": annotations});
    json!({"metadata": meta, "spec": {"storageClassName": class, "volumeName": volume,
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}})
}

/// A claim that waits for its pod.
fn waiting(name: &str, class: &str) -> Value {
    claim_with(name, json!({}), class, "1Gi", "")
}

fn bound(name: &str, volume: &str) -> Value {
    claim_with(name, json!({"pv.kubernetes.io/bind-completed": "yes"}), "found", "1Gi", volume)
}

/// A volume of the class `found`, on one node.
fn volume(name: &str, size: &str, node: &str) -> Value {
    let term = json!({"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]});
    json!({"metadata": {"name": name, "resourceVersion": "1"}, "status": {"phase": "Available"},
        "spec": {"storageClassName": "found", "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"],
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}})
}

#[test]
fn claims_that_will_not_do() {
    let with = |claim: Value| World::new().with::<PersistentVolumeClaim>(claim);
    let changed = |path: &str, value: Value| {
        let mut claim = waiting("c", "made");
        let (parent, key) = path.rsplit_once('/').unwrap();
        claim.pointer_mut(parent).unwrap()[key] = value;
        with(claim)
    };
    let lost = {
        let mut claim = claim_with("c", json!({}), "made", "1Gi", "v");
        claim["status"] = json!({"phase": "Lost"});
        with(claim)
    };
    let mute = json!({"metadata": {"name": "mute"}, "provisioner": "d"});
    let named = || pod("p").claim("c");
    let ephemeral = || pod("p").volume(json!({"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}));
    let unbound = "pod has unbound immediate PersistentVolumeClaims";
    let cases = [
        (World::new(), pod("p"), ""),
        (World::new(), pod("p").volume(json!({"csi": {"driver": "d"}})), ""),
        (World::new(), named(), "persistentvolumeclaim \"c\" not found"),
        (
            World::new(),
            ephemeral(),
            "waiting for ephemeral volume controller to create the persistentvolumeclaim \"p-v0\"",
        ),
        (lost, named(), "persistentvolumeclaim \"c\" bound to non-existent persistentvolume \"v\""),
        (
            changed("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z")),
            named(),
            "persistentvolumeclaim \"c\" is being deleted",
        ),
        (
            with(waiting("p-v0", "made")),
            ephemeral(),
            "PVC default/p-v0 was not created for pod default/p (pod is not owner)",
        ),
        (changed("/spec/storageClassName", json!("")), named(), unbound),
        (changed("/spec/storageClassName", json!("gone")), named(), unbound),
        (changed("/spec/volumeName", json!("v")), named(), unbound),
        (with(waiting("c", "now")).with::<StorageClass>(class("now", "d", "Immediate")), named(), unbound),
        (
            with(waiting("c", "mute")).with::<StorageClass>(mute),
            named(),
            "running PreFilter plugin \"VolumeBinding\": VolumeBindingMode not set for StorageClass \"mute\"",
        ),
        (with(waiting("c", "made")), named(), ""),
    ];
    for (place, (world, incoming, expected)) in cases.into_iter().enumerate() {
        assert_eq!(world.verdicts(incoming, vec![node("a")]), [expected], "case {place}");
    }
}

#[test]
fn volumes_that_the_pod_has_are_where_it_goes() {
    let world =
        World::new().with::<PersistentVolumeClaim>(bound("c", "v")).with::<PersistentVolumeClaim>(bound("d", "w"));
    let mut given = volume("v", "1Gi", "a");
    given["spec"]["claimRef"] = json!({"namespace": "default", "name": "c", "uid": "uid-c"});
    let world = world.with::<PersistentVolume>(given);
    let nodes = || vec![node("a"), node("b")];
    assert_eq!(world.verdicts(pod("p").claim("c"), nodes()), ["", CONFLICT]);
    assert_eq!(world.verdicts(pod("p").claim("d"), nodes()), [MISSING, MISSING]);
    // Several reasons at once, in upstream's order.
    let world = world.with::<PersistentVolumeClaim>(waiting("f", "found"));
    let both = format!("{CONFLICT}, {NOTHING}");
    assert_eq!(world.verdicts(pod("p").claim("c").claim("f"), nodes()), [NOTHING, &both]);
    let both = format!("{NOTHING}, {MISSING}");
    assert_eq!(world.verdicts(pod("p").claim("d").claim("f"), nodes()), [both.as_str(); 2]);
}

#[test]
fn claims_that_wait_get_volumes_that_are_there() {
    let sized = |name: &str, size: &str| claim_with(name, json!({}), "found", size, "");
    let world = World::new().with::<PersistentVolumeClaim>(sized("big", "5Gi"));
    let world = world.with::<PersistentVolumeClaim>(sized("small", "1Gi"));
    let world =
        world.with::<PersistentVolume>(volume("five", "5Gi", "a")).with::<PersistentVolume>(volume("two", "2Gi", "a"));
    let world = world.with::<PersistentVolume>(volume("six", "6Gi", "b"));
    let nodes = || vec![node("a"), node("b"), node("c")];
    // The smaller claim chooses first and leaves the larger volume; no volume serves two claims.
    assert_eq!(world.verdicts(pod("p").claim("big").claim("small"), nodes()), ["", NOTHING, NOTHING]);
    assert_eq!(world.verdicts(pod("p").claim("small"), nodes()), ["", "", NOTHING]);
    let chosen = json!({"volume.kubernetes.io/selected-node": "a"});
    let world = World::new().with::<PersistentVolumeClaim>(claim_with("c", chosen, "made", "1Gi", ""));
    assert_eq!(world.verdicts(pod("p").claim("c"), nodes()), ["", NOTHING, NOTHING]);
}

#[test]
fn volumes_are_made_where_the_class_allows() {
    let topology = |values: Value| json!([{"matchLabelExpressions": [{"key": "zone", "values": values}]}]);
    for (topologies, expected) in
        [(json!([]), ["", "", ""]), (topology(json!(["1", "3"])), ["", NOTHING, NOTHING]), (json!([{}]), [NOTHING; 3])]
    {
        let mut class = class("made", "d", "WaitForFirstConsumer");
        class["allowedTopologies"] = topologies.clone();
        let world = World::new().with::<StorageClass>(class).with::<PersistentVolumeClaim>(waiting("c", "made"));
        let nodes = vec![node("a").label("zone", "1"), node("b").label("zone", "2"), node("c")];
        assert_eq!(world.verdicts(pod("p").claim("c"), nodes), expected, "{topologies}");
    }
}

/// Room in one zone.
fn room(name: &str, fields: Value) -> Value {
    let mut room = json!({"metadata": {"name": name, "namespace": "d"}, "storageClassName": "made",
        "nodeTopology": {"matchLabels": {"zone": "1"}}});
    room.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    room
}

#[test]
fn volumes_are_made_where_there_is_room() {
    let driver = |tells: bool| json!({"metadata": {"name": "d"}, "spec": {"storageCapacity": tells}});
    let world = |tells: bool, fields: Value| {
        let world = World::new().with::<CSIDriver>(driver(tells)).with::<PersistentVolumeClaim>(waiting("c", "made"));
        world.with::<CSIStorageCapacity>(room("r", fields))
    };
    let cases = [
        (world(true, json!({"capacity": "1Gi"})), ["", NO_SPACE]),
        (world(true, json!({"capacity": "1Mi"})), [NO_SPACE, NO_SPACE]),
        (world(false, json!({"capacity": "1Mi"})), ["", ""]),
        (world(true, json!({"capacity": "1Gi", "maximumVolumeSize": "1Mi"})), [NO_SPACE, NO_SPACE]),
        (world(true, json!({"capacity": "1Mi", "maximumVolumeSize": "1Gi"})), ["", NO_SPACE]),
        (world(true, json!({})), [NO_SPACE, NO_SPACE]),
        (world(true, json!({"capacity": "1Gi", "nodeTopology": {}})), ["", ""]),
        (world(true, json!({"capacity": "1Gi", "nodeTopology": null})), [NO_SPACE, NO_SPACE]),
        (world(true, json!({"capacity": "1Gi", "storageClassName": "other"})), [NO_SPACE, NO_SPACE]),
    ];
    for (place, (world, expected)) in cases.into_iter().enumerate() {
        let nodes = vec![node("a").label("zone", "1"), node("b").label("zone", "2")];
        assert_eq!(world.verdicts(pod("p").claim("c"), nodes), expected, "case {place}");
    }
    let world = World::new().with::<PersistentVolumeClaim>(waiting("c", "made"));
    assert_eq!(world.verdicts(pod("p").claim("c"), vec![node("a")]), [""], "no driver");
}

fn scores(on: bool, shape: Value) -> Vec<i64> {
    let mut world =
        World::new().with::<CSIDriver>(json!({"metadata": {"name": "d"}, "spec": {"storageCapacity": true}}));
    world.cx.gates = world.cx.gates.with(CAPACITY_SCORING, on);
    let world = world.with::<PersistentVolumeClaim>(waiting("c", "made"));
    for (zone, capacity) in [("1", "2Gi"), ("2", "4Gi"), ("3", "10Gi")] {
        let topology = json!({"capacity": capacity, "nodeTopology": {"matchLabels": {"zone": zone}}});
        world.put::<CSIStorageCapacity>(room(zone, topology));
    }
    let args = json!({"name": "VolumeBinding", "args": {"shape": shape}});
    let plugins = ["PrioritySort", "DefaultBinder", "VolumeBinding"].map(|name| json!({"name": name}));
    let file = json!({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [args],
            "plugins": {"multiPoint": {"enabled": plugins, "disabled": [{"name": "*"}]}}}]});
    let configuration = crate::config::decode(&file).unwrap();
    crate::config::validate(&configuration, &world.cx.gates).unwrap();
    let profile = crate::config::build_profiles(&configuration, crate::plugins::ALL, &world.cx).unwrap().remove(0);
    let classes = ClassTable::default();
    let nodes = ["1", "2", "3"].map(|zone| node(zone).label("zone", zone));
    let snapshot = snapshot(nodes.into(), vec![], &classes);
    let (cycle, incoming) = (CycleCx { snapshot: &snapshot }, pod("p").claim("c").info(&classes));
    let views: Vec<NodeView<'_>> = snapshot.views().collect();
    let mut state = CycleState::default();
    profile.run_pre_filter(cycle, &mut state, &incoming, &mut Diagnosis::default()).unwrap();
    views.iter().for_each(|view| profile.run_filters(&state, &incoming, *view).unwrap());
    profile.run_scores(cycle, &mut state, &incoming, &views, &mut ShapeAnswers::default()).unwrap()
}

#[test]
fn room_is_scored_where_the_gate_is_on() {
    assert_eq!(scores(false, json!([])), [0, 0, 0]);
    assert_eq!(scores(true, json!([])), [50, 75, 90]);
    let fuller = json!([{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]);
    assert_eq!(scores(true, fuller), [50, 25, 10]);
}

#[test]
fn volumes_that_are_there_are_scored_by_class() {
    let volumes = |matched: &[(&str, &str, &str)]| NodeVolumes {
        matched: matched
            .iter()
            .map(|(class, size, asked)| {
                let mut of_class = volume("v", size, "a");
                of_class["spec"]["storageClassName"] = json!(class);
                let claim = claim_with("c", json!({}), class, asked, "");
                (Arc::new(object(of_class)), Arc::new(object(claim)))
            })
            .collect(),
        ..NodeVolumes::default()
    };
    let scorer = Scorer::of(&[]);
    for (matched, expected) in [
        (volumes(&[]), 0),
        (volumes(&[("a", "10Gi", "1Gi")]), 90),
        (volumes(&[("a", "10Gi", "1Gi"), ("a", "10Gi", "5Gi")]), 70),
        (volumes(&[("a", "10Gi", "1Gi"), ("b", "10Gi", "10Gi")]), 45),
        (volumes(&[("a", "0", "0")]), 0),
    ] {
        assert_eq!(scorer.score(&matched), expected);
    }
}

/// A pod on its way to the node `a`, with a claim that waits.
struct Binding {
    world: World,
    profile: Arc<Profile>,
    state: CycleState,
    info: Arc<PodInfo>,
}

impl Binding {
    /// Filters and reserves.
    fn reserved(world: World, seconds: i64) -> Self {
        let info = pod("p").claim("c").info(&ClassTable::default());
        world.cx.listers.of::<Pod>().put(Arc::clone(&info.pod));
        world.cx.listers.of::<Node>().put(node("a").build());
        let args = json!({"name": "VolumeBinding", "args": {"bindTimeoutSeconds": seconds}});
        let file = json!({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "profiles": [{"pluginConfig": [args]}]});
        let configuration = crate::config::decode(&file).unwrap();
        let profile = crate::config::build_profiles(&configuration, crate::plugins::ALL, &world.cx).unwrap().remove(0);
        let mut binding = Self { world, profile, state: CycleState::default(), info };
        assert_eq!(binding.filter(), Ok(()));
        binding.profile.run_reserve(&mut binding.state, &binding.info, "a").unwrap();
        binding
    }

    fn filter(&mut self) -> StatusResult {
        let snapshot = snapshot(vec![node("a")], vec![], &ClassTable::default());
        let cycle = CycleCx { snapshot: &snapshot };
        let mut state = CycleState::default();
        self.profile.run_pre_filter(cycle, &mut state, &self.info, &mut Diagnosis::default())?;
        self.profile.run_filters(&state, &self.info, snapshot.view(0).unwrap())?;
        self.state = state;
        Ok(())
    }

    /// What comes of the binding, and when, in seconds.
    async fn bind(&self) -> (Result<(), String>, u64) {
        let plugin = &self.profile.pre_bind[0].plugin;
        assert_eq!(plugin.has_work(&self.state, &self.info, "a"), Ok(true));
        let started = tokio::time::Instant::now();
        let outcome = plugin.pre_bind(&self.state, &self.info, "a", &CancellationToken::new()).await;
        (outcome.map_err(|status| status.message()), started.elapsed().as_secs())
    }

    /// The same, while something else happens after three seconds.
    async fn bind_while(&self, happens: impl FnOnce(&World)) -> (Result<(), String>, u64) {
        let other = async {
            tokio::time::sleep(Duration::from_millis(3500)).await;
            happens(&self.world);
        };
        tokio::join!(self.bind(), other).0
    }
}

fn matched() -> World {
    let world = World::new().with::<PersistentVolumeClaim>(waiting("c", "found"));
    world.with::<PersistentVolume>(volume("v", "1Gi", "a"))
}

fn made() -> World {
    World::new().with::<PersistentVolumeClaim>(waiting("c", "made"))
}

/// As the binder does when a claim has got its volume.
fn complete(world: &World, volume: &str) {
    world.change::<PersistentVolumeClaim>("default", "c", |claim| {
        claim.spec.volume_name = volume.into();
        claim.metadata.annotations.insert("pv.kubernetes.io/bind-completed".into(), "yes".into());
    });
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_is_there_is_given_to_the_claim() {
    let binding = Binding::reserved(matched(), 600);
    assert_eq!(binding.bind_while(|world| complete(world, "v")).await, (Ok(()), 3), "as soon as the watch tells");
    let volume = binding.world.cx.listers.of::<PersistentVolume>().find("", "v").unwrap();
    let named = volume.spec.claim_ref.as_ref().unwrap();
    assert_eq!((named.kind.as_str(), named.api_version.as_str()), ("PersistentVolumeClaim", "v1"));
    assert_eq!((named.namespace.as_str(), named.name.as_str(), named.uid.as_str()), ("default", "c", "uid-c"));
    assert_eq!(volume.metadata.annotations["pv.kubernetes.io/bound-by-controller"], "yes");
}

#[test]
fn a_volume_that_is_there_comes_before_one_that_is_made() {
    let mut there = volume("v", "1Gi", "a");
    there["spec"]["storageClassName"] = json!("made");
    for (world, expected) in [(made(), (0, 1)), (made().with::<PersistentVolume>(there), (1, 0))] {
        let binding = Binding::reserved(world, 600);
        let assumed = assumed(&binding.state).unwrap();
        assert_eq!((assumed.volumes.len(), assumed.claims.len()), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_waited_for_once_the_room_is_needed() {
    let binding = Binding::reserved(matched(), 600);
    let (plugin, stop) = (&binding.profile.pre_bind[0].plugin, CancellationToken::new());
    let started = tokio::time::Instant::now();
    let needs_room = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        stop.cancel();
    };
    let (outcome, ()) = tokio::join!(plugin.pre_bind(&binding.state, &binding.info, "a", &stop), needs_room);
    assert_eq!(outcome.unwrap_err().message(), "binding volumes: context canceled");
    assert_eq!(started.elapsed().as_secs(), 3);
    // What was written stays.
    let volume = binding.world.cx.listers.of::<PersistentVolume>().find("", "v").unwrap();
    assert_eq!(volume.spec.claim_ref.as_ref().unwrap().uid, "uid-c");
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_names_the_claim_keeps_its_word() {
    let mut named = volume("v", "1Gi", "a");
    named["spec"]["claimRef"] = json!({"namespace": "default", "name": "c"});
    let world = World::new().with::<PersistentVolumeClaim>(waiting("c", "found")).with::<PersistentVolume>(named);
    let binding = Binding::reserved(world, 600);
    assert_eq!(binding.bind_while(|world| complete(world, "v")).await.0, Ok(()));
    let volume = binding.world.cx.listers.of::<PersistentVolume>().find("", "v").unwrap();
    assert_eq!(volume.spec.claim_ref.as_ref().unwrap().uid, "uid-c");
    assert!(volume.metadata.annotations.is_empty(), "it was a user who tied them");
}

#[tokio::test(start_paused = true)]
async fn a_volume_is_made_for_the_claim() {
    let binding = Binding::reserved(made(), 600);
    let outcome = binding
        .bind_while(|world| {
            let claim = world.cx.listers.of::<PersistentVolumeClaim>().find("default", "c").unwrap();
            assert_eq!(claim.metadata.annotations["volume.kubernetes.io/selected-node"], "a");
            complete(world, "new");
            world.put::<PersistentVolume>(volume("new", "1Gi", "a"));
        })
        .await;
    assert_eq!(outcome.0, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn what_ends_the_wait() {
    /// A world, what happens in it, and what is said of that.
    type Case = (fn() -> World, fn(&World), &'static str);
    let cases: [Case; 7] = [
        (matched, |_| {}, "context deadline exceeded"),
        (
            matched,
            |world| world.cx.listers.of::<Pod>().remove("default", "p"),
            "pod does not exist any more: pod \"p\" not found",
        ),
        (
            matched,
            |world| world.change::<PersistentVolume>("", "v", |volume| volume.spec.claim_ref = None),
            "ClaimRef got reset for pv \"v\"",
        ),
        (
            matched,
            |world| {
                let mut other = object::<PersistentVolume>(volume("v", "1Gi", "b"));
                other.metadata.resource_version = "7".into();
                world.cx.listers.of::<PersistentVolume>().put(Arc::new(other));
            },
            "pv \"v\" node affinity doesn't match node \"a\": no matching NodeSelectorTerms",
        ),
        (
            made,
            |world| world.change::<PersistentVolumeClaim>("default", "c", |claim| claim.metadata.annotations.clear()),
            "selectedNode annotation reset for PVC \"c\"",
        ),
        (
            made,
            |world| {
                world.change::<PersistentVolumeClaim>("default", "c", |claim| {
                    claim.metadata.annotations = [("other".to_owned(), String::new())].into();
                });
            },
            "provisioning failed for PVC \"c\"",
        ),
        (
            made,
            |world| world.cx.listers.of::<PersistentVolumeClaim>().remove("default", "c"),
            "failed to check provisioning pvc: persistentvolumeclaim \"c\" not found",
        ),
    ];
    for (place, (world, happens, expected)) in cases.into_iter().enumerate() {
        let binding = Binding::reserved(world(), 10);
        let (outcome, _) = binding.bind_while(happens).await;
        assert_eq!(outcome, Err(format!("binding volumes: {expected}")), "case {place}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_assumed_is_not_given_twice() {
    let mut binding = Binding::reserved(matched(), 600);
    let reserved = binding.state.clone();
    let refusal = |binding: &mut Binding| binding.filter().map_err(|status| status.message());
    let other = pod("q").claim("other").info(&ClassTable::default());
    binding.world.put::<PersistentVolumeClaim>(waiting("other", "found"));
    let first = std::mem::replace(&mut binding.info, other);
    assert_eq!(refusal(&mut binding), Err(NOTHING.to_owned()));
    binding.profile.run_unreserve(&reserved, &first, "a");
    assert_eq!(refusal(&mut binding), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_written_is_not_assumed_any_more() {
    let shown = Metrics::new(MetricsOptions::default());
    let mut world = matched();
    world.cx.metrics = Arc::new(SchedulerMetrics::new(&shown));
    let mut binding = Binding::reserved(world, 600);
    *binding.world.server.refuses.lock() = Some("PersistentVolume");
    assert_eq!(binding.bind().await, (Err("no".to_owned()), 0));
    let line = "scheduler_volume_scheduling_stage_error_total{operation=\"bind\"} 1\n";
    assert!(shown.text().contains(line), "{}", shown.text());
    binding.info = pod("q").claim("other").info(&ClassTable::default());
    binding.world.put::<PersistentVolumeClaim>(waiting("other", "found"));
    assert_eq!(binding.filter(), Ok(()));
}

#[test]
fn pods_whose_claims_are_bound_have_nothing_to_write() {
    let world =
        World::new().with::<PersistentVolumeClaim>(bound("c", "v")).with::<PersistentVolume>(volume("v", "1Gi", "a"));
    let binding = Binding::reserved(world, 600);
    assert_eq!(binding.profile.pre_bind[0].plugin.has_work(&binding.state, &binding.info, "a"), Ok(false));
}

#[test]
fn events_that_wake() {
    let waiting = || pod("p").claim("c").volume(json!({"csi": {"driver": "d"}}));
    let topology = |value: &str| {
        let mut class = class("made", "d", "WaitForFirstConsumer");
        class["allowedTopologies"] = json!([{"matchLabelExpressions": [{"key": "zone", "values": [value]}]}]);
        object::<StorageClass>(class)
    };
    let of_class = |old, new| after_other("VolumeBinding", waiting(), old, Some(new));
    assert!(of_class(None, topology("1")) && of_class(Some(topology("1")), topology("2")));
    assert!(!of_class(Some(topology("1")), topology("1")));
    let migrated = |plugins: &str| {
        let annotations = json!({"storage.alpha.kubernetes.io/migrated-plugins": plugins});
        object::<CSINode>(json!({"metadata": {"name": "a", "annotations": annotations}, "spec": {"drivers": []}}))
    };
    let of_node = |old, new| after_other("VolumeBinding", waiting(), old, Some(new));
    assert!(of_node(None, migrated("x")) && of_node(Some(migrated("x")), migrated("y")));
    assert!(!of_node(Some(migrated("x")), migrated("x")));
    let driver = |name: &str, tells: bool| {
        object::<CSIDriver>(json!({"metadata": {"name": name}, "spec": {"storageCapacity": tells}}))
    };
    let of_driver = |name, before, after| {
        after_other("VolumeBinding", waiting(), Some(driver(name, before)), Some(driver(name, after)))
    };
    assert!(of_driver("d", true, false));
    assert!(!of_driver("d", false, true) && !of_driver("e", true, false) && !of_driver("d", true, true));
    let capacity = |fields: Value| object::<CSIStorageCapacity>(room("r", fields));
    let of_room = |old: Option<Value>, new: Value| {
        after_other("VolumeBinding", waiting(), old.map(capacity), Some(capacity(new)))
    };
    assert!(of_room(None, json!({})) && of_room(Some(json!({})), json!({"capacity": "1Gi"})));
    assert!(of_room(Some(json!({"capacity": "1Gi"})), json!({"capacity": "2Gi"})));
    assert!(!of_room(Some(json!({"capacity": "2Gi"})), json!({"capacity": "1Gi"})));
    assert!(!of_room(Some(json!({"capacity": "1Gi"})), json!({"capacity": "2Gi", "maximumVolumeSize": "1Gi"})));
    let of_volume =
        after_other::<PersistentVolume>("VolumeBinding", waiting(), None, Some(object(volume("v", "1", "a"))));
    assert!(of_volume);
}
