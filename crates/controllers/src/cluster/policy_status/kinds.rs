//! The kinds that a policy names: rules that could mean any are not looked at.

use std::collections::BTreeSet;

use api_machinery::gvk::GroupVersionKind;
use api_types::admissionregistration_v1::ValidatingAdmissionPolicy;
use client::Discovered;

/// Once a rule has given so many kinds, nothing more is looked for.
const MAX_KINDS: usize = 10;
const ANY: &str = "*";

/// The kinds, each once, by group, version and kind; and whether each resource that is named is one that is known.
pub(super) fn of(policy: &ValidatingAdmissionPolicy, served: &Discovered) -> (Vec<GroupVersionKind>, bool) {
    let (mut all, mut all_known) = (BTreeSet::new(), true);
    let constraints = policy.spec.match_constraints.iter();
    for named in constraints.flat_map(|own| &own.resource_rules) {
        let rule = &named.rule.rule;
        if [&rule.api_groups, &rule.api_versions].into_iter().flatten().any(|name| name == ANY) {
            continue;
        }
        let mut of_rule = BTreeSet::new();
        for [group, version, resource] in places(&rule.api_groups, &rule.api_versions, &rule.resources) {
            let named = served.resources.iter().find(|own| {
                let own = &own.info.resource;
                &*own.group == group && &*own.version == version && &*own.resource == resource
            });
            let Some(found) = named else {
                all_known = false;
                continue;
            };
            let kind = found.info.gvk();
            of_rule.insert((kind.group.to_string(), kind.version.to_string(), kind.kind.to_string()));
            if of_rule.len() == MAX_KINDS {
                break;
            }
        }
        let is_full = of_rule.len() == MAX_KINDS;
        all.extend(of_rule);
        if is_full {
            break;
        }
    }
    let kind = |(group, version, kind): (String, String, String)| GroupVersionKind {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
    };
    (all.into_iter().map(kind).collect(), all_known)
}

/// Every group with every version and every resource, in their order, without those that could mean several.
fn places<'r>(groups: &'r [String], versions: &'r [String], resources: &'r [String]) -> Vec<[&'r str; 3]> {
    let sorted = |names: &'r [String]| names.iter().map(String::as_str).collect::<BTreeSet<&str>>();
    let plain: BTreeSet<&str> = sorted(resources).into_iter().filter(|own| !own.contains(['*', '/'])).collect();
    let mut places = Vec::new();
    for group in sorted(groups) {
        for version in sorted(versions) {
            places.extend(plain.iter().map(|resource| [group, version, *resource]));
        }
    }
    places
}
