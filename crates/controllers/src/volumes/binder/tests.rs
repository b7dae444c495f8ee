//! Plans from tables, and the binder against the fake server.

use std::collections::BTreeSet;
use std::time::Duration;

use api_machinery::quantity::Quantity;
use api_machinery::value::{Value, from_value};
use api_types::core_v1::constants::persistent_volume_phase as phase;
use base::Rng;
use client::{FaultLayer, Faults};
use component_helpers::volumes::matching::NodeScope;
use component_helpers::volumes::names::{
    BETA_STORAGE_PROVISIONER, BIND_COMPLETED, BOUND_BY_CONTROLLER, MIGRATED_TO, PRE_RESIZE_CAPACITY, PROVISIONED_BY,
    SELECTED_NODE, STORAGE_PROVISIONER,
};

use super::claims::{Plan, Seen, choose, plan_bound, plan_chosen, plan_free};
use super::reclaim::Reclaim;
use super::*;
use crate::volumes::notice::Notice;
use crate::workloads::fixtures::{Running, at, dying, meta, pod, run_until_idle};

const CLAIMS_AT: &str = "v1/persistentvolumeclaims";
const VOLUMES_AT: &str = "v1/persistentvolumes";
const CLASSES_AT: &str = "storage.k8s.io/v1/storageclasses";

fn size(text: &str) -> api_types::core_v1::ResourceList {
    [("storage".to_owned(), Quantity::parse(text).unwrap())].into()
}

/// A claim for 1Gi of this class.
fn claim(name: &str, class: Option<&str>) -> PersistentVolumeClaim {
    let mut claim = PersistentVolumeClaim { metadata: meta(name), ..PersistentVolumeClaim::default() };
    claim.spec.access_modes = vec!["ReadWriteOnce".into()];
    claim.spec.resources.requests = size("1Gi");
    claim.spec.storage_class_name = class.map(str::to_owned);
    claim.status.phase = "Pending".into();
    claim
}

/// The claim, bound to this volume.
fn bound(mut claim: PersistentVolumeClaim, volume: &str) -> PersistentVolumeClaim {
    claim.spec.volume_name = volume.into();
    claim.metadata.annotations.insert(BIND_COMPLETED.into(), "yes".into());
    claim
}

/// A free volume of 5Gi of this class.
fn volume(name: &str, class: &str) -> PersistentVolume {
    let mut volume = PersistentVolume { metadata: meta(name), ..PersistentVolume::default() };
    volume.metadata.namespace.clear();
    volume.spec.access_modes = vec!["ReadWriteOnce".into()];
    volume.spec.capacity = size("5Gi");
    volume.spec.storage_class_name = class.into();
    volume.spec.persistent_volume_reclaim_policy = "Retain".into();
    volume.status.phase = "Available".into();
    volume
}

/// The volume, naming a claim.
fn of(mut volume: PersistentVolume, claim: &str, uid: &str) -> PersistentVolume {
    let named = ObjectReference { namespace: "ns".into(), name: claim.into(), uid: uid.into(), ..Default::default() };
    volume.spec.claim_ref = Some(named);
    volume
}

fn annotated<T: api_machinery::object::Object>(mut object: T, key: &str, value: &str) -> T {
    object.meta_mut().annotations.insert(key.into(), value.into());
    object
}

fn class(name: &str, provisioner: &str, mode: &str) -> StorageClass {
    let mut class = StorageClass { metadata: meta(name), provisioner: provisioner.into(), ..StorageClass::default() };
    class.metadata.namespace.clear();
    class.volume_binding_mode = Some(mode.into());
    class
}

