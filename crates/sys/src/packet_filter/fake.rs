//! nftables in memory: keeps tables with their chains, sets and elements, and refuses what the kernel refuses. Adding
//! an element with another value than it has, deleting what is not there, referring to what is not there, and deleting
//! what something refers to all fail, and a script that fails changes nothing.
//!
//! What rules say is kept as text; only the chains, sets and maps that they name are looked at.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{FilterError, PacketFilter};

/// The longest comment that nft takes.
const COMMENT_BYTES: usize = 128;

/// Tables as scripts make them.
#[derive(Default)]
pub struct FakePacketFilter {
    scripts: Mutex<Vec<String>>,
    refusal: Mutex<Option<String>>,
    tables: Mutex<Tables>,
}

/// By family and name.
type Tables = BTreeMap<(String, String), Table>;

#[derive(Debug, Clone, Default)]
struct Table {
    chains: BTreeMap<String, Chain>,
    sets: BTreeMap<String, Set>,
}

#[derive(Debug, Clone, Default)]
struct Chain {
    /// Hook and priority; empty for chains that are only jumped to.
    body: String,
    rules: Vec<String>,
}

#[derive(Debug, Clone, Default)]
struct Set {
    is_map: bool,
    body: String,
    /// Values by key; empty in sets. Comments are part of the value, and not compared.
    elements: BTreeMap<String, Element>,
}

#[derive(Debug, Clone, Default)]
struct Element {
    value: String,
    comment: String,
}

impl FakePacketFilter {
    /// Every script that was applied, in order.
    #[must_use]
    pub fn scripts(&self) -> Vec<String> {
        self.scripts.lock().clone()
    }

    /// From now on every script is refused with these words; `None` accepts again.
    pub fn refuse(&self, words: Option<&str>) {
        *self.refusal.lock() = words.map(str::to_owned);
    }

    /// Everything that is there, a line for each thing, in an order that does not depend on how it came there.
    #[must_use]
    pub fn contents(&self) -> String {
        let mut out = String::new();
        for ((family, name), table) in self.tables.lock().iter() {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "table {family} {name}");
            for (name, chain) in &table.chains {
                let _ = writeln!(out, "chain {name} {}", chain.body);
                for rule in &chain.rules {
                    let _ = writeln!(out, "  {rule}");
                }
            }
            for (name, set) in &table.sets {
                let _ = writeln!(out, "set {name} {}", set.body);
                for (key, Element { value, comment }) in &set.elements {
                    let _ = writeln!(out, "  {key} : {value} {comment}");
                }
            }
        }
        out
    }

    fn run(&self, script: &str) -> Result<Tables, FilterError> {
        if let Some(words) = self.refusal.lock().clone() {
            return Err(FilterError::Refused(words));
        }
        let mut tables = self.tables.lock().clone();
        for line in script.lines().filter(|line| !line.trim().is_empty()) {
            command(&mut tables, line).map_err(|problem| match problem {
                Problem::Absent => FilterError::NotFound,
                Problem::Refused(words) => FilterError::Refused(format!("{words}: {line}")),
            })?;
        }
        Ok(tables)
    }

    fn listed(&self, what: &[&str]) -> Result<Value, FilterError> {
        let tables = self.tables.lock();
        let (kind, family, name) = match what {
            ["table", family, name] => ("table", *family, Some(*name)),
            [kind, family] => (*kind, *family, None),
            _ => return Ok(json!({"nftables": []})),
        };
        let mut found = Vec::new();
        let wanted = |key: &(String, String)| key.0 == family && name.is_none_or(|name| key.1 == name);
        for ((family, table), content) in tables.iter().filter(|(key, _)| wanted(key)) {
            let mut tell =
                |kind: &str, name: &str| found.push(json!({kind: {"family": family, "table": table, "name": name}}));
            if kind == "table" || kind == "chains" {
                content.chains.keys().for_each(|name| tell("chain", name));
            }
            for (name, set) in &content.sets {
                match (kind, set.is_map) {
                    ("table" | "maps", true) => tell("map", name),
                    ("table" | "sets", false) => tell("set", name),
                    _ => {}
                }
            }
        }
        let missing = name.is_some_and(|name| !tables.contains_key(&(family.to_owned(), name.to_owned())));
        if missing { Err(FilterError::NotFound) } else { Ok(json!({"nftables": found})) }
    }
}

#[async_trait]
impl PacketFilter for FakePacketFilter {
    async fn apply(&self, script: &str) -> Result<(), FilterError> {
        let tables = self.run(script)?;
        *self.tables.lock() = tables;
        self.scripts.lock().push(script.to_owned());
        Ok(())
    }

    async fn check(&self, script: &str) -> Result<(), FilterError> {
        self.run(script).map(drop)
    }

    async fn list(&self, what: &[&str]) -> Result<Value, FilterError> {
        self.listed(what)
    }

    async fn list_terse(&self, what: &[&str]) -> Result<Value, FilterError> {
        self.listed(what)
    }
}

