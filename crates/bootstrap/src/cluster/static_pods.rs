//! The control plane as static Pods, in kubeadm's shape.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::components::{COMPONENTS, Component};
use super::settings::{ClusterError, Layout, Settings, file_error};

/// The version is the one that components report.
const IMAGE_TAG: &str = "v1.36.3";
/// Manifests hold no secrets, but say much about a cluster.
const MODE: u32 = 0o600;

/// What the image of a component is called.
#[must_use]
pub fn image(component: &str) -> String {
    format!("registry.k8s.io/{component}:{IMAGE_TAG}")
}

/// Gives the first node the control plane to run.
pub(super) fn install(settings: &Settings) -> Result<(), ClusterError> {
    let directory = directory(settings);
    std::fs::create_dir_all(&directory).map_err(file_error("creating", &directory))?;
    for (name, text) in static_pods(settings, &image) {
        let path = directory.join(name);
        sys::fs::write_atomic(&path, text.as_bytes(), MODE).map_err(file_error("writing", &path))?;
    }
    Ok(())
}

/// Whether the first node has been given the control plane to run.
pub(super) fn are_installed(settings: &Settings) -> bool {
    COMPONENTS.iter().any(|component| directory(settings).join(format!("{}.yaml", component.name)).exists())
}

/// Takes the control plane from the first node again.
pub(super) fn remove(settings: &Settings) -> Result<(), ClusterError> {
    for component in COMPONENTS {
        let path = directory(settings).join(format!("{}.yaml", component.name));
        if path.exists() {
            std::fs::remove_file(&path).map_err(file_error("removing", &path))?;
        }
    }
    Ok(())
}

fn directory(settings: &Settings) -> PathBuf {
    Layout::new(&settings.root).static_pods(&settings.node_name(0))
}

/// The manifests by file name, as YAML.
#[must_use]
pub fn static_pods(settings: &Settings, image: &dyn Fn(&str) -> String) -> Vec<(String, String)> {
    let layout = Layout::new(&settings.root);
    let pod = |component: &Component| {
        let manifest = manifest(component, settings, &layout, &image(component.name));
        (format!("{}.yaml", component.name), api_machinery::yaml::to_yaml(&manifest))
    };
    COMPONENTS.iter().map(pod).collect()
}

fn manifest(component: &Component, settings: &Settings, layout: &Layout, image: &str) -> Value {
    let name = component.name;
    let mut command = vec![name.to_owned()];
    command.extend(component.arguments(settings, layout));
    let (volumes, mounts) = volumes(component, settings, layout, &Path::exists);
    let mut annotations = serde_json::Map::new();
    if component.health_port == 0 {
        let endpoint = format!("{}:{}", settings.api_address(), settings.api_port);
        annotations.insert("kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint".into(), endpoint.into());
    }
    let mut container = json!({
        "command": command,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "livenessProbe": probe(component, settings, component.liveness, 10, 8, 10),
        "name": name,
        "ports": [{"containerPort": port(component, settings), "name": "probe-port", "protocol": "TCP"}],
        "resources": {"requests": {"cpu": component.cpu}},
        "startupProbe": probe(component, settings, component.liveness, 10, 24, 10),
        "volumeMounts": mounts,
    });
    if component.readiness != component.liveness {
        container["readinessProbe"] = probe(component, settings, component.readiness, 0, 3, 1);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "annotations": annotations,
            "labels": {"component": name, "tier": "control-plane"},
            "name": name,
            "namespace": "kube-system",
        },
        "spec": {
            "containers": [container],
            "hostNetwork": true,
            "priority": 2_000_001_000,
            "priorityClassName": "system-node-critical",
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "volumes": volumes,
        },
        "status": {},
    })
}

fn port(component: &Component, settings: &Settings) -> u16 {
    if component.health_port == 0 { settings.api_port } else { component.health_port }
}

fn probe(component: &Component, settings: &Settings, path: &str, delay: u32, failures: u32, period: u32) -> Value {
    let host = if component.health_port == 0 { settings.api_address().to_string() } else { "127.0.0.1".into() };
    json!({
        "failureThreshold": failures,
        "httpGet": {"host": host, "path": path, "port": "probe-port", "scheme": "HTTPS"},
        "initialDelaySeconds": delay,
        "periodSeconds": period,
        "timeoutSeconds": 15,
    })
}

