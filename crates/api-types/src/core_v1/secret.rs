//! Secret.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::reflect::ByteString;

/// Holds sensitive data, at most 1 MiB in total.
#[api(kind = "Secret", resource = "secrets", namespaced)]
pub struct Secret {
    /// Standard metadata such as name, labels and annotations.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Forbids changes to the data when true; cannot be undone.
    #[field(5)]
    pub immutable: Option<bool>,
    /// Secret values by key, base64-encoded.
    #[field(2, secret)]
    pub data: BTreeMap<String, ByteString>,
    /// Plain values merged into data on write; never returned.
    #[field(4, secret)]
    pub string_data: BTreeMap<String, String>,
    /// Tells how the data is used; default Opaque.
    #[field(3, fill = "\"Opaque\"", go = "v1.SecretType")]
    pub type_: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_show_in_no_text_that_is_not_for_clients() {
        let mut secret = Secret::default();
        secret.metadata.name = "s".into();
        let last_applied = "kubectl.kubernetes.io/last-applied-configuration";
        secret.metadata.annotations.insert(last_applied.into(), "{\"stringData\":{\"a\":\"hunter2\"}}".into());
        secret.data.insert("a".into(), ByteString::from(b"hunter2".to_vec()));
        secret.string_data.insert("b".into(), "hunter2".into());
        let mut review = crate::authentication_v1::TokenReview::default();
        review.spec.token = "hunter2".into();
        let texts = [format!("{secret:?}"), format!("{:?}", [&secret]), format!("{review:?}")];
        for text in texts {
            assert!(text.contains("REDACTED"), "{text}");
            assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMg"), "{text}");
        }
        assert!(api_machinery::json::encode(&secret).contains("aHVudGVyMg"), "clients see it");
    }
}
