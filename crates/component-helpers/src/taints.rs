//! Taints and what tolerates them.

use api_types::core_v1::{Taint, Toleration};

/// Whether the toleration covers the taint. An empty effect or key covers any; `Exists` covers any value.
#[must_use]
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.is_empty() || toleration.effect == taint.effect;
    let key = toleration.key.is_empty() || toleration.key == taint.key;
    effect
        && key
        && match toleration.operator.as_str() {
            "" | "Equal" => toleration.value == taint.value,
            "Exists" => true,
            // `Lt` and `Gt` sit behind TaintTolerationComparisonOperators, which is off.
            _ => false,
        }
}

/// Whether any of the tolerations covers the taint.
#[must_use]
pub fn any_tolerates(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|toleration| tolerates(toleration, taint))
}

/// The first taint with one of the effects that nothing covers.
#[must_use]
pub fn first_untolerated<'a>(taints: &'a [Taint], tolerations: &[Toleration], effects: &[&str]) -> Option<&'a Taint> {
    taints.iter().find(|taint| effects.contains(&taint.effect.as_str()) && !any_tolerates(tolerations, taint))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toleration(key: &str, operator: &str, value: &str, effect: &str) -> Toleration {
        Toleration {
            key: key.into(),
            operator: operator.into(),
            value: value.into(),
            effect: effect.into(),
            toleration_seconds: None,
        }
    }

    #[test]
    fn coverage() {
        let taint = Taint { key: "k".into(), value: "v".into(), effect: "NoSchedule".into(), ..Taint::default() };
        for (toleration, expected) in [
            (toleration("k", "", "v", ""), true),
            (toleration("k", "Equal", "w", ""), false),
            (toleration("k", "Exists", "", "NoSchedule"), true),
            (toleration("k", "Exists", "", "NoExecute"), false),
            (toleration("", "Exists", "", ""), true),
            (toleration("k", "Gt", "v", ""), false),
        ] {
            assert_eq!(tolerates(&toleration, &taint), expected, "{toleration:?}");
        }
    }
}
