//! Fills in the rules of cluster roles that are made up of others, chosen by labels.

use std::sync::Arc;

use api_machinery::meta::PatchOptions;
use api_machinery::value::{ValueMap, to_value};
use api_types::rbac_v1::{ClusterRole, PolicyRule};
use client::{Informer, ObjectKey, Patch};
use component_helpers::selectors::selector_of;
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "clusterrole-aggregation-controller",
    aliases: &["clusterrole-aggregation"],
    gates: &[],
    identity: "clusterrole-aggregation-controller",
    event_component: "",
    disabled_by_default: false,
    build,
};

/// Who owns the rules of aggregated roles, as upstream.
const FIELD_MANAGER: &str = "clusterrole-aggregation-controller";
const WORKERS: usize = 5;

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let queue = build.queue("ClusterRoleAggregator");
    let roles = build.watch::<ClusterRole>().informer();
    let all = roles.clone();
    // Any role may be part of any aggregate; there are few aggregates.
    let aggregates = move |_: &_| -> Vec<ObjectKey> {
        let roles = all.list().into_iter().filter(|role| role.aggregation_rule.is_some());
        roles.map(|role| ObjectKey::cluster(&role.metadata.name)).collect()
    };
    drop(build.watch::<ClusterRole>().enqueue_keys(&queue, aggregates));
    build.run(&queue, WORKERS, Arc::new(Aggregation { roles }));
    Ok(())
}

struct Aggregation {
    roles: Informer<ClusterRole>,
}

/// The rules that an aggregate is made of, in the order of its selectors and then of the roles' names, each once.
/// Nothing where the role is no aggregate or has these rules already.
fn plan(aggregate: &ClusterRole, roles: &[Arc<ClusterRole>]) -> Result<Option<Vec<PolicyRule>>, ReconcileError> {
    let Some(rule) = &aggregate.aggregation_rule else { return Ok(None) };
    let mut rules: Vec<PolicyRule> = Vec::new();
    for selector in &rule.cluster_role_selectors {
        let selector = selector_of(Some(selector)).map_err(|error| ReconcileError::permanent(error.to_string()))?;
        let parts = roles.iter().filter(|role| role.metadata.name != aggregate.metadata.name);
        for part in parts.filter(|role| selector.matches(&role.metadata.labels)) {
            for rule in &part.rules {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    Ok((rules != aggregate.rules).then_some(rules))
}

/// The aggregate's rules as an intent to apply.
fn intent(name: &str, rules: Vec<PolicyRule>) -> Patch {
    let mut metadata = ValueMap::new();
    metadata.insert("name".into(), name.into());
    let mut intent = ValueMap::new();
    intent.insert("apiVersion".into(), "rbac.authorization.k8s.io/v1".into());
    intent.insert("kind".into(), "ClusterRole".into());
    intent.insert("metadata".into(), metadata.into());
    intent.insert("rules".into(), to_value(&rules));
    Patch::Apply(intent.into())
}

#[async_trait::async_trait]
impl Controller for Aggregation {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(aggregate) = self.roles.get(key) else { return Ok(Next::Done) };
        let Some(rules) = plan(&aggregate, &self.roles.list())? else { return Ok(Next::Done) };
        let options =
            PatchOptions { field_manager: FIELD_MANAGER.to_owned(), force: Some(true), ..PatchOptions::default() };
        let patch = intent(&key.name, rules);
        cx.client.all::<ClusterRole>().patch_with(&key.name, &patch, &options).await?;
        Ok(Next::Done)
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::meta::LabelSelector;
    use api_types::rbac_v1::AggregationRule;

    use super::*;

    fn role(name: &str, label: &str, verbs: &[&str]) -> Arc<ClusterRole> {
        let mut role = ClusterRole::default();
        role.metadata.name = name.into();
        role.metadata.labels.insert("to".into(), label.into());
        let rule = |verb: &&str| PolicyRule { verbs: vec![(*verb).to_owned()], ..PolicyRule::default() };
        role.rules = verbs.iter().map(rule).collect();
        Arc::new(role)
    }

    fn aggregate(labels: &[&str], verbs: &[&str]) -> ClusterRole {
        let mut aggregate = ClusterRole::clone(&role("all", "a", verbs));
        let selector = |label: &&str| LabelSelector {
            match_labels: [("to".to_owned(), (*label).to_owned())].into(),
            ..LabelSelector::default()
        };
        let cluster_role_selectors = labels.iter().map(selector).collect();
        aggregate.aggregation_rule = Some(AggregationRule { cluster_role_selectors });
        aggregate
    }

    #[test]
    fn rules_are_joined_in_order_and_once() {
        let roles = [role("all", "a", &["x"]), role("one", "a", &["get", "list"]), role("two", "b", &["list", "put"])];
        for (name, aggregate, expected) in [
            ("one selector", aggregate(&["a"], &[]), Some(vec!["get", "list"])),
            ("two selectors", aggregate(&["b", "a"], &[]), Some(vec!["list", "put", "get"])),
            ("steady state", aggregate(&["a"], &["get", "list"]), None),
            ("nothing selected any more", aggregate(&["c"], &["get"]), Some(vec![])),
            ("no aggregate", ClusterRole::clone(&roles[1]), None),
        ] {
            let verbs = |rules: Vec<PolicyRule>| rules.iter().map(|rule| rule.verbs.join(",")).collect::<Vec<_>>();
            let actual = plan(&aggregate, &roles).unwrap().map(verbs);
            assert_eq!(actual, expected.map(|verbs| verbs.into_iter().map(str::to_owned).collect()), "{name}");
        }
    }
}
