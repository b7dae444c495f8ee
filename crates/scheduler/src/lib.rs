//! The scheduling framework, its queue, cache and plugins.
