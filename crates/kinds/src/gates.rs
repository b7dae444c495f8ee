//! The feature gates whose two sides the rules of kinds have: those of fields, and those of whole kinds. A process that
//! serves the kinds lists them among what it can switch (`docs/adr/0006-gates.md`).

use feature_gates::Feature;

/// Rolling updates of stateful sets may take several pods at a time.
pub const STATEFUL_SET_MAX_UNAVAILABLE: Feature = Feature::named("MaxUnavailableStatefulSet");

/// All of them.
pub const SWITCHED: &[Feature] = &[STATEFUL_SET_MAX_UNAVAILABLE];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gate_that_a_kind_is_behind_can_be_switched() {
        for rules in crate::all() {
            let info = rules.info();
            for feature in rules.gates().iter().chain(info.gates) {
                assert!(SWITCHED.contains(feature), "{} of {}/{}", feature.name(), info.group, info.resource);
            }
        }
    }
}
