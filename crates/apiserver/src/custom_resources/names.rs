//! Which names of a definition are free, given the names that others of its group have been granted.

use std::collections::BTreeSet;

use api_types::apiextensions_v1::CustomResourceDefinitionNames;

/// A conflict: reason and message.
pub(super) type Conflict = (&'static str, String);

/// The names that may be used, and the first conflict. Names that are free are granted even if others are not; those
/// that are not free stay as they were granted before.
pub(super) fn grant(
    wanted: &CustomResourceDefinitionNames,
    granted: &CustomResourceDefinitionNames,
    others: &[&CustomResourceDefinitionNames],
) -> (CustomResourceDefinitionNames, Option<Conflict>) {
    let mut resources = BTreeSet::new();
    let mut kinds = BTreeSet::new();
    for other in others {
        resources.extend([other.plural.as_str(), other.singular.as_str()]);
        resources.extend(other.short_names.iter().map(String::as_str));
        kinds.extend([other.kind.as_str(), other.list_kind.as_str()]);
    }
    resources.remove("");
    kinds.remove("");
    let mut accepted = granted.clone();
    let mut conflict: Option<Conflict> = None;
    let mut check = |free: bool, reason: &'static str, name: &str| {
        // The last one is told.
        if !free {
            conflict = Some((reason, format!("{name:?} is already in use")));
        }
        free
    };
    if check(!resources.contains(wanted.plural.as_str()), "PluralConflict", &wanted.plural) {
        accepted.plural.clone_from(&wanted.plural);
    }
    if check(!resources.contains(wanted.singular.as_str()), "SingularConflict", &wanted.singular) {
        accepted.singular.clone_from(&wanted.singular);
    }
    let taken = wanted.short_names.iter().find(|name| resources.contains(name.as_str()));
    if check(taken.is_none(), "ShortNamesConflict", taken.map_or("", String::as_str)) {
        accepted.short_names.clone_from(&wanted.short_names);
    }
    if check(!kinds.contains(wanted.kind.as_str()), "KindConflict", &wanted.kind) {
        accepted.kind.clone_from(&wanted.kind);
    }
    if check(!kinds.contains(wanted.list_kind.as_str()), "ListKindConflict", &wanted.list_kind) {
        accepted.list_kind.clone_from(&wanted.list_kind);
    }
    accepted.categories.clone_from(&wanted.categories);
    (accepted, conflict)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(plural: &str, kind: &str, short: &[&str]) -> CustomResourceDefinitionNames {
        CustomResourceDefinitionNames {
            plural: plural.into(),
            singular: kind.to_lowercase(),
            short_names: short.iter().map(|&name| name.into()).collect(),
            kind: kind.into(),
            list_kind: format!("{kind}List"),
            categories: Vec::new(),
        }
    }

    #[test]
    fn free_names_are_granted_and_taken_ones_are_not() {
        let none = CustomResourceDefinitionNames::default();
        let wanted = names("apples", "Apple", &["ap"]);
        assert_eq!(grant(&wanted, &none, &[]), (wanted.clone(), None));
        let (accepted, conflict) = grant(&wanted, &none, &[&names("pears", "Pear", &["ap"])]);
        assert_eq!(conflict, Some(("ShortNamesConflict", "\"ap\" is already in use".to_owned())));
        assert_eq!((accepted.plural.as_str(), accepted.short_names.len()), ("apples", 0));
        let (accepted, conflict) = grant(&wanted, &none, &[&names("pomes", "Apple", &[])]);
        assert_eq!(conflict.map(|(reason, _)| reason), Some("ListKindConflict"), "the last one is told");
        assert_eq!(accepted.kind, "");
    }
}
