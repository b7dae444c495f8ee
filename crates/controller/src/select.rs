//! `--controllers`: which controllers run.

use std::collections::BTreeSet;

use component_base::Gates;

use crate::descriptor::Descriptor;

/// Names in `--controllers` that no controller has; upstream's texts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(|name| format!("\"{name}\" is not in the list of known controllers")).collect::<Vec<_>>().join(", "))]
pub struct UnknownControllers(pub Vec<String>);

/// The value of the flag, checked and with aliases replaced.
#[derive(Debug, Clone)]
pub struct Selection {
    entries: Vec<String>,
}

impl Selection {
    /// Checks a list of `*`, `name` and `-name`.
    ///
    /// # Errors
    /// The names that no controller has.
    pub fn parse(list: &[String], known: &[Descriptor]) -> Result<Self, UnknownControllers> {
        let (mut entries, mut unknown) = (Vec::new(), Vec::new());
        for entry in list {
            let (sign, name) = entry.strip_prefix('-').map_or(("", entry.as_str()), |name| ("-", name));
            let found = known.iter().find(|descriptor| descriptor.name == name || descriptor.aliases.contains(&name));
            match found {
                Some(descriptor) => entries.push(format!("{sign}{}", descriptor.name)),
                None if entry == "*" => entries.push(entry.clone()),
                None => unknown.push(name.to_owned()),
            }
        }
        if unknown.is_empty() { Ok(Self { entries }) } else { Err(UnknownControllers(unknown)) }
    }

    /// Every controller that is not off by default.
    #[must_use]
    pub fn all() -> Self {
        Self { entries: vec!["*".to_owned()] }
    }

    /// Whether the flag wants the controller: the first entry that names it decides, `*` where none does.
    #[must_use]
    pub fn wants(&self, descriptor: &Descriptor) -> bool {
        for entry in &self.entries {
            if entry == descriptor.name {
                return true;
            }
            if entry.strip_prefix('-') == Some(descriptor.name) {
                return false;
            }
        }
        !descriptor.disabled_by_default && self.entries.iter().any(|entry| entry == "*")
    }

    /// The controllers that run: wanted, and with all their gates on. Each runs once, in the order of `known`.
    #[must_use]
    pub fn enabled<'a>(&self, known: &'a [Descriptor], gates: &Gates) -> Vec<&'a Descriptor> {
        let mut seen = BTreeSet::new();
        let open = |descriptor: &&Descriptor| descriptor.gates.iter().all(|gate| gates.enabled(*gate));
        known
            .iter()
            .filter(|descriptor| self.wants(descriptor))
            .filter(open)
            .filter(|descriptor| seen.insert(descriptor.name))
            .collect()
    }
}
