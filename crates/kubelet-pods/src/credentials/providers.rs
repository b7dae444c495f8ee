//! Having programs run for the images that pods want.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use api_machinery::time::GoDuration;
use api_types::core_v1::{Pod, ServiceAccount};
use api_types::kubelet_config_v1::{CredentialProvider, ServiceAccountTokenAttributes};
use async_trait::async_trait;
use base::SharedClock;
use client::{Client, ClientError};
use parking_lot::Mutex;
use sys::exec::{Command, Exec, ExecError, Exit};
use tokio::sync::OnceCell;

use super::cache::{Cache, account_key};
use super::config::{ProviderConfigs, is_per_token};
use super::exchange::{self, Account, Answer, AnswerError};
use crate::interfaces::{CredentialOwner, ImageCredentials, RegistryCredential};
use crate::metrics::KubeletMetrics;
use crate::runtime::registry_auth::matches_image;
use crate::tokens::{TokenError, Tokens};

/// How long a program may take.
const LIMIT: Duration = Duration::from_secs(60);
/// Of what a program says on standard error so much goes into the log.
const MAX_ERROR_CHARS: usize = 1000;

/// Why a pod's account is not known; the pull goes on without what needs it.
#[derive(Debug, thiserror::Error)]
enum AccountError {
    #[error("kube client is not configured")]
    NoClient,
    #[error("failed to get service account {namespace}/{name}: {source}")]
    Unread { namespace: String, name: String, source: ClientError },
    #[error(transparent)]
    Token(#[from] TokenError),
}

/// Why a program has no credentials for a pod; the pull goes on without them.
#[derive(Debug, thiserror::Error)]
enum ProviderError {
    #[error("error execing credential provider plugin: {0}")]
    Exec(#[from] ExecError),
    #[error("error execing credential provider plugin: exit status {status}: {stderr}")]
    Failed { status: i32, stderr: String },
    #[error(transparent)]
    Answer(#[from] AnswerError),
}

/// A program that runs, and what came of it for all who asked the same.
type Run = OnceCell<Result<Answer, Arc<ProviderError>>>;

/// What programs are run with.
pub struct ProviderDeps {
    /// Which there are.
    pub configs: ProviderConfigs,
    pub exec: Arc<dyn Exec>,
    /// For those that want tokens; none without an API server.
    pub client: Option<Client>,
    pub clock: SharedClock,
    pub metrics: Arc<KubeletMetrics>,
}

/// One program.
struct Provider {
    config: CredentialProvider,
    cache: Mutex<Cache>,
}

/// Whether a program is asked for a pod, and about which account.
enum Ask {
    Not,
    Plainly,
    About(Account),
}

/// The programs of a node, in the order in which they are asked.
pub struct CredentialProviders {
    directory: PathBuf,
    providers: Vec<Provider>,
    exec: Arc<dyn Exec>,
    client: Option<Client>,
    tokens: Option<Tokens>,
    clock: SharedClock,
    metrics: Arc<KubeletMetrics>,
    /// By what is asked.
    runs: Mutex<HashMap<String, Weak<Run>>>,
}

impl CredentialProviders {
    /// Nothing is kept yet.
    #[must_use]
    pub fn new(deps: ProviderDeps) -> Arc<Self> {
        let ProviderDeps { configs, exec, client, clock, metrics } = deps;
        let ProviderConfigs { programs: directory, providers, hash } = configs;
        metrics.credential_config.with(&[&hash]).set(1.0);
        let providers = providers.into_iter().map(|config| Provider { config, cache: Mutex::default() }).collect();
        let tokens = client.as_ref().map(Tokens::new);
        Arc::new(Self { directory, providers, exec, client, tokens, clock, metrics, runs: Mutex::default() })
    }

    /// What a program has for an image, and for whom.
    async fn found(&self, provider: &Provider, pod: &Pod, image: &str) -> Vec<RegistryCredential> {
        let name = &provider.config.name;
        let account = match self.ask(&provider.config, pod).await {
            Ok(Ask::Not) => return Vec::new(),
            Ok(Ask::Plainly) => None,
            Ok(Ask::About(account)) => Some(account),
            Err(error) => {
                tracing::error!(provider = name, image, %error, "A pod's account is not known");
                return Vec::new();
            }
        };
        let answer = match self.answer(provider, image, account.as_ref()).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::error!(provider = name, image, %error, "Failed getting credential from external registry credential provider");
                return Vec::new();
            }
        };
        let owner = account.map(|Account { uid, namespace, name, .. }| CredentialOwner { uid, namespace, name });
        let of = |(server, auth)| RegistryCredential { server, auth, account: owner.clone() };
        answer.auth.into_iter().map(of).collect()
    }

    async fn ask(&self, provider: &CredentialProvider, pod: &Pod) -> Result<Ask, AccountError> {
        match &provider.token_attributes {
            None => Ok(Ask::Plainly),
            Some(wanted) if pod.spec.service_account_name.is_empty() => {
                Ok(if wanted.require_service_account == Some(true) { Ask::Not } else { Ask::Plainly })
            }
            Some(wanted) => Ok(self.account(wanted, pod).await?.map_or(Ask::Not, Ask::About)),
        }
    }

