//! What a process has switched.

use std::sync::{Arc, LazyLock};

use crate::feature::Feature;
use crate::gate::{BINARY, Stage};
use crate::known::Known;

/// One gate in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State {
    /// Nothing where the process does not know the gate, or emulates a version that did not.
    pub(crate) stage: Option<Stage>,
    /// Whether the feature is on.
    pub(crate) on: bool,
}

/// The gates of a process. Clones share everything; nothing changes them while the process lives.
#[derive(Debug, Clone)]
pub struct Gates {
    /// By the index of the gate in the table.
    states: Arc<[State]>,
}

impl Default for Gates {
    /// Every gate as this build has it when nobody says otherwise.
    fn default() -> Self {
        /// Contexts of rules have gates, and one is made for every request.
        static DEFAULTS: LazyLock<Gates> = LazyLock::new(|| Known::KUBERNETES.defaults(BINARY));
        DEFAULTS.clone()
    }
}

impl Gates {
    pub(crate) fn new(states: impl IntoIterator<Item = State>) -> Self {
        Self { states: states.into_iter().collect() }
    }

    /// Whether a feature is on. One that the process does not know is off.
    #[must_use]
    pub fn enabled(&self, feature: Feature) -> bool {
        self.states.get(feature.index()).is_some_and(|state| state.on)
    }

    /// The same gates with one switched, whoever may switch it: for tests, and for a component in another's process.
    #[must_use]
    pub fn with(&self, feature: Feature, on: bool) -> Self {
        let own = |(index, state): (usize, &State)| State {
            on: if index == feature.index() { on } else { state.on },
            ..*state
        };
        Self::new(self.states.iter().enumerate().map(own))
    }

    /// Every gate that the process knows: name, stage, and whether it is on.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Stage, bool)> {
        Feature::all()
            .zip(self.states.iter())
            .filter_map(|(feature, state)| Some((feature.name(), state.stage?, state.on)))
    }
}
