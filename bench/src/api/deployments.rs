//! What it takes to change a Deployment of the usual size by server-side apply and by strategic merge.

use anyhow::Result;
use bytes::Bytes;
use http::Method;

use super::load::microseconds_each;
use super::options::Options;
use super::pods;
use super::site::Site;
use crate::figure::Figure;
use crate::usage::CpuMeter;

/// So many Deployments are changed in turn.
const COUNT: usize = 20;
/// What a change may take of processor time, in microseconds.
const PROMISED: f64 = 120.0;

/// Applies and patches Deployments, half as often as there are pods, each time with another image.
pub(super) async fn change(options: &Options, site: &Site, label: &str) -> Result<()> {
    microseconds_each(0..COUNT, 1, |number| apply(site, number, 0)).await?;
    let rounds = options.pods / 2;
    let meter = CpuMeter::start(site.server.pid())?;
    microseconds_each(0..rounds, options.parallel.min(COUNT), |round| apply(site, round % COUNT, round)).await?;
    print(&format!("cpu-apply-deployment-{label}"), meter.seconds()?, rounds)?;
    let meter = CpuMeter::start(site.server.pid())?;
    microseconds_each(0..rounds, options.parallel.min(COUNT), |round| merge(site, round % COUNT, round)).await?;
    print(&format!("cpu-merge-deployment-{label}"), meter.seconds()?, rounds)
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn print(name: &str, seconds: f64, requests: usize) -> Result<()> {
    let each = seconds * 1e6 / requests.max(1) as f64;
    Ok(Figure::beside_promised(name, each, PROMISED, "us").print()?)
}

fn path(number: usize) -> String {
    format!("/apis/apps/v1/namespaces/{}/deployments/shop-{number}", pods::NAMESPACE)
}

async fn apply(site: &Site, number: usize, version: usize) -> Result<()> {
    let path = format!("{}?fieldManager=deployer", path(number));
    patch(site, &path, "application/apply-patch+yaml", manifest(number, version)).await
}

async fn merge(site: &Site, number: usize, version: usize) -> Result<()> {
    let body = format!(
        r#"{{"spec":{{"template":{{"spec":{{"containers":[{{"name":"shop","image":"registry.test/shop:m{version}"}}]}}}}}}}}"#
    );
    patch(site, &path(number), "application/strategic-merge-patch+json", body.into()).await
}

async fn patch(site: &Site, path: &str, media: &'static str, body: Bytes) -> Result<()> {
    site.connection.call(Method::PATCH, path, media, body).await?.ok().map(drop)
}

fn manifest(number: usize, version: usize) -> Bytes {
    format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"shop-{number}","labels":{{"app":"shop-{number}"}}}},"spec":{{"replicas":3,"selector":{{"matchLabels":{{"app":"shop-{number}"}}}},"template":{{"metadata":{{"labels":{{"app":"shop-{number}"}}}},"spec":{{"containers":[{{"name":"shop","image":"registry.test/shop:{version}","env":[{{"name":"LEVEL","value":"info"}},{{"name":"PORT","value":"8080"}}],"ports":[{{"containerPort":8080,"protocol":"TCP"}}],"resources":{{"limits":{{"memory":"128Mi"}},"requests":{{"cpu":"100m","memory":"64Mi"}}}},"readinessProbe":{{"httpGet":{{"path":"/healthz","port":8080}}}},"volumeMounts":[{{"name":"config","mountPath":"/etc/shop"}}]}}],"volumes":[{{"name":"config","configMap":{{"name":"shop"}}}}]}}}}}}}}"#
    )
    .into()
}
