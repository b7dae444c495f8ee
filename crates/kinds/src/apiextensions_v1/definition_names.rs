//! What a definition may call its group, its resource and its kind.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names::{dns1035_label, dns1123_subdomain};
use api_types::apiextensions_v1::CustomResourceDefinitionNames;

/// The first thing that is wrong with a group.
pub(super) fn check_group(group: &str, at: &Path, errors: &mut ErrorList) {
    let problems = dns1123_subdomain(group);
    if group.is_empty() {
        errors.push(at.required(""));
    } else if !problems.is_empty() {
        errors.push(at.invalid(group, problems.join(",")));
    } else if !group.contains('.') {
        errors.push(at.invalid(group, "should be a domain with at least one dot"));
    }
}

/// Names that a definition must have. Those that are accepted may still be empty.
pub(super) fn check_present(names: &CustomResourceDefinitionNames, at: &Path, errors: &mut ErrorList) {
    for (member, value) in [
        ("plural", &names.plural),
        ("singular", &names.singular),
        ("kind", &names.kind),
        ("listKind", &names.list_kind),
    ] {
        crate::field_rules::required(&at.child(member), value, errors);
    }
}

/// What is wrong with the names that there are, wanted or accepted.
pub(super) fn check(names: &CustomResourceDefinitionNames, at: &Path, errors: &mut ErrorList) {
    for (member, value) in [("plural", &names.plural), ("singular", &names.singular)] {
        check_label(&at.child(member), value, errors);
    }
    for (member, value) in [("kind", &names.kind), ("listKind", &names.list_kind)] {
        let problems = dns1035_label(&value.to_lowercase());
        if !value.is_empty() && !problems.is_empty() {
            let detail = format!("may have mixed case, but should otherwise match: {}", problems.join(","));
            errors.push(at.child(member).invalid(value, detail));
        }
    }
    for (index, value) in names.short_names.iter().enumerate() {
        check_item(&at.child("shortNames").index(index), value, errors);
    }
    if !names.kind.is_empty() && names.kind == names.list_kind {
        errors.push(at.child("listKind").invalid(&names.list_kind, "kind and listKind may not be the same"));
    }
    for (index, value) in names.categories.iter().enumerate() {
        check_item(&at.child("categories").index(index), value, errors);
    }
}

/// A DNS label that begins with a letter; all that is wrong with it is one error.
pub(super) fn check_label(at: &Path, value: &str, errors: &mut ErrorList) {
    if !value.is_empty() {
        check_item(at, value, errors);
    }
}

/// The same for an item of a list, which may not be empty.
fn check_item(at: &Path, value: &str, errors: &mut ErrorList) {
    let problems = dns1035_label(value);
    if !problems.is_empty() {
        errors.push(at.invalid(value, problems.join(",")));
    }
}
