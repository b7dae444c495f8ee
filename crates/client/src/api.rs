//! The verbs of one resource, typed: thin wrappers around [`Verbs`], which knows no type and is compiled once.

use std::marker::PhantomData;

use api_machinery::meta::{
    CreateOptions, DeleteOptions, GetOptions, ListOptions, ObjectMeta, PatchOptions, Preconditions, Status,
    UpdateOptions,
};
use api_machinery::object::{Kind, Object, ObjectList};

use crate::client::Client;
use crate::codec::{self, RawList};
use crate::error::ClientError;
use crate::patch::Patch;
use crate::resource::{ApiObject, Codec, ResourceInfo, downcast};
use crate::verbs::Verbs;
use crate::watch::WatchStream;

/// The objects of one resource in one namespace, in all namespaces, or without one.
pub struct Api<T> {
    pub(crate) verbs: Verbs,
    object: PhantomData<fn() -> T>,
}

impl<T> Clone for Api<T> {
    fn clone(&self) -> Self {
        Self { verbs: self.verbs.clone(), object: PhantomData }
    }
}

/// What is left of a deleted object.
#[derive(Debug, Clone)]
pub enum Deleted<T> {
    /// Nothing: the server answered with a Status.
    Gone(Box<Status>),
    /// The object as it was, or as it is while finalizers or a grace period hold it.
    Object(Box<T>),
}

impl<T> Api<T> {
    pub(crate) fn new(client: &Client, codec: Codec, namespace: &str) -> Self {
        Self { verbs: Verbs::new(client, codec, namespace), object: PhantomData }
    }

    /// The resource.
    #[must_use]
    pub fn resource(&self) -> &ResourceInfo {
        self.verbs.resource()
    }

    /// Deletes all objects that `select` selects.
    ///
    /// # Errors
    /// What the server refuses, or why it did not answer.
    pub async fn delete_collection(&self, options: &DeleteOptions, select: &ListOptions) -> Result<(), ClientError> {
        self.verbs.delete_collection(options, select).await
    }

    /// Reads a subresource, such as `scale`.
    ///
    /// # Errors
    /// What the server refuses, or why it did not answer.
    pub async fn get_subresource<R: Kind>(&self, name: &str, subresource: &str) -> Result<R, ClientError> {
        codec::decode_kind(&self.verbs.get_subresource(name, subresource).await?)
    }

    /// Posts to a subresource, such as `binding`, `eviction` or `token`.
    ///
    /// # Errors
    /// What the server refuses, or why it did not answer.
    pub async fn create_subresource<B: Kind, R: Kind>(
        &self,
        name: &str,
        subresource: &str,
        body: &B,
    ) -> Result<R, ClientError> {
        let body = codec::encode_kind(body, self.verbs.content());
        codec::decode_kind(&self.verbs.create_subresource(name, subresource, body).await?)
    }

    /// Replaces a subresource that is of a kind of its own, such as `scale`.
    ///
    /// # Errors
    /// What the server refuses, or why it did not answer.
    pub async fn update_subresource<B: Kind>(&self, name: &str, subresource: &str, body: &B) -> Result<B, ClientError> {
        let body = codec::encode_kind(body, self.verbs.content());
        codec::decode_kind(&self.verbs.update_subresource(name, subresource, body).await?)
    }
}

impl<T: ApiObject> Api<T> {
    fn typed(object: Box<dyn Object>) -> Result<T, ClientError> {
        downcast(object).ok_or_else(wrong_type)
    }

    fn list_of(list: RawList) -> Result<ObjectList<T>, ClientError> {
        let items = list.items.into_iter().map(Self::typed).collect::<Result<_, _>>()?;
        Ok(ObjectList { metadata: list.metadata, items })
    }

    /// Reads an object.
    ///
    /// # Errors
    /// What the server refuses, or why it did not answer.
    pub async fn get(&self, name: &str) -> Result<T, ClientError> {
        Self::typed(self.verbs.get(name, &GetOptions::default()).await?)
    }

