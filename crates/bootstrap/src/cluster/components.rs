//! The processes of a cluster: for each one its flags, health endpoint and identity, once. Processes, static Pods and
//! systemd units are all made from this table.

use super::settings::{Layout, Settings};

/// A process of the control plane.
pub struct Component {
    /// Its name and that of its binary.
    pub name: &'static str,
    /// The kubeconfig it uses; empty for none.
    pub kubeconfig: &'static str,
    /// The port of its health endpoint on the loopback address; 0 for the API server's own.
    pub health_port: u16,
    /// The path that says whether it is alive.
    pub liveness: &'static str,
    /// The path that says whether it is ready.
    pub readiness: &'static str,
    /// What it asks of a CPU, for its static Pod.
    pub cpu: &'static str,
    /// Its flags.
    pub flags: fn(&Settings, &Layout) -> Vec<String>,
}

/// The control plane, in starting order.
pub const COMPONENTS: &[Component] = &[
    Component {
        name: "kube-apiserver",
        kubeconfig: "",
        health_port: 0,
        liveness: "/livez",
        readiness: "/readyz",
        cpu: "250m",
        flags: api_server,
    },
    Component {
        name: "kube-controller-manager",
        kubeconfig: "controller-manager.conf",
        health_port: 10257,
        liveness: "/healthz",
        readiness: "/healthz",
        cpu: "200m",
        flags: controller_manager,
    },
    Component {
        name: "kube-scheduler",
        kubeconfig: "scheduler.conf",
        health_port: 10259,
        liveness: "/livez",
        readiness: "/readyz",
        cpu: "100m",
        flags: scheduler,
    },
];

impl Component {
    /// Its command line after the program, sorted, with the settings' own flags behind.
    #[must_use]
    pub fn arguments(&self, settings: &Settings, layout: &Layout) -> Vec<String> {
        let mut arguments = (self.flags)(settings, layout);
        arguments.sort();
        settings.with_extra_flags(self.name, arguments)
    }
}

fn flag(name: &str, value: impl std::fmt::Display) -> String {
    format!("--{name}={value}")
}

fn api_server(settings: &Settings, layout: &Layout) -> Vec<String> {
    let pki = |file: &str| layout.pki().join(file).display().to_string();
    let mut flags = vec![
        flag("advertise-address", settings.api_address()),
        flag("allow-privileged", true),
        flag("authorization-mode", "Node,RBAC"),
        flag("client-ca-file", pki("ca.crt")),
        flag("enable-admission-plugins", "NodeRestriction"),
        flag("enable-bootstrap-token-auth", true),
        flag("kubelet-client-certificate", pki("apiserver-kubelet-client.crt")),
        flag("kubelet-client-key", pki("apiserver-kubelet-client.key")),
        flag("kubelet-preferred-address-types", "InternalIP,ExternalIP,Hostname"),
        flag("proxy-client-cert-file", pki("front-proxy-client.crt")),
        flag("proxy-client-key-file", pki("front-proxy-client.key")),
        flag("requestheader-allowed-names", "front-proxy-client"),
        flag("requestheader-client-ca-file", pki("front-proxy-ca.crt")),
        flag("requestheader-extra-headers-prefix", "X-Remote-Extra-"),
        flag("requestheader-group-headers", "X-Remote-Group"),
        flag("requestheader-username-headers", "X-Remote-User"),
        flag("secure-port", settings.api_port),
        flag("service-account-issuer", format_args!("https://kubernetes.default.svc.{}", settings.dns_domain)),
        flag("service-account-key-file", pki("sa.pub")),
        flag("service-account-signing-key-file", pki("sa.key")),
        flag("service-cluster-ip-range", &settings.service_network),
        flag("tls-cert-file", pki("apiserver.crt")),
        flag("tls-private-key-file", pki("apiserver.key")),
    ];
    if settings.etcd_servers.is_empty() {
        flags.push(flag("embedded-storage-dir", layout.store().display()));
    } else {
        flags.push(flag("etcd-servers", &settings.etcd_servers));
        if settings.etcd_servers.contains("https:") {
            flags.push(flag("etcd-cafile", pki("etcd/ca.crt")));
            flags.push(flag("etcd-certfile", pki("apiserver-etcd-client.crt")));
            flags.push(flag("etcd-keyfile", pki("apiserver-etcd-client.key")));
        }
    }
    flags
}

