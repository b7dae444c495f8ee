//! Choosing a context and making a client configuration of it, with upstream's checks and texts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use component_base::logging::Redacted;

use super::{Cluster, Context, Kubeconfig, User};
use crate::config::{CertSource, ClientConfig, ConfigError, Credentials, Impersonation, Trust, system_text};
use crate::exec::{self, ExecPlugin};

/// What the command line says in place of the files.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// The context to use instead of the current one; empty for the current one.
    pub context: String,
    /// The server to use instead of the cluster's; empty for the cluster's.
    pub server: String,
    /// The namespace to use instead of the context's; empty for the context's.
    pub namespace: String,
}

/// What is said where no file names a server.
const NO_CONFIGURATION: &str = "no configuration has been provided, try setting KUBERNETES_MASTER environment variable";
/// What is said of a cluster of which nothing is known.
const NO_SERVER: &str = "cluster has no server defined";
const PROXY_SCHEMES: [&str; 3] = ["http", "https", "socks5"];

impl ClientConfig {
    /// What components do with `--kubeconfig` and `--master`: the file if one is named; in-cluster configuration if neither
    /// is given, or they name no server.
    ///
    /// # Errors
    /// When the file or what the pod provides cannot be used.
    pub fn load(kubeconfig: &str, master: &str) -> Result<Self, ConfigError> {
        if kubeconfig.is_empty() && master.is_empty() {
            tracing::warn!(
                "Neither --kubeconfig nor --master was specified. Using the inClusterConfig. This might not work."
            );
        }
        let overrides = Overrides { server: master.to_owned(), ..Overrides::default() };
        let file = if kubeconfig.is_empty() { Kubeconfig::default() } else { Kubeconfig::read(kubeconfig)? };
        match Self::from_kubeconfig(&file, &overrides) {
            Err(error) if names_no_server(&error) => Self::in_cluster().map_err(|cause| {
                tracing::warn!(error = %cause, "error creating inClusterConfig, falling back to default config");
                error
            }),
            outcome => outcome,
        }
    }

    /// What a file says, for its current context.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn from_kubeconfig_file(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Self::from_kubeconfig(&Kubeconfig::read(path)?, &Overrides::default())
    }

    /// What a merged file says. A user that a context names and the file does not know is nobody, as upstream has it.
    ///
    /// # Errors
    /// When the context does not exist or has no server, or an entry says something impossible.
    pub fn from_kubeconfig(file: &Kubeconfig, overrides: &Overrides) -> Result<Self, ConfigError> {
        let context = context(file, overrides)?;
        let cluster = cluster(file, &context.cluster, overrides);
        let user = file.users.iter().find(|item| item.name == context.user).map(|item| item.user.clone());
        let user = user.unwrap_or_default();
        check(file, &context, &user, cluster.as_ref())?;
        let cluster = cluster.unwrap_or_default();
        let mut config = Self::for_server(cluster.server.clone());
        config.server_name.clone_from(&cluster.tls_server_name);
        config.proxy_url = Redacted::new(cluster.proxy_url.clone());
        config.trust = trust(&cluster);
        config.impersonate = Impersonation {
            user: user.impersonate.clone(),
            uid: user.impersonate_uid.clone(),
            groups: user.impersonate_groups.clone(),
            extra: user.impersonate_user_extra.clone(),
        };
        config.namespace = [&overrides.namespace, &context.namespace]
            .into_iter()
            .find(|namespace| !namespace.is_empty())
            .map_or_else(|| "default".to_owned(), Clone::clone);
        // Credentials never travel in clear text.
        if config.endpoint()?.secure {
            config.identity = identity(&context.user, &user)?;
            config.credentials = credentials(&user, &cluster)?;
        }
        Ok(config)
    }
}

/// Whether there is no configuration, so that another may take its place.
fn names_no_server(error: &ConfigError) -> bool {
    matches!(error, ConfigError::Invalid(problems) if problems.as_slice() == [NO_CONFIGURATION])
}

