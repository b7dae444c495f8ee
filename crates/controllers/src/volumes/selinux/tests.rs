//! Labels and conflicts from tables, and the controller against the fake server.

use api_machinery::value::from_value;
use api_types::core_v1::{CSIPersistentVolumeSource, ObjectReference};

use super::*;
use crate::workloads::fixtures::{Running, meta, pod, run_until_idle};

/// The same, but always there.
const UNGATED: Descriptor = Descriptor { gates: &[], disabled_by_default: false, ..DESCRIPTOR };

/// A pod whose containers see the claim `c` with these levels; empty for none.
fn user(name: &str, levels: &[&str]) -> Pod {
    let mut user = pod(name, "Running", None);
    let containers: Vec<String> = levels
        .iter()
        .enumerate()
        .map(|(index, level)| {
            format!(
                r#"{{"name": "c{index}", "volumeMounts": [{{"name": "data", "mountPath": "/d"}}],
                "securityContext": {{"seLinuxOptions": {{"level": "{level}"}}}}}}"#
            )
        })
        .collect();
    let spec = format!(
        r#"{{"containers": [{}], "volumes": [{{"name": "data", "persistentVolumeClaim": {{"claimName": "c"}}}}]}}"#,
        containers.join(",")
    );
    from_value(&api_machinery::json::parse_value(&spec).unwrap(), &mut user.spec).unwrap();
    user
}

#[test]
fn a_pod_has_one_label_for_a_volume() {
    let label = |levels: &[&str]| label::of_volume(&user("p", levels), "data");
    assert_eq!(label(&["s0:c1", "s0:c1"]), Some(Ok(":::s0:c1".into())));
    assert_eq!(label(&["s0:c1", ""]), Some(Ok(":::s0:c1".into())));
    assert_eq!(label(&[""]), Some(Ok(String::new())));
    assert_eq!(label(&[]), None);
    let Some(Err(notice)) = label(&["s0:c1", "s0:c2"]) else { panic!("two labels") };
    assert_eq!(notice.message(), "Volume \"data\" is mounted twice with different SELinux labels inside this pod");
}

#[test]
fn labels_are_in_each_others_way() {
    for (one, other, expected) in [
        ("u:r:t:s0:c1", "u:r:t:s0:c1", false),
        ("u:r:t:s0:c1", "u:r:t:s0:c2", true),
        ("u:r:t:s0", "::t:s0", false),
        ("u:r:t:s0", "::x:s0", true),
        ("u:r:t:s0", "", true),
        ("", "", false),
    ] {
        assert_eq!(label::conflict(one, other), expected, "{one} {other}");
        assert_eq!(label::conflict(other, one), expected, "{other} {one}");
    }
}

#[test]
fn conflicts_are_told_from_both_sides_and_forgotten() {
    let key = |namespace: &str, name: &str| ObjectKey::new(namespace, name);
    let using = |level: &str| [("v".to_owned(), Using::new(&user("x", &[]), format!(":::{level}"), true))].into();
    let mut uses = Uses::default();
    assert_eq!(uses.replace(&key("ns", "a"), using("s0:c1")), []);
    assert_eq!(uses.replace(&key("ns", "b"), using("s0:c1")), []);
    let told = uses.replace(&key("ns", "b"), using("s0:c2"));
    let messages: Vec<_> = told.iter().map(|one| (one.pod.name.clone(), one.notice().message().to_owned())).collect();
    let end = "If both pods land on the same node, only one of them may access the volume.";
    let text = |own: &str, pod: &str, other: &str| {
        format!(
            "SELinuxLabel \":::s0:{own}\" conflicts with pod {pod} that uses the same volume as this pod with SELinuxLabel \
             \":::s0:{other}\". {end}"
        )
    };
    assert_eq!(messages, [("b".into(), text("c2", "a", "c1")), ("a".into(), text("c1", "b", "c2"))]);
    assert_eq!(uses.all().len(), 2);
    let afar = uses.replace(&key("other", "z"), using("s0:c1"));
    assert_eq!(afar.len(), 2);
    let message = format!(
        "SELinuxLabel\":::s0:c1\" conflicts with another pod that uses the same volume as this pod with a different \
         SELinuxLabel. {end}"
    );
    assert_eq!(afar[0].notice().message(), message);
    uses.replace(&key("ns", "b"), BTreeMap::new());
    assert_eq!(uses.all(), [] as [Vec<String>; 0]);
}

#[tokio::test(start_paused = true)]
async fn pods_are_warned() {
    let run = Running::start(&[UNGATED]);
    let mut driver = CSIDriver::default();
    driver.metadata.name = "d".into();
    driver.spec.se_linux_mount = Some(true);
    let mut volume = PersistentVolume { metadata: meta("v"), ..PersistentVolume::default() };
    volume.metadata.namespace.clear();
    let source = CSIPersistentVolumeSource { driver: "d".into(), volume_handle: "h".into(), ..Default::default() };
    volume.spec.persistent_volume_source.csi = Some(source);
    volume.spec.claim_ref = Some(ObjectReference { namespace: "ns".into(), name: "c".into(), ..Default::default() });
    let mut claim = PersistentVolumeClaim { metadata: meta("c"), ..PersistentVolumeClaim::default() };
    claim.spec.volume_name = "v".into();
    run.put("storage.k8s.io/v1/csidrivers", &driver);
    run.put("v1/persistentvolumes", &volume);
    run.put("v1/persistentvolumeclaims", &claim);
    run.put("v1/pods", &user("a", &["s0:c1"]));
    run_until_idle().await;
    assert_eq!(run.count("v1/events"), 0);
    run.put("v1/pods", &user("b", &["s0:c2"]));
    run_until_idle().await;
    let events = run.server.objects("v1/events");
    let told: Vec<_> = events.iter().map(|event| (&event["involvedObject"]["name"], &event["reason"])).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().all(|(_, reason)| *reason == "SELinuxLabelConflict"));
    run.assert_shows(
        "selinux_warning_controller_selinux_volume_conflict{pod1_name=\"a\",pod1_namespace=\"ns\",pod1_value=\":::s0:c1\",\
         pod2_name=\"b\",pod2_namespace=\"ns\",pod2_value=\":::s0:c2\",property=\"SELinuxLabel\"} 1",
    );
    run.put("v1/pods", &{
        let mut over = user("b", &["s0:c2"]);
        over.status.phase = "Succeeded".into();
        over
    });
    run_until_idle().await;
    run.put("v1/pods", &user("c", &["s0:c1"]));
    run_until_idle().await;
    assert_eq!(run.count("v1/events"), 2, "who has ended is in nobody's way");
}
