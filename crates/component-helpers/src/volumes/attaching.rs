//! The names of CSI volumes between the attach-detach controller, the kubelet and the attachers of drivers. The layout is
//! upstream's; all three compute it for themselves.

use sha2::{Digest as _, Sha256};

const CSI_PREFIX: &str = "kubernetes.io/csi/";

/// The name of a volume of a driver in the cluster, as nodes' statuses list it.
#[must_use]
pub fn unique_name(driver: &str, handle: &str) -> String {
    format!("{CSI_PREFIX}{driver}^{handle}")
}

/// The driver and the handle of a name made by [`unique_name`]. Names of drivers have no `^`.
#[must_use]
pub fn parse_unique_name(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix(CSI_PREFIX)?.split_once('^')
}

/// The name of the VolumeAttachment of a volume on a node.
#[must_use]
pub fn attachment_name(driver: &str, handle: &str, node: &str) -> String {
    let mut hash = Sha256::new();
    [handle, driver, node].iter().for_each(|part| hash.update(part.as_bytes()));
    format!("csi-{}", base::hex(&hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_upstreams() {
        let name = unique_name("csi.example.com", "vol^1");
        assert_eq!(name, "kubernetes.io/csi/csi.example.com^vol^1");
        assert_eq!(parse_unique_name(&name), Some(("csi.example.com", "vol^1")));
        assert_eq!(parse_unique_name("kubernetes.io/nfs/x"), None);
        let attachment = attachment_name("csi.example.com", "vol-1", "node-1");
        assert_eq!(attachment, "csi-b74c7fc125891ffa0d0f2e0d645733e3fae7fba3066e76500a771ea08be9da28");
    }
}
