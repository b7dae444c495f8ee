//! The kinds of resource.k8s.io/v1beta1: requests had one form only, and devices were of a basic sort.

mod devices;
mod requests;

use feature_gates::MinorVersion;

use crate::other_form::Converted;
use crate::resource_v1::DeviceClassRules;
use crate::rules::{Rules, Typed};
use crate::versions::SameForm;

/// The release that brought the version.
const INTRODUCED: MinorVersion = MinorVersion::one(32);

/// Classes have changed in nothing.
static CLASS: SameForm = SameForm::of::<DeviceClassRules>("v1beta1").introduced(INTRODUCED);

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[
    &Typed::<DeviceClassRules>::under(&CLASS),
    &Converted::<requests::FirstClaim>::new(),
    &Converted::<requests::FirstTemplate>::new(),
    &Converted::<devices::FirstSlice>::new(),
];
