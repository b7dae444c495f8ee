//! Get and list: from the cache where it can promise what was asked, from the store where it cannot.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use api_machinery::meta::ListOptions;
use api_machinery::meta::constants::resource_version_match::{EXACT, NOT_OLDER_THAN};
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use storage::{Revision, StorageError};
use watch_cache::{Cache, CacheError, PAGE_KEYS, Pace, Scope, Snapshot, Stored};

use crate::context::RequestCx;
use crate::continue_token::Token;
use crate::list_options::{LIST_FROM_SNAPSHOT, Reading, default_list_options, validate_list_options};
use crate::resource::{Listed, Resource};
use crate::selection::Selection;
use crate::unreadable::MetInList;
use crate::{failure, key, resource_version};

const EXPIRED_TOKEN: &str = "The provided continue parameter is too old to display a consistent list result. You can \
    start a new list without the continue parameter, or use the continue token in this response to retrieve the \
    remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were \
    created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// A page of a list, or all of it.
#[derive(Debug, Clone, Default)]
pub struct List {
    /// The revision it shows.
    pub revision: Revision,
    /// The objects, in the order of their keys.
    pub items: Vec<Arc<Stored>>,
    /// Where the next page starts; empty on the last.
    pub continue_token: String,
    /// About how many objects follow, where that is known.
    pub remaining_item_count: Option<i64>,
    /// The shards that it is of; empty for all.
    pub shards: String,
}

/// Which state a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Every write acknowledged before the request.
    Now,
    /// Whatever the cache has.
    Any,
    /// This revision or later.
    NotOlderThan(Revision),
    /// This revision.
    Exactly(Revision),
}

/// A list request, understood.
struct Query {
    selection: Selection,
    at: At,
    /// The first key that may be in the page, relative to the resource.
    from: String,
    /// It goes on from an earlier page.
    continues: bool,
    limit: usize,
}

impl Resource {
    /// Reads one object. `version` is the `resourceVersion` of the request.
    ///
    /// # Errors
    /// When the object is missing, the version cannot be had, or the store fails.
    pub async fn get(&self, cx: &RequestCx, name: &str, version: &str) -> Result<Arc<Stored>, ApiError> {
        let relative = key::relative(self.info().namespaced, &cx.namespace, name)?;
        let wanted = resource_version::parse(version).map_err(|error| match self.store.cache {
            Some(_) => ApiError::unclassified(error),
            // The store's words, where there is nothing before it.
            None => ApiError::bad_request(format!("invalid resource version: {error}")),
        })?;
        if let Some(cache) = self.store.cache.as_ref().filter(|_| !version.is_empty()) {
            let snapshot = if wanted == Revision(0) { cache.snapshot() } else { cache.not_older_than(wanted).await };
            match snapshot {
                Ok(snapshot) => {
                    let found = snapshot.get(&relative).cloned();
                    return self.found(found, name).await;
                }
                Err(CacheError::NotReady { .. } | CacheError::Stopped) => {}
                Err(error) => return Err(failure::cache(&self.group_resource, "get", error)),
            }
        }
        let (live, revision) = self.store.read(&relative).await?;
        if wanted > revision {
            return Err(failure::too_large_in_store(wanted, Some(revision)));
        }
        self.found(live.map(|live| live.item), name).await
    }

    /// The objects of a namespace as this server's cache has them, all where the namespace is empty, without a wait and
    /// without the cost of a request; nothing where that takes more than a look at the cache.
    #[must_use]
    pub fn at_hand(&self, namespace: &str) -> Option<Vec<Arc<Stored>>> {
        let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        let snapshot = self.store.cache.as_ref()?.snapshot().ok()?;
        snapshot.range(&prefix, "").map(|item| self.served_at_hand(Arc::clone(item))).collect()
    }

    /// All objects, as [`Resource::at_hand`] finds them: the very same list for as long as none of them changes.
    #[must_use]
    pub fn all_at_hand(&self) -> Option<Arc<[Arc<dyn Object>]>> {
        let at = self.store.cache.as_ref()?.snapshot().ok()?;
        let mut listed = self.listed.lock();
        if let Some(known) = listed.as_ref().filter(|known| known.at.has_same_objects(&at)) {
            return Some(Arc::clone(&known.objects));
        }
        let items = at.range("", "").map(|item| Some(self.served_at_hand(Arc::clone(item))?.shared_object()));
        let objects = items.collect::<Option<Arc<[_]>>>()?;
        *listed = Some(Listed { at, objects: Arc::clone(&objects) });
        Some(objects)
    }

