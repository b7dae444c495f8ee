//! Evicting a pod: a deletion that asks the disruption budget first, and takes from it in one write.

use std::time::Duration;

use api_machinery::field_path::Cause;
use api_machinery::gvk::GroupResource;
use api_machinery::meta::{DeleteOptions, ListOptions, Preconditions, Status};
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_machinery::time::Time;
use api_types::core_v1::{Pod, PodCondition};
use api_types::policy_v1::{Eviction, PodDisruptionBudget};
use base::Backoff;
use component_helpers::{conditions, pod_state, selectors};

use crate::context::{Hooks, RequestCx};
use crate::delete::DRY_RUN_ALL;
use crate::registry::Registry;
use crate::resource::Resource;
use crate::unreadable;

/// How often a guarded deletion is tried, and how long apart.
const ATTEMPTS: u32 = 20;
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(500);
const ATTEMPT_JITTER: f64 = 0.1;
/// The most evictions that a budget's controller may be behind with.
const MAX_DISRUPTED_PODS: usize = 2_000;
/// When to ask again while the budget's controller is behind, in seconds.
const PROCESSING_RETRY_SECONDS: i32 = 10;

const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
const MANY_BUDGETS: &str =
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
/// The condition of a budget that says whether it allows disruptions.
const DISRUPTION_ALLOWED: &str = "DisruptionAllowed";

/// How the deletion of a pod is guarded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Guard {
    /// Not at all: the budget has been asked.
    None,
    /// The pod must not have changed; on a change everything is decided anew.
    Retry,
    /// The pod must not have changed; on a change the client is told to ask again.
    Refuse,
}

/// Evicts the pod `name` of the request's namespace. `hooks` are those of the deletion; admission of the eviction
/// itself is the caller's.
///
/// # Errors
/// 404 without such a pod, 429 where a budget does not allow it, and the errors of a deletion.
pub async fn evict(
    registry: &Registry,
    cx: &RequestCx,
    name: &str,
    eviction: &Eviction,
    hooks: &Hooks<'_>,
) -> Result<Status, ApiError> {
    if eviction.metadata.name != name {
        return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
    }
    let options = eviction.delete_options.clone().unwrap_or_default();
    let mut cx = cx.clone();
    cx.dry_run = is_trial(cx.dry_run, &options.dry_run)?;
    unreadable::refuse_for_eviction(&options, name)?;
    let pods = registry.resource("", "v1", "pods").ok_or_else(ApiError::unknown_resource)?;
    let mut backoff = Backoff::new(ATTEMPT_INTERVAL, 1.0, ATTEMPT_INTERVAL, ATTEMPT_JITTER);
    let pinned = options.preconditions.as_ref().is_some_and(|preconditions| preconditions.resource_version.is_some());
    let mut attempts = ATTEMPTS;
    loop {
        let item = pods.get(&cx, name, "").await?;
        let Some(pod) = item.object().downcast_ref::<Pod>() else { return Err(ApiError::internal("not a pod")) };
        let mut asked = String::new();
        let guard = if ignores_budgets(pod) {
            if pod.status.phase == "Pending" { Guard::Retry } else { Guard::None }
        } else {
            match budgets_of(registry, &cx, pod).await?.as_slice() {
                [] => Guard::None,
                [budget] => {
                    asked.clone_from(&budget.metadata.name);
                    ask(registry, &cx, pod, budget).await?
                }
                _ => return Ok(failure(MANY_BUDGETS)),
            }
        };
        attempts -= 1;
        match delete(&pods, &cx, pod, &options, guard, hooks).await {
            Ok(()) => return Ok(Status { status: "Success".to_owned(), code: 201, ..Status::default() }),
            Err(error) if error.is_conflict() && !pinned && guard == Guard::Retry && attempts > 0 => {
                tokio::time::sleep(backoff.step(registry.rng())).await;
            }
            Err(error) if error.is_conflict() && !pinned && guard == Guard::Refuse => {
                return Err(still_processed(&asked));
            }
            Err(error) => return Err(error),
        }
    }
}

/// Whether nothing is to be done, as the request or its body may say; where both do, they must say the same.
fn is_trial(by_request: bool, in_body: &[String]) -> Result<bool, ApiError> {
    if by_request && !in_body.is_empty() && *in_body != [DRY_RUN_ALL] {
        let text = "Non-matching dry-run options in request and content";
        return Err(ApiError::unclassified(format!("{text}: [{DRY_RUN_ALL}] and [{}]", in_body.join(" "))));
    }
    Ok(by_request || !in_body.is_empty())
}

fn failure(message: &str) -> Status {
    Status { status: "Failure".to_owned(), code: 500, message: message.to_owned(), ..Status::default() }
}

fn ignores_budgets(pod: &Pod) -> bool {
    matches!(pod.status.phase.as_str(), "Succeeded" | "Failed" | "Pending") || pod.metadata.deletion_timestamp.is_some()
}

async fn budgets_of(registry: &Registry, cx: &RequestCx, pod: &Pod) -> Result<Vec<PodDisruptionBudget>, ApiError> {
    let Some(budgets) = registry.resource("policy", "v1", "poddisruptionbudgets") else { return Ok(Vec::new()) };
    let list = budgets.list(cx, &ListOptions::default()).await?;
    let all = list.items.iter().filter_map(|item| item.object().downcast_ref::<PodDisruptionBudget>());
    let matching = all.filter(|budget| {
        // A selector that cannot be read selects nothing.
        selectors::selector_of(budget.spec.selector.as_ref())
            .is_ok_and(|selector| selector.matches(&pod.metadata.labels))
    });
    Ok(matching.cloned().collect())
}

