//! Event of core/v1: its names, and its rules.

use crate::event_rules::{self, Printed, Row};
use crate::rules::{MetadataCheck, RuleContext, TypedRules};
use api_machinery::field_path::ErrorList;
use api_types::core_v1::Event;
use api_types::events_v1;

use crate::info::{ResourceInfo, StorageInfo};
use crate::lifecycle::Lifecycle;
use crate::table::Cell;
use crate::versions::Former;

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["ev"],
    storage: Some(StorageInfo::of::<Event>("events", "r2yiGXH7wu8=")),
    create_on_update: true,
    unconditional_update: true,
    field_selectors: &[
        "involvedObject.apiVersion",
        "involvedObject.fieldPath",
        "involvedObject.kind",
        "involvedObject.name",
        "involvedObject.namespace",
        "involvedObject.resourceVersion",
        "involvedObject.uid",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ],
    ..ResourceInfo::of::<Event>()
};

/// The rules of the kind.
pub(crate) struct EventRules;

impl TypedRules for EventRules {
    type Object = Event;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<Event>] = Event::COLUMNS;
    const FORMER: &'static [Former] =
        &[Former::own::<events_v1::Event>("events.k8s.io/v1beta1", crate::events_v1::to_stored)];
    const LIFECYCLE: Lifecycle = Lifecycle::EVENTS;
    const METADATA_CHECKS: &'static [MetadataCheck] = &[];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::path_segment(name, prefix)
    }

    fn validate(_: &RuleContext, object: &Event) -> ErrorList {
        event_rules::validate(&event_rules::Report {
            meta: &object.metadata,
            about: &object.involved_object.namespace,
            timed: !object.event_time.is_zero(),
            reporter_field: "reportingComponent",
            reporter: &object.reporting_component,
            instance: &object.reporting_instance,
            action: &object.action,
            reason: &object.reason,
            message: &object.message,
        })
    }

    fn field(object: &Event, path: &str) -> Option<String> {
        if let Some(field) = path.strip_prefix("involvedObject.") {
            return event_rules::reference_field(&object.involved_object, field);
        }
        Some(match path {
            "reason" => object.reason.clone(),
            "reportingComponent" => object.reporting_component.clone(),
            "source" => {
                if object.source.component.is_empty() {
                    object.reporting_component.clone()
                } else {
                    object.source.component.clone()
                }
            }
            "type" => object.type_.clone(),
            _ => return None,
        })
    }
}

impl Printed for Event {
    fn row(&self) -> Row<'_> {
        Row {
            seen: (self.first_timestamp, self.last_timestamp),
            event_time: self.event_time,
            series: self.series.as_ref().map(|series| (series.last_observed_time, series.count)),
            count: self.count,
            about: &self.involved_object,
            source: &self.source,
            reporter: (&self.reporting_component, &self.reporting_instance),
            texts: [&self.type_, &self.reason, &self.message],
        }
    }
}
