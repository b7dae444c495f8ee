//! What authorizers may know of a request.

use std::sync::Arc;

use api_machinery::fields::FieldSelector;
use api_machinery::labels::{Operator, Selector};
use api_types::authentication_v1::UserInfo;
use authz::{Attributes, SelectorRequirement};

use crate::request::RequestInfo;

/// The attributes of a request that a user makes.
pub(crate) fn attributes(user: &Arc<UserInfo>, info: &RequestInfo) -> Attributes {
    Attributes {
        user: Arc::clone(user),
        verb: info.verb.clone(),
        resource_request: info.is_resource,
        namespace: info.namespace.clone(),
        group: info.group.clone(),
        version: info.version.clone(),
        resource: info.resource.clone(),
        subresource: info.subresource.clone(),
        name: info.name.clone(),
        path: info.path.clone(),
        field_selector: field_requirements(&info.field_selector),
        label_selector: label_requirements(&info.label_selector),
    }
}

/// A selector that cannot be read narrows nothing; the handler refuses it.
fn field_requirements(text: &str) -> Vec<SelectorRequirement> {
    let Ok(selector) = FieldSelector::parse(text) else { return Vec::new() };
    let requirement = |term: &api_machinery::fields::Term| SelectorRequirement {
        key: term.field.clone(),
        operator: if term.equal { "In" } else { "NotIn" }.to_owned(),
        values: vec![term.value.clone()],
    };
    selector.terms().iter().map(requirement).collect()
}

fn label_requirements(text: &str) -> Vec<SelectorRequirement> {
    let Ok(selector) = Selector::parse(text) else { return Vec::new() };
    let requirements = selector.requirements().iter().filter_map(|requirement| {
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
    requirements.collect()
}
