//! The same load again and again: pods come, change and go, watchers open and leave. A server that keeps what is gone
//! shows it here, in memory or on disk.

use std::io;
use std::path::Path;

use anyhow::Result;

use super::fan_out::Watchers;
use super::load::microseconds_each;
use super::options::Options;
use super::pods;
use super::site::Site;
use crate::api_server::Storage;
use crate::figure::Figure;
use crate::identity::Identity;
use crate::usage::resident_bytes;

/// Does so many rounds with the embedded store. The figures are sizes after the last round, beside those after
/// the middle one.
///
/// # Errors
/// A process does not start, or an answer is not what it should be.
pub async fn soak(options: &Options, rounds: usize) -> Result<()> {
    let home = tempfile::tempdir()?;
    let identity = Identity::create(&home.path().join("pki"))?;
    let site = Site::open(options, home.path(), &identity, Storage::Embedded).await?;
    let mut sizes = Vec::with_capacity(rounds);
    for number in 1..=rounds {
        round(options, &site).await?;
        let memory = mebibytes(resident_bytes(site.server.pid())?);
        let store = mebibytes(bytes_in(&home.path().join("store"))?);
        Figure::alone(format!("soak-memory-{number}"), memory, "MiB").print()?;
        Figure::alone(format!("soak-store-{number}"), store, "MiB").print()?;
        sizes.push((memory, store));
    }
    let (Some(last), Some(middle)) = (sizes.last(), sizes.get(sizes.len() / 2)) else { return Ok(()) };
    Figure::beside("soak-memory", last.0, middle.0, "MiB").print()?;
    Figure::beside("soak-store", last.1, middle.1, "MiB").print()?;
    Ok(())
}

/// Everything comes and goes. The watchers read no more once their reports are not taken, as bad clients do.
async fn round(options: &Options, site: &Site) -> Result<()> {
    let every = || 0..options.pods;
    let path = format!("{}?watch=1", pods::COLLECTION);
    let watchers = Watchers::open(site.server.port(), &path, options, &site.tls).await?;
    microseconds_each(every(), options.parallel, |number| site.create_pod(number)).await?;
    microseconds_each(every(), options.parallel, |number| site.patch_status(number, number)).await?;
    microseconds_each(every(), options.parallel, |number| site.delete_pod(number)).await?;
    drop(watchers);
    Ok(())
}

/// What the files of a directory take together.
fn bytes_in(directory: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for file in std::fs::read_dir(directory)? {
        sum += file?.metadata()?.len();
    }
    Ok(sum)
}

#[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^53")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
