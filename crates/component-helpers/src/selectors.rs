//! Label selectors as they stand in objects.

use api_machinery::labels::{Selector, SelectorError};
use api_machinery::meta::LabelSelector;

/// The selector of a field that may be absent: absent matches nothing, empty matches everything.
///
/// # Errors
/// When an expression has an unknown operator or bad values.
pub fn selector_of(field: Option<&LabelSelector>) -> Result<Selector, SelectorError> {
    let Some(field) = field else { return Ok(Selector::nothing()) };
    Selector::from_label_selector(field)
}