    /// Whether there is any object, as far as [`Resource::at_hand`] knows.
    #[must_use]
    pub fn has_any_at_hand(&self) -> Option<bool> {
        Some(!self.store.cache.as_ref()?.snapshot().ok()?.is_empty())
    }

    /// One object, as [`Resource::at_hand`] finds all.
    #[must_use]
    pub fn one_at_hand(&self, namespace: &str, name: &str) -> Option<Arc<Stored>> {
        let found = if self.info().namespaced {
            self.store.cached(&format!("{namespace}/{name}"))
        } else {
            self.store.cached(name)
        };
        self.served_at_hand(found?)
    }

    async fn found(&self, item: Option<Arc<Stored>>, name: &str) -> Result<Arc<Stored>, ApiError> {
        match item {
            Some(item) => self.to_served(item).await,
            None => Err(ApiError::not_found(&self.group_resource, name)),
        }
    }

    /// Lists objects of the request's namespace, or of all.
    ///
    /// # Errors
    /// When the options contradict each other, a selector or token cannot be read, the revision is gone or not there
    /// yet, or the store fails.
    pub async fn list(&self, cx: &RequestCx, options: &ListOptions) -> Result<List, ApiError> {
        let mut options = options.clone();
        default_list_options(&mut options, Reading::List, &self.shared.gates);
        validate_list_options(&options, Reading::List, &self.shared.gates)?;
        let query = self.query(&cx.namespace, &options)?;
        let mut list = match &self.store.cache {
            Some(cache) if !query.needs_store() => match self.list_cached(cache, &query).await? {
                Some(list) => list,
                None => self.list_stored(&query).await?,
            },
            _ => self.list_stored(&query).await?,
        };
        if let Some(conversion) = &self.conversion {
            let mut pace = Pace::default();
            conversion.fetch(list.items.iter()).await?;
            for item in &mut list.items {
                *item = conversion.to_served(item).await?;
                pace.after(Pace::CODED).await;
            }
        }
        list.shards = options.shard_selector;
        Ok(list)
    }

    fn query(&self, namespace: &str, options: &ListOptions) -> Result<Query, ApiError> {
        let selection = self.selection(namespace, options)?;
        let limit = usize::try_from(options.limit).unwrap_or(0);
        let invalid = |text: String| ApiError::bad_request(format!("invalid resource version: {text}"));
        if !options.continue_.is_empty() {
            if !matches!(options.resource_version.as_str(), "" | "0") {
                return Err(ApiError::bad_request("specifying resource version is not allowed when using continue"));
            }
            let token = Token::decode(&options.continue_)
                .map_err(|text| ApiError::bad_request(format!("invalid continue token: {text}")))?;
            let at = if token.revision > 0 { At::Exactly(Revision(token.revision)) } else { At::Now };
            let from = format!("{}{}", page_prefix(&selection), token.start);
            return Ok(Query { selection, at, from, continues: true, limit });
        }
        let version = resource_version::parse(&options.resource_version).map_err(invalid)?;
        let at = match (options.resource_version.as_str(), options.resource_version_match.as_str()) {
            ("", _) => At::Now,
            (_, EXACT) => At::Exactly(version),
            _ if version == Revision(0) => At::Any,
            (_, NOT_OLDER_THAN) => At::NotOlderThan(version),
            _ if limit > 0 => At::Exactly(version),
            _ => At::NotOlderThan(version),
        };
        Ok(Query { selection, at, from: String::new(), continues: false, limit })
    }

