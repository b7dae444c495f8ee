//! Binding and eviction.
