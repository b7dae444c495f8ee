//! The condition `Dangling` of flow schemas: whether their level is missing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::PatchOptions;
use api_types::flowcontrol_v1::FlowSchema;
use api_types::flowcontrol_v1::constants::FLOW_SCHEMA_DANGLING;
use client::Patch;
use tokio::time::Instant;

use crate::cx::ApiCx;

const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";
/// So many writes of a schema in a minute are enough: somebody else is writing against this server.
const MOST_WRITES: usize = 5;
const WRITES_PERIOD: Duration = Duration::from_secs(60);
/// Then the next one waits for so long, and up to one and a half times as long more.
const ENOUGH_PAUSE: Duration = Duration::from_secs(30);
const FIRST_RETRY: Duration = Duration::from_millis(200);
const LAST_RETRY: Duration = Duration::from_secs(8 * 3600);

/// What was written lately.
#[derive(Default)]
pub(super) struct Conditions {
    writes: BTreeMap<String, VecDeque<Instant>>,
    failures: u32,
}

impl Conditions {
    /// Writes the conditions that are not what they should be. Says when to try those again that were not written.
    pub(super) async fn write(&mut self, cx: &ApiCx, found: &[(Arc<FlowSchema>, bool)]) -> Option<Duration> {
        self.writes.retain(|name, _| found.iter().any(|(schema, _)| schema.metadata.name == *name));
        let mut again: Option<Duration> = None;
        let mut failed = false;
        for (schema, has_level) in found {
            let (status, reason, message) = wanted(schema, *has_level);
            let is_there = schema.status.conditions.iter().any(|own| {
                own.type_ == FLOW_SCHEMA_DANGLING
                    && own.status == status
                    && own.reason == reason
                    && own.message == message
            });
            if is_there {
                continue;
            }
            let name = &schema.metadata.name;
            let now = cx.clock().monotonic();
            let writes = self.writes.entry(name.clone()).or_default();
            while writes.front().is_some_and(|at| now.saturating_duration_since(*at) > WRITES_PERIOD) {
                writes.pop_front();
            }
            if writes.len() >= MOST_WRITES {
                let pause = ENOUGH_PAUSE.mul_f64(1.0 + 1.5 * cx.rng().unit());
                again = Some(again.map_or(pause, |other| other.min(pause)));
                continue;
            }
            writes.push_back(now);
            let former = schema.status.conditions.iter().find(|own| own.type_ == FLOW_SCHEMA_DANGLING);
            let changed = match former.filter(|own| own.status == status) {
                Some(own) => own.last_transition_time,
                None => cx.clock().wall().into(),
            };
            let patch = serde_json::json!({
                "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "metadata": {"name": name},
                "status": {"conditions": [{
                    "type": FLOW_SCHEMA_DANGLING, "status": status, "lastTransitionTime": changed.to_string(),
                    "reason": reason, "message": message,
                }]},
            });
            let options =
                PatchOptions { field_manager: MANAGER.to_owned(), force: Some(true), ..PatchOptions::default() };
            let api = cx.loopback().all::<FlowSchema>();
            let patch = Patch::Apply(patch);
            match api.patch_subresource(name, "status", &patch, &options).await {
                Err(error) if !error.is_not_found() => {
                    tracing::debug!(%error, name, "Writing the condition of a flow schema failed");
                    failed = true;
                }
                _ => {}
            }
        }
        if !failed {
            self.failures = 0;
            return again;
        }
        let pause = FIRST_RETRY.saturating_mul(2_u32.saturating_pow(self.failures)).min(LAST_RETRY);
        self.failures += 1;
        Some(again.map_or(pause, |other| other.min(pause)))
    }
}

/// Status, reason and message.
fn wanted(schema: &FlowSchema, has_level: bool) -> (&'static str, &'static str, String) {
    let level = &schema.spec.priority_level_configuration.name;
    let about = format!("This FlowSchema references the PriorityLevelConfiguration object named {level:?}");
    if has_level {
        ("False", "Found", format!("{about} and it exists"))
    } else {
        ("True", "NotFound", format!("{about} but there is no such object"))
    }
}
