//! Whether this machine can do what the proxy's rules need.

use crate::Family;

/// Rewriting to an address and port by one lookup came with this version of nft ...
const NFT_AT_LEAST: [u32; 3] = [1, 0, 1];
/// ... and with this kernel.
const KERNEL_AT_LEAST: [u32; 3] = [5, 13, 0];
/// Set to anything by whoever runs a distribution's kernel that has it all under an older number, as upstream.
pub(crate) const SKIP_KERNEL_CHECK: &str = "KUBE_PROXY_NFTABLES_SKIP_KERNEL_VERSION_CHECK";

/// Checks what `nft --version` says, such as `nftables v1.0.6 (Lester Gooch #5)`.
///
/// # Errors
/// It is too old, or says something else.
pub(crate) fn check_nft(said: &str) -> Result<(), String> {
    let version = said.split_whitespace().find_map(|word| numbers(word.strip_prefix('v')?));
    if version.is_some_and(|version| version >= NFT_AT_LEAST) {
        return Ok(());
    }
    Err(format!("nft version must be v1.0.1 or later (got {})", said.trim()))
}

/// Checks a kernel's release, such as `6.1.0-18-amd64`. One that cannot be read is taken for new.
///
/// # Errors
/// It is too old.
pub(crate) fn check_kernel(release: &str) -> Result<(), String> {
    match numbers(release) {
        Some(version) if version < KERNEL_AT_LEAST => {
            Err("kube-proxy in nftables mode requires kernel 5.13 or later".to_owned())
        }
        _ => Ok(()),
    }
}

/// The three numbers that a version begins with; a missing last one is zero.
fn numbers(text: &str) -> Option<[u32; 3]> {
    let mut parts = text.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().ok());
    Some([parts.next()??, parts.next()??, parts.next().flatten().unwrap_or(0)])
}

/// The families to run, of which the node's own comes first.
///
/// # Errors
/// The machine does not have the node's own.
pub(crate) fn families(primary: Family, has_v6: bool) -> Result<Vec<Family>, String> {
    match (primary, has_v6) {
        (Family::V4, true) => Ok(vec![Family::V4, Family::V6]),
        (Family::V6, true) => Ok(vec![Family::V6, Family::V4]),
        (Family::V4, false) => Ok(vec![Family::V4]),
        (Family::V6, false) => Err(format!("no support for primary IP family {:?}", primary.api_name())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_programs_and_kernels_are_refused() {
        for (said, fine) in [
            ("nftables v1.0.6 (Lester Gooch #5)", true),
            ("nftables v1.0.1 (Fearless Fosdick #3)", true),
            ("nftables v1.1", true),
            ("nftables v1.0.0 (Fearless Fosdick #2)", false),
            ("nftables v0.9.8 (E.D.S.)\n", false),
            ("nft: what?", false),
        ] {
            assert_eq!(check_nft(said).is_ok(), fine, "{said}");
        }
        assert_eq!(
            check_nft("nftables v0.9.8 (E.D.S.)\n").unwrap_err(),
            "nft version must be v1.0.1 or later (got nftables v0.9.8 (E.D.S.))"
        );
        for (release, fine) in
            [("6.18.0", true), ("5.13", true), ("5.10.0-28-amd64", false), ("4.18.0-513.el8", false), ("new", true)]
        {
            assert_eq!(check_kernel(release).is_ok(), fine, "{release}");
        }
    }

    #[test]
    fn the_nodes_own_family_has_to_be_there() {
        assert_eq!(families(Family::V4, false).unwrap(), [Family::V4]);
        assert_eq!(families(Family::V6, true).unwrap(), [Family::V6, Family::V4]);
        assert_eq!(families(Family::V6, false).unwrap_err(), "no support for primary IP family \"IPv6\"");
    }
}
