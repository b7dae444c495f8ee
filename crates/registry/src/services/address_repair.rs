//! Addresses set right: each that a Service has is an object that names the Service, and no other object says so.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::names::parse_ip_lenient;
use api_machinery::time::Time;
use api_types::core_v1::Service;
use api_types::networking_v1::{IPAddress, ParentReference};
use watch_cache::Stored;

use super::allocator::{AddressError, Owner, has_labels, is_managed};
use super::families::EXTERNAL_NAME;
use super::network::{Cidr, Family};
use super::repair::{RepairAction, RepairFinding, RepairReason, RepairReport};
use super::{ServiceCompanion, held};

/// How long the Service of an address may not be there yet, or not say so any more.
const GRACE: Duration = Duration::from_secs(60);
/// How long a Service may not show an address that was taken for it after it had been created.
const UPDATE_GRACE: Duration = Duration::from_secs(5);
/// The versions that a single object is judged by: what the cache has first, and where that says that something is wrong,
/// what the store has. A cache may lag behind.
const CACHED_THEN_STORED: [&str; 2] = ["0", ""];

/// What there is.
struct Observed<'a> {
    services: BTreeMap<(&'a str, &'a str), &'a Service>,
    addresses: BTreeMap<&'a str, &'a IPAddress>,
    networks: &'a [Cidr],
    now: Time,
}

/// An address that a Service has and that no object says so of.
struct Missing<'a> {
    address: IpAddr,
    service: &'a Service,
    /// What is told of it once it has been created.
    finding: Option<RepairFinding>,
}

/// What has to be done, in this order.
#[derive(Default)]
struct Plan<'a> {
    remove: Vec<&'a IPAddress>,
    missing: Vec<Missing<'a>>,
    findings: Vec<RepairFinding>,
    freed: usize,
    /// When to look again at what may become right by itself.
    again: Option<Duration>,
}

impl ServiceCompanion {
    /// Addresses are listed before the Services: one that is taken in between has an object that the list has not, which
    /// creating it again finds out; one that is given back then was still there and is looked at next time.
    pub(super) async fn repair_addresses(&self, now: Time) -> Result<RepairReport, AddressError> {
        let networks = self.allocator.known_networks("").await?;
        if networks.is_empty() {
            return Err(AddressError::NotReady);
        }
        self.allocator.repair_stored_ranges().await?;
        let addresses = self.allocator.list::<IPAddress>().await?;
        let services = self.allocator.list::<Service>().await?;
        let observed = Observed::new(&services, &addresses, &networks, now);
        let report = self.carry_out(observed.plan()).await;
        if report.failure.is_none() {
            self.allocator.completed();
        }
        Ok(report)
    }

    /// The same for the addresses of one Service.
    pub(super) async fn repair_service(&self, owner: &Owner, now: Time) -> Result<RepairReport, AddressError> {
        for version in CACHED_THEN_STORED {
            let networks = self.allocator.known_networks(version).await?;
            let Some(stored) = self.allocator.service(owner, version).await? else { break };
            let Some(service) = stored.object().downcast_ref::<Service>() else { break };
            let (mut addresses, mut services) = (Vec::new(), vec![Arc::clone(&stored)]);
            for address in held::addresses(&service.spec) {
                let Some(object) = self.allocator.address(&address.to_string(), version).await? else { continue };
                if let Some(other) = owner_of(&object).filter(|other| other != owner) {
                    services.extend(self.allocator.service(&other, version).await?);
                }
                addresses.push(object);
            }
            let observed = Observed::new(&services, &addresses, &networks, now);
            let mut plan = Plan::default();
            observed.check_service(service, &mut plan);
            if plan.is_empty() || version.is_empty() {
                return Ok(self.carry_out(plan).await);
            }
        }
        Ok(RepairReport::default())
    }

