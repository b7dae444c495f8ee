//! What is kept of pulls, from one kubelet to the next.

use base::{TaskGroup, TokioClock};
use node_api::cri::fake::FakeRuntime;
use node_api::cri::v1::AuthConfig;

use super::*;

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

    fn records(&self, verification: PullVerification) -> PullRecords {
        PullRecords::new(self.dir.path(), verification, Arc::clone(&self.clock), &self.metrics)
    }

    async fn must_pull(&self, records: &PullRecords, repository: &str, own: &[Found]) -> bool {
        let of = Recorded { image: IMAGE, repository };
        records.must_pull(&self.runtime, of, &self.id, async { own.to_vec() }).await
    }

    fn files(&self, directory: &str) -> usize {
        std::fs::read_dir(self.dir.path().join("image_manager").join(directory)).map_or(0, Iterator::count)
    }
}

const OURS: Recorded<'static> = Recorded { image: IMAGE, repository: REPOSITORY };

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
    records.begin(IMAGE).unwrap();
    assert!(bench.must_pull(&records, REPOSITORY, &[]).await, "somebody is pulling it");
    let first = secret("1", "a");
    records.end(OURS, End::Brought { reference: &bench.id, credentials: Some(&first) });
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
    records.begin(IMAGE).unwrap();
    records.end(OURS, End::Brought { reference: &bench.id, credentials: None });
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
        records.begin(IMAGE).unwrap();
        records.end(OURS, End::Brought { reference: &bench.id, credentials: Some(&secret("1", "a")) });
        assert_eq!(bench.must_pull(&records, REPOSITORY, &[]).await, ours, "{policy:?}");
        std::fs::remove_dir_all(bench.dir.path().join("image_manager")).unwrap();
    }
}

#[tokio::test]
async fn a_pull_whose_end_nobody_saw_was_for_nobody_and_what_is_gone_is_forgotten() {
    let bench = Bench::new().await;
    for image in [IMAGE, "reg.example.com/missing:1"] {
        bench.records(PullVerification::NotPreloaded).begin(image).unwrap();
    }
    let records = bench.records(PullVerification::NotPreloaded);
    assert!(bench.must_pull(&records, REPOSITORY, &[secret("1", "a")]).await);
    assert_eq!((bench.files("pulling"), bench.files("pulled")), (1, 1), "the other image may come yet");
    let later = Time::from(bench.clock.wall() + std::time::Duration::from_secs(60));
    records.prune(&|id| id == bench.id, later);
    records.prune(&|_| false, Time::from_unix_seconds(0));
    assert_eq!(bench.files("pulled"), 1, "it is there, or newer than who looks");
    records.prune(&|_| false, later);
    assert_eq!(bench.files("pulled"), 0);
    records.begin(IMAGE).unwrap();
    records.begin(IMAGE).unwrap();
    records.end(OURS, End::Failed);
    assert_eq!(bench.files("pulling"), 2, "another pull goes on");
    records.end(OURS, End::Failed);
    assert_eq!((bench.files("pulling"), bench.files("pulled")), (1, 0));
}

#[tokio::test]
async fn a_pull_that_was_broken_off_may_have_brought_the_image() {
    let bench = Bench::new().await;
    let records = bench.records(PullVerification::NotPreloaded);
    assert!(!bench.must_pull(&records, REPOSITORY, &[]).await, "it was there before");
    for end in [End::Unseen, End::Failed] {
        records.begin(IMAGE).unwrap();
        records.end(OURS, end);
        assert!(bench.must_pull(&records, REPOSITORY, &[]).await, "{end:?}");
    }
    records.begin(IMAGE).unwrap();
    records.end(OURS, End::Brought { reference: &bench.id, credentials: None });
    assert!(!bench.must_pull(&records, REPOSITORY, &[]).await);
    assert_eq!(bench.files("pulling"), 0, "now it is known");
}