#[test]
fn a_claim_without_a_volume() {
    let free = Arc::new(volume("v", "fast"));
    let waits = |reason, message: &str| Plan::Wait(Some(Notice::normal(reason, message)));
    let none = waits("FailedBinding", "no persistent volumes available for this claim and no storage class is set");
    let seen = |delayed: bool, default: Option<&str>, pods: &[&str]| Seen {
        best: None,
        is_delayed: delayed,
        default_class: default.map(str::to_owned),
        unplaced_pods: pods.iter().map(|pod| (*pod).to_owned()).collect(),
    };
    let consumer = "waiting for first consumer to be created before binding";
    for (name, claim, seen, expected) in [
        (
            "a volume",
            claim("c", None),
            Seen { best: Some(free.clone()), ..seen(true, Some("d"), &[]) },
            Plan::Bind(free),
        ),
        ("no class", claim("c", None), seen(false, None, &[]), none.clone()),
        ("the default class", claim("c", None), seen(false, Some("d"), &[]), Plan::TakeClass("d".into())),
        ("none wanted", claim("c", Some("")), seen(false, Some("d"), &[]), none),
        ("a class", claim("c", Some("fast")), seen(false, Some("d"), &[]), Plan::Provision),
        ("no pod", claim("c", Some("late")), seen(true, None, &[]), waits("WaitForFirstConsumer", consumer)),
        (
            "a pod",
            claim("c", Some("late")),
            seen(true, None, &["p"]),
            waits("WaitForPodScheduled", "waiting for pod p to be scheduled"),
        ),
        (
            "pods",
            claim("c", Some("late")),
            seen(true, None, &["p", "q"]),
            waits("WaitForPodScheduled", "waiting for pods p,q to be scheduled"),
        ),
        (
            "a node was chosen",
            annotated(claim("c", Some("late")), SELECTED_NODE, "n"),
            seen(true, None, &["p"]),
            Plan::Provision,
        ),
    ] {
        assert_eq!(plan_free(&claim, seen), expected, "{name}");
    }
}

#[test]
fn a_claim_that_names_a_volume() {
    let mut asks = claim("c", Some("fast"));
    asks.spec.volume_name = "v".into();
    let mismatch = |why: &str| {
        Plan::Wait(Some(Notice::warning("VolumeMismatch", format!("Cannot bind to requested volume \"v\": {why}"))))
    };
    let taken = Notice::warning("FailedBinding", "volume \"v\" already bound to a different claim.");
    let error = "invalid binding of claim \"ns/c\" to volume \"v\": volume already claimed by \"ns/other\"";
    let changed = |change: fn(&mut PersistentVolume)| {
        let mut volume = volume("v", "fast");
        change(&mut volume);
        volume
    };
    for (name, is_marked, volume, expected) in [
        ("not there", false, None, Plan::Wait(None)),
        ("free", false, Some(volume("v", "fast")), Plan::Bind(Arc::new(volume("v", "fast")))),
        (
            "ours though it does not fit",
            false,
            Some(of(volume("v", "slow"), "c", "")),
            Plan::Bind(Arc::new(of(volume("v", "slow"), "c", ""))),
        ),
        ("another's", false, Some(of(volume("v", "fast"), "other", "x")), Plan::Wait(Some(taken.clone()))),
        ("another's, by us", true, Some(of(volume("v", "fast"), "other", "x")), Plan::Refuse(taken, error.into())),
        (
            "deleting",
            false,
            Some(changed(|own| own.metadata.deletion_timestamp = Some(at(1)))),
            mismatch("the volume is marked for deletion \"v\""),
        ),
        ("small", false, Some(changed(|own| own.spec.capacity = size("1Mi"))), mismatch("requested PV is too small")),
        ("class", false, Some(volume("v", "slow")), mismatch("storageClassName does not match")),
        (
            "attributes",
            false,
            Some(changed(|own| own.spec.volume_attributes_class_name = Some("gold".into()))),
            mismatch("volumeAttributesClassName does not match"),
        ),
        (
            "block",
            false,
            Some(changed(|own| own.spec.volume_mode = Some("Block".into()))),
            mismatch("incompatible volumeMode"),
        ),
        (
            "modes",
            false,
            Some(changed(|own| own.spec.access_modes = vec!["ReadOnlyMany".into()])),
            mismatch("incompatible accessMode"),
        ),
    ] {
        let mut claim = asks.clone();
        if is_marked {
            claim = annotated(claim, BOUND_BY_CONTROLLER, "yes");
        }
        assert_eq!(plan_chosen(&claim, volume.map(Arc::new)), expected, "{name}");
    }
}

#[test]
fn a_claim_that_was_bound() {
    let lost = |what: &str| {
        Plan::Lose(Notice::warning("ClaimLost", format!("Bound claim has lost {what}. Data on the volume is lost!")))
    };
    let misbound =
        Notice::warning("ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly");
    for (name, named, volume, expected) in [
        ("no name", "", None, lost("reference to PersistentVolume")),
        ("no volume", "v", None, lost("its PersistentVolume")),
        ("untied", "v", Some(volume("v", "")), Plan::Bind(Arc::new(volume("v", "")))),
        ("ours", "v", Some(of(volume("v", ""), "c", "c-uid")), Plan::Bind(Arc::new(of(volume("v", ""), "c", "c-uid")))),
        ("another's", "v", Some(of(volume("v", ""), "d", "d-uid")), Plan::Lose(misbound)),
    ] {
        assert_eq!(plan_bound(&bound(claim("c", None), named), volume.map(Arc::new)), expected, "{name}");
    }
}

