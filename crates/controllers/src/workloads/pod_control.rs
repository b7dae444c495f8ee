//! Creating and deleting pods on behalf of an owner, with the events that tell of it.

use api_machinery::meta::{DeleteOptions, ObjectMeta, OwnerReference};
use api_machinery::names::dns1123_subdomain;
use api_machinery::object::Object;
use api_types::core_v1::{Pod, PodTemplateSpec};
use client::{ClientError, EventType};
use controller::Cx;

/// Pods of one owner.
pub(crate) struct PodControl<'a> {
    cx: &'a Cx,
    owner: &'a dyn Object,
}

/// The pod that a template makes for an owner. Other metadata of the template than labels, annotations and finalizers
/// means nothing.
pub(crate) fn pod_from_template(template: &PodTemplateSpec, owner: &ObjectMeta, reference: OwnerReference) -> Pod {
    let metadata = ObjectMeta {
        generate_name: name_prefix(&owner.name),
        namespace: owner.namespace.clone(),
        labels: template.metadata.labels.clone(),
        annotations: template.metadata.annotations.clone(),
        finalizers: template.metadata.finalizers.clone(),
        owner_references: vec![reference],
        ..ObjectMeta::default()
    };
    Pod { metadata, spec: template.spec.clone(), ..Pod::default() }
}

/// `{owner}-`, or the bare name where that cannot start a pod's name. A dash before the random part is fine, so it is
/// judged with a letter in its place.
fn name_prefix(owner: &str) -> String {
    if dns1123_subdomain(&format!("{owner}a")).is_empty() { format!("{owner}-") } else { owner.to_owned() }
}

impl<'a> PodControl<'a> {
    /// Pods of `owner`.
    pub(crate) fn new(cx: &'a Cx, owner: &'a dyn Object) -> Self {
        Self { cx, owner }
    }

    /// Creates a pod.
    ///
    /// # Errors
    /// What the server refuses, and a pod without labels, which its owner could never find again.
    pub(crate) async fn create(&self, pod: &Pod) -> Result<Pod, ClientError> {
        if pod.metadata.labels.is_empty() {
            return Err(ClientError::Invalid("unable to create pods, no labels".to_owned()));
        }
        let outcome = self.cx.client.namespaced::<Pod>(&pod.metadata.namespace).create(pod).await;
        match &outcome {
            Ok(made) => {
                self.event(EventType::Normal, "SuccessfulCreate", format!("Created pod: {}", made.metadata.name))
            }
            Err(error) if error.is_namespace_terminating() => {}
            Err(error) => self.event(EventType::Warning, "FailedCreate", format!("Error creating: {error}")),
        }
        outcome
    }

    /// Deletes this very pod with its own grace period. Says whether it was there.
    ///
    /// # Errors
    /// What the server refuses; a pod that is gone is an error too, as no watch event will tell of its deletion.
    pub(crate) async fn delete(&self, pod: &Pod) -> Result<bool, ClientError> {
        let pods = self.cx.client.namespaced::<Pod>(&pod.metadata.namespace);
        let name = &pod.metadata.name;
        let outcome = pods.delete_this(&pod.metadata, DeleteOptions::default()).await;
        match &outcome {
            Ok(true) => self.event(EventType::Normal, "SuccessfulDelete", format!("Deleted pod: {name}")),
            Ok(false) => {}
            Err(error) => self.event(EventType::Warning, "FailedDelete", format!("Error deleting: {error}")),
        }
        outcome
    }

    fn event(&self, kind: EventType, reason: &str, message: String) {
        self.cx.events.event(self.owner, kind, reason, message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_takes_what_counts_from_its_template() {
        let owner = ObjectMeta { name: "web".into(), namespace: "ns".into(), ..ObjectMeta::default() };
        let mut template = PodTemplateSpec::default();
        template.metadata.name = "ignored".into();
        template.metadata.labels.insert("a".into(), "b".into());
        template.metadata.finalizers.push("f".into());
        template.spec.node_name = "n".into();
        let pod = pod_from_template(&template, &owner, OwnerReference::default());
        let meta = &pod.metadata;
        assert_eq!((meta.name.as_str(), meta.generate_name.as_str(), meta.namespace.as_str()), ("", "web-", "ns"));
        assert_eq!((meta.labels.len(), meta.finalizers.len(), meta.owner_references.len()), (1, 1, 1));
        assert_eq!(pod.spec.node_name, "n");
        assert_eq!(name_prefix(&"x".repeat(253)).len(), 253, "no room for a dash");
    }
}
