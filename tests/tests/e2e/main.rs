//! Whole clusters of real processes and real containers, driven by stock `kubectl`s.
//!
//! Needs root, containerd, nft and kubectl (`make deps` installs them) and the binaries and images (`make test` builds
//! them); skips, saying what is missing, where there is no such machine. There is one machine, so the stories share two
//! clusters that come one after the other; stories that disturb nobody run side by side. This is a program of its own
//! instead of tests in libtest's sense, so that what ran, what was skipped and how long it took is always shown.
//!
//! usage: `cargo test --workspace --test e2e [-- NAME...]`; `COXSWAIN_E2E_KEEP=1` uses the cluster that is there and leaves
//! it there.

mod application;
mod background;
mod clients;
mod cloud;
mod cluster;
mod conformance;
mod elastic;
mod frozen;
mod installer;
mod interactive;
mod kills;
mod kubectl_story;
mod machine;
mod maintenance;
mod node_loss;
mod reboot;
mod rolling;
mod self_healing;
mod services;
mod static_pods;
mod stories;
mod terminal;
mod units;
mod volumes;

use std::process::ExitCode;

use cluster::{Cluster, Shape};
use stories::{Report, Story};

/// What none of these does concerns anybody else's objects.
const SIDE_BY_SIDE: &[Story] = &[
    Story { name: "application", run: |cluster| Box::pin(application::story(cluster)) },
    Story { name: "kubectl-1.36", run: |cluster| Box::pin(kubectl_story::story(cluster, "1.36")) },
    Story { name: "kubectl-1.32", run: |cluster| Box::pin(kubectl_story::story(cluster, "1.32")) },
    Story { name: "interactive-1.36", run: |cluster| Box::pin(interactive::story(cluster, "1.36")) },
    Story { name: "interactive-1.32", run: |cluster| Box::pin(interactive::story(cluster, "1.32")) },
    Story { name: "services", run: |cluster| Box::pin(services::story(cluster)) },
    Story { name: "self-healing", run: |cluster| Box::pin(self_healing::story(cluster)) },
    Story { name: "rolling-update", run: |cluster| Box::pin(rolling::story(cluster)) },
    Story { name: "elastic", run: |cluster| Box::pin(elastic::story(cluster)) },
];
/// These stop nodes and processes, or need all of the machine to themselves.
const ONE_BY_ONE: &[Story] = &[
    Story { name: "node-conformance", run: |cluster| Box::pin(conformance::story(cluster)) },
    Story { name: "node-conformance-taints", run: |cluster| Box::pin(conformance::serial_story(cluster)) },
    Story { name: "clients", run: |cluster| Box::pin(clients::story(cluster)) },
    Story { name: "cloud", run: |cluster| Box::pin(cloud::story(cluster)) },
    Story { name: "maintenance", run: |cluster| Box::pin(maintenance::story(cluster)) },
    Story { name: "volumes", run: |cluster| Box::pin(volumes::story(cluster)) },
    Story { name: "killed-processes", run: |cluster| Box::pin(kills::story(cluster)) },
    Story { name: "node-loss", run: |cluster| Box::pin(node_loss::story(cluster)) },
    Story { name: "frozen-processes", run: |cluster| Box::pin(frozen::story(cluster)) },
    Story { name: "reboot", run: |cluster| Box::pin(reboot::story(cluster)) },
];
/// A cluster that brings its own control plane up.
const STATIC_PODS: &[Story] = &[Story { name: "static-pods", run: |cluster| Box::pin(static_pods::story(cluster)) }];

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let mut report = Report::from_arguments(std::env::args().skip(1));
    runtime.expect("the system has threads").block_on(all(&mut report));
    report.end()
}

async fn all(report: &mut Report) {
    report.machine_story("units", units::story).await;
    report.machine_story("installer", installer::story).await;
    let shapes =
        [(Shape::Processes { nodes: 2 }, vec![SIDE_BY_SIDE, ONE_BY_ONE]), (Shape::StaticPods, vec![STATIC_PODS])];
    for (shape, groups) in shapes {
        let groups: Vec<Vec<&Story>> = groups.iter().map(|group| report.wanted(group)).collect();
        if groups.iter().all(Vec::is_empty) {
            continue;
        }
        let cluster = match Cluster::prepare(shape) {
            Ok(cluster) => cluster,
            Err(missing) => {
                groups.iter().flatten().for_each(|story| report.skipped(story.name, &missing));
                continue;
            }
        };
        report.in_cluster(&cluster, &groups).await;
    }
}
