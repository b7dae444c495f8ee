//! What is kept of pulls, from one kubelet to the next.

use api_machinery::object::Kind as _;
use api_types::kubelet_config_v1beta1::{API_VERSION as VERSION, ImagePullIntent};
use base::{TaskGroup, TokioClock};
use node_api::cri::fake::FakeRuntime;
use node_api::cri::v1::AuthConfig;
use serde_json::{Value, json};

use super::super::pull_record_files::{extend, write};
use super::super::registry_auth::CredentialSource;
use super::*;
use crate::interfaces::CredentialOwner;

const RECORD: &str = ImagePulledRecord::TYPE.kind;
const IMAGE: &str = "reg.example.com/app:1";
const REPOSITORY: &str = "reg.example.com/app";

struct Bench {
    dir: tempfile::TempDir,
    runtime: FakeRuntime,
    clock: SharedClock,
    metrics: Arc<KubeletMetrics>,
    id: String,
}

impl Bench {
    async fn new() -> Self {
        let clock = TokioClock::shared();
        let runtime = FakeRuntime::new(Arc::clone(&clock), &TaskGroup::new("runtime"));
        let spec = ImageSpec { image: IMAGE.to_owned(), ..ImageSpec::default() };
        runtime.pull_image(spec.clone(), None, None).await.unwrap();
        let id = runtime.image_status(spec, false).await.unwrap().image.unwrap().id;
        Self { dir: tempfile::tempdir().unwrap(), runtime, clock, metrics: KubeletMetrics::unseen(), id }
    }

    fn records(&self, verification: PullVerification) -> Arc<PullRecords> {
        PullRecords::new(self.dir.path(), verification, Arc::clone(&self.clock), &self.metrics)
    }

    async fn must_pull(&self, records: &Arc<PullRecords>, repository: &str, own: &[Found]) -> bool {
        records.must_pull(&self.runtime, &of(IMAGE, repository), &self.id, async { own.to_vec() }).await
    }

    /// A pull that brings the image.
    async fn pull(&self, records: &Arc<PullRecords>, credentials: Option<&Found>) {
        let end = End::Brought { reference: self.id.clone(), credentials: credentials.cloned().map(Box::new) };
        records.begin(ours()).await.unwrap().end(end).await;
    }

    fn files(&self, directory: &str) -> usize {
        std::fs::read_dir(self.dir.path().join("image_manager").join(directory)).map_or(0, Iterator::count)
    }
}

fn of(image: &str, repository: &str) -> Recorded {
    Recorded { image: image.to_owned(), repository: repository.to_owned() }
}

fn ours() -> Recorded {
    of(IMAGE, REPOSITORY)
}

fn secret(uid: &str, password: &str) -> Found {
    let auth = AuthConfig { username: "u".into(), password: password.into(), ..AuthConfig::default() };
    let owner = CredentialOwner { uid: uid.into(), namespace: "ns".into(), name: "pull".into() };
    Found { auth, source: CredentialSource::Secret(owner) }
}

fn account(uid: &str) -> Found {
    let owner = CredentialOwner { uid: uid.into(), namespace: "ns".into(), name: "runner".into() };
    Found { auth: AuthConfig::default(), source: CredentialSource::Account(owner) }
}

#[tokio::test]
async fn only_who_could_have_pulled_an_image_may_use_it() {
    let bench = Bench::new().await;
    let records = bench.records(PullVerification::NotPreloaded);
    assert!(!bench.must_pull(&records, REPOSITORY, &[]).await, "it was there before");
    let noted = records.begin(ours()).await.unwrap();
    assert!(bench.must_pull(&records, REPOSITORY, &[]).await, "somebody is pulling it");
    let first = secret("1", "a");
    noted.end(End::Brought { reference: bench.id.clone(), credentials: Some(Box::new(first.clone())) }).await;
    assert_eq!((bench.files("pulling"), bench.files("pulled")), (0, 1));
    // The next kubelet knows as much.
    let records = bench.records(PullVerification::NotPreloaded);
    for (own, expected) in [
        (vec![], true),
        (vec![secret("2", "b")], true),
        (vec![secret("2", "b"), first.clone()], false),
        (vec![secret("9", "a")], false),
        (vec![secret("1", "changed")], false),
        (vec![secret("3", "changed")], false),
    ] {
        assert_eq!(bench.must_pull(&records, REPOSITORY, &own).await, expected, "{own:?}");
    }
    assert!(bench.must_pull(&records, "other.example.com/app", &[first]).await, "it came from elsewhere");
    bench.pull(&records, None).await;
    assert!(!bench.must_pull(&records, REPOSITORY, &[]).await, "everybody may");
}

