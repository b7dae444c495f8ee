//! Tests of the Endpoints of services.

use api_machinery::intstr::IntOrString;
use api_types::core_v1::{EndpointAddress, EndpointSubset, PodIP, ServicePort};

use super::*;
use crate::workloads::fixtures::{Running, dying, meta, ready, run_until_idle};

const KNOWN: &[Descriptor] = &[DESCRIPTOR];

fn service() -> Service {
    let mut service = Service { metadata: meta("web"), ..Service::default() };
    service.spec.selector.insert("app".into(), "web".into());
    service.spec.cluster_ip = "10.96.0.1".into();
    for (name, target) in [("http", 80), ("https", 443)] {
        service.spec.ports.push(ServicePort {
            name: name.into(),
            protocol: "TCP".into(),
            target_port: IntOrString::Int(target),
            ..ServicePort::default()
        });
    }
    service
}

fn pod(name: &str, ip: &str) -> Pod {
    let mut pod = Pod { metadata: meta(name), ..Pod::default() };
    pod.spec.node_name = "n".into();
    pod.status.pod_ip = ip.into();
    pod.status.pod_ips = vec![PodIP { ip: ip.into() }];
    pod
}

#[test]
fn pods_are_packed_into_subsets() {
    let pods = [
        Arc::new(ready(pod("b", "10.0.0.2"), 1)),
        Arc::new(ready(pod("a", "10.0.0.1"), 1)),
        Arc::new(pod("starting", "10.0.0.3")),
        Arc::new(dying(ready(pod("dying", "10.0.0.4"), 1))),
    ];
    let planned = plan(&service(), &pods, None).unwrap();
    let [subset] = planned.subsets.as_slice() else { panic!("one subset: {:?}", planned.subsets) };
    let ips = |addresses: &[EndpointAddress]| addresses.iter().map(|one| one.ip.clone()).collect::<Vec<_>>();
    assert_eq!(ips(&subset.addresses), ["10.0.0.1", "10.0.0.2"]);
    assert_eq!(ips(&subset.not_ready_addresses), ["10.0.0.3"]);
    assert_eq!(subset.ports.len(), 2);
    assert_eq!(plan(&service(), &pods, Some(&planned)), None, "steady state");
    assert_eq!(planned.metadata.labels.get(MANAGED_BY).map(String::as_str), Some(MANAGER));
}

#[test]
fn too_many_addresses_are_cut_in_proportion() {
    let addresses = |count: usize| vec![EndpointAddress::default(); count];
    let subset = |ready, rest| EndpointSubset {
        addresses: addresses(ready),
        not_ready_addresses: addresses(rest),
        ports: Vec::new(),
    };
    for (name, before, expected) in [
        ("too many ready", vec![subset(700, 10), subset(500, 0)], vec![(584, 0), (416, 0)]),
        ("too many not ready", vec![subset(900, 60), subset(0, 140)], vec![(900, 30), (0, 70)]),
        ("just enough", vec![subset(1000, 0)], vec![(1000, 0)]),
        ("no room", vec![subset(1000, 5)], vec![(1000, 0)]),
    ] {
        let sizes = |subset: &EndpointSubset| (subset.addresses.len(), subset.not_ready_addresses.len());
        assert_eq!(subsets::truncate(before).iter().map(sizes).collect::<Vec<_>>(), expected, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn endpoints_follow_their_service() {
    let running = Running::start(KNOWN);
    running.put("v1/services", &service());
    running.put("v1/pods", &ready(pod("a", "10.0.0.1"), 1));
    run_until_idle().await;
    assert_eq!(running.server.objects("v1/endpoints")[0]["subsets"][0]["addresses"][0]["ip"], "10.0.0.1");
    running.assert_steady().await;
    running.server.remove("v1/services", "ns", "web");
    run_until_idle().await;
    assert_eq!(running.count("v1/endpoints"), 0);
}
