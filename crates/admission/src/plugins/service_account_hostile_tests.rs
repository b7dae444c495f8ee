//! Every way by which a pod can ask for a secret that its account does not list.

use serde_json::{Value, json};

use super::*;
use crate::plugins::testing::{Fixture, create};

const LISTS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

fn fixture() -> (Fixture, Attributes) {
    let mut account = ServiceAccount::default();
    (account.metadata.name, account.metadata.namespace) = ("default".into(), "a".into());
    account.metadata.annotations.insert(ENFORCE_MOUNTABLE.into(), "true".into());
    account.secrets.push(api_types::core_v1::ObjectReference { name: "own".into(), ..Default::default() });
    account.image_pull_secrets.push(LocalObjectReference { name: "own".into() });
    let attributes = Attributes { namespace: "a".into(), ..create("", "pods") };
    (Fixture::default().with(vec![account]), attributes)
}

/// A pod whose containers and volumes ask for a secret in one way.
fn asking(change: impl Fn(&mut Value)) -> Pod {
    let mut spec = json!({"serviceAccountName": "default", "containers": [{"name": "c"}],
        "initContainers": [{"name": "i"}], "ephemeralContainers": [{"name": "e"}]});
    change(&mut spec);
    let mut pod = Pod::default();
    api_machinery::json::decode(spec.to_string().as_bytes(), &mut pod.spec).unwrap();
    pod
}

#[tokio::test]
async fn no_place_in_a_pod_reads_an_unlisted_secret() {
    let (fixture, attributes) = fixture();
    for (name, allowed) in [("own", true), ("s", false)] {
        let env = json!([{"name": "V", "valueFrom": {"secretKeyRef": {"name": name, "key": "k"}}}]);
        let from = json!([{"secretRef": {"name": name}}]);
        let mut pods = vec![
            asking(|spec| spec["imagePullSecrets"] = json!([{"name": name}])),
            asking(|spec| spec["volumes"] = json!([{"name": "v", "secret": {"secretName": name}}])),
        ];
        for list in LISTS {
            pods.push(asking(|spec| spec[list][0]["env"] = env.clone()));
            pods.push(asking(|spec| spec[list][0]["envFrom"] = from.clone()));
        }
        for pod in pods {
            let is_ephemeral = pod.spec.ephemeral_containers.iter().any(|own| {
                let common = &own.ephemeral_container_common;
                !common.env.is_empty() || !common.env_from.is_empty()
            });
            let outcome = if is_ephemeral {
                let update = (Operation::Update, "ephemeralcontainers".to_owned());
                let attributes = Attributes { operation: update.0, subresource: update.1, ..attributes.clone() };
                fixture.validate_update(&ENTRY, &attributes, &pod, &pod).await
            } else {
                fixture.validate(&ENTRY, &attributes, &pod).await
            };
            assert_eq!(outcome.is_ok(), allowed, "{name}: {:?}", pod.spec);
        }
    }
}
