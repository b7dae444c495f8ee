//! What pods and their containers use, by the runtime's word.
//!
//! Of pods as a whole it is asked only with the gate `PodAndContainerStatsFromCRI` (<https://kep.k8s.io/2371>). Otherwise,
//! and where the runtime cannot tell, control groups are read. Of containers it is asked by whoever needs more than
//! processor time and memory, which their groups tell as well.

use std::collections::BTreeMap;

use node_api::cri::v1::{ContainerStats, LinuxPodSandboxStats, PodSandboxStats};
use node_api::cri::{Code, CriError, Runtime};

/// Whom figures of pods as a whole are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Control groups.
    Groups,
    /// The runtime (gate `PodAndContainerStatsFromCRI`).
    Runtime,
}

impl Source {
    /// As metrics have it: upstream reads control groups by cAdvisor.
    #[must_use]
    pub fn provider(self) -> &'static str {
        match self {
            Self::Groups => "cadvisor",
            Self::Runtime => "cri",
        }
    }
}

/// All figures of one moment.
#[derive(Debug, Default)]
pub struct Figures {
    pub containers: Vec<ContainerStats>,
    /// By uid; none where control groups are to be read.
    pods: Option<BTreeMap<String, LinuxPodSandboxStats>>,
}

impl Figures {
    /// # Errors
    /// The runtime does not answer.
    pub async fn ask(runtime: &dyn Runtime, source: Source) -> Result<Self, CriError> {
        if source == Source::Runtime {
            match runtime.list_pod_sandbox_stats(None).await {
                Ok(stats) => return Ok(Self::of_sandboxes(stats)),
                Err(error @ CriError::Rpc { code: Code::Unimplemented, .. }) => {
                    tracing::warn!(
                        %error,
                        "The container runtime cannot tell what pods use (gate PodAndContainerStatsFromCRI); control \
                         groups are read instead"
                    );
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Self::of_containers(runtime.list_container_stats(None).await?))
    }

    /// Of containers alone; the groups of pods are yet to be read.
    #[must_use]
    pub fn of_containers(containers: Vec<ContainerStats>) -> Self {
        Self { containers, pods: None }
    }

    /// Of several sandboxes of a pod the last one counts.
    fn of_sandboxes(stats: Vec<PodSandboxStats>) -> Self {
        let mut latest: BTreeMap<String, (u32, LinuxPodSandboxStats)> = BTreeMap::new();
        for one in stats {
            let Some(meta) = one.attributes.and_then(|attributes| attributes.metadata) else { continue };
            let Some(linux) = one.linux else { continue };
            if latest.get(&meta.uid).is_none_or(|(attempt, _)| *attempt <= meta.attempt) {
                latest.insert(meta.uid, (meta.attempt, linux));
            }
        }
        let mut figures = Self::default();
        let pods = latest.into_iter().map(|(uid, (_, mut linux))| {
            figures.containers.append(&mut linux.containers);
            (uid, linux)
        });
        figures.pods = Some(pods.collect());
        figures
    }

    /// Whether control groups are left alone.
    pub fn are_of_runtime(&self) -> bool {
        self.pods.is_some()
    }

    /// What a pod as a whole uses, where the runtime has told.
    pub fn pod(&self, uid: &str) -> Option<&LinuxPodSandboxStats> {
        self.pods.as_ref()?.get(uid)
    }
}

#[cfg(test)]
mod tests {
    use base::{SystemClock, TaskGroup};
    use node_api::cri::fake::FakeRuntime;
    use node_api::cri::v1::{MemoryUsage, PodSandboxAttributes, PodSandboxMetadata, UInt64Value};

    use super::*;

    fn sandbox(uid: &str, attempt: u32, linux: Option<LinuxPodSandboxStats>) -> PodSandboxStats {
        let metadata = PodSandboxMetadata { uid: uid.into(), attempt, ..PodSandboxMetadata::default() };
        let attributes = PodSandboxAttributes { metadata: Some(metadata), ..PodSandboxAttributes::default() };
        PodSandboxStats { attributes: Some(attributes), linux, windows: None }
    }

    fn using(bytes: u64) -> LinuxPodSandboxStats {
        let working_set_bytes = Some(UInt64Value { value: bytes });
        let memory = Some(MemoryUsage { working_set_bytes, ..MemoryUsage::default() });
        LinuxPodSandboxStats {
            memory,
            containers: vec![ContainerStats::default(); 2],
            ..LinuxPodSandboxStats::default()
        }
    }

    #[test]
    fn the_last_sandbox_of_a_pod_counts() {
        let nameless = PodSandboxStats { attributes: None, ..sandbox("", 0, Some(using(9))) };
        let stats =
            vec![sandbox("a", 1, Some(using(2))), sandbox("a", 0, Some(using(1))), sandbox("b", 0, None), nameless];
        let figures = Figures::of_sandboxes(stats);
        let used = |uid| figures.pod(uid).and_then(|pod| pod.memory?.working_set_bytes.map(|bytes| bytes.value));
        assert_eq!((used("a"), used("b"), used("")), (Some(2), None, None));
        assert!(figures.are_of_runtime() && figures.containers.len() == 2);
    }

    #[tokio::test]
    async fn groups_are_read_where_the_runtime_cannot_tell() {
        let runtime = FakeRuntime::new(SystemClock::shared(), &TaskGroup::new("runtime"));
        let asked = |source| {
            let runtime = runtime.clone();
            async move { Figures::ask(&runtime, source).await.map(|figures| figures.are_of_runtime()) }
        };
        assert!(!asked(Source::Groups).await.unwrap() && asked(Source::Runtime).await.unwrap());
        let failed = |code| CriError::rpc("list_podsandbox_stats", code, "no");
        runtime.fail_next("list_podsandbox_stats", failed(Code::Unimplemented));
        assert!(!asked(Source::Runtime).await.unwrap());
        runtime.fail_next("list_podsandbox_stats", failed(Code::Unavailable));
        assert!(asked(Source::Runtime).await.is_err());
    }
}
