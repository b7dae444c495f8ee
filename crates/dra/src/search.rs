//! The search: depth first over claims, requests and devices, with a way back.

use std::collections::BTreeMap;

use api_machinery::quantity::Quantity;
use api_types::resource_v1::constants::ALLOCATION_RESULTS_MAX;

use crate::allocated::{Allocated, DeviceUse, Devices};
use crate::allocator::{AllocateError, CandidateNode};
use crate::capacity::{Amounts, consumed};
use crate::constraints::Constraint;
use crate::counters::Counters;
use crate::eligible::{is_tolerated, is_understood, is_wanted};
use crate::features::Features;
use crate::pools::{Offer, Pool};
use crate::requests::{Part, Request, Wanted, full_name};
use crate::selector::Selectors;

/// A device by the places of its pool and of itself in there.
type DevicePlace = (usize, usize);
/// A part of a request by the places of its claim, its request and itself.
type PartPlace = (usize, usize, usize);

/// A device that was chosen.
pub(crate) struct Choice<'a> {
    pub(crate) claim: usize,
    pub(crate) request: usize,
    pub(crate) part: usize,
    pub(crate) offer: Offer<'a>,
    /// What it gives, where claims may share it.
    pub(crate) consumed: Option<Amounts>,
    place: DevicePlace,
}

/// How far the search is.
#[derive(Clone, Copy)]
struct At {
    claim: usize,
    request: usize,
    /// The alternative, once it is chosen.
    part: Option<usize>,
    /// How many devices the part has by now.
    devices: usize,
    /// Where the look for the next one begins.
    from: DevicePlace,
}

const START: DevicePlace = (0, 0);

/// A search for the claims of a pod on one node.
pub(crate) struct Search<'s, 'a> {
    features: Features,
    node: CandidateNode<'s>,
    claims: &'s [Wanted<'a>],
    pools: &'s [Pool<'a>],
    /// What others have of each pool.
    taken: Vec<Option<&'s Devices>>,
    selectors: &'s Selectors,
    is_over: &'s dyn Fn() -> bool,
    constraints: Vec<Vec<Constraint<'a>>>,
    counters: Vec<Counters<'a>>,
    chosen: Vec<Choice<'a>>,
    /// The devices of parts that ask for all.
    all: BTreeMap<PartPlace, Vec<DevicePlace>>,
    has_met_invalid: bool,
}

