//! Packets through the text of the table: an interpreter of as much of nftables as the proxy writes. It knows nothing of
//! Services, so that the contract of backends holds the text to its word. What it does not know fails the test.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use sys::packet_filter::FakePacketFilter;

use crate::backend::Backend;
use crate::backend::contract::{Fate, Kernel, Origin, Packet, is_local_address};
use crate::family::contains;
use crate::nftables::NftablesBackend;

/// The fake packet filter, with packets.
#[derive(Default)]
pub(crate) struct NftKernel(Arc<FakePacketFilter>);

impl Kernel for NftKernel {
    fn backend(&self) -> Box<dyn Backend> {
        Box::new(NftablesBackend::new(Arc::clone(&self.0) as _))
    }

    fn refuse(&self, refuses: bool) {
        self.0.refuse(refuses.then_some("no"));
    }

    fn fate(&self, packet: &Packet) -> Fate {
        self.table().fate(packet)
    }
}

impl NftKernel {
    /// What the table is now, for many packets.
    pub(crate) fn table(&self) -> Ruleset {
        Ruleset::read(&self.0.contents())
    }
}

/// The chains, sets and maps of a table.
#[derive(Default)]
pub(crate) struct Ruleset {
    chains: BTreeMap<String, Vec<String>>,
    /// By hook and priority.
    hooks: BTreeMap<(String, i32), Vec<String>>,
    /// Values by key, empty in sets.
    sets: BTreeMap<String, BTreeMap<String, String>>,
}

/// How a chain ends for a packet, where it does not just run out.
enum Verdict {
    Accept,
    Drop,
    Reject,
}

impl Ruleset {
    fn read(contents: &str) -> Self {
        let mut all = Self::default();
        let mut current = ("", "");
        for line in contents.lines() {
            if let Some(entry) = line.strip_prefix("  ") {
                all.read_entry(current, entry);
                continue;
            }
            let (kind, rest) = line.split_once(' ').unwrap();
            let (name, body) = rest.split_once(' ').unwrap();
            current = (kind, name);
            match kind {
                "chain" => drop(all.chains.insert(name.to_owned(), Vec::new())),
                "set" => drop(all.sets.insert(name.to_owned(), BTreeMap::new())),
                _ => {}
            }
            if let ["{", "type", _, "hook", hook, "priority", priority, ..] = words(body)[..] {
                let at = (hook.to_owned(), priority.parse().unwrap());
                all.hooks.entry(at).or_default().push(name.to_owned());
            }
        }
        all
    }

    fn read_entry(&mut self, (kind, name): (&str, &str), entry: &str) {
        if kind == "chain" {
            let rule = entry.split_once(" comment \"").map_or(entry, |(rule, _)| rule);
            self.chains.get_mut(name).unwrap().push(rule.to_owned());
        } else {
            let (key, value) = entry.split_once(" : ").unwrap();
            let value = value.split_once('"').map_or(value, |(value, _)| value);
            self.sets.get_mut(name).unwrap().insert(key.to_owned(), value.trim().to_owned());
        }
    }

    /// The fate of a packet, over all that chance may choose.
    pub(crate) fn fate(&self, packet: &Packet) -> Fate {
        let (mut all, mut chance) = (None, 0);
        loop {
            let mut walk = Walk::new(self, packet, chance);
            let fate = walk.fate();
            all = Some(match (all, fate) {
                (Some(Fate::To(mut all)), Fate::To(one)) => {
                    all.extend(one);
                    Fate::To(all)
                }
                (all, one) => {
                    assert!(all.is_none_or(|all| all == one), "chance decides only who answers: {packet:?}");
                    one
                }
            });
            chance += 1;
            if chance >= walk.choices {
                break;
            }
        }
        all.unwrap()
    }
}

/// A packet on its way, with what rules changed of it.
struct Walk<'a> {
    rules: &'a Ruleset,
    packet: &'a Packet,
    destination: IpAddr,
    port: u16,
    mark: u32,
    translated: bool,
    masqueraded: bool,
    /// What chance chooses, and of how many.
    chance: usize,
    choices: usize,
}

