//! The order of the road.
