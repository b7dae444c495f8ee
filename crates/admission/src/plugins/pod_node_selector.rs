//! PodNodeSelector: on which nodes pods of a namespace run, and on which at most.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names;
use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_machinery::value::Value;
use api_types::core_v1::{Namespace, Pod};
use async_trait::async_trait;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "PodNodeSelector",
    enabled_by_default: false,
    passes: Passes::Both,
    reads: &[&Namespace::TYPE],
    configuration: Some(|stated| Ok(Arc::new(Configuration::read(stated.value)?))),
    build: |settings| Box::new(PodNodeSelector(settings.configured.get().unwrap_or_default())),
};

const ANNOTATION: &str = "scheduler.alpha.kubernetes.io/node-selector";
/// The configuration's only member.
const MEMBER: &str = "podNodeSelectorPluginConfig";
/// The entry for namespaces that say nothing themselves; the others are named as their namespaces.
const OF_CLUSTER: &str = "clusterDefaultNodeSelector";

type Labels = BTreeMap<String, String>;

/// Selectors by namespace.
#[derive(Debug, Default, PartialEq, Eq)]
struct Configuration(BTreeMap<String, Labels>);

impl Configuration {
    fn read(value: Option<&Value>) -> Result<Self, String> {
        let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(Self::default()) };
        let members = value.as_object().ok_or("configuration: must be a map")?;
        if let Some(name) = members.keys().find(|name| *name != MEMBER) {
            return Err(format!("strict decoding error: unknown field {name:?}"));
        }
        let mut selectors = BTreeMap::new();
        let entries = match members.get(MEMBER) {
            None | Some(Value::Null) => return Ok(Self::default()),
            Some(entries) => entries.as_object().ok_or_else(|| format!("{MEMBER}: must be a map"))?,
        };
        for (namespace, selector) in entries {
            let at = || format!("{MEMBER}.{namespace}");
            let text = selector.as_str().ok_or_else(|| format!("{}: must be a text", at()))?;
            selectors.insert(namespace.clone(), labels(text).map_err(|why| format!("{}: {why}", at()))?);
        }
        Ok(Self(selectors))
    }
}

/// The labels of a selector that knows nothing but `=`.
fn labels(selector: &str) -> Result<Labels, String> {
    let mut labels = Labels::new();
    if selector.is_empty() {
        return Ok(labels);
    }
    let nowhere = Path::nil();
    for part in selector.split(',') {
        let sides: Vec<&str> = part.split('=').collect();
        let [key, value] = sides.as_slice() else { return Err(format!("invalid selector: [{}]", sides.join(" "))) };
        let (key, value) = (key.trim(), value.trim());
        let mut errors = ErrorList::new();
        errors.push_invalid(&nowhere, key, joined(names::qualified_name(key)));
        if errors.is_empty() {
            errors.push_invalid(&nowhere.key(key), value, joined(names::label_value(value)));
        }
        errors.into_result().map_err(|errors| errors.to_string())?;
        labels.insert(key.to_owned(), value.to_owned());
    }
    Ok(labels)
}

/// All that is wrong with a value as one detail.
fn joined(details: Vec<String>) -> Vec<String> {
    if details.is_empty() { details } else { vec![details.join("; ")] }
}

struct PodNodeSelector(Arc<Configuration>);

impl PodNodeSelector {
    /// What the pod's namespace wants of nodes.
    async fn wanted(&self, cx: &Context, attributes: &Attributes) -> Result<Labels, ApiError> {
        let name = &attributes.namespace;
        let namespace = cx.lookup.namespace(name).await.map_err(|error| {
            if error.is_not_found() {
                ApiError::internal(format_args!("namespace {name} does not exist"))
            } else {
                error
            }
        })?;
        match namespace.metadata.annotations.get(ANNOTATION) {
            Some(text) => labels(text).map_err(ApiError::unclassified),
            None => Ok(self.0.0.get(OF_CLUSTER).cloned().unwrap_or_default()),
        }
    }

    /// Whether the pod, as it is to be, may want of nodes what it does.
    fn check(&self, attributes: &Attributes, pod: &Pod) -> Result<(), ApiError> {
        let listed = self.0.0.get(&attributes.namespace).filter(|listed| !listed.is_empty());
        let fits = |listed: &Labels| pod.spec.node_selector.iter().all(|(key, value)| listed.get(key) == Some(value));
        if listed.is_none_or(fits) {
            return Ok(());
        }
        Err(attributes.forbidden("pod node label selector labels conflict with its namespace whitelist"))
    }
}

/// Refuses a pod that wants something else of nodes than its namespace.
fn refuse_conflict(attributes: &Attributes, pod: &Pod, wanted: &Labels) -> Result<(), ApiError> {
    let differs = |(key, value): (&String, &String)| pod.spec.node_selector.get(key).is_some_and(|own| own != value);
    if wanted.iter().any(differs) {
        return Err(attributes.forbidden("pod node label selector conflicts with its namespace node label selector"));
    }
    Ok(())
}