impl<'a> Walk<'a> {
    fn new(rules: &'a Ruleset, packet: &'a Packet, chance: usize) -> Self {
        let (destination, port) = (packet.destination, packet.port);
        let (mark, translated, masqueraded, choices) = (0, false, false, 0);
        Self { rules, packet, destination, port, mark, translated, masqueraded, chance, choices }
    }

    fn fate(&mut self) -> Fate {
        let first = if self.packet.origin == Origin::Node { "output" } else { "prerouting" };
        let mut ended = self.hook(first);
        if ended.is_none() {
            let (is_node, is_local) = (self.packet.origin == Origin::Node, is_local_address(self.destination));
            let rest: &[&str] = match (is_node, is_local) {
                (true, true) => &["postrouting", "input"],
                (true, false) => &["postrouting"],
                (false, true) => &["input"],
                (false, false) => &["forward", "postrouting"],
            };
            ended = rest.iter().find_map(|hook| self.hook(hook));
        }
        match ended {
            Some(fate) => fate,
            None if !self.translated => Fate::Untouched,
            None => Fate::To([(SocketAddr::new(self.destination, self.port), self.masqueraded)].into()),
        }
    }

    /// What ends the packet in a hook's chains; an acceptance ends its own chain only.
    fn hook(&mut self, hook: &str) -> Option<Fate> {
        let rules = self.rules;
        let chains = rules.hooks.iter().filter(|((of, _), _)| of == hook).flat_map(|(_, chains)| chains);
        chains.into_iter().find_map(|chain| match self.chain(chain)? {
            Verdict::Accept => None,
            Verdict::Drop => Some(Fate::Dropped),
            Verdict::Reject => Some(Fate::Rejected),
        })
    }

    /// Nothing where the chain runs out: its caller goes on.
    fn chain(&mut self, name: &str) -> Option<Verdict> {
        for rule in &self.rules.chains[name] {
            match self.rule(&words(rule)) {
                Step::NextRule => {}
                Step::Goto(chain) => return self.chain(&chain),
                Step::Jump(chain) => {
                    if let Some(verdict) = self.chain(&chain) {
                        return Some(verdict);
                    }
                }
                Step::End(verdict) => return Some(verdict),
            }
        }
        None
    }

    fn rule<'r>(&mut self, mut rest: &'r [&'r str]) -> Step {
        loop {
            rest = match rest {
                // All packets are the first of their connection.
                ["ct", "state", "new", rest @ ..] => rest,
                ["ct", "status", "dnat", rest @ ..] if self.translated => rest,
                ["mark", "and", bits, "!=", "0", rest @ ..] if self.mark & hex(bits) != 0 => rest,
                ["ct", "status", "dnat", ..] | ["mark", "and", ..] | [] => return Step::NextRule,
                ["mark", "set", "mark", "or", bits, rest @ ..] => {
                    self.mark |= hex(bits);
                    rest
                }
                ["mark", "set", "mark", "xor", bits, rest @ ..] => {
                    self.mark ^= hex(bits);
                    rest
                }
                ["update", ..] => return Step::NextRule,
                ["masquerade", ..] => {
                    self.masqueraded = true;
                    return Step::End(Verdict::Accept);
                }
                ["numgen", "random", "mod", count, "vmap", "{", entries @ .., "}"] => {
                    return Step::of(&words(self.chosen(count, entries).as_str()));
                }
                ["dnat", to @ ..] => {
                    self.translate(to);
                    return Step::End(Verdict::Accept);
                }
                ["goto" | "jump" | "drop" | "reject", ..] => return Step::of(rest),
                _ => match self.condition(rest) {
                    Condition::Holds(rest) => rest,
                    Condition::Fails => return Step::NextRule,
                    Condition::Leads(verdict) => return Step::of(&words(&verdict)),
                },
            };
        }
    }

    /// The value that chance has, of `0 : value , 1 : value`.
    fn chosen(&mut self, count: &str, entries: &[&str]) -> String {
        self.choices = count.parse().unwrap();
        let number = (self.chance % self.choices).to_string();
        let text = entries.join(" ");
        let mut pairs = text.split(" , ").map(|entry| entry.split_once(" : ").unwrap());
        pairs.find(|(key, _)| *key == number).unwrap().1.to_owned()
    }

