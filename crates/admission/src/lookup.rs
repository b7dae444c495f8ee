//! The cluster state that plugins look at. The API server answers from its caches, and from the store where a plugin
//! asks for what is live.

use std::any::Any;
use std::sync::Arc;

use api_machinery::gvk::GroupVersionKind;
use api_machinery::object::{Kind, Object};
use api_machinery::renamed::Renamed;
use api_machinery::status::ApiError;
use api_types::authentication_v1::UserInfo;
use api_types::core_v1::{Namespace, ResourceQuota};
use async_trait::async_trait;
use cel::kubernetes::authorizer::{Decision, Question};

use crate::ParamResource;

/// What a plugin asks whether the caller may do it.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResourceAttributes<'a> {
    /// The verb.
    pub verb: &'a str,
    /// The API group; empty for core.
    pub group: &'a str,
    /// The version; empty for any.
    pub version: &'a str,
    /// The plural resource name.
    pub resource: &'a str,
    /// The subresource; usually empty.
    pub subresource: &'a str,
    /// The namespace; empty for the cluster.
    pub namespace: &'a str,
    /// The object's name.
    pub name: &'a str,
}

/// Reads of cluster state, of any resource: its place is group, version and plural name. Objects without a namespace have
/// an empty one. [`Lookup`]'s own methods read one kind as its type.
#[async_trait]
pub trait Lookup: Send + Sync {
    /// An object as the cache has it. It never waits: a cache that is still filling has nothing.
    fn cached(&self, place: [&str; 3], namespace: &str, name: &str) -> Option<Arc<dyn Object>>;
    /// Whether there may be any object: no only where the cache knows that there is none.
    fn has_any(&self, _place: [&str; 3]) -> bool {
        true
    }
    /// The objects of a namespace, or of all for an empty one, as the cache has them; nothing while it is still filling.
    fn at_hand(&self, place: [&str; 3], namespace: &str) -> Option<Vec<Arc<dyn Object>>>;
    /// The same; a cache that is still filling has none.
    fn all_cached(&self, place: [&str; 3], namespace: &str) -> Vec<Arc<dyn Object>> {
        self.at_hand(place, namespace).unwrap_or_default()
    }
    /// The same, once the cache is filled.
    async fn all_filled(&self, place: [&str; 3], namespace: &str) -> Result<Vec<Arc<dyn Object>>, ApiError>;
    /// All objects, once the cache is filled. The very same list as before says that none has changed.
    async fn all_shared(&self, place: [&str; 3]) -> Result<Arc<[Arc<dyn Object>]>, ApiError> {
        Ok(self.all_filled(place, "").await?.into())
    }
    /// An object as the store has it; 404 where it has none.
    async fn live(&self, place: [&str; 3], namespace: &str, name: &str) -> Result<Arc<dyn Object>, ApiError>;
    /// The quotas of a namespace, at least as new as this server's own last write of them.
    async fn quotas(&self, namespace: &str) -> Result<Vec<Arc<ResourceQuota>>, ApiError>;
    /// Writes the usage of a quota, if nobody else has written it since.
    async fn charge(&self, quota: ResourceQuota) -> Result<(), ApiError>;
    /// Whether the resource is there in this version.
    fn is_served(&self, place: [&str; 3]) -> bool;
    /// Where the objects of a kind are.
    fn resource_of(&self, kind: &GroupVersionKind) -> Option<ParamResource>;
    /// What the authorizer says to a question of an expression.
    async fn decide(&self, user: &Arc<UserInfo>, question: &Question) -> Decision;
    /// Creates a namespace of this name.
    async fn create_namespace(&self, name: &str) -> Result<(), ApiError>;
    /// What the authorizer says to something else that the caller may want to do.
    async fn authorize(&self, user: &Arc<UserInfo>, access: &ResourceAttributes<'_>) -> Decision;
    /// Whether the caller may do something else, which some plugins ask.
    async fn is_allowed(&self, user: &Arc<UserInfo>, access: &ResourceAttributes<'_>) -> bool {
        self.authorize(user, access).await.allowed
    }
}

impl dyn Lookup + '_ {
    /// An object as the cache has it.
    #[must_use]
    pub fn get<T: Kind + Object>(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        typed(self.cached(T::TYPE.place(), namespace, name)?)
    }

    /// The objects of a namespace as the cache has them, or of all for an empty one.
    #[must_use]
    pub fn list<T: Kind + Object>(&self, namespace: &str) -> Vec<Arc<T>> {
        self.all_cached(T::TYPE.place(), namespace).into_iter().filter_map(typed).collect()
    }

    /// The same, once the cache is filled.
    ///
    /// # Errors
    /// When it cannot be.
    pub async fn list_filled<T: Kind + Object>(&self, namespace: &str) -> Result<Vec<Arc<T>>, ApiError> {
        let all = self.all_filled(T::TYPE.place(), namespace).await?;
        Ok(all.into_iter().filter_map(typed).collect())
    }

    /// An object as the store has it.
    ///
    /// # Errors
    /// 404 where it has none, or whatever kept it from answering.
    pub async fn get_live<T: Kind + Object>(&self, namespace: &str, name: &str) -> Result<Arc<T>, ApiError> {
        let found = self.live(T::TYPE.place(), namespace, name).await?;
        typed(found).ok_or_else(|| ApiError::internal("an object of another kind"))
    }

    /// A namespace as the cache has it, or else as the store has it.
    ///
    /// # Errors
    /// 404 where neither has it, or whatever kept the store from answering.
    pub async fn namespace(&self, name: &str) -> Result<Arc<Namespace>, ApiError> {
        match self.get("", name) {
            Some(namespace) => Ok(namespace),
            None => self.get_live("", name).await,
        }
    }
}

/// The object as its own type, under whichever version's name it was found.
pub(crate) fn typed<T: Object>(object: Arc<dyn Object>) -> Option<Arc<T>> {
    let named = (&*object as &dyn Any).downcast_ref::<Renamed>().map(|named| Arc::clone(named.object()));
    let object = named.unwrap_or(object);
    let object: Arc<dyn Any + Send + Sync> = object;
    object.downcast().ok()
}

/// Whether these are the very same objects: as they are held, one that stands where another stood is another one.
pub(crate) fn same<T>(one: &[Arc<T>], other: &[Arc<T>]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| Arc::ptr_eq(one, other))
}
