//! Images for whole containers, from a registry that wants to see something.

use async_trait::async_trait;
use base::{TaskGroup, TokioClock};
use component_base::metrics::{Metrics, MetricsOptions};
use node_api::cri::Code;
use node_api::cri::fake::FakeRuntime;
use node_api::cri::v1::{AuthConfig, ImageFilter, ImageFsInfoResponse, ImageStatusResponse};

use super::*;
use crate::events::RecordedEvents;
use crate::interfaces::{CredentialOwner, PullVerification, RegistryCredential};

const PRIVATE: &str = "reg.example.com/app:1";

/// A runtime whose registry gives one image to those alone who know the password.
struct Registry {
    runtime: FakeRuntime,
    /// What was presented, pull by pull.
    presented: Mutex<Vec<String>>,
}

#[async_trait]
impl Images for Registry {
    async fn list_images(&self, filter: Option<ImageFilter>) -> Result<Vec<Image>, CriError> {
        self.runtime.list_images(filter).await
    }

    async fn image_status(&self, image: ImageSpec, verbose: bool) -> Result<ImageStatusResponse, CriError> {
        self.runtime.image_status(image, verbose).await
    }

    async fn pull_image(
        &self,
        image: ImageSpec,
        auth: Option<AuthConfig>,
        sandbox: Option<PodSandboxConfig>,
    ) -> Result<String, CriError> {
        let password = auth.as_ref().map_or_else(String::new, |auth| auth.password.clone());
        self.presented.lock().push(password.clone());
        if image.image == PRIVATE && password != "right" {
            return Err(CriError::rpc("pull_image", Code::Unknown, "401 Unauthorized"));
        }
        self.runtime.pull_image(image, auth, sandbox).await
    }

    async fn remove_image(&self, image: ImageSpec) -> Result<(), CriError> {
        self.runtime.remove_image(image).await
    }

    async fn image_fs_info(&self) -> Result<ImageFsInfoResponse, CriError> {
        self.runtime.image_fs_info().await
    }
}

/// Has the right password for pods with an account.
struct Programs;

#[async_trait]
impl ImageCredentials for Programs {
    async fn lookup(&self, pod: &Pod, image: &str) -> Vec<RegistryCredential> {
        if image != "reg.example.com/app" || pod.spec.service_account_name.is_empty() {
            return Vec::new();
        }
        let name = pod.spec.service_account_name.clone();
        let owner = CredentialOwner { uid: format!("uid-{name}"), namespace: "ns".into(), name };
        let auth = AuthConfig { username: "u".into(), password: "right".into(), ..AuthConfig::default() };
        vec![RegistryCredential { server: "*.example.com".into(), auth, account: Some(owner) }]
    }

    fn forget_pod(&self, _: &str) {}
}

struct Bench {
    dir: tempfile::TempDir,
    registry: Arc<Registry>,
    events: Arc<RecordedEvents>,
    metrics: Arc<Metrics>,
    puller: ImagePuller,
}

impl Bench {
    fn new(verification: Option<PullVerification>) -> Self {
        Self::of(PodSettings { pull_verification: verification, ..PodSettings::default() })
    }

    fn of(settings: PodSettings) -> Self {
        let (dir, clock) = (tempfile::tempdir().unwrap(), TokioClock::shared());
        let runtime = FakeRuntime::new(Arc::clone(&clock), &TaskGroup::new("runtime"));
        let registry = Arc::new(Registry { runtime, presented: Mutex::default() });
        let settings = PodSettings { root_dir: dir.path().into(), ..settings };
        let (events, metrics) = (Arc::new(RecordedEvents::default()), Metrics::new(MetricsOptions::default()));
        let own = KubeletMetrics::new(&metrics, &metrics);
        let sources = (registry.clone() as Arc<dyn Images>, Some(Arc::new(Programs) as Arc<dyn ImageCredentials>));
        let puller = ImagePuller::new(sources, events.clone(), clock, &settings, own);
        Self { dir, registry, events, metrics, puller }
    }

    /// An image that was there before the kubelet.
    async fn preload(&self, image: &str) {
        let spec = ImageSpec { image: image.to_owned(), ..ImageSpec::default() };
        self.registry.runtime.pull_image(spec, None, None).await.unwrap();
    }

    /// A container of a pod with this account wants an image. Returns why it is not there, and what it was told.
    async fn ensure(&self, account: &str, image: &str, policy: &str) -> (Result<(), WaitingReason>, Vec<String>) {
        let mut pod = Pod::default();
        (pod.metadata.namespace, pod.metadata.uid) = ("ns".into(), format!("pod-of-{account}"));
        pod.spec.service_account_name = account.to_owned();
        let container =
            Container { image: image.to_owned(), image_pull_policy: policy.to_owned(), ..Container::default() };
        let ensured = self
            .puller
            .ensure(&Wanted {
                pod: &pod,
                container: &container,
                about: &ObjectReference::default(),
                keyring: &Keyring::default(),
                sandbox: &PodSandboxConfig::default(),
                handler: "",
            })
            .await;
        let told = self.events.taken().into_iter().map(|event| event.reason).collect();
        (ensured.map(drop).map_err(|failure| failure.reason), told)
    }
}

