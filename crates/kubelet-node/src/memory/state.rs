//! The memory manager's state as its file has it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::tables::{Block, Blocks, Machine, Node};
use crate::state_file::is_intact;
use crate::topology::NodeSet;

/// The member that says how full the nodes are.
pub(super) const MACHINE: &str = "machineState";
const ENTRIES: &str = "entries";

pub(super) fn encode(machine: Option<&Machine>, blocks: &Blocks) -> Value {
    let filled = machine.map(|machine| self::machine(&machine.with(blocks)));
    let mut state = json!({MACHINE: filled.unwrap_or_else(|| json!({}))});
    if !blocks.is_empty() {
        let of_pod = |own: &BTreeMap<String, Vec<Block>>| -> Map<String, Value> {
            own.iter().map(|(name, blocks)| (name.clone(), blocks.iter().map(block).collect())).collect()
        };
        state[ENTRIES] =
            blocks.iter().map(|(uid, own)| (uid.clone(), of_pod(own).into())).collect::<Map<_, _>>().into();
    }
    state
}

fn block(block: &Block) -> Value {
    json!({"numaAffinity": numbers(block.nodes), "type": block.kind, "size": block.bytes})
}

fn numbers(nodes: NodeSet) -> Vec<u32> {
    nodes.iter().collect()
}

/// How full the nodes are.
pub(super) fn machine(machine: &Machine) -> Value {
    let node = |node: &Node| {
        let tables = node.tables.iter().map(|(kind, table)| {
            let table = json!({
                "total": table.total, "systemReserved": table.system, "allocatable": table.allocatable,
                "reserved": table.reserved, "free": table.free(),
            });
            (kind.clone(), table)
        });
        json!({
            "numberOfAssignments": node.assignments, "memoryMap": tables.collect::<Map<_, _>>(),
            "cells": numbers(node.group),
        })
    };
    machine.0.iter().map(|(number, own)| (number.to_string(), node(own))).collect::<Map<_, _>>().into()
}

/// Who has what; none where the state is not what was saved.
pub(super) fn decode(state: &Value) -> Option<Blocks> {
    if !is_intact(state) {
        return None;
    }
    let mut blocks = Blocks::new();
    for (uid, own) in state[ENTRIES].as_object().into_iter().flatten() {
        for (container, list) in own.as_object()? {
            let list = list.as_array()?.iter().map(decode_block).collect::<Option<_>>()?;
            blocks.entry(uid.clone()).or_default().insert(container.clone(), list);
        }
    }
    Some(blocks)
}

fn decode_block(value: &Value) -> Option<Block> {
    let numbers = value["numaAffinity"].as_array()?.iter().map(|number| u32::try_from(number.as_u64()?).ok());
    Some(Block {
        nodes: numbers.collect::<Option<_>>()?,
        kind: value["type"].as_str()?.to_owned(),
        bytes: value["size"].as_u64()?,
    })
}
