//! `resolv.conf` of pods, by DNS policy.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;

use api_types::core_v1::{Pod, PodDNSConfig};
use node_api::cri::v1;

use crate::interfaces::SideError;

/// What resolvers can take; more is left out.
const MAX_SERVERS: usize = 3;
const MAX_SEARCHES: usize = 32;
const MAX_SEARCH_CHARACTERS: usize = 2048;
const MAX_SEARCH_LENGTH: usize = 253;
/// The largest resolver file that is read.
const MAX_BYTES: u64 = 1 << 20;
/// What pods of the cluster's DNS get.
const CLUSTER_OPTIONS: &str = "ndots:5";

/// How pods of this node resolve names.
#[derive(Debug, Clone, Default)]
pub struct Dns {
    /// `clusterDNS`.
    pub servers: Vec<IpAddr>,
    /// `clusterDomain`.
    pub domain: String,
    /// `resolvConf`; nothing means that pods inherit nothing.
    pub resolver_file: Option<PathBuf>,
}

/// A pod's configuration, and what to tell its owner about it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Made {
    pub config: v1::DnsConfig,
    /// Warnings by reason.
    pub warnings: Vec<(&'static str, String)>,
    /// Whether the pod wanted the cluster's DNS and there is none.
    pub misses_cluster_dns: bool,
}

/// What is said, on the node and on the pod, when the cluster's DNS is not configured.
pub const MISSING_CLUSTER_DNS: &str = "kubelet does not have ClusterDNS IP configured and cannot create Pod \
                                              using \"ClusterFirst\" policy. Falling back to \"Default\" policy.";

impl Dns {
    /// The configuration for a pod; the machine's file is read anew.
    pub fn of_pod(&self, pod: &Pod, host_ips: &[IpAddr]) -> Result<Made, SideError> {
        let mut made = Made::default();
        let policy = self.policy(pod, &mut made);
        made.config = match policy {
            Policy::None => v1::DnsConfig::default(),
            Policy::Host => self.of_host(host_ips)?,
            Policy::Cluster => self.of_cluster(pod)?,
        };
        if let Some(wishes) = &pod.spec.dns_config {
            add_wishes(&mut made.config, wishes);
        }
        cut(&mut made);
        Ok(made)
    }

    fn policy(&self, pod: &Pod, made: &mut Made) -> Policy {
        let wanted = match pod.spec.dns_policy.as_str() {
            "None" => Policy::None,
            "Default" => Policy::Host,
            "ClusterFirstWithHostNet" => Policy::Cluster,
            _ if pod.spec.host_network => Policy::Host,
            _ => Policy::Cluster,
        };
        if wanted == Policy::Cluster && self.servers.is_empty() {
            made.misses_cluster_dns = true;
            return Policy::Host;
        }
        wanted
    }

    fn of_host(&self, host_ips: &[IpAddr]) -> Result<v1::DnsConfig, SideError> {
        if self.resolver_file.is_some() {
            return self.machine();
        }
        let loopback = |ip: &IpAddr| if ip.is_ipv4() { "127.0.0.1" } else { "::1" }.to_owned();
        let mut servers: Vec<String> = host_ips.iter().map(loopback).collect();
        if servers.is_empty() {
            servers.push("127.0.0.1".to_owned());
        }
        Ok(v1::DnsConfig { servers, searches: vec![".".to_owned()], options: Vec::new() })
    }

    fn of_cluster(&self, pod: &Pod) -> Result<v1::DnsConfig, SideError> {
        let host = self.machine()?;
        let (namespace, domain) = (&pod.metadata.namespace, &self.domain);
        let own = if domain.is_empty() {
            Vec::new()
        } else {
            vec![format!("{namespace}.svc.{domain}"), format!("svc.{domain}"), domain.clone()]
        };
        let mut searches = Vec::new();
        own.into_iter().chain(host.searches).for_each(|search| push_new(&mut searches, search));
        let servers = self.servers.iter().map(ToString::to_string).collect();
        Ok(v1::DnsConfig { servers, searches, options: vec![CLUSTER_OPTIONS.to_owned()] })
    }