/// Where machines keep authorities beside `/etc/ssl/certs`, whose files may be links to there.
const AUTHORITIES: [&str; 5] = [
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/ca-certificates",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
];

/// The volumes and their mounts, each at the same path inside as outside. `has` says what the machine has.
fn volumes(
    component: &Component,
    settings: &Settings,
    layout: &Layout,
    has: &dyn Fn(&Path) -> bool,
) -> (Vec<Value>, Vec<Value>) {
    let mut places = Vec::new();
    if component.name != "kube-scheduler" {
        places.push(("ca-certs".to_owned(), PathBuf::from("/etc/ssl/certs"), "DirectoryOrCreate", true));
        places.push(("k8s-certs".to_owned(), layout.pki(), "DirectoryOrCreate", true));
        for path in AUTHORITIES.map(Path::new).into_iter().filter(|path| has(path)) {
            let name = path.display().to_string().trim_start_matches('/').replace('/', "-");
            places.push((name, path.to_owned(), "DirectoryOrCreate", true));
        }
    }
    if !component.kubeconfig.is_empty() {
        places.push(("kubeconfig".to_owned(), layout.kubeconfig(component.kubeconfig), "FileOrCreate", true));
    }
    if component.health_port == 0 && settings.etcd_servers.is_empty() {
        places.push(("store".to_owned(), layout.store(), "DirectoryOrCreate", false));
    }
    places.sort();
    let volume = |(name, path, kind, _): &(String, PathBuf, &str, bool)| json!({"hostPath": {"path": path.display().to_string(), "type": kind}, "name": name});
    let mount = |(name, path, _, read_only): &(String, PathBuf, &str, bool)| json!({"mountPath": path.display().to_string(), "name": name, "readOnly": read_only});
    (places.iter().map(volume).collect(), places.iter().map(mount).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_come_and_go() {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings::new(dir.path());
        assert!(!are_installed(&settings));
        install(&settings).unwrap();
        assert!(are_installed(&settings));
        remove(&settings).unwrap();
        assert!(!are_installed(&settings));
    }

    #[test]
    fn authorities_of_the_machine_are_mounted_where_it_has_them() {
        let settings = Settings::new(Path::new("/var/lib/coxswain"));
        let layout = Layout::new(&settings.root);
        let names = |component: &Component, has: &dyn Fn(&Path) -> bool| {
            let (volumes, mounts) = volumes(component, &settings, &layout, has);
            assert_eq!(volumes.len(), mounts.len());
            let name = |volume: Value| volume["name"].as_str().unwrap_or_default().to_owned();
            volumes.into_iter().map(name).filter(|name| name.contains("ca-") || name.contains("pki")).collect()
        };
        let debian = |path: &Path| path.starts_with("/usr");
        let fedora = |path: &Path| path.starts_with("/etc/pki");
        let none: Vec<String> = Vec::new();
        for component in COMPONENTS {
            let of_debian: Vec<String> = names(component, &debian);
            if component.name == "kube-scheduler" {
                assert_eq!(of_debian, none);
                continue;
            }
            assert_eq!(of_debian, ["ca-certs", "usr-local-share-ca-certificates", "usr-share-ca-certificates"]);
            assert_eq!(names(component, &fedora), ["ca-certs", "etc-pki-ca-trust", "etc-pki-tls-certs"]);
            assert_eq!(names(component, &|_| false), ["ca-certs"]);
        }
    }

    #[test]
    fn manifests_are_pods_that_decode_strictly() {
        let settings = Settings::new(Path::new("/var/lib/coxswain"));
        let pods = static_pods(&settings, &|name| format!("registry.k8s.io/{name}:v1.36.3"));
        assert_eq!(pods.len(), COMPONENTS.len());
        for (file, text) in pods {
            let value = api_machinery::yaml::parse(&text).unwrap();
            let json = api_machinery::json::encode_value(&value.value);
            let (pod, decoded) = api_machinery::object::from_json::<api_types::core_v1::Pod>(json.as_bytes()).unwrap();
            assert_eq!(decoded.problems, Vec::<String>::new(), "{file}");
            assert_eq!(file, format!("{}.yaml", pod.spec.containers[0].name));
            assert!(pod.spec.host_network);
        }
    }
}
