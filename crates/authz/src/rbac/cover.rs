//! Whether one set of rules covers another, rule by atomic rule.

use api_types::rbac_v1::PolicyRule;

use super::rules::url_matches;

/// The rule as atomic ones: one group, resource, verb and name each.
#[must_use]
pub fn break_down(rule: &PolicyRule) -> Vec<PolicyRule> {
    let mut atoms = Vec::new();
    for verb in &rule.verbs {
        let with_verb = PolicyRule { verbs: vec![verb.clone()], ..PolicyRule::default() };
        for (group, resource) in
            rule.api_groups.iter().flat_map(|group| rule.resources.iter().map(move |resource| (group, resource)))
        {
            let atom =
                PolicyRule { api_groups: vec![group.clone()], resources: vec![resource.clone()], ..with_verb.clone() };
            if rule.resource_names.is_empty() {
                atoms.push(atom);
                continue;
            }
            for name in &rule.resource_names {
                atoms.push(PolicyRule { resource_names: vec![name.clone()], ..atom.clone() });
            }
        }
        for url in &rule.non_resource_urls {
            atoms.push(PolicyRule { non_resource_urls: vec![url.clone()], ..with_verb.clone() });
        }
    }
    atoms
}

/// The atomic rules of `wanted` that nothing in `owned` covers.
#[must_use]
pub fn covers(owned: &[PolicyRule], wanted: &[PolicyRule]) -> Vec<PolicyRule> {
    wanted.iter().flat_map(break_down).filter(|atom| !owned.iter().any(|rule| covers_atom(rule, atom))).collect()
}

fn covers_atom(rule: &PolicyRule, atom: &PolicyRule) -> bool {
    let all = |own: &[String], wanted: &[String]| {
        own.iter().any(|value| value == "*") || wanted.iter().all(|value| own.contains(value))
    };
    if !all(&rule.verbs, &atom.verbs) {
        return false;
    }
    if let [url] = atom.non_resource_urls.as_slice() {
        return rule.non_resource_urls.iter().any(|own| url_matches(own, url));
    }
    let names = if atom.resource_names.is_empty() {
        rule.resource_names.is_empty()
    } else {
        rule.resource_names.is_empty() || atom.resource_names.iter().all(|name| rule.resource_names.contains(name))
    };
    all(&rule.api_groups, &atom.api_groups) && names && atom.resources.iter().all(|wanted| has_resource(rule, wanted))
}

fn has_resource(rule: &PolicyRule, wanted: &str) -> bool {
    let under_any = wanted.split_once('/').map(|(_, sub)| format!("*/{sub}"));
    rule.resources.iter().any(|own| own == "*" || own == wanted || Some(own) == under_any.as_ref())
}

/// Whether the rules give everything on everything and every path.
#[must_use]
pub fn is_cluster_admin(owned: &[PolicyRule]) -> bool {
    let star = || vec!["*".to_owned()];
    let everything = [
        PolicyRule { verbs: star(), api_groups: star(), resources: star(), ..PolicyRule::default() },
        PolicyRule { verbs: star(), non_resource_urls: star(), ..PolicyRule::default() },
    ];
    covers(owned, &everything).is_empty()
}
