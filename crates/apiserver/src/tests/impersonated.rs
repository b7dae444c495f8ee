//! Acting as somebody else, for a part of what the other may do.

use std::time::Duration;

use serde_json::json;

use super::harness::Api;

const ALICE: (&str, &str) = ("authorization", "Bearer alice");
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Allows alice these verbs on a resource of a group.
async fn allow(api: &Api, name: &str, rules: serde_json::Value) {
    let role = json!({"metadata": {"name": name}, "rules": rules});
    let group = "/apis/rbac.authorization.k8s.io/v1";
    assert_eq!(api.post(&format!("{group}/clusterroles"), &role.to_string()).await.code, 201);
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
    });
    assert_eq!(api.post(&format!("{group}/clusterrolebindings"), &binding.to_string()).await.code, 201);
    // The authorizer follows the store.
    tokio::time::sleep(Duration::from_millis(100)).await;
}

fn rule(verb: &str, group: &str, resource: &str) -> serde_json::Value {
    json!({"verbs": [verb], "apiGroups": [group], "resources": [resource]})
}

#[tokio::test(start_paused = true)]
async fn both_permissions_are_needed_and_the_other_must_be_allowed_too() {
    let api = Api::start().await;
    let as_bob = [ALICE, ("impersonate-user", "bob")];
    let list = async || api.send(&format!("GET {MAPS}"), &as_bob, "").await;
    let refused = |verb: &str, rest: &str| format!("is forbidden: User \"alice\" cannot {verb} resource {rest}");
    let (_, message) = list().await.refusal();
    assert!(
        message
            .contains(&refused("impersonate-on:user-info:list", "\"configmaps\" in API group \"\" in the namespace")),
        "{message}"
    );
    allow(&api, "on", json!([rule("impersonate-on:user-info:list", "", "configmaps")])).await;
    let (_, message) = list().await.refusal();
    let users = "\"users\" in API group \"authentication.k8s.io\" at the cluster scope";
    assert_eq!(message, format!("users.authentication.k8s.io \"bob\" {}", refused("impersonate:user-info", users)));
    allow(&api, "be", json!([rule("impersonate:user-info", "authentication.k8s.io", "users")])).await;
    let (code, message) = list().await.refusal();
    assert_eq!(code, 403);
    assert!(message.contains("User \"bob\" cannot list resource \"configmaps\""), "{message}");
    let (_, message) = api.send(&format!("GET {MAPS}/x"), &as_bob, "").await.refusal();
    assert!(message.contains(&refused("impersonate-on:user-info:get", "\"configmaps\"")), "{message}");
    let masters = [ALICE, ("impersonate-user", "bob"), ("impersonate-group", "system:masters")];
    let (_, message) = api.send(&format!("GET {MAPS}"), &masters, "").await.refusal();
    assert!(message.ends_with("impersonating the system:masters group is not allowed"), "{message}");
    let account = [ALICE, ("impersonate-user", "system:serviceaccount:default:default")];
    let (_, message) = api.send(&format!("GET {MAPS}"), &account, "").await.refusal();
    assert!(message.contains("impersonate-on:serviceaccount:list"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn what_was_allowed_is_remembered_for_a_moment() {
    let api = Api::start().await;
    let as_bob = [ALICE, ("impersonate-user", "bob")];
    let message = async || api.send(&format!("GET {MAPS}"), &as_bob, "").await.refusal().1;
    allow(
        &api,
        "all",
        json!([
            rule("impersonate-on:user-info:list", "", "configmaps"),
            rule("impersonate:user-info", "authentication.k8s.io", "users"),
        ]),
    )
    .await;
    assert!(message().await.contains("User \"bob\" cannot list"));
    assert_eq!(api.delete("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/all").await.code, 200);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(message().await.contains("User \"bob\" cannot list"), "it is remembered");
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert!(message().await.contains("impersonate-on:user-info:list"), "and forgotten");
}

#[tokio::test(start_paused = true)]
async fn the_old_permission_is_good_for_all() {
    let api = Api::start().await;
    allow(&api, "old", json!([rule("impersonate", "", "users")])).await;
    let as_bob = [ALICE, ("impersonate-user", "bob")];
    for _ in 0..2 {
        let (_, message) = api.send(&format!("GET {MAPS}"), &as_bob, "").await.refusal();
        assert!(message.contains("User \"bob\" cannot list"), "{message}");
    }
    assert_eq!(api.delete("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/old").await.code, 200);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let (_, message) = api.send(&format!("GET {MAPS}"), &as_bob, "").await.refusal();
    assert!(message.starts_with("users \"bob\" is forbidden: User \"alice\" cannot impersonate resource"), "{message}");
}
