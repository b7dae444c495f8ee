//! The `ServiceCIDR` that every cluster has: the ranges of the flags, so that addresses can be taken from the start.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api_machinery::meta::{ObjectMeta, PatchOptions};
use api_machinery::value::{Value, ValueMap};
use api_types::networking_v1::{ServiceCIDR, ServiceCIDRSpec};
use async_trait::async_trait;
use client::{ClientError, EventRecorder, EventType, Patch};

use super::retry;
use crate::cx::ApiCx;
use crate::hooks::{HookError, PostStartHook};

const NAME: &str = "kubernetes";
const COMPONENT: &str = "kubernetes-service-cidr-controller";
const READY: &str = "Ready";
/// Pause between two tries until the first that works.
const FIRST_PERIOD: Duration = Duration::from_millis(100);
/// How often it is looked at afterwards.
const PERIOD: Duration = Duration::from_secs(10);

const ERROR: &str = "KubernetesDefaultServiceCIDRError";
const INCONSISTENT: &str = "KubernetesDefaultServiceCIDRInconsistent";

/// The hook `start-kubernetes-service-cidr-controller`.
pub(super) struct DefaultServiceCidr;

#[async_trait]
impl PostStartHook for DefaultServiceCidr {
    fn name(&self) -> &'static str {
        "start-kubernetes-service-cidr-controller"
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError> {
        let ranges = cx.config().services.cluster_ip_ranges.iter();
        let keeper = Keeper {
            cidrs: ranges.map(|(network, bits)| format!("{network}/{bits}")).collect(),
            events: EventRecorder::new(cx.loopback(), COMPONENT, ""),
            is_inconsistency_told: AtomicBool::new(false),
            is_unreadiness_told: AtomicBool::new(false),
        };
        while let Err(error) = keeper.pass(cx).await {
            tracing::debug!(%error, "The default ServiceCIDR is not there yet");
            tokio::time::sleep(FIRST_PERIOD).await;
        }
        let context = Arc::clone(cx);
        cx.tasks().spawn_cancellable("default-service-cidr", async move {
            tokio::time::sleep(PERIOD).await;
            retry::repeat("Keeping the default ServiceCIDR", PERIOD, PERIOD, || keeper.pass(&context)).await;
        });
        Ok(())
    }
}

struct Keeper {
    /// What the flags say.
    cidrs: Vec<String>,
    events: EventRecorder,
    /// Whether a disagreement was told; once is enough for a process.
    is_inconsistency_told: AtomicBool,
    /// The same for an object that is not ready.
    is_unreadiness_told: AtomicBool,
}

/// What there is to do about the stored object.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    /// It comes to have the second family, too.
    Upgrade,
    /// It is what the flags say, and nobody has said whether it is ready.
    SayReady,
    /// Tell of something that only people can set right.
    Tell {
        reason: String,
        message: String,
    },
    Nothing,
}

impl Keeper {
    async fn pass(&self, cx: &ApiCx) -> Result<(), ClientError> {
        let api = cx.loopback().all::<ServiceCIDR>();
        let Some(stored) = api.get_opt(NAME).await? else {
            let metadata = ObjectMeta { name: NAME.to_owned(), ..ObjectMeta::default() };
            let spec = ServiceCIDRSpec { cidrs: self.cidrs.clone() };
            let object = ServiceCIDR { metadata, spec, ..ServiceCIDR::default() };
            return match api.create(&object).await {
                Err(error) if !error.is_already_exists() => {
                    self.events.event(&object, EventType::Warning, ERROR, "The default ServiceCIDR can not be created");
                    Err(error)
                }
                Ok(created) => self.say_ready(cx, &created).await,
                Err(_) => Ok(()),
            };
        };
        match plan(&stored, &self.cidrs) {
            Plan::Nothing => Ok(()),
            Plan::SayReady => self.say_ready(cx, &stored).await,
            Plan::Upgrade => self.upgrade(cx, stored).await,
            Plan::Tell { reason, message } => {
                let is_told =
                    if reason == INCONSISTENT { &self.is_inconsistency_told } else { &self.is_unreadiness_told };
                if !is_told.swap(true, Ordering::AcqRel) {
                    self.events.event(&stored, EventType::Warning, &reason, message);
                }
                Ok(())
            }
        }
    }

    async fn upgrade(&self, cx: &ApiCx, mut stored: ServiceCIDR) -> Result<(), ClientError> {
        let from = std::mem::replace(&mut stored.spec.cidrs, self.cidrs.clone());
        let updated = cx.loopback().all::<ServiceCIDR>().update(&stored).await;
        updated.map(|_| ()).inspect_err(|error| {
            let (from, to) = (go_list(&from), go_list(&self.cidrs));
            let message =
                format!("The default ServiceCIDR can not be upgraded from {from} to dual stack {to} : {error}");
            self.events.event(&stored, EventType::Warning, ERROR, message);
        })
    }