    /// The same for the object of one address.
    pub(super) async fn repair_address(&self, name: &str, now: Time) -> Result<RepairReport, AddressError> {
        let Some(stored) = self.allocator.address(name, "0").await? else { return Ok(RepairReport::default()) };
        let Some(object) = stored.object().downcast_ref().filter(|object| is_managed(object)) else {
            return Ok(RepairReport::default());
        };
        for version in CACHED_THEN_STORED {
            let service = match Owner::named_by(object) {
                Some(owner) => self.allocator.service(&owner, version).await?,
                None => None,
            };
            let observed = Observed::new(service.as_slice(), &[], &[], now);
            let mut plan = Plan::default();
            observed.check_owner(object, &mut plan);
            if plan.is_empty() || version.is_empty() {
                return Ok(self.carry_out(plan).await);
            }
        }
        Ok(RepairReport::default())
    }

    /// What cannot be set right does not keep the rest from it.
    async fn carry_out(&self, plan: Plan<'_>) -> RepairReport {
        let Plan { remove, missing, findings, freed, again } = plan;
        let mut report = RepairReport { findings, freed, again, failure: None };
        for object in remove {
            if let Err(error) = self.allocator.remove(object).await {
                report.failed(&error);
            }
        }
        for missing in missing {
            match self.repair_one(&missing).await {
                Ok(true) => report.findings.extend(missing.finding),
                Ok(false) => {}
                Err(error) => {
                    report.failed(&error);
                    report.findings.push(missing.unknown());
                }
            }
        }
        report
    }

    /// Creates the object of an address that a Service has; says no where somebody was faster, or the Service has gone.
    async fn repair_one(&self, missing: &Missing<'_>) -> Result<bool, AddressError> {
        let owner = Owner::of(missing.service);
        let service = self.allocator.service(&owner, "").await?;
        let service = service.as_ref().and_then(|stored| stored.object().downcast_ref());
        if !service.is_some_and(|service| has(service, missing.address)) {
            return Ok(false);
        }
        match self.allocator.create(missing.address, &owner).await {
            Err(AddressError::Taken) => Ok(false),
            other => other.map(|()| true),
        }
    }
}

impl Missing<'_> {
    /// What is told where its object could not be created.
    fn unknown(&self) -> RepairFinding {
        let family = Family::of(self.address).as_str();
        let message = format!("Unable to allocate ClusterIP [{family}]: {} due to an unknown error", self.address);
        RepairFinding::of(self.service, RepairAction::ClusterIPAllocation, RepairReason::UnknownError, message)
    }
}

fn owner_of(address: &Stored) -> Option<Owner> {
    Owner::named_by(address.object().downcast_ref()?)
}

fn has(service: &Service, address: IpAddr) -> bool {
    held::addresses(&service.spec).any(|own| own == address)
}

impl<'a> Observed<'a> {
    fn new(services: &'a [Arc<Stored>], addresses: &'a [Arc<Stored>], networks: &'a [Cidr], now: Time) -> Self {
        let services = services.iter().filter_map(|item| item.object().downcast_ref());
        let addresses = addresses.iter().filter_map(|item| item.object().downcast_ref());
        Self::of(services, addresses, networks, now)
    }

    fn of(
        services: impl Iterator<Item = &'a Service>,
        addresses: impl Iterator<Item = &'a IPAddress>,
        networks: &'a [Cidr],
        now: Time,
    ) -> Self {
        let named =
            |service: &'a Service| ((service.metadata.namespace.as_str(), service.metadata.name.as_str()), service);
        let addresses = addresses.map(|object| (object.metadata.name.as_str(), object)).collect();
        Self { services: services.map(named).collect(), addresses, networks, now }
    }

