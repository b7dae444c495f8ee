//! The image service over a unix socket.

use async_trait::async_trait;

use super::client::{CriClient, gone_is_done};
use super::v1::{
    AuthConfig, Image, ImageFilter, ImageFsInfoRequest, ImageFsInfoResponse, ImageSpec, ImageStatusRequest,
    ImageStatusResponse, ListImagesRequest, PodSandboxConfig, PullImageRequest, RemoveImageRequest,
    StreamImagesRequest,
};
use super::{CriError, Images};

#[async_trait]
impl Images for CriClient {
    async fn list_images(&self, filter: Option<ImageFilter>) -> Result<Vec<Image>, CriError> {
        let mut service = self.images.clone();
        let (streams, request) = (&self.streaming.images, StreamImagesRequest { filter: filter.clone() });
        let call = service.stream_images(request);
        if let Some(all) = self.call_streamed(streams, "list_images", call, |part| part.images).await? {
            return Ok(all);
        }
        let call = service.list_images(ListImagesRequest { filter });
        Ok(self.call("list_images", Some(self.timeout), call).await?.images)
    }

    async fn image_status(&self, image: ImageSpec, verbose: bool) -> Result<ImageStatusResponse, CriError> {
        let request = ImageStatusRequest { image: Some(image), verbose };
        let answer = self.call("image_status", Some(self.timeout), self.images.clone().image_status(request)).await?;
        match &answer.image {
            Some(image) if image.id.is_empty() || image.size == 0 => {
                Err(CriError::Incomplete { operation: "image_status", field: "id or size" })
            }
            _ => Ok(answer),
        }
    }

    async fn pull_image(
        &self,
        image: ImageSpec,
        auth: Option<AuthConfig>,
        sandbox_config: Option<PodSandboxConfig>,
    ) -> Result<String, CriError> {
        let request = PullImageRequest { image: Some(image), auth, sandbox_config };
        // A pull takes as long as it takes; the caller cancels by dropping.
        let answer = self.call("pull_image", None, self.images.clone().pull_image(request)).await?;
        if answer.image_ref.is_empty() {
            return Err(CriError::Incomplete { operation: "pull_image", field: "image_ref" });
        }
        Ok(answer.image_ref)
    }

    async fn remove_image(&self, image: ImageSpec) -> Result<(), CriError> {
        let request = RemoveImageRequest { image: Some(image) };
        let call = self.call("remove_image", Some(self.timeout), self.images.clone().remove_image(request)).await;
        gone_is_done(call.map(drop))
    }

    async fn image_fs_info(&self) -> Result<ImageFsInfoResponse, CriError> {
        let mut service = self.images.clone();
        self.call("image_fs_info", Some(self.timeout), service.image_fs_info(ImageFsInfoRequest {})).await
    }
}
