//! The gates that a binary knows, those of them that its code can do both ways, and what follows from settings.

use crate::feature::Feature;
use crate::gate::{BINARY, DefinedIn, MinorVersion, Stage};
use crate::gates::{Gates, State};
use crate::parts::{self, Part};

/// The names that stand for all gates of a stage.
const GROUPS: [(&str, Stage); 2] = [("AllAlpha", Stage::Alpha), ("AllBeta", Stage::Beta)];

/// Why a setting was refused. All texts but the last two are upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// No gate has this name.
    #[error("unrecognized feature gate: {0}")]
    Unknown(String),
    /// A locked gate was set to the other value.
    #[error("cannot set feature gate {name} to {value}, feature is locked to {}", !value)]
    Locked {
        /// The gate.
        name: &'static str,
        /// What was asked for.
        value: bool,
    },
    /// The gate is newer than the version that is emulated.
    #[error(
        "cannot set feature gate {name} to {value}, feature is PreAlpha at emulated version {emulated}, min compatibility version {min_compatible}"
    )]
    PreAlpha {
        /// The gate.
        name: &'static str,
        /// What was asked for.
        value: bool,
        /// The version.
        emulated: MinorVersion,
        /// The version that must be able to take over.
        min_compatible: MinorVersion,
    },
    /// A feature is on without those that it builds on.
    #[error("{name} is enabled, but depends on features that are disabled: [{}]", missing.join(" "))]
    Needs {
        /// The gate.
        name: &'static str,
        /// What is off.
        missing: Vec<&'static str>,
    },
    /// This build has one side of the gate only.
    #[error("cannot set feature gate {name} to {value}: this build only has what there is with {name}={}", !value)]
    OneSided {
        /// The gate.
        name: &'static str,
        /// What was asked for.
        value: bool,
    },
    /// The same, of all gates of a stage.
    #[error("cannot set feature gate {group} to {value}: of these gates this build only has the other side: [{}]", gates.join(" "))]
    OneSidedGroup {
        /// `AllAlpha` or `AllBeta`.
        group: &'static str,
        /// What was asked for.
        value: bool,
        /// The gates.
        gates: Vec<&'static str>,
    },
}

/// What settings make of a binary's gates.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The gates.
    pub gates: Gates,
    /// What users should be told.
    pub warnings: Vec<String>,
}

/// The gates of a binary.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// The libraries whose gates it knows.
    pub defined_in: &'static [DefinedIn],
    /// The gates whose two sides its code has, and locked ones that it has alone. Others stay as they are, and setting them
    /// to anything else is refused.
    pub switches: &'static [&'static [Feature]],
    /// Which binary of a cluster it is; none for those that have no part in any feature.
    pub part: Option<Part>,
}

impl Known {
    /// What every binary of Kubernetes itself knows, and none can switch.
    pub const KUBERNETES: Self = Self {
        defined_in: &[
            DefinedIn::Kubernetes,
            DefinedIn::ApiServer,
            DefinedIn::ApiExtensionsServer,
            DefinedIn::Client,
            DefinedIn::ComponentBase,
            DefinedIn::ControllerManager,
        ],
        switches: &[],
        part: None,
    };

