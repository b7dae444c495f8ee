//! How full the file systems behind claims are.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::Pod;
use futures_util::future::join_all;
use tokio::time::Instant;

use super::claims::claim_name;
use super::csi::{VolumeCondition, VolumeReport};
use super::set::VolumeSet;
use super::spec::{Kind, kind_of};
use crate::node::{FileSystem, filesystem};

/// How long a file system may take to tell its size.
const ROOM_LIMIT: Duration = Duration::from_secs(2);

/// A claim in use by a pod, and the file system behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRoom {
    /// The pod's uid, and its name for the volume.
    pub uid: String,
    pub volume: String,
    pub namespace: String,
    pub claim: String,
    pub room: FileSystem,
    /// How it is, by the word of a driver that watches over that.
    pub condition: Option<VolumeCondition>,
}

impl VolumeSet {
    /// What the claims of pods have. Directories of the machine that are mounted as they are have no size of their own;
    /// of a file system that does not answer in time nothing is told.
    pub async fn claimed_rooms(&self, pods: &[Arc<Pod>]) -> Vec<ClaimRoom> {
        let mut asked = Vec::new();
        for pod in pods {
            for volume in &pod.spec.volumes {
                let Kind::Claim { name, ephemeral, .. } = kind_of(volume) else { continue };
                let Some(mounted) = self.mounted(&pod.metadata.uid, &volume.name) else { continue };
                if !mounted.path.starts_with(self.layout().pods()) {
                    continue;
                }
                asked.push(async move {
                    let VolumeReport { room, condition } =
                        self.report(&pod.metadata.uid, &volume.name, mounted.path).await?;
                    Some(ClaimRoom {
                        uid: pod.metadata.uid.clone(),
                        volume: volume.name.clone(),
                        namespace: pod.metadata.namespace.clone(),
                        claim: claim_name(pod, &volume.name, ephemeral, name),
                        room,
                        condition,
                    })
                });
            }
        }
        join_all(asked).await.into_iter().flatten().collect()
    }

    /// How full a claim's volume is: by its driver's word, or that of its file system.
    async fn report(&self, uid: &str, volume: &str, path: PathBuf) -> Option<VolumeReport> {
        let began = Instant::now();
        let (told, how) = match self.driver_usage(uid, volume).await {
            Some((driver, told)) => (told, driver),
            None => (self.room(path).await.map(|room| VolumeReport { room, condition: None }), "statfs".to_owned()),
        };
        self.metrics().volume_measuring.with(&[&how]).observe(began.elapsed().as_secs_f64());
        told
    }

    async fn room(&self, path: PathBuf) -> Option<FileSystem> {
        let what = path.display().to_string();
        let asked = self.calls().run_if_idle(&what, move || filesystem(&path));
        tokio::time::timeout(ROOM_LIMIT, asked).await.ok()??.ok()?.ok()
    }
}
