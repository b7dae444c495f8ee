//! Answering access reviews: the attributes they describe, put to the authorizers.

use std::sync::Arc;

use api_machinery::fields::FieldSelector;
use api_machinery::labels::{Operator, Selector};
use api_types::authentication_v1::UserInfo;
use api_types::authorization_v1::{
    FieldSelectorAttributes, LabelSelectorAttributes, NonResourceAttributes, ResourceAttributes,
    SubjectAccessReviewStatus,
};
use authz::{Attributes, Authorizer, Decision, SelectorRequirement};
use cel::kubernetes::authorizer::Question;

/// Requirements, and whether some or all of a selector could not be used.
type Parsed = (Vec<SelectorRequirement>, bool);

/// Decides; the review has passed its rules.
pub(super) async fn evaluate(
    authorizer: &dyn Authorizer,
    user: Arc<UserInfo>,
    resource: Option<&ResourceAttributes>,
    path: Option<&NonResourceAttributes>,
) -> SubjectAccessReviewStatus {
    let mut problems = Vec::new();
    let attributes = match (resource, path) {
        (Some(resource), _) => of_resource(user, resource, &mut problems),
        (None, path) => {
            let path = path.cloned().unwrap_or_default();
            Attributes { user, verb: path.verb, path: path.path, ..Attributes::default() }
        }
    };
    let outcome = authorizer.authorize(&attributes).await;
    problems.splice(0..0, outcome.error);
    SubjectAccessReviewStatus {
        allowed: outcome.decision == Decision::Allow,
        denied: outcome.decision == Decision::Deny,
        reason: outcome.reason,
        evaluation_error: problems.join("; "),
    }
}

/// Decides about a question of an expression: of the user, or of the service account that it names.
pub(crate) async fn decide(
    authorizer: &dyn Authorizer,
    user: &Arc<UserInfo>,
    question: &Question,
) -> SubjectAccessReviewStatus {
    let user = match &question.service_account {
        Some((namespace, name)) => service_account(namespace, name).into(),
        None => Arc::clone(user),
    };
    if question.resource.is_empty() {
        let path = NonResourceAttributes { path: question.path.clone(), verb: question.verb.clone() };
        return evaluate(authorizer, user, None, Some(&path)).await;
    }
    let given = |raw: &String| (!raw.is_empty()).then(|| raw.clone());
    let fields = given(&question.field_selector);
    let labels = given(&question.label_selector);
    let resource = ResourceAttributes {
        verb: question.verb.clone(),
        group: question.group.clone(),
        resource: question.resource.clone(),
        subresource: question.subresource.clone(),
        namespace: question.namespace.clone(),
        name: question.name.clone(),
        field_selector: fields.map(|raw_selector| FieldSelectorAttributes { raw_selector, ..Default::default() }),
        label_selector: labels.map(|raw_selector| LabelSelectorAttributes { raw_selector, ..Default::default() }),
        ..ResourceAttributes::default()
    };
    evaluate(authorizer, user, Some(&resource), None).await
}

/// A service account as a user, with the groups that all have.
fn service_account(namespace: &str, name: &str) -> UserInfo {
    let mut groups = Vec::from(authn::service_account::group_names(namespace));
    groups.push(authn::AUTHENTICATED.to_owned());
    UserInfo { username: authn::service_account::username(namespace, name), groups, ..UserInfo::default() }
}

fn of_resource(user: Arc<UserInfo>, resource: &ResourceAttributes, problems: &mut Vec<String>) -> Attributes {
    let mut use_selector = |name: &str, (requirements, failed): Parsed| {
        if failed {
            let how = if requirements.is_empty() { "ignored" } else { "partially ignored" };
            problems.push(format!("spec.resourceAttributes.{name} {how} due to parse error"));
        }
        requirements
    };
    let fields = resource.field_selector.as_ref().map(fields).unwrap_or_default();
    let field_selector = use_selector("fieldSelector", fields);
    let labels = resource.label_selector.as_ref().map(labels).unwrap_or_default();
    let label_selector = use_selector("labelSelector", labels);
    Attributes {
        user,
        verb: resource.verb.clone(),
        resource_request: true,
        namespace: resource.namespace.clone(),
        group: resource.group.clone(),
        version: if resource.version.is_empty() { "*".to_owned() } else { resource.version.clone() },
        resource: resource.resource.clone(),
        subresource: resource.subresource.clone(),
        name: resource.name.clone(),
        path: String::new(),
        field_selector,
        label_selector,
    }
}

