//! PodDisruptionBudget of policy/v1: its names, and its rules.

use api_types::policy_v1::PodDisruptionBudget;

use crate::conditions;
use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::label_selector::{self, Values};
use crate::lifecycle::Lifecycle;
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::table::Cell;
use crate::versions::Former;
use crate::workload;
use crate::{field_rules, internal_json};
use api_machinery::field_path::ErrorList;
use api_machinery::field_path::Path;
use api_machinery::intstr::IntOrString;
use api_machinery::meta::{LabelSelector, LabelSelectorRequirement};
use api_machinery::object::Object;
use api_machinery::value::Value;
use api_types::policy_v1::PodDisruptionBudgetSpec;
use api_types::policy_v1::constants::unhealthy_pod_eviction_policy_type;

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["pdb"],
    storage: Some(StorageInfo::of::<PodDisruptionBudget>("poddisruptionbudgets", "EVWiDmWqyJw=")),
    subresources: &[SubresourceInfo::status("PodDisruptionBudget")],
    ..ResourceInfo::of::<PodDisruptionBudget>()
};

/// The rules of the kind.
pub(crate) struct PodDisruptionBudgetRules;

impl TypedRules for PodDisruptionBudgetRules {
    type Object = PodDisruptionBudget;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<PodDisruptionBudget>] = &[
        Cell::NAME,
        Cell::text("Min Available", |object, _| shown(object.spec.min_available.as_ref())),
        Cell::text("Max Unavailable", |object, _| shown(object.spec.max_unavailable.as_ref())),
        Cell::number("Allowed Disruptions", |object, _| object.status.disruptions_allowed.into()),
        Cell::AGE,
    ];
    const FORMER: &'static [Former] = &[Former::mended("policy/v1beta1", tell_by_marker)];
    const LIFECYCLE: Lifecycle = Lifecycle { qualified_finalizers: false, ..Lifecycle::DEFAULT };
    const METADATA_CHECKS: &'static [MetadataCheck] = &[];
    const STATUS_METADATA_CHECKS: &'static [MetadataCheck] = &[];
    const STRATEGY: Strategy = Strategy::StatusAndGeneration;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::path_segment(name, prefix)
    }

    fn set_defaults(object: &mut PodDisruptionBudget) {
        if let Some(selector) = &mut object.spec.selector {
            drop_marker(selector);
        }
    }

    fn validate(_: &RuleContext, object: &PodDisruptionBudget) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_spec(&object.spec, None, &mut errors);
        errors
    }

    fn validate_update(
        _: &RuleContext,
        endpoint: Endpoint,
        object: &PodDisruptionBudget,
        old: &PodDisruptionBudget,
    ) -> ErrorList {
        let mut errors = ErrorList::new();
        if endpoint != Endpoint::Status {
            validate_spec(&object.spec, Some(&old.spec), &mut errors);
            return errors;
        }
        let status = &object.status;
        conditions::validate(&Path::new("status").child("conditions"), &status.conditions, &mut errors);
        let counters = [
            ("disruptionsAllowed", status.disruptions_allowed.into()),
            ("currentHealthy", status.current_healthy.into()),
            ("desiredHealthy", status.desired_healthy.into()),
            ("expectedPods", status.expected_pods.into()),
        ];
        workload::not_negative(&Path::new("status"), &counters, &mut errors);
        errors
    }
}

fn shown(amount: Option<&IntOrString>) -> Value {
    amount.map_or_else(|| "N/A".to_owned(), ToString::to_string).into()
}

/// The key by which v1beta1's empty selector, which selected nothing, is told from that of v1.
const EMPTY_MARKER: &str = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match";

/// The marker means something only where it stands alone.
fn drop_marker(selector: &mut LabelSelector) {
    let is_marker = |own: &LabelSelectorRequirement| own.key == EMPTY_MARKER;
    let stands_alone = selector.match_labels.is_empty()
        && matches!(selector.match_expressions.as_slice(), [only] if is_marker(only) && only.operator == "Exists");
    if !stands_alone {
        selector.match_expressions.retain(|own| !is_marker(own));
    }
}

