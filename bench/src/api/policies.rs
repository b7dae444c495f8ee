//! What admission policies, an admission webhook and the audit log add to a create, and how soon a policy that changes
//! counts. Each has a server of its own, and they take turns.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use base::TaskGroup;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::load::microseconds_each;
use super::options::Options;
use super::policy_objects::{CHANGED, POLICIES, changed_rule, ten_policies, webhook_for_pods};
use super::site::Site;
use super::{peer, pods};
use crate::api_server::Storage;
use crate::child::Child;
use crate::figure::Figure;
use crate::https::{Connection, JSON};
use crate::identity::Identity;
use crate::sample::{Samples, Stopwatch};
use crate::usage::CpuMeter;

/// Requests are spread over so many connections.
const CONNECTIONS: usize = 4;
/// Of all pods this part is created one after the other, which shows how long one takes.
const SEQUENTIAL_PART: usize = 10;
/// Servers take turns so much oftener than elsewhere: what is looked for is small beside what a machine does from one second
/// to the next.
const TURNS: usize = 3;
/// How often the policy is changed, at most.
const MOST_CHANGES: usize = 100;
/// Requests that must be refused in a row, once the first one was.
const REFUSED_IN_A_ROW: usize = 20;
/// What ten policies and a webhook may add to a create, in parts of it: 20 and 60 microseconds were promised where a create
/// took 112.
const TEN_POLICIES_PART: f64 = 20.0 / 112.0;
const WEBHOOK_PART: f64 = 60.0 / 112.0;
const AUDIT_TIMES: f64 = 1.1;
const CHANGE_MS: f64 = 100.0;
const AUDIT_POLICY: &str =
    "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n";

/// A server as it is measured.
struct Case {
    name: &'static str,
    site: Site,
    connections: Vec<Connection>,
    /// Microseconds of a create that is alone.
    latency: Samples,
    /// Microseconds of processor time of a create among many.
    cpu: Samples,
}

/// The webhook as a process of its own, and a connection to it.
struct Webhook {
    _process: Child,
    port: u16,
    connection: Connection,
}

/// Creates so many pods with each server.
///
/// # Errors
/// A process does not start, or an answer is not what it should be.
pub async fn policies(options: &Options, creates: usize) -> Result<()> {
    let home = tempfile::tempdir()?;
    let identity = Identity::create(&home.path().join("pki"))?;
    let (tasks, tls) = (TaskGroup::new("policies"), identity.client_tls()?);
    let started = peer::start("bare-webhook", home.path(), &identity, &[], (&tls, &tasks)).await?;
    let webhook = Webhook { _process: started.0, port: started.1, connection: started.2 };
    let mut cases = Vec::new();
    for name in ["none", "ten", "webhook", "audit"] {
        cases.push(Case::open(name, options, home.path(), &identity, &tasks).await?);
    }
    let [none, ten, asked, audit] = cases.as_mut_slice() else { anyhow::bail!("four servers are measured") };
    ten.make(ten_policies()).await?;
    let ca = STANDARD.encode(std::fs::read(identity.file("ca.crt")).context("reading the authority")?);
    asked.make(vec![webhook_for_pods(webhook.port, &ca)]).await?;

    let rounds = options.rounds * TURNS;
    let each = (creates / rounds).max(SEQUENTIAL_PART);
    for round in 0..rounds {
        for case in [&mut *none, &mut *ten, &mut *asked, &mut *audit] {
            case.round(round * each, each, options.parallel * CONNECTIONS).await?;
        }
    }
    let round_trip = webhook.round_trip(each).await?;
    print(none, ten, asked, audit, round_trip)?;
    let changes = changes(ten, each.min(MOST_CHANGES)).await?;
    Figure::alone("policies-change", changes.median(), "ms").print()?;
    Figure::beside_promised("policies-change-most", changes.part(1.0), CHANGE_MS, "ms").print()?;
    Ok(())
}

fn print(none: &Case, ten: &Case, asked: &Case, audit: &Case, round_trip: f64) -> Result<()> {
    let more = |case: &Case| case.cpu.with(&none.cpu, |own, none| own - none).median();
    let times = |case: &Case| case.cpu.with(&none.cpu, |own, none| own / none).median();
    let later = |case: &Case| case.latency.median() - none.latency.median();
    Figure::alone("policies-none-cpu", none.cpu.median(), "us").print()?;
    Figure::alone("policies-ten-more-cpu", more(ten), "us").print()?;
    Figure::beside_promised("policies-ten-part", times(ten) - 1.0, TEN_POLICIES_PART, "parts").print()?;
    Figure::alone("policies-webhook-more-cpu", more(asked), "us").print()?;
    Figure::beside_promised("policies-webhook-part", times(asked) - 1.0, WEBHOOK_PART, "parts").print()?;
    Figure::beside_promised("policies-audit-cpu", times(audit), AUDIT_TIMES, "times").print()?;
    Figure::alone("policies-none-latency", none.latency.median(), "us").print()?;
    Figure::alone("policies-ten-later", later(ten), "us").print()?;
    Figure::beside("policies-webhook-later", later(asked), round_trip, "us").print()?;
    Figure::alone("policies-audit-later", later(audit), "us").print()?;
    Ok(())
}

