//! Answers queries: from the zone, from what is kept, or with the help of other servers.

use std::sync::Arc;
use std::time::Duration;

use base::SharedRng;
use hickory_proto::op::{Edns, Message, Query, ResponseCode};
use hickory_proto::rr::{Name, RecordType};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::answer::{Source, Step, Transport, decide, encode, failure, with_edns};
use crate::balance::balance;
use crate::cache::{Cache, Held};
use crate::data::ClusterData;
use crate::forward::Upstreams;
use crate::loops::LoopGuard;
use crate::metrics::{DnsMetrics, Giver};
use crate::zone::Zone;

/// Queries at once that wait for other servers; more are refused, as those servers do not keep up.
pub(crate) const MAX_FORWARDS: usize = 1000;
/// What own queries take over UDP.
const OWN_UDP_BYTES: u16 = 1232;
/// How long other servers have to show that they do not hand the test query back, and the pause between two tries.
const LOOP_TRIES: u32 = 30;
const LOOP_PAUSE: Duration = Duration::from_secs(1);

/// What it takes to answer.
pub struct Responder {
    zone: Zone,
    data: Arc<dyn ClusterData>,
    upstreams: Upstreams,
    cache: Cache,
    rng: SharedRng,
    forwards: Semaphore,
    guard: LoopGuard,
    metrics: Option<Arc<DnsMetrics>>,
}

/// How far a query came without the help of others.
pub(crate) enum Decided {
    /// All the way; nothing is sent where there is no answer.
    Answer(Option<Vec<u8>>),
    /// Others have to be asked.
    Ask(Step),
}

impl Responder {
    /// Answers from the zone and its data; what is not in there is asked of `upstreams`, and kept in `cache` for a while.
    /// `rng` draws the ids of own queries and the order of answers.
    #[must_use]
    pub fn new(zone: Zone, data: Arc<dyn ClusterData>, upstreams: Upstreams, cache: Cache, rng: SharedRng) -> Self {
        let guard = LoopGuard::new(&rng);
        let forwards = Semaphore::new(MAX_FORWARDS);
        Self { zone, data, upstreams, cache, rng, forwards, guard, metrics: None }
    }

    /// Counts what it does.
    #[must_use]
    pub fn counting(self, metrics: Arc<DnsMetrics>) -> Self {
        let upstreams = self.upstreams.counting(Arc::clone(&metrics));
        Self { upstreams, metrics: Some(metrics), ..self }
    }

    /// The answer to a query; nothing where it deserves none.
    pub async fn respond(&self, query: &[u8], source: Source) -> Option<Vec<u8>> {
        match self.decide(query, source) {
            Decided::Answer(answer) => answer,
            Decided::Ask(step) => self.ask(step, query, source).await,
        }
    }

    /// Hands a query of its own on, and watches whether it comes back.
    pub async fn look_for_loops(&self) {
        for _ in 0..LOOP_TRIES {
            let query = self.guard.query(self.id());
            let answered = match query.to_vec() {
                Ok(bytes) => self.upstreams.ask(&bytes, Transport::Udp, &self.rng).await.is_some(),
                Err(_) => true,
            };
            if answered || self.guard.has_found() {
                break;
            }
            tokio::time::sleep(LOOP_PAUSE).await;
        }
        self.guard.end();
    }

    pub(crate) fn decide(&self, query: &[u8], source: Source) -> Decided {
        let started = Instant::now();
        match decide(&self.zone, self.data.as_ref(), query, source.transport, &self.rng) {
            Step::Answer(answer) => {
                self.count(query, &answer, source, Giver::Cluster, started);
                Decided::Answer(Some(answer))
            }
            Step::Drop => Decided::Answer(None),
            step => Decided::Ask(step),
        }
    }

    /// Answers with the help of other servers.
    pub(crate) async fn ask(&self, step: Step, query: &[u8], source: Source) -> Option<Vec<u8>> {
        let started = Instant::now();
        let parsed = Message::from_vec(query).ok()?;
        let (answer, giver) = match step {
            Step::Follow(message, target, kind) => {
                (self.follow(*message, target, kind, &parsed, source.transport).await, Giver::Cluster)
            }
            _ => self.forward(query, &parsed, source).await?,
        };
        self.count(query, &answer, source, giver, started);
        Some(answer)
    }

