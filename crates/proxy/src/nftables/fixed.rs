//! The part of the table that does not depend on Services: base chains, jumps, sets, maps and the rules that use them.

use std::collections::BTreeMap;

use crate::backend::{LocalDetector, NodePorts, RuleOptions};
use crate::nftables::desired::Rule;

/// A chain that hooks into the kernel.
pub(super) struct BaseChain {
    pub(super) name: &'static str,
    pub(super) kind: &'static str,
    pub(super) hook: &'static str,
    pub(super) priority: i32,
}

const fn base(name: &'static str, kind: &'static str, hook: &'static str, priority: i32) -> BaseChain {
    BaseChain { name, kind, hook, priority }
}

/// The base chains. Source ranges are checked before the destination is rewritten; missing endpoints after, as
/// rejecting is not possible earlier on older kernels.
pub(super) const BASE_CHAINS: &[BaseChain] = &[
    base("filter-prerouting-pre-dnat", "filter", "prerouting", -110),
    base("filter-output-pre-dnat", "filter", "output", -110),
    base("filter-input", "filter", "input", 0),
    base("filter-forward", "filter", "forward", 0),
    base("filter-output", "filter", "output", 0),
    base("nat-prerouting", "nat", "prerouting", -100),
    base("nat-output", "nat", "output", -100),
    base("nat-postrouting", "nat", "postrouting", 100),
];

/// From which base chain, on what condition, to which chain.
const JUMPS: &[(&str, &str, &str)] = &[
    ("filter-input", "ct state new ", "nodeport-endpoints-check"),
    ("filter-input", "ct state new ", "service-endpoints-check"),
    ("filter-forward", "ct state new ", "service-endpoints-check"),
    ("filter-output", "ct state new ", "service-endpoints-check"),
    ("filter-prerouting-pre-dnat", "ct state new ", "firewall-check"),
    ("filter-output-pre-dnat", "ct state new ", "firewall-check"),
    ("nat-output", "", "services"),
    ("nat-prerouting", "", "services"),
    ("nat-postrouting", "", "masquerading"),
    ("filter-forward", "ct state new ", "cluster-ips-check"),
    ("filter-output", "ct state new ", "cluster-ips-check"),
];

/// A set or map that is always there.
pub(super) struct Set {
    pub(super) name: &'static str,
    /// Whether it is a map to verdicts.
    pub(super) map: bool,
    /// The key's type; `ADDRESS` stands for the family's.
    pub(super) key: &'static str,
    pub(super) comment: &'static str,
}

const fn set(name: &'static str, key: &'static str, comment: &'static str) -> Set {
    Set { name, map: false, key, comment }
}

const fn map(name: &'static str, key: &'static str, comment: &'static str) -> Set {
    Set { name, map: true, key, comment }
}

const TRIPLE: &str = "ADDRESS . inet_proto . inet_service";
const PAIR: &str = "inet_proto . inet_service";

/// The sets and maps.
pub(super) const SETS: &[Set] = &[
    set("cluster-ips", "ADDRESS", "Active ClusterIPs"),
    set("nodeport-ips", "ADDRESS", "IPs that accept NodePort traffic"),
    set("hairpin-connections", "ADDRESS . ADDRESS . inet_proto . inet_service", "service hairpin connections"),
    map("service-ips", TRIPLE, "ClusterIP, ExternalIP and LoadBalancer IP traffic"),
    map("service-nodeports", PAIR, "NodePort traffic"),
    map("no-endpoint-services", TRIPLE, "vmap to drop or reject packets to services with no endpoints"),
    map("no-endpoint-nodeports", PAIR, "vmap to drop or reject packets to service nodeports with no endpoints"),
    map("firewall-ips", TRIPLE, "destinations that are subject to LoadBalancerSourceRanges"),
];

/// Whether the set is there with these options.
pub(super) fn exists(set: &Set, options: &RuleOptions) -> bool {
    set.name != "nodeport-ips" || options.node_ports != NodePorts::All
}

