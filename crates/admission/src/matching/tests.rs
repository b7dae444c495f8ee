//! What is matched, as tables.

use std::sync::Arc;

use api_machinery::gvk::GroupVersionKind;
use api_machinery::meta::ObjectMeta;
use api_machinery::object::Object;
use api_machinery::value::Value;
use api_types::admissionregistration_v1::{Rule as ApiRule, RuleWithOperations};
use api_types::core_v1::{ConfigMap, Namespace};
use async_trait::async_trait;

use super::*;
use crate::plugins::testing::{Fixture, create};
use crate::{Attributes, Context, OneVersion, Operation, Versions};

fn rule(operations: &[&str], groups: &[&str], versions: &[&str], resources: &[&str], scope: &str) -> Rule {
    let texts = |own: &[&str]| own.iter().map(|own| (*own).to_owned()).collect();
    let inner = ApiRule {
        api_groups: texts(groups),
        api_versions: texts(versions),
        resources: texts(resources),
        scope: Some(scope.to_owned()),
    };
    Rule::from(&RuleWithOperations { operations: texts(operations), rule: inner })
}

fn about(path: &str, namespace: &str) -> Attributes {
    let mut parts = path.split('/');
    let mut next = || parts.next().unwrap_or_default().to_owned();
    let (group, version, resource, subresource) = (next(), next(), next(), next());
    Attributes { version, subresource, namespace: namespace.into(), ..create(&group, &resource) }
}

#[test]
fn rules_match_by_what_is_done_to_which_resources() {
    let pods = &["pods"][..];
    for (rule, path, namespace, expected) in [
        (rule(&["CREATE"], &[""], &["v1"], pods, "*"), "/v1/pods", "n", true),
        (rule(&["*"], &["*"], &["*"], &["*"], "*"), "apps/v1/deployments", "n", true),
        (rule(&["UPDATE"], &[""], &["v1"], pods, "*"), "/v1/pods", "n", false),
        (rule(&["CREATE"], &["apps"], &["v1"], pods, "*"), "/v1/pods", "n", false),
        (rule(&["CREATE"], &[""], &["v2"], pods, "*"), "/v1/pods", "n", false),
        (rule(&["CREATE"], &[""], &["v1"], pods, "*"), "/v1/pods/exec", "n", false),
        (rule(&["CREATE"], &[""], &["v1"], &["*"], "*"), "/v1/pods/exec", "n", false),
        (rule(&["CREATE"], &[""], &["v1"], &["pods/exec"], "*"), "/v1/pods/exec", "n", true),
        (rule(&["CREATE"], &[""], &["v1"], &["pods/*"], "*"), "/v1/pods/exec", "n", true),
        (rule(&["CREATE"], &[""], &["v1"], &["pods/*"], "*"), "/v1/pods", "n", true),
        (rule(&["CREATE"], &[""], &["v1"], &["*/exec"], "*"), "/v1/pods/exec", "n", true),
        (rule(&["CREATE"], &[""], &["v1"], &["*/*"], "*"), "/v1/pods/exec", "n", true),
        (rule(&["CREATE"], &[""], &["v1"], &["*/*"], "*"), "/v1/pods", "n", true),
        (rule(&["CREATE"], &[""], &["v1"], pods, "Namespaced"), "/v1/pods", "n", true),
        (rule(&["CREATE"], &[""], &["v1"], pods, "Cluster"), "/v1/pods", "n", false),
        (rule(&["CREATE"], &[""], &["v1"], &["nodes"], "Cluster"), "/v1/nodes", "", true),
        (rule(&["CREATE"], &[""], &["v1"], &["nodes"], "Namespaced"), "/v1/nodes", "", false),
        (rule(&["CREATE"], &[""], &["v1"], &["namespaces"], "Cluster"), "/v1/namespaces", "n", true),
        (rule(&["CREATE"], &[""], &["v1"], &["namespaces"], "Namespaced"), "/v1/namespaces", "n", false),
        (rule(&["CREATE"], &[""], &["v1"], pods, "*").named(&["x".into()]), "/v1/pods", "n", true),
        (rule(&["CREATE"], &[""], &["v1"], pods, "*").named(&["y".into()]), "/v1/pods", "n", false),
    ] {
        let attributes = about(path, namespace);
        assert_eq!(rule.matches(&attributes, attributes.place()), expected, "{rule:?} {path}");
    }
}

/// Everything is served as v1 and v2.
pub(crate) struct TwoVersions;

#[async_trait]
impl Versions for TwoVersions {
    fn equivalents(&self, [group, version, resource]: [&str; 3], _: &str) -> Vec<Served> {
        let version = if version == "v1" { "v2" } else { "v1" };
        let kind = GroupVersionKind { group: group.to_owned().into(), version: version.into(), kind: "Widget".into() };
        vec![Served { group: group.into(), version: version.into(), resource: resource.into(), kind }]
    }
    async fn convert(&self, object: &dyn Object, from: [&str; 3], to: &Served) -> Result<Box<dyn Object>, ApiError> {
        OneVersion.convert(object, from, to).await
    }
    fn read(&self, like: &dyn Object, value: &Value) -> Result<Box<dyn Object>, ApiError> {
        OneVersion.read(like, value)
    }
    fn custom_schema(&self, _: [&str; 3]) -> Option<crate::CustomSchema> {
        None
    }
    fn set_defaults(&self, _: &mut dyn Object) {}
}

