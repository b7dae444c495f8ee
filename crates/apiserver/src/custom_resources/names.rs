//! Which names of a definition are free, given the names that others of its group have been granted.

use api_types::apiextensions_v1::CustomResourceDefinitionNames;

use super::known::NameKind;

/// A conflict: reason and message.
pub(super) type Conflict = (&'static str, String);

/// The names that may be used, and the last conflict. Names that are free are granted even if others are not; those
/// that are not free stay as they were granted before.
pub(super) fn grant(
    wanted: &CustomResourceDefinitionNames,
    granted: &CustomResourceDefinitionNames,
    is_taken: impl Fn(NameKind, &str) -> bool,
) -> (CustomResourceDefinitionNames, Option<Conflict>) {
    let is_free = |name: &str| !is_taken(NameKind::Resource, name);
    let is_free_kind = |name: &str| !is_taken(NameKind::Kind, name);
    let mut accepted = granted.clone();
    let mut conflict: Option<Conflict> = None;
    let in_use = |name: &str| format!("{name:?} is already in use");
    // The last one is told.
    let check = |conflict: &mut Option<Conflict>, free: bool, reason: &'static str, (name, to): (&str, &mut String)| {
        if free {
            name.clone_into(to);
        } else {
            *conflict = Some((reason, in_use(name)));
        }
    };
    let (plural, singular) = (wanted.plural.as_str(), wanted.singular.as_str());
    check(&mut conflict, is_free(plural), "PluralConflict", (plural, &mut accepted.plural));
    check(&mut conflict, is_free(singular), "SingularConflict", (singular, &mut accepted.singular));
    let taken: Vec<String> = wanted.short_names.iter().filter(|name| !is_free(name)).map(|name| in_use(name)).collect();
    match taken.as_slice() {
        [] => accepted.short_names.clone_from(&wanted.short_names),
        [only] => conflict = Some(("ShortNamesConflict", only.clone())),
        several => conflict = Some(("ShortNamesConflict", format!("[{}]", several.join(", ")))),
    }
    let (kind, list_kind) = (wanted.kind.as_str(), wanted.list_kind.as_str());
    check(&mut conflict, is_free_kind(kind), "KindConflict", (kind, &mut accepted.kind));
    check(&mut conflict, is_free_kind(list_kind), "ListKindConflict", (list_kind, &mut accepted.list_kind));
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
        assert_eq!(grant(&wanted, &none, |_, _| false), (wanted.clone(), None));
        let (accepted, conflict) = grant(&wanted, &none, |kind, name| kind == NameKind::Resource && name == "ap");
        assert_eq!(conflict, Some(("ShortNamesConflict", "\"ap\" is already in use".to_owned())));
        assert_eq!((accepted.plural.as_str(), accepted.short_names.len()), ("apples", 0));
        let (accepted, conflict) = grant(&wanted, &none, |kind, _| kind == NameKind::Kind);
        assert_eq!(conflict.map(|(reason, _)| reason), Some("ListKindConflict"), "the last one is told");
        assert_eq!(accepted.kind, "");
    }
}
