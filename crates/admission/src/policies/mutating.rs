//! MutatingAdmissionPolicy: how objects are changed.

use admission_cel::{Budget, Compiled, Composition, Facts, MUTATION, Scene, Wanted, evaluate};
use api_machinery::object::Object;
use api_types::admissionregistration_v1::{MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, Mutation};
use cel::Value;

use super::bound::{BindingParts, Policy, PolicyKind, PolicyParts};
use super::patch::{self, Change, ChangeError};
use crate::recorder::PolicyError;
use crate::{Attributes, Context};

impl PolicyKind for MutatingAdmissionPolicy {
    type Binding = MutatingAdmissionPolicyBinding;
    type Compiled = Vec<Change>;
    const PATCHES: bool = true;

    fn parts(&self) -> PolicyParts<'_> {
        PolicyParts {
            failure_policy: self.spec.failure_policy.as_ref(),
            param_kind: self.spec.param_kind.as_ref(),
            constraints: self.spec.match_constraints.as_ref(),
            conditions: &self.spec.match_conditions,
            variables: &self.spec.variables,
        }
    }

    fn binding(binding: &MutatingAdmissionPolicyBinding) -> BindingParts<'_> {
        let spec = &binding.spec;
        BindingParts {
            policy: &spec.policy_name,
            param_ref: spec.param_ref.as_ref(),
            resources: spec.match_resources.as_ref(),
        }
    }

    fn compile(&self, composition: &Composition) -> Vec<Change> {
        let env = composition.environment();
        let change = |own: &Mutation| match (&own.apply_configuration, &own.json_patch) {
            (Some(merged), _) => Change::Merge(Compiled::new(env, &merged.expression, Wanted::Object)),
            (None, Some(patch)) => Change::Patch(Compiled::new(env, &patch.expression, Wanted::Patch)),
            (None, None) => Change::Nothing,
        };
        self.spec.mutations.iter().map(change).collect()
    }
}

/// What a change came to.
pub(crate) enum Changed {
    /// The object that takes the place of the former one.
    To(Box<dyn Object>),
    /// The object stays as it is.
    Nothing,
    /// It could not be made.
    Failed { message: String, error: PolicyError },
    /// The request ends, whatever the policy says of failures.
    Ends(api_machinery::status::ApiError),
}

/// Makes one change of an object, which is the one that `facts` show.
pub(crate) fn change(
    cx: &Context,
    attributes: &Attributes,
    policy: &Policy<MutatingAdmissionPolicy>,
    change: &Change,
    (object, facts): (&dyn Object, &Facts<'_>),
    params: Option<&dyn Object>,
) -> Changed {
    let (Change::Merge(expression) | Change::Patch(expression)) = change else { return Changed::Nothing };
    let scene = Scene::new(facts, params.map_or(Value::Null, Value::of_object), Some(&policy.composition));
    let value = match evaluate(expression, &scene, &mut Budget::of(MUTATION)) {
        Ok(Ok(value)) => value,
        Ok(Err(error)) => return Changed::Failed { message: error.to_string(), error: super::kind_of(&error) },
        Err(out) => return Changed::Failed { message: out.to_string(), error: PolicyError::OutOfBudget },
    };
    let made = match change {
        Change::Merge(_) => patch::by_merge(cx, attributes, object, &value).map(Some),
        _ => patch::by_operations(cx, object, &value),
    };
    match made {
        Ok(Some(object)) => Changed::To(object),
        Ok(None) => Changed::Nothing,
        Err(ChangeError::Object(error)) => Changed::Ends(error),
        Err(error) => Changed::Failed { message: error.to_string(), error: PolicyError::Invalid },
    }
}