    fn count(&self, query: &[u8], answer: &[u8], source: Source, giver: Giver, started: Instant) {
        if let Some(metrics) = &self.metrics {
            metrics.answered(query, answer, source, giver, started.elapsed());
        }
    }

    /// Appends what an alias stands for. Where nobody knows, the alias itself is still true.
    async fn follow(
        &self,
        mut message: Message,
        to: Name,
        kind: RecordType,
        query: &Message,
        by: Transport,
    ) -> Vec<u8> {
        if let Some(found) = self.resolve(to, kind).await {
            message.answers.extend(found.answers);
        }
        balance(&mut message, &self.rng);
        encode(message, query, by)
    }

    /// What others say about a name: in one packet, or over a connection where it does not fit.
    async fn resolve(&self, name: Name, kind: RecordType) -> Option<Message> {
        let mut query = Message::query();
        query.metadata.id = self.id();
        query.metadata.recursion_desired = true;
        query.add_query(Query::query(name, kind));
        let mut edns = Edns::new();
        edns.set_max_payload(OWN_UDP_BYTES);
        query.edns = Some(edns);
        if let Some(kept) = self.kept(&query) {
            return Some(kept);
        }
        let _turn = self.turn()?;
        let bytes = query.to_vec().ok()?;
        let mut answer = Message::from_vec(&self.upstreams.ask(&bytes, Transport::Udp, &self.rng).await?).ok()?;
        if answer.metadata.truncation
            && let Some(whole) = self.upstreams.ask(&bytes, Transport::Tcp, &self.rng).await
        {
            answer = Message::from_vec(&whole).ok()?;
        }
        self.keep(&query, &answer);
        Some(answer)
    }

    async fn forward(&self, query: &[u8], parsed: &Message, source: Source) -> Option<(Vec<u8>, Giver)> {
        self.guard.look(parsed, source.client);
        if let Some(mut kept) = self.kept(parsed) {
            balance(&mut kept, &self.rng);
            return Some((encode(with_edns(kept, parsed), parsed, source.transport), Giver::Cache));
        }
        if self.guard.has_found() {
            return Some((failure(query, ResponseCode::ServFail, source.transport)?, Giver::Forward));
        }
        let Some(_turn) = self.turn() else {
            return Some((failure(query, ResponseCode::Refused, source.transport)?, Giver::Forward));
        };
        let mut own = query.to_vec();
        set_id(&mut own, self.id().to_be_bytes());
        let answer = match self.upstreams.ask(&own, source.transport, &self.rng).await {
            Some(mut answer) => {
                set_id(&mut answer, parsed.metadata.id.to_be_bytes());
                answer
            }
            None => failure(query, ResponseCode::ServFail, source.transport)?,
        };
        if let Ok(message) = Message::from_vec(&answer) {
            self.keep(parsed, &message);
        }
        Some((answer, Giver::Forward))
    }

    /// The right to ask others, unless too many wait for them already.
    fn turn(&self) -> Option<tokio::sync::SemaphorePermit<'_>> {
        let turn = self.forwards.try_acquire().ok();
        if let (None, Some(metrics)) = (&turn, &self.metrics) {
            metrics.rejected();
        }
        turn
    }

    fn kept(&self, query: &Message) -> Option<Message> {
        let found = self.cache.find(query);
        if let Some(metrics) = &self.metrics {
            metrics.looked_up(found.as_ref().map(|(_, held)| *held));
        }
        found.map(|(message, _)| message)
    }

    fn keep(&self, query: &Message, answer: &Message) {
        let kept = self.cache.keep(query, answer);
        if let Some(metrics) = &self.metrics {
            if let Some((held, evicted)) = kept {
                metrics.evicted(held, evicted);
            }
            for held in [Held::Success, Held::Denial] {
                metrics.kept(held, self.cache.len(held));
            }
        }
    }

    /// An id that only the server that is asked can know, so that nobody else can answer in its place.
    fn id(&self) -> u16 {
        u16::try_from(self.rng.below(1 << 16)).unwrap_or_default()
    }
}

fn set_id(message: &mut [u8], id: [u8; 2]) {
    if let Some(place) = message.first_chunk_mut::<2>() {
        *place = id;
    }
}
