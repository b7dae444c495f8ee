//! Pools: the devices that a driver offers together, in slices, and which of them a node reaches.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use api_types::core_v1::NodeSelector;
use api_types::resource_v1::{Device, DeviceSelector, ResourceSlice};
use component_helpers::node_affinity::selector_matches;

use crate::allocator::CandidateNode;
use crate::verdicts::{Expression, Judged};

/// A pool by its driver and its name.
type PoolKey = (String, String);

/// All slices, by pool and by what they can be of use to. They are sorted once, for any number of allocators.
#[derive(Default)]
pub struct Slices {
    /// By driver and pool.
    pools: Vec<(PoolKey, Newest)>,
    /// The places of the pools with slices of one node.
    of_node: HashMap<String, BTreeSet<usize>>,
    /// The places of the pools with slices that are not of one node.
    anywhere: BTreeSet<usize>,
    /// How many devices there are.
    devices: usize,
    judged: Judged,
}

/// The slices of a pool that count: those of its newest generation.
#[derive(Default)]
struct Newest {
    generation: i64,
    /// By name.
    slices: Vec<Arc<ResourceSlice>>,
    /// The number of the first device; the others follow it.
    first: usize,
    /// What is wrong with them, once somebody has looked.
    problem: OnceLock<Option<String>>,
}

impl Newest {
    fn add(&mut self, slice: &Arc<ResourceSlice>) {
        let generation = slice.spec.pool.generation;
        if self.slices.is_empty() || generation > self.generation {
            (self.generation, self.slices) = (generation, Vec::new());
        }
        if generation == self.generation {
            self.slices.push(Arc::clone(slice));
        }
    }

    /// Slices are missing.
    fn is_incomplete(&self) -> bool {
        let wanted = self.slices.first().map_or(0, |slice| slice.spec.pool.resource_slice_count);
        i64::try_from(self.slices.len()) != Ok(wanted)
    }

    fn problem(&self) -> Option<&str> {
        self.problem.get_or_init(|| problem(&self.slices)).as_deref()
    }
}

/// A pool as one node sees it.
pub(crate) struct Pool<'a> {
    pub(crate) driver: &'a str,
    pub(crate) name: &'a str,
    /// The devices that the node may reach, in the order in which they are tried.
    pub(crate) devices: Vec<Offer<'a>>,
    /// All slices of the generation.
    pub(crate) slices: &'a [Arc<ResourceSlice>],
    /// Slices are missing: the driver is changing the pool.
    pub(crate) is_incomplete: bool,
    /// What is wrong with it.
    pub(crate) problem: Option<&'a str>,
}

/// A device that is offered.
#[derive(Clone, Copy)]
pub(crate) struct Offer<'a> {
    pub(crate) device: &'a Device,
    pub(crate) slice: &'a Arc<ResourceSlice>,
    /// Its place in the slice.
    pub(crate) place: usize,
    /// Its number among all that are offered.
    pub(crate) number: usize,
}

fn reaches(
    node_name: Option<&str>,
    selector: Option<&NodeSelector>,
    all: Option<bool>,
    node: CandidateNode<'_>,
) -> bool {
    let selected = |selector: &NodeSelector| selector_matches(selector, node.labels, node.name);
    node_name == Some(node.name) || all == Some(true) || selector.is_some_and(selected)
}

impl Offer<'_> {
    /// Where the device says itself which nodes reach it: whether this one does.
    pub(crate) fn is_reached(&self, node: CandidateNode<'_>) -> bool {
        self.slice.spec.per_device_node_selection != Some(true) || device_reaches(self.device, node)
    }
}

fn device_reaches(device: &Device, node: CandidateNode<'_>) -> bool {
    reaches(device.node_name.as_deref(), device.node_selector.as_ref(), device.all_nodes, node)
}

/// Whether a slice may have devices for the node.
fn has_devices(slice: &ResourceSlice, node: CandidateNode<'_>) -> bool {
    let spec = &slice.spec;
    reaches(spec.node_name.as_deref(), spec.node_selector.as_ref(), spec.all_nodes, node)
        || (spec.per_device_node_selection == Some(true)
            && spec.devices.iter().any(|device| device_reaches(device, node)))
}

/// Whether a slice matters to the node: it may have devices for it, or counters that they take from.
fn is_relevant(slice: &ResourceSlice, node: CandidateNode<'_>) -> bool {
    has_devices(slice, node) || !slice.spec.shared_counters.is_empty()
}