/// Why a line is not taken.
enum Problem {
    /// It names what is not there.
    Absent,
    Refused(&'static str),
}

/// One line of a script.
fn command(tables: &mut Tables, line: &str) -> Result<(), Problem> {
    let mut words = line.splitn(5, ' ');
    let mut word = || words.next().unwrap_or_default();
    let (action, what, family, name, rest) = (word(), word(), word(), word(), word());
    let key = (family.to_owned(), name.to_owned());
    if what == "table" {
        match action {
            "add" => drop(tables.entry(key).or_default()),
            "delete" => drop(tables.remove(&key).ok_or(Problem::Absent)?),
            _ => return Err(Problem::Refused("not known here")),
        }
        return Ok(());
    }
    let table = tables.get_mut(&key).ok_or(Problem::Absent)?;
    let (name, body) = rest.trim().split_once(' ').unwrap_or((rest.trim(), ""));
    match what {
        "chain" => table.chain(action, name, body),
        "rule" if action == "add" => table.add_rule(name, body),
        "set" | "map" => table.set(action, name, body, what == "map"),
        "element" => table.elements(action, name, body),
        _ => Err(Problem::Refused("not known here")),
    }
}

impl Table {
    fn chain(&mut self, action: &str, name: &str, body: &str) -> Result<(), Problem> {
        match action {
            "add" => {
                let chain = self.chains.entry(name.to_owned()).or_default();
                if chain.body.is_empty() {
                    chain.body = body.to_owned();
                } else if !body.is_empty() && chain.body != body {
                    return Err(Problem::Refused("a base chain does not change"));
                }
            }
            "flush" => self.chains.get_mut(name).ok_or(Problem::Absent)?.rules.clear(),
            "delete" => {
                let chain = self.chains.remove(name).ok_or(Problem::Absent)?;
                if self.names_chain(name) {
                    self.chains.insert(name.to_owned(), chain);
                    return Err(Problem::Refused("Device or resource busy"));
                }
            }
            _ => return Err(Problem::Refused("not known here")),
        }
        Ok(())
    }

    fn add_rule(&mut self, chain: &str, text: &str) -> Result<(), Problem> {
        let known = chains_of(text).all(|name| self.chains.contains_key(name))
            && sets_of(text).all(|name| self.sets.contains_key(name));
        if !known {
            return Err(Problem::Absent);
        }
        self.chains.get_mut(chain).ok_or(Problem::Absent)?.rules.push(text.to_owned());
        Ok(())
    }

    fn set(&mut self, action: &str, name: &str, body: &str, is_map: bool) -> Result<(), Problem> {
        match action {
            "add" => {
                let set = self.sets.entry(name.to_owned()).or_default();
                // A timeout may change in place; the rest is taken to stay.
                (set.is_map, set.body) = (is_map, body.to_owned());
            }
            "flush" => self.sets.get_mut(name).ok_or(Problem::Absent)?.elements.clear(),
            "delete" => {
                let mut rules = self.chains.values().flat_map(|chain| &chain.rules);
                if rules.any(|rule| sets_of(rule).any(|used| used == name)) {
                    return Err(Problem::Refused("Device or resource busy"));
                }
                self.sets.remove(name).ok_or(Problem::Absent)?;
            }
            _ => return Err(Problem::Refused("not known here")),
        }
        Ok(())
    }

    fn elements(&mut self, action: &str, set: &str, body: &str) -> Result<(), Problem> {
        let inner = body.trim().trim_start_matches('{').trim_end_matches('}');
        for entry in inner.split(" , ") {
            // The comment comes before the value, whose colon is the only one between blanks.
            let (key, value) = entry.split_once(" : ").unwrap_or((entry, ""));
            let (key, comment) = key.split_once(" comment ").unwrap_or((key, ""));
            let element = Element { value: value.trim().to_owned(), comment: comment.trim().to_owned() };
            if comment.trim().trim_matches('"').len() > COMMENT_BYTES {
                return Err(Problem::Refused("comment too long"));
            }
            let known = chains_of(&element.value).all(|name| self.chains.contains_key(name));
            let elements = &mut self.sets.get_mut(set).ok_or(Problem::Absent)?.elements;
            match action {
                "add" if !known => return Err(Problem::Absent),
                "add" => match elements.get(key.trim()) {
                    Some(have) if have.value != element.value => return Err(Problem::Refused("File exists")),
                    // As in the kernel, the comment of one that is there stays.
                    Some(_) => {}
                    None => drop(elements.insert(key.trim().to_owned(), element)),
                },
                "delete" => drop(elements.remove(key.trim()).ok_or(Problem::Absent)?),
                _ => return Err(Problem::Refused("not known here")),
            }
        }
        Ok(())
    }

    /// Whether a rule or an element leads to a chain.
    fn names_chain(&self, name: &str) -> bool {
        let rules = self.chains.values().flat_map(|chain| &chain.rules);
        let values = self.sets.values().flat_map(|set| set.elements.values().map(|element| &element.value));
        rules.chain(values).any(|text| chains_of(text).any(|used| used == name))
    }
}

/// The chains that a rule or a verdict leads to.
fn chains_of(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split_whitespace();
    words.clone().zip(words.skip(1)).filter(|(verb, _)| matches!(*verb, "goto" | "jump")).map(|(_, name)| name)
}

/// The sets and maps that a rule looks into.
fn sets_of(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().filter_map(|word| word.strip_prefix('@'))
}
