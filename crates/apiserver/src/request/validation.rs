//! Rules that the options of several verbs share.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::gvk::GroupKind;
use api_machinery::status::ApiError;

/// The longest manager name.
pub(crate) const FIELD_MANAGER_LIMIT_BYTES: usize = 128;

/// `dryRun` may hold `All` only.
pub(crate) fn check_dry_run(errors: &mut ErrorList, dry_run: &[String]) {
    if dry_run.iter().any(|value| value != "All") {
        errors.push(Path::new("dryRun").not_supported(BadValue::list(dry_run), &["All"]));
    }
}

/// `fieldValidation` is one of three words.
pub(crate) fn check_field_validation(errors: &mut ErrorList, value: &str) {
    if !matches!(value, "" | "Ignore" | "Warn" | "Strict") {
        errors.push(Path::new("fieldValidation").not_supported(value, &["", "Ignore", "Strict", "Warn"]));
    }
}

/// `fieldManager` is short and printable.
pub(crate) fn check_field_manager(errors: &mut ErrorList, manager: &str) {
    let path = Path::new("fieldManager");
    if manager.len() > FIELD_MANAGER_LIMIT_BYTES {
        errors.push(path.too_long(FIELD_MANAGER_LIMIT_BYTES));
    }
    for (position, bad) in manager.char_indices().filter(|(_, character)| !is_printable(*character)) {
        let detail = format!("invalid character U+{:04X} (at position {position})", u32::from(bad));
        errors.push(path.invalid(manager, detail));
    }
}

/// Whether a character shows as itself.
pub(crate) fn is_printable(character: char) -> bool {
    character == ' ' || !(character.is_control() || character.is_whitespace())
}

/// 422 about options, when anything is wrong with them.
pub(crate) fn refuse_options(kind: &'static str, errors: &ErrorList) -> Result<(), ApiError> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(&GroupKind::new("meta.k8s.io", kind), "", errors))
}
