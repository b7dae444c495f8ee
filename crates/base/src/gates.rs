//! Feature gates: a table of named switches with a stage and a default, set by `--feature-gates=A=true,B=false`.

use std::collections::BTreeMap;

/// How mature a feature is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Off by default, may change.
    Alpha,
    /// Usually on by default.
    Beta,
    /// Generally available.
    Ga,
    /// Kept for a while, off later.
    Deprecated,
}

/// One gate of a component's table.
#[derive(Debug, Clone, Copy)]
pub struct Gate {
    /// The name that users write.
    pub name: &'static str,
    /// Its stage.
    pub stage: Stage,
    /// Whether it is on when nobody says otherwise.
    pub default: bool,
    /// Whether users may no longer change it.
    pub locked: bool,
}

/// Why a gate setting was refused; the texts are upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// No gate has this name.
    #[error("unrecognized feature gate: {0}")]
    Unknown(String),
    /// A locked gate was set to the other value.
    #[error("cannot set feature gate {name} to {value}, feature is locked to {locked}")]
    Locked {
        /// The gate.
        name: String,
        /// What was asked for.
        value: bool,
        /// What it is.
        locked: bool,
    },
}

/// The state of a component's gates.
#[derive(Debug, Clone)]
pub struct Gates {
    table: &'static [Gate],
    set: BTreeMap<String, bool>,
}

impl Gates {
    /// All gates of `table` at their defaults.
    #[must_use]
    pub fn new(table: &'static [Gate]) -> Self {
        Self { table, set: BTreeMap::new() }
    }

    /// Sets one gate. `AllAlpha` and `AllBeta` set those of that stage which are not set by name.
    ///
    /// # Errors
    /// When there is no such gate, or it is locked to the other value.
    pub fn set(&mut self, name: &str, value: bool) -> Result<(), GateError> {
        if name != "AllAlpha" && name != "AllBeta" {
            let gate = self.find(name).ok_or_else(|| GateError::Unknown(name.to_owned()))?;
            if gate.locked && gate.default != value {
                return Err(GateError::Locked { name: name.to_owned(), value, locked: gate.default });
            }
        }
        self.set.insert(name.to_owned(), value);
        Ok(())
    }

    /// Whether a gate is on; a name outside the table is off.
    #[must_use]
    pub fn enabled(&self, name: &str) -> bool {
        let Some(gate) = self.find(name) else { return false };
        if let Some(value) = self.set.get(name) {
            return *value;
        }
        let group = match gate.stage {
            Stage::Alpha => self.set.get("AllAlpha"),
            Stage::Beta => self.set.get("AllBeta"),
            Stage::Ga | Stage::Deprecated => None,
        };
        if gate.locked { gate.default } else { group.copied().unwrap_or(gate.default) }
    }

    /// Every gate with whether it is on, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Gate, bool)> {
        self.table.iter().map(|gate| (gate, self.enabled(gate.name)))
    }

    fn find(&self, name: &str) -> Option<&'static Gate> {
        self.table.iter().find(|gate| gate.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Gate] = &[
        Gate { name: "New", stage: Stage::Alpha, default: false, locked: false },
        Gate { name: "Usual", stage: Stage::Beta, default: true, locked: false },
        Gate { name: "Done", stage: Stage::Ga, default: true, locked: true },
    ];

    #[test]
    fn names_win_over_stages_and_locks_hold() {
        let mut gates = Gates::new(TABLE);
        assert!(!gates.enabled("New") && gates.enabled("Usual") && !gates.enabled("Missing"));
        gates.set("AllAlpha", true).unwrap();
        assert!(gates.enabled("New"));
        gates.set("New", false).unwrap();
        assert!(!gates.enabled("New"));
        assert_eq!(gates.set("Nope", true), Err(GateError::Unknown("Nope".into())));
        assert!(matches!(gates.set("Done", false), Err(GateError::Locked { .. })));
        gates.set("Done", true).unwrap();
    }
}
