//! PodTolerationRestriction: what pods of a namespace tolerate by default, and what at most.

use std::sync::Arc;

use api_machinery::json;
use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_types::core_v1::constants::pod_qos_class;
use api_types::core_v1::{Namespace, Pod, PodSpec, Toleration};
use async_trait::async_trait;
use component_helpers::qos;

use super::tolerations;
use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};
use config::Configuration;

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "PodTolerationRestriction",
    enabled_by_default: false,
    passes: Passes::Both,
    reads: &[&Namespace::TYPE],
    configuration: Some(|stated| Ok(Arc::new(Configuration::read(stated)?))),
    build: |settings| Box::new(PodTolerationRestriction(settings.configured.get().unwrap_or_default())),
};

const DEFAULTS: &str = "scheduler.alpha.kubernetes.io/defaultTolerations";
const WHITELIST: &str = "scheduler.alpha.kubernetes.io/tolerationsWhitelist";
const MEMORY_PRESSURE: &str = "node.kubernetes.io/memory-pressure";
/// Prefix of the names of the configuration's types.
const PACKAGE: &str =
    "io.k8s.kubernetes.plugin.pkg.admission.podtolerationrestriction.apis.podtolerationrestriction.v1alpha1";

struct PodTolerationRestriction(Arc<Configuration>);

/// What an annotation of the pod's namespace lists; nothing where it has none. An empty one lists none.
async fn listed(cx: &Context, attributes: &Attributes, name: &str) -> Result<Option<Vec<Toleration>>, ApiError> {
    let namespace = cx.lookup.namespace(&attributes.namespace).await?;
    let Some(text) = namespace.metadata.annotations.get(name) else { return Ok(None) };
    if text.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let mut spec = PodSpec::default();
    let document = format!("{{\"tolerations\":{text}}}");
    // The text has to be JSON by itself, too.
    let read = json::check(text).and_then(|()| json::decode(document.as_bytes(), &mut spec));
    read.map_err(|error| ApiError::unclassified(error.to_string()))?;
    Ok(Some(spec.tolerations))
}

impl PodTolerationRestriction {
    async fn check(&self, cx: &Context, attributes: &Attributes, pod: &Pod) -> Result<(), ApiError> {
        if pod.spec.tolerations.is_empty() {
            return Ok(());
        }
        let own = listed(cx, attributes, WHITELIST).await?;
        let (whose, whitelist) = match &own {
            Some(own) => ("namespace", own),
            None => ("cluster", &self.0.whitelist),
        };
        let fits = |toleration: &Toleration| whitelist.iter().any(|wide| tolerations::covers(wide, toleration));
        if whitelist.is_empty() || pod.spec.tolerations.iter().all(fits) {
            return Ok(());
        }
        let text = "pod tolerations (possibly merged with namespace default tolerations) conflict with its";
        Err(ApiError::unclassified(format!("{text} {whose} whitelist")))
    }
}

#[async_trait]
impl Plugin for PodTolerationRestriction {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.is("", "pods") && matches!(attributes.operation, Operation::Create | Operation::Update)
    }

    async fn mutate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&mut dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(pod) = object.and_then(|object| object.downcast_mut::<Pod>()) else { return Ok(()) };
        let mut extra = Vec::new();
        if attributes.operation == Operation::Create {
            extra = listed(cx, attributes, DEFAULTS).await?.unwrap_or_else(|| self.0.default.clone());
        }
        if qos::class_of(pod) != pod_qos_class::BEST_EFFORT {
            extra.push(Toleration {
                key: MEMORY_PRESSURE.into(),
                operator: "Exists".into(),
                effect: "NoSchedule".into(),
                ..Toleration::default()
            });
        }
        if !extra.is_empty() {
            pod.spec.tolerations = tolerations::merged(&pod.spec.tolerations, &extra);
        }
        self.check(cx, attributes, pod).await
    }

    async fn validate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        match object.and_then(|object| object.downcast_ref::<Pod>()) {
            Some(pod) => self.check(cx, attributes, pod).await,
            None => Ok(()),
        }
    }
}

/// `Configuration` of podtolerationrestriction.admission.k8s.io.
mod config {
    use api_machinery::api;
    use api_machinery::field_path::{ErrorList, Path};
    use api_types::apiserver_config_v1::decode;
    use api_types::core_v1::Toleration;
    use component_helpers::tolerations::validate_tolerations;

    use crate::Stated;

    const API_VERSION: &str = "podtolerationrestriction.admission.k8s.io/v1alpha1";

    /// What holds for namespaces that say nothing.
    #[api]
    pub(super) struct Configuration {
        /// What pods tolerate beside their own.
        #[field(0)]
        pub(super) default: Vec<Toleration>,
        /// What they may tolerate; anything where it is empty.
        #[field(0)]
        pub(super) whitelist: Vec<Toleration>,
    }

