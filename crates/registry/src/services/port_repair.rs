//! Ports set right: the bitmap follows what Services hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_machinery::meta::ListOptions;
use api_types::core_v1::Service;
use watch_cache::Stored;

use super::bitmap::Bitmap;
use super::range::{ATTEMPTS, RangeError};
use super::repair::{RepairFinding, RepairReason, RepairReport};
use super::{ServiceCompanion, ports};
use crate::context::RequestCx;
use crate::resource::Resource;

/// After so many passes without an owner a number is free.
const LEAK_PASSES: u8 = 3;

/// A port that a Service holds.
struct Held<'a> {
    service: &'a Service,
    port: u16,
    offset: u32,
}

impl ServiceCompanion {
    /// The range is read before the Services: who takes or gives back a port in between changes the range, so that the
    /// write fails and all of it is looked at again.
    pub(super) async fn repair_ports(&self, cx: &RequestCx, services: &Resource) -> Result<RepairReport, RangeError> {
        let seen = self.ports.leaks.lock().clone();
        for _ in 0..ATTEMPTS {
            let stored = self.ports.to_rebuild().await?;
            let listed = list(services, cx).await?;
            let (held, outside) = self.held_ports(listed.iter().filter_map(|item| item.object().downcast_ref()));
            let (mut new, findings) = owned(self.ports.size, &self.ports.text, &stored.bitmap, &held);
            let (leaks, freed) = keep_young_leaks(&mut new, &stored.bitmap, &seen);
            if self.ports.rebuilt(&stored, &new).await? {
                *self.ports.leaks.lock() = leaks;
                let findings = outside.into_iter().chain(findings).collect();
                return Ok(RepairReport { findings, freed, ..RepairReport::default() });
            }
        }
        Err(RangeError::Contended)
    }

    /// The ports that Services hold, and who holds some that are not of the range.
    fn held_ports<'s>(&self, services: impl Iterator<Item = &'s Service>) -> (Vec<Held<'s>>, Vec<RepairFinding>) {
        let (mut held, mut findings) = (Vec::new(), Vec::new());
        for service in services {
            for port in ports::held_by(&service.spec) {
                match self.port_offset(port) {
                    Some(offset) => held.push(Held { service, port, offset }),
                    None => {
                        let range = &self.ports.text;
                        let message =
                            format!("Port {port} is not within the port range {range}; please recreate service");
                        findings.push(RepairFinding::of_port(service, RepairReason::PortOutOfRange, message));
                    }
                }
            }
        }
        (held, findings)
    }
}

async fn list(services: &Resource, cx: &RequestCx) -> Result<Vec<Arc<Stored>>, RangeError> {
    let everywhere = RequestCx { namespace: String::new(), ..cx.clone() };
    let list = services.list(&everywhere, &ListOptions::default()).await;
    list.map(|list| list.items).map_err(|error| RangeError::Unlisted(error.message))
}

/// The ports that Services hold, and what is wrong about them.
fn owned(size: u32, range: &str, stored: &Bitmap, held: &[Held<'_>]) -> (Bitmap, Vec<RepairFinding>) {
    let (mut new, mut findings) = (Bitmap::new(size), Vec::new());
    for Held { service, port, offset } in held {
        if !new.take(*offset) {
            let message = format!("Port {port} was assigned to multiple services; please recreate service");
            findings.push(RepairFinding::of_port(service, RepairReason::PortAlreadyAllocated, message));
        } else if !stored.is_taken(*offset) {
            let message = format!("Port {port} is not allocated; repairing");
            findings.push(RepairFinding::of_port(service, RepairReason::PortNotAllocated, message));
        }
    }
    if held.len() >= size as usize
        && let Some(last) = held.last()
    {
        let message =
            format!("Port range {range} is full; you must widen the port range in order to create new services");
        findings.push(RepairFinding::of_port(last.service, RepairReason::PortRangeFull, message));
    }
    (new, findings)
}

/// Keeps numbers without an owner that have not been so for long; how often each was seen, and how many were freed.
pub(super) fn keep_young_leaks(
    new: &mut Bitmap,
    stored: &Bitmap,
    seen: &BTreeMap<u32, u8>,
) -> (BTreeMap<u32, u8>, usize) {
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
