//! Cluster addresses as objects: who creates the `IPAddress` named by an address has it, whichever server he asked. The
//! networks that addresses are taken from are those of `ServiceCIDR` objects (KEP-1880).

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use api_machinery::meta::{DeleteOptions, ListOptions, Preconditions};
use api_machinery::object::{Kind, Object};
use api_machinery::status::ApiError;
use api_types::core_v1::Service;
use api_types::networking_v1::{IPAddress, IPAddressSpec, ParentReference, ServiceCIDR};
use base::{SharedClock, SharedRng};
use watch_cache::Stored;

use super::bands;
use super::held;
use super::network::{Cidr, Family};
use super::range::RangeError;
use super::recorder::{AllocationRecorder, Scope};
use super::stored_ranges::StoredRanges;
use crate::context::{AdmitAll, Hooks, RequestCx, Track};
use crate::registry::{Registry, RegistryOptions};
use crate::resource::Resource;

/// Says of an address of which family it is.
const FAMILY_LABEL: &str = "ipaddress.kubernetes.io/ip-family";
/// Says of an address who takes care of it.
const MANAGED_BY_LABEL: &str = "ipaddress.kubernetes.io/managed-by";
/// The value of that for addresses that are taken here.
const ALLOCATOR: &str = "ipallocator.k8s.io";
/// The condition of a network that addresses can be taken from.
const READY: &str = "Ready";

/// Why an address cannot be had.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum AddressError {
    #[error("provided IP is already allocated")]
    Taken,
    #[error("the provided IP ({0}) is not in the valid range. The range of valid IPs is {1}")]
    Outside(IpAddr, Cidr),
    #[error("range is full")]
    Full,
    #[error("the provided network does not match the current range")]
    OtherNetwork,
    #[error("allocator not ready")]
    NotReady,
    #[error("{0}")]
    UnsupportedNetwork(String),
    #[error("{0}")]
    Api(ApiError),
    #[error(transparent)]
    StoredRange(#[from] RangeError),
}

impl From<ApiError> for AddressError {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

/// The Service that an address belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Owner {
    pub(super) fn of(object: &dyn Object) -> Self {
        Self { namespace: object.meta().namespace.clone(), name: object.meta().name.clone() }
    }

    /// Whom an address names, where that is a Service.
    pub(super) fn named_by(address: &IPAddress) -> Option<Self> {
        let parent = address.spec.parent_ref.as_ref()?;
        let is_service = (parent.group.as_str(), parent.resource.as_str()) == ("", "services");
        is_service.then(|| Self { namespace: parent.namespace.clone(), name: parent.name.clone() })
    }

