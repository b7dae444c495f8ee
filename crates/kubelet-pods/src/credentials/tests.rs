//! Programs that are only recorded, with answers laid down by the test; and a real one.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use api_types::core_v1::Pod;
use async_trait::async_trait;
use base::TokioClock;
use client::fake::FakeServer;
use serde_json::{Value, json};
use sys::exec::{Command, Daemon, Exec, ExecError, Exit, FakeExec, LinuxExec, Output};
use sys::process::Process;
use tokio::sync::{Semaphore, mpsc};

use super::*;
use crate::interfaces::ImageCredentials as _;
use crate::metrics::KubeletMetrics;

const EXCHANGE: &str = "credentialprovider.kubelet.k8s.io/v1";

/// A provider as configuration has it.
fn provider(name: &str, more: Value) -> Value {
    let mut provider = json!({"name": name, "matchImages": ["*.example.com"], "defaultCacheDuration": "10m",
        "apiVersion": EXCHANGE});
    let (Some(all), Some(more)) = (provider.as_object_mut(), more.as_object()) else { panic!() };
    all.extend(more.clone());
    provider
}

fn file(providers: &[Value]) -> String {
    json!({"apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig", "providers": providers})
        .to_string()
}

/// A directory with programs of these names, and a place for configuration.
fn place(programs: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for directory in ["bin", "config"] {
        std::fs::create_dir(dir.path().join(directory)).unwrap();
    }
    for program in programs {
        std::fs::write(dir.path().join("bin").join(program), "").unwrap();
    }
    dir
}

fn load(dir: &Path, text: &str) -> Result<ProviderConfigs, String> {
    let path = dir.join("config.yaml");
    std::fs::write(&path, text).unwrap();
    ProviderConfigs::load(&path, &dir.join("bin"), true).map_err(|error| error.to_string())
}

