//! Creates, beside raw etcd transactions of the same bytes.

use anyhow::{Context, Result, ensure};
use etcd_client::{Client, Compare, CompareOp, GetOptions, PutOptions, Txn, TxnOp};

use super::load::microseconds_each;
use super::options::Options;
use super::pods;
use super::site::Site;
use crate::etcd::Etcd;
use crate::figure::Figure;
use crate::sample::Samples;
use crate::usage::CpuMeter;

/// Of all pods this part is created one after the other, the rest in parallel.
const SEQUENTIAL_PART: usize = 10;

/// Raw transactions, each a key that must not be there yet and what it is set to: what a create comes down to.
pub(super) struct RawEtcd {
    client: Client,
    value: Vec<u8>,
}

impl RawEtcd {
    /// Connects, and takes the stored bytes of the pod with number 0 for its value.
    pub(super) async fn connect(etcd: &Etcd) -> Result<Self> {
        let client = Client::connect([etcd.url()], None).await.context("connecting to etcd")?;
        Ok(Self { client, value: Vec::new() })
    }

    async fn take_value(&self) -> Result<Vec<u8>> {
        let key = format!("/registry/pods/{}/{}", pods::NAMESPACE, pods::name(0));
        let found = self.client.kv_client().get(key, None::<GetOptions>).await?;
        let pair = found.kvs().first().context("the pod is not in etcd")?;
        Ok(pair.value().to_vec())
    }

    async fn create(&self, key: String) -> Result<()> {
        let absent = Compare::create_revision(key.as_str(), CompareOp::Equal, 0);
        let put = TxnOp::put(key.as_str(), self.value.as_slice(), None::<PutOptions>);
        let done = self.client.kv_client().txn(Txn::new().when([absent]).and_then([put])).await?;
        ensure!(done.succeeded(), "the key {key} was there already");
        Ok(())
    }
}

/// Creates the pods from `1` to `options.pods`, in rounds with the raw transactions where there is an etcd.
pub(super) async fn measure(options: &Options, site: &Site, raw: Option<RawEtcd>, label: &str) -> Result<()> {
    site.create_pod(0).await?;
    let mut raw = raw;
    if let Some(raw) = &mut raw {
        raw.value = raw.take_value().await.unwrap_or_else(|_| vec![b'x'; 2000]);
    }
    let sequential = (options.pods / SEQUENTIAL_PART).max(options.rounds);
    let parts = [(1, sequential, 1, "sequential"), (sequential + 1, options.pods - 1, options.parallel, "parallel")];
    for (from, to, parallel, name) in parts {
        let each = (to + 1 - from) / options.rounds;
        let (mut ours, mut peer, mut cpu) = (Samples::default(), Samples::default(), 0.0);
        for round in 0..options.rounds {
            let last = if round + 1 == options.rounds { to + 1 } else { from + (round + 1) * each };
            let numbers = from + round * each..last;
            let meter = CpuMeter::start(site.server.pid())?;
            ours.push(microseconds_each(numbers.clone(), parallel, |number| site.create_pod(number)).await?);
            cpu += meter.seconds()?;
            if let Some(raw) = &raw {
                let operation = |number| raw.create(format!("/peer/{label}/{}", pods::name(number)));
                peer.push(microseconds_each(numbers, parallel, operation).await?);
            }
        }
        let title = format!("create-{label}-{name}");
        match &raw {
            Some(_) => Figure::beside(title, ours.median(), peer.median(), "us").print()?,
            None => Figure::alone(title, ours.median(), "us").print()?,
        }
        #[expect(clippy::cast_precision_loss, reason = "counts are small")]
        let per_thousand = cpu * 1e6 / (to + 1 - from) as f64;
        Figure::alone(format!("cpu-create-{label}-{name}"), per_thousand, "ms/1000").print()?;
    }
    Ok(())
}
