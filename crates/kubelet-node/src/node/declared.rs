//! Features that a node declares, for those who choose nodes and for pods that come (gate `NodeDeclaredFeatures`,
//! <https://kep.k8s.io/5328>).

use component_base::shared_gates::HOST_NETWORK_USERS;
use node_api::cri::v1::RuntimeFeatures;

/// What a node declares.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeclaredFeatures {
    /// What is the kubelet's alone, in the order of names.
    pub own: Vec<String>,
    /// Whether pods may have users of their own on the host's network (gate `UserNamespacesHostNetworkSupport`), where the
    /// runtime can.
    pub host_network_users: bool,
}

impl DeclaredFeatures {
    /// The names in order, by what the runtime tells of itself.
    #[must_use]
    pub fn with(&self, runtime: Option<&RuntimeFeatures>) -> Vec<String> {
        let can = runtime.is_some_and(|features| features.user_namespaces_host_network);
        let of_runtime = (self.host_network_users && can).then(|| HOST_NETWORK_USERS.name().to_owned());
        let mut names: Vec<String> = self.own.iter().cloned().chain(of_runtime).collect();
        names.sort_unstable();
        names
    }

    /// The names where the runtime has not told of itself yet: nobody is refused for what nobody knows.
    #[must_use]
    pub fn unknown_runtime(&self) -> Vec<String> {
        self.with(Some(&RuntimeFeatures { user_namespaces_host_network: true, ..RuntimeFeatures::default() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_features_need_the_runtime() {
        let can = |user_namespaces_host_network| {
            Some(RuntimeFeatures { user_namespaces_host_network, ..RuntimeFeatures::default() })
        };
        let cases = [
            (false, can(true), &["A", "Z"][..]),
            (true, can(true), &["A", HOST_NETWORK_USERS.name(), "Z"]),
            (true, can(false), &["A", "Z"]),
            (true, None, &["A", "Z"]),
        ];
        for (host_network_users, runtime, expected) in cases {
            let declared = DeclaredFeatures { own: vec!["A".into(), "Z".into()], host_network_users };
            assert_eq!(declared.with(runtime.as_ref()), expected, "{host_network_users} {runtime:?}");
            let unknown = declared.unknown_runtime();
            assert_eq!(unknown.iter().any(|name| name == HOST_NETWORK_USERS.name()), host_network_users);
        }
    }
}
