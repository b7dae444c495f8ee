//! What metrics are right now, as the APIs metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io tell it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::gvk::{GroupKind, GroupResource, GroupVersion};
use api_machinery::json::parse_value;
use api_machinery::labels::{Selector, SelectorError};
use api_machinery::meta::{LabelSelector, ListOptions};
use api_machinery::quantity::Quantity;
use api_machinery::time::Time;
use api_machinery::value::Value;
use api_types::autoscaling_v2::{CrossVersionObjectReference, MetricIdentifier};
use api_types::core_v1::Pod;
use api_types::metrics_v1beta1::PodMetrics;
use client::{Client, ClientError, Request, path_segment};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::groups::{Sample, Samples};
use super::listed::Listed;
use super::target::{Kinds, TargetError};

const CUSTOM: &str = "custom.metrics.k8s.io";
/// The versions of the API of custom metrics that are understood, the better first.
const CUSTOM_VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];
const EXTERNAL: &str = "external.metrics.k8s.io";
/// The window of a value that does not say how long its own is.
const DEFAULT_WINDOW: Duration = Duration::from_secs(60);

/// Why a metric could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error("unable to fetch metrics from {api} metrics API: {why}")]
    Fetch { api: &'static str, why: FetchError },
    #[error("no metrics returned from {0} metrics API")]
    Empty(&'static str),
    #[error(transparent)]
    Selector(#[from] SelectorError),
}

/// Why an API did not answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Kind(#[from] TargetError),
    #[error("no custom metrics API ({CUSTOM}) registered")]
    NotRegistered,
    #[error("{0}")]
    Malformed(&'static str),
}

impl FetchError {
    fn of(api: &'static str) -> impl Fn(Self) -> ReadError {
        move |why| ReadError::Fetch { api, why }
    }
}

/// How long what a whole namespace uses is good enough for all who look at it. It is measured every 15 s, at most.
const SHARED_FOR: Duration = Duration::from_secs(3);

/// What all pods of a namespace use, and when that was asked.
type Told = Option<(Instant, Arc<Listed>)>;

/// Who asks for the metrics of pods: which pods, and whether others of their namespace ask soon, too.
pub(super) struct Asking<'a> {
    pub(super) namespace: &'a str,
    pub(super) selector: &'a Selector,
    /// The pods that the selector selects.
    pub(super) pods: &'a [Arc<Pod>],
    pub(super) is_shared: bool,
}

/// Reads metrics. Speaks JSON, as adapters for custom metrics need not speak anything else.
pub(super) struct Readings {
    client: Client,
    /// Which version of the API of custom metrics there is, and when that was asked.
    custom: Mutex<Option<(Instant, &'static str)>>,
    /// How long that is believed.
    believed: Duration,
    /// By namespace; held while it is asked for, so that whoever comes in the meantime waits for the same answer.
    told: parking_lot::Mutex<HashMap<String, Arc<Mutex<Told>>>>,
}

impl Readings {
    pub(super) fn new(client: Client, believed: Duration) -> Self {
        Self { client, custom: Mutex::default(), believed, told: parking_lot::Mutex::default() }
    }

    /// What pods use of a resource, or one container of each. Pods that do not tell it of all their containers are left out.
    pub(super) async fn resource(
        &self,
        asking: &Asking<'_>,
        resource: &str,
        container: Option<&str>,
    ) -> Result<Samples, ReadError> {
        const API: &str = "resource";
        let wrong = |error: ClientError| FetchError::of(API)(error.into());
        let (shared, own);
        let wanted: Vec<&PodMetrics> = if asking.is_shared {
            shared = self.whole_namespace(asking.namespace).await.map_err(wrong)?;
            shared.selected(asking.namespace, asking.selector, asking.pods)
        } else {
            own = self.list(asking.namespace, asking.selector.to_string()).await.map_err(wrong)?;
            own.iter().collect()
        };
        if wanted.is_empty() {
            return Err(ReadError::Empty(API));
        }
        let sample = |pod: &PodMetrics| {
            let milli = used(pod, resource, container)?;
            Some((pod.metadata.name.clone(), Sample { at: pod.timestamp, window: pod.window.to_std(), milli }))
        };
        Ok(wanted.into_iter().filter_map(sample).collect())
    }

    async fn list(&self, namespace: &str, label_selector: String) -> Result<Vec<PodMetrics>, ClientError> {
        let options = ListOptions { label_selector, ..ListOptions::default() };
        self.client.namespaced::<PodMetrics>(namespace).list(&options).await.map(|list| list.items)
    }

    /// What all pods of a namespace use, as it was told a moment ago at most.
    async fn whole_namespace(&self, namespace: &str) -> Result<Arc<Listed>, ClientError> {
        let told = Arc::clone(self.told.lock().entry(namespace.to_owned()).or_default());
        let mut told = told.lock().await;
        let now = self.client.clock().monotonic();
        if let Some((asked, listed)) = &*told
            && now.saturating_duration_since(*asked) < SHARED_FOR
        {
            return Ok(Arc::clone(listed));
        }
        *told = None;
        let listed = Arc::new(Listed::new(self.list(namespace, String::new()).await?));
        *told = Some((now, Arc::clone(&listed)));
        Ok(listed)
    }

    /// Forgets what was told of a namespace that no autoscaler looks at any more.
    pub(super) fn forget(&self, namespace: &str) {
        self.told.lock().remove(namespace);
    }

    /// The values of a custom metric of pods.
    pub(super) async fn pods(
        &self,
        namespace: &str,
        metric: &MetricIdentifier,
        selector: &Selector,
    ) -> Result<Samples, ReadError> {
        let path = format!("namespaces/{}/pods/*/{}", path_segment(namespace), path_segment(&metric.name));
        let items = self.custom(&path, &metric_selector(metric)?, &selector.to_string()).await?;
        Ok(items.into_iter().map(|item| (item.object, item.sample)).collect())
    }

    /// The value of a custom metric of one object, in thousandths.
    pub(super) async fn object(
        &self,
        kinds: &Kinds,
        namespace: &str,
        object: &CrossVersionObjectReference,
        metric: &MetricIdentifier,
    ) -> Result<i64, ReadError> {
        let (inside, name) = (path_segment(namespace), path_segment(&metric.name));
        let group = GroupVersion::parse(&object.api_version).unwrap_or_default().group;
        let path = if object.kind == "Namespace" && group.is_empty() {
            // A namespace has nothing to say but about itself.
            format!("namespaces/{inside}/metrics/{name}")
        } else {
            let kind = GroupKind::named(&group, &object.kind);
            let info = kinds.resource_of(&kind).await.map_err(|error| FetchError::of("custom")(error.into()))?;
            let resource = info.resource.group_resource();
            format!("namespaces/{inside}/{resource}/{}/{name}", path_segment(&object.name))
        };
        let items = self.custom(&path, &metric_selector(metric)?, "").await?;
        items.first().map(|item| item.sample.milli).ok_or(ReadError::Empty("custom"))
    }

    /// The sum of all series of an external metric, in thousandths.
    pub(super) async fn external(&self, namespace: &str, metric: &MetricIdentifier) -> Result<i64, ReadError> {
        const API: &str = "external";
        let selector = metric_selector(metric)?;
        let (inside, name) = (path_segment(namespace), path_segment(&metric.name));
        let request = Request::get(format!("/apis/{EXTERNAL}/v1beta1/namespaces/{inside}/{name}"))
            .query("labelSelector", selector)
            .about(GroupResource::new(EXTERNAL, "metric"));
        let items = self.items(request).await.map_err(FetchError::of(API))?;
        if items.is_empty() {
            return Err(ReadError::Empty(API));
        }
        Ok(items.iter().fold(0, |sum, item| sum.saturating_add(item.sample.milli)))
    }

    async fn custom(&self, path: &str, metric: &str, objects: &str) -> Result<Vec<Item>, ReadError> {
        const API: &str = "custom";
        let version = self.custom_version().await.map_err(FetchError::of(API))?;
        let request = Request::get(format!("/apis/{CUSTOM}/{version}/{path}"))
            .query("labelSelector", objects)
            .query("metricLabelSelector", metric)
            .about(GroupResource::new(CUSTOM, "metric"));
        let items = self.items(request).await.map_err(FetchError::of(API))?;
        if items.is_empty() { Err(ReadError::Empty(API)) } else { Ok(items) }
    }

    async fn custom_version(&self) -> Result<&'static str, FetchError> {
        let mut known = self.custom.lock().await;
        let now = self.client.clock().monotonic();
        if let Some((asked, version)) = *known
            && now.saturating_duration_since(asked) < self.believed
        {
            return Ok(version);
        }
        let group = match self.client.send(Request::get(format!("/apis/{CUSTOM}"))).await {
            Ok(answer) => json(&answer.body)?,
            Err(error) if error.is_not_found() => return Err(FetchError::NotRegistered),
            Err(error) => return Err(error.into()),
        };
        let versions = group.get("versions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let is_there = |version: &&str| versions.iter().any(|own| text(own, "version") == *version);
        let version = CUSTOM_VERSIONS.into_iter().find(is_there).ok_or(FetchError::NotRegistered)?;
        *known = Some((now, version));
        Ok(version)
    }

    async fn items(&self, request: Request) -> Result<Vec<Item>, FetchError> {
        let list = json(&self.client.send(request).await?.body)?;
        let items = list.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        items.iter().map(|item| Item::read(item).ok_or(FetchError::Malformed("malformed metric value"))).collect()
    }
}

/// What a pod, or one of its containers, used of a resource, in thousandths.
fn used(pod: &PodMetrics, resource: &str, container: Option<&str>) -> Option<i64> {
    let mut counted = pod.containers.iter().filter(|own| container.is_none_or(|name| own.name == name)).peekable();
    counted.peek()?;
    let values = counted.map(|own| own.usage.get(resource).map(Quantity::milli_value));
    values.sum::<Option<i64>>()
}

/// Which series of a metric are asked for; nothing selected is all of them.
fn metric_selector(metric: &MetricIdentifier) -> Result<String, SelectorError> {
    let selector = metric.selector.as_ref().map(Selector::from_label_selector).transpose()?;
    Ok(selector.map(|selector| selector.to_string()).unwrap_or_default())
}

/// A selector as upstream's texts show the struct that it is there.
pub(super) fn selector_text(selector: Option<&LabelSelector>) -> String {
    let Some(selector) = selector else { return "nil".to_owned() };
    let labels: String = selector.match_labels.iter().map(|(key, value)| format!("{key}: {value},")).collect();
    let expression = |it: &api_machinery::meta::LabelSelectorRequirement| {
        let values = it.values.join(" ");
        format!("LabelSelectorRequirement{{Key:{},Operator:{},Values:[{values}],}},", it.key, it.operator)
    };
    let expressions: String = selector.match_expressions.iter().map(expression).collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement\
         {{{expressions}}},}}"
    )
}

