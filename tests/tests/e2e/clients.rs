//! Clients that nobody here wrote: `tests/clients` drives the cluster with the libraries of other languages.

use sys::exec::{Command, Exec as _, Exit};

use crate::cluster::{Cluster, manifest, repository};

/// What every suite says once it holds, in its order; `ok NAME` a line.
const CHECKS: &[&str] =
    &["objects", "watches", "patches", "informers", "definitions", "elections", "exec", "port-forward"];
/// A client, and what its suite shows beyond that.
const CLIENTS: &[(&str, &[&str])] = &[("python", &[]), ("node", &[]), ("rust", &["protobuf"])];
/// How `hack/clients.sh` ends where a client cannot be had.
const UNAVAILABLE: i32 = 75;
/// The first run fetches and builds.
const DEADLINE: std::time::Duration = std::time::Duration::from_secs(900);

pub(crate) async fn story(cluster: Cluster) {
    for (client, beyond) in CLIENTS {
        suite(&cluster, client, beyond).await;
    }
}

async fn suite(cluster: &Cluster, client: &str, beyond: &[&str]) {
    let namespace = format!("clients-{client}");
    let kubectl = cluster.story_namespace(&namespace).await;
    kubectl.ok(&format!("apply -f {}", manifest("clients.yaml"))).await;
    kubectl.ok("wait --for=condition=Ready pod/shell pod/web --timeout=90s").await;
    let command = Command::new(repository("hack/clients.sh"))
        .args(["run", client])
        .env("KUBECONFIG", kubectl.kubeconfig.display().to_string())
        .env("NAMESPACE", &namespace)
        .env("POD", "shell")
        .env("WEB", "web")
        .deadline(DEADLINE);
    let output = cluster.exec.run(&command).await.unwrap_or_else(|error| panic!("{error}"));
    kubectl.ok(&format!("delete namespace {namespace} --wait=false")).await;
    if output.exit == Exit::Code(UNAVAILABLE) {
        test_facts::skipped(&format!("the suite of clients in {client}: {}", output.error_text().trim()));
        return;
    }
    let (text, errors) = (output.text(), output.error_text());
    assert!(output.success(), "{client}: {text}{errors}");
    let held: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("ok ")).collect();
    assert_eq!(held, [CHECKS, beyond].concat(), "{client}: {errors}");
}
