//! In-process clusters, builders, fault injectors, hollow nodes.
