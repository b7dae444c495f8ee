//! The IP families of a Service: what is given, what the policy asks for, what the cluster has.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_types::core_v1::ServiceSpec;
use feature_gates::Gates;

use super::network::Family;

pub(crate) const SINGLE: &str = "SingleStack";
pub(crate) const PREFER: &str = "PreferDualStack";
pub(crate) const REQUIRE: &str = "RequireDualStack";
pub(crate) const NONE: &str = "None";
pub(crate) const EXTERNAL_NAME: &str = "ExternalName";

/// Whether the service has, and wants, no address.
pub(crate) fn is_headless(spec: &ServiceSpec) -> bool {
    matches!(spec.cluster_ips.as_slice(), [only] if only == NONE)
}

/// Fills in families and policy. `cluster` are the cluster's families, its default first.
pub(crate) fn fill_in(
    spec: &mut ServiceSpec,
    old: Option<&ServiceSpec>,
    cluster: &[Family],
    gates: &Gates,
) -> Result<(), ErrorList> {
    if spec.type_ == EXTERNAL_NAME || old.is_some_and(|old| is_settled(spec, old)) {
        return Ok(());
    }
    let selectorless = is_headless(spec) && spec.selector.is_empty();
    if spec.ip_family_policy.is_none() {
        let kept = old.and_then(|old| old.ip_family_policy.clone());
        spec.ip_family_policy = Some(kept.unwrap_or_else(|| if selectorless { REQUIRE } else { SINGLE }.to_owned()));
    }
    check_block(spec, gates).into_result()?;
    if let Some(old) = old {
        release_second(spec, old).into_result()?;
    }
    check_counts(spec).into_result()?;
    families_of_addresses(spec, cluster).into_result()?;
    let Some(default) = cluster.first() else { return Ok(()) };
    if selectorless {
        complete(spec, *default, &[Family::V4, Family::V6]);
        return Ok(());
    }
    check_cluster(spec, cluster).into_result()?;
    complete(spec, *default, cluster);
    Ok(())
}

/// An update of a service that takes what it can get, and leaves all of this alone.
fn is_settled(spec: &ServiceSpec, old: &ServiceSpec) -> bool {
    let prefers = |spec: &ServiceSpec| spec.ip_family_policy.as_deref() == Some(PREFER);
    prefers(spec)
        && prefers(old)
        && spec.type_ == old.type_
        && spec.cluster_ips == old.cluster_ips
        && spec.ip_families == old.ip_families
}

fn is_single(spec: &ServiceSpec) -> bool {
    spec.ip_family_policy.as_deref() == Some(SINGLE)
}

fn spec_path(field: &'static str) -> Path {
    Path::new("spec").child(field)
}

fn check_block(spec: &ServiceSpec, gates: &Gates) -> ErrorList {
    let mut errors = ErrorList::new();
    let (ips, list) = (spec_path("clusterIPs"), || BadValue::list(&spec.cluster_ips));
    if !spec.cluster_ip.is_empty() && spec.cluster_ips.is_empty() {
        errors.push(ips.required(""));
    } else if spec.cluster_ip.is_empty() && !spec.cluster_ips.is_empty() {
        errors.push(ips.invalid(list(), "must be empty when `clusterIP` is not specified"));
    } else if spec.cluster_ips.first().is_some_and(|first| *first != spec.cluster_ip) {
        errors.push(ips.invalid(list(), "first value must match `clusterIP`"));
    }
    for (index, family) in spec.ip_families.iter().enumerate() {
        let at = spec_path("ipFamilies").index(index);
        if Family::parse(family).is_none() {
            errors.push(at.not_supported(family.as_str(), &["IPv4", "IPv6"]));
        } else if spec.ip_families.iter().take(index).any(|other| other == family) {
            errors.push(at.duplicate(family.as_str()));
        }
    }
    let policy = spec.ip_family_policy.as_deref().unwrap_or_default();
    if ![SINGLE, PREFER, REQUIRE].contains(&policy) {
        errors.push(spec_path("ipFamilyPolicy").not_supported(policy, &[PREFER, REQUIRE, SINGLE]));
    }
    if spec.cluster_ips.len() > 1 && spec.cluster_ips.first().is_some_and(|first| first == NONE) {
        errors.push(ips.invalid(list(), "'None' must be the first and only value"));
    }
    check_addresses(spec, &ips, gates, &mut errors);
    errors
}