/// The rules of the base chains and of the chains they jump to.
pub(super) fn rules(options: &RuleOptions) -> BTreeMap<&'static str, Vec<Rule>> {
    let mut chains: BTreeMap<&'static str, Vec<Rule>> = BTreeMap::new();
    for chain in BASE_CHAINS {
        chains.insert(chain.name, Vec::new());
    }
    for (from, condition, to) in JUMPS {
        chains.entry(from).or_default().push(Rule::new(format!("{condition}jump {to}")));
    }
    let (ip, mark) = (options.family.nft(), options.mark);
    chains.insert(
        "masquerading",
        vec![
            Rule::new(format!("mark and 0x{mark:08x} != 0 mark set mark xor 0x{mark:08x} masquerade fully-random")),
            Rule::new(format!(
                "ct status dnat {ip} saddr . {ip} daddr . meta l4proto . th dport @hairpin-connections masquerade \
                 fully-random"
            )),
        ],
    );
    chains.insert("reject-chain", vec![Rule::new("reject")]);
    chains.insert("cluster-ips-check", cluster_ips_check(options));
    let lookup = |map: &str| Rule::new(format!("{ip} daddr . meta l4proto . th dport vmap @{map}"));
    chains.insert("service-endpoints-check", vec![lookup("no-endpoint-services")]);
    chains.insert("firewall-check", vec![lookup("firewall-ips")]);
    let node = node_condition(options);
    let check = Rule::new(format!("{node} meta l4proto . th dport vmap @no-endpoint-nodeports"));
    chains.insert("nodeport-endpoints-check", vec![check]);
    chains.insert("services", services(options));
    chains
}

/// The condition for traffic of this node's pods.
pub(super) fn is_local(options: &RuleOptions, detector: &LocalDetector) -> String {
    by_source(options, detector, "")
}

fn is_not_local(options: &RuleOptions, detector: &LocalDetector) -> String {
    by_source(options, detector, "!= ")
}

fn by_source(options: &RuleOptions, detector: &LocalDetector, not: &str) -> String {
    match detector {
        LocalDetector::Network(network) => format!("{} saddr {not}{network}", options.family.nft()),
        LocalDetector::Interface(name) => format!("iifname {not}{name}"),
        LocalDetector::InterfacePrefix(prefix) => format!("iifname {not}{prefix}*"),
    }
}

fn cluster_ips_check(options: &RuleOptions) -> Vec<Rule> {
    let ip = options.family.nft();
    let invalid = format!("{ip} daddr @cluster-ips reject");
    let mut rules = vec![Rule::commented(invalid, "Reject traffic to invalid ports of ClusterIPs")];
    if !options.service_cidrs.is_empty() {
        let text = format!("{ip} daddr {{ {} }} drop", options.service_cidrs.join(","));
        rules.push(Rule::commented(text, "Drop traffic to unallocated ClusterIPs"));
    }
    rules
}

/// The condition for an address at which NodePorts answer.
fn node_condition(options: &RuleOptions) -> String {
    let (ip, loopback) = (options.family.nft(), options.family.loopback());
    match options.node_ports {
        NodePorts::All => format!("{ip} daddr != {loopback}"),
        NodePorts::Addresses(_) => format!("{ip} daddr @nodeport-ips"),
    }
}

fn services(options: &RuleOptions) -> Vec<Rule> {
    let (ip, mark) = (options.family.nft(), options.mark);
    let mut rules = Vec::new();
    if options.masquerade_all {
        let text = format!("{ip} daddr @cluster-ips mark set mark or 0x{mark:08x}");
        rules.push(Rule::commented(text, "masquerade all clusterIP traffic"));
    } else if let Some(detector) = &options.local_detector {
        let foreign = is_not_local(options, detector);
        let text = format!("{ip} daddr @cluster-ips {foreign} mark set mark or 0x{mark:08x}");
        rules.push(Rule::commented(text, "masquerade clusterIP traffic from outside cluster"));
    }
    rules.push(Rule::new(format!("{ip} daddr . meta l4proto . th dport vmap @service-ips")));
    let fib = if options.node_ports == NodePorts::All { "fib daddr type local " } else { "" };
    let node = node_condition(options);
    rules.push(Rule::new(format!("{fib}{node} meta l4proto . th dport vmap @service-nodeports")));
    rules
}
