//! What only Kubernetes has: its libraries, its environments by version, types of structural schemas.

pub mod declared;
