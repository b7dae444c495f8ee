//! Usage and scopes from tables.

use api_types::core_v1::{
    ConfigMap, Container, ContainerStatus, PersistentVolumeClaim, PodCondition, ResourceRequirements, Service,
    ServicePort,
};

use super::*;

fn amounts(list: &[(&str, &str)]) -> ResourceList {
    list.iter().map(|(name, amount)| ((*name).to_owned(), Quantity::parse(amount).unwrap())).collect()
}

fn shown(list: &ResourceList) -> String {
    list.iter().map(|(name, amount)| format!("{name}={amount}")).collect::<Vec<_>>().join(" ")
}

fn pod(requests: &[(&str, &str)], limits: &[(&str, &str)]) -> Pod {
    let mut container = Container { name: "main".into(), ..Container::default() };
    container.resources.requests = amounts(requests);
    container.resources.limits = amounts(limits);
    let mut pod = Pod::default();
    pod.spec.containers.push(container);
    pod
}

fn at() -> Circumstances<'static> {
    Circumstances { now: Time::from_unix_seconds(1000), devices: None }
}

#[test]
fn pods_use_what_they_ask_for_while_they_live() {
    let running = pod(&[("cpu", "1"), ("example.com/dongle", "2")], &[("memory", "1Gi")]);
    let used = shown(&Evaluator::Pods.usage(&running, at()));
    assert_eq!(used, "count/pods=1 cpu=1 limits.memory=1Gi pods=1 requests.cpu=1 requests.example.com/dongle=2");
    let mut ended = running.clone();
    ended.status.phase = "Succeeded".into();
    assert_eq!(shown(&Evaluator::Pods.usage(&ended, at())), "count/pods=1");
    let mut overdue = running;
    overdue.metadata.deletion_timestamp = Some(Time::from_unix_seconds(900));
    overdue.metadata.deletion_grace_period_seconds = Some(30);
    assert_eq!(shown(&Evaluator::Pods.usage(&overdue, at())), "count/pods=1");
    overdue.metadata.deletion_grace_period_seconds = Some(200);
    assert!(Evaluator::Pods.usage(&overdue, at()).contains_key("pods"));
}

#[test]
fn pods_use_what_a_resize_has_not_given_back_yet() {
    for (name, promised, in_force, is_infeasible, expected) in [
        ("nothing is known of it", None, None, false, "limits.cpu=2 requests.cpu=1"),
        ("less was wanted, and is not so yet", Some("3"), Some(("3", "4")), false, "limits.cpu=4 requests.cpu=3"),
        ("promised already", Some("1"), Some(("3", "4")), false, "limits.cpu=4 requests.cpu=3"),
        ("in force already, promised more", Some("3"), Some(("1", "2")), false, "limits.cpu=2 requests.cpu=3"),
        ("more was wanted, and is not so yet", Some("500m"), Some(("500m", "1")), false, "limits.cpu=2 requests.cpu=1"),
        ("more was wanted than there is", Some("500m"), Some(("500m", "1")), true, "limits.cpu=1 requests.cpu=500m"),
    ] {
        let mut pod = pod(&[("cpu", "1")], &[("cpu", "2")]);
        let mut status = ContainerStatus { name: "main".into(), ..ContainerStatus::default() };
        status.allocated_resources = promised.map(|amount| amounts(&[("cpu", amount)])).unwrap_or_default();
        status.resources = in_force.map(|(requests, limits)| ResourceRequirements {
            requests: amounts(&[("cpu", requests)]),
            limits: amounts(&[("cpu", limits)]),
            ..ResourceRequirements::default()
        });
        pod.status.container_statuses.push(status);
        if is_infeasible {
            let (type_, reason) = ("PodResizePending".into(), "Infeasible".into());
            pod.status.conditions.push(PodCondition { type_, reason, ..PodCondition::default() });
        }
        let mut used = Evaluator::Pods.usage(&pod, at());
        used.retain(|name, _| name.ends_with(".cpu"));
        assert_eq!(shown(&used), expected, "{name}");
    }
}