    fn machine(&self) -> Result<v1::DnsConfig, SideError> {
        use std::io::Read as _;
        let Some(path) = &self.resolver_file else { return Ok(v1::DnsConfig::default()) };
        let mut text = String::new();
        let read = std::fs::File::open(path).and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text));
        read.map_err(|error| SideError(format!("open {}: {error}", path.display())))?;
        parse(&text)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    None,
    Host,
    Cluster,
}

/// Reads a resolver file: all servers, the last search list, options by name.
fn parse(text: &str) -> Result<v1::DnsConfig, SideError> {
    let mut config = v1::DnsConfig::default();
    for line in text.lines() {
        let line = line.split_once(['#', ';']).map_or(line, |(before, _)| before);
        let mut words = line.split_whitespace();
        match words.next() {
            Some("nameserver") => {
                let server = words.next().ok_or_else(|| SideError::new("nameserver list is empty "))?;
                config.servers.push(server.to_owned());
            }
            Some("search") => {
                let plain = words.filter(|word| *word != ".").map(|word| word.trim_end_matches('.').to_owned());
                config.searches = plain.collect();
            }
            Some("options") => words.for_each(|option| set_option(&mut config.options, option)),
            _ => {}
        }
    }
    Ok(config)
}

fn option_name(option: &str) -> &str {
    option.split_once(':').map_or(option, |(name, _)| name)
}

fn set_option(options: &mut Vec<String>, option: &str) {
    options.retain(|old| option_name(old) != option_name(option));
    options.push(option.to_owned());
}

fn push_new(list: &mut Vec<String>, item: String) {
    if !list.contains(&item) {
        list.push(item);
    }
}

fn add_wishes(config: &mut v1::DnsConfig, wishes: &PodDNSConfig) {
    wishes.nameservers.iter().for_each(|server| push_new(&mut config.servers, server.clone()));
    wishes.searches.iter().for_each(|search| push_new(&mut config.searches, search.clone()));
    for option in &wishes.options {
        let text = match option.value.as_deref() {
            Some(value) if !value.is_empty() => format!("{}:{value}", option.name),
            _ => option.name.clone(),
        };
        set_option(&mut config.options, &text);
    }
}

/// Leaves out what resolvers cannot take, from the end.
fn cut(made: &mut Made) {
    const REASON: &str = "DNSConfigForming";
    let config = &mut made.config;
    if config.servers.len() > MAX_SERVERS {
        config.servers.truncate(MAX_SERVERS);
        let applied = config.servers.join(" ");
        made.warnings.push((REASON, format!(
            "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: {applied}"
        )));
    }
    let before = config.searches.len();
    config.searches.retain(|search| search.len() <= MAX_SEARCH_LENGTH);
    config.searches.truncate(MAX_SEARCHES);
    while config.searches.join(" ").len() > MAX_SEARCH_CHARACTERS {
        config.searches.pop();
    }
    if config.searches.len() < before {
        let applied = config.searches.join(" ");
        made.warnings.push((REASON, format!(
            "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: {applied}"
        )));
    }
}