#[test]
fn volumes_with_fewer_access_modes_are_tried_first() {
    let with = |name: &str, size_of: &str, modes: &[&str]| {
        let mut volume = volume(name, "");
        volume.spec.capacity = size(size_of);
        volume.spec.access_modes = modes.iter().map(|mode| (*mode).to_owned()).collect();
        Arc::new(volume)
    };
    let (once, many) = ("ReadWriteOnce", "ReadOnlyMany");
    let all = vec![
        with("both-small", "2Gi", &[many, once]),
        with("once-large", "9Gi", &[once]),
        with("once", "5Gi", &[once]),
        with("many", "1Gi", &[many]),
        Arc::new(of(PersistentVolume::clone(&with("ours", "9Gi", &[once, many])), "c", "")),
    ];
    let chosen =
        |all: Vec<_>, place| choose(&claim("c", None), all, place).unwrap().map(|one| one.metadata.name.clone());
    assert_eq!(chosen(all.clone(), NodeScope::Anywhere).as_deref(), Some("once"));
    assert_eq!(chosen(all.clone(), NodeScope::Undecided).as_deref(), Some("ours"));
    assert_eq!(chosen(vec![all[0].clone(), all[3].clone()], NodeScope::Anywhere).as_deref(), Some("both-small"));
    assert_eq!(chosen(vec![all[3].clone()], NodeScope::Anywhere), None);
}

#[test]
fn plans_of_volumes() {
    use super::volumes::Plan;
    let mine = || of(volume("v", ""), "c", "c-uid");
    let made = |policy: &str| {
        let mut volume = annotated(mine(), PROVISIONED_BY, "d");
        volume.spec.persistent_volume_reclaim_policy = policy.into();
        volume
    };
    let mut block = mine();
    block.spec.volume_mode = Some("Block".into());
    let waiting = claim("c", None);
    let elsewhere = bound(claim("c", None), "w");
    for (name, volume, claim, expected) in [
        ("free", volume("v", ""), None, Plan::Free),
        ("reserved", of(volume("v", ""), "c", ""), Some(&waiting), Plan::Free),
        ("gone", mine(), None, Plan::LetGo),
        ("not taken yet", mine(), Some(&waiting), Plan::WakeClaim),
        ("cannot be taken", block, Some(&waiting), Plan::Mismatch),
        ("bound", mine(), Some(&bound(waiting.clone(), "v")), Plan::Bound),
        ("elsewhere", mine(), Some(&elsewhere), Plan::Untie),
        ("elsewhere, made for it", made("Delete"), Some(&elsewhere), Plan::LetGo),
        ("elsewhere, kept", made("Retain"), Some(&elsewhere), Plan::Untie),
    ] {
        assert_eq!(super::volumes::plan(&volume, claim), expected, "{name}");
    }
    let freed = super::volumes::untied(&annotated(mine(), BOUND_BY_CONTROLLER, "yes"));
    assert_eq!((freed.spec.claim_ref, freed.metadata.annotations.len()), (None, 0));
    let kept = super::volumes::untied(&mine()).spec.claim_ref.unwrap();
    assert_eq!((kept.name.as_str(), kept.uid.as_str()), ("c", ""), "what a user wrote stays");
}