#[test]
fn services_claims_and_others() {
    let mut service = Service::default();
    service.spec.ports = vec![ServicePort::default(), ServicePort { node_port: 30000, ..ServicePort::default() }];
    for (kind, allocate, expected) in [
        ("ClusterIP", None, "count/services=1 services=1 services.loadbalancers=0 services.nodeports=0"),
        ("NodePort", None, "count/services=1 services=1 services.loadbalancers=0 services.nodeports=2"),
        ("LoadBalancer", None, "count/services=1 services=1 services.loadbalancers=1 services.nodeports=2"),
        ("LoadBalancer", Some(false), "count/services=1 services=1 services.loadbalancers=1 services.nodeports=1"),
    ] {
        service.spec.type_ = kind.into();
        service.spec.allocate_load_balancer_node_ports = allocate;
        assert_eq!(shown(&Evaluator::Services.usage(&service, at())), expected, "{kind}");
    }
    let mut claim = PersistentVolumeClaim::default();
    claim.spec.storage_class_name = Some("gold".into());
    claim.spec.resources.requests = amounts(&[("storage", "1Gi")]);
    assert_eq!(
        shown(&Evaluator::Claims.usage(&claim, at())),
        "count/persistentvolumeclaims=1 gold.storageclass.storage.k8s.io/persistentvolumeclaims=1 \
         gold.storageclass.storage.k8s.io/requests.storage=1Gi persistentvolumeclaims=1 requests.storage=1Gi"
    );
    let maps = Evaluator::of("", "configmaps").unwrap();
    assert_eq!(shown(&maps.usage(&ConfigMap::default(), at())), "configmaps=1 count/configmaps=1");
    assert_eq!(Evaluator::of("", "events"), None);
    assert_eq!(Evaluator::of("resource.k8s.io", "resourceclaims"), Some(Evaluator::DeviceClaims));
    assert_eq!(Evaluator::of("apps", "replicasets"), Some(Evaluator::Count(vec!["count/replicasets.apps".into()])));
}

#[test]
fn names_belong_to_resources() {
    for (name, pods, claims) in [
        ("cpu", true, false),
        ("limits.cpu", true, false),
        ("limits.hugepages-2Mi", false, false),
        ("requests.hugepages-2Mi", true, false),
        ("requests.example.com/dongle", true, false),
        ("requests.deviceclass.resource.kubernetes.io/gpu", true, false),
        ("gpu.deviceclass.resource.k8s.io/devices", false, false),
        ("requests.storage", false, true),
        ("gold.storageclass.storage.k8s.io/requests.storage", false, true),
        ("count/pods", true, false),
        ("services", false, false),
    ] {
        assert_eq!(
            (Evaluator::Pods.counts(name, None), Evaluator::Claims.counts(name, None)),
            (pods, claims),
            "{name}"
        );
    }
}

#[test]
fn containers_must_state_what_is_limited() {
    let pod = pod(&[("cpu", "1")], &[]);
    let names: Vec<String> = ["cpu", "limits.cpu", "memory", "pods"].map(str::to_owned).into();
    let unstated = Evaluator::Pods.unstated(names.iter(), &pod);
    assert_eq!(unstated.as_deref(), Some("limits.cpu for: main; memory for: main"));
    assert_eq!(Evaluator::Pods.unstated(names[..1].iter(), &pod), None);
}

#[test]
fn scopes_choose() {
    let quota = |scope: &str| ResourceQuotaSpec { scopes: vec![scope.into()], ..ResourceQuotaSpec::default() };
    let mut ending = pod(&[("cpu", "1")], &[]);
    ending.spec.active_deadline_seconds = Some(0);
    let plain = pod(&[], &[]);
    for (scope, chooses_ending, chooses_plain) in [
        ("Terminating", true, false),
        ("NotTerminating", false, true),
        ("BestEffort", false, true),
        ("NotBestEffort", true, false),
        ("PriorityClass", false, false),
        ("VolumeAttributesClass", false, false),
    ] {
        let chosen = |pod: &Pod| Evaluator::Pods.chooses(&quota(scope), pod);
        assert_eq!((chosen(&ending), chosen(&plain)), (chooses_ending, chooses_plain), "{scope}");
    }
    let maps = Evaluator::of("", "configmaps").unwrap();
    assert!(!maps.chooses(&quota("BestEffort"), &ConfigMap::default()));
    assert!(maps.chooses(&ResourceQuotaSpec::default(), &ConfigMap::default()));
}
