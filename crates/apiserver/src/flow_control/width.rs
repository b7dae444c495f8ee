//! What a request is expected to take of its level.

use component_base::Gates;
use flow_control::{ListSize, Source, Work, list_seats, list_seats_by_count, write_work};

use super::control::FlowControl;
use super::metrics::Series;
use crate::gates::LIST_SIZES;
use crate::limits::Wanted;
use crate::request::Query;

impl FlowControl {
    /// The work of a request on a level whose requests take at most `widest` seats; how many watches a write concerns is
    /// counted by `series`.
    pub(super) fn work(&self, wanted: &Wanted<'_>, widest: u32, series: &Series) -> Work {
        let info = wanted.info;
        if !info.is_resource {
            return Work::default();
        }
        match info.verb.as_str() {
            "list" => self.list(wanted, widest),
            "watch" if sends_initial_events(wanted.query, self.registry.gates()) => self.list(wanted, widest),
            "create" if info.resource == "serviceaccounts" && info.subresource == "token" => Work::default(),
            "create" | "update" | "patch" | "delete" => {
                let watches = self.watches.concerned(info);
                series.concerned(watches);
                write_work(watches, widest)
            }
            _ => Work::default(),
        }
    }

    /// The seats of a list, by what the cache has of the resource. Of a resource without one nothing is known.
    fn list(&self, wanted: &Wanted<'_>, widest: u32) -> Work {
        let info = wanted.info;
        let resource = self.registry.resource(&info.group, &info.version, &info.resource);
        let Some(stats) = resource.and_then(|resource| resource.cache_stats()) else { return Work::default() };
        let (objects, bytes) = (stats.objects as u64, stats.object_bytes as u64);
        let limit = wanted.query.integer("limit").ok().flatten().and_then(|limit| u64::try_from(limit).ok());
        let (source, limit) = (source(wanted), limit.unwrap_or_default());
        let initial_seats = if self.registry.gates().enabled(LIST_SIZES) {
            list_seats(ListSize { objects, average_bytes: bytes.checked_div(objects) }, source, limit, widest)
        } else {
            list_seats_by_count(objects, source, limit, widest)
        };
        Work { initial_seats, ..Work::default() }
    }
}

/// Where a list is read: only lists of a revision that is over go to the store.
fn source(wanted: &Wanted<'_>) -> Source {
    let query = wanted.query;
    if !wanted.info.name.is_empty() {
        Source::Single
    } else if query.first("resourceVersionMatch") == Some("Exact") {
        let has = |name| query.first(name).is_some_and(|selector: &str| !selector.is_empty());
        Source::Store { selects: has("labelSelector") || has("fieldSelector") }
    } else {
        Source::Cache
    }
}

fn sends_initial_events(query: &Query, gates: &Gates) -> bool {
    if !gates.enabled(registry::WATCH_LIST) {
        return false;
    }
    match query.switch("sendInitialEvents") {
        Some(sends) => sends,
        None => matches!(query.first("resourceVersion").unwrap_or_default(), "" | "0"),
    }
}