    /// Answers from the cache; nothing where the store has to be asked.
    async fn list_cached(&self, cache: &Cache, query: &Query) -> Result<Option<List>, ApiError> {
        let read = match query.at {
            At::Now if self.store.backend.supports_progress() => cache.consistent().await,
            At::Now => return Ok(None),
            At::Any => cache.snapshot(),
            At::NotOlderThan(revision) => cache.not_older_than(revision).await,
            At::Exactly(_) if !self.shared.gates.enabled(LIST_FROM_SNAPSHOT) => return Ok(None),
            At::Exactly(_) if self.store.differs.load(Ordering::Relaxed) => return Ok(None),
            At::Exactly(revision) => match self.exact_snapshot(cache, revision).await {
                Ok(Some(snapshot)) => Ok(snapshot),
                Ok(None) => return Ok(None),
                Err(error) => Err(error),
            },
        };
        let counts = &self.store.counts;
        match read {
            Ok(snapshot) => {
                let Page { list, looked_at, index } = page_of(&snapshot, query).await;
                if query.at == At::Now {
                    counts.consistent(true, false);
                }
                if let Some(own) = counts.cached(index) {
                    own.lists.add(1);
                    own.fetched.add(looked_at);
                }
                counts.cached_returned.add(list.items.len());
                Ok(Some(list))
            }
            // A cache that lags is no reason to fail a read that the store can answer.
            Err(CacheError::TooLarge { .. }) if query.at == At::Now => {
                let answer = self.list_stored(query).await;
                counts.consistent(answer.is_ok(), true);
                answer.map(Some)
            }
            Err(CacheError::NotReady { .. }) if query.limit > 0 && query.selection.matcher.is_none() => Ok(None),
            Err(error) => Err(failure::cache(&self.group_resource, "list", error)),
        }
    }

    async fn exact_snapshot(&self, cache: &Cache, revision: Revision) -> Result<Option<Arc<Snapshot>>, CacheError> {
        // What the store has forgotten is gone, however much of it this server's cache still knows.
        if revision.0 < self.store.compacted.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if revision > cache.snapshot()?.revision() && self.store.backend.supports_progress() {
            cache.not_older_than(revision).await?;
        }
        cache.exactly(revision)
    }

    async fn list_stored(&self, query: &Query) -> Result<List, ApiError> {
        let list = self.read_stored(query).await?;
        self.store.counts.stored.add(1);
        self.store.counts.stored_returned.add(list.items.len());
        Ok(list)
    }

    async fn read_stored(&self, query: &Query) -> Result<List, ApiError> {
        let at = match query.at {
            At::Exactly(revision) => Some(revision),
            At::Now | At::Any | At::NotOlderThan(_) => None,
        };
        let selection = &query.selection;
        let range = match &selection.scope {
            Scope::Object(key) => storage::KeyRange::single(&self.store.key(key)),
            _ => self.store.range(&selection.list_prefix),
        };
        let mut rest = match query.from.as_str() {
            "" => range,
            from => match range.end().cloned() {
                Some(end) => storage::KeyRange::between(self.store.key(from), end),
                None => range,
            },
        };
        let limit = if query.at == At::Any { 0 } else { query.limit };
        // The first fetch fixes the revision of all others.
        let (mut pinned, mut items, mut total) = (at, Vec::new(), None);
        let (resource, mut unreadable) = (&self.group_resource, MetInList::new(self.store.told));
        let (mut chunk, mut pace) = (if limit == 0 { PAGE_KEYS } else { limit.min(PAGE_KEYS) }, Pace::default());
        loop {
            let page = self.store.backend.range(&rest, chunk, pinned).await;
            let page = page.map_err(|error| self.list_failed(query, error))?;
            let revision = *pinned.get_or_insert(page.revision);
            if let At::NotOlderThan(wanted) = query.at
                && wanted > page.revision
            {
                return Err(failure::too_large_in_store(wanted, Some(page.revision)));
            }
            total.get_or_insert(page.kvs.len() as u64 + page.remaining);
            self.store.counts.stored_fetched.add(page.kvs.len());
            for (read, kv) in page.kvs.iter().enumerate() {
                let decoded = self.store.decode(kv);
                pace.after(Pace::CODED).await;
                match decoded {
                    Ok(item) => {
                        self.store.counts.stored_evaluated.add(1);
                        if selection.matches(&item) {
                            items.push(item);
                        }
                    }
                    Err(error) => unreadable.note(resource, &error, kv.mod_revision)?,
                }
                let more = page.more() || read + 1 < page.kvs.len();
                if limit > 0 && items.len() == limit && more {
                    unreadable.end(resource)?;
                    let last = key_below(&kv.key.to_string(), &self.store.prefix);
                    return Ok(cut_off(query, revision, items, &last, total));
                }
            }
            let Some(last) = page.kvs.last().filter(|_| page.more()) else {
                unreadable.end(resource)?;
                return Ok(List { revision, items, ..List::default() });
            };
            rest = rest.after(&last.key);
            chunk = (chunk * 2).min(PAGE_KEYS);
        }
    }

