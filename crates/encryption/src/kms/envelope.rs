//! How a value lies in the store behind the prefix of a KMS v2 provider, and what a plug-in may say of its key.

use std::collections::HashMap;

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names::fully_qualified_domain_name;
use aws_lc_rs::digest;
use component_base::metrics::hash_label;
use prost::{DecodeError, Message as _};
use server_api::kms::stored::{EncryptedDekSourceType, EncryptedObject};

/// How long the name of a key may be, in bytes.
const MAX_KEY_ID: usize = 1024;
/// How long an encrypted key or seed may be, in bytes.
const MAX_SOURCE: usize = 1024;
/// How long annotations may be, all keys and values together, in bytes.
const MAX_ANNOTATIONS: usize = 32 * 1024;

/// What keys of different values are told apart by.
pub(super) type SourceKey = [u8; 32];

/// What is wrong with the name of a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyIdError {
    #[error("keyID is empty")]
    Empty,
    #[error("keyID is {0} bytes, which exceeds the max size of {MAX_KEY_ID}")]
    TooLong(usize),
}

impl KeyIdError {
    /// As the metric has it.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::TooLong(_) => "too_long",
        }
    }
}

/// What is wrong with a stored value, or with what a plug-in says of a key.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ObjectError {
    #[error("proto: {0}")]
    Malformed(#[from] DecodeError),
    #[error("unknown encryptedDEKSourceType: {0}")]
    SourceType(i32),
    #[error("encrypted data is empty")]
    NoData,
    #[error("failed to validate encrypted DEK source: encrypted DEK source is empty")]
    NoSource,
    #[error(
        "failed to validate encrypted DEK source: encrypted DEK source is {0} bytes, which exceeds the max size of \
         {MAX_SOURCE}"
    )]
    LongSource(usize),
    #[error("failed to validate key id: {0}")]
    KeyId(#[from] KeyIdError),
    #[error("failed to validate annotations: {0}")]
    Annotations(ErrorList),
    #[error(
        "failed to validate annotations: total size of annotations is {0}, which exceeds the max size of \
         {MAX_ANNOTATIONS}"
    )]
    LongAnnotations(usize),
    #[error("invalid data encountered by envelope transformer, length longer than available bytes")]
    Short,
}

/// Reads what is stored.
pub(super) fn decode(stored: &[u8]) -> Result<EncryptedObject, ObjectError> {
    let object = EncryptedObject::decode(stored)?;
    if object.encrypted_data.is_empty() {
        return Err(ObjectError::NoData);
    }
    check(&object)?;
    Ok(object)
}

/// Checks all but the data.
pub(super) fn check(object: &EncryptedObject) -> Result<(), ObjectError> {
    source_type(object)?;
    match object.encrypted_dek_source.len() {
        0 => return Err(ObjectError::NoSource),
        long if long > MAX_SOURCE => return Err(ObjectError::LongSource(long)),
        _ => {}
    }
    check_key_id(&object.key_id)?;
    check_annotations(&object.annotations)
}

/// What the key of a value is made of.
pub(super) fn source_type(object: &EncryptedObject) -> Result<EncryptedDekSourceType, ObjectError> {
    let number = object.encrypted_dek_source_type;
    EncryptedDekSourceType::try_from(number).map_err(|_| ObjectError::SourceType(number))
}

/// Checks the name of a key.
pub(super) fn check_key_id(id: &str) -> Result<(), KeyIdError> {
    match id.len() {
        0 => Err(KeyIdError::Empty),
        long if long > MAX_KEY_ID => Err(KeyIdError::TooLong(long)),
        _ => Ok(()),
    }
}

fn check_annotations(annotations: &HashMap<String, Vec<u8>>) -> Result<(), ObjectError> {
    let size = annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
    if size > MAX_ANNOTATIONS {
        return Err(ObjectError::LongAnnotations(size));
    }
    let (path, mut errors) = (Path::new("annotations"), ErrorList::new());
    for (key, _) in sorted(annotations) {
        errors.extend(fully_qualified_domain_name(&path, key));
    }
    if errors.is_empty() { Ok(()) } else { Err(ObjectError::Annotations(errors)) }
}

