//! StorageVersion of internal.apiserver.k8s.io/v1alpha1: its names, and its rules.

use std::collections::BTreeMap;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::apiserverinternal_v1alpha1::{ServerStorageVersion, StorageVersion, StorageVersionStatus};
use component_helpers::storage_versions;

use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::table::{self, Cell};
use crate::{field_rules as rules, gates};

/// How many servers a table shows.
const SHOWN: usize = 3;

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<StorageVersion>("storageversions", "c8YZt5U0nPk=")),
    subresources: &[SubresourceInfo::status("StorageVersion")],
    gates: &[gates::STORAGE_VERSION_API, gates::API_SERVER_IDENTITY],
    ..ResourceInfo::of::<StorageVersion>()
};

/// The rules of the kind.
pub(crate) struct StorageVersionRules;

impl TypedRules for StorageVersionRules {
    type Object = StorageVersion;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<StorageVersion>] = &[
        Cell::NAME,
        Cell::text("CommonEncodingVersion", |own, _| table::or_unset(own.status.common_encoding_version.as_deref())),
        Cell::text("StorageVersions", |own, _| servers(&own.status).into()),
        Cell::AGE,
    ];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[];
    const STATUS_METADATA_CHECKS: &'static [MetadataCheck] = &[];
    const STRATEGY: Strategy = Strategy::Status;
    const STATUS_KEEPS_METADATA: bool = true;

    /// A resource and its group, which is `core` where it has no name.
    fn validate_name(name: &str, _: bool) -> Vec<String> {
        let Some((group, resource)) = name.rsplit_once('.') else {
            return vec!["name must be in the form of <group>.<resource>".to_owned()];
        };
        let group = names::dns1123_subdomain(group).into_iter().map(|text| format!("the group segment {text}"));
        let resource = names::dns1035_label(resource).into_iter().map(|text| format!("the resource segment {text}"));
        group.chain(resource).collect()
    }

    fn validate_update(_: &RuleContext, endpoint: Endpoint, object: &StorageVersion, _: &StorageVersion) -> ErrorList {
        let mut errors = ErrorList::new();
        if endpoint == Endpoint::Status {
            validate_status(&object.status, &mut errors);
        }
        errors
    }
}

fn servers(status: &StorageVersionStatus) -> String {
    let all = status.storage_versions.iter().map(|own| format!("{}={}", own.api_server_id, own.encoding_version));
    table::first_few(&all.collect::<Vec<_>>(), SHOWN)
}

fn validate_status(status: &StorageVersionStatus, errors: &mut ErrorList) {
    let path = Path::new("status");
    let at = path.child("storageVersions");
    let mut seen = BTreeMap::new();
    for (index, server) in status.storage_versions.iter().enumerate() {
        let at = at.index(index);
        if seen.insert(server.api_server_id.as_str(), index).is_some() {
            errors.push(at.child("apiServerID").duplicate(&server.api_server_id));
        }
        validate_server(&at, server, errors);
    }
    validate_common(&path.child("commonEncodingVersion"), status, errors);
    validate_conditions(&path, status, errors);
}

fn validate_server(path: &Path, server: &ServerStorageVersion, errors: &mut ErrorList) {
    let id = &server.api_server_id;
    errors.push_invalid(&path.child("apiServerID"), id, names::dns1123_subdomain(id));
    api_version(&path.child("encodingVersion"), &server.encoding_version, errors);
    let (at, decodable) = (path.child("decodableVersions"), &server.decodable_versions);
    for (index, version) in decodable.iter().enumerate() {
        api_version(&at.index(index), version, errors);
    }
    if !decodable.contains(&server.encoding_version) {
        let detail = format!("decodableVersions must include encodingVersion {}", server.encoding_version);
        errors.push(at.invalid(BadValue::list(decodable), detail));
    }
    let at = path.child("servedVersions");
    for (index, version) in server.served_versions.iter().enumerate() {
        let at = at.index(index);
        api_version(&at, version, errors);
        if !decodable.contains(version) {
            let detail = format!(
                "individual served version : {version} must be included in decodableVersions : [{}]",
                decodable.join(" ")
            );
            errors.push(at.invalid(version, detail));
        }
    }
}

/// A version, with its group and a slash before it unless that is core.
fn api_version(path: &Path, text: &str, errors: &mut ErrorList) {
    let mut parts = text.splitn(3, '/');
    let details: Vec<String> = match (parts.next(), parts.next(), parts.next()) {
        (Some(version), None, _) => version_problems(version),
        (Some(group), Some(version), None) => {
            let group = names::dns1123_subdomain(group).into_iter().map(|text| format!("group part: {text}"));
            group.chain(version_problems(version)).collect()
        }
        _ => vec![
            names::pattern_detail(
                "an apiVersion is a DNS-1035 label, which must consist of lower case alphanumeric characters or '-', start \
             with an alphabetic character, and end with an alphanumeric character",
                "[a-z]([-a-z0-9]*[a-z0-9])?",
                &["my-name", "abc-123"],
            ) + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyVersion')",
        ],
    };
    if !details.is_empty() {
        errors.push(path.invalid(text, details.join(",")));
    }
}

