//! Fields behind features: while one is off, what is written loses its fields, unless the stored object has them already
//! (upstream's `dropDisabledFields`). A kind lists them as data, in `TypedRules::GATED`.

use feature_gates::{Feature, Gates};

/// Fields of a kind that one feature brought, or several together.
pub struct Gated<T> {
    /// What has to be on.
    pub features: &'static [Feature],
    /// Whether an object has any of the fields.
    pub used: fn(&T) -> bool,
    /// Takes them away.
    pub drop: fn(&mut T),
}

/// Drops the fields of features that are off. `old` is the stored object on updates.
pub fn drop_disabled<T>(fields: &[Gated<T>], gates: &Gates, object: &mut T, old: Option<&T>) {
    for gated in fields {
        let is_on = gated.features.iter().all(|feature| gates.enabled(*feature));
        if !is_on && !old.is_some_and(gated.used) {
            (gated.drop)(object);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Feature = Feature::named("DRADeviceTaints");
    const OTHER: Feature = Feature::named("DRAAdminAccess");
    const FIELDS: &[Gated<Vec<i32>>] =
        &[Gated { features: &[ONE, OTHER], used: |list| list.contains(&1), drop: |list| list.retain(|own| *own != 1) }];

    #[test]
    fn a_field_goes_unless_all_its_features_are_on_or_it_is_stored() {
        let gates = |one, other| Gates::default().with(ONE, one).with(OTHER, other);
        for (gates, old, expected) in [
            (gates(true, true), None, vec![1, 2]),
            (gates(true, false), None, vec![2]),
            (gates(false, true), None, vec![2]),
            (gates(false, false), Some(vec![2]), vec![2]),
            (gates(false, false), Some(vec![1]), vec![1, 2]),
        ] {
            let mut written = vec![1, 2];
            drop_disabled(FIELDS, &gates, &mut written, old.as_ref());
            assert_eq!(written, expected, "over {old:?}");
        }
    }
}
