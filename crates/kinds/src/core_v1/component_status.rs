//! ComponentStatus of core/v1: its names, and what tables show. Nobody writes it; the server finds it out when asked.

use api_types::core_v1::ComponentStatus;

use crate::info::ResourceInfo;
use crate::lifecycle::{Deprecated, Lifecycle};
use crate::rules::TypedRules;
use crate::table::Cell;

const HEALTHY: &str = "Healthy";

static INFO: ResourceInfo<'static> =
    ResourceInfo { short_names: &["cs"], verbs: &["get", "list"], ..ResourceInfo::of::<ComponentStatus>() };

/// The rules of the kind.
pub(crate) struct ComponentStatusRules;

impl TypedRules for ComponentStatusRules {
    type Object = ComponentStatus;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<ComponentStatus>] = &[
        Cell::NAME,
        Cell::text("Status", |component, _| state(component).into()),
        Cell::text("Message", |component, _| healthy(component, |own| own.message.clone()).into()),
        Cell::text("Error", |component, _| healthy(component, |own| own.error.clone()).into()),
    ];
    const LIFECYCLE: Lifecycle =
        Lifecycle { deprecated: Some(Deprecated { since: "v1.19+", instead: "" }), ..Lifecycle::DEFAULT };

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }
}

fn healthy(component: &ComponentStatus, of: fn(&api_types::core_v1::ComponentCondition) -> String) -> String {
    component.conditions.iter().find(|own| own.type_ == HEALTHY).map(of).unwrap_or_default()
}

fn state(component: &ComponentStatus) -> &'static str {
    match healthy(component, |own| own.status.clone()).as_str() {
        "True" => HEALTHY,
        "False" => "Unhealthy",
        _ => "Unknown",
    }
}
