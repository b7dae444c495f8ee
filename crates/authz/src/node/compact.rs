//! What there is for every pod of a cluster, in few bytes and fewer allocations: a small one that stays for long keeps the
//! whole page of the many around it that do not.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

/// Values that many have in common, each kept once.
#[derive(Debug)]
pub(super) struct Common<T: ?Sized>(HashSet<Arc<T>>);

impl<T: ?Sized> Default for Common<T> {
    fn default() -> Self {
        Self(HashSet::new())
    }
}

impl<T: ?Sized + Eq + Hash> Common<T> {
    /// The value that is equal to this one.
    pub(super) fn share<V: Borrow<T> + Into<Arc<T>>>(&mut self, value: V) -> Arc<T> {
        if let Some(kept) = self.0.get(value.borrow()) {
            return Arc::clone(kept);
        }
        let kept: Arc<T> = value.into();
        self.0.insert(Arc::clone(&kept));
        kept
    }

    /// Gives one back. When nobody else has it, it is gone.
    pub(super) fn give_back(&mut self, value: &Arc<T>) {
        // The set's and the caller's.
        if Arc::strong_count(value) <= 2 {
            self.0.remove(&**value);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The identity of an object: 16 bytes where it is a UUID as servers write them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Uid {
    Uuid([u8; 16]),
    Other(Box<str>),
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        uuid(text).map_or_else(|| Self::Other(text.into()), Self::Uuid)
    }
}

/// The bytes of a UUID in lower case with hyphens where they belong (RFC 9562), which has them in this one form only.
fn uuid(text: &str) -> Option<[u8; 16]> {
    const LENGTH: usize = 36;
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    if text.len() != LENGTH {
        return None;
    }
    let (mut bytes, mut digits) = ([0_u8; 16], 0_usize);
    for (at, byte) in text.bytes().enumerate() {
        if HYPHENS.contains(&at) {
            if byte != b'-' {
                return None;
            }
            continue;
        }
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        let slot = bytes.get_mut(digits / 2)?;
        *slot = *slot << 4 | digit;
        digits += 1;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_kept_once_until_nobody_has_them() {
        let mut names = Common::<str>::default();
        let (one, again) = (names.share("a"), names.share(String::from("a")));
        assert!(Arc::ptr_eq(&one, &again) && names.len() == 1);
        names.give_back(&one);
        drop(one);
        assert_eq!(names.len(), 1, "another has it");
        names.give_back(&again);
        assert_eq!(names.len(), 0);
    }

    #[test]
    fn uids_are_equal_where_their_texts_are() {
        let texts = [
            "974a6b72-c5ab-4d8a-9643-9dff91fe6eba",
            "974a6b72-c5ab-4d8a-9643-9dff91fe6ebb",
            "974A6B72-C5AB-4D8A-9643-9DFF91FE6EBA",
            "974a6b72-c5ab-4d8a-9643-9dff91fe6eb",
            "974a6b72-c5ab-4d8a-9643+9dff91fe6eba",
            "974a6b72-c5ab-4d8a-9643-9dff91fe6ebg",
            "974a6b72c5ab4d8a96439dff91fe6ebaaaaa",
            "p",
            "",
        ];
        for (at, one) in texts.iter().enumerate() {
            for (other_at, other) in texts.iter().enumerate() {
                assert_eq!(Uid::from(*one) == Uid::from(*other), at == other_at, "{one:?} and {other:?}");
            }
        }
        let uuids = texts.iter().filter(|text| matches!(Uid::from(**text), Uid::Uuid(_)));
        assert_eq!(uuids.count(), 2);
    }
}
