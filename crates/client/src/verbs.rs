//! The verbs of one resource without its type: paths, parameters and bodies.

use api_machinery::json;
use api_machinery::meta::{CreateOptions, DeleteOptions, GetOptions, ListOptions, PatchOptions, UpdateOptions};
use api_machinery::object::{Kind as _, Object};
use api_machinery::reflect::{Reflect, View};
use bytes::Bytes;
use http::Method;

use crate::api::namespace_of;
use crate::client::Client;
use crate::codec::{self, RawList};
use crate::config::ContentType;
use crate::error::ClientError;
use crate::patch::Patch;
use crate::request::{JSON, Request, path_segment};
use crate::resource::{Codec, Form, ResourceInfo};
use crate::watch::RawWatch;

/// Objects per page, as upstream's pager.
pub(crate) const PAGE_SIZE: i64 = 500;
/// More pages than this are taken for a server that repeats itself.
const MAX_PAGES: usize = 100_000;

/// The verbs of one resource within a scope.
#[derive(Clone)]
pub(crate) struct Verbs {
    client: Client,
    codec: Codec,
    namespace: String,
}

impl Verbs {
    pub(crate) fn new(client: &Client, codec: Codec, namespace: &str) -> Self {
        Self { client: client.clone(), codec, namespace: namespace.to_owned() }
    }

    pub(crate) fn resource(&self) -> &ResourceInfo {
        &self.codec.info
    }

    pub(crate) fn codec(&self) -> &Codec {
        &self.codec
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn content(&self) -> ContentType {
        self.client.config().content
    }

    fn takes_cbor(&self) -> bool {
        self.codec.form == Form::Unstructured && self.client.takes_cbor()
    }

    /// Media types in order of preference, for single objects.
    fn accept(&self) -> &'static str {
        if self.takes_cbor() { codec::CBOR_FIRST } else { codec::accept(self.codec.form, self.content()) }
    }

    /// `{prefix}[/namespaces/{namespace}]/{resource}[/{name}[/{subresource}]]`
    fn path(&self, namespace: &str, name: Option<&str>, subresource: &str) -> Result<String, ClientError> {
        let info = &self.codec.info;
        let mut path = info.version_path();
        if info.namespaced && !namespace.is_empty() {
            check_segment("namespace", namespace)?;
            path.push_str("/namespaces/");
            path.push_str(&path_segment(namespace));
        }
        path.push('/');
        path.push_str(&info.resource.resource);
        if let Some(name) = name {
            if name.is_empty() {
                return Err(ClientError::Invalid("resource name may not be empty".to_owned()));
            }
            if info.namespaced && namespace.is_empty() {
                let text = "an empty namespace may not be set when a resource name is provided";
                return Err(ClientError::Invalid(text.to_owned()));
            }
            check_segment("name", name)?;
            path.push('/');
            path.push_str(&path_segment(name));
            if !subresource.is_empty() {
                path.push('/');
                path.push_str(subresource);
            }
        }
        Ok(path)
    }

    fn request(&self, method: Method, path: String, options: &dyn Reflect) -> Request {
        with_options(Request::new(method, path).accept(self.accept()), options)
    }

    async fn object(&self, request: Request) -> Result<Box<dyn Object>, ClientError> {
        codec::decode_object(&self.codec, &self.client.send(request).await?.body)
    }

    pub(crate) async fn get(&self, name: &str, options: &GetOptions) -> Result<Box<dyn Object>, ClientError> {
        let path = self.path(&self.namespace, Some(name), "")?;
        self.object(self.request(Method::GET, path, options)).await
    }

    pub(crate) async fn list(&self, options: &ListOptions) -> Result<RawList, ClientError> {
        let path = self.path(&self.namespace, None, "")?;
        let accept =
            if self.takes_cbor() { codec::CBOR_FIRST } else { codec::accept_list(self.codec.form, self.content()) };
        let about = self.codec.info.resource.group_resource();
        let request = self.request(Method::GET, path, options).accept(accept).about(about);
        codec::decode_list(&self.codec, &self.client.send(request).await?.body)
    }

    /// Reads all pages. The result's version is the first page's.
    pub(crate) async fn list_pages(&self, options: &ListOptions) -> Result<RawList, ClientError> {
        let mut options = options.clone();
        if options.limit == 0 {
            options.limit = PAGE_SIZE;
        }
        let mut whole = self.list(&options).await?;
        let first = options.clone();
        for _ in 0..MAX_PAGES {
            if whole.metadata.continue_.is_empty() {
                return Ok(whole);
            }
            options.continue_ = std::mem::take(&mut whole.metadata.continue_);
            options.resource_version.clear();
            options.resource_version_match.clear();
            match self.list(&options).await {
                Ok(page) => {
                    whole.items.extend(page.items);
                    whole.metadata.continue_ = page.metadata.continue_;
                    whole.metadata.remaining_item_count = None;
                }
                // The pages are gone from the server's history: one large list instead.
                Err(error) if error.is_gone() => return self.list(&ListOptions { limit: 0, ..first }).await,
                Err(error) => return Err(error),
            }
        }
        Err(ClientError::Decode { what: "list".to_owned(), reason: "the list has no end".to_owned() })
    }

    pub(crate) async fn watch(&self, options: &ListOptions) -> Result<RawWatch, ClientError> {
        let options = ListOptions { watch: true, ..options.clone() };
        let path = self.path(&self.namespace, None, "")?;
        let mut request = self.request(Method::GET, path, &options);
        request.watch = true;
        let response = self.client.stream(request).await?;
        RawWatch::new(response, self.codec.clone())
    }