/// The chosen context; an empty one where none is chosen, or the file's own choice is not there.
fn context(file: &Kubeconfig, overrides: &Overrides) -> Result<Context, ConfigError> {
    let is_asked_for = !overrides.context.is_empty();
    let name = if is_asked_for { &overrides.context } else { &file.current_context };
    match file.contexts.iter().find(|item| item.name == *name) {
        Some(item) => Ok(item.context.clone()),
        None if is_asked_for => Err(ConfigError::Missing(format!("context \"{name}\" does not exist"))),
        None => Ok(Context::default()),
    }
}

/// The cluster with what stands in its place; nothing where neither file nor command line knows one.
fn cluster(file: &Kubeconfig, name: &str, overrides: &Overrides) -> Option<Cluster> {
    let known = file.clusters.iter().find(|item| item.name == name).map(|item| item.cluster.clone());
    if overrides.server.is_empty() {
        return known;
    }
    Some(Cluster { server: overrides.server.clone(), tls_server_name: String::new(), ..known.unwrap_or_default() })
}

/// All that is wrong, in upstream's order.
fn check(file: &Kubeconfig, context: &Context, user: &User, cluster: Option<&Cluster>) -> Result<(), ConfigError> {
    let (mut problems, current) = (Vec::new(), &file.current_context);
    if !current.is_empty() && !file.contexts.iter().any(|item| item.name == *current) {
        problems.push(format!("context was not found for specified context: {current}"));
    }
    problems.extend(user_problems(&context.user, user));
    match cluster {
        Some(cluster) => problems.extend(cluster_problems(&context.cluster, cluster)),
        None if problems.is_empty() => problems.push(NO_CONFIGURATION.to_owned()),
        None => problems.push(NO_SERVER.to_owned()),
    }
    if problems.is_empty() { Ok(()) } else { Err(ConfigError::Invalid(problems)) }
}

fn cluster_problems(name: &str, cluster: &Cluster) -> Vec<String> {
    let mut problems = Vec::new();
    if cluster.server.is_empty() {
        problems.push(if name.is_empty() {
            "default cluster has no server defined".to_owned()
        } else {
            format!("no server found for cluster \"{name}\"")
        });
    }
    if let Some(why) = proxy_problem(&cluster.proxy_url) {
        problems.push(format!("invalid 'proxy-url' {:?} for cluster \"{name}\": {why}", cluster.proxy_url));
    }
    let file = &cluster.certificate_authority;
    let has_ca = !file.is_empty() || !cluster.certificate_authority_data.is_empty();
    if cluster.insecure_skip_tls_verify && has_ca {
        problems.push("specifying a root certificates file with the insecure flag is not allowed".to_owned());
    }
    if !file.is_empty() && !cluster.certificate_authority_data.is_empty() {
        problems.push(format!(
            "certificate-authority-data and certificate-authority are both specified for {name}. \
             certificate-authority-data will override."
        ));
    }
    problems.extend(unreadable("certificate-authority", file, name));
    problems
}

fn proxy_problem(url: &str) -> Option<String> {
    if url.is_empty() {
        return None;
    }
    let Ok(parsed) = url.parse::<http::Uri>() else { return Some(format!("could not parse: {url}")) };
    let scheme = parsed.scheme_str().unwrap_or_default();
    let is_known = PROXY_SCHEMES.contains(&scheme);
    (!is_known).then(|| format!("unsupported scheme \"{scheme}\", must be http, https, or socks5"))
}

/// What is wrong with a file, if one is named.
fn unreadable(what: &str, file: &str, of: &str) -> Option<String> {
    let error = std::fs::File::open(file).err().filter(|_| !file.is_empty())?;
    Some(format!("unable to read {what} {file} for {of} due to open {file}: {}", system_text(&error)))
}

fn user_problems(name: &str, user: &User) -> Vec<String> {
    let mut problems = certificate_problems(name, user);
    problems.extend(exec::problems(name, user));
    if !user.token.is_empty() && has_password(user) {
        problems.push(format!(
            "more than one authentication method found for {name}; found [token basicAuth], only one is allowed"
        ));
    }
    let acts_with_more = !user.impersonate_uid.is_empty()
        || !user.impersonate_groups.is_empty()
        || !user.impersonate_user_extra.is_empty();
    if acts_with_more && user.impersonate.is_empty() {
        problems.push(format!("requesting uid, groups or user-extra for {name} without impersonating a user"));
    }
    problems
}

