//! The certificates of a cluster as kubeadm lays them out: one table, from which files are made, checked and renewed.

use std::net::IpAddr;
use std::time::Duration;

use crate::alt_names::AltNames;
use crate::authority::CertificateSpec;
use crate::key::KeyAlgorithm;
use crate::name::Name;
use crate::usage::Purpose;

/// Lifetime of leaf certificates: 365 days.
pub const LEAF_VALIDITY: Duration = Duration::from_secs(8760 * 3600);
/// Lifetime of CAs: ten times 365 days.
pub const CA_VALIDITY: Duration = Duration::from_secs(87_600 * 3600);

/// The cluster's certificate authorities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Authority {
    /// `ca`: API server, kubelets, and all users with certificates.
    Cluster,
    /// `front-proxy-ca`: aggregation.
    FrontProxy,
    /// `etcd/ca`: everything that speaks to etcd.
    Etcd,
}

impl Authority {
    /// All, in the order they are made.
    pub const ALL: [Self; 3] = [Self::Cluster, Self::FrontProxy, Self::Etcd];

    /// Name in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cluster => "ca",
            Self::FrontProxy => "front-proxy-ca",
            Self::Etcd => "etcd-ca",
        }
    }

    /// Path below the certificates directory, without extension.
    #[must_use]
    pub const fn base_path(self) -> &'static str {
        match self {
            Self::Cluster => "ca",
            Self::FrontProxy => "front-proxy-ca",
            Self::Etcd => "etcd/ca",
        }
    }

    /// Common name.
    #[must_use]
    pub const fn common_name(self) -> &'static str {
        match self {
            Self::Cluster => "kubernetes",
            Self::FrontProxy => "front-proxy-ca",
            Self::Etcd => "etcd-ca",
        }
    }
}

/// The common name of a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommonName {
    /// Always this.
    Fixed(&'static str),
    /// The node's name.
    NodeName,
    /// `system:node:` and the node's name.
    NodeUser,
}

/// Which alternative names a leaf carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// None.
    None,
    /// The API server's.
    ApiServer,
    /// The etcd server's.
    EtcdServer,
    /// The etcd peer's.
    EtcdPeer,
}

/// One leaf of the layout.
#[derive(Debug, Clone, Copy)]
pub struct Leaf {
    /// Name in messages and renewal commands.
    pub name: &'static str,
    /// Path below the certificates directory, without extension; for users of kubeconfigs the file's name instead.
    pub path: &'static str,
    /// Who signs.
    pub authority: Authority,
    /// Common name.
    pub common_name: CommonName,
    /// Organizations.
    pub organizations: &'static [&'static str],
    /// Whether it serves TLS.
    pub server: bool,
    /// Whether it authenticates to servers.
    pub client: bool,
    /// Alternative names.
    pub names: Names,
}

const CLIENT: Leaf = Leaf {
    name: "",
    path: "",
    authority: Authority::Cluster,
    common_name: CommonName::NodeName,
    organizations: &[],
    server: false,
    client: true,
    names: Names::None,
};

/// The leaves kept as `{path}.crt` and `{path}.key`.
pub const LEAVES: &[Leaf] = &[
    Leaf {
        name: "apiserver",
        path: "apiserver",
        common_name: CommonName::Fixed("kube-apiserver"),
        server: true,
        client: false,
        names: Names::ApiServer,
        ..CLIENT
    },
    Leaf {
        name: "apiserver-kubelet-client",
        path: "apiserver-kubelet-client",
        common_name: CommonName::Fixed("kube-apiserver-kubelet-client"),
        ..CLIENT
    },
    Leaf {
        name: "front-proxy-client",
        path: "front-proxy-client",
        authority: Authority::FrontProxy,
        common_name: CommonName::Fixed("front-proxy-client"),
        ..CLIENT
    },
    Leaf {
        name: "etcd-server",
        path: "etcd/server",
        authority: Authority::Etcd,
        server: true,
        names: Names::EtcdServer,
        ..CLIENT
    },
    Leaf {
        name: "etcd-peer",
        path: "etcd/peer",
        authority: Authority::Etcd,
        server: true,
        names: Names::EtcdPeer,
        ..CLIENT
    },
    Leaf {
        name: "etcd-healthcheck-client",
        path: "etcd/healthcheck-client",
        authority: Authority::Etcd,
        common_name: CommonName::Fixed("kube-etcd-healthcheck-client"),
        ..CLIENT
    },
    Leaf {
        name: "apiserver-etcd-client",
        path: "apiserver-etcd-client",
        authority: Authority::Etcd,
        common_name: CommonName::Fixed("kube-apiserver-etcd-client"),
        ..CLIENT
    },
];