fn fields(selector: &FieldSelectorAttributes) -> Parsed {
    if !selector.raw_selector.is_empty() {
        let Ok(parsed) = FieldSelector::parse(&selector.raw_selector) else { return (Vec::new(), true) };
        let terms = parsed.terms().iter().map(|term| SelectorRequirement {
            key: term.field.clone(),
            operator: if term.equal { "In" } else { "NotIn" }.to_owned(),
            values: vec![term.value.clone()],
        });
        return (terms.collect(), false);
    }
    let usable = |operator: &str, values: &[String]| matches!(operator, "In" | "NotIn") && values.len() == 1;
    let good = selector.requirements.iter().filter(|own| usable(&own.operator, &own.values));
    let good: Vec<SelectorRequirement> = good
        .map(|own| SelectorRequirement {
            key: own.key.clone(),
            operator: own.operator.clone(),
            values: own.values.clone(),
        })
        .collect();
    let failed = good.len() != selector.requirements.len();
    (good, failed)
}

fn labels(selector: &LabelSelectorAttributes) -> Parsed {
    if !selector.raw_selector.is_empty() {
        let Ok(parsed) = Selector::parse(&selector.raw_selector) else { return (Vec::new(), true) };
        let requirements = parsed.requirements().iter().filter_map(|requirement| {
            let operator = match requirement.operator() {
                Operator::In | Operator::Equals | Operator::DoubleEquals => "In",
                Operator::NotIn | Operator::NotEquals => "NotIn",
                Operator::Exists => "Exists",
                Operator::DoesNotExist => "DoesNotExist",
                Operator::GreaterThan | Operator::LessThan => return None,
            };
            let (key, values) = (requirement.key().to_owned(), requirement.values().to_vec());
            Some(SelectorRequirement { key, operator: operator.to_owned(), values })
        });
        return (requirements.collect(), false);
    }
    let known = |operator: &str| matches!(operator, "In" | "NotIn" | "Exists" | "DoesNotExist");
    let good = selector.requirements.iter().filter(|own| known(&own.operator));
    let good: Vec<SelectorRequirement> = good
        .map(|own| SelectorRequirement {
            key: own.key.clone(),
            operator: own.operator.clone(),
            values: own.values.clone(),
        })
        .collect();
    let failed = good.len() != selector.requirements.len();
    (good, failed)
}

#[cfg(test)]
mod tests {
    use authz::{Outcome, RuleSet};

    use super::*;

    /// Allows everything and says what it was asked.
    struct Echo;

    #[async_trait::async_trait]
    impl Authorizer for Echo {
        async fn authorize(&self, attributes: &Attributes) -> Outcome {
            Outcome::allow(format!("{} {} {}", attributes.verb, attributes.version, attributes.field_selector.len()))
        }
        fn rules_for(&self, _: &UserInfo, _: &str) -> RuleSet {
            RuleSet::default()
        }
    }

    #[tokio::test]
    async fn selectors_that_cannot_be_read_are_ignored_aloud() {
        let with = |raw: &str| ResourceAttributes {
            verb: "list".into(),
            field_selector: Some(FieldSelectorAttributes { raw_selector: raw.into(), ..Default::default() }),
            ..ResourceAttributes::default()
        };
        let good = evaluate(&Echo, Arc::default(), Some(&with("a=b")), None).await;
        assert_eq!((good.allowed, good.reason.as_str(), good.evaluation_error.as_str()), (true, "list * 1", ""));
        let bad = evaluate(&Echo, Arc::default(), Some(&with("a")), None).await;
        assert_eq!(bad.reason, "list * 0");
        assert_eq!(bad.evaluation_error, "spec.resourceAttributes.fieldSelector ignored due to parse error");
    }
}
