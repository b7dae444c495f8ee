//! The options of create, update and patch.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::status::ApiError;

use super::decode::Strictness;
use super::query::Query;
use super::validation::{
    FIELD_MANAGER_LIMIT_BYTES, check_dry_run, check_field_manager, check_field_validation, is_printable, refuse_options,
};

/// What kind of patch it is, as far as options go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchKind {
    /// An apply.
    Apply,
    /// Any other.
    Other,
}

/// The options of a write, read and checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    /// The manager's name, never empty.
    pub(crate) manager: String,
    pub(crate) strictness: Strictness,
    /// Whether an apply takes fields over.
    pub(crate) force: bool,
}

impl WriteOptions {
    /// Reads the options of a create or an update; `kind` is `CreateOptions` or `UpdateOptions`.
    ///
    /// # Errors
    /// 422.
    pub(crate) fn of_write(kind: &'static str, query: &Query, user_agent: &str) -> Result<Self, ApiError> {
        let mut errors = ErrorList::default();
        let options = Self::read(query, user_agent, &mut errors);
        refuse_options(kind, &errors)?;
        Ok(options)
    }

    /// Reads the options of a patch.
    ///
    /// # Errors
    /// 422.
    pub(crate) fn of_patch(patch: PatchKind, query: &Query, user_agent: &str) -> Result<Self, ApiError> {
        let mut errors = ErrorList::default();
        let force = query.switch("force");
        match patch {
            PatchKind::Apply if query.text("fieldManager").is_empty() => {
                errors.push(Path::new("fieldManager").required("is required for apply patch"));
            }
            PatchKind::Other if force.is_some() => {
                errors.push(Path::new("force").forbidden("may not be specified for non-apply patch"));
            }
            _ => {}
        }
        let options = Self { force: force == Some(true), ..Self::read(query, user_agent, &mut errors) };
        refuse_options("PatchOptions", &errors)?;
        Ok(options)
    }

    fn read(query: &Query, user_agent: &str, errors: &mut ErrorList) -> Self {
        let manager = query.text("fieldManager");
        let dry_run: Vec<String> = query.all("dryRun").map(str::to_owned).collect();
        let validation = query.text("fieldValidation");
        check_field_manager(errors, &manager);
        check_dry_run(errors, &dry_run);
        check_field_validation(errors, &validation);
        Self {
            dry_run: !dry_run.is_empty(),
            manager: if manager.is_empty() { manager_of(user_agent) } else { manager },
            strictness: Strictness::of(&validation),
            force: false,
        }
    }
}

/// The manager's name of a client that gives none: the first word of its user agent.
fn manager_of(user_agent: &str) -> String {
    let mut name = String::new();
    let word = user_agent.split('/').next().unwrap_or_default();
    for character in word.chars().filter(|character| is_printable(*character)) {
        if name.len() + character.len_utf8() > FIELD_MANAGER_LIMIT_BYTES {
            break;
        }
        name.push(character);
    }
    if name.is_empty() { "unknown".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_checked() {
        let write = |query: &str| {
            let read = WriteOptions::of_write("CreateOptions", &Query::parse(query), "kubectl/v1.36 (linux)");
            read.map_err(|error| (error.code, error.message))
        };
        let plain = write("").unwrap();
        assert_eq!((plain.manager.as_str(), plain.dry_run, plain.strictness), ("kubectl", false, Strictness::Warn));
        let full = write("dryRun=All&fieldManager=me&fieldValidation=Strict").unwrap();
        assert_eq!((full.manager.as_str(), full.dry_run, full.strictness), ("me", true, Strictness::Strict));
        let (code, message) = write("dryRun=Some&fieldValidation=Maybe").unwrap_err();
        assert_eq!(code, 422);
        assert!(
            message.starts_with("CreateOptions.meta.k8s.io \"\" is invalid: [dryRun: Unsupported value: [\"Some\"]: "),
            "{message}"
        );
        let (_, message) = write("fieldManager=a%07").unwrap_err();
        assert!(message.contains("invalid character U+0007 (at position 1)"), "{message}");
    }

    #[test]
    fn apply_needs_a_manager_and_only_apply_forces() {
        let patch =
            |kind, query: &str| WriteOptions::of_patch(kind, &Query::parse(query), "").map_err(|error| error.message);
        assert!(
            patch(PatchKind::Apply, "")
                .unwrap_err()
                .ends_with("fieldManager: Required value: is required for apply patch")
        );
        assert!(patch(PatchKind::Apply, "fieldManager=a&force=true").unwrap().force);
        assert!(
            patch(PatchKind::Other, "force=false").unwrap_err().contains("may not be specified for non-apply patch")
        );
        assert_eq!(patch(PatchKind::Other, "").unwrap().manager, "unknown");
    }
}