/// A value of a custom or an external metric; the versions of the APIs name its window differently.
#[derive(Debug, PartialEq, Eq)]
struct Item {
    /// The name of the object that it is of; external ones are of none.
    object: String,
    sample: Sample,
}

impl Item {
    fn read(item: &Value) -> Option<Self> {
        let object = item.get("describedObject").map(|object| text(object, "name")).unwrap_or_default();
        let value = item.get("value")?;
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let seconds = item.get("windowSeconds").or_else(|| item.get("window")).and_then(Value::as_i64);
        let window = seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
        let sample = Sample {
            at: Time::parse(text(item, "timestamp")).unwrap_or_default(),
            window: window.unwrap_or(DEFAULT_WINDOW),
            milli: Quantity::parse(&value).ok()?.milli_value(),
        };
        Some(Self { object: object.to_owned(), sample })
    }
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value.get(member).and_then(Value::as_str).unwrap_or_default()
}

fn json(body: &[u8]) -> Result<Value, FetchError> {
    let text = std::str::from_utf8(body).ok();
    text.and_then(|text| parse_value(text).ok()).ok_or(FetchError::Malformed("the answer is not JSON"))
}

#[cfg(test)]
mod tests {
    use api_machinery::meta::LabelSelectorRequirement;
    use api_types::metrics_v1beta1::ContainerMetrics;

