//! Clients whose plugin follows a script, on paused time; and one whose plugin is a real program.

mod outcomes;

use std::collections::VecDeque;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;
use base::{Rng, TaskGroup, TokioClock};
use bytes::Bytes;
use component_base::serving;
use futures_util::future::join_all;
use http::{StatusCode, header};
use parking_lot::Mutex;
use sys::exec::{Command, Daemon, Exec, ExecError, Exit, LinuxExec, Output};
use sys::process::Process;
use tokio::sync::mpsc;

use crate::client::Client;
use crate::config::{CertSource, ClientConfig};
use crate::cx::ClientCx;
use crate::error::ClientError;
use crate::kubeconfig::{Kubeconfig, Overrides};
use crate::request::Request;
use crate::transport::{Body, Transport, TransportError};

/// 2030-01-01T00:00:00Z
const START: Duration = Duration::from_secs(1_893_456_000);
const FAILURE: &str = "GET \"https://a/healthz\": getting credentials: ";

type Ended = Result<Output, ExecError>;

/// Runs end as the script says, each after its time; without more of it they fail.
#[derive(Default)]
pub(crate) struct Scripted {
    script: Mutex<VecDeque<(Duration, Ended)>>,
    pub(crate) runs: Mutex<Vec<Command>>,
}

impl Scripted {
    pub(crate) fn new(script: impl IntoIterator<Item = (u64, Ended)>) -> Arc<Self> {
        let script = script.into_iter().map(|(seconds, ended)| (Duration::from_secs(seconds), ended)).collect();
        Arc::new(Self { script: Mutex::new(script), runs: Mutex::default() })
    }

    fn count(&self) -> usize {
        self.runs.lock().len()
    }
}

#[async_trait]
impl Exec for Scripted {
    async fn run(&self, command: &Command) -> Result<Output, ExecError> {
        self.runs.lock().push(command.clone());
        let next = self.script.lock().pop_front();
        let (time, ended) = next.unwrap_or_else(|| (Duration::ZERO, Ok(Output::failed(9, "the script is over"))));
        tokio::time::sleep(time).await;
        ended
    }

    async fn pipe(&self, _: &Command, _: mpsc::Sender<Vec<u8>>) -> Result<Exit, ExecError> {
        unreachable!("plugins are run to their end")
    }

    async fn spawn(&self, _: &Daemon) -> Result<Process, ExecError> {
        unreachable!("plugins are run to their end")
    }
}

/// An answer with these members of a status.
pub(crate) fn says(status: &str) -> Ended {
    let head = r#""apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential""#;
    Ok(Output::ok(format!("{{{head},\"status\":{{{status}}}}}")))
}

fn token(token: &str) -> Ended {
    says(&format!("\"token\":\"{token}\""))
}

/// Notes who asks, and turns some away.
#[derive(Default)]
struct Gate {
    seen: Mutex<Vec<String>>,
    refused: Mutex<Vec<String>>,
}

#[async_trait]
impl Transport for Gate {
    fn server(&self) -> &str {
        "https://a"
    }

    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        let shown = request.headers().get(header::AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned());
        let shown = shown.unwrap_or_default();
        self.seen.lock().push(shown.clone());
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut response = http::Response::new(serving::full("{}"));
        if self.refused.lock().contains(&shown) {
            *response.status_mut() = StatusCode::UNAUTHORIZED;
        }
        Ok(response)
    }
}

pub(crate) fn config(exec: &str) -> ClientConfig {
    let text = format!(
        "current-context: c\nclusters: [{{name: c, cluster: {{server: 'https://a'}}}}]\n\
         users: [{{name: u, user: {{exec: {{apiVersion: client.authentication.k8s.io/v1, {exec}}}}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]"
    );
    let config = ClientConfig::from_kubeconfig(&Kubeconfig::parse(&text).unwrap(), &Overrides::default()).unwrap();
    config.with_rate(-1.0, 0)
}

const PLUGIN: &str = "command: tool, args: [get, me], env: [{name: A, value: b}], interactiveMode: Never";

struct Bench {
    exec: Arc<Scripted>,
    gate: Arc<Gate>,
    cx: ClientCx,
    client: Client,
}

impl Bench {
    fn new(exec: &str, script: impl IntoIterator<Item = (u64, Ended)>) -> Self {
        let (scripted, gate) = (Scripted::new(script), Arc::new(Gate::default()));
        let clock = Arc::new(TokioClock::starting_at(UNIX_EPOCH + START));
        let cx = ClientCx::new(clock, Rng::seeded(1), TaskGroup::new("test"));
        let cx = cx.starting_by(Arc::<Scripted>::clone(&scripted) as _);
        let client = Client::with_transport(Arc::<Gate>::clone(&gate) as _, config(exec), cx.clone()).unwrap();
        Self { exec: scripted, gate, cx, client }
    }

