//! The pod network's configuration: a bridge per node, addresses from the node's own ranges, host ports and bandwidth.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::NodeConfig;

/// Where the runtime's CNI library notes what it set up, for all networks of the machine.
const RESULTS: &str = "/var/lib/cni/results";
/// The length of a pod sandbox's id, in hexadecimal digits.
const SANDBOX_ID_DIGITS: usize = 64;

/// The network's name, by which the plugins mark what they make.
pub(super) fn network_name(config: &NodeConfig) -> String {
    format!("coxswain-{}", config.name)
}

/// The configuration list as the CNI plugins read it.
///
/// Source addresses are left alone (`ipMasq` is false): pods of all nodes see each other's real addresses, and traffic
/// that leaves the cluster is masqueraded where it leaves the machine.
pub(super) fn render(config: &NodeConfig) -> Value {
    let ranges: Vec<_> = config.pod_networks.iter().map(|network| json!([{"subnet": network.to_string()}])).collect();
    let routes: Vec<_> = config
        .pod_networks
        .iter()
        .map(|network| json!({"dst": if network.is_v6() { "::/0" } else { "0.0.0.0/0" }}))
        .collect();
    json!({
        "cniVersion": "0.4.0",
        "name": network_name(config),
        "plugins": [
            {
                "type": "bridge",
                "bridge": config.bridge,
                "isGateway": true,
                "ipMasq": false,
                "hairpinMode": true,
                "promiscMode": false,
                "ipam": {
                    "type": "host-local",
                    "dataDir": config.state.join("ipam"),
                    "ranges": ranges,
                    "routes": routes,
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
            {"type": "bandwidth", "capabilities": {"bandwidth": true}},
        ],
    })
}

/// Forgets the pods that were never properly removed from the network.
pub(super) fn forget_results(config: &NodeConfig) {
    for path in results(Path::new(RESULTS), &network_name(config)) {
        if let Err(error) = fs::remove_file(&path) {
            tracing::warn!(path = %path.display(), %error, "cannot remove a CNI result");
        }
    }
}

/// The notes of one network: files called `NETWORK-SANDBOX-INTERFACE`. Network names may hold dashes too, so that the
/// sandbox's id has to look like one.
fn results(directory: &Path, network: &str) -> Vec<PathBuf> {
    let is_ours = |name: &str| {
        let rest = name.strip_prefix(network).and_then(|rest| rest.strip_prefix('-'));
        let id = rest.and_then(|rest| rest.split('-').next()).unwrap_or_default();
        id.len() == SANDBOX_ID_DIGITS && id.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_str().is_some_and(is_ours)).map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_other_networks_stay() {
        let dir = tempfile::tempdir().unwrap();
        let id = "5".repeat(SANDBOX_ID_DIGITS);
        let names = ["coxswain-n-{id}-eth0", "coxswain-n-1-{id}-eth0", "coxswain-n2-{id}-eth0", "coxswain-n-x-eth0"];
        for name in names {
            fs::write(dir.path().join(name.replace("{id}", &id)), "{}").unwrap();
        }
        assert_eq!(results(dir.path(), "coxswain-n"), [dir.path().join(names[0].replace("{id}", &id))]);
    }

    #[test]
    fn one_range_and_route_per_family() {
        let networks = vec!["10.244.1.0/24".parse().unwrap(), "fd10:1::/64".parse().unwrap()];
        let config = NodeConfig::new("n1", Path::new("/var/lib/n1"), Path::new("/run/cx/n1"), networks).unwrap();
        let rendered = render(&config);
        let ipam = &rendered["plugins"][0]["ipam"];
        assert_eq!(ipam["ranges"], json!([[{"subnet": "10.244.1.0/24"}], [{"subnet": "fd10:1::/64"}]]));
        assert_eq!(ipam["routes"], json!([{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]));
        assert_eq!(rendered["plugins"][0]["bridge"], "cni-n1");
        assert_eq!(ipam["dataDir"], "/run/cx/n1/ipam");
    }
}
