//! Decoding and encoding one Pod, JSON beside `k8s-openapi` and `serde_json`, protobuf beside `k8s-pb` and `prost`.

mod sides;

use std::hint::black_box;

use anyhow::Result;
use bench_peers::{Contest, run};

use crate::sides::Sides;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<()> {
    let sides = Sides::read(include_bytes!("pod.json"))?;
    sides.check()?;
    run(contests(&sides))
}

fn contests(sides: &Sides) -> Vec<Contest<'_>> {
    vec![
        Contest {
            name: "pod-json-decode",
            ours: Box::new(|| drop(black_box(sides.ours_from_json()))),
            peer: Box::new(|| drop(black_box(sides.peer_from_json()))),
        },
        Contest {
            name: "pod-json-encode",
            ours: Box::new(|| drop(black_box(sides.ours_to_json()))),
            peer: Box::new(|| drop(black_box(sides.peer_to_json()))),
        },
        Contest {
            name: "pod-protobuf-decode",
            ours: Box::new(|| drop(black_box(sides.ours_from_protobuf()))),
            peer: Box::new(|| drop(black_box(sides.peer_from_protobuf()))),
        },
        Contest {
            name: "pod-protobuf-encode",
            ours: Box::new(|| drop(black_box(sides.ours_to_protobuf()))),
            peer: Box::new(|| drop(black_box(sides.peer_to_protobuf()))),
        },
    ]
}
