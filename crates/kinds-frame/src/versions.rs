//! The other versions of a kind: one that is served beside the one that is stored, and former ones that a store may still
//! hold, of a cluster that was taken over. Conversions are pure, and know nothing of who asks.
//!
//! Most beta versions became stable as they were: the same fields under the same names and numbers. Those are read as what
//! they are. Where a field changed its meaning it is mended; a version whose fields had other names or numbers is read as a
//! struct of its own. Versions that are not listed are refused: reading them as something else would lose what nobody can
//! bring back.

use std::sync::Arc;

use api_machinery::object::{Kind, KindType, Object};
use api_machinery::renamed::Renamed;
use feature_gates::MinorVersion;

use crate::info::ResourceInfo;
use crate::rules::TypedRules;

/// Between the served version of a kind and the stored one.
#[derive(Clone, Copy)]
pub enum VersionConversion {
    /// The versions have the same form, and differ in nothing but this name.
    SameForm(&'static KindType),
    /// By functions; nothing comes of objects of other kinds.
    By {
        /// A stored object as the served version shows it.
        to_served: fn(&dyn Object) -> Option<Box<dyn Object>>,
        /// An object of the served version as it is stored.
        to_stored: fn(&dyn Object) -> Option<Box<dyn Object>>,
    },
}

impl VersionConversion {
    /// A stored object as the served version shows it.
    #[must_use]
    pub fn to_served(&self, stored: &Arc<dyn Object>) -> Option<Box<dyn Object>> {
        match self {
            Self::SameForm(named) => Some(Box::new(Renamed::new(named, Arc::clone(stored)))),
            Self::By { to_served, .. } => to_served(&**stored),
        }
    }

    /// An object of the served version as it is stored.
    #[must_use]
    pub fn to_stored(&self, served: &dyn Object) -> Option<Box<dyn Object>> {
        match self {
            Self::SameForm(_) => served.downcast_ref::<Renamed>().map(|renamed| renamed.object().clone_object()),
            Self::By { to_stored, .. } => to_stored(served),
        }
    }
}

/// Another version of a kind that has the same form: a name, and facts that are the kind's own but for it.
pub struct SameForm {
    pub(crate) info: ResourceInfo<'static>,
    pub(crate) named: KindType,
}

impl SameForm {
    /// The version of this name of the kind that `R` has the rules of.
    #[must_use]
    pub const fn of<R: TypedRules>(version: &'static str) -> Self {
        Self {
            info: ResourceInfo { version, ..*R::INFO },
            named: KindType { version, watched: version, ..R::Object::TYPE },
        }
    }

    /// The same, of a version that came with another release than the kind's own.
    #[must_use]
    pub const fn introduced(self, introduced: MinorVersion) -> Self {
        Self { info: ResourceInfo { introduced, ..self.info }, ..self }
    }
}

/// A version that is read from the store and served no more.
#[derive(Debug, Clone, Copy)]
pub struct Former {
    /// `apiVersion` of such objects.
    pub api_version: &'static str,
    /// How they become those of the current version.
    pub form: FormerForm,
}

/// The form that objects of a version had.
#[derive(Debug, Clone, Copy)]
pub enum FormerForm {
    /// The current one; what has to be done with an object that was read as if it were of the current version.
    Same(fn(&mut dyn Object)),
    /// One of its own.
    Own {
        /// An empty object of that form.
        empty: fn() -> Box<dyn Object>,
        /// Such an object in the current form; nothing comes of objects of other kinds.
        to_current: fn(&dyn Object) -> Option<Box<dyn Object>>,
    },
}

impl Former {
    /// A version of the same form.
    #[must_use]
    pub const fn same(api_version: &'static str) -> Self {
        Self::mended(api_version, |_| {})
    }

    /// A version of the same form, in which something meant something else.
    #[must_use]
    pub const fn mended(api_version: &'static str, mend: fn(&mut dyn Object)) -> Self {
        Self { api_version, form: FormerForm::Same(mend) }
    }

    /// A version with a struct of its own.
    #[must_use]
    pub const fn own<T: Kind + Object>(
        api_version: &'static str,
        to_current: fn(&dyn Object) -> Option<Box<dyn Object>>,
    ) -> Self {
        Self { api_version, form: FormerForm::Own { empty: || Box::new(T::default()), to_current } }
    }
}