    /// The same, with what the code can switch.
    #[must_use]
    pub const fn switching(switches: &'static [&'static [Feature]]) -> Self {
        Self { switches, ..Self::KUBERNETES }
    }

    /// The same, of one of the binaries of a cluster.
    #[must_use]
    pub const fn of(self, part: Part) -> Self {
        Self { part: Some(part), ..self }
    }

    /// Whether the binary knows a gate.
    #[must_use]
    pub fn knows(&self, feature: Feature) -> bool {
        feature.gate().defined_in.iter().any(|own| self.defined_in.contains(own))
    }

    /// Whether the code has both sides.
    #[must_use]
    pub fn switches(&self, feature: Feature) -> bool {
        self.switches.iter().any(|list| list.contains(&feature))
    }

    /// Whether the binary has a part in a feature; none where nobody is told of in it.
    fn has_part(&self, feature: Feature) -> Option<bool> {
        parts::of(feature).map(|parts| self.part.is_some_and(|part| parts.contains(&part)))
    }

    /// Whether a gate takes any value: the code has both sides, or it is about other binaries only.
    fn takes_any(&self, feature: Feature) -> bool {
        self.switches(feature) || self.has_part(feature) == Some(false)
    }

    /// The gates that the code has both sides of, though no part of the binary is told of in them. There should be none.
    #[must_use]
    pub fn untold(&self) -> Vec<Feature> {
        let is_untold = |feature: &Feature| self.switches(*feature) && self.has_part(*feature) != Some(true);
        self.features().filter(is_untold).collect()
    }

    /// The gates that cannot have the value that they have not by default, as the code has one side only and some part of the
    /// binary is in them. There should be none.
    #[must_use]
    pub fn one_sided(&self) -> Vec<&'static str> {
        let is_locked = |feature: Feature| feature.gate().at(BINARY).is_some_and(|step| step.locked);
        let is_one_sided = |feature: &Feature| !is_locked(*feature) && !self.takes_any(*feature);
        self.features().filter(is_one_sided).map(Feature::name).collect()
    }

    /// The gates that nobody can switch on, though the code has both sides, as they need others that are not to be had. There
    /// should be none.
    #[must_use]
    pub fn out_of_reach(&self) -> Vec<Feature> {
        self.features().filter(|feature| self.switches(*feature) && !self.can_be_on(*feature)).collect()
    }

    fn can_be_on(&self, feature: Feature) -> bool {
        let needs = || feature.gate().needs.iter().filter_map(|name| Feature::find(name));
        (self.takes_any(feature) || has(feature)) && needs().all(|needed| self.can_be_on(needed))
    }

    /// Every gate that the binary knows.
    pub fn features(&self) -> impl Iterator<Item = Feature> {
        let known = *self;
        Feature::all().filter(move |feature| known.knows(*feature))
    }

    /// The gates when nobody sets any, as of a version.
    #[must_use]
    pub fn defaults(&self, emulated: MinorVersion) -> Gates {
        Gates::new(Feature::all().map(|feature| self.state(feature, emulated, None)))
    }

    /// Applies settings in their order; the last one of a name counts. A name wins over its stage.
    ///
    /// # Errors
    /// Every setting that is refused.
    pub fn resolve(
        &self,
        settings: &[(String, bool)],
        emulated: MinorVersion,
        min_compatible: MinorVersion,
    ) -> Result<Resolved, Vec<GateError>> {
        let mut asked = Asked::new(*self, emulated, min_compatible);
        for (name, value) in settings {
            asked.set(name, *value);
        }
        asked.check_groups();
        asked.check_needs();
        if !asked.errors.is_empty() {
            return Err(asked.errors);
        }
        asked.warn_of_emulation();
        Ok(Resolved { gates: asked.gates(), warnings: asked.warnings })
    }

    /// A gate as it is here, given what was asked of it.
    fn state(&self, feature: Feature, emulated: MinorVersion, asked: Option<bool>) -> State {
        if !self.knows(feature) {
            return State { stage: None, on: false };
        }
        let step = feature.gate().at(emulated);
        let wanted = asked.unwrap_or_else(|| step.is_some_and(|step| step.default));
        let on = if self.takes_any(feature) { wanted } else { has(feature) };
        State { stage: step.map(|step| step.stage), on }
    }
}

/// The side that this build has of a gate, where it has only one.
fn has(feature: Feature) -> bool {
    feature.gate().at(BINARY).is_some_and(|step| step.default)
}

/// Settings while they are looked at.
struct Asked {
    known: Known,
    emulated: MinorVersion,
    min_compatible: MinorVersion,
    by_name: Vec<(Feature, bool)>,
    by_stage: Vec<(&'static str, Stage, bool)>,
    errors: Vec<GateError>,
    warnings: Vec<String>,
}

impl Asked {
    fn new(known: Known, emulated: MinorVersion, min_compatible: MinorVersion) -> Self {
        let (by_name, by_stage) = (Vec::new(), Vec::new());
        Self { known, emulated, min_compatible, by_name, by_stage, errors: Vec::new(), warnings: Vec::new() }
    }

