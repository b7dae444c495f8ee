//! What a Service has: addresses and ports.

use std::net::IpAddr;

use api_machinery::names::parse_ip_lenient;
use api_types::core_v1::ServiceSpec;

use super::families::{EXTERNAL_NAME, is_headless};
use super::{Claim, ports};

/// Its addresses as they are written; none where they mean nothing.
pub(super) fn address_texts(spec: &ServiceSpec) -> impl Iterator<Item = &String> {
    let has_some = spec.type_ != EXTERNAL_NAME && !is_headless(spec);
    spec.cluster_ips.iter().filter(move |_| has_some)
}

/// Its addresses, but for those that are none.
pub(super) fn addresses(spec: &ServiceSpec) -> impl Iterator<Item = IpAddr> {
    address_texts(spec).filter_map(|text| parse_ip_lenient(text))
}

/// All that it has.
pub(super) fn claims(spec: &ServiceSpec) -> Vec<Claim> {
    addresses(spec).map(Claim::Address).chain(ports::held_by(spec).into_iter().map(Claim::Port)).collect()
}
