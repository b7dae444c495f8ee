//! Commands in containers, and forwarded ports.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::AttachParams;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::Site;

pub(crate) async fn executes(site: &Site) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(site.client.clone(), &site.namespace);
    let options = AttachParams::default().container("main").stdin(true).stdout(true).stderr(true);
    let command = ["sh", "-c", "read line; echo got $line; echo bad >&2; exit 3"];
    let mut process = pods.exec(&site.pod, command, &options).await?;
    let (mut stdin, status) = (process.stdin().context("no input")?, process.take_status().context("no status")?);
    let (mut stdout, mut stderr) = (process.stdout().context("no output")?, process.stderr().context("no errors")?);
    stdin.write_all(b"this\n").await?;
    let (mut told, mut failed) = (String::new(), String::new());
    tokio::try_join!(stdout.read_to_string(&mut told), stderr.read_to_string(&mut failed))?;
    ensure!((told.as_str(), failed.as_str()) == ("got this\n", "bad\n"), "{told:?} {failed:?}");
    let causes = status.await.and_then(|status| status.details).and_then(|details| details.causes).unwrap_or_default();
    let code = causes.iter().find(|cause| cause.reason.as_deref() == Some("ExitCode")).and_then(|cause| cause.message.as_deref());
    ensure!(code == Some("3"), "{causes:?}");
    Ok(())
}

pub(crate) async fn forwards(site: &Site) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(site.client.clone(), &site.namespace);
    let mut forwarder = pods.portforward(&site.web, &[8080]).await?;
    let mut stream = forwarder.take_stream(8080).context("no stream")?;
    stream.write_all(b"GET /hostname HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    ensure!(answer.starts_with("HTTP/1.1 200") && answer.contains(&site.web), "{answer}");
    // Not joined: where the server closes first, as here when the answer ends, the client takes its own goodbye for an error.
    forwarder.abort();
    Ok(())
}
