//! CSINode of storage.k8s.io/v1: its names, and its rules.

use std::collections::BTreeSet;

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names;
use api_types::storage_v1::{CSINode, CSINodeDriver};

use crate::field_rules::{self, IMMUTABLE};
use crate::info::{ResourceInfo, StorageInfo};
use crate::internal_json;
use crate::lifecycle::Lifecycle;
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::table::Cell;
use crate::versions::Former;

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<CSINode>("csinodes", "Pe62DkZtjuo=")),
    ..ResourceInfo::of::<CSINode>()
};

/// The rules of the kind.
pub(crate) struct CSINodeRules;

impl TypedRules for CSINodeRules {
    type Object = CSINode;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<CSINode>] =
        &[Cell::NAME, Cell::number("Drivers", |node, _| node.spec.drivers.len().into()), Cell::AGE];
    const FORMER: &'static [Former] = &[Former::same("storage.k8s.io/v1beta1")];
    const LIFECYCLE: Lifecycle = Lifecycle::RETURNS_DELETED;
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Create];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn validate(_: &RuleContext, object: &CSINode) -> ErrorList {
        let (mut errors, mut seen) = (ErrorList::new(), BTreeSet::new());
        let path = Path::new("spec").child("drivers");
        for (index, driver) in object.spec.drivers.iter().enumerate() {
            validate_driver(&path.index(index), driver, &mut seen, &mut errors);
        }
        errors
    }

    fn validate_update(cx: &RuleContext, _: Endpoint, object: &CSINode, old: &CSINode) -> ErrorList {
        let mut errors = Self::validate(cx, object);
        for stored in &old.spec.drivers {
            for new in object.spec.drivers.iter().filter(|new| new.name == stored.name) {
                let same = CSINodeDriver { allocatable: stored.allocatable.clone(), ..new.clone() };
                if same != *stored {
                    let path = Path::new("spec").child("drivers");
                    errors.push(path.invalid(internal_json::bad_value(new), IMMUTABLE));
                }
            }
        }
        errors
    }
}

const MAX_NODE_ID_BYTES: usize = 256;

fn validate_driver<'a>(path: &Path, driver: &'a CSINodeDriver, seen: &mut BTreeSet<&'a str>, errors: &mut ErrorList) {
    errors.extend(names::csi_driver_name(&path.child("name"), &driver.name));
    let at = path.child("nodeID");
    if driver.node_id.is_empty() {
        errors.push(at.required(""));
    }
    if driver.node_id.len() > MAX_NODE_ID_BYTES {
        errors.push(at.invalid(&driver.node_id, format!("must be {MAX_NODE_ID_BYTES} characters or less")));
    }
    if let Some(count) = driver.allocatable.as_ref().and_then(|allocatable| allocatable.count) {
        field_rules::not_negative(&path.child("allocatable").child("count"), count.into(), errors);
    }
    if !seen.insert(&driver.name) {
        errors.push(path.child("name").duplicate(&driver.name));
    }
    let mut keys = BTreeSet::new();
    for key in &driver.topology_keys {
        if key.is_empty() {
            errors.push(path.required(""));
        }
        if !keys.insert(key) {
            errors.push(path.duplicate(key));
        }
        errors.push_invalid(path, key, names::qualified_name(key));
    }
}