fn version_problems(version: &str) -> Vec<String> {
    if version.is_empty() {
        return vec!["version part: must be non-empty".to_owned()];
    }
    names::dns1035_label(version).into_iter().map(|text| format!("version part: {text}")).collect()
}

/// What all servers store is told if they agree, and only then.
fn validate_common(path: &Path, status: &StorageVersionStatus, errors: &mut ErrorList) {
    let detail = match (storage_versions::agreed(status), status.common_encoding_version.as_deref()) {
        (None, Some(_)) => {
            "should be nil if servers do not agree on the same encoding version, or if there is no server reporting the \
             supported versions yet"
                .to_owned()
        }
        (Some(agreed), None) => format!("the common encoding version is {agreed}"),
        (Some(agreed), Some(told)) if agreed != told => format!("the actual common encoding version is {agreed}"),
        _ => return,
    };
    let told = status.common_encoding_version.as_ref().map_or_else(BadValue::null, BadValue::from);
    errors.push(path.invalid(told, detail));
}

fn validate_conditions(path: &Path, status: &StorageVersionStatus, errors: &mut ErrorList) {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, condition) in status.conditions.iter().enumerate() {
        let (at, name) = (path.index(index), condition.type_.as_str());
        if let Some(first) = seen.get(name) {
            let detail = format!("the type of the condition is not unique, it also appears in conditions[{first}]");
            errors.push(at.child("type").invalid(name, detail));
        }
        seen.entry(name).or_insert(index);
        errors.push_invalid(&at.child("type"), name, names::qualified_name(name));
        errors.push_invalid(&at.child("status"), &condition.status, names::qualified_name(&condition.status));
        rules::required(&at.child("reason"), &condition.reason, errors);
        rules::required(&at.child("message"), &condition.message, errors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(id: &str, encoding: &str, decodable: &[&str]) -> ServerStorageVersion {
        ServerStorageVersion {
            api_server_id: id.into(),
            encoding_version: encoding.into(),
            decodable_versions: decodable.iter().map(|text| (*text).to_owned()).collect(),
            served_versions: Vec::new(),
        }
    }

    #[test]
    fn servers_say_what_they_store_and_whether_they_agree() {
        let two = |common: Option<&str>, other: &str| StorageVersionStatus {
            storage_versions: vec![server("a", "v1", &["v1"]), server("b", other, &[other])],
            common_encoding_version: common.map(str::to_owned),
            conditions: Vec::new(),
        };
        let one = |own| StorageVersionStatus { storage_versions: vec![own], ..two(Some("v1"), "v1") };
        for (status, expected) in [
            (two(Some("v1"), "v1"), &[] as &[&str]),
            (
                two(None, "v1"),
                &["status.commonEncodingVersion: Invalid value: null: the common encoding version is v1"],
            ),
            (two(Some("v1"), "v2"), &["status.commonEncodingVersion: Invalid value: \"v1\": should be nil if servers"]),
            (
                two(Some("v2"), "v1"),
                &["status.commonEncodingVersion: Invalid value: \"v2\": the actual common encoding version is v1"],
            ),
            (
                one(server("a", "v1", &["g/v1", "a/b/c"])),
                &[
                    "status.storageVersions[0].decodableVersions[1]: Invalid value: \"a/b/c\": an apiVersion is a DNS-1035",
                    "status.storageVersions[0].decodableVersions: Invalid value: [\"g/v1\",\"a/b/c\"]: decodableVersions",
                ],
            ),
            (
                one(ServerStorageVersion { served_versions: vec!["v2".into()], ..server("a", "v1", &["v1"]) }),
                &["status.storageVersions[0].servedVersions[0]: Invalid value: \"v2\": individual served version : v2"],
            ),
        ] {
            let mut errors = ErrorList::new();
            validate_status(&status, &mut errors);
            let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (text, expected) in found.iter().zip(expected) {
                assert!(text.starts_with(expected), "{text}");
            }
        }
    }

    #[test]
    fn names_are_groups_and_resources() {
        for (name, good) in
            [("core.pods", true), ("a.b.pods", true), ("pods", false), ("A.pods", false), ("a.1", false)]
        {
            assert_eq!(StorageVersionRules::validate_name(name, false).is_empty(), good, "{name}");
        }
    }
}
