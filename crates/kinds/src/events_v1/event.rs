//! Event of events.k8s.io/v1: its names, and its rules.

use crate::event_rules::{self, Printed, Row};
use crate::internal_json;
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_types::events_v1::Event;

use crate::info::{ResourceInfo, StorageInfo};
use crate::lifecycle::Lifecycle;
use crate::table::Cell;
use crate::versions::VersionConversion;

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["ev"],
    storage: Some(StorageInfo { prefix: "events", group: "", version: "v1", hash: "r2yiGXH7wu8=" }),
    create_on_update: true,
    unconditional_update: true,
    field_selectors: &[
        "reason",
        "regarding.apiVersion",
        "regarding.fieldPath",
        "regarding.kind",
        "regarding.name",
        "regarding.namespace",
        "regarding.resourceVersion",
        "regarding.uid",
        "reportingController",
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
    const CONVERSION: Option<VersionConversion> = Some(super::conversion::OF_CORE);
    const LIFECYCLE: Lifecycle = Lifecycle::EVENTS;
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn validate(_: &RuleContext, object: &Event) -> ErrorList {
        let mut errors = validate_shared(object);
        validate_series(object, &mut errors);
        if object.event_time.is_zero() {
            errors.push(Path::new("eventTime").required(""));
        }
        if !matches!(object.type_.as_str(), "Normal" | "Warning") {
            errors.push(Path::new("type").invalid("", format!("has invalid value: {}", object.type_)));
        }
        for (field, set) in [
            ("firstTimestamp", !object.deprecated_first_timestamp.is_zero()),
            ("lastTimestamp", !object.deprecated_last_timestamp.is_zero()),
            ("count", object.deprecated_count != 0),
            ("source", object.deprecated_source != Default::default()),
        ] {
            if set {
                errors.push(Path::new(field).invalid("", "needs to be unset"));
            }
        }
        errors
    }

    fn validate_update(_: &RuleContext, _: Endpoint, object: &Event, old: &Event) -> ErrorList {
        let mut errors = validate_shared(object);
        if object.series != old.series {
            validate_series(object, &mut errors);
        }
        for (field, kept) in [
            ("involvedObject", object.regarding == old.regarding),
            ("reason", object.reason == old.reason),
            ("message", object.note == old.note),
            ("source", object.deprecated_source == old.deprecated_source),
            ("firstTimestamp", object.deprecated_first_timestamp == old.deprecated_first_timestamp),
            ("lastTimestamp", object.deprecated_last_timestamp == old.deprecated_last_timestamp),
            ("count", object.deprecated_count == old.deprecated_count),
            // Upstream looks at the reason twice.
            ("reason", object.reason == old.reason),
            ("type", object.type_ == old.type_),
            ("eventTime", object.event_time == old.event_time),
            ("action", object.action == old.action),
            ("related", object.related == old.related),
            ("reportingController", object.reporting_controller == old.reporting_controller),
            ("reportingInstance", object.reporting_instance == old.reporting_instance),
        ] {
            if !kept {
                let value = value_of(object, field);
                errors.push(Path::new(field).invalid(value, crate::field_rules::IMMUTABLE));
            }
        }
        errors
    }

    fn field(object: &Event, path: &str) -> Option<String> {
        if let Some(field) = path.strip_prefix("regarding.") {
            return event_rules::reference_field(&object.regarding, field);
        }
        Some(match path {
            "reason" => object.reason.clone(),
            "reportingController" => object.reporting_controller.clone(),
            "type" => object.type_.clone(),
            _ => return None,
        })
    }
}

impl Printed for Event {
    fn row(&self) -> Row<'_> {
        Row {
            seen: (self.deprecated_first_timestamp, self.deprecated_last_timestamp),
            event_time: self.event_time,
            series: self.series.as_ref().map(|series| (series.last_observed_time, series.count)),
            count: self.deprecated_count,
            about: &self.regarding,
            source: &self.deprecated_source,
            reporter: (&self.reporting_controller, &self.reporting_instance),
            texts: [&self.type_, &self.reason, &self.note],
        }
    }
}

fn validate_shared(object: &Event) -> ErrorList {
    event_rules::validate(&event_rules::Report {
        meta: &object.metadata,
        about: &object.regarding.namespace,
        timed: !object.event_time.is_zero(),
        reporter_field: "reportingController",
        reporter: &object.reporting_controller,
        instance: &object.reporting_instance,
        action: &object.action,
        reason: &object.reason,
        message: &object.note,
    })
}

fn validate_series(object: &Event, errors: &mut ErrorList) {
    let Some(series) = &object.series else { return };
    let path = Path::new("series");
    if series.count < 2 {
        errors.push(path.child("count").invalid("", "should be at least 2"));
    }
    if series.last_observed_time.is_zero() {
        errors.push(path.child("lastObservedTime").required(""));
    }
}

/// The new value of a field that may not change, by its name in core events.
fn value_of(object: &Event, field: &str) -> BadValue {
    match field {
        "involvedObject" => internal_json::bad_value(&object.regarding),
        "reason" => BadValue::from(&object.reason),
        "message" => BadValue::from(&object.note),
        "source" => internal_json::bad_value(&object.deprecated_source),
        "firstTimestamp" => object.deprecated_first_timestamp.into(),
        "lastTimestamp" => object.deprecated_last_timestamp.into(),
        "count" => object.deprecated_count.into(),
        "type" => BadValue::from(&object.type_),
        "eventTime" => object.event_time.into(),
        "action" => BadValue::from(&object.action),
        "reportingController" => BadValue::from(&object.reporting_controller),
        "reportingInstance" => BadValue::from(&object.reporting_instance),
        _ => object.related.as_ref().map_or_else(BadValue::null, |one| internal_json::bad_value(one)),
    }
}
