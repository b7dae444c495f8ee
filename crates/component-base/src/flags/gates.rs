//! `--feature-gates`: from pairs to a component's gates.

use base::{Gate, GateError, Gates, Stage};

use super::go::parse_bool;
use super::{Errors, Options};

/// The component that gates belong to when none is named (`kube:Name=true`).
const DEFAULT_COMPONENT: &str = "kube";

/// The gates of a component, with what to tell the user about the settings.
#[derive(Debug, Clone)]
pub struct GateSettings {
    /// The gates as set.
    pub gates: Gates,
    /// Settings that are worth a warning: unknown gates, and those that no longer need setting.
    pub warnings: Vec<String>,
}

impl GateSettings {
    /// Applies `--feature-gates` to the table. An unknown gate only warns, as upstream.
    pub fn from_options(options: &Options, table: &'static [Gate], errors: &mut Errors) -> Self {
        let mut settings = Self { gates: Gates::new(table), warnings: Vec::new() };
        for (name, value) in options.pairs("feature-gates") {
            settings.apply(name, value, table, errors);
        }
        settings
    }

    fn apply(&mut self, name: &str, value: &str, table: &[Gate], errors: &mut Errors) {
        let (component, name) = name.split_once(':').unwrap_or((DEFAULT_COMPONENT, name));
        if component != DEFAULT_COMPONENT {
            return errors.push(format!("component not registered: {component}"));
        }
        let on = match parse_bool(value) {
            Ok(on) => on,
            Err(_) if value.is_empty() => return errors.push(format!("missing bool value for {name}")),
            Err(error) => return errors.push(format!("invalid value of {name}={value}, err: {error}")),
        };
        match self.gates.set(name, on) {
            Err(error @ GateError::Unknown(_)) => self.warnings.push(error.to_string()),
            Err(error) => errors.push(error),
            Ok(()) => self.warnings.extend(stage_warning(name, on, table)),
        }
    }
}

fn stage_warning(name: &str, on: bool, table: &[Gate]) -> Option<String> {
    let gate = table.iter().find(|gate| gate.name == name)?;
    match gate.stage {
        Stage::Ga => Some(format!("Setting GA feature gate {name}={on}. It will be removed in a future release.")),
        Stage::Deprecated => {
            Some(format!("Setting deprecated feature gate {name}={on}. It will be removed in a future release."))
        }
        Stage::Alpha | Stage::Beta => None,
    }
}

/// The list of gates that `--help` shows: those that can still be set, with stage and default.
#[must_use]
pub fn gates_help(table: &[Gate]) -> String {
    let mut lines = vec![
        "kube:AllAlpha=true|false (ALPHA - default=false)".to_owned(),
        "kube:AllBeta=true|false (BETA - default=false)".to_owned(),
    ];
    for gate in table.iter().filter(|gate| !gate.locked) {
        let stage = match gate.stage {
            Stage::Alpha => "ALPHA",
            Stage::Beta => "BETA",
            Stage::Ga | Stage::Deprecated => continue,
        };
        lines.push(format!("kube:{}=true|false ({stage} - default={})", gate.name, gate.default));
    }
    lines.sort();
    lines.join("\n")
}
