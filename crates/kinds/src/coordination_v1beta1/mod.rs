//! The kinds of coordination.k8s.io/v1beta1, and of v1alpha2, which has the same form.

mod lease_candidate;

use feature_gates::MinorVersion;

use crate::rules::{Rules, Typed};
use crate::versions::SameForm;
use lease_candidate::LeaseCandidateRules;

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[&Typed::<LeaseCandidateRules>::new()];

/// The same under the older name.
pub(crate) static V1ALPHA2: &[&dyn Rules] = {
    static NAMED: SameForm = SameForm::of::<LeaseCandidateRules>("v1alpha2").introduced(MinorVersion::one(32));
    &[&Typed::<LeaseCandidateRules>::under(&NAMED)]
};
