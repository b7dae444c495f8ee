//! What a search found for one node, kept until a node is chosen: only then it is worth while to write it out.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_machinery::quantity::Quantity;
use api_types::resource_v1::{Device, ResourceSlice, ResourceSliceSpec};

use crate::capacity::Amounts;
use crate::pools::Offer;
use crate::search::Choice;

/// The devices that claims would get on a node.
#[derive(Debug)]
pub struct Solution(Vec<Taken>);

/// A device of them.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) claim: usize,
    pub(crate) request: usize,
    pub(crate) part: usize,
    slice: Arc<ResourceSlice>,
    /// Its place in the slice.
    place: usize,
    /// What it gives, where claims may share it.
    pub(crate) consumed: Option<Amounts>,
}

impl Taken {
    /// The device, and what it is offered in.
    pub(crate) fn device(&self) -> Option<(&Device, &ResourceSliceSpec)> {
        let spec = &self.slice.spec;
        Some((spec.devices.get(self.place)?, spec))
    }
}

impl Solution {
    pub(crate) fn of(choices: Vec<Choice<'_>>) -> Self {
        let taken = |choice: Choice<'_>| {
            let Choice { claim, request, part, offer, consumed, .. } = choice;
            let Offer { slice, place, .. } = offer;
            Taken { claim, request, part, slice: Arc::clone(slice), place, consumed }
        };
        Self(choices.into_iter().map(taken).collect())
    }

    /// What one of the claims gets, by its place.
    pub(crate) fn of_claim(&self, claim: usize) -> impl Iterator<Item = &Taken> {
        self.0.iter().filter(move |taken| taken.claim == claim)
    }

    /// The devices that one of the claims gets, by its place, each with what it gives of its capacities where claims may share
    /// it.
    pub fn devices(&self, claim: usize) -> impl Iterator<Item = (&Device, Option<&BTreeMap<String, Quantity>>)> {
        self.of_claim(claim).filter_map(|taken| Some((taken.device()?.0, taken.consumed.as_ref())))
    }

    /// Which alternative of a claim's request was chosen, by their places; none where the request gets no device.
    #[must_use]
    pub fn part_of(&self, claim: usize, request: usize) -> Option<usize> {
        let taken = self.0.iter().find(|taken| (taken.claim, taken.request) == (claim, request));
        taken.map(|taken| taken.part)
    }
}