    impl Configuration {
        /// Reads it; where there is none, nothing is added and anything allowed.
        pub(super) fn read(stated: Stated<'_>) -> Result<Self, String> {
            let mut configuration = Self::default();
            let Some(value) = stated.value else { return Ok(configuration) };
            decode(value.clone(), "Configuration", &[API_VERSION], &mut configuration)?;
            let (at, mut errors) = (Path::new("podtolerationrestriction"), ErrorList::new());
            validate_tolerations(&at.child("default"), &configuration.default, stated.comparing, &mut errors);
            validate_tolerations(&at.child("whitelist"), &configuration.whitelist, stated.comparing, &mut errors);
            if errors.is_empty() {
                return Ok(configuration);
            }
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            Err(format!("invalid config: [{}]", texts.join(" ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::Container;
    use component_helpers::taints::Comparing;
    use serde_json::json;

    use super::*;
    use crate::plugins::testing::{Fixture, create};
    use crate::{Settings, Stated};

    fn plugin_by(rest: &serde_json::Value, comparing: Comparing) -> Result<Box<dyn Plugin>, String> {
        let mut value =
            json!({"apiVersion": "podtolerationrestriction.admission.k8s.io/v1alpha1", "kind": "Configuration"});
        value.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        let mut settings = Settings::default();
        let stated = Stated { comparing, ..Stated::by_default(&value) };
        settings.configured.put((ENTRY.configuration.unwrap())(stated)?);
        Ok((ENTRY.build)(&settings))
    }

    fn plugin(rest: &serde_json::Value) -> Result<Box<dyn Plugin>, String> {
        plugin_by(rest, Comparing::Texts)
    }

    fn namespace(name: &str, annotations: &[(&str, &str)]) -> Namespace {
        let mut namespace = Namespace::default();
        namespace.metadata.name = name.into();
        namespace.metadata.annotations =
            annotations.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        namespace
    }

    fn pod(keys: &[&str], cpu: bool) -> Pod {
        let mut pod = Pod::default();
        let exists = |key: &&str| Toleration { key: (*key).into(), operator: "Exists".into(), ..Toleration::default() };
        pod.spec.tolerations = keys.iter().map(exists).collect();
        if cpu {
            let mut container = Container::default();
            container.resources.requests.insert("cpu".into(), "1".parse().unwrap());
            pod.spec.containers.push(container);
        }
        pod
    }

    #[test]
    fn tolerations_compare_numbers_by_their_gate() {
        let list = json!([{"key": "k", "operator": "Gt", "value": "5"}]);
        for member in ["default", "whitelist"] {
            let read = |comparing| plugin_by(&json!({ member: list }), comparing).err().unwrap_or_default();
            assert_eq!(read(Comparing::Numbers), "");
            let refused =
                format!("invalid config: [podtolerationrestriction.{member}[0].operator: Unsupported value: \"Gt\"");
            let told = read(Comparing::Texts);
            assert!(told.starts_with(&refused), "{told}");
        }
    }

    #[tokio::test]
    async fn pods_tolerate_what_their_namespace_says() {
        let list = r#"[{"key": "own", "operator": "Exists"}]"#;
        let fixture = Fixture::default().with(vec![
            namespace("silent", &[]),
            namespace("own", &[(DEFAULTS, list), (WHITELIST, list)]),
            namespace("none", &[(DEFAULTS, ""), (WHITELIST, "")]),
            namespace("wrong", &[(DEFAULTS, "{")]),
        ]);
        let default = json!([{"key": "cluster", "operator": "Exists"}]);
        let plugin = plugin(&json!({"default": default, "whitelist": default})).unwrap();
        let conflict = |whose: &str| {
            Err(format!(
                "pod tolerations (possibly merged with namespace default tolerations) conflict with its {whose} whitelist"
            ))
        };
        let (create, update) = (Operation::Create, Operation::Update);
        for (name, operation, mut pod, expected) in [
            ("silent", create, pod(&[], false), Ok(vec!["cluster"])),
            ("silent", update, pod(&[], false), Ok(vec![])),
            ("silent", create, pod(&["x"], false), conflict("cluster")),
            ("silent", create, pod(&[], true), conflict("cluster")),
            ("own", create, pod(&[], false), Ok(vec!["own"])),
            ("own", create, pod(&["cluster"], false), conflict("namespace")),
            ("none", create, pod(&["x"], false), Ok(vec!["x"])),
            ("none", create, pod(&["x"], true), Ok(vec!["x", MEMORY_PRESSURE])),
            ("none", update, pod(&["x"], true), Ok(vec!["x", MEMORY_PRESSURE])),
        ] {
            let attributes =
                Attributes { operation, namespace: name.into(), ..crate::plugins::testing::create("", "pods") };
            assert!(plugin.handles(&attributes));
            let outcome = plugin.mutate(&fixture.context(), &attributes, Some(&mut pod), None).await;
            let keys: Vec<&str> = pod.spec.tolerations.iter().map(|own| own.key.as_str()).collect();
            let checked = plugin.validate(&fixture.context(), &attributes, Some(&pod), None).await;
            assert_eq!(outcome, checked, "{name}: both passes hold the same");
            let outcome = outcome.map(|()| keys).map_err(|error| {
                assert_eq!((error.code, &*error.reason), (500, ""));
                error.message
            });
            assert_eq!(outcome, expected, "{name} {operation:?}");
        }
        let attributes = Attributes { namespace: "wrong".into(), ..crate::plugins::testing::create("", "pods") };
        let error = plugin.mutate(&fixture.context(), &attributes, Some(&mut pod(&[], false)), None).await.unwrap_err();
        assert_eq!((error.code, &*error.reason), (500, ""));
        let attributes = Attributes { namespace: "gone".into(), ..create_pod() };
        let error = plugin.mutate(&fixture.context(), &attributes, Some(&mut pod(&[], false)), None).await.unwrap_err();
        assert_eq!(error.code, 404);
    }

    fn create_pod() -> Attributes {
        create("", "pods")
    }

    #[test]
    fn configurations_are_read_strictly() {
        for (bad, expected) in [
            (json!({"defaults": []}), "strict decoding error: unknown field \"defaults\""),
            (json!({"default": [{"key": "a", "seconds": 1}]}), "unknown field \"default[0].seconds\""),
            (
                json!({"whitelist": [{"key": "a", "operator": "Exists", "value": "x"}]}),
                "invalid config: [podtolerationrestriction.whitelist[0].operator: Invalid value: \"x\": value must be \
                 empty when `operator` is 'Exists']",
            ),
        ] {
            let problem = plugin(&bad).err().unwrap();
            assert!(problem.contains(expected), "{bad}: {problem}");
        }
    }
}
