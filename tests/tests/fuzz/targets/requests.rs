//! Whole requests to an API server over a store in memory: an input is a line with method, path and query, a line each with
//! the types of the answer and of the body, and the body. Whatever is asked, the server answers, and never that it failed (of
//! what has no status form upstream says 500 without a reason).

use std::time::Duration;

use api_machinery::status::reason;
use client::Request;
use http::Method;
use rand::rngs::StdRng;
use testing::Cluster;

use super::text;
use crate::engine::{Answer, Target};
use crate::objects;

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
    made: Some(creation),
    inputs: 250,
    player: || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        let cluster = runtime.block_on(Cluster::new(1)).expect("the cluster starts");
        Box::new(move |input| {
            let Some(request) = request(input) else { return Answer::nothing() };
            runtime.block_on(async {
                let answer =
                    tokio::time::timeout(PATIENCE, cluster.admin().send(request)).await.expect("an answer in time");
                match answer {
                    Ok(answer) => Answer::Taken(answer.status.to_string()),
                    Err(error) => {
                        let reason = error.api().map(|error| &*error.reason);
                        assert_ne!(reason, Some(reason::INTERNAL_ERROR), "{error}");
                        Answer::Refused(error.to_string())
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

/// The creation of an object of any kind.
fn creation(rng: &mut StdRng) -> Vec<u8> {
    let (rules, object) = objects::any(rng);
    let info = rules.info();
    let root = if info.group.is_empty() { "/api" } else { "/apis" };
    let namespace = if info.namespaced { "namespaces/default/" } else { "" };
    let path = format!("{root}/{}/{namespace}{}", info.api_version(), info.resource);
    format!("POST {path}\napplication/json\napplication/json\n{object}").into_bytes()
}
