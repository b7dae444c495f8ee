//! ServiceAccount of core/v1: its names, and its rules.

use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use api_types::core_v1::ObjectReference;
use api_types::core_v1::ServiceAccount;

use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::lifecycle::Lifecycle;
use crate::table::Cell;

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["sa"],
    storage: Some(StorageInfo::of::<ServiceAccount>("serviceaccounts", "pbx9ZvyFpBE=")),
    unconditional_update: true,
    subresources: &[SubresourceInfo {
        name: "token",
        kind: "TokenRequest",
        group: "authentication.k8s.io",
        version: "v1",
        verbs: &["create"],
    }],
    ..ResourceInfo::of::<ServiceAccount>()
};

/// The rules of the kind.
pub(crate) struct ServiceAccountRules;

impl TypedRules for ServiceAccountRules {
    type Object = ServiceAccount;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<ServiceAccount>] = &[Cell::NAME, Cell::AGE];
    const LIFECYCLE: Lifecycle = Lifecycle::RETURNS_DELETED;
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update, MetadataCheck::Create];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn prepare_create(_: &RuleContext, object: &mut ServiceAccount) {
        strip_secrets(object);
    }

    fn prepare_update(_: &RuleContext, _: Endpoint, object: &mut ServiceAccount, _: &ServiceAccount) {
        strip_secrets(object);
    }

    fn warnings(object: &ServiceAccount, old: Option<&ServiceAccount>) -> Vec<String> {
        let has = |account: &ServiceAccount| account.metadata.annotations.contains_key(ENFORCE);
        let added = has(object) && !old.is_some_and(has);
        let text = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets";
        added.then(|| format!("metadata.annotations[{ENFORCE}]: {text}")).into_iter().collect()
    }
}

const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";

/// Of a reference to a secret only the name counts.
fn strip_secrets(object: &mut ServiceAccount) {
    for secret in &mut object.secrets {
        *secret = ObjectReference { name: std::mem::take(&mut secret.name), ..ObjectReference::default() };
    }
}
