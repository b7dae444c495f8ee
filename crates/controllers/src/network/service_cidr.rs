//! Says of `ServiceCIDR` objects whether addresses can be taken from them, and keeps one from going while addresses that
//! no other has are in use (KEP-1880).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::{Condition, PatchOptions};
use api_machinery::names::parse_cidr_lenient;
use api_machinery::time::Time;
use api_machinery::value::{Value, ValueMap};
use api_types::networking_v1::{IPAddress, ServiceCIDR};
use client::{Change, EventType, Informer, ObjectKey, Patch};
use component_base::Feature;
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "service-cidr-controller",
    aliases: &[],
    gates: &[Feature::named("MultiCIDRServiceAllocator")],
    identity: "service-cidrs-controller",
    event_component: FIELD_MANAGER,
    disabled_by_default: false,
    build,
};

const FIELD_MANAGER: &str = "service-cidr-controller";
const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";
const READY: &str = "Ready";
/// Whose addresses count.
const MANAGED_BY: (&str, &str) = ("ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io");
/// How long API servers may need to hear that no more addresses are to be taken from one that goes.
const GRACE: Duration = Duration::from_secs(10);
const WORKERS: usize = 5;

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let queue = build.queue("ipaddresses");
    let cidrs = build.watch::<ServiceCIDR>().informer();
    let known = cidrs.clone();
    let with_overlapping = move |change: &Change<ServiceCIDR>| match change {
        Change::Added { object, .. } => overlapping(object, &known.list()),
        _ => vec![change.key()],
    };
    let cidrs = build.watch::<ServiceCIDR>().enqueue_keys(&queue, with_overlapping).informer();
    let known = cidrs.clone();
    let containing = move |change: &Change<IPAddress>| match change {
        Change::Updated { .. } => Vec::new(),
        _ => holding(change.object(), &known.list()),
    };
    let addresses = build.watch::<IPAddress>().enqueue_keys(&queue, containing).informer();
    build.run(&queue, WORKERS, Arc::new(ServiceCidrs { cidrs, addresses }));
    Ok(())
}

fn key(object: &ServiceCIDR) -> ObjectKey {
    ObjectKey::new(String::new(), object.metadata.name.clone())
}

/// An object and all whose networks overlap with its.
fn overlapping(object: &ServiceCIDR, cidrs: &[Arc<ServiceCIDR>]) -> Vec<ObjectKey> {
    let own = networks(object);
    let overlaps =
        |other: &&Arc<ServiceCIDR>| networks(other).iter().any(|other| own.iter().any(|own| own.overlaps(*other)));
    let is_other = |other: &&Arc<ServiceCIDR>| other.metadata.name != object.metadata.name;
    let others = cidrs.iter().filter(is_other).filter(overlaps).map(|other| key(other));
    std::iter::once(key(object)).chain(others).collect()
}

/// The objects that an address is of, where it is one that counts.
fn holding(address: &IPAddress, cidrs: &[Arc<ServiceCIDR>]) -> Vec<ObjectKey> {
    let Some(address) = managed(address) else { return Vec::new() };
    let holds = |object: &&Arc<ServiceCIDR>| networks(object).iter().any(|network| network.holds(address));
    cidrs.iter().filter(holds).map(|object| key(object)).collect()
}

fn managed(object: &IPAddress) -> Option<IpAddr> {
    let is_managed = object.metadata.labels.get(MANAGED_BY.0).is_some_and(|by| by == MANAGED_BY.1);
    is_managed.then(|| object.metadata.name.parse().ok()).flatten()
}

/// A network: its first address as a number, and how many leading bits are its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    is_v4: bool,
    first: u128,
    prefix: u8,
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

impl Network {
    fn host_bits(self) -> u32 {
        u32::from((if self.is_v4 { 32 } else { 128_u8 }).saturating_sub(self.prefix))
    }

    /// The number of a network of this size that an address is in.
    fn index(self, address: u128) -> u128 {
        address.checked_shr(self.host_bits()).unwrap_or(0)
    }

    fn overlaps(self, other: Self) -> bool {
        let wider = if self.prefix <= other.prefix { self } else { other };
        self.is_v4 == other.is_v4 && wider.index(self.first) == wider.index(other.first)
    }

    fn contains(self, other: Self) -> bool {
        self.prefix <= other.prefix && self.overlaps(other)
    }