fn delegated(layout: &Layout, kubeconfig: &str) -> Vec<String> {
    let path = layout.kubeconfig(kubeconfig).display().to_string();
    vec![
        flag("authentication-kubeconfig", &path),
        flag("authorization-kubeconfig", &path),
        flag("bind-address", "127.0.0.1"),
        flag("kubeconfig", &path),
        flag("leader-elect", true),
    ]
}

fn controller_manager(settings: &Settings, layout: &Layout) -> Vec<String> {
    let pki = |file: &str| layout.pki().join(file).display().to_string();
    let mut flags = delegated(layout, "controller-manager.conf");
    flags.extend([
        flag("allocate-node-cidrs", true),
        flag("client-ca-file", pki("ca.crt")),
        flag("cluster-cidr", settings.cluster_cidr()),
        flag("cluster-name", "kubernetes"),
        flag("cluster-signing-cert-file", pki("ca.crt")),
        flag("cluster-signing-key-file", pki("ca.key")),
        flag("controllers", "*,bootstrapsigner,tokencleaner"),
        flag("requestheader-client-ca-file", pki("front-proxy-ca.crt")),
        flag("root-ca-file", pki("ca.crt")),
        flag("service-account-private-key-file", pki("sa.key")),
        flag("service-cluster-ip-range", &settings.service_network),
        flag("use-service-account-credentials", true),
    ]);
    flags
}

fn scheduler(_: &Settings, layout: &Layout) -> Vec<String> {
    delegated(layout, "scheduler.conf")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn etcd_takes_the_place_of_the_built_in_store() {
        let mut settings = Settings::new(Path::new("/var/lib/coxswain"));
        let layout = Layout::new(&settings.root);
        let api_server = &COMPONENTS[0];
        let has = |settings: &Settings, part: &str| {
            api_server.arguments(settings, &layout).iter().any(|argument| argument.starts_with(part))
        };
        assert!(has(&settings, "--embedded-storage-dir=") && !has(&settings, "--etcd-servers="));
        settings.etcd_servers = "https://127.0.0.1:2379".into();
        assert!(!has(&settings, "--embedded-storage-dir=") && has(&settings, "--etcd-cafile="));
        settings.extra_flags.push(("kube-apiserver".into(), "--v=4".into()));
        assert_eq!(api_server.arguments(&settings, &layout).last().unwrap(), "--v=4");
    }

    #[test]
    fn further_flags_take_the_place_of_those_of_their_name() {
        let own = |name: &str, further: &[&str]| {
            let mut settings = Settings::new(Path::new("/var/lib/coxswain"));
            settings.extra_flags = further.iter().map(|flag| (name.to_owned(), (*flag).to_owned())).collect();
            let component = COMPONENTS.iter().find(|component| component.name == name).unwrap();
            component.arguments(&settings, &Layout::new(&settings.root))
        };
        for (name, further, part, expected) in [
            ("kube-apiserver", vec![], "admission-plugins", vec!["--enable-admission-plugins=NodeRestriction"]),
            (
                "kube-apiserver",
                vec!["--enable-admission-plugins=A", "--enable_admission_plugins=B"],
                "plugins=",
                vec!["--enable-admission-plugins=A", "--enable_admission_plugins=B"],
            ),
            ("kube-controller-manager", vec!["--controllers=*"], "--controllers", vec!["--controllers=*"]),
            ("kube-apiserver", vec!["--authorization-config=/a"], "--authorization", vec!["--authorization-config=/a"]),
            ("kube-scheduler", vec!["--leader-elect"], "--leader-elect", vec!["--leader-elect"]),
        ] {
            let all = own(name, &further);
            let found: Vec<&str> = all.iter().map(String::as_str).filter(|flag| flag.contains(part)).collect();
            assert_eq!(found, expected, "{name} {further:?}");
        }
    }
}
