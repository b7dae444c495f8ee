//! Tells in the status of validating admission policies where their expressions do not fit the types that they are about.
//! It informs, and stops nothing: a policy is enforced whatever is found.
//! <https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/#type-checking>

mod check;
mod kinds;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use admission_cel::{KnownType, OpenApiTypes};
use api_machinery::gvk::{GroupVersion, GroupVersionKind};
use api_machinery::json::parse_value;
use api_machinery::meta::PatchOptions;
use api_machinery::value::{Value, ValueMap, to_value};
use api_types::admissionregistration_v1::{ExpressionWarning, ValidatingAdmissionPolicy};
use client::{ClientError, Informer, ObjectKey, Patch, Request, RestMapper};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};

use crate::Settings;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "validatingadmissionpolicy-status-controller",
    aliases: &[],
    gates: &[],
    identity: "validatingadmissionpolicy-status-controller",
    event_component: "",
    disabled_by_default: false,
    build,
};

/// Who owns what is told, as upstream.
const FIELD_MANAGER: &str = "validatingadmissionpolicy-status";

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let workers = build.settings::<Settings>()?.policy_status_syncs;
    let queue = build.queue("validatingadmissionpolicy-status");
    let policies = build.watch::<ValidatingAdmissionPolicy>().enqueue_self(&queue).informer();
    let mapper = build.mapper().clone();
    build.run(&queue, workers, Arc::new(PolicyStatus { policies, mapper }));
    Ok(())
}

struct PolicyStatus {
    policies: Informer<ValidatingAdmissionPolicy>,
    mapper: RestMapper,
}

/// What the server says of its types, asked for once for each version of a group.
#[derive(Default)]
struct Documents(BTreeMap<GroupVersion, Option<Arc<OpenApiTypes>>>);

impl Documents {
    /// The type of a kind; nothing where the server has none to tell.
    async fn known(&mut self, cx: &Cx, kind: &GroupVersionKind) -> Result<Option<KnownType>, ClientError> {
        let version = GroupVersion { group: kind.group.clone(), version: kind.version.clone() };
        if !self.0.contains_key(&version) {
            let types = document(cx, &version).await?;
            self.0.insert(version.clone(), types);
        }
        Ok(self.0.get(&version).and_then(Option::as_ref).and_then(|types| types.of_kind(kind)))
    }
}

async fn document(cx: &Cx, version: &GroupVersion) -> Result<Option<Arc<OpenApiTypes>>, ClientError> {
    let root = if version.group.is_empty() { "api" } else { "apis" };
    let path = format!("/openapi/v3/{root}/{version}");
    match cx.client.send(Request::get(path).accept("application/json")).await {
        Ok(response) => {
            // A document that cannot be read tells nothing.
            let parsed = parse_value(&String::from_utf8_lossy(&response.body));
            Ok(parsed.ok().map(|document| OpenApiTypes::new(&document)))
        }
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

impl PolicyStatus {
    /// The kinds that a policy is about. One that is not known may have come since the server was last asked.
    async fn kinds(&self, policy: &ValidatingAdmissionPolicy) -> Result<Vec<GroupVersionKind>, ClientError> {
        let (found, all_known) = kinds::of(policy, &self.mapper.discovered());
        if all_known {
            return Ok(found);
        }
        let discovered = self.mapper.refresh().await?;
        Ok(kinds::of(policy, &discovered).0)
    }

    async fn warnings(
        &self,
        cx: &Cx,
        policy: &ValidatingAdmissionPolicy,
    ) -> Result<Vec<ExpressionWarning>, ClientError> {
        let mut documents = Documents::default();
        let mut known = Vec::new();
        for kind in self.kinds(policy).await? {
            if let Some(object) = documents.known(cx, &kind).await? {
                known.push((kind, object));
            }
        }
        let params = policy.spec.param_kind.as_ref();
        let params = params.and_then(|own| GroupVersionKind::from_type_meta(&own.api_version, &own.kind).ok());
        let params = match params.filter(|_| !known.is_empty()) {
            Some(kind) => documents.known(cx, &kind).await?,
            None => None,
        };
        Ok(check::warnings(&policy.spec, &known, params.as_ref()))
    }
}

/// What was found, as an intent to apply.
fn intent(policy: &ValidatingAdmissionPolicy, warnings: &[ExpressionWarning]) -> Patch {
    let object = |members: Vec<(&str, Value)>| -> Value {
        let members: ValueMap<String, Value> = members.into_iter().map(|(name, own)| (name.to_owned(), own)).collect();
        members.into()
    };
    let found = if warnings.is_empty() { vec![] } else { vec![("expressionWarnings", to_value(&warnings.to_vec()))] };
    let status =
        object(vec![("observedGeneration", policy.metadata.generation.into()), ("typeChecking", object(found))]);
    Patch::Apply(object(vec![
        ("apiVersion", "admissionregistration.k8s.io/v1".into()),
        ("kind", "ValidatingAdmissionPolicy".into()),
        ("metadata", object(vec![("name", policy.metadata.name.as_str().into())])),
        ("status", status),
    ]))
}

#[async_trait::async_trait]
impl Controller for PolicyStatus {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(policy) = self.policies.get(key) else { return Ok(Next::Done) };
        if policy.metadata.generation <= policy.status.observed_generation {
            return Ok(Next::Done);
        }
        let warnings = self.warnings(cx, &policy).await?;
        let options =
            PatchOptions { field_manager: FIELD_MANAGER.to_owned(), force: Some(true), ..PatchOptions::default() };
        let api = cx.client.all::<ValidatingAdmissionPolicy>();
        api.patch_subresource(&key.name, "status", &intent(&policy, &warnings), &options).await?;
        Ok(Next::Done)
    }
}
