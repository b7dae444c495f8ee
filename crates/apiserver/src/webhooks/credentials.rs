//! Who the server is to webhooks: the `users` of a kubeconfig file, chosen by the webhook's host.

use std::path::Path;

use client::{
    ClientConfig, Cluster, Context, Kubeconfig, NamedCluster, NamedContext, NamedUser, Overrides, Trust, User,
};

/// The users of a file; without one the server is nobody.
#[derive(Debug, Clone, Default)]
pub(crate) struct WebhookCredentials(Option<Kubeconfig>);

impl WebhookCredentials {
    /// Reads a file; nothing for no credentials.
    ///
    /// # Errors
    /// When it cannot be used.
    pub(crate) fn read(file: Option<&Path>) -> Result<Self, String> {
        let Some(file) = file else { return Ok(Self::default()) };
        Kubeconfig::read(file).map(|own| Self(Some(own))).map_err(|error| error.to_string())
    }

    /// The configuration of a client with the credentials for its host. Of the former one the server counts, and whose
    /// certificates are trusted.
    ///
    /// # Errors
    /// When the entry for the host cannot be used.
    pub(super) fn apply(&self, config: ClientConfig, host: &str, port: u16) -> Result<ClientConfig, String> {
        let Some(user) = self.user(host, port) else { return Ok(config) };
        if user.auth_provider.is_some() {
            return Err("auth provider not supported".to_owned());
        }
        let named = || "webhook".to_owned();
        let mut cluster = Cluster { server: config.server, ..Cluster::default() };
        if let Trust::Pem(pem) = config.trust {
            cluster.certificate_authority_data = pem.into();
        }
        let file = Kubeconfig {
            clusters: vec![NamedCluster { name: named(), cluster }],
            users: vec![NamedUser { name: named(), user: user.clone() }],
            contexts: vec![NamedContext {
                name: named(),
                context: Context { cluster: named(), user: named(), ..Context::default() },
            }],
            current_context: named(),
            ..Kubeconfig::default()
        };
        ClientConfig::from_kubeconfig(&file, &Overrides::default()).map_err(|error| error.to_string())
    }

    /// The user for a host: by its name, by wildcards for more and more of it, for any host, or the current one.
    fn user(&self, host: &str, port: u16) -> Option<&User> {
        let file = self.0.as_ref()?;
        let named = |name: &str| file.users.iter().find(|own| own.name == name).map(|own| &own.user);
        let current = || {
            let context = file.contexts.iter().find(|own| own.name == file.current_context)?;
            named(&context.context.user)
        };
        let with_port = names(host, &format!(":{port}"));
        let without_port = if port == 443 { names(host, "") } else { Vec::new() };
        let mut names = with_port.iter().chain(&without_port);
        names.find_map(|name| named(name)).or_else(|| named("*")).or_else(current)
    }
}

/// The host, then wildcards in the place of more and more of its first labels.
fn names(host: &str, port: &str) -> Vec<String> {
    let mut all = vec![format!("{host}{port}")];
    let mut rest = host;
    while let Some((_, behind)) = rest.split_once('.') {
        all.push(format!("*.{behind}{port}"));
        rest = behind;
    }
    all
}

#[cfg(test)]
mod tests {
    use client::Credentials;

    use super::*;

    #[test]
    fn users_are_chosen_by_host() {
        let file = |names: &[&str]| {
            let user = |name: &&str| NamedUser {
                name: (*name).to_owned(),
                user: User { token: format!("for {name}"), ..User::default() },
            };
            let context = Context { user: "me".into(), ..Context::default() };
            WebhookCredentials(Some(Kubeconfig {
                users: names.iter().map(user).collect(),
                contexts: vec![NamedContext { name: "c".into(), context }],
                current_context: "c".into(),
                ..Kubeconfig::default()
            }))
        };
        let host = "w.n.svc";
        for (names, port, expected) in [
            (&["w.n.svc:8443", "*.n.svc:8443", "*"][..], 8443, "w.n.svc:8443"),
            (&["*.svc:8443", "*.n.svc:8443", "*"], 8443, "*.n.svc:8443"),
            (&["w.n.svc", "*"], 8443, "*"),
            (&["w.n.svc", "*"], 443, "w.n.svc"),
            (&["*.svc", "*"], 443, "*.svc"),
            (&["me"], 443, "me"),
            (&["me", "*"], 443, "*"),
        ] {
            let found = file(names).user(host, port).map(|user| user.token.clone());
            assert_eq!(found, Some(format!("for {expected}")), "{names:?} {port}");
        }
        assert!(file(&["other"]).user(host, 443).is_none());
        assert!(WebhookCredentials::default().user(host, 443).is_none());
    }

    /// The configuration for a host whose user is this.
    fn applied(user: &str) -> Result<ClientConfig, String> {
        let own = Kubeconfig::parse(&format!("users: [{{name: '*', user: {user}}}]")).expect("a file");
        let trust = Trust::Pem(b"CA".to_vec());
        let config = ClientConfig { trust, ..ClientConfig::for_server("https://h:1") };
        WebhookCredentials(Some(own)).apply(config, "h", 1)
    }

    #[test]
    fn credentials_go_into_the_configuration() {
        let config = applied("{token: t}").expect("a configuration");
        assert_eq!((config.server.as_str(), config.trust), ("https://h:1", Trust::Pem(b"CA".to_vec())));
        assert_eq!(config.credentials, Credentials::Token("t".into()));
        let exec = "{exec: {command: c, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}}";
        let config = applied(exec).expect("a configuration");
        assert!(matches!(config.credentials, Credentials::Plugin(_)), "{:?}", config.credentials);
        let refused = applied("{auth-provider: {name: oidc}}").expect_err("a refusal");
        assert_eq!(refused, "auth provider not supported");
    }
}