#[tokio::test]
async fn files_have_upstreams_form_and_those_of_older_versions_are_rewritten() {
    let bench = Bench::new().await;
    let records = bench.records(PullVerification::NotPreloaded);
    records.begin(IMAGE).unwrap();
    let read = |path: &Path| -> Value { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() };
    let intent = records.intent(IMAGE);
    assert_eq!(read(&intent), json!({"kind": "ImagePullIntent", "apiVersion": VERSION, "image": IMAGE}));
    let name = intent.file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(name, format!("sha256-{}", kubelet_node::csi::hash(&[IMAGE])));
    for own in [secret("2", "b"), secret("1", "a"), account("7")] {
        records.begin(IMAGE).unwrap();
        records.end(OURS, End::Brought { reference: &bench.id, credentials: Some(&own) });
    }
    let path = records.record(&bench.id);
    let mut record = read(&path);
    let hash = secret("1", "a").hash();
    assert_eq!(hash, kubelet_node::csi::hash(&[r#"{"username":"u","password":"a"}"#]));
    let first = &record["credentialMapping"][REPOSITORY]["kubernetesSecrets"][0];
    assert_eq!(*first, json!({"uid": "1", "namespace": "ns", "name": "pull", "credentialHash": hash}));
    let accounts = &record["credentialMapping"][REPOSITORY]["kubernetesServiceAccounts"];
    assert_eq!(*accounts, json!([{"uid": "7", "namespace": "ns", "name": "runner"}]));
    assert_eq!((&record["kind"], &record["imageRef"]), (&json!("ImagePulledRecord"), &json!(bench.id)));

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
        (json!({"kind": RECORD, "apiVersion": VERSION, "credentialMapping": []}).to_string(), "mustAuthenticate"),
        (hollow("nobody".into()).to_string(), "mustAuthenticate"),
        (hollow(json!({"kubernetesSecrets": {"uid": "1"}})).to_string(), "mustAuthenticate"),
        (hollow(json!({"kubernetesSecrets": [7, null]})).to_string(), "mustAuthenticate"),
    ] {
        let records = bench.records(PullVerification::NotPreloaded);
        write(&records.record(&bench.id), &json!({})).unwrap();
        std::fs::write(records.record(&bench.id), &content).unwrap();
        let counted = || bench.metrics.pull_checks.with(&[result]).get();
        let before = counted();
        assert!(bench.must_pull(&records, REPOSITORY, &own).await, "{content}");
        assert_eq!(counted(), before + 1.0, "{content}");
        // A pull mends it.
        records.begin(IMAGE).unwrap();
        records.end(OURS, End::Brought { reference: &bench.id, credentials: Some(&own[0]) });
        assert!(!bench.must_pull(&records, REPOSITORY, &own).await, "{content}");
    }
    let on_disk = |family: &component_base::metrics::Gauges| family.with(&[]).get();
    assert_eq!((on_disk(&bench.metrics.pull_intents), on_disk(&bench.metrics.pull_records)), (0.0, 1.0));
}

#[test]
fn of_secrets_so_many_are_remembered() {
    let mut known = json!({});
    for uid in ["3", "1", "2", "1"] {
        extend(&mut known, Some(&secret(uid, uid)), 2);
    }
    let uids = |known: &Value| -> Vec<String> {
        let secrets = known["kubernetesSecrets"].as_array().unwrap();
        secrets.iter().map(|own| own["uid"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(uids(&known), ["1", "3"]);
    extend(&mut known, Some(&secret("3", "changed")), 1);
    assert_eq!(uids(&known), ["1", "3"], "who is known already is not lost");
    assert_eq!(known["kubernetesSecrets"][1]["credentialHash"], *secret("3", "changed").hash());
    extend(&mut known, None, 2);
    extend(&mut known, Some(&secret("1", "1")), 2);
    assert_eq!(known, json!({"nodePodsAccessible": true}));
}
