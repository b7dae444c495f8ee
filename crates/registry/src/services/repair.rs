//! Repair: what Services really hold is what addresses and ports must say. What nobody holds is given back only after a
//! while, for its Service may be about to be written.

use std::time::Duration;

use api_machinery::object::{Kind, Object};
use api_machinery::status::ApiError;
use api_machinery::time::Time;
use api_types::core_v1::{ObjectReference, Service};

use super::allocator::{AddressError, NetworkUse, Owner};
use crate::context::RequestCx;
use crate::registry::Registry;

/// Something wrong with a Service or an address, to be told by a Warning event on it.
#[derive(Debug, Clone, PartialEq)]
pub struct RepairFinding {
    /// The Service or the address.
    pub regarding: ObjectReference,
    /// Reason of the event.
    pub reason: RepairReason,
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

/// Why something is told, as events name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepairReason {
    /// What a Service has as its address is none.
    ClusterIPNotValid,
    /// It is in no network of Services.
    ClusterIPOutOfRange,
    /// No object says that the Service has it, or one says so of something else.
    ClusterIPNotAllocated,
    /// Another Service has it, too.
    ClusterIPAlreadyAllocated,
    /// An address that nobody has.
    IPAddressNotAllocated,
    /// An address whose Service does not have it.
    IPAddressWrongReference,
    /// A port outside the range.
    PortOutOfRange,
    /// Another Service has it, too.
    PortAlreadyAllocated,
    /// The range does not say that it is taken.
    PortNotAllocated,
    /// Services have all ports of the range.
    PortRangeFull,
    /// It could not be set right.
    UnknownError,
}

impl RepairReason {
    /// Its name in events.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClusterIPNotValid => "ClusterIPNotValid",
            Self::ClusterIPOutOfRange => "ClusterIPOutOfRange",
            Self::ClusterIPNotAllocated => "ClusterIPNotAllocated",
            Self::ClusterIPAlreadyAllocated => "ClusterIPAlreadyAllocated",
            Self::IPAddressNotAllocated => "IPAddressNotAllocated",
            Self::IPAddressWrongReference => "IPAddressWrongReference",
            Self::PortOutOfRange => "PortOutOfRange",
            Self::PortAlreadyAllocated => "PortAlreadyAllocated",
            Self::PortNotAllocated => "PortNotAllocated",
            Self::PortRangeFull => "PortRangeFull",
            Self::UnknownError => "UnknownError",
        }
    }

    /// The type of error that metrics count it as.
    #[must_use]
    pub fn error_type(self) -> &'static str {
        match self {
            Self::ClusterIPNotValid => "invalid",
            Self::ClusterIPOutOfRange | Self::PortOutOfRange => "outOfRange",
            Self::ClusterIPNotAllocated | Self::PortNotAllocated => "repair",
            Self::ClusterIPAlreadyAllocated | Self::PortAlreadyAllocated => "duplicate",
            Self::IPAddressNotAllocated | Self::IPAddressWrongReference => "leak",
            Self::PortRangeFull => "full",
            Self::UnknownError => "unknown",
        }
    }
}

impl RepairFinding {
    pub(super) fn of<T: Kind + Object>(
        object: &T,
        action: RepairAction,
        reason: RepairReason,
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

    pub(super) fn of_port(service: &Service, reason: RepairReason, message: String) -> Self {
        Self::of(service, RepairAction::PortAllocation, reason, message)
    }
}

/// What a look at Services and what they have found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RepairReport {
    /// Problems of Services and addresses.
    pub findings: Vec<RepairFinding>,
    /// How many addresses or ports without an owner were given back.
    pub freed: usize,
    /// Why something could not be set right that should have been: to be tried again.
    pub failure: Option<String>,
    /// When to look again, as what is wrong now may become right by itself.
    pub again: Option<Duration>,
}

impl RepairReport {
    /// Something could not be set right.
    pub(super) fn failed(&mut self, error: &AddressError) {
        self.failure.get_or_insert_with(|| error.to_string());
    }
}

impl Registry {
    /// Compares the addresses of all Services with the objects of addresses. To be called every three minutes, and once
    /// before the server is ready.
    ///
    /// # Errors
    /// When there is no network yet, or something cannot be listed.
    pub async fn repair_addresses(&self, now: Time) -> Result<RepairReport, ApiError> {
        self.services().repair_addresses(now).await.map_err(ApiError::internal)
    }

    /// Looks at the addresses of one Service; to be called when it has changed.
    ///
    /// # Errors
    /// When something cannot be read.
    pub async fn repair_service(&self, namespace: &str, name: &str, now: Time) -> Result<RepairReport, ApiError> {
        let owner = Owner { namespace: namespace.to_owned(), name: name.to_owned() };
        self.services().repair_service(&owner, now).await.map_err(ApiError::internal)
    }

    /// Looks at the object of one address; to be called when it has changed.
    ///
    /// # Errors
    /// When something cannot be read.
    pub async fn repair_address(&self, name: &str, now: Time) -> Result<RepairReport, ApiError> {
        self.services().repair_address(name, now).await.map_err(ApiError::internal)
    }

    /// Makes the range of ports say what Services have. To be called every three minutes, and once before the server is
    /// ready: until the first time no port is given out.
    ///
    /// # Errors
    /// When Services cannot be listed, or the range cannot be written.
    pub async fn repair_ports(&self, cx: &RequestCx) -> Result<RepairReport, ApiError> {
        let services = self.resource("", "v1", "services").ok_or_else(ApiError::unknown_resource)?;
        self.services().repair_ports(cx, &services).await.map_err(ApiError::internal)
    }

    /// How much of each network of Services is in use, as this server's cache has it.
    #[must_use]
    pub fn networks_used(&self) -> Vec<NetworkUse> {
        self.services().networks_used()
    }
}
