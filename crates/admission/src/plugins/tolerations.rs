//! Two lists of tolerations made one, without those that another one covers.

use api_types::core_v1::Toleration;

/// The first list and then the second, each toleration once and none that another one covers.
pub(super) fn merged(first: &[Toleration], second: &[Toleration]) -> Vec<Toleration> {
    let all: Vec<&Toleration> = first.iter().chain(second).collect();
    let mut kept: Vec<Toleration> = Vec::new();
    for (index, toleration) in all.iter().enumerate() {
        let by_former = kept.iter().any(|former| covers(former, toleration));
        let later = all.iter().skip(index + 1);
        let by_later = later.into_iter().any(|later| later != toleration && covers(later, toleration));
        if !by_former && !by_later {
            kept.push((*toleration).clone());
        }
    }
    kept
}

/// Whether whatever the second tolerates is tolerated by the first, too.
pub(super) fn covers(wide: &Toleration, narrow: &Toleration) -> bool {
    if wide == narrow {
        return true;
    }
    let any_key = wide.key.is_empty() && wide.operator == "Exists";
    let lasts = |seconds: i64| narrow.toleration_seconds.is_some_and(|own| own <= seconds);
    let in_time = wide.effect != "NoExecute" || wide.toleration_seconds.is_none_or(lasts);
    let value = match wide.operator.as_str() {
        "" | "Equal" => narrow.operator == "Equal" && wide.value == narrow.value,
        operator => operator == "Exists",
    };
    (any_key || wide.key == narrow.key) && (wide.effect.is_empty() || wide.effect == narrow.effect) && in_time && value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<Toleration> {
        let mut spec = api_types::core_v1::PodSpec::default();
        let document = format!(r#"{{"tolerations": {text}}}"#);
        api_machinery::json::decode(document.as_bytes(), &mut spec).unwrap();
        spec.tolerations
    }

    #[test]
    fn what_is_covered_goes() {
        let (exists, equal) = (r#"{"key": "a", "operator": "Exists"}"#, r#"{"key": "a", "operator": "Equal"}"#);
        let short = r#"{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}"#;
        let long = r#"{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9}"#;
        let (other, all) = (r#"{"key": "b", "operator": "Exists"}"#, r#"{"operator": "Exists"}"#);
        for (first, second, expected) in [
            (vec![exists], vec![exists], vec![exists]),
            (vec![exists], vec![equal, other], vec![exists, other]),
            (vec![equal, other], vec![exists], vec![other, exists]),
            (vec![short], vec![long], vec![long]),
            (vec![long], vec![short], vec![long]),
            (vec![equal, other], vec![all], vec![all]),
            (vec![], vec![other, exists], vec![other, exists]),
        ] {
            let read = |items: &[&str]| list(&format!("[{}]", items.join(",")));
            assert_eq!(merged(&read(&first), &read(&second)), read(&expected), "{first:?} {second:?}");
        }
    }
}
