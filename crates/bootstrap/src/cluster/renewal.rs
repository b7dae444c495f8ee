//! Certificates issued anew before they end, as `kubeadm certs renew all` does it: those of the control plane, kept as files
//! or within kubeconfigs. Authorities stay, as all trust them, and kubelets renew their own.

use std::time::SystemTime;

use base::Rng;

use super::kubeconfig::renew_kubeconfigs;
use super::settings::{ClusterError, Layout, Settings};

/// What is left to do, in kubeadm's words.
pub const RENEWED: &str = "Done renewing certificates. You must restart the kube-apiserver, kube-controller-manager, \
                           kube-scheduler and etcd, so that they can use the new certificates.\n";

/// Issues what is there anew, with new keys, and says what. Subjects, names and purposes stay as they are.
///
/// # Errors
/// A certificate cannot be read or issued, or a file not be written.
pub fn renew(settings: &Settings, now: SystemTime, rng: &Rng) -> Result<Vec<String>, ClusterError> {
    let pki = Layout::new(&settings.root).pki();
    let config = settings.pki(&settings.node_name(0));
    let mut renewed = Vec::new();
    for leaf in config.leaves().filter(|leaf| pki.join(format!("{}.crt", leaf.path)).exists()) {
        pki::renew(&pki, leaf, &config, now, rng)?;
        renewed.push(leaf.name.to_owned());
    }
    renewed.extend(renew_kubeconfigs(settings, now, rng)?);
    Ok(renewed)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use base::SystemClock;
    use client::Kubeconfig;
    use pki::Certificate;

    use super::super::{certificates, write_kubeconfigs};
    use super::*;

    fn ends(pem: &[u8]) -> SystemTime {
        Certificate::all_from_pem(pem).unwrap()[0].not_after()
    }

    #[test]
    fn what_the_control_plane_has_lasts_for_another_year() {
        let root = tempfile::tempdir().unwrap();
        let settings = Settings::new(&root.path().join("cluster"));
        let (clock, rng) = (SystemClock::shared(), Rng::seeded(1));
        certificates(&settings, &clock, &rng).unwrap();
        write_kubeconfigs(&settings, clock.wall(), &rng).unwrap();
        let layout = Layout::new(&settings.root);
        std::fs::remove_file(layout.kubeconfig("super-admin.conf")).unwrap();
        let files = ["ca.crt", "apiserver.crt", "etcd/peer.crt"].map(|file| layout.pki().join(file));
        let read = |path: &Path| std::fs::read(path).unwrap();
        let user = |path: &Path| Kubeconfig::read(path).unwrap().users[0].user.client_certificate_data.to_vec();
        let (admin, kubelet) =
            (layout.kubeconfig("admin.conf"), layout.node("node-1").join("etc/kubernetes/kubelet.conf"));
        let before = (files.clone().map(|path| read(&path)), user(&admin), read(&kubelet));

        let later = Duration::from_secs(300 * 86_400);
        let renewed = renew(&settings, clock.wall() + later, &rng).unwrap();
        assert!(renewed.contains(&"apiserver".to_owned()) && renewed.contains(&"admin.conf".to_owned()), "{renewed:?}");
        assert!(!renewed.contains(&"super-admin.conf".to_owned()), "what was taken away stays away");
        assert_eq!((read(&files[0]), read(&kubelet)), (before.0[0].clone(), before.2));
        for (path, old) in files.iter().zip(&before.0).skip(1) {
            assert_eq!(ends(&read(path)).duration_since(ends(old)).unwrap().as_secs() / 86_400, 300, "{path:?}");
        }
        assert_eq!(ends(&user(&admin)).duration_since(ends(&before.1)).unwrap().as_secs() / 86_400, 300);
        let report = pki::ensure(&layout.pki(), &settings.pki("node-1"), clock.wall() + later, &rng).unwrap();
        assert_eq!((report.created().count(), report.expired().count()), (0, 0), "all of it fits");
    }
}
