//! Fills Secrets of type `kubernetes.io/service-account-token` that users make: the account's token, its namespace and
//! the CA; and deletes them once their account is gone.
//!
//! Such tokens do not expire. Secrets are not made for accounts any more, only filled. See
//! <https://kubernetes.io/docs/concepts/configuration/secret/#serviceaccount-token-secrets>.

use std::sync::Arc;

use api_machinery::meta::DeleteOptions;
use api_machinery::reflect::ByteString;
use api_types::core_v1::constants::secret_type::KUBERNETES_IO_SERVICE_ACCOUNT_TOKEN as TOKEN_TYPE;
use api_types::core_v1::constants::{
    SERVICE_ACCOUNT_NAME_KEY as ACCOUNT_NAME, SERVICE_ACCOUNT_NAMESPACE_KEY as NAMESPACE_KEY,
    SERVICE_ACCOUNT_ROOT_CA_KEY as CA_KEY, SERVICE_ACCOUNT_TOKEN_KEY as TOKEN_KEY,
    SERVICE_ACCOUNT_UID_KEY as ACCOUNT_UID,
};
use api_types::core_v1::{Secret, ServiceAccount};
use client::{Change, Informer, ObjectKey, Scope};
use controller::{Build, BuildError, Controller, Cx, Descriptor, Next, ReconcileError};
use pki::PrivateKey;
use pki::jws::{self, JwsError};
use serde_json::{Value, json};

use crate::Settings;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "serviceaccount-token-controller",
    aliases: &["serviceaccount-token"],
    gates: &[],
    // The process's own credentials: with service accounts of their own the others may need this one first.
    identity: "tokens-controller",
    event_component: "",
    disabled_by_default: false,
    build,
};

/// Who signs these tokens, other than those of the TokenRequest API.
const ISSUER: &str = "kubernetes/serviceaccount";
/// Failures of one Secret in a row before it waits for its next change, as upstream.
const MAX_RETRIES: u32 = 10;

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let settings = build.settings::<Settings>()?;
    let (file, ca, workers) =
        (settings.token_key_file.clone(), settings.root_ca.clone(), settings.service_account_token_syncs);
    if file.as_os_str().is_empty() {
        return Err(BuildError::Skipped("there is no private key for service account tokens".to_owned()));
    }
    let key = PrivateKey::load(&file).map_err(|error| {
        BuildError::Failed(format!("error reading key for service account token controller: {error}"))
    })?;
    let queue = build.queue("serviceaccount_tokens_service");
    let secrets = build.watch_scoped::<Secret>(&token_secrets()).enqueue_self(&queue).informer();
    let of_account = secrets.clone();
    let affected = move |change: &Change<ServiceAccount>| {
        let account = change.key();
        let namespaced = of_account.in_namespace(&account.namespace);
        let keys = namespaced.iter().filter(|secret| account_name(secret) == account.name);
        keys.map(|secret| ObjectKey::of(&secret.metadata)).collect::<Vec<_>>()
    };
    let accounts = build.watch::<ServiceAccount>().enqueue_keys(&queue, affected).informer();
    let tokens = Tokens { secrets, accounts, key, ca: ca.into_bytes() };
    build.run(&queue, workers, Arc::new(tokens)).drop_after(MAX_RETRIES);
    Ok(())
}

/// The Secrets that hold tokens.
pub(super) fn token_secrets() -> Scope {
    Scope::fields(&format!("type={TOKEN_TYPE}"))
}

/// The name of the account that a Secret is for.
pub(super) fn account_name(secret: &Secret) -> &str {
    secret.metadata.annotations.get(ACCOUNT_NAME).map_or("", String::as_str)
}

/// Whether a Secret is for this very account; one without a uid is for any of the name.
pub(super) fn is_for(secret: &Secret, account: &ServiceAccount) -> bool {
    let uid = secret.metadata.annotations.get(ACCOUNT_UID).map_or("", String::as_str);
    account_name(secret) == account.metadata.name && (uid.is_empty() || uid == account.metadata.uid)
}

struct Tokens {
    secrets: Informer<Secret>,
    accounts: Informer<ServiceAccount>,
    key: PrivateKey,
    ca: Vec<u8>,
}

/// What a Secret lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lacks {
    ca: bool,
    namespace: bool,
    token: bool,
}

impl Lacks {
    fn of(secret: &Secret, ca: &[u8]) -> Self {
        let value = |key: &str| secret.data.get(key).map(|value| value.0.as_slice()).unwrap_or_default();
        Self {
            ca: !ca.is_empty() && value(CA_KEY) != ca,
            namespace: value(NAMESPACE_KEY).is_empty(),
            token: value(TOKEN_KEY).is_empty(),
        }
    }

    fn nothing(self) -> bool {
        !(self.ca || self.namespace || self.token)
    }
}

