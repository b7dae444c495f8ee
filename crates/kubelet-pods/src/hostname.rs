//! What a pod's containers call themselves.

use api_machinery::names;
use api_types::core_v1::Pod;

use crate::interfaces::SideError;

/// Longest host name, and longest one with a domain.
const MAX_HOSTNAME: usize = 63;
const MAX_FQDN: usize = 64;

/// A pod's host name and domain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PodName {
    pub hostname: String,
    /// Empty without a subdomain.
    pub domain: String,
}

/// The name and the domain of a pod.
pub(crate) fn of_pod(pod: &Pod, cluster_domain: &str) -> Result<PodName, SideError> {
    let spec = &pod.spec;
    if let Some(wanted) = spec.hostname_override.as_deref().filter(|wanted| !wanted.is_empty()) {
        let problems = names::dns1123_subdomain(wanted);
        if !problems.is_empty() {
            let problems = problems.join(";");
            return Err(SideError(format!("pod HostnameOverride {wanted:?} is not a valid DNS subdomain: {problems}")));
        }
        return Ok(PodName { hostname: wanted.to_owned(), domain: String::new() });
    }
    let mut hostname = pod.metadata.name.clone();
    if !spec.hostname.is_empty() {
        check_label("Hostname", &spec.hostname)?;
        hostname.clone_from(&spec.hostname);
    }
    let hostname = cut(&hostname);
    let mut domain = String::new();
    if !spec.subdomain.is_empty() {
        check_label("Subdomain", &spec.subdomain)?;
        domain = format!("{}.{}.svc.{cluster_domain}", spec.subdomain, pod.metadata.namespace);
    }
    Ok(PodName { hostname, domain })
}

/// What the kernel is told: the name, with its domain where the pod wants that.
pub(crate) fn kernel_name(pod: &Pod, name: &PodName) -> Result<String, SideError> {
    if pod.spec.set_hostname_as_fqdn != Some(true) || name.domain.is_empty() {
        return Ok(name.hostname.clone());
    }
    let full = format!("{}.{}", name.hostname, name.domain);
    if full.len() > MAX_FQDN {
        return Err(SideError(format!(
            "failed to construct FQDN from pod hostname and cluster domain, FQDN {full} is too long ({MAX_FQDN} \
             characters is the max, {} characters requested)",
            full.len()
        )));
    }
    Ok(full)
}

fn check_label(field: &str, value: &str) -> Result<(), SideError> {
    let problems = names::dns1123_label(value);
    if problems.is_empty() {
        return Ok(());
    }
    Err(SideError(format!("pod {field} {value:?} is not a valid DNS label: {}", problems.join(";"))))
}

/// Names of pods may be longer than the kernel allows, and have dots and dashes where the cut falls.
fn cut(name: &str) -> String {
    if name.len() <= MAX_HOSTNAME {
        return name.to_owned();
    }
    let cut: String = name
        .chars()
        .scan(0, |used, c| {
            *used += c.len_utf8();
            (*used <= MAX_HOSTNAME).then_some(c)
        })
        .collect();
    cut.trim_end_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, hostname: &str, subdomain: &str) -> Pod {
        let mut pod = Pod::default();
        pod.metadata.name = name.into();
        pod.metadata.namespace = "ns".into();
        pod.spec.hostname = hostname.into();
        pod.spec.subdomain = subdomain.into();
        pod
    }

    #[test]
    fn names_come_from_the_spec_or_the_pod() {
        let long = format!("{}-.-{}", "a".repeat(60), "b".repeat(20));
        let cut = "a".repeat(60);
        let cases = [
            (pod("web", "", ""), Ok(("web", ""))),
            (pod("web", "db", "data"), Ok(("db", "data.ns.svc.cluster.local"))),
            (pod(&long, "", ""), Ok((cut.as_str(), ""))),
            (pod("web", "Bad_", ""), Err("pod Hostname \"Bad_\" is not a valid DNS label: ")),
            (pod("web", "", "a.b"), Err("pod Subdomain \"a.b\" is not a valid DNS label: ")),
        ];
        for (pod, expected) in cases {
            match (of_pod(&pod, "cluster.local"), expected) {
                (Ok(name), Ok(expected)) => assert_eq!((name.hostname.as_str(), name.domain.as_str()), expected),
                (Err(error), Err(start)) => assert!(error.0.starts_with(start), "{error}"),
                (found, expected) => panic!("{found:?} {expected:?}"),
            }
        }
    }

    #[test]
    fn the_kernel_is_told_the_domain_on_request() {
        let mut web = pod("web", "web", "data");
        let name = of_pod(&web, "cluster.local").unwrap();
        assert_eq!(kernel_name(&web, &name).unwrap(), "web");
        web.spec.set_hostname_as_fqdn = Some(true);
        assert_eq!(kernel_name(&web, &name).unwrap(), "web.data.ns.svc.cluster.local");
        let long = PodName { hostname: "h".repeat(40), domain: "d".repeat(40) };
        assert!(
            kernel_name(&web, &long)
                .unwrap_err()
                .0
                .ends_with("is too long (64 characters is the max, 81 characters requested)")
        );
        web.spec.hostname_override = Some("over.ride".into());
        assert_eq!(of_pod(&web, "x").unwrap(), PodName { hostname: "over.ride".into(), domain: String::new() });
    }
}
