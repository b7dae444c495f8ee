//! What keeps a cluster in order: roles, namespaces, accounts and what nobody owns any more.

pub(crate) mod cluster_role_aggregation;
