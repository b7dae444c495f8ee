//! Tables of `VolumeRestrictions`, `VolumeZone` and `NodeVolumeLimits`.

use std::sync::Arc;

use api_machinery::object::{Kind, Object};
use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim};
use api_types::storage_v1::{CSIDriver, CSINode, StorageClass, VolumeAttachment};
use serde_json::{Value, json};

use super::hint_tests::{after_other, after_pod};
use super::tests::{build_cx, profile_in, verdicts_in};
use crate::framework::{BuildCx, CycleCx, CycleState, Diagnosis};
use crate::pod_class::ClassTable;
use crate::test_objects::{NodeBuilder, PodBuilder, node, object, pod, snapshot};

/// A cluster without objects but for those that are put there.
struct World(BuildCx);

impl World {
    fn new() -> Self {
        Self(build_cx())
    }

    fn with<T: Kind + Object + Default>(self, manifest: Value) -> Self {
        self.0.listers.of::<T>().put(Arc::new(object(manifest)));
        self
    }

    fn verdicts(
        &self,
        plugin: &str,
        incoming: PodBuilder,
        nodes: Vec<NodeBuilder>,
        pods: Vec<PodBuilder>,
    ) -> Vec<String> {
        verdicts_in(&self.0, &[plugin], incoming, nodes, pods)
    }
}

fn claim(name: &str, spec: Value) -> Value {
    json!({"metadata": {"name": name, "namespace": "default"}, "spec": spec})
}

fn one_pod_claim(name: &str) -> Value {
    claim(name, json!({"accessModes": ["ReadWriteOncePod"]}))
}

const IN_USE: &str =
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod";

#[test]
fn a_disk_is_on_a_node_once() {
    let gce = |name: &str, read_only: bool| json!({"gcePersistentDisk": {"pdName": name, "readOnly": read_only}});
    let aws = |id: &str, read_only: bool| json!({"awsElasticBlockStore": {"volumeID": id, "readOnly": read_only}});
    let iscsi = |iqn: &str, read_only: bool| json!({"iscsi": {"targetPortal": "t", "iqn": iqn, "lun": 0, "readOnly": read_only}});
    let rbd = |monitor: &str, image: &str, read_only: bool| json!({"rbd": {"monitors": [monitor, "common-not"], "pool": "p", "image": image, "readOnly": read_only}});
    let cases = [
        (gce("a", false), gce("a", true), false),
        (gce("a", true), gce("a", true), true),
        (gce("a", false), gce("b", false), true),
        (aws("a", true), aws("a", true), false),
        (aws("a", false), aws("b", false), true),
        (aws("a", false), gce("a", false), true),
        (iscsi("a", false), iscsi("a", true), false),
        (iscsi("a", true), iscsi("a", true), true),
        (rbd("m", "i", false), rbd("m", "i", false), false),
        (rbd("m", "i", true), rbd("m", "i", true), true),
        (rbd("m", "i", false), rbd("m", "j", false), true),
        (rbd("m", "i", false), json!({"rbd": {"monitors": ["n"], "pool": "p", "image": "i"}}), true),
        (gce("a", false), json!({"emptyDir": {}}), true),
    ];
    for (wanted, there, fits) in cases {
        let verdicts = World::new().verdicts(
            "VolumeRestrictions",
            pod("p").volume(wanted.clone()),
            vec![node("a"), node("b")],
            vec![pod("x").volume(there.clone()).on("a")],
        );
        let first = if fits { "" } else { "node(s) had no available disk" };
        assert_eq!(verdicts, [first, ""], "{wanted} {there}");
    }
}

#[test]
fn a_claim_of_one_pod_is_had_once_in_the_cluster() {
    let world = World::new().with::<PersistentVolumeClaim>(one_pod_claim("mine"));
    let world = world.with::<PersistentVolumeClaim>(claim("shared", json!({"accessModes": ["ReadWriteOnce"]})));
    let verdicts = |incoming: PodBuilder, other: PodBuilder| {
        world.verdicts("VolumeRestrictions", incoming, vec![node("a"), node("b")], vec![other.on("a")])
    };
    assert_eq!(verdicts(pod("p").claim("mine"), pod("x").claim("mine")), [IN_USE, IN_USE]);
    assert_eq!(verdicts(pod("p").claim("mine"), pod("x")), ["", ""]);
    assert_eq!(verdicts(pod("p").claim("shared"), pod("x").claim("shared")), ["", ""]);
    let mut elsewhere = pod("x").claim("mine");
    elsewhere.0.metadata.namespace = "other".into();
    assert_eq!(verdicts(pod("p").claim("mine"), elsewhere), ["", ""]);
    let missing = "persistentvolumeclaim \"gone\" not found";
    assert_eq!(verdicts(pod("p").claim("gone"), pod("x")), [missing]);
}