    /// Reads an object that may not exist.
    ///
    /// # Errors
    /// What the server refuses other than 404, or why it did not answer.
    pub async fn get_opt(&self, name: &str) -> Result<Option<T>, ClientError> {
        match self.get(name).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads one page of a list; all of it without a limit.
    ///
    /// # Errors
    /// What the server refuses, or why it did not answer.
    pub async fn list(&self, options: &ListOptions) -> Result<ObjectList<T>, ClientError> {
        Self::list_of(self.verbs.list(options).await?)
    }

    /// Reads a whole list in pages of 500. Falls back to one large page when the pages expire on the way.
    ///
    /// # Errors
    /// What the server refuses, or why it did not answer.
    pub async fn list_all(&self, options: &ListOptions) -> Result<ObjectList<T>, ClientError> {
        Self::list_of(self.verbs.list_pages(options).await?)
    }

    /// Creates an object, in its own namespace where it names one.
    ///
    /// # Errors
    /// What the server refuses, or why it did not answer.
    pub async fn create(&self, object: &T) -> Result<T, ClientError> {
        self.create_with(object, &CreateOptions::default()).await
    }

    /// Creates an object, with options.
    ///
    /// # Errors
    /// What the server refuses, or why it did not answer.
    pub async fn create_with(&self, object: &T, options: &CreateOptions) -> Result<T, ClientError> {
        Self::typed(self.verbs.create(object, options).await?)
    }

    /// Replaces an object.
    ///
    /// # Errors
    /// What the server refuses, or why it did not answer.
    pub async fn update(&self, object: &T) -> Result<T, ClientError> {
        self.update_with(object, &UpdateOptions::default()).await
    }

    /// Replaces an object, with options.
    ///
    /// # Errors
    /// What the server refuses, or why it did not answer.
    pub async fn update_with(&self, object: &T, options: &UpdateOptions) -> Result<T, ClientError> {
        Self::typed(self.verbs.update(object, "", options).await?)
    }

    /// Replaces an object's status.
    ///
    /// # Errors
    /// What the server refuses, or why it did not answer.
    pub async fn update_status(&self, object: &T) -> Result<T, ClientError> {
        Self::typed(self.verbs.update(object, "status", &UpdateOptions::default()).await?)
    }

    /// Replaces an object's status, for those who do not look at what it has become: reading the answer costs as much as
    /// writing the request.
    ///
    /// # Errors
    /// What the server refuses, or why it did not answer.
    pub async fn write_status(&self, object: &T) -> Result<(), ClientError> {
        self.verbs.write(object, "status", &UpdateOptions::default()).await.map(drop)
    }

    /// Replaces what a subresource of the object's own kind covers, such as `finalize` or `approval`.
    ///
    /// # Errors
    /// What the server refuses, or why it did not answer.
    pub async fn update_part(&self, object: &T, subresource: &str) -> Result<T, ClientError> {
        Self::typed(self.verbs.update(object, subresource, &UpdateOptions::default()).await?)
    }

    /// Changes an object.
    ///
    /// # Errors
    /// What the server refuses, or why it did not answer.
    pub async fn patch(&self, name: &str, patch: &Patch) -> Result<T, ClientError> {
        self.patch_with(name, patch, &PatchOptions::default()).await
    }

    /// Changes an object, with options.
    ///
    /// # Errors
    /// What the server refuses, or why it did not answer.
    pub async fn patch_with(&self, name: &str, patch: &Patch, options: &PatchOptions) -> Result<T, ClientError> {
        self.patch_subresource(name, "", patch, options).await
    }

    /// Changes an object's status.
    ///
    /// # Errors
    /// What the server refuses, or why it did not answer.
    pub async fn patch_status(&self, name: &str, patch: &Patch) -> Result<T, ClientError> {
        self.patch_subresource(name, "status", patch, &PatchOptions::default()).await
    }

    /// Changes what a subresource of the object's own kind covers.
    ///
    /// # Errors
    /// What the server refuses, or why it did not answer.
    pub async fn patch_subresource(
        &self,
        name: &str,
        subresource: &str,
        patch: &Patch,
        options: &PatchOptions,
    ) -> Result<T, ClientError> {
        Self::typed(self.verbs.patch(name, subresource, patch, options).await?)
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// What the server refuses, or why it did not answer.
    pub async fn delete(&self, name: &str, options: &DeleteOptions) -> Result<Deleted<T>, ClientError> {
        let body = self.verbs.delete(name, options).await?;
        if codec::kind_of(&body) == "Status" {
            return codec::decode_kind(&body).map(|status| Deleted::Gone(Box::new(status)));
        }
        let object = codec::decode_object(self.verbs.codec(), &body)?;
        Ok(Deleted::Object(Box::new(Self::typed(object)?)))
    }

    /// Deletes this very object, and no other that has its name by now. Says whether it was there.
    ///
    /// # Errors
    /// What the server refuses, or why it did not answer.
    pub async fn delete_this(&self, object: &ObjectMeta, options: DeleteOptions) -> Result<bool, ClientError> {
        let own = Preconditions { uid: Some(object.uid.clone()), ..Preconditions::default() };
        let options = DeleteOptions { preconditions: Some(own), ..options };
        match self.delete(&object.name, &options).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Follows changes from `options.resource_version` on.
    ///
    /// # Errors
    /// What the server refuses, or why it did not answer.
    pub async fn watch(&self, options: &ListOptions) -> Result<WatchStream<T>, ClientError> {
        Ok(WatchStream::new(self.verbs.watch(options).await?))
    }
}

pub(crate) fn wrong_type() -> ClientError {
    ClientError::Decode { what: "object".to_owned(), reason: "the object is of another type".to_owned() }
}

/// The namespace to use for an object: the API's own, or the object's where the API spans all.
pub(crate) fn namespace_of<'a>(scope: &'a str, meta: &'a ObjectMeta) -> &'a str {
    if scope.is_empty() { &meta.namespace } else { scope }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::Pod;

    use super::*;
    use crate::fake::FakeServer;

    #[tokio::test(start_paused = true)]
    async fn another_object_of_the_name_stays() {
        let server = FakeServer::new();
        let text =
            r#"{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web-0", "namespace": "ns", "uid": "new"}}"#;
        server.put("v1/pods", api_machinery::json::parse_value(text).unwrap());
        let pods = server.client().namespaced::<Pod>("ns");
        let of = |uid: &str| ObjectMeta { name: "web-0".into(), uid: uid.into(), ..ObjectMeta::default() };
        assert!(!pods.delete_this(&of("old"), DeleteOptions::default()).await.unwrap());
        assert_eq!(server.objects("v1/pods").len(), 1);
        assert!(pods.delete_this(&of("new"), DeleteOptions::default()).await.unwrap());
        assert!(!pods.delete_this(&of("new"), DeleteOptions::default()).await.unwrap(), "it is gone");
    }
}
