//! Label selectors as they stand in objects.

use api_machinery::labels::{Selector, SelectorError};
use api_machinery::meta::LabelSelector;

/// The selector of a field that may be absent: absent matches nothing, empty matches everything.
///
/// # Errors
/// When an expression has an unknown operator or bad values.
pub fn selector_of(field: Option<&LabelSelector>) -> Result<Selector, SelectorError> {
    let Some(field) = field else { return Ok(Selector::nothing()) };
    let expressions = field
        .match_expressions
        .iter()
        .map(|expression| (expression.key.as_str(), expression.operator.as_str(), expression.values.as_slice()));
    Selector::from_parts(&field.match_labels, expressions)
}
