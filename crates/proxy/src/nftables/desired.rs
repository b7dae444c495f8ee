//! What the table of a family is to hold.

use std::collections::BTreeMap;

use crate::backend::{NodePorts, Route, RuleOptions};
use crate::nftables::{fixed, port_rules};

/// A rule of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    /// Its text.
    pub(super) text: String,
    /// Its comment; may be empty.
    pub(super) comment: String,
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
pub(super) struct Element {
    /// The verdict of a map; empty in sets.
    pub(super) value: String,
    /// The comment; may be empty.
    pub(super) comment: String,
}

/// The contents of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Desired {
    /// Chains that are always there, with their rules.
    pub(super) fixed: BTreeMap<&'static str, Vec<Rule>>,
    /// Chains of Service ports, with their rules; each name has a slash.
    pub(super) chains: BTreeMap<String, Vec<Rule>>,
    /// The elements of each set and map that is always there.
    pub(super) elements: BTreeMap<&'static str, BTreeMap<String, Element>>,
    /// Sets of sticky clients with their timeout in seconds; the kernel fills them.
    pub(super) affinity: BTreeMap<String, u32>,
}

impl Desired {
    pub(super) fn insert(&mut self, set: &'static str, key: String, value: impl Into<String>, comment: &str) {
        let element = Element { value: value.into(), comment: comment.to_owned() };
        self.elements.entry(set).or_default().insert(key, element);
    }
}

/// What the table of these options holds whatever Services there are.
pub(super) fn fixed_part(options: &RuleOptions) -> Desired {
    let mut table = Desired { fixed: fixed::rules(options), ..Desired::default() };
    for set in fixed::SETS.iter().filter(|set| fixed::exists(set, options)) {
        table.elements.entry(set.name).or_default();
    }
    if let NodePorts::Addresses(addresses) = &options.node_ports {
        for address in addresses {
            table.insert("nodeport-ips", address.to_string(), "", "");
        }
    }
    table
}

/// What a Service with these routes wants in the table.
pub(super) fn part(options: &RuleOptions, routes: &[Route]) -> Desired {
    let mut table = Desired::default();
    for route in routes {
        port_rules::add(&mut table, options, route);
    }
    table
}

/// Adds the part that is no Service's to a table.
pub(super) fn add_fixed(table: &mut Desired, fixed: &Desired) {
    table.fixed.extend(fixed.fixed.iter().map(|(name, rules)| (*name, rules.clone())));
    for (set, elements) in &fixed.elements {
        table.elements.entry(set).or_default().extend(elements.clone());
    }
}

#[cfg(test)]
#[path = "desired_tests.rs"]
mod tests;
