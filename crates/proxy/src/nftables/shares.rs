//! What each Service wants in the table, and what follows for the table: several Services can want the same element. An
//! endpoint that is behind two of them is in the set of hairpin connections once, and stays there until neither wants
//! it; an external address that two of them claim leads to one of them, and to the other once that is gone.

use std::collections::{BTreeMap, BTreeSet};

use client::ObjectKey;

use crate::nftables::desired::{Desired, Element};

/// An element by its set and key.
type Slot = (&'static str, String);

/// What all Services want.
#[derive(Debug, Default)]
pub(super) struct Shares {
    parts: BTreeMap<ObjectKey, Desired>,
    wanted_by: BTreeMap<Slot, BTreeSet<ObjectKey>>,
}

/// What a change of some Services touches: how it is in the table before and after. Whatever is in neither is as it was.
#[derive(Debug, Default)]
pub(super) struct Change {
    /// Before the change.
    pub(super) before: Desired,
    /// After it.
    pub(super) after: Desired,
}

impl Shares {
    /// Some Services want something else now; nothing, where they are gone.
    pub(super) fn change(&mut self, next: BTreeMap<ObjectKey, Desired>) -> Change {
        let none = Desired::default();
        let touched: BTreeSet<Slot> = next
            .iter()
            .flat_map(|(key, part)| slots(self.parts.get(key).unwrap_or(&none)).chain(slots(part)))
            .collect();
        let mut change = Change::default();
        for key in next.keys() {
            own(&mut change.before, self.parts.get(key).unwrap_or(&none));
        }
        self.shared(&mut change.before, &touched);
        for (key, part) in next {
            own(&mut change.after, &part);
            self.put(key, part);
        }
        self.shared(&mut change.after, &touched);
        change
    }

    /// What each Service wants.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Desired> {
        self.parts.values()
    }

    /// Everything that the table is to hold for Services.
    pub(super) fn whole(&self) -> Desired {
        let mut all = Desired::default();
        for part in self.parts.values() {
            own(&mut all, part);
            for (set, elements) in &part.elements {
                // The last one wins, as in [`Self::winner`].
                all.elements.entry(set).or_default().extend(elements.clone());
            }
        }
        all
    }

    fn put(&mut self, key: ObjectKey, part: Desired) {
        for slot in self.parts.get(&key).into_iter().flat_map(slots) {
            if let Some(owners) = self.wanted_by.get_mut(&slot) {
                owners.remove(&key);
                if owners.is_empty() {
                    self.wanted_by.remove(&slot);
                }
            }
        }
        for slot in slots(&part) {
            self.wanted_by.entry(slot).or_default().insert(key.clone());
        }
        if part == Desired::default() {
            self.parts.remove(&key);
        } else {
            self.parts.insert(key, part);
        }
    }

    /// Adds what the table holds in these slots.
    fn shared(&self, to: &mut Desired, touched: &BTreeSet<Slot>) {
        for slot in touched {
            // Also a set of which nothing is left is compared.
            let elements = to.elements.entry(slot.0).or_default();
            if let Some(element) = self.winner(slot) {
                elements.insert(slot.1.clone(), element.clone());
            }
        }
    }

    /// Of several that want a slot, the last by name has it: who that is must not depend on the order of events.
    fn winner(&self, slot: &Slot) -> Option<&Element> {
        let owner = self.wanted_by.get(slot)?.last()?;
        self.parts.get(owner)?.elements.get(slot.0)?.get(&slot.1)
    }
}

fn slots(part: &Desired) -> impl Iterator<Item = Slot> {
    part.elements.iter().flat_map(|(set, elements)| elements.keys().map(|key| (*set, key.clone())))
}

/// Chains and sets of sticky clients carry their Service's name: no two Services share one.
fn own(to: &mut Desired, part: &Desired) {
    to.chains.extend(part.chains.iter().map(|(name, rules)| (name.clone(), rules.clone())));
    to.affinity.extend(part.affinity.iter().map(|(name, seconds)| (name.clone(), *seconds)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(elements: &[(&str, &str)]) -> Desired {
        let mut part = Desired::default();
        for (key, value) in elements {
            part.insert("service-ips", (*key).to_owned(), *value, "");
        }
        part
    }

    fn changed(shares: &mut Shares, name: &str, elements: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let change = shares.change([(ObjectKey::new("n", name), part(elements))].into());
        let listed = |table: &Desired| -> Vec<String> {
            let all = table.elements.values().flatten();
            all.map(|(key, element)| format!("{key}>{}", element.value)).collect()
        };
        (listed(&change.before), listed(&change.after))
    }

    #[test]
    fn what_two_want_stays_until_neither_does() {
        let mut shares = Shares::default();
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(changed(&mut shares, "b", &[("1", "b")]), (vec![], texts(&["1>b"])));
        assert_eq!(changed(&mut shares, "a", &[("1", "a"), ("2", "a")]), (texts(&["1>b"]), texts(&["1>b", "2>a"])));
        assert_eq!(shares.whole().elements["service-ips"].len(), 2);
        assert_eq!(changed(&mut shares, "b", &[]), (texts(&["1>b"]), texts(&["1>a"])));
        assert_eq!(changed(&mut shares, "a", &[("2", "a")]), (texts(&["1>a", "2>a"]), texts(&["2>a"])));
        assert_eq!(changed(&mut shares, "a", &[]), (texts(&["2>a"]), vec![]));
        assert!(shares.wanted_by.is_empty() && shares.parts.is_empty());
    }
}
