//! What a pod refers to: Secrets, ConfigMaps and claims, wherever in its spec they are named.

use api_machinery::reflect::{Reflect, View, written_fields};
use api_types::core_v1::PodSpec;

/// One place that names an object of the pod's namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference<'a> {
    /// A Secret, for a variable, a volume, or to pull images with.
    Secret(&'a str),
    /// A ConfigMap, for a variable or a volume.
    ConfigMap(&'a str),
    /// A PersistentVolumeClaim; those of ephemeral volumes are not named by the pod.
    Claim(&'a str),
}

/// Shows every reference, in no order, some more than once; names may be empty.
pub fn each_reference(spec: &PodSpec, found: &mut dyn FnMut(Reference<'_>)) {
    let mut visit = |member: &str, value: &dyn Reflect| show(member, value, found);
    for secret in &spec.image_pull_secrets {
        visit("imagePullSecrets", secret);
    }
    for volume in &spec.volumes {
        walk(volume, &mut visit);
    }
    // Of a container only the environment names objects; the rest of it is most of a spec.
    let containers = spec.init_containers.iter().chain(&spec.containers).map(|own| (&own.env, &own.env_from));
    let ephemeral = spec.ephemeral_containers.iter().map(|own| &own.ephemeral_container_common);
    for (variables, sources) in containers.chain(ephemeral.map(|own| (&own.env, &own.env_from))) {
        variables.iter().for_each(|variable| walk(variable, &mut visit));
        sources.iter().for_each(|source| walk(source, &mut visit));
    }
}

/// Shows what a member names, if it is one that names objects.
fn show(member: &str, value: &dyn Reflect, found: &mut dyn FnMut(Reference<'_>)) {
    let name = |key: &str| text(value, key);
    match member {
        "secretKeyRef" | "secretRef" | "nodePublishSecretRef" | "imagePullSecrets" => {
            found(Reference::Secret(name("name")));
        }
        "secret" => {
            found(Reference::Secret(name("secretName")));
            found(Reference::Secret(name("name")));
        }
        "azureFile" => found(Reference::Secret(name("secretName"))),
        "configMapKeyRef" | "configMapRef" | "configMap" => found(Reference::ConfigMap(name("name"))),
        "persistentVolumeClaim" => found(Reference::Claim(name("claimName"))),
        _ => {}
    }
}

/// Shows every member that is a struct, and every struct in a list, with the member's name. Free maps of these types
/// only hold texts.
pub fn walk(value: &dyn Reflect, found: &mut dyn FnMut(&str, &dyn Reflect)) {
    let fields = value.struct_type().fields;
    for index in written_fields(value) {
        match value.field(index).view() {
            View::Struct(inner) if fields[index].inline => walk(inner, found),
            view => walk_member(fields[index].name, view, found),
        }
    }
}

fn walk_member(name: &str, view: View<'_>, found: &mut dyn FnMut(&str, &dyn Reflect)) {
    match view {
        View::Struct(inner) => {
            found(name, inner);
            walk(inner, found);
        }
        View::Optional(Some(inner)) => walk_member(name, inner.view(), found),
        View::List(items) => {
            for item in (0..items.len()).filter_map(|index| items.item(index)) {
                if let View::Struct(_) = item.view() {
                    walk_member(name, item.view(), found);
                }
            }
        }
        _ => {}
    }
}

/// A text member, also of the inline struct; empty where there is none.
pub fn text<'a>(value: &'a dyn Reflect, name: &str) -> &'a str {
    let table = value.struct_type();
    match table.index_of(name) {
        Some(index) => match value.field(index).view() {
            View::Str(text) => text,
            View::Optional(Some(inner)) => match inner.view() {
                View::Str(text) => text,
                _ => "",
            },
            _ => "",
        },
        None => match table.inline().map(|index| value.field(index).view()) {
            Some(View::Struct(inner)) => text(inner, name),
            _ => "",
        },
    }
}

#[cfg(test)]
mod tests {

    use api_types::core_v1::Pod;

    use super::*;

    #[test]
    fn pods_name_objects_in_many_places() {
        use Reference::{Claim, ConfigMap, Secret};
        for (spec, expected) in [
            (r#"{"imagePullSecrets": [{"name": "t"}]}"#, &[Secret("t")][..]),
            (
                r#"{"containers": [{"env": [{"name": "x", "valueFrom": {"secretKeyRef": {"name": "t", "key": "k"}}}]}]}"#,
                &[Secret("t")],
            ),
            (r#"{"initContainers": [{"envFrom": [{"secretRef": {"name": "t"}}]}]}"#, &[Secret("t")]),
            (r#"{"ephemeralContainers": [{"envFrom": [{"configMapRef": {"name": "t"}}]}]}"#, &[ConfigMap("t")]),
            (r#"{"volumes": [{"name": "v", "secret": {"secretName": "t"}}]}"#, &[Secret("t")]),
            (r#"{"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "t"}}]}}]}"#, &[Secret("t")]),
            (r#"{"volumes": [{"name": "v", "azureFile": {"secretName": "t", "shareName": "s"}}]}"#, &[Secret("t")]),
            (
                r#"{"volumes": [{"name": "v", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "t"}}}]}"#,
                &[Secret("t")],
            ),
            (r#"{"volumes": [{"name": "t", "configMap": {"name": "t"}}]}"#, &[ConfigMap("t")]),
            (r#"{"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "t"}}]}"#, &[Claim("t")]),
            (r#"{"containers": [{"name": "t", "image": "t"}], "nodeName": "t"}"#, &[]),
        ] {
            let mut pod = PodSpec::default();
            api_machinery::json::decode(spec.as_bytes(), &mut pod).unwrap();
            let mut shown = Vec::new();
            each_reference(&pod, &mut |reference| {
                let (Secret(name) | ConfigMap(name) | Claim(name)) = reference;
                if !name.is_empty() {
                    shown.push(format!("{reference:?}"));
                }
            });
            assert_eq!(shown, expected.iter().map(|one| format!("{one:?}")).collect::<Vec<_>>(), "{spec}");
        }
    }

    /// No part of a spec that names objects is left out: a walk over all of a pod with every field set finds no more.
    #[test]
    fn the_rest_of_a_spec_names_nothing() {
        let Some(golden) = test_facts::outside("api-roundtrip/core.v1.Pod.json") else { return };
        let text = std::fs::read(golden).unwrap();
        let mut pod = Pod::default();
        api_machinery::json::decode(&text, &mut pod).unwrap();
        let (mut some, mut all) = (Vec::new(), Vec::new());
        each_reference(&pod.spec, &mut |reference| some.push(format!("{reference:?}")));
        walk(&pod.spec, &mut |member, value| {
            show(member, value, &mut |reference| all.push(format!("{reference:?}")));
        });
        some.sort();
        all.sort();
        assert!(all.len() > 20, "{all:?}");
        assert_eq!(some, all);
    }
}
