//! Of which objects a request is, by its path.

/// What a path behind a namespace's name may say that is no resource in it.
const OF_NAMESPACES: [&str; 2] = ["status", "finalize"];

/// Where objects are listed, whatever the version.
#[derive(Debug, PartialEq, Eq)]
pub struct Collection {
    /// Empty for the core group.
    pub group: String,
    /// Empty for all namespaces, and for what is in none.
    pub namespace: String,
    /// The plural name.
    pub resource: String,
}

impl Collection {
    /// The collection of a path, which may lead further; none of paths to no resource.
    #[must_use]
    pub fn of(path: &str) -> Option<Self> {
        let mut segments = path.split('?').next()?.split('/').skip(1);
        let group = match segments.next()? {
            "api" => "",
            "apis" => segments.next()?,
            _ => return None,
        };
        let mut segments = segments.skip(1);
        let (namespace, resource) = match (segments.next()?, segments.next(), segments.next()) {
            ("namespaces", Some(namespace), Some(within)) if !OF_NAMESPACES.contains(&within) => (namespace, within),
            (resource, ..) => ("", resource),
        };
        let [group, namespace, resource] = [group, namespace, resource].map(str::to_owned);
        Some(Self { group, namespace, resource })
    }

    /// Whether a list of this collection has all that the other one has.
    pub(crate) fn has(&self, other: &Self) -> bool {
        self.group == other.group
            && self.resource == other.resource
            && (self.namespace.is_empty() || self.namespace == other.namespace)
    }
}
