//! Rules of volumes made of what the API holds: projections, and files with the pod's own fields.

use std::collections::BTreeSet;

use api_machinery::field_path::{ErrorList, Path};
use api_types::core_v1::{
    ClusterTrustBundleProjection, DownwardAPIVolumeFile, DownwardAPIVolumeSource, PodCertificateProjection, PodSpec,
    ProjectedVolumeSource, ServiceAccountTokenProjection, VolumeProjection,
};
use kinds_frame::label_selector::{self, Values};
use kinds_frame::{field_rules as rules, internal_json, signers};

use super::Around;
use super::environment::{FILE_PATHS, validate_field, validate_resource};
use super::volume_sources::items;

const TWICE: &str = "conflicting duplicate paths";
const MIN_TOKEN_SECONDS: i64 = 600;
const MAX_TOKEN_SECONDS: i64 = 1 << 32;
/// The keys that kubelets make.
const KEY_TYPES: [&str; 6] = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];

pub(super) fn downward_api(path: &Path, source: &DownwardAPIVolumeSource, errors: &mut ErrorList) {
    rules::mode(&path.child("defaultMode"), source.default_mode, errors);
    for file in &source.items {
        validate_file(path, file, errors);
    }
}

/// Upstream reports these without the index of the file.
fn validate_file(path: &Path, file: &DownwardAPIVolumeFile, errors: &mut ErrorList) {
    let at = path.child("path");
    rules::required(&at, &file.path, errors);
    rules::relative_unreserved_path(&at, &file.path, errors);
    match (&file.field_ref, &file.resource_field_ref) {
        (Some(reference), other) => {
            validate_field(reference, &FILE_PATHS, &path.child("fieldRef"), errors);
            if other.is_some() {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.push(path.invalid("resource", detail));
            }
        }
        (None, Some(reference)) => {
            let at = path.child("resourceFieldRef");
            rules::required(&at.child("containerName"), &reference.container_name, errors);
            validate_resource(reference, &at, errors);
        }
        (None, None) => errors.push(path.required("one of fieldRef and resourceFieldRef is required")),
    }
    rules::mode(&path.child("mode"), file.mode, errors);
}

pub(super) fn validate(around: &Around<'_>, path: &Path, source: &ProjectedVolumeSource, errors: &mut ErrorList) {
    rules::mode(&path.child("defaultMode"), source.default_mode, errors);
    let mut files = Files { path, seen: BTreeSet::new() };
    for (index, source) in source.sources.iter().enumerate() {
        validate_source(around, source, &path.child("sources").index(index), &mut files, errors);
    }
}

/// The files of a volume, each of which only one source may write.
struct Files<'a> {
    path: &'a Path,
    seen: BTreeSet<&'a str>,
}

impl<'a> Files<'a> {
    /// Claims a file for the source that is called `shown` in the error.
    fn add(&mut self, file: &'a str, shown: &str, errors: &mut ErrorList) {
        if !file.is_empty() {
            self.claim(file, shown, errors);
        }
    }

    /// The same for a file that may have no name.
    fn claim(&mut self, file: &'a str, shown: &str, errors: &mut ErrorList) {
        if !self.seen.insert(file) {
            errors.push(self.path.invalid(shown, TWICE));
        }
    }
}

fn validate_source<'a>(
    around: &Around<'_>,
    source: &'a VolumeProjection,
    path: &Path,
    files: &mut Files<'a>,
    errors: &mut ErrorList,
) {
    let mut members = 0;
    let lists = [
        ("secret", source.secret.as_ref().map(|source| (&source.local_object_reference.name, &source.items))),
        ("configMap", source.config_map.as_ref().map(|source| (&source.local_object_reference.name, &source.items))),
    ];
    for (field, list) in lists {
        let Some((name, list)) = list else { continue };
        members += 1;
        let path = path.child(field);
        rules::required(&path.child("name"), name, errors);
        items(&path, list, errors);
        for item in list {
            files.add(&item.path, name, errors);
        }
    }
    if let Some(downward) = &source.downward_api {
        members += 1;
        for file in &downward.items {
            validate_file(&path.child("downwardAPI"), file, errors);
            files.add(&file.path, &file.path, errors);
        }
    }
    if let Some(token) = &source.service_account_token {
        members += 1;
        validate_token(around, token, path, files.path, errors);
    }
    if let Some(bundle) = &source.cluster_trust_bundle {
        members += 1;
        validate_bundle(bundle, &path.child("clusterTrustBundle"), files, errors);
    }
    if let Some(certificate) = &source.pod_certificate {
        members += 1;
        validate_certificate(certificate, &path.child("podCertificate"), files, errors);
    }
    if members > 1 {
        errors.push(path.forbidden("may not specify more than 1 volume type per source"));
    }
}

