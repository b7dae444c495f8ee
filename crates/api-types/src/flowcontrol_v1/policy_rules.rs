//! The rules of a flow schema: who asks for what.

use api_machinery::api;

/// Matches requests of some subjects for some resources or paths.
#[api]
pub struct PolicyRulesWithSubjects {
    /// Who sends the request; at least one.
    #[field(1, always, required, atomic)]
    pub subjects: Vec<Subject>,
    /// Resource requests that match.
    #[field(2, atomic)]
    pub resource_rules: Vec<ResourcePolicyRule>,
    /// Requests for other paths that match.
    #[field(3, atomic)]
    pub non_resource_rules: Vec<NonResourcePolicyRule>,
}

/// Matches who sends a request.
#[api(union(discriminator = "kind", user = "User", group = "Group", serviceAccount = "ServiceAccount"))]
pub struct Subject {
    /// User, Group or ServiceAccount.
    #[field(1, always, required, go = "v1.SubjectKind")]
    pub kind: String,
    /// A user, by name.
    #[field(2)]
    pub user: Option<UserSubject>,
    /// A group, by name.
    #[field(3)]
    pub group: Option<GroupSubject>,
    /// Service accounts.
    #[field(4)]
    pub service_account: Option<ServiceAccountSubject>,
}

/// Matches a user.
#[api]
pub struct UserSubject {
    /// Name of the user. The value * matches all.
    #[field(1, always, required)]
    pub name: String,
}

/// Matches the members of a group.
#[api]
pub struct GroupSubject {
    /// Name of the group. The value * matches all.
    #[field(1, always, required)]
    pub name: String,
}

/// Matches service accounts.
#[api]
pub struct ServiceAccountSubject {
    /// Namespace of the accounts.
    #[field(1, always, required)]
    pub namespace: String,
    /// Name of the account. The value * matches all of the namespace.
    #[field(2, always, required)]
    pub name: String,
}

/// Matches resource requests.
#[api]
pub struct ResourcePolicyRule {
    /// Verbs that match. The value * matches all, and stands alone.
    #[field(1, always, required, set)]
    pub verbs: Vec<String>,
    /// API groups that match. The value * matches all, and stands alone.
    #[field(2, always, required, set)]
    pub api_groups: Vec<String>,
    /// Resources that match, with subresources as pods/log. The value * matches all, and stands alone.
    #[field(3, always, required, set)]
    pub resources: Vec<String>,
    /// Whether requests without a namespace match.
    #[field(4)]
    pub cluster_scope: bool,
    /// Namespaces that match. The value * matches all, and stands alone.
    #[field(5, always, set)]
    pub namespaces: Vec<String>,
}

/// Matches requests for paths that are no resources.
#[api]
pub struct NonResourcePolicyRule {
    /// Verbs that match. The value * matches all, and stands alone.
    #[field(1, always, required, set)]
    pub verbs: Vec<String>,
    /// Paths that match, with /* allowed at the end. The value * matches all, and stands alone.
    #[field(6, always, required, set, name = "nonResourceURLs")]
    pub non_resource_urls: Vec<String>,
}