    fn service(&self, owner: &Owner) -> Option<&'a Service> {
        self.services.get(&(owner.namespace.as_str(), owner.name.as_str())).copied()
    }

    fn plan(&self) -> Plan<'a> {
        let mut plan = Plan::default();
        for service in self.services.values() {
            self.check_service(service, &mut plan);
        }
        for object in self.addresses.values().filter(|object| is_managed(object)) {
            self.check_owner(object, &mut plan);
        }
        plan
    }

    fn check_service(&self, service: &'a Service, plan: &mut Plan<'a>) {
        for text in held::address_texts(&service.spec) {
            self.check_used(service, text, plan);
        }
    }

    /// An address that a Service has: its object is there, and names the Service.
    fn check_used(&self, service: &'a Service, text: &str, plan: &mut Plan<'a>) {
        let finding = |action, reason, message| RepairFinding::of(service, action, reason, message);
        let Some(address) = parse_ip_lenient(text) else {
            let message = format!("Cluster IP {text} is not a valid IP; please recreate Service");
            let (action, reason) = (RepairAction::ClusterIPValidation, RepairReason::ClusterIPNotValid);
            return plan.findings.push(finding(action, reason, message));
        };
        let of_address = |reason, message| finding(RepairAction::ClusterIPAllocation, reason, message);
        let family = Family::of(address).as_str();
        if !self.networks.iter().any(|network| network.contains(address)) {
            let message = format!(
                "Cluster IP [{family}]: {address} is not within any configured Service CIDR; please recreate service"
            );
            return plan.findings.push(of_address(RepairReason::ClusterIPOutOfRange, message));
        }
        let Some(object) = self.addresses.get(address.to_string().as_str()).copied() else {
            let message = format!("Cluster IP [{family}]: {address} is not allocated; repairing");
            let finding = Some(of_address(RepairReason::ClusterIPNotAllocated, message));
            return plan.missing.push(Missing { address, service, finding });
        };
        let owner = Owner::of(service);
        let finding = match Owner::named_by(object) {
            Some(named) if named == owner && has_labels(object, address) => return,
            Some(named) if named == owner => None,
            Some(named) if self.service(&named).is_some_and(|other| has(other, address)) => {
                let message = format!(
                    "Cluster IP [{family}]:{address} was assigned to multiple services; please recreate service"
                );
                return plan.findings.push(of_address(RepairReason::ClusterIPAlreadyAllocated, message));
            }
            _ => {
                let Owner { namespace, name } = &owner;
                let message = format!(
                    "the ClusterIP [{family}]: {address} for Service {namespace}/{name} has a wrong reference; repairing"
                );
                Some(of_address(RepairReason::ClusterIPNotAllocated, message))
            }
        };
        plan.remove.push(object);
        plan.missing.push(Missing { address, service, finding });
    }

    /// The object of an address that was taken here: its Service has it, or may have it soon.
    fn check_owner(&self, object: &'a IPAddress, plan: &mut Plan<'a>) {
        if plan.remove.iter().any(|other| other.metadata.uid == object.metadata.uid) {
            return;
        }
        let name = &object.metadata.name;
        let age = self.now.since(object.metadata.creation_timestamp);
        let Some(owner) = Owner::named_by(object) else {
            let ParentReference { group, resource, namespace, name: parent } =
                object.spec.parent_ref.clone().unwrap_or_default();
            // The reference as upstream's types print themselves.
            let message = format!(
                "IPAddress {name} appears to have been modified, not referencing a Service \
                 &ParentReference{{Group:{group},Resource:{resource},Namespace:{namespace},Name:{parent},}}: cleaning up"
            );
            return plan.give_back(object, RepairReason::IPAddressNotAllocated, message);
        };
        let Owner { namespace, name: service_name } = &owner;
        let Some(service) = self.service(&owner) else {
            if age <= GRACE {
                return plan.look_again(GRACE - age);
            }
            let message =
                format!("IPAddress: {name} for Service {namespace}/{service_name} appears to have leaked: cleaning up");
            return plan.give_back(object, RepairReason::IPAddressNotAllocated, message);
        };
        if name.parse().is_ok_and(|address| has(service, address)) {
            return;
        }
        let is_newer = object.metadata.creation_timestamp > service.metadata.creation_timestamp;
        let grace = if service.spec.type_ == EXTERNAL_NAME {
            GRACE
        } else if is_newer {
            UPDATE_GRACE
        } else {
            Duration::ZERO
        };
        if age < grace {
            return plan.look_again(grace - age);
        }
        let message =
            format!("IPAddress: {name} for Service {namespace}/{service_name} has a wrong reference; cleaning up");
        plan.give_back(object, RepairReason::IPAddressWrongReference, message);
    }
}