/// What the node is warned of at start about its own resolver file.
pub fn check_machine_file(dns: &Dns) -> Vec<String> {
    let (Some(path), Ok(config)) = (&dns.resolver_file, dns.machine()) else { return Vec::new() };
    let path = path.display();
    // The cluster's own three come in front.
    let room = if dns.domain.is_empty() { MAX_SEARCHES } else { MAX_SEARCHES - 3 };
    let mut warnings = BTreeSet::new();
    if config.searches.len() > room {
        warnings
            .insert(format!("Resolv.conf file '{path}' contains search line consisting of more than {room} domains!"));
    }
    if config.searches.iter().any(|search| search.len() > MAX_SEARCH_LENGTH) {
        warnings.insert(format!(
            "Resolv.conf file '{path}' contains a search path which length is more than allowed {MAX_SEARCH_LENGTH} chars!"
        ));
    }
    if config.searches.join(" ").len() > MAX_SEARCH_CHARACTERS {
        warnings.insert(format!(
            "Resolv.conf file '{path}' contains search line which length is more than allowed {MAX_SEARCH_CHARACTERS} chars!"
        ));
    }
    warnings.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::PodDNSConfigOption;

    use super::*;

    fn pod(policy: &str, host_network: bool) -> Pod {
        let mut pod = Pod::default();
        pod.metadata.namespace = "ns".into();
        pod.spec.dns_policy = policy.into();
        pod.spec.host_network = host_network;
        pod
    }

    fn dns(dir: &tempfile::TempDir) -> Dns {
        let file = dir.path().join("resolv.conf");
        std::fs::write(&file, "# machine\nnameserver 1.1.1.1\nsearch old\nsearch example.com. svc.cluster.local .\noptions ndots:1 edns0\noptions ndots:2\n").unwrap();
        Dns { servers: vec!["10.96.0.10".parse().unwrap()], domain: "cluster.local".into(), resolver_file: Some(file) }
    }

    fn text(made: &Made) -> String {
        let config = &made.config;
        format!("{} | {} | {}", config.servers.join(" "), config.searches.join(" "), config.options.join(" "))
    }

    #[test]
    fn policies_choose_where_names_come_from() {
        let dir = tempfile::tempdir().unwrap();
        let dns = dns(&dir);
        let cluster = "10.96.0.10 | ns.svc.cluster.local svc.cluster.local cluster.local example.com | ndots:5";
        let host = "1.1.1.1 | example.com svc.cluster.local | edns0 ndots:2";
        let cases = [
            ("ClusterFirst", false, cluster),
            ("", false, cluster),
            ("ClusterFirst", true, host),
            ("ClusterFirstWithHostNet", true, cluster),
            ("Default", false, host),
            ("None", false, " |  | "),
        ];
        for (policy, host_network, expected) in cases {
            let made = dns.of_pod(&pod(policy, host_network), &[]).unwrap();
            assert_eq!(text(&made), expected, "{policy} {host_network}");
            assert!(!made.misses_cluster_dns && made.warnings.is_empty());
        }
        let none = Dns { servers: vec![], ..dns };
        let made = none.of_pod(&pod("ClusterFirst", false), &[]).unwrap();
        assert!(made.misses_cluster_dns);
        assert_eq!(text(&made), host);
        let bare = Dns { resolver_file: None, ..none };
        let ips = ["10.0.0.1".parse().unwrap(), "fd00::1".parse().unwrap()];
        assert_eq!(text(&bare.of_pod(&pod("Default", false), &ips).unwrap()), "127.0.0.1 ::1 | . | ");
    }

    #[test]
    fn wishes_are_added_and_excess_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let mut pod = pod("ClusterFirst", false);
        let option =
            |name: &str, value: Option<&str>| PodDNSConfigOption { name: name.into(), value: value.map(Into::into) };
        pod.spec.dns_config = Some(PodDNSConfig {
            nameservers: ["10.96.0.10", "2.2.2.2", "3.3.3.3", "4.4.4.4"].map(Into::into).into(),
            searches: (0..40).map(|n| format!("s{n}")).collect(),
            options: vec![option("ndots", Some("2")), option("trust-ad", None)],
        });
        let made = dns(&dir).of_pod(&pod, &[]).unwrap();
        assert_eq!(made.config.servers, ["10.96.0.10", "2.2.2.2", "3.3.3.3"]);
        assert_eq!((made.config.searches.len(), made.config.options.join(" ")), (32, "ndots:2 trust-ad".into()));
        let texts: Vec<&str> = made.warnings.iter().map(|(_, text)| text.as_str()).collect();
        assert!(texts[0].ends_with("the applied nameserver line is: 10.96.0.10 2.2.2.2 3.3.3.3"));
        assert!(texts[1].starts_with("Search Line limits were exceeded"));
    }

    #[test]
    fn bad_files_are_an_error() {
        assert!(parse("nameserver\n").is_err());
        assert_eq!(parse("; comment\n").unwrap(), v1::DnsConfig::default());
    }
}
