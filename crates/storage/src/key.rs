//! Keys and half-open key ranges, as etcd orders them: by their bytes.

use std::fmt;

use bytes::Bytes;

/// A key: any non-empty bytes. Clones share the bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Bytes);

impl Key {
    /// A key of these bytes.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self(bytes.into())
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes, shared.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl From<String> for Key {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl std::borrow::Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

/// All keys from `start` (inclusive) to `end` (exclusive).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    start: Key,
    /// `None` is "to the last key there is".
    end: Option<Key>,
}

impl KeyRange {
    /// Every key that starts with `prefix`; an empty prefix is every key.
    pub fn prefix(prefix: impl Into<Key>) -> Self {
        let start = prefix.into();
        let end = successor_of_prefix(start.as_bytes());
        Self { start, end }
    }

    /// Just this key.
    #[must_use]
    pub fn single(key: &Key) -> Self {
        Self { start: key.clone(), end: Some(immediately_after(key)) }
    }

    /// Every key.
    #[must_use]
    pub fn all() -> Self {
        Self::prefix("")
    }

    /// From `start` (inclusive) to `end` (exclusive).
    #[must_use]
    pub fn between(start: Key, end: Key) -> Self {
        Self { start, end: Some(end) }
    }

    /// What is left of this range after `key`: the next page of a list whose last key was `key`.
    #[must_use]
    pub fn after(&self, key: &Key) -> Self {
        Self { start: immediately_after(key).max(self.start.clone()), end: self.end.clone() }
    }

    /// The first key that may be in the range.
    #[must_use]
    pub fn start(&self) -> &Key {
        &self.start
    }

    /// The first key past the range; `None` where it has no end.
    #[must_use]
    pub fn end(&self) -> Option<&Key> {
        self.end.as_ref()
    }

    /// Whether no key can be in the range.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }

    /// Whether `key` is in the range.
    #[must_use]
    pub fn contains(&self, key: &Key) -> bool {
        *key >= self.start && self.end.as_ref().is_none_or(|end| key < end)
    }
}

fn immediately_after(key: &Key) -> Key {
    let mut bytes = Vec::with_capacity(key.as_bytes().len() + 1);
    bytes.extend_from_slice(key.as_bytes());
    bytes.push(0);
    Key::new(bytes)
}

/// The smallest key greater than every key with this prefix, or `None` where there is none.
fn successor_of_prefix(prefix: &[u8]) -> Option<Key> {
    let mut bytes = prefix.to_vec();
    while let Some(last) = bytes.pop() {
        if last < u8::MAX {
            bytes.push(last + 1);
            return Some(Key::new(bytes));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_cover_exactly_their_keys() {
        let pods = KeyRange::prefix("/pods/");
        for (key, inside) in [("/pods/", true), ("/pods/a", true), ("/pods0", false), ("/pods", false), ("/po", false)]
        {
            assert_eq!(pods.contains(&key.into()), inside, "{key}");
        }
        let edge = KeyRange::prefix(Key::new(vec![7, 255]));
        assert_eq!(edge.end(), Some(&Key::new(vec![8])));
        assert_eq!(KeyRange::prefix(Key::new(vec![255, 255])).end(), None);
        assert!(KeyRange::all().contains(&"anything".into()));
    }

    #[test]
    fn the_next_page_starts_right_after_the_last_key() {
        let rest = KeyRange::prefix("a/").after(&"a/b".into());
        assert!(!rest.contains(&"a/b".into()) && rest.contains(&Key::new(b"a/b\0".to_vec())));
        assert!(KeyRange::between("b".into(), "b".into()).is_empty());
        assert!(KeyRange::single(&"k".into()).contains(&"k".into()));
        assert!(!KeyRange::single(&"k".into()).contains(&"kk".into()));
    }
}