/// Whether there is something for basic authentication.
fn has_password(user: &User) -> bool {
    !user.username.is_empty() || !user.password.is_empty()
}

/// What is wrong with the client certificate; a key alone is none.
fn certificate_problems(name: &str, user: &User) -> Vec<String> {
    let (cert, key) = (&user.client_certificate, &user.client_key);
    let (has_cert_data, has_key_data) = (!user.client_certificate_data.is_empty(), !user.client_key_data.is_empty());
    let mut problems = Vec::new();
    if cert.is_empty() && !has_cert_data {
        return problems;
    }
    if !cert.is_empty() && has_cert_data {
        problems.push(format!(
            "client-cert-data and client-cert are both specified for {name}. client-cert-data will override."
        ));
    }
    if !key.is_empty() && has_key_data {
        problems.push(format!(
            "client-key-data and client-key are both specified for {name}; client-key-data will override"
        ));
    }
    if key.is_empty() && !has_key_data {
        problems.push(format!(
            "client-key-data or client-key must be specified for {name} to use the clientCert authentication method."
        ));
    }
    problems.extend(unreadable("client-cert", cert, name));
    problems.extend(unreadable("client-key", key, name));
    problems
}

fn trust(cluster: &Cluster) -> Trust {
    if cluster.insecure_skip_tls_verify {
        Trust::Insecure
    } else if !cluster.certificate_authority_data.is_empty() {
        Trust::Pem(cluster.certificate_authority_data.to_vec())
    } else if !cluster.certificate_authority.is_empty() {
        Trust::File(PathBuf::from(&cluster.certificate_authority))
    } else {
        Trust::System
    }
}

fn identity(name: &str, user: &User) -> Result<CertSource, ConfigError> {
    let (cert, key) = (&user.client_certificate_data, &user.client_key_data);
    if cert.is_empty() && user.client_certificate.is_empty() {
        return Ok(CertSource::None);
    }
    if cert.is_empty() && key.is_empty() {
        return Ok(CertSource::Files { cert: (&user.client_certificate).into(), key: (&user.client_key).into() });
    }
    let read = |what: &str, file: &str, data: &[u8]| {
        if !data.is_empty() {
            return Ok(data.to_vec());
        }
        std::fs::read(file).map_err(|error| {
            ConfigError::Invalid(vec![format!(
                "unable to read {what} {file} for {name} due to {}",
                system_text(&error)
            )])
        })
    };
    Ok(CertSource::Pem {
        cert: read("client-cert", &user.client_certificate, cert)?,
        key: read("client-key", &user.client_key, key)?,
    })
}

/// What the user is known by. A token file is followed; the token beside it is used until it can be read, and without one
/// it must be there. A plugin is asked where the file says nothing else.
fn credentials(user: &User, cluster: &Cluster) -> Result<Credentials, ConfigError> {
    let plugin = user.exec.as_ref().map(|exec| ExecPlugin::new(exec, cluster)).transpose()?;
    if let Some(provider) = &user.auth_provider {
        return Err(ConfigError::AuthProvider(provider.name.clone()));
    }
    let path = PathBuf::from(&user.token_file);
    Ok(if !user.token_file.is_empty() {
        if user.token.is_empty() {
            std::fs::File::open(&path).map_err(|source| ConfigError::Token { path: path.clone(), source })?;
        }
        Credentials::TokenFile { path, first: user.token.clone() }
    } else if !user.token.is_empty() {
        Credentials::Token(user.token.clone())
    } else if has_password(user) {
        Credentials::Basic { username: user.username.clone(), password: user.password.clone() }
    } else {
        plugin.map_or(Credentials::None, |plugin| Credentials::Plugin(Arc::new(plugin)))
    })
}
