//! ResourceQuota: refuses what a namespace has no quota left for, and books what it lets through.
//!
//! Usage is booked before the object is stored; where storing fails, the quota controller corrects it. Requests of a
//! namespace go one after another, so that they see each other's bookings.

mod check;
mod config;
mod devices;
mod limited;
#[cfg(test)]
mod tests;
mod turns;

use std::sync::Arc;
use std::time::Duration;

use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_types::core_v1::{PersistentVolumeClaim, Pod, ResourceQuota as Quota};
use api_types::resource_v1::{DeviceClass, ResourceClaim};
use async_trait::async_trait;
use component_helpers::pod_requests;
use component_helpers::quota::{Circumstances, Evaluator, ExtendedDevices};

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};
use check::Request;
use config::Configuration;
use devices::Gathered;
use turns::Turns;

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "ResourceQuota",
    enabled_by_default: true,
    passes: Passes::Validating,
    reads: &[&Quota::TYPE, &DeviceClass::TYPE, &Pod::TYPE, &ResourceClaim::TYPE],
    configuration: Some(|stated| Ok(Arc::new(Configuration::read(stated.value)?))),
    build: |settings| {
        let configuration = settings.configured.get().unwrap_or_default();
        let extended_resources = settings.extended_resources;
        let pod_level_resources = settings.pod_level_resources;
        Box::new(ResourceQuota { configuration, extended_resources, pod_level_resources, turns: Turns::default() })
    },
};

/// How often a write that somebody else was faster with is made again.
const RETRIES: usize = 3;
/// How long a request waits for its turn and its bookings.
const LIMIT: Duration = Duration::from_secs(10);

/// Prefix of the names of the configuration's types.
const PACKAGE: &str = "io.k8s.apiserver.pkg.admission.plugin.resourcequota.apis.resourcequota.v1";

struct ResourceQuota {
    configuration: Arc<Configuration>,
    extended_resources: bool,
    pod_level_resources: bool,
    turns: Turns,
}

#[async_trait]
impl Plugin for ResourceQuota {
    fn handles(&self, attributes: &Attributes) -> bool {
        let written = matches!(attributes.operation, Operation::Create | Operation::Update);
        let of_namespace = attributes.group.is_empty() && attributes.resource == "namespaces";
        written && !attributes.namespace.is_empty() && !of_namespace
    }

    async fn validate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&dyn Object>,
        old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(object) = object else { return Ok(()) };
        let Some(evaluator) = Evaluator::of(&attributes.group, &attributes.resource) else { return Ok(()) };
        if !acts_on(&evaluator, attributes, object, old) {
            return Ok(());
        }
        // Most namespaces have no quota; nobody has to wait for a turn there.
        let limited = self.configuration.limited_resources.as_slice();
        if limited.is_empty() && cx.lookup.quotas(&attributes.namespace).await?.is_empty() {
            return Ok(());
        }
        let counted = [Some(object), old].map(|own| own.and_then(|own| self.counted(own)));
        let (object, old) = match &counted {
            [new, former] => (
                new.as_ref().map_or(object, |pod| pod as &dyn Object),
                former.as_ref().map_or(old, |pod| Some(pod as &dyn Object)),
            ),
        };
        let devices = match object.downcast_ref() {
            Some(claim) if self.extended_resources => Gathered::for_claim(cx, &attributes.namespace, claim).await?,
            _ => None,
        };
        let devices = devices.as_ref().map(|gathered| gathered as &dyn ExtendedDevices);
        let at = Circumstances { now: cx.clock.wall().into(), devices };
        let request = Request { evaluator: &evaluator, attributes, object, old, limited, at };
        let evaluated = async {
            let _turn = self.turns.take(&attributes.namespace).await;
            book(cx, &request).await
        };
        match tokio::time::timeout(LIMIT, evaluated).await {
            Ok(outcome) => outcome,
            Err(_) => Err(ApiError::internal("resource quota evaluation timed out")),
        }
    }
}

impl ResourceQuota {
    /// A pod as it counts, where that is not as it is.
    fn counted(&self, object: &dyn Object) -> Option<Pod> {
        if self.pod_level_resources {
            return None;
        }
        object.downcast_ref().and_then(pod_requests::without_pod_level)
    }
}

/// Whether usage can change by the request.
fn acts_on(evaluator: &Evaluator, attributes: &Attributes, object: &dyn Object, old: Option<&dyn Object>) -> bool {
    let (creates, subresource) = (attributes.operation == Operation::Create, attributes.subresource.as_str());
    match evaluator {
        Evaluator::Pods if subresource == "resize" => !creates,
        Evaluator::Pods if subresource.is_empty() && !creates => {
            let terminates = |object: &dyn Object| {
                object.downcast_ref::<Pod>().is_some_and(|pod| pod.spec.active_deadline_seconds.is_some())
            };
            old.is_some_and(|old| terminates(old) != terminates(object))
        }
        Evaluator::Claims if subresource == "status" => {
            // Upstream means those that change what was allocated, and compares the places of the amounts in memory.
            let is_claim = |object: &dyn Object| object.downcast_ref::<PersistentVolumeClaim>().is_some();
            is_claim(object) && old.is_some_and(is_claim)
        }
        Evaluator::Services | Evaluator::Claims | Evaluator::DeviceClaims => subresource.is_empty(),
        Evaluator::Pods | Evaluator::Count(_) => creates && subresource.is_empty(),
    }
}

/// Checks the request against all quotas and writes their new usage; again with fresh ones after a lost race.
async fn book(cx: &Context, request: &Request<'_>) -> Result<(), ApiError> {
    let mut only: Option<Vec<String>> = None;
    for attempt in 0..=RETRIES {
        let mut quotas: Vec<Arc<Quota>> = cx.lookup.quotas(&request.attributes.namespace).await?;
        let mut request = *request;
        if let Some(only) = &only {
            quotas.retain(|quota| only.contains(&quota.metadata.name));
            // What must be covered was, in the first round.
            request.limited = &[];
        }
        let charged = request.check(&quotas)?;
        if request.attributes.dry_run {
            return Ok(());
        }
        let (mut again, mut last) = (Vec::new(), None);
        for quota in charged {
            let name = quota.metadata.name.clone();
            if let Err(error) = cx.lookup.charge(quota).await {
                again.push(name);
                last = Some(error);
            }
        }
        match last {
            None => return Ok(()),
            Some(error) if attempt == RETRIES => return Err(error),
            Some(error) => tracing::debug!(%error, "The usage of a quota was not written, trying again"),
        }
        only = Some(again);
    }
    Ok(())
}
