use std::sync::Arc;
use std::time::Duration;

use api_machinery::object::{Object, from_value};
use api_types::admissionregistration_v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use api_types::authentication_v1::UserInfo;
use api_types::core_v1::{Namespace, Pod};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::matching::tests::TwoVersions;
use crate::plugins::testing::{Fixture, create};
use crate::recorder::{ConditionRun, Recorder};
use crate::{ALL, Attributes, Context, Plugin, Settings};

/// Rules such as clusters have.
const TYPICAL: [&str; 10] = [
    "object.spec.containers.all(c, c.image.startsWith('registry.example.com/'))",
    "object.spec.containers.all(c, !has(c.securityContext) || !has(c.securityContext.privileged) || !c.securityContext.privileged)",
    "!has(object.spec.hostNetwork) || !object.spec.hostNetwork",
    "has(object.metadata.labels) && 'app' in object.metadata.labels",
    "object.spec.containers.all(c, has(c.resources.limits) && 'memory' in c.resources.limits)",
    "object.metadata.name.size() < 60 && !object.metadata.name.startsWith('kube-')",
    "!has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.hostPath))",
    "request.userInfo.username != 'mallory' && request.operation == 'CREATE'",
    "object.spec.containers.exists(c, c.name == 'main')",
    "variables.images.all(i, !i.endsWith(':latest'))",
];

fn policy(name: &str, expression: &str, more: &Value) -> ValidatingAdmissionPolicy {
    let rule = json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]});
    let mut spec = json!({
        "matchConstraints": {"resourceRules": [rule]},
        "variables": [{"name": "images", "expression": "object.spec.containers.map(c, c.image)"}],
        "validations": [{ "expression": expression }]
    });
    for (name, value) in more.as_object().expect("an object") {
        spec[name] = value.clone();
    }
    let mut policy = from_value(&json!({"metadata": {"name": name}, "spec": spec})).expect("a policy");
    api_machinery::defaults::fill(&mut policy);
    policy
}

fn binding(name: &str) -> ValidatingAdmissionPolicyBinding {
    let spec = json!({"policyName": name, "validationActions": ["Deny"]});
    from_value(&json!({"metadata": {"name": name}, "spec": spec})).expect("a binding")
}

fn pod() -> Pod {
    from_value(&json!({
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
        "spec": {
            "containers": [
                {"name": "main", "image": "registry.example.com/web:1", "resources": {"limits": {"memory": "1Gi"}}},
                {"name": "side", "image": "registry.example.com/side:1", "resources": {"limits": {"memory": "1Gi"}}}
            ],
            "volumes": [{"name": "v", "emptyDir": {}}]
        }
    }))
    .expect("a pod")
}

fn cluster(policies: Vec<ValidatingAdmissionPolicy>) -> Fixture {
    let namespace: Namespace = from_value(&json!({"metadata": {"name": "shop"}})).expect("a namespace");
    let bindings = policies.iter().map(|own| binding(&own.metadata.name)).collect();
    Fixture::default().with(vec![namespace]).with(policies).with(bindings)
}

fn plugin() -> Box<dyn Plugin> {
    let entry = ALL.iter().find(|entry| entry.name == "ValidatingAdmissionPolicy").expect("the plugin is there");
    (entry.build)(&Settings::default())
}

fn attributes() -> Attributes {
    let user = UserInfo { username: "ann".into(), ..UserInfo::default() };
    Attributes { namespace: "shop".into(), user: user.into(), ..create("", "pods") }
}

#[tokio::test]
async fn ten_typical_policies_pass_a_good_pod() {
    const ROUNDS: u32 = 200;
    let policies = TYPICAL.iter().enumerate().map(|(index, own)| policy(&format!("p{index}"), own, &json!({})));
    let (cluster, plugin, pod) = (cluster(policies.collect()), plugin(), pod());
    let (cx, attributes) = (cluster.context(), attributes());
    assert!(plugin.is_needed(&cx, &attributes));
    let mut took = Duration::MAX;
    for _ in 0..ROUNDS {
        let begun = cx.clock.monotonic();
        plugin.validate(&cx, &attributes, Some(&pod as &dyn Object), None).await.expect("it passes");
        took = took.min(cx.clock.monotonic() - begun);
    }
    println!("ten policies over a pod: {took:?}");
    let mut bad = pod.clone();
    bad.spec.containers[0].image = "elsewhere/web:latest".into();
    let refused = plugin.validate(&cx, &attributes, Some(&bad as &dyn Object), None).await.expect_err("it does not");
    assert!(
        refused.message.contains("'p0' with binding 'p0' denied request: failed expression:"),
        "{}",
        refused.message
    );
}

