//! Repair: what Services really hold is what the ranges must say. A number that nobody holds is given back only after
//! several passes, for its Service may be about to be written.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use api_machinery::meta::ListOptions;
use api_machinery::names::parse_ip_lenient;
use api_machinery::status::ApiError;
use api_types::core_v1::Service;
use parking_lot::Mutex;
use watch_cache::Stored;

use super::bitmap::Bitmap;
use super::network::Family;
use super::range::{ATTEMPTS, Range, RangeError};
use super::{Addresses, ServiceCompanion, families, ports};
use crate::context::RequestCx;
use crate::registry::Registry;
use crate::resource::Resource;

/// After so many passes without an owner a number is free.
const LEAK_PASSES: u8 = 3;

/// Something wrong with a Service, to be told by a Warning event on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairFinding {
    /// Namespace of the Service.
    pub namespace: String,
    /// Name of the Service.
    pub name: String,
    /// Uid of the Service.
    pub uid: String,
    /// Reason of the event.
    pub reason: &'static str,
    /// `ClusterIPAllocation` or `PortAllocation`.
    pub action: &'static str,
    /// Text of the event.
    pub message: String,
}

/// What a pass of repair found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepairReport {
    /// Problems of Services.
    pub findings: Vec<RepairFinding>,
    /// How many numbers without an owner were given back.
    pub freed: usize,
}

/// One number that a Service holds.
struct Held<'a> {
    service: &'a Service,
    offset: u32,
    /// How it is called in texts.
    text: String,
}

/// How a range speaks of its numbers.
struct Words {
    action: &'static str,
    not_allocated: &'static str,
    already_allocated: &'static str,
    full: &'static str,
}

const ADDRESS_WORDS: Words = Words {
    action: "ClusterIPAllocation",
    not_allocated: "ClusterIPNotAllocated",
    already_allocated: "ClusterIPAlreadyAllocated",
    full: "ServiceCIDRFull",
};
const PORT_WORDS: Words = Words {
    action: "PortAllocation",
    not_allocated: "PortNotAllocated",
    already_allocated: "PortAlreadyAllocated",
    full: "PortRangeFull",
};

impl Registry {
    /// One pass over all Services: makes the ranges of addresses and ports say what Services hold. To be called every
    /// three minutes, and once before the server is ready.
    ///
    /// # Errors
    /// When Services cannot be listed or a range cannot be written.
    pub async fn repair_services(&self, cx: &RequestCx) -> Result<RepairReport, ApiError> {
        let services = self.resource("", "v1", "services").ok_or_else(ApiError::unknown_resource)?;
        let listing = Listing { services, cx: RequestCx { namespace: String::new(), ..cx.clone() } };
        let (companion, mut report) = (self.services(), RepairReport::default());
        for addresses in &companion.addresses {
            let numbers = Numbers::Addresses(addresses);
            repair_range(&addresses.range, &listing, &numbers, &mut report).await.map_err(ApiError::internal)?;
        }
        let numbers = Numbers::Ports(companion);
        repair_range(&companion.ports, &listing, &numbers, &mut report).await.map_err(ApiError::internal)?;
        Ok(report)
    }
}

/// All Services, as they are when it is asked.
struct Listing {
    services: Arc<Resource>,
    cx: RequestCx,
}

impl Listing {
    async fn now(&self) -> Result<Vec<Arc<Stored>>, RangeError> {
        let list = self.services.list(&self.cx, &ListOptions::default()).await;
        list.map(|list| list.items).map_err(|error| RangeError::Unlisted(error.message))
    }
}

/// What a range is of.
enum Numbers<'c> {
    Addresses(&'c Addresses),
    Ports(&'c ServiceCompanion),
}

impl Numbers<'_> {
    fn words(&self) -> &'static Words {
        match self {
            Self::Addresses(_) => &ADDRESS_WORDS,
            Self::Ports(_) => &PORT_WORDS,
        }
    }

    /// The numbers that Services hold, and those that hold some that are not of the range.
    fn held<'s>(&self, services: &[&'s Service]) -> (Vec<Held<'s>>, Vec<RepairFinding>) {
        let (mut held, mut findings) = (Vec::new(), Vec::new());
        for &service in services {
            match self {
                Self::Addresses(addresses) => held_addresses(addresses, service, &mut held, &mut findings),
                Self::Ports(companion) => held_ports(companion, service, &mut held, &mut findings),
            }
        }
        (held, findings)
    }
}