impl Slices {
    /// Sorts slices.
    #[must_use]
    pub fn of(slices: &[Arc<ResourceSlice>]) -> Self {
        let mut pools: BTreeMap<PoolKey, Newest> = BTreeMap::new();
        for slice in slices {
            let key = (slice.spec.driver.clone(), slice.spec.pool.name.clone());
            pools.entry(key).or_default().add(slice);
        }
        let mut sorted = Self { pools: pools.into_iter().collect(), ..Self::default() };
        for (place, (_, pool)) in sorted.pools.iter_mut().enumerate() {
            pool.slices.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
            pool.first = sorted.devices;
            for slice in &pool.slices {
                sorted.devices += slice.spec.devices.len();
                match slice.spec.node_name.as_deref() {
                    Some(node) if !node.is_empty() && slice.spec.shared_counters.is_empty() => {
                        sorted.of_node.entry(node.to_owned()).or_default().insert(place);
                    }
                    _ => {
                        sorted.anywhere.insert(place);
                    }
                }
            }
        }
        sorted
    }

    /// A device by its driver, its pool and its name, as it is offered now.
    #[must_use]
    pub fn device(&self, driver: &str, pool: &str, name: &str) -> Option<&Device> {
        let order = |((own_driver, own_pool), _): &(PoolKey, Newest)| (&**own_driver, &**own_pool).cmp(&(driver, pool));
        let (_, newest) = self.pools.get(self.pools.binary_search_by(order).ok()?)?;
        newest.slices.iter().flat_map(|slice| &slice.spec.devices).find(|device| device.name == name)
    }

    /// The expressions of selectors, with what they said of these devices.
    pub(crate) fn expressions(&self, selectors: &[DeviceSelector]) -> Vec<Option<Expression>> {
        self.judged.expressions(selectors, self.devices)
    }

    /// The pools that a node reaches, those whose devices wait for conditions last.
    pub(crate) fn pools_of(&self, node: CandidateNode<'_>) -> Vec<Pool<'_>> {
        let nothing = BTreeSet::new();
        let places = self.of_node.get(node.name).unwrap_or(&nothing).union(&self.anywhere);
        let mut pools: Vec<Pool<'_>> = places.filter_map(|place| self.pool(*place, node)).collect();
        let waits = |pool: &Pool<'_>| pool.devices.iter().any(|offer| !offer.device.binding_conditions.is_empty());
        pools.sort_by_cached_key(waits);
        pools
    }

    /// A pool as a node sees it; none where it has nothing for the node, or nothing that is up to date.
    fn pool(&self, place: usize, node: CandidateNode<'_>) -> Option<Pool<'_>> {
        let ((driver, name), newest) = self.pools.get(place)?;
        let slices = newest.slices.as_slice();
        if !slices.iter().any(|slice| is_relevant(slice, node)) {
            return None;
        }
        let mut devices = Vec::new();
        let mut number = newest.first;
        for slice in slices {
            let own = slice.spec.devices.iter().enumerate();
            if has_devices(slice, node) {
                devices.extend(own.map(|(place, device)| Offer { device, slice, place, number: number + place }));
            }
            number += slice.spec.devices.len();
        }
        let (is_incomplete, problem) = (newest.is_incomplete(), newest.problem());
        Some(Pool { driver, name, devices, slices, is_incomplete, problem })
    }
}

/// What is wrong with the slices of a pool.
fn problem(slices: &[Arc<ResourceSlice>]) -> Option<String> {
    let mut sets = BTreeMap::new();
    for set in slices.iter().flat_map(|slice| &slice.spec.shared_counters) {
        if sets.insert(set.name.as_str(), set).is_some() {
            return Some(format!("duplicate counter set {}", set.name));
        }
    }
    let mut names = BTreeSet::new();
    for device in slices.iter().flat_map(|slice| &slice.spec.devices) {
        if !names.insert(device.name.as_str()) {
            return Some(format!("duplicate device name {}", device.name));
        }
        for taken in &device.consumes_counters {
            let Some(set) = sets.get(taken.counter_set.as_str()) else {
                return Some(format!("counter set {} not found", taken.counter_set));
            };
            if let Some(name) = taken.counters.keys().find(|name| !set.counters.contains_key(*name)) {
                return Some(format!("counter {name} not found in counter set {}", set.name));
            }
        }
    }
    None
}
