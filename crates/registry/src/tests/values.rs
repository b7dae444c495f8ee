//! Values that lie in the store in another form than they are written in.

use std::sync::atomic::{AtomicU8, Ordering};

use api_machinery::gvk::GroupResource;
use async_trait::async_trait;
use bytes::Bytes;
use kinds::rules::Endpoint;
use storage::{Backend as _, Expect, Key, ReadValue, TransformError, Transformer, Write};

use super::*;
use crate::Hooks;
use crate::context::Patch;

/// Adds the number of its key to every byte, and says which key it was.
#[derive(Default)]
pub(super) struct Shifted {
    pub(super) newest: AtomicU8,
}

#[async_trait]
impl Transformer for Shifted {
    async fn on_read(&self, _: &Key, stored: &Bytes) -> Result<ReadValue, TransformError> {
        let newest = self.newest.load(Ordering::Relaxed);
        let key = *stored.first().filter(|key| **key <= newest).ok_or(TransformError("no matching key".into()))?;
        let value = stored[1..].iter().map(|byte| byte.wrapping_sub(key)).collect();
        Ok(ReadValue { value, stale: key != newest })
    }

    async fn on_write(&self, _: &Key, value: &Bytes) -> Result<Bytes, TransformError> {
        let key = self.newest.load(Ordering::Relaxed);
        Ok([key].into_iter().chain(value.iter().map(|byte| byte.wrapping_add(key))).collect())
    }
}

async fn fixture(shifted: &Arc<Shifted>, cached: bool) -> Fixture {
    gated(shifted, cached, false).await
}

pub(super) async fn gated(shifted: &Arc<Shifted>, cached: bool, unsafe_deletion: bool) -> Fixture {
    let shifted = Arc::clone(shifted);
    Fixture::with(move |options| {
        options.gates = options.gates.with(crate::UNSAFE_DELETION, unsafe_deletion);
        if !cached {
            options.uncached.insert("configmaps".into());
        }
        options.transformers = Arc::new(move |resource: &GroupResource| {
            let it: Arc<dyn Transformer> = Arc::clone(&shifted) as _;
            (resource.to_string() == "configmaps").then_some(it)
        });
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn what_lies_in_the_store_is_another_form() {
    for cached in [true, false] {
        let shifted = Arc::new(Shifted { newest: 7.into() });
        let fixture = fixture(&shifted, cached).await;
        let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
        let mut watch = maps.watch(&cx, &ListOptions::default(), None).await.unwrap();
        maps.create(&cx, config_map("a", "plain words"), &Hooks::none()).await.unwrap();
        let lies = fixture.store.get(&"/registry/configmaps/default/a".into()).await.unwrap().kv.unwrap().value;
        assert!(!lies.windows(5).any(|window| window == b"plain"), "{lies:?}");
        assert_eq!(value(&maps.get(&cx, "a", "").await.unwrap()), "plain words");
        assert_eq!(names(&maps.list(&cx, &ListOptions::default()).await.unwrap()), ["a"]);
        let Some(watch_cache::Event::Change(change)) = watch.next().await else { panic!("the creation") };
        assert_eq!(value(&change.item), "plain words");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_stale_is_written_anew_once() {
    for cached in [true, false] {
        let shifted = Arc::new(Shifted { newest: 1.into() });
        let fixture = fixture(&shifted, cached).await;
        let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
        let written = maps.create(&cx, config_map("a", "x"), &Hooks::none()).await.unwrap().item.revision();
        let unchanged = async || {
            let change = Patch(|object: &dyn Object| Ok(object.clone_object()));
            maps.update(&cx, "a", Endpoint::Main, &change, &Hooks::none()).await.unwrap().item.revision()
        };
        assert_eq!(unchanged().await, written, "nothing to do");
        shifted.newest.store(2, Ordering::Relaxed);
        let anew = unchanged().await;
        assert!(anew > written, "the key was rotated");
        assert_eq!(unchanged().await, anew);
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_an_error_of_its_own() {
    let shifted = Arc::new(Shifted { newest: 1.into() });
    let fixture = fixture(&shifted, false).await;
    let (maps, cx) = (fixture.resource("configmaps"), fixture.cx("default"));
    maps.create(&cx, config_map("a", "x"), &Hooks::none()).await.unwrap();
    let key = "/registry/configmaps/default/b";
    fixture.store.txn(&key.into(), Expect::Absent, Write::put(&b"\x09what"[..])).await.unwrap();
    assert_eq!(value(&maps.get(&cx, "a", "").await.unwrap()), "x");
    let message = maps.get(&cx, "b", "").await.unwrap_err().to_string();
    assert!(message.contains("Internal error occurred: no matching key"), "{message}");
    let message = maps.list(&cx, &ListOptions::default()).await.unwrap_err().to_string();
    let expected = format!("Internal error occurred: unable to transform key {key:?}: no matching key");
    assert!(message.contains(&expected), "{message}");
}
