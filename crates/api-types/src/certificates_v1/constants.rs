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
    values! {
        SIGNING = "signing", DIGITAL_SIGNATURE = "digital signature", CONTENT_COMMITMENT = "content commitment",
        KEY_ENCIPHERMENT = "key encipherment", KEY_AGREEMENT = "key agreement",
        DATA_ENCIPHERMENT = "data encipherment", CERT_SIGN = "cert sign", CRL_SIGN = "crl sign",
        ENCIPHER_ONLY = "encipher only", DECIPHER_ONLY = "decipher only", ANY = "any", SERVER_AUTH = "server auth",
        CLIENT_AUTH = "client auth", CODE_SIGNING = "code signing", EMAIL_PROTECTION = "email protection",
        S_MIME = "s/mime", IPSEC_END_SYSTEM = "ipsec end system", IPSEC_TUNNEL = "ipsec tunnel",
        IPSEC_USER = "ipsec user", TIMESTAMPING = "timestamping", OCSP_SIGNING = "ocsp signing",
        MICROSOFT_SGC = "microsoft sgc", NETSCAPE_SGC = "netscape sgc",
    }
}
