use api_machinery::json::decode;
use api_machinery::meta::LabelSelector;
use api_machinery::time::Time;
use api_types::core_v1::ObjectReference;

use super::*;

/// A free volume with this spec, of class `fast` and read-write-once where it does not say.
fn volume(name: &str, size: &str, spec: &str) -> PersistentVolume {
    let mut volume = PersistentVolume::default();
    volume.metadata.name = name.into();
    decode(spec.as_bytes(), &mut volume.spec).unwrap();
    if volume.spec.storage_class_name.is_empty() {
        volume.spec.storage_class_name = "fast".into();
    }
    if volume.spec.access_modes.is_empty() {
        volume.spec.access_modes.push("ReadWriteOnce".into());
    }
    volume.spec.capacity.insert("storage".into(), size.parse().unwrap());
    volume.status.phase = "Available".into();
    volume
}

fn free(name: &str, size: &str) -> PersistentVolume {
    volume(name, size, "{}")
}

/// A volume that waits for a claim of this name.
fn reserved(name: &str, claim: &str, uid: &str) -> PersistentVolume {
    let mut volume = free(name, "100Gi");
    let named = ObjectReference { namespace: "ns".into(), name: claim.into(), uid: uid.into(), ..Default::default() };
    volume.spec.claim_ref = Some(named);
    volume
}

fn changed(mut volume: PersistentVolume, change: impl FnOnce(&mut PersistentVolume)) -> PersistentVolume {
    change(&mut volume);
    volume
}

/// A claim for 5Gi of class `fast`.
fn claim() -> PersistentVolumeClaim {
    let mut claim = PersistentVolumeClaim::default();
    (claim.metadata.name, claim.metadata.namespace, claim.metadata.uid) = ("data".into(), "ns".into(), "u".into());
    claim.spec.storage_class_name = Some("fast".into());
    claim.spec.access_modes = vec!["ReadWriteOnce".into()];
    claim.spec.resources.requests.insert("storage".into(), "5Gi".parse().unwrap());
    claim
}

fn best<'a>(claim: &PersistentVolumeClaim, volumes: &'a [PersistentVolume], place: NodeScope<'_>) -> Option<&'a str> {
    best_match(claim, volumes, place, |_| false).unwrap().map(|volume| volume.metadata.name.as_str())
}

const IN_ZONE_A: &str = r#"{"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions":
    [{"key": "zone", "operator": "In", "values": ["a"]}]}]}}}"#;

