//! What is given to one alone: addresses, ports, devices and volumes.

use std::collections::BTreeSet;

use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim, Service};
use api_types::resource_v1::ResourceClaim;
use api_types::storage_v1::VolumeAttachment;

use super::rules::{Change, Watched};

/// No address and no port of the nodes is of two.
impl Watched for Service {
    type Memory = ();

    fn check(_memory: &mut (), change: &Change<'_, Self>) -> Vec<String> {
        let others = || change.all.values().filter(|other| other.metadata.uid != change.now.metadata.uid);
        let addresses = change.now.spec.cluster_ips.iter().filter(|address| *address != "None");
        let mut broken: Vec<String> = addresses
            .filter(|address| others().any(|other| other.spec.cluster_ips.contains(address)))
            .map(|address| format!("two have the address {address}"))
            .collect();
        let ports = |service: &Self| service.spec.ports.iter().map(|port| port.node_port).collect::<Vec<i32>>();
        let taken: BTreeSet<i32> = others().flat_map(ports).collect();
        let twice = ports(change.now).into_iter().filter(|port| *port != 0 && taken.contains(port));
        broken.extend(twice.map(|port| format!("two have the port {port} of the nodes")));
        broken
    }
}

/// No device is of two.
impl Watched for ResourceClaim {
    type Memory = ();

    fn check(_memory: &mut (), change: &Change<'_, Self>) -> Vec<String> {
        let devices = |claim: &Self| {
            let results = claim.status.allocation.iter().flat_map(|allocation| &allocation.devices.results);
            let own = results.filter(|result| result.admin_access != Some(true));
            own.map(|result| (result.driver.clone(), result.pool.clone(), result.device.clone())).collect::<Vec<_>>()
        };
        let others = change.all.values().filter(|other| other.metadata.uid != change.now.metadata.uid);
        let taken: BTreeSet<_> = others.flat_map(devices).collect();
        let twice = devices(change.now).into_iter().filter(|device| taken.contains(device));
        twice.map(|(driver, pool, device)| format!("two claims have device {driver}/{pool}/{device}")).collect()
    }
}

/// None has the volume of another, or changes its own (I12).
impl Watched for PersistentVolumeClaim {
    type Memory = ();

    fn check(_memory: &mut (), change: &Change<'_, Self>) -> Vec<String> {
        let (name, volume) = (&change.now.metadata.name, &change.now.spec.volume_name);
        let mut broken = Vec::new();
        if let Some(before) = change.before.map(|claim| &claim.spec.volume_name).filter(|before| !before.is_empty())
            && before != volume
        {
            broken.push(format!("{name} had volume {before}, and has {volume:?} now"));
        }
        let others = change.all.values().filter(|other| other.metadata.uid != change.now.metadata.uid);
        let sharing = others.filter(|other| !volume.is_empty() && other.spec.volume_name == *volume);
        broken.extend(sharing.map(|other| format!("{name} and {} have volume {volume}", other.metadata.name)));
        if change.now.status.phase == "Lost" {
            broken.push(format!("{name} has lost volume {volume}"));
        }
        broken
    }
}

/// None is for the claim that another is for, or turns to another claim (I12).
impl Watched for PersistentVolume {
    type Memory = ();

    fn check(_memory: &mut (), change: &Change<'_, Self>) -> Vec<String> {
        let claim = |volume: &Self| {
            let claim = volume.spec.claim_ref.as_ref().map(|claim| claim.uid.clone());
            claim.filter(|uid| !uid.is_empty())
        };
        let (name, own) = (&change.now.metadata.name, claim(change.now));
        let mut broken = Vec::new();
        if let Some(before) = change.before.and_then(claim)
            && Some(&before) != own.as_ref()
        {
            broken.push(format!("{name} was for claim {before}, and is for {own:?} now"));
        }
        let others = change.all.values().filter(|other| other.metadata.uid != change.now.metadata.uid);
        let rivals = others.filter(|other| own.is_some() && claim(other) == own);
        broken.extend(rivals.map(|other| format!("{name} and {} are for claim {own:?}", other.metadata.name)));
        broken
    }
}

/// No volume of these stories is attached to two nodes at once: all can be attached to one only.
impl Watched for VolumeAttachment {
    type Memory = ();

