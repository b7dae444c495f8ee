//! The feature gates whose two sides the server has. Code asks them where it acts (`docs/adr/0006-gates.md`).

use component_base::{Feature, Known};

/// Large answers are compressed for clients that take it.
pub(crate) const COMPRESS: Feature = Feature::named("APIResponseCompression");
/// A client certificate may state its user's uid.
pub(crate) const SUBJECT_UID: Feature = Feature::named("AllowParsingUserUIDFromCertAuth");
/// CBOR is spoken, and custom objects are stored as it.
pub(crate) const CBOR: Feature = Feature::named("CBORServingAndStorage");
/// Who tells which devices a claim has needs a right to it, and drivers one for their own.
pub(crate) const CLAIM_RIGHTS: Feature = Feature::named("DRAResourceClaimGranularStatusAuthorization");
/// Devices are allocated to pods. The API of it is here; the scheduler and the kubelet do their parts when theirs is on.
pub(crate) const DEVICES: Feature = Feature::named("DynamicResourceAllocation");
/// Servers behind this one are told of users' uids.
pub(crate) const REMOTE_UID: Feature = Feature::named("RemoteRequestHeaderUID");
/// Nodes say which features they have, and updates of pods are held against it.
pub(crate) const NODE_DECLARED_FEATURES: Feature = Feature::named("NodeDeclaredFeatures");

/// All of them.
pub(crate) const KNOWN: Known = Known::switching(&[
    &[COMPRESS, SUBJECT_UID, CBOR, CLAIM_RIGHTS, DEVICES, REMOTE_UID, NODE_DECLARED_FEATURES],
    kinds::gates::SWITCHED,
]);
