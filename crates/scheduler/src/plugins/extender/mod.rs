//! `Extender`: an HTTP service of the configuration that has a say in filtering, scoring, binding and eviction. One plugin
//! for each, at the remote points of every profile. See "Scheduler extender" in Kubernetes' design documents.

mod wire;

#[cfg(test)]
pub(crate) mod test_server;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::Container;
use api_types::scheduler_config_v1::Extender as ExtenderConfig;
use async_trait::async_trait;
use bytes::Bytes;
use client::{Body, BoxError, CertSource, ClientConfig, ClientCx, ConfigError, HttpsTransport, Transport, Trust};
use http::{HeaderValue, Method, StatusCode, header};
use http_body_util::BodyExt as _;

use crate::framework::{
    BuildCx, Candidate, CycleCx, CycleState, MAX_SCORE, Plugin, Remote, RemoteBind, RemoteFilter, RemotePreempt,
    RemoteScore, Status, StatusResult,
};
use crate::node_info::NodeView;
use crate::pod_info::PodInfo;

/// The name that rejections and metrics carry, whichever extender it was.
pub(crate) const NAME: &str = "Extender";
/// How long an answer may take where the configuration does not say.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Extenders score up to this.
const MAX_EXTENDER_SCORE: i64 = 10;
/// No answer is longer: 5,000 whole nodes are some 50 MB.
const MAX_ANSWER_BYTES: usize = 128 << 20;

struct Extender {
    /// The address, without a slash at the end.
    url: String,
    /// The path in it.
    path: String,
    transport: Arc<dyn Transport>,
    config: ExtenderConfig,
}

/// An address or a certificate of an extender cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot create extender with URL {url:?}: {source}")]
pub(crate) struct ExtenderError {
    url: String,
    source: ConfigError,
}

/// The plugins of all extenders, those first that may not be ignored.
///
/// # Errors
/// When an address or a certificate cannot be used.
pub(crate) fn build_all(cx: &BuildCx, configs: &[ExtenderConfig]) -> Result<Vec<Plugin>, ExtenderError> {
    let (ignorable, needed): (Vec<_>, Vec<_>) = configs.iter().partition(|config| config.ignorable);
    let process = ClientCx::new(Arc::clone(&cx.clock), Arc::clone(&cx.rng), cx.tasks.clone())
        .obeying(&cx.gates)
        .behind(&cx.proxies);
    let plugin = |config: &ExtenderConfig| {
        let transport = HttpsTransport::of(&client_config(config), &process)
            .map_err(|source| ExtenderError { url: config.url_prefix.clone(), source })?;
        Ok(plugin(config, transport))
    };
    needed.into_iter().chain(ignorable).map(plugin).collect()
}

fn plugin(config: &ExtenderConfig, transport: Arc<dyn Transport>) -> Plugin {
    let url = config.url_prefix.trim_end_matches('/').to_owned();
    let address = url.split_once("://").map_or(url.as_str(), |(_, address)| address);
    let path = address.find('/').and_then(|start| address.get(start..)).unwrap_or_default().to_owned();
    let extender = Arc::new(Extender { url, path, transport, config: config.clone() });
    let mut plugin = Plugin::new(NAME);
    if !config.filter_verb.is_empty() {
        plugin = plugin.remote_filter(extender.clone());
    }
    if !config.prioritize_verb.is_empty() {
        plugin = plugin.remote_score(extender.clone());
    }
    if !config.bind_verb.is_empty() {
        plugin = plugin.remote_bind(extender.clone());
    }
    if !config.preempt_verb.is_empty() {
        plugin = plugin.remote_preempt(extender);
    }
    plugin
}

/// As upstream, anybody's certificate is taken where HTTPS is asked for without an authority to trust.
fn client_config(config: &ExtenderConfig) -> ClientConfig {
    let tls = config.tls_config.clone().unwrap_or_default();
    let data = |bytes: &[u8]| bytes.to_vec();
    let trust = if tls.insecure {
        Trust::Insecure
    } else if !tls.ca_data.is_empty() {
        Trust::Pem(data(&tls.ca_data))
    } else if !tls.ca_file.is_empty() {
        Trust::File(tls.ca_file.into())
    } else if config.enable_https {
        Trust::Insecure
    } else {
        Trust::System
    };
    let identity = if !tls.cert_data.is_empty() {
        CertSource::Pem { cert: data(&tls.cert_data), key: data(&tls.key_data) }
    } else if !tls.cert_file.is_empty() {
        CertSource::Files { cert: tls.cert_file.into(), key: tls.key_file.into() }
    } else {
        CertSource::None
    };
    ClientConfig { trust, identity, server_name: tls.server_name, ..ClientConfig::for_server(&config.url_prefix) }
}

impl Extender {
    /// Asks, and gives the body of the answer.
    async fn ask(&self, verb: &str, body: String) -> Result<String, Status> {
        let failed = |error: &dyn std::fmt::Display| Status::error(format!("Post \"{}/{verb}\": {error}", self.url));
        let request = http::Request::builder()
            .method(Method::POST)
            .uri(format!("{}/{verb}", self.path))
            .header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(Bytes::from(body))
            .map_err(|error| failed(&error))?;
        let response = self.transport.send(request).await.map_err(|error| failed(&error))?;
        let (head, body) = response.into_parts();
        if head.status != StatusCode::OK {
            let code = head.status.as_u16();
            return Err(Status::error(format!("failed {verb} with extender at URL {}/{verb}, code {code}", self.url)));
        }
        let body = whole(body).await.map_err(|error| failed(&error))?;
        String::from_utf8(body).map_err(|error| failed(&error))
    }

