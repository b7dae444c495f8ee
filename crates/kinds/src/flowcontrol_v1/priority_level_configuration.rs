//! PriorityLevelConfiguration of flowcontrol.apiserver.k8s.io/v1: its names, and its rules.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::object::{Kind as _, Object};
use api_machinery::value::Value;
use api_types::flowcontrol_v1::constants::{EXEMPT, limit_response_type, priority_level_enablement};
use api_types::flowcontrol_v1::{
    LimitResponse, LimitedPriorityLevelConfiguration, PriorityLevelConfiguration, PriorityLevelConfigurationSpec,
    QueuingConfiguration,
};
use api_types::flowcontrol_v1beta1;

use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::table::Cell;
use crate::versions::Former;
use crate::{field_rules, internal_json};

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<PriorityLevelConfiguration>("prioritylevelconfigurations", "Kir5PVfvNeI=")),
    subresources: &[SubresourceInfo::status(PriorityLevelConfiguration::TYPE.kind)],
    unconditional_update: true,
    ..ResourceInfo::of::<PriorityLevelConfiguration>()
};

/// The rules of the kind.
pub(crate) struct PriorityLevelConfigurationRules;

impl TypedRules for PriorityLevelConfigurationRules {
    type Object = PriorityLevelConfiguration;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<PriorityLevelConfiguration>] = &[
        Cell::NAME,
        Cell::text("Type", |object, _| object.spec.type_.clone().into()),
        Cell::text("NominalConcurrencyShares", |object, _| number_or_none(shares(&object.spec))),
        Cell::text("Queues", |object, _| number_or_none(queuing(&object.spec).map(|own| own.queues))),
        Cell::text("HandSize", |object, _| number_or_none(queuing(&object.spec).map(|own| own.hand_size))),
        Cell::text("QueueLengthLimit", |object, _| {
            number_or_none(queuing(&object.spec).map(|own| own.queue_length_limit))
        }),
        Cell::AGE,
    ];
    const FORMER: &'static [Former] = &[
        Former::own::<flowcontrol_v1beta1::PriorityLevelConfiguration>(
            "flowcontrol.apiserver.k8s.io/v1beta1",
            first_form,
        ),
        Former::own::<flowcontrol_v1beta1::PriorityLevelConfiguration>(
            "flowcontrol.apiserver.k8s.io/v1beta2",
            first_form,
        ),
        Former::mended("flowcontrol.apiserver.k8s.io/v1beta3", zero_by_mark),
    ];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Create];
    const STATUS_METADATA_CHECKS: &'static [MetadataCheck] = &[];
    const STRATEGY: Strategy = Strategy::StatusAndGeneration;
    const STATUS_KEEPS_METADATA: bool = true;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn validate(_: &RuleContext, object: &PriorityLevelConfiguration) -> ErrorList {
        let mut errors = ErrorList::new();
        if object.metadata.annotations.contains_key(ZERO_SHARES_MARK) {
            let detail = format!("annotation '{ZERO_SHARES_MARK}' is forbidden");
            errors.push(Path::new("metadata").child("annotations").forbidden(detail));
        }
        validate_spec(&object.metadata.name, &object.spec, &mut errors);
        validate_fixed(&object.metadata.name, &object.spec, &mut errors);
        validate_status(object, &mut errors);
        errors
    }

    fn validate_update(
        cx: &RuleContext,
        endpoint: Endpoint,
        object: &PriorityLevelConfiguration,
        _: &PriorityLevelConfiguration,
    ) -> ErrorList {
        if endpoint != Endpoint::Status {
            return Self::validate(cx, object);
        }
        let mut errors = ErrorList::new();
        validate_status(object, &mut errors);
        errors
    }
}

/// The annotation by which v1beta3 told a zero from nothing.
const ZERO_SHARES_MARK: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";
const NOT_NEGATIVE: &str = "must be a non-negative integer";
const MOST_QUEUES: i32 = 10_000_000;
/// Bits of a hash by which queues are chosen.
const MOST_ENTROPY_BITS: f64 = 60.0;

/// A zero is told from nothing without the mark; it stood for nothing where the mark was missing.
fn zero_by_mark(object: &mut dyn Object) {
    let meant = object.meta_mut().annotations.remove(ZERO_SHARES_MARK).is_some();
    let Some(level) = object.downcast_mut::<PriorityLevelConfiguration>() else { return };
    if let Some(limited) = level.spec.limited.as_mut().filter(|own| own.nominal_concurrency_shares == Some(0) && !meant)
    {
        limited.nominal_concurrency_shares = None;
    }
}

/// Shares were assured ones at first, and never zero.
fn first_form(object: &dyn Object) -> Option<Box<dyn Object>> {
    let first: flowcontrol_v1beta1::PriorityLevelConfiguration = object.downcast_ref().cloned()?;
    let limited = |own: flowcontrol_v1beta1::LimitedPriorityLevelConfiguration| LimitedPriorityLevelConfiguration {
        nominal_concurrency_shares: Some(own.assured_concurrency_shares).filter(|shares| *shares != 0),
        limit_response: own.limit_response,
        lendable_percent: own.lendable_percent,
        borrowing_limit_percent: own.borrowing_limit_percent,
    };
    let spec = PriorityLevelConfigurationSpec {
        type_: first.spec.type_,
        limited: first.spec.limited.map(limited),
        exempt: first.spec.exempt,
    };
    Some(Box::new(PriorityLevelConfiguration { metadata: first.metadata, spec, status: first.status }))
}

fn shares(spec: &PriorityLevelConfigurationSpec) -> Option<i32> {
    spec.limited.as_ref().and_then(|own| own.nominal_concurrency_shares)
}

