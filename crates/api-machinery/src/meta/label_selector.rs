//! LabelSelector and what it is made of.

use std::collections::BTreeMap;

use api_derive::api;

/// Selects objects by labels. All parts must match, and empty matches everything.
#[api(atomic)]
pub struct LabelSelector {
    /// Labels that must be present with exactly these values.
    #[field(1)]
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements on labels, all of which must hold.
    #[field(2)]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// One requirement on a label key.
#[api]
pub struct LabelSelectorRequirement {
    /// Label key the requirement looks at.
    #[field(1, always, required)]
    pub key: String,
    /// How the key relates to values: In, NotIn, Exists or DoesNotExist.
    #[field(2, always, required, go = "v1.LabelSelectorOperator")]
    pub operator: String,
    /// Values for In and NotIn. Must be empty for the other operators.
    #[field(3)]
    pub values: Vec<String>,
}

/// One requirement on a field.
#[api]
pub struct FieldSelectorRequirement {
    /// Field the requirement looks at.
    #[field(1, always, required)]
    pub key: String,
    /// How the key relates to values: In, NotIn, Exists or DoesNotExist.
    #[field(2, always, required, go = "v1.FieldSelectorOperator")]
    pub operator: String,
    /// Values for In and NotIn. Must be empty for the other operators.
    #[field(3)]
    pub values: Vec<String>,
}
