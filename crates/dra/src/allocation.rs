//! The result of a search as a claim's status has it.

use std::collections::BTreeSet;

use api_types::core_v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
use api_types::resource_v1::constants::allocation_config_source::{CLAIM, CLASS};
use api_types::resource_v1::{
    AllocationResult, DeviceAllocationConfiguration, DeviceAllocationResult, DeviceRequestAllocationResult,
};
use base::Rng;

use crate::allocator::{AllocateError, CandidateNode};
use crate::pools::Offer;
use crate::requests::{Part, Request, Wanted};
use crate::search::Choice;

/// What a claim gets.
pub(crate) fn result(
    claim: &Wanted<'_>,
    choices: &[&Choice<'_>],
    node: CandidateNode<'_>,
    rng: &Rng,
) -> Result<AllocationResult, AllocateError> {
    let results = choices.iter().filter_map(|choice| device(claim, choice, rng)).collect();
    let config = configuration(claim, choices);
    Ok(AllocationResult {
        devices: DeviceAllocationResult { results, config },
        node_selector: selector(choices, node)?,
        allocation_timestamp: None,
    })
}

fn part_of<'w, 'a>(claim: &'w Wanted<'a>, choice: &Choice<'_>) -> Option<(&'w Request<'a>, &'w Part<'a>)> {
    let request = claim.requests.get(choice.request)?;
    Some((request, request.parts.get(choice.part)?))
}

fn device(claim: &Wanted<'_>, choice: &Choice<'_>, rng: &Rng) -> Option<DeviceRequestAllocationResult> {
    let (_, part) = part_of(claim, choice)?;
    let Offer { device, slice } = choice.offer;
    Some(DeviceRequestAllocationResult {
        request: part.name.clone(),
        driver: slice.spec.driver.clone(),
        pool: slice.spec.pool.name.clone(),
        device: device.name.clone(),
        admin_access: part.is_admin.then_some(true),
        tolerations: part.tolerations.to_vec(),
        binding_conditions: device.binding_conditions.clone(),
        binding_failure_conditions: device.binding_failure_conditions.clone(),
        share_id: choice.consumed.is_some().then(|| rng.uuid()),
        consumed_capacity: choice.consumed.clone().unwrap_or_default(),
    })
}

/// Which part of each request was chosen, in the order of the requests.
fn chosen_parts<'w, 'a>(claim: &'w Wanted<'a>, choices: &[&Choice<'_>]) -> Vec<(&'w Request<'a>, &'w Part<'a>)> {
    let mut parts: Vec<(&Request<'a>, &Part<'a>)> = Vec::new();
    for found in choices.iter().filter_map(|choice| part_of(claim, choice)) {
        if !parts.iter().any(|(_, part)| std::ptr::eq(*part, found.1)) {
            parts.push(found);
        }
    }
    parts
}

/// The configurations of the classes, then those of the claim.
fn configuration(claim: &Wanted<'_>, choices: &[&Choice<'_>]) -> Vec<DeviceAllocationConfiguration> {
    let parts = chosen_parts(claim, choices);
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
        let is_named = |request: &Request<'_>, part: &Part<'_>| {
            own.requests.iter().any(|name| name == request.name || *name == part.name)
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

/// The nodes from which all devices can be used; none where that is every node.
fn selector(choices: &[&Choice<'_>], node: CandidateNode<'_>) -> Result<Option<NodeSelector>, AllocateError> {
    let mut merged = NodeSelectorTerm::default();
    for Offer { device, slice } in choices.iter().map(|choice| choice.offer) {
        let by_device = slice.spec.per_device_node_selection == Some(true);
        let name = if by_device { &device.node_name } else { &slice.spec.node_name };
        let selector = if by_device { &device.node_selector } else { &slice.spec.node_selector };
        if device.binds_to_node == Some(true) || name.as_ref().is_some_and(|name| !name.is_empty()) {
            return Ok(Some(one_node(node.name)));
        }
        match selector.as_ref().map(|selector| selector.node_selector_terms.as_slice()).unwrap_or_default() {
            [] => {}
            [term] => {
                add_new(&mut merged.match_expressions, &term.match_expressions);
                add_new(&mut merged.match_fields, &term.match_fields);
            }
            terms => {
                let text = format!("unsupported number of node selector terms: {}", terms.len());
                return Err(AllocateError::Failed(text));
            }
        }
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
