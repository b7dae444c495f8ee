//! Repair: what Services really hold is what addresses and ports must say. What nobody holds is given back only after a
//! while, for its Service may be about to be written.

use api_machinery::object::{Kind, Object};
use api_machinery::status::ApiError;
use api_types::core_v1::{ObjectReference, Service};

use crate::context::RequestCx;
use crate::registry::Registry;

/// Something wrong with a Service or an address, to be told by a Warning event on it.
#[derive(Debug, Clone, PartialEq)]
pub struct RepairFinding {
    /// The Service or the address.
    pub regarding: ObjectReference,
    /// Reason of the event.
    pub reason: &'static str,
    /// What was looked at.
    pub action: RepairAction,
    /// Text of the event.
    pub message: String,
}

/// What repair was about, as events name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepairAction {
    /// The form of a Service's address.
    ClusterIPValidation,
    /// The address of a Service.
    ClusterIPAllocation,
    /// The object of an address.
    IPAddressAllocation,
    /// The node port of a Service.
    PortAllocation,
}

impl RepairAction {
    /// Its name in events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClusterIPValidation => "ClusterIPValidation",
            Self::ClusterIPAllocation => "ClusterIPAllocation",
            Self::IPAddressAllocation => "IPAddressAllocation",
            Self::PortAllocation => "PortAllocation",
        }
    }
}

impl RepairFinding {
    pub(super) fn of<T: Kind + Object>(
        object: &T,
        action: RepairAction,
        reason: &'static str,
        message: String,
    ) -> Self {
        let meta = object.meta();
        let regarding = ObjectReference {
            api_version: T::TYPE.api_version(),
            kind: T::TYPE.kind.to_owned(),
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
            ..ObjectReference::default()
        };
        Self { regarding, reason, action, message }
    }

    pub(super) fn of_port(service: &Service, reason: &'static str, message: String) -> Self {
        Self::of(service, RepairAction::PortAllocation, reason, message)
    }
}

/// What a pass of repair found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RepairReport {
    /// Problems of Services and addresses.
    pub findings: Vec<RepairFinding>,
    /// How many addresses and ports without an owner were given back.
    pub freed: usize,
}

impl Registry {
    /// One pass over all Services: makes addresses and ports say what Services hold. To be called every three minutes,
    /// and once before the server is ready.
    ///
    /// # Errors
    /// When Services cannot be listed, or what they hold cannot be written.
    pub async fn repair_services(&self, cx: &RequestCx) -> Result<RepairReport, ApiError> {
        let mut report = RepairReport::default();
        self.services().repair_addresses(cx.rules.now, &mut report).await.map_err(ApiError::internal)?;
        let services = self.resource("", "v1", "services").ok_or_else(ApiError::unknown_resource)?;
        self.services().repair_ports(cx, &services, &mut report).await.map_err(ApiError::internal)?;
        Ok(report)
    }
}
