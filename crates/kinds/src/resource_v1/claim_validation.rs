//! What a claim may ask for.

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::resource_v1::constants::{device_allocation_mode, device_taint_effect, device_toleration_operator};
use api_types::resource_v1::{
    DeviceClaim, DeviceClaimConfiguration, DeviceConfiguration, DeviceConstraint, DeviceRequest, DeviceSubRequest,
    DeviceToleration, ExactDeviceRequest, ResourceClaimSpec,
};

use super::selector::{self, Reading};
use super::values::{self, Unique, fits};
use crate::field_rules as rules;
use crate::gates;

/// Most requests, constraints, and configurations, and most requests that one of those names.
const LIST_MAX: usize = 32;
const ALTERNATIVES_MAX: usize = 8;
const ONE_FORM: &str = "exactly one of `exactly` or `firstAvailable` is required";
const ONE_ATTRIBUTE: &str =
    "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set";
const NO_REQUEST: &str =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

/// The names of a claim's requests, and of their alternatives.
pub(super) struct Requests<'a>(BTreeSet<(&'a str, Option<&'a str>)>);

impl<'a> Requests<'a> {
    pub(super) fn of(claim: &'a DeviceClaim) -> Self {
        let names = |request: &'a DeviceRequest| {
            let alternatives = request.first_available.iter().map(|own| Some(own.name.as_str()));
            std::iter::once(None).chain(alternatives).map(|own| (request.name.as_str(), own))
        };
        Self(claim.requests.iter().flat_map(names).collect())
    }

    /// A name that must be one of them.
    pub(super) fn named(&self, path: &Path, name: &str, errors: &mut ErrorList) {
        for segment in name.split('/') {
            values::label(path, segment, errors);
        }
        let (request, alternative) = name.split_once('/').map_or((name, None), |(own, other)| (own, Some(other)));
        if !self.0.contains(&(request, alternative)) {
            errors.push(path.invalid(name, NO_REQUEST));
        }
    }

    /// Several names, each once.
    pub(super) fn all_named(&self, path: &Path, list: &[String], errors: &mut ErrorList) {
        if !fits(path, list, LIST_MAX, errors) {
            return;
        }
        let mut seen = Unique::new();
        for (index, name) in list.iter().enumerate() {
            let path = path.index(index);
            self.named(&path, name, errors);
            seen.note(&path, name, name, errors);
        }
    }
}

/// Checks what is asked for.
pub(super) fn validate(path: &Path, spec: &ResourceClaimSpec, reading: Reading<'_>, errors: &mut ErrorList) {
    let (path, claim) = (path.child("devices"), &spec.devices);
    let at = path.child("requests");
    if fits(&at, &claim.requests, LIST_MAX, errors) {
        let mut seen = Unique::new();
        for (index, request) in claim.requests.iter().enumerate() {
            let at = at.index(index);
            validate_request(&at, request, reading, errors);
            seen.note(&at, &request.name, &request.name, errors);
        }
    }
    let requests = Requests::of(claim);
    let at = path.child("constraints");
    if fits(&at, &claim.constraints, LIST_MAX, errors) {
        for (index, constraint) in claim.constraints.iter().enumerate() {
            validate_constraint(&at.index(index), constraint, &requests, reading, errors);
        }
    }
    let at = path.child("config");
    if fits(&at, &claim.config, LIST_MAX, errors) {
        for (index, config) in claim.config.iter().enumerate() {
            let DeviceClaimConfiguration { requests: named, device_configuration } = config;
            requests.all_named(&at.index(index).child("requests"), named, errors);
            validate_configuration(&at.index(index), device_configuration, false, errors);
        }
    }
}

fn validate_request(path: &Path, request: &DeviceRequest, reading: Reading<'_>, errors: &mut ErrorList) {
    values::label(&path.child("name"), &request.name, errors);
    match (&request.exactly, request.first_available.is_empty()) {
        (None, true) => errors.push(path.required(ONE_FORM)),
        (Some(_), false) => {
            errors.push(path.invalid(BadValue::null(), format!("{ONE_FORM}, but multiple fields are set")));
        }
        (Some(exactly), true) => Asked::from(exactly).validate(&path.child("exactly"), reading, errors),
        (None, false) => {
            let path = path.child("firstAvailable");
            if !fits(&path, &request.first_available, ALTERNATIVES_MAX, errors) {
                return;
            }
            let mut seen = Unique::new();
            for (index, alternative) in request.first_available.iter().enumerate() {
                let path = path.index(index);
                values::label(&path.child("name"), &alternative.name, errors);
                Asked::from(alternative).validate(&path, reading, errors);
                seen.note(&path, &alternative.name, &alternative.name, errors);
            }
        }
    }
}

