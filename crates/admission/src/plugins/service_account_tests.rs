//! Accounts, tokens, and the secrets that pods may name.

use api_types::core_v1::Container;

use super::*;
use crate::plugins::testing::{Fixture, create};

fn fixture(account: ServiceAccount) -> (Fixture, Attributes) {
    let mut account = account;
    account.metadata.name = "default".into();
    account.metadata.namespace = "a".into();
    let mut attributes = create("", "pods");
    attributes.namespace = "a".into();
    (Fixture::default().with(vec![account]), attributes)
}

fn pod() -> Pod {
    let mut pod = Pod::default();
    pod.spec.containers.push(Container { name: "c".into(), ..Container::default() });
    pod
}

#[tokio::test]
async fn a_pod_gets_an_account_and_one_token() {
    let (fixture, attributes) = fixture(ServiceAccount::default());
    let mut pod = pod();
    for _ in 0..2 {
        fixture.mutate(&ENTRY, &attributes, &mut pod).await.unwrap();
    }
    assert_eq!(pod.spec.service_account_name, "default");
    assert_eq!((pod.spec.volumes.len(), pod.spec.containers[0].volume_mounts.len()), (1, 1));
    assert!(pod.spec.volumes[0].name.starts_with("kube-api-access-"));
    fixture.validate(&ENTRY, &attributes, &pod).await.unwrap();
}

#[tokio::test]
async fn automount_can_be_switched_off() {
    let account = ServiceAccount { automount_service_account_token: Some(false), ..ServiceAccount::default() };
    let (fixture, attributes) = fixture(account);
    let mut quiet = pod();
    fixture.mutate(&ENTRY, &attributes, &mut quiet).await.unwrap();
    assert!(quiet.spec.volumes.is_empty());
    let mut asking = pod();
    asking.spec.automount_service_account_token = Some(true);
    fixture.mutate(&ENTRY, &attributes, &mut asking).await.unwrap();
    assert_eq!(asking.spec.volumes.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_missing_account_is_refused() {
    let (fixture, attributes) = fixture(ServiceAccount::default());
    let mut pod = pod();
    pod.spec.service_account_name = "nobody".into();
    let error = fixture.mutate(&ENTRY, &attributes, &mut pod).await.unwrap_err();
    assert_eq!(
        error.message,
        "pods \"x\" is forbidden: error looking up service account a/nobody: serviceaccount \"nobody\" not found"
    );
}

#[tokio::test]
async fn unlisted_secrets_are_refused_everywhere() {
    let mut account = ServiceAccount::default();
    account.metadata.annotations.insert(ENFORCE_MOUNTABLE.into(), "true".into());
    let (fixture, attributes) = fixture(account);
    let mut by_pull = pod();
    by_pull.spec.image_pull_secrets.push(LocalObjectReference { name: "s".into() });
    let mut by_volume = pod();
    let secret = Some(api_types::core_v1::SecretVolumeSource { secret_name: "s".into(), ..Default::default() });
    let volume_source = VolumeSource { secret, ..VolumeSource::default() };
    by_volume.spec.volumes.push(Volume { name: "v".into(), volume_source });
    let mut by_env = pod();
    let source = api_types::core_v1::SecretEnvSource {
        local_object_reference: LocalObjectReference { name: "s".into() },
        ..Default::default()
    };
    let from = api_types::core_v1::EnvFromSource { secret_ref: Some(source), ..Default::default() };
    by_env.spec.containers[0].env_from.push(from);
    for mut pod in [by_pull, by_volume, by_env] {
        pod.spec.service_account_name = "default".into();
        let error = fixture.validate(&ENTRY, &attributes, &pod).await.unwrap_err();
        assert!(error.message.contains("does not reference that"), "{}", error.message);
    }
}

#[tokio::test]
async fn ephemeral_containers_read_listed_secrets_only() {
    let mut account = ServiceAccount::default();
    account.metadata.annotations.insert(ENFORCE_MOUNTABLE.into(), "true".into());
    account.secrets.push(api_types::core_v1::ObjectReference { name: "own".into(), ..Default::default() });
    let (fixture, mut attributes) = fixture(account);
    (attributes.operation, attributes.subresource) = (Operation::Update, "ephemeralcontainers".into());
    for (container, expected) in [
        (r#"{"name": "e", "envFrom": [{"secretRef": {"name": "own"}}]}"#, None),
        (r#"{"name": "e", "envFrom": [{"secretRef": {"name": "s"}}]}"#, Some("e with envFrom")),
        (
            r#"{"name": "e", "env": [{"name": "v", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}"#,
            Some("e with envVar v"),
        ),
    ] {
        // What the pod itself reads was looked at when it was created.
        let text = format!(
            r#"{{"serviceAccountName": "default", "imagePullSecrets": [{{"name": "s"}}],
                "ephemeralContainers": [{container}]}}"#
        );
        let mut pod = Pod::default();
        api_machinery::json::decode(text.as_bytes(), &mut pod.spec).unwrap();
        let outcome = fixture.validate_update(&ENTRY, &attributes, &pod, &pod).await;
        let found = outcome.err().map(|error| (error.code, error.message));
        let expected = expected.map(|place| {
            let rest = "is not allowed because service account default does not reference that secret";
            (500, format!("ephemeral container {place} referencing secret.secretName=\"s\" {rest}"))
        });
        assert_eq!(found, expected, "{container}");
    }
}

#[tokio::test]
async fn mirror_pods_are_checked_before_they_are_changed() {
    let (fixture, attributes) = fixture(ServiceAccount::default());
    let mut pod = pod();
    pod.metadata.annotations.insert(MIRROR_POD_ANNOTATION_KEY.into(), "x".into());
    pod.spec.service_account_name = "default".into();
    let error = fixture.mutate(&ENTRY, &attributes, &mut pod).await.unwrap_err();
    assert!(error.message.ends_with("a mirror pod may not reference service accounts"), "{}", error.message);
}

#[tokio::test]
async fn mirror_pods_name_no_secrets() {
    let (fixture, attributes) = fixture(ServiceAccount::default());
    for volume in [
        r#""secret": {"secretName": "s"}"#,
        r#""projected": {"sources": [{"secret": {"name": "s"}}]}"#,
        r#""iscsi": {"targetPortal": "p", "iqn": "q", "lun": 0, "secretRef": {"name": "s"}}"#,
    ] {
        let mut pod = pod();
        pod.metadata.annotations.insert(MIRROR_POD_ANNOTATION_KEY.into(), "x".into());
        fixture.validate(&ENTRY, &attributes, &pod).await.unwrap();
        let text = format!(r#"{{"volumes": [{{"name": "v", {volume}}}]}}"#);
        api_machinery::json::decode(text.as_bytes(), &mut pod.spec).unwrap();
        let error = fixture.validate(&ENTRY, &attributes, &pod).await.unwrap_err();
        assert!(error.message.ends_with("a mirror pod may not reference secrets"), "{volume}: {}", error.message);
        let early = fixture.mutate(&ENTRY, &attributes, &mut pod).await.unwrap_err();
        assert_eq!(early.message, error.message, "it is said before other plugins see the pod");
    }
}
