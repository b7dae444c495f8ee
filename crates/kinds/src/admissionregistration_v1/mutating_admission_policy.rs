//! MutatingAdmissionPolicy of admissionregistration.k8s.io: its names, and its rules.

use admission_cel::{Scope, Wanted};
use api_machinery::field_path::{ErrorList, Path};
use api_types::admissionregistration_v1::constants::{patch_type, reinvocation_policy_type};
use api_types::admissionregistration_v1::{MutatingAdmissionPolicy, MutatingAdmissionPolicySpec, Mutation};
use feature_gates::MinorVersion;

use super::expressions::{self, ExpressionRole, Expressions, Stored};
use super::{match_conditions, policy_parts};
use crate::field_rules;
use crate::info::{ResourceInfo, StorageInfo};
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::table::{self, Cell};

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<MutatingAdmissionPolicy>("mutatingadmissionpolicies", "LYmCf+UMVdg=")),
    categories: &["api-extensions"],
    introduced: MinorVersion::one(34),
    ..ResourceInfo::of::<MutatingAdmissionPolicy>()
};

/// The rules of the kind.
pub(crate) struct MutatingAdmissionPolicyRules;

impl TypedRules for MutatingAdmissionPolicyRules {
    type Object = MutatingAdmissionPolicy;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<MutatingAdmissionPolicy>] = &[
        Cell::NAME,
        Cell::number("Mutations", |object, _| table::count(&object.spec.mutations).into()),
        Cell::text("ParamKind", |object, _| policy_parts::shown_kind(object.spec.param_kind.as_ref()).into()),
        Cell::AGE,
    ];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Create];
    const STRATEGY: Strategy = Strategy::Generation;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn validate(cx: &RuleContext, object: &MutatingAdmissionPolicy) -> ErrorList {
        let mut errors = super::name_errors(cx, &object.metadata.name);
        errors.extend(validate(&object.spec, None));
        errors
    }

    fn validate_update(
        _: &RuleContext,
        _: Endpoint,
        object: &MutatingAdmissionPolicy,
        old: &MutatingAdmissionPolicy,
    ) -> ErrorList {
        validate(&object.spec, Some(&old.spec))
    }

    fn warnings(object: &MutatingAdmissionPolicy, _: Option<&MutatingAdmissionPolicy>) -> Vec<String> {
        super::name_warnings(&object.metadata.name)
    }
}

fn expression(mutation: &Mutation) -> Option<&str> {
    let merged = mutation.apply_configuration.as_ref().map(|own| own.expression.as_str());
    merged.or_else(|| mutation.json_patch.as_ref().map(|own| own.expression.as_str()))
}

fn stored(spec: &MutatingAdmissionPolicySpec) -> Stored<'_> {
    let conditions = expressions::of_conditions(&spec.match_conditions);
    let variables = spec.variables.iter().map(|own| (ExpressionRole::Variable, own.expression.as_str()));
    let mutations = spec.mutations.iter().filter_map(expression).map(|source| (ExpressionRole::Mutation, source));
    conditions.chain(variables).chain(mutations).collect()
}

fn validate(spec: &MutatingAdmissionPolicySpec, old: Option<&MutatingAdmissionPolicySpec>) -> ErrorList {
    let (path, mut errors) = (Path::new("spec"), ErrorList::new());
    let (failure, kind, constraints) =
        (spec.failure_policy.as_ref(), spec.param_kind.as_ref(), spec.match_constraints.as_ref());
    policy_parts::validate_policy(&path, failure, kind, constraints, &mut errors);
    policy_parts::validate_mutable(&path.child("matchConstraints"), constraints, &mut errors);
    let scope = Scope { params: kind.is_some(), authorizer: true, patches: true };
    let mut expressions = Expressions::new(scope, old.map(stored).unwrap_or_default());
    let unchanged =
        old.is_some_and(|old| old.param_kind == spec.param_kind && old.match_conditions == spec.match_conditions);
    if !unchanged {
        let (at, scope) = (path.child("matchConditions"), Scope { patches: false, ..scope });
        match_conditions::validate(&at, &spec.match_conditions, scope, expressions.stored(), &mut errors);
    }
    expressions.variables(&path.child("variables"), &spec.variables, &mut errors);
    let at = path.child("mutations");
    if spec.mutations.is_empty() {
        errors.push(at.required("mutations must contain at least one item"));
    }
    for (index, mutation) in spec.mutations.iter().enumerate() {
        validate_mutation(&at.index(index), mutation, &expressions, &mut errors);
    }
    let at = path.child("reinvocationPolicy");
    field_rules::choice(&at, &spec.reinvocation_policy, reinvocation_policy_type::ALL, &mut errors);
    errors
}

fn validate_mutation(path: &Path, mutation: &Mutation, expressions: &Expressions<'_>, errors: &mut ErrorList) {
    let at = path.child("patchType");
    if !field_rules::required(&at, &mutation.patch_type, errors) {
        return;
    }
    field_rules::one_of(&at, &mutation.patch_type, patch_type::ALL, errors);
    let merged = mutation.apply_configuration.as_ref().map(|own| own.expression.as_str());
    let patched = mutation.json_patch.as_ref().map(|own| own.expression.as_str());
    let (merging, patching) = (("applyConfiguration", merged), ("jsonPatch", patched));
    let (own, other, wanted) = match mutation.patch_type.as_str() {
        patch_type::APPLY_CONFIGURATION => (merging, patching, Wanted::Object),
        patch_type::JSON_PATCH => (patching, merging, Wanted::Patch),
        _ => return,
    };
    if other.1.is_some() {
        let detail = format!("must not be specified when patchType is {}", mutation.patch_type);
        errors.push(path.child(other.0).invalid(format!("{{{}}}", other.0), detail));
    }
    let at = path.child(own.0);
    match own.1 {
        None => errors.push(at.required(format!("must be specified when patchType is {}", mutation.patch_type))),
        Some(source) => {
            let at = at.child("expression");
            if field_rules::required(&at, source.trim(), errors) {
                expressions.check(&at, ExpressionRole::Mutation, source, wanted, errors);
            }
        }
    }
}
