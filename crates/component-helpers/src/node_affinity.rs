//! Which nodes a pod accepts: its node selector and its required node affinity.

use std::collections::BTreeMap;

use api_types::core_v1::{Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod};

/// Whether the pod's node selector and required node affinity accept the node.
#[must_use]
pub fn accepts(pod: &Pod, node: &Node) -> bool {
    let labels = &node.metadata.labels;
    let selected = pod.spec.node_selector.iter().all(|(key, value)| labels.get(key) == Some(value));
    let required = pod
        .spec
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.node_affinity.as_ref())
        .and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    selected && required.is_none_or(|selector| selector_matches(selector, labels, &node.metadata.name))
}

/// Whether any term of the selector matches; a selector without usable terms matches nothing.
#[must_use]
pub fn selector_matches(selector: &NodeSelector, labels: &BTreeMap<String, String>, name: &str) -> bool {
    selector.node_selector_terms.iter().any(|term| term_matches(term, labels, name))
}

/// Whether all parts of the term match; an empty term matches nothing.
#[must_use]
pub fn term_matches(term: &NodeSelectorTerm, labels: &BTreeMap<String, String>, name: &str) -> bool {
    if term.match_expressions.is_empty() && term.match_fields.is_empty() {
        return false;
    }
    let field = |part: &NodeSelectorRequirement| part.key == "metadata.name" && requirement_matches(part, Some(name));
    term.match_expressions.iter().all(|part| requirement_matches(part, labels.get(&part.key).map(String::as_str)))
        && term.match_fields.iter().all(field)
}

/// Whether a value, or its absence, meets a requirement.
#[must_use]
pub fn requirement_matches(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let listed = |value: &str| requirement.values.iter().any(|wanted| wanted == value);
    let number = || {
        let wanted = requirement.values.first()?.parse::<i64>().ok()?;
        Some((value?.parse::<i64>().ok()?, wanted))
    };
    match requirement.operator.as_str() {
        "In" => value.is_some_and(listed),
        "NotIn" => !value.is_some_and(listed),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => number().is_some_and(|(value, wanted)| value > wanted),
        "Lt" => number().is_some_and(|(value, wanted)| value < wanted),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators() {
        for (operator, values, value, expected) in [
            ("In", vec!["a", "b"], Some("b"), true),
            ("In", vec!["a"], None, false),
            ("NotIn", vec!["a"], None, true),
            ("NotIn", vec!["a"], Some("a"), false),
            ("Exists", vec![], Some(""), true),
            ("DoesNotExist", vec![], None, true),
            ("Gt", vec!["5"], Some("6"), true),
            ("Gt", vec!["5"], Some("x"), false),
            ("Lt", vec!["5"], Some("5"), false),
            ("Near", vec!["5"], Some("5"), false),
        ] {
            let requirement = NodeSelectorRequirement {
                key: "k".into(),
                operator: operator.into(),
                values: values.into_iter().map(str::to_owned).collect(),
            };
            assert_eq!(requirement_matches(&requirement, value), expected, "{requirement:?} {value:?}");
        }
    }

    #[test]
    fn empty_terms_match_nothing() {
        assert!(!term_matches(&NodeSelectorTerm::default(), &BTreeMap::new(), "n"));
        assert!(accepts(&Pod::default(), &Node::default()));
    }
}