fn check_addresses(spec: &ServiceSpec, ips: &Path, gates: &Gates, errors: &mut ErrorList) {
    let before = errors.len();
    for (index, text) in spec.cluster_ips.iter().enumerate().filter(|(_, text)| *text != NONE) {
        errors.push_invalid(&ips.index(index), text, kinds::addresses::ip(gates, text));
    }
    let list = || BadValue::list(&spec.cluster_ips);
    if spec.cluster_ips.len() > 2 {
        errors.push(ips.invalid(list(), "may only hold up to 2 values"));
    }
    if errors.len() > before || is_headless(spec) {
        return;
    }
    let families: Vec<Family> = spec.cluster_ips.iter().filter_map(|text| family_of(text)).collect();
    if let [one, two] = families.as_slice()
        && one == two
    {
        errors.push(ips.invalid(list(), "may specify no more than one IP for each IP family"));
    }
    for (index, (family, wanted)) in families.iter().zip(&spec.ip_families).enumerate() {
        if family.as_str() != wanted {
            let detail = format!("expected an {wanted} value as indicated by `ipFamilies[{index}]`");
            let value = spec.cluster_ips.get(index).map(String::as_str).unwrap_or_default();
            errors.push(ips.index(index).invalid(value, detail));
        }
    }
}

pub(crate) fn family_of(text: &str) -> Option<Family> {
    api_machinery::names::parse_ip_lenient(text).map(Family::of)
}

/// Going back to one family.
fn release_second(spec: &mut ServiceSpec, old: &ServiceSpec) -> ErrorList {
    let mut errors = ErrorList::new();
    if is_single(spec) {
        if spec.cluster_ips.len() == 2 && spec.cluster_ips == old.cluster_ips {
            spec.cluster_ips.truncate(1);
        }
        if spec.ip_families.len() == 2 && spec.ip_families == old.ip_families {
            spec.ip_families.truncate(1);
        }
        return errors;
    }
    let policy = spec.ip_family_policy.clone().unwrap_or_default();
    for (new, old, what) in
        [(&spec.cluster_ips, &old.cluster_ips, "cluster IP"), (&spec.ip_families, &old.ip_families, "IP family")]
    {
        if !new.is_empty() && new.len() < old.len() {
            let detail = format!("must be 'SingleStack' to release the secondary {what}");
            errors.push(spec_path("ipFamilyPolicy").invalid(BadValue::named(&policy), detail));
        }
    }
    errors
}

fn check_counts(spec: &ServiceSpec) -> ErrorList {
    let mut errors = ErrorList::new();
    if !is_single(spec) {
        return errors;
    }
    for (count, what) in [(spec.cluster_ips.len(), "cluster IPs"), (spec.ip_families.len(), "IP families")] {
        if count == 2 {
            let detail = format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
            errors.push(spec_path("ipFamilyPolicy").invalid(BadValue::named(SINGLE), detail));
        }
    }
    errors
}

/// An address says which family is meant.
fn families_of_addresses(spec: &mut ServiceSpec, cluster: &[Family]) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, text) in spec.cluster_ips.clone().iter().enumerate() {
        let Some(family) = family_of(text) else { break };
        if spec.ip_families.len() > index {
            continue;
        }
        if cluster.contains(&family) {
            spec.ip_families.push(family.as_str().to_owned());
        } else {
            let detail = format!("{} is not configured on this cluster", family.as_str());
            errors.push(spec_path("clusterIPs").index(index).invalid(BadValue::list(&spec.cluster_ips), detail));
        }
    }
    errors
}

