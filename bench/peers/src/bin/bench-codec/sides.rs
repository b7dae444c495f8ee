//! The same Pod in every form, and the operations on it.

use anyhow::{Context, Result, ensure};
use api_machinery::object::{Object, from_json};
use api_machinery::protobuf;
use api_types::core_v1::Pod;
use prost::Message as _;
use serde_json::Value;

type SerdePod = k8s_openapi::api::core::v1::Pod;
type ProstPod = k8s_pb::api::core::v1::Pod;

/// The Pod as text, as message, and as the three families of types have it.
pub(crate) struct Sides {
    json: Vec<u8>,
    message: Vec<u8>,
    ours: Pod,
    serde: SerdePod,
    prost: ProstPod,
}

impl Sides {
    pub(crate) fn read(text: &[u8]) -> Result<Self> {
        let json = text.trim_ascii().to_vec();
        let (ours, decoded) = from_json::<Pod>(&json).context("our decoder")?;
        ensure!(decoded.problems.is_empty(), "the Pod has fields that we do not know: {:?}", decoded.problems);
        let message = protobuf::encode(&ours);
        let serde = serde_json::from_slice(&json).context("the serde-derived decoder")?;
        let prost = ProstPod::decode(message.as_slice()).context("the prost-derived decoder")?;
        Ok(Self { json, message, ours, serde, prost })
    }

    /// Whether both sides do the same work: nothing may be lost on either.
    pub(crate) fn check(&self) -> Result<()> {
        let original: Value = serde_json::from_slice(&self.json)?;
        for (side, text) in [("ours", self.ours_to_json()), ("serde", self.peer_to_json())] {
            let mut again: Value = serde_json::from_slice(&text)?;
            // The peer leaves out what is there but empty, and so does less; we write it as upstream does.
            restore_vacant(&mut again, &original);
            ensure!(again == original, "{side} lost something:\n{again}\n{original}");
        }
        ensure!(self.ours_to_protobuf() == self.message, "our message is not stable");
        ensure!(self.peer_to_protobuf().len() <= self.message.len(), "prost writes more than we do");
        ensure!(self.peer_to_protobuf().len() * 100 >= self.message.len() * 98, "prost loses fields");
        Ok(())
    }

    pub(crate) fn ours_from_json(&self) -> Option<Pod> {
        from_json::<Pod>(&self.json).ok().map(|(pod, _)| pod)
    }

    pub(crate) fn peer_from_json(&self) -> Option<SerdePod> {
        serde_json::from_slice(&self.json).ok()
    }

    pub(crate) fn ours_to_json(&self) -> Vec<u8> {
        (&self.ours as &dyn Object).to_json().into_bytes()
    }

    pub(crate) fn peer_to_json(&self) -> Vec<u8> {
        serde_json::to_vec(&self.serde).unwrap_or_default()
    }

    pub(crate) fn ours_from_protobuf(&self) -> Option<Pod> {
        let mut pod = Pod::default();
        protobuf::decode(&self.message, &mut pod).ok().map(|()| pod)
    }

    pub(crate) fn peer_from_protobuf(&self) -> Option<ProstPod> {
        ProstPod::decode(self.message.as_slice()).ok()
    }

    pub(crate) fn ours_to_protobuf(&self) -> Vec<u8> {
        protobuf::encode(&self.ours)
    }

    pub(crate) fn peer_to_protobuf(&self) -> Vec<u8> {
        self.prost.encode_to_vec()
    }
}

/// Puts back members of `original` that are `{}` or `null` and missing in `found`.
fn restore_vacant(found: &mut Value, original: &Value) {
    match (found, original) {
        (Value::Object(found), Value::Object(original)) => {
            for (name, value) in original {
                match found.get_mut(name) {
                    Some(inner) => restore_vacant(inner, value),
                    None if value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty) => {
                        found.insert(name.clone(), value.clone());
                    }
                    None => {}
                }
            }
        }
        (Value::Array(found), Value::Array(original)) => {
            for (found, original) in found.iter_mut().zip(original) {
                restore_vacant(found, original);
            }
        }
        _ => {}
    }
}
