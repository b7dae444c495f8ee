//! Cluster addresses: claimed one per family, chosen where none is given.

use std::net::IpAddr;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names::parse_ip_lenient;
use api_machinery::status::ApiError;
use api_types::core_v1::Service;

use super::allocator::AddressError;
use super::families::{EXTERNAL_NAME, is_headless};
use super::network::Family;
use super::{Claim, Claiming, ServiceCompanion, held, invalid};

impl ServiceCompanion {
    pub(super) async fn claim_addresses(
        &self,
        claiming: &mut Claiming<'_>,
        old: Option<&Service>,
    ) -> Result<(), ApiError> {
        // A headless service stays so; a change of that is refused by the rules.
        if is_headless(&claiming.service.spec) || old.is_some_and(|old| is_headless(&old.spec)) {
            return Ok(());
        }
        let held: Vec<IpAddr> = old.into_iter().flat_map(|old| held::addresses(&old.spec)).collect();
        if claiming.service.spec.type_ == EXTERNAL_NAME {
            claiming.reservation.freed.extend(held.into_iter().map(Claim::Address));
            return Ok(());
        }
        let families: Vec<Family> =
            claiming.service.spec.ip_families.iter().filter_map(|family| Family::parse(family)).collect();
        for (index, family) in families.iter().enumerate() {
            match claiming.service.spec.cluster_ips.get(index).and_then(|text| parse_ip_lenient(text)) {
                Some(address) if held.contains(&address) => {}
                Some(address) => self.claim_given(claiming, address).await?,
                None => self.claim_any(claiming, *family).await?,
            }
        }
        let now: Vec<IpAddr> = held::addresses(&claiming.service.spec).collect();
        let dropped = held.into_iter().filter(|address| !now.contains(address));
        claiming.reservation.freed.extend(dropped.map(Claim::Address));
        if let Some(first) = claiming.service.spec.cluster_ips.first() {
            claiming.service.spec.cluster_ip = first.clone();
        }
        Ok(())
    }

    async fn claim_given(&self, claiming: &mut Claiming<'_>, address: IpAddr) -> Result<(), ApiError> {
        let taken = self.allocator.take(address, &claiming.reservation.owner, claiming.dry_run).await;
        taken.map_err(|error| refused(claiming.service, format!("failed to allocate IP {address}: {error}")))?;
        if !claiming.dry_run {
            claiming.reservation.taken.push(Claim::Address(address));
        }
        Ok(())
    }

    async fn claim_any(&self, claiming: &mut Claiming<'_>, family: Family) -> Result<(), ApiError> {
        let taken = self.allocator.take_any(family, &claiming.reservation.owner, claiming.dry_run).await;
        let address = taken.map_err(|error| match error {
            AddressError::Full => {
                let name = &claiming.service.metadata.name;
                ApiError::internal(format_args!("failed to allocate a serviceIP for Service {name:?}: range is full"))
            }
            other => refused(claiming.service, format!("failed to allocate IP: {other}")),
        })?;
        claiming.service.spec.cluster_ips.push(address.to_string());
        if !claiming.dry_run {
            claiming.reservation.taken.push(Claim::Address(address));
        }
        Ok(())
    }
}

fn refused(service: &Service, detail: String) -> ApiError {
    let mut errors = ErrorList::new();
    let list = BadValue::list(&service.spec.cluster_ips);
    errors.push(Path::new("spec").child("clusterIPs").invalid(list, detail));
    invalid(service, &errors)
}
