//! Two processes of this server: one stands behind the other, as a sample of an extension API server with a kind of its own,
//! and `kubectl` speaks to the one in front. The one in front reaches the other at the endpoint of its Service.

use std::net::{Ipv4Addr, UdpSocket};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::stage::Stage;

const DEFINITION: &str = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
    "metadata":{"name":"flunders.sample.example.io"},
    "spec":{"group":"sample.example.io","scope":"Namespaced",
        "names":{"plural":"flunders","kind":"Flunder","shortNames":["fl"]},
        "versions":[{"name":"v1","served":true,"storage":true,
            "additionalPrinterColumns":[{"name":"Colour","type":"string","jsonPath":".spec.colour"}],
            "schema":{"openAPIV3Schema":{"type":"object","properties":{
                "spec":{"type":"object","description":"What a flunder is like.",
                    "properties":{"colour":{"type":"string"}}}}}}}]}}"#;

/// The address by which the machine is known to others: a server does not pass requests on to its own host by another.
fn own_address() -> Option<std::net::IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(198, 51, 100, 1), 9)).ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|address| !address.is_loopback() && !address.is_unspecified())
}

/// A Service without a selector, its endpoint, and the APIService in front of it.
fn manifest(address: std::net::IpAddr, port: u16, bundle: &str) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"List","items":[
        {{"apiVersion":"v1","kind":"Service","metadata":{{"name":"sample","namespace":"default"}},
          "spec":{{"ports":[{{"name":"api","port":443,"targetPort":{port}}}]}}}},
        {{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","addressType":"IPv4",
          "metadata":{{"name":"sample-1","namespace":"default","labels":{{"kubernetes.io/service-name":"sample"}}}},
          "endpoints":[{{"addresses":["{address}"]}}],"ports":[{{"name":"api","port":{port}}}]}},
        {{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{{"name":"v1.sample.example.io"}},
          "spec":{{"group":"sample.example.io","version":"v1","groupPriorityMinimum":2000,"versionPriority":10,
            "caBundle":"{bundle}","service":{{"namespace":"default","name":"sample"}}}}}}]}}"#
    )
}

#[tokio::test]
async fn kubectl_works_with_a_server_behind_another() {
    let Some(address) = own_address().filter(std::net::IpAddr::is_ipv4) else {
        return test_facts::skipped("needs an address that others could reach");
    };
    let Some(mut stage) = Stage::new() else { return };
    let behind = [
        stage.flag("tls-cert-file", "server.crt"),
        stage.flag("tls-private-key-file", "server.key"),
        stage.flag("requestheader-client-ca-file", "ca.crt"),
        "--requestheader-allowed-names=front-proxy-client".to_owned(),
        "--requestheader-username-headers=X-Remote-User".to_owned(),
        "--requestheader-group-headers=X-Remote-Group".to_owned(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
    ];
    let behind = stage.start("behind", &behind).await;
    let front = [
        "--enable-aggregator-routing".to_owned(),
        stage.flag("proxy-client-cert-file", "client.crt"),
        stage.flag("proxy-client-key-file", "client.key"),
    ];
    let front = stage.start("front", &front).await;
    stage.ok(behind, "create -f -", DEFINITION).await;
    stage.until(behind, "get flunders", "", |_| true).await;

    let bundle = STANDARD.encode(stage.authority.certificate().to_pem());
    stage.ok(front, "create -f -", &manifest(address, behind.port(), &bundle)).await;
    stage.ok(front, "wait --for=condition=Available apiservice/v1.sample.example.io --timeout=60s", "").await;
    let listed = stage.ok(front, "get apiservices v1.sample.example.io v1.apps --no-headers", "").await;
    let rows: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().take(3).collect()).collect();
    assert_eq!(rows, [["v1.sample.example.io", "default/sample", "True"], ["v1.apps", "Local", "True"]]);

    stage
        .until(front, "api-resources --api-group=sample.example.io --no-headers", "", |text| text.contains("Flunder"))
        .await;
    let made =
        r#"{"apiVersion":"sample.example.io/v1","kind":"Flunder","metadata":{"name":"f"},"spec":{"colour":"red"}}"#;
    stage.until(front, "apply -f -", made, |text| text.contains("flunder.sample.example.io/f")).await;
    assert_eq!(stage.ok(behind, "get fl f -o jsonpath={.spec.colour}", "").await, "red");
    let table = stage.ok(front, "get fl --no-headers", "").await;
    assert_eq!(table.split_whitespace().take(2).collect::<Vec<_>>(), ["f", "red"]);
    stage.ok(front, "patch fl f --type=merge -p {\"spec\":{\"colour\":\"blue\"}}", "").await;
    let explained = stage.until(front, "explain flunder.spec", "", |text| text.contains("colour")).await;
    assert!(explained.contains("What a flunder is like."), "{explained}");
    stage.ok(front, "delete fl f", "").await;
    assert!(stage.ok(behind, "get fl -o name", "").await.is_empty());

    stage.ok(front, "delete endpointslice sample-1", "").await;
    let reason = "-o jsonpath={.status.conditions[0].reason}";
    let line = format!("get apiservice v1.sample.example.io {reason}");
    stage.until(front, &line, "", |text| text == "EndpointsNotFound").await;
    let refused = stage.kubectl(front, "get --raw /apis/sample.example.io/v1/flunders", "").await;
    assert!(!refused.success() && refused.error_text().contains("(ServiceUnavailable)"), "{}", refused.error_text());
    stage.stop().await;
}
