//! Cluster addresses: claimed one per family, chosen where none is given.

use std::net::IpAddr;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names::parse_ip_lenient;
use api_machinery::status::ApiError;
use api_types::core_v1::Service;

use super::families::{EXTERNAL_NAME, is_headless};
use super::network::Family;
use super::range::RangeError;
use super::{Claim, Claiming, ServiceCompanion, invalid};

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
        let held: Vec<IpAddr> = match old {
            Some(old) if old.spec.type_ != EXTERNAL_NAME => addresses_of(old),
            _ => Vec::new(),
        };
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
        let now = addresses_of(claiming.service);
        let dropped = held.into_iter().filter(|address| !now.contains(address));
        claiming.reservation.freed.extend(dropped.map(Claim::Address));
        if let Some(first) = claiming.service.spec.cluster_ips.first() {
            claiming.service.spec.cluster_ip = first.clone();
        }
        Ok(())
    }

    async fn claim_given(&self, claiming: &mut Claiming<'_>, address: IpAddr) -> Result<(), ApiError> {
        let taken = self.take_address(address, claiming.dry_run).await;
        taken.map_err(|error| {
            let list = BadValue::list(&claiming.service.spec.cluster_ips);
            let mut errors = ErrorList::new();
            let detail = format!("failed to allocate IP {address}: {error}");
            errors.push(Path::new("spec").child("clusterIPs").invalid(list, detail));
            invalid(claiming.service, &errors)
        })?;
        if !claiming.dry_run {
            claiming.reservation.taken.push(Claim::Address(address));
        }
        Ok(())
    }

    async fn take_address(&self, address: IpAddr, dry_run: bool) -> Result<(), RangeError> {
        let known = self.addresses.iter().find(|addresses| addresses.cidr.contains(address));
        let Some(addresses) = known else { return Err(RangeError::OtherNetwork) };
        let Some(offset) = addresses.cidr.offset(address) else {
            return Err(RangeError::Outside(format!(
                "the provided IP ({address}) is not in the valid range. The range of valid IPs is {}",
                addresses.cidr
            )));
        };
        if dry_run { Ok(()) } else { addresses.range.take(offset).await }
    }

    async fn claim_any(&self, claiming: &mut Claiming<'_>, family: Family) -> Result<(), ApiError> {
        let Some(addresses) = self.addresses.iter().find(|addresses| addresses.cidr.family() == family) else {
            return Err(ApiError::internal(format_args!("no range of {} addresses", family.as_str())));
        };
        if claiming.dry_run {
            claiming.service.spec.cluster_ips.push(addresses.cidr.network().to_string());
            return Ok(());
        }
        let name = &claiming.service.metadata.name;
        let offset = addresses.range.take_any().await.map_err(|error| match error {
            RangeError::Full => {
                ApiError::internal(format_args!("failed to allocate a serviceIP for Service {name:?}: range is full"))
            }
            other => {
                let mut errors = ErrorList::new();
                let path = Path::new("spec").child("clusterIPs");
                let list = BadValue::list(&claiming.service.spec.cluster_ips);
                errors.push(path.invalid(list, format!("failed to allocate IP: {other}")));
                invalid(claiming.service, &errors)
            }
        })?;
        let address = addresses.cidr.address(offset);
        claiming.service.spec.cluster_ips.push(address.to_string());
        claiming.reservation.taken.push(Claim::Address(address));
        Ok(())
    }

    pub(super) async fn free_address(&self, address: IpAddr) -> Result<(), RangeError> {
        for addresses in &self.addresses {
            if let Some(offset) = addresses.cidr.offset(address) {
                return addresses.range.free(offset).await;
            }
        }
        Ok(())
    }
}

fn addresses_of(service: &Service) -> Vec<IpAddr> {
    service.spec.cluster_ips.iter().filter_map(|text| parse_ip_lenient(text)).collect()
}
