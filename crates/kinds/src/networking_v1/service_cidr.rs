//! ServiceCIDR of networking.k8s.io/v1: its names, and its rules.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::networking_v1::{ServiceCIDR, ServiceCIDRSpec};
use feature_gates::{Gates, MinorVersion};

use crate::field_rules::IMMUTABLE;
use crate::gates::SERVICE_CIDR_STATUS;
use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::internal_json;
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::table::Cell;
use crate::versions::Former;

/// One network for each address family.
const MOST_NETWORKS: usize = 2;

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<ServiceCIDR>("servicecidrs", "gNLvruQhW2g=")),
    unconditional_update: true,
    introduced: MinorVersion::one(33),
    subresources: &[SubresourceInfo::status("ServiceCIDR")],
    ..ResourceInfo::of::<ServiceCIDR>()
};

/// The rules of the kind.
pub(crate) struct ServiceCIDRRules;

impl TypedRules for ServiceCIDRRules {
    type Object = ServiceCIDR;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<ServiceCIDR>] =
        &[Cell::NAME, Cell::text("CIDRs", |object, _| object.spec.cidrs.join(",").into()), Cell::AGE];
    const FORMER: &'static [Former] = &[Former::same("networking.k8s.io/v1alpha1")];
    const STATUS_KEEPS_METADATA: bool = true;
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update];
    const STATUS_METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn gated_reset_fields(gates: &Gates, subresource: &str) -> &'static [&'static str] {
        match subresource {
            "" if !gates.enabled(SERVICE_CIDR_STATUS) => &[],
            _ => Self::reset_fields(subresource),
        }
    }

    fn prepare_create(cx: &RuleContext, object: &mut ServiceCIDR) {
        if cx.gates.enabled(SERVICE_CIDR_STATUS) {
            Strategy::Status.prepare_create(object);
        }
    }

    /// Before its status was kept to its own endpoint, it was written with the rest, too.
    fn prepare_update(cx: &RuleContext, endpoint: Endpoint, object: &mut ServiceCIDR, old: &ServiceCIDR) {
        if endpoint != Endpoint::Main || cx.gates.enabled(SERVICE_CIDR_STATUS) {
            Strategy::Status.prepare_update(endpoint, object, old);
        }
    }

    fn validate(_: &RuleContext, object: &ServiceCIDR) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_new(&path(), &object.spec, &mut errors);
        errors
    }

    fn validate_update(_: &RuleContext, endpoint: Endpoint, object: &ServiceCIDR, old: &ServiceCIDR) -> ErrorList {
        let mut errors = ErrorList::new();
        if endpoint == Endpoint::Main {
            validate_change(&path(), &object.spec, &old.spec, &mut errors);
        }
        errors
    }
}

fn path() -> Path {
    Path::new("spec").child("cidrs")
}

fn validate_new(path: &Path, spec: &ServiceCIDRSpec, errors: &mut ErrorList) {
    let cidrs = &spec.cidrs;
    if cidrs.is_empty() {
        return errors.push(path.required("at least one CIDR required"));
    }
    if cidrs.len() > MOST_NETWORKS {
        return errors.push(path.invalid(internal_json::bad_value(spec), "may only hold up to 2 values"));
    }
    for (index, cidr) in cidrs.iter().enumerate() {
        errors.push_invalid(&path.index(index), cidr, names::cidr_strict(cidr));
    }
    let families =
        cidrs.iter().filter_map(|cidr| names::parse_cidr_lenient(cidr)).map(|(address, _)| address.is_ipv4());
    let families: Vec<bool> = families.collect();
    if families.len() == MOST_NETWORKS && families[0] == families[1] {
        let detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.push(path.invalid(BadValue::list(cidrs), detail));
    }
}

/// Nothing changes but that a second family comes to the first.
fn validate_change(path: &Path, spec: &ServiceCIDRSpec, old: &ServiceCIDRSpec, errors: &mut ErrorList) {
    let upgraded = old.cidrs.len() == 1 && spec.cidrs.len() == MOST_NETWORKS;
    if spec.cidrs.len() != old.cidrs.len() && !upgraded {
        return errors.push(path.invalid(BadValue::list(&spec.cidrs), IMMUTABLE));
    }
    for (index, (cidr, stored)) in spec.cidrs.iter().zip(&old.cidrs).enumerate() {
        if cidr != stored {
            errors.push(path.index(index).invalid(cidr, IMMUTABLE));
        }
    }
    if upgraded {
        validate_new(path, spec, errors);
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::meta::Condition;

    use super::*;

    #[test]
    fn networks_are_only_added() {
        let spec = |cidrs: &[&str]| ServiceCIDRSpec { cidrs: cidrs.iter().map(ToString::to_string).collect() };
        for (new, old, expected) in [
            (&["10.0.0.0/8", "fd00::/112"][..], &["10.0.0.0/8"][..], ""),
            (&["10.0.0.0/8"], &["10.0.0.0/8", "fd00::/112"], "p: Invalid value: [\"10.0.0.0/8\"]: field is immutable"),
            (&["10.0.0.0/9"], &["10.0.0.0/8"], "p[0]: Invalid value: \"10.0.0.0/9\": field is immutable"),
        ] {
            let mut errors = ErrorList::new();
            validate_change(&Path::new("p"), &spec(new), &spec(old), &mut errors);
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(texts.join(", "), expected);
        }
    }

    #[test]
    fn a_status_is_written_with_the_rest_without_the_gate() {
        let with = |type_: &str| {
            let mut object = ServiceCIDR::default();
            object.status.conditions = vec![Condition { type_: type_.into(), ..Condition::default() }];
            object
        };
        for (gate, endpoint, expected) in [
            (true, Endpoint::Main, "old"),
            (false, Endpoint::Main, "new"),
            (true, Endpoint::Status, "new"),
            (false, Endpoint::Status, "new"),
        ] {
            let gates = Gates::default().with(SERVICE_CIDR_STATUS, gate);
            let (mut object, old) = (with("new"), with("old"));
            ServiceCIDRRules::prepare_update(
                &RuleContext { gates, ..RuleContext::default() },
                endpoint,
                &mut object,
                &old,
            );
            assert_eq!(object.status.conditions[0].type_, expected, "{gate} {endpoint:?}");
        }
    }
}
