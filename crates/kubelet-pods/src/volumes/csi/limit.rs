//! Volumes that a node cannot have because it has as many of their driver's as fit (KEP-4876).

use node_api::tonic::Code;

use super::{Csi, CsiVolume};

impl Csi {
    /// Whether a volume was not attached for this reason, in the words of who attaches. How many fit is then asked anew. Of
    /// drivers that do not want that nothing is known.
    pub(in crate::volumes) async fn is_too_many(&self, volume: &CsiVolume) -> bool {
        let Some(counts) = self.0.csi.counts.as_ref().filter(|_| volume.facts.recounts && !volume.is_inline()) else {
            return false;
        };
        let attachment = match self.attachment(volume).await {
            Ok(attachment) => attachment,
            Err(error) => {
                tracing::info!(volume = volume.handle, %error, "Reading an attachment failed");
                return false;
            }
        };
        let code = attachment.and_then(|found| found.status.attach_error?.error_code);
        let is_too_many = code == Some(i32::from(Code::ResourceExhausted));
        if is_too_many {
            counts.ask(&volume.driver);
        }
        is_too_many
    }
}
