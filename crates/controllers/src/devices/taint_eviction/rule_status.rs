//! What a DeviceTaintRule says of the pods that it drives away, or would (gate `DRADeviceTaintRules`).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::{Condition, PatchOptions};
use api_machinery::time::Time;
use api_machinery::value::{Value, ValueMap, to_value};
use api_types::core_v1::Pod;
use api_types::resource_v1::constants::device_taint_effect::{NO_EXECUTE, NONE};
use api_types::resource_v1::{DeviceTaint, ResourceSlice};
use api_types::resource_v1alpha3::{DeviceTaintRule, DeviceTaintRuleStatus};
use client::{ObjectKey, Patch, ResourceInfo};
use component_helpers::resource_claims::selects;
use controller::{Controller, Cx, Next, ReconcileError};
use parking_lot::Mutex;

use super::due::{World, id_of, is_about, leaves_at, newest, results};

const FIELD_MANAGER: &str = "device-taint-eviction-controller";
const CONDITION: &str = "EvictionInProgress";
/// Reasons that stand for as long as the rule's spec.
const NO_EFFECT: &str = "NoEffect";
const OTHER_EFFECT: &str = "OtherEffect";
/// How seldom a rule is told of, while its spec stays.
pub(super) const PERIOD: Duration = Duration::from_secs(10);

/// How many pods went for each rule, by its uid; bounded by the rules there are.
pub(super) type Evicted = Arc<Mutex<HashMap<String, usize>>>;

/// `{one}` for one, else the number before `{many}`.
fn counted(count: usize, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

/// How many pods, and in how many namespaces.
#[derive(Debug, Default, PartialEq, Eq)]
struct Concerned {
    pods: usize,
    namespaces: usize,
}

impl Concerned {
    fn of<'a>(pods: impl Iterator<Item = &'a ObjectKey>) -> Self {
        let pods: BTreeSet<_> = pods.collect();
        let namespaces = pods.iter().map(|pod| &pod.namespace).collect::<BTreeSet<_>>().len();
        Self { pods: pods.len(), namespaces }
    }

    fn in_namespaces(&self) -> String {
        counted(self.namespaces, "namespace", "different namespaces")
    }
}

/// The state of a rule that drives pods away.
fn under_way(pending: &Concerned, evicted: usize) -> (bool, &'static str, String) {
    let gone = match evicted {
        0 => String::new(),
        count => format!("{} evicted since starting the controller.", counted(count, "pod", "pods")),
    };
    if pending.pods == 0 {
        return (false, if evicted > 0 { "Completed" } else { "NotStarted" }, gone);
    }
    let verb = if pending.pods == 1 { "needs" } else { "need" };
    let pods = counted(pending.pods, "pod", "pods");
    let text = format!("{pods} {verb} to be evicted in {}.", pending.in_namespaces());
    (true, "PodsPendingEviction", if gone.is_empty() { text } else { format!("{text} {gone}") })
}

/// What a rule without an effect would do.
fn trial(published: usize, allocated: usize, would_go: &Concerned) -> String {
    format!(
        "{} selected. {} selected. {} would be evicted in {} if the effect was NoExecute. \
         This information will not be updated again. Recreate the DeviceTaintRule to trigger an update.",
        counted(published, "published device", "published devices"),
        counted(allocated, "allocated device", "allocated devices"),
        counted(would_go.pods, "pod", "pods"),
        would_go.in_namespaces(),
    )
}

fn condition_of(rule: &DeviceTaintRule) -> Option<&Condition> {
    rule.status.conditions.iter().find(|own| own.type_ == CONDITION)
}

/// Tells of rules in their status.
pub(super) struct RuleStatus {
    pub(super) world: World,
    pub(super) evicted: Evicted,
}

impl RuleStatus {
    /// The pods with devices that a rule is about, as far as they are `wanted`.
    fn users(&self, rule: &DeviceTaintRule, wanted: impl Fn(&Pod) -> bool) -> Concerned {
        let claims = self.world.claims.list();
        let concerned = claims.iter().filter(|claim| results(claim).any(|result| is_about(rule, result)));
        let keys: BTreeSet<ObjectKey> = concerned.flat_map(|claim| self.world.consumers(claim)).collect();
        Concerned::of(keys.iter().filter(|key| self.world.pods.get(key).is_some_and(|pod| wanted(&pod))))
    }

    /// Pods that are to go for this rule, and have not been asked to.
    fn pending(&self, rule: &DeviceTaintRule) -> Concerned {
        let id = id_of(rule);
        self.users(rule, |pod| {
            pod.metadata.deletion_timestamp.is_none() && self.world.due(pod).is_some_and(|due| due.rules.contains(&id))
        })
    }

    /// Pods that would go if the rule had the effect.
    fn would_go(&self, rule: &DeviceTaintRule) -> Concerned {
        let taint = DeviceTaint { effect: NO_EXECUTE.to_owned(), ..rule.spec.taint.clone() };
        self.users(rule, |pod| {
            self.world.claims_of(pod).any(|claim| {
                results(&claim).any(|own| is_about(rule, own) && leaves_at(&taint, &own.tolerations).is_some())
            })
        })
    }