/// The Secret with what it lacks. What is there stays, but for a CA that is another.
fn filled(secret: &Secret, account: &ServiceAccount, ca: &[u8], key: &PrivateKey) -> Result<Secret, JwsError> {
    let lacks = Lacks::of(secret, ca);
    let mut filled = secret.clone();
    let mut put = |key: &str, value: &[u8]| filled.data.insert(key.to_owned(), ByteString(value.to_vec()));
    if lacks.ca {
        put(CA_KEY, ca);
    }
    if lacks.namespace {
        put(NAMESPACE_KEY, secret.metadata.namespace.as_bytes());
    }
    if lacks.token {
        put(TOKEN_KEY, jws::sign(key, &claims(secret, account))?.as_bytes());
    }
    let annotations = &mut filled.metadata.annotations;
    annotations.insert(ACCOUNT_NAME.to_owned(), account.metadata.name.clone());
    annotations.insert(ACCOUNT_UID.to_owned(), account.metadata.uid.clone());
    Ok(filled)
}

fn claims(secret: &Secret, account: &ServiceAccount) -> Value {
    let (namespace, name) = (&account.metadata.namespace, &account.metadata.name);
    json!({
        "iss": ISSUER,
        "sub": format!("system:serviceaccount:{namespace}:{name}"),
        "kubernetes.io/serviceaccount/namespace": namespace,
        "kubernetes.io/serviceaccount/secret.name": secret.metadata.name,
        "kubernetes.io/serviceaccount/service-account.name": name,
        "kubernetes.io/serviceaccount/service-account.uid": account.metadata.uid,
    })
}

#[async_trait::async_trait]
impl Controller for Tokens {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let Some(secret) = self.secrets.get(key) else {
            self.drop_references(cx, key).await;
            return Ok(Next::Done);
        };
        if secret.type_ != TOKEN_TYPE || account_name(&secret).is_empty() {
            return Ok(Next::Done);
        }
        match self.account_of(cx, &secret).await? {
            Some(account) => self.fill(cx, &secret, &account).await?,
            None => {
                let secrets = cx.client.namespaced::<Secret>(&key.namespace);
                secrets.delete_this(&secret.metadata, DeleteOptions::default()).await?;
            }
        }
        Ok(Next::Done)
    }
}

impl Tokens {
    /// The account that a Secret is for. The cache may lag, so that one that it does not know is asked for.
    async fn account_of(&self, cx: &Cx, secret: &Secret) -> Result<Option<Arc<ServiceAccount>>, ReconcileError> {
        let (namespace, name) = (&secret.metadata.namespace, account_name(secret));
        let cached = self.accounts.find(namespace, name).filter(|account| is_for(secret, account));
        if cached.is_some() {
            return Ok(cached);
        }
        let live = cx.client.namespaced::<ServiceAccount>(namespace).get_opt(name).await?;
        Ok(live.filter(|account| is_for(secret, account)).map(Arc::new))
    }

    async fn fill(&self, cx: &Cx, secret: &Secret, account: &ServiceAccount) -> Result<(), ReconcileError> {
        if Lacks::of(secret, &self.ca).nothing() {
            return Ok(());
        }
        let secrets = cx.client.namespaced::<Secret>(&secret.metadata.namespace);
        let Some(live) = secrets.get_opt(&secret.metadata.name).await? else { return Ok(()) };
        // Another version will come by the watch. Another manager may have filled it.
        if live.metadata.resource_version != secret.metadata.resource_version {
            return Ok(());
        }
        let filled = filled(&live, account, &self.ca, &self.key)
            .map_err(|error| ReconcileError::permanent(format!("generating a service account token: {error}")))?;
        match secrets.update(&filled).await {
            Err(error) if !error.is_conflict() && !error.is_not_found() => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Takes the name of a Secret that is gone off the accounts that list it. Not tried again, as upstream.
    async fn drop_references(&self, cx: &Cx, secret: &ObjectKey) {
        for account in self.accounts.in_namespace(&secret.namespace) {
            if !account.secrets.iter().any(|reference| reference.name == secret.name) {
                continue;
            }
            let name = &account.metadata.name;
            let outcome = client::retry_on_conflict(&cx.rng, || async {
                let accounts = cx.client.namespaced::<ServiceAccount>(&secret.namespace);
                let Some(mut live) = accounts.get_opt(name).await? else { return Ok(()) };
                let before = live.secrets.len();
                live.secrets.retain(|reference| reference.name != secret.name);
                if live.secrets.len() == before { Ok(()) } else { accounts.update(&live).await.map(drop) }
            });
            if let Err(error) = outcome.await {
                tracing::error!(%error, account = name, %secret, "Removing the reference to a token Secret failed");
            }
        }
    }
}

#[cfg(test)]
#[path = "service_account_tokens_tests.rs"]
mod tests;
