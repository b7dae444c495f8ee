//! The reconciler framework.
