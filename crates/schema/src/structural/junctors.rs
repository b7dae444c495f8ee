//! `allOf`, `anyOf`, `oneOf` and `not`.

use api_machinery::field_path::{ErrorList, Path};
use serde_json::Value;

use super::Structural;
use super::validate::{place, visit};

pub(super) fn check(path: &Path, value: &Value, schema: &Structural, errors: &mut ErrorList) {
    let rules = &schema.rules;
    let outcomes = |nodes: &[Structural]| -> Vec<ErrorList> {
        nodes
            .iter()
            .map(|node| {
                let mut found = ErrorList::new();
                visit(path, value, None, node, &mut found);
                found
            })
            .collect()
    };
    let text = |rule: &str| format!("\"{}\" {rule}", place(path));
    let mut refuse = |rule: &str, below: ErrorList| {
        errors.push(Path::nil().invalid("", text(rule)));
        errors.extend(below);
    };
    let any_of = outcomes(&rules.any_of);
    if !any_of.is_empty() && !any_of.iter().any(ErrorList::is_empty) {
        refuse("must validate at least one schema (anyOf)", closest(any_of));
    }
    let one_of = outcomes(&rules.one_of);
    match one_of.iter().filter(|outcome| outcome.is_empty()).count() {
        _ if one_of.is_empty() => {}
        1 => {}
        0 => refuse("must validate one and only one schema (oneOf). Found none valid", closest(one_of)),
        several => refuse(
            &format!("must validate one and only one schema (oneOf). Found {several} valid alternatives"),
            ErrorList::new(),
        ),
    }
    let failed: ErrorList = outcomes(&rules.all_of).into_iter().flatten().collect();
    if !failed.is_empty() {
        refuse("must validate all the schemas (allOf)", failed);
    }
    if let Some(not) = &rules.not
        && outcomes(std::slice::from_ref(not)).iter().all(ErrorList::is_empty)
    {
        refuse("must not validate the schema (not)", ErrorList::new());
    }
}

/// The errors of the alternative that failed least.
fn closest(outcomes: Vec<ErrorList>) -> ErrorList {
    outcomes.into_iter().min_by_key(ErrorList::len).unwrap_or_default()
}
