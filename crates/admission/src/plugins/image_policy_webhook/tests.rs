//! What becomes of the webhook's answers.

use std::collections::VecDeque;

use api_types::core_v1::{Container, EphemeralContainer};
use serde_json::{Value, json};

use super::*;
use crate::plugins::testing::{Fixture, create};

/// Answers in their order, and remembers what it was asked.
#[derive(Default)]
struct Reviewer {
    answers: Mutex<VecDeque<Result<Value, String>>>,
    asked: Mutex<Vec<Value>>,
}

#[async_trait]
impl ImageReviewer for Reviewer {
    async fn review(&self, question: Bytes) -> Result<Bytes, String> {
        self.asked.lock().push(serde_json::from_slice(&question).unwrap());
        let answer = self.answers.lock().pop_front().expect("it is not asked more often");
        answer.map(|answer| answer.to_string().into())
    }
}

fn says(status: Value) -> Result<Value, String> {
    Ok(json!({"apiVersion": "imagepolicy.k8s.io/v1alpha1", "kind": "ImageReview", "spec": {}, "status": status}))
}

fn webhook(answers: Vec<Result<Value, String>>, default_allow: bool) -> (ImagePolicyWebhook, Context, Arc<Reviewer>) {
    let reviewer = Arc::new(Reviewer { answers: Mutex::new(answers.into()), asked: Mutex::default() });
    let mut cx = Fixture::default().context();
    cx.callers.images = Some(Arc::clone(&reviewer) as _);
    let (allow_ttl, deny_ttl) = (Duration::from_secs(300), Duration::from_secs(30));
    let config = ImagePolicyConfig { allow_ttl, deny_ttl, default_allow, ..ImagePolicyConfig::default() };
    (ImagePolicyWebhook::new(&config), cx, reviewer)
}

fn pod(image: &str) -> Pod {
    let mut pod = Pod::default();
    let container = |image: &str| Container { image: image.into(), ..Container::default() };
    pod.spec.containers = vec![container(image)];
    pod.spec.init_containers = vec![container("init")];
    let mut debug = EphemeralContainer::default();
    debug.ephemeral_container_common.image = "debug".into();
    pod.spec.ephemeral_containers = vec![debug];
    pod.metadata.annotations.insert("x.image-policy.k8s.io/ticket".into(), "7".into());
    pod.metadata.annotations.insert("other".into(), "8".into());
    pod
}

fn attributes(subresource: &str) -> Attributes {
    let operation = if subresource.is_empty() { Operation::Create } else { Operation::Update };
    Attributes { operation, namespace: "n".into(), subresource: subresource.into(), ..create("", "pods") }
}

#[tokio::test]
async fn answers_become_outcomes() {
    for (answer, default_allow, expected, audit) in [
        (says(json!({"allowed": true})), false, None, None),
        (
            says(json!({"allowed": true, "auditAnnotations": {"who": "me"}})),
            false,
            None,
            Some(("imagepolicywebhook.image-policy.k8s.io/who", "me")),
        ),
        (
            says(json!({"allowed": false, "reason": "old"})),
            true,
            Some("image policy webhook backend denied one or more images: old"),
            None,
        ),
        (says(json!({})), true, Some("one or more images rejected by webhook backend"), None),
        (Err("Error contacting webhook: 503".into()), false, Some("Error contacting webhook: 503"), None),
        (
            Err("Error contacting webhook: 503".into()),
            true,
            None,
            Some(("imagepolicywebhook.image-policy.k8s.io/failed-open", "true")),
        ),
        (
            Ok(json!({"apiVersion": "v1", "kind": "Status"})),
            false,
            Some("expected ImageReview of imagepolicy.k8s.io/v1alpha1, got \"Status\" of \"v1\""),
            None,
        ),
    ] {
        let (plugin, cx, _) = webhook(vec![answer.clone()], default_allow);
        let attributes = attributes("");
        let outcome = plugin.validate(&cx, &attributes, Some(&pod("a")), None).await;
        let expected = expected.map(|text| format!("pods \"x\" is forbidden: {text}"));
        assert_eq!(outcome.err().map(|error| error.message), expected, "{answer:?}");
        let audit: Vec<(String, String)> = audit.map(|(key, text)| (key.into(), text.into())).into_iter().collect();
        assert_eq!(attributes.annotations.take(), audit, "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_are_remembered_for_their_time_and_failures_not() {
    let (yes, no) = (says(json!({"allowed": true})), says(json!({"allowed": false})));
    let answers = vec![yes.clone(), no.clone(), Err("down".into()), no, yes];
    let (plugin, cx, reviewer) = webhook(answers, true);
    for (image, pass, allowed, asked) in [
        ("good", 0, true, 1),
        ("good", 299, true, 1),
        ("bad", 0, false, 2),
        ("bad", 29, false, 2),
        ("bad", 1, true, 3),
        ("bad", 0, false, 4),
        ("good", 0, true, 5),
    ] {
        tokio::time::advance(Duration::from_secs(pass)).await;
        let outcome = plugin.validate(&cx, &attributes(""), Some(&pod(image)), None).await;
        assert_eq!((outcome.is_ok(), reviewer.asked.lock().len()), (allowed, asked), "{image} after {pass}");
    }
}

#[tokio::test]
async fn ephemeral_containers_are_asked_about_where_they_are_added() {
    let images = |images: &[&str]| -> Value { images.iter().map(|image| json!({"image": image})).collect() };
    for (subresource, expected) in [("", vec!["a", "init"]), ("ephemeralcontainers", vec!["debug"])] {
        let (plugin, cx, reviewer) = webhook(vec![says(json!({"allowed": false}))], true);
        let attributes = attributes(subresource);
        assert!(plugin.handles(&attributes));
        plugin.validate(&cx, &attributes, Some(&pod("a")), None).await.unwrap_err();
        let asked = reviewer.asked.lock().remove(0);
        let spec = json!({
            "containers": images(&expected),
            "annotations": {"x.image-policy.k8s.io/ticket": "7"},
            "namespace": "n",
        });
        assert_eq!((&asked["spec"], &asked["kind"]), (&spec, &json!("ImageReview")), "{subresource}");
    }
    let (plugin, ..) = webhook(vec![], true);
    for other in ["status", "resize", "binding", "exec"] {
        assert!(!plugin.handles(&attributes(other)), "{other}");
    }
}