fn held_addresses<'s>(
    addresses: &Addresses,
    service: &'s Service,
    held: &mut Vec<Held<'s>>,
    findings: &mut Vec<RepairFinding>,
) {
    let family = addresses.cidr.family();
    for address in addresses_in_use(service).into_iter().filter(|address| Family::of(*address) == family) {
        let text = format!("Cluster IP [{}]: {address}", family.as_str());
        match addresses.cidr.offset(address) {
            Some(offset) => held.push(Held { service, offset, text }),
            None => findings.push(finding(
                service,
                ("ClusterIPOutOfRange", ADDRESS_WORDS.action),
                format!("{text} is not within any configured Service CIDR; please recreate service"),
            )),
        }
    }
}

fn held_ports<'s>(
    companion: &ServiceCompanion,
    service: &'s Service,
    held: &mut Vec<Held<'s>>,
    findings: &mut Vec<RepairFinding>,
) {
    for port in ports::held_by(&service.spec) {
        match companion.port_offset(port) {
            Some(offset) => held.push(Held { service, offset, text: format!("Port {port}") }),
            None => findings.push(finding(
                service,
                ("PortOutOfRange", PORT_WORDS.action),
                format!("Port {port} is not within the port range {}; please recreate service", companion.ports.text),
            )),
        }
    }
}

fn addresses_in_use(service: &Service) -> Vec<IpAddr> {
    if service.spec.type_ == families::EXTERNAL_NAME {
        return Vec::new();
    }
    service.spec.cluster_ips.iter().filter_map(|text| parse_ip_lenient(text)).collect()
}

fn finding(service: &Service, (reason, action): (&'static str, &'static str), message: String) -> RepairFinding {
    let meta = &service.metadata;
    RepairFinding {
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        reason,
        action,
        message,
    }
}

/// The range is read before the Services: who takes or gives back a number in between changes the range, so that the
/// write fails and all of it is looked at again.
async fn repair_range(
    range: &Range,
    listing: &Listing,
    numbers: &Numbers<'_>,
    report: &mut RepairReport,
) -> Result<(), RangeError> {
    let seen = range.leaks.lock().clone();
    for _ in 0..ATTEMPTS {
        let stored = range.to_rebuild().await?;
        let listed = listing.now().await?;
        let services: Vec<&Service> = listed.iter().filter_map(|item| item.object().downcast_ref()).collect();
        let (held, outside) = numbers.held(&services);
        let (mut new, findings) = owned(range.size, &stored.bitmap, &held, numbers.words());
        let (leaks, freed) = keep_young_leaks(&mut new, &stored.bitmap, &seen);
        if range.rebuilt(&stored, &new).await? {
            store_leaks(&range.leaks, leaks);
            report.findings.extend(outside);
            report.findings.extend(findings);
            report.freed += freed;
            return Ok(());
        }
    }
    Err(RangeError::Contended)
}

fn store_leaks(place: &Mutex<BTreeMap<u32, u8>>, leaks: BTreeMap<u32, u8>) {
    *place.lock() = leaks;
}

/// The numbers that Services hold, and what is wrong about them.
fn owned(size: u32, stored: &Bitmap, held: &[Held<'_>], words: &Words) -> (Bitmap, Vec<RepairFinding>) {
    let (mut new, mut findings) = (Bitmap::new(size), Vec::new());
    for Held { service, offset, text } in held {
        if !new.take(*offset) {
            let message = format!("{text} was assigned to multiple services; please recreate service");
            findings.push(finding(service, (words.already_allocated, words.action), message));
        } else if !stored.is_taken(*offset) {
            let message = format!("{text} is not allocated; repairing");
            findings.push(finding(service, (words.not_allocated, words.action), message));
        }
    }
    if held.len() >= size as usize
        && let Some(last) = held.last()
    {
        let message = "the range is full; you must widen it in order to create new services".to_owned();
        findings.push(finding(last.service, (words.full, words.action), message));
    }
    (new, findings)
}

/// Keeps numbers without an owner that have not been so for long; how often each was seen, and how many were freed.
fn keep_young_leaks(new: &mut Bitmap, stored: &Bitmap, seen: &BTreeMap<u32, u8>) -> (BTreeMap<u32, u8>, usize) {
    let (mut leaks, mut freed) = (BTreeMap::new(), 0);
    let ownerless: Vec<u32> = stored.taken().filter(|offset| !new.is_taken(*offset)).collect();
    for offset in ownerless {
        let passes = seen.get(&offset).copied().unwrap_or(0) + 1;
        if passes < LEAK_PASSES {
            new.take(offset);
            leaks.insert(offset, passes);
        } else {
            freed += 1;
        }
    }
    (leaks, freed)
}
