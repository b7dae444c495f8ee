//! Services: what traffic they lead where while their endpoints, types, ports and affinity change.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::networking::{client, http_name, udp_name};
use super::object::{echo, name_of, pod, text, with};

/// Requests after which a server of three was missed less than once in ten thousand runs.
const TRIES: usize = 24;
const CLIENT: &str = "service-client";
const BACKENDS: [&str; 3] = ["backend-1", "backend-2", "backend-3"];

pub(crate) fn checks() -> Vec<Check> {
    vec![types(), node_port(), affinity(), following(), two_ports(), two_protocols()]
}

/// The pod that asks, and the servers behind most Services.
async fn fixture(place: &Place) {
    let label = json!({"metadata": {"labels": {"app": "backend"}}});
    let backends = BACKENDS.map(|name| with(pod(name, &[echo("main", 8080)], json!({})), label.clone()));
    for backend in &backends {
        place.create("pods", backend).await;
    }
    place.shared(&client(CLIENT, json!({}))).await;
    for backend in &backends {
        place.shared(backend).await;
    }
}

fn service(name: &str, spec: Value) -> Value {
    let base = json!({"selector": {"app": "backend"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]});
    json!({"metadata": {"name": name}, "spec": with(base, spec)})
}

/// All names that answer at an address, in so many tries.
async fn answers(place: &Place, address: &str, tries: usize) -> Result<BTreeSet<String>, String> {
    let script = format!("i=0; while [ $i -lt {tries} ]; do {} || exit 1; echo; i=$((i+1)); done", http_name(address));
    let text = place.try_exec(CLIENT, "main", &script).await?;
    Ok(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// Waits until exactly these answer at an address.
async fn answered_by(place: &Place, address: &str, names: &[&str]) {
    let wanted: BTreeSet<String> = names.iter().map(ToString::to_string).collect();
    place
        .eventually(async || match answers(place, address, TRIES).await {
            Ok(seen) if seen == wanted => Ok(()),
            other => Err(format!("{address}: {other:?} instead of {wanted:?}")),
        })
        .await;
}

fn cluster_ip(service: &Value) -> &str {
    text(&service["spec"]["clusterIP"])
}

fn types() -> Check {
    const ITEMS: &[&str] = &[
        "Services should be able to change the type from ClusterIP to ExternalName",
        "Services should be able to change the type from ExternalName to ClusterIP",
        "Services should be able to change the type from ExternalName to NodePort",
        "Services should be able to change the type from NodePort to ExternalName",
    ];
    Check::new("service-types", ITEMS, async |place: Place| {
        fixture(&place).await;
        place.create("services", &service("target", json!({}))).await.ok();
        let external = format!("target.{}.svc.cluster.local", place.namespace);
        place.create("services", &service("changing", json!({"type": "NodePort"}))).await.ok();
        for (kind, has_port) in
            [("ExternalName", false), ("ClusterIP", false), ("ExternalName", false), ("NodePort", true)]
        {
            let path = place.path("services/changing");
            let spec = match kind {
                "ExternalName" => json!({"type": kind, "externalName": external, "clusterIP": "", "clusterIPs": null}),
                _ => json!({"type": kind, "externalName": null}),
            };
            let mut changed = place.get(&path).await.ok();
            changed["spec"] = with(changed["spec"].clone(), spec);
            let changed = place.replace(&path, &changed).await.ok();
            assert_eq!(changed["spec"]["ports"][0]["nodePort"].is_u64(), has_port, "{changed}");
            assert_eq!(cluster_ip(&changed).is_empty(), kind == "ExternalName", "{changed}");
            let name = format!("changing.{}.svc.cluster.local", place.namespace);
            let lookup = format!("nslookup -type=cname {name} || true");
            let resolves = async || {
                let text = place.exec(CLIENT, "main", &lookup).await;
                let leads = text.contains(&format!("canonical name = {external}"));
                if leads == (kind == "ExternalName") { Ok(()) } else { Err(format!("{kind}: {text}")) }
            };
            place.eventually(resolves).await;
            answered_by(&place, &name, &BACKENDS).await;
            if has_port {
                answered_by(&place, cluster_ip(&changed), &BACKENDS).await;
            }
        }
    })
}

/// The addresses of all nodes.
async fn nodes(place: &Place) -> Vec<String> {
    let is_internal = |address: &&Value| address["type"] == "InternalIP";
    let address = |node: &Value| {
        let all = node["status"]["addresses"].as_array();
        all.and_then(|all| all.iter().find(is_internal)).map(|address| text(&address["address"]).to_owned())
    };
    place.items("/api/v1/nodes").await.iter().filter_map(address).collect()
}

fn node_port() -> Check {
    const ITEM: &str = "Services should be able to create a functioning NodePort service";
    Check::new("node-port", &[ITEM], async |place: Place| {
        fixture(&place).await;
        let made = place.create("services", &service("node-port", json!({"type": "NodePort"}))).await.ok();
        let port = made["spec"]["ports"][0]["nodePort"].clone();
        answered_by(&place, "node-port", &BACKENDS).await;
        answered_by(&place, cluster_ip(&made), &BACKENDS).await;
        for node in nodes(&place).await {
            answered_by(&place, &format!("{node}:{port}"), &BACKENDS).await;
        }
    })
}

fn affinity() -> Check {
    const ITEMS: &[&str] = &[
        "Services should have session affinity work for service with type clusterIP",
        "Services should have session affinity work for NodePort service",
        "Services should be able to switch session affinity for service with type clusterIP",
        "Services should be able to switch session affinity for NodePort service",
    ];
    Check::new("session-affinity", ITEMS, async |place: Place| {
        fixture(&place).await;
        let sticky = json!({"type": "NodePort", "sessionAffinity": "ClientIP"});
        let made = place.create("services", &service("sticky", sticky)).await.ok();
        let node = nodes(&place).await.into_iter().next().unwrap_or_default();
        let places = [cluster_ip(&made).to_owned(), format!("{node}:{}", made["spec"]["ports"][0]["nodePort"])];
        for (affinity, fewest) in [("ClientIP", 1), ("None", 3), ("ClientIP", 1)] {
            place.merge(&place.path("services/sticky"), &json!({"spec": {"sessionAffinity": affinity}})).await.ok();
            for address in &places {
                let led = async || match answers(&place, address, TRIES).await {
                    Ok(seen) if seen.len() == fewest => Ok(()),
                    other => Err(format!("{affinity}: {address} led to {other:?}")),
                };
                place.eventually(led).await;
            }
        }
    })
}

/// The endpoints of a Service's EndpointSlices, as `pod:port` each.
async fn endpoints(place: &Place, service: &str) -> BTreeSet<String> {
    let path = place.path(&format!("endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D{service}"));
    let mut all = BTreeSet::new();
    for slice in place.items(&path).await {
        for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
            for port in slice["ports"].as_array().into_iter().flatten() {
                all.insert(format!("{}:{}", text(&endpoint["targetRef"]["name"]), port["port"]));
            }
        }
    }
    all
}

pub(crate) async fn has_endpoints(place: &Place, service: &str, wanted: &[&str]) {
    let wanted: BTreeSet<String> = wanted.iter().map(ToString::to_string).collect();
    place
        .eventually(async || match endpoints(place, service).await {
            have if have == wanted => Ok(()),
            have => Err(format!("{service} leads to {have:?} instead of {wanted:?}")),
        })
        .await;
}

fn following() -> Check {
    const ITEM: &str = "Services should serve a basic endpoint from pods";
    Check::new("basic-endpoints", &[ITEM], async |place: Place| {
        place.shared(&client(CLIENT, json!({}))).await;
        let server = |name: &str| {
            let label = json!({"metadata": {"labels": {"app": "coming"}}});
            with(pod(name, &[echo("main", 8080)], json!({})), label)
        };
        place.create("services", &service("coming", json!({"selector": {"app": "coming"}}))).await.ok();
        has_endpoints(&place, "coming", &[]).await;
        place.ready(&server("coming-1")).await;
        has_endpoints(&place, "coming", &["coming-1:8080"]).await;
        answered_by(&place, "coming", &["coming-1"]).await;
        place.ready(&server("coming-2")).await;
        has_endpoints(&place, "coming", &["coming-1:8080", "coming-2:8080"]).await;
        answered_by(&place, "coming", &["coming-1", "coming-2"]).await;
        place.delete(&place.path("pods/coming-1")).await.ok();
        has_endpoints(&place, "coming", &["coming-2:8080"]).await;
        answered_by(&place, "coming", &["coming-2"]).await;
        place.delete(&place.path("pods/coming-2")).await.ok();
        has_endpoints(&place, "coming", &[]).await;
    })
}

fn two_ports() -> Check {
    const ITEM: &str = "Services should serve multiport endpoints from pods";
    Check::new("two-ports", &[ITEM], async |place: Place| {
        place.shared(&client(CLIENT, json!({}))).await;
        let ports =
            json!([{"name": "one", "port": 80, "targetPort": "one"}, {"name": "two", "port": 81, "targetPort": "two"}]);
        place.create("services", &service("two-ports", json!({"selector": {"app": "two"}, "ports": ports}))).await.ok();
        for (name, port) in [("one", 8100), ("two", 8101)] {
            let named = with(echo("main", port), json!({"ports": [{"name": name, "containerPort": port}]}));
            let label = json!({"metadata": {"labels": {"app": "two"}}});
            place.ready(&with(pod(&format!("port-{name}"), &[named], json!({})), label)).await;
        }
        has_endpoints(&place, "two-ports", &["port-one:8100", "port-two:8101"]).await;
        answered_by(&place, "two-ports:80", &["port-one"]).await;
        answered_by(&place, "two-ports:81", &["port-two"]).await;
        place.delete(&place.path("pods/port-one")).await.ok();
        has_endpoints(&place, "two-ports", &["port-two:8101"]).await;
        assert_eq!(name_of(&place.delete(&place.path("services/two-ports")).await.ok()), "two-ports");
    })
}

fn two_protocols() -> Check {
    const ITEM: &str = "Services should serve endpoints on same port and different protocols";
    Check::new("two-protocols", &[ITEM], async |place: Place| {
        fixture(&place).await;
        let port = |protocol: &str| json!({"name": protocol.to_lowercase(), "port": 80, "targetPort": 8080, "protocol": protocol});
        let made = place.create("services", &service("both", json!({"ports": [port("TCP"), port("UDP")]}))).await.ok();
        let address = format!("{}:80", cluster_ip(&made));
        answered_by(&place, &address, &BACKENDS).await;
        let over_udp = async || {
            let answer = place.try_exec(CLIENT, "main", &udp_name(&address)).await;
            if answer.as_ref().is_ok_and(|name| BACKENDS.contains(&name.as_str())) {
                Ok(())
            } else {
                Err(format!("{answer:?}"))
            }
        };
        place.eventually(over_udp).await;
        place.merge(&place.path("services/both"), &json!({"spec": {"ports": [port("TCP")]}})).await.ok();
        let no_udp = async || match place.try_exec(CLIENT, "main", &udp_name(&address)).await {
            Ok(name) => Err(format!("{name} still answers")),
            Err(_) => Ok(()),
        };
        place.eventually(no_udp).await;
        answered_by(&place, &address, &BACKENDS).await;
    })
}
