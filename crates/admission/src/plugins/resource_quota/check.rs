//! One request against the quotas of its namespace.

use std::sync::Arc;

use api_machinery::object::Object;
use api_machinery::quantity::Quantity;
use api_machinery::status::ApiError;
use api_types::core_v1::{ResourceList, ResourceQuota};
use component_helpers::quota::{Circumstances, Evaluator};

use super::config::LimitedResource;
use super::limited::Uncovered;
use crate::{Attributes, Operation};

/// A write that quotas are asked about.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) evaluator: &'a Evaluator,
    pub(super) attributes: &'a Attributes,
    pub(super) object: &'a dyn Object,
    pub(super) old: Option<&'a dyn Object>,
    /// What may only be had where a quota covers it.
    pub(super) limited: &'a [LimitedResource],
    pub(super) at: Circumstances<'a>,
}

impl Request<'_> {
    /// The quotas with the request booked; only those that it changes.
    ///
    /// # Errors
    /// 403 when one of them has no room, or does not know yet.
    pub(super) fn check(&self, quotas: &[Arc<ResourceQuota>]) -> Result<Vec<ResourceQuota>, ApiError> {
        let (mut concerned, mut others) = (Vec::new(), Vec::new());
        for quota in quotas {
            let list = if self.concerns(quota)? { &mut concerned } else { &mut others };
            list.push(&**quota);
        }
        if concerned.is_empty() && self.limited.is_empty() {
            return Ok(Vec::new());
        }
        let usage = self.evaluator.usage(self.object, self.at);
        let negative: Vec<&str> =
            usage.iter().filter(|(_, amount)| amount.cmp_i64(0).is_lt()).map(|(name, _)| name.as_str()).collect();
        if !negative.is_empty() {
            let text = format_args!("quota usage is negative for resource(s): {}", negative.join(","));
            return Err(self.attributes.forbidden(text));
        }
        if !self.limited.is_empty() && !self.delta(None, &usage)?.is_empty() {
            let mut uncovered = Uncovered::of(self, &usage);
            others.iter().for_each(|quota| uncovered.cover_scopes(self, quota));
            concerned.iter().for_each(|quota| uncovered.cover(self, quota));
            uncovered.refuse(self.attributes)?;
        }
        let mut charged = Vec::new();
        for quota in concerned {
            charged.extend(self.charge(quota, &usage)?);
        }
        Ok(charged)
    }

    /// The names that the quota limits of this resource.
    fn limited_by<'q>(&self, quota: &'q ResourceQuota) -> impl Iterator<Item = &'q String> {
        quota.status.hard.keys().filter(|name| self.evaluator.counts(name, self.at.devices))
    }

    /// Whether the quota is about the object; what the object must say for it is checked on the way.
    fn concerns(&self, quota: &ResourceQuota) -> Result<bool, ApiError> {
        if self.limited_by(quota).next().is_none() || !self.evaluator.chooses(&quota.spec, self.object) {
            return Ok(false);
        }
        let name = &quota.metadata.name;
        if let Some(unstated) = self.evaluator.unstated(self.limited_by(quota), self.object) {
            let text = format_args!("failed quota: {name}: must specify {unstated}");
            return Err(self.attributes.forbidden(text));
        }
        if self.limited_by(quota).all(|own| quota.status.used.contains_key(own)) {
            return Ok(true);
        }
        // All of them are named, as upstream, those whose usage is known as well.
        let all: Vec<&str> = self.limited_by(quota).map(String::as_str).collect();
        let text = format_args!("status unknown for quota: {name}, resources: {}", all.join(","));
        Err(self.attributes.forbidden(text))
    }

    /// What the request adds to what the quota has counted before, or to what there was before at all.
    fn delta(&self, quota: Option<&ResourceQuota>, usage: &ResourceList) -> Result<ResourceList, ApiError> {
        let mut delta = usage.clone();
        if self.attributes.operation == Operation::Update {
            let Some(old) = self.old else {
                let text = "unable to get previous usage since prior version of object was not found";
                return Err(self.attributes.forbidden(text));
            };
            let stored = !old.meta().resource_version.is_empty();
            if stored && quota.is_none_or(|quota| self.evaluator.chooses(&quota.spec, old)) {
                for (name, before) in self.evaluator.usage(old, self.at) {
                    delta.entry(name).or_default().sub(&before);
                }
            }
        }
        delta.retain(|_, amount| amount.cmp_i64(0).is_gt());
        Ok(delta)
    }

    fn charge(&self, quota: &ResourceQuota, usage: &ResourceList) -> Result<Option<ResourceQuota>, ApiError> {
        let mut delta = self.delta(Some(quota), usage)?;
        delta.retain(|name, _| quota.status.hard.contains_key(name));
        if delta.is_empty() {
            return Ok(None);
        }
        let mut next = quota.clone();
        let mut exceeded = Vec::new();
        for (name, amount) in &delta {
            let used = next.status.used.entry(name.clone()).or_default();
            used.add(amount);
            if quota.status.hard.get(name).is_some_and(|hard| *used > *hard) {
                exceeded.push(name);
            }
        }
        if exceeded.is_empty() || self.attributes.subresource == "status" {
            return Ok(Some(next));
        }
        let listed = |amounts: &ResourceList| {
            let zero = Quantity::default();
            let pair = |name: &&String| format!("{name}={}", amounts.get(*name).unwrap_or(&zero));
            exceeded.iter().map(pair).collect::<Vec<_>>().join(",")
        };
        Err(self.attributes.forbidden(format_args!(
            "exceeded quota: {}, requested: {}, used: {}, limited: {}",
            quota.metadata.name,
            listed(&delta),
            listed(&quota.status.used),
            listed(&quota.status.hard)
        )))
    }
}