fn sorted(annotations: &HashMap<String, Vec<u8>>) -> Vec<(&String, &Vec<u8>)> {
    let mut all: Vec<_> = annotations.iter().collect();
    all.sort_unstable();
    all
}

/// What tells the key of a value apart: whatever the plug-in is asked with.
pub(super) fn source_key(object: &EncryptedObject) -> SourceKey {
    let mut context = digest::Context::new(&digest::SHA256);
    let mut add = |bytes: &[u8]| {
        context.update(&u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
        context.update(bytes);
    };
    add(&object.encrypted_dek_source_type.to_be_bytes());
    add(&object.encrypted_dek_source);
    add(object.key_id.as_bytes());
    for (key, value) in sorted(&object.annotations) {
        add(key.as_bytes());
        add(value);
    }
    let mut key = SourceKey::default();
    key.copy_from_slice(context.finish().as_ref());
    key
}

/// What stands for the name of a key, which is not shown; empty for none.
pub(super) fn key_id_hash(id: &str) -> String {
    if id.is_empty() { String::new() } else { hash_label(id.as_bytes()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> EncryptedObject {
        EncryptedObject {
            encrypted_data: vec![1],
            key_id: "k".into(),
            encrypted_dek_source: vec![2],
            annotations: HashMap::from([("a.example".to_owned(), vec![3])]),
            encrypted_dek_source_type: 1,
        }
    }

    #[test]
    fn limits_are_upstreams() {
        type Change = fn(&mut EncryptedObject);
        let cases: &[(Change, &str)] = &[
            (|_| (), ""),
            (|own| own.encrypted_data.clear(), "encrypted data is empty"),
            (|own| own.encrypted_dek_source_type = 2, "unknown encryptedDEKSourceType: 2"),
            (
                |own| own.encrypted_dek_source.clear(),
                "failed to validate encrypted DEK source: encrypted DEK source is empty",
            ),
            (|own| own.encrypted_dek_source = vec![0; 1024], ""),
            (
                |own| own.encrypted_dek_source = vec![0; 1025],
                "failed to validate encrypted DEK source: encrypted DEK source is 1025 bytes, which exceeds the max size of 1024",
            ),
            (|own| own.key_id.clear(), "failed to validate key id: keyID is empty"),
            (|own| own.key_id = "k".repeat(1024), ""),
            (
                |own| own.key_id = "k".repeat(1025),
                "failed to validate key id: keyID is 1025 bytes, which exceeds the max size of 1024",
            ),
            (
                |own| drop(own.annotations.insert("short".into(), Vec::new())),
                "failed to validate annotations: annotations: Invalid value: \"short\": should be a domain with at least two segments separated by dots",
            ),
            (
                |own| drop(own.annotations.insert("b.example".into(), vec![0; 32 * 1024])),
                "failed to validate annotations: total size of annotations is 32787, which exceeds the max size of 32768",
            ),
        ];
        for (change, expected) in cases {
            let mut own = object();
            change(&mut own);
            let read = decode(&own.encode_to_vec());
            assert_eq!(read.map(drop).map_or_else(|error| error.to_string(), |()| String::new()), *expected);
        }
        assert!(decode(b"\x0a\xff").unwrap_err().to_string().starts_with("proto: "));
    }

    #[test]
    fn keys_are_told_apart_by_all_that_the_plug_in_is_asked_with() {
        let mut all = vec![source_key(&object())];
        type Change = fn(&mut EncryptedObject);
        let changes: [Change; 5] = [
            |own| own.key_id = "l".into(),
            |own| own.encrypted_dek_source = vec![4],
            |own| own.encrypted_dek_source_type = 0,
            |own| own.annotations = HashMap::from([("a.example".to_owned(), vec![5])]),
            |own| own.annotations.clear(),
        ];
        for change in changes {
            let mut own = object();
            change(&mut own);
            all.push(source_key(&own));
        }
        let distinct: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
        let mut other_data = object();
        other_data.encrypted_data = vec![9];
        assert_eq!(source_key(&other_data), source_key(&object()));
    }
}
