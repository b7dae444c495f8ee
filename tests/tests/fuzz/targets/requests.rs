//! Whole requests to an API server over a store in memory: an input is a line with method, path and query, a line each with
//! the types of the answer and of the body, and the body. Whatever is asked, the server answers, and never that it failed.

use std::time::Duration;

use client::Request;
use http::Method;
use testing::Cluster;

use super::text;
use crate::engine::Target;

/// The longest that a request may wait, in the cluster's time.
const PATIENCE: Duration = Duration::from_secs(90);

pub(super) const REQUESTS: Target = Target {
    name: "requests",
    words: &[
        "?continue=",
        "&limit=1",
        "?resourceVersion=",
        "&resourceVersionMatch=Exact",
        "?fieldSelector=metadata.name%3Da",
        "?labelSelector=a+in+(b)",
        "/status",
        "/api/v1/namespaces/default/configmaps",
        "/apis/apps/v1/deployments",
        "?dryRun=All",
        "?fieldManager=me&force=true",
        "?fieldValidation=Strict",
        "PATCH ",
        "POST ",
        "PUT ",
        "DELETE ",
        "GET ",
        "application/apply-patch+yaml",
        "application/strategic-merge-patch+json",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/cbor",
        "application/vnd.kubernetes.protobuf",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/yaml",
        "\"metadata\":{\"name\":\"a\"}",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "?sendInitialEvents=true&watch=true",
    ],
    player: || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        let cluster = runtime.block_on(Cluster::new(1)).expect("the cluster starts");
        Box::new(move |input| {
            let Some(request) = request(input) else { return String::new() };
            runtime.block_on(async {
                let answer =
                    tokio::time::timeout(PATIENCE, cluster.admin().send(request)).await.expect("an answer in time");
                match answer {
                    Ok(answer) => answer.status.to_string(),
                    Err(error) => {
                        let code = error.api().map(|error| error.code);
                        assert!(code.is_none_or(|code| code != 500), "{error}");
                        error.to_string()
                    }
                }
            })
        })
    },
};

fn request(input: &[u8]) -> Option<Request> {
    let mut lines = input.splitn(4, |byte| *byte == b'\n');
    let mut line = || lines.next().map(text);
    let (method, target) = line()?.split_once(' ')?;
    let (accept, media_type) = (line()?.to_owned(), line()?.to_owned());
    let method = Method::from_bytes(method.as_bytes()).ok()?;
    target.parse::<http::Uri>().ok().filter(|uri| uri.path().starts_with('/'))?;
    let body = lines.next().unwrap_or_default().to_vec();
    Some(Request::new(method, target).accept(&accept).body(&media_type, body))
}
