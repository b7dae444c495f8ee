//! The name of an object inside its kind: namespace and name, as queues and caches use it.

use std::fmt;

use api_machinery::meta::ObjectMeta;

/// Namespace and name; the namespace is empty for cluster-scoped objects. Prints as `namespace/name` or `name`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The namespace, empty for cluster-scoped objects.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl ObjectKey {
    /// The key of an object in a namespace.
    #[must_use]
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The key of a cluster-scoped object.
    #[must_use]
    pub fn cluster(name: impl Into<String>) -> Self {
        Self::new("", name)
    }

    /// The key of the object with this metadata.
    #[must_use]
    pub fn of(meta: &ObjectMeta) -> Self {
        Self::new(meta.namespace.clone(), meta.name.clone())
    }

    /// Reads the printed form; nothing when there are more than two parts or the name is empty.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (namespace, name) = text.split_once('/').unwrap_or(("", text));
        (!name.is_empty() && !name.contains('/')).then(|| Self::new(namespace, name))
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            out.write_str(&self.name)
        } else {
            write!(out, "{}/{}", self.namespace, self.name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_print_and_parse() {
        let cases = [("a/b", Some(ObjectKey::new("a", "b"))), ("n", Some(ObjectKey::cluster("n")))];
        for (text, expected) in cases {
            assert_eq!(ObjectKey::parse(text), expected);
            assert_eq!(expected.map(|key| key.to_string()).as_deref(), Some(text));
        }
        assert_eq!(ObjectKey::parse("a/b/c"), None);
        assert_eq!(ObjectKey::parse("a/"), None);
    }
}
