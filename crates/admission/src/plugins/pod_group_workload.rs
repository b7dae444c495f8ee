//! PodGroupWorkloadExists: a group of pods names a workload that is there and stays, and one of its templates.

use std::sync::Arc;

use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_types::scheduling_v1alpha2::{GROUP, PodGroup, Workload};
use async_trait::async_trait;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "PodGroupWorkloadExists",
    enabled_by_default: true,
    passes: Passes::Validating,
    reads: &[&Workload::TYPE],
    configuration: None,
    build: |_| Box::new(PodGroupWorkloadExists),
};

struct PodGroupWorkloadExists;

async fn workload(cx: &Context, attributes: &Attributes, name: &str) -> Result<Arc<Workload>, ApiError> {
    if let Some(workload) = cx.lookup.get(&attributes.namespace, name) {
        return Ok(workload);
    }
    cx.lookup.get_live(&attributes.namespace, name).await.map_err(|error| {
        if error.is_not_found() {
            return attributes.forbidden(format_args!("PodGroup rejected: Workload {name:?} not found"));
        }
        error
    })
}

#[async_trait]
impl Plugin for PodGroupWorkloadExists {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Create && attributes.is(GROUP, "podgroups")
    }

    async fn validate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let group = object.and_then(|object| object.downcast_ref::<PodGroup>());
        let template = group.and_then(|group| group.spec.pod_group_template_ref.as_ref());
        let Some(named) = template.and_then(|template| template.workload.as_ref()) else { return Ok(()) };
        let (name, template) = (&named.workload_name, &named.pod_group_template_name);
        let workload = workload(cx, attributes, name).await?;
        if workload.metadata.deletion_timestamp.is_some() {
            return Err(attributes.forbidden(format_args!("PodGroup rejected: Workload {name:?} is being deleted")));
        }
        if workload.spec.pod_group_templates.iter().any(|own| own.name == *template) {
            return Ok(());
        }
        let text = format_args!("PodGroup rejected: PodGroupTemplate {template:?} not found in Workload {name:?}");
        Err(attributes.forbidden(text))
    }
}

#[cfg(test)]
mod tests {
    use api_types::scheduling_v1alpha2::{
        PodGroupTemplate, PodGroupTemplateReference, WorkloadPodGroupTemplateReference,
    };

    use super::*;
    use crate::plugins::testing::{Fixture, create};

    fn workload(name: &str, goes: bool) -> Workload {
        let mut workload = Workload::default();
        workload.metadata.name = name.into();
        workload.metadata.namespace = "n".into();
        if goes {
            workload.metadata.deletion_timestamp = Some(api_machinery::time::Time::default());
        }
        workload.spec.pod_group_templates = vec![PodGroupTemplate { name: "t".into(), ..PodGroupTemplate::default() }];
        workload
    }

    fn group(workload_name: &str, pod_group_template_name: &str) -> PodGroup {
        let mut group = PodGroup::default();
        let workload = WorkloadPodGroupTemplateReference {
            workload_name: workload_name.into(),
            pod_group_template_name: pod_group_template_name.into(),
        };
        group.spec.pod_group_template_ref = Some(PodGroupTemplateReference { workload: Some(workload) });
        group
    }

    #[tokio::test]
    async fn the_workload_and_its_template_must_be_there() {
        let cached = Fixture::default().with(vec![workload("w", false), workload("going", true)]);
        let fixture = Fixture { stored: vec![Arc::new(workload("fresh", false))], ..cached };
        for (group, expected) in [
            (PodGroup::default(), None),
            (group("w", "t"), None),
            (group("fresh", "t"), None),
            (group("w", "u"), Some("PodGroup rejected: PodGroupTemplate \"u\" not found in Workload \"w\"")),
            (group("going", "t"), Some("PodGroup rejected: Workload \"going\" is being deleted")),
            (group("none", "t"), Some("PodGroup rejected: Workload \"none\" not found")),
        ] {
            let attributes = Attributes { namespace: "n".into(), ..create(GROUP, "podgroups") };
            let outcome = fixture.validate(&ENTRY, &attributes, &group).await;
            let expected = expected.map(|text| format!("podgroups.scheduling.k8s.io \"x\" is forbidden: {text}"));
            assert_eq!(outcome.err().map(|error| error.message), expected);
        }
    }
}
