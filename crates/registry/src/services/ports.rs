//! Node ports and the health check port, from one range.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::status::ApiError;
use api_types::core_v1::{Service, ServiceSpec};

use super::range::RangeError;
use super::recorder::Scope;
use super::{Claim, Claiming, ServiceCompanion, invalid};

/// What a dry run shows for the first port that would be chosen.
const FIRST_PLACEHOLDER: u16 = 32_769;

/// Whether the service's ports are open on nodes.
fn wants_ports(spec: &ServiceSpec) -> bool {
    spec.type_ == "NodePort" || (spec.type_ == "LoadBalancer" && spec.allocate_load_balancer_node_ports != Some(false))
}

fn may_have_ports(spec: &ServiceSpec) -> bool {
    matches!(spec.type_.as_str(), "NodePort" | "LoadBalancer")
}

fn wants_health_check(spec: &ServiceSpec) -> bool {
    spec.type_ == "LoadBalancer" && spec.external_traffic_policy == "Local"
}

/// The ports a service holds, each once.
pub(super) fn held_by(spec: &ServiceSpec) -> Vec<u16> {
    if !may_have_ports(spec) {
        return Vec::new();
    }
    let health = wants_health_check(spec).then_some(spec.health_check_node_port);
    let numbers = spec.ports.iter().map(|port| port.node_port).chain(health);
    let mut ports: Vec<u16> =
        numbers.filter_map(|number| u16::try_from(number).ok()).filter(|port| *port != 0).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// Fills in ports that the client left out because it does not know them.
pub(super) fn keep_allocated(spec: &mut ServiceSpec, old: &ServiceSpec) {
    if wants_ports(spec) && wants_ports(old) {
        let used: Vec<i32> = spec.ports.iter().map(|port| port.node_port).filter(|port| *port != 0).collect();
        for port in spec.ports.iter_mut().filter(|port| port.node_port == 0) {
            let stored = old.ports.iter().find(|stored| stored.name == port.name).map(|stored| stored.node_port);
            if let Some(number) = stored.filter(|number| !used.contains(number)) {
                port.node_port = number;
            }
        }
    }
    if wants_health_check(spec) && wants_health_check(old) && spec.health_check_node_port == 0 {
        spec.health_check_node_port = old.health_check_node_port;
    }
}

impl ServiceCompanion {
    pub(super) fn port_offset(&self, port: u16) -> Option<u32> {
        port.checked_sub(self.first_port).map(u32::from).filter(|offset| *offset < self.port_count)
    }

    pub(super) async fn claim_ports(&self, claiming: &mut Claiming<'_>, old: Option<&Service>) -> Result<(), ApiError> {
        let held = old.map(|old| held_by(&old.spec)).unwrap_or_default();
        if may_have_ports(&claiming.service.spec) {
            self.claim_given_ports(claiming, &held).await?;
            if wants_ports(&claiming.service.spec) {
                self.choose_ports(claiming, old.is_none()).await?;
            }
        }
        if wants_health_check(&claiming.service.spec) && !old.is_some_and(|old| wants_health_check(&old.spec)) {
            self.claim_health_check(claiming).await?;
        }
        let now = held_by(&claiming.service.spec);
        let dropped = held.into_iter().filter(|port| !now.contains(port));
        claiming.reservation.freed.extend(dropped.map(Claim::Port));
        Ok(())
    }

    async fn claim_given_ports(&self, claiming: &mut Claiming<'_>, held: &[u16]) -> Result<(), ApiError> {
        let mut claimed: Vec<(String, i32)> = Vec::new();
        for index in 0..claiming.service.spec.ports.len() {
            let Some(port) = claiming.service.spec.ports.get(index).cloned() else { break };
            if port.node_port == 0 {
                continue;
            }
            let pair = (port.protocol.clone(), port.node_port);
            if claimed.contains(&pair) {
                let (protocol, number) = pair;
                return Err(ApiError::internal(format_args!("duplicate nodePort: {{{protocol} {number}}}")));
            }
            let number = u16::try_from(port.node_port).unwrap_or(0);
            // One number serves several protocols of one service.
            let known = held.contains(&number) || claimed.iter().any(|(_, other)| *other == port.node_port);
            claimed.push(pair);
            if !known && let Err(error) = self.take_port(claiming, number).await {
                let mut errors = ErrorList::new();
                let path = Path::new("spec").child("ports").index(index).child("nodePort");
                errors.push(path.invalid(port.node_port, error.to_string()));
                return Err(invalid(claiming.service, &errors));
            }
        }
        Ok(())
    }

    /// Chooses the missing ports; on creation the ports of one number share theirs.
    async fn choose_ports(&self, claiming: &mut Claiming<'_>, share: bool) -> Result<(), ApiError> {
        for index in 0..claiming.service.spec.ports.len() {
            let ports = &claiming.service.spec.ports;
            let Some(port) = ports.get(index).filter(|port| port.node_port == 0) else { continue };
            let sibling = |other: &&api_types::core_v1::ServicePort| {
                share && other.port == port.port && other.protocol != port.protocol && other.node_port != 0
            };
            let shared = ports.iter().find(sibling).map(|other| other.node_port);
            let number =
                match shared {
                    Some(number) => number,
                    None => {
                        let chosen = self.choose_port(claiming).await;
                        i32::from(chosen.map_err(|error| {
                            ApiError::internal(format_args!("failed to allocate a nodePort: {error}"))
                        })?)
                    }
                };
            if let Some(port) = claiming.service.spec.ports.get_mut(index) {
                port.node_port = number;
            }
        }
        Ok(())
    }

    async fn claim_health_check(&self, claiming: &mut Claiming<'_>) -> Result<(), ApiError> {
        let asked = claiming.service.spec.health_check_node_port;
        if asked == 0 {
            let chosen = self.choose_port(claiming).await.map_err(|error| {
                ApiError::internal(format_args!("failed to allocate a HealthCheck NodePort 0: {error}"))
            })?;
            claiming.service.spec.health_check_node_port = i32::from(chosen);
            return Ok(());
        }
        let number = u16::try_from(asked).unwrap_or(0);
        self.take_port(claiming, number).await.map_err(|error| {
            ApiError::internal(format_args!("failed to allocate requested HealthCheck NodePort {asked}: {error}"))
        })
    }

    /// Gives a port back.
    pub(super) async fn free_port(&self, port: u16) -> Result<(), RangeError> {
        match self.port_offset(port) {
            Some(offset) => self.ports.free(offset).await,
            None => Ok(()),
        }
    }

    async fn take_port(&self, claiming: &mut Claiming<'_>, port: u16) -> Result<(), RangeError> {
        let outside = || {
            let range = &self.ports.text;
            let text = format!("provided port is not in the valid range. The range of valid ports is {range}");
            RangeError::Outside(text)
        };
        let offset = self.port_offset(port).ok_or_else(outside);
        if claiming.dry_run {
            return self.ports.check_free(offset?).await;
        }
        let taken = match offset {
            Ok(offset) => self.ports.take(offset).await,
            Err(error) => Err(error),
        };
        self.ports.recorder.port(Scope::Static, taken.is_ok());
        taken?;
        claiming.reservation.taken.push(Claim::Port(port));
        Ok(())
    }

    async fn choose_port(&self, claiming: &mut Claiming<'_>) -> Result<u16, RangeError> {
        if claiming.dry_run {
            let spec = &claiming.service.spec;
            let shown =
                spec.ports.iter().map(|port| port.node_port).filter(|port| *port >= i32::from(FIRST_PLACEHOLDER));
            return Ok(FIRST_PLACEHOLDER.saturating_add(u16::try_from(shown.count()).unwrap_or(0)));
        }
        let chosen = self.ports.take_any().await;
        self.ports.recorder.port(Scope::Dynamic, chosen.is_ok());
        let offset = chosen?;
        let port = self.first_port.saturating_add(u16::try_from(offset).unwrap_or(0));
        claiming.reservation.taken.push(Claim::Port(port));
        Ok(port)
    }
}