    fn list_failed(&self, query: &Query, error: StorageError) -> ApiError {
        if query.continues && matches!(error, StorageError::Compacted { .. }) {
            let start = query.from.strip_prefix(page_prefix(&query.selection)).unwrap_or(&query.from);
            let token = Token { revision: -1, start: start.to_owned() };
            return ApiError::expired(EXPIRED_TOKEN).with_continue(token.encode());
        }
        self.store.failed("list", error)
    }
}

impl Query {
    /// Whether the cache is of no use: a single key at a certain revision is cheaper to read than to reconstruct.
    fn needs_store(&self) -> bool {
        matches!(self.selection.scope, Scope::Object(_)) && matches!(self.at, At::Exactly(_))
    }
}

/// What the start key of a continue token leaves out: the prefix that the list is of.
fn page_prefix(selection: &Selection) -> &str {
    if selection.list_prefix.ends_with('/') { &selection.list_prefix } else { "" }
}

fn key_below(key: &str, prefix: &str) -> String {
    key.strip_prefix(prefix).unwrap_or(key).to_owned()
}

/// A page that more objects follow.
fn cut_off(query: &Query, revision: Revision, items: Vec<Arc<Stored>>, last: &str, total: Option<u64>) -> List {
    let start = last.strip_prefix(page_prefix(&query.selection)).unwrap_or(last);
    let token = Token { revision: revision.0, start: format!("{start}\0") };
    let remaining = total.filter(|_| query.selection.matcher.is_none());
    let remaining = remaining.and_then(|total| i64::try_from(total.saturating_sub(items.len() as u64)).ok());
    List { revision, items, continue_token: token.encode(), remaining_item_count: remaining, ..List::default() }
}

/// A page of a snapshot, and what it took.
struct Page {
    list: List,
    /// How many objects were looked at.
    looked_at: usize,
    /// The position of the index that said at which.
    index: Option<usize>,
}

/// A page of a snapshot.
async fn page_of(snapshot: &Snapshot, query: &Query) -> Page {
    let mut pace = Pace::default();
    let selection = &query.selection;
    // The index knows nothing of pages, and its order within a page is that of keys all the same.
    let index = match selection.scope {
        Scope::Indexed(index, _) if !query.continues && !matches!(query.at, At::Exactly(_)) => Some(index),
        _ => None,
    };
    let mut candidates: Box<dyn Iterator<Item = &Arc<Stored>> + Send> = match &selection.scope {
        Scope::Indexed(..) if index.is_none() => Box::new(snapshot.range(&selection.list_prefix, &query.from)),
        scope => snapshot.scoped(scope, &query.from),
    };
    let limit = if query.at == At::Any { 0 } else { query.limit };
    let (mut items, mut looked_at): (Vec<Arc<Stored>>, usize) = (Vec::new(), 0);
    for stored in candidates.by_ref() {
        looked_at += 1;
        if selection.matches(stored) {
            items.push(Arc::clone(stored));
            if limit > 0 && items.len() == limit {
                break;
            }
        }
        pace.after(Pace::LOOKED_AT).await;
    }
    let full = limit > 0 && items.len() == limit;
    let last = items.last().filter(|_| full).map(|last| Arc::clone(last.key()));
    let mut following = 0_u64;
    if last.is_some() {
        for _ in candidates {
            following += 1;
            pace.after(Pace::LOOKED_AT).await;
        }
    }
    let list = match last.filter(|_| following > 0) {
        Some(last) => {
            let total = Some(following + items.len() as u64);
            cut_off(query, snapshot.revision(), items, &last, total)
        }
        None => List { revision: snapshot.revision(), items, ..List::default() },
    };
    Page { list, looked_at, index }
}
