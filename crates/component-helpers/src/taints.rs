//! Taints and what tolerates them.

use std::cmp::Ordering;

use api_machinery::names;
use api_types::core_v1::{Taint, Toleration};
use feature_gates::Gates;
use feature_gates::shared::COMPARING_TOLERATIONS;

/// How tolerations may compare the values of taints with their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparing {
    /// Whether they are the same.
    Texts,
    /// Also which of two integers is less (KEP-5471).
    Numbers,
}

impl Comparing {
    /// As a process has it.
    #[must_use]
    pub fn by(gates: &Gates) -> Self {
        if gates.enabled(COMPARING_TOLERATIONS) { Self::Numbers } else { Self::Texts }
    }
}

/// Whether the toleration covers the taint. An empty effect or key covers any; `Exists` covers any value.
#[must_use]
pub fn tolerates(toleration: &Toleration, taint: &Taint, comparing: Comparing) -> bool {
    let effect = toleration.effect.is_empty() || toleration.effect == taint.effect;
    let key = toleration.key.is_empty() || toleration.key == taint.key;
    effect
        && key
        && match toleration.operator.as_str() {
            "" | "Equal" => toleration.value == taint.value,
            "Exists" => true,
            "Lt" if comparing == Comparing::Numbers => compare(taint, toleration) == Some(Ordering::Less),
            "Gt" if comparing == Comparing::Numbers => compare(taint, toleration) == Some(Ordering::Greater),
            _ => false,
        }
}

/// How the value of the taint stands to that of the toleration, where both are integers.
fn compare(taint: &Taint, toleration: &Toleration) -> Option<Ordering> {
    Some(integer(&taint.value)?.cmp(&integer(&toleration.value)?))
}

/// An integer, written as it is written in no other way.
fn integer(text: &str) -> Option<i64> {
    if names::decimal_integer(text).is_empty() { text.parse().ok() } else { None }
}

/// Whether any of the tolerations covers the taint.
#[must_use]
pub fn any_tolerates(tolerations: &[Toleration], taint: &Taint, comparing: Comparing) -> bool {
    tolerations.iter().any(|toleration| tolerates(toleration, taint, comparing))
}

/// The first taint with one of the effects that nothing covers.
#[must_use]
pub fn first_untolerated<'a>(
    taints: &'a [Taint],
    tolerations: &[Toleration],
    effects: &[&str],
    comparing: Comparing,
) -> Option<&'a Taint> {
    let untolerated =
        |taint: &&Taint| effects.contains(&taint.effect.as_str()) && !any_tolerates(tolerations, taint, comparing);
    taints.iter().find(untolerated)
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
            for comparing in [Comparing::Texts, Comparing::Numbers] {
                assert_eq!(tolerates(&toleration, &taint, comparing), expected, "{toleration:?}");
            }
        }
    }

    #[test]
    fn integers_are_compared_where_that_is_on() {
        for (operator, own, other, expected) in [
            ("Gt", "950", "951", true),
            ("Gt", "950", "950", false),
            ("Gt", "950", "99", false),
            ("Lt", "950", "99", true),
            ("Lt", "950", "950", false),
            ("Lt", "0", "-5", true),
            ("Gt", "950", "0951", false),
            ("Gt", "950", "99.5", false),
            ("Gt", "950", "", false),
            ("Gt", "0950", "951", false),
            ("Gt", "950", "9223372036854775808", false),
        ] {
            let taint = Taint { key: "k".into(), value: other.into(), effect: "NoSchedule".into(), ..Taint::default() };
            let toleration = toleration("k", operator, own, "");
            assert_eq!(tolerates(&toleration, &taint, Comparing::Numbers), expected, "{other} {operator} {own}");
            assert!(!tolerates(&toleration, &taint, Comparing::Texts), "{other} {operator} {own}, off");
        }
        let on = Gates::default().with(COMPARING_TOLERATIONS, true);
        assert_eq!([Comparing::by(&on), Comparing::by(&Gates::default())], [Comparing::Numbers, Comparing::Texts]);
    }
}
