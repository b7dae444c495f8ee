//! Transactions: the text that brings a table from what it holds to what it is to hold.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::nftables::TABLE;
use crate::nftables::desired::{Desired, Element, Rule, TableOptions};
use crate::nftables::fixed::{self, BASE_CHAINS, SETS};

/// What a table holds now, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Present {
    /// Its chains.
    pub chains: BTreeSet<String>,
    /// Its sets and maps.
    pub sets: BTreeSet<String>,
}

/// A transaction in the making.
struct Writer {
    /// `ip kube-proxy`
    table: String,
    text: String,
}

impl Writer {
    fn new(options: &TableOptions) -> Self {
        Self { table: format!("{} {TABLE}", options.family.nft()), text: String::new() }
    }

    fn line(&mut self, action: &str, what: &str, rest: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{action} {what} {} {rest}", self.table);
    }

    /// Makes a chain hold exactly these rules.
    fn chain(&mut self, name: &str, rules: &[Rule]) {
        self.line("add", "chain", name);
        self.line("flush", "chain", name);
        for rule in rules {
            let comment = if rule.comment.is_empty() { String::new() } else { format!(" comment {:?}", rule.comment) };
            self.line("add", "rule", &format!("{name} {}{comment}", rule.text));
        }
    }

    fn add_element(&mut self, set: &str, key: &str, element: &Element) {
        let comment =
            if element.comment.is_empty() { String::new() } else { format!(" comment {:?}", element.comment) };
        let value = if element.value.is_empty() { String::new() } else { format!(" : {}", element.value) };
        self.line("add", "element", &format!("{set} {{ {key}{comment}{value} }}"));
    }

    fn affinity(&mut self, name: &str, seconds: u32, address: &str) {
        let body = format!("{name} {{ type {address} ; flags dynamic,timeout ; timeout {seconds}s ; }}");
        self.line("add", "set", &body);
    }
}

/// The transaction that brings a table of any contents to the desired one. Sticky clients are kept.
#[must_use]
pub fn full(options: &TableOptions, desired: &Desired, present: &Present) -> String {
    let mut out = Writer::new(options);
    let table = out.table.clone();
    // Writing to a string cannot fail.
    let _ = writeln!(out.text, "add table {table} {{ comment \"rules for kube-proxy\" ; }}");
    for name in &present.chains {
        out.line("flush", "chain", name);
    }
    for chain in BASE_CHAINS {
        // A chain whose hook or priority differs cannot be changed, only made anew.
        out.line("add", "chain", chain.name);
        out.line("delete", "chain", chain.name);
        let (kind, hook, priority) = (chain.kind, chain.hook, chain.priority);
        out.line("add", "chain", &format!("{} {{ type {kind} hook {hook} priority {priority} ; }}", chain.name));
    }
    sets(&mut out, options, desired);
    let names: Vec<&str> = desired.fixed.keys().copied().chain(desired.chains.keys().map(String::as_str)).collect();
    for name in names {
        out.line("add", "chain", name);
    }
    for (name, rules) in &desired.fixed {
        out.chain(name, rules);
    }
    for (name, rules) in &desired.chains {
        out.chain(name, rules);
    }
    for (set, elements) in &desired.elements {
        for (key, element) in elements {
            out.add_element(set, key, element);
        }
    }
    for name in
        present.sets.iter().filter(|name| name.starts_with("affinity-") && !desired.affinity.contains_key(*name))
    {
        out.line("delete", "set", name);
    }
    out.text
}

fn sets(out: &mut Writer, options: &TableOptions, desired: &Desired) {
    let address = options.family.nft_type();
    for set in SETS.iter().filter(|set| fixed::exists(set, options)) {
        let (what, verdict) = if set.map { ("map", " : verdict") } else { ("set", "") };
        let key = set.key.replace("ADDRESS", address);
        let body = format!("{} {{ type {key}{verdict} ; comment {:?} ; }}", set.name, set.comment);
        out.line("add", what, &body);
        out.line("flush", what, set.name);
    }
    for (name, seconds) in &desired.affinity {
        out.affinity(name, *seconds, address);
    }
}

/// The transaction from one desired state to the next, and the chains that nothing refers to any more. They are only
/// emptied here: older kernels may still hold references from removed elements for a moment.
#[must_use]
pub fn partial(options: &TableOptions, applied: &Desired, desired: &Desired) -> (String, BTreeSet<String>) {
    let mut out = Writer::new(options);
    let address = options.family.nft_type();
    for (name, seconds) in &desired.affinity {
        if applied.affinity.get(name) != Some(seconds) {
            out.affinity(name, *seconds, address);
        }
    }
    let changed: Vec<(&String, &Vec<Rule>)> =
        desired.chains.iter().filter(|(name, rules)| applied.chains.get(*name) != Some(rules)).collect();
    for (name, _) in &changed {
        out.line("add", "chain", name);
    }
    for (name, rules) in changed {
        out.chain(name, rules);
    }
    for (name, rules) in &desired.fixed {
        if applied.fixed.get(name) != Some(rules) {
            out.chain(name, rules);
        }
    }
    for (set, elements) in &desired.elements {
        let empty = BTreeMap::new();
        let before = applied.elements.get(set).unwrap_or(&empty);
        element_changes(&mut out, set, before, elements);
    }
    let stale: BTreeSet<String> =
        applied.chains.keys().filter(|name| !desired.chains.contains_key(*name)).cloned().collect();
    for name in &stale {
        out.line("flush", "chain", name);
    }
    for name in applied.affinity.keys().filter(|name| !desired.affinity.contains_key(*name)) {
        out.line("delete", "set", name);
    }
    (out.text, stale)
}

fn element_changes(out: &mut Writer, set: &str, before: &BTreeMap<String, Element>, after: &BTreeMap<String, Element>) {
    for key in before.keys().filter(|key| after.get(*key) != before.get(*key)) {
        out.line("delete", "element", &format!("{set} {{ {key} }}"));
    }
    for (key, element) in after.iter().filter(|(key, element)| before.get(*key) != Some(element)) {
        out.add_element(set, key, element);
    }
}

/// The transaction that deletes emptied chains.
#[must_use]
pub fn deletion(options: &TableOptions, chains: &BTreeSet<String>) -> String {
    let mut out = Writer::new(options);
    for name in chains {
        out.line("delete", "chain", name);
    }
    out.text
}