fn check_cluster(spec: &ServiceSpec, cluster: &[Family]) -> ErrorList {
    let mut errors = ErrorList::new();
    if spec.ip_family_policy.as_deref() == Some(REQUIRE) && cluster.len() < 2 {
        let detail = "this cluster is not configured for dual-stack services";
        errors.push(spec_path("ipFamilyPolicy").invalid(BadValue::named(REQUIRE), detail));
    }
    for (index, family) in spec.ip_families.iter().enumerate() {
        if Family::parse(family).is_some_and(|family| !cluster.contains(&family)) {
            let at = spec_path("ipFamilies").index(index);
            errors.push(at.invalid(BadValue::named(family), "not configured on this cluster"));
        }
    }
    errors
}

/// The default family, and with a dual policy the other one where there is one.
fn complete(spec: &mut ServiceSpec, default: Family, available: &[Family]) {
    if spec.ip_families.is_empty() {
        spec.ip_families.push(default.as_str().to_owned());
    }
    if is_single(spec) || spec.ip_families.len() != 1 {
        return;
    }
    let other = spec.ip_families.first().and_then(|family| Family::parse(family)).map(Family::other);
    if let Some(other) = other.filter(|other| available.contains(other)) {
        spec.ip_families.push(other.as_str().to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(policy: Option<&str>, ips: &[&str], families: &[&str]) -> ServiceSpec {
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        ServiceSpec {
            type_: "ClusterIP".into(),
            ip_family_policy: policy.map(str::to_owned),
            cluster_ip: ips.first().copied().unwrap_or_default().to_owned(),
            cluster_ips: list(ips),
            ip_families: list(families),
            ..ServiceSpec::default()
        }
    }

    #[test]
    fn families_follow_policy_addresses_and_cluster() {
        let (single, dual) = (&[Family::V4][..], &[Family::V4, Family::V6][..]);
        let cases = [
            ("bare", spec(None, &[], &[]), single, Ok(vec!["IPv4"])),
            ("prefer, single cluster", spec(Some(PREFER), &[], &[]), single, Ok(vec!["IPv4"])),
            ("prefer, dual cluster", spec(Some(PREFER), &[], &[]), dual, Ok(vec!["IPv4", "IPv6"])),
            ("require the other first", spec(Some(REQUIRE), &[], &["IPv6"]), dual, Ok(vec!["IPv6", "IPv4"])),
            ("by address", spec(None, &["fd00::5"], &[]), dual, Ok(vec!["IPv6"])),
            ("headless without selector", spec(None, &["None"], &[]), single, Ok(vec!["IPv4", "IPv6"])),
            ("require, single cluster", spec(Some(REQUIRE), &[], &[]), single, Err("not configured for dual-stack")),
            ("no such family", spec(None, &[], &["IPv6"]), single, Err("not configured on this cluster")),
            ("no such address", spec(None, &["fd00::5"], &[]), single, Err("IPv6 is not configured on this cluster")),
            ("two for one", spec(Some(SINGLE), &[], &["IPv4", "IPv6"]), dual, Err("when multiple IP families")),
            ("wrong family", spec(None, &["10.0.0.1"], &["IPv6"]), dual, Err("as indicated by `ipFamilies[0]`")),
        ];
        for (name, mut spec, cluster, expected) in cases {
            match (fill_in(&mut spec, None, cluster, &Gates::default()), expected) {
                (Ok(()), Ok(families)) => assert_eq!(spec.ip_families, families, "{name}"),
                (Err(errors), Err(text)) => assert!(errors.to_string().contains(text), "{name}: {errors}"),
                (outcome, _) => panic!("{name}: {outcome:?}"),
            }
        }
    }
}
