//! Addresses of Services as objects that the server makes and looks after.

use std::time::Duration;

use serde_json::{Value, json};

use super::harness::Api;

const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";
const SERVICES: &str = "/api/v1/namespaces/default/services";

async fn ready() -> Api {
    let api = Api::start().await;
    api.wait_until_ready().await;
    api
}

/// Creates a Service; its address.
async fn create(api: &Api, name: &str, spec: &Value) -> String {
    let mut spec = spec.clone();
    spec["ports"] = json!([{"port": 80}]);
    let made = api.post(SERVICES, &json!({"metadata": {"name": name}, "spec": spec}).to_string()).await;
    assert_eq!(made.code, 201, "{}", made.text);
    made.json()["spec"]["clusterIP"].as_str().expect("an address").to_owned()
}

#[tokio::test(start_paused = true)]
async fn an_address_says_whose_it_is_and_who_made_it() {
    let api = ready().await;
    let address = create(&api, "web", &json!({})).await;
    let object = api.get(&format!("{ADDRESSES}/{address}")).await.json();
    let labels = json!({"ipaddress.kubernetes.io/ip-family": "IPv4", "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"});
    assert_eq!(object["metadata"]["labels"], labels);
    let parent = json!({"resource": "services", "namespace": "default", "name": "web"});
    let mut named = object["spec"]["parentRef"].clone();
    named.as_object_mut().expect("a reference").retain(|_, own| own != "");
    assert_eq!(named, parent);
    let record = &object["metadata"]["managedFields"][0];
    assert_eq!((&record["manager"], &record["operation"]), (&json!("kube-apiserver"), &json!("Update")));
    assert_eq!(
        record["fieldsV1"],
        json!({
            "f:metadata": {"f:labels": {
                ".": {}, "f:ipaddress.kubernetes.io/ip-family": {}, "f:ipaddress.kubernetes.io/managed-by": {},
            }},
            "f:spec": {"f:parentRef": {".": {}, "f:name": {}, "f:namespace": {}, "f:resource": {}}},
        })
    );
}

#[tokio::test(start_paused = true)]
async fn an_address_that_somebody_deletes_comes_back() {
    let api = ready().await;
    let address = create(&api, "web", &json!({})).await;
    let path = format!("{ADDRESSES}/{address}");
    assert_eq!(api.delete(&path).await.code, 200);
    assert_eq!(api.get(&path).await.code, 404);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(api.get(&path).await.json()["spec"]["parentRef"]["name"], "web");
    let events = api.get("/apis/events.k8s.io/v1/namespaces/default/events").await.json();
    let told = events["items"].as_array().expect("events").iter().find(|own| own["regarding"]["name"] == "web");
    let told = told.expect("an event on the Service");
    assert_eq!(
        [&told["reason"], &told["action"], &told["type"], &told["reportingController"], &told["note"]],
        [
            "ClusterIPNotAllocated",
            "ClusterIPAllocation",
            "Warning",
            "ipallocator-repair-controller",
            &format!("Cluster IP [IPv4]: {address} is not allocated; repairing"),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_address_of_no_service_goes_once_it_is_old() {
    let api = ready().await;
    let object = |name: &str, manager: &str| {
        json!({
            "metadata": {"name": name, "labels": {
                "ipaddress.kubernetes.io/ip-family": "IPv4", "ipaddress.kubernetes.io/managed-by": manager,
            }},
            "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "gone"}},
        })
        .to_string()
    };
    for (name, manager) in [("10.96.0.77", "ipallocator.k8s.io"), ("10.96.0.78", "somebody")] {
        assert_eq!(api.post(ADDRESSES, &object(name, manager)).await.code, 201);
    }
    tokio::time::sleep(Duration::from_secs(55)).await;
    assert_eq!(api.get(&format!("{ADDRESSES}/10.96.0.77")).await.code, 200, "its Service may come");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(api.get(&format!("{ADDRESSES}/10.96.0.77")).await.code, 404);
    assert_eq!(api.get(&format!("{ADDRESSES}/10.96.0.78")).await.code, 200, "somebody else's");
}

#[tokio::test(start_paused = true)]
async fn what_is_given_out_is_counted() {
    let api = ready().await;
    // The Service `kubernetes` has an address, too, which it asks for.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let address = create(&api, "web", &json!({"type": "NodePort"})).await;
    create(&api, "given", &json!({"clusterIP": "10.96.0.99"})).await;
    let spec = json!({"clusterIP": address, "ports": [{"port": 80}]});
    let refused = api.post(SERVICES, &json!({"metadata": {"name": "more"}, "spec": spec}).to_string()).await;
    assert_eq!(refused.code, 422, "{}", refused.text);
    // Until the cache has them.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let metrics = api.get("/metrics").await.text;
    for line in [
        r#"kube_apiserver_clusterip_allocator_allocated_ips{cidr="10.96.0.0/12"} 3"#,
        r#"kube_apiserver_clusterip_allocator_available_ips{cidr="10.96.0.0/12"} 1048571"#,
        r#"kube_apiserver_clusterip_allocator_allocation_total{cidr="10.96.0.0/12",scope="dynamic"} 1"#,
        r#"kube_apiserver_clusterip_allocator_allocation_total{cidr="10.96.0.0/12",scope="static"} 2"#,
        r#"kube_apiserver_clusterip_allocator_allocation_errors_total{cidr="10.96.0.0/12",scope="static"} 1"#,
        r#"kube_apiserver_clusterip_allocator_allocation_duration_seconds_count{cidr="10.96.0.0/12"} 4"#,
        "kube_apiserver_nodeport_allocator_allocated_ports 1",
        "kube_apiserver_nodeport_allocator_available_ports 2767",
        r#"kube_apiserver_nodeport_allocator_allocation_total{scope="dynamic"} 1"#,
    ] {
        assert!(metrics.lines().any(|own| own == line), "{line} in {metrics}");
    }
}