#[test]
fn what_is_wrong_with_the_configuration_is_told() {
    let dir = place(&["good"]);
    let tokens = |attributes: Value| provider("good", json!({"tokenAttributes": attributes}));
    let audience = json!({"serviceAccountTokenAudience": "a", "requireServiceAccount": true, "cacheType": "Token"});
    let with = |name: &str, value: Value| {
        let mut all = audience.clone();
        all[name] = value;
        tokens(all)
    };
    for (provider, expected) in [
        (provider("a/b", json!({})), "provider name cannot contain '/'"),
        (provider("a b", json!({})), "provider name cannot contain spaces"),
        (provider("..", json!({})), "provider name cannot be '..'"),
        (provider("good", json!({"matchImages": []})), "at least 1 item in matchImages is required"),
        (provider("good", json!({"defaultCacheDuration": null})), "providers.defaultCacheDuration: Required value"),
        (provider("good", json!({"defaultCacheDuration": "-1s"})), "must be greater than or equal to 0"),
        (provider("good", json!({"defaultCacheDuration": "soon"})), "time: invalid duration \"soon\""),
        (provider("good", json!({"apiVersion": "v7"})), "Unsupported value: \"v7\""),
        (provider("good", json!({"more": 1})), "unknown field \"providers[0].more\""),
        (
            provider("good", json!({"env": [{"name": 7}]})),
            "cannot unmarshal number into Go struct field ExecEnvVar.providers.env.name of type string",
        ),
        (provider("missing", json!({})), "bin/missing did not exist"),
        (provider("", json!({})), "bin/ did not exist"),
        (with("cacheType", json!("")), "cacheType is required"),
        (with("cacheType", json!("Pod")), "Unsupported value"),
        (with("serviceAccountTokenAudience", json!("")), "serviceAccountTokenAudience: Required value"),
        (with("requireServiceAccount", json!(null)), "requireServiceAccount: Required value"),
    ] {
        let error = load(dir.path(), &file(&[provider])).expect_err(expected);
        assert!(error.contains(expected), "{error}");
    }
    let mut keys = with("requireServiceAccount", json!(false));
    keys["tokenAttributes"]["requiredServiceAccountAnnotationKeys"] = json!(["k"]);
    keys["tokenAttributes"]["optionalServiceAccountAnnotationKeys"] = json!(["k"]);
    let error = load(dir.path(), &file(&[keys.clone()])).unwrap_err();
    assert!(error.contains("cannot be false when") && error.contains("both required and optional"), "{error}");
    let old = file(&[keys]).replace("io/v1\",\"kind", "io/v1beta1\",\"kind");
    assert!(load(dir.path(), &old).unwrap_err().contains("unknown field \"providers[0].tokenAttributes\""));
    assert!(load(dir.path(), &file(&[])).unwrap_err().contains("at least 1 item in plugins is required"));
    let twice = [provider("good", json!({})), provider("good", json!({}))];
    assert!(load(dir.path(), &file(&twice)).unwrap_err().contains("duplicate provider name \"good\""));
    for (text, expected) in [
        ("{}", "Object 'Kind' is missing"),
        (
            "kind: CredentialProviderConfig\napiVersion: kubelet.config.k8s.io/v2\n",
            "no kind \"CredentialProviderConfig\" is registered",
        ),
        ("kind: Config\napiVersion: kubelet.config.k8s.io/v1\n", "no kind \"Config\" is registered for version"),
    ] {
        let error = load(dir.path(), text).unwrap_err();
        assert!(error.starts_with("error decoding config ") && error.contains(expected), "{error}");
    }
    let twice = file(&[provider("good", json!({}))]).replace("\"name\":\"good\"", "\"name\":\"good\",\"name\":\"b\"");
    let error = load(dir.path(), &twice).unwrap_err();
    assert!(error.ends_with("strict decoding error: duplicate field \"providers[0].name\""), "{error}");
    let gone = ProviderConfigs::load(&dir.path().join("config.yaml"), &dir.path().join("none"), true);
    assert!(gone.unwrap_err().to_string().ends_with("none did not exist"), "it is looked for before anything else");
    assert_eq!(load(dir.path(), &file(&[tokens(audience)])).unwrap().providers.len(), 1);
    let off = ProviderConfigs::load(&dir.path().join("config.yaml"), &dir.path().join("bin"), false);
    assert!(off.unwrap_err().to_string().contains("feature gate is disabled"));
}

#[test]
fn a_directory_is_read_in_the_order_of_its_files() {
    let dir = place(&["one", "two"]);
    let (config, programs) = (dir.path().join("config"), dir.path().join("bin"));
    let read = || ProviderConfigs::load(&config, &programs, true);
    assert!(read().unwrap_err().to_string().starts_with("no configuration files found in directory"));
    std::fs::write(config.join("b.yaml"), file(&[provider("one", json!({}))])).unwrap();
    std::fs::write(config.join("a.json"), file(&[provider("two", json!({}))])).unwrap();
    std::fs::write(config.join("c.txt"), "nothing").unwrap();
    let all = read().unwrap();
    let names: Vec<&str> = all.providers.iter().map(|provider| provider.name.as_str()).collect();
    assert_eq!(names, ["two", "one"]);
    std::fs::write(config.join("b.yaml"), file(&[provider("one", json!({"args": ["-v"]}))])).unwrap();
    assert!(all.hash.starts_with("sha256:") && read().unwrap().hash != all.hash);
}

/// Who is asked, and what is counted.
struct Bench<E> {
    exec: Arc<E>,
    providers: Arc<CredentialProviders>,
    server: FakeServer,
    metrics: Arc<KubeletMetrics>,
    dir: tempfile::TempDir,
}

