//! What resources count of their caches and lists, with upstream's names: looked up when somebody asks for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use component_base::metrics::{Desc, Metrics, Sample, Samples, Stability, Value};
use registry::{CacheCounts, CacheStats, READ_WAIT_SECONDS, Registry, ResourceCounts};

use crate::gates::LIST_SIZES;

const LABELS: &[&str] = &["group", "resource"];
const INDEXED: &[&str] = &["group", "resource", "index"];

/// A number for each value of a family's last labels; those before are group and resource.
type Numbers = Vec<(Vec<&'static str>, u64)>;

/// A family, and its numbers of a resource.
struct Family {
    desc: Desc,
    of: fn(&ResourceCounts) -> Numbers,
}

const fn alpha(name: &'static str, help: &'static str, of: fn(&ResourceCounts) -> Numbers) -> Family {
    Family { desc: Desc::new(name, help, Stability::Alpha).labels(LABELS), of }
}

fn one(number: u64) -> Numbers {
    vec![(Vec::new(), number)]
}

/// What passed through the cache; nothing of a resource that has none.
fn passed(counts: &ResourceCounts, number: fn(&CacheCounts) -> u64) -> Numbers {
    counts.cache.iter().flat_map(|cache| one(number(cache))).collect()
}

/// What the cache holds.
fn held(counts: &ResourceCounts, number: fn(&CacheStats) -> u64) -> Numbers {
    counts.stats.iter().flat_map(|stats| one(number(stats))).collect()
}

const fn text(flag: bool) -> &'static str {
    if flag { "true" } else { "false" }
}

static COUNTERS: [Family; 17] = [
    Family {
        desc: Desc::new("apiserver_cache_list_total", "Lists from the cache.", Stability::Alpha).labels(INDEXED),
        of: |counts| counts.cached.iter().map(|own| (vec![own.index], own.lists)).collect(),
    },
    Family {
        desc: Desc::new(
            "apiserver_cache_list_fetched_objects_total",
            "Objects that lists from the cache looked at.",
            Stability::Alpha,
        )
        .labels(INDEXED),
        of: |counts| counts.cached.iter().map(|own| (vec![own.index], own.fetched)).collect(),
    },
    alpha("apiserver_cache_list_returned_objects_total", "Objects that lists from the cache gave.", |counts| {
        one(counts.cached_returned)
    }),
    alpha("apiserver_storage_list_total", "Lists from the store.", |counts| one(counts.stored)),
    alpha("apiserver_storage_list_fetched_objects_total", "Objects that lists read from the store.", |counts| {
        one(counts.stored_fetched)
    }),
    alpha(
        "apiserver_storage_list_evaluated_objects_total",
        "Objects of the store that selectors looked at.",
        |counts| one(counts.stored_evaluated),
    ),
    alpha("apiserver_storage_list_returned_objects_total", "Objects that lists from the store gave.", |counts| {
        one(counts.stored_returned)
    }),
    alpha("apiserver_storage_decode_errors_total", "Values in the store that could not be read.", |counts| {
        one(counts.decode_errors)
    }),
    Family {
        desc: Desc::new(
            "apiserver_storage_events_received_total",
            "Changes that watches of the store told of.",
            Stability::Beta,
        )
        .labels(LABELS),
        of: |counts| passed(counts, |cache| cache.events_received),
    },
    alpha("apiserver_watch_cache_events_received_total", "Changes that came into the cache.", |counts| {
        passed(counts, |cache| cache.events_received)
    }),
    alpha("apiserver_watch_cache_events_dispatched_total", "Changes that the cache showed to watchers.", |counts| {
        passed(counts, |cache| cache.events_dispatched)
    }),
    alpha("apiserver_init_events_total", "Objects that watchers were told of as there already.", |counts| {
        passed(counts, |cache| cache.initial_events)
    }),
    alpha("apiserver_watch_cache_initializations_total", "How often the cache was filled.", |counts| {
        passed(counts, |cache| cache.initializations)
    }),
    alpha("apiserver_terminated_watchers_total", "Watchers that ended as they were too slow.", |counts| {
        passed(counts, |cache| cache.terminated_watchers)
    }),
    alpha("etcd_bookmark_total", "How often the store told how far it is.", |counts| {
        passed(counts, |cache| cache.bookmarks)
    }),
    Family {
        desc: Desc::new(
            "apiserver_storage_consistency_checks_total",
            "Comparisons of the cache with the store, by what they found.",
            Stability::Alpha,
        )
        .labels(&["group", "resource", "status"]),
        of: |counts| {
            let found = counts.checks.iter().filter(|(_, checks)| *checks > 0);
            found.map(|(found, checks)| (vec![found.as_str()], *checks)).collect()
        },
    },
    Family {
        desc: Desc::new(
            "apiserver_watch_cache_consistent_read_total",
            "Reads from the cache that had to show every write before them, and whether the store was asked instead.",
            Stability::Alpha,
        )
        .labels(&["group", "resource", "success", "fallback"]),
        of: |counts| {
            let labels = |success, fallback| vec![text(success), text(fallback)];
            counts.consistent.iter().map(|own| (labels(own.success, own.fallback), own.reads)).collect()
        },
    },
];

