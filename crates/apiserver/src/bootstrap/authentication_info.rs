//! What extension servers need to know to authenticate as this server does, in a ConfigMap that several servers share.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use api_machinery::meta::{DeleteOptions, ObjectMeta};
use api_types::core_v1::ConfigMap;
use async_trait::async_trait;
use client::{InformerOptions, Informers, Scope};
use tokio::sync::Notify;

use super::error::BootstrapError;
use super::{ca_union, namespaces, retry};
use crate::config::AuthenticationConfig;
use crate::cx::ApiCx;
use crate::hooks::{HookError, PostStartHook};

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";
/// How often the files are looked at; the ConfigMap is, whenever somebody changes it.
const PERIOD: Duration = Duration::from_secs(60);
/// How soon a failed look is repeated.
const RETRY_PERIOD: Duration = Duration::from_secs(2);

/// The hook `start-cluster-authentication-info-controller`.
pub(super) struct AuthenticationInfo;

#[async_trait]
impl PostStartHook for AuthenticationInfo {
    fn name(&self) -> &'static str {
        "start-cluster-authentication-info-controller"
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError> {
        let context = Arc::clone(cx);
        cx.tasks().spawn_cancellable("authentication-info", async move {
            let changed = Arc::new(Notify::new());
            let tell = Arc::clone(&changed);
            let informers = Informers::new(context.loopback(), InformerOptions::default());
            let stored = informers.scoped::<ConfigMap>(&Scope::object(NAMESPACE, NAME));
            stored.subscribe(move |_| tell.notify_one());
            stored.start();
            let work = || publish(&context);
            let what = "Publishing how clients are authenticated";
            retry::repeat_when_told(what, PERIOD, RETRY_PERIOD, &changed, work).await;
        });
        Ok(())
    }
}

async fn publish(cx: &ApiCx) -> Result<(), BootstrapError> {
    let client = cx.loopback();
    namespaces::ensure(client, NAMESPACE).await?;
    let api = client.namespaced::<ConfigMap>(NAMESPACE);
    let stored = api.get_opt(NAME).await?;
    let data =
        merged(stored.as_ref().map(|config| &config.data), &cx.config().authentication, cx.lifecycle.clock().wall())?;
    let written = match stored {
        Some(config) if config.data == data => return Ok(()),
        Some(config) => api.update(&ConfigMap { data, ..config }).await,
        None => {
            let metadata = ObjectMeta { name: NAME.into(), namespace: NAMESPACE.into(), ..ObjectMeta::default() };
            api.create(&ConfigMap { metadata, data, ..ConfigMap::default() }).await
        }
    };
    match written {
        Err(error) if error.api().is_some_and(|error| error.code == 413 || error.message.contains("Too long")) => {
            // Lists only ever grow; begun anew, every server adds what it still uses.
            api.delete(NAME, &DeleteOptions::default()).await?;
            Err(error.into())
        }
        written => {
            written?;
            Ok(())
        }
    }
}

/// What is stored together with what this server uses.
fn merged(
    stored: Option<&BTreeMap<String, String>>,
    config: &AuthenticationConfig,
    now: SystemTime,
) -> Result<BTreeMap<String, String>, BootstrapError> {
    let mut data = stored.cloned().unwrap_or_default();
    if let Some(path) = &config.client_ca_file {
        join_bundle(&mut data, "client-ca-file", path, now)?;
    }
    if let Some(proxy) = &config.front_proxy {
        join_bundle(&mut data, "requestheader-client-ca-file", &proxy.client_ca_file, now)?;
        let headers = &proxy.headers;
        let lists: [(&str, &[String]); 5] = [
            ("requestheader-username-headers", &headers.username),
            ("requestheader-uid-headers", &headers.uid),
            ("requestheader-group-headers", &headers.groups),
            ("requestheader-extra-headers-prefix", &headers.extra_prefixes),
            ("requestheader-allowed-names", &proxy.allowed_names),
        ];
        for (key, own) in lists {
            // The youngest of the lists is left out where nobody has one.
            if key == "requestheader-uid-headers" && own.is_empty() && !data.contains_key(key) {
                continue;
            }
            let stored = data.get(key).map(String::as_str).unwrap_or_default();
            let joined = ca_union::names(stored, own).map_err(BootstrapError::Names)?;
            data.insert(key.to_owned(), joined);
        }
    }
    Ok(data)
}

fn join_bundle(
    data: &mut BTreeMap<String, String>,
    key: &str,
    path: &Path,
    now: SystemTime,
) -> Result<(), BootstrapError> {
    let own = std::fs::read_to_string(path).map_err(|source| BootstrapError::Read { path: path.to_owned(), source })?;
    let stored = data.get(key).map(String::as_str).unwrap_or_default();
    let joined = ca_union::bundles(stored, &own, now);
    data.insert(key.to_owned(), joined);
    Ok(())
}
