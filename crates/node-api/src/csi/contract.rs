//! What every driver is held to, whoever wrote it: the rules of the specification that a caller can see at the socket.
//! <https://github.com/container-storage-interface/spec/blob/v1.12.0/spec.md>
//!
//! Only what a driver says it can do is asked of it. The rules use the driver: they make volumes and remove them.

mod controller;
mod node;
mod snapshots;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use grpc::{UnixSocket, code_name};
use tonic::transport::Channel;
use tonic::{Code, Response, Status};

use super::v1::controller_client::ControllerClient;
use super::v1::controller_service_capability::Type as ControllerType;
use super::v1::controller_service_capability::rpc::Type as ControllerCan;
use super::v1::identity_client::IdentityClient;
use super::v1::node_client::NodeClient;
use super::v1::node_service_capability::Type as NodeType;
use super::v1::node_service_capability::rpc::Type as NodeCan;
use super::v1::plugin_capability::Type as PluginType;
use super::v1::plugin_capability::service::Type as Service;
use super::v1::volume_capability::access_mode::Mode;
use super::v1::volume_capability::{AccessMode, AccessType, MountVolume};
use super::v1::*;

/// An id that no driver gave.
const NOBODY: &str = "no-driver-calls-a-volume-this";
/// A size that drivers can be expected to have room for, in bytes.
const SIZE: i64 = 16 * 1024 * 1024;

/// A driver, and what its rules are tried with.
struct Contract {
    identity: IdentityClient<Channel>,
    controller: ControllerClient<Channel>,
    node: NodeClient<Channel>,
    /// An empty directory, for paths that volumes are brought to.
    scratch: PathBuf,
    controller_can: BTreeSet<ControllerCan>,
    node_can: BTreeSet<NodeCan>,
    broken: Vec<String>,
}

/// Tries all rules on the driver at a socket, and tells which it breaks. `scratch` is an empty directory on the driver's
/// node. The name of every volume and snapshot that is made begins with `prefix`.
pub async fn broken_rules(socket: &Path, scratch: &Path, prefix: &str) -> Vec<String> {
    let channel = UnixSocket::at(socket).channel();
    let mut contract = Contract {
        identity: IdentityClient::new(channel.clone()),
        controller: ControllerClient::new(channel.clone()),
        node: NodeClient::new(channel),
        scratch: scratch.to_owned(),
        controller_can: BTreeSet::new(),
        node_can: BTreeSet::new(),
        broken: Vec::new(),
    };
    if contract.identity().await {
        contract.controller_can = contract.controller_capabilities().await;
        contract.volumes(prefix).await;
        contract.growth(prefix).await;
        contract.lists(prefix).await;
        contract.snapshots(prefix).await;
        contract.origins(prefix).await;
    }
    contract.node_can = contract.node_capabilities().await;
    contract.node_info().await;
    contract.node_refusals().await;
    contract.way_to_a_pod(prefix).await;
    contract.broken
}

/// A volume for one writer on one node, with a filesystem.
fn mount_for_one() -> VolumeCapability {
    VolumeCapability {
        access_mode: Some(AccessMode { mode: Mode::SingleNodeWriter.into() }),
        access_type: Some(AccessType::Mount(MountVolume::default())),
    }
}

fn to_create(name: &str) -> CreateVolumeRequest {
    CreateVolumeRequest {
        name: name.to_owned(),
        capacity_range: Some(CapacityRange { required_bytes: SIZE, limit_bytes: 0 }),
        volume_capabilities: vec![mount_for_one()],
        ..CreateVolumeRequest::default()
    }
}

fn to_delete(volume_id: &str) -> DeleteVolumeRequest {
    DeleteVolumeRequest { volume_id: volume_id.to_owned(), ..DeleteVolumeRequest::default() }
}

impl Contract {
    fn rule(&mut self, kept: bool, rule: &str) -> bool {
        if !kept {
            self.broken.push(rule.to_owned());
        }
        kept
    }

