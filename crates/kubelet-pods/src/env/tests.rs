//! Whole environments.

use api_types::core_v1::{
    ConfigMapEnvSource, ConfigMapKeySelector, LocalObjectReference, SecretEnvSource, SecretKeySelector,
};

use super::*;
use crate::objects::FixedObjects;

fn literal(name: &str, value: &str) -> EnvVar {
    EnvVar { name: name.into(), value: value.into(), ..EnvVar::default() }
}

fn reference(name: &str) -> LocalObjectReference {
    LocalObjectReference { name: name.into() }
}

fn objects() -> FixedObjects {
    let mut objects = FixedObjects::default();
    let data = [("A".to_owned(), "from map".to_owned()), ("B".to_owned(), "b".to_owned())];
    objects.put_config_map("ns", "settings", data);
    objects.put_secret("ns", "login", [("token".to_owned(), b"hidden".to_vec())]);
    objects
}

async fn made(container: Container, services: &[(&str, &str)]) -> Result<BTreeMap<String, String>, String> {
    let mut pod = Pod::default();
    pod.metadata.namespace = "ns".into();
    let services = services.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let (objects, around) = (objects(), Surroundings::default());
    let sources = Sources {
        pod: &pod,
        container: &container,
        objects: &objects,
        services,
        around: &around,
        empty_dirs: &|_| None,
    };
    build(&sources).await.map_err(|error| error.to_string())
}

#[tokio::test]
async fn later_sources_win_and_values_refer_backwards() {
    let container = Container {
        env_from: vec![
            EnvFromSource {
                config_map_ref: Some(ConfigMapEnvSource {
                    local_object_reference: reference("settings"),
                    ..ConfigMapEnvSource::default()
                }),
                ..EnvFromSource::default()
            },
            EnvFromSource {
                prefix: "S_".into(),
                secret_ref: Some(SecretEnvSource {
                    local_object_reference: reference("login"),
                    ..SecretEnvSource::default()
                }),
                ..EnvFromSource::default()
            },
        ],
        env: vec![
            literal("A", "own"),
            literal("C", "$(A)-$(B)-$(SVC)-$(LATER)"),
            literal("LATER", "x"),
            literal("SVC2", "$(C)"),
        ],
        ..Container::default()
    };
    let made = made(container, &[("SVC", "10.0.0.1"), ("A", "service")]).await.unwrap();
    let expected = [
        ("A", "own"),
        ("B", "b"),
        ("S_token", "hidden"),
        ("C", "own-b-10.0.0.1-$(LATER)"),
        ("LATER", "x"),
        ("SVC2", "own-b-10.0.0.1-$(LATER)"),
        ("SVC", "10.0.0.1"),
    ];
    let expected: BTreeMap<_, _> = expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    assert_eq!(made, expected);
}

#[tokio::test]
async fn what_is_missing_is_an_error_unless_optional() {
    let from_map = |name: &str, key: &str, optional| EnvVar {
        name: "X".into(),
        value_from: Some(Box::new(EnvVarSource {
            config_map_key_ref: Some(ConfigMapKeySelector {
                local_object_reference: reference(name),
                key: key.into(),
                optional: Some(optional),
            }),
            ..EnvVarSource::default()
        })),
        ..EnvVar::default()
    };
    let from_secret = |name: &str, key: &str| EnvVar {
        name: "X".into(),
        value_from: Some(Box::new(EnvVarSource {
            secret_key_ref: Some(SecretKeySelector {
                local_object_reference: reference(name),
                key: key.into(),
                optional: None,
            }),
            ..EnvVarSource::default()
        })),
        ..EnvVar::default()
    };
    let cases = [
        (from_map("settings", "A", false), Ok(Some("from map"))),
        (from_map("settings", "none", false), Err("couldn't find key none in ConfigMap ns/settings")),
        (from_map("none", "A", false), Err("configmap \"none\" not found")),
        (from_map("settings", "none", true), Ok(None)),
        (from_map("none", "A", true), Ok(None)),
        (from_secret("login", "token"), Ok(Some("hidden"))),
        (from_secret("login", "none"), Err("couldn't find key none in Secret ns/login")),
        (from_secret("none", "x"), Err("secret \"none\" not found")),
    ];
    for (variable, expected) in cases {
        let found = made(Container { env: vec![variable], ..Container::default() }, &[]).await;
        let found = found.map(|variables| variables.get("X").cloned());
        assert_eq!(found.as_ref().map(Option::as_deref).map_err(String::as_str), expected);
    }
}
