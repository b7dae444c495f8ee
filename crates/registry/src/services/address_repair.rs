//! Addresses set right: each that a Service has is an object that names the Service, and no other object says so.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use api_machinery::names::parse_ip_lenient;
use api_machinery::time::Time;
use api_types::core_v1::Service;
use api_types::networking_v1::{IPAddress, ParentReference};

use super::ServiceCompanion;
use super::allocator::{AddressError, Owner, has_labels, is_managed};
use super::families::{EXTERNAL_NAME, is_headless};
use super::network::{Cidr, Family};
use super::repair::{RepairAction, RepairFinding, RepairReport};

/// How long the Service of an address may not be there yet, or not say so any more.
const GRACE: Duration = Duration::from_secs(60);
/// How long a Service may not show an address that was taken for it after it had been created.
const UPDATE_GRACE: Duration = Duration::from_secs(5);
/// The reason of what is told of a Service's address that had no object.
const NOT_ALLOCATED: &str = "ClusterIPNotAllocated";

/// What there is.
struct Observed<'a> {
    services: Vec<&'a Service>,
    addresses: Vec<&'a IPAddress>,
    networks: &'a [Cidr],
    now: Time,
}

/// An address that a Service has and that no object says so of.
struct Missing {
    address: IpAddr,
    owner: Owner,
    /// What is told of it once it has been created.
    finding: Option<RepairFinding>,
}

/// What has to be done, in this order.
#[derive(Default)]
struct Plan<'a> {
    remove: Vec<&'a IPAddress>,
    missing: Vec<Missing>,
    findings: Vec<RepairFinding>,
    freed: usize,
}

impl ServiceCompanion {
    /// Addresses are listed before the Services: one that is taken in between has an object that the list has not, which
    /// creating it again finds out; one that is given back then was still there and is looked at next time.
    pub(super) async fn repair_addresses(&self, now: Time, report: &mut RepairReport) -> Result<(), AddressError> {
        let networks = self.allocator.known_networks().await?;
        if networks.is_empty() {
            return Err(AddressError::NotReady);
        }
        let addresses = self.allocator.list::<IPAddress>().await?;
        let services = self.allocator.list::<Service>().await?;
        let observed = Observed {
            services: services.iter().filter_map(|item| item.object().downcast_ref()).collect(),
            addresses: addresses.iter().filter_map(|item| item.object().downcast_ref()).collect(),
            networks: &networks,
            now,
        };
        let plan = plan(&observed);
        for object in &plan.remove {
            self.allocator.remove(object).await?;
        }
        for missing in plan.missing {
            if self.repair_one(&missing).await? {
                report.findings.extend(missing.finding);
            }
        }
        report.findings.extend(plan.findings);
        report.freed += plan.freed;
        Ok(())
    }

    /// Creates the object of an address that a Service has; says no where somebody was faster, or the Service has gone.
    async fn repair_one(&self, missing: &Missing) -> Result<bool, AddressError> {
        let service = self.allocator.service(&missing.owner).await?;
        let service = service.as_ref().and_then(|stored| stored.object().downcast_ref());
        if !service.is_some_and(|service| has(service, missing.address)) {
            return Ok(false);
        }
        match self.allocator.create(missing.address, &missing.owner).await {
            Err(AddressError::Taken) => Ok(false),
            other => other.map(|()| true),
        }
    }
}

/// The addresses that a Service has.
fn used_by(service: &Service) -> impl Iterator<Item = &String> {
    let has_some = service.spec.type_ != EXTERNAL_NAME && !is_headless(&service.spec);
    service.spec.cluster_ips.iter().filter(move |_| has_some)
}

fn plan<'a>(observed: &Observed<'a>) -> Plan<'a> {
    let mut plan = Plan::default();
    let by_name: BTreeMap<&str, &IPAddress> =
        observed.addresses.iter().map(|object| (object.metadata.name.as_str(), *object)).collect();
    let services: BTreeMap<(&str, &str), &Service> = observed
        .services
        .iter()
        .map(|service| ((service.metadata.namespace.as_str(), service.metadata.name.as_str()), *service))
        .collect();
    for service in &observed.services {
        for text in used_by(service) {
            check_used(observed, service, text, &by_name, &services, &mut plan);
        }
    }
    for object in observed.addresses.iter().filter(|object| is_managed(object)) {
        check_owner(observed, object, &services, &mut plan);
    }
    plan
}

type Services<'a> = BTreeMap<(&'a str, &'a str), &'a Service>;

fn find<'a>(services: &Services<'a>, owner: &Owner) -> Option<&'a Service> {
    services.get(&(owner.namespace.as_str(), owner.name.as_str())).copied()
}

fn has(service: &Service, address: IpAddr) -> bool {
    used_by(service).any(|text| parse_ip_lenient(text) == Some(address))
}

