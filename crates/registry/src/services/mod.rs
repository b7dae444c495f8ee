//! What Services keep beside themselves: cluster addresses and node ports.
//!
//! An address is an `IPAddress` object of its own, and a bit where older servers look for it while one of their releases is
//! emulated; ports are a bitmap under `ranges/` in the store, which all servers share. A reservation is taken before the
//! Service is checked and given back where it is not written. A crash in between is found by repair.

mod address_repair;
mod addresses;
mod allocator;
mod bands;
mod bitmap;
mod families;
mod held;
mod network;
mod port_repair;
mod ports;
mod range;
mod recorder;
mod repair;
mod stored_ranges;

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::{Arc, Weak};

use api_machinery::field_path::ErrorList;
use api_machinery::gvk::GroupKind;
use api_machinery::object::{Kind, Object};
use api_machinery::status::ApiError;
use api_types::core_v1::{Service, ServiceSpec};
use async_trait::async_trait;
use feature_gates::Gates;
use storage::{Backend, Expect, Key, Write};

use crate::companion::{Companion, Entry, WriteResult};
use crate::context::RequestCx;
use crate::registry::{Registry, RegistryOptions};

pub use allocator::NetworkUse;
pub use network::Cidr;
pub(crate) use recorder::NoRecorder;
pub use recorder::{AllocationRecorder, Scope};
pub use repair::{RepairAction, RepairFinding, RepairReason, RepairReport};
pub use stored_ranges::DISABLE_DUAL_WRITE;

use allocator::{AddressAllocator, Owner};
use network::Family;
use range::Range;

/// Services have one.
pub(crate) const COMPANION: Entry =
    Entry { kind: Service::TYPE, build: |registry| Arc::clone(registry.services()) as Arc<dyn Companion> };

/// Ranges of Service addresses and ports.
#[derive(Debug, Clone)]
pub struct ServiceOptions {
    /// `--service-cluster-ip-range`: one, or two of different families, the default first.
    pub cluster_ip_ranges: Vec<Cidr>,
    /// `--service-node-port-range`.
    pub node_ports: RangeInclusive<u16>,
}

impl Default for ServiceOptions {
    fn default() -> Self {
        Self { cluster_ip_ranges: "10.0.0.0/24".parse().into_iter().collect(), node_ports: 30_000..=32_767 }
    }
}

/// Something that a Service holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    Address(IpAddr),
    Port(u16),
}

/// What a write took, and what it makes free.
#[derive(Debug, Default)]
pub(crate) struct Reservation {
    owner: Owner,
    taken: Vec<Claim>,
    freed: Vec<Claim>,
}

/// What hands out addresses and ports.
pub(crate) struct ServiceCompanion {
    /// The cluster's families, its default first.
    families: Vec<Family>,
    gates: Gates,
    allocator: AddressAllocator,
    ports: Range,
    first_port: u16,
    port_count: u32,
    backend: Arc<dyn Backend>,
    etcd_prefix: String,
}

/// A claim in progress: where it takes from, and whether for real.
struct Claiming<'a> {
    service: &'a mut Service,
    reservation: Reservation,
    dry_run: bool,
}

impl ServiceCompanion {
    pub(crate) fn new(options: &RegistryOptions, registry: Weak<Registry>) -> Self {
        let (first, last) = (*options.services.node_ports.start(), *options.services.node_ports.end());
        let port_count = u32::from(last.saturating_sub(first)) + 1;
        let lower_band = if port_count <= 16 { 0 } else { (port_count / 32).clamp(16, 128) };
        let ports = Range::new(
            Arc::clone(&options.backend),
            Arc::clone(&options.rng),
            (format!("{}/ranges/servicenodeports", options.etcd_prefix), "servicenodeportallocations"),
            format!("{first}-{last}"),
            (port_count, lower_band),
            Arc::clone(&options.allocation),
        );
        Self {
            gates: options.gates.clone(),
            families: options.services.cluster_ip_ranges.iter().map(|cidr| cidr.family()).collect(),
            allocator: AddressAllocator::new(registry, options),
            ports,
            first_port: first,
            port_count,
            backend: Arc::clone(&options.backend),
            etcd_prefix: options.etcd_prefix.clone(),
        }
    }

