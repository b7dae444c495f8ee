//! What the table of a family is to hold.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::Family;
use crate::endpoints::Selection;
use crate::nftables::{fixed, port_rules};
use crate::service::ServedPort;

/// The proxy's settings, as far as rules depend on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableOptions {
    /// The family of the table.
    pub family: Family,
    /// The packet mark for traffic that is to be masqueraded.
    pub mark: u32,
    /// Masquerade all traffic to cluster addresses.
    pub masquerade_all: bool,
    /// What tells that a source is a pod, such as `ip saddr 10.0.0.0/16`; with its opposite.
    pub local_source: Option<(String, String)>,
    /// At which addresses of the node NodePorts answer.
    pub node_ports: NodePorts,
    /// This node's own address.
    pub node_ip: Option<IpAddr>,
    /// The networks of cluster addresses, where they are known.
    pub service_cidrs: Vec<String>,
}

/// At which addresses of the node NodePorts answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodePorts {
    /// At all but loopback addresses.
    All,
    /// At these.
    Addresses(BTreeSet<IpAddr>),
}

/// A rule of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its text.
    pub text: String,
    /// Its comment; may be empty.
    pub comment: String,
}

impl Rule {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), comment: String::new() }
    }

    pub(super) fn commented(text: impl Into<String>, comment: &str) -> Self {
        Self { text: text.into(), comment: comment.to_owned() }
    }
}

/// What stands beside the key of a set or map element.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Element {
    /// The verdict of a map; empty in sets.
    pub value: String,
    /// The comment; may be empty.
    pub comment: String,
}

/// The contents of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Desired {
    /// Chains that are always there, with their rules.
    pub fixed: BTreeMap<&'static str, Vec<Rule>>,
    /// Chains of Service ports, with their rules; each name has a slash.
    pub chains: BTreeMap<String, Vec<Rule>>,
    /// The elements of each set and map that is always there.
    pub elements: BTreeMap<&'static str, BTreeMap<String, Element>>,
    /// Sets of sticky clients with their timeout in seconds; the kernel fills them.
    pub affinity: BTreeMap<String, u32>,
}

impl Desired {
    pub(super) fn insert(&mut self, set: &'static str, key: String, value: impl Into<String>, comment: &str) {
        let element = Element { value: value.into(), comment: comment.to_owned() };
        self.elements.entry(set).or_default().insert(key, element);
    }
}

/// Computes the table from the served ports and their endpoints.
#[must_use]
pub fn desired<'a>(
    options: &TableOptions,
    ports: impl IntoIterator<Item = (&'a ServedPort, &'a Selection)>,
) -> Desired {
    let mut table = Desired { fixed: fixed::rules(options), ..Desired::default() };
    for set in fixed::SETS.iter().filter(|set| fixed::exists(set, options)) {
        table.elements.entry(set.name).or_default();
    }
    if let NodePorts::Addresses(addresses) = &options.node_ports {
        for address in addresses {
            table.insert("nodeport-ips", address.to_string(), "", "");
        }
    }
    add_ports(&mut table, options, ports);
    table
}

/// Adds the part that is no Service's to a table.
pub fn add_fixed(table: &mut Desired, fixed: &Desired) {
    table.fixed.extend(fixed.fixed.iter().map(|(name, rules)| (*name, rules.clone())));
    for (set, elements) in &fixed.elements {
        table.elements.entry(set).or_default().extend(elements.clone());
    }
}

/// Adds served ports to a table.
pub fn add_ports<'a>(
    table: &mut Desired,
    options: &TableOptions,
    ports: impl IntoIterator<Item = (&'a ServedPort, &'a Selection)>,
) {
    for (port, selection) in ports {
        port_rules::add(table, options, port, selection);
    }
}

#[cfg(test)]
#[path = "desired_tests.rs"]
mod tests;