#[tokio::test]
async fn no_binding_no_policy() {
    let policy = policy("p", "false", &json!({}));
    let cluster = Fixture::default().with(vec![policy]);
    assert!(!plugin().is_needed(&cluster.context(), &attributes()));
}

/// One set of compiled policies is used for as long as nothing changes, and the next for what did.
#[tokio::test]
async fn a_change_counts_at_once() {
    let plugin = plugin();
    for (expression, passes) in [("true", true), ("false", false), ("true", true)] {
        let cx = cluster(vec![policy("p", expression, &json!({}))]).context();
        let outcome = plugin.validate(&cx, &attributes(), Some(&pod() as &dyn Object), None).await;
        assert_eq!(outcome.is_ok(), passes, "{expression}");
    }
}

#[tokio::test]
async fn annotations_are_published_and_bad_ones_refuse() {
    let plugin = plugin();
    let annotated = |expression: &str, failure: &str| {
        policy(
            "p",
            "true",
            &json!({"failurePolicy": failure, "auditAnnotations": [{"key": "k", "valueExpression": expression}]}),
        )
    };
    for (expression, failure, published, passes) in [
        ("'name ' + object.metadata.name", "Fail", Some("name web"), true),
        ("' '", "Fail", None, true),
        ("null", "Fail", None, true),
        ("'x' + object.metadata.nothing", "Fail", None, false),
        ("'x' + object.metadata.nothing", "Ignore", None, true),
    ] {
        let cx = cluster(vec![annotated(expression, failure)]).context();
        let attributes = attributes();
        let outcome = plugin.validate(&cx, &attributes, Some(&pod() as &dyn Object), None).await;
        assert_eq!(outcome.is_ok(), passes, "{expression} {failure}");
        let expected: Vec<_> = published.map(|value| ("p/k".to_owned(), value.to_owned())).into_iter().collect();
        assert_eq!(attributes.annotations.take(), expected, "{expression} {failure}");
    }
}

/// What files state is asked first, and about the API's own policies, too; a binding of the API binds nothing of a file.
#[tokio::test]
async fn policies_of_files_know_nothing_of_those_of_the_api() {
    let about_policies = json!({"matchConstraints": {"resourceRules": [{
        "operations": ["CREATE"], "apiGroups": ["*"], "apiVersions": ["*"],
        "resources": ["pods", "validatingadmissionpolicies"],
    }]}});
    let stated = |names: &[&str], bound: &[&str]| -> Vec<Arc<dyn Object>> {
        let policies = names.iter().map(|name| Arc::new(policy(name, "false", &about_policies)) as Arc<dyn Object>);
        policies.chain(bound.iter().map(|name| Arc::new(binding(name)) as Arc<dyn Object>)).collect()
    };
    let own = Attributes { resource: "validatingadmissionpolicies".into(), ..attributes() };
    let own = Attributes { group: "admissionregistration.k8s.io".into(), namespace: String::new(), ..own };
    let review =
        Attributes { group: "authorization.k8s.io".into(), resource: "subjectaccessreviews".into(), ..attributes() };
    let refused_by = async |fixture: &Fixture, attributes: &Attributes| {
        let (cx, plugin) = (fixture.context(), plugin());
        if !plugin.is_needed(&cx, attributes) {
            return None;
        }
        let refusal = plugin.validate(&cx, attributes, Some(&pod() as &dyn Object), None).await.err()?;
        refusal.message.split('\'').nth(1).map(str::to_owned)
    };
    let with = |files: Vec<Arc<dyn Object>>| cluster(vec![policy("api", "false", &about_policies)]).with_files(files);
    let files = with(stated(&["z.static"], &["z.static"]));
    assert_eq!(refused_by(&files, &attributes()).await.as_deref(), Some("z.static"));
    assert_eq!(refused_by(&files, &own).await.as_deref(), Some("z.static"));
    assert_eq!(refused_by(&files, &review).await, None);
    let none = with(Vec::new());
    assert_eq!(refused_by(&none, &attributes()).await.as_deref(), Some("api"));
    assert_eq!(refused_by(&none, &own).await, None);
    let unbound = with(stated(&["api"], &[]));
    assert_eq!(refused_by(&unbound, &own).await, None, "only the API binds it, which has another of that name");
}

