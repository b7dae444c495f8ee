//! Which requests a webhook or a policy is about: operations and resources, namespaces and labels, and the same resource
//! under another name. Written once for both; what is left out (`exclude`) and names of objects are the policies' only.
//! Not here: match conditions, which are expressions.

mod rule;
mod subject;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use api_machinery::labels::{Selector, SelectorError};
use api_machinery::meta::LabelSelector;
use api_machinery::status::ApiError;

pub use rule::{Rule, Scope};
pub use subject::{Known, Subject};

use crate::Served;

/// Whether a resource is looked for under its other names, too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MatchPolicy {
    /// Only as the request names it.
    #[default]
    Exact,
    /// Also in other groups and versions that serve the same objects.
    Equivalent,
}

impl MatchPolicy {
    /// The policy of this name; `Exact` where none is named.
    #[must_use]
    pub fn named(name: Option<&str>) -> Self {
        if name == Some("Equivalent") { Self::Equivalent } else { Self::Exact }
    }
}

/// What requests have to be like.
#[derive(Debug, Clone, Default)]
pub struct Criteria {
    /// Namespaces whose objects it is about.
    pub namespace_selector: Selector,
    /// Objects that it is about.
    pub object_selector: Selector,
    /// Any of these matches; nothing for all resources.
    pub rules: Option<Vec<Rule>>,
    /// None of these may match.
    pub excluded: Vec<Rule>,
    /// Whether the rules look at other names of the resource.
    pub match_policy: MatchPolicy,
}

/// How a request was matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matched {
    /// As it names its resource.
    AsRequested,
    /// Under another name of its resource: objects are to be shown as of that version.
    As(Arc<Served>),
}

impl Criteria {
    /// Reads a selector of a field, where an absent one is an error by itself: stored objects have them by default.
    ///
    /// # Errors
    /// When it cannot be understood.
    pub fn selector(field: Option<&LabelSelector>) -> Result<Selector, SelectorError> {
        field.map_or_else(|| Ok(Selector::everything()), |own| component_helpers::selectors::selector_of(Some(own)))
    }

    /// Whether a request is matched, and how.
    ///
    /// # Errors
    /// When it is matched as far as can be said, but the labels of its namespace cannot be found: 404 or 500.
    pub async fn matches(&self, subject: &Subject<'_>) -> Result<Option<Matched>, ApiError> {
        if self.namespace_selector.is_everything() {
            return Ok(self.matches_in_any_namespace(subject));
        }
        let namespace = subject.is_in_namespace(&self.namespace_selector).await;
        if matches!(namespace, Ok(false)) {
            return Ok(None);
        }
        let found = self.matches_in_any_namespace(subject);
        found.map(|found| namespace.map(|_| found)).transpose()
    }

    /// The same whatever the labels of the namespace are.
    fn matches_in_any_namespace(&self, subject: &Subject<'_>) -> Option<Matched> {
        if !subject.has_labels(&self.object_selector) || self.find(&self.excluded, subject).is_some() {
            return None;
        }
        self.rules.as_ref().map_or(Some(Matched::AsRequested), |rules| self.find(rules, subject))
    }

    /// The first way in which any rule matches.
    fn find(&self, rules: &[Rule], subject: &Subject<'_>) -> Option<Matched> {
        let attributes = subject.attributes;
        if rules.iter().any(|rule| rule.matches(attributes, attributes.place())) {
            return Some(Matched::AsRequested);
        }
        if self.match_policy == MatchPolicy::Exact || rules.is_empty() {
            return None;
        }
        let others = subject.equivalents();
        let found = rules.iter().find_map(|rule| others.iter().find(|own| rule.matches(attributes, own.place())));
        found.cloned().map(Matched::As)
    }
}