impl<'a> Plan<'a> {
    /// Whether nothing is wrong.
    fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.missing.is_empty() && self.findings.is_empty()
    }

    fn give_back(&mut self, object: &'a IPAddress, reason: RepairReason, message: String) {
        self.findings.push(RepairFinding::of(object, RepairAction::IPAddressAllocation, reason, message));
        self.remove.push(object);
        self.freed += 1;
    }

    /// Looks again once what is left of a grace has passed: a creation time is a whole second.
    fn look_again(&mut self, left: Duration) {
        let after = left + Duration::from_secs(1);
        self.again = Some(self.again.map_or(after, |other| other.min(after)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_000;
    const A: &str = "10.0.0.1";
    const B: &str = "10.0.0.2";

    /// A Service `default/{name}` of this age in seconds.
    fn service(name: &str, addresses: &[&str], age: i64) -> Service {
        let mut service = Service::default();
        service.metadata.name = name.into();
        service.metadata.namespace = "default".into();
        service.metadata.creation_timestamp = Time::from_unix_seconds(NOW - age);
        service.spec.type_ = if addresses.is_empty() { EXTERNAL_NAME.into() } else { "ClusterIP".into() };
        service.spec.cluster_ips = addresses.iter().map(|address| (*address).to_owned()).collect();
        service
    }

    /// An address of `default/{owner}`, or of another kind where it is `resource/name`.
    fn address(name: &str, owner: &str, age: i64) -> IPAddress {
        let (resource, owner) = owner.split_once('/').unwrap_or(("services", owner));
        let mut object = IPAddress::default();
        object.metadata.name = name.into();
        object.metadata.uid = name.into();
        object.metadata.creation_timestamp = Time::from_unix_seconds(NOW - age);
        object.metadata.labels.insert("ipaddress.kubernetes.io/ip-family".into(), "IPv4".into());
        object.metadata.labels.insert("ipaddress.kubernetes.io/managed-by".into(), "ipallocator.k8s.io".into());
        object.spec.parent_ref = Some(ParentReference {
            resource: resource.into(),
            namespace: "default".into(),
            name: owner.into(),
            ..ParentReference::default()
        });
        object
    }

    fn unmanaged(mut object: IPAddress) -> IPAddress {
        object.metadata.labels.clear();
        object
    }

    /// What a pass tells (reason and the object's name), removes and creates.
    fn planned(services: &[Service], addresses: &[IPAddress]) -> [Vec<String>; 3] {
        let networks = ["10.0.0.0/24".parse().unwrap()];
        let now = Time::from_unix_seconds(NOW);
        let plan = Observed::of(services.iter(), addresses.iter(), &networks, now).plan();
        let missing = plan.missing.iter().filter_map(|missing| missing.finding.as_ref());
        let told = plan.findings.iter().chain(missing);
        [
            told.map(|finding| format!("{} {}", finding.reason.as_str(), finding.regarding.name)).collect(),
            plan.remove.iter().map(|object| object.metadata.name.clone()).collect(),
            plan.missing
                .iter()
                .map(|missing| format!("{} {}", missing.address, missing.service.metadata.name))
                .collect(),
        ]
    }

    #[test]
    fn each_disagreement_is_told_and_mended() {
        let of = |name: &str, age: i64| service(name, &[A], age);
        check(vec![
            ("as it should be", vec![of("s", 9)], vec![address(A, "s", 9)], [&[], &[], &[]]),
            ("headless", vec![service("s", &["None"], 9)], vec![], [&[], &[], &[]]),
            ("no object", vec![of("s", 9)], vec![], [&["ClusterIPNotAllocated s"], &[], &["10.0.0.1 s"]]),
            ("not one", vec![service("s", &["x"], 9)], vec![], [&["ClusterIPNotValid s"], &[], &[]]),
            ("elsewhere", vec![service("s", &["10.1.0.1"], 9)], vec![], [&["ClusterIPOutOfRange s"], &[], &[]]),
            (
                "of another kind",
                vec![of("s", 9)],
                vec![address(A, "gateways/g", 9)],
                [&["ClusterIPNotAllocated s"], &[A], &["10.0.0.1 s"]],
            ),
            (
                "of a Service that is gone",
                vec![of("s", 9)],
                vec![address(A, "gone", 90)],
                [&["ClusterIPNotAllocated s"], &[A], &["10.0.0.1 s"]],
            ),
            (
                "of two Services",
                vec![of("s", 9), of("t", 8)],
                vec![address(A, "t", 9)],
                [&["ClusterIPAlreadyAllocated s"], &[], &[]],
            ),
            (
                "of a Service that has another",
                vec![of("s", 90), service("t", &[B], 90)],
                vec![address(A, "t", 90), address(B, "t", 90)],
                [&["ClusterIPNotAllocated s"], &[A], &["10.0.0.1 s"]],
            ),
            ("without labels", vec![of("s", 9)], vec![unmanaged(address(A, "s", 9))], [&[], &[A], &["10.0.0.1 s"]]),
            ("somebody else's", vec![], vec![unmanaged(address(A, "gone", 90))], [&[], &[], &[]]),
            (
                "of no Service",
                vec![],
                vec![address(A, "gateways/g", 0)],
                [&["IPAddressNotAllocated 10.0.0.1"], &[A], &[]],
            ),
            ("leaked, still young", vec![], vec![address(A, "gone", 60)], [&[], &[], &[]]),
            ("leaked", vec![], vec![address(A, "gone", 61)], [&["IPAddressNotAllocated 10.0.0.1"], &[A], &[]]),
        ]);
    }

    #[test]
    fn what_may_still_become_right_is_left_for_a_while() {
        check(vec![
            (
                "taken for a change that may come",
                vec![service("s", &[B], 9)],
                vec![address(B, "s", 9), address(A, "s", 4)],
                [&[], &[], &[]],
            ),
            (
                "taken for a change that did not come",
                vec![service("s", &[B], 9)],
                vec![address(B, "s", 9), address(A, "s", 5)],
                [&["IPAddressWrongReference 10.0.0.1"], &[A], &[]],
            ),
            (
                "older than its Service",
                vec![service("s", &[B], 2)],
                vec![address(B, "s", 2), address(A, "s", 3)],
                [&["IPAddressWrongReference 10.0.0.1"], &[A], &[]],
            ),
            ("of a name outside, young", vec![service("s", &[], 90)], vec![address(A, "s", 59)], [&[], &[], &[]]),
            (
                "of a name outside",
                vec![service("s", &[], 90)],
                vec![address(A, "s", 60)],
                [&["IPAddressWrongReference 10.0.0.1"], &[A], &[]],
            ),
        ]);
    }

    /// What is looked at, its Services and addresses; and what is told, released and taken.
    type Row<'r> = (&'r str, Vec<Service>, Vec<IPAddress>, [&'r [&'r str]; 3]);

    fn check(rows: Vec<Row<'_>>) {
        for (what, services, addresses, expected) in rows {
            let expected = expected.map(|texts| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
            assert_eq!(planned(&services, &addresses), expected, "{what}");
        }
    }
}