#[async_trait]
impl Plugin for PodNodeSelector {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Create && attributes.is("", "pods")
    }

    async fn mutate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&mut dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(pod) = object.and_then(|object| object.downcast_mut::<Pod>()) else { return Ok(()) };
        let wanted = self.wanted(cx, attributes).await?;
        refuse_conflict(attributes, pod, &wanted)?;
        pod.spec.node_selector.extend(wanted);
        self.check(attributes, pod)
    }

    async fn validate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(pod) = object.and_then(|object| object.downcast_ref::<Pod>()) else { return Ok(()) };
        refuse_conflict(attributes, pod, &self.wanted(cx, attributes).await?)?;
        self.check(attributes, pod)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plugins::testing::{Fixture, create};
    use crate::{Settings, Stated};

    fn namespace(name: &str, selector: Option<&str>) -> Namespace {
        let mut namespace = Namespace::default();
        namespace.metadata.name = name.into();
        namespace.metadata.annotations.extend(selector.map(|text| (ANNOTATION.into(), text.into())));
        namespace
    }

    #[tokio::test]
    async fn pods_run_where_their_namespace_says() {
        let fixture = Fixture::default().with(vec![
            namespace("silent", None),
            namespace("empty", Some("")),
            namespace("own", Some("zone=a, disk = ssd")),
            namespace("listed", Some("zone=a")),
            namespace("wrong", Some("zone=a=b")),
            namespace("worse", Some("zone=b c")),
        ]);
        let value = json!({MEMBER: {OF_CLUSTER: "env=test", "listed": "zone=a,env=x"}});
        let mut settings = Settings::default();
        settings.configured.put((ENTRY.configuration.unwrap())(Stated::by_default(&value)).unwrap());
        let plugin = (ENTRY.build)(&settings);
        let conflict =
            "pods \"x\" is forbidden: pod node label selector conflicts with its namespace node label selector";
        let unlisted = "pods \"x\" is forbidden: pod node label selector labels conflict with its namespace whitelist";
        for (name, own, expected) in [
            ("silent", "", Ok("env=test")),
            ("silent", "a=b", Ok("a=b,env=test")),
            ("silent", "env=prod", Err((403, conflict))),
            ("empty", "env=prod", Ok("env=prod")),
            ("own", "zone=a", Ok("disk=ssd,zone=a")),
            ("own", "zone=b", Err((403, conflict))),
            ("listed", "env=x", Ok("env=x,zone=a")),
            ("listed", "env=y", Err((403, unlisted))),
            ("listed", "other=y", Err((403, unlisted))),
            ("wrong", "", Err((500, "invalid selector: [zone a b]"))),
            ("gone", "", Err((500, "Internal error occurred: namespace gone does not exist"))),
        ] {
            let attributes = Attributes { namespace: name.into(), ..create("", "pods") };
            let mut pod = Pod::default();
            pod.spec.node_selector = labels(own).unwrap();
            let outcome = plugin.mutate(&fixture.context(), &attributes, Some(&mut pod), None).await;
            let checked = plugin.validate(&fixture.context(), &attributes, Some(&pod), None).await;
            assert_eq!(outcome, checked, "{name}: both passes hold the same");
            let shown = api_machinery::labels::format_labels(&pod.spec.node_selector);
            let outcome = outcome.map(|()| shown).map_err(|error| (error.code, error.message));
            let expected = expected.map(str::to_owned).map_err(|(code, text)| (code, text.to_owned()));
            assert_eq!(outcome, expected, "{name} {own}");
        }
        let attributes = Attributes { namespace: "worse".into(), ..create("", "pods") };
        let error = plugin.validate(&fixture.context(), &attributes, Some(&Pod::default()), None).await.unwrap_err();
        assert!(error.code == 500 && error.message.starts_with("[zone]: Invalid value: \"b c\": "), "{error:?}");
    }

    #[test]
    fn configurations_are_read_strictly() {
        assert_eq!(Configuration::read(None), Ok(Configuration::default()));
        assert_eq!(Configuration::read(Some(&json!({MEMBER: null}))), Ok(Configuration::default()));
        for (bad, expected) in [
            (json!([]), "configuration: must be a map"),
            (json!({"kind": "x"}), "unknown field \"kind\""),
            (json!({MEMBER: []}), "podNodeSelectorPluginConfig: must be a map"),
            (json!({MEMBER: {"n": 1}}), "podNodeSelectorPluginConfig.n: must be a text"),
            (json!({MEMBER: {"n": "a"}}), "podNodeSelectorPluginConfig.n: invalid selector: [a]"),
        ] {
            let problem = Configuration::read(Some(&bad)).unwrap_err();
            assert!(problem.contains(expected), "{bad}: {problem}");
        }
    }
}