    use super::*;

    #[test]
    fn a_pod_counts_if_all_that_is_asked_for_is_told() {
        let container = |name: &str, usage: &[(&str, &str)]| ContainerMetrics {
            name: name.to_owned(),
            usage: usage.iter().map(|(name, amount)| ((*name).to_owned(), Quantity::parse(amount).unwrap())).collect(),
        };
        let pod = |containers: Vec<ContainerMetrics>| PodMetrics { containers, ..PodMetrics::default() };
        let both = pod(vec![container("a", &[("cpu", "100m"), ("memory", "1Ki")]), container("b", &[("cpu", "1")])]);
        for (resource, container, expected) in [
            ("cpu", None, Some(1100)),
            ("cpu", Some("a"), Some(100)),
            ("memory", Some("a"), Some(1_024_000)),
            ("memory", None, None),
            ("memory", Some("b"), None),
            ("cpu", Some("c"), None),
        ] {
            assert_eq!(used(&both, resource, container), expected, "{resource} {container:?}");
        }
        assert_eq!(used(&pod(vec![]), "cpu", None), None);
    }

    #[test]
    fn values_of_all_versions_are_read() {
        let read = |text: &str| Item::read(&parse_value(text).unwrap());
        let sample = |milli, seconds| Sample {
            at: Time::parse("2026-01-01T00:00:00Z").unwrap(),
            window: Duration::from_secs(seconds),
            milli,
        };
        let second = r#"{"describedObject":{"kind":"Pod","name":"a"},"metric":{"name":"m"},
            "timestamp":"2026-01-01T00:00:00Z","windowSeconds":30,"value":"1500m"}"#;
        assert_eq!(read(second), Some(Item { object: "a".into(), sample: sample(1500, 30) }));
        let first = r#"{"describedObject":{"name":"a"},"metricName":"m","timestamp":"2026-01-01T00:00:00Z","window":20,
            "value":"2"}"#;
        assert_eq!(read(first), Some(Item { object: "a".into(), sample: sample(2000, 20) }));
        let external = r#"{"metricName":"m","metricLabels":{},"timestamp":"2026-01-01T00:00:00Z","value":"1k"}"#;
        assert_eq!(read(external), Some(Item { object: String::new(), sample: sample(1_000_000, 60) }));
        assert_eq!(read(r#"{"value":"many"}"#), None);
        assert_eq!(read("{}"), None);
    }

    #[test]
    fn selectors_are_shown_as_upstream_does() {
        assert_eq!(selector_text(None), "nil");
        let selector = LabelSelector {
            match_labels: [("a".to_owned(), "b".to_owned())].into(),
            match_expressions: vec![LabelSelectorRequirement {
                key: "k".into(),
                operator: "In".into(),
                values: vec!["x".into(), "y".into()],
            }],
        };
        assert_eq!(
            selector_text(Some(&selector)),
            "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement\
             {LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}"
        );
        let empty = "&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{},}";
        assert_eq!(selector_text(Some(&LabelSelector::default())), empty);
    }
}
