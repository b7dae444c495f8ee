//! `--authorization-config`: the chain that the file states now.

use std::path::Path;
use std::sync::Arc;

use api_types::authentication_v1::UserInfo;
use async_trait::async_trait;
use authz::{Attributes, Authorizer, Outcome, RuleSet, configuration};
use component_base::lifecycle::Lifecycle;
use component_base::metrics::{Desc, Metrics, Stability};
use component_base::reload::ReloadError;
use component_base::swappable::{Build, ReloadFamilies, ReloadMetrics, Swappable};

use super::build::{Assembled, Builder};
use crate::build_error::BuildError;
use crate::server_id::server_id_hash;

const RELOADS: Desc = Desc::new(
    "apiserver_authorization_config_controller_automatic_reloads_total",
    "Times that a changed authorization configuration was taken, or refused.",
    Stability::Beta,
)
.labels(&["status", "apiserver_id_hash"]);
const LAST_RELOAD: Desc = Desc::new(
    "apiserver_authorization_config_controller_automatic_reload_last_timestamp_seconds",
    "When a changed authorization configuration was last taken, or refused.",
    Stability::Beta,
)
.labels(&["status", "apiserver_id_hash"]);
const IN_FORCE: Desc = Desc::new(
    "apiserver_authorization_config_controller_last_config_info",
    "The hash of the authorization configuration that is in force.",
    Stability::Alpha,
)
.labels(&["apiserver_id_hash", "hash"]);
const FAMILIES: ReloadFamilies = ReloadFamilies { reloads: &RELOADS, last_reload: &LAST_RELOAD, in_force: &IN_FORCE };

impl Build for Builder {
    type Value = Assembled;

    fn build(&self, text: &str, _: Option<&Assembled>) -> Result<Assembled, ReloadError> {
        let configuration = configuration::parse(text, &self.built_in.required)?;
        Ok(self.assemble(&configuration)?)
    }
}

/// Asks whatever chain is in force.
struct Followed(Arc<Swappable<Builder>>);

#[async_trait]
impl Authorizer for Followed {
    async fn authorize(&self, attributes: &Attributes) -> Outcome {
        self.0.current().authorize(attributes).await
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> RuleSet {
        self.0.current().rules_for(user, namespace)
    }
}

/// The chain of the file, which is followed for as long as the server's tasks live.
pub(super) fn start(
    path: &Path,
    builder: Builder,
    metrics: &Metrics,
    lifecycle: &Lifecycle,
) -> Result<Arc<dyn Authorizer>, BuildError> {
    let reloads = ReloadMetrics::new(metrics, FAMILIES, server_id_hash(lifecycle.gates()));
    let chain = Swappable::load(path, builder, reloads, Arc::clone(lifecycle.clock()))
        .map_err(|source| BuildError::Configuration { path: path.to_owned(), source })?;
    chain.follow(lifecycle.tasks());
    Ok(Arc::new(Followed(chain)))
}
