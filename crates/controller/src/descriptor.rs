//! What a controller is, as data beside its code.

use component_base::Feature;

use crate::build::{Build, BuildError};

/// One controller.
#[derive(Debug, Clone, Copy)]
pub struct Descriptor {
    /// The name, as in `--controllers` and in health checks.
    pub name: &'static str,
    /// Names it had before.
    pub aliases: &'static [&'static str],
    /// Feature gates that must all be on.
    pub gates: &'static [Feature],
    /// The service account in `kube-system` that it acts as; also the last part of its user agent.
    pub identity: &'static str,
    /// The component in its events; empty for a controller that records none.
    pub event_component: &'static str,
    /// Whether `*` leaves it out.
    pub disabled_by_default: bool,
    /// Puts it together: declares watches and queues, and who works on them.
    pub build: fn(&mut Build<'_>) -> Result<(), BuildError>,
}