#[tokio::test]
async fn the_policy_says_of_which_images_it_is_asked() {
    let bench = Bench::new().await;
    for (policy, preloaded, ours) in [
        (PullVerification::Never, false, false),
        (PullVerification::NotPreloaded, false, true),
        (PullVerification::NotListed(vec!["reg.example.com/*".into()]), false, false),
        (PullVerification::NotListed(vec![REPOSITORY.into()]), false, false),
        (PullVerification::NotListed(vec!["reg.example.com/ap".into()]), true, true),
        (PullVerification::Always, true, true),
    ] {
        let records = bench.records(policy.clone());
        assert_eq!(bench.must_pull(&records, REPOSITORY, &[]).await, preloaded, "{policy:?}");
        bench.pull(&records, Some(&secret("1", "a"))).await;
        assert_eq!(bench.must_pull(&records, REPOSITORY, &[]).await, ours, "{policy:?}");
        std::fs::remove_dir_all(bench.dir.path().join("image_manager")).unwrap();
    }
}

#[tokio::test]
async fn a_pull_whose_end_nobody_saw_was_for_nobody_and_what_is_gone_is_forgotten() {
    let bench = Bench::new().await;
    for image in [IMAGE, "reg.example.com/missing:1"] {
        // Nobody of the next kubelet sees its end.
        std::mem::forget(bench.records(PullVerification::NotPreloaded).begin(of(image, REPOSITORY)).await.unwrap());
    }
    let records = bench.records(PullVerification::NotPreloaded);
    assert!(bench.must_pull(&records, REPOSITORY, &[secret("1", "a")]).await);
    assert_eq!((bench.files("pulling"), bench.files("pulled")), (1, 1), "the other image may come yet");
    let later = Time::from(bench.clock.wall() + std::time::Duration::from_secs(60));
    records.prune([bench.id.clone()].into(), later).await;
    records.prune(BTreeSet::new(), Time::from_unix_seconds(0)).await;
    assert_eq!(bench.files("pulled"), 1, "it is there, or newer than who looks");
    records.prune(BTreeSet::new(), later).await;
    assert_eq!(bench.files("pulled"), 0);
    let (first, second) = (records.begin(ours()).await.unwrap(), records.begin(ours()).await.unwrap());
    first.end(End::Failed).await;
    assert_eq!(bench.files("pulling"), 2, "another pull goes on");
    second.end(End::Failed).await;
    assert_eq!((bench.files("pulling"), bench.files("pulled")), (1, 0));
}

#[tokio::test]
async fn a_pull_that_was_broken_off_may_have_brought_the_image() {
    let bench = Bench::new().await;
    let records = bench.records(PullVerification::NotPreloaded);
    assert!(!bench.must_pull(&records, REPOSITORY, &[]).await, "it was there before");
    drop(records.begin(ours()).await.unwrap());
    assert!(bench.must_pull(&records, REPOSITORY, &[]).await, "nobody saw the end");
    records.begin(ours()).await.unwrap().end(End::Failed).await;
    assert!(bench.must_pull(&records, REPOSITORY, &[]).await, "nor did the next");
    bench.pull(&records, None).await;
    assert!(!bench.must_pull(&records, REPOSITORY, &[]).await);
    assert_eq!(bench.files("pulling"), 0, "now it is known");
}

