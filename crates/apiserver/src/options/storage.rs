//! The flags of the store.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use api_machinery::gvk::GroupResource;
use component_base::flags::{Errors, Options};
use registry::StorageMedia;
use storage::{EtcdOptions, EtcdTls};

use super::durations::not_negative;
use crate::config::{BackendConfig, EncryptionFile, StorageConfig};

pub(super) fn read(options: &Options, errors: &mut Errors) -> StorageConfig {
    let backend = options.string("storage-backend");
    errors.check(
        matches!(backend, "" | "etcd3"),
        "--storage-backend invalid, allowed values: etcd3. If not specified, it will default to 'etcd3'",
    );
    let media = options.string("storage-media-type");
    let (media, known) = match media {
        // Upstream's storage factory takes nothing for JSON, whatever the flag's own default is.
        "application/json" | "" => (StorageMedia::Json, true),
        other => (StorageMedia::Protobuf, other == "application/vnd.kubernetes.protobuf"),
    };
    errors.check(
        known,
        format!(
            "--storage-media-type {:?} invalid, allowed values: application/json, application/vnd.kubernetes.protobuf",
            options.string("storage-media-type")
        ),
    );
    let workers = options.int("delete-collection-workers");
    errors.check(workers > 0, "--delete-collection-workers must be positive");
    let reuse = options.int("lease-reuse-duration-seconds");
    let (encryption, follows) =
        (options.string("encryption-provider-config"), options.bool("encryption-provider-config-automatic-reload"));
    errors.check(
        !follows || !encryption.is_empty(),
        "--encryption-provider-config-automatic-reload must be set with --encryption-provider-config",
    );
    let tls = etcd_tls(options, errors);
    StorageConfig {
        backend: backend_of(options, tls.as_ref()),
        elsewhere: elsewhere(options, tls.as_ref(), errors),
        prefix: options.string("etcd-prefix").to_owned(),
        media,
        event_ttl: not_negative(options, "event-ttl", errors),
        lease_reuse: Duration::from_secs(u64::try_from(reuse).unwrap_or(0)),
        garbage_collector: options.bool("enable-garbage-collector"),
        delete_collection_workers: usize::try_from(workers).unwrap_or(1).max(1),
        uncached: uncached(options, errors),
        count_interval: not_negative(options, "etcd-count-metric-poll-period", errors),
        size_interval: not_negative(options, "etcd-db-metric-poll-interval", errors),
        compaction_interval: not_negative(options, "etcd-compaction-interval", errors),
        initialization_timeout: not_negative(options, "storage-initialization-timeout", errors),
        health_timeout: not_negative(options, "etcd-healthcheck-timeout", errors),
        ready_timeout: not_negative(options, "etcd-readycheck-timeout", errors),
        encryption: (!encryption.is_empty()).then(|| EncryptionFile { path: encryption.into(), follows }),
    }
}

fn backend_of(options: &Options, tls: Option<&EtcdTls>) -> BackendConfig {
    let servers = options.strings("etcd-servers");
    if servers.is_empty() {
        return BackendConfig::Embedded(options.string("embedded-storage-dir").into());
    }
    BackendConfig::Etcd(Box::new(EtcdOptions { tls: tls.cloned(), ..EtcdOptions::new(servers.iter().cloned()) }))
}

/// The kinds of this binary that are kept in another etcd.
fn elsewhere(options: &Options, tls: Option<&EtcdTls>, errors: &mut Errors) -> Vec<(GroupResource, EtcdOptions)> {
    let mut all = Vec::new();
    for text in options.strings("etcd-servers-overrides") {
        let parts = text.split_once('#').filter(|(_, servers)| !servers.is_empty() && !servers.contains('#'));
        let parts = parts.and_then(|(resource, servers)| Some((resource.split_once('/')?, servers)));
        let Some(((group, resource), servers)) = parts.filter(|((_, resource), _)| !resource.contains('/')) else {
            errors.push(
                "--etcd-servers-overrides invalid, must be of format: group/resource#servers, where servers are URLs, \
                 semicolon separated",
            );
            continue;
        };
        // What comes at run time is kept in the main store.
        if kinds::all().map(|rules| rules.info()).any(|info| (info.group, info.resource) == (group, resource)) {
            let servers = EtcdOptions { tls: tls.cloned(), ..EtcdOptions::new(servers.split(';')) };
            all.push((GroupResource::named(group, resource), servers));
        }
    }
    all
}

/// The files of certificates and keys, which all etcds share.
fn etcd_tls(options: &Options, errors: &mut Errors) -> Option<EtcdTls> {
    let [ca, cert, key] = ["etcd-cafile", "etcd-certfile", "etcd-keyfile"].map(|name| options.string(name));
    errors.check(cert.is_empty() == key.is_empty(), "--etcd-certfile and --etcd-keyfile must be specified together");
    if ca.is_empty() && cert.is_empty() {
        return None;
    }
    errors.check(!ca.is_empty(), "--etcd-cafile must be specified with --etcd-certfile");
    let mut read = |path: &str| {
        std::fs::read(Path::new(path)).unwrap_or_else(|error| {
            errors.push(format!("open {path}: {error}"));
            Vec::new()
        })
    };
    let ca_pem = if ca.is_empty() { Vec::new() } else { read(ca) };
    let client = (!cert.is_empty()).then(|| (read(cert), read(key)));
    Some(EtcdTls { ca_pem, client })
}

/// The resources without a cache: those that have none by default, and those of size 0; all without `--watch-cache`.
fn uncached(options: &Options, errors: &mut Errors) -> BTreeSet<String> {
    let mut uncached = registry::uncached_by_default();
    if !options.bool("watch-cache") {
        let all = kinds::all().map(|rules| rules.info());
        uncached.extend(all.map(|info| GroupResource::named(info.group, info.resource).to_string()));
    }
    for entry in options.strings("watch-cache-sizes") {
        let Some((resource, size)) = entry.split_once('#') else {
            errors.push(format!("invalid value of watch cache size: {entry}"));
            continue;
        };
        match size.parse::<i64>() {
            Ok(0) => {
                uncached.insert(resource.to_owned());
            }
            Ok(size) if size < 0 => errors.push(format!("watch cache size cannot be negative: {entry}")),
            Ok(_) => {}
            Err(_) => errors.push(format!("invalid size of watch cache size: {entry}")),
        }
    }
    uncached
}
