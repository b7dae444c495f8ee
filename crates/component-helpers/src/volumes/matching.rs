//! Which volume fits a claim: a volume that already names the claim, else the smallest one that has all that the claim
//! asks for.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use api_machinery::labels::{Selector, SelectorError};
use api_machinery::quantity::{Format, Quantity};
use api_types::core_v1::constants::{persistent_volume_mode, persistent_volume_phase};
use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim, ResourceList};

use super::classes::{class_of_claim, class_of_volume};
use super::names::BIND_COMPLETED;
use crate::node_affinity::selector_matches;

/// Where a volume is wanted, which is also who asks.
#[derive(Debug, Clone, Copy)]
pub enum NodeScope<'a> {
    /// Anywhere, at once: the binder's question. It has chosen among volumes with the right access modes before.
    Anywhere,
    /// Nowhere yet, as no pod that uses the claim is placed: only a volume that names the claim will do.
    Undecided,
    /// On the node with these labels: the scheduler's question.
    OnNode(&'a BTreeMap<String, String>),
}

/// The volume that fits the claim best, out of those that `is_taken` does not tell of by name. Of equally large ones
/// the first.
///
/// # Errors
/// When the claim's selector cannot be read.
pub fn best_match<'a, V: Borrow<PersistentVolume> + 'a>(
    claim: &PersistentVolumeClaim,
    volumes: impl IntoIterator<Item = &'a V>,
    place: NodeScope<'_>,
    is_taken: impl Fn(&str) -> bool,
) -> Result<Option<&'a V>, SelectorError> {
    let selector = claim.spec.selector.as_ref().map(Selector::from_label_selector).transpose()?;
    let mut smallest: Option<(&V, &Quantity)> = None;
    for candidate in volumes {
        let volume: &PersistentVolume = candidate.borrow();
        let is_ours = names_claim(volume, claim);
        let is_anothers = volume.spec.claim_ref.is_some() && !is_ours;
        if is_taken(&volume.metadata.name) || is_anothers || is_unfit_for_good(volume, claim) {
            continue;
        }
        if is_ours {
            // A claim that a volume waits for gets no other, wherever that is.
            return Ok(reaches(volume, place).then_some(candidate));
        }
        let size = storage(&volume.spec.capacity);
        let is_smaller = smallest.is_none_or(|(_, best)| size < best);
        if is_smaller && is_free_for(volume, claim, selector.as_ref(), place) {
            smallest = Some((candidate, size));
        }
    }
    Ok(smallest.map(|(volume, _)| volume))
}

/// Whether a volume that nobody waits for may be given to the claim.
fn is_free_for(
    volume: &PersistentVolume,
    claim: &PersistentVolumeClaim,
    selector: Option<&Selector>,
    place: NodeScope<'_>,
) -> bool {
    let modes_are_right = match place {
        NodeScope::Undecided => return false,
        NodeScope::Anywhere => true,
        NodeScope::OnNode(_) => offers_access_modes(volume, claim),
    };
    modes_are_right
        && volume.status.phase == persistent_volume_phase::AVAILABLE
        && selector.is_none_or(|selector| selector.matches(&volume.metadata.labels))
        && class_of_volume(volume) == class_of_claim(claim)
        && reaches(volume, place)
}

fn reaches(volume: &PersistentVolume, place: NodeScope<'_>) -> bool {
    match place {
        NodeScope::OnNode(labels) => is_accessible_from(volume, labels),
        NodeScope::Anywhere | NodeScope::Undecided => true,
    }
}

/// Something that a claim asks for and a volume does not have, in the order in which it is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfit {
    /// The volume is being deleted.
    Deleting,
    /// It is too small.
    TooSmall,
    /// It is of another storage class.
    Class,
    /// It is of another attributes class.
    AttributesClass,
    /// It is a block device and the claim wants a file system, or the other way round.
    VolumeMode,
    /// It lacks an access mode.
    AccessModes,
}

impl Misfit {
    /// What is in the way of the claim whoever chose the volume.
    const ALL: [Self; 6] =
        [Self::Deleting, Self::TooSmall, Self::Class, Self::AttributesClass, Self::VolumeMode, Self::AccessModes];
    /// What is in the way even where the volume names the claim.
    const FOR_GOOD: [Self; 4] = [Self::Deleting, Self::TooSmall, Self::AttributesClass, Self::VolumeMode];

    fn is_true_of(self, volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
        let (have, want) = (&volume.spec, &claim.spec);
        match self {
            Self::Deleting => volume.metadata.deletion_timestamp.is_some(),
            Self::TooSmall => storage(&have.capacity) < storage(&want.resources.requests),
            Self::Class => class_of_volume(volume) != class_of_claim(claim),
            Self::AttributesClass => {
                let have = have.volume_attributes_class_name.as_deref().unwrap_or_default();
                have != want.volume_attributes_class_name.as_deref().unwrap_or_default()
            }
            Self::VolumeMode => mode(have.volume_mode.as_deref()) != mode(want.volume_mode.as_deref()),
            Self::AccessModes => !offers_access_modes(volume, claim),
        }
    }
}

/// The first thing that the claim asks for and the volume does not have.
#[must_use]
pub fn misfit(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Option<Misfit> {
    Misfit::ALL.into_iter().find(|misfit| misfit.is_true_of(volume, claim))
}

fn is_unfit_for_good(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    Misfit::FOR_GOOD.into_iter().any(|misfit| misfit.is_true_of(volume, claim))
}

/// Whether one is a block device and the other a file system, which is also what nothing means.
#[must_use]
pub fn has_other_mode(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    Misfit::VolumeMode.is_true_of(volume, claim)
}

fn mode(mode: Option<&str>) -> &str {
    mode.unwrap_or(persistent_volume_mode::FILESYSTEM)
}

/// Whether the volume offers every access mode that the claim asks for.
#[must_use]
pub fn offers_access_modes(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    claim.spec.access_modes.iter().all(|mode| volume.spec.access_modes.contains(mode))
}

/// Whether the volume names this very claim: by name and namespace, and by uid unless it leaves that open.
#[must_use]
pub fn names_claim(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let (Some(named), meta) = (&volume.spec.claim_ref, &claim.metadata) else { return false };
    named.name == meta.name && named.namespace == meta.namespace && (named.uid.is_empty() || named.uid == meta.uid)
}

/// Whether the claim has a volume and the binding was finished.
#[must_use]
pub fn is_fully_bound(claim: &PersistentVolumeClaim) -> bool {
    !claim.spec.volume_name.is_empty() && claim.metadata.annotations.contains_key(BIND_COMPLETED)
}

/// Whether a node with these labels can use the volume.
#[must_use]
pub fn is_accessible_from(volume: &PersistentVolume, node_labels: &BTreeMap<String, String>) -> bool {
    let required = volume.spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
    // A volume's terms are about labels; upstream shows them no node's name.
    required.is_none_or(|selector| selector_matches(selector, node_labels, ""))
}

/// The `storage` of a resource list, zero where there is none.
#[must_use]
pub fn storage(list: &ResourceList) -> &Quantity {
    static ZERO: Quantity = Quantity::from_value(0, Format::BinarySi);
    list.get("storage").unwrap_or(&ZERO)
}

#[cfg(test)]
mod tests;
