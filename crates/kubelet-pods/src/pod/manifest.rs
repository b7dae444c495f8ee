//! Static pods: reading a manifest, naming the pod after the node, and the rules that only such pods have.

use api_machinery::field_path::ErrorList;
use api_machinery::json::DecodeError;
use api_machinery::object;
use api_machinery::value::Value;
use api_machinery::yaml::{self, YamlError};
use api_types::core_v1::{Pod, Toleration};
use kinds::rules::RuleContext;

use super::{CONFIG_HASH, Source, uid};

/// Manifests are not read beyond this.
pub(crate) const MAX_MANIFEST_BYTES: u64 = 10 * 1024 * 1024;

/// Why a manifest is no static pod, in upstream's words. Reading the same manifest again is no use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ManifestError {
    /// It is neither YAML nor JSON.
    #[error("couldn't parse as pod: {0}")]
    Syntax(#[from] YamlError),
    /// It is another kind of object.
    #[error("invalid pod: {api_version:?}, {kind:?} is not a v1 Pod")]
    Kind { api_version: String, kind: String },
    /// A field holds something else than its type says.
    #[error("invalid pod: {0}")]
    Type(#[from] DecodeError),
    /// Nobody can call it by its name.
    #[error("invalid pod: name is needed for the pod")]
    Unnamed,
    /// The rules for pods are broken.
    #[error("invalid pod: {0}")]
    Rules(ErrorList),
    /// It refers to objects of the API: a static pod stands on its own.
    #[error("static pods may not reference {0}")]
    Reference(&'static str),
    /// The same, where references as such are not refused.
    #[error("static pods may not use {0}")]
    Use(&'static str),
}

/// What a manifest is read with.
pub(crate) struct Reading<'a> {
    pub source: Source,
    /// The file's path or the URL.
    pub origin: &'a str,
    pub node_name: &'a str,
    /// Whether references to API objects are refused altogether.
    pub refuse_references: bool,
}

/// The pod of a manifest.
///
/// # Errors
/// It is not one pod, or not a valid one.
pub(crate) fn read(text: &str, reading: &Reading<'_>) -> Result<Pod, ManifestError> {
    from_value(&yaml::parse(text)?.value, reading)
}

/// The pods of what a URL answered: one pod or a list of pods.
///
/// # Errors
/// As for [`read`], of the first bad pod.
pub(crate) fn read_list(text: &str, reading: &Reading<'_>) -> Result<Vec<Pod>, ManifestError> {
    let document = yaml::parse(text)?;
    let kind = document.value.get("kind").and_then(Value::as_str);
    let Some(items) =
        document.value.get("items").and_then(Value::as_array).filter(|_| matches!(kind, Some("PodList" | "List")))
    else {
        return Ok(vec![from_value(&document.value, reading)?]);
    };
    let typed = |item: &Value| {
        let mut item = item.clone();
        if let Some(map) = item.as_object_mut() {
            map.entry("kind").or_insert_with(|| "Pod".into());
            map.entry("apiVersion").or_insert_with(|| "v1".into());
        }
        from_value(&item, reading)
    };
    items.iter().map(typed).collect()
}

fn from_value(value: &Value, reading: &Reading<'_>) -> Result<Pod, ManifestError> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if (api_version, kind) != ("v1", "Pod") {
        return Err(ManifestError::Kind { api_version: api_version.to_owned(), kind: kind.to_owned() });
    }
    let mut pod: Pod = object::from_value(value)?;
    if pod.metadata.name.is_empty() {
        return Err(ManifestError::Unnamed);
    }
    let Some(rules) = kinds::find("", "v1", "pods") else { return Ok(pod) };
    rules.set_defaults(&mut pod);
    if pod.metadata.uid.is_empty() {
        pod.metadata.uid = uid::of(&pod, value, reading);
    }
    make_own(&mut pod, reading);
    check_references(&pod, reading.refuse_references)?;
    let errors = rules.validate_create(&RuleContext::default(), &pod);
    if errors.is_empty() { Ok(pod) } else { Err(ManifestError::Rules(errors)) }
}

/// What makes a pod this node's: named after the node, bound to it, and tolerant of what befalls it.
fn make_own(pod: &mut Pod, reading: &Reading<'_>) {
    let meta = &mut pod.metadata;
    meta.name = format!("{}-{}", meta.name, reading.node_name.to_lowercase());
    if meta.namespace.is_empty() {
        "default".clone_into(&mut meta.namespace);
    }
    meta.annotations.insert(CONFIG_HASH.to_owned(), meta.uid.clone());
    reading.node_name.clone_into(&mut pod.spec.node_name);
    if reading.source == Source::File {
        let tolerate = Toleration { operator: "Exists".into(), effect: "NoExecute".into(), ..Toleration::default() };
        if !pod.spec.tolerations.contains(&tolerate) {
            pod.spec.tolerations.push(tolerate);
        }
    }
    "Pending".clone_into(&mut pod.status.phase);
}

/// Static pods stand on their own: nothing they need may live in the API.
fn check_references(pod: &Pod, all: bool) -> Result<(), ManifestError> {
    let refuse = |what: &'static str| Err(ManifestError::Reference(what));
    let either =
        |reference, used| Err(if all { ManifestError::Reference(reference) } else { ManifestError::Use(used) });
    let spec = &pod.spec;
    if !spec.resource_claims.is_empty() {
        return either("resourceclaims", "ResourceClaims");
    }
    let projected = spec.volumes.iter().filter_map(|volume| volume.volume_source.projected.as_ref());
    if projected.flat_map(|projected| &projected.sources).any(|source| source.cluster_trust_bundle.is_some()) {
        return either("clustertrustbundles", "ClusterTrustBundle projected volume sources");
    }
    if !all {
        return Ok(());
    }
    if !spec.image_pull_secrets.is_empty() {
        return refuse("secrets");
    }
    if !spec.service_account_name.is_empty() {
        return refuse("serviceaccounts");
    }
    for member in super::containers::members(pod) {
        for source in &member.container.env_from {
            if source.secret_ref.is_some() {
                return refuse("secrets");
            }
            if source.config_map_ref.is_some() {
                return refuse("configmaps");
            }
        }
        for source in member.container.env.iter().filter_map(|variable| variable.value_from.as_ref()) {
            if source.secret_key_ref.is_some() {
                return refuse("secrets");
            }
            if source.config_map_key_ref.is_some() {
                return refuse("configmaps");
            }
        }
    }
    for volume in spec.volumes.iter().map(|volume| &volume.volume_source) {
        if volume.secret.is_some() {
            return refuse("secrets");
        }
        if volume.config_map.is_some() {
            return refuse("configmaps");
        }
        if volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some() {
            return refuse("persistentvolumeclaims");
        }
        for source in volume.projected.iter().flat_map(|projected| &projected.sources) {
            if source.secret.is_some() {
                return refuse("secrets");
            }
            if source.config_map.is_some() {
                return refuse("configmaps");
            }
            if source.service_account_token.is_some() {
                return refuse("serviceaccounts");
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str =
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  - {name: c, image: busybox}\n";

    fn reading(source: Source) -> Reading<'static> {
        Reading { source, origin: "/etc/kubernetes/manifests/web.yaml", node_name: "node1", refuse_references: true }
    }

    #[test]
    fn a_manifest_becomes_this_nodes_pod() {
        let pod = read(MANIFEST, &reading(Source::File)).unwrap();
        assert_eq!(pod.metadata.name, "web-node1");
        assert_eq!((pod.metadata.namespace.as_str(), pod.spec.node_name.as_str()), ("default", "node1"));
        assert_eq!(pod.metadata.uid.len(), 32);
        assert_eq!(pod.metadata.annotations[CONFIG_HASH], pod.metadata.uid);
        assert_eq!(pod.spec.tolerations.len(), 1);
        assert_eq!(pod.spec.restart_policy, "Always");
        let again = read(MANIFEST, &reading(Source::File)).unwrap();
        assert_eq!(again.metadata.uid, pod.metadata.uid);
        let edited = read(&MANIFEST.replace("busybox", "other"), &reading(Source::File)).unwrap();
        assert_ne!(edited.metadata.uid, pod.metadata.uid);
        assert!(read(MANIFEST, &reading(Source::Http)).unwrap().spec.tolerations.is_empty());
    }

    #[test]
    fn bad_manifests_are_refused() {
        for (text, expected) in [
            ("kind: Pod\napiVersion: v1\nspec: {}", "invalid pod: name is needed for the pod"),
            ("kind: Service\napiVersion: v1", "is not a v1 Pod"),
            ("{", "couldn't parse as pod"),
            (
                "kind: Pod\napiVersion: v1\nmetadata: {name: a}\nspec: {serviceAccountName: x, containers: [{name: c, image: i}]}",
                "static pods may not reference serviceaccounts",
            ),
            (
                "kind: Pod\napiVersion: v1\nmetadata: {name: a}\nspec: {volumes: [{name: v, configMap: {name: m}}], containers: [{name: c, image: i}]}",
                "static pods may not reference configmaps",
            ),
        ] {
            let error = read(text, &reading(Source::File)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn urls_may_answer_lists() {
        let list = "kind: PodList\napiVersion: v1\nitems:\n- metadata: {name: a}\n  spec: {containers: [{name: c, image: i}]}\n";
        assert_eq!(read_list(list, &reading(Source::Http)).unwrap().len(), 1);
        assert_eq!(read_list(MANIFEST, &reading(Source::Http)).unwrap().len(), 1);
    }
}
