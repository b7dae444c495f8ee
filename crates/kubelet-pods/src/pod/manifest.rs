//! Static pods: reading a manifest, naming the pod after the node, and the rules that only such pods have.

use api_machinery::object;
use api_machinery::value::Value;
use api_machinery::yaml;
use api_types::core_v1::{Pod, Toleration};
use kinds::rules::RuleContext;

use super::{CONFIG_HASH, Source, uid};

/// Manifests are not read beyond this.
pub(crate) const MAX_MANIFEST_BYTES: u64 = 10 * 1024 * 1024;

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
/// It is not one pod, or not a valid one; the text is upstream's.
pub(crate) fn read(text: &str, reading: &Reading<'_>) -> Result<Pod, String> {
    let document = yaml::parse(text).map_err(|error| format!("couldn't parse as pod: {error}"))?;
    from_value(&document.value, reading)
}

/// The pods of what a URL answered: one pod or a list of pods.
///
/// # Errors
/// As for [`read`], of the first bad pod.
pub(crate) fn read_list(text: &str, reading: &Reading<'_>) -> Result<Vec<Pod>, String> {
    let document = yaml::parse(text).map_err(|error| format!("couldn't parse as pod: {error}"))?;
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

fn from_value(value: &Value, reading: &Reading<'_>) -> Result<Pod, String> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    if (text("apiVersion"), text("kind")) != ("v1", "Pod") {
        return Err(format!("invalid pod: {:?}, {:?} is not a v1 Pod", text("apiVersion"), text("kind")));
    }
    let mut pod: Pod = object::from_value(value).map_err(|error| format!("invalid pod: {error}"))?;
    if pod.metadata.name.is_empty() {
        return Err("invalid pod: name is needed for the pod".to_owned());
    }
    let Some(rules) = kinds::find("", "v1", "pods") else { return Ok(pod) };
    rules.set_defaults(&mut pod);
    if pod.metadata.uid.is_empty() {
        pod.metadata.uid = uid::of(&pod, value, reading);
    }
    make_own(&mut pod, reading);
    check_references(&pod, reading.refuse_references)?;
    let errors = rules.validate_create(&RuleContext::default(), &pod);
    if errors.is_empty() { Ok(pod) } else { Err(format!("invalid pod: {}", errors_text(&errors))) }
}

fn errors_text(errors: &api_machinery::field_path::ErrorList) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    match texts.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
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
fn check_references(pod: &Pod, all: bool) -> Result<(), String> {
    let refuse = |what: &str| Err(format!("static pods may not reference {what}"));
    let spec = &pod.spec;
    if !spec.resource_claims.is_empty() {
        return if all { refuse("resourceclaims") } else { Err("static pods may not use ResourceClaims".to_owned()) };
    }
    let projected = spec.volumes.iter().filter_map(|volume| volume.volume_source.projected.as_ref());
    if projected.flat_map(|projected| &projected.sources).any(|source| source.cluster_trust_bundle.is_some()) {
        let text = "static pods may not use ClusterTrustBundle projected volume sources";
        return if all { refuse("clustertrustbundles") } else { Err(text.to_owned()) };
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
            let error = read(text, &reading(Source::File)).unwrap_err();
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