impl<'s, 'a: 's> Search<'s, 'a> {
    pub(crate) fn new(
        features: Features,
        node: CandidateNode<'s>,
        claims: &'s [Wanted<'a>],
        pools: &'s [Pool<'a>],
        allocated: &'s Allocated,
        selectors: &'s Selectors,
        is_over: &'s dyn Fn() -> bool,
    ) -> Self {
        let of_claim = |wanted: &Wanted<'a>| {
            let constraints = wanted.claim.spec.devices.constraints.iter();
            constraints.filter_map(|own| Constraint::of(own, features)).collect()
        };
        Self {
            features,
            node,
            claims,
            pools,
            taken: pools.iter().map(|pool| allocated.in_pool(pool.driver, pool.name)).collect(),
            selectors,
            is_over,
            constraints: claims.iter().map(of_claim).collect(),
            counters: pools.iter().map(|pool| Counters::of(pool, allocated)).collect(),
            chosen: Vec::new(),
            all: BTreeMap::new(),
            has_met_invalid: false,
        }
    }

    /// The first solution.
    pub(crate) fn run(mut self) -> Result<Option<Vec<Choice<'a>>>, AllocateError> {
        for claim in 0..self.claims.len() {
            self.prepare(claim)?;
        }
        let start = At { claim: 0, request: 0, part: None, devices: 0, from: START };
        if self.solve(start)? {
            return Ok(Some(self.chosen));
        }
        if self.has_met_invalid { Err(AllocateError::InvalidPools) } else { Ok(None) }
    }

    /// Lists the devices of those who ask for all, and sees that a claim does not ask for too many.
    fn prepare(&mut self, claim: usize) -> Result<(), AllocateError> {
        let Some(wanted) = self.claims.get(claim) else { return Ok(()) };
        let mut least = 0_usize;
        for (request, own) in wanted.requests.iter().enumerate() {
            let mut smallest = usize::MAX;
            for (part, asked) in own.parts.iter().enumerate() {
                let count = match asked.count {
                    Some(count) => count,
                    None => {
                        let devices = self.list_all(claim, wanted, own, asked)?;
                        let count = devices.len();
                        self.all.insert((claim, request, part), devices);
                        count
                    }
                };
                smallest = smallest.min(count);
            }
            least = least.saturating_add(smallest);
        }
        if least > ALLOCATION_RESULTS_MAX {
            let name = full_name(wanted.claim);
            let text =
                format!("number of requested devices {least} exceeds the claim limit of {ALLOCATION_RESULTS_MAX}");
            return Err(AllocateError::Failed(format!("claim {name}: {text}")));
        }
        Ok(())
    }

    /// The devices that a part wants which asks for all.
    fn list_all(
        &self,
        place: usize,
        claim: &Wanted<'a>,
        request: &Request,
        part: &Part,
    ) -> Result<Vec<DevicePlace>, AllocateError> {
        let mut found = Vec::new();
        for (number, pool) in self.pools.iter().enumerate() {
            let state = match (pool.is_incomplete, &pool.problem) {
                (true, _) => "being updated",
                (_, Some(_)) => "invalid",
                _ => "",
            };
            if !state.is_empty() {
                let what = format!(
                    "asks for all devices, but resource pool {}/{} is currently {state}",
                    pool.driver, pool.name
                );
                return Err(AllocateError::failed(claim.claim, &request.name, &what));
            }
            for index in 0..pool.devices.len() {
                let device = (number, index);
                let Some(offer) = self.offer(device) else { continue };
                if self.wants(place, part, offer)? && self.gives(part, offer).is_some() {
                    found.push(device);
                }
            }
        }
        Ok(found)
    }

    fn offer(&self, (pool, index): DevicePlace) -> Option<Offer<'a>> {
        self.pools.get(pool)?.devices.get(index).copied()
    }

    /// Whether a part of a claim wants a device, and the node reaches it.
    fn wants(&self, claim: usize, part: &Part, offer: Offer<'a>) -> Result<bool, AllocateError> {
        let Some(claim) = self.claims.get(claim) else { return Ok(false) };
        Ok(is_understood(offer.device, self.features)
            && is_wanted(self.selectors, claim, part, offer)?
            && offer.is_reached(self.node))
    }

    /// What the device would give a part; none where it cannot.
    fn gives(&self, part: &Part, offer: Offer<'_>) -> Option<Amounts> {
        if !self.features.consumable_capacity {
            return Some(Amounts::new());
        }
        consumed(offer.device, part.capacity.as_ref().map(|capacity| &capacity.requests))
    }

    /// Goes on from here; whether that leads to a solution.
    fn solve(&mut self, at: At) -> Result<bool, AllocateError> {
        if (self.is_over)() {
            return Err(AllocateError::Timeout);
        }
        let Some(claim) = self.claims.get(at.claim) else { return Ok(true) };
        let Some(request) = claim.requests.get(at.request) else {
            return self.solve(At { claim: at.claim + 1, request: 0, part: None, devices: 0, from: START });
        };
        let Some(number) = at.part else { return self.choose_part(at, request) };
        let Some(part) = request.parts.get(number) else { return Ok(false) };
        let place = (at.claim, at.request, number);
        let wanted = part.count.unwrap_or_else(|| self.all.get(&place).map_or(0, Vec::len));
        if part.count.is_none() && wanted == 0 {
            return Ok(false);
        }
        if at.devices == wanted {
            return self.solve(At { request: at.request + 1, part: None, devices: 0, from: START, ..at });
        }
        if part.count.is_none() { self.take_listed(at, place, part) } else { self.take_next(at, place, part) }
    }

    /// Tries one alternative of a request after the other.
    fn choose_part(&mut self, at: At, request: &Request) -> Result<bool, AllocateError> {
        let of_claim = self.chosen.iter().filter(|choice| choice.claim == at.claim).count();
        for (number, part) in request.parts.iter().enumerate() {
            let listed = || self.all.get(&(at.claim, at.request, number)).map_or(0, Vec::len);
            if part.count.unwrap_or_else(listed).saturating_add(of_claim) > ALLOCATION_RESULTS_MAX {
                continue;
            }
            if self.solve(At { part: Some(number), ..at })? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes the next of all devices that a part wants.
    fn take_listed(&mut self, at: At, place: PartPlace, part: &Part) -> Result<bool, AllocateError> {
        let device = self.all.get(&place).and_then(|devices| devices.get(at.devices).copied());
        let Some((device, offer)) = device.and_then(|device| Some((device, self.offer(device)?))) else {
            return Ok(false);
        };
        if self.is_in_use(at.claim, part, device, offer) {
            return Ok(false);
        }
        match self.choose(place, part, device, offer) {
            Chosen::Yes => {}
            Chosen::No => return Ok(false),
            Chosen::Constrained => {
                let Some(claim) = self.claims.get(at.claim) else { return Ok(false) };
                let what = format!(
                    "cannot add device {} because a claim constraint would not be satisfied",
                    offer.device.name
                );
                let request = claim.requests.get(at.request).map_or("", |request| &request.name);
                return Err(AllocateError::failed(claim.claim, request, &what));
            }
        }
        if self.solve(At { devices: at.devices + 1, ..at })? {
            return Ok(true);
        }
        self.undo(place);
        Ok(false)
    }

    /// Takes one device after the other, from where the last one was found.
    fn take_next(&mut self, at: At, place: PartPlace, part: &Part) -> Result<bool, AllocateError> {
        for (number, pool) in self.pools.iter().enumerate().skip(at.from.0) {
            if pool.is_incomplete {
                continue;
            }
            if pool.problem.is_some() {
                self.has_met_invalid = true;
                continue;
            }
            let first = if number == at.from.0 { at.from.1 } else { 0 };
            for (index, offer) in pool.devices.iter().copied().enumerate().skip(first) {
                let device = (number, index);
                if self.is_in_use(at.claim, part, device, offer) || !self.wants(at.claim, part, offer)? {
                    continue;
                }
                if !matches!(self.choose(place, part, device, offer), Chosen::Yes) {
                    continue;
                }
                if self.solve(At { devices: at.devices + 1, from: (number, index + 1), ..at })? {
                    return Ok(true);
                }
                self.undo(place);
            }
        }
        Ok(false)
    }

    fn is_shared(&self, offer: Offer<'_>) -> bool {
        self.features.consumable_capacity && offer.device.allow_multiple_allocations == Some(true)
    }

    fn use_of(&self, (pool, _): DevicePlace, offer: Offer<'_>) -> Option<&'s DeviceUse> {
        self.taken.get(pool)?.as_ref()?.get(&offer.device.name)
    }

    /// Whether somebody has the device whom a part does not bear.
    fn is_in_use(&self, claim: usize, part: &Part, device: DevicePlace, offer: Offer<'_>) -> bool {
        let mut choices = self.chosen.iter().filter(|choice| choice.place == device);
        if part.is_admin {
            return choices.any(|choice| choice.claim == claim);
        }
        if self.is_shared(offer) {
            return self.use_of(device, offer).is_some_and(DeviceUse::is_exclusive);
        }
        let takes = |choice: &Choice<'_>| !self.part_of(choice).is_some_and(|part| part.is_admin);
        self.use_of(device, offer).is_some() || choices.any(takes)
    }

    fn part_of(&self, choice: &Choice<'_>) -> Option<&'a Part> {
        self.claims.get(choice.claim)?.requests.get(choice.request)?.parts.get(choice.part)
    }

    /// Whether a device that claims share has so much left.
    fn has_left(&self, device: DevicePlace, offer: Offer<'_>, wanted: &Amounts) -> bool {
        wanted.iter().all(|(name, amount)| {
            let mut sum: Quantity = amount.clone();
            if let Some(taken) = self.use_of(device, offer).and_then(|taken| taken.consumed(name)) {
                sum.add(taken);
            }
            let chosen = self.chosen.iter().filter(|choice| choice.place == device);
            for amount in chosen.filter_map(|choice| choice.consumed.as_ref()?.get(name)) {
                sum.add(amount);
            }
            offer.device.capacity.get(name).is_some_and(|capacity| sum <= capacity.value)
        })
    }

    /// Chooses a device, if taints, capacity, counters and constraints let it be.
    fn choose(&mut self, place: PartPlace, part: &Part, device: DevicePlace, offer: Offer<'a>) -> Chosen {
        if self.features.device_taints && !is_tolerated(offer.device, &part.tolerations) {
            return Chosen::No;
        }
        let Some(amounts) = self.gives(part, offer) else { return Chosen::No };
        let is_shared = self.is_shared(offer) && !part.is_admin;
        if is_shared && !self.has_left(device, offer, &amounts) {
            return Chosen::No;
        }
        if self.takes_counters(part, device, offer)
            && !self.counters.get_mut(device.0).is_some_and(|counters| counters.take(offer.device))
        {
            return Chosen::No;
        }
        if !self.satisfy(place, part, offer) {
            self.give_back(part, device, offer);
            return Chosen::Constrained;
        }
        let (claim, request, number) = place;
        let consumed = is_shared.then_some(amounts);
        self.chosen.push(Choice { claim, request, part: number, offer, consumed, place: device });
        Chosen::Yes
    }

    /// Whether a device takes from counters; one that has done so already does not do so again.
    fn takes_counters(&self, part: &Part, device: DevicePlace, offer: Offer<'_>) -> bool {
        let is_taken =
            || self.use_of(device, offer).is_some() || self.chosen.iter().any(|choice| choice.place == device);
        !part.is_admin && !offer.device.consumes_counters.is_empty() && !is_taken()
    }

    fn give_back(&mut self, part: &Part, device: DevicePlace, offer: Offer<'a>) {
        if self.takes_counters(part, device, offer)
            && let Some(counters) = self.counters.get_mut(device.0)
        {
            counters.give_back(offer.device);
        }
    }

    /// Takes the device into all constraints of its claim that are about the part, or into none.
    fn satisfy(&mut self, place: PartPlace, part: &Part, offer: Offer<'a>) -> bool {
        let request = self.claims.get(place.0).and_then(|claim| claim.requests.get(place.1));
        let (Some(request), Some(constraints)) = (request, self.constraints.get_mut(place.0)) else { return false };
        let mut added = 0;
        let mut own = constraints.iter_mut().filter(|constraint| constraint.covers(&request.name, &part.name));
        let fits = own.all(|constraint| {
            let fits = constraint.add(offer);
            added += usize::from(fits);
            fits
        });
        if !fits {
            let own = constraints.iter_mut().filter(|constraint| constraint.covers(&request.name, &part.name));
            own.take(added).for_each(Constraint::undo);
        }
        fits
    }

    /// Takes the last choice back.
    fn undo(&mut self, place: PartPlace) {
        let Some(choice) = self.chosen.pop() else { return };
        let Some(request) = self.claims.get(place.0).and_then(|claim| claim.requests.get(place.1)) else { return };
        let Some(part) = request.parts.get(place.2) else { return };
        self.give_back(part, choice.place, choice.offer);
        if let Some(constraints) = self.constraints.get_mut(place.0) {
            let own = constraints.iter_mut().filter(|constraint| constraint.covers(&request.name, &part.name));
            own.for_each(Constraint::undo);
        }
    }
}

/// What came of a look at a device.
enum Chosen {
    Yes,
    No,
    /// A constraint of the claim does not let it be.
    Constrained,
}
