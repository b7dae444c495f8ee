//! What goes through the network interfaces of the node and of pods, as their own processes see them.

use api_types::core_v1::Pod;
use serde_json::{Value, json};
use sys::proc::Interface;

use super::Api;

/// Interfaces that carry nothing of their own: loopback, and the node's ends of pods' connections.
const IGNORED: [&str; 3] = ["lo", "veth", "docker"];
/// The one whose figures stand for all.
const DEFAULT: &str = "eth0";

/// The node's interfaces.
pub(super) fn of_node(api: &Api) -> Vec<Interface> {
    shown(api.stats.proc().interfaces(None).unwrap_or_default())
}

/// The interfaces of a pod with a network of its own; nothing for others, and where none of its processes is left.
pub(super) fn of_pod(api: &Api, pod: &Pod) -> Vec<Interface> {
    if pod.spec.host_network {
        return Vec::new();
    }
    let group = api.stats.groups.group(pod);
    let processes = api.stats.groups.cgroups().processes(&group).unwrap_or_default();
    let seen = processes.into_iter().find_map(|pid| api.stats.proc().interfaces(Some(pid)).ok());
    shown(seen.unwrap_or_default())
}

fn shown(interfaces: Vec<Interface>) -> Vec<Interface> {
    let ignored = |interface: &Interface| IGNORED.iter().any(|prefix| interface.name.starts_with(prefix));
    interfaces.into_iter().filter(|interface| !ignored(interface)).collect()
}

/// The form of `/stats/summary`; absent without interfaces.
pub(super) fn summary(interfaces: &[Interface], time: &str) -> Option<Value> {
    let one = |interface: &Interface| {
        json!({
            "name": interface.name, "rxBytes": interface.received.bytes, "rxErrors": interface.received.errors,
            "txBytes": interface.sent.bytes, "txErrors": interface.sent.errors,
        })
    };
    if interfaces.is_empty() {
        return None;
    }
    let default = interfaces.iter().find(|interface| interface.name == DEFAULT).map(one);
    let mut shown = default.unwrap_or_else(|| json!({"name": ""}));
    shown["time"] = json!(time);
    shown["interfaces"] = interfaces.iter().map(one).collect();
    Some(shown)
}

#[cfg(test)]
mod tests {
    use sys::proc::Counts;

    use super::*;

    fn interface(name: &str, bytes: u64) -> Interface {
        let counts = |bytes| Counts { bytes, packets: 1, errors: 2, dropped: 3 };
        Interface { name: name.into(), received: counts(bytes), sent: counts(bytes + 1) }
    }

    #[test]
    fn the_default_interface_stands_for_all() {
        let all = ["lo", "eth0", "veth1234", "net1"].map(|name| interface(name, 10));
        let kept = shown(all.to_vec());
        let own = json!({"name": "eth0", "rxBytes": 10, "rxErrors": 2, "txBytes": 11, "txErrors": 2});
        let mut other = own.clone();
        other["name"] = json!("net1");
        let mut expected = own.clone();
        expected["time"] = json!("now");
        expected["interfaces"] = json!([own, other]);
        assert_eq!(summary(&kept, "now"), Some(expected));
        assert_eq!(summary(&[interface("net1", 1)], "now").unwrap()["name"], "");
        assert_eq!(summary(&[], "now"), None);
    }
}