    fn another(&self, config: ClientConfig, cx: ClientCx) -> Client {
        Client::with_transport(Arc::<Gate>::clone(&self.gate) as _, config, cx).unwrap()
    }

    fn refuse(&self, tokens: &[&str]) {
        *self.gate.refused.lock() = tokens.iter().map(|token| format!("Bearer {token}")).collect();
    }

    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.gate.seen.lock())
    }
}

async fn ask(client: &Client) -> Result<(), ClientError> {
    client.send(Request::get("/healthz")).await.map(|_| ())
}

async fn failure(client: &Client) -> String {
    let text = ask(client).await.unwrap_err().to_string();
    text.strip_prefix(FAILURE).map(str::to_owned).unwrap_or(text)
}

#[tokio::test(start_paused = true)]
async fn one_run_is_for_all_who_wait_until_its_answer_expires() {
    let first = says(r#""token":"one","expirationTimestamp":"2030-01-01T00:10:00Z""#);
    let bench = Bench::new(PLUGIN, [(3, first), (0, token("two"))]);
    let other = bench.another(config(PLUGIN), bench.cx.clone());
    let waiting = [&bench.client, &bench.client, &other, &bench.client.derive(|config| config).unwrap()];
    assert!(join_all(waiting.map(ask)).await.iter().all(Result::is_ok));
    assert_eq!((bench.exec.count(), bench.seen()), (1, vec!["Bearer one".to_owned(); 4]));
    tokio::time::sleep(Duration::from_secs(590)).await;
    ask(&bench.client).await.unwrap();
    assert_eq!(bench.seen(), ["Bearer one"], "at 594 s");
    tokio::time::sleep(Duration::from_secs(10)).await;
    ask(&other).await.unwrap();
    tokio::time::sleep(Duration::from_hours(1000)).await;
    ask(&bench.client).await.unwrap();
    assert_eq!((bench.exec.count(), bench.seen()), (2, vec!["Bearer two".to_owned(); 2]));
    let elsewhere = bench.another(config("command: other, interactiveMode: Never"), bench.cx.clone());
    assert!(ask(&elsewhere).await.is_err());
    assert_eq!(bench.exec.count(), 3, "other settings are another plugin");
}

#[tokio::test(start_paused = true)]
async fn the_plugin_is_told_what_the_file_says_and_is_bounded() {
    let bench = Bench::new(PLUGIN, [(0, token("one"))]);
    ask(&bench.client).await.unwrap();
    let run = bench.exec.runs.lock()[0].clone();
    assert_eq!(run.line(), "tool get me");
    let told =
        r#"{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false}}"#;
    assert_eq!(run.env, [("A".into(), "b".into()), ("KUBERNETES_EXEC_INFO".into(), told.into())]);
    assert!(run.stdin.is_empty() && run.deadline == Duration::from_secs(60) && run.output_limit_bytes == 256 * 1024);
}

#[tokio::test(start_paused = true)]
async fn refused_credentials_are_replaced_once() {
    let bench = Bench::new(PLUGIN, [(0, token("one")), (2, token("two"))]);
    bench.refuse(&["one"]);
    let outcomes = join_all([&bench.client; 3].map(ask)).await;
    assert!(outcomes.iter().all(|outcome| outcome.as_ref().is_err_and(ClientError::is_unauthorized)), "{outcomes:?}");
    assert_eq!((bench.exec.count(), bench.seen().len()), (2, 3), "the refused requests are not sent again");
    ask(&bench.client).await.unwrap();
    assert_eq!((bench.exec.count(), bench.seen()), (2, vec!["Bearer two".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_late_refusal_of_former_credentials_changes_nothing() {
    let first = says(r#""token":"one","expirationTimestamp":"2030-01-01T00:00:00Z""#);
    let bench = Bench::new(PLUGIN, [(0, first), (0, token("two"))]);
    bench.refuse(&["one"]);
    let late = ask(&bench.client);
    let meanwhile = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        ask(&bench.client).await
    };
    let (late, meanwhile) = tokio::join!(late, meanwhile);
    assert!(late.is_err() && meanwhile.is_ok());
    assert_eq!((bench.exec.count(), bench.seen()), (2, vec!["Bearer one".to_owned(), "Bearer two".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn without_better_ones_the_former_credentials_stay_in_use() {
    let bench = Bench::new(PLUGIN, [(0, token("one")), (0, Ok(Output::failed(1, "no network"))), (0, token("two"))]);
    bench.refuse(&["one"]);
    for expected in ["Bearer one", "Bearer one", "Bearer two"] {
        let _ = ask(&bench.client).await;
        assert_eq!(bench.seen(), [expected]);
    }

    let bench = Bench::new(PLUGIN, [(0, token("one")), (5, Ok(Output::failed(1, "no network")))]);
    bench.refuse(&["one"]);
    let meanwhile = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        ask(&bench.client).await
    };
    let (refused, meanwhile) = tokio::join!(ask(&bench.client), meanwhile);
    assert!([refused, meanwhile].iter().all(|outcome| outcome.as_ref().is_err_and(ClientError::is_unauthorized)));
    assert_eq!(bench.seen(), ["Bearer one"; 2], "whoever waits for a run that fails takes what is there");
}

#[tokio::test(start_paused = true)]
async fn expired_credentials_are_not_used() {
    let expired = says(r#""token":"one","expirationTimestamp":"2030-01-01T00:00:10Z""#);
    let bench = Bench::new(PLUGIN, [(0, expired)]);
    ask(&bench.client).await.unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(failure(&bench.client).await, "exec: executable tool failed with exit code 9");
}

#[tokio::test(start_paused = true)]
async fn a_run_goes_on_when_nobody_waits_any_more_and_starts_anew_when_it_was_stopped() {
    let bench = Bench::new(PLUGIN, [(5, token("one"))]);
    let impatient = bench.client.derive(|config| config.with_timeout(Duration::from_secs(2))).unwrap();
    assert!(ask(&impatient).await.unwrap_err().is_timeout());
    tokio::time::sleep(Duration::from_secs(4)).await;
    ask(&impatient).await.unwrap();
    assert_eq!((bench.exec.count(), bench.seen()), (1, vec!["Bearer one".to_owned()]));

    let bench = Bench::new(PLUGIN, [(5, token("one")), (0, token("two"))]);
    let brief = TaskGroup::new("brief");
    let ending = bench.another(config(PLUGIN), bench.cx.clone().in_group(brief.clone()));
    let stop = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        brief.cancel();
    };
    let (outcome, ()) = tokio::join!(ask(&ending), stop);
    assert!(outcome.is_err());
    ask(&bench.client).await.unwrap();
    assert_eq!(bench.seen(), ["Bearer two"]);
}

#[tokio::test(start_paused = true)]
async fn other_credentials_come_first() {
    let bench = Bench::new(PLUGIN, []);
    let own = Request::get("/healthz").header(header::AUTHORIZATION, "Bearer own");
    bench.client.send(own).await.unwrap();
    let identity = CertSource::Pem { cert: Vec::new(), key: Vec::new() };
    let certified = bench.another(ClientConfig { identity, ..config(PLUGIN) }, bench.cx.clone());
    ask(&certified).await.unwrap();
    assert_eq!((bench.exec.count(), bench.seen()), (0, vec!["Bearer own".to_owned(), String::new()]));
}

#[tokio::test]
async fn a_real_program_beside_its_kubeconfig_is_run() {
    let directory = tempfile::tempdir().unwrap();
    let (program, told) = (directory.path().join("plugin.sh"), directory.path().join("told"));
    let script = format!(
        "#!/bin/sh\necho run >> {told}\necho \"$KUBERNETES_EXEC_INFO\" \"$OWN\" \"$1\" >> {told}\ncat >> {told}\n\
         echo wait for it >&2\necho 'apiVersion: client.authentication.k8s.io/v1beta1'\necho 'kind: ExecCredential'\n\
         echo 'status: {{token: real}}'\n",
        told = told.display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let file = directory.path().join("kubeconfig");
    let text = "current-context: c\nclusters: [{name: c, cluster: {server: 'https://a'}}]\nusers:\n- name: u\n  user:\n    \
                exec:\n      apiVersion: client.authentication.k8s.io/v1beta1\n      command: ./plugin.sh\n      \
                args: [first]\n      env: [{name: OWN, value: mine}]\n      provideClusterInfo: true\n\
                contexts: [{name: c, context: {cluster: c, user: u}}]\n";
    std::fs::write(&file, text).unwrap();
    let bench = Bench::new(PLUGIN, []);
    let config = ClientConfig::from_kubeconfig_file(&file).unwrap().with_rate(-1.0, 0);
    let client = bench.another(config, bench.cx.clone().starting_by(Arc::new(LinuxExec)));
    for _ in 0..2 {
        ask(&client).await.unwrap();
    }
    assert_eq!(bench.seen(), ["Bearer real"; 2]);
    let info = concat!(
        r#"{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","#,
        r#""spec":{"cluster":{"server":"https://a","config":null},"interactive":false}}"#
    );
    assert_eq!(std::fs::read_to_string(&told).unwrap(), format!("run\n{info} mine first\n"), "once, without input");
}
