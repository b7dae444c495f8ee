//! Which policies are asked about a request, and with what: each binding that matches, with each of its parameters.

use std::sync::Arc;

use api_machinery::object::Object;
use api_machinery::status::ApiError;

use super::bound::{Binding, Policy, PolicyKind};
use super::params;
use crate::matching::{Criteria, Matched, Subject};
use crate::{Attributes, Context};

/// A policy with one of its bindings, and the parameters: each to be evaluated by itself.
pub(crate) struct Invocation<'a, P: PolicyKind> {
    pub(crate) binding: &'a Binding<P>,
    params: Params,
}

/// What a binding gives to its policy.
enum Params {
    /// The policy has no parameters: it is evaluated once.
    Unused,
    /// Each of these: it is evaluated once for each.
    Each(Vec<Arc<dyn Object>>),
}

impl<P: PolicyKind> Invocation<'_, P> {
    /// What the policy is evaluated with: nothing, where it has no parameters.
    pub(crate) fn params(&self) -> impl Iterator<Item = Option<&dyn Object>> {
        let (unused, each) = match &self.params {
            Params::Unused => (Some(None), [].as_slice()),
            Params::Each(each) => (None, each.as_slice()),
        };
        unused.into_iter().chain(each.iter().map(|own| Some(&**own)))
    }
}

/// What a policy is to be asked, how it matched, and what is wrong with how it is set up.
pub(crate) struct Plan<'a, P: PolicyKind> {
    pub(crate) matched: Matched,
    pub(crate) invocations: Vec<Invocation<'a, P>>,
    pub(crate) misfits: Vec<Misfit>,
}

/// A policy or a binding that cannot be used as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// The binding; empty where it is the policy.
    pub(crate) binding: String,
    pub(crate) message: String,
}

async fn matches(criteria: &Result<Criteria, String>, subject: &Subject<'_>) -> Result<Option<Matched>, String> {
    match criteria {
        Ok(criteria) => criteria.matches(subject).await.map_err(|error: ApiError| error.to_string()),
        Err(error) => Err(error.clone()),
    }
}

/// What a policy is to be asked about a request; nothing where it is not about it.
pub(crate) async fn plan<'a, P: PolicyKind>(
    cx: &Context,
    attributes: &Attributes,
    subject: &Subject<'_>,
    policy: &'a Policy<P>,
) -> Option<Plan<'a, P>> {
    let of_policy =
        |error: String| Misfit { binding: String::new(), message: format!("failed to configure policy: {error}") };
    let failed = |misfit| Some(Plan { matched: Matched::AsRequested, invocations: Vec::new(), misfits: vec![misfit] });
    let matched = match matches(&policy.criteria, subject).await {
        Ok(matched) => matched?,
        Err(error) => return failed(of_policy(error)),
    };
    let resource = match policy.param_kind.as_ref().map(|kind| params::resource(cx, kind)).transpose() {
        Ok(resource) => resource,
        Err(error) => return failed(of_policy(error.to_string())),
    };
    let mut plan = Plan { matched, invocations: Vec::with_capacity(policy.bindings.len()), misfits: Vec::new() };
    for binding in &policy.bindings {
        let found = match &binding.criteria {
            None => Ok(true),
            Some(criteria) => matches(criteria, subject).await.map(|matched| matched.is_some()),
        };
        let param_ref = P::binding(&binding.object).param_ref;
        let params = match found {
            Ok(false) => continue,
            Err(error) => Err(error),
            Ok(true) => match (&policy.param_kind, &resource, param_ref) {
                (Some(kind), Some(resource), Some(param_ref)) => {
                    let found = params::find(cx, attributes, kind, resource, param_ref).await;
                    found.map(Params::Each).map_err(|error| error.to_string())
                }
                _ => Ok(Params::Unused),
            },
        };
        match params {
            Ok(params) => plan.invocations.push(Invocation { binding, params }),
            Err(error) => plan.misfits.push(Misfit {
                binding: binding.object.meta().name.clone(),
                message: format!("failed to configure binding: {error}"),
            }),
        }
    }
    Some(plan)
}
