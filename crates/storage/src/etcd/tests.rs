//! What can be said of the etcd client without a server; with one, see `tests/contract.rs`.

use std::time::Duration;

use base::{Rng, TaskGroup};

use super::{Etcd, EtcdOptions, EtcdTls};
use crate::StorageError;

#[tokio::test]
async fn wrong_options_are_refused_before_dialling() {
    let group = TaskGroup::new("test");
    let tls = || EtcdTls { ca_pem: Vec::new(), client: None };
    for (endpoints, tls) in [
        (vec![], None),
        (vec!["https://127.0.0.1:1"], None),
        (vec!["http://127.0.0.1:1"], Some(tls())),
        (vec!["not a url"], None),
    ] {
        let mut options = EtcdOptions::new(endpoints.clone());
        options.tls = tls;
        let error = Etcd::connect(options, Rng::seeded(1), &group).await.expect_err("must be refused");
        assert!(!error.is_transient(), "{endpoints:?}: {error}");
    }
}

#[tokio::test]
async fn an_unreachable_cluster_ends_the_dial_in_time() {
    let group = TaskGroup::new("test");
    let mut options = EtcdOptions::new(["http://127.0.0.1:1"]);
    options.dial_timeout = Duration::from_millis(200);
    let error = Etcd::connect(options, Rng::seeded(1), &group).await.expect_err("nothing listens there");
    assert!(matches!(error, StorageError::Unavailable { .. }), "{error}");
}
