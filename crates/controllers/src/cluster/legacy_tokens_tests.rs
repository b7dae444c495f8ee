//! Marking and deleting unused token Secrets.

use api_types::core_v1::constants::secret_type::KUBERNETES_IO_SERVICE_ACCOUNT_TOKEN as TOKEN_TYPE;
use api_types::core_v1::constants::{SERVICE_ACCOUNT_NAME_KEY, SERVICE_ACCOUNT_UID_KEY};
use api_types::core_v1::{LocalObjectReference, ObjectReference};

use super::*;
use crate::workloads::fixtures::{Running, meta, pod, run_until_idle};

const KNOWN: &[Descriptor] = &[DESCRIPTOR];

fn time(text: &str) -> Time {
    day(text).unwrap()
}

fn secret(created: &str, labels: &[(&str, &str)]) -> Secret {
    let mut secret = Secret { metadata: meta("t"), type_: TOKEN_TYPE.into(), ..Secret::default() };
    secret.metadata.creation_timestamp = time(created);
    secret.metadata.labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    secret.metadata.annotations.insert(SERVICE_ACCOUNT_NAME_KEY.into(), "a".into());
    secret.metadata.annotations.insert(SERVICE_ACCOUNT_UID_KEY.into(), "a-uid".into());
    secret
}

#[test]
fn secrets_are_marked_first_and_deleted_later() {
    let mut dying = secret("2024-01-01", &[]);
    dying.metadata.deletion_timestamp = Some(time("2025-01-01"));
    for (name, secret, candidate, expected) in [
        ("never used", secret("2024-01-01", &[]), true, Plan::Mark),
        ("no candidate", secret("2024-01-01", &[]), false, Plan::Keep),
        ("young", secret("2025-06-01", &[]), true, Plan::Keep),
        ("dying", dying, true, Plan::Keep),
        ("used lately", secret("2024-01-01", &[(LAST_USED, "2025-06-01")]), true, Plan::Keep),
        ("used long ago", secret("2024-01-01", &[(LAST_USED, "2025-05-31")]), true, Plan::Mark),
        ("used at no date", secret("2024-01-01", &[(LAST_USED, "never")]), true, Plan::Keep),
        ("marked lately", secret("2024-01-01", &[(INVALID_SINCE, "2025-06-01")]), true, Plan::Keep),
        ("marked long ago", secret("2024-01-01", &[(INVALID_SINCE, "2025-05-31")]), true, Plan::Delete),
        ("marked at no date", secret("2024-01-01", &[(INVALID_SINCE, "x")]), true, Plan::Mark),
        (
            "used since it was marked",
            secret("2024-01-01", &[(INVALID_SINCE, "2025-01-01"), (LAST_USED, "2025-07-01")]),
            true,
            Plan::Keep,
        ),
    ] {
        assert_eq!(plan(&secret, time("2025-06-01"), || candidate), expected, "{name}");
    }
}

#[test]
fn use_must_have_been_noted_for_a_period_and_a_day() {
    let map = |since: &str| ConfigMap {
        data: [(TRACKING_SINCE.to_owned(), since.to_owned())].into(),
        ..ConfigMap::default()
    };
    let year = Duration::from_secs(365 * 24 * 3600);
    for (since, now, expected) in [
        ("2025-01-01", "2026-01-01", false),
        ("2025-01-01", "2026-01-02", true),
        ("2025-1-1", "2027-01-01", false),
        ("", "2027-01-01", false),
    ] {
        assert_eq!(tracked_long_enough(&map(since), time(now), year), expected, "{since} {now}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_automatic_secrets_that_no_pod_names_are_marked() {
    let settings = Settings { legacy_token_clean_up_period: DAY, ..Settings::default() };
    let running = Running::start_with(KNOWN, settings);
    let mut map =
        ConfigMap { data: [(TRACKING_SINCE.to_owned(), "2020-01-01".to_owned())].into(), ..ConfigMap::default() };
    (map.metadata.name, map.metadata.namespace) = (TRACKING_NAME.into(), TRACKING_NAMESPACE.into());
    running.put("v1/configmaps", &map);
    let mut account = ServiceAccount { metadata: meta("a"), ..ServiceAccount::default() };
    for name in ["auto", "pulled"] {
        account.secrets.push(ObjectReference { name: name.into(), ..ObjectReference::default() });
    }
    running.put("v1/serviceaccounts", &account);
    for name in ["auto", "pulled", "manual"] {
        let mut secret = secret("1970-01-01", &[]);
        (secret.metadata.name, secret.metadata.uid) = (name.into(), name.into());
        running.put("v1/secrets", &secret);
    }
    let mut user = pod("p", "Running", None);
    user.spec.image_pull_secrets.push(LocalObjectReference { name: "pulled".into() });
    running.put("v1/pods", &user);
    run_until_idle().await;
    let secrets = running.client.namespaced::<Secret>("ns").list(&Default::default()).await.unwrap();
    let marked: Vec<_> = secrets.items.iter().filter(|one| one.metadata.labels.contains_key(INVALID_SINCE)).collect();
    assert_eq!(marked.iter().map(|one| one.metadata.name.as_str()).collect::<Vec<_>>(), ["auto"]);
}