    fn set(&mut self, name: &str, value: bool) {
        if let Some((group, stage)) = GROUPS.into_iter().find(|(group, _)| *group == name) {
            self.by_stage.retain(|(own, ..)| *own != group);
            self.by_stage.push((group, stage, value));
            return;
        }
        let Some(feature) = Feature::find(name).filter(|feature| self.known.knows(*feature)) else {
            return self.errors.push(GateError::Unknown(name.to_owned()));
        };
        let name = feature.name();
        let Some(step) = feature.gate().at(self.emulated) else {
            let (emulated, min_compatible) = (self.emulated, self.min_compatible);
            return self.errors.push(GateError::PreAlpha { name, value, emulated, min_compatible });
        };
        if step.locked && step.default != value {
            return self.errors.push(GateError::Locked { name, value });
        }
        if !self.known.takes_any(feature) && has(feature) != value {
            return self.errors.push(GateError::OneSided { name, value });
        }
        let will_go = match step.stage {
            Stage::Ga => Some("GA"),
            Stage::Deprecated => Some("deprecated"),
            Stage::Alpha | Stage::Beta => None,
        };
        let warning =
            |stage| format!("Setting {stage} feature gate {name}={value}. It will be removed in a future release.");
        self.warnings.extend(will_go.map(warning));
        self.by_name.retain(|(own, _)| *own != feature);
        self.by_name.push((feature, value));
    }

    /// What was asked of a gate, by its name or its stage.
    fn of(&self, feature: Feature) -> Option<bool> {
        let named = self.by_name.iter().find(|(own, _)| *own == feature).map(|(_, value)| *value);
        named.or_else(|| {
            let step = feature.gate().at(self.emulated).filter(|step| !step.locked)?;
            self.by_stage.iter().find(|(_, stage, _)| *stage == step.stage).map(|(.., value)| *value)
        })
    }

    fn state(&self, feature: Feature) -> State {
        self.known.state(feature, self.emulated, self.of(feature))
    }

    fn gates(&self) -> Gates {
        Gates::new(Feature::all().map(|feature| self.state(feature)))
    }

    /// Nobody is to believe that a whole stage is switched when some of it is not.
    fn check_groups(&mut self) {
        for (group, stage, value) in self.by_stage.clone() {
            let of_stage = |feature: &Feature| feature.gate().at(self.emulated).is_some_and(|step| step.stage == stage);
            let stays = |feature: &Feature| self.of(*feature) == Some(value) && self.state(*feature).on != value;
            let gates: Vec<_> = self.known.features().filter(of_stage).filter(stays).map(Feature::name).collect();
            if !gates.is_empty() {
                self.errors.push(GateError::OneSidedGroup { group, value, gates });
            }
        }
    }

    /// Gates that cannot follow the emulated version need what they need in this one, where it is on.
    fn check_needs(&mut self) {
        for feature in self.known.features() {
            let on = |feature: Feature| self.state(feature).on;
            let stuck = self.stuck(feature);
            if stuck || !on(feature) {
                continue;
            }
            let off = |name: &&&'static str| !Feature::find(name).is_some_and(on);
            let missing: Vec<_> = feature.gate().needs.iter().filter(off).copied().collect();
            if !missing.is_empty() {
                self.errors.push(GateError::Needs { name: feature.name(), missing });
            }
        }
    }

    /// Whether the version wants another side of the gate than this build has.
    fn stuck(&self, feature: Feature) -> bool {
        let default = |version| feature.gate().at(version).is_some_and(|step| step.default);
        !self.known.takes_any(feature)
            && default(self.emulated) != default(BINARY)
            && default(self.emulated) != has(feature)
    }

    fn warn_of_emulation(&mut self) {
        if self.emulated == BINARY {
            return;
        }
        let names = |wanted: &dyn Fn(Feature) -> bool| {
            self.known.features().filter(|feature| wanted(*feature)).map(Feature::name).collect::<Vec<_>>().join(" ")
        };
        let stuck = names(&|feature| self.stuck(feature));
        let alpha = names(&|feature| {
            let state = self.state(feature);
            state.on && state.stage == Some(Stage::Alpha) && !self.stuck(feature)
        });
        if !stuck.is_empty() {
            self.warnings.push(format!(
                "Emulating version {}: these feature gates stay as in {BINARY}, as this build has no other side: [{stuck}]",
                self.emulated
            ));
        }
        if !alpha.is_empty() {
            self.warnings.push(format!(
                "component has alpha features enabled in emulated version, this is unsupported: features=[{alpha}]"
            ));
        }
    }
}
