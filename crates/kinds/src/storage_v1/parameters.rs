//! Parameters that a class hands to its driver.

use std::collections::BTreeMap;

use api_machinery::field_path::{ErrorList, Path};

const MAX_PARAMETERS: usize = 512;
const MAX_BYTES: usize = 256 * 1024;

/// Checks parameters; says whether there are so few that it looked at each.
pub(super) fn validate(parameters: &BTreeMap<String, String>, errors: &mut ErrorList) -> bool {
    let path = Path::new("parameters");
    if parameters.len() > MAX_PARAMETERS {
        // Upstream speaks of bytes here, too.
        errors.push(path.too_long(MAX_PARAMETERS));
        return false;
    }
    if parameters.contains_key("") {
        errors.push(path.invalid("", "field can not be empty."));
    }
    if parameters.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>() > MAX_BYTES {
        errors.push(path.too_long(MAX_BYTES));
    }
    true
}
