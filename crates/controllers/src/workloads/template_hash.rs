//! The hash of a pod template, as it stands in names of replica sets and revisions and in the labels of their pods.
//!
//! Upstream hashes a debug dump of its own memory layout; nothing on the wire checks the value, so this one hashes
//! the template's JSON. Alphabet and length are upstream's.

use api_machinery::json;
use api_types::core_v1::PodTemplateSpec;
use component_helpers::fnv::{Fnv32, fnv32_of_old};

/// No vowels and nothing that looks like one, so that no words come about.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The hash of a template, moved on by the number of collisions so far.
pub(crate) fn template_hash(template: &PodTemplateSpec, collisions: Option<i32>) -> String {
    let mut hash = Fnv32::default().with(json::encode(template).as_bytes());
    if let Some(collisions) = collisions {
        hash = hash.with(&i64::from(collisions.cast_unsigned()).to_le_bytes());
    }
    spelled(hash.value())
}

/// The name that upstream gives to revisions with these contents: FNV-1 of all parts, in the same alphabet.
pub(crate) fn fnv1_name(parts: &[&[u8]]) -> String {
    spelled(fnv32_of_old(parts.iter().copied()))
}

/// A hash in the same alphabet.
pub(crate) fn spelled(hash: u32) -> String {
    hash.to_string().bytes().map(letter).collect()
}

fn letter(digit: u8) -> char {
    char::from(ALPHABET[usize::from(digit) % ALPHABET.len()])
}

/// `{owner}-{hash}`, with the owner's name cut so that the whole is a valid name.
pub(crate) fn hashed_name(owner: &str, hash: &str) -> String {
    let room = 253_usize.saturating_sub(1 + hash.len());
    let kept: String = owner.chars().take(room).collect();
    format!("{kept}-{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_differ_by_template_and_collisions() {
        let template = PodTemplateSpec::default();
        let mut other = template.clone();
        other.spec.node_name = "n".into();
        let hashes = [
            template_hash(&template, None),
            template_hash(&template, Some(1)),
            template_hash(&template, Some(2)),
            template_hash(&other, None),
        ];
        for (index, hash) in hashes.iter().enumerate() {
            assert!(hash.len() <= 10 && hash.bytes().all(|byte| ALPHABET.contains(&byte)), "{hash}");
            assert!(!hashes[..index].contains(hash));
        }
        assert_eq!(template_hash(&template, None), hashes[0]);
        assert_eq!(hashed_name(&"x".repeat(300), "456").len(), 253);
        assert_eq!(hashed_name("web", "456"), "web-456");
    }

    #[test]
    fn digits_have_letters() {
        assert_eq!("0123456789".bytes().map(letter).collect::<String>(), "456789bcdf");
    }
}
