//! What admission plugins have to say beside their verdict.

use crate::warnings::Warnings;

/// Hands it on to the client and the audit log, whatever became of the request.
pub(crate) fn hand_on(attributes: &admission::Attributes, warnings: &Warnings, audit: &audit::Context) {
    for (key, text) in attributes.annotations.take() {
        audit.annotate(&key, &text);
    }
    warnings.extend(attributes.warnings.take());
}