impl<E: Exec + 'static> Bench<E> {
    fn new(providers: &[Value], exec: E) -> Self {
        let names: Vec<&str> = providers.iter().filter_map(|provider| provider["name"].as_str()).collect();
        let (dir, exec, server) = (place(&names), Arc::new(exec), FakeServer::new());
        let metrics = KubeletMetrics::unseen();
        let providers = CredentialProviders::new(ProviderDeps {
            configs: load(dir.path(), &file(providers)).unwrap(),
            exec: exec.clone(),
            client: Some(server.client()),
            clock: TokioClock::shared(),
            metrics: metrics.clone(),
        });
        Self { exec, providers, server, metrics, dir }
    }

    /// The users that there are for an image, with what they are good for.
    async fn users(&self, pod: &Pod, image: &str) -> Vec<String> {
        let found = self.providers.lookup(pod, image).await;
        found.into_iter().map(|found| format!("{} {}", found.auth.username, found.server)).collect()
    }

    fn failures(&self, name: &str) -> f64 {
        self.metrics.credential_errors.with(&[name]).get()
    }
}

impl Bench<FakeExec> {
    fn asked(&self) -> Vec<Value> {
        self.exec.commands().iter().map(|command| serde_json::from_slice(&command.stdin).unwrap()).collect()
    }
}

fn answer(scope: &str, more: Value) -> Output {
    let mut answer = json!({"apiVersion": EXCHANGE, "kind": "CredentialProviderResponse", "cacheKeyType": scope,
        "auth": {"*.example.com": {"username": "u", "password": "p"}}});
    answer.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Output::ok(answer.to_string())
}

#[tokio::test(start_paused = true)]
async fn answers_are_good_for_what_they_say() {
    let images = ["eu.example.com/a", "eu.example.com/a", "eu.example.com/b", "us.example.com/a"];
    for (scope, more, runs) in [
        ("Image", json!({}), 3),
        ("Registry", json!({}), 2),
        ("Global", json!({}), 1),
        ("Global", json!({"cacheDuration": "0s"}), 4),
    ] {
        let bench = Bench::new(&[provider("p", json!({}))], FakeExec::new().answer("p", answer(scope, more.clone())));
        for image in images {
            assert_eq!(bench.users(&Pod::default(), image).await, ["u *.example.com"], "{scope} {image}");
        }
        assert_eq!(bench.exec.commands().len(), runs, "{scope} {more}");
        assert!(bench.users(&Pod::default(), "example.com/a").await.is_empty(), "it is no image of theirs");
        assert!(bench.users(&Pod::default(), "eu.example.com:5000/a").await.is_empty());
        assert_eq!(bench.exec.commands().len(), runs);
        tokio::time::sleep(Duration::from_secs(601)).await;
        bench.users(&Pod::default(), images[0]).await;
        assert_eq!(bench.exec.commands().len(), runs + 1, "{scope}: for no longer than they say");
    }
}

#[tokio::test(start_paused = true)]
async fn a_program_is_told_the_image_and_what_its_configuration_says() {
    let own = json!({"args": ["--verbose"], "env": [{"name": "A", "value": "b"}]});
    let bench = Bench::new(&[provider("p", own)], FakeExec::new().answer("p", answer("Image", json!({}))));
    bench.users(&Pod::default(), "eu.example.com/a").await;
    let command = bench.exec.commands().remove(0);
    assert!(command.line().ends_with("bin/p --verbose"), "{}", command.line());
    assert_eq!((command.env, command.deadline), (vec![("A".into(), "b".into())], Duration::from_secs(60)));
    let expected = json!({"kind": "CredentialProviderRequest", "apiVersion": EXCHANGE, "image": "eu.example.com/a"});
    assert_eq!(bench.asked(), [expected]);
}

#[tokio::test(start_paused = true)]
async fn who_fails_has_nothing_and_the_others_are_asked() {
    let other = EXCHANGE.replace("/v1", "/v9");
    for bad in [
        Output::failed(3, "no network"),
        Output::ok("{"),
        answer("Pod", json!({})),
        answer("Image", json!({"apiVersion": other})),
        answer("Image", json!({"cacheDuration": "soon"})),
        answer("Image", json!({"kind": "Status"})),
    ] {
        let exec = FakeExec::new().answer("bin/bad", bad).answer("bin/good", answer("Image", json!({})));
        let bench = Bench::new(&[provider("bad", json!({})), provider("good", json!({}))], exec);
        assert_eq!(bench.users(&Pod::default(), "eu.example.com/a").await, ["u *.example.com"]);
        assert_eq!((bench.failures("bad"), bench.failures("good")), (1.0, 0.0));
    }
}