#[test]
fn the_claim_is_free_without_the_pod_that_has_it() {
    let World(cx) = World::new().with::<PersistentVolumeClaim>(one_pod_claim("mine"));
    let (profile, classes) = (profile_in(&cx, &["VolumeRestrictions"]), ClassTable::default());
    let snapshot = snapshot(vec![node("a")], vec![pod("x").claim("mine").on("a")], &classes);
    let (incoming, mut state) = (pod("p").claim("mine").info(&classes), CycleState::default());
    let cycle = CycleCx { snapshot: &snapshot };
    profile.run_pre_filter(cycle, &mut state, &incoming, &mut Diagnosis::default()).unwrap();
    let view = snapshot.view(0).unwrap();
    let mut info = view.info.clone();
    let victim = Arc::clone(&info.pods[0]);
    assert!(profile.run_filters(&state, &incoming, view).is_err());
    info.remove_pod(victim.uid());
    profile.run_remove_pod(&mut state, &incoming, &victim, view).unwrap();
    assert!(profile.run_filters(&state, &incoming, view).is_ok());
    let mut stranger = pod("y").claim("mine");
    stranger.0.metadata.namespace = "other".into();
    profile.run_add_pod(&mut state, &incoming, &stranger.info(&classes), view).unwrap();
    assert!(profile.run_filters(&state, &incoming, view).is_ok(), "a claim of another namespace is another");
    profile.run_add_pod(&mut state, &incoming, &victim, view).unwrap();
    assert!(profile.run_filters(&state, &incoming, view).is_err());
}

const ZONE: &str = "topology.kubernetes.io/zone";
const OLD_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";

fn volume(name: &str, labels: Value) -> Value {
    json!({"metadata": {"name": name, "labels": labels}, "spec": {}})
}

#[test]
fn volumes_are_used_in_their_zones() {
    let refused = "node(s) had no available volume zone";
    let nodes = || {
        let inside = node("a").label(ZONE, "z1");
        vec![inside, node("b").label(ZONE, "z2"), node("c"), node("d").label(OLD_ZONE, "z1")]
    };
    let cases = [
        (json!({ZONE: "z1"}), ["", refused, "", refused]),
        (json!({OLD_ZONE: "z1"}), ["", refused, "", ""]),
        (json!({ZONE: "z1__z2"}), ["", "", "", refused]),
        (json!({ZONE: "z1____z2"}), ["", "", "", ""]),
        (json!({"topology.kubernetes.io/region": "r"}), [refused, refused, "", refused]),
        (json!({"zone": "z1"}), ["", "", "", ""]),
    ];
    for (labels, expected) in cases {
        let world = World::new().with::<PersistentVolume>(volume("v", labels.clone()));
        let world = world.with::<PersistentVolumeClaim>(claim("c", json!({"volumeName": "v"})));
        assert_eq!(world.verdicts("VolumeZone", pod("p").claim("c"), nodes(), vec![]), expected, "{labels}");
    }
}

#[test]
fn what_is_said_where_there_is_no_volume_to_look_at() {
    let class =
        |name: &str, mode: Value| json!({"metadata": {"name": name}, "provisioner": "p", "volumeBindingMode": mode});
    let world = || {
        let world = World::new().with::<StorageClass>(class("late", json!("WaitForFirstConsumer")));
        let world = world.with::<StorageClass>(class("now", json!("Immediate")));
        world.with::<StorageClass>(class("mute", Value::Null))
    };
    let cases = [
        ("c", json!({"volumeName": "gone"}), "persistentvolume \"gone\" not found"),
        ("c", json!({}), "PersistentVolumeClaim had no pv name and storageClass name"),
        ("c", json!({"storageClassName": "gone"}), "storageclass.storage.k8s.io \"gone\" not found"),
        ("c", json!({"storageClassName": "mute"}), "VolumeBindingMode not set for StorageClass \"mute\""),
        ("c", json!({"storageClassName": "now"}), "PersistentVolume had no name"),
        ("c", json!({"storageClassName": "late"}), ""),
        ("other", json!({}), "persistentvolumeclaim \"c\" not found"),
    ];
    for (name, spec, expected) in cases {
        let world = world().with::<PersistentVolumeClaim>(claim(name, spec.clone()));
        let verdicts = world.verdicts("VolumeZone", pod("p").claim("c"), vec![node("a")], vec![]);
        assert_eq!(verdicts, [expected], "{spec}");
    }
    let nameless = world().verdicts("VolumeZone", pod("p").claim(""), vec![node("a")], vec![]);
    assert_eq!(nameless, ["PersistentVolumeClaim had no name"]);
}

