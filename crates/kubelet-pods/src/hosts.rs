//! `/etc/hosts` of containers.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use api_types::core_v1::{Container, HostAlias, Pod};
use node_api::cri::v1;

use crate::hostname::PodName;
use crate::interfaces::SideError;

/// Where containers look.
const PATH: &str = "/etc/hosts";
const MODE: u32 = 0o644;
/// The largest file of the machine that is passed on.
const MAX_BYTES: u64 = 4 << 20;

/// Whether a container gets the file: not if it brings its own, and not before the pod has an address.
pub(crate) fn is_wanted(pod: &Pod, container: &Container, pod_ips: &[String]) -> bool {
    let own = container.volume_mounts.iter().any(|mount| mount.mount_path.trim_end_matches('/') == PATH);
    !own && (pod.spec.host_network || !pod_ips.is_empty())
}

/// Writes the file and says how to mount it.
pub(crate) fn write(pod: &Pod, name: &PodName, pod_ips: &[String], file: &Path) -> Result<v1::Mount, SideError> {
    let content = if pod.spec.host_network {
        of_host(&machine_file(Path::new(PATH))?, &pod.spec.host_aliases)
    } else {
        of_pod(name, pod_ips, &pod.spec.host_aliases)
    };
    // Containers have the file mounted, so its content changes in place.
    let written = std::fs::write(file, content)
        .and_then(|()| std::fs::set_permissions(file, std::fs::Permissions::from_mode(MODE)));
    written.map_err(|error| SideError(format!("write {}: {error}", file.display())))?;
    Ok(v1::Mount {
        container_path: PATH.to_owned(),
        host_path: file.display().to_string(),
        selinux_relabel: true,
        ..v1::Mount::default()
    })
}

fn machine_file(path: &Path) -> Result<String, SideError> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes));
    match read {
        Ok(_) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(SideError(format!("open {}: {error}", path.display()))),
    }
}

fn of_pod(name: &PodName, pod_ips: &[String], aliases: &[HostAlias]) -> String {
    let mut text = String::from(
        "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\t\
         ip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n",
    );
    for ip in pod_ips {
        let PodName { hostname, domain } = name;
        let _ = if domain.is_empty() {
            writeln!(text, "{ip}\t{hostname}")
        } else {
            writeln!(text, "{ip}\t{hostname}.{domain}\t{hostname}")
        };
    }
    add_aliases(&mut text, aliases);
    text
}

fn of_host(machine: &str, aliases: &[HostAlias]) -> String {
    let mut text = format!("# Kubernetes-managed hosts file (host network).\n{machine}");
    add_aliases(&mut text, aliases);
    text
}

fn add_aliases(text: &mut String, aliases: &[HostAlias]) {
    if aliases.is_empty() {
        return;
    }
    text.push_str("\n# Entries added by HostAliases.\n");
    for alias in aliases {
        let _ = writeln!(text, "{}\t{}", alias.ip, alias.hostnames.join("\t"));
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::VolumeMount;

    use super::*;

    #[test]
    fn the_file_names_the_pod() {
        let name = PodName { hostname: "web".into(), domain: "db.ns.svc.x".into() };
        let aliases = [HostAlias { ip: "1.2.3.4".into(), hostnames: vec!["a".into(), "b".into()] }];
        let text = of_pod(&name, &["10.0.0.2".into(), "fd00::2".into()], &aliases);
        let expected = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n\
                        ::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\n\
                        fe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n10.0.0.2\tweb.db.ns.svc.x\tweb\n\
                        fd00::2\tweb.db.ns.svc.x\tweb\n\n# Entries added by HostAliases.\n1.2.3.4\ta\tb\n";
        assert_eq!(text, expected);
        let bare = of_pod(&PodName { hostname: "web".into(), domain: String::new() }, &["10.0.0.2".into()], &[]);
        assert!(bare.ends_with("\n10.0.0.2\tweb\n"));
        assert!(
            of_host("127.0.0.1 localhost\n", &[]).starts_with("# Kubernetes-managed hosts file (host network).\n127")
        );
    }

    #[test]
    fn a_container_may_bring_its_own() {
        let (mut pod, mut container) = (Pod::default(), Container::default());
        assert!(!is_wanted(&pod, &container, &[]));
        assert!(is_wanted(&pod, &container, &["10.0.0.2".into()]));
        pod.spec.host_network = true;
        assert!(is_wanted(&pod, &container, &[]));
        container.volume_mounts.push(VolumeMount { mount_path: "/etc/hosts".into(), ..VolumeMount::default() });
        assert!(!is_wanted(&pod, &container, &["10.0.0.2".into()]));
    }

    #[test]
    fn writing_keeps_the_inode() {
        use std::os::unix::fs::MetadataExt as _;
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("etc-hosts");
        let name = PodName { hostname: "web".into(), domain: String::new() };
        write(&Pod::default(), &name, &["10.0.0.2".into()], &file).unwrap();
        let inode = std::fs::metadata(&file).unwrap().ino();
        let mount = write(&Pod::default(), &name, &["10.0.0.3".into()], &file).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().ino(), inode);
        assert!(std::fs::read_to_string(&file).unwrap().contains("10.0.0.3\tweb"));
        assert_eq!((mount.container_path.as_str(), mount.readonly), ("/etc/hosts", false));
    }
}