fn has_odd_token_path(spec: &PodSpec) -> bool {
    let tokens = spec.volumes.iter().filter_map(|volume| volume.volume_source.projected.as_ref());
    tokens.flat_map(|volume| &volume.sources).filter_map(|source| source.service_account_token.as_ref()).any(|token| {
        let mut errors = ErrorList::new();
        rules::relative_unreserved_path(&Path::nil(), &token.path, &mut errors);
        !errors.is_empty()
    })
}

fn validate_token(
    around: &Around<'_>,
    token: &ServiceAccountTokenProjection,
    path: &Path,
    volume: &Path,
    errors: &mut ErrorList,
) {
    let at = path.child("serviceAccountToken").child("expirationSeconds");
    if let Some(seconds) = token.expiration_seconds {
        if seconds < MIN_TOKEN_SECONDS {
            errors.push(at.invalid(seconds, "may not specify a duration less than 10 minutes"));
        } else if seconds > MAX_TOKEN_SECONDS {
            errors.push(at.invalid(seconds, "may not specify a duration larger than 2^32 seconds"));
        }
    }
    let at = volume.child("path");
    if rules::required(&at, &token.path, errors) && !around.stored(has_odd_token_path) {
        rules::relative_unreserved_path(&at, &token.path, errors);
    }
}

fn validate_bundle<'a>(
    bundle: &'a ClusterTrustBundleProjection,
    path: &Path,
    files: &mut Files<'a>,
    errors: &mut ErrorList,
) {
    let selector = path.child("labelSelector");
    match (&bundle.name, &bundle.signer_name) {
        (Some(_), Some(_)) => {
            let value = internal_json::bad_value(bundle);
            errors.push(path.invalid(value, "only one of name and signerName may be used"));
        }
        (Some(name), None) => {
            let at = path.child("name");
            if name.is_empty() {
                errors.push(at.required("must be a valid object name"));
            }
            for problem in signers::bundle_name(name, &signers::signer_of_bundle(name)) {
                errors.push(at.invalid(name, format!("not a valid clustertrustbundlename: {problem}")));
            }
            if let Some(own) = &bundle.label_selector {
                let detail = "labelSelector must be unset if name is specified";
                errors.push(selector.invalid(internal_json::bad_value(own), detail));
            }
        }
        (None, Some(signer)) => {
            let at = path.child("signerName");
            if signer.is_empty() {
                errors.push(at.required("must be a valid signer name"));
            }
            signers::validate_name(&at, signer, errors);
            if let Some(own) = &bundle.label_selector {
                label_selector::validate(&selector, own, Values::Checked, errors);
            }
        }
        (None, None) => errors.push(path.required("either name or signerName must be specified")),
    }
    let at = path.child("path");
    rules::required(&at, &bundle.path, errors);
    rules::relative_unreserved_path(&at, &bundle.path, errors);
    files.claim(&bundle.path, &bundle.path, errors);
}

fn validate_certificate<'a>(
    certificate: &'a PodCertificateProjection,
    path: &Path,
    files: &mut Files<'a>,
    errors: &mut ErrorList,
) {
    signers::validate_name(&path.child("signerName"), &certificate.signer_name, errors);
    signers::validate_user_annotations(&path.child("userAnnotations"), &certificate.user_annotations, errors);
    let key = certificate.key_type.as_str();
    if !KEY_TYPES.contains(&key) {
        errors.push(path.child("keyType").not_supported_in_order(key, &KEY_TYPES));
    }
    if let Some(seconds) = certificate.max_expiration_seconds {
        let (shortest, longest) = (signers::SHORTEST, signers::longest(&certificate.signer_name));
        let at = path.child("maxExpirationSeconds");
        if seconds < shortest {
            errors.push(at.invalid(seconds, format!("if provided, maxExpirationSeconds must be >= {shortest}")));
        } else if seconds > longest {
            errors.push(at.invalid(seconds, format!("if provided, maxExpirationSeconds must be <= {longest}")));
        }
    }
    let outputs = [
        ("credentialBundlePath", &certificate.credential_bundle_path),
        ("keyPath", &certificate.key_path),
        ("certificateChainPath", &certificate.certificate_chain_path),
    ];
    for (field, file) in outputs {
        if !file.is_empty() {
            rules::relative_unreserved_path(&path.child(field), file, errors);
            files.claim(file, file, errors);
        }
    }
    if outputs.iter().all(|(_, file)| file.is_empty()) {
        let detail = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
        errors.push(path.required(detail));
    }
}

/// A pod without an account cannot have its tokens.
pub(super) fn validate_account_is_named(path: &Path, spec: &PodSpec, errors: &mut ErrorList) {
    if !spec.service_account_name.is_empty() {
        return;
    }
    for (index, volume) in spec.volumes.iter().enumerate() {
        let Some(projected) = &volume.volume_source.projected else { continue };
        for (at, _) in projected.sources.iter().enumerate().filter(|(_, one)| one.service_account_token.is_some()) {
            let path = path.child("volumes").index(index).child("projected").child("sources").index(at);
            let detail = "must not be specified when serviceAccountName is not set";
            errors.push(path.child("serviceAccountToken").forbidden(detail));
        }
    }
}