#[tokio::test(start_paused = true)]
async fn images_are_the_handlers_of_their_pods_where_the_gate_says_so() {
    const IMAGE: &str = "registry.example/open/app:1";
    for (images_by_handler, expected) in [(true, "kata"), (false, "")] {
        let settings = PodSettings { images_by_handler, pull_verification: None, ..PodSettings::default() };
        let bench = Bench::of(settings);
        let container = Container { image: IMAGE.into(), ..Container::default() };
        let (pod, about, keyring) = (Pod::default(), ObjectReference::default(), Keyring::default());
        let sandbox = PodSandboxConfig::default();
        let wanted = Wanted {
            pod: &pod,
            container: &container,
            about: &about,
            keyring: &keyring,
            sandbox: &sandbox,
            handler: "kata",
        };
        bench.puller.ensure(&wanted).await.unwrap();
        let pulled = bench.registry.runtime.list_images(None).await.unwrap().remove(0);
        assert_eq!(pulled.spec.unwrap().runtime_handler, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn who_has_no_credentials_does_not_get_what_others_pulled() {
    let bench = Bench::new(Some(PullVerification::NotPreloaded));
    let (pulled, present) = (["Pulling", "Pulled"], ["Pulled"]);
    let (refused, never) = (["Pulling", "Failed"], ["ErrImageNeverPull"]);
    for (account, policy, expected, told) in [
        ("one", "IfNotPresent", Ok(()), &pulled[..]),
        ("one", "IfNotPresent", Ok(()), &present[..]),
        ("one", "Never", Ok(()), &present[..]),
        ("", "Never", Err(WaitingReason::ErrImageNeverPull), &never[..]),
        ("", "IfNotPresent", Err(WaitingReason::ErrImagePull), &refused[..]),
        ("two", "IfNotPresent", Ok(()), &pulled[..]),
        ("two", "Never", Ok(()), &present[..]),
        ("one", "Never", Ok(()), &present[..]),
    ] {
        let (ensured, events) = bench.ensure(account, PRIVATE, policy).await;
        assert_eq!(ensured, expected, "{account:?} {policy}");
        assert_eq!(events, told, "{account:?} {policy}");
    }
    assert_eq!(*bench.registry.presented.lock(), ["right", "", "right"]);
    let left =
        |directory: &str| std::fs::read_dir(bench.dir.path().join("image_manager").join(directory)).unwrap().count();
    assert_eq!((left("pulling"), left("pulled")), (0, 1), "no pull is on its way");
}

#[tokio::test(start_paused = true)]
async fn who_does_not_wait_for_a_pull_leaves_nothing_to_others() {
    let bench = Bench::new(Some(PullVerification::NotPreloaded));
    bench.registry.runtime.set_pull_time(Duration::from_secs(60));
    let pull = bench.ensure("one", PRIVATE, "IfNotPresent");
    assert!(tokio::time::timeout(Duration::from_secs(1), pull).await.is_err());
    bench.registry.runtime.set_pull_time(Duration::ZERO);
    // The runtime went on.
    bench.preload(PRIVATE).await;
    let (refused, _) = bench.ensure("", PRIVATE, "Never").await;
    assert_eq!(refused, Err(WaitingReason::ErrImageNeverPull));
    bench.ensure("two", PRIVATE, "IfNotPresent").await.0.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_where_the_feature_is_off() {
    let bench = Bench::new(None);
    bench.ensure("one", PRIVATE, "IfNotPresent").await.0.unwrap();
    bench.ensure("", PRIVATE, "IfNotPresent").await.0.unwrap();
    assert!(!bench.dir.path().join("image_manager").exists());
    assert!(!bench.metrics.text().contains("mustpull_checks_total{"));
}

#[tokio::test(start_paused = true)]
async fn what_containers_want_is_counted() {
    for (image, policy, labels) in [
        ("there", "Always", ("unknown", "always", "true")),
        ("there", "IfNotPresent", ("true", "ifnotpresent", "false")),
        ("there", "Never", ("true", "never", "false")),
        ("missing", "IfNotPresent", ("false", "ifnotpresent", "true")),
        ("missing", "Never", ("false", "never", "unknown")),
        ("NO NAME", "Always", ("unknown", "always", "unknown")),
        (PRIVATE, "IfNotPresent", ("true", "ifnotpresent", "true")),
        (PRIVATE, "Never", ("true", "never", "true")),
    ] {
        let listed = PullVerification::NotListed(vec!["docker.io/library/*".into()]);
        let bench = Bench::new(Some(listed));
        bench.preload("there:latest").await;
        bench.preload(PRIVATE).await;
        let _ = bench.ensure("", image, policy).await;
        let (present, policy, pulled) = labels;
        let line = format!(
            "kubelet_image_manager_ensure_image_requests_total{{present_locally=\"{present}\",pull_policy=\"{policy}\",\
             pull_required=\"{pulled}\"}} 1"
        );
        let text = bench.metrics.text();
        assert!(text.lines().any(|found| found == line), "{image}: {line}\n{text}");
    }
}
