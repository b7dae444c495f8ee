//! Images that no container uses, removed when the disk fills up or when they have been idle for very long.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::time::{Duration, SystemTime};

use api_machinery::quantity::{Format, Quantity};
use node_api::cri::CriError;
use node_api::cri::v1::ImageSpec;

use crate::runtime::PodRuntime;

/// Why too little was removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CollectError {
    /// The runtime does not answer.
    #[error("{0}")]
    Runtime(String),
    /// The file system says that it is nothing.
    #[error("invalid capacity 0 on image filesystem")]
    NoCapacity,
    /// Everything that may go is gone, and the disk is still full.
    #[error(
        "Insufficient free disk space on the node's image filesystem ({used_percent}% of {size} used). Failed to free \
         sufficient space by deleting unused images (freed {freed} bytes). Investigate disk usage, as it could be used \
         by active images, logs, volumes, or other data."
    )]
    TooLittle {
        /// How full it was.
        used_percent: u64,
        /// How large it is, for people.
        size: Quantity,
        /// What could be freed.
        freed: u64,
    },
}

impl CollectError {
    /// The event that tells of it at once; others are told only when they come again.
    pub(crate) fn event(&self) -> Option<&'static str> {
        match self {
            Self::Runtime(_) => None,
            Self::NoCapacity => Some("InvalidDiskCapacity"),
            Self::TooLittle { .. } => Some("FreeDiskSpaceFailed"),
        }
    }
}

/// What is known of the images over time.
#[derive(Default)]
pub(crate) struct ImageCollector {
    images: HashMap<Identity, Known>,
    /// When the images were looked at first, as soon as the kubelet is there.
    began: Option<SystemTime>,
}

/// An image by its id; with the gate `RuntimeClassInImageCriApi` (KEP-4216) also by the runtime handler that it was pulled
/// for, which else is empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Identity {
    id: String,
    handler: String,
}

#[derive(Debug, Clone)]
struct Known {
    first_seen: SystemTime,
    last_used: SystemTime,
    bytes: u64,
    pinned: bool,
}

impl ImageCollector {
    /// One pass. `mounted` are the images that pods mount as volumes.
    ///
    /// # Errors
    /// The runtime does not answer, or too little could be freed.
    pub(crate) async fn collect(
        &mut self,
        runtime: &PodRuntime,
        mounted: &BTreeSet<String>,
        now: SystemTime,
    ) -> Result<(), CollectError> {
        let in_use = self.look(runtime, mounted, now).await?;
        let settings = &runtime.settings;
        for key in self.outlived(&in_use, now, settings.image_maximum_age) {
            self.remove(runtime, &key, "age").await;
        }
        // Upstream's way to have none of it, even on a disk that has nothing left.
        if settings.image_gc_high_percent == 100 && settings.image_maximum_age.is_zero() {
            return Ok(());
        }
        let filesystems = runtime.images.image_fs_info().await.map_err(of_runtime)?.image_filesystems;
        let mount = filesystems.first().and_then(|info| info.fs_id.as_ref()).map(|id| id.mountpoint.clone());
        let Some((capacity, available)) = mount.and_then(|mount| usage(Path::new(&mount))) else { return Ok(()) };
        if capacity == 0 {
            return Err(CollectError::NoCapacity);
        }
        let used_percent =
            100 - u64::try_from(u128::from(available) * 100 / u128::from(capacity)).unwrap_or(100).min(100);
        if used_percent < u64::from(settings.image_gc_high_percent) {
            return Ok(());
        }
        let keep_free = u128::from(capacity) * u128::from(100 - settings.image_gc_low_percent.min(100)) / 100;
        let wanted = u64::try_from(keep_free).unwrap_or(u64::MAX).saturating_sub(available);
        let freed = self.free(runtime, &in_use, wanted, now).await;
        if freed < wanted {
            let size = Quantity::from_value(i64::try_from(capacity).unwrap_or(i64::MAX), Format::BinarySi);
            return Err(CollectError::TooLittle { used_percent, size, freed });
        }
        Ok(())
    }

    /// Removes every image that may go, however full the disk is.
    ///
    /// # Errors
    /// The runtime does not answer.
    pub(crate) async fn remove_unused(
        &mut self,
        runtime: &PodRuntime,
        mounted: &BTreeSet<String>,
        now: SystemTime,
    ) -> Result<(), CollectError> {
        let in_use = self.look(runtime, mounted, now).await?;
        let freed = self.free(runtime, &in_use, u64::MAX, now).await;
        tracing::info!(freed, "Removed unused images");
        Ok(())
    }