fn pod(account: &str) -> Pod {
    let mut pod = Pod::default();
    (pod.metadata.namespace, pod.metadata.name, pod.metadata.uid) = ("ns".into(), "web".into(), "u1".into());
    pod.spec.service_account_name = account.into();
    pod
}

#[tokio::test(start_paused = true)]
async fn accounts_are_told_of_only_where_they_are_asked_for() {
    let wanted = json!({"tokenAttributes": {"serviceAccountTokenAudience": "reg", "requireServiceAccount": true,
        "cacheType": "ServiceAccount", "requiredServiceAccountAnnotationKeys": ["role"]}});
    let bench = Bench::new(&[provider("p", wanted)], FakeExec::new().answer("p", answer("Global", json!({}))));
    let account = |name: &str, annotations: Value| {
        let uid = format!("uid-{name}");
        json!({"metadata": {"name": name, "namespace": "ns", "uid": uid, "annotations": annotations}})
    };
    bench.server.put("v1/serviceaccounts", account("plain", json!({})));
    for name in ["one", "two"] {
        bench.server.put("v1/serviceaccounts", account(name, json!({"role": "reader", "other": "x"})));
    }
    let image = "eu.example.com/a";
    assert!(bench.users(&pod(""), image).await.is_empty(), "it has no account");
    assert!(bench.users(&pod("plain"), image).await.is_empty(), "the account has no role");
    assert!(bench.users(&pod("missing"), image).await.is_empty());
    assert!(bench.exec.commands().is_empty());
    assert_eq!(bench.failures("p"), 0.0, "it was not to blame");
    for name in ["one", "one", "two"] {
        bench.users(&pod(name), image).await;
    }
    let asked = bench.asked();
    let tokens: Vec<&Value> = asked.iter().map(|request| &request["serviceAccountToken"]).collect();
    assert_eq!(tokens, ["token of one", "token of two"], "once for each account");
    assert!(asked.iter().all(|request| request["serviceAccountAnnotations"] == json!({"role": "reader"})));
}