fn csi_node(name: &str, driver: &str, limit: Value) -> Value {
    let driver = json!({"name": driver, "nodeID": name, "allocatable": {"count": limit}});
    json!({"metadata": {"name": name}, "spec": {"drivers": [driver]}})
}

/// Claims `c0` to `c9`, each with its volume of the driver `d`.
fn with_claims(mut world: World) -> World {
    for number in 0..10 {
        let source = json!({"driver": "d", "volumeHandle": format!("h{number}")});
        let volume = json!({"metadata": {"name": format!("v{number}")}, "spec": {"csi": source}});
        world = world.with::<PersistentVolume>(volume);
        let spec = json!({"volumeName": format!("v{number}")});
        world = world.with::<PersistentVolumeClaim>(claim(&format!("c{number}"), spec));
    }
    world
}

#[test]
fn a_driver_attaches_so_many_volumes() {
    let full = "node(s) exceed max volume count";
    let attachment = |volume: &str, node: &str| {
        json!({"metadata": {"name": format!("{volume}-{node}")},
            "spec": {"attacher": "d", "nodeName": node, "source": {"persistentVolumeName": volume}}})
    };
    let world = |limit: u32| with_claims(World::new()).with::<CSINode>(csi_node("a", "d", json!(limit)));
    let two = || vec![pod("x").claim("c0").claim("c1").on("a")];
    let cases = [
        (world(3), pod("p").claim("c2"), ""),
        (world(2), pod("p").claim("c2"), full),
        (world(2), pod("p").claim("c1"), ""),
        (world(3), pod("p").claim("c2").claim("c3"), full),
        (world(3).with::<VolumeAttachment>(attachment("v5", "a")), pod("p").claim("c2"), full),
        (world(3).with::<VolumeAttachment>(attachment("v5", "b")), pod("p").claim("c2"), ""),
        (world(3).with::<VolumeAttachment>(attachment("v0", "a")), pod("p").claim("c2"), ""),
        (world(3).with::<VolumeAttachment>(attachment("v5", "a")), pod("p").claim("c5"), ""),
        (world(1), pod("p"), ""),
        (world(1), pod("p").volume(json!({"awsElasticBlockStore": {"volumeID": "e"}})), ""),
    ];
    for (place, (world, incoming, expected)) in cases.into_iter().enumerate() {
        let verdicts = world.verdicts("NodeVolumeLimits", incoming, vec![node("a")], two());
        assert_eq!(verdicts, [expected], "case {place}");
    }
}

#[test]
fn volumes_that_are_yet_to_be_made_and_disks_of_the_tree_count_for_their_driver() {
    let full = "node(s) exceed max volume count";
    let class = |provisioner: &str| json!({"metadata": {"name": "s"}, "provisioner": provisioner});
    let unbound = claim("new", json!({"storageClassName": "s"}));
    let disk = json!({"awsElasticBlockStore": {"volumeID": "e"}});
    let in_tree = json!({"metadata": {"name": "old"}, "spec": {"awsElasticBlockStore": {"volumeID": "e"}}});
    let world = |driver: &str| {
        let world = World::new().with::<CSINode>(csi_node("a", driver, json!(0)));
        let world = world.with::<PersistentVolumeClaim>(unbound.clone());
        let world = world.with::<PersistentVolumeClaim>(claim("old", json!({"volumeName": "old"})));
        world.with::<PersistentVolume>(in_tree.clone())
    };
    let ebs = "ebs.csi.aws.com";
    let cases = [
        (world("d").with::<StorageClass>(class("d")), pod("p").claim("new"), full),
        (world("d").with::<StorageClass>(class("e")), pod("p").claim("new"), ""),
        (world("d"), pod("p").claim("new"), ""),
        (world(ebs).with::<StorageClass>(class("kubernetes.io/aws-ebs")), pod("p").claim("new"), full),
        (world(ebs), pod("p").volume(disk), full),
        (world(ebs), pod("p").claim("old"), full),
        (world("d"), pod("p").claim("gone"), "looking up PVC default/gone: persistentvolumeclaim \"gone\" not found"),
    ];
    for (place, (world, incoming, expected)) in cases.into_iter().enumerate() {
        let verdicts = world.verdicts("NodeVolumeLimits", incoming, vec![node("a"), node("without")], vec![]);
        let second = if expected.starts_with("looking") { expected } else { "" };
        assert_eq!(verdicts, [expected, second], "case {place}");
    }
}

