//! The memory manager's state as its file has it.

use serde_json::{Map, Value, json};

use super::tables::{Block, Blocks, Machine, Node};
use crate::go_dump::{Member, Shape, members};
use crate::state_file::{ENTRIES, Owner, POD_ENTRIES, Record};
use crate::topology::{NodeSet, OfPod};

/// The member that says how full the nodes are.
pub(super) const MACHINE: &str = "machineState";

/// Whose file remembers who has which memory.
pub(crate) static OWNER: Owner = Owner {
    name: "memory",
    file: "memory_manager_state",
    plain: Record {
        go_types: ["*state.MemoryManagerCheckpoint", "*state.MemoryManagerCheckpointV1"],
        members: members! {
            "PolicyName" "string" "policyName" Shape::Plain;
            "MachineState" "state.NUMANodeMap" "machineState" Shape::Numbered(&Shape::Pointer(NODE));
            "Entries" "state.ContainerMemoryAssignments" "entries" Shape::Map(&Shape::Map(&Shape::List(&Shape::Struct(BLOCK))));
            "Checksum" "checksum.Checksum" "checksum" Shape::Unset;
        },
    },
    with_pods: Record {
        go_types: ["*state.MemoryManagerCheckpoint", "*state.MemoryManagerCheckpointV2"],
        members: members! {
            "PolicyName" "string" "policyName" Shape::Plain;
            "MachineState" "state.NUMANodeMap" "machineState" Shape::Numbered(&Shape::Pointer(NODE));
            "Entries" "state.ContainerMemoryAssignments" "entries" Shape::Map(&Shape::Map(&Shape::List(&Shape::Struct(BLOCK))));
            "PodEntries" "state.PodMemoryAssignments" "podEntries" Shape::Map(&Shape::Struct(POD_ENTRY));
            "Checksum" "checksum.Checksum" "checksum" Shape::Unset;
        },
    },
};
/// What a pod has as a whole.
const POD_ENTRY: &[Member] = members! {
    "MemoryBlocks" "[]state.Block" "memoryBlocks" Shape::List(&Shape::Struct(BLOCK));
};
/// The member of it.
const MEMORY_BLOCKS: &str = "memoryBlocks";
const NODE: &[Member] = members! {
    "NumberOfAssignments" "int" "numberOfAssignments" Shape::Plain;
    "MemoryMap" "map[v1.ResourceName]*state.MemoryTable" "memoryMap" Shape::Map(&Shape::Pointer(TABLE));
    "Cells" "[]int" "cells" Shape::List(&Shape::Plain);
};
const TABLE: &[Member] = members! {
    "TotalMemSize" "uint64" "total" Shape::Plain;
    "SystemReserved" "uint64" "systemReserved" Shape::Plain;
    "Allocatable" "uint64" "allocatable" Shape::Plain;
    "Reserved" "uint64" "reserved" Shape::Plain;
    "Free" "uint64" "free" Shape::Plain;
};
const BLOCK: &[Member] = members! {
    "NUMAAffinity" "[]int" "numaAffinity" Shape::List(&Shape::Plain);
    "Type" "v1.ResourceName" "type" Shape::Plain;
    "Size" "uint64" "size" Shape::Plain;
};

pub(super) fn encode(machine: Option<&Machine>, blocks: &Blocks) -> Value {
    let filled = machine.map(|machine| self::machine(&machine.with(blocks)));
    let mut state = json!({MACHINE: filled.unwrap_or_else(|| json!({}))});
    if !blocks.is_empty() {
        let of_pod = |own: &OfPod<Vec<Block>>| -> Map<String, Value> {
            own.containers.iter().map(|(name, blocks)| (name.clone(), blocks.iter().map(block).collect())).collect()
        };
        state[ENTRIES] =
            blocks.iter().map(|(uid, own)| (uid.clone(), of_pod(own).into())).collect::<Map<_, _>>().into();
    }
    let whole = |(uid, own): (&String, &OfPod<Vec<Block>>)| {
        let blocks: Vec<Value> = own.whole.as_ref()?.iter().map(block).collect();
        Some((uid.clone(), json!({MEMORY_BLOCKS: blocks})))
    };
    let pods: Map<String, Value> = blocks.iter().filter_map(whole).collect();
    if !pods.is_empty() {
        state[POD_ENTRIES] = pods.into();
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

/// Whether nodes are as full. Those that are used together are so together: which of them has how much of a block is nobody's
/// business, and the other kubelet may have filled them in another order.
pub(super) fn is_alike(one: &Value, other: &Value) -> bool {
    together(one) == together(other)
}

/// With what all nodes of a group have, in place of what each of them has.
fn together(machine: &Value) -> Value {
    let sum = |cells: &Value, kind: &str, member: &str| {
        let nodes = cells.as_array().into_iter().flatten().map(|cell| &machine[cell.to_string()]);
        nodes.filter_map(|node| node["memoryMap"][kind][member].as_u64()).fold(0, u64::saturating_add)
    };
    let mut out = machine.clone();
    for node in out.as_object_mut().into_iter().flat_map(Map::values_mut) {
        let cells = node["cells"].clone();
        let tables = node.get_mut("memoryMap").and_then(Value::as_object_mut).into_iter().flatten();
        for (kind, table) in tables {
            for member in ["reserved", "free"] {
                if let Some(own) = table.get_mut(member) {
                    *own = sum(&cells, kind, member).into();
                }
            }
        }
    }
    out
}

/// Who has what; none where that cannot be told.
pub(super) fn decode(state: &Value) -> Option<Blocks> {
    let mut blocks = Blocks::new();
    for (uid, own) in state[ENTRIES].as_object().into_iter().flatten() {
        for (container, list) in own.as_object()? {
            blocks.entry(uid.clone()).or_default().containers.insert(container.clone(), decode_blocks(list)?);
        }
    }
    for (uid, own) in state[POD_ENTRIES].as_object().into_iter().flatten() {
        blocks.entry(uid.clone()).or_default().whole = Some(decode_blocks(&own[MEMORY_BLOCKS])?);
    }
    Some(blocks)
}

fn decode_blocks(list: &Value) -> Option<Vec<Block>> {
    list.as_array()?.iter().map(decode_block).collect()
}

fn decode_block(value: &Value) -> Option<Block> {
    let numbers = value["numaAffinity"].as_array()?.iter().map(|number| u32::try_from(number.as_u64()?).ok());
    Some(Block {
        nodes: numbers.collect::<Option<_>>()?,
        kind: value["type"].as_str()?.to_owned(),
        bytes: value["size"].as_u64()?,
    })
}