/// An address that a Service has: its object is there, and names the Service.
fn check_used<'a>(
    observed: &Observed<'a>,
    service: &Service,
    text: &str,
    by_name: &BTreeMap<&str, &'a IPAddress>,
    services: &Services<'a>,
    plan: &mut Plan<'a>,
) {
    let finding = |action, reason, message| RepairFinding::of(service, action, reason, message);
    let Some(address) = parse_ip_lenient(text) else {
        let message = format!("Cluster IP {text} is not a valid IP; please recreate Service");
        return plan.findings.push(finding(RepairAction::ClusterIPValidation, "ClusterIPNotValid", message));
    };
    let of_address = |reason, message| finding(RepairAction::ClusterIPAllocation, reason, message);
    let family = Family::of(address).as_str();
    if !observed.networks.iter().any(|network| network.contains(address)) {
        let message = format!(
            "Cluster IP [{family}]: {address} is not within any configured Service CIDR; please recreate service"
        );
        return plan.findings.push(of_address("ClusterIPOutOfRange", message));
    }
    let owner = Owner::of(service);
    let Some(object) = by_name.get(address.to_string().as_str()).copied() else {
        let message = format!("Cluster IP [{family}]: {address} is not allocated; repairing");
        let finding = Some(of_address(NOT_ALLOCATED, message));
        return plan.missing.push(Missing { address, owner, finding });
    };
    let finding = match Owner::named_by(object) {
        Some(named) if named == owner && has_labels(object, address) => return,
        Some(named) if named == owner => None,
        Some(named) if find(services, &named).is_some_and(|other| has(other, address)) => {
            let message =
                format!("Cluster IP [{family}]:{address} was assigned to multiple services; please recreate service");
            return plan.findings.push(of_address("ClusterIPAlreadyAllocated", message));
        }
        _ => {
            let Owner { namespace, name } = &owner;
            let message = format!(
                "the ClusterIP [{family}]: {address} for Service {namespace}/{name} has a wrong reference; repairing"
            );
            Some(of_address(NOT_ALLOCATED, message))
        }
    };
    plan.remove.push(object);
    plan.missing.push(Missing { address, owner, finding });
}

/// The object of an address that was taken here: its Service has it, or may have it soon.
fn check_owner<'a>(observed: &Observed<'a>, object: &'a IPAddress, services: &Services<'a>, plan: &mut Plan<'a>) {
    if plan.remove.iter().any(|other| other.metadata.uid == object.metadata.uid) {
        return;
    }
    let name = &object.metadata.name;
    let age = observed.now.since(object.metadata.creation_timestamp);
    let Some(owner) = Owner::named_by(object) else {
        let ParentReference { group, resource, namespace, name: parent } =
            object.spec.parent_ref.clone().unwrap_or_default();
        // The reference as upstream's types print themselves.
        let message = format!(
            "IPAddress {name} appears to have been modified, not referencing a Service \
             &ParentReference{{Group:{group},Resource:{resource},Namespace:{namespace},Name:{parent},}}: cleaning up"
        );
        return give_back(object, "IPAddressNotAllocated", message, plan);
    };
    let Owner { namespace, name: service_name } = &owner;
    let Some(service) = find(services, &owner) else {
        if age > GRACE {
            let message =
                format!("IPAddress: {name} for Service {namespace}/{service_name} appears to have leaked: cleaning up");
            give_back(object, "IPAddressNotAllocated", message, plan);
        }
        return;
    };
    if name.parse().is_ok_and(|address| has(service, address)) {
        return;
    }
    let is_newer = object.metadata.creation_timestamp > service.metadata.creation_timestamp;
    let may_come = if service.spec.type_ == EXTERNAL_NAME { age < GRACE } else { is_newer && age < UPDATE_GRACE };
    if !may_come {
        let message =
            format!("IPAddress: {name} for Service {namespace}/{service_name} has a wrong reference; cleaning up");
        give_back(object, "IPAddressWrongReference", message, plan);
    }
}

fn give_back<'a>(object: &'a IPAddress, reason: &'static str, message: String, plan: &mut Plan<'a>) {
    plan.findings.push(RepairFinding::of(object, RepairAction::IPAddressAllocation, reason, message));
    plan.remove.push(object);
    plan.freed += 1;
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
        let observed = Observed {
            services: services.iter().collect(),
            addresses: addresses.iter().collect(),
            networks: &networks,
            now: Time::from_unix_seconds(NOW),
        };
        let plan = plan(&observed);
        let missing = plan.missing.iter().filter_map(|missing| missing.finding.as_ref());
        let told = plan.findings.iter().chain(missing);
        [
            told.map(|finding| format!("{} {}", finding.reason, finding.regarding.name)).collect(),
            plan.remove.iter().map(|object| object.metadata.name.clone()).collect(),
            plan.missing.iter().map(|missing| format!("{} {}", missing.address, missing.owner.name)).collect(),
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