    /// The account of a pod with what a program wants to know of it; `None` where it is not one for the program.
    async fn account(
        &self,
        wanted: &ServiceAccountTokenAttributes,
        pod: &Pod,
    ) -> Result<Option<Account>, AccountError> {
        let (Some(client), Some(tokens)) = (&self.client, &self.tokens) else {
            return Err(AccountError::NoClient);
        };
        let (namespace, name) = (pod.metadata.namespace.clone(), pod.spec.service_account_name.clone());
        let account = match client.namespaced::<ServiceAccount>(&namespace).get(&name).await {
            Ok(account) => account,
            Err(source) => return Err(AccountError::Unread { namespace, name, source }),
        };
        let own = &account.metadata.annotations;
        let required = &wanted.required_service_account_annotation_keys;
        if required.iter().any(|key| !own.contains_key(key)) {
            return Ok(None);
        }
        let keys = required.iter().chain(&wanted.optional_service_account_annotation_keys);
        let annotations = keys.filter_map(|key| own.get_key_value(key));
        let annotations = annotations.map(|(key, value)| (key.clone(), value.clone())).collect();
        let uid = account.metadata.uid;
        let token = tokens.of_account(pod, &uid, &wanted.service_account_token_audience).await?;
        Ok(Some(Account { namespace, name, uid, annotations, token }))
    }

    /// What a program says, now or a while ago.
    async fn answer(
        &self,
        Provider { config: provider, cache }: &Provider,
        image: &str,
        account: Option<&Account>,
    ) -> Result<Answer, Arc<ProviderError>> {
        let kept = account.map(|account| account_key(account, is_per_token(provider))).unwrap_or_default();
        if let Some(answer) = cache.lock().get(image, &kept, self.clock.monotonic()) {
            return Ok(answer);
        }
        // What one token brings is not for another, whatever is kept.
        let asked = account.map(|account| account_key(account, true)).unwrap_or_default();
        let run = self.run_of(format!("{} {image} {asked}", provider.name));
        let ran = async {
            let answer = self.run(provider, image, account).await.map_err(|error| {
                self.metrics.credential_errors.with(&[&provider.name]).inc();
                Arc::new(error)
            })?;
            let default = provider.default_cache_duration.map(GoDuration::to_std).unwrap_or_default();
            cache.lock().put(image, &kept, &answer, default, self.clock.monotonic());
            Ok(answer)
        };
        run.get_or_init(|| ran).await.clone()
    }

    /// The run that answers this, which others may be waiting for.
    fn run_of(&self, asked: String) -> Arc<Run> {
        let mut runs = self.runs.lock();
        if let Some(run) = runs.get(&asked).and_then(Weak::upgrade) {
            return run;
        }
        runs.retain(|_, run| run.strong_count() > 0);
        let run = Arc::default();
        runs.insert(asked, Arc::downgrade(&run));
        run
    }

    async fn run(
        &self,
        provider: &CredentialProvider,
        image: &str,
        account: Option<&Account>,
    ) -> Result<Answer, ProviderError> {
        let mut command = Command::new(self.directory.join(&provider.name))
            .args(&provider.args)
            .stdin(exchange::request(&provider.api_version, image, account))
            .deadline(LIMIT);
        for variable in &provider.env {
            command = command.env(&variable.name, &variable.value);
        }
        let began = self.clock.monotonic();
        let output = self.exec.run(&command).await;
        let took = self.clock.monotonic().duration_since(began);
        self.metrics.credential_duration.with(&[&provider.name]).observe(took.as_secs_f64());
        let output = output?;
        if !output.success() {
            let status = match output.exit {
                Exit::Code(code) => code,
                Exit::Signal(signal) => 128 + signal,
            };
            let stderr = output.error_text().chars().take(MAX_ERROR_CHARS).collect();
            return Err(ProviderError::Failed { status, stderr });
        }
        let answer = exchange::answer(&provider.api_version, &output.stdout)?;
        let token = account.map(|account| account.token.as_str()).filter(|token| !token.is_empty());
        let given_back = token.is_some_and(|token| answer.auth.values().any(|auth| auth.password == token));
        if given_back && !is_per_token(provider) {
            // It would outlive the token, and be given to other pods.
            return Err(AnswerError::Token.into());
        }
        Ok(answer)
    }
}

#[async_trait]
impl ImageCredentials for CredentialProviders {
    async fn lookup(&self, pod: &Pod, image: &str) -> Vec<RegistryCredential> {
        let mut found = Vec::new();
        for provider in &self.providers {
            if provider.config.match_images.iter().any(|pattern| matches_image(pattern, image)) {
                found.extend(self.found(provider, pod, image).await);
            }
        }
        found
    }

    fn forget_pod(&self, uid: &str) {
        if let Some(tokens) = &self.tokens {
            tokens.forget(uid);
        }
    }
}
