//! What every component is made of besides its own work: flags, configuration files, logs, metrics, health, TLS,
//! HTTPS serving, and the way it starts and ends. Nothing here knows a kind of the API.

pub mod config_file;
pub mod debugging;
pub mod flags;
pub mod health;
pub mod http_proxy;
pub mod http_tunnel;
mod idle;
pub mod lifecycle;
pub mod logging;
pub mod metrics;
pub mod notify;
pub mod reload;
mod run;
pub mod serving;
pub mod swappable;
pub mod tls;
pub mod version;
pub mod zpages;

pub use feature_gates::{Feature, Gates, Known, Part, shared as shared_gates};
pub use flags::Versions;
pub use lifecycle::Lifecycle;
pub use run::{Component, no_config_file, run, run_with};
