//! The structs of a kubeconfig file. Unknown fields are ignored, as upstream does.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::leaf::RawJson;
use api_machinery::reflect::ByteString;

/// A kubeconfig file.
#[api(group = "", version = "v1", kind = "Config")]
pub struct Kubeconfig {
    /// Settings of interactive tools.
    #[field(1, omitzero)]
    pub preferences: Preferences,
    /// The servers.
    #[field(2, always)]
    pub clusters: Vec<NamedCluster>,
    /// The credentials.
    #[field(3, always)]
    pub users: Vec<NamedUser>,
    /// The pairs of server and credentials.
    #[field(4, always)]
    pub contexts: Vec<NamedContext>,
    /// The context in use.
    #[field(5, name = "current-context", always)]
    pub current_context: String,
    /// Data of other tools.
    #[field(6)]
    pub extensions: Vec<NamedExtension>,
}

/// Settings of interactive tools.
#[api]
pub struct Preferences {
    /// Whether to print in colours.
    #[field(1)]
    pub colors: bool,
    /// Data of other tools.
    #[field(2)]
    pub extensions: Vec<NamedExtension>,
}

/// A server with its name.
#[api]
pub struct NamedCluster {
    /// The name.
    #[field(1, always)]
    pub name: String,
    /// The server.
    #[field(2, always)]
    pub cluster: Cluster,
}

/// How to reach a server.
#[api]
pub struct Cluster {
    /// The URL.
    #[field(1, always)]
    pub server: String,
    /// The name to verify instead of the URL's host.
    #[field(2, name = "tls-server-name")]
    pub tls_server_name: String,
    /// Whether any certificate is accepted.
    #[field(3, name = "insecure-skip-tls-verify")]
    pub insecure_skip_tls_verify: bool,
    /// File with trusted authorities.
    #[field(4, name = "certificate-authority")]
    pub certificate_authority: String,
    /// Trusted authorities in PEM form; beats the file.
    #[field(5, name = "certificate-authority-data")]
    pub certificate_authority_data: ByteString,
    /// The proxy to go through.
    #[field(6, name = "proxy-url")]
    pub proxy_url: String,
    /// Whether responses must not be compressed.
    #[field(7, name = "disable-compression")]
    pub disable_compression: bool,
    /// Data of other tools.
    #[field(8)]
    pub extensions: Vec<NamedExtension>,
}

/// Credentials with their name.
#[api]
pub struct NamedUser {
    /// The name.
    #[field(1, always)]
    pub name: String,
    /// The credentials.
    #[field(2, always)]
    pub user: User,
}

/// Credentials.
#[api]
pub struct User {
    /// File with the client certificate.
    #[field(1, name = "client-certificate")]
    pub client_certificate: String,
    /// The client certificate in PEM form; beats the file.
    #[field(2, name = "client-certificate-data")]
    pub client_certificate_data: ByteString,
    /// File with the private key.
    #[field(3, name = "client-key")]
    pub client_key: String,
    /// The private key in PEM form; beats the file.
    #[field(4, name = "client-key-data")]
    pub client_key_data: ByteString,
    /// The bearer token.
    #[field(5)]
    pub token: String,
    /// File with the bearer token, read again from time to time.
    #[field(6, name = "tokenFile")]
    pub token_file: String,
    /// The user to act as.
    #[field(7, name = "as")]
    pub impersonate: String,
    /// The uid to act as.
    #[field(8, name = "as-uid")]
    pub impersonate_uid: String,
    /// The groups to act as.
    #[field(9, name = "as-groups")]
    pub impersonate_groups: Vec<String>,
    /// The extra attributes to act with.
    #[field(10, name = "as-user-extra")]
    pub impersonate_user_extra: BTreeMap<String, StringValues>,
    /// The name for basic authentication.
    #[field(11)]
    pub username: String,
    /// The password for basic authentication.
    #[field(12)]
    pub password: String,
    /// Removed upstream; refused.
    #[field(13, name = "auth-provider")]
    pub auth_provider: Option<AuthProviderConfig>,
    /// A credential plugin.
    #[field(14)]
    pub exec: Option<ExecConfig>,
    /// Data of other tools.
    #[field(15)]
    pub extensions: Vec<NamedExtension>,
}

/// The values of one extra attribute.
type StringValues = Vec<String>;

/// A context with its name.
#[api]
pub struct NamedContext {
    /// The name.
    #[field(1, always)]
    pub name: String,
    /// The context.
    #[field(2, always)]
    pub context: Context,
}

/// A server, credentials and a namespace.
#[api]
pub struct Context {
    /// Name of the server.
    #[field(1, always)]
    pub cluster: String,
    /// Name of the credentials.
    #[field(2, always)]
    pub user: String,
    /// The namespace for requests that name none.
    #[field(3)]
    pub namespace: String,
    /// Data of other tools.
    #[field(4)]
    pub extensions: Vec<NamedExtension>,
}

/// Data of another tool.
#[api]
pub struct NamedExtension {
    /// The tool's name for it.
    #[field(1, always)]
    pub name: String,
    /// The data.
    #[field(2, always)]
    pub extension: RawJson,
}

/// Removed upstream; kept so that it can be refused.
#[api]
pub struct AuthProviderConfig {
    /// The provider's name.
    #[field(1, always)]
    pub name: String,
    /// Its settings.
    #[field(2, always)]
    pub config: BTreeMap<String, String>,
}

/// A credential plugin.
#[api]
pub struct ExecConfig {
    /// The program.
    #[field(1, always)]
    pub command: String,
    /// Its arguments.
    #[field(2, always)]
    pub args: Vec<String>,
    /// Environment variables to add.
    #[field(3, always)]
    pub env: Vec<ExecEnvVar>,
    /// Version of the protocol.
    #[field(4, name = "apiVersion")]
    pub api_version: String,
    /// What to tell users who lack the program.
    #[field(5)]
    pub install_hint: String,
    /// Whether the plugin is told about the server.
    #[field(6, always)]
    pub provide_cluster_info: bool,
    /// Whether the plugin may talk to the user.
    #[field(7)]
    pub interactive_mode: String,
}

/// One environment variable.
#[api]
pub struct ExecEnvVar {
    /// The name.
    #[field(1, always)]
    pub name: String,
    /// The value.
    #[field(2, always)]
    pub value: String,
}
