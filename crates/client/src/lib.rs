//! How every component reaches the API server: transport, kubeconfig, typed and free-form access, informers, work
//! queues, leader election and events. Reconciling is one layer up, in `controller`.

mod api;
mod cbor_sequence;
#[cfg(test)]
mod cbor_tests;
mod client;
mod codec;
mod config;
mod credentials;
mod cx;
mod discovery;
mod error;
mod events;
mod exec;
mod expectations;
#[cfg(any(test, feature = "fake"))]
pub mod fake;
pub mod features;
mod informer;
mod kubeconfig;
mod leader;
mod metrics;
mod object_key;
mod patch;
mod rate_limit;
mod request;
mod resource;
mod retry;
mod transport;
mod verbs;
mod warnings;
mod watch;
mod webhook;
mod work_queue;

pub use api::{Api, Deleted};
pub use client::Client;
pub use config::{
    CertSource, ClientConfig, ConfigError, ContentType, Credentials, DEFAULT_BURST, DEFAULT_QPS, Impersonation, Trust,
};
pub use cx::ClientCx;
pub use discovery::{Discovered, RestMapper, ServedResource, discover};
pub use error::{ClientError, error_from_status, retry_on_conflict};
pub use events::{EventRecorder, EventType, SeriesEvent, SeriesRecorder, object_reference};
pub use exec::ExecPlugin;
pub use expectations::{EXPIRED, Expectations};
pub use informer::{Change, Informer, InformerOptions, Informers, ObjectStore, Scope, Share, Transform};
pub use kubeconfig::{
    AuthProviderConfig, Cluster, Context, ExecConfig, ExecEnvVar, Kubeconfig, NamedCluster, NamedContext,
    NamedExtension, NamedUser, Overrides, ParseError, Preferences, User,
};
pub use leader::{Candidacy, LeaderConfig, LeaderElector, LeaderEnd};
pub use metrics::RequestMetrics;
pub use object_key::ObjectKey;
pub use patch::Patch;
pub use rate_limit::TokenBucket;
pub use request::{RawResponse, Request, path_segment};
pub use resource::{ApiObject, ResourceInfo};
pub use transport::{
    ApiHandler, Body, BoxError, FaultLayer, Faults, HttpsTransport, InProcess, Peer, Transport, TransportError,
};
pub use watch::{WatchEvent, WatchStream};
pub use webhook::{Webhook, WebhookRetry};
pub use work_queue::{NoMetrics, QueueMetrics, RateLimit, WorkQueue};