    /// Devices that drivers offer and that a rule is about.
    fn published(&self, rule: &DeviceTaintRule) -> usize {
        let Some(selector) = &rule.spec.device_selector else { return 0 };
        let mut pools: BTreeMap<(String, String), Vec<Arc<ResourceSlice>>> = BTreeMap::new();
        for slice in self.world.slices.list() {
            pools.entry((slice.spec.driver.clone(), slice.spec.pool.name.clone())).or_default().push(slice);
        }
        let of_pool = |((driver, pool), slices): (&(String, String), &Vec<Arc<ResourceSlice>>)| {
            let devices = newest(slices).flat_map(|slice| &slice.spec.devices);
            devices.filter(|device| selects(selector, driver, pool, &device.name)).count()
        };
        pools.iter().map(of_pool).sum()
    }

    fn condition(&self, rule: &DeviceTaintRule, now: Time) -> Condition {
        let (is_on, reason, message) = match rule.spec.taint.effect.as_str() {
            NO_EXECUTE => {
                let evicted = self.evicted.lock().get(&rule.metadata.uid).copied().unwrap_or_default();
                under_way(&self.pending(rule), evicted)
            }
            NONE => {
                let claims = self.world.claims.list();
                let allocated = claims.iter().flat_map(|claim| results(claim)).filter(|own| is_about(rule, own));
                let text = trial(self.published(rule), allocated.count(), &self.would_go(rule));
                (false, NO_EFFECT, text)
            }
            _ => (false, OTHER_EFFECT, "Eviction only happens for the NoExecute effect.".to_owned()),
        };
        Condition {
            type_: CONDITION.to_owned(),
            status: if is_on { "True" } else { "False" }.to_owned(),
            observed_generation: rule.metadata.generation,
            last_transition_time: now,
            reason: reason.to_owned(),
            message,
        }
    }

    /// Rules that are gone have driven nobody away.
    fn forget(&self) {
        let rules: BTreeSet<_> =
            self.world.rules.iter().flat_map(|rules| rules.list()).map(|rule| rule.metadata.uid.clone()).collect();
        self.evicted.lock().retain(|uid, _| rules.contains(uid));
    }
}

/// A condition of a rule, as an intent to apply.
fn intent(resource: &ResourceInfo, rule: &DeviceTaintRule, condition: Condition) -> Patch {
    let object = |members: Vec<(&str, Value)>| -> Value {
        members.into_iter().map(|(name, own)| (name.to_owned(), own)).collect::<ValueMap<String, Value>>().into()
    };
    let meta = &rule.metadata;
    Patch::Apply(object(vec![
        ("apiVersion", resource.api_version().into()),
        ("kind", resource.kind.as_str().into()),
        ("metadata", object(vec![("name", meta.name.as_str().into()), ("uid", meta.uid.as_str().into())])),
        ("status", to_value(&DeviceTaintRuleStatus { conditions: vec![condition] })),
    ]))
}

#[async_trait::async_trait]
impl Controller for RuleStatus {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(rule) = self.world.rules.as_ref().and_then(|rules| rules.get(key)) else {
            self.forget();
            return Ok(Next::Done);
        };
        let now = Time::from(cx.clock.wall());
        if let Some(told) = condition_of(&rule).filter(|told| told.observed_generation == rule.metadata.generation) {
            if told.reason == NO_EFFECT || told.reason == OTHER_EFFECT {
                return Ok(Next::Done);
            }
            let next = told.last_transition_time + PERIOD;
            if now < next {
                return Ok(Next::After(next.since(now)));
            }
        }
        let condition = self.condition(&rule, now);
        let is_told = condition_of(&rule).is_some_and(|told| {
            let Condition { status, reason, message, observed_generation, .. } = told;
            (status, reason, message, observed_generation)
                == (&condition.status, &condition.reason, &condition.message, &condition.observed_generation)
        });
        if is_told {
            return Ok(Next::Done);
        }
        let options =
            PatchOptions { field_manager: FIELD_MANAGER.to_owned(), force: Some(true), ..PatchOptions::default() };
        let rules = cx.client.all::<DeviceTaintRule>();
        match rules.patch_subresource(&key.name, "status", &intent(rules.resource(), &rule, condition), &options).await
        {
            Err(error) if error.is_not_found() => Ok(Next::Done),
            outcome => outcome.map(|_| Next::Done).map_err(Into::into),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_agrees_in_number() {
        let nobody = Concerned::default();
        let some = |pods, namespaces| Concerned { pods, namespaces };
        for (pending, evicted, expected) in [
            (&nobody, 0, (false, "NotStarted", "")),
            (&nobody, 2, (false, "Completed", "2 pods evicted since starting the controller.")),
            (&some(1, 1), 0, (true, "PodsPendingEviction", "1 pod needs to be evicted in 1 namespace.")),
            (
                &some(3, 2),
                1,
                (
                    true,
                    "PodsPendingEviction",
                    "3 pods need to be evicted in 2 different namespaces. 1 pod evicted since starting the controller.",
                ),
            ),
        ] {
            let (is_on, reason, text) = under_way(pending, evicted);
            assert_eq!((is_on, reason, text.as_str()), expected);
        }
        assert!(trial(2, 0, &some(0, 0)).starts_with(
            "2 published devices selected. 0 allocated devices selected. 0 pods would be evicted in 0 different namespaces if "
        ));
    }
}
