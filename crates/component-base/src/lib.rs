//! What every component is made of besides its own work: flags, configuration files, logs, metrics, health, TLS,
//! HTTPS serving, and the way it starts and ends. Nothing here knows a kind of the API.

pub mod flags;
pub mod serving;
pub mod tls;
