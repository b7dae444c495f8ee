//! LimitRanger: what a namespace's limit ranges fill into pods, and what they refuse of pods and claims.

mod bounds;
mod defaults;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_types::core_v1::{LimitRange, PersistentVolumeClaim, Pod};
use async_trait::async_trait;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "LimitRanger",
    enabled_by_default: true,
    passes: Passes::Both,
    reads: &[&LimitRange::TYPE],
    configuration: None,
    build: |_| Box::new(LimitRanger),
};

struct LimitRanger;

/// The ranges that apply; none for an object that is on its way out, so that its finalizers can be taken away.
async fn ranges(
    cx: &Context,
    attributes: &Attributes,
    old: Option<&dyn Object>,
) -> Result<Arc<Vec<Arc<LimitRange>>>, ApiError> {
    if old.is_some_and(|old| old.meta().deletion_timestamp.is_some()) {
        return Ok(Arc::default());
    }
    if let Some(ranges) = attributes.findings.get::<Vec<Arc<LimitRange>>>(&attributes.namespace) {
        return Ok(ranges);
    }
    let ranges = cx.lookup.list_filled::<LimitRange>(&attributes.namespace).await.map_err(|error| {
        tracing::info!(%error, namespace = attributes.namespace, "Limit ranges could not be read");
        let operation = attributes.operation.as_str();
        attributes.forbidden(format_args!(
            "unable to {operation} {}/{}, Resource={} at this time because there was an error enforcing limit ranges",
            attributes.group, attributes.version, attributes.resource
        ))
    })?;
    let ranges = Arc::new(ranges);
    attributes.findings.note(&attributes.namespace, Arc::clone(&ranges));
    Ok(ranges)
}

#[async_trait]
impl Plugin for LimitRanger {
    fn handles(&self, attributes: &Attributes) -> bool {
        match attributes.operation {
            Operation::Create => attributes.is("", "pods") || attributes.is("", "persistentvolumeclaims"),
            Operation::Update => attributes.is_sub("", "pods", "resize") || attributes.is("", "persistentvolumeclaims"),
            Operation::Delete | Operation::Connect => false,
        }
    }

    async fn mutate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&mut dyn Object>,
        old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(pod) = object.and_then(|object| object.downcast_mut::<Pod>()) else { return Ok(()) };
        for range in ranges(cx, attributes, old).await?.iter() {
            defaults::fill_in(pod, range);
        }
        Ok(())
    }

    async fn validate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&dyn Object>,
        old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(object) = object else { return Ok(()) };
        for range in ranges(cx, attributes, old).await?.iter() {
            let mut broken = Vec::new();
            for item in &range.spec.limits {
                if let Some(pod) = object.downcast_ref::<Pod>() {
                    bounds::of_pod(pod, item, &mut broken);
                } else if let Some(claim) = object.downcast_ref::<PersistentVolumeClaim>() {
                    bounds::of_claim(claim, item, &mut broken);
                }
            }
            let mut seen = std::collections::BTreeSet::new();
            broken.retain(|text| seen.insert(text.clone()));
            match broken.as_slice() {
                [] => {}
                [one] => return Err(attributes.forbidden(one)),
                several => return Err(attributes.forbidden(format_args!("[{}]", several.join(", ")))),
            }
        }
        Ok(())
    }
}