fn queuing(spec: &PriorityLevelConfigurationSpec) -> Option<&QueuingConfiguration> {
    spec.limited.as_ref()?.limit_response.queuing.as_ref()
}

fn number_or_none(number: Option<i32>) -> Value {
    number.map_or_else(|| "<none>".into(), |number| i64::from(number).into())
}

fn validate_spec(name: &str, spec: &PriorityLevelConfigurationSpec, errors: &mut ErrorList) {
    let path = Path::new("spec");
    let type_ = spec.type_.as_str();
    if (name == EXEMPT) != (type_ == priority_level_enablement::EXEMPT) {
        errors.push(path.child("type").invalid(type_, "must be 'Exempt' if and only if `name` is 'exempt'"));
    }
    match type_ {
        priority_level_enablement::EXEMPT => {
            if spec.limited.is_some() {
                errors.push(path.child("limited").forbidden("must be nil if the type is not Limited"));
            }
            if let Some(exempt) = &spec.exempt {
                let path = path.child("exempt");
                validate_shares(&path, exempt.nominal_concurrency_shares, errors);
                validate_lendable(&path, exempt.lendable_percent, errors);
            }
        }
        priority_level_enablement::LIMITED => {
            if spec.exempt.is_some() {
                errors.push(path.child("exempt").forbidden("must be nil if the type is Limited"));
            }
            match &spec.limited {
                None => errors.push(path.child("limited").required("must not be empty when type is Limited")),
                Some(limited) => validate_limited(&path.child("limited"), limited, errors),
            }
        }
        _ => field_rules::choice(&path.child("type"), type_, priority_level_enablement::ALL, errors),
    }
}

fn validate_shares(path: &Path, shares: Option<i32>, errors: &mut ErrorList) {
    if let Some(shares) = shares.filter(|shares| *shares < 0) {
        errors.push(path.child("nominalConcurrencyShares").invalid(shares, NOT_NEGATIVE));
    }
}

fn validate_lendable(path: &Path, percent: Option<i32>, errors: &mut ErrorList) {
    if let Some(percent) = percent.filter(|percent| !(0..=100).contains(percent)) {
        errors.push(path.child("lendablePercent").invalid(percent, "must be between 0 and 100, inclusive"));
    }
}

fn validate_limited(path: &Path, limited: &LimitedPriorityLevelConfiguration, errors: &mut ErrorList) {
    validate_shares(path, limited.nominal_concurrency_shares, errors);
    validate_response(&path.child("limitResponse"), &limited.limit_response, errors);
    validate_lendable(path, limited.lendable_percent, errors);
    if let Some(percent) = limited.borrowing_limit_percent.filter(|percent| *percent < 0) {
        let detail = format!("if specified, {NOT_NEGATIVE}");
        errors.push(path.child("borrowingLimitPercent").invalid(percent, detail));
    }
}

fn validate_response(path: &Path, response: &LimitResponse, errors: &mut ErrorList) {
    let at = path.child("queuing");
    match (response.type_.as_str(), &response.queuing) {
        (limit_response_type::REJECT, None) => {}
        (limit_response_type::REJECT, Some(_)) => {
            errors.push(at.forbidden("must be nil if limited.limitResponse.type is not Limited"));
        }
        (limit_response_type::QUEUE, None) => {
            errors.push(at.required("must not be empty if limited.limitResponse.type is Limited"));
        }
        (limit_response_type::QUEUE, Some(queuing)) => validate_queuing(&at, queuing, errors),
        (other, _) => field_rules::choice(&path.child("type"), other, limit_response_type::ALL, errors),
    }
}

fn validate_queuing(path: &Path, queuing: &QueuingConfiguration, errors: &mut ErrorList) {
    const POSITIVE: &str = "must be positive";
    let &QueuingConfiguration { queues, hand_size, queue_length_limit } = queuing;
    if queue_length_limit <= 0 {
        errors.push(path.child("queueLengthLimit").invalid(queue_length_limit, POSITIVE));
    }
    let at = path.child("queues");
    if queues <= 0 {
        errors.push(at.invalid(queues, POSITIVE));
    } else if queues > MOST_QUEUES {
        errors.push(at.invalid(queues, format!("must not be greater than {MOST_QUEUES}")));
    }
    let at = path.child("handSize");
    if hand_size <= 0 {
        errors.push(at.invalid(hand_size, POSITIVE));
    } else if hand_size > queues {
        errors.push(at.invalid(hand_size, format!("should not be greater than queues ({queues})")));
    } else if (f64::from(queues).log2() * f64::from(hand_size)).ceil() > MOST_ENTROPY_BITS {
        let detail = format!(
            "required entropy bits of deckSize {queues} and handSize {hand_size} should not be greater than 60"
        );
        errors.push(at.invalid(hand_size, detail));
    }
}

/// What must be there is as it must be; of the exempt level its part of the server may differ.
fn validate_fixed(name: &str, spec: &PriorityLevelConfigurationSpec, errors: &mut ErrorList) {
    let mandatory = flow_control::mandatory_levels();
    let Some(fixed) = mandatory.into_iter().find(|own| own.metadata.name == name) else { return };
    let mut wanted = fixed.spec;
    let mut detail = format!("spec of '{name}' must equal the fixed value");
    if name == EXEMPT {
        wanted.exempt.clone_from(&spec.exempt);
        detail = format!("spec of '{name}' except the 'spec.exempt' field must equal the fixed value");
    }
    if wanted != *spec {
        errors.push(Path::new("spec").invalid(internal_json::bad_value(spec), detail));
    }
}

fn validate_status(object: &PriorityLevelConfiguration, errors: &mut ErrorList) {
    super::validate_conditions(object.status.conditions.iter().map(|own| own.type_.as_str()), errors);
}