impl Case {
    async fn open(
        name: &'static str,
        options: &Options,
        home: &Path,
        identity: &Identity,
        tasks: &TaskGroup,
    ) -> Result<Self> {
        let directory = home.join(name);
        std::fs::create_dir_all(&directory)?;
        let (policy, log) = (directory.join("audit.yaml"), directory.join("audit.log"));
        std::fs::write(&policy, AUDIT_POLICY)?;
        let flags =
            [format!("--audit-policy-file={}", policy.display()), format!("--audit-log-path={}", log.display())];
        let flags: Vec<&str> = if name == "audit" { flags.iter().map(String::as_str).collect() } else { Vec::new() };
        let site = Site::open_with(options, &directory, identity, Storage::Embedded, &flags).await?;
        let mut connections = Vec::new();
        for _ in 0..CONNECTIONS {
            connections.push(Connection::open(site.server.port(), &site.tls, tasks).await?);
        }
        Ok(Self { name, site, connections, latency: Samples::default(), cpu: Samples::default() })
    }

    async fn make(&self, objects: Vec<(&'static str, Value)>) -> Result<()> {
        for (collection, object) in objects {
            let made = self.site.call(Method::POST, collection, object.to_string().into()).await?;
            made.ok().with_context(|| format!("{}: making {object}", self.name))?;
        }
        Ok(())
    }

    async fn create(&self, number: usize) -> Result<()> {
        let connection = &self.connections[number % CONNECTIONS];
        let made = connection.call(Method::POST, pods::COLLECTION, JSON, pods::manifest(number)).await?;
        made.ok().map(drop).with_context(|| self.name.to_owned())
    }

    /// Creates pods, the first of them one after the other.
    async fn round(&mut self, from: usize, count: usize, parallel: usize) -> Result<()> {
        let alone = from..from + count / SEQUENTIAL_PART;
        let together = alone.end..from + count;
        let latency = microseconds_each(alone, 1, |number| self.create(number)).await?;
        #[expect(clippy::cast_precision_loss, reason = "counts are small")]
        let (meter, creates) = (CpuMeter::start(self.site.server.pid())?, together.len().max(1) as f64);
        microseconds_each(together, parallel, |number| self.create(number)).await?;
        self.latency.push(latency);
        self.cpu.push(meter.seconds()? * 1e6 / creates);
        Ok(())
    }
}

impl Webhook {
    /// How long an answer takes without a server between, in microseconds.
    async fn round_trip(&self, times: usize) -> Result<f64> {
        let pod: Value = serde_json::from_slice(&pods::manifest(0))?;
        let review = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
            "request": {"uid": "0c5e8bb8-4a6f-4f7f-9d1e-3b8f3b1f2a11", "operation": "CREATE", "object": pod}});
        let body = Bytes::from(review.to_string());
        microseconds_each(0..times, 1, |_| async {
            self.connection.call(Method::POST, "/validate", JSON, body.clone()).await?.ok().map(drop)
        })
        .await
    }
}

/// Changes a policy again and again; milliseconds from the answer to that until a create is judged by it, as are all after
/// that.
async fn changes(case: &Case, times: usize) -> Result<Samples> {
    let path = format!("{POLICIES}/{CHANGED}");
    let mut took = Samples::default();
    for number in 0..times * 2 {
        let lets_pass = number % 2 == 1;
        let body = json!({"spec": {"validations": [{"expression": changed_rule(lets_pass), "message": "changed"}]}});
        let media = "application/merge-patch+json";
        let changed = case.connections[0].call(Method::PATCH, &path, media, body.to_string().into()).await?;
        changed.ok().context("changing the policy")?;
        let watch = Stopwatch::start();
        while case.passes(number).await? != lets_pass {
            ensure!(watch.elapsed_ms() < 1e4, "the policy was changed and does not count");
        }
        took.push(watch.elapsed_ms());
        for again in 0..REFUSED_IN_A_ROW {
            ensure!(case.passes(again).await? == lets_pass, "the policy counted already, and then no more");
        }
    }
    Ok(took)
}

impl Case {
    /// Whether a pod would be created.
    async fn passes(&self, number: usize) -> Result<bool> {
        let path = format!("{}?dryRun=All", pods::COLLECTION);
        let connection = &self.connections[number % CONNECTIONS];
        let answer = connection.call(Method::POST, &path, JSON, pods::manifest(usize::MAX - number)).await?;
        match answer.status {
            StatusCode::CREATED => Ok(true),
            StatusCode::UNPROCESSABLE_ENTITY => Ok(false),
            _ => answer.ok().map(|_| false),
        }
    }
}
