//! Deletes what nobody owns any more, and carries out foreground deletion and orphaning.
//!
//! The graph of owners and dependents follows the metadata of every deletable resource; nothing is ever scanned. Each
//! destructive step is confirmed by a live read and guarded by preconditions, for the graph may be behind.

mod absent;
mod collect;
mod dot;
mod graph;
mod monitors;
mod object;
mod orphan;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod wiring_test;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use client::{Informers, ObjectKey, RestMapper};
use controller::{Build, BuildError, DebugPage, Descriptor, Queue};
use parking_lot::Mutex;

use crate::Settings;
use absent::Absent;
use collect::Collector;
use graph::{Effects, Graph};
use monitors::Monitors;
use orphan::Orphaner;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "garbage-collector-controller",
    aliases: &["garbagecollector"],
    gates: &[],
    identity: "generic-garbage-collector",
    event_component: "garbage-collector-controller",
    disabled_by_default: false,
    build,
};

/// How often discovery is asked for resources that came or went.
const DISCOVERY_PERIOD: Duration = Duration::from_secs(30);

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let settings = build.settings::<Settings>()?;
    if !settings.garbage_collector {
        return Err(BuildError::Skipped("--enable-garbage-collector is false".to_owned()));
    }
    let workers = settings.garbage_collector_syncs;
    let shared = Arc::new(Shared {
        graph: Mutex::default(),
        absent: Mutex::default(),
        deletes: build.queue("garbage_collector_attempt_to_delete"),
        orphans: build.queue("garbage_collector_attempt_to_orphan"),
        mapper: build.mapper().clone(),
        informers: build.metadata_informers().clone(),
        ready: AtomicBool::new(false),
    });
    let pictured = Arc::clone(&shared);
    build.debug_page("graph", move |query| {
        let body = dot::picture(&pictured.graph.lock(), &query.all("uid").collect::<Vec<_>>());
        DebugPage { content_type: "text/vnd.graphviz", body }
    });
    let (deletes, orphans) = (shared.deletes.clone(), shared.orphans.clone());
    build.run(&deletes, workers, Arc::new(Collector(Arc::clone(&shared))));
    build.run(&orphans, workers, Arc::new(Orphaner(Arc::clone(&shared))));
    let monitors = Monitors::new(shared, build.metrics());
    build.every("garbage_collector_graph_changes", DISCOVERY_PERIOD, Arc::new(monitors));
    Ok(())
}

/// What the parts of the collector share.
struct Shared {
    graph: Mutex<Graph>,
    absent: Mutex<Absent>,
    deletes: Queue,
    orphans: Queue,
    mapper: RestMapper,
    informers: Informers,
    /// The graph is as complete as it gets at the start; before that, nothing is deleted.
    ready: AtomicBool,
}

impl Shared {
    /// Changes the graph and queues what follows from it.
    fn change(&self, change: impl FnOnce(&mut Graph) -> Effects) {
        let effects = change(&mut self.graph.lock());
        if let Some(gone) = effects.absent {
            self.absent.lock().remember(gone);
        }
        for uid in effects.delete {
            self.deletes.add(ObjectKey::cluster(uid));
        }
        for uid in effects.orphan {
            self.orphans.add(ObjectKey::cluster(uid));
        }
    }

    fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }
}
