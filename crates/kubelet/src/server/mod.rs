//! The kubelet's own API: who may ask, and what is answered.

mod access;
mod cadvisor;
mod container_use;
mod debug;
mod exposition;
mod figures;
mod log_format;
mod log_query;
mod log_read;
mod logs;
mod metering;
mod network;
mod node_logs;
mod resource;
mod reviews;
mod route;
mod runtime_metrics;
mod stats;
mod streams;
mod traced;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use api_types::core_v1::Pod;
use api_types::kubelet_config_v1beta1::KubeletConfiguration;
use async_trait::async_trait;
use base::{SharedClock, TaskGroup};
use component_base::debugging::Debugging;
use component_base::health::Health;
use component_base::metrics::Metrics;
use component_base::serving::{Handler, Request, Response};
use component_base::zpages::Zpages;
use futures_util::future::BoxFuture;
use node_api::cri::Runtime;
use parking_lot::Mutex;
use tracing_otlp::{Parent, Tracer};

use crate::engine::PodEngine;
use crate::metrics::KubeletMetrics;
use crate::volumes::ClaimRoom;
use metering::{Metered, ServerType};
use traced::traced;

pub(crate) use access::{Access, Authorizer, Everyone};
pub(crate) use figures::Source;
pub(crate) use node_logs::NodeLogs;
pub(crate) use reviews::{ReviewAuthorizer, ReviewTokens};
pub(crate) use stats::Stats;

/// Tells of the claims that pods use.
type Claims = Box<dyn Fn(Vec<Arc<Pod>>) -> BoxFuture<'static, Vec<ClaimRoom>> + Send + Sync>;

/// What the answers are made from.
pub(crate) struct Api {
    pub(crate) engine: PodEngine,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) config: Arc<KubeletConfiguration>,
    pub(crate) health: Arc<Health>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) slis: Arc<Metrics>,
    /// Those of probes, which are served apart.
    pub(crate) probes: Arc<Metrics>,
    pub(crate) own: Arc<KubeletMetrics>,
    pub(crate) claims: Claims,
    /// Namespaces and names of those that the metrics told of last.
    pub(crate) claims_shown: Mutex<BTreeSet<(String, String)>>,
    /// `--cert-dir`.
    pub(crate) cert_dir: PathBuf,
    pub(crate) stats: Stats,
    /// `/logs`
    pub(crate) node_logs: NodeLogs,
    pub(crate) clock: SharedClock,
    /// Streams that outlive their request's answer.
    pub(crate) tasks: TaskGroup,
    /// Gate `ExtendWebSocketsToKubelet`.
    pub(crate) translates: bool,
    /// Gate `PodLogsQuerySplitStreams`.
    pub(crate) splits_log_streams: bool,
    /// Gate `KubeletSeparateDiskGC`.
    pub(crate) separate_disks: bool,
    /// Whom figures of pods as a whole are from, by the gate `PodAndContainerStatsFromCRI`.
    pub(crate) source: Source,
    /// Gate `ContainerCheckpoint` (KEP-2008).
    pub(crate) checkpoints: bool,
    /// `/flagz` and `/statusz`.
    pub(crate) zpages: Zpages,
    /// `/debug/pprof`, and the log's verbosity.
    pub(crate) debugging: Debugging,
    /// Records requests, where traces are recorded.
    pub(crate) tracer: Option<Tracer>,
}

/// The main server: everything, for those who may.
pub(crate) struct Secured {
    pub(crate) api: Arc<Api>,
    pub(crate) access: Access,
}

#[async_trait]
impl Handler for Secured {
    async fn handle(&self, request: Request) -> Response {
        let _metered = Metered::start(&self.api.own, ServerType::ReadWrite, &request);
        match self.access.check(request).await {
            Ok(request) => {
                let answer = |request| route::full(self.api.clone(), request);
                traced(self.api.tracer.as_ref(), Parent::Trusted, request, answer).await
            }
            Err(refusal) => *refusal,
        }
    }
}

/// The read-only server: a part, for everyone.
pub(crate) struct ReadOnly(pub(crate) Arc<Api>);

#[async_trait]
impl Handler for ReadOnly {
    async fn handle(&self, request: Request) -> Response {
        let _metered = Metered::start(&self.0.own, ServerType::ReadOnly, &request);
        let answer = |request| route::read_only(self.0.clone(), request);
        traced(self.0.tracer.as_ref(), Parent::Public, request, answer).await
    }
}

#[cfg(test)]
mod container_use_tests;
#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod tests;
