//! The order of a run.

use anyhow::Result;

use super::create::RawEtcd;
use super::options::{Only, Options};
use super::site::Site;
use super::{create, deployments, fan_out, reads, writes};
use crate::api_server::Storage;
use crate::etcd::Etcd;
use crate::figure::Figure;
use crate::identity::Identity;
use crate::usage::{load_average, resident_bytes};

/// As many as give a profiler enough to see.
const ROUNDS_OF_GETS: usize = 40;

/// Measures everything and prints a line for each figure.
///
/// # Errors
/// A process does not start, or an answer is not what it should be.
pub async fn run(options: &Options) -> Result<()> {
    Figure::alone("load-average-before", load_average(), "processes").print()?;
    let home = tempfile::tempdir()?;
    let identity = Identity::create(&home.path().join("pki"))?;
    let etcd_home = home.path().join("with-etcd");
    std::fs::create_dir_all(&etcd_home)?;
    let etcd = options.etcd.as_deref().map(|binary| Etcd::start(binary, &etcd_home)).transpose()?;
    if let Some(etcd) = &etcd {
        let raw = RawEtcd::connect(etcd).await?;
        let site = Site::open(options, &etcd_home, &identity, Storage::Etcd(etcd)).await?;
        one_store(options, &site, Some(raw), "etcd", true).await?;
    }
    let home = home.path().join("embedded");
    std::fs::create_dir_all(&home)?;
    let raw = match &etcd {
        Some(etcd) => Some(RawEtcd::connect(etcd).await?),
        None => None,
    };
    let site = Site::open(options, &home, &identity, Storage::Embedded).await?;
    one_store(options, &site, raw, "embedded", etcd.is_none()).await?;
    Figure::alone("load-average-after", load_average(), "processes").print()?;
    Ok(())
}

async fn one_store(options: &Options, site: &Site, raw: Option<RawEtcd>, label: &str, with_reads: bool) -> Result<()> {
    let before = resident_bytes(site.server.pid())?;
    if options.only == Some(Only::Changes) {
        return deployments::change(options, site, label).await;
    }
    create::measure(options, site, raw, label).await?;
    match options.only {
        Some(Only::Creates) => return Ok(()),
        Some(Only::Gets) => return reads::gets(&Options { rounds: ROUNDS_OF_GETS, ..options.clone() }, site).await,
        Some(Only::Memory | Only::Changes) | None => {}
    }
    writes::patch_all(options, site, label).await?;
    writes::update_some(options, site, label).await?;
    writes::print_memory(options, site, before, label).await?;
    if options.only == Some(Only::Memory) {
        return Ok(());
    }
    deployments::change(options, site, label).await?;
    if with_reads {
        reads_of(options, site).await?;
    }
    writes::delete_some(options, site, label).await
}

async fn reads_of(options: &Options, site: &Site) -> Result<()> {
    reads::gets(options, site).await?;
    reads::lists(options, site).await?;
    fan_out::measure(options, site).await
}
