//! The result of a search as a claim's status has it.

use std::collections::BTreeSet;

use api_types::core_v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
use api_types::resource_v1::constants::allocation_config_source::{CLAIM, CLASS};
use api_types::resource_v1::{
    AllocationResult, DeviceAllocationConfiguration, DeviceAllocationResult, DeviceRequestAllocationResult,
};
use base::Rng;

use crate::allocator::AllocateError;
use crate::requests::{Part, Request, Wanted};
use crate::solution::Taken;

/// What a claim gets.
pub(crate) fn result(
    claim: Wanted<'_>,
    taken: &[&Taken],
    node: &str,
    rng: &Rng,
) -> Result<AllocationResult, AllocateError> {
    let results = taken.iter().filter_map(|taken| device(claim, taken, rng)).collect();
    let config = configuration(claim, taken);
    Ok(AllocationResult {
        devices: DeviceAllocationResult { results, config },
        node_selector: selector(taken, node)?,
        allocation_timestamp: None,
    })
}

/// Sees that what a claim gets can be written out.
///
/// # Errors
/// When it cannot be stated which nodes reach all of it.
pub(crate) fn check<'a>(taken: impl Iterator<Item = &'a Taken>) -> Result<(), AllocateError> {
    reach(taken).map(drop)
}

fn part_of<'w>(claim: Wanted<'w>, taken: &Taken) -> Option<(&'w Request, &'w Part)> {
    let request = claim.requests.get(taken.request)?;
    Some((request, request.parts.get(taken.part)?))
}

fn device(claim: Wanted<'_>, taken: &Taken, rng: &Rng) -> Option<DeviceRequestAllocationResult> {
    let (_, part) = part_of(claim, taken)?;
    let (device, offered) = taken.device()?;
    Some(DeviceRequestAllocationResult {
        request: part.name.clone(),
        driver: offered.driver.clone(),
        pool: offered.pool.name.clone(),
        device: device.name.clone(),
        admin_access: part.is_admin.then_some(true),
        tolerations: part.tolerations.clone(),
        binding_conditions: device.binding_conditions.clone(),
        binding_failure_conditions: device.binding_failure_conditions.clone(),
        share_id: taken.consumed.is_some().then(|| rng.uuid()),
        consumed_capacity: taken.consumed.clone().unwrap_or_default(),
    })
}

/// Which part of each request was chosen, in the order of the requests.
fn chosen_parts<'w>(claim: Wanted<'w>, taken: &[&Taken]) -> Vec<(&'w Request, &'w Part)> {
    let mut parts: Vec<(&Request, &Part)> = Vec::new();
    for found in taken.iter().filter_map(|taken| part_of(claim, taken)) {
        if !parts.iter().any(|(_, part)| std::ptr::eq(*part, found.1)) {
            parts.push(found);
        }
    }
    parts
}

/// The configurations of the classes, then those of the claim.
fn configuration(claim: Wanted<'_>, taken: &[&Taken]) -> Vec<DeviceAllocationConfiguration> {
    let parts = chosen_parts(claim, taken);
    let mut all = Vec::new();
    let mut seen = BTreeSet::new();
    for (_, part) in &parts {
        let class = part.class.metadata.name.as_str();
        if !seen.insert(class) {
            continue;
        }
        let of_class = parts.iter().filter(|(_, other)| other.class.metadata.name == class);
        let requests: Vec<String> = of_class.map(|(_, other)| other.name.clone()).collect();
        all.extend(part.class.spec.config.iter().map(|own| DeviceAllocationConfiguration {
            source: CLASS.to_owned(),
            requests: requests.clone(),
            device_configuration: own.device_configuration.clone(),
        }));
    }
    for own in &claim.claim.spec.devices.config {
        let is_named = |request: &Request, part: &Part| {
            own.requests.iter().any(|name| *name == request.name || *name == part.name)
        };
        let named = parts.iter().filter(|(request, part)| is_named(request, part)).count();
        // As upstream, one that names several requests is there for each of them.
        let times = if own.requests.is_empty() { 1 } else { named };
        let one = DeviceAllocationConfiguration {
            source: CLAIM.to_owned(),
            requests: own.requests.clone(),
            device_configuration: own.device_configuration.clone(),
        };
        all.extend(std::iter::repeat_n(one, times));
    }
    all
}

/// Which nodes reach all devices of a claim.
enum Reach<'a> {
    /// The one that was looked at.
    ThisNode,
    /// Those that all of these select.
    Selected(Vec<&'a NodeSelectorTerm>),
}

fn reach<'a>(taken: impl Iterator<Item = &'a Taken>) -> Result<Reach<'a>, AllocateError> {
    let mut terms = Vec::new();
    for (device, offered) in taken.filter_map(Taken::device) {
        let by_device = offered.per_device_node_selection == Some(true);
        let name = if by_device { &device.node_name } else { &offered.node_name };
        let selector = if by_device { &device.node_selector } else { &offered.node_selector };
        if device.binds_to_node == Some(true) || name.as_ref().is_some_and(|name| !name.is_empty()) {
            return Ok(Reach::ThisNode);
        }
        match selector.as_ref().map(|selector| selector.node_selector_terms.as_slice()).unwrap_or_default() {
            [] => {}
            [term] => terms.push(term),
            terms => {
                let text = format!("unsupported number of node selector terms: {}", terms.len());
                return Err(AllocateError::Failed(text));
            }
        }
    }
    Ok(Reach::Selected(terms))
}

/// The nodes from which all devices can be used; none where that is every node.
fn selector(taken: &[&Taken], node: &str) -> Result<Option<NodeSelector>, AllocateError> {
    let terms = match reach(taken.iter().copied())? {
        Reach::ThisNode => return Ok(Some(one_node(node))),
        Reach::Selected(terms) => terms,
    };
    let mut merged = NodeSelectorTerm::default();
    for term in terms {
        add_new(&mut merged.match_expressions, &term.match_expressions);
        add_new(&mut merged.match_fields, &term.match_fields);
    }
    let says_nothing = merged.match_expressions.is_empty() && merged.match_fields.is_empty();
    Ok((!says_nothing).then(|| NodeSelector { node_selector_terms: vec![merged] }))
}

fn one_node(name: &str) -> NodeSelector {
    let field = NodeSelectorRequirement {
        key: "metadata.name".to_owned(),
        operator: "In".to_owned(),
        values: vec![name.to_owned()],
    };
    let term = NodeSelectorTerm { match_fields: vec![field], ..NodeSelectorTerm::default() };
    NodeSelector { node_selector_terms: vec![term] }
}

fn add_new(all: &mut Vec<NodeSelectorRequirement>, more: &[NodeSelectorRequirement]) {
    for requirement in more {
        if !all.contains(requirement) {
            all.push(requirement.clone());
        }
    }
}
