//! Labels and annotations by which sandboxes and containers are found again, also after a restart of the kubelet. The
//! names are upstream's: containers of an older kubelet are adopted through them.

use std::collections::BTreeMap;

use api_machinery::json;
use api_types::core_v1::{Container, Pod};
use component_helpers::fnv::fnv32;

pub const POD_NAME: &str = "io.kubernetes.pod.name";
pub const POD_NAMESPACE: &str = "io.kubernetes.pod.namespace";
pub const POD_UID: &str = "io.kubernetes.pod.uid";
pub const CONTAINER_NAME: &str = "io.kubernetes.container.name";
pub const HASH: &str = "io.kubernetes.container.hash";
pub const RESTART_COUNT: &str = "io.kubernetes.container.restartCount";
pub const TERMINATION_PATH: &str = "io.kubernetes.container.terminationMessagePath";
pub const TERMINATION_POLICY: &str = "io.kubernetes.container.terminationMessagePolicy";
pub const DELETION_GRACE: &str = "io.kubernetes.pod.deletionGracePeriod";
pub const TERMINATION_GRACE: &str = "io.kubernetes.pod.terminationGracePeriod";
pub const PRE_STOP: &str = "io.kubernetes.container.preStopHandler";
pub const PORTS: &str = "io.kubernetes.container.ports";

/// The labels of a pod's sandbox: the pod's own and those that name it.
pub fn of_sandbox(pod: &Pod) -> BTreeMap<String, String> {
    let mut labels = pod.metadata.labels.clone();
    labels.extend(pod_identity(pod));
    labels
}

/// The labels of a container.
pub fn of_container(pod: &Pod, container: &Container) -> BTreeMap<String, String> {
    let mut labels: BTreeMap<_, _> = pod_identity(pod).into();
    labels.insert(CONTAINER_NAME.to_owned(), container.name.clone());
    labels
}

fn pod_identity(pod: &Pod) -> [(String, String); 3] {
    let meta = &pod.metadata;
    [
        (POD_NAME.to_owned(), meta.name.clone()),
        (POD_NAMESPACE.to_owned(), meta.namespace.clone()),
        (POD_UID.to_owned(), meta.uid.clone()),
    ]
}

/// What a container carries for a kubelet that knows nothing of its pod.
pub fn container_annotations(pod: &Pod, container: &Container, restart_count: u32) -> BTreeMap<String, String> {
    let mut out = BTreeMap::from([
        (HASH.to_owned(), definition_hash(container)),
        (RESTART_COUNT.to_owned(), restart_count.to_string()),
        (TERMINATION_PATH.to_owned(), container.termination_message_path.clone()),
        (TERMINATION_POLICY.to_owned(), container.termination_message_policy.clone()),
    ]);
    if let Some(grace) = pod.metadata.deletion_grace_period_seconds {
        out.insert(DELETION_GRACE.to_owned(), grace.to_string());
    }
    if let Some(grace) = pod.spec.termination_grace_period_seconds {
        out.insert(TERMINATION_GRACE.to_owned(), grace.to_string());
    }
    if let Some(hook) = container.lifecycle.as_ref().and_then(|lifecycle| lifecycle.pre_stop.as_ref()) {
        out.insert(PRE_STOP.to_owned(), json::encode(hook));
    }
    if !container.ports.is_empty() {
        let ports: Vec<String> = container.ports.iter().map(|port| json::encode(port)).collect();
        out.insert(PORTS.to_owned(), format!("[{}]", ports.join(",")));
    }
    out
}

/// The hash whose change restarts a running container: 32-bit FNV-1a over name and image, in hex. To the bit upstream's,
/// so that a kubelet that takes over from another restarts nothing: it hashes the bytes of the JSON as Go's deep dump
/// prints them.
pub fn definition_hash(container: &Container) -> String {
    let text = format!("{{\"image\":{},\"name\":{}}}", go_json(&container.image), go_json(&container.name));
    let bytes: Vec<String> = text.bytes().map(|byte| byte.to_string()).collect();
    format!("{:x}", fnv32(format!("([]uint8)[{}]", bytes.join(" ")).as_bytes()))
}

/// A string as Go writes it in JSON, which keeps what HTML would understand out of it.
pub fn go_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    let escaped =
        [("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"), ("\u{2028}", "\\u2028"), ("\u{2029}", "\\u2029")];
    escaped.iter().fold(quoted, |text, (from, to)| text.replace(from, to))
}

/// The hash of a text as Go's deep dump prints it: what checkpoints carry.
pub fn text_checksum(text: &str) -> u32 {
    fnv32(format!("(string){text}").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_that_other_kubelets_left() {
        let container =
            Container { name: "test_container".into(), image: "foo/image:v1".into(), ..Container::default() };
        assert_eq!(definition_hash(&container), "8e45cbd0");
        let data = r#"{"allocationEntries":{"pod1":{"container1":{"requests":{"cpu":"1Ki","memory":"1Ki"}}}}}"#;
        assert_eq!(text_checksum(data), 1_555_601_526);
        assert_eq!(go_json("a<b>&\n\"\u{2028}"), r#""a\u003cb\u003e\u0026\n\"\u2028""#);
    }

    #[test]
    fn only_name_and_image_make_the_hash() {
        let one = Container { name: "a".into(), image: "b".into(), ..Container::default() };
        let other = Container { tty: true, ..one.clone() };
        assert_eq!(definition_hash(&one), definition_hash(&other));
        assert_ne!(definition_hash(&one), definition_hash(&Container { image: "c".into(), ..one.clone() }));
    }
}