/// What lists are taken to weigh by (gate `SizeBasedListCostEstimate`).
static SIZES: Family =
    alpha("apiserver_resource_size_estimate_bytes", "About how many bytes the objects take.", |counts| {
        held(counts, |stats| stats.object_bytes as u64)
    });

static REVISIONS: Family =
    alpha("apiserver_watch_cache_resource_version", "The revision that the cache is at.", |counts| {
        held(counts, |stats| u64::try_from(stats.revision.0).unwrap_or(0))
    });

static WAITS: Desc = Desc::new(
    "apiserver_watch_cache_read_wait_seconds",
    "How long reads waited for the cache to get to a revision.",
    Stability::Alpha,
)
.labels(LABELS)
.buckets(&READ_WAIT_SECONDS);

/// Adds the families.
pub(crate) fn show(metrics: &Metrics, registry: &Arc<Registry>) {
    for family in &COUNTERS {
        metrics.computed_counters(&family.desc, samples(registry, family, Value::Counter));
    }
    let sizes = registry.gates().enabled(LIST_SIZES).then_some(&SIZES);
    for family in sizes.into_iter().chain([&REVISIONS]) {
        metrics.computed_gauges(&family.desc, samples(registry, family, Value::Gauge));
    }
    let waits = |counts: &ResourceCounts| {
        let waits = counts.cache.iter().map(|cache| &cache.read_waits);
        waits.map(|own| (Vec::new(), Value::Histogram(own.below.clone(), own.all, own.sum.as_secs_f64()))).collect()
    };
    metrics.computed_histograms(&WAITS, of_resources(registry, waits));
}

fn samples(registry: &Arc<Registry>, family: &'static Family, value: fn(f64) -> Value) -> Samples {
    #[expect(clippy::cast_precision_loss, reason = "a number for a metric")]
    let shown = move |(labels, number): (Vec<&'static str>, u64)| (labels, value(number as f64));
    of_resources(registry, move |counts| (family.of)(counts).into_iter().map(shown).collect())
}

/// What is made of the counts of each resource, with its group and name before the labels.
fn of_resources(
    registry: &Arc<Registry>,
    values: impl Fn(&ResourceCounts) -> Vec<(Vec<&'static str>, Value)> + Send + Sync + 'static,
) -> Samples {
    let registry = Arc::downgrade(registry);
    Box::new(move || {
        let resources = registry.upgrade().map(|registry| registry.resources()).unwrap_or_default();
        // Versions of a resource, and resources that are kept in one place, count together: each place is told of once.
        let mut places = BTreeMap::new();
        for resource in &resources {
            if let Some(storage) = resource.info().storage {
                places.entry(storage.prefix).or_insert(resource);
            }
        }
        let of = |resource: &Arc<registry::Resource>| -> Vec<Sample> {
            let info = resource.info();
            let sample = |(more, value): (Vec<&'static str>, Value)| {
                let labels = [info.group, info.resource].into_iter().chain(more).map(str::to_owned).collect();
                (labels, value)
            };
            values(&resource.counts()).into_iter().map(sample).collect()
        };
        places.into_values().flat_map(of).collect()
    })
}
