//! The sections, by subject.

mod applying;
mod configs;
mod controllers;
mod debugging;
mod definitions;
mod deployments;
mod getting;
mod histories;
mod identity;
mod jobs;
mod mixtures;
mod nodes;
mod patches;
mod pods;
mod rights;
mod server_side;
mod services;
mod waiting;

mod prelude {
    pub(crate) use tests::table::{Row, Want::*};

    pub(crate) use crate::Section;
}

use prelude::Section;

/// The longest come first.
pub(crate) const ALL: &[&Section] = &[
    &definitions::CUSTOM_RESOURCES,
    &nodes::NODES,
    &applying::APPLYING,
    &pods::MAKING,
    &controllers::REPLICA_SETS,
    &getting::GETTING,
    &getting::NAMESPACES,
    &getting::SORTING,
    &waiting::TEMPLATES,
    &waiting::WAITING,
    &waiting::SCALING,
    &debugging::DEBUGGING,
    &debugging::EXEC,
    &definitions::NAMES,
    &server_side::SERVER_SIDE,
    &server_side::DIFFERENCES,
    &deployments::DEPLOYMENTS,
    &deployments::ROLLOUTS,
    &deployments::SETTING,
    &services::SERVICES,
    &services::EXPOSING,
    &pods::MARKING,
    &pods::EDITING,
    &pods::DESCRIBING,
    &applying::PRUNING,
    &applying::FORCING,
    &configs::CONFIG_MAPS,
    &configs::SECRETS,
    &configs::SERVICE_ACCOUNTS,
    &controllers::REPLICATION_CONTROLLERS,
    &histories::DAEMON_SETS,
    &histories::DAEMON_HISTORY,
    &histories::STATEFUL_SETS,
    &histories::STATEFUL_HISTORY,
    &identity::CERTIFICATES,
    &identity::IMPERSONATION,
    &identity::PLUGINS,
    &jobs::JOBS,
    &jobs::EVENTS,
    &jobs::POD_TEMPLATES,
    &mixtures::PARTIAL,
    &mixtures::RECURSIVE,
    &mixtures::SEVERAL_AT_ONCE,
    &nodes::STORAGE,
    &patches::PATCHING,
    &patches::REPLACING,
    &rights::CLUSTER_ROLES,
    &rights::ROLES,
    &rights::WHAT_ONE_MAY,
];
