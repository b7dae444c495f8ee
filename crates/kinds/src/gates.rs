//! The feature gates that fields and whole kinds are behind, and those of them that a process which serves the kinds can
//! switch (`docs/adr/0006-gates.md`).

use feature_gates::Feature;

/// Rolling updates of stateful sets may take several pods at a time. No controller does so yet: the field goes.
pub const STATEFUL_SET_MAX_UNAVAILABLE: Feature = Feature::named("MaxUnavailableStatefulSet");

/// Those that can be switched: a field's gate is one of them only where somebody obeys the field.
pub const SWITCHED: &[Feature] = &[];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_switched_is_what_kinds_are_behind() {
        for rules in crate::all() {
            let info = rules.info();
            for feature in info.gates {
                assert!(SWITCHED.contains(feature), "{} of {}/{}", feature.name(), info.group, info.resource);
            }
        }
        let behind: Vec<Feature> =
            crate::all().flat_map(|rules| [rules.gates(), rules.info().gates.to_vec()].concat()).collect();
        assert!(SWITCHED.iter().all(|feature| behind.contains(feature)));
        assert!(behind.contains(&STATEFUL_SET_MAX_UNAVAILABLE));
    }
}