    async fn say_ready(&self, cx: &ApiCx, stored: &ServiceCIDR) -> Result<(), ClientError> {
        let options =
            PatchOptions { field_manager: COMPONENT.to_owned(), force: Some(true), ..PatchOptions::default() };
        let patch = ready(cx.clock().wall().into());
        let api = cx.loopback().all::<ServiceCIDR>();
        api.patch_subresource(NAME, "status", &patch, &options).await.map(|_| ()).inspect_err(|_| {
            let message = "The default ServiceCIDR Status can not be set to Ready=True";
            self.events.event(stored, EventType::Warning, ERROR, message);
        })
    }
}

fn plan(stored: &ServiceCIDR, cidrs: &[String]) -> Plan {
    if stored.metadata.deletion_timestamp.is_some() {
        return Plan::Nothing;
    }
    let own = &stored.spec.cidrs;
    if own != cidrs {
        if own.len() == 1 && cidrs.len() == 2 && own.first() == cidrs.first() {
            return Plan::Upgrade;
        }
        let (own, wanted) = (go_list(own), go_list(cidrs));
        let message =
            format!("The default ServiceCIDR {own} does not match the controller flag configurations {wanted}");
        return Plan::Tell { reason: INCONSISTENT.to_owned(), message };
    }
    let ready = stored.status.conditions.iter().find(|condition| condition.type_ == READY);
    match ready.map(|condition| (condition.status.as_str(), condition)) {
        Some(("True", _)) => Plan::Nothing,
        Some(("False", condition)) => {
            let message = format!("Configuration matches, but {}", condition.message);
            Plan::Tell { reason: condition.reason.clone(), message }
        }
        _ => Plan::SayReady,
    }
}

/// As upstream prints a list.
fn go_list(items: &[String]) -> String {
    format!("[{}]", items.join(" "))
}

fn ready(now: api_machinery::time::Time) -> Patch {
    let object = |members: &[(&str, Value)]| {
        let members = members.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        Value::from(members.collect::<ValueMap<String, Value>>())
    };
    let condition = object(&[
        ("type", READY.into()),
        ("status", "True".into()),
        ("message", "Kubernetes default Service CIDR is ready".into()),
        ("lastTransitionTime", now.to_string().into()),
    ]);
    Patch::Apply(object(&[
        ("apiVersion", "networking.k8s.io/v1".into()),
        ("kind", "ServiceCIDR".into()),
        ("metadata", object(&[("name", NAME.into())])),
        ("status", object(&[("conditions", Value::Array(vec![condition]))])),
    ]))
}

#[cfg(test)]
mod tests {
    use api_machinery::meta::Condition;
    use api_machinery::time::Time;

    use super::*;

    #[test]
    fn what_is_stored_is_upgraded_or_told_never_overwritten() {
        let stored = |cidrs: &[&str], ready: &str| {
            let mut object = ServiceCIDR::default();
            object.spec.cidrs = cidrs.iter().map(|cidr| (*cidr).to_owned()).collect();
            if !ready.is_empty() {
                let message = "it ends".to_owned();
                let (type_, status, reason) = (READY.to_owned(), ready.to_owned(), "Terminating".to_owned());
                let condition = Condition { type_, status, reason, message, ..Condition::default() };
                object.status.conditions.push(condition);
            }
            object
        };
        let (four, six) = ("10.0.0.0/24", "fd00::/112");
        let flags = |cidrs: &[&str]| cidrs.iter().map(|cidr| (*cidr).to_owned()).collect::<Vec<_>>();
        let tell = |reason: &str, message: &str| Plan::Tell { reason: reason.into(), message: message.into() };
        let differs = |stored: &str, flags: &str| {
            let message =
                format!("The default ServiceCIDR {stored} does not match the controller flag configurations {flags}");
            tell(INCONSISTENT, &message)
        };
        let mut going = stored(&[four], "");
        going.metadata.deletion_timestamp = Some(Time::from_unix_seconds(1));
        let rows = [
            (stored(&[four], ""), flags(&[four]), Plan::SayReady),
            (stored(&[four], "Unknown"), flags(&[four]), Plan::SayReady),
            (stored(&[four], "True"), flags(&[four]), Plan::Nothing),
            (stored(&[four], "False"), flags(&[four]), tell("Terminating", "Configuration matches, but it ends")),
            (stored(&[four], "True"), flags(&[four, six]), Plan::Upgrade),
            (stored(&[six], "True"), flags(&[four, six]), differs("[fd00::/112]", "[10.0.0.0/24 fd00::/112]")),
            (stored(&[four, six], "True"), flags(&[four]), differs("[10.0.0.0/24 fd00::/112]", "[10.0.0.0/24]")),
            (going, flags(&[four, six]), Plan::Nothing),
        ];
        for (object, cidrs, expected) in rows {
            assert_eq!(plan(&object, &cidrs), expected, "{:?} {cidrs:?}", object.spec.cidrs);
        }
    }
}