/// The users whose certificates are embedded in kubeconfigs rather than kept as files.
pub const USERS: &[Leaf] = &[
    Leaf {
        name: "admin.conf",
        path: "admin.conf",
        common_name: CommonName::Fixed("kubernetes-admin"),
        organizations: &["kubeadm:cluster-admins"],
        ..CLIENT
    },
    Leaf {
        name: "super-admin.conf",
        path: "super-admin.conf",
        common_name: CommonName::Fixed("kubernetes-super-admin"),
        organizations: &["system:masters"],
        ..CLIENT
    },
    Leaf {
        name: "controller-manager.conf",
        path: "controller-manager.conf",
        common_name: CommonName::Fixed("system:kube-controller-manager"),
        ..CLIENT
    },
    Leaf {
        name: "scheduler.conf",
        path: "scheduler.conf",
        common_name: CommonName::Fixed("system:kube-scheduler"),
        ..CLIENT
    },
    Leaf {
        name: "kubelet.conf",
        path: "kubelet.conf",
        common_name: CommonName::NodeUser,
        organizations: &["system:nodes"],
        ..CLIENT
    },
    // kubeadm runs kube-proxy as a pod with a service account; hosts that run it as a service need this one.
    Leaf {
        name: "kube-proxy.conf",
        path: "kube-proxy.conf",
        common_name: CommonName::Fixed("system:kube-proxy"),
        ..CLIENT
    },
];

/// Where etcd's certificates come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EtcdPki {
    /// etcd runs on the control plane nodes and its certificates are made here.
    #[default]
    Stacked,
    /// Someone else's; nothing is made.
    External,
}

/// What the layout depends on.
#[derive(Debug, Clone)]
pub struct PkiConfig {
    /// This node's name.
    pub node_name: String,
    /// The address the API server is reached at.
    pub advertise_address: IpAddr,
    /// First address of the service range.
    pub service_address: IpAddr,
    /// Cluster DNS domain, usually `cluster.local`.
    pub dns_domain: String,
    /// Host of the shared control plane endpoint, without port; empty for none.
    pub control_plane_host: String,
    /// More hosts for the API server's certificate.
    pub api_server_hosts: Vec<String>,
    /// More hosts for etcd's serving certificate.
    pub etcd_server_hosts: Vec<String>,
    /// More hosts for etcd's peer certificate.
    pub etcd_peer_hosts: Vec<String>,
    /// Where etcd's certificates come from.
    pub etcd: EtcdPki,
    /// Algorithm of new keys.
    pub key_algorithm: KeyAlgorithm,
    /// Lifetime of new leaves.
    pub leaf_validity: Duration,
    /// Lifetime of new CAs.
    pub ca_validity: Duration,
}

impl PkiConfig {
    /// kubeadm's defaults for a node.
    #[must_use]
    pub fn new(node_name: &str, advertise_address: IpAddr, service_address: IpAddr) -> Self {
        Self {
            node_name: node_name.to_owned(),
            advertise_address,
            service_address,
            dns_domain: "cluster.local".to_owned(),
            control_plane_host: String::new(),
            api_server_hosts: Vec::new(),
            etcd_server_hosts: Vec::new(),
            etcd_peer_hosts: Vec::new(),
            etcd: EtcdPki::Stacked,
            key_algorithm: KeyAlgorithm::default(),
            leaf_validity: LEAF_VALIDITY,
            ca_validity: CA_VALIDITY,
        }
    }

    /// What a leaf of the table says on this node.
    #[must_use]
    pub fn spec(&self, leaf: &Leaf) -> CertificateSpec {
        let common_name = match leaf.common_name {
            CommonName::Fixed(name) => name.to_owned(),
            CommonName::NodeName => self.node_name.clone(),
            CommonName::NodeUser => format!("system:node:{}", self.node_name),
        };
        let organizations: Vec<String> = leaf.organizations.iter().map(|&name| name.to_owned()).collect();
        let purposes = [(leaf.server, Purpose::server_auth()), (leaf.client, Purpose::client_auth())];
        let purposes = purposes.into_iter().filter(|(wanted, _)| *wanted).map(|(_, purpose)| purpose).collect();
        let subject = Name::new(&common_name, &organizations);
        CertificateSpec::leaf(subject, self.alt_names(leaf.names), purposes, self.leaf_validity)
    }

    fn alt_names(&self, names: Names) -> AltNames {
        let mut out = AltNames::default();
        let hosts: &[String] = match names {
            Names::None => return out,
            Names::ApiServer => &self.api_server_hosts,
            Names::EtcdServer => &self.etcd_server_hosts,
            Names::EtcdPeer => &self.etcd_peer_hosts,
        };
        out.dns.push(self.node_name.clone());
        out.ips.push(self.advertise_address);
        if names == Names::ApiServer {
            out.dns.extend(["kubernetes", "kubernetes.default", "kubernetes.default.svc"].map(str::to_owned));
            out.dns.push(format!("kubernetes.default.svc.{}", self.dns_domain));
            out.ips.push(self.service_address);
            if !self.control_plane_host.is_empty() {
                out.push_host(&self.control_plane_host);
            }
        } else {
            out.dns.push("localhost".to_owned());
            out.ips.extend([IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1_u16])]);
        }
        hosts.iter().for_each(|host| out.push_host(host));
        out.normalize();
        out
    }

    /// The authorities this cluster makes itself.
    pub fn authorities(&self) -> impl Iterator<Item = Authority> {
        let external = self.etcd == EtcdPki::External;
        Authority::ALL.into_iter().filter(move |authority| !(external && *authority == Authority::Etcd))
    }

    /// The leaves this cluster makes itself.
    pub fn leaves(&self) -> impl Iterator<Item = &'static Leaf> {
        let external = self.etcd == EtcdPki::External;
        LEAVES.iter().filter(move |leaf| !(external && leaf.authority == Authority::Etcd))
    }
}
