//! systemd's login manager over D-Bus, which tells that the machine goes down and waits for those who asked it to.
//!
//! See <https://systemd.io/INHIBITOR_LOCKS/> and
//! <https://www.freedesktop.org/software/systemd/man/latest/org.freedesktop.login1.html>.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use zbus::message::Type;
use zbus::{Connection, MatchRule, MessageStream, OwnedFd, OwnedVariant};

const SERVICE: &str = "org.freedesktop.login1";
const OBJECT: &str = "/org/freedesktop/login1";
const MANAGER: &str = "org.freedesktop.login1.Manager";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
const SYSTEMD: &str = "org.freedesktop.systemd1";
const SYSTEMD_OBJECT: &str = "/org/freedesktop/systemd1";
const SYSTEMD_MANAGER: &str = "org.freedesktop.systemd1.Manager";
const UNIT: &str = "systemd-logind.service";
/// The signal at which it reads its configuration anew.
const SIGHUP: i32 = 1;
/// Where its configuration is overridden.
const DROP_INS: &str = "/etc/systemd/logind.conf.d";
const DROP_IN: &str = "99-kubelet.conf";
const CALL_LIMIT: Duration = Duration::from_secs(25);
/// Signals that may wait; the machine goes down once.
const SIGNAL_QUEUE: NonZeroUsize = NonZeroUsize::new(16).expect("invariant: not zero");

/// Why the login manager cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LogindError {
    #[error("systemd-logind cannot be reached over D-Bus: {0}")]
    Bus(#[from] zbus::Error),
    #[error("overriding the configuration of systemd-logind failed: {0}")]
    File(#[from] std::io::Error),
    #[error(
        "node shutdown manager was timed out after {tries} attempts waiting for logind InhibitDelayMaxSec to update to \
         {wanted:?} (ShutdownGracePeriod), current value is {found:?}"
    )]
    Delay { tries: u32, wanted: Duration, found: Duration },
}

/// What keeps the machine from going down until it is dropped.
pub type Lock = Box<dyn Send>;

/// The login manager.
#[async_trait]
pub trait Logind: Send + Sync + 'static {
    /// How long it waits at most.
    async fn longest_delay(&self) -> Result<Duration, LogindError>;

    /// Has it wait longer.
    async fn override_delay(&self, delay: Duration) -> Result<(), LogindError>;

    /// Has it wait for as long as the lock is held.
    async fn inhibit(&self) -> Result<Lock, LogindError>;

    /// Whether the machine goes down, each time that this changes. Ends with the connection.
    async fn shutdowns(&self) -> Result<BoxStream<'static, bool>, LogindError>;
}

/// The machine's login manager.
pub struct SystemLogind {
    connection: Connection,
    drop_ins: PathBuf,
}

impl SystemLogind {
    /// Connects over the system's bus.
    ///
    /// # Errors
    /// There is no bus.
    pub async fn connect() -> Result<Self, LogindError> {
        let connection = zbus::connection::Builder::system().method_timeout(CALL_LIMIT).build().await?;
        Ok(Self { connection, drop_ins: DROP_INS.into() })
    }
}

#[async_trait]
impl Logind for SystemLogind {
    async fn longest_delay(&self) -> Result<Duration, LogindError> {
        let asked = (MANAGER, "InhibitDelayMaxUSec");
        let answer = self.connection.call_method(Some(SERVICE), OBJECT, Some(PROPERTIES), "Get", &asked).await?;
        let value: OwnedVariant = answer.body().deserialize()?;
        Ok(Duration::from_micros(u64::try_from(value)?))
    }

    async fn override_delay(&self, delay: Duration) -> Result<(), LogindError> {
        let text = format!("# Kubelet logind override\n[Login]\nInhibitDelayMaxSec={}\n", delay.as_secs());
        let (directory, file) = (self.drop_ins.clone(), self.drop_ins.join(DROP_IN));
        let write = move || -> std::io::Result<()> {
            use std::os::unix::fs::DirBuilderExt as _;
            std::fs::DirBuilder::new().recursive(true).mode(0o755).create(directory)?;
            sys::fs::write_atomic(&file, text.as_bytes(), 0o644)
        };
        tokio::task::spawn_blocking(write).await.map_err(std::io::Error::other)??;
        let who = (UNIT, "all", SIGHUP);
        let (object, manager) = (SYSTEMD_OBJECT, Some(SYSTEMD_MANAGER));
        self.connection.call_method(Some(SYSTEMD), object, manager, "KillUnit", &who).await?;
        Ok(())
    }