    /// A call must be refused with a code.
    fn refused<T>(&mut self, answer: Result<Response<T>, Status>, code: Code, rule: &str) {
        let found = answer.map_or_else(|status| status.code(), |_| Code::Ok);
        if found != code {
            self.broken.push(format!("{rule}: {} instead of {}", code_name(found), code_name(code)));
        }
    }

    /// A call must succeed.
    fn answered<T>(&mut self, answer: Result<Response<T>, Status>, rule: &str) -> Option<T> {
        match answer {
            Ok(response) => Some(response.into_inner()),
            Err(status) => {
                self.broken.push(format!("{rule}: {} {}", code_name(status.code()), status.message()));
                None
            }
        }
    }

    /// Whether there is a controller service.
    async fn identity(&mut self) -> bool {
        let info = self.identity.get_plugin_info(GetPluginInfoRequest {}).await;
        if let Some(info) = self.answered(info, "GetPluginInfo answers") {
            let fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
            let is_name = !info.name.is_empty() && info.name.len() <= 63 && info.name.bytes().all(fine);
            self.rule(is_name, "the driver's name has the form of a domain name");
            self.rule(!info.vendor_version.is_empty(), "the driver says its version");
        }
        let ready = self.identity.probe(ProbeRequest {}).await;
        self.answered(ready, "Probe answers");
        let answer = self.identity.get_plugin_capabilities(GetPluginCapabilitiesRequest {}).await;
        let answer = self.answered(answer, "GetPluginCapabilities answers").unwrap_or_default();
        let services = answer.capabilities.iter().filter_map(|capability| match capability.r#type.as_ref()? {
            PluginType::Service(service) => Some(service.r#type()),
            PluginType::VolumeExpansion(_) => None,
        });
        services.into_iter().any(|service| service == Service::ControllerService)
    }

    async fn controller_capabilities(&mut self) -> BTreeSet<ControllerCan> {
        let answer = self.controller.controller_get_capabilities(ControllerGetCapabilitiesRequest {}).await;
        let answer = self.answered(answer, "ControllerGetCapabilities answers").unwrap_or_default();
        let told = answer.capabilities.into_iter().filter_map(|capability| match capability.r#type? {
            ControllerType::Rpc(rpc) => Some(rpc.r#type()),
        });
        told.collect()
    }

    async fn node_capabilities(&mut self) -> BTreeSet<NodeCan> {
        let answer = self.node.node_get_capabilities(NodeGetCapabilitiesRequest {}).await;
        let answer = self.answered(answer, "NodeGetCapabilities answers").unwrap_or_default();
        let told = answer.capabilities.into_iter().filter_map(|capability| match capability.r#type? {
            NodeType::Rpc(rpc) => Some(rpc.r#type()),
        });
        told.collect()
    }

    async fn create(&mut self, request: CreateVolumeRequest, rule: &str) -> Option<Volume> {
        let answer = self.controller.create_volume(request).await;
        let volume = self.answered(answer, rule)?.volume;
        self.rule(volume.as_ref().is_some_and(|volume| !volume.volume_id.is_empty()), rule);
        volume
    }

    async fn delete(&mut self, volume_id: &str) {
        let answer = self.controller.delete_volume(to_delete(volume_id)).await;
        self.answered(answer, "DeleteVolume removes a volume that nobody uses");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base::TaskGroup;

    use super::*;
    use crate::csi::fake::FakeDriver;

    #[tokio::test]
    async fn a_driver_that_does_whatever_it_is_asked_for_breaks_rules() {
        let scratch = tempfile::tempdir().unwrap();
        let socket = scratch.path().join("csi.sock");
        let tasks = TaskGroup::new("driver");
        let served = FakeDriver::new("", &[NodeCan::GetVolumeStats]).serve(&socket, tasks.token()).unwrap();
        tasks.spawn("driver", async move { served.await.unwrap() });
        let broken = broken_rules(&socket, scratch.path(), "contract").await;
        tasks.shutdown(Duration::from_secs(10)).await;
        for rule in ["GetPluginInfo answers", "the node has a name", "NodePublishVolume wants a capability"] {
            assert!(broken.iter().any(|broken| broken.starts_with(rule)), "{rule}: {broken:?}");
        }
    }
}
