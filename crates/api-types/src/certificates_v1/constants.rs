//! Well-known names and the values of string types.

pub const KUBELET_SERVING_SIGNER_NAME: &str = "kubernetes.io/kubelet-serving";
pub const KUBE_API_SERVER_CLIENT_KUBELET_SIGNER_NAME: &str = "kubernetes.io/kube-apiserver-client-kubelet";
pub const KUBE_API_SERVER_CLIENT_SIGNER_NAME: &str = "kubernetes.io/kube-apiserver-client";

/// Values of `RequestConditionType`.
pub mod request_condition_type {
    pub const APPROVED: &str = "Approved";
    pub const DENIED: &str = "Denied";
    pub const FAILED: &str = "Failed";
}

/// Values of `KeyUsage`.
pub mod key_usage {
    pub const SIGNING: &str = "signing";
    pub const DIGITAL_SIGNATURE: &str = "digital signature";
    pub const CONTENT_COMMITMENT: &str = "content commitment";
    pub const KEY_ENCIPHERMENT: &str = "key encipherment";
    pub const KEY_AGREEMENT: &str = "key agreement";
    pub const DATA_ENCIPHERMENT: &str = "data encipherment";
    pub const CERT_SIGN: &str = "cert sign";
    pub const CRL_SIGN: &str = "crl sign";
    pub const ENCIPHER_ONLY: &str = "encipher only";
    pub const DECIPHER_ONLY: &str = "decipher only";
    pub const ANY: &str = "any";
    pub const SERVER_AUTH: &str = "server auth";
    pub const CLIENT_AUTH: &str = "client auth";
    pub const CODE_SIGNING: &str = "code signing";
    pub const EMAIL_PROTECTION: &str = "email protection";
    pub const S_MIME: &str = "s/mime";
    pub const IPSEC_END_SYSTEM: &str = "ipsec end system";
    pub const IPSEC_TUNNEL: &str = "ipsec tunnel";
    pub const IPSEC_USER: &str = "ipsec user";
    pub const TIMESTAMPING: &str = "timestamping";
    pub const OCSP_SIGNING: &str = "ocsp signing";
    pub const MICROSOFT_SGC: &str = "microsoft sgc";
    pub const NETSCAPE_SGC: &str = "netscape sgc";
}