/// What a request and an alternative have in common.
struct Asked<'a> {
    class: &'a str,
    selectors: &'a [api_types::resource_v1::DeviceSelector],
    mode: &'a str,
    count: i64,
    tolerations: &'a [DeviceToleration],
}

impl<'a> From<&'a ExactDeviceRequest> for Asked<'a> {
    fn from(own: &'a ExactDeviceRequest) -> Self {
        let (class, mode) = (&own.device_class_name, &own.allocation_mode);
        Self { class, selectors: &own.selectors, mode, count: own.count, tolerations: &own.tolerations }
    }
}

impl<'a> From<&'a DeviceSubRequest> for Asked<'a> {
    fn from(own: &'a DeviceSubRequest) -> Self {
        let (class, mode) = (&own.device_class_name, &own.allocation_mode);
        Self { class, selectors: &own.selectors, mode, count: own.count, tolerations: &own.tolerations }
    }
}

impl Asked<'_> {
    fn validate(&self, path: &Path, reading: Reading<'_>, errors: &mut ErrorList) {
        rules::named(&path.child("deviceClassName"), self.class, names::dns1123_subdomain, errors);
        selector::validate(&path.child("selectors"), self.selectors, reading, errors);
        let count = path.child("count");
        match self.mode {
            device_allocation_mode::ALL_FITTING if self.count != 0 => {
                errors.push(count.invalid(self.count, "must not be specified when allocationMode is 'All'"));
            }
            device_allocation_mode::EXACT_COUNT if self.count <= 0 => {
                errors.push(count.invalid(self.count, rules::POSITIVE));
            }
            mode => rules::one_of(&path.child("allocationMode"), mode, device_allocation_mode::ALL, errors),
        }
        for (index, toleration) in self.tolerations.iter().enumerate() {
            validate_toleration(&path.child("tolerations").index(index), toleration, errors);
        }
    }
}

fn validate_toleration(path: &Path, toleration: &DeviceToleration, errors: &mut ErrorList) {
    rules::named_if_set(&path.child("key"), &toleration.key, names::qualified_name, errors);
    let (value, at) = (toleration.value.as_str(), path.child("value"));
    match toleration.operator.as_str() {
        device_toleration_operator::EXISTS if !value.is_empty() => {
            errors.push(at.invalid(value, "must be empty for operator `Exists`"));
        }
        device_toleration_operator::EQUAL => errors.push_invalid(&at, value, names::label_value(value)),
        operator => rules::choice(&path.child("operator"), operator, device_toleration_operator::ALL, errors),
    }
    if !toleration.effect.is_empty() {
        rules::one_of(&path.child("effect"), &toleration.effect, device_taint_effect::ALL, errors);
    }
}

fn validate_constraint(
    path: &Path,
    constraint: &DeviceConstraint,
    requests: &Requests<'_>,
    reading: Reading<'_>,
    errors: &mut ErrorList,
) {
    requests.all_named(&path.child("requests"), &constraint.requests, errors);
    let distinct = constraint.distinct_attribute.as_ref().filter(|_| reading.gates.enabled(gates::CONSUMABLE_CAPACITY));
    match (&constraint.match_attribute, distinct) {
        (Some(name), _) => values::fully_qualified_name(&path.child("matchAttribute"), name, errors),
        (None, Some(name)) => values::fully_qualified_name(&path.child("distinctAttribute"), name, errors),
        (None, None) if reading.gates.enabled(gates::CONSUMABLE_CAPACITY) => errors.push(path.required(ONE_ATTRIBUTE)),
        (None, None) => errors.push(path.child("matchAttribute").required("")),
    }
}

/// Checks configuration for a driver; `unchanged` where it is stored already.
pub(super) fn validate_configuration(
    path: &Path,
    configuration: &DeviceConfiguration,
    unchanged: bool,
    errors: &mut ErrorList,
) {
    let path = path.child("opaque");
    let Some(opaque) = &configuration.opaque else {
        return errors.push(path.required(""));
    };
    values::driver(&path.child("driver"), &opaque.driver, errors);
    values::blob(&path.child("parameters"), &opaque.parameters, unchanged, errors);
}
