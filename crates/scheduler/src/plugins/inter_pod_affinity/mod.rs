//! `InterPodAffinity`: pods that want to be near others, or far from them.

mod counts;
mod filtering;
mod hints;
mod scoring;

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::core_v1::Namespace;

use crate::framework::{BuildCx, Plugin, PluginError};
use crate::listers::Lister;
use crate::plugin_args::PluginArgs;
use crate::pod_class::PodClass;
use crate::pod_info::AffinityTerm;

pub(super) const NAME: &str = "InterPodAffinity";

struct InterPodAffinity {
    /// What a required affinity term of an existing pod adds to the score.
    hard_weight: i64,
    /// Whether preferred terms of existing pods count.
    counts_existing: bool,
    namespaces: Lister<Namespace>,
}

pub(super) fn build(cx: &BuildCx, args: &PluginArgs) -> Result<Plugin, PluginError> {
    let PluginArgs::InterPodAffinity(args) = args else { return Err(PluginError::NoArguments) };
    let plugin = Arc::new(InterPodAffinity {
        hard_weight: i64::from(args.hard_pod_affinity_weight.unwrap_or(1)),
        counts_existing: !args.ignore_preferred_terms_of_existing_pods,
        namespaces: cx.listers.of(),
    });
    let points = Plugin::new(NAME).pre_filter(plugin.clone()).filter(plugin.clone());
    let points = points.pre_score(plugin.clone()).score(plugin).wakes_on(hints::registrations());
    Ok(points.signed_by(|pod| {
        let class = &pod.class;
        // Terms of others are about its namespace and labels.
        (!class.terms.any).then(|| format!("{:?}{:?}", class.namespace, class.labels))
    }))
}

type Labels = BTreeMap<String, String>;

impl InterPodAffinity {
    /// The labels of a namespace; none where it is unknown.
    fn namespace_labels(&self, namespace: &str) -> Labels {
        self.namespaces.find("", namespace).map(|namespace| namespace.metadata.labels.clone()).unwrap_or_default()
    }

    /// A term of the incoming pod with its namespace selector resolved to names. Upstream tries the selector on no labels
    /// at all too, so that a purely negative one takes every namespace; it stays in the term for that.
    fn resolve(&self, term: &AffinityTerm) -> AffinityTerm {
        let mut resolved = term.clone();
        if term.namespace_selector.requirements().is_empty() {
            return resolved;
        }
        let all = self.namespaces.list().into_iter();
        let selected = all.filter(|one| term.namespace_selector.matches(&one.metadata.labels));
        resolved.namespaces.extend(selected.map(|namespace| namespace.metadata.name.clone()));
        resolved
    }
}

/// Whether a resolved term of the incoming pod means pods of a class.
fn incoming_matches(term: &AffinityTerm, class: &PodClass) -> bool {
    term.matches(&class.namespace, &class.labels, &Labels::new())
}
