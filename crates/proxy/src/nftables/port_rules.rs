//! The chains and elements of one Service port.

use std::net::IpAddr;

use crate::backend::{Route, RuleOptions};
use crate::endpoints::{Endpoint, Selection};
use crate::nftables::desired::{Desired, Rule};
use crate::nftables::{fixed, names};
use crate::service::ServedPort;

/// Adds a Service port to the table.
pub(super) fn add(table: &mut Desired, options: &RuleOptions, route: &Route) {
    let (port, selection) = (&route.port, &route.endpoints);
    let rules = PortRules { options, port, selection, base: names::of_port(&port.key) };
    rules.add_chains(table);
    rules.add_affinity(table);
    rules.add_cluster_ip(table);
    rules.add_external(table);
    rules.add_hairpin(table);
}

struct PortRules<'a> {
    options: &'a RuleOptions,
    port: &'a ServedPort,
    selection: &'a Selection,
    base: String,
}

impl PortRules<'_> {
    fn protocol(&self) -> String {
        self.port.key.protocol.to_lowercase()
    }

    fn service_chain(&self) -> String {
        format!("service-{}", self.base)
    }

    fn local_chain(&self) -> String {
        format!("local-{}", self.base)
    }

    fn external_chain(&self) -> String {
        format!("external-{}", self.base)
    }

    fn add_chains(&self, table: &mut Desired) {
        if !self.selection.cluster.is_empty() && self.port.uses_cluster_endpoints() {
            table.chains.insert(self.service_chain(), self.balance(&self.selection.cluster));
        }
        if !self.selection.local.is_empty() && self.port.uses_local_endpoints() {
            table.chains.insert(self.local_chain(), self.balance(&self.selection.local));
        }
        if self.selection.any && self.port.is_external() {
            table.chains.insert(self.external_chain(), self.external_rules());
        }
        if !self.port.source_ranges.is_empty() && !self.port.load_balancer_ips.is_empty() {
            let chain = format!("firewall-{}", self.base);
            let sources = self.allowed_sources().join(" , ");
            let text = format!("{} saddr != {{ {sources} }} drop", self.options.family.nft());
            for address in &self.port.load_balancer_ips {
                table.insert("firewall-ips", self.triple(*address), format!("goto {chain}"), "");
            }
            table.chains.insert(chain, vec![Rule::new(text)]);
        }
    }

    /// The source ranges; where this node is inside, also the addresses themselves, as the node's own traffic to them
    /// comes from there.
    fn allowed_sources(&self) -> Vec<String> {
        let mut sources = self.port.source_ranges.clone();
        let inside = |range: &String| self.options.node_ip.is_some_and(|ip| crate::family::contains(range, ip));
        if self.port.source_ranges.iter().any(inside) {
            sources.extend(self.port.load_balancer_ips.iter().map(IpAddr::to_string));
        }
        sources
    }

    /// The rules that pick one of the endpoints.
    fn balance(&self, endpoints: &[Endpoint]) -> Vec<Rule> {
        let (ip, count) = (self.options.family.nft(), endpoints.len());
        let numbered = |entry: &dyn Fn(&Endpoint) -> String| {
            let entries = endpoints.iter().enumerate().map(|(index, one)| format!("{index} : {}", entry(one)));
            entries.collect::<Vec<_>>().join(" , ")
        };
        if self.port.affinity_seconds.is_none() {
            let targets = numbered(&|one| format!("{} . {}", one.address, one.port));
            return vec![Rule::new(format!(
                "meta l4proto {} dnat {ip} addr . port to numgen random mod {count} map {{ {targets} }}",
                self.protocol()
            ))];
        }
        let stick = |one: &Endpoint| {
            let name = names::of_endpoint(&self.port.key, one);
            Rule::new(format!("{ip} saddr @affinity-{name} goto endpoint-{name}"))
        };
        let mut rules: Vec<Rule> = endpoints.iter().map(stick).collect();
        let targets = numbered(&|one| format!("goto endpoint-{}", names::of_endpoint(&self.port.key, one)));
        rules.push(Rule::new(format!("numgen random mod {count} vmap {{ {targets} }}")));
        rules
    }

    fn external_rules(&self) -> Vec<Rule> {
        let (service, mark) = (self.service_chain(), self.options.mark);
        if !self.port.external_local {
            return vec![
                Rule::commented(format!("mark set mark or 0x{mark:08x}"), "masquerade"),
                Rule::new(format!("goto {service}")),
            ];
        }
        let mut rules = Vec::new();
        if !self.selection.cluster.is_empty() {
            if let Some(detector) = &self.options.local_detector {
                let local = fixed::is_local(self.options, detector);
                rules.push(Rule::commented(format!("{local} goto {service}"), "short-circuit pod traffic"));
            }
            let masquerade = format!("fib saddr type local mark set mark or 0x{mark:08x}");
            rules.push(Rule::commented(masquerade, "masquerade local traffic"));
            let direct = format!("fib saddr type local goto {service}");
            rules.push(Rule::commented(direct, "short-circuit local traffic"));
        }
        if !self.selection.local.is_empty() {
            rules.push(Rule::new(format!("goto {}", self.local_chain())));
        }
        rules
    }

    /// The chain and the set of sticky clients of each endpoint.
    fn add_affinity(&self, table: &mut Desired) {
        let Some(seconds) = self.port.affinity_seconds else { return };
        let ip = self.options.family.nft();
        for endpoint in self.selection.reachable() {
            let name = names::of_endpoint(&self.port.key, endpoint);
            let rules = vec![
                Rule::new(format!("update @affinity-{name} {{ {ip} saddr }}")),
                Rule::new(format!("meta l4proto {} dnat to {}", self.protocol(), endpoint.display())),
            ];
            table.chains.insert(format!("endpoint-{name}"), rules);
            table.affinity.insert(format!("affinity-{name}"), seconds);
        }
    }

    fn add_cluster_ip(&self, table: &mut Desired) {
        let address = self.port.cluster_ip;
        table.insert("cluster-ips", address.to_string(), "", "");
        let (endpoints, chain) = if self.port.internal_local {
            (&self.selection.local, self.local_chain())
        } else {
            (&self.selection.cluster, self.service_chain())
        };
        if endpoints.is_empty() {
            let verdict = self.refusal();
            table.insert("no-endpoint-services", self.triple(address), verdict, &self.port.key.display());
        } else {
            table.insert("service-ips", self.triple(address), format!("goto {chain}"), "");
        }
    }

    fn add_external(&self, table: &mut Desired) {
        let endpoints = if self.port.external_local { &self.selection.local } else { &self.selection.cluster };
        let comment = self.port.key.display();
        let goto = format!("goto {}", self.external_chain());
        for address in self.port.external_ips.iter().chain(&self.port.load_balancer_ips) {
            if self.selection.any {
                table.insert("service-ips", self.triple(*address), goto.clone(), "");
            }
            if endpoints.is_empty() {
                table.insert("no-endpoint-services", self.triple(*address), self.refusal(), &comment);
            }
        }
        if self.port.node_port == 0 {
            return;
        }
        let key = format!("{} . {}", self.protocol(), self.port.node_port);
        if self.selection.any {
            table.insert("service-nodeports", key.clone(), goto, "");
        }
        if endpoints.is_empty() {
            table.insert("no-endpoint-nodeports", key, self.refusal(), &comment);
        }
    }

    /// Connections that reach their own source through the Service must look as if they came from the node.
    fn add_hairpin(&self, table: &mut Desired) {
        for endpoint in self.selection.reachable().into_iter().filter(|one| one.local) {
            let address = endpoint.address;
            let key = format!("{address} . {address} . {} . {}", self.protocol(), endpoint.port);
            table.insert("hairpin-connections", key, "", "");
        }
    }

    fn triple(&self, address: IpAddr) -> String {
        format!("{address} . {} . {}", self.protocol(), self.port.port)
    }

    /// Nobody anywhere: say so at once. Somebody elsewhere: another node may answer, so stay silent.
    fn refusal(&self) -> &'static str {
        if self.selection.any { "drop" } else { "goto reject-chain" }
    }
}