#[tokio::test(start_paused = true)]
async fn a_token_that_comes_back_is_no_password_for_others() {
    let given_back = json!({"auth": {"*.example.com": {"username": "u", "password": "token of one"}}});
    for (cache_type, found) in [("ServiceAccount", 0), ("Token", 1)] {
        let wanted = json!({"tokenAttributes": {"serviceAccountTokenAudience": "reg", "requireServiceAccount": false,
            "cacheType": cache_type}});
        let exec = FakeExec::new().answer("p", answer("Global", given_back.clone()));
        let bench = Bench::new(&[provider("p", wanted)], exec);
        bench.server.put("v1/serviceaccounts", json!({"metadata": {"name": "one", "namespace": "ns", "uid": "u"}}));
        assert_eq!(bench.users(&pod("one"), "eu.example.com/a").await.len(), found, "{cache_type}");
        assert_eq!(bench.users(&pod(""), "eu.example.com/a").await.len(), 1, "it may do without an account");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_token_brought_is_kept_while_the_token_is() {
    let wanted = json!({"tokenAttributes": {"serviceAccountTokenAudience": "reg", "requireServiceAccount": true,
        "cacheType": "Token"}});
    let bench = Bench::new(&[provider("p", wanted)], FakeExec::new().answer("p", answer("Image", json!({}))));
    bench.server.put("v1/serviceaccounts", json!({"metadata": {"name": "one", "namespace": "ns", "uid": "u"}}));
    let tokens = || bench.server.requests().iter().filter(|request| request.contains("/one/token")).count();
    for _ in 0..3 {
        let found = bench.providers.lookup(&pod("one"), "eu.example.com/a").await;
        let owner = found[0].account.as_ref().unwrap();
        assert_eq!((&*owner.uid, &*owner.namespace, &*owner.name), ("u", "ns", "one"));
    }
    assert_eq!((bench.exec.commands().len(), tokens()), (1, 1));
    bench.providers.forget_pod("u1");
    bench.users(&pod("one"), "eu.example.com/a").await;
    assert_eq!(tokens(), 2, "a pod that is gone leaves nothing");
}

/// A program that answers as it has permits.
struct Slow {
    permits: Semaphore,
    runs: AtomicUsize,
}

#[async_trait]
impl Exec for Slow {
    async fn run(&self, _: &Command) -> Result<Output, ExecError> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        self.permits.acquire().await.unwrap().forget();
        Ok(answer("Image", json!({"cacheDuration": "0s"})))
    }

    async fn pipe(&self, command: &Command, sink: mpsc::Sender<Vec<u8>>) -> Result<Exit, ExecError> {
        LinuxExec.pipe(command, sink).await
    }

    async fn spawn(&self, daemon: &Daemon) -> Result<Process, ExecError> {
        LinuxExec.spawn(daemon).await
    }
}

#[tokio::test(start_paused = true)]
async fn who_asks_the_same_at_once_shares_the_answer() {
    let bench = Bench::new(&[provider("p", json!({}))], Slow { permits: Semaphore::new(0), runs: AtomicUsize::new(0) });
    let (pod, image) = (Pod::default(), "eu.example.com/a");
    let release = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        bench.exec.permits.add_permits(9);
    };
    let (first, second, other, ()) = tokio::join!(
        bench.users(&pod, image),
        bench.users(&pod, image),
        bench.users(&pod, "eu.example.com/b"),
        release
    );
    assert_eq!((first.len(), second.len(), other.len()), (1, 1, 1));
    assert_eq!(bench.exec.runs.load(Ordering::Relaxed), 2, "one for each image");
    bench.users(&pod, image).await;
    assert_eq!(bench.exec.runs.load(Ordering::Relaxed), 3, "it is not kept");
}

#[tokio::test]
async fn a_real_program_reads_the_question_and_writes_the_answer() {
    const PROGRAM: &str = r#"#!/bin/sh
cat >"$ASKED"
[ "$1" = --fail ] && { echo "no network" >&2; exit 3; }
echo "asked for $1" >&2
printf '{"apiVersion":"credentialprovider.kubelet.k8s.io/v1","kind":"CredentialProviderResponse",'
printf '"cacheKeyType":"Registry","cacheDuration":"5m0s","auth":{"*.example.com":{"username":"%s","password":"p"}}}' "$WHO"
"#;
    let seen = tempfile::tempdir().unwrap();
    let asked = seen.path().join("asked");
    let env = json!([{"name": "ASKED", "value": asked}, {"name": "WHO", "value": "robot"}]);
    for (argument, users, failures) in [("images", vec!["robot *.example.com"], 0.0), ("--fail", vec![], 1.0)] {
        let bench = Bench::new(&[provider("p", json!({"args": [argument], "env": env}))], LinuxExec);
        let program = bench.dir.path().join("bin/p");
        std::fs::write(&program, PROGRAM).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(bench.users(&Pod::default(), "eu.example.com/a").await, users);
        let request: Value = serde_json::from_slice(&std::fs::read(&asked).unwrap()).unwrap();
        let kind = (&request["kind"], &request["image"]);
        assert_eq!(kind, (&json!("CredentialProviderRequest"), &json!("eu.example.com/a")));
        assert_eq!(bench.failures("p"), failures);
        std::fs::remove_file(&asked).unwrap();
        bench.users(&Pod::default(), "eu.example.com/b").await;
        assert_eq!(asked.exists(), failures > 0.0, "the registry's answer is kept, a failure is not");
    }
}
