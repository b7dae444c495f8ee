//! Events are stored as core/v1 and served there and as events.k8s.io/v1, with the same facts under other names.

use api_machinery::object::Object;
use api_types::{core_v1, events_v1};

use crate::versions::VersionConversion;

/// Between events.k8s.io/v1 (served) and core/v1 (stored).
pub(super) const OF_CORE: VersionConversion =
    VersionConversion::By { to_served: |stored| Some(Box::new(from_core(stored.downcast_ref()?))), to_stored };

/// An event of events.k8s.io, which had the same form from the beginning, as it is stored.
pub(crate) fn to_stored(served: &dyn Object) -> Option<Box<dyn Object>> {
    Some(Box::new(to_core(served.downcast_ref()?)))
}

fn from_core(event: &core_v1::Event) -> events_v1::Event {
    let event = event.clone();
    events_v1::Event {
        metadata: event.metadata,
        event_time: event.event_time,
        series: event.series.map(|series| events_v1::EventSeries {
            count: series.count,
            last_observed_time: series.last_observed_time,
        }),
        reporting_controller: event.reporting_component,
        reporting_instance: event.reporting_instance,
        action: event.action,
        reason: event.reason,
        regarding: event.involved_object,
        related: event.related,
        note: event.message,
        type_: event.type_,
        deprecated_source: event.source,
        deprecated_first_timestamp: event.first_timestamp,
        deprecated_last_timestamp: event.last_timestamp,
        deprecated_count: event.count,
    }
}

fn to_core(event: &events_v1::Event) -> core_v1::Event {
    let event = event.clone();
    core_v1::Event {
        metadata: event.metadata,
        involved_object: event.regarding,
        reason: event.reason,
        message: event.note,
        source: event.deprecated_source,
        first_timestamp: event.deprecated_first_timestamp,
        last_timestamp: event.deprecated_last_timestamp,
        count: event.deprecated_count,
        type_: event.type_,
        event_time: event.event_time,
        series: event
            .series
            .map(|series| core_v1::EventSeries { count: series.count, last_observed_time: series.last_observed_time }),
        action: event.action,
        related: event.related,
        reporting_component: event.reporting_controller,
        reporting_instance: event.reporting_instance,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_either_way() {
        let event = core_v1::Event {
            reason: "Started".into(),
            message: "Started container".into(),
            count: 3,
            reporting_component: "kubelet".into(),
            source: core_v1::EventSource { component: "kubelet".into(), host: "n1".into() },
            series: Some(core_v1::EventSeries { count: 2, ..core_v1::EventSeries::default() }),
            ..core_v1::Event::default()
        };
        let there = from_core(&event);
        assert_eq!((there.note.as_str(), there.deprecated_count), ("Started container", 3));
        let back = to_core(&there);
        assert!(api_machinery::reflect::equal_structs(&event, &back));
    }
}