#[tokio::test]
async fn files_have_upstreams_form_and_those_of_older_versions_are_rewritten() {
    let bench = Bench::new().await;
    let records = bench.records(PullVerification::NotPreloaded);
    let _noted = records.begin(ours()).await.unwrap();
    let read = |path: &Path| -> Value { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() };
    let intent = records.files.intent(IMAGE);
    assert_eq!(read(&intent), json!({"kind": "ImagePullIntent", "apiVersion": VERSION, "image": IMAGE}));
    let name = intent.file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(name, format!("sha256-{}", kubelet_node::csi::hash(&[IMAGE])));
    for own in [secret("2", "b"), secret("1", "a"), account("7")] {
        bench.pull(&records, Some(&own)).await;
    }
    let path = records.files.record(&bench.id);
    let mut record = read(&path);
    let hash = secret("1", "a").hash();
    assert_eq!(hash, kubelet_node::csi::hash(&[r#"{"username":"u","password":"a"}"#]));
    let first = &record["credentialMapping"][REPOSITORY]["kubernetesSecrets"][0];
    assert_eq!(*first, json!({"uid": "1", "namespace": "ns", "name": "pull", "credentialHash": hash}));
    let accounts = &record["credentialMapping"][REPOSITORY]["kubernetesServiceAccounts"];
    assert_eq!(*accounts, json!([{"uid": "7", "namespace": "ns", "name": "runner"}]));
    assert_eq!((&record["kind"], &record["imageRef"]), (&json!("ImagePulledRecord"), &json!(bench.id)));

    let text = std::fs::read_to_string(&path).unwrap();
    let expected = format!(
        "{{\"kind\":\"{RECORD}\",\"apiVersion\":\"{VERSION}\",\"lastUpdatedTime\":{},\"imageRef\":\"{}\",\"credentialMapping\":{{\
         \"{REPOSITORY}\":{{\"kubernetesSecrets\":[{{\"uid\":\"1\",\"namespace\":\"ns\",\"name\":\"pull\",\"credentialHash\":\"{hash}\"}},",
        record["lastUpdatedTime"], bench.id
    );
    assert!(text.starts_with(&expected) && text.ends_with("}]}}}\n"), "{text}");
    let text = std::fs::read_to_string(&intent).unwrap();
    assert_eq!(text, format!("{{\"kind\":\"ImagePullIntent\",\"apiVersion\":\"{VERSION}\",\"image\":\"{IMAGE}\"}}\n"));
    record["apiVersion"] = "kubelet.config.k8s.io/v1alpha1".into();
    std::fs::write(&path, record.to_string()).unwrap();
    assert!(!bench.must_pull(&bench.records(PullVerification::NotPreloaded), REPOSITORY, &[account("7")]).await);
    record["apiVersion"] = VERSION.into();
    assert_eq!(read(&path), record, "and nothing else is changed");
}

#[tokio::test]
async fn what_cannot_be_read_allows_nothing() {
    let bench = Bench::new().await;
    let own = [secret("1", "a")];
    let hollow = |known: Value| json!({"kind": RECORD, "apiVersion": VERSION, "imageRef": bench.id, "credentialMapping": {REPOSITORY: known}});
    for (content, result) in [
        ("{".to_owned(), "error"),
        (json!({"kind": "Pod", "apiVersion": "v1"}).to_string(), "error"),
        (json!({"kind": RECORD, "apiVersion": VERSION, "credentialMapping": []}).to_string(), "error"),
        (hollow("nobody".into()).to_string(), "error"),
        (hollow(json!({"kubernetesSecrets": {"uid": "1"}})).to_string(), "error"),
        (hollow(json!({"kubernetesSecrets": [7, null]})).to_string(), "error"),
        (hollow(json!({"nodePodsAccessible": true, "until": "noon"})).to_string(), "error"),
        (hollow(json!({})).to_string().replace("v1beta1", "v2"), "error"),
        (hollow(json!({"kubernetesSecrets": [null]})).to_string(), "mustAuthenticate"),
        (hollow(json!({})).to_string(), "mustAuthenticate"),
        (hollow(json!(null)).to_string(), "mustAuthenticate"),
    ] {
        let records = bench.records(PullVerification::NotPreloaded);
        write(&records.files.record(&bench.id), &ImagePullIntent::default()).unwrap();
        std::fs::write(records.files.record(&bench.id), &content).unwrap();
        let counted = || bench.metrics.pull_checks.with(&[result]).get();
        let before = counted();
        assert!(bench.must_pull(&records, REPOSITORY, &own).await, "{content}");
        assert_eq!(counted(), before + 1.0, "{content}");
        // A pull mends it.
        bench.pull(&records, Some(&own[0])).await;
        assert!(!bench.must_pull(&records, REPOSITORY, &own).await, "{content}");
    }
    let on_disk = |family: &component_base::metrics::Gauges| family.with(&[]).get();
    assert_eq!((on_disk(&bench.metrics.pull_intents), on_disk(&bench.metrics.pull_records)), (0.0, 1.0));
}

#[test]
fn of_secrets_so_many_are_remembered() {
    let mut known = ImagePullCredentials::default();
    for uid in ["3", "1", "2", "1"] {
        extend(&mut known, Some(&secret(uid, uid)), 2);
    }
    let uids = |known: &ImagePullCredentials| -> Vec<String> {
        known.kubernetes_secrets.iter().map(|own| own.uid.clone()).collect()
    };
    assert_eq!(uids(&known), ["1", "3"]);
    extend(&mut known, Some(&secret("3", "changed")), 1);
    assert_eq!(uids(&known), ["1", "3"], "who is known already is not lost");
    assert_eq!(known.kubernetes_secrets[1].credential_hash, secret("3", "changed").hash());
    extend(&mut known, None, 2);
    extend(&mut known, Some(&secret("1", "1")), 2);
    assert_eq!(known, ImagePullCredentials { node_pods_accessible: true, ..ImagePullCredentials::default() });
}

#[tokio::test]
async fn who_stops_waiting_leaves_what_is_written_to_the_next() {
    let bench = Bench::new().await;
    let records = bench.records(PullVerification::NotPreloaded);
    // The file is written by a thread that nobody waits for.
    let begun = tokio::time::timeout(std::time::Duration::ZERO, records.begin(ours())).await;
    drop(begun);
    bench.pull(&records, None).await;
    assert_eq!((bench.files("pulling"), bench.files("pulled")), (0, 1));
    assert!(records.begun.lock().is_empty());
    let noted = records.begin(ours()).await.unwrap();
    drop(noted.end(End::Brought { reference: bench.id.clone(), credentials: None }));
    assert!(records.begun.lock().is_empty(), "a pull whose end is not noted is over as well");
    assert_eq!(bench.files("pulling"), 1);
    // What cannot be written takes nothing away.
    let pulling = bench.dir.path().join("image_manager/pulling");
    std::fs::rename(&pulling, pulling.with_extension("aside")).unwrap();
    std::fs::write(&pulling, "").unwrap();
    assert!(records.begin(ours()).await.is_err() && records.begun.lock().is_empty());
}
