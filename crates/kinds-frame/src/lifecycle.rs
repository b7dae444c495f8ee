//! How objects of a kind are kept, and how they go: what upstream has in the strategy and the store of each kind
//! (`DefaultGarbageCollectionPolicy`, `ReturnDeletedObject`, `TTLFunc`, indexers, deprecation by API lifecycle).

use api_machinery::object::Object;

/// What the engine has to know of a kind beside its rules.
#[derive(Debug, Clone, Copy)]
pub struct Lifecycle {
    /// What becomes of dependents when a deletion does not say.
    pub dependents: Dependents,
    /// What is told to who deletes without saying what becomes of dependents.
    pub delete_warning: Option<&'static str>,
    /// What holds an object from the moment that its deletion begins.
    pub finalizer: Option<&'static str>,
    /// What a deletion answers with.
    pub delete_answer: DeleteAnswer,
    /// Whether objects go by themselves after a while. Nobody lists them often, so they have no cache by default.
    pub expires: bool,
    /// The fields by which objects are found without a scan.
    pub indexes: &'static [FieldIndex],
    /// Whether finalizers need a domain, but for the few of the system.
    pub qualified_finalizers: bool,
    /// Since when the version should not be used any more, and what to use.
    pub deprecated: Option<Deprecated>,
    /// How objects are written to the store.
    pub written: Written,
}

impl Lifecycle {
    /// What most kinds have.
    pub const DEFAULT: Self = Self {
        dependents: Dependents::Background,
        delete_warning: None,
        finalizer: None,
        delete_answer: DeleteAnswer::Status,
        expires: false,
        indexes: &[],
        qualified_finalizers: true,
        deprecated: None,
        written: Written::AsAsked,
    };
    /// As most, but that a deletion answers with the object.
    pub const RETURNS_DELETED: Self = Self { delete_answer: DeleteAnswer::Object, ..Self::DEFAULT };
    /// What custom kinds have.
    pub const CUSTOM: Self = Self { qualified_finalizers: false, ..Self::DEFAULT };
    /// What events have: they come and go without the garbage collector.
    pub const EVENTS: Self = Self { dependents: Dependents::Unsupported, expires: true, ..Self::DEFAULT };
}

/// What a deletion answers with when the object is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteAnswer {
    /// A `Status`.
    Status,
    /// The object.
    Object,
    /// The object, though documents tell of a `Status`, as upstream's do of namespaces.
    UndocumentedObject,
}

impl DeleteAnswer {
    /// Whether it is the object.
    #[must_use]
    pub fn is_object(self) -> bool {
        matches!(self, Self::Object | Self::UndocumentedObject)
    }

    /// Whether documents tell of the object.
    #[must_use]
    pub fn is_documented_as_object(self) -> bool {
        self == Self::Object
    }
}

/// How objects are written to the store. Upstream's servers of definitions and of API services are servers of their own,
/// with codecs of their own.
#[derive(Debug, Clone, Copy)]
pub enum Written {
    /// In the version that is kept, encoded as `--storage-media-type` says.
    AsAsked,
    /// As JSON whatever the flag says.
    Json,
    /// As JSON, in the form of another version; nothing comes of objects of other kinds.
    JsonIn(fn(&dyn Object) -> Option<Box<dyn Object>>),
}

/// What a kind does with dependents when nobody says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependents {
    /// The garbage collector has nothing to do with the kind.
    Unsupported,
    /// They stay.
    Orphan,
    /// They go afterwards.
    Background,
}

/// A selectable field with its own index.
#[derive(Debug, Clone, Copy)]
pub struct FieldIndex {
    /// The name of the field in selectors.
    pub field: &'static str,
    /// Its value; nothing for objects that are not found by it.
    pub value: fn(&dyn Object) -> Option<String>,
}

/// A version that is served still, but should not be used any more.
#[derive(Debug, Clone, Copy)]
pub struct Deprecated {
    /// The release, such as `v1.33+`.
    pub since: &'static str,
    /// Group version and kind to use; empty where there is none.
    pub instead: &'static str,
}
