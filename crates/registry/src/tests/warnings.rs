//! What clients are warned of although their request fails.

use api_machinery::meta::{DeleteOptions, ListOptions};
use api_machinery::object::Object;
use api_types::discovery_v1::EndpointSlice;
use parking_lot::Mutex;

use super::Fixture;
use crate::{Admission, Hooks};

/// Keeps what it is told.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Admission for Notes {
    fn warn(&self, texts: &[String]) {
        self.0.lock().extend(texts.iter().cloned());
    }
}

#[tokio::test(start_paused = true)]
async fn who_fails_late_is_warned_all_the_same() {
    let fixture = Fixture::new().await;
    let slices = fixture.registry.resource("discovery.k8s.io", "v1", "endpointslices").unwrap();
    let slice = || -> Box<dyn Object> {
        let mut slice = EndpointSlice { address_type: "FQDN".into(), ..EndpointSlice::default() };
        slice.metadata.name = "one".into();
        slice.metadata.namespace = "default".into();
        Box::new(slice)
    };
    slices.create(&fixture.cx("default"), slice(), &Hooks::none()).await.unwrap();
    let notes = Notes::default();
    let hooks = Hooks { admission: &notes, track: None };
    assert_eq!(slices.create(&fixture.cx("default"), slice(), &hooks).await.unwrap_err().code, 409);
    assert_eq!(*notes.0.lock(), ["spec.addressType: FQDN endpoints are deprecated"]);
}

#[tokio::test(start_paused = true)]
async fn who_deletes_a_job_that_is_not_there_is_warned() {
    let fixture = Fixture::new().await;
    let jobs = fixture.registry.resource("batch", "v1", "jobs").unwrap();
    let notes = Notes::default();
    let hooks = Hooks { admission: &notes, track: None };
    let missing = jobs.delete(&fixture.cx("default"), "none", &DeleteOptions::default(), &hooks).await.unwrap_err();
    assert_eq!(missing.code, 404);
    let told = notes.0.lock().concat();
    assert!(told.starts_with("child pods are preserved by default when jobs are deleted"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn who_deletes_what_cannot_be_selected_is_told_that_alone() {
    let fixture = Fixture::new().await;
    let jobs = fixture.registry.resource("batch", "v1", "jobs").unwrap();
    for (selector, told) in [("a in b", 0), ("a=b", 1)] {
        let notes = Notes::default();
        let hooks = Hooks { admission: &notes, track: None };
        let query = ListOptions { label_selector: selector.into(), ..ListOptions::default() };
        let outcome = jobs.delete_collection(&fixture.cx("default"), &query, &DeleteOptions::default(), &hooks).await;
        assert_eq!((outcome.is_ok(), notes.0.lock().len()), (told == 1, told), "{selector}");
    }
}