/// What was told of conditions, and how many evaluations were counted.
#[derive(Default)]
struct Heard(Mutex<(Vec<String>, usize)>);

impl Recorder for Heard {
    fn expressions_evaluated(&self, _: Duration) {
        self.0.lock().1 += 1;
    }
    fn conditions_evaluated(&self, run: &ConditionRun<'_>, _: Duration) {
        self.0.lock().0.push(format!("{} evaluated", run.name));
    }
    fn condition_excluded(&self, run: &ConditionRun<'_>) {
        self.0.lock().0.push(format!("{} excluded", run.name));
    }
    fn condition_failed(&self, run: &ConditionRun<'_>) {
        self.0.lock().0.push(format!("{} failed", run.name));
    }
}

/// Policies with the same conditions share the answer, and each is told and counted as if it had asked itself. Who reads
/// what is its own has an answer of its own.
#[tokio::test]
async fn the_same_conditions_have_one_answer() {
    let conditions = |source: &str| json!({"matchConditions": [{"name": "c", "expression": source}]});
    let own = |value: &str| {
        json!({
            "matchConditions": [{"name": "c", "expression": "variables.own"}],
            "variables": [{"name": "own", "expression": value}],
        })
    };
    for (first, second, [told, other], (passes, evaluations)) in [
        (
            conditions("object.metadata.name == 'web'"),
            conditions("object.metadata.name == 'web'"),
            ["", ""],
            (false, 4),
        ),
        (conditions("request.name == 'y'"), conditions("request.name == 'y'"), ["excluded", "excluded"], (true, 2)),
        (conditions("object.nope"), conditions("object.nope"), ["failed", "failed"], (false, 2)),
        (conditions("true"), conditions("false"), ["", "excluded"], (false, 3)),
        (own("false"), own("true"), ["excluded", ""], (false, 3)),
    ] {
        let heard = Arc::new(Heard::default());
        let policies = vec![policy("a", "false", &first), policy("b", "false", &second)];
        let cx = Context { recorder: Arc::clone(&heard) as _, ..cluster(policies).context() };
        let outcome = plugin().validate(&cx, &attributes(), Some(&pod() as &dyn Object), None).await;
        assert_eq!(outcome.is_ok(), passes, "{first} {second}");
        let mut expected = Vec::new();
        for (name, told) in [("a", told), ("b", other)] {
            expected.push(format!("{name} evaluated"));
            expected.extend((!told.is_empty()).then(|| format!("{name} {told}")));
        }
        assert_eq!(*heard.0.lock(), (expected, evaluations), "{first} {second}");
    }
}

/// A policy about another version sees the request as of that one, and so may answer otherwise.
#[tokio::test]
async fn who_matched_another_version_has_an_answer_of_its_own() {
    let about = |version: &str| {
        json!({
            "matchConstraints": {"matchPolicy": "Equivalent", "resourceRules": [
                {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": [version], "resources": ["pods"]},
            ]},
            "matchConditions": [{"name": "c", "expression": "request.resource.version == 'v1'"}],
        })
    };
    let heard = Arc::new(Heard::default());
    let policies = ["v1", "v2"].map(|version| policy(version, "true", &about(version)));
    let context = cluster(policies.into()).context();
    let cx = Context { recorder: Arc::clone(&heard) as _, versions: Arc::new(TwoVersions), ..context };
    plugin().validate(&cx, &attributes(), Some(&pod() as &dyn Object), None).await.expect("it passes");
    assert_eq!(heard.0.lock().0, ["v1 evaluated", "v2 evaluated", "v2 excluded"]);
}
