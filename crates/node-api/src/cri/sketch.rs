//! What a list tells of sandboxes and containers, read no further than a change of them shows.
//!
//! A kubelet lists everything each second and finds nothing new almost every time. Most of what that costs is to copy out
//! labels and annotations that nobody looks at: here an item stays as it came until somebody wants it whole.

use std::marker::PhantomData;

use prost::Message;
use prost::bytes::Bytes;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;

use super::CriError;
use super::traced::Traced;
use super::v1::{Container, ContainerMetadata, PodSandbox};

/// An item of a list, of which what tells a change is read.
#[derive(Debug, Clone)]
pub struct Sketch<T> {
    /// The id of the sandbox or container.
    pub id: String,
    /// The name of the container; sandboxes have none here.
    pub name: String,
    /// A number of `PodSandboxState` or `ContainerState`.
    pub state: i32,
    labels: Vec<Bytes>,
    item: Bytes,
    whole: PhantomData<fn() -> T>,
}

impl<T: Listed> Sketch<T> {
    /// Of an item that is there whole.
    ///
    /// # Errors
    /// None, of what can be written.
    pub fn of(item: &T) -> Result<Self, CriError> {
        Self::read(Bytes::from(item.encode_to_vec()))
    }

    /// Of an item as it came.
    ///
    /// # Errors
    /// It is none.
    pub(super) fn read(item: Bytes) -> Result<Self, CriError> {
        let lines = T::Lines::decode(item.clone()).map_err(|error| unreadable::<T>(&error))?;
        let Read { id, name, state, labels } = lines.into();
        Ok(Self { id, name, state, labels, item, whole: PhantomData })
    }

    /// The value of a label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<String> {
        let mut labels = self.labels.iter().filter_map(|label| Label::decode(label.clone()).ok());
        let found = labels.find(|label| label.key == key.as_bytes())?;
        String::from_utf8(found.value.into()).ok()
    }

    /// The item, read to its end.
    ///
    /// # Errors
    /// It is none.
    pub fn whole(&self) -> Result<T, CriError> {
        T::decode(self.item.clone()).map_err(|error| unreadable::<T>(&error))
    }
}

fn unreadable<T: Listed>(error: &prost::DecodeError) -> CriError {
    CriError::from_status(T::OPERATION, &Status::internal(error.to_string()))
}

/// What can be listed and sketched.
pub trait Listed: Message + Default {
    /// The list, in metric spelling.
    const OPERATION: &'static str;
    /// The call that gives all at once.
    const WHOLE: &'static str;
    /// The call that gives them in parts.
    const IN_PARTS: &'static str;
    /// The fields that are read.
    type Lines: Message + Default + Into<Read>;
}

/// What is read of an item.
#[derive(Debug)]
pub struct Read {
    id: String,
    name: String,
    state: i32,
    labels: Vec<Bytes>,
}

impl Listed for PodSandbox {
    const OPERATION: &'static str = "list_podsandbox";
    const WHOLE: &'static str = "/runtime.v1.RuntimeService/ListPodSandbox";
    const IN_PARTS: &'static str = "/runtime.v1.RuntimeService/StreamPodSandboxes";
    type Lines = SandboxLines;
}

impl Listed for Container {
    const OPERATION: &'static str = "list_containers";
    const WHOLE: &'static str = "/runtime.v1.RuntimeService/ListContainers";
    const IN_PARTS: &'static str = "/runtime.v1.RuntimeService/StreamContainers";
    type Lines = ContainerLines;
}

/// Fields of `PodSandbox`, by its numbers.
#[derive(Clone, PartialEq, Message)]
pub struct SandboxLines {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(int32, tag = "3")]
    state: i32,
    #[prost(bytes = "bytes", repeated, tag = "5")]
    labels: Vec<Bytes>,
}

impl From<SandboxLines> for Read {
    fn from(SandboxLines { id, state, labels }: SandboxLines) -> Self {
        Self { id, name: String::new(), state, labels }
    }
}

/// Fields of `Container`, by its numbers.
#[derive(Clone, PartialEq, Message)]
pub struct ContainerLines {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(message, optional, tag = "3")]
    metadata: Option<ContainerMetadata>,
    #[prost(int32, tag = "6")]
    state: i32,
    #[prost(bytes = "bytes", repeated, tag = "8")]
    labels: Vec<Bytes>,
}

impl From<ContainerLines> for Read {
    fn from(ContainerLines { id, metadata, state, labels }: ContainerLines) -> Self {
        Self { id, name: metadata.unwrap_or_default().name, state, labels }
    }
}

/// An entry of a map of texts.
#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(bytes = "bytes", tag = "1")]
    key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    value: Bytes,
}

/// Any answer that is a list, or a part of one: all have their items in the first field.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Items {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub(super) items: Vec<Bytes>,
}

/// A request for all there is: no filter is given.
#[derive(Clone, PartialEq, Message)]
struct All {}

/// The lists, at their paths.
#[derive(Clone)]
pub(super) struct Lists(Grpc<Traced<Channel>>);

impl Lists {
    pub(super) fn new(channel: Channel, max_message_bytes: usize) -> Self {
        Self(Grpc::new(Traced(channel)).max_decoding_message_size(max_message_bytes))
    }

    /// All at once.
    pub(super) async fn whole(mut self, path: &'static str) -> Result<Response<Items>, Status> {
        self.ready().await?;
        self.0.unary(Request::new(All {}), PathAndQuery::from_static(path), ProstCodec::<All, Items>::default()).await
    }

    /// All in parts.
    pub(super) async fn in_parts(mut self, path: &'static str) -> Result<Response<Streaming<Items>>, Status> {
        self.ready().await?;
        let codec = ProstCodec::<All, Items>::default();
        self.0.server_streaming(Request::new(All {}), PathAndQuery::from_static(path), codec).await
    }

    async fn ready(&mut self) -> Result<(), Status> {
        self.0.ready().await.map_err(|error| Status::unknown(format!("Service was not ready: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn labels() -> HashMap<String, String> {
        [("io.kubernetes.pod.uid", "u"), ("io.kubernetes.pod.name", "n"), ("", "e")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into()
    }

    #[test]
    fn a_sketch_shows_what_the_whole_has() {
        let sandbox = PodSandbox { id: "s".into(), state: 1, labels: labels(), ..PodSandbox::default() };
        let sketch = Sketch::of(&sandbox).unwrap();
        assert_eq!((sketch.id.as_str(), sketch.name.as_str(), sketch.state), ("s", "", 1));
        assert_eq!(sketch.whole().unwrap(), sandbox);

        let metadata = Some(ContainerMetadata { name: "main".into(), attempt: 3 });
        let container = Container { id: "c".into(), metadata, state: 2, labels: labels(), ..Container::default() };
        let sketch = Sketch::of(&container).unwrap();
        assert_eq!((sketch.id.as_str(), sketch.name.as_str(), sketch.state), ("c", "main", 2));
        for (key, value) in
            [("io.kubernetes.pod.uid", Some("u")), ("io.kubernetes.pod.name", Some("n")), ("", Some("e")), ("io", None)]
        {
            assert_eq!(sketch.label(key).as_deref(), value, "{key}");
        }
        assert_eq!(sketch.whole().unwrap(), container);
    }

    #[test]
    fn what_is_no_item_is_refused() {
        let error = Sketch::<Container>::read(Bytes::from_static(&[0x0a, 0x05, b'c'])).unwrap_err();
        assert!(error.to_string().starts_with("rpc error: code = Internal desc = "), "{error}");
    }
}
