//! Groups of the Kubernetes community are protected: a definition in one of them says who approved of it.
//! Concept: <https://github.com/kubernetes/enhancements/pull/1111>

use api_types::apiextensions_v1::CustomResourceDefinition;

/// The annotation that groups of the community need.
pub const APPROVED: &str = "api-approved.kubernetes.io";

/// How a definition stands to the approval of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval<'a> {
    /// The group is nobody's but the user's.
    NotNeeded,
    /// There is none.
    Missing,
    /// By whom: a URL.
    Approved(&'a str),
    /// A text that says so.
    Unapproved(&'a str),
    /// Neither.
    Invalid(&'a str),
}

impl<'a> Approval<'a> {
    /// Reads the annotation.
    #[must_use]
    pub fn of(definition: &'a CustomResourceDefinition) -> Self {
        let group = definition.spec.group.as_str();
        let is_protected = ["k8s.io", "kubernetes.io"]
            .into_iter()
            .any(|own| group.strip_suffix(own).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')));
        match definition.metadata.annotations.get(APPROVED).map(String::as_str) {
            _ if !is_protected => Self::NotNeeded,
            None | Some("") => Self::Missing,
            Some(text) if text.starts_with("unapproved") => Self::Unapproved(text),
            Some(text) if is_url(text) => Self::Approved(text),
            Some(text) => Self::Invalid(text),
        }
    }

    /// The text for people.
    #[must_use]
    pub fn message(&self) -> String {
        const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";
        match self {
            Self::NotNeeded => String::new(),
            Self::Missing => format!("protected groups must have approval annotation {APPROVED:?}, {SEE}"),
            Self::Approved(url) => format!("approved in {url}"),
            Self::Unapproved(text) => format!("not approved: {text:?}"),
            Self::Invalid(_) => format!(
                "protected groups must have approval annotation {APPROVED:?} with either a URL or a reason starting with \
                 \"unapproved\", {SEE}"
            ),
        }
    }
}

/// Whether a text is a URL with a scheme and a host.
fn is_url(text: &str) -> bool {
    text.split_once("://")
        .is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty() && !rest.starts_with('/'))
}
