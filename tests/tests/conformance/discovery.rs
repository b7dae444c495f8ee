//! Discovery in both forms, the version, and what has no table.

use std::collections::BTreeSet;

use api_machinery::value::Value;
use client::Request;
use http::{Method, header};
use serde_json::json;

use crate::custom_resources::{definition, establish};
use crate::harness::{Cx, conform, text};
use crate::lifecycle::find;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

async fn aggregated(cx: &Cx, path: &str) -> Value {
    let list = cx.send(Request::get(path).header(header::ACCEPT, AGGREGATED)).await.ok();
    assert_eq!(list["kind"], "APIGroupDiscoveryList");
    assert_eq!(list["apiVersion"], "apidiscovery.k8s.io/v2");
    list
}

/// All resources as `group/version/resource`.
async fn resources(cx: &Cx) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in ["/api", "/apis"] {
        let list = aggregated(cx, path).await;
        for group in list["items"].as_array().into_iter().flatten() {
            for version in group["versions"].as_array().into_iter().flatten() {
                for resource in version["resources"].as_array().into_iter().flatten() {
                    let group = text(&group["metadata"]["name"]);
                    found.insert(format!("{group}/{}/{}", text(&version["version"]), text(&resource["resource"])));
                }
            }
        }
    }
    found
}

#[test]
fn aggregated_discovery_interface() {
    conform(async |cx| {
        let found = client::discover(cx.client()).await.expect("discovery");
        assert_eq!(found.failed.len(), 0);
        let names: BTreeSet<String> = found
            .resources
            .iter()
            .map(|served| {
                let resource = &served.info.resource;
                format!("{}/{}/{}", resource.group, resource.version, resource.resource)
            })
            .collect();
        assert_eq!(names, resources(cx).await);
    });
}

#[test]
fn aggregated_discovery_interface_crds() {
    conform(async |cx| {
        establish(cx, &definition("discovery", "example.com", &["v1"])).await;
        cx.eventually("the resource in discovery", async || {
            let found = client::discover(cx.client()).await.expect("discovery");
            let own = found.resources.iter().any(|served| &*served.info.resource.resource == "discoveries");
            own.then_some(())
        })
        .await;
    });
}

#[test]
fn aggregated_discovery_endpoint_accept_headers() {
    conform(async |cx| {
        let found = resources(cx).await;
        for wanted in [
            "/v1/namespaces",
            "/v1/nodes",
            "/v1/pods",
            "/v1/services",
            "apps/v1/deployments",
            "apiextensions.k8s.io/v1/customresourcedefinitions",
            "batch/v1/jobs",
            "rbac.authorization.k8s.io/v1/clusterroles",
        ] {
            assert!(found.contains(wanted), "{wanted} is not among {found:?}");
        }
    });
}

#[test]
fn aggregated_discovery_endpoint_accept_headers_crds() {
    conform(async |cx| {
        establish(cx, &definition("discovery", "example.com", &["v1"])).await;
        cx.eventually("the resource in discovery", async || {
            resources(cx).await.contains("example.com/v1/discoveries").then_some(())
        })
        .await;
    });
}

#[test]
fn discovery_confirm_the_group_version_and_a_resource_from_each_group() {
    conform(async |cx| {
        let groups = cx.get("/apis").await.ok();
        for group in groups["groups"].as_array().expect("groups") {
            for version in group["versions"].as_array().expect("versions") {
                let wanted = text(&version["groupVersion"]);
                let list = cx.get(&format!("/apis/{wanted}")).await.ok();
                assert_eq!(list["groupVersion"], wanted);
                let resources = list["resources"].as_array().expect("resources");
                assert!(resources.iter().any(|resource| !text(&resource["kind"]).is_empty()), "{wanted}");
            }
        }
    });
}

#[test]
fn discovery_confirm_the_preferred_version_for_each_group() {
    conform(async |cx| {
        let groups = cx.get("/apis").await.ok();
        for group in groups["groups"].as_array().expect("groups") {
            let preferred = text(&group["preferredVersion"]["groupVersion"]);
            assert!(find(&group["versions"], "groupVersion", preferred).is_some(), "{group}");
            let own = cx.get(&format!("/apis/{}", text(&group["name"]))).await.ok();
            assert_eq!(own["preferredVersion"], group["preferredVersion"]);
        }
    });
}

#[test]
fn api_metadata_http_return() {
    conform(async |cx| {
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let body = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}}});
        let request = Request::new(Method::POST, path)
            .header(header::ACCEPT, "application/json;as=Table;v=v1;g=meta.k8s.io")
            .body("application/json", body.to_string());
        cx.send(request).await.refused(406);
    });
}

#[test]
fn confirm_a_server_version() {
    conform(async |cx| {
        let version = cx.get("/version").await.ok();
        for member in ["major", "minor"] {
            let number = text(&version[member]);
            assert!(!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()), "{version}");
        }
    });
}
