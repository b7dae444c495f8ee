//! Whether this machine can do what the rules need.

use crate::backend::UnsupportedMachine;

/// Rewriting to an address and port by one lookup came with this version of nft ...
const NFT_AT_LEAST: [u32; 3] = [1, 0, 1];
/// ... and with this kernel.
const KERNEL_AT_LEAST: [u32; 3] = [5, 13, 0];

/// Checks what `nft --version` says, such as `nftables v1.0.6 (Lester Gooch #5)`.
///
/// # Errors
/// It is too old, or says something else.
pub(super) fn check_nft(said: &str) -> Result<(), UnsupportedMachine> {
    let version = said.split_whitespace().find_map(|word| numbers(word.strip_prefix('v')?));
    if version.is_some_and(|version| version >= NFT_AT_LEAST) {
        return Ok(());
    }
    Err(UnsupportedMachine::NftVersion(said.trim().to_owned()))
}

/// Checks a kernel's release, such as `6.1.0-18-amd64`. One that cannot be read is taken for new.
///
/// # Errors
/// It is too old.
pub(super) fn check_kernel(release: &str) -> Result<(), UnsupportedMachine> {
    match numbers(release) {
        Some(version) if version < KERNEL_AT_LEAST => Err(UnsupportedMachine::Kernel),
        _ => Ok(()),
    }
}

/// The three numbers that a version begins with; a missing last one is zero.
fn numbers(text: &str) -> Option<[u32; 3]> {
    let mut parts = text.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().ok());
    Some([parts.next()??, parts.next()??, parts.next().flatten().unwrap_or(0)])
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
            check_nft("nftables v0.9.8 (E.D.S.)\n").unwrap_err().to_string(),
            "nft version must be v1.0.1 or later (got nftables v0.9.8 (E.D.S.))"
        );
        for (release, fine) in
            [("6.18.0", true), ("5.13", true), ("5.10.0-28-amd64", false), ("4.18.0-513.el8", false), ("new", true)]
        {
            assert_eq!(check_kernel(release).is_ok(), fine, "{release}");
        }
    }
}
