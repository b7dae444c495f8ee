//! The other versions of a kind: one that is served beside the one that is stored, and former ones that a store may still
//! hold, of a cluster that was taken over. Conversions are pure, and know nothing of who asks.
//!
//! Most beta versions became stable as they were: the same fields under the same names and numbers. Those are read as what
//! they are. Where a field changed its meaning it is mended; versions of another form are not listed, and refused: reading
//! them would lose what nobody can bring back.

use api_machinery::object::Object;

/// Between the served version of a kind and the stored one. Nothing comes of objects of other kinds.
#[derive(Debug, Clone, Copy)]
pub struct VersionConversion {
    /// A stored object as the served version shows it.
    pub to_served: fn(&dyn Object) -> Option<Box<dyn Object>>,
    /// An object of the served version as it is stored.
    pub to_stored: fn(&dyn Object) -> Option<Box<dyn Object>>,
}

/// A version that is read from the store and served no more.
#[derive(Debug, Clone, Copy)]
pub struct Former {
    /// `apiVersion` of such objects.
    pub api_version: &'static str,
    /// What has to be done with an object that was read as if it were of the current version.
    pub mend: fn(&mut dyn Object),
}

impl Former {
    /// A version of the same form.
    #[must_use]
    pub const fn same(api_version: &'static str) -> Self {
        Self { api_version, mend: |_| {} }
    }
}
