//! Rules of volumes made of what the API holds: projections, and files with the pod's own fields.

use std::collections::BTreeSet;

use api_machinery::field_path::{ErrorList, Path};
use api_types::core_v1::{
    DownwardAPIVolumeFile, DownwardAPIVolumeSource, PodSpec, ProjectedVolumeSource, ServiceAccountTokenProjection,
    VolumeProjection,
};
use kinds_frame::field_rules as rules;

use super::Around;
use super::environment::{FILE_PATHS, validate_field, validate_resource};
use super::volume_sources::items;

const TWICE: &str = "conflicting duplicate paths";
const MIN_TOKEN_SECONDS: i64 = 600;
const MAX_TOKEN_SECONDS: i64 = 1 << 32;

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
        if !file.is_empty() && !self.seen.insert(file) {
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
    let mut admit = || {
        members += 1;
        members == 1
    };
    let lists = [
        ("secret", source.secret.as_ref().map(|source| (&source.local_object_reference.name, &source.items))),
        ("configMap", source.config_map.as_ref().map(|source| (&source.local_object_reference.name, &source.items))),
    ];
    for (field, list) in lists {
        let Some((name, list)) = list else { continue };
        if admit() {
            let path = path.child(field);
            rules::required(&path.child("name"), name, errors);
            items(&path, list, errors);
            for item in list {
                files.add(&item.path, name, errors);
            }
        }
    }
    if let Some(downward) = &source.downward_api
        && admit()
    {
        for file in &downward.items {
            validate_file(&path.child("downwardAPI"), file, errors);
            files.add(&file.path, &file.path, errors);
        }
    }
    if let Some(token) = &source.service_account_token
        && admit()
    {
        validate_token(around, token, path, files.path, errors);
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