    async fn claim(
        &self,
        cx: &RequestCx,
        service: &mut Service,
        old: Option<&Service>,
    ) -> Result<Reservation, ApiError> {
        let reservation = Reservation { owner: Owner::of(service), ..Reservation::default() };
        let mut claiming = Claiming { service, reservation, dry_run: cx.dry_run };
        let claimed = match self.claim_addresses(&mut claiming, old).await {
            Ok(()) => self.claim_ports(&mut claiming, old).await,
            refused => refused,
        };
        let reservation = claiming.reservation;
        match claimed {
            Ok(()) => Ok(reservation),
            Err(error) => {
                self.release(&reservation.owner, &reservation.taken).await;
                Err(error)
            }
        }
    }

    /// How much of each network is in use, as this server's cache has it.
    pub(crate) fn networks_used(&self) -> Vec<NetworkUse> {
        self.allocator.used()
    }

    async fn release(&self, owner: &Owner, claims: &[Claim]) {
        for claim in claims {
            let freed = match claim {
                Claim::Address(address) => {
                    self.allocator.free(*address, owner).await.map_err(|error| error.to_string())
                }
                Claim::Port(port) => self.free_port(*port).await.map_err(|error| error.to_string()),
            };
            if let Err(error) = freed {
                // Repair collects what is left over.
                tracing::warn!(?claim, %error, "cannot release what a service held");
            }
        }
    }
}

fn invalid(service: &Service, errors: &ErrorList) -> ApiError {
    ApiError::invalid(&GroupKind::new("", "Service"), &service.metadata.name, errors)
}

#[async_trait]
impl Companion for ServiceCompanion {
    async fn begin_create(&self, cx: &RequestCx, object: &mut dyn Object) -> Result<Reservation, ApiError> {
        let Some(service) = object.downcast_mut::<Service>() else { return Ok(Reservation::default()) };
        if !service.spec.cluster_ip.is_empty() && service.spec.cluster_ips.is_empty() {
            service.spec.cluster_ips = vec![service.spec.cluster_ip.clone()];
        }
        families::fill_in(&mut service.spec, None, &self.families, &self.gates)
            .map_err(|errors| invalid(service, &errors))?;
        self.claim(cx, service, None).await
    }

    async fn begin_update(
        &self,
        cx: &RequestCx,
        object: &mut dyn Object,
        live: &dyn Object,
    ) -> Result<Reservation, ApiError> {
        let (Some(service), Some(old)) = (object.downcast_mut::<Service>(), live.downcast_ref::<Service>()) else {
            return Ok(Reservation::default());
        };
        keep_allocated(&mut service.spec, &old.spec);
        families::fill_in(&mut service.spec, Some(&old.spec), &self.families, &self.gates)
            .map_err(|errors| invalid(service, &errors))?;
        self.claim(cx, service, Some(old)).await
    }

    async fn finish(&self, reservation: Reservation, result: WriteResult) {
        match result {
            WriteResult::Written => self.release(&reservation.owner, &reservation.freed).await,
            WriteResult::Refused => self.release(&reservation.owner, &reservation.taken).await,
            WriteResult::Unknown => {}
        }
    }

    async fn deleted(&self, object: &dyn Object) {
        let Some(service) = object.downcast_ref::<Service>() else { return };
        let meta = &service.metadata;
        let endpoints = format!("{}/services/endpoints/{}/{}", self.etcd_prefix, meta.namespace, meta.name);
        if let Err(error) = self.backend.txn(&Key::from(endpoints), Expect::Any, Write::Delete).await {
            tracing::warn!(namespace = %meta.namespace, name = %meta.name, %error, "cannot delete a service's endpoints");
        }
        self.release(&Owner::of(service), &held::claims(&service.spec)).await;
    }
}

/// A client that knows nothing of allocation sends none of what was allocated, and means no change of it.
fn keep_allocated(spec: &mut ServiceSpec, old: &ServiceSpec) {
    if spec.type_ != families::EXTERNAL_NAME && old.type_ != families::EXTERNAL_NAME {
        if spec.cluster_ip.is_empty() && spec.cluster_ips.is_empty() {
            spec.cluster_ip = old.cluster_ip.clone();
        }
        if spec.cluster_ips.is_empty() && spec.cluster_ip == old.cluster_ip {
            spec.cluster_ips = old.cluster_ips.clone();
        }
    }
    if spec.cluster_ip != old.cluster_ip && spec.cluster_ips == old.cluster_ips {
        spec.cluster_ips = if spec.cluster_ip.is_empty() { Vec::new() } else { vec![spec.cluster_ip.clone()] };
    } else if !spec.cluster_ip.is_empty() && spec.cluster_ips.is_empty() {
        spec.cluster_ips = vec![spec.cluster_ip.clone()];
    }
    ports::keep_allocated(spec, old);
}