    /// Whether an address can be given out from it: not the network's own nor, in IPv4, the broadcast address.
    fn holds(self, address: IpAddr) -> bool {
        let (is_v4, own) = (address.is_ipv4(), number(address));
        let last = self.first | 1_u128.checked_shl(self.host_bits()).map_or(u128::MAX, |size| size - 1);
        let is_inside = is_v4 == self.is_v4 && self.index(own) == self.index(self.first);
        is_inside && own != self.first && !(is_v4 && own == last)
    }
}

fn networks(object: &ServiceCIDR) -> Vec<Network> {
    let parsed = object.spec.cidrs.iter().filter_map(|text| parse_cidr_lenient(text));
    let network = |(address, prefix): (IpAddr, u8)| {
        let network = Network { is_v4: address.is_ipv4(), first: number(address), prefix };
        let first = network.index(network.first).checked_shl(network.host_bits()).unwrap_or(0);
        Network { first, ..network }
    };
    parsed.map(network).collect()
}

/// Whether an object can go: each of its networks is in another object's, or nobody else lacks an address of it.
fn may_go(object: &ServiceCIDR, cidrs: &[Arc<ServiceCIDR>], addresses: &[Arc<IPAddress>]) -> bool {
    let others: Vec<Network> = cidrs
        .iter()
        .filter(|other| other.metadata.name != object.metadata.name)
        .flat_map(|other| networks(other))
        .collect();
    networks(object).into_iter().all(|own| {
        let is_needed = |address: IpAddr| own.holds(address) && !others.iter().any(|other| other.holds(address));
        others.iter().any(|other| other.contains(own))
            || !addresses.iter().filter_map(|object| managed(object)).any(is_needed)
    })
}

/// What an object wants next.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    /// A finalizer first, and then to be said ready.
    Keep { add_finalizer: bool, say: Option<Said> },
    /// To be told why it stays.
    Hold(Option<Said>),
    /// To wait until API servers have heard.
    Wait(Duration),
    /// To go.
    Release,
    /// Nothing; the finalizer is gone.
    Nothing,
}

/// A condition that is not what it should be yet.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    status: &'static str,
    reason: &'static str,
    message: &'static str,
}

const IS_READY: Said = Said { status: "True", reason: "", message: "Kubernetes Service CIDR is ready" };
const IS_USED: Said = Said {
    status: "False",
    reason: "Terminating",
    message: "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
};

impl Said {
    /// Nothing where the object says so already.
    fn unless_told(self, object: &ServiceCIDR) -> Option<Self> {
        let is_same = |own: &Condition| {
            (own.status.as_str(), own.reason.as_str(), own.message.as_str()) == (self.status, self.reason, self.message)
        };
        let told = object.status.conditions.iter().any(|condition| condition.type_ == READY && is_same(condition));
        (!told).then_some(self)
    }
}

fn plan(object: &ServiceCIDR, cidrs: &[Arc<ServiceCIDR>], addresses: &[Arc<IPAddress>], now: Time) -> Plan {
    let is_held = object.metadata.finalizers.iter().any(|own| own == FINALIZER);
    let Some(since) = object.metadata.deletion_timestamp else {
        return Plan::Keep { add_finalizer: !is_held, say: IS_READY.unless_told(object) };
    };
    if !is_held {
        return Plan::Nothing;
    }
    if !may_go(object, cidrs, addresses) {
        return Plan::Hold(IS_USED.unless_told(object));
    }
    match GRACE.checked_sub(now.since(since)).filter(|left| !left.is_zero()) {
        Some(left) => Plan::Wait(left),
        None => Plan::Release,
    }
}

struct ServiceCidrs {
    cidrs: Informer<ServiceCIDR>,
    addresses: Informer<IPAddress>,
}

impl ServiceCidrs {
    async fn say(&self, cx: &Cx, object: &ServiceCIDR, said: Option<Said>) -> Result<(), ReconcileError> {
        let Some(said) = said else { return Ok(()) };
        let options =
            PatchOptions { field_manager: FIELD_MANAGER.to_owned(), force: Some(true), ..PatchOptions::default() };
        let name = &object.metadata.name;
        let patch = status_patch(name, &said, cx.clock.wall().into());
        let api = cx.client.all::<ServiceCIDR>();
        let written = api.patch_subresource(name, "status", &patch, &options).await;
        if let Err(error) = written {
            if said.status == IS_READY.status {
                let message = "The ServiceCIDR Status can not be set to Ready=True";
                cx.events.event(object, EventType::Warning, "KubernetesServiceCIDRError", message);
            }
            return Err(error.into());
        }
        Ok(())
    }
}

