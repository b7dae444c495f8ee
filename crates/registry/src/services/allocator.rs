//! Cluster addresses as objects: who creates the `IPAddress` named by an address has it, whichever server he asked. The
//! networks that addresses are taken from are those of `ServiceCIDR` objects (KEP-1880).

use std::net::IpAddr;
use std::sync::{Arc, Weak};

use api_machinery::meta::{DeleteOptions, ListOptions, Preconditions};
use api_machinery::object::{Kind, Object};
use api_machinery::status::ApiError;
use api_types::core_v1::Service;
use api_types::networking_v1::{IPAddress, IPAddressSpec, ParentReference, ServiceCIDR};
use base::SharedRng;
use watch_cache::Stored;

use super::bands;
use super::network::{Cidr, Family};
use crate::context::{Hooks, RequestCx};
use crate::registry::Registry;
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
}

impl AddressAllocator {
    pub(super) fn new(registry: Weak<Registry>, rng: SharedRng) -> Self {
        Self { registry, rng }
    }

    /// Takes an address that somebody wants.
    pub(super) async fn take(&self, address: IpAddr, owner: &Owner, dry_run: bool) -> Result<(), AddressError> {
        let networks = self.ready_networks().await?;
        let network = networks.into_iter().find(|network| network.contains(address));
        let network = network.ok_or(AddressError::OtherNetwork)?;
        if network.offset(address).is_none() {
            return Err(AddressError::Outside(address, network));
        }
        if dry_run { Ok(()) } else { self.create(address, owner).await }
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
        let addresses = self.kind::<IPAddress>()?;
        for number in bands::numbers(network.size(), network.lower_band(), &self.rng) {
            let address = network.address(number);
            // Those that the cache knows need no try.
            if addresses.one_at_hand("", &address.to_string()).is_some() {
                continue;
            }
            match self.create(address, owner).await {
                Err(AddressError::Taken) => {}
                Err(other) => return Err(other),
                Ok(()) => return Ok(address),
            }
        }
        Err(AddressError::Full)
    }

    /// Gives an address back, if it still is the owner's.
    pub(super) async fn free(&self, address: IpAddr, owner: &Owner) -> Result<(), AddressError> {
        let (addresses, cx) = (self.kind::<IPAddress>()?, self.request()?);
        let stored = match addresses.get(&cx, &address.to_string(), "").await {
            Err(error) if error.is_not_found() => return Ok(()),
            found => found?,
        };
        let is_own = |object: &IPAddress| Owner::named_by(object).as_ref() == Some(owner);
        match stored.object().downcast_ref::<IPAddress>().filter(|object| is_own(object)) {
            Some(object) => self.remove(object).await,
            None => Ok(()),
        }
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
        let created = self.kind::<IPAddress>()?.create(&self.request()?, Box::new(object), &Hooks::none()).await;
        match created {
            Err(error) if error.is_already_exists() => Err(AddressError::Taken),
            Err(error) => Err(error.into()),
            Ok(_) => Ok(()),
        }
    }

    /// A Service as it is now.
    pub(super) async fn service(&self, owner: &Owner) -> Result<Option<Arc<Stored>>, AddressError> {
        let cx = RequestCx { namespace: owner.namespace.clone(), ..self.request()? };
        match self.kind::<Service>()?.get(&cx, &owner.name, "").await {
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

    /// The networks of all `ServiceCIDR` objects, ready or not.
    pub(super) async fn known_networks(&self) -> Result<Vec<Cidr>, AddressError> {
        let stored = self.list::<ServiceCIDR>().await?;
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