fn validate_spec(spec: &PodDisruptionBudgetSpec, old: Option<&PodDisruptionBudgetSpec>, errors: &mut ErrorList) {
    let path = Path::new("spec");
    if spec.min_available.is_some() && spec.max_unavailable.is_some() {
        let value = internal_json::bad_value(spec);
        errors.push(path.invalid(value, "minAvailable and maxUnavailable cannot be both set"));
    }
    for (field, amount) in [("minAvailable", &spec.min_available), ("maxUnavailable", &spec.max_unavailable)] {
        if let Some(amount) = amount {
            let path = path.child(field);
            workload::int_or_percent(&path, amount, errors);
            workload::at_most_all(&path, amount, errors);
        }
    }
    if let Some(selector) = &spec.selector {
        let bad = old.and_then(|old| old.selector.as_ref()).is_some_and(label_selector::is_bad);
        let values = if bad { Values::AsStored } else { Values::Checked };
        label_selector::validate(&path.child("selector"), selector, values, errors);
    }
    if let Some(policy) = &spec.unhealthy_pod_eviction_policy {
        field_rules::one_of(
            &path.child("unhealthyPodEvictionPolicy"),
            policy,
            unhealthy_pod_eviction_policy_type::ALL,
            errors,
        );
    }
}

/// An empty selector selected nothing at first, and everything where the marker said so; now it is the other way round.
fn tell_by_marker(object: &mut dyn Object) {
    let Some(selector) = object.downcast_mut::<PodDisruptionBudget>().and_then(|own| own.spec.selector.as_mut()) else {
        return;
    };
    let is_marker = |own: &LabelSelectorRequirement| own.key == EMPTY_MARKER;
    if selector.match_labels.is_empty() && selector.match_expressions.is_empty() {
        let (key, operator) = (EMPTY_MARKER.to_owned(), "Exists".to_owned());
        selector.match_expressions.push(LabelSelectorRequirement { key, operator, values: Vec::new() });
    } else {
        selector.match_expressions.retain(|own| !is_marker(own));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_state_one_amount() {
        let spec = PodDisruptionBudgetSpec {
            min_available: Some(IntOrString::Int(-1)),
            max_unavailable: Some(IntOrString::Str("101%".into())),
            unhealthy_pod_eviction_policy: Some("X".into()),
            ..PodDisruptionBudgetSpec::default()
        };
        let mut errors = ErrorList::new();
        validate_spec(&spec, None, &mut errors);
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                concat!(
                    r#"spec: Invalid value: {"MinAvailable":-1,"Selector":null,"MaxUnavailable":"101%","#,
                    r#""UnhealthyPodEvictionPolicy":"X"}: minAvailable and maxUnavailable cannot be both set"#
                ),
                "spec.minAvailable: Invalid value: -1: must be greater than or equal to 0",
                r#"spec.maxUnavailable: Invalid value: "101%": must not be greater than 100%"#,
                concat!(
                    r#"spec.unhealthyPodEvictionPolicy: Unsupported value: "X": "#,
                    r#"supported values: "AlwaysAllow", "IfHealthyBudget""#
                ),
            ]
        );
    }

    #[test]
    fn the_marker_of_the_old_empty_selector_stands_alone_or_goes() {
        let marker = |operator: &str| format!(r#"{{"key":"{EMPTY_MARKER}","operator":"{operator}"}}"#);
        let (exists, not, other) = (marker("Exists"), marker("DoesNotExist"), r#"{"key":"a","operator":"Exists"}"#);
        for (given, expected) in [
            (format!(r#"{{"matchExpressions":[{exists}]}}"#), format!(r#"{{"matchExpressions":[{exists}]}}"#)),
            (format!(r#"{{"matchExpressions":[{not}]}}"#), "{}".to_owned()),
            (
                format!(r#"{{"matchExpressions":[{exists},{other},{not}]}}"#),
                format!(r#"{{"matchExpressions":[{other}]}}"#),
            ),
            (
                format!(r#"{{"matchLabels":{{"a":"b"}},"matchExpressions":[{exists}]}}"#),
                r#"{"matchLabels":{"a":"b"}}"#.to_owned(),
            ),
            (
                format!(r#"{{"matchLabels":{{"{EMPTY_MARKER}":"x"}}}}"#),
                format!(r#"{{"matchLabels":{{"{EMPTY_MARKER}":"x"}}}}"#),
            ),
            ("{}".to_owned(), "{}".to_owned()),
        ] {
            let read = |selector: &str| {
                let mut budget = PodDisruptionBudget::default();
                let text = format!(r#"{{"spec":{{"selector":{selector}}}}}"#);
                api_machinery::json::decode(text.as_bytes(), &mut budget).expect("a budget");
                budget
            };
            let mut budget = read(&given);
            PodDisruptionBudgetRules::set_defaults(&mut budget);
            assert_eq!(budget.spec, read(&expected).spec, "{given}");
        }
    }
}