    /// Learns which images there are and which are in use.
    async fn look(
        &mut self,
        runtime: &PodRuntime,
        mounted: &BTreeSet<String>,
        now: SystemTime,
    ) -> Result<BTreeSet<Identity>, CollectError> {
        let images = runtime.images.list_images(None).await.map_err(of_runtime)?;
        let containers = runtime.runtime.list_containers(None).await.map_err(of_runtime)?;
        let by_handler = runtime.settings.images_by_handler;
        let handler_of = |spec: Option<&ImageSpec>| {
            spec.filter(|_| by_handler).map(|spec| spec.runtime_handler.clone()).unwrap_or_default()
        };
        let references: BTreeSet<(&str, String)> = containers
            .iter()
            .flat_map(|container| {
                let image = container.image.as_ref().map_or("", |image| image.image.as_str());
                let handler = handler_of(container.image.as_ref());
                [container.image_id.as_str(), container.image_ref.as_str(), image].map(|name| (name, handler.clone()))
            })
            .collect();
        let mut in_use = BTreeSet::new();
        let mut seen = BTreeSet::new();
        // What was there before the kubelet is of any age: a disk that is full must not wait for it.
        let first_seen = if self.began.is_none() { SystemTime::UNIX_EPOCH } else { now };
        self.began.get_or_insert(now);
        for image in images {
            let names = image.repo_tags.iter().chain(&image.repo_digests).chain([&image.id]);
            let key = Identity { handler: handler_of(image.spec.as_ref()), id: image.id.clone() };
            // A container that names no handler may use the image of any.
            let by_container = |name: &String| {
                ["", key.handler.as_str()].iter().any(|own| references.contains(&(name.as_str(), (*own).to_owned())))
            };
            let used = names.into_iter().any(|name| by_container(name) || mounted.contains(name));
            let known = self.images.entry(key.clone()).or_insert(Known {
                first_seen,
                last_used: SystemTime::UNIX_EPOCH,
                bytes: image.size,
                pinned: image.pinned,
            });
            known.bytes = image.size;
            known.pinned = image.pinned;
            if used {
                known.last_used = now;
                in_use.insert(key.clone());
            }
            seen.insert(key);
        }
        self.images.retain(|key, _| seen.contains(key));
        let ids = seen.into_iter().map(|key| key.id).collect();
        runtime.puller.forget_images(ids, now).await;
        Ok(in_use)
    }

    /// Images that nobody has used for longer than `age`, once that can be told: none at first, nor where it is zero.
    fn outlived(&self, in_use: &BTreeSet<Identity>, now: SystemTime, age: Duration) -> Vec<Identity> {
        let is_told = self.began.is_some_and(|began| since(began, now) > age);
        if age.is_zero() || !is_told {
            return Vec::new();
        }
        self.unused(in_use, |known| since(known.first_seen.max(known.last_used), now) > age)
    }

    /// Images that are not in use and may go, the longest idle first.
    fn unused(&self, in_use: &BTreeSet<Identity>, may_go: impl Fn(&Known) -> bool) -> Vec<Identity> {
        let mut found: Vec<(&Identity, &Known)> = self
            .images
            .iter()
            .filter(|(key, known)| !known.pinned && !in_use.contains(*key) && may_go(known))
            .collect();
        found.sort_by_key(|(key, known)| (known.last_used, known.first_seen, (*key).clone()));
        found.into_iter().map(|(key, _)| key.clone()).collect()
    }

    async fn free(&mut self, runtime: &PodRuntime, in_use: &BTreeSet<Identity>, wanted: u64, now: SystemTime) -> u64 {
        let (mut freed, minimum) = (0, runtime.settings.image_minimum_age);
        // An image that has just been pulled is about to be used; one whose container has just gone is not.
        for key in self.unused(in_use, |known| since(known.first_seen, now) >= minimum) {
            if freed >= wanted {
                break;
            }
            freed += self.remove(runtime, &key, "space").await;
        }
        freed
    }

