//! Who the driver is.

use node_api::csi::v1::identity_server::Identity;
use node_api::csi::v1::plugin_capability::service::Type as Service;
use node_api::csi::v1::plugin_capability::volume_expansion::Type as Expansion;
use node_api::csi::v1::plugin_capability::{self, Type};
use node_api::csi::v1::{
    BoolValue, GetPluginCapabilitiesRequest, GetPluginCapabilitiesResponse, GetPluginInfoRequest,
    GetPluginInfoResponse, PluginCapability, ProbeRequest, ProbeResponse,
};
use tonic::{Request, Response, Status};

use crate::driver::Driver;

#[tonic::async_trait]
impl Identity for Driver {
    async fn get_plugin_info(
        &self,
        _: Request<GetPluginInfoRequest>,
    ) -> Result<Response<GetPluginInfoResponse>, Status> {
        Ok(Response::new(GetPluginInfoResponse {
            name: self.settings().name.clone(),
            vendor_version: env!("CARGO_PKG_VERSION").to_owned(),
            manifest: [].into(),
        }))
    }

    async fn get_plugin_capabilities(
        &self,
        _: Request<GetPluginCapabilitiesRequest>,
    ) -> Result<Response<GetPluginCapabilitiesResponse>, Status> {
        let service = |service: Service| Type::Service(plugin_capability::Service { r#type: service.into() });
        let online = plugin_capability::VolumeExpansion { r#type: Expansion::Online.into() };
        let types = [
            service(Service::ControllerService),
            service(Service::VolumeAccessibilityConstraints),
            Type::VolumeExpansion(online),
        ];
        let capabilities = types.map(|kind| PluginCapability { r#type: Some(kind) }).into();
        Ok(Response::new(GetPluginCapabilitiesResponse { capabilities }))
    }

    async fn probe(&self, _: Request<ProbeRequest>) -> Result<Response<ProbeResponse>, Status> {
        let root = self.store().root();
        if let Err(error) = root.metadata() {
            return Err(Status::failed_precondition(format!("{}: {error}", root.display())));
        }
        Ok(Response::new(ProbeResponse { ready: Some(BoolValue { value: true }) }))
    }
}
