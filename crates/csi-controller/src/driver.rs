//! The driver: who it is, and what it can do.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use node_api::RpcError;
use node_api::csi::CsiController;
use node_api::csi::v1::controller_service_capability::rpc::Type as Can;
use node_api::csi::v1::plugin_capability::Type as PluginType;
use node_api::csi::v1::plugin_capability::service::Type as Service;
use node_api::csi::v1::{GetPluginCapabilitiesRequest, GetPluginInfoRequest, ProbeRequest, Topology};
use tonic::Code;

/// How long to wait before a driver that is not there, or not ready, is asked again.
const INTERVAL: Duration = Duration::from_secs(1);
/// The longest a driver's name may be, for the specification.
const LONGEST_NAME_BYTES: usize = 63;

/// A driver that has told what it can do.
#[derive(Clone)]
pub struct Driver {
    pub(crate) name: String,
    pub(crate) calls: CsiController,
    can: BTreeSet<Can>,
    /// Its volumes are not reachable from everywhere.
    pub(crate) has_topology: bool,
}

impl Driver {
    /// Asks a driver until it is ready and has told of itself.
    pub async fn discover(calls: CsiController) -> Self {
        loop {
            match Self::ask(&calls).await {
                Ok(driver) => return driver,
                Err(error) => tracing::warn!(%error, "The driver is not ready"),
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    async fn ask(calls: &CsiController) -> Result<Self, RpcError> {
        let name = calls.info(GetPluginInfoRequest {}).await?.name;
        let fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
        if name.is_empty() || name.len() > LONGEST_NAME_BYTES || !name.bytes().all(fine) {
            return Err(RpcError::new(Code::Internal, format!("the driver's name {name:?} is no domain name")));
        }
        let ready = calls.probe(ProbeRequest {}).await?.ready;
        if ready.is_some_and(|ready| !ready.value) {
            return Err(RpcError::new(Code::Unavailable, "the driver says that it is not ready"));
        }
        let told = calls.plugin_capabilities(GetPluginCapabilitiesRequest {}).await?.capabilities;
        let services: Vec<Service> = told
            .iter()
            .filter_map(|capability| match capability.r#type.as_ref()? {
                PluginType::Service(service) => Some(service.r#type()),
                PluginType::VolumeExpansion(_) => None,
            })
            .collect();
        let can = match services.contains(&Service::ControllerService) {
            true => calls.capabilities().await?,
            false => BTreeSet::new(),
        };
        let has_topology = services.contains(&Service::VolumeAccessibilityConstraints);
        tracing::info!(driver = name, ?can, has_topology, "The driver is ready");
        Ok(Self { calls: calls.clone().named(&name), name, can, has_topology })
    }

    pub(crate) fn can(&self, what: Can) -> bool {
        self.can.contains(&what)
    }
}

/// A part of the cluster, as labels of its nodes. Ordered, so that it does not depend on who tells of it.
pub(crate) type Segment = BTreeMap<String, String>;

/// As drivers know it.
pub(crate) fn to_topology(segment: &Segment) -> Topology {
    Topology { segments: segment.clone().into_iter().collect::<HashMap<_, _>>() }
}
