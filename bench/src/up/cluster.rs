//! One cluster under measurement, driven through `coxswain` as a user does.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use api_machinery::object::from_value;
use api_types::core_v1::{Namespace, Pod, ServiceAccount};
use base::{Rng, TaskGroup, TokioClock};
use client::{Client, ClientConfig, ClientCx};
use node_api::cri::{ClientOptions, CriClient};
use serde_json::{Value, json};
use sys::exec::{Command, Exec, LinuxExec};
use sys::process::Process;

use super::Plan;
use crate::sample::Stopwatch;
use crate::usage;

const ROOT: &str = "/var/lib/coxswain-bench";
const STATE: &str = "/run/coxswain-bench";
/// The runtime of the only node.
const RUNTIME: &str = "unix:///run/coxswain-bench/node-1/c.sock";
/// How long `coxswain` may take.
const DEADLINE: Duration = Duration::from_secs(300);
/// How long the pod may take to run.
const POD_LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
pub(super) const NAMESPACE: &str = "default";
/// The pod that is there alone at first.
pub(super) const POD: &str = "first";

pub(super) struct Cluster {
    binaries: PathBuf,
    images: PathBuf,
}

impl Cluster {
    pub(super) fn new(plan: &Plan) -> Self {
        Self { binaries: plan.binaries.clone(), images: plan.images.clone() }
    }

    /// Brings it up; the clock that is given back started before.
    pub(super) async fn up(&self) -> Result<Stopwatch> {
        // What a run that was killed left behind.
        self.down().await?;
        let started = Stopwatch::start();
        self.coxswain("up", &[]).await?;
        Ok(started)
    }

    pub(super) async fn down(&self) -> Result<()> {
        self.coxswain("down", &["--purge"]).await
    }

    async fn coxswain(&self, what: &str, more: &[&str]) -> Result<()> {
        let mut arguments = vec![what.to_owned(), format!("--root={ROOT}"), format!("--state-dir={STATE}")];
        arguments.push(format!("--bin-dir={}", self.binaries.display()));
        arguments.push(format!("--images-dir={}", self.images.display()));
        arguments.extend(more.iter().map(|&flag| flag.to_owned()));
        let command = Command::new(self.binaries.join("coxswain")).args(arguments).deadline(DEADLINE);
        let output = LinuxExec.run(&command).await.with_context(|| format!("running coxswain {what}"))?;
        ensure!(output.success(), "coxswain {what}: {}", output.error_text());
        Ok(())
    }

    /// A client of an administrator.
    pub(super) fn client(&self) -> Result<Client> {
        let cx = ClientCx::new(TokioClock::shared(), Rng::from_os(), TaskGroup::new("bench-up"));
        let config = ClientConfig::load(&format!("{ROOT}/etc/kubernetes/admin.conf"), "")?;
        Ok(Client::new(config.with_component("bench-up").with_rate(-1.0, 0), cx)?)
    }

    /// The node's container runtime.
    pub(super) fn runtime(&self) -> Result<CriClient> {
        Ok(CriClient::new(&ClientOptions::new(RUNTIME))?)
    }

    /// Declares one pod and waits until it runs.
    pub(super) async fn run_a_pod(&self) -> Result<()> {
        let client = self.client()?;
        let (watch, mut created) = (Stopwatch::start(), false);
        while watch.elapsed() < POD_LIMIT {
            created = created || create(&client).await?;
            if created && client.namespaced::<Pod>(NAMESPACE).get(POD).await?.status.phase == "Running" {
                return Ok(());
            }
            tokio::time::sleep(POLL).await;
        }
        bail!("the pod does not run after {POD_LIMIT:?}")
    }

    /// The memory of the process that runs a component of this cluster, in bytes.
    pub(super) fn resident(&self, name: &str) -> Result<u64> {
        Ok(usage::resident_bytes(self.process(name)?)?)
    }

    /// The number of that process.
    pub(super) fn process(&self, name: &str) -> Result<u32> {
        let program = self.binaries.join(name).display().to_string();
        let found = Process::with_argument(&program)?;
        let [process] = found.as_slice() else { bail!("{} processes run {program}", found.len()) };
        Ok(process.pid())
    }
}

/// Creates the pod, once there is a service account for it.
async fn create(client: &Client) -> Result<bool> {
    let ready = client.all::<Namespace>().get_opt(NAMESPACE).await?.is_some()
        && client.namespaced::<ServiceAccount>(NAMESPACE).get_opt("default").await?.is_some();
    if ready {
        create_pod(client, &json!({"name": POD})).await?;
    }
    Ok(ready)
}

/// Creates a pod that waits for requests.
pub(super) async fn create_pod(client: &Client, metadata: &Value) -> Result<()> {
    let container = json!({"name": "echo", "image": "k8s.gcr.io/echoserver:1.4"});
    let pod = from_value::<Pod>(&json!({"metadata": metadata, "spec": {"containers": [container]}}))?;
    client.namespaced::<Pod>(NAMESPACE).create(&pod).await?;
    Ok(())
}
