//! Objects, lists and refusals in protobuf, by messages that others made of upstream's definitions.

use anyhow::{Context as _, Result, ensure};
use http::{Request, header};
use k8s_pb::api::core::v1::{ConfigMap, ConfigMapList};
use k8s_pb::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Status};
use k8s_pb::apimachinery::pkg::runtime::{TypeMeta, Unknown};
use kube::client::Body;
use prost::Message;

use crate::Site;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// What every such document begins with.
const MAGIC: &[u8] = b"k8s\0";

pub(crate) async fn protobuf(site: &Site) -> Result<()> {
    let maps = format!("/api/v1/namespaces/{}/configmaps", site.namespace);
    let metadata = ObjectMeta { name: Some("protobuf-one".to_owned()), labels: [("of".to_owned(), "protobuf".to_owned())].into(), ..ObjectMeta::default() };
    let map = ConfigMap { metadata: Some(metadata), data: [("colour".to_owned(), "blue".to_owned())].into(), ..ConfigMap::default() };
    let made: ConfigMap = call(site, "POST", &maps, Some(("ConfigMap", map.encode_to_vec()))).await?.of(201, "ConfigMap")?;
    let uid = made.metadata.as_ref().and_then(|it| it.uid.clone()).unwrap_or_default();
    ensure!(made.data == map.data && !uid.is_empty(), "{made:?}");
    let again: Status = call(site, "POST", &maps, Some(("ConfigMap", map.encode_to_vec()))).await?.of(409, "Status")?;
    ensure!(again.reason.as_deref() == Some("AlreadyExists"), "{again:?}");
    let list: ConfigMapList = call(site, "GET", &format!("{maps}?labelSelector=of%3Dprotobuf"), None).await?.of(200, "ConfigMapList")?;
    ensure!(list.items.len() == 1 && list.items[0].metadata == made.metadata, "{list:?}");
    let gone: Status = call(site, "DELETE", &format!("{maps}/protobuf-one"), None).await?.of(200, "Status")?;
    ensure!(gone.details.and_then(|details| details.uid) == Some(uid));
    Ok(())
}

/// A code, and the document that came with it.
struct Answer {
    code: u16,
    document: Unknown,
}

impl Answer {
    /// The message in the document, if both are as wanted.
    fn of<M: Message + Default>(self, code: u16, kind: &str) -> Result<M> {
        let told = self.document.type_meta.and_then(|it| it.kind).unwrap_or_default();
        ensure!((self.code, told.as_str()) == (code, kind), "{} with a {told} instead of {code} with a {kind}", self.code);
        Ok(M::decode(self.document.raw.unwrap_or_default().as_slice())?)
    }
}

async fn call(site: &Site, method: &str, path: &str, body: Option<(&str, Vec<u8>)>) -> Result<Answer> {
    let request = Request::builder().method(method).uri(path).header(header::ACCEPT, PROTOBUF);
    let request = match body {
        Some((kind, raw)) => request.header(header::CONTENT_TYPE, PROTOBUF).body(Body::from(document(kind, raw)))?,
        None => request.body(Body::empty())?,
    };
    let answer = site.client.send(request).await?;
    let (code, told) = (answer.status().as_u16(), answer.headers().get(header::CONTENT_TYPE).cloned());
    ensure!(told.as_ref().is_some_and(|it| it == PROTOBUF), "{told:?} is no protobuf");
    let bytes = answer.into_body().collect_bytes().await?;
    let document = bytes.strip_prefix(MAGIC).context("not the beginning of a document")?;
    Ok(Answer { code, document: Unknown::decode(document)? })
}

fn document(kind: &str, raw: Vec<u8>) -> Vec<u8> {
    let type_meta = TypeMeta { api_version: Some("v1".to_owned()), kind: Some(kind.to_owned()) };
    let unknown = Unknown { type_meta: Some(type_meta), raw: Some(raw), ..Unknown::default() };
    [MAGIC, &unknown.encode_to_vec()].concat()
}
