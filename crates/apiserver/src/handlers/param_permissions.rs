//! Who writes a policy with parameters, or binds one, has to be allowed to read the parameters: what a policy says of a
//! request may tell of them. Asked after all other rules passed, as upstream asks it.

use std::sync::Arc;

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::gvk::GroupVersionKind;
use api_machinery::object::{Kind as _, Object};
use api_types::admissionregistration_v1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, ParamKind, ParamRef, VERSIONS, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
};
use api_types::authentication_v1::UserInfo;
use authz::{Attributes, Decision};

use crate::cx::ApiCx;
use crate::own_request::server_request;

/// Everything of a kind, whatever it is called.
const ALL: &str = "*";

/// What somebody wants to write, and what was there before.
pub(super) struct Written<'a> {
    pub(super) cx: &'a ApiCx,
    pub(super) user: &'a Arc<UserInfo>,
    pub(super) object: &'a dyn Object,
    pub(super) old: Option<&'a dyn Object>,
}

/// A binding of either kind.
struct Binding<'a> {
    policy: &'a str,
    param_ref: Option<&'a ParamRef>,
    mutating: bool,
}

impl Written<'_> {
    /// What is forbidden of it.
    pub(super) async fn check(&self) -> ErrorList {
        // Who may do anything may do this, too.
        if authz::in_group(self.user, authn::MASTERS) {
            return ErrorList::new();
        }
        let kind = param_kind(self.object);
        if let Some(kind) = kind.flatten() {
            let before = self.old.and_then(param_kind).flatten();
            return if before == Some(kind) { ErrorList::new() } else { self.of_kind(kind).await };
        }
        let Some(binding) = binding(self.object) else { return ErrorList::new() };
        let Some(param_ref) = binding.param_ref else { return ErrorList::new() };
        let before = self.old.and_then(self::binding);
        let unchanged = |own: Binding<'_>| own.policy == binding.policy && own.param_ref == Some(param_ref);
        if before.is_some_and(unchanged) { ErrorList::new() } else { self.of_ref(&binding, param_ref).await }
    }

    async fn may(&self, attributes: Attributes) -> Result<(), Option<String>> {
        let attributes = Attributes { user: Arc::clone(self.user), resource_request: true, ..attributes };
        let outcome = self.cx.authorizer.authorize(&attributes).await;
        if outcome.decision == Decision::Allow { Ok(()) } else { Err(outcome.error) }
    }

    async fn of_kind(&self, kind: &ParamKind) -> ErrorList {
        let gvk = GroupVersionKind::from_type_meta(&kind.api_version, &kind.kind).unwrap_or_default();
        let resource = self.resource_of(&gvk).unwrap_or_else(|| ALL.to_owned());
        let (verb, namespace, name) = ("get".to_owned(), ALL.to_owned(), ALL.to_owned());
        let (group, version) = (gvk.group.to_string(), gvk.version.to_string());
        let attributes = Attributes { verb, namespace, name, group, version, resource, ..Attributes::default() };
        let mut errors = ErrorList::new();
        if self.may(attributes).await.is_err() {
            errors.push(Path::new("spec").child("paramKind").forbidden(format!(
                "user {} must have \"get\" permission on all objects of the referenced paramKind (kind={}, apiVersion={})",
                shown(self.user),
                kind.kind,
                kind.api_version
            )));
        }
        errors
    }

    async fn of_ref(&self, binding: &Binding<'_>, param_ref: &ParamRef) -> ErrorList {
        let by_name = !param_ref.name.is_empty();
        let verb = if by_name { "get" } else { "list" };
        let name = if by_name { param_ref.name.clone() } else { ALL.to_owned() };
        let (resource, problem) = match self.referenced(binding).await {
            Ok(resource) => (resource, None),
            Err(problem) => ([ALL; 3].map(str::to_owned), Some(problem)),
        };
        let [group, version, resource] = resource;
        let (verb_text, namespace) = (verb.to_owned(), param_ref.namespace.clone());
        let attributes =
            Attributes { verb: verb_text, namespace, name, group, version, resource, ..Attributes::default() };
        let mut errors = ErrorList::new();
        if let Err(error) = self.may(attributes).await {
            let user = shown(self.user);
            let text = match (error, problem) {
                (Some(error), _) if binding.mutating => error,
                (Some(error), _) => format!("failed to authorize request: {error}"),
                (None, Some(problem)) => format!(
                    "{problem} to determine minimum required permissions and user {user} does not have \"{verb}\" \
                     permission for all groups, versions and resources"
                ),
                (None, None) => {
                    format!("user {user} does not have \"{verb}\" permission on the object referenced by paramRef")
                }
            };
            errors.push(Path::new("spec").child("paramRef").forbidden(text));
        }
        errors
    }

    fn resource_of(&self, kind: &GroupVersionKind) -> Option<String> {
        Some(self.cx.registry.resource_of(kind)?.info().resource.to_owned())
    }

    /// The resource of a binding's parameters, or what could not be found out.
    async fn referenced(&self, binding: &Binding<'_>) -> Result<[String; 3], String> {
        let missing = || format!("unable to get policy {}", binding.policy);
        let policies = if binding.mutating { &MutatingAdmissionPolicy::TYPE } else { &ValidatingAdmissionPolicy::TYPE };
        let mut versions = VERSIONS.into_iter();
        let resource =
            versions.find_map(|version| self.cx.registry.resource(policies.group, version, policies.resource));
        let resource = resource.ok_or_else(missing)?;
        let found = resource.get(&server_request(resource.rule_context(), ""), binding.policy, "").await;
        let found = found.map_err(|_| missing())?;
        let kind = param_kind(found.object()).flatten().ok_or_else(missing)?;
        let gvk = GroupVersionKind::from_type_meta(&kind.api_version, &kind.kind);
        let gvk = gvk.map_err(|_| format!("unable to parse paramKind {}", kind.kind))?;
        let resource = self.resource_of(&gvk);
        let resource = resource.ok_or_else(|| format!("unable to resolve paramKind {}", kind.kind))?;
        Ok([gvk.group.to_string(), gvk.version.to_string(), resource])
    }
}

/// The kind of a policy's parameters; nothing at all where the object is no policy.
fn param_kind(object: &dyn Object) -> Option<Option<&ParamKind>> {
    if let Some(policy) = object.downcast_ref::<ValidatingAdmissionPolicy>() {
        return Some(policy.spec.param_kind.as_ref());
    }
    let policy = object.downcast_ref::<MutatingAdmissionPolicy>()?;
    Some(policy.spec.param_kind.as_ref())
}

fn binding(object: &dyn Object) -> Option<Binding<'_>> {
    if let Some(own) = object.downcast_ref::<ValidatingAdmissionPolicyBinding>() {
        let (policy, param_ref) = (own.spec.policy_name.as_str(), own.spec.param_ref.as_ref());
        return Some(Binding { policy, param_ref, mutating: false });
    }
    let own = object.downcast_ref::<MutatingAdmissionPolicyBinding>()?;
    let (policy, param_ref) = (own.spec.policy_name.as_str(), own.spec.param_ref.as_ref());
    Some(Binding { policy, param_ref, mutating: true })
}

/// A user as upstream prints one into these texts.
fn shown(user: &UserInfo) -> String {
    let extra: Vec<String> = user.extra.iter().map(|(key, values)| format!("{key}:[{}]", values.0.join(" "))).collect();
    format!("&{{{} {} [{}] map[{}]}}", user.username, user.uid, user.groups.join(" "), extra.join(" "))
}
