//! Admission: what may still change or refuse a write after it was authorized. Each plugin is a file in `plugins`, and
//! [`ALL`] lists them in upstream's order.

mod attributes;
mod chain;
mod expressions;
mod findings;
mod lookup;
mod manifests;
pub mod matching;
mod plugin;
mod plugins;
mod policies;
mod recorder;
mod rounds;
mod versions;
pub mod webhook;

pub use attributes::{Annotations, Attributes, Operation, OperationOptions, Warnings};
pub use chain::{Chain, SelectError, Selection};
pub use findings::Findings;
pub use lookup::{Lookup, ResourceAttributes};
pub use manifests::{Manifests, NoManifests};
pub use plugin::{
    ConfigurationError, Configurations, Configured, Context, Passes, Plugin, PluginEntry, ReadConfiguration, Settings,
    Stated,
};
pub use plugins::{ALL, ImagePolicyConfig, ImageReviewer};
pub use policies::ParamResource;
pub use recorder::{
    ConditionKind, ConditionRun, NoRecorder, Pass, PodSecurityEvaluation, PodSecurityFailure, PodSecurityRequest,
    PolicyCheck, PolicyError, Recorder, Run, WebhookOutcome, WebhookRun,
};
pub use rounds::Rounds;
pub use versions::{CustomSchema, OneVersion, Served, Versions, read_as};