/// Takes from the budget, where the pod counts for it.
async fn ask(registry: &Registry, cx: &RequestCx, pod: &Pod, budget: &PodDisruptionBudget) -> Result<Guard, ApiError> {
    if !pod_state::is_ready(pod) {
        let status = &budget.status;
        let always = budget.spec.unhealthy_pod_eviction_policy.as_deref() == Some("AlwaysAllow");
        let healthy = status.current_healthy >= status.desired_healthy && status.desired_healthy > 0;
        if always || healthy {
            return Ok(Guard::Refuse);
        }
    }
    let budgets = registry.resource("policy", "v1", "poddisruptionbudgets").ok_or_else(ApiError::unknown_resource)?;
    budgets
        .rewrite(cx, &budget.metadata.name, |live| {
            let mut budget = live
                .downcast_ref::<PodDisruptionBudget>()
                .cloned()
                .ok_or_else(|| ApiError::internal("not a budget"))?;
            take(&mut budget, &pod.metadata.name, cx.rules.now)?;
            Ok(Box::new(budget) as Box<dyn Object>)
        })
        .await?;
    Ok(Guard::None)
}

/// Counts one disruption, or says why there may be none.
fn take(budget: &mut PodDisruptionBudget, pod: &str, now: Time) -> Result<(), ApiError> {
    let (name, status) = (budget.metadata.name.clone(), &mut budget.status);
    if status.observed_generation < budget.metadata.generation {
        return Err(still_processed(&name));
    }
    let forbidden = |text: &str| ApiError::forbidden(&GroupResource::new("policy", "poddisruptionbudget"), &name, text);
    if status.disruptions_allowed < 0 {
        return Err(forbidden("pdb disruptions allowed is negative"));
    }
    if status.disrupted_pods.len() > MAX_DISRUPTED_PODS {
        return Err(forbidden("DisruptedPods map too big - too many evictions not confirmed by PDB controller"));
    }
    if status.disruptions_allowed == 0 {
        return Err(refuse(&why_not(budget), None));
    }
    status.disruptions_allowed -= 1;
    if status.disruptions_allowed == 0 {
        let condition = api_machinery::meta::Condition {
            type_: DISRUPTION_ALLOWED.to_owned(),
            status: "False".to_owned(),
            reason: "InsufficientPods".to_owned(),
            observed_generation: status.observed_generation,
            ..Default::default()
        };
        conditions::set(&mut status.conditions, condition, now);
    }
    status.disrupted_pods.insert(pod.to_owned(), now);
    Ok(())
}

fn why_not(budget: &PodDisruptionBudget) -> String {
    let (name, status) = (&budget.metadata.name, &budget.status);
    let condition = conditions::find(&status.conditions, DISRUPTION_ALLOWED)
        .filter(|condition| condition.status == "False" && !condition.message.is_empty());
    let not_currently = format!("The disruption budget {name} does not allow evicting pods currently");
    match condition {
        Some(condition) if condition.reason == "SyncFailed" => {
            format!("{not_currently} because it failed sync: {}", condition.message)
        }
        _ if status.current_healthy <= status.desired_healthy => format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            status.desired_healthy, status.current_healthy
        ),
        Some(condition) => format!("{not_currently} ({}): {}", condition.reason, condition.message),
        None => not_currently,
    }
}

/// What counts is not known for the moment, so the client may ask again soon.
fn still_processed(budget: &str) -> ApiError {
    let text = format!("The disruption budget {budget} is still being processed by the server.");
    refuse(&text, Some(PROCESSING_RETRY_SECONDS))
}

fn refuse(cause: &str, retry_after_seconds: Option<i32>) -> ApiError {
    let mut error = ApiError::too_many_requests(REFUSED, retry_after_seconds.unwrap_or(0));
    let cause = Cause { reason: "DisruptionBudget".into(), message: cause.to_owned(), field: String::new() };
    error.details.get_or_insert_default().causes.push(cause);
    error
}

/// Marks the pod as disrupted, then deletes it.
async fn delete(
    pods: &Resource,
    cx: &RequestCx,
    pod: &Pod,
    options: &DeleteOptions,
    guard: Guard,
    hooks: &Hooks<'_>,
) -> Result<(), ApiError> {
    let mut options = options.clone();
    if guard != Guard::None {
        let version = &mut options.preconditions.get_or_insert_default().resource_version;
        version.get_or_insert_with(|| pod.metadata.resource_version.clone());
    }
    let name = &pod.metadata.name;
    if !cx.dry_run {
        let marked = pods.rewrite(cx, name, |live| marked(pods, live, &options, cx.rules.now)).await?;
        if let Some(Preconditions { resource_version: Some(version), .. }) = &mut options.preconditions {
            *version = marked.object().meta().resource_version.clone();
        }
    }
    pods.delete(cx, name, &options, hooks).await.map(drop)
}

fn marked(pods: &Resource, live: &dyn Object, options: &DeleteOptions, now: Time) -> Result<Box<dyn Object>, ApiError> {
    pods.check_preconditions(options, live)?;
    let mut pod = live.downcast_ref::<Pod>().cloned().ok_or_else(|| ApiError::internal("not a pod"))?;
    let condition = PodCondition {
        type_: "DisruptionTarget".to_owned(),
        status: "True".to_owned(),
        reason: "EvictionByEvictionAPI".to_owned(),
        message: "Eviction API: evicting".to_owned(),
        ..PodCondition::default()
    };
    conditions::set(&mut pod.status.conditions, condition, now);
    Ok(Box::new(pod))
}