    pub(crate) async fn create(
        &self,
        object: &dyn Object,
        options: &CreateOptions,
    ) -> Result<Box<dyn Object>, ClientError> {
        let namespace = namespace_of(&self.namespace, object.meta());
        if self.codec.info.namespaced && namespace.is_empty() {
            return Err(ClientError::Invalid("an empty namespace may not be set during creation".to_owned()));
        }
        let path = self.path(namespace, None, "")?;
        let (media_type, body) = self.encode(object);
        self.object(self.request(Method::POST, path, options).body(media_type, body)).await
    }

    pub(crate) async fn update(
        &self,
        object: &dyn Object,
        subresource: &str,
        options: &UpdateOptions,
    ) -> Result<Box<dyn Object>, ClientError> {
        codec::decode_object(&self.codec, &self.write(object, subresource, options).await?)
    }

    /// Replaces an object or a part of it, and answers with what it has become as it was sent.
    pub(crate) async fn write(
        &self,
        object: &dyn Object,
        subresource: &str,
        options: &UpdateOptions,
    ) -> Result<Bytes, ClientError> {
        let meta = object.meta();
        let path = self.path(namespace_of(&self.namespace, meta), Some(&meta.name), subresource)?;
        let (media_type, body) = self.encode(object);
        let request = self.request(Method::PUT, path, options).body(media_type, body);
        Ok(self.client.send(request).await?.body)
    }

    /// Metadata cannot be written as such: a partial object is only a view.
    fn encode(&self, object: &dyn Object) -> (&'static str, Vec<u8>) {
        if self.codec.form == Form::Unstructured && self.client.sends_cbor() {
            return codec::encode_cbor(object);
        }
        codec::encode_object(object, self.codec.form, self.content())
    }

    pub(crate) async fn patch(
        &self,
        name: &str,
        subresource: &str,
        patch: &Patch,
        options: &PatchOptions,
    ) -> Result<Box<dyn Object>, ClientError> {
        let path = self.path(&self.namespace, Some(name), subresource)?;
        let (media_type, body) = patch.encode(self.client.sends_cbor());
        self.object(self.request(Method::PATCH, path, options).body(media_type, body)).await
    }

    pub(crate) async fn delete(&self, name: &str, options: &DeleteOptions) -> Result<Bytes, ClientError> {
        let path = self.path(&self.namespace, Some(name), "")?;
        let request = Request::new(Method::DELETE, path).accept(self.accept()).body(JSON, delete_body(options));
        Ok(self.client.send(request).await?.body)
    }

    pub(crate) async fn delete_collection(
        &self,
        options: &DeleteOptions,
        select: &ListOptions,
    ) -> Result<(), ClientError> {
        let path = self.path(&self.namespace, None, "")?;
        let accept = match self.codec.form {
            // What is deleted comes back whole; nobody looks at it.
            Form::Metadata => JSON,
            _ => self.accept(),
        };
        let request = with_options(Request::new(Method::DELETE, path).accept(accept), select);
        self.client.send(request.body(JSON, delete_body(options))).await.map(drop)
    }

    pub(crate) async fn get_subresource(&self, name: &str, subresource: &str) -> Result<Bytes, ClientError> {
        let path = self.path(&self.namespace, Some(name), subresource)?;
        Ok(self.client.send(self.request(Method::GET, path, &GetOptions::default())).await?.body)
    }

    pub(crate) async fn create_subresource(
        &self,
        name: &str,
        subresource: &str,
        (media_type, body): (&'static str, Vec<u8>),
    ) -> Result<Bytes, ClientError> {
        let path = self.path(&self.namespace, Some(name), subresource)?;
        let request = self.request(Method::POST, path, &CreateOptions::default()).body(media_type, body);
        Ok(self.client.send(request).await?.body)
    }

    pub(crate) async fn update_subresource(
        &self,
        name: &str,
        subresource: &str,
        (media_type, body): (&'static str, Vec<u8>),
    ) -> Result<Bytes, ClientError> {
        let path = self.path(&self.namespace, Some(name), subresource)?;
        let request = self.request(Method::PUT, path, &UpdateOptions::default()).body(media_type, body);
        Ok(self.client.send(request).await?.body)
    }
}

fn check_segment(what: &str, text: &str) -> Result<(), ClientError> {
    let reason = match text {
        "." | ".." => format!("may not be '{text}'"),
        _ if text.contains('/') => "may not contain '/'".to_owned(),
        _ if text.contains('%') => "may not contain '%'".to_owned(),
        _ => return Ok(()),
    };
    Err(ClientError::Invalid(format!("invalid resource {what} \"{text}\": [{reason}]")))
}

fn delete_body(options: &DeleteOptions) -> String {
    json::encode_typed(DeleteOptions::TYPE.kind, DeleteOptions::TYPE.version, options)
}

/// Adds the options that are set as query parameters, by their JSON names.
fn with_options(mut request: Request, options: &dyn Reflect) -> Request {
    for (index, field) in options.struct_type().fields.iter().enumerate() {
        let mut add = |value: String| request.query.push((field.name, value));
        match options.field(index).view() {
            View::Optional(Some(inner)) => match inner.view() {
                View::Bool(value) => add(value.to_string()),
                View::Int64(value) => add(value.to_string()),
                View::Str(value) => add(value.to_owned()),
                _ => {}
            },
            View::Str(value) if !value.is_empty() => add(value.to_owned()),
            View::Bool(true) => add("true".to_owned()),
            View::Int64(value) if value != 0 => add(value.to_string()),
            View::List(list) => {
                for item in (0..list.len()).filter_map(|at| list.item(at)) {
                    if let View::Str(value) = item.view() {
                        add(value.to_owned());
                    }
                }
            }
            _ => {}
        }
    }
    request
}