#[async_trait::async_trait]
impl Controller for ServiceCidrs {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(object) = self.cidrs.get(key) else { return Ok(Next::Done) };
        let api = cx.client.all::<ServiceCIDR>();
        match plan(&object, &self.cidrs.list(), &self.addresses.list(), cx.clock.wall().into()) {
            Plan::Nothing => {}
            Plan::Wait(left) => return Ok(Next::After(left)),
            Plan::Hold(said) => self.say(cx, &object, said).await?,
            Plan::Keep { add_finalizer, say } => {
                if add_finalizer {
                    let all = object.metadata.finalizers.iter().map(String::as_str).chain([FINALIZER]);
                    let patch = Patch::Strategic(of_metadata("finalizers", all));
                    api.patch(&key.name, &patch).await?;
                }
                self.say(cx, &object, say).await?;
            }
            Plan::Release => {
                let patch =
                    Patch::Strategic(of_metadata("$deleteFromPrimitiveList/finalizers", [FINALIZER].into_iter()));
                match api.patch(&key.name, &patch).await {
                    Err(error) if !error.is_not_found() => return Err(error.into()),
                    _ => {}
                }
            }
        }
        Ok(Next::Done)
    }
}

fn object(members: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    let members = members.into_iter().map(|(name, value)| (name.to_owned(), value));
    Value::from(members.collect::<ValueMap<String, Value>>())
}

fn of_metadata<'a>(member: &'static str, items: impl Iterator<Item = &'a str>) -> Value {
    object([("metadata", object([(member, Value::Array(items.map(Value::from).collect()))]))])
}

