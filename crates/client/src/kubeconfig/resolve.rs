//! Choosing a context and making a client configuration of it, with upstream's checks and texts.

use std::path::{Path, PathBuf};

use super::{Cluster, Context, Kubeconfig, User};
use crate::config::{CertSource, ClientConfig, ConfigError, Credentials, Impersonation, Trust};

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

impl ClientConfig {
    /// What components do with `--kubeconfig` and `--master`: the file if one is named, in-cluster configuration if
    /// neither is.
    ///
    /// # Errors
    /// When the file or what the pod provides cannot be used.
    pub fn load(kubeconfig: &str, master: &str) -> Result<Self, ConfigError> {
        if kubeconfig.is_empty() && master.is_empty() {
            tracing::warn!(
                "Neither --kubeconfig nor --master was specified. Using the inClusterConfig. This might not work."
            );
            return Self::in_cluster();
        }
        let overrides = Overrides { server: master.to_owned(), ..Overrides::default() };
        if kubeconfig.is_empty() {
            return Self::from_kubeconfig(&Kubeconfig::default(), &overrides);
        }
        Self::from_kubeconfig(&Kubeconfig::read(kubeconfig)?, &overrides)
    }

    /// What a file says, for its current context.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn from_kubeconfig_file(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Self::from_kubeconfig(&Kubeconfig::read(path)?, &Overrides::default())
    }

    /// What a merged file says.
    ///
    /// # Errors
    /// When a name does not exist, or an entry says something impossible.
    pub fn from_kubeconfig(file: &Kubeconfig, overrides: &Overrides) -> Result<Self, ConfigError> {
        let context = context(file, overrides)?;
        let cluster = cluster(file, &context, overrides)?;
        let user = user(file, &context)?;
        let mut problems = cluster_problems(&context.cluster, &cluster);
        problems.extend(user_problems(&context.user, &user));
        if !problems.is_empty() {
            return Err(ConfigError::Invalid(problems));
        }
        let mut config = Self::for_server(cluster.server.clone());
        config.server_name.clone_from(&cluster.tls_server_name);
        config.proxy_url.clone_from(&cluster.proxy_url);
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
            config.credentials = credentials(&user);
        }
        Ok(config)
    }
}

fn context(file: &Kubeconfig, overrides: &Overrides) -> Result<Context, ConfigError> {
    let name = if overrides.context.is_empty() { &file.current_context } else { &overrides.context };
    if name.is_empty() {
        if overrides.server.is_empty() {
            let text = "no configuration has been provided, try setting KUBERNETES_MASTER environment variable";
            let empty = file.clusters.is_empty() && file.users.is_empty() && file.contexts.is_empty();
            return Err(ConfigError::Invalid(vec![if empty { text } else { "no context chosen" }.to_owned()]));
        }
        return Ok(Context::default());
    }
    file.contexts.iter().find(|item| item.name == *name).map(|item| item.context.clone()).ok_or_else(|| {
        ConfigError::Missing(if overrides.context.is_empty() {
            format!("context was not found for specified context: {name}")
        } else {
            format!("context \"{name}\" does not exist")
        })
    })
}

fn cluster(file: &Kubeconfig, context: &Context, overrides: &Overrides) -> Result<Cluster, ConfigError> {
    let mut cluster = match file.clusters.iter().find(|item| item.name == context.cluster) {
        Some(item) => item.cluster.clone(),
        None if context.cluster.is_empty() => Cluster::default(),
        None => return Err(ConfigError::Missing(format!("cluster \"{}\" does not exist", context.cluster))),
    };
    if !overrides.server.is_empty() {
        cluster.server.clone_from(&overrides.server);
        cluster.tls_server_name.clear();
    }
    Ok(cluster)
}

fn user(file: &Kubeconfig, context: &Context) -> Result<User, ConfigError> {
    match file.users.iter().find(|item| item.name == context.user) {
        Some(item) => Ok(item.user.clone()),
        None if context.user.is_empty() => Ok(User::default()),
        None => Err(ConfigError::Missing(format!("auth info \"{}\" does not exist", context.user))),
    }
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
    let has_ca = !cluster.certificate_authority.is_empty() || !cluster.certificate_authority_data.is_empty();
    if cluster.insecure_skip_tls_verify && has_ca {
        problems.push("specifying a root certificates file with the insecure flag is not allowed".to_owned());
    }
    if !cluster.certificate_authority.is_empty() && !cluster.certificate_authority_data.is_empty() {
        problems.push(format!(
            "certificate-authority-data and certificate-authority are both specified for {name}. \
             certificate-authority-data will override."
        ));
    } else if !cluster.certificate_authority.is_empty()
        && let Err(error) = std::fs::File::open(&cluster.certificate_authority)
    {
        let file = &cluster.certificate_authority;
        problems.push(format!("unable to read certificate-authority {file} for {name} due to {error}"));
    }
    problems
}

fn user_problems(name: &str, user: &User) -> Vec<String> {
    let mut problems = certificate_problems(name, user);
    if !user.token.is_empty() && !user.username.is_empty() {
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
    if user.exec.is_some() {
        problems.push(format!("exec authentication plugins are not supported, found one for {name}"));
    }
    if let Some(provider) = &user.auth_provider {
        problems.push(format!("auth provider \"{}\" of {name} is not supported", provider.name));
    }
    problems
}

fn certificate_problems(name: &str, user: &User) -> Vec<String> {
    let mut problems = Vec::new();
    let has_cert = !user.client_certificate.is_empty() || !user.client_certificate_data.is_empty();
    let has_key = !user.client_key.is_empty() || !user.client_key_data.is_empty();
    if !user.client_certificate.is_empty() && !user.client_certificate_data.is_empty() {
        problems.push(format!(
            "client-cert-data and client-cert are both specified for {name}. client-cert-data will override."
        ));
    }
    if !user.client_key.is_empty() && !user.client_key_data.is_empty() {
        problems.push(format!(
            "client-key-data and client-key are both specified for {name}; client-key-data will override"
        ));
    }
    if has_cert && !has_key {
        problems.push(format!(
            "client-key-data or client-key must be specified for {name} to use the clientCert authentication method."
        ));
    }
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
            ConfigError::Invalid(vec![format!("unable to read {what} {file} for {name} due to {error}")])
        })
    };
    Ok(CertSource::Pem {
        cert: read("client-cert", &user.client_certificate, cert)?,
        key: read("client-key", &user.client_key, key)?,
    })
}

/// A token file that cannot be read yet is followed; a token given as text is used where there is no file.
fn credentials(user: &User) -> Credentials {
    if !user.token_file.is_empty() {
        Credentials::TokenFile(PathBuf::from(&user.token_file))
    } else if !user.token.is_empty() {
        Credentials::Token(user.token.clone())
    } else if !user.username.is_empty() {
        Credentials::Basic { username: user.username.clone(), password: user.password.clone() }
    } else {
        Credentials::None
    }
}
