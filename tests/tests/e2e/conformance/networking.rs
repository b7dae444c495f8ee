//! Pods reach pods by their addresses, over TCP and UDP, on the same node and on the other, also from the host's
//! network; ports of hosts are told apart by address and protocol.

use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::object::{ECHO, IDLE, echo, is_true, name_of, pod, text, with};

pub(crate) fn checks() -> Vec<Check> {
    vec![granular(), host_ports()]
}

/// A pod that can ask others.
pub(crate) fn client(name: &str, spec: Value) -> Value {
    pod(name, &[json!({"name": "main", "image": ECHO, "command": ["sh", "-c", IDLE]})], spec)
}

/// The command that asks a server's name over TCP.
pub(crate) fn http_name(address: &str) -> String {
    format!("timeout 5 wget -qO- http://{address}/hostname")
}

/// The command that asks a server's name over UDP.
pub(crate) fn udp_name(address: &str) -> String {
    format!("/echoserver ask {address} hostname")
}

pub(crate) fn on(node: &str) -> Value {
    json!({"nodeSelector": {"kubernetes.io/hostname": node}})
}

fn granular() -> Check {
    const ITEMS: &[&str] = &[
        "Networking Granular Checks: Pods should function for intra-pod communication: http",
        "Networking Granular Checks: Pods should function for intra-pod communication: udp",
        "Networking Granular Checks: Pods should function for node-pod communication: http",
        "Networking Granular Checks: Pods should function for node-pod communication: udp",
    ];
    Check::new("pod-to-pod", ITEMS, async |place: Place| {
        for node in ["node-1", "node-2"] {
            place.create("pods", &pod(&format!("net-{node}"), &[echo("main", 8080)], on(node))).await.ok();
        }
        place.create("pods", &client("of-pod", on("node-1"))).await.ok();
        place.create("pods", &client("of-host", with(on("node-2"), json!({"hostNetwork": true})))).await.ok();
        for name in ["of-pod", "of-host"] {
            place.until(&place.path(&format!("pods/{name}")), |pod| is_true(pod, "Ready")).await;
        }
        for node in ["node-1", "node-2"] {
            let server = format!("net-{node}");
            let pod = place.until(&place.path(&format!("pods/{server}")), |pod| is_true(pod, "Ready")).await;
            let address = format!("{}:8080", text(&pod["status"]["podIP"]));
            for from in ["of-pod", "of-host"] {
                for ask in [http_name(&address), udp_name(&address)] {
                    assert_eq!(place.exec(from, "main", &ask).await, server, "{from}: {ask}");
                }
            }
        }
    })
}

fn host_ports() -> Check {
    const ITEM: &str = "HostPort validates that there is no conflict between pods with same hostPort but different hostIP and protocol";
    Check::new("host-ports", &[ITEM], async |place: Place| {
        let client = place.ready(&client("host-client", with(on("node-1"), json!({"hostNetwork": true})))).await;
        let ip = text(&client["status"]["hostIP"]).to_owned();
        let server = |name: &str, host: &str, protocol: &str| {
            let port =
                json!({"ports": [{"containerPort": 8080, "hostPort": 54_323, "hostIP": host, "protocol": protocol}]});
            pod(name, &[with(echo("main", 8080), port)], on("node-1"))
        };
        let servers =
            [server("port-1", "127.0.0.1", "TCP"), server("port-2", &ip, "TCP"), server("port-3", &ip, "UDP")];
        for server in &servers {
            place.create("pods", server).await.ok();
        }
        for server in &servers {
            place.until(&place.path(&format!("pods/{}", name_of(server))), |pod| is_true(pod, "Ready")).await;
        }
        let cases = [
            (http_name("127.0.0.1:54323"), "port-1"),
            (http_name(&format!("{ip}:54323")), "port-2"),
            (udp_name(&format!("{ip}:54323")), "port-3"),
        ];
        for (ask, expected) in cases {
            place
                .eventually(async || match place.try_exec("host-client", "main", &ask).await {
                    Ok(text) if text == expected => Ok(()),
                    other => Err(format!("{ask}: {other:?} instead of {expected}")),
                })
                .await;
        }
    })
}
