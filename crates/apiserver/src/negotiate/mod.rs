//! Which form a client sends and which it wants: media types, projections, indentation, compression.

mod accept;
mod content_type;
mod gzip;
mod media_type;
pub(crate) mod routing;

pub(crate) use accept::{CBOR_SEQUENCE, Choice, Offer, Preferences, Target, preferred};
pub(crate) use content_type::body_type;
pub(crate) use content_type::{PatchType, patch_type};
pub(crate) use gzip::{Compressed, is_worth_compressing};
pub(crate) use media_type::{Forms, MediaType};
