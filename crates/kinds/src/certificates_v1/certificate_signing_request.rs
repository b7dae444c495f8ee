//! CertificateSigningRequest of certificates.k8s.io/v1: its names, and its rules.

use api_types::certificates_v1::CertificateSigningRequest;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::TypedRules;

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
}
