//! ClusterTrustBundle of certificates.k8s.io/v1beta1: its names, and its rules.

use std::collections::BTreeMap;

use api_machinery::field_path::{ErrorList, Path};
use api_types::certificates_v1beta1::ClusterTrustBundle;
use feature_gates::MinorVersion;

use crate::info::{ResourceInfo, StorageInfo};
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::table::{Cell, or_none};
use crate::{field_rules as rules, gates, signers};

const BUNDLE_MAX_BYTES: usize = 1 << 20;
const SIGNER_NAME: &str = "spec.signerName";

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<ClusterTrustBundle>("clustertrustbundles", "v5yhuVertL4=")),
    field_selectors: &[SIGNER_NAME],
    introduced: MinorVersion::one(33),
    gates: &[gates::CLUSTER_TRUST_BUNDLE],
    ..ResourceInfo::of::<ClusterTrustBundle>()
};

/// The rules of the kind.
pub(crate) struct ClusterTrustBundleRules;

impl TypedRules for ClusterTrustBundleRules {
    type Object = ClusterTrustBundle;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<ClusterTrustBundle>] =
        &[Cell::NAME, Cell::text("SignerName", |bundle, _| or_none(&*bundle.spec.signer_name).into())];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Create, MetadataCheck::Update];

    /// What a name may be depends on the signer.
    fn validate_name(_: &str, _: bool) -> Vec<String> {
        Vec::new()
    }

    fn validate(_: &RuleContext, object: &ClusterTrustBundle) -> ErrorList {
        validate_over(object, None)
    }

    fn validate_update(
        _: &RuleContext,
        _: Endpoint,
        object: &ClusterTrustBundle,
        old: &ClusterTrustBundle,
    ) -> ErrorList {
        let mut errors = validate_over(object, Some(old));
        if object.spec.signer_name != old.spec.signer_name {
            let path = Path::new("spec").child("signerName");
            errors.push(path.invalid(&object.spec.signer_name, rules::IMMUTABLE));
        }
        errors
    }

    fn field(object: &ClusterTrustBundle, path: &str) -> Option<String> {
        (path == SIGNER_NAME).then(|| object.spec.signer_name.clone())
    }
}

fn validate_over(object: &ClusterTrustBundle, old: Option<&ClusterTrustBundle>) -> ErrorList {
    let (mut errors, path, signer) = (ErrorList::new(), Path::new("spec"), object.spec.signer_name.as_str());
    let (at, name) = (Path::new("metadata").child("name"), &object.metadata.name);
    errors.push_invalid(&at, name, signers::bundle_name(name, signer));
    if !signer.is_empty() {
        signers::validate_name(&path.child("signerName"), signer, &mut errors);
    }
    if old.is_none_or(|old| old.spec.trust_bundle != object.spec.trust_bundle) {
        validate_bundle(&path.child("trustBundle"), &object.spec.trust_bundle, &mut errors);
    }
    errors
}

fn validate_bundle(path: &Path, bundle: &str, errors: &mut ErrorList) {
    const OMITTED: &str = "<value omitted>";
    if bundle.len() > BUNDLE_MAX_BYTES {
        return errors.push(path.too_long(BUNDLE_MAX_BYTES));
    }
    let blocks = pki::parse_blocks(bundle.as_bytes());
    let before = errors.len();
    for (index, block) in blocks.iter().enumerate() {
        if let Some(problem) = anchor_problem(block) {
            errors.push(path.invalid(OMITTED, format!("entry {index} {problem}")));
        }
    }
    if errors.len() > before {
        return;
    }
    if blocks.is_empty() {
        errors.push(path.invalid(OMITTED, "at least one trust anchor must be provided"));
    }
    let mut seen = BTreeMap::new();
    for (index, block) in blocks.iter().enumerate() {
        if let Some(first) = seen.insert(&block.der, index) {
            errors.push(path.invalid(OMITTED, format!("duplicate trust anchor (indices [{first} {index}])")));
        }
    }
}

/// What keeps a block from being the certificate of an authority.
fn anchor_problem(block: &pki::PemBlock) -> Option<String> {
    if block.label != "CERTIFICATE" {
        return Some(format!("has bad block type: {}", block.label));
    }
    if block.has_headers {
        return Some("has PEM block headers".to_owned());
    }
    let Ok(certificate) = pki::Certificate::from_der(&block.der) else {
        return Some("does not parse as X.509".to_owned());
    };
    if !certificate.is_ca() {
        return Some("does not have the CA bit set".to_owned());
    }
    (!certificate.has_basic_constraints()).then(|| "has invalid basic constraints".to_owned())
}