    async fn inhibit(&self) -> Result<Lock, LogindError> {
        let how = ("shutdown", "kubelet", "Kubelet needs time to handle node shutdown", "delay");
        let answer = self.connection.call_method(Some(SERVICE), OBJECT, Some(MANAGER), "Inhibit", &how).await?;
        let lock: OwnedFd = answer.body().deserialize()?;
        Ok(Box::new(lock))
    }

    async fn shutdowns(&self) -> Result<BoxStream<'static, bool>, LogindError> {
        let rule = MatchRule::builder().msg_type(Type::Signal).interface(MANAGER).member("PrepareForShutdown");
        let rule = rule.path(OBJECT);
        // Anybody on the bus may send a signal of this name.
        let rule = if self.connection.is_bus() { rule.sender(SERVICE) } else { rule };
        let signals = MessageStream::for_match_rule(rule.build()?, &self.connection, Some(SIGNAL_QUEUE)).await?;
        let told = signals.take_while(|signal| std::future::ready(signal.is_ok()));
        Ok(told.filter_map(async |signal| signal.ok()?.body().deserialize::<bool>().ok()).boxed())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    use base::TaskGroup;
    use parking_lot::Mutex;
    use zbus::connection::Builder;
    use zbus::{Message, Variant};

    use super::*;

    /// A login manager at the other end of a socket.
    struct Other {
        connection: Connection,
        /// What it was asked.
        asked: Arc<Mutex<Vec<String>>>,
    }

    impl Other {
        async fn serve(self) {
            let mut calls = MessageStream::from(&self.connection);
            while let Some(Ok(call)) = calls.next().await {
                if call.message_type() == Type::MethodCall {
                    self.answer(&call).await.unwrap();
                }
            }
        }

        async fn answer(&self, call: &Message) -> zbus::Result<()> {
            let (header, body) = (call.header(), call.body());
            match header.member().map(|member| member.as_str()) {
                Some("Get") => self.connection.reply(&header, &Variant::from(5_000_000_u64)).await,
                Some("KillUnit") => {
                    let (unit, whom, signal): (String, String, i32) = body.deserialize()?;
                    self.asked.lock().push(format!("{unit} {whom} {signal}"));
                    self.connection.reply(&header, &()).await
                }
                Some("Inhibit") => {
                    let (what, who, _, mode): (String, String, String, String) = body.deserialize()?;
                    self.asked.lock().push(format!("{what} {who} {mode}"));
                    let (ours, theirs) = UnixStream::pair().unwrap();
                    self.connection.reply(&header, &OwnedFd::from(std::os::fd::OwnedFd::from(ours))).await?;
                    // Who holds the other end sees when it is let go; here it is told of the machine's end, and of none.
                    drop(theirs);
                    for going in [true, false] {
                        self.connection
                            .emit_signal(None::<&str>, OBJECT, MANAGER, "PrepareForShutdown", &(going,))
                            .await?;
                    }
                    Ok(())
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[tokio::test]
    async fn the_login_manager_is_spoken_to() {
        let tasks = TaskGroup::new("test");
        let (ours, theirs) = UnixStream::pair().unwrap();
        let theirs = Builder::unix_stream(theirs).server(zbus::Guid::generate()).p2p().build();
        let ours = Builder::unix_stream(ours).p2p().build();
        let (ours, theirs) = tokio::join!(ours, theirs);
        let asked = Arc::<Mutex<Vec<String>>>::default();
        tasks.spawn_cancellable("logind", Other { connection: theirs.unwrap(), asked: asked.clone() }.serve());
        let dir = tempfile::tempdir().unwrap();
        let logind = SystemLogind { connection: ours.unwrap(), drop_ins: dir.path().join("logind.conf.d") };
        assert_eq!(logind.longest_delay().await.unwrap(), Duration::from_secs(5));
        logind.override_delay(Duration::from_secs(30)).await.unwrap();
        let text = std::fs::read_to_string(dir.path().join("logind.conf.d/99-kubelet.conf")).unwrap();
        assert_eq!(text, "# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=30\n");
        let mut shutdowns = logind.shutdowns().await.unwrap();
        let _lock = logind.inhibit().await.unwrap();
        assert_eq!((shutdowns.next().await, shutdowns.next().await), (Some(true), Some(false)));
        assert_eq!(*asked.lock(), ["systemd-logind.service all 1", "shutdown kubelet delay"]);
        tasks.cancel();
        assert_eq!(shutdowns.next().await, None, "the connection is gone");
    }
}