#[test]
fn what_becomes_of_a_volume_that_was_let_go() {
    let with = |policy: &str, source: &str, provisioner: &str| {
        let mut volume = volume("v", "");
        volume.spec.persistent_volume_reclaim_policy = policy.into();
        let source = api_machinery::json::parse_value(source).unwrap();
        from_value(&source, &mut volume.spec.persistent_volume_source).unwrap();
        if provisioner.is_empty() { volume } else { annotated(volume, PROVISIONED_BY, provisioner) }
    };
    let csi = r#"{"csi": {"driver": "d", "volumeHandle": "h"}}"#;
    let fail = |reason, message: &str| Reclaim::Fail(Notice::warning(reason, message));
    let no_deleter =
        |why: &str| fail("VolumeFailedDelete", &format!("error getting deleter volume plugin for volume \"v\": {why}"));
    for (name, volume, expected) in [
        ("retain", with("Retain", csi, "d"), Reclaim::Keep),
        ("driver", with("Delete", csi, ""), Reclaim::External("d".into())),
        (
            "provisioner",
            with("Delete", r#"{"nfs": {}}"#, "nfs.example.com"),
            Reclaim::External("nfs.example.com".into()),
        ),
        ("migrated", annotated(with("Delete", "{}", "kubernetes.io/aws-ebs"), MIGRATED_TO, "x"), Reclaim::Keep),
        (
            "left the tree",
            with("Delete", csi, "kubernetes.io/rbd"),
            fail("VolumeFailedDelete", "no volume plugin matched name: kubernetes.io/rbd"),
        ),
        ("by hand", with("Delete", r#"{"nfs": {}}"#, ""), no_deleter("no deletable volume plugin matched")),
        ("no plugin", with("Delete", r#"{"rbd": {}}"#, ""), no_deleter("no volume plugin matched")),
        ("recycle", with("Recycle", "{}", ""), fail("VolumeFailedRecycle", "No recycler plugin found for the volume!")),
        (
            "nonsense",
            with("Burn", "{}", ""),
            fail("VolumeUnknownReclaimPolicy", "Volume has unrecognized PersistentVolumeReclaimPolicy"),
        ),
    ] {
        assert_eq!(super::reclaim::plan(&volume), expected, "{name}");
    }
}

#[test]
fn the_status_of_a_claim_follows_its_phase() {
    let status = |claim: &PersistentVolumeClaim, volume: &PersistentVolume| {
        super::write::status(claim, "Bound", Some(volume))
            .map(|status| status.capacity.get("storage").map(ToString::to_string))
    };
    let (waiting, growing) = (claim("c", None), annotated(volume("v", ""), PRE_RESIZE_CAPACITY, "2Gi"));
    assert_eq!(status(&waiting, &volume("v", "")).unwrap().as_deref(), Some("5Gi"));
    assert_eq!(status(&waiting, &growing).unwrap().as_deref(), Some("2Gi"));
    let odd = annotated(volume("v", ""), PRE_RESIZE_CAPACITY, "many");
    assert_eq!(status(&waiting, &odd).unwrap().as_deref(), Some("5Gi"));
    let mut settled = waiting.clone();
    (settled.status.phase, settled.status.capacity) = ("Bound".into(), size("1Gi"));
    assert_eq!(status(&settled, &volume("v", "")).unwrap().as_deref(), Some("1Gi"), "growth is told by others");
    let mut empty = volume("v", "");
    empty.spec.capacity.clear();
    let error = status(&waiting, &empty).unwrap_err().to_string();
    assert_eq!(error, "PersistentVolume \"v\" is without a storage capacity");
    let reset = super::write::status(&settled, "Pending", None).unwrap();
    assert!(reset.capacity.is_empty() && reset.access_modes.is_empty());
}

#[test]
fn who_makes_volumes() {
    for (provisioner, expected) in [
        ("csi.example.com", Ok("csi.example.com")),
        ("kubernetes.io/gce-pd", Ok("pd.csi.storage.gke.io")),
        ("kubernetes.io/no-provisioner", Err("no volume plugin matched name: kubernetes.io/no-provisioner")),
        ("kubernetes.io/nfs", Err("no provisionable volume plugin matched")),
    ] {
        let found = super::provision::driver_of(provisioner);
        assert_eq!(found.as_ref().map(|driver| *driver).map_err(String::as_str), expected, "{provisioner}");
    }
    let told = super::provision::assigned(&claim("c", None), "d").unwrap();
    assert_eq!(told.metadata.annotations[STORAGE_PROVISIONER], "d");
    assert_eq!(told.metadata.annotations[BETA_STORAGE_PROVISIONER], "d");
    assert_eq!(super::provision::assigned(&told, "d"), None);
}

#[test]
fn what_left_the_tree_is_marked() {
    let volume = |provisioner: &str, policy: &str, finalizers: &[&str]| {
        let mut volume = annotated(volume("v", ""), PROVISIONED_BY, provisioner);
        volume.spec.persistent_volume_reclaim_policy = policy.into();
        volume.metadata.finalizers = finalizers.iter().map(|own| (*own).to_owned()).collect();
        volume
    };
    let (own, external) = ("kubernetes.io/pv-controller", "external-provisioner.volume.kubernetes.io/finalizer");
    for (provisioner, policy, finalizers, changes, to, kept) in [
        ("csi.example.com", "Delete", &[external][..], false, None, &[external][..]),
        ("kubernetes.io/aws-ebs", "Delete", &[own, external], true, Some("ebs.csi.aws.com"), &[external]),
        ("kubernetes.io/host-path", "Delete", &[external], true, None, &[own]),
        ("kubernetes.io/host-path", "Delete", &[own], false, None, &[own]),
        ("kubernetes.io/host-path", "Retain", &[own, "x"], true, None, &["x"]),
    ] {
        let mut volume = volume(provisioner, policy, finalizers);
        let name = format!("{provisioner} {policy} {finalizers:?}");
        assert_eq!(super::migration::mark_volume(&mut volume), changes, "{name}");
        assert_eq!(volume.metadata.annotations.get(MIGRATED_TO).map(String::as_str), to, "{name}");
        assert_eq!(volume.metadata.finalizers, kept, "{name}");
        assert!(!super::migration::mark_volume(&mut volume), "{name}: twice is once");
    }
    let mut stale = annotated(annotated(claim("c", None), STORAGE_PROVISIONER, "d"), MIGRATED_TO, "old");
    assert!(super::migration::mark_claim(&mut stale));
    assert!(!stale.metadata.annotations.contains_key(MIGRATED_TO));
}

fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    path.iter().fold(object, |value, part| &value[*part]).as_str().unwrap_or_default()
}

/// Phases of all volumes and claims, by name.
fn phases(run: &Running) -> Vec<(String, String)> {
    let all = run.server.objects(VOLUMES_AT).into_iter().chain(run.server.objects(CLAIMS_AT));
    all.map(|one| (text(&one, &["metadata", "name"]).to_owned(), text(&one, &["status", "phase"]).to_owned())).collect()
}

fn reasons(run: &Running) -> Vec<String> {
    run.server.objects("v1/events").iter().map(|event| text(event, &["reason"]).to_owned()).collect()
}

fn is(phases: &[(String, String)], expected: &[(&str, &str)]) {
    let phases: Vec<_> = phases.iter().map(|(name, phase)| (name.as_str(), phase.as_str())).collect();
    assert_eq!(phases, expected);
}

/// They are looked after at once, and nothing is written in vain.
#[tokio::test(start_paused = true)]
async fn claims_that_come_together_get_a_volume_each() {
    const COUNT: usize = 12;
    let run = Running::start_over(&[DESCRIPTOR], Settings::default(), |server| {
        let slow = Faults { delay: 1.0, delay_limit: Duration::from_millis(100), ..Faults::default() };
        Arc::new(FaultLayer::new(server.transport(), slow, Rng::seeded(1)))
    });
    for number in 0..COUNT {
        run.put(VOLUMES_AT, &volume(&format!("v{number}"), "fast"));
        run.put(CLAIMS_AT, &claim(&format!("c{number}"), Some("fast")));
    }
    run_until_idle().await;
    assert!(phases(&run).iter().all(|(_, phase)| phase == "Bound"), "{:?}", phases(&run));
    let taken = run.server.objects(CLAIMS_AT);
    let taken: BTreeSet<&str> = taken.iter().map(|claim| text(claim, &["spec", "volumeName"])).collect();
    assert_eq!(taken.len(), COUNT);
    assert_eq!(run.requests("PUT", "/persistentvolume"), 4 * COUNT, "the four writes of each binding");
}

#[tokio::test(start_paused = true)]
async fn a_claim_gets_a_volume_and_leaves_it() {
    let run = Running::start(&[DESCRIPTOR]);
    let mut fresh = volume("v", "fast");
    fresh.status.phase = "Pending".into();
    run.put(VOLUMES_AT, &fresh);
    run_until_idle().await;
    is(&phases(&run), &[("v", "Available")]);
    run.put(CLAIMS_AT, &claim("c", Some("fast")));
    run_until_idle().await;
    is(&phases(&run), &[("v", "Bound"), ("c", "Bound")]);
    let (volume, claim) = (&run.server.objects(VOLUMES_AT)[0], &run.server.objects(CLAIMS_AT)[0]);
    assert_eq!(text(volume, &["spec", "claimRef", "uid"]), "c-uid");
    assert_eq!(text(volume, &["metadata", "annotations", BOUND_BY_CONTROLLER]), "yes");
    assert_eq!(text(claim, &["spec", "volumeName"]), "v");
    assert_eq!(text(claim, &["status", "capacity", "storage"]), "5Gi");
    assert_eq!(run.requests("PUT", "/persistentvolume"), 5, "phase Available and the four writes of a binding");
    let writes: Vec<String> = run.server.requests().into_iter().filter(|request| request.starts_with("PUT ")).collect();
    let written: Vec<&str> =
        writes.iter().filter_map(|request| request.split_once("/persistentvolume")).map(|(_, rest)| rest).collect();
    let expected = ["s/v/status", "s/v", "s/v/status", "claims/c", "claims/c/status"];
    assert_eq!(written, expected, "a volume that a claim has is protected");
    run.assert_shows(
        r#"pv_collector_bound_pvc_count{namespace="ns",storage_class="fast",volume_attributes_class=""} 1"#,
    );
    run.assert_shows(r#"pv_collector_bound_pv_count{storage_class="fast"} 1"#);
    // Two rounds of looking at everything again.
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(run.requests("PUT", "/persistentvolume"), 5, "a steady state writes nothing");
    run.server.remove(CLAIMS_AT, "ns", "c");
    run_until_idle().await;
    is(&phases(&run), &[("v", "Released")]);
    let mut again = self::claim("c", Some("fast"));
    again.metadata.uid = "another".into();
    run.put(CLAIMS_AT, &again);
    run_until_idle().await;
    is(&phases(&run), &[("v", "Released"), ("c", "Pending")]);
    run.server.remove(VOLUMES_AT, "", "v");
    run_until_idle().await;
    assert_eq!(reasons(&run), ["ProvisioningFailed"], "there is no such class");
}

#[tokio::test(start_paused = true)]
async fn half_a_binding_is_finished_and_a_lost_volume_found_again() {
    let run = Running::start(&[DESCRIPTOR]);
    run.put(VOLUMES_AT, &annotated(of(volume("v", ""), "c", "c-uid"), BOUND_BY_CONTROLLER, "yes"));
    run.put(CLAIMS_AT, &claim("c", Some("")));
    run_until_idle().await;
    is(&phases(&run), &[("v", "Bound"), ("c", "Bound")]);
    run.server.remove(VOLUMES_AT, "", "v");
    run_until_idle().await;
    is(&phases(&run), &[("c", "Lost")]);
    run.put(VOLUMES_AT, &of(volume("v", ""), "c", "c-uid"));
    // With the next round.
    tokio::time::sleep(Duration::from_secs(20)).await;
    is(&phases(&run), &[("v", "Bound"), ("c", "Bound")]);
    assert_eq!(reasons(&run), ["ClaimLost"]);
}

#[tokio::test(start_paused = true)]
async fn a_volume_is_had_made_by_its_driver() {
    let run = Running::start(&[DESCRIPTOR]);
    run.put(CLASSES_AT, &class("fast", "csi.example.com", "Immediate"));
    run.put(CLAIMS_AT, &claim("c", Some("fast")));
    run_until_idle().await;
    let told = run.server.objects(CLAIMS_AT).remove(0);
    assert_eq!(text(&told, &["metadata", "annotations", STORAGE_PROVISIONER]), "csi.example.com");
    let event = run.server.objects("v1/events").remove(0);
    assert_eq!(text(&event, &["reason"]), "ExternalProvisioning");
    let message = "Waiting for a volume to be created either by the external provisioner 'csi.example.com' or manually by \
                   the system administrator. If volume creation is delayed, please verify that the provisioner is running \
                   and correctly registered.";
    assert_eq!(text(&event, &["message"]), message);
    let mut made = annotated(of(volume("pvc-c-uid", "fast"), "c", "c-uid"), PROVISIONED_BY, "csi.example.com");
    made.spec.persistent_volume_reclaim_policy = "Delete".into();
    made.status.phase = phase::PENDING.into();
    run.put(VOLUMES_AT, &made);
    run_until_idle().await;
    is(&phases(&run), &[("pvc-c-uid", "Bound"), ("c", "Bound")]);
    let line = r#"volume_operation_total_seconds_count{operation_name="provision",plugin_name="csi.example.com"} 1"#;
    run.assert_shows(line);
    run.server.remove(CLAIMS_AT, "ns", "c");
    run_until_idle().await;
    is(&phases(&run), &[("pvc-c-uid", "Released")]);
    assert_eq!(run.requests("DELETE", "persistentvolumes"), 0, "its driver deletes it");
    run.server.remove(VOLUMES_AT, "", "pvc-c-uid");
    run_until_idle().await;
    run.assert_shows(&line.replace("provision", "delete"));
}

#[tokio::test(start_paused = true)]
async fn a_claim_waits_for_its_pod_and_node() {
    let run = Running::start(&[DESCRIPTOR]);
    run.put(CLASSES_AT, &class("late", "csi.example.com", "WaitForFirstConsumer"));
    run.put(VOLUMES_AT, &volume("v", "late"));
    run.put(CLAIMS_AT, &claim("c", Some("late")));
    run_until_idle().await;
    assert_eq!(reasons(&run), ["WaitForFirstConsumer"]);
    let mut user = pod("p", "Pending", None);
    user.spec.node_name.clear();
    let source = r#"[{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]"#;
    from_value(&api_machinery::json::parse_value(&format!("{{\"volumes\": {source}}}")).unwrap(), &mut user.spec)
        .unwrap();
    run.put("v1/pods", &user);
    run.put("v1/pods", &{
        let mut gone = dying(user.clone());
        gone.metadata.name = "gone".into();
        gone
    });
    tokio::time::sleep(Duration::from_secs(20)).await;
    let events = run.server.objects("v1/events");
    let messages: Vec<_> = events.iter().map(|event| text(event, &["message"])).collect();
    assert!(messages.contains(&"waiting for pod p to be scheduled"), "{messages:?}");
    is(&phases(&run), &[("v", "Available"), ("c", "Pending")]);
    let live = run.server.objects(CLAIMS_AT).remove(0);
    let mut chosen = PersistentVolumeClaim::default();
    from_value(&live, &mut chosen).unwrap();
    run.put(CLAIMS_AT, &annotated(chosen, SELECTED_NODE, "n"));
    run_until_idle().await;
    assert_eq!(
        text(&run.server.objects(CLAIMS_AT)[0], &["metadata", "annotations", STORAGE_PROVISIONER]),
        "csi.example.com"
    );
}

#[tokio::test(start_paused = true)]
async fn a_claim_without_a_class_gets_the_default_later() {
    let run = Running::start(&[DESCRIPTOR]);
    run.put(CLAIMS_AT, &claim("c", None));
    run_until_idle().await;
    assert_eq!(reasons(&run), ["FailedBinding"]);
    let mark = classes::DEFAULT_CLASS_ANNOTATIONS[0];
    run.put(CLASSES_AT, &annotated(class("usual", "csi.example.com", "Immediate"), mark, "true"));
    tokio::time::sleep(Duration::from_secs(20)).await;
    let claim = run.server.objects(CLAIMS_AT).remove(0);
    assert_eq!(text(&claim, &["spec", "storageClassName"]), "usual");
    assert_eq!(text(&claim, &["metadata", "annotations", STORAGE_PROVISIONER]), "csi.example.com");
    run.assert_shows("retroactive_storageclass_total 1");
}

#[tokio::test(start_paused = true)]
async fn what_nobody_can_delete_fails_once() {
    let run = Running::start(&[DESCRIPTOR]);
    let mut old = of(volume("v", ""), "gone", "gone-uid");
    old.spec.persistent_volume_reclaim_policy = "Recycle".into();
    run.put(VOLUMES_AT, &old);
    tokio::time::sleep(Duration::from_secs(40)).await;
    is(&phases(&run), &[("v", "Failed")]);
    assert_eq!(reasons(&run), ["VolumeFailedRecycle"]);
    assert_eq!(run.requests("GET", "/persistentvolumeclaims/gone"), 1, "asked for once, before it was let go");
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_looked_at_again() {
    let run = Running::start(&[DESCRIPTOR]);
    run.put(VOLUMES_AT, &volume("v", ""));
    run_until_idle().await;
    run.server.fail_next("PUT", &[409, 500]);
    run.put(CLAIMS_AT, &claim("c", Some("")));
    run_until_idle().await;
    is(&phases(&run), &[("v", "Bound"), ("c", "Bound")]);
}