    fn translate(&mut self, to: &[&str]) {
        let to = match to {
            ["to", address] => address.parse::<SocketAddr>().unwrap(),
            [_, "addr", ".", "port", "to", "numgen", "random", "mod", count, "map", "{", entries @ .., "}"] => {
                let chosen = self.chosen(count, entries);
                let (address, port) = chosen.split_once(" . ").unwrap();
                SocketAddr::new(address.parse().unwrap(), port.parse().unwrap())
            }
            _ => panic!("not known here: dnat {to:?}"),
        };
        (self.destination, self.port, self.translated) = (to.ip(), to.port(), true);
    }

    /// A condition on fields: in a set, in a map, in a list, like a value.
    fn condition<'r>(&self, rule: &'r [&'r str]) -> Condition<'r> {
        let (mut values, mut rest) = (Vec::new(), rule);
        loop {
            let (value, after) = self.field(rest);
            values.push(value);
            match after {
                [".", after @ ..] => rest = after,
                _ => {
                    rest = after;
                    break;
                }
            }
        }
        let (is_not, rest) = if let ["!=", rest @ ..] = rest { (true, rest) } else { (false, rest) };
        let (is_in, rest) = match rest {
            ["vmap", map, ..] => {
                let found = self.rules.sets[&map[1..]].get(&values.join(" . "));
                return found.map_or(Condition::Fails, |verdict| Condition::Leads(verdict.clone()));
            }
            ["{", rest @ ..] => {
                let end = rest.iter().position(|word| *word == "}").unwrap();
                let listed = rest[..end].iter().flat_map(|word| word.split(',')).filter(|word| !word.is_empty());
                (listed.into_iter().any(|one| is_like(&values[0], one)), &rest[end + 1..])
            }
            [set, rest @ ..] if set.starts_with('@') => {
                (self.rules.sets[&set[1..]].contains_key(&values.join(" . ")), rest)
            }
            [one, rest @ ..] => (is_like(&values[0], one), rest),
            [] => panic!("a condition without a value: {rule:?}"),
        };
        if is_in == is_not { Condition::Fails } else { Condition::Holds(rest) }
    }

    fn field<'r>(&self, rule: &'r [&'r str]) -> (String, &'r [&'r str]) {
        let kind = |address| if is_local_address(address) { "local" } else { "unicast" }.to_owned();
        match rule {
            ["ip" | "ip6", "saddr", rest @ ..] => (self.packet.source.to_string(), rest),
            ["ip" | "ip6", "daddr", rest @ ..] => (self.destination.to_string(), rest),
            ["meta", "l4proto", rest @ ..] => (self.packet.protocol.to_owned(), rest),
            ["th", "dport", rest @ ..] => (self.port.to_string(), rest),
            ["fib", "saddr", "type", rest @ ..] => (kind(self.packet.source), rest),
            ["fib", "daddr", "type", rest @ ..] => (kind(self.destination), rest),
            ["iifname", rest @ ..] => match self.packet.origin {
                Origin::Interface(name) => (name.to_owned(), rest),
                Origin::Node => (String::new(), rest),
            },
            _ => panic!("not known here: {rule:?}"),
        }
    }
}

enum Step {
    NextRule,
    Jump(String),
    Goto(String),
    End(Verdict),
}

impl Step {
    fn of(verdict: &[&str]) -> Self {
        match verdict {
            ["goto", chain] => Step::Goto((*chain).to_owned()),
            ["jump", chain] => Step::Jump((*chain).to_owned()),
            ["drop"] => Step::End(Verdict::Drop),
            ["reject"] => Step::End(Verdict::Reject),
            _ => panic!("not known here: {verdict:?}"),
        }
    }
}

enum Condition<'r> {
    Holds(&'r [&'r str]),
    Fails,
    Leads(String),
}

/// A network, an address, the beginning of a name, or just the same.
fn is_like(value: &str, pattern: &str) -> bool {
    match (value.parse::<IpAddr>(), pattern.strip_suffix('*')) {
        (Ok(address), _) if pattern.contains('/') => contains(pattern, address),
        (_, Some(prefix)) => value.starts_with(prefix),
        _ => value == pattern,
    }
}

fn hex(text: &str) -> u32 {
    u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}
