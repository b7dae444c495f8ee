//! Ingress of networking.k8s.io/v1: its names, and its rules.

use api_machinery::intstr::IntOrString;
use api_machinery::object::Object;
use api_types::networking_v1::constants::path_type;
use api_types::networking_v1::{
    HTTPIngressPath, HTTPIngressRuleValue, Ingress, IngressBackend, IngressLoadBalancerIngress, IngressRule,
    IngressRuleValue, IngressServiceBackend, IngressSpec, ServiceBackendPort,
};
use api_types::networking_v1beta1;

use super::ingress_validation as validation;
use crate::address_warnings;
use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::table::{self, Cell};
use crate::versions::Former;
use api_machinery::field_path::{ErrorList, Path};
use std::collections::BTreeSet;

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["ing"],
    storage: Some(StorageInfo::of::<Ingress>("ingress", "39NQlfNR+bo=")),
    unconditional_update: true,
    subresources: &[SubresourceInfo::status("Ingress")],
    ..ResourceInfo::of::<Ingress>()
};

/// The rules of the kind.
pub(crate) struct IngressRules;

impl TypedRules for IngressRules {
    type Object = Ingress;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<Ingress>] = &[
        Cell::NAME,
        Cell::text("Class", |object, _| {
            object.spec.ingress_class_name.clone().unwrap_or_else(|| "<none>".into()).into()
        }),
        Cell::text("Hosts", |object, _| hosts(object).into()),
        Cell::text("Address", |object, _| addresses(&object.status.load_balancer.ingress).into()),
        Cell::text("Ports", |object, _| if object.spec.tls.is_empty() { "80" } else { "80, 443" }.into()),
        Cell::AGE,
    ];
    const FORMER: &'static [Former] = &[
        Former::own::<networking_v1beta1::Ingress>("extensions/v1beta1", first_form),
        Former::own::<networking_v1beta1::Ingress>("networking.k8s.io/v1beta1", first_form),
    ];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update, MetadataCheck::Create];
    const STRATEGY: Strategy = Strategy::StatusAndGeneration;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn validate(cx: &RuleContext, object: &Ingress) -> ErrorList {
        validation::validate(object, &cx.gates)
    }

    fn validate_update(cx: &RuleContext, endpoint: Endpoint, object: &Ingress, old: &Ingress) -> ErrorList {
        match endpoint {
            Endpoint::Status => validation::validate_status(object, old, &cx.gates),
            Endpoint::Main | Endpoint::Other(_) => validation::validate_update(object, old, &cx.gates),
        }
    }

    fn warnings(object: &Ingress, old: Option<&Ingress>) -> Vec<String> {
        let annotated = object.metadata.annotations.contains_key(validation::CLASS_ANNOTATION);
        let told = old.is_none() && annotated && object.spec.ingress_class_name.is_none();
        let annotation = validation::CLASS_ANNOTATION;
        let text = format!("annotation \"{annotation}\" is deprecated, please use 'spec.ingressClassName' instead");
        told.then_some(text).into_iter().collect()
    }

    fn status_warnings(object: &Ingress) -> Vec<String> {
        let path = Path::new("status").child("loadBalancer").child("ingress");
        let ips: Vec<String> = object.status.load_balancer.ingress.iter().map(|one| one.ip.clone()).collect();
        address_warnings::of_ips(&path, &ips)
    }
}

/// A backend named a service and its port at first.
fn first_form(object: &dyn Object) -> Option<Box<dyn Object>> {
    let first: networking_v1beta1::Ingress = object.downcast_ref().cloned()?;
    let spec = IngressSpec {
        ingress_class_name: first.spec.ingress_class_name,
        default_backend: first.spec.backend.map(backend),
        tls: first.spec.tls,
        rules: first.spec.rules.into_iter().map(rule).collect(),
    };
    Some(Box::new(Ingress { metadata: first.metadata, spec, status: first.status }))
}

fn rule(first: networking_v1beta1::IngressRule) -> IngressRule {
    let paths = |http: networking_v1beta1::HTTPIngressRuleValue| {
        let path = |path: networking_v1beta1::HTTPIngressPath| HTTPIngressPath {
            path: path.path,
            path_type: path.path_type.or_else(|| Some(path_type::IMPLEMENTATION_SPECIFIC.to_owned())),
            backend: backend(path.backend),
        };
        HTTPIngressRuleValue { paths: http.paths.into_iter().map(path).collect() }
    };
    IngressRule {
        host: first.host,
        ingress_rule_value: IngressRuleValue { http: first.ingress_rule_value.http.map(paths) },
    }
}

fn backend(first: networking_v1beta1::IngressBackend) -> IngressBackend {
    let named = !first.service_name.is_empty() || first.service_port != IntOrString::default();
    let port = match first.service_port {
        IntOrString::Int(number) => ServiceBackendPort { number, ..ServiceBackendPort::default() },
        IntOrString::Str(name) => ServiceBackendPort { name, ..ServiceBackendPort::default() },
    };
    let service = named.then_some(IngressServiceBackend { name: first.service_name, port });
    IngressBackend { service, resource: first.resource }
}

/// Each once, in their order as texts.
fn addresses(ingress: &[IngressLoadBalancerIngress]) -> String {
    let address =
        |one: &IngressLoadBalancerIngress| if one.ip.is_empty() { one.hostname.clone() } else { one.ip.clone() };
    let addresses: BTreeSet<_> = ingress.iter().map(address).filter(|address| !address.is_empty()).collect();
    table::joined(addresses.iter().map(String::as_str), ",")
}

/// How many hosts a row has room for.
const SHOWN_HOSTS: usize = 3;

fn hosts(ingress: &Ingress) -> String {
    let rules = &ingress.spec.rules;
    let named: Vec<(usize, &str)> = rules
        .iter()
        .map(|rule| rule.host.as_str())
        .enumerate()
        .filter(|(_, host)| !host.is_empty())
        .take(SHOWN_HOSTS)
        .collect();
    let text = table::joined(named.iter().map(|(_, host)| *host), ",");
    match named.last() {
        None => "*".into(),
        // Rules behind the last host that is shown count, and so do those without one before it.
        Some((last, _)) if named.len() == SHOWN_HOSTS && last + 1 < rules.len() => {
            format!("{text} + {} more...", rules.len() - SHOWN_HOSTS)
        }
        Some(_) => text,
    }
}

#[cfg(test)]
mod tests {
    use api_types::networking_v1::IngressRule;

    use super::*;

    #[test]
    fn the_first_hosts_are_shown() {
        for (names, expected) in [
            (&[][..], "*"),
            (&[""], "*"),
            (&["a", "b", "c"], "a,b,c"),
            (&["a", "", "b", "c"], "a,b,c"),
            (&["a", "b", "c", "", "d"], "a,b,c + 2 more..."),
            (&["", "a", "b", "c", "d"], "a,b,c + 2 more..."),
        ] {
            let mut ingress = Ingress::default();
            let rule = |name: &&str| IngressRule { host: (*name).into(), ..IngressRule::default() };
            ingress.spec.rules = names.iter().map(rule).collect();
            assert_eq!(hosts(&ingress), expected, "{names:?}");
        }
    }
}
