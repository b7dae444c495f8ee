//! Service accounts, their tokens, access reviews and signing requests.

use api_machinery::value::Value;
use client::Request;
use http::Method;
use serde_json::json;

use crate::harness::{Cx, conform, conform_with_tokens, name_of, patch, text};
use crate::lifecycle::Lifecycle;

const REQUEST: &str = include_str!("request.csr.b64");

#[test]
fn certificate_signing_request_api() {
    conform(async |cx| {
        let object = json!({"spec": {"request": REQUEST.trim(), "signerName": "example.com/e2e-signer",
            "expirationSeconds": 3600, "usages": ["digital signature", "key encipherment", "server auth"]}});
        let requests = Lifecycle {
            group: "certificates.k8s.io",
            resource: "certificatesigningrequests",
            namespace: "",
            object: object.clone(),
            status: None,
        };
        requests.run(cx).await;
        let mut object = object;
        object["metadata"]["name"] = "approved".into();
        cx.create(&requests.collection(), &object).await.ok();
        let own = format!("{}/approved", requests.collection());
        for subresource in ["approval", "status"] {
            let path = format!("{own}/{subresource}");
            assert_eq!(name_of(&cx.get(&path).await.ok()), "approved");
            let body = json!({"metadata": {"annotations": {format!("patched{subresource}"): "true"}}});
            cx.merge(&path, &body).await.ok();
        }
        let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "E2E", "message": "By a test"});
        let mut read = cx.get(&format!("{own}/approval")).await.ok();
        read["status"]["conditions"] = json!([condition("Approved")]);
        let approved = cx.replace(&format!("{own}/approval"), &read).await.ok();
        assert_eq!(approved["status"]["conditions"][0]["type"], "Approved");
        let mut read = cx.get(&format!("{own}/status")).await.ok();
        read["status"]["certificate"] = REQUEST.trim().into();
        cx.replace(&format!("{own}/status"), &read).await.refused(422);
        let mut read = cx.get(&format!("{own}/status")).await.ok();
        read["status"]["conditions"].as_array_mut().expect("conditions").push(condition("StatusUpdate"));
        let updated = cx.replace(&format!("{own}/status"), &read).await.ok();
        assert_eq!(updated["status"]["conditions"][1]["type"], "StatusUpdate");
    });
}

/// Whether a pod got the volume with the token.
fn has_token(pod: &Value) -> bool {
    let mounts = pod["spec"]["containers"][0]["volumeMounts"].as_array();
    let path = "/var/run/secrets/kubernetes.io/serviceaccount";
    mounts.into_iter().flatten().any(|mount| text(&mount["mountPath"]) == path)
}

#[test]
fn service_account_tokens_auto_mount_optionally() {
    conform(async |cx| {
        let ns = cx.namespace("mounts").await;
        let accounts = format!("/api/v1/namespaces/{ns}/serviceaccounts");
        for (account, mounts) in [("mount", json!(true)), ("nomount", json!(false)), ("unset", Value::Null)] {
            let mut object = json!({"metadata": {"name": account}});
            if !mounts.is_null() {
                object["automountServiceAccountToken"] = mounts.clone();
            }
            cx.create(&accounts, &object).await.ok();
            for own in [Value::Null, json!(true), json!(false)] {
                let mut pod = json!({"metadata": {"generateName": "pod-"}, "spec": {
                    "serviceAccountName": account, "containers": [{"name": "main", "image": "pause:1"}]}});
                if !own.is_null() {
                    pod["spec"]["automountServiceAccountToken"] = own.clone();
                }
                let made = cx.create(&format!("/api/v1/namespaces/{ns}/pods"), &pod).await.ok();
                let expected = own.as_bool().or(mounts.as_bool()).unwrap_or(true);
                assert_eq!(has_token(&made), expected, "account {mounts}, pod {own}");
            }
        }
    });
}

#[test]
fn service_account_create_and_review_token() {
    conform_with_tokens(async |cx| {
        let ns = cx.namespace("tokens").await;
        let accounts = format!("/api/v1/namespaces/{ns}/serviceaccounts");
        cx.create(&accounts, &json!({"metadata": {"name": "e2e"}})).await.ok();
        let request = json!({"spec": {"expirationSeconds": 600}});
        let answer = cx.create(&format!("{accounts}/e2e/token"), &request).await.ok();
        let token = text(&answer["status"]["token"]);
        assert!(!token.is_empty());
        let review = json!({"spec": {"token": token}});
        let reviewed = cx.create("/apis/authentication.k8s.io/v1/tokenreviews", &review).await.ok();
        assert_eq!(reviewed["status"]["authenticated"], true, "{}", reviewed["status"]);
        assert_eq!(reviewed["status"]["user"]["username"], format!("system:serviceaccount:{ns}:e2e"));
    });
}

