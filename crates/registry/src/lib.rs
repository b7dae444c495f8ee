//! The generic store engine.
