//! Transactions: the text that brings a table from what it holds to what it is to hold.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::backend::RuleOptions;
use crate::nftables::TABLE;
use crate::nftables::desired::{Desired, Element, Rule};
use crate::nftables::fixed::{self, BASE_CHAINS, SETS};

/// Chains of Services in one transaction, unless a single Service has more.
const CHAINS_AT_ONCE: usize = 500;
/// The longest comment that nft takes.
const COMMENT_CHARACTERS: usize = 128;
const ELEMENTS_IN_A_LINE: usize = 500;

/// What a table holds now, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Present {
    /// Its chains.
    pub(super) chains: BTreeSet<String>,
    /// Its sets and maps.
    pub(super) sets: BTreeSet<String>,
}

/// A transaction in the making.
struct Writer {
    /// `ip kube-proxy`
    table: String,
    text: String,
}

impl Writer {
    fn new(options: &RuleOptions) -> Self {
        Self { table: format!("{} {TABLE}", options.family.nft()), text: String::new() }
    }

    /// A transaction that may be the first one.
    fn table(options: &RuleOptions) -> Self {
        let mut out = Self::new(options);
        // Writing to a string cannot fail.
        let _ = writeln!(out.text, "add table {} {{ comment \"rules for kube-proxy\" ; }}", out.table);
        out
    }

    fn line(&mut self, action: &str, what: &str, rest: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{action} {what} {} {rest}", self.table);
    }

    /// Makes a chain that is there hold exactly these rules.
    fn chain(&mut self, name: &str, rules: &[Rule]) {
        self.line("flush", "chain", name);
        for rule in rules {
            self.line("add", "rule", &format!("{name} {}{}", rule.text, comment(&rule.comment)));
        }
    }

    fn add_elements<'a>(&mut self, set: &str, elements: impl Iterator<Item = (&'a String, &'a Element)>) {
        let text = |(key, element): (&String, &Element)| {
            let value = if element.value.is_empty() { String::new() } else { format!(" : {}", element.value) };
            format!("{key}{}{value}", comment(&element.comment))
        };
        self.elements("add", set, elements.map(text));
    }

    /// Many elements in a line take the kernel much less time than a line for each.
    fn elements(&mut self, action: &str, set: &str, entries: impl Iterator<Item = String>) {
        let entries: Vec<String> = entries.collect();
        for some in entries.chunks(ELEMENTS_IN_A_LINE) {
            self.line(action, "element", &format!("{set} {{ {} }}", some.join(" , ")));
        }
    }

    /// Everything in the table that is one Service's alone.
    fn service(&mut self, options: &RuleOptions, part: &Desired) {
        for (name, seconds) in &part.affinity {
            self.affinity(name, *seconds, options.family.nft_type());
        }
        for name in part.chains.keys() {
            self.line("add", "chain", name);
        }
        for (name, rules) in &part.chains {
            self.chain(name, rules);
        }
    }

    fn affinity(&mut self, name: &str, seconds: u32, address: &str) {
        let body = format!("{name} {{ type {address} ; flags dynamic,timeout ; timeout {seconds}s ; }}");
        self.line("add", "set", &body);
    }
}

/// The comment of a rule or element, with a blank before it. nft refuses longer ones, and with them the transaction.
fn comment(text: &str) -> String {
    let cut: String = text.chars().take(COMMENT_CHARACTERS).collect();
    if cut.is_empty() { cut } else { format!(" comment {cut:?}") }
}

/// The transactions that bring a table of any contents to the desired one, in order. Sticky clients are kept.
///
/// Most tables take one. In a large table the kernel looks at everything that the transaction already holds for each
/// chain that picks endpoints, so the chains of many Services come in several transactions, each with whole Services;
/// what leads to them comes with the last.
#[must_use]
pub(super) fn full<'a>(
    options: &RuleOptions,
    desired: &Desired,
    services: impl IntoIterator<Item = &'a Desired>,
    present: &Present,
) -> Vec<String> {
    let mut scripts = Vec::new();
    let mut out = Writer::table(options);
    let mut chains = 0;
    for part in services {
        chains += part.chains.len();
        if chains > CHAINS_AT_ONCE && chains > part.chains.len() {
            scripts.push(std::mem::replace(&mut out, Writer::table(options)).text);
            chains = part.chains.len();
        }
        out.service(options, part);
    }
    for name in present.chains.iter().filter(|name| !desired.chains.contains_key(*name)) {
        out.line("flush", "chain", name);
    }
    fixed_part(&mut out, options, desired);
    let is_unused = |name: &&String| name.starts_with("affinity-") && !desired.affinity.contains_key(*name);
    for name in present.sets.iter().filter(is_unused) {
        out.line("delete", "set", name);
    }
    scripts.push(out.text);
    scripts
}

/// Everything but the chains of Services, which are there by now.
fn fixed_part(out: &mut Writer, options: &RuleOptions, desired: &Desired) {
    for chain in BASE_CHAINS {
        // A chain whose hook or priority differs cannot be changed, only made anew.
        out.line("add", "chain", chain.name);
        out.line("delete", "chain", chain.name);
        let (kind, hook, priority) = (chain.kind, chain.hook, chain.priority);
        out.line("add", "chain", &format!("{} {{ type {kind} hook {hook} priority {priority} ; }}", chain.name));
    }
    sets(out, options);
    for name in desired.fixed.keys() {
        out.line("add", "chain", name);
    }
    for (name, rules) in &desired.fixed {
        out.chain(name, rules);
    }
    for (set, elements) in &desired.elements {
        out.add_elements(set, elements.iter());
    }
}

fn sets(out: &mut Writer, options: &RuleOptions) {
    let address = options.family.nft_type();
    for set in SETS.iter().filter(|set| fixed::exists(set, options)) {
        let (what, verdict) = if set.map { ("map", " : verdict") } else { ("set", "") };
        let key = set.key.replace("ADDRESS", address);
        let body = format!("{} {{ type {key}{verdict} ; comment {:?} ; }}", set.name, set.comment);
        out.line("add", what, &body);
        out.line("flush", what, set.name);
    }
}

/// The transaction from one desired state to the next, and the chains that nothing refers to any more. They are only
/// emptied here: older kernels may still hold references from removed elements for a moment.
#[must_use]
pub(super) fn partial(options: &RuleOptions, applied: &Desired, desired: &Desired) -> (String, BTreeSet<String>) {
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
    let gone = before.keys().filter(|key| after.get(*key) != before.get(*key));
    out.elements("delete", set, gone.cloned());
    out.add_elements(set, after.iter().filter(|(key, element)| before.get(*key) != Some(*element)));
}

/// The transaction that deletes emptied chains.
#[must_use]
pub(super) fn deletion(options: &RuleOptions, chains: &BTreeSet<String>) -> String {
    let mut out = Writer::new(options);
    for name in chains {
        out.line("delete", "chain", name);
    }
    out.text
}
