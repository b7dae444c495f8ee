//! The checks of the flags about nodes' addresses, in upstream's order.

use super::cidr::{Cidr, CidrError};
use super::cidr_set::{CidrSet, CidrSetError};
use crate::settings::IpamSettings;

const DEFAULT_MASK_V4: u8 = 24;
const DEFAULT_MASK_V6: u8 = 64;
const MOST_RANGES: usize = 2;

/// What is wrong with the flags, in upstream's words.
#[derive(Debug, thiserror::Error)]
pub(super) enum OptionsError {
    #[error("--cidr-allocator-type is set to 'CloudAllocator' but cloud provider is not configured")]
    NoCloud,
    #[error("built-in cloud providers are disabled. The ipam {0} is not available")]
    BuiltInCloud(String),
    #[error("invalid CIDR allocator type: {0}")]
    Allocator(String),
    #[error(transparent)]
    Cidr(#[from] CidrError),
    #[error(transparent)]
    Set(#[from] CidrSetError),
    #[error("len of ClusterCIDRs=={0} and they are not configured as dual stack (at least one from each IPFamily")]
    NotDualStack(usize),
    #[error("length of clusterCIDRs is:{0} more than max allowed of 2")]
    TooManyClusters(usize),
    #[error("Controller: Must specify --cluster-cidr if --allocate-node-cidrs is set")]
    NoClusters,
    #[error("serviceCIDR and secondaryServiceCIDR are not dualstack (from different IPfamiles)")]
    Services,
    #[error("usage of --node-cidr-mask-size is not allowed with dual-stack clusters")]
    MaskOfBoth,
    #[error(
        "usage of --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 is not allowed if --node-cidr-mask-size is \
         set. For dual-stack clusters please unset it and use IPFamily specific flags"
    )]
    Masks,
    #[error("usage of --node-cidr-mask-size-{mask} is not allowed for a single-stack {cluster} cluster")]
    MaskOfOther { mask: &'static str, cluster: &'static str },
    #[error(
        "Controller: Invalid --cluster-cidr, mask size of cluster CIDR must be less than or equal to \
         --node-cidr-mask-size configured for CIDR family"
    )]
    MaskOfCluster,
}

/// One set for each cluster range, and the services' ranges.
///
/// # Errors
/// The first thing that is wrong.
pub(super) fn complete(settings: &IpamSettings) -> Result<(Vec<CidrSet>, Vec<Cidr>), OptionsError> {
    match settings.allocator.as_str() {
        "" | "RangeAllocator" => {}
        "CloudAllocator" => {
            return Err(OptionsError::NoCloud);
        }
        other @ ("IPAMFromCluster" | "IPAMFromCloud") => {
            return Err(OptionsError::BuiltInCloud(other.to_owned()));
        }
        other => return Err(OptionsError::Allocator(other.to_owned())),
    }
    let clusters = list(&settings.cluster_cidr).map(str::parse).collect::<Result<Vec<Cidr>, CidrError>>()?;
    let both = clusters.iter().any(Cidr::is_v6) && clusters.iter().any(|range| !range.is_v6());
    if clusters.len() > 1 && !both {
        return Err(OptionsError::NotDualStack(clusters.len()));
    }
    if clusters.len() > MOST_RANGES {
        return Err(OptionsError::TooManyClusters(clusters.len()));
    }
    let services = services(&settings.service_cidr)?;
    let sets = clusters.iter().map(|cluster| set(settings, *cluster, both)).collect::<Result<Vec<_>, _>>();
    check_masks(settings, &clusters, both)?;
    if clusters.is_empty() {
        return Err(OptionsError::NoClusters);
    }
    Ok((sets?, services))
}

fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

/// The services' ranges; what cannot be read is left out with a warning, as upstream.
fn services(text: &str) -> Result<Vec<Cidr>, OptionsError> {
    let mut ranges: Vec<Cidr> = Vec::new();
    for part in list(text).take(MOST_RANGES) {
        match part.parse() {
            Ok(range) => ranges.push(range),
            Err(error) => tracing::warn!(%error, range = part, "Unsuccessful parsing of service CIDR"),
        }
    }
    match ranges.as_slice() {
        [first, second] if first.is_v6() == second.is_v6() => Err(OptionsError::Services),
        _ => Ok(ranges),
    }
}

fn check_masks(settings: &IpamSettings, clusters: &[Cidr], both: bool) -> Result<(), OptionsError> {
    let of_family = settings.mask_v4 != 0 || settings.mask_v6 != 0;
    if both && settings.mask != 0 {
        return Err(OptionsError::MaskOfBoth);
    }
    if settings.mask != 0 && of_family {
        return Err(OptionsError::Masks);
    }
    match clusters {
        [only] if only.is_v6() && settings.mask_v4 != 0 => {
            Err(OptionsError::MaskOfOther { mask: "ipv4", cluster: "IPv6" })
        }
        [only] if !only.is_v6() && settings.mask_v6 != 0 => {
            Err(OptionsError::MaskOfOther { mask: "ipv6", cluster: "IPv4" })
        }
        _ => Ok(()),
    }
}

fn set(settings: &IpamSettings, cluster: Cidr, both: bool) -> Result<CidrSet, OptionsError> {
    let (own, default) =
        if cluster.is_v6() { (settings.mask_v6, DEFAULT_MASK_V6) } else { (settings.mask_v4, DEFAULT_MASK_V4) };
    let general = if both { 0 } else { settings.mask };
    let mask = [own, general, default].into_iter().find(|mask| *mask != 0).unwrap_or(default);
    if mask < cluster.mask() || mask > cluster.width() {
        return Err(OptionsError::MaskOfCluster);
    }
    Ok(CidrSet::new(cluster, mask)?)
}
