//! What a request may only have where a quota covers it.

use std::collections::BTreeSet;

use api_machinery::status::ApiError;
use api_types::core_v1::{ResourceList, ResourceQuota, ScopedResourceSelectorRequirement};

use super::check::Request;
use crate::Attributes;

/// What a quota must cover of a request, and is not covered yet.
pub(super) struct Uncovered<'a> {
    names: BTreeSet<&'a str>,
    scopes: Vec<&'a ScopedResourceSelectorRequirement>,
}

impl<'a> Uncovered<'a> {
    /// What the configuration wants covered of what the request's object uses.
    pub(super) fn of(request: &Request<'a>, usage: &'a ResourceList) -> Self {
        let Request { attributes, evaluator, object, limited, .. } = *request;
        let own = limited.iter().filter(|limited| limited.is_of(&attributes.group, &attributes.resource));
        let parts: Vec<&String> = own.flat_map(|limited| &limited.match_contains).collect();
        let is_limited = |name: &str| parts.iter().any(|part| name.contains(part.as_str()));
        let used = usage.iter().filter(|(_, amount)| amount.cmp_i64(0).is_gt()).map(|(name, _)| name.as_str());
        // As upstream, the scopes of every entry are held against the object, whatever resource the entry is about.
        let scopes = limited.iter().flat_map(|limited| evaluator.met(&limited.match_scopes, object)).collect();
        Self { names: used.filter(|name| is_limited(name)).collect(), scopes }
    }

    /// Takes off what a quota that is about the object covers.
    pub(super) fn cover(&mut self, request: &Request<'_>, quota: &ResourceQuota) {
        self.cover_scopes(request, quota);
        self.names.retain(|name| !quota.status.hard.contains_key(*name));
    }

    /// Takes off the scopes that a quota covers, which count whether all of its scopes choose the object or not.
    pub(super) fn cover_scopes(&mut self, request: &Request<'_>, quota: &ResourceQuota) {
        let scopes = request.evaluator.scopes_met(&quota.spec, request.object);
        self.scopes.retain(|term| !scopes.contains(&term.scope_name));
    }

    /// Refuses the request where something is left.
    ///
    /// # Errors
    /// 403 for what is consumed, 500 for scopes, as upstream.
    pub(super) fn refuse(&self, attributes: &Attributes) -> Result<(), ApiError> {
        if !self.names.is_empty() {
            let names: Vec<&str> = self.names.iter().copied().collect();
            let text = format_args!("insufficient quota to consume: {}", names.join(","));
            return Err(attributes.forbidden(text));
        }
        if self.scopes.is_empty() {
            return Ok(());
        }
        let shown = |term: &&ScopedResourceSelectorRequirement| {
            format!("{{{} {} [{}]}}", term.scope_name, term.operator, term.values.join(" "))
        };
        let scopes: Vec<String> = self.scopes.iter().map(shown).collect();
        Err(ApiError::unclassified(format!("insufficient quota to match these scopes: [{}]", scopes.join(" "))))
    }
}