    fn check(_memory: &mut (), change: &Change<'_, Self>) -> Vec<String> {
        let (now, volume) = (change.now, &change.now.spec.source.persistent_volume_name);
        let others = change.all.values().filter(|other| other.metadata.uid != now.metadata.uid);
        let rivals = others.filter(|other| other.spec.source.persistent_volume_name == *volume);
        let rivals = rivals.filter(|other| now.status.attached && other.status.attached);
        let nodes = rivals.map(|other| &other.spec.node_name);
        nodes.map(|node| format!("{volume:?} is attached to {} and {node}", now.spec.node_name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::rules::tests::case;
    use super::*;

    #[test]
    fn claims_share_no_device() {
        let claim = |uid: &str, device: &str, for_admin: bool| {
            let result =
                json!({"request": "r", "driver": "d", "pool": "p", "device": device, "adminAccess": for_admin});
            json!({"metadata": {"name": uid, "uid": uid}, "status": {"allocation": {"devices": {"results": [result]}}}})
        };
        let free = json!({"metadata": {"name": "1", "uid": "1"}});
        case::<ResourceClaim>(&[claim("1", "a", false), claim("2", "b", false), claim("3", "a", true)], None);
        case::<ResourceClaim>(&[claim("1", "a", false), free, claim("2", "a", false)], None);
        case::<ResourceClaim>(&[claim("1", "a", false), claim("2", "a", false)], Some("two claims have device d/p/a"));
    }

    #[test]
    fn services_share_no_address_and_no_port() {
        let service = |uid: &str, address: &str, port: i32| {
            let ports = json!([{"port": 80, "nodePort": port}]);
            json!({"metadata": {"uid": uid}, "spec": {"clusterIPs": [address], "ports": ports}})
        };
        case::<Service>(
            &[service("1", "a", 1), service("2", "b", 2), service("3", "None", 0), service("4", "None", 0)],
            None,
        );
        case::<Service>(&[service("1", "a", 1), service("2", "a", 2)], Some("the address a"));
        case::<Service>(&[service("1", "a", 1), service("2", "b", 1)], Some("the port 1"));
    }

    #[test]
    fn a_claim_keeps_its_volume_for_itself() {
        let claim =
            |uid: &str, volume: &str| json!({"metadata": {"name": uid, "uid": uid}, "spec": {"volumeName": volume}});
        case::<PersistentVolumeClaim>(&[claim("1", ""), claim("2", ""), claim("1", "a"), claim("2", "b")], None);
        case::<PersistentVolumeClaim>(&[claim("1", "a"), claim("1", "b")], Some("1 had volume a, and has \"b\" now"));
        case::<PersistentVolumeClaim>(&[claim("1", "a"), claim("1", "")], Some("1 had volume a, and has \"\" now"));
        case::<PersistentVolumeClaim>(&[claim("1", "a"), claim("2", "a")], Some("2 and 1 have volume a"));
        let mut lost = claim("1", "a");
        lost["status"] = json!({"phase": "Lost"});
        case::<PersistentVolumeClaim>(&[claim("1", "a"), lost], Some("1 has lost volume a"));
    }

    #[test]
    fn a_volume_keeps_to_its_claim() {
        let volume = |uid: &str, claim: &str| json!({"metadata": {"name": uid, "uid": uid}, "spec": {"claimRef": {"uid": claim}}});
        let free = json!({"metadata": {"name": "2", "uid": "2"}});
        case::<PersistentVolume>(&[volume("1", ""), free.clone(), volume("1", "a"), volume("2", "b")], None);
        case::<PersistentVolume>(&[volume("2", "a"), volume("2", "b")], Some("2 was for claim a"));
        case::<PersistentVolume>(&[volume("2", "a"), free], Some("2 was for claim a"));
        case::<PersistentVolume>(&[volume("1", "a"), volume("2", "a")], Some("2 and 1 are for claim"));
    }

    #[test]
    fn a_volume_is_attached_to_one_node() {
        let attachment = |node: &str, volume: &str, attached: bool| {
            json!({"metadata": {"name": node, "uid": node}, "status": {"attached": attached},
                "spec": {"nodeName": node, "source": {"persistentVolumeName": volume}}})
        };
        let one = attachment("n", "a", true);
        case::<VolumeAttachment>(&[one.clone(), attachment("m", "a", false), attachment("o", "b", true)], None);
        case::<VolumeAttachment>(&[one, attachment("m", "a", true)], Some("is attached to m and n"));
    }
}
