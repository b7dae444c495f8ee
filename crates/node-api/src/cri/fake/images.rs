//! Images of the fake runtime: every pull succeeds unless a test says otherwise.

use async_trait::async_trait;
use tonic::Code;

use super::{FakeRuntime, State};
use crate::cri::v1::{
    AuthConfig, FilesystemIdentifier, FilesystemUsage, Image, ImageFilter, ImageFsInfoResponse, ImageSpec,
    ImageStatusResponse, PodSandboxConfig, UInt64Value,
};
use crate::cri::{CriError, Images};

/// The size of every image.
const IMAGE_BYTES: u64 = 1_048_576;

#[async_trait]
impl Images for FakeRuntime {
    async fn list_images(&self, filter: Option<ImageFilter>) -> Result<Vec<Image>, CriError> {
        self.enter("list_images", "").await?;
        let state = self.shared.state.lock();
        let wanted = filter.and_then(|filter| filter.image).map(|spec| spec.image).filter(|name| !name.is_empty());
        Ok(match wanted {
            None => state.images.values().cloned().collect(),
            Some(name) => find(&state, &name).cloned().into_iter().collect(),
        })
    }

    async fn image_status(&self, image: ImageSpec, _verbose: bool) -> Result<ImageStatusResponse, CriError> {
        self.enter("image_status", &image.image).await?;
        let state = self.shared.state.lock();
        Ok(ImageStatusResponse { image: find(&state, &image.image).cloned(), ..Default::default() })
    }

    async fn pull_image(
        &self,
        image: ImageSpec,
        _auth: Option<AuthConfig>,
        _sandbox_config: Option<PodSandboxConfig>,
    ) -> Result<String, CriError> {
        self.enter("pull_image", &image.image).await?;
        let takes = self.shared.state.lock().pull_takes;
        if !takes.is_zero() {
            tokio::time::sleep(takes).await;
        }
        let mut state = self.shared.state.lock();
        if image.image.is_empty() {
            return Err(CriError::rpc("pull_image", Code::InvalidArgument, "image name is empty"));
        }
        if let Some(error) = state.unpullable.get(&image.image) {
            return Err(error.clone());
        }
        let id = image_id(&image.image);
        let pulled = Image {
            id: id.clone(),
            repo_tags: if image.image.contains('@') { Vec::new() } else { vec![image.image.clone()] },
            repo_digests: vec![format!("{}@{id}", repository(&image.image))],
            size: IMAGE_BYTES,
            spec: Some(image),
            ..Default::default()
        };
        state.images.insert(id.clone(), pulled);
        Ok(id)
    }

    async fn remove_image(&self, image: ImageSpec) -> Result<(), CriError> {
        self.enter("remove_image", &image.image).await?;
        let mut state = self.shared.state.lock();
        let id = find(&state, &image.image).map(|found| found.id.clone());
        if let Some(id) = id {
            state.images.remove(&id);
        }
        Ok(())
    }

    async fn image_fs_info(&self) -> Result<ImageFsInfoResponse, CriError> {
        self.enter("image_fs_info", "").await?;
        let count = self.shared.state.lock().images.len() as u64;
        let usage = FilesystemUsage {
            timestamp: self.now(),
            fs_id: Some(FilesystemIdentifier { mountpoint: "/var/lib/fake-runtime".to_owned() }),
            used_bytes: Some(UInt64Value { value: count * IMAGE_BYTES }),
            inodes_used: Some(UInt64Value { value: count }),
        };
        Ok(ImageFsInfoResponse { image_filesystems: vec![usage.clone()], container_filesystems: vec![usage] })
    }
}

/// The image of an id, tag or digest.
pub(super) fn find<'a>(state: &'a State, name: &str) -> Option<&'a Image> {
    let known = |image: &&Image| {
        image.id == name || image.repo_tags.iter().chain(&image.repo_digests).any(|reference| reference == name)
    };
    state.images.values().find(known)
}

/// A digest that depends on the name alone (64-bit FNV-1a, repeated).
fn image_id(name: &str) -> String {
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("sha256:{}", format!("{hash:016x}").repeat(4))
}

/// The name without tag and digest.
fn repository(name: &str) -> &str {
    let name = name.split('@').next().unwrap_or(name);
    match name.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => repository,
        _ => name,
    }
}
