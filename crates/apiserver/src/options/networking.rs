//! The flags of Services.

use std::net::{IpAddr, Ipv4Addr};

use component_base::flags::{Errors, Options};

use crate::config::{EndpointReconciler, ServicesConfig};

/// The range of a server that is given none.
const DEFAULT_RANGE: (IpAddr, u8) = (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), 24);
/// Bits of a host part that holds eight addresses, the least that makes sense.
const LEAST_HOST_BITS: u8 = 3;

pub(super) fn read(options: &Options, errors: &mut Errors) -> ServicesConfig {
    let reconciler = match options.string("endpoint-reconciler-type") {
        "lease" | "" => EndpointReconciler::Lease,
        "master-count" => EndpointReconciler::MasterCount,
        "none" => EndpointReconciler::None,
        other => {
            errors.push(format!(
                "--endpoint-reconciler-type {other:?} invalid, allowed values: master-count, lease, none"
            ));
            EndpointReconciler::None
        }
    };
    let count = options.int("apiserver-count");
    errors.check(count > 0, format!("--apiserver-count should be a positive number, but value '{count}' provided"));
    let node_ports = node_ports(options.string("service-node-port-range"), errors);
    ServicesConfig {
        cluster_ip_ranges: ranges(options.string("service-cluster-ip-range"), errors),
        kubernetes_node_port: kubernetes_node_port(options.int("kubernetes-service-node-port"), node_ports, errors),
        node_ports,
        reconciler,
        apiserver_count: usize::try_from(count).unwrap_or(1),
    }
}

fn ranges(text: &str, errors: &mut Errors) -> Vec<(IpAddr, u8)> {
    if text.is_empty() {
        return vec![DEFAULT_RANGE];
    }
    let parts: Vec<&str> = text.split(',').collect();
    errors.check(parts.len() <= 2, "--service-cluster-ip-range must not contain more than two entries");
    let mut ranges = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let Some((address, bits)) = cidr(part) else {
            let what = if index == 0 { "is not a valid cidr" } else { "is not an ip net" };
            errors.push(format!("service-cluster-ip-range[{index}] {what}"));
            continue;
        };
        let host_bits = if address.is_ipv4() { 32 - bits } else { 128 - bits };
        errors.check(host_bits >= LEAST_HOST_BITS, "the service cluster IP range must be at least 8 IP addresses");
        ranges.push((address, bits));
    }
    if let [(one, _), (other, _)] = ranges.as_slice() {
        errors.check(
            one.is_ipv4() != other.is_ipv4(),
            "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family",
        );
    }
    ranges
}

/// The network address and the bits of a range.
fn cidr(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = text.trim().split_once('/')?;
    let (address, bits): (IpAddr, u8) = (address.parse().ok()?, bits.parse().ok()?);
    Some(match address {
        IpAddr::V4(address) if bits <= 32 => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            (IpAddr::V4((address.to_bits() & mask).into()), bits)
        }
        IpAddr::V6(address) if bits <= 128 => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            (IpAddr::V6((address.to_bits() & mask).into()), bits)
        }
        _ => return None,
    })
}

/// The ports of a server that is given none.
const DEFAULT_NODE_PORTS: (u16, u16) = (30_000, 32_767);

fn node_ports(text: &str, errors: &mut Errors) -> (u16, u16) {
    if text.trim().is_empty() {
        return DEFAULT_NODE_PORTS;
    }
    let range = text.split_once('-').or_else(|| text.split_once('+')).and_then(|(from, to)| {
        let from: u16 = from.trim().parse().ok()?;
        let to: u16 = to.trim().parse().ok()?;
        let to = if text.contains('+') { from.checked_add(to)? } else { to };
        (from > 0 && from <= to).then_some((from, to))
    });
    range.unwrap_or_else(|| {
        errors
            .push(format!("invalid argument {text:?} for \"--service-node-port-range\" flag: not a valid port range"));
        DEFAULT_NODE_PORTS
    })
}

fn kubernetes_node_port(port: i64, range: (u16, u16), errors: &mut Errors) -> u16 {
    let Ok(port) = u16::try_from(port) else {
        errors.push(format!(
            "--kubernetes-service-node-port {port} must be between 0 and 65535, inclusive. If 0, the Kubernetes master \
             service will be of type ClusterIP"
        ));
        return 0;
    };
    if port > 0 && !(range.0..=range.1).contains(&port) {
        errors.push(format!("kubernetes service node port range {}-{} doesn't contain {port}", range.0, range.1));
    }
    port
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_networks() {
        let read = |text: &str| {
            let mut errors = Errors::new();
            let ranges = ranges(text, &mut errors);
            (ranges, errors.into_result().err().map(|error| error.to_string()))
        };
        assert_eq!(read("").0, [DEFAULT_RANGE]);
        let (both, problem) = read("10.96.0.7/12,fd00::1/112");
        assert_eq!(
            (both[0].0.to_string(), both[1].0.to_string(), problem),
            ("10.96.0.0".into(), "fd00::".into(), None)
        );
        assert!(read("10.0.0.0/30").1.unwrap().contains("at least 8 IP addresses"));
        assert!(read("10.0.0.0/24,10.1.0.0/24").1.unwrap().contains("different IP family"));
        assert_eq!(read("x").1.as_deref(), Some("service-cluster-ip-range[0] is not a valid cidr"));
    }

    #[test]
    fn ports_are_ranges() {
        let mut errors = Errors::new();
        assert_eq!(node_ports("30000-32767", &mut errors), (30_000, 32_767));
        assert_eq!(node_ports("30000+10", &mut errors), (30_000, 30_010));
        assert_eq!(node_ports(" ", &mut errors), DEFAULT_NODE_PORTS);
        assert!(errors.is_empty());
        node_ports("9-1", &mut errors);
        assert!(!errors.is_empty());
    }
}