#[test]
fn root_ca_config_map() {
    conform(async |cx| {
        let ns = cx.namespace("root-ca").await;
        let path = format!("/api/v1/namespaces/{ns}/configmaps/kube-root-ca.crt");
        let made = cx.until(&path, |map| map["data"]["ca.crt"].is_string()).await;
        cx.delete(&path).await.ok();
        cx.until(&path, |map| map["data"] == made["data"]).await;
        cx.merge(&path, &json!({"data": {"ca.crt": "garbage"}})).await.ok();
        cx.until(&path, |map| map["data"] == made["data"]).await;
    });
}

#[test]
fn service_account_lifecycle() {
    conform(async |cx| {
        let ns = cx.namespace("accounts").await;
        let path = format!("/api/v1/namespaces/{ns}/serviceaccounts");
        let selected = format!("{path}?labelSelector=test-serviceaccount-static%3Dtrue");
        let mut watch = cx.watch(&selected).await;
        let account = json!({"metadata": {"name": "testserviceaccount",
            "labels": {"test-serviceaccount-static": "true"}}});
        cx.create(&path, &account).await.ok();
        watch.until("ADDED", |object| name_of(object) == "testserviceaccount").await;
        let own = format!("{path}/testserviceaccount");
        let body = json!({"automountServiceAccountToken": false});
        cx.patch(&own, patch::STRATEGIC, &body).await.ok();
        watch.until("MODIFIED", |object| object["automountServiceAccountToken"] == false).await;
        let everywhere = "/api/v1/serviceaccounts?labelSelector=test-serviceaccount-static%3Dtrue";
        assert_eq!(cx.names(everywhere).await, ["testserviceaccount"]);
        cx.delete(&selected).await.ok();
        watch.until("DELETED", |object| name_of(object) == "testserviceaccount").await;
    });
}

#[test]
fn service_account_update() {
    conform(async |cx| {
        let ns = cx.namespace("accounts").await;
        let path = format!("/api/v1/namespaces/{ns}/serviceaccounts");
        let account = json!({"metadata": {"name": "e2e"}, "automountServiceAccountToken": false});
        let mut made = cx.create(&path, &account).await.ok();
        made["automountServiceAccountToken"] = true.into();
        cx.replace(&format!("{path}/e2e"), &made).await.ok();
        assert_eq!(cx.get(&format!("{path}/e2e")).await.ok()["automountServiceAccountToken"], true);
    });
}

async fn allowed(cx: &Cx, path: &str, user: &str, ns: &str) -> bool {
    let mut review = json!({"metadata": {}, "spec": {"user": user, "resourceAttributes": {
        "group": "", "resource": "configmaps", "verb": "list", "version": "v1", "namespace": ns}}});
    if path.contains("localsubject") {
        review["metadata"]["namespace"] = ns.into();
    }
    cx.create(path, &review).await.ok()["status"]["allowed"] == true
}

#[test]
fn subject_review_api_operations() {
    conform(async |cx| {
        let ns = cx.namespace("reviews").await;
        let local = format!("/apis/authorization.k8s.io/v1/namespaces/{ns}/localsubjectaccessreviews");
        let global = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let user = format!("system:serviceaccount:{ns}:e2e");
        let roles = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}");
        for granted in [false, true] {
            if granted {
                let role = json!({"metadata": {"name": "reader"}, "rules": [
                    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]});
                cx.create(&format!("{roles}/roles"), &role).await.ok();
                let binding = json!({"metadata": {"name": "reader"},
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
                    "subjects": [{"kind": "ServiceAccount", "name": "e2e", "namespace": ns}]});
                cx.create(&format!("{roles}/rolebindings"), &binding).await.ok();
                cx.eventually("the grant", async || allowed(cx, global, &user, &ns).await.then_some(())).await;
            }
            assert_eq!(allowed(cx, global, &user, &ns).await, granted);
            assert_eq!(allowed(cx, &local, &user, &ns).await, granted);
            let request = Request::new(Method::GET, format!("/api/v1/namespaces/{ns}/configmaps"));
            let answer = cx.send_as(&user, request).await;
            assert_eq!(answer.code, if granted { 200 } else { 403 }, "{}", answer.body);
        }
    });
}
