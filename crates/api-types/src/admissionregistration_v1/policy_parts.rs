//! What policies of both kinds are made of.

use api_machinery::api;
use api_machinery::meta::LabelSelector;

/// Names the kind of a policy's parameters.
#[api(atomic)]
pub struct ParamKind {
    /// Group and version of the kind.
    #[field(1)]
    pub api_version: String,
    /// The kind.
    #[field(2)]
    pub kind: String,
}

/// Names the parameters that a binding gives to its policy: one by its name, or any number by their labels.
#[api(atomic)]
pub struct ParamRef {
    /// Name of the parameter. Either it or a selector must be set.
    #[field(1)]
    pub name: String,
    /// Namespace of the parameters; that of the request by default. Not for kinds without namespaces.
    #[field(2)]
    pub namespace: String,
    /// Labels of the parameters. The policy is evaluated for each.
    #[field(3)]
    pub selector: Option<LabelSelector>,
    /// What happens where there is no parameter: Allow, so that the binding does not count, or Deny.
    #[field(4, go = "v1.ParameterNotFoundActionType")]
    pub parameter_not_found_action: Option<String>,
}

/// An expression that others can use by a name. It is computed once for each request, where it is used.
#[api(atomic)]
pub struct Variable {
    /// Name, an identifier of the expression language. Expressions use it below `variables`.
    #[field(1, always, required)]
    pub name: String,
    /// Expression of any type. It may use the variables before it.
    #[field(2, always, required)]
    pub expression: String,
}