    fn manages(&self, container: &Container) -> bool {
        let amounts = &container.resources;
        let asks = |name: &str| amounts.requests.contains_key(name) || amounts.limits.contains_key(name);
        self.config.managed_resources.iter().any(|resource| asks(&resource.name))
    }
}

/// Why the body of an answer cannot be had.
#[derive(Debug, thiserror::Error)]
enum AnswerError {
    #[error(transparent)]
    Broken(BoxError),
    #[error("the answer is longer than {MAX_ANSWER_BYTES} bytes")]
    TooLong,
}

/// A body that is not too long.
async fn whole(mut body: Body) -> Result<Vec<u8>, AnswerError> {
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(AnswerError::Broken)?.into_data() else { continue };
        if all.len() + data.len() > MAX_ANSWER_BYTES {
            return Err(AnswerError::TooLong);
        }
        all.extend_from_slice(&data);
    }
    Ok(all)
}

impl Remote for Extender {
    fn is_interested(&self, pod: &PodInfo) -> bool {
        let spec = &pod.pod.spec;
        self.config.managed_resources.is_empty()
            || spec.containers.iter().chain(&spec.init_containers).any(|container| self.manages(container))
    }

    fn deadline(&self) -> Duration {
        match u64::try_from(self.config.http_timeout.nanos()) {
            Ok(nanos) if nanos > 0 => Duration::from_nanos(nanos),
            _ => TIMEOUT,
        }
    }

    fn address(&self) -> &str {
        &self.url
    }

    fn is_ignorable(&self) -> bool {
        self.config.ignorable
    }
}

#[async_trait]
impl RemoteFilter for Extender {
    async fn filter(&self, _: &CycleState, pod: &PodInfo, nodes: &[NodeView<'_>]) -> Result<Vec<StatusResult>, Status> {
        let by_name = self.config.node_cache_capable;
        let body = wire::nodes_question(&pod.pod, nodes, by_name);
        let answer = wire::filter_answer(&self.ask(&self.config.filter_verb, body).await?, by_name)?;
        let known: HashSet<&str> = nodes.iter().map(|node| &*node.info.name).collect();
        if let Some(stranger) = answer.nodes.iter().find(|name| !known.contains(name.as_str())) {
            return Err(Status::error(format!(
                "extender {:?} claims a filtered node {stranger:?} which is not found in the input node list",
                self.url
            )));
        }
        Ok(nodes.iter().map(|node| answer.verdict(&node.info.name)).collect())
    }
}

#[async_trait]
impl RemoteScore for Extender {
    async fn score(&self, _: &CycleState, pod: &PodInfo, nodes: &[NodeView<'_>]) -> Result<Vec<i64>, Status> {
        let body = wire::nodes_question(&pod.pod, nodes, self.config.node_cache_capable);
        let scores = wire::scores_answer(&self.ask(&self.config.prioritize_verb, body).await?)?;
        let factor = self.config.weight.saturating_mul(MAX_SCORE / MAX_EXTENDER_SCORE);
        let score = |node: &NodeView<'_>| scores.get(&*node.info.name).copied().unwrap_or(0).saturating_mul(factor);
        Ok(nodes.iter().map(score).collect())
    }
}

#[async_trait]
impl RemoteBind for Extender {
    async fn bind(&self, pod: &PodInfo, node: &str) -> StatusResult {
        let body = wire::binding_question(&pod.pod, node);
        wire::binding_answer(&self.ask(&self.config.bind_verb, body).await?)
    }
}

#[async_trait]
impl RemotePreempt for Extender {
    async fn review(
        &self,
        cx: CycleCx<'_>,
        pod: &PodInfo,
        candidates: Vec<Candidate>,
    ) -> Result<Vec<Candidate>, Status> {
        let body = wire::victims_question(&pod.pod, &candidates, self.config.node_cache_capable);
        let answer = wire::victims_answer(&self.ask(&self.config.preempt_verb, body).await?)?;
        let left = answer.into_iter().filter_map(|(node, victims)| self.candidate(cx, &node, &victims).transpose());
        left.collect()
    }
}

impl Extender {
    /// What the extender says of a node; nothing where it says nothing and may be ignored.
    fn candidate(&self, cx: CycleCx<'_>, name: &str, left: &wire::Victims) -> Result<Option<Candidate>, Status> {
        if left.uids.is_empty() {
            let error = || Status::error(format!("expected at least one victim pod on node {name:?}"));
            return if self.config.ignorable { Ok(None) } else { Err(error()) };
        }
        let unknown = |what: String| Status::error(format!("extender: {} claims to preempt {what}", self.url));
        let node = cx.snapshot.by_name(name);
        let node = node.ok_or_else(|| unknown(format!("pods on node: {name}, but the node is not found")))?;
        let pods: BTreeMap<&str, _> = node.pods.iter().map(|pod| (pod.uid(), pod)).collect();
        let victim = |uid: &String| {
            let pod = pods.get(uid.as_str()).map(|pod| Arc::clone(pod));
            let place = format!("pod (UID: {uid}) on node: {name}, but the pod is not found on that node");
            pod.ok_or_else(|| unknown(place))
        };
        let victims = left.uids.iter().map(victim).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(Candidate { node: Arc::clone(&node.info.name), victims, violations: left.violations }))
    }
}