    /// Returns the bytes that are free now.
    async fn remove(&mut self, runtime: &PodRuntime, key: &Identity, why: &'static str) -> u64 {
        let spec = ImageSpec { image: key.id.clone(), runtime_handler: key.handler.clone(), ..Default::default() };
        match runtime.images.remove_image(spec).await {
            Ok(()) => {
                runtime.metrics.images_collected.with(&[why]).inc();
                self.images.remove(key).map_or(0, |known| known.bytes)
            }
            Err(error) => {
                tracing::warn!(image = %key.id, %error, "Removing an image failed");
                0
            }
        }
    }
}

/// How long ago a time was.
fn since(time: SystemTime, now: SystemTime) -> Duration {
    now.duration_since(time).unwrap_or_default()
}

#[expect(clippy::needless_pass_by_value, reason = "maps an error")]
fn of_runtime(error: CriError) -> CollectError {
    CollectError::Runtime(error.to_string())
}

/// Capacity and available bytes of the file system at a path.
fn usage(path: &Path) -> Option<(u64, u64)> {
    let stats = rustix::fs::statvfs(path).ok()?;
    Some((stats.f_blocks.saturating_mul(stats.f_frsize), stats.f_bavail.saturating_mul(stats.f_frsize)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str) -> Identity {
        Identity { id: id.to_owned(), handler: String::new() }
    }

    fn at_test() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000)
    }

    #[test]
    fn the_longest_idle_go_first() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let known = |first_seen, last_used, pinned| Known {
            first_seen: at(first_seen),
            last_used: at(last_used),
            bytes: 1,
            pinned,
        };
        let images = [
            ("a", known(0, 50, false)),
            ("b", known(0, 10, false)),
            ("c", known(0, 0, true)),
            ("d", known(0, 99, false)),
            ("new", known(90, 0, false)),
            ("x", known(0, 0, false)),
        ];
        let images = images.into_iter().map(|(id, it)| (key(id), it)).collect();
        let mut collector = ImageCollector { images, began: Some(at(80)) };
        let in_use = BTreeSet::from([key("x")]);
        let is_old = |known: &Known| since(known.first_seen, at(100)) >= Duration::from_secs(20);
        assert_eq!(collector.unused(&in_use, is_old), ["b", "a", "d"].map(key), "who was used a moment ago may go");
        let of_age =
            |collector: &ImageCollector, seconds| collector.outlived(&in_use, at(100), Duration::from_secs(seconds));
        assert_eq!(of_age(&collector, 20), [] as [Identity; 0], "nobody has watched for as long");
        collector.began = Some(at(79));
        assert_eq!(of_age(&collector, 20), ["b", "a"].map(key));
        assert_eq!(of_age(&collector, 0), [] as [Identity; 0], "nobody asked for it");
    }

    #[tokio::test]
    async fn images_that_were_there_before_the_kubelet_are_old_enough_to_go() {
        use node_api::cri::Images as _;
        use node_api::cri::fake::FakeRuntime;

        let tasks = base::TaskGroup::new("runtime");
        let fake = FakeRuntime::new(base::SystemClock::shared(), &tasks);
        let pull = async |image: &str| {
            let spec = ImageSpec { image: image.into(), ..Default::default() };
            fake.pull_image(spec, None, None).await.unwrap();
        };
        let (runtime, mut collector) = (crate::engine::test_node::runtime_with(&fake), ImageCollector::default());
        pull("docker.io/library/before:1").await;
        collector.look(&runtime, &BTreeSet::new(), at_test()).await.unwrap();
        pull("docker.io/library/after:1").await;
        for (later, expected) in
            [(1, vec!["docker.io/library/after:1"]), (119, vec!["docker.io/library/after:1"]), (121, vec![])]
        {
            let now = at_test() + Duration::from_secs(later);
            collector.remove_unused(&runtime, &BTreeSet::new(), now).await.unwrap();
            let left: Vec<String> =
                fake.list_images(None).await.unwrap().into_iter().flat_map(|image| image.repo_tags).collect();
            assert_eq!(left, expected, "{later} s");
        }
    }

    #[tokio::test]
    async fn a_threshold_of_all_there_is_leaves_images_whatever_the_disk_says() {
        use node_api::cri::fake::FakeRuntime;

        let tasks = base::TaskGroup::new("runtime");
        let fake = FakeRuntime::new(base::SystemClock::shared(), &tasks);
        let hour = Duration::from_secs(3600);
        for (high, age, asks) in [(99, Duration::ZERO, true), (100, Duration::ZERO, false), (100, hour, true)] {
            let mut runtime = crate::engine::test_node::runtime_with(&fake);
            let settings = crate::interfaces::PodSettings {
                image_gc_high_percent: high,
                image_maximum_age: age,
                ..Default::default()
            };
            runtime.settings = std::sync::Arc::new(settings);
            ImageCollector::default().collect(&runtime, &BTreeSet::new(), at_test()).await.unwrap();
            let asked = fake.take_calls().iter().any(|call| call.operation == "image_fs_info");
            assert_eq!(asked, asks, "{high} {age:?}");
        }
    }

    #[tokio::test]
    async fn images_of_containers_and_volumes_are_in_use() {
        use node_api::cri::Images as _;
        use node_api::cri::fake::FakeRuntime;

        let tasks = base::TaskGroup::new("runtime");
        let fake = FakeRuntime::new(base::SystemClock::shared(), &tasks);
        for image in ["docker.io/library/app:1", "docker.io/library/data:1", "docker.io/library/old:1"] {
            let spec = ImageSpec { image: image.into(), ..Default::default() };
            fake.pull_image(spec, None, None).await.unwrap();
        }
        let runtime = crate::engine::test_node::runtime_with(&fake);
        let mounted = BTreeSet::from(["docker.io/library/data:1".to_owned()]);
        let mut collector = ImageCollector::default();
        let in_use = collector.look(&runtime, &mounted, at_test()).await.unwrap();
        assert_eq!(in_use.len(), 1);
        let later = at_test() + Duration::from_secs(600);
        collector.remove_unused(&runtime, &mounted, later).await.unwrap();
        let left: Vec<String> =
            fake.list_images(None).await.unwrap().into_iter().flat_map(|image| image.repo_tags).collect();
        assert_eq!(left, ["docker.io/library/data:1"]);
    }

    #[tokio::test]
    async fn an_image_is_in_use_for_the_handler_of_its_containers_where_the_gate_says_so() {
        use node_api::cri::fake::FakeRuntime;
        use node_api::cri::v1::{ContainerConfig, ContainerMetadata, PodSandboxConfig, PodSandboxMetadata};
        use node_api::cri::{Images as _, Runtime as _};

        let tasks = base::TaskGroup::new("runtime");
        let fake = FakeRuntime::new(base::SystemClock::shared(), &tasks);
        let spec = |handler: &str| ImageSpec {
            image: "docker.io/library/app:1".into(),
            runtime_handler: handler.into(),
            ..Default::default()
        };
        fake.pull_image(spec("kata"), None, None).await.unwrap();
        let config = PodSandboxConfig { metadata: Some(PodSandboxMetadata::default()), ..Default::default() };
        let sandbox = fake.run_pod_sandbox(config.clone(), "").await.unwrap();
        // (by whom the container was made, whether the gate is on, whether the image counts as used)
        for (number, (handler, is_on, is_used)) in
            [("runc", false, true), ("runc", true, false), ("kata", true, true), ("", true, true)]
                .into_iter()
                .enumerate()
        {
            let metadata = Some(ContainerMetadata { name: format!("c{number}"), attempt: 0 });
            let image = Some(spec(handler));
            let made = ContainerConfig { metadata, image, ..Default::default() };
            let id = fake.create_container(&sandbox, made, config.clone()).await.unwrap();
            let mut runtime = crate::engine::test_node::runtime_with(&fake);
            let settings = crate::interfaces::PodSettings { images_by_handler: is_on, ..Default::default() };
            runtime.settings = std::sync::Arc::new(settings);
            let in_use = ImageCollector::default().look(&runtime, &BTreeSet::new(), at_test()).await.unwrap();
            let handlers: Vec<&str> = in_use.iter().map(|key| key.handler.as_str()).collect();
            let expected: Vec<&str> = is_used.then_some(if is_on { "kata" } else { "" }).into_iter().collect();
            assert_eq!(handlers, expected, "{handler:?} {is_on}");
            fake.remove_container(&id).await.unwrap();
        }
    }

    #[test]
    fn a_full_disk_is_told_in_upstreams_words() {
        let error = CollectError::TooLittle { used_percent: 92, size: Quantity::parse("252Gi").unwrap(), freed: 7 };
        let text = error.to_string();
        assert!(
            text.starts_with("Insufficient free disk space on the node's image filesystem (92% of 252Gi used). "),
            "{text}"
        );
        assert!(text.contains("(freed 7 bytes)"));
        assert_eq!(error.event(), Some("FreeDiskSpaceFailed"));
    }
}