    fn reference(&self) -> ParentReference {
        ParentReference {
            group: String::new(),
            resource: "services".to_owned(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}

/// Takes addresses, and gives them back.
pub(super) struct AddressAllocator {
    registry: Weak<Registry>,
    rng: SharedRng,
    clock: SharedClock,
    recorder: Arc<dyn AllocationRecorder>,
    own_fields: Option<Arc<Track<'static>>>,
    stored_ranges: StoredRanges,
    /// Whether every address that a Service has was seen to be an object, since this server began. Before, an older
    /// release may have given out some without.
    is_complete: AtomicBool,
}

/// How many addresses of a network are in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkUse {
    /// The network.
    pub network: Cidr,
    /// Addresses that are objects.
    pub taken: u64,
    /// Addresses that can be given out.
    pub free: u64,
}

impl AddressAllocator {
    pub(super) fn new(registry: Weak<Registry>, options: &RegistryOptions) -> Self {
        Self {
            registry,
            rng: Arc::clone(&options.rng),
            clock: Arc::clone(&options.clock),
            recorder: Arc::clone(&options.allocation),
            own_fields: options.own_fields.clone(),
            stored_ranges: StoredRanges::new(options),
            is_complete: AtomicBool::new(false),
        }
    }

    /// Takes an address that somebody wants.
    pub(super) async fn take(&self, address: IpAddr, owner: &Owner, dry_run: bool) -> Result<(), AddressError> {
        let networks = self.ready_networks().await?;
        // Networks may overlap, and the edge of one can be in the midst of another.
        let usable = networks.iter().find(|network| network.offset(address).is_some());
        let network = usable.or_else(|| networks.iter().find(|network| network.contains(address)));
        let network = *network.ok_or(AddressError::OtherNetwork)?;
        if dry_run {
            return if usable.is_some() { Ok(()) } else { Err(AddressError::Outside(address, network)) };
        }
        let began = self.clock.monotonic();
        let taken = match usable {
            None => Err(AddressError::Outside(address, network)),
            Some(_) if self.without_objects(owner).await?.contains(&address) => Err(AddressError::Taken),
            Some(_) => self.claim(address, owner).await,
        };
        let took = self.clock.monotonic() - began;
        self.recorder.address(network, Scope::Static, taken.is_ok(), took);
        taken
    }

    /// The addresses that other Services have and that may not be objects yet.
    async fn without_objects(&self, owner: &Owner) -> Result<HashSet<IpAddr>, AddressError> {
        if self.is_complete.load(Ordering::Acquire) {
            return Ok(HashSet::new());
        }
        let services = self.list::<Service>().await?;
        let services = services.iter().filter_map(|item| item.object().downcast_ref::<Service>());
        let others = services.filter(|service| Owner::of(*service) != *owner);
        Ok(others.flat_map(|service| held::addresses(&service.spec)).collect())
    }

    /// Every address that a Service has was seen to be an object.
    pub(super) fn completed(&self) {
        self.is_complete.store(true, Ordering::Release);
    }

    /// How much of each network is in use, as the cache has it.
    pub(super) fn used(&self) -> Vec<NetworkUse> {
        let at_hand = |kind: Result<Arc<Resource>, AddressError>| kind.ok().and_then(|kind| kind.at_hand(""));
        let cidrs = at_hand(self.kind::<ServiceCIDR>()).unwrap_or_default();
        let networks = networks(cidrs.iter().filter_map(|item| item.object().downcast_ref()));
        let mut used: Vec<NetworkUse> =
            networks.into_iter().map(|network| NetworkUse { network, taken: 0, free: network.size() }).collect();
        for item in at_hand(self.kind::<IPAddress>()).unwrap_or_default() {
            let Some(object) = item.object().downcast_ref::<IPAddress>().filter(|object| is_managed(object)) else {
                continue;
            };
            let Ok(address) = object.metadata.name.parse() else { continue };
            for own in used.iter_mut().filter(|own| own.network.offset(address).is_some()) {
                own.taken += 1;
                own.free = own.free.saturating_sub(1);
            }
        }
        used
    }

    /// Takes some free address of a family; in a dry run that of a network stands for it.
    pub(super) async fn take_any(&self, family: Family, owner: &Owner, dry_run: bool) -> Result<IpAddr, AddressError> {
        let networks = self.ready_networks().await?;
        let mut failure = AddressError::NotReady;
        for network in networks.into_iter().filter(|network| network.family() == family) {
            if let Some(problem) = network.problem() {
                failure = AddressError::UnsupportedNetwork(problem);
                continue;
            }
            if dry_run {
                return Ok(network.network());
            }
            match self.take_any_of(network, owner).await {
                Err(AddressError::Full) => failure = AddressError::Full,
                other => return other,
            }
        }
        Err(failure)
    }

    async fn take_any_of(&self, network: Cidr, owner: &Owner) -> Result<IpAddr, AddressError> {
        let began = self.clock.monotonic();
        let found = self.find_any_of(network, owner).await;
        let took = self.clock.monotonic() - began;
        self.recorder.address(network, Scope::Dynamic, found.is_ok(), took);
        found
    }

    async fn find_any_of(&self, network: Cidr, owner: &Owner) -> Result<IpAddr, AddressError> {
        let addresses = self.kind::<IPAddress>()?;
        let without_objects = self.without_objects(owner).await?;
        for number in bands::numbers(network.size(), network.lower_band(), &self.rng) {
            let address = network.address(number);
            // Those that the cache knows need no try.
            if without_objects.contains(&address) || addresses.one_at_hand("", &address.to_string()).is_some() {
                continue;
            }
            match self.claim(address, owner).await {
                Err(AddressError::Taken) => {}
                Err(other) => return Err(other),
                Ok(()) => return Ok(address),
            }
        }
        Err(AddressError::Full)
    }

    /// Takes an address for good.
    async fn claim(&self, address: IpAddr, owner: &Owner) -> Result<(), AddressError> {
        self.stored_ranges.take(address).await?;
        let created = self.create(address, owner).await;
        // One that is another's is so in the range, too, now.
        if !matches!(created, Ok(()) | Err(AddressError::Taken)) {
            self.stored_ranges.free(address).await;
        }
        created
    }

    /// Makes the ranges that older servers look at say what Services have, where they are kept.
    pub(super) async fn repair_stored_ranges(&self) -> Result<(), AddressError> {
        self.stored_ranges.repair(|| self.list::<Service>()).await
    }

    /// Gives an address back, if it still is the owner's.
    pub(super) async fn free(&self, address: IpAddr, owner: &Owner) -> Result<(), AddressError> {
        let Some(stored) = self.address(&address.to_string(), "").await? else { return Ok(()) };
        let is_own = |object: &IPAddress| Owner::named_by(object).as_ref() == Some(owner);
        if let Some(object) = stored.object().downcast_ref::<IPAddress>().filter(|object| is_own(object)) {
            self.remove(object).await?;
            self.stored_ranges.free(address).await;
        }
        Ok(())
    }

    /// Removes the object of an address, unless it is another one by now.
    pub(super) async fn remove(&self, object: &IPAddress) -> Result<(), AddressError> {
        let preconditions = Preconditions { uid: Some(object.metadata.uid.clone()), ..Preconditions::default() };
        let options = DeleteOptions { preconditions: Some(preconditions), ..DeleteOptions::default() };
        let addresses = self.kind::<IPAddress>()?;
        match addresses.delete(&self.request()?, &object.metadata.name, &options, &Hooks::none()).await {
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            Err(error) => Err(error.into()),
            Ok(_) => Ok(()),
        }
    }

    /// Creates the object of an address.
    pub(super) async fn create(&self, address: IpAddr, owner: &Owner) -> Result<(), AddressError> {
        let mut object =
            IPAddress { spec: IPAddressSpec { parent_ref: Some(owner.reference()) }, ..IPAddress::default() };
        object.metadata.name = address.to_string();
        object.metadata.labels = labels(address).map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let hooks = Hooks { admission: &AdmitAll, track: self.own_fields.as_deref() };
        let created = self.kind::<IPAddress>()?.create(&self.request()?, Box::new(object), &hooks).await;
        match created {
            Err(error) if error.is_already_exists() => Err(AddressError::Taken),
            Err(error) => Err(error.into()),
            Ok(_) => Ok(()),
        }
    }

    /// A Service, as it is now (the version is empty) or as the cache has it (`0`).
    pub(super) async fn service(&self, owner: &Owner, version: &str) -> Result<Option<Arc<Stored>>, AddressError> {
        let cx = RequestCx { namespace: owner.namespace.clone(), ..self.request()? };
        match self.kind::<Service>()?.get(&cx, &owner.name, version).await {
            Err(error) if error.is_not_found() => Ok(None),
            found => Ok(Some(found?)),
        }
    }

    /// The object of an address, as [`Self::service`] finds Services.
    pub(super) async fn address(&self, name: &str, version: &str) -> Result<Option<Arc<Stored>>, AddressError> {
        match self.kind::<IPAddress>()?.get(&self.request()?, name, version).await {
            Err(error) if error.is_not_found() => Ok(None),
            found => Ok(Some(found?)),
        }
    }

    /// The networks of all `ServiceCIDR` objects that are ready, each once.
    async fn ready_networks(&self) -> Result<Vec<Cidr>, AddressError> {
        let kind = self.kind::<ServiceCIDR>()?;
        let stored = match kind.at_hand("") {
            Some(stored) if !stored.is_empty() => stored,
            // A new cluster's first one may not have come to the cache.
            _ => self.list_of(&kind).await?,
        };
        Ok(networks(stored.iter().filter_map(|item| item.object().downcast_ref()).filter(|object| is_ready(object))))
    }

    /// The networks of all `ServiceCIDR` objects, ready or not; the version is as for [`Self::service`].
    pub(super) async fn known_networks(&self, version: &str) -> Result<Vec<Cidr>, AddressError> {
        let kind = self.kind::<ServiceCIDR>()?;
        let options = ListOptions { resource_version: version.to_owned(), ..ListOptions::default() };
        let stored = kind.list(&self.request()?, &options).await?.items;
        Ok(networks(stored.iter().filter_map(|item| item.object().downcast_ref())))
    }

    /// All objects of a kind, as they are now.
    pub(super) async fn list<T: Kind>(&self) -> Result<Vec<Arc<Stored>>, AddressError> {
        self.list_of(&*self.kind::<T>()?).await
    }

    async fn list_of(&self, kind: &Resource) -> Result<Vec<Arc<Stored>>, AddressError> {
        Ok(kind.list(&self.request()?, &ListOptions::default()).await?.items)
    }

    fn kind<T: Kind>(&self) -> Result<Arc<Resource>, AddressError> {
        let registry = self.registry.upgrade().ok_or(AddressError::NotReady)?;
        registry.resource(T::TYPE.group, T::TYPE.version, T::TYPE.resource).ok_or(AddressError::NotReady)
    }

    /// A request of the server's own: what is written here is nobody's wish but follows from a Service.
    fn request(&self) -> Result<RequestCx, AddressError> {
        let registry = self.registry.upgrade().ok_or(AddressError::NotReady)?;
        Ok(RequestCx { rules: registry.rule_context(), namespace: String::new(), dry_run: false })
    }
}

fn labels(address: IpAddr) -> [(&'static str, &'static str); 2] {
    [(FAMILY_LABEL, Family::of(address).as_str()), (MANAGED_BY_LABEL, ALLOCATOR)]
}

/// Whether an address is one that was taken here.
pub(super) fn is_managed(object: &IPAddress) -> bool {
    object.metadata.labels.get(MANAGED_BY_LABEL).is_some_and(|by| by == ALLOCATOR)
}

/// Whether an address says of itself what it should.
pub(super) fn has_labels(object: &IPAddress, address: IpAddr) -> bool {
    labels(address).iter().all(|(name, value)| object.metadata.labels.get(*name).is_some_and(|own| own == value))
}

fn networks<'a>(objects: impl Iterator<Item = &'a ServiceCIDR>) -> Vec<Cidr> {
    let mut networks: Vec<Cidr> = Vec::new();
    for network in objects.flat_map(|object| &object.spec.cidrs).filter_map(|text| text.parse().ok()) {
        if !networks.contains(&network) {
            networks.push(network);
        }
    }
    networks
}

/// One that nobody has looked at yet counts, so that a cluster starts without its controller manager.
fn is_ready(object: &ServiceCIDR) -> bool {
    let condition = object.status.conditions.iter().find(|condition| condition.type_ == READY);
    object.metadata.deletion_timestamp.is_none() && condition.is_none_or(|condition| condition.status == "True")
}