async fn matched(criteria: &Criteria, cx: &Context, path: &str) -> Result<Option<Matched>, ApiError> {
    let (attributes, known) = (about(path, "n"), Known::default());
    criteria.matches(&Subject::new(cx, &attributes, None, None, &known)).await
}

#[tokio::test]
async fn other_versions_match_where_that_is_wanted() {
    let cx = Context { versions: Arc::new(TwoVersions), ..Fixture::default().context() };
    let of = |match_policy, excluded: &[&str]| Criteria {
        rules: Some(vec![rule(&["*"], &["g"], &["v2"], &["widgets"], "*")]),
        excluded: excluded.iter().map(|version| rule(&["*"], &["g"], &[version], &["widgets"], "*")).collect(),
        match_policy,
        ..Criteria::default()
    };
    let (exact, equivalent) = (of(MatchPolicy::Exact, &[]), of(MatchPolicy::Equivalent, &[]));
    assert_eq!(matched(&exact, &cx, "g/v1/widgets").await, Ok(None));
    assert_eq!(matched(&exact, &cx, "g/v2/widgets").await, Ok(Some(Matched::AsRequested)));
    let Ok(Some(Matched::As(served))) = matched(&equivalent, &cx, "g/v1/widgets").await else { panic!("no match") };
    assert_eq!(served.place(), ["g", "v2", "widgets"]);
    assert_eq!(matched(&equivalent, &cx, "g/v1/gadgets").await, Ok(None));
    let all = Criteria { rules: None, ..Criteria::default() };
    assert_eq!(matched(&all, &cx, "x/v1/y").await, Ok(Some(Matched::AsRequested)));
    // What is left out is left out under its other names, too.
    assert_eq!(matched(&of(MatchPolicy::Equivalent, &["v1"]), &cx, "g/v2/widgets").await, Ok(None));
    assert!(matched(&of(MatchPolicy::Exact, &["v1"]), &cx, "g/v2/widgets").await.is_ok_and(|own| own.is_some()));
}

fn labelled(name: &str, label: &str) -> ObjectMeta {
    ObjectMeta { name: name.into(), labels: [("l".into(), label.into())].into(), ..ObjectMeta::default() }
}

#[tokio::test]
async fn namespaces_are_selected_by_their_labels() {
    let cx =
        Fixture::default().with(vec![Namespace { metadata: labelled("n", "a"), ..Namespace::default() }]).context();
    let criteria = |selector: &str| Criteria {
        namespace_selector: Selector::parse(selector).expect("a selector"),
        rules: Some(vec![rule(&["*"], &["*"], &["*"], &["*/*"], "*")]),
        ..Criteria::default()
    };
    let known = Known::default();
    let namespace = Namespace { metadata: labelled("n", "b"), ..Namespace::default() };
    for (selector, path, namespace_name, object, expected) in [
        ("l=a", "/v1/pods", "n", None, true),
        ("l=b", "/v1/pods", "n", None, false),
        ("l=b", "/v1/nodes", "", None, true),
        ("l=b", "/v1/namespaces", "n", Some(&namespace as &dyn Object), true),
        ("l=a", "/v1/namespaces", "n", Some(&namespace as &dyn Object), false),
        ("l=b", "/v1/namespaces/status", "n", Some(&namespace as &dyn Object), false),
    ] {
        let attributes = about(path, namespace_name);
        let subject = Subject::new(&cx, &attributes, object, None, &known);
        let found = criteria(selector).matches(&subject).await.expect("an answer");
        assert_eq!(found.is_some(), expected, "{selector} {path}");
    }
    // Of a namespace that is deleted, the labels that it has count.
    let attributes = Attributes { operation: Operation::Delete, ..about("/v1/namespaces", "n") };
    let subject = Subject::new(&cx, &attributes, None, Some(&namespace), &known);
    assert!(criteria("l=a").matches(&subject).await.expect("an answer").is_some());
}

/// A missing namespace is an error only of a request that would be matched otherwise.
#[tokio::test]
async fn a_missing_namespace_fails_what_is_matched() {
    let cx = Fixture::default().context();
    let criteria = |resource| Criteria {
        namespace_selector: Selector::parse("l=a").expect("a selector"),
        rules: Some(vec![rule(&["*"], &["*"], &["*"], &[resource], "*")]),
        ..Criteria::default()
    };
    assert_eq!(matched(&criteria("nodes"), &cx, "/v1/pods").await, Ok(None));
    let error = matched(&criteria("pods"), &cx, "/v1/pods").await.expect_err("no namespace");
    assert_eq!((error.code, error.message.as_str()), (404, "namespaces \"n\" not found"));
}

#[tokio::test]
async fn the_new_or_the_old_object_has_the_labels() {
    let (cx, known) = (Fixture::default().context(), Known::default());
    let object = |label: &str| ConfigMap { metadata: labelled("x", label), ..ConfigMap::default() };
    let (a, b) = (object("a"), object("b"));
    let criteria = Criteria { object_selector: Selector::parse("l=a").expect("a selector"), ..Criteria::default() };
    let attributes = about("/v1/configmaps", "n");
    type Case<'a> = (Option<&'a dyn Object>, Option<&'a dyn Object>, bool);
    let cases: [Case<'_>; 5] = [
        (Some(&a), None, true),
        (Some(&b), None, false),
        (Some(&b), Some(&a), true),
        (None, Some(&a), true),
        (None, None, false),
    ];
    for (new, old, expected) in cases {
        let subject = Subject::new(&cx, &attributes, new, old, &known);
        assert_eq!(criteria.matches(&subject).await.expect("an answer").is_some(), expected);
    }
}
