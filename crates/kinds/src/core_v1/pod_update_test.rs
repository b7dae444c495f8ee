//! What an update of a pod may change, and what the other endpoints take of it.

use api_machinery::quantity::Quantity;
use api_types::core_v1::{EphemeralContainer, PodSchedulingGate};

use super::*;
use crate::gates::RESIZE_INIT_CONTAINERS;

fn pod() -> Pod {
    let text = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"n"},"spec":{"containers":[
        {"name":"c","image":"i","resources":{"requests":{"cpu":"1"},"limits":{"cpu":"2"}}}]}}"#;
    let mut pod = Pod::default();
    api_machinery::json::decode(text.as_bytes(), &mut pod).expect("a pod");
    api_machinery::defaults::fill(&mut pod);
    crate::pod_spec::defaults::set_defaults(&mut pod.spec);
    crate::pod_spec::defaults::set_pod_defaults(&mut pod);
    pod.status.qos_class = "Burstable".into();
    pod
}

fn first_lines(errors: &ErrorList) -> Vec<String> {
    errors.iter().map(|error| error.to_string().lines().next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn only_a_few_fields_may_change() {
    let immutable = format!("spec: Forbidden: {IMMUTABLE_SPEC}");
    type Change = fn(&mut Pod);
    let cases: [(&str, Change, &[&str]); 6] = [
        ("nothing", |_| {}, &[]),
        ("image", |pod| pod.spec.containers[0].image = "j".into(), &[]),
        ("deadline", |pod| pod.spec.active_deadline_seconds = Some(5), &[]),
        (
            "toleration",
            |pod| pod.spec.tolerations.push(Toleration { operator: "Exists".into(), ..Toleration::default() }),
            &[],
        ),
        ("hostname", |pod| pod.spec.hostname = "h".into(), &[&immutable]),
        (
            "container",
            |pod| pod.spec.containers.push(pod.spec.containers[0].clone()),
            &[
                "spec.containers[1].name: Duplicate value: \"c\"",
                "spec.containers: Forbidden: pod updates may not add or remove containers",
            ],
        ),
    ];
    for (name, change, expected) in cases {
        let old = pod();
        let mut new = old.clone();
        change(&mut new);
        assert_eq!(first_lines(&validate(&new, &old, &Gates::default())), expected, "{name}");
    }
}

/// The first list of another length ends it; images of lists before are told twice.
#[test]
fn lists_are_looked_at_one_after_the_other() {
    let mut old = pod();
    old.spec.init_containers = vec![Container { name: "i".into(), ..old.spec.containers[0].clone() }];
    let mut new = old.clone();
    new.spec.init_containers.clear();
    new.spec.containers[0].image = " i".into();
    let image = "spec.containers[0].image: Invalid value: \" i\": must not have leading or trailing whitespace";
    let count = "pod updates may not add or remove containers";
    assert_eq!(
        first_lines(&validate(&new, &old, &Gates::default())),
        [image, image, &format!("spec.initContainers: Forbidden: {count}")]
    );
    new.spec.containers.push(Container { name: "d".into(), ..old.spec.containers[0].clone() });
    assert_eq!(
        first_lines(&validate(&new, &old, &Gates::default())),
        [image, &format!("spec.containers: Forbidden: {count}")]
    );
}

#[test]
fn gates_only_go_and_selectors_only_grow_meanwhile() {
    let mut old = pod();
    old.spec.scheduling_gates = vec![PodSchedulingGate { name: "a.com/g".into() }];
    let mut new = old.clone();
    new.spec.node_selector.insert("zone".into(), "a".into());
    assert_eq!(first_lines(&validate(&new, &old, &Gates::default())), Vec::<String>::new());
    new.spec.scheduling_gates.clear();
    assert_eq!(first_lines(&validate(&new, &old, &Gates::default())), Vec::<String>::new());
    new.spec.scheduling_gates = vec![PodSchedulingGate { name: "a.com/h".into() }];
    let text =
        "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'a.com/h'";
    assert_eq!(first_lines(&validate(&new, &old, &Gates::default())), [text]);
}

#[test]
fn ephemeral_containers_are_only_added() {
    let old = pod();
    let mut new = old.clone();
    new.metadata.labels.insert("a".into(), "b".into());
    let mut ephemeral = EphemeralContainer::default();
    let common = &mut ephemeral.ephemeral_container_common;
    (common.name, common.image) = ("debug".into(), "i".into());
    (common.image_pull_policy, common.termination_message_policy) = ("Always".into(), "File".into());
    new.spec.ephemeral_containers.push(ephemeral);
    prepare_ephemeral(&mut new, &old);
    assert!(new.metadata.labels.is_empty());
    assert_eq!(first_lines(&validate_ephemeral(&new, &old, &Gates::default())), Vec::<String>::new());
    let text = "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"debug\" may not be removed";
    assert_eq!(first_lines(&validate_ephemeral(&old, &new, &Gates::default())), [text]);
}

#[test]
fn resizes_change_compute_and_keep_the_class() {
    let old = pod();
    let resized = |cpu: &str, memory: Option<&str>| {
        let mut new = old.clone();
        let resources = &mut new.spec.containers[0].resources;
        resources.requests.insert("cpu".into(), Quantity::parse(cpu).expect("a quantity"));
        if let Some(memory) = memory {
            resources.requests.insert("ephemeral-storage".into(), Quantity::parse(memory).expect("a quantity"));
        }
        new.spec.hostname = "dropped".into();
        prepare_resize(&mut new, &old, &Gates::default());
        first_lines(&super::super::pod_resize::validate(&new, &old, &Gates::default()))
    };
    assert_eq!(resized("1500m", None), Vec::<String>::new());
    let mut whole = old.clone();
    let limits = [("hugepages-2Mi".to_owned(), Quantity::parse("2Mi").expect("a quantity"))];
    whole.spec.resources.get_or_insert_default().limits = limits.into();
    prepare_resize(&mut whole, &old, &Gates::default());
    let text = "spec: Forbidden: only cpu and memory resources are mutable at pod-level";
    assert!(
        first_lines(&super::super::pod_resize::validate(&whole, &old, &Gates::default()))
            .iter()
            .any(|line| line == text)
    );
    assert_eq!(resized("1", Some("1Gi")), ["spec: Forbidden: only cpu and memory resources are mutable"]);
    let text =
        "spec.containers[0].resources.requests: Invalid value: \"3\": must be less than or equal to cpu limit of 2";
    assert_eq!(resized("3", None), [text]);
}

#[test]
fn resizes_without_gates_keep_to_containers() {
    let more = |list: &mut api_types::core_v1::ResourceList, cpu: &str| {
        list.insert("cpu".into(), Quantity::parse(cpu).expect("a quantity"));
    };
    let resized = |off, change: fn(&mut Pod), grow: &dyn Fn(&mut Pod)| {
        let gates = Gates::default().with(off, false);
        let mut old = pod();
        change(&mut old);
        let mut new = old.clone();
        grow(&mut new);
        prepare_resize(&mut new, &old, &gates);
        let errors = super::super::pod_resize::validate(&new, &old, &gates);
        (equal_structs(&new.spec, &old.spec), first_lines(&errors))
    };
    let of_pod = |pod: &mut Pod| more(&mut pod.spec.resources.get_or_insert_default().requests, "1900m");
    let text = "[]: Forbidden: resize of pods with pod-level resources is forbidden when \
                InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled";
    let whole = |pod: &mut Pod| {
        let cpu = Quantity::parse("1800m").expect("a quantity");
        pod.spec.resources.get_or_insert_default().requests.insert("cpu".into(), cpu);
    };
    let (same, errors) = resized(POD_LEVEL_RESIZE, whole, &of_pod);
    assert!(same && errors.iter().any(|error| error == text), "{errors:?}");
    let (same, errors) = resized(POD_LEVEL_RESIZE, |_| {}, &of_pod);
    assert_eq!((same, errors), (true, vec![]), "who has none gets none");

    let with_init = |pod: &mut Pod| {
        let mut init = pod.spec.containers[0].clone();
        init.name = "init".into();
        pod.spec.init_containers = vec![init];
    };
    let of_init = |pod: &mut Pod| more(&mut pod.spec.init_containers[0].resources.requests, "1500m");
    let (_, errors) = resized(RESIZE_INIT_CONTAINERS, with_init, &of_init);
    assert_eq!(errors, ["spec: Forbidden: resources for non-sidecar init containers are immutable"]);
    let (_, errors) = resized(POD_LEVEL_RESIZE, with_init, &of_init);
    assert_eq!(errors, Vec::<String>::new());
    let sidecar = |pod: &mut Pod| {
        let mut init = pod.spec.containers[0].clone();
        (init.name, init.restart_policy) = ("init".into(), Some("Always".into()));
        pod.spec.init_containers = vec![init];
    };
    assert_eq!(resized(RESIZE_INIT_CONTAINERS, sidecar, &of_init).1, Vec::<String>::new());
}

#[test]
fn what_ended_stays_ended_unless_it_restarts() {
    use api_types::core_v1::{ContainerStateTerminated, ContainerStatus};
    let check = |policy: &str| {
        let mut old = pod();
        old.spec.restart_policy = policy.into();
        let mut status = ContainerStatus { name: "c".into(), ..ContainerStatus::default() };
        status.state.terminated = Some(ContainerStateTerminated::default());
        old.status.container_statuses = vec![status];
        let mut new = old.clone();
        new.status.container_statuses[0].state = Default::default();
        first_lines(&super::super::pod_status::validate(&new, &old, &Gates::default()))
    };
    assert_eq!(check("Always"), Vec::<String>::new());
    let text = "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state";
    assert_eq!(check("OnFailure"), [text]);
}
