//! What NodeRestriction asks of a node that wants a certificate for one of its pods: that all of them are what the request
//! says they are.

use api_machinery::object::{Kind, Object};
use api_machinery::status::ApiError;
use api_types::certificates_v1beta1::{PodCertificateRequest, PodCertificateRequestSpec};
use api_types::core_v1::constants::MIRROR_POD_ANNOTATION_KEY;
use api_types::core_v1::{Node, Pod, ServiceAccount};

use crate::{Attributes, Context, Operation};

/// Checks a request that the node `node` makes.
pub(super) fn check(
    cx: &Context,
    attributes: &Attributes,
    node: &str,
    object: Option<&dyn Object>,
) -> Result<(), ApiError> {
    if attributes.operation != Operation::Create {
        let operation = format!("{:?}", attributes.operation).to_uppercase();
        return Err(attributes.forbidden(format_args!("unexpected operation {operation}")));
    }
    if !attributes.subresource.is_empty() {
        return Err(attributes.forbidden(format_args!("unexpected subresource {}", attributes.subresource)));
    }
    let Some(request) = object.and_then(|own| own.downcast_ref::<PodCertificateRequest>()) else { return Ok(()) };
    let spec = &request.spec;
    if spec.node_name != node {
        return Err(attributes.forbidden(format_args!(
            "PodCertificateRequest.Spec.NodeName={:?}, which is not the requesting node {node:?}",
            spec.node_name
        )));
    }
    let named = Named { cx, namespace: &attributes.namespace, spec };
    let found: std::sync::Arc<Node> = named.find("", node, "node")?;
    named.same("node", node, &spec.node_uid, &found.metadata.uid)?;
    let pod: std::sync::Arc<Pod> = named.find(named.namespace, &spec.pod_name, "pod")?;
    named.check_pod(attributes, &pod)?;
    let account: std::sync::Arc<ServiceAccount> =
        named.find(named.namespace, &spec.service_account_name, "service account")?;
    named.same("service account", &spec.service_account_name, &spec.service_account_uid, &account.metadata.uid)
}

struct Named<'a> {
    cx: &'a Context,
    namespace: &'a str,
    spec: &'a PodCertificateRequestSpec,
}

impl Named<'_> {
    fn pod(&self) -> String {
        format!("{}/{}", self.namespace, self.spec.pod_name)
    }

    fn find<T: Object + Kind>(&self, namespace: &str, name: &str, what: &str) -> Result<std::sync::Arc<T>, ApiError> {
        let shown = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
        let missing = || {
            let why = format!("{} {name:?} not found", T::TYPE.resource);
            ApiError::internal(format!("while retrieving {what} {shown:?} named in the PodCertificateRequest: {why}"))
        };
        self.cx.lookup.get(namespace, name).ok_or_else(missing)
    }

    fn same(&self, what: &str, name: &str, told: &str, found: &str) -> Result<(), ApiError> {
        if told == found {
            return Ok(());
        }
        let pod = self.pod();
        let text = format!(
            "PodCertificateRequest for pod {pod:?} contains {what} UID ({told:?}) which differs from {what} {name:?}: {found:?}"
        );
        Err(ApiError::internal(text))
    }

    fn check_pod(&self, attributes: &Attributes, pod: &Pod) -> Result<(), ApiError> {
        let (spec, shown, uid) = (self.spec, self.pod(), &pod.metadata.uid);
        if spec.pod_uid != *uid {
            let told = &spec.pod_uid;
            return Err(ApiError::internal(format!(
                "PodCertificateRequest for pod {shown:?} contains pod UID ({told:?}) which differs from running pod {uid:?}"
            )));
        }
        if pod.spec.node_name != spec.node_name {
            let found = &pod.spec.node_name;
            return Err(
                attributes.forbidden(format_args!("pod {shown:?} is on node {found:?}, not {:?}", spec.node_name))
            );
        }
        if pod.metadata.annotations.contains_key(MIRROR_POD_ANNOTATION_KEY) {
            return Err(attributes.forbidden(format_args!("pod {shown:?} is a mirror pod")));
        }
        if pod.spec.service_account_name != spec.service_account_name {
            let (told, found) = (&spec.service_account_name, &pod.spec.service_account_name);
            return Err(ApiError::internal(format!(
                "PodCertificateRequest for pod {shown:?} contains serviceAccountName ({told:?}) that differs from running pod ({found:?})"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use api_types::authentication_v1::UserInfo;

    use super::*;
    use crate::plugins::node_restriction::ENTRY;
    use crate::plugins::testing::{Fixture, create};

    #[tokio::test]
    async fn a_node_asks_for_its_own_pods() {
        let mut node = Node::default();
        (node.metadata.name, node.metadata.uid) = ("n".into(), "nu".into());
        let mut pod = Pod::default();
        (pod.metadata.namespace, pod.metadata.name, pod.metadata.uid) = ("s".into(), "p".into(), "pu".into());
        (pod.spec.node_name, pod.spec.service_account_name) = ("n".into(), "a".into());
        let mut account = ServiceAccount::default();
        (account.metadata.namespace, account.metadata.name, account.metadata.uid) =
            ("s".into(), "a".into(), "au".into());
        let mut mirror = pod.clone();
        mirror.metadata.name = "m".into();
        mirror.metadata.annotations.insert(MIRROR_POD_ANNOTATION_KEY.into(), "x".into());
        let fixture = Fixture::default().with(vec![node]).with(vec![pod, mirror]).with(vec![account]);
        let mut attributes =
            Attributes { namespace: "s".into(), ..create("certificates.k8s.io", "podcertificaterequests") };
        let (username, groups) = ("system:node:n".into(), vec!["system:nodes".into()]);
        attributes.user = UserInfo { username, groups, ..UserInfo::default() }.into();
        type Change = fn(&mut PodCertificateRequestSpec);
        let rows: [(Change, &str); 6] = [
            (|_| {}, ""),
            (|spec| spec.node_name = "m".into(), "which is not the requesting node"),
            (|spec| spec.pod_uid = "x".into(), "which differs from running pod"),
            (|spec| spec.pod_name = "m".into(), "is a mirror pod"),
            (|spec| spec.service_account_name = "b".into(), "serviceAccountName"),
            (|spec| spec.node_uid = "x".into(), "contains node UID"),
        ];
        for (change, expected) in rows {
            let mut request = PodCertificateRequest::default();
            let spec = &mut request.spec;
            (spec.node_name, spec.node_uid) = ("n".into(), "nu".into());
            (spec.pod_name, spec.pod_uid) = ("p".into(), "pu".into());
            (spec.service_account_name, spec.service_account_uid) = ("a".into(), "au".into());
            change(spec);
            let outcome = fixture.mutate(&ENTRY, &attributes, &mut request).await;
            let text = outcome.err().map(|error| error.message).unwrap_or_default();
            assert!(text.contains(expected) && text.is_empty() == expected.is_empty(), "{expected}: {text}");
        }
    }
}