#[test]
fn a_driver_may_insist_on_being_there() {
    let verdicts = |on: bool, insists: bool| {
        let World(mut cx) = with_claims(World::new()).with::<CSINode>(csi_node("a", "d", json!(5)));
        cx.gates = cx.gates.with(component_base::shared_gates::VOLUME_LIMIT_SCALING, on);
        let driver = json!({"metadata": {"name": "d"}, "spec": {"preventPodSchedulingIfMissing": insists}});
        let world = World(cx).with::<CSIDriver>(driver);
        world.verdicts("NodeVolumeLimits", pod("p").claim("c0"), vec![node("a"), node("b")], vec![])
    };
    assert_eq!(verdicts(true, true), ["", "d CSI driver is not installed on the node"]);
    assert_eq!(verdicts(true, false), ["", ""]);
    assert_eq!(verdicts(false, true), ["", ""]);
}

#[test]
fn events_that_wake() {
    let with_disk = |name: &str| pod(name).volume(json!({"gcePersistentDisk": {"pdName": "a"}}));
    let stranger = || {
        let mut stranger = pod("x").claim("c").on("a");
        stranger.0.metadata.namespace = "other".into();
        stranger
    };
    let gone = [
        ("VolumeRestrictions", with_disk("p"), with_disk("x").on("a"), true),
        ("VolumeRestrictions", with_disk("p"), pod("x").on("a"), false),
        ("VolumeRestrictions", pod("p").claim("c"), pod("x").claim("c").on("a"), true),
        ("VolumeRestrictions", pod("p").claim("c"), stranger(), false),
        ("NodeVolumeLimits", pod("p").claim("c"), stranger(), true),
        ("NodeVolumeLimits", pod("p").claim("c"), pod("x").claim("c"), false),
        ("NodeVolumeLimits", pod("p").claim("c"), pod("x").on("a"), false),
    ];
    for (place, (plugin, waiting, gone, expected)) in gone.into_iter().enumerate() {
        assert_eq!(after_pod(plugin, waiting, Some(gone), None), expected, "case {place}");
    }
    for plugin in ["VolumeRestrictions", "VolumeZone", "NodeVolumeLimits", "VolumeBinding"] {
        let added = |name: &str| {
            let claim: PersistentVolumeClaim = object(claim(name, json!({})));
            after_other(plugin, pod("p").claim("c"), None, Some(claim))
        };
        assert_eq!((added("c"), added("d")), (true, false), "{plugin}");
    }
}

#[test]
fn changes_of_volumes_classes_and_nodes_that_wake() {
    let with_zone = |zone: &str| object::<PersistentVolume>(volume("v", json!({ZONE: zone})));
    let zone = |old: Option<&str>, new: &str| {
        after_other("VolumeZone", pod("p").claim("c"), old.map(with_zone), Some(with_zone(new)))
    };
    assert_eq!((zone(None, "a"), zone(Some("a"), "b"), zone(Some("a"), "a")), (true, true, false));
    let class = |mode: &str| {
        let class = json!({"metadata": {"name": "s"}, "provisioner": "p", "volumeBindingMode": mode});
        after_other::<StorageClass>("VolumeZone", pod("p").claim("c"), None, Some(object(class)))
    };
    assert_eq!((class("WaitForFirstConsumer"), class("Immediate")), (true, false));
    let limit = |old: Option<Value>, new: Value| {
        let node = |limit: Value| object::<CSINode>(csi_node("a", "d", limit));
        after_other("NodeVolumeLimits", pod("p").claim("c"), old.map(node), Some(node(new)))
    };
    assert!(limit(None, json!(1)) && limit(Some(json!(1)), json!(2)) && limit(Some(Value::Null), json!(1)));
    assert!(
        !limit(Some(json!(2)), json!(2)) && !limit(Some(json!(2)), json!(1)) && !limit(Some(json!(1)), Value::Null)
    );
    let detached = |waiting: PodBuilder, attacher: &str| {
        let attachment =
            json!({"metadata": {"name": "t"}, "spec": {"attacher": attacher, "nodeName": "a", "source": {}}});
        after_other::<VolumeAttachment>("NodeVolumeLimits", waiting, Some(object(attachment)), None)
    };
    let inline = || pod("p").volume(json!({"awsElasticBlockStore": {"volumeID": "e"}}));
    assert!(detached(pod("p").claim("c"), "d") && detached(inline(), "ebs.csi.aws.com"));
    assert!(!detached(inline(), "d") && !detached(pod("p"), "d"));
}
