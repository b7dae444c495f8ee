//! CertificateSigningRequest of certificates.k8s.io/v1: its names, and its rules.

use api_types::certificates_v1::CertificateSigningRequest;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::TypedRules;
use crate::table;
use api_machinery::time::Time;
use api_machinery::value::Value;

static INFO: ResourceInfo = ResourceInfo {
    group: "certificates.k8s.io",
    version: "v1",
    kind: "CertificateSigningRequest",
    resource: "certificatesigningrequests",
    singular: "certificatesigningrequest",
    short_names: &["csr"],
    categories: &[],
    namespaced: false,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo {
        prefix: "certificatesigningrequests",
        group: "certificates.k8s.io",
        version: "v1",
        hash: "95fRKMXA+00=",
    }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &["spec.signerName"],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
        Column { name: "SignerName", type_: "string", format: "", priority: 0 },
        Column { name: "Requestor", type_: "string", format: "", priority: 0 },
        Column { name: "RequestedDuration", type_: "string", format: "", priority: 0 },
        Column { name: "Condition", type_: "string", format: "", priority: 0 },
    ],
    subresources: &[
        SubresourceInfo {
            name: "approval",
            kind: "CertificateSigningRequest",
            group: "",
            version: "",
            verbs: &["get", "patch", "update"],
        },
        SubresourceInfo {
            name: "status",
            kind: "CertificateSigningRequest",
            group: "",
            version: "",
            verbs: &["get", "patch", "update"],
        },
    ],
};

/// The rules of the kind.
pub(crate) struct CertificateSigningRequestRules;

impl TypedRules for CertificateSigningRequestRules {
    type Object = CertificateSigningRequest;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn cells(object: &CertificateSigningRequest, now: Time) -> Vec<Value> {
        let duration = object
            .spec
            .expiration_seconds
            .map_or_else(|| "<none>".to_owned(), |seconds| api_machinery::human_duration::age_text(i64::from(seconds)));
        vec![
            object.metadata.name.clone().into(),
            table::age(&object.metadata, now),
            table::or_none(&*object.spec.signer_name).into(),
            object.spec.username.clone().into(),
            duration.into(),
            state(object).into(),
        ]
    }
}

/// What was decided, then what became of it.
fn state(request: &CertificateSigningRequest) -> String {
    let has = |type_: &str| request.status.conditions.iter().any(|condition| condition.type_ == type_);
    let mut state = String::from(if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    });
    if has("Failed") {
        state.push_str(",Failed");
    }
    if !request.status.certificate.is_empty() {
        state.push_str(",Issued");
    }
    state
}
