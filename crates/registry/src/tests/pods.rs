//! Binding, eviction and scale.

use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_types::apps_v1::Deployment;
use api_types::autoscaling_v1::Scale;
use api_types::core_v1::{Binding, Pod, PodCondition};
use api_types::policy_v1::{Eviction, PodDisruptionBudget};

use super::*;
use crate::{Admission, Hooks, Operation, Patch, bind, evict};

fn binding(pod: &str, node: &str) -> Binding {
    let mut binding = Binding::default();
    binding.metadata.name = pod.into();
    binding.target.kind = "Node".into();
    binding.target.name = node.into();
    binding
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_once() {
    let fixture = Fixture::new().await;
    let (pods, cx) = (fixture.resource("pods"), fixture.cx("default"));
    pods.create(&cx, defaulted(&fixture, "pods", pod("a", "")), &Hooks::none()).await.unwrap();
    let mut wish = binding("a", "n1");
    wish.metadata.annotations.insert("chosen".into(), "yes".into());
    let status = bind(&fixture.registry, &cx, "a", &wish).await.unwrap();
    assert_eq!((status.status.as_str(), status.code), ("Success", 201));
    let item = pods.get(&cx, "a", "").await.unwrap();
    let bound = item.object().downcast_ref::<Pod>().unwrap();
    assert_eq!(bound.spec.node_name, "n1");
    assert_eq!(bound.metadata.annotations.get("chosen").map(String::as_str), Some("yes"));
    let scheduled = bound.status.conditions.iter().find(|condition| condition.type_ == "PodScheduled").unwrap();
    assert_eq!(scheduled.status, "True");
    let error = bind(&fixture.registry, &cx, "a", &binding("a", "n2")).await.unwrap_err();
    let text = "Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned to node \"n1\"";
    assert_eq!((error.code, error.message.as_str()), (409, text));
    assert_eq!(bind(&fixture.registry, &cx, "b", &binding("b", "n1")).await.unwrap_err().code, 404);
    assert_eq!(bind(&fixture.registry, &cx, "b", &binding("a", "n1")).await.unwrap_err().code, 400);
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_to_a_node_and_nothing_else() {
    let fixture = Fixture::new().await;
    let kind = "target.kind: Unsupported value: \"Pod\": supported values: \"Node\", \"<empty>\"";
    let name = "target.name: Required value";
    for (of_kind, of_name, expected) in
        [("Pod", "n1", kind.to_owned()), ("", "", name.to_owned()), ("Pod", "", format!("[{kind}, {name}]"))]
    {
        let mut wish = binding("a", of_name);
        wish.target.kind = of_kind.into();
        let error = bind(&fixture.registry, &fixture.cx("default"), "a", &wish).await.unwrap_err();
        assert_eq!((error.code, &*error.reason, error.message), (500, "", expected), "{of_kind} {of_name}");
    }
}

#[tokio::test(start_paused = true)]
async fn of_many_bindings_one_wins() {
    let fixture = Fixture::new().await;
    let (pods, cx) = (fixture.resource("pods"), fixture.cx("default"));
    pods.create(&cx, defaulted(&fixture, "pods", pod("a", "")), &Hooks::none()).await.unwrap();
    let attempts = (0..10).map(|node| {
        let (registry, cx) = (Arc::clone(&fixture.registry), cx.clone());
        async move { bind(&registry, &cx, "a", &binding("a", &format!("n{node}"))).await }
    });
    let outcomes = futures_util::future::join_all(attempts).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
}

async fn running(fixture: &Fixture, name: &str, ready: bool) {
    let (pods, cx) = (fixture.resource("pods"), fixture.cx("default"));
    let mut object = pod(name, "n1");
    object.meta_mut().labels.insert("app".into(), "web".into());
    pods.create(&cx, defaulted(fixture, "pods", object), &Hooks::none()).await.unwrap();
    pods.rewrite(&cx, name, |live| {
        let mut pod = live.downcast_ref::<Pod>().unwrap().clone();
        pod.status.phase = "Running".into();
        let status = if ready { "True" } else { "False" };
        pod.status.conditions =
            vec![PodCondition { type_: "Ready".into(), status: status.into(), ..PodCondition::default() }];
        Ok(Box::new(pod) as Box<dyn Object>)
    })
    .await
    .unwrap();
}

async fn budget(fixture: &Fixture, name: &str, allowed: i32) {
    let budgets = fixture.registry.resource("policy", "v1", "poddisruptionbudgets").unwrap();
    let cx = fixture.cx("default");
    let mut budget = PodDisruptionBudget::default();
    budget.metadata.name = name.into();
    budget.metadata.namespace = "default".into();
    budget.spec.min_available = Some(api_machinery::intstr::IntOrString::Int(1));
    let selector = budget.spec.selector.get_or_insert_default();
    selector.match_labels.insert("app".into(), "web".into());
    budgets.create(&cx, Box::new(budget), &Hooks::none()).await.unwrap();
    budgets
        .rewrite(&cx, name, |live| {
            let mut budget = live.downcast_ref::<PodDisruptionBudget>().unwrap().clone();
            budget.status.disruptions_allowed = allowed;
            budget.status.current_healthy = 1 + allowed;
            budget.status.desired_healthy = 1;
            budget.status.observed_generation = budget.metadata.generation;
            Ok(Box::new(budget) as Box<dyn Object>)
        })
        .await
        .unwrap();
}

fn eviction(pod: &str) -> Eviction {
    let mut eviction = Eviction::default();
    eviction.metadata.name = pod.into();
    eviction
}

#[tokio::test(start_paused = true)]
async fn evictions_never_take_more_than_the_budget_has() {
    let fixture = Fixture::new().await;
    for number in 0..5 {
        running(&fixture, &format!("p{number}"), true).await;
    }
    budget(&fixture, "web", 2).await;
    let evictions = (0..5).map(|number| {
        let (registry, cx, name) = (Arc::clone(&fixture.registry), fixture.cx("default"), format!("p{number}"));
        async move { evict(&registry, &cx, &name, &eviction(&name), &Hooks::none()).await }
    });
    let outcomes = futures_util::future::join_all(evictions).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 2);
    for error in outcomes.iter().flat_map(|outcome| outcome.as_ref().err()) {
        assert_eq!(error.code, 429, "{error}");
        assert_eq!(error.message, "Cannot evict pod as it would violate the pod's disruption budget.");
        assert!(error.has_cause("DisruptionBudget") && error.retry_after_seconds().is_none());
    }
    let budgets = fixture.registry.resource("policy", "v1", "poddisruptionbudgets").unwrap();
    let item = budgets.get(&fixture.cx("default"), "web", "").await.unwrap();
    let status = &item.object().downcast_ref::<PodDisruptionBudget>().unwrap().status;
    assert_eq!((status.disruptions_allowed, status.disrupted_pods.len()), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn budgets_are_asked_only_where_they_matter() {
    let fixture = Fixture::new().await;
    let cx = fixture.cx("default");
    running(&fixture, "ready", true).await;
    let pods = fixture.resource("pods");
    let mut pending = pod("pending", "");
    pending.meta_mut().labels.insert("app".into(), "web".into());
    pods.create(&cx, defaulted(&fixture, "pods", pending), &Hooks::none()).await.unwrap();
    pods.rewrite(&cx, "pending", |live| {
        let mut pod = live.downcast_ref::<Pod>().unwrap().clone();
        pod.status.phase = "Pending".into();
        Ok(Box::new(pod) as Box<dyn Object>)
    })
    .await
    .unwrap();
    budget(&fixture, "one", 0).await;
    let refused = evict(&fixture.registry, &cx, "ready", &eviction("ready"), &Hooks::none()).await.unwrap_err();
    let cause = &refused.details.as_ref().unwrap().causes[0];
    assert_eq!(cause.message, "The disruption budget one needs 1 healthy pods and has 1 currently");
    evict(&fixture.registry, &cx, "pending", &eviction("pending"), &Hooks::none()).await.unwrap();
    assert_eq!(pods.get(&cx, "pending", "").await.unwrap_err().code, 404);
    budget(&fixture, "two", 1).await;
    let both = evict(&fixture.registry, &cx, "ready", &eviction("ready"), &Hooks::none()).await.unwrap();
    assert_eq!((both.status.as_str(), both.code), ("Failure", 500));
}

#[tokio::test(start_paused = true)]
async fn a_trial_is_asked_for_in_one_way_or_in_the_same() {
    let fixture = Fixture::new().await;
    running(&fixture, "a", true).await;
    for (name, of_request, in_body, refused) in [
        ("of the request", true, &[][..], None),
        ("in the body", false, &["All"], None),
        ("both, and the same", true, &["All"], None),
        ("another in the body", true, &["All", "x"], Some("[All] and [All x]")),
    ] {
        let mut cx = fixture.cx("default");
        cx.dry_run = of_request;
        let mut eviction = eviction("a");
        let options = eviction.delete_options.get_or_insert_default();
        options.dry_run = in_body.iter().map(|value| (*value).to_owned()).collect();
        let outcome = evict(&fixture.registry, &cx, "a", &eviction, &Hooks::none()).await;
        let refused = refused.map(|both| format!("Non-matching dry-run options in request and content: {both}"));
        let told = outcome.err().map(|error| {
            assert_eq!(error.code, 500, "{name}");
            error.message
        });
        assert_eq!(told, refused, "{name}");
        assert!(fixture.resource("pods").get(&fixture.cx("default"), "a", "").await.is_ok(), "{name}");
    }
}

/// Writes the pod while it is being deleted.
struct Toucher<'a>(&'a Fixture);

#[async_trait::async_trait]
impl Admission for Toucher<'_> {
    async fn validate(&self, _: Operation, _: Option<&dyn Object>, _: Option<&dyn Object>) -> Result<(), ApiError> {
        let touch = |live: &dyn Object| {
            let mut pod = live.clone_object();
            pod.meta_mut().labels.insert("touched".into(), "yes".into());
            Ok(pod)
        };
        self.0.resource("pods").rewrite(&self.0.cx("default"), "unready", touch).await.map(drop)
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_changed_meanwhile_may_count_again() {
    let fixture = Fixture::new().await;
    running(&fixture, "unready", false).await;
    budget(&fixture, "web", 0).await;
    let (cx, touching) = (fixture.cx("default"), Toucher(&fixture));
    let hooks = Hooks { admission: &touching, track: None };
    let refused = evict(&fixture.registry, &cx, "unready", &eviction("unready"), &hooks).await.unwrap_err();
    assert_eq!((refused.code, refused.retry_after_seconds()), (429, Some(10)));
    let cause = &refused.details.as_ref().unwrap().causes[0];
    assert_eq!(cause.message, "The disruption budget web is still being processed by the server.");
}

#[tokio::test(start_paused = true)]
async fn scales_change_replicas_and_respect_versions() {
    let fixture = Fixture::new().await;
    let deployments = fixture.registry.resource("apps", "v1", "deployments").unwrap();
    let cx = fixture.cx("default");
    let mut deployment = Deployment::default();
    deployment.metadata.name = "web".into();
    deployment.metadata.namespace = "default".into();
    deployment.spec.replicas = Some(2);
    deployment.spec.selector.get_or_insert_default().match_labels.insert("app".into(), "web".into());
    deployment.spec.template.metadata.labels.insert("app".into(), "web".into());
    deployment.spec.template.spec = pod("x", "").downcast_ref::<Pod>().map(|pod| pod.spec.clone()).unwrap_or_default();
    let mut object: Box<dyn Object> = Box::new(deployment);
    deployments.rules().set_defaults(&mut *object);
    deployments.create(&cx, object, &Hooks::none()).await.unwrap();
    let shown = deployments.scale(&cx, "web").await.unwrap();
    assert_eq!((shown.spec.replicas, shown.status.selector.as_str()), (2, "app=web"));
    let to = |replicas: i32, version: String| {
        Patch(move |live: &dyn Object| {
            let mut scale = live.downcast_ref::<Scale>().unwrap().clone();
            scale.spec.replicas = replicas;
            scale.metadata.resource_version = version.clone();
            Ok(Box::new(scale) as Box<dyn Object>)
        })
    };
    let scaled = deployments.update_scale(&cx, "web", &to(5, String::new()), &Hooks::none()).await.unwrap();
    assert_eq!(scaled.spec.replicas, 5);
    let stale = to(6, shown.metadata.resource_version.clone());
    assert_eq!(deployments.update_scale(&cx, "web", &stale, &Hooks::none()).await.unwrap_err().code, 409);
    let negative = deployments.update_scale(&cx, "web", &to(-1, String::new()), &Hooks::none()).await.unwrap_err();
    assert!(negative.message.contains("spec.replicas: Invalid value: -1"), "{negative}");
}
