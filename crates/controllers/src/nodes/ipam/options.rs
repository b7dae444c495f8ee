//! The checks of the flags about nodes' addresses, in upstream's order.

use super::cidr::Cidr;
use super::cidr_set::CidrSet;
use crate::settings::IpamSettings;

const DEFAULT_MASK_V4: u8 = 24;
const DEFAULT_MASK_V6: u8 = 64;
const MOST_RANGES: usize = 2;

/// One set for each cluster range, and the services' ranges.
///
/// # Errors
/// The first thing that is wrong.
pub(super) fn complete(settings: &IpamSettings) -> Result<(Vec<CidrSet>, Vec<Cidr>), String> {
    match settings.allocator.as_str() {
        "" | "RangeAllocator" => {}
        "CloudAllocator" => {
            return Err("--cidr-allocator-type is set to 'CloudAllocator' but cloud provider is not configured".into());
        }
        other @ ("IPAMFromCluster" | "IPAMFromCloud") => {
            return Err(format!("built-in cloud providers are disabled. The ipam {other} is not available"));
        }
        other => return Err(format!("invalid CIDR allocator type: {other}")),
    }
    let clusters = list(&settings.cluster_cidr).map(str::parse).collect::<Result<Vec<Cidr>, String>>()?;
    let both = clusters.iter().any(Cidr::is_v6) && clusters.iter().any(|range| !range.is_v6());
    if clusters.len() > 1 && !both {
        let count = clusters.len();
        return Err(format!(
            "len of ClusterCIDRs=={count} and they are not configured as dual stack (at least one from each IPFamily"
        ));
    }
    if clusters.len() > MOST_RANGES {
        return Err(format!("length of clusterCIDRs is:{} more than max allowed of 2", clusters.len()));
    }
    let services = services(&settings.service_cidr)?;
    let sets = clusters.iter().map(|cluster| set(settings, *cluster, both)).collect::<Result<Vec<_>, _>>();
    check_masks(settings, &clusters, both)?;
    if clusters.is_empty() {
        return Err("Controller: Must specify --cluster-cidr if --allocate-node-cidrs is set".to_owned());
    }
    Ok((sets?, services))
}

fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

/// The services' ranges; what cannot be read is left out with a warning, as upstream.
fn services(text: &str) -> Result<Vec<Cidr>, String> {
    let mut ranges: Vec<Cidr> = Vec::new();
    for part in list(text).take(MOST_RANGES) {
        match part.parse() {
            Ok(range) => ranges.push(range),
            Err(error) => tracing::warn!(error, range = part, "Unsuccessful parsing of service CIDR"),
        }
    }
    match ranges.as_slice() {
        [first, second] if first.is_v6() == second.is_v6() => {
            Err("serviceCIDR and secondaryServiceCIDR are not dualstack (from different IPfamiles)".to_owned())
        }
        _ => Ok(ranges),
    }
}

fn check_masks(settings: &IpamSettings, clusters: &[Cidr], both: bool) -> Result<(), String> {
    let of_family = settings.mask_v4 != 0 || settings.mask_v6 != 0;
    if both && settings.mask != 0 {
        return Err("usage of --node-cidr-mask-size is not allowed with dual-stack clusters".to_owned());
    }
    if settings.mask != 0 && of_family {
        return Err("usage of --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 is not allowed if \
                    --node-cidr-mask-size is set. For dual-stack clusters please unset it and use IPFamily specific \
                    flags"
            .to_owned());
    }
    match clusters {
        [only] if only.is_v6() && settings.mask_v4 != 0 => {
            Err("usage of --node-cidr-mask-size-ipv4 is not allowed for a single-stack IPv6 cluster".to_owned())
        }
        [only] if !only.is_v6() && settings.mask_v6 != 0 => {
            Err("usage of --node-cidr-mask-size-ipv6 is not allowed for a single-stack IPv4 cluster".to_owned())
        }
        _ => Ok(()),
    }
}

fn set(settings: &IpamSettings, cluster: Cidr, both: bool) -> Result<CidrSet, String> {
    let (own, default) =
        if cluster.is_v6() { (settings.mask_v6, DEFAULT_MASK_V6) } else { (settings.mask_v4, DEFAULT_MASK_V4) };
    let general = if both { 0 } else { settings.mask };
    let mask = [own, general, default].into_iter().find(|mask| *mask != 0).unwrap_or(default);
    if mask < cluster.mask() || mask > cluster.width() {
        return Err("Controller: Invalid --cluster-cidr, mask size of cluster CIDR must be less than or equal to \
                    --node-cidr-mask-size configured for CIDR family"
            .to_owned());
    }
    CidrSet::new(cluster, mask)
}