/// The one condition as an intent to apply.
fn status_patch(name: &str, said: &Said, now: Time) -> Patch {
    let members = [
        ("type", READY.into()),
        ("status", said.status.into()),
        ("message", said.message.into()),
        ("lastTransitionTime", now.to_string().into()),
    ];
    // An empty reason would be owned though nobody sees it.
    let reason = (!said.reason.is_empty()).then(|| ("reason", said.reason.into()));
    let condition = object(members.into_iter().chain(reason));
    Patch::Apply(object([
        ("apiVersion", "networking.k8s.io/v1".into()),
        ("kind", "ServiceCIDR".into()),
        ("metadata", object([("name", name.into())])),
        ("status", object([("conditions", Value::Array(vec![condition]))])),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(name: &str, cidrs: &[&str]) -> Arc<ServiceCIDR> {
        let mut object = ServiceCIDR::default();
        object.metadata.name = name.into();
        object.metadata.finalizers.push(FINALIZER.into());
        object.spec.cidrs = cidrs.iter().map(|cidr| (*cidr).to_owned()).collect();
        Arc::new(object)
    }

    fn address(name: &str) -> Arc<IPAddress> {
        let mut object = IPAddress::default();
        object.metadata.name = name.into();
        object.metadata.labels.insert(MANAGED_BY.0.into(), MANAGED_BY.1.into());
        Arc::new(object)
    }

    #[test]
    fn networks_hold_what_can_be_given_out() {
        let of = |text: &str| networks(&cidr("a", &[text]))[0];
        for (network, address, held) in [
            ("10.0.0.0/24", "10.0.0.1", true),
            ("10.0.0.0/24", "10.0.0.0", false),
            ("10.0.0.0/24", "10.0.0.255", false),
            ("10.0.0.0/24", "10.0.1.1", false),
            ("10.0.0.0/24", "fd00::1", false),
            ("fd00::/112", "fd00::ffff", true),
            ("fd00::/112", "fd00::", false),
            ("0.0.0.0/0", "1.2.3.4", true),
            ("::/0", "fd00::1", true),
        ] {
            assert_eq!(of(network).holds(address.parse().unwrap()), held, "{network} {address}");
        }
        for (one, other, overlap, contained) in [
            ("10.0.0.0/24", "10.0.0.0/24", true, true),
            ("10.0.0.0/16", "10.0.3.0/24", true, true),
            ("10.0.3.0/24", "10.0.0.0/16", true, false),
            ("10.0.0.0/24", "10.0.1.0/24", false, false),
            ("0.0.0.0/0", "::/0", false, false),
        ] {
            let (one, other) = (of(one), of(other));
            assert_eq!((one.overlaps(other), one.contains(other)), (overlap, contained), "{one:?} {other:?}");
        }
    }

    #[test]
    fn one_goes_once_nobody_needs_its_addresses() {
        let (own, six) = (cidr("own", &["10.0.0.0/24", "fd00::/112"]), cidr("six", &["fd00::/64"]));
        type Row<'r> = (&'r [Arc<ServiceCIDR>], &'r [&'r str], bool);
        let rows: [Row<'_>; 8] = [
            (&[], &[], true),
            (&[], &["10.0.0.9"], false),
            (&[], &["10.0.1.9"], true),
            (&[], &["fd00::9"], false),
            (std::slice::from_ref(&six), &["fd00::9"], true),
            (std::slice::from_ref(&six), &["10.0.0.9"], false),
            (&[cidr("part", &["10.0.0.0/28"])], &["10.0.0.9"], true),
            (&[cidr("part", &["10.0.0.0/28"])], &["10.0.0.99"], false),
        ];
        for (others, addresses, expected) in rows {
            let addresses: Vec<_> = addresses.iter().map(|name| address(name)).collect();
            let all: Vec<_> = others.iter().cloned().chain([Arc::clone(&own)]).collect();
            assert_eq!(may_go(&own, &all, &addresses), expected, "{others:?} {addresses:?}");
        }
        let mut somebody_elses = IPAddress::clone(&address("10.0.0.9"));
        somebody_elses.metadata.labels.clear();
        assert!(may_go(&own, &[Arc::clone(&own)], &[Arc::new(somebody_elses)]));
    }

    #[test]
    fn plans() {
        let now = Time::from_unix_seconds(100);
        let with = |since: Option<i64>, finalizers: &[&str], said: Option<&Said>| {
            let mut object = ServiceCIDR::clone(&cidr("own", &["10.0.0.0/24"]));
            object.metadata.deletion_timestamp = since.map(Time::from_unix_seconds);
            object.metadata.finalizers = finalizers.iter().map(|own| (*own).to_owned()).collect();
            object.status.conditions.extend(said.map(|said| Condition {
                type_: READY.into(),
                status: said.status.into(),
                reason: said.reason.into(),
                message: said.message.into(),
                ..Condition::default()
            }));
            object
        };
        let (used, unused) = (vec![address("10.0.0.9")], vec![]);
        let rows = [
            (with(None, &[], None), &used, Plan::Keep { add_finalizer: true, say: Some(IS_READY) }),
            (with(None, &["x"], Some(&IS_READY)), &used, Plan::Keep { add_finalizer: true, say: None }),
            (with(None, &[FINALIZER], Some(&IS_USED)), &used, Plan::Keep { add_finalizer: false, say: Some(IS_READY) }),
            (with(Some(0), &["x"], None), &used, Plan::Nothing),
            (with(Some(0), &[FINALIZER], Some(&IS_READY)), &used, Plan::Hold(Some(IS_USED))),
            (with(Some(0), &[FINALIZER], Some(&IS_USED)), &used, Plan::Hold(None)),
            (with(Some(91), &[FINALIZER], None), &unused, Plan::Wait(Duration::from_secs(1))),
            (with(Some(90), &[FINALIZER], None), &unused, Plan::Release),
        ];
        for (object, addresses, expected) in rows {
            assert_eq!(plan(&object, &[], addresses, now), expected, "{object:?}");
        }
    }

    #[test]
    fn an_address_wakes_those_that_it_is_of() {
        let all = [cidr("a", &["10.0.0.0/24"]), cidr("b", &["10.0.0.0/28"]), cidr("c", &["10.1.0.0/24"])];
        let names = |text: &str| {
            let keys = holding(&address(text), &all);
            keys.into_iter().map(|key| key.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names("10.0.0.3"), ["a", "b"]);
        assert_eq!(names("10.0.0.33"), ["a"]);
        assert!(names("nonsense").is_empty());
        let woken = overlapping(&all[1], &all);
        assert_eq!(woken.iter().map(|key| key.name.to_string()).collect::<Vec<_>>(), ["b", "a"]);
    }
}
