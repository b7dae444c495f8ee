//! Binding a pod to its node: once, and in one write.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::gvk::GroupResource;
use api_machinery::meta::Status;
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_types::core_v1::{Binding, ObjectReference, Pod, PodCondition};
use component_helpers::conditions;
use feature_gates::shared::{CLEAR_NOMINATION, TOPOLOGY_LABELS};
use kinds::rules::RuleContext;

use crate::context::RequestCx;
use crate::registry::Registry;

/// Binds the pod `name` of the request's namespace. Admission of the binding is the caller's.
///
/// # Errors
/// 400 for a binding of another pod, 500 without a reason for one that makes no sense, 404 without such a pod, 409 where it is bound, gated or being deleted.
pub async fn bind(registry: &Registry, cx: &RequestCx, name: &str, binding: &Binding) -> Result<Status, ApiError> {
    if binding.metadata.name != name {
        return Err(ApiError::bad_request("name in URL does not match name in Binding object"));
    }
    check_target(&binding.target)?;
    let pods = registry.resource("", "v1", "pods").ok_or_else(ApiError::unknown_resource)?;
    let conflict = GroupResource::new("", "pods/binding");
    pods.rewrite(cx, name, |live| {
        let Some(pod) = live.downcast_ref::<Pod>() else { return Err(ApiError::internal("not a pod")) };
        let meta = &binding.metadata;
        if !meta.uid.is_empty() && meta.uid != pod.metadata.uid {
            return Err(pods.precondition_failed(cx, name, "UID", &meta.uid, &pod.metadata.uid));
        }
        let version = &meta.resource_version;
        if !version.is_empty() && *version != pod.metadata.resource_version {
            let present = &pod.metadata.resource_version;
            return Err(pods.precondition_failed(cx, name, "ResourceVersion", version, present));
        }
        refusal(pod).map_or(Ok(()), |text| Err(ApiError::conflict(&conflict, name, text)))?;
        Ok(Box::new(bound(pod, binding, &cx.rules)) as Box<dyn Object>)
    })
    .await?;
    Ok(Status { status: "Success".to_owned(), code: 201, ..Status::default() })
}

/// Upstream gives these errors no form of a status.
fn check_target(target: &ObjectReference) -> Result<(), ApiError> {
    let (path, mut errors) = (Path::new("target"), ErrorList::new());
    if !matches!(target.kind.as_str(), "" | "Node") {
        errors.push(path.child("kind").not_supported_in_order(target.kind.as_str(), &["Node", "<empty>"]));
    }
    if target.name.is_empty() {
        errors.push(path.child("name").required(""));
    }
    let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
    match texts.as_slice() {
        [] => Ok(()),
        [text] => Err(ApiError::unclassified(text.as_str())),
        texts => Err(ApiError::unclassified(format!("[{}]", texts.join(", ")))),
    }
}

fn refusal(pod: &Pod) -> Option<String> {
    let name = &pod.metadata.name;
    if pod.metadata.deletion_timestamp.is_some() {
        return Some(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    if !pod.spec.node_name.is_empty() {
        return Some(format!("pod {name} is already assigned to node {:?}", pod.spec.node_name));
    }
    let gated = !pod.spec.scheduling_gates.is_empty();
    gated.then(|| format!("pod {name} has non-empty .spec.schedulingGates"))
}

fn bound(pod: &Pod, binding: &Binding, cx: &RuleContext) -> Pod {
    let mut pod = pod.clone();
    pod.spec.node_name = binding.target.name.clone();
    if cx.gates.enabled(CLEAR_NOMINATION) {
        pod.status.nominated_node_name.clear();
    }
    pod.metadata.annotations.extend(binding.metadata.annotations.clone());
    if cx.gates.enabled(TOPOLOGY_LABELS) {
        pod.metadata.labels.extend(binding.metadata.labels.clone());
    }
    let scheduled =
        PodCondition { type_: "PodScheduled".to_owned(), status: "True".to_owned(), ..PodCondition::default() };
    conditions::set(&mut pod.status.conditions, scheduled, cx.now);
    pod
}
