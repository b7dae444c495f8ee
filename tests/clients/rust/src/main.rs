//! The crate `kube`, and protobuf by the bindings of `k8s-pb`, against a cluster.
//!
//! Takes KUBECONFIG, NAMESPACE (there, and this program's alone), POD (a running pod with a shell in its container `main`),
//! WEB (a running pod that answers HTTP on port 8080). Prints `ok NAME` for each check; the first that fails ends it.

mod definitions;
mod objects;
mod protobuf;
mod streams;
mod watches;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use serde_json::json;

/// A cluster, and what is this program's there.
struct Site {
    client: Client,
    namespace: String,
    pod: String,
    web: String,
}

impl Site {
    async fn from_environment() -> Result<Self> {
        let value = |name: &str| std::env::var(name).with_context(|| format!("{name} is not set"));
        let (namespace, pod, web) = (value("NAMESPACE")?, value("POD")?, value("WEB")?);
        Ok(Self { client: Client::try_default().await?, namespace, pod, web })
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

/// A map of a check, that it finds by the label `of`.
fn config_map(of: &str, name: &str, data: serde_json::Value) -> Result<ConfigMap> {
    let object = json!({"metadata": {"name": format!("{of}-{name}"), "labels": {"of": of}}, "data": data});
    Ok(serde_json::from_value(object)?)
}

/// The refusal's message, where a call was refused with this code.
fn refused<T>(code: u16, answer: kube::Result<T>) -> Result<String> {
    match answer {
        Ok(_) => anyhow::bail!("taken instead of refused with {code}"),
        Err(kube::Error::Api(status)) => {
            ensure!(status.code == code, "{status:?} instead of {code}");
            Ok(status.message)
        }
        Err(error) => Err(error.into()),
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let site = Site::from_environment().await?;
    let done = |name: &str| println!("ok {name}");
    objects::objects(&site).await.context("objects")?;
    done("objects");
    watches::watches(&site).await.context("watches")?;
    done("watches");
    objects::patches(&site).await.context("patches")?;
    done("patches");
    watches::informers(&site).await.context("informers")?;
    done("informers");
    definitions::definitions(&site).await.context("definitions")?;
    done("definitions");
    objects::elections(&site).await.context("elections")?;
    done("elections");
    streams::executes(&site).await.context("exec")?;
    done("exec");
    streams::forwards(&site).await.context("port-forward")?;
    done("port-forward");
    protobuf::protobuf(&site).await.context("protobuf")?;
    done("protobuf");
    Ok(())
}