#[test]
fn the_smallest_that_has_everything_is_taken() {
    let ten = || free("ten", "10Gi");
    for (name, volumes, expected) in [
        ("none", vec![], None),
        ("smallest", vec![free("big", "20Gi"), ten(), free("bigger", "30Gi")], Some("ten")),
        ("first of equals", vec![ten(), free("other", "10Gi")], Some("ten")),
        ("exact size", vec![free("five", "5Gi"), free("small", "4Gi")], Some("five")),
        ("too small", vec![free("small", "5000M")], None),
        ("other class", vec![volume("slow", "6Gi", r#"{"storageClassName": "slow"}"#), ten()], Some("ten")),
        ("block", vec![volume("block", "6Gi", r#"{"volumeMode": "Block"}"#), ten()], Some("ten")),
        ("file system by name", vec![volume("fs", "6Gi", r#"{"volumeMode": "Filesystem"}"#), ten()], Some("fs")),
        (
            "attributes class",
            vec![volume("gold", "6Gi", r#"{"volumeAttributesClassName": "gold"}"#), ten()],
            Some("ten"),
        ),
        ("no attributes class", vec![volume("plain", "6Gi", r#"{"volumeAttributesClassName": ""}"#)], Some("plain")),
        ("released", vec![changed(free("old", "6Gi"), |old| old.status.phase = "Released".into())], None),
        (
            "being deleted",
            vec![changed(free("old", "6Gi"), |old| old.metadata.deletion_timestamp = Some(Time::from_unix_seconds(1)))],
            None,
        ),
        ("another's", vec![reserved("theirs", "other", "")], None),
        ("a former claim's", vec![reserved("former", "data", "v")], None),
        ("ours by name", vec![ten(), reserved("ours", "data", "")], Some("ours")),
        ("ours by uid", vec![ten(), reserved("ours", "data", "u")], Some("ours")),
        (
            "ours, whatever its class and phase",
            vec![changed(reserved("ours", "data", ""), |ours| {
                (ours.spec.storage_class_name, ours.status.phase) = ("slow".into(), "Pending".into());
            })],
            Some("ours"),
        ),
        (
            "ours but too small",
            vec![ten(), changed(reserved("ours", "data", ""), |ours| ours.spec.capacity.clear())],
            Some("ten"),
        ),
    ] {
        assert_eq!(best(&claim(), &volumes, NodeScope::Anywhere), expected, "{name}");
    }
}

#[test]
fn a_selector_chooses_by_labels() {
    let tagged = changed(free("tagged", "10Gi"), |volume| {
        volume.metadata.labels.insert("tier".into(), "db".into());
    });
    let volumes = [free("plain", "6Gi"), tagged];
    let mut claim = claim();
    let mut selector = LabelSelector::default();
    claim.spec.selector = Some(selector.clone());
    assert_eq!(best(&claim, &volumes, NodeScope::Anywhere), Some("plain"), "an empty one takes any");
    selector.match_labels.insert("tier".into(), "db".into());
    claim.spec.selector = Some(selector.clone());
    assert_eq!(best(&claim, &volumes, NodeScope::Anywhere), Some("tagged"));
    selector.match_labels.insert("tier".into(), "not a value".into());
    claim.spec.selector = Some(selector);
    assert!(best_match(&claim, &volumes, NodeScope::Anywhere, |_| false).is_err());
}

#[test]
fn while_undecided_only_a_volume_that_names_the_claim_will_do() {
    let mut volumes = vec![free("ten", "10Gi")];
    assert_eq!(best(&claim(), &volumes, NodeScope::Undecided), None);
    volumes.push(reserved("ours", "data", ""));
    assert_eq!(best(&claim(), &volumes, NodeScope::Undecided), Some("ours"));
}

#[test]
fn on_a_node_the_volume_must_be_reached_from_it() {
    let labels = |zone: &str| [("zone".to_owned(), zone.to_owned())].into();
    let (in_a, in_b): (BTreeMap<_, _>, BTreeMap<_, _>) = (labels("a"), labels("b"));
    let zonal = volume("zonal", "6Gi", IN_ZONE_A);
    let many = volume("many", "5Gi", r#"{"accessModes": ["ReadOnlyMany"]}"#);
    let volumes = [many, zonal.clone(), free("ten", "10Gi")];
    assert_eq!(best(&claim(), &volumes, NodeScope::OnNode(&in_a)), Some("zonal"));
    assert_eq!(best(&claim(), &volumes, NodeScope::OnNode(&in_b)), Some("ten"), "modes and zone are checked");
    let taken = best_match(&claim(), &volumes, NodeScope::OnNode(&in_a), |name| name == "zonal").unwrap();
    assert_eq!(taken.map(|volume| volume.metadata.name.as_str()), Some("ten"));
    let ours = changed(zonal, |volume| volume.spec.claim_ref = reserved("x", "data", "").spec.claim_ref);
    let volumes = [ours, free("ten", "10Gi")];
    assert_eq!(best(&claim(), &volumes, NodeScope::OnNode(&in_b)), None, "what waits for the claim is elsewhere");
    assert_eq!(best(&claim(), &volumes, NodeScope::OnNode(&in_a)), Some("zonal"));
}

#[test]
fn a_claim_is_bound_once_that_was_finished() {
    let mut claim = claim();
    claim.metadata.annotations.insert(BIND_COMPLETED.into(), "yes".into());
    assert!(!is_fully_bound(&claim));
    claim.spec.volume_name = "v".into();
    assert!(is_fully_bound(&claim));
    claim.metadata.annotations.clear();
    assert!(!is_fully_bound(&claim));
}

#[test]
fn what_does_not_fit_is_told_in_order() {
    let misfits = [
        Misfit::Deleting,
        Misfit::TooSmall,
        Misfit::Class,
        Misfit::AttributesClass,
        Misfit::VolumeMode,
        Misfit::AccessModes,
    ];
    let mut bad = volume(
        "bad",
        "1Gi",
        r#"{"storageClassName": "slow", "volumeAttributesClassName": "gold",
        "volumeMode": "Block", "accessModes": ["ReadOnlyMany"]}"#,
    );
    bad.metadata.deletion_timestamp = Some(Time::from_unix_seconds(1));
    let good = free("good", "5Gi");
    for expected in misfits {
        assert_eq!(misfit(&bad, &claim()), Some(expected));
        match expected {
            Misfit::Deleting => bad.metadata.deletion_timestamp = None,
            Misfit::TooSmall => bad.spec.capacity = good.spec.capacity.clone(),
            Misfit::Class => bad.spec.storage_class_name = "fast".into(),
            Misfit::AttributesClass => bad.spec.volume_attributes_class_name = None,
            Misfit::VolumeMode => bad.spec.volume_mode = None,
            Misfit::AccessModes => bad.spec.access_modes.push("ReadWriteOnce".into()),
        }
    }
    assert_eq!(misfit(&bad, &claim()), None);
}
