//! What is said of a definition beside its names: whether its group is protected and approved of, and whether its
//! schemas are structural. Neither keeps it out of service.

use std::borrow::Cow;
use std::collections::HashMap;

use api_machinery::field_path::Path;
use api_machinery::time::Time;
use api_types::apiextensions_v1::CustomResourceDefinition;
use kinds::apiextensions_v1::approval::Approval;
use kinds::apiextensions_v1::schema_of;
use schema::structural::structure;

use super::conditions;

const CONFORMANT: &str = "KubernetesAPIApprovalPolicyConformant";
const NON_STRUCTURAL: &str = "NonStructuralSchema";

/// What is not structural about the definitions that were looked at, by name. To look takes long, and schemas change with
/// the generation only.
#[derive(Default)]
pub(super) struct Judgements(HashMap<String, Judgement>);

struct Judgement {
    uid: String,
    generation: i64,
    problems: Option<Cow<'static, str>>,
}

impl Judgements {
    /// What is not structural about a definition, if anything.
    pub(super) fn problems_of(&mut self, definition: &CustomResourceDefinition) -> Option<&str> {
        let meta = &definition.metadata;
        let judge = || Judgement {
            uid: meta.uid.clone(),
            generation: meta.generation,
            problems: structural_problems(definition),
        };
        let own = self.0.entry(meta.name.clone()).or_insert_with(judge);
        if own.uid != meta.uid || own.generation != meta.generation {
            *own = judge();
        }
        own.problems.as_deref()
    }

    /// A definition is gone.
    pub(super) fn forget(&mut self, name: &str) {
        self.0.remove(name);
    }
}

/// Sets the conditions; `problems` is what is not structural.
pub(super) fn judge(definition: &mut CustomResourceDefinition, problems: Option<&str>, now: Time) {
    let approval = Approval::of(definition);
    let message = approval.message();
    let reason = match approval {
        Approval::NotNeeded => None,
        Approval::Missing => Some((false, "MissingAnnotation")),
        Approval::Approved(_) => Some((true, "ApprovedAnnotation")),
        Approval::Unapproved(_) => Some((false, "UnapprovedAnnotation")),
        Approval::Invalid(_) => Some((false, "InvalidAnnotation")),
    };
    match reason {
        Some((is_true, reason)) => conditions::set(definition, (CONFORMANT, is_true), (reason, &message), now),
        None => conditions::remove(definition, CONFORMANT),
    }
    match problems {
        Some(problems) => {
            conditions::set(definition, (NON_STRUCTURAL, true), ("Violations", problems), now);
        }
        None => conditions::remove(definition, NON_STRUCTURAL),
    }
}

/// What is not structural: only definitions that came into the store another way can have such.
fn structural_problems(definition: &CustomResourceDefinition) -> Option<Cow<'static, str>> {
    if definition.spec.preserve_unknown_fields {
        return Some("spec.preserveUnknownFields: Invalid value: true: must be false".into());
    }
    let mut problems = Vec::new();
    for (index, version) in definition.spec.versions.iter().enumerate() {
        if version.schema.is_some() {
            let path = Path::new("spec").child("versions").index(index).child("schema").child("openAPIV3Schema");
            problems.extend(structure::check(&path, &schema_of(version)).all().iter().map(ToString::to_string));
        }
    }
    (!problems.is_empty()).then(|| problems.join(", ").into())
}

#[cfg(test)]
mod tests {
    use kinds::apiextensions_v1::approval::APPROVED;

    use super::*;

    #[test]
    fn groups_of_the_community_need_approval() {
        for (group, annotation, expected) in [
            ("example.com", "", None),
            ("notk8s.io", "", None),
            ("x.k8s.io", "", Some(("False", "MissingAnnotation"))),
            ("k8s.io", "https://example.com/1", Some(("True", "ApprovedAnnotation"))),
            ("x.kubernetes.io", "unapproved, a test", Some(("False", "UnapprovedAnnotation"))),
            ("x.kubernetes.io", "yes", Some(("False", "InvalidAnnotation"))),
        ] {
            let mut definition = CustomResourceDefinition::default();
            definition.spec.group = group.into();
            definition.metadata.annotations.insert(APPROVED.into(), annotation.into());
            judge(&mut definition, None, Time::default());
            let found = definition.status.conditions.iter().find(|own| own.type_ == CONFORMANT);
            let found = found.map(|own| (own.status.as_str(), own.reason.as_str()));
            assert_eq!(found, expected, "{group} {annotation}");
        }
    }

    #[test]
    fn schemas_are_looked_at_again_when_they_may_have_changed() {
        let mut definition = CustomResourceDefinition::default();
        definition.metadata.name = "a".into();
        let mut all = Judgements::default();
        assert_eq!(all.problems_of(&definition), None);
        definition.spec.preserve_unknown_fields = true;
        assert_eq!(all.problems_of(&definition), None, "of the same generation");
        definition.metadata.generation = 1;
        assert!(all.problems_of(&definition).is_some());
        definition.spec.preserve_unknown_fields = false;
        definition.metadata.uid = "another".into();
        assert_eq!(all.problems_of(&definition), None);
        definition.spec.preserve_unknown_fields = true;
        all.forget("a");
        assert!(all.problems_of(&definition).is_some());
    }
}
