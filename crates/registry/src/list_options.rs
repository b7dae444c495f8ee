//! The combinations of list options that make sense, and what a watch means by none.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::gvk::GroupKind;
use api_machinery::meta::ListOptions;
use api_machinery::meta::constants::resource_version_match::{EXACT, NOT_OLDER_THAN};
use api_machinery::status::ApiError;
use feature_gates::{Feature, Gates};

/// A watch may begin with the objects there are, and say when it has told of them all (KEP-3157).
pub const WATCH_LIST: Feature = Feature::named("WatchList");
/// Lists of a revision that is over are answered by caches that still know it (KEP-4988).
pub const LIST_FROM_SNAPSHOT: Feature = Feature::named("ListFromCacheSnapshot");

/// What options are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// A list, or the list of a deletecollection.
    List,
    /// A watch.
    Watch,
}

/// Sets what a watch without options means: the objects there are, then their changes.
pub fn default_list_options(options: &mut ListOptions, reading: Reading, gates: &Gates) {
    if !gates.enabled(WATCH_LIST) {
        return;
    }
    let unset = options.send_initial_events.is_none() && options.resource_version_match.is_empty();
    if reading == Reading::Watch && unset && matches!(options.resource_version.as_str(), "" | "0") {
        options.send_initial_events = Some(true);
        options.resource_version_match = NOT_OLDER_THAN.to_owned();
    }
}

/// Refuses combinations that make no sense.
///
/// # Errors
/// 422 with every problem.
pub fn validate_list_options(options: &ListOptions, reading: Reading, gates: &Gates) -> Result<(), ApiError> {
    let mut errors = ErrorList::new();
    match reading {
        Reading::List => check_list(options, &mut errors),
        Reading::Watch => check_watch(options, gates, &mut errors),
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(&GroupKind::new("meta.k8s.io", "ListOptions"), "", &errors))
}

fn check_list(options: &ListOptions, errors: &mut ErrorList) {
    let path = Path::new("resourceVersionMatch");
    let wanted = options.resource_version_match.as_str();
    if !wanted.is_empty() {
        if options.resource_version.is_empty() {
            errors.push(path.forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided"));
        }
        if !options.continue_.is_empty() {
            errors.push(path.forbidden("resourceVersionMatch is forbidden when continue is provided"));
        }
        if !matches!(wanted, EXACT | NOT_OLDER_THAN) {
            errors.push(path.not_supported_in_order(wanted, &[EXACT, NOT_OLDER_THAN, ""]));
        }
        if wanted == EXACT && options.resource_version == "0" {
            let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.push(path.forbidden(detail));
        }
    }
    if options.send_initial_events.is_some() {
        errors.push(Path::new("sendInitialEvents").forbidden("sendInitialEvents is forbidden for list"));
    }
}

fn check_watch(options: &ListOptions, gates: &Gates, errors: &mut ErrorList) {
    let path = Path::new("resourceVersionMatch");
    let wanted = options.resource_version_match.as_str();
    if options.send_initial_events.is_some() {
        if wanted != NOT_OLDER_THAN {
            errors.push(path.forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
        }
        if !gates.enabled(WATCH_LIST) {
            let detail = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
            errors.push(Path::new("sendInitialEvents").forbidden(detail));
        }
    } else if !wanted.is_empty() {
        errors.push(path.forbidden("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"));
    }
    if !wanted.is_empty() {
        if wanted != NOT_OLDER_THAN {
            errors.push(path.not_supported(wanted, &[NOT_OLDER_THAN]));
        }
        if !options.continue_.is_empty() {
            errors.push(path.forbidden("resourceVersionMatch is forbidden when continue is provided"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combinations_are_judged_as_upstream_judges_them() {
        let options = |version: &str, wanted: &str, continue_: &str, initial: Option<bool>| ListOptions {
            resource_version: version.into(),
            resource_version_match: wanted.into(),
            continue_: continue_.into(),
            send_initial_events: initial,
            ..ListOptions::default()
        };
        let cases = [
            (Reading::List, options("", "", "", None), ""),
            (Reading::List, options("5", EXACT, "", None), ""),
            (Reading::List, options("", EXACT, "", None), "is forbidden unless resourceVersion is provided"),
            (Reading::List, options("5", EXACT, "x", None), "is forbidden when continue is provided"),
            (Reading::List, options("5", "Nearby", "", None), r#"supported values: "Exact", "NotOlderThan", """#),
            (Reading::List, options("0", EXACT, "", None), r#""exact" is forbidden for resourceVersion "0""#),
            (Reading::List, options("", "", "", Some(false)), "sendInitialEvents is forbidden for list"),
            (Reading::Watch, options("", NOT_OLDER_THAN, "", Some(true)), ""),
            (Reading::Watch, options("", "", "", Some(true)), "requires setting resourceVersionMatch to NotOlderThan"),
            (Reading::Watch, options("5", NOT_OLDER_THAN, "", None), "unless sendInitialEvents is provided"),
        ];
        let gates = Gates::default();
        for (reading, options, expected) in cases {
            match validate_list_options(&options, reading, &gates) {
                Ok(()) => assert_eq!(expected, "", "{options:?}"),
                Err(error) => assert!(!expected.is_empty() && error.message.contains(expected), "{}", error.message),
            }
        }
    }

    #[test]
    fn no_watch_asks_for_what_is_there_without_the_gate() {
        let off = Gates::default().with(WATCH_LIST, false);
        for initial in [true, false] {
            let version = NOT_OLDER_THAN.to_owned();
            let options = ListOptions {
                resource_version_match: version,
                send_initial_events: Some(initial),
                ..ListOptions::default()
            };
            let error = validate_list_options(&options, Reading::Watch, &off).unwrap_err();
            let expected = "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is \
                            forbidden for watch unless the WatchList feature gate is enabled";
            assert_eq!(error.message, expected);
        }
        let mut bare = ListOptions::default();
        default_list_options(&mut bare, Reading::Watch, &off);
        assert_eq!((bare.send_initial_events, bare.resource_version_match.as_str()), (None, ""));
        assert!(validate_list_options(&bare, Reading::Watch, &off).is_ok());
    }

    #[test]
    fn a_bare_watch_starts_with_what_is_there() {
        let (mut bare, gates) = (ListOptions::default(), Gates::default());
        default_list_options(&mut bare, Reading::Watch, &gates);
        assert_eq!((bare.send_initial_events, bare.resource_version_match.as_str()), (Some(true), NOT_OLDER_THAN));
        let mut at = ListOptions { resource_version: "7".into(), ..ListOptions::default() };
        default_list_options(&mut at, Reading::Watch, &gates);
        assert_eq!(at.send_initial_events, None);
    }
}
