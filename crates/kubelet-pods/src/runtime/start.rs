//! Starting one container: back-off, image, config, create, start, link to the log, postStart hook.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use api_types::core_v1::{Container, LifecycleHandler, ObjectReference, Pod};
use component_helpers::fnv::fnv32;
use node_api::cri::CriError;
use node_api::cri::v1::{ContainerConfig, Mount, NamespaceMode, Signal, UserNamespace};

use super::container_config::{ContainerConfigInputs, config, log_path};
use super::failure::{Failure, WaitingReason};
use super::hooks::Moment;
use super::images::{Ready, Wanted};
use super::kill::Grace;
use super::record::{RecordState, RuntimePod};
use super::security::SecurityError;
use super::starts::Kind;
use super::sync::{ReadySandbox, Terms};
use super::text::{self, go_duration};
use super::{PodRuntime, inspect, security, stop_signal, termination};
use crate::interfaces::{ContainerFacts, Level, SideError};
use crate::pod::containers::{Member, Role};

/// Longest name of a file.
const MAX_FILE_NAME_BYTES: usize = 255;
/// Log files looked at to find the highest restart count.
const MAX_LOG_FILES: usize = 10_000;

/// Why a container cannot be described to the runtime. All but the first may be mended from outside: each is tried
/// again.
#[derive(Debug, thiserror::Error)]
enum ConfigError {
    /// The pod contradicts itself or its image.
    #[error(transparent)]
    Security(#[from] SecurityError),
    /// The node cannot give what it asks for.
    #[error(transparent)]
    Node(#[from] SideError),
    /// The container whose processes it wants to see does not run.
    #[error("unable to find target container {0}")]
    NoTarget(String),
    #[error("create log directory: {0}")]
    LogDirectory(std::io::Error),
    #[error("create termination log: {0}")]
    TerminationLog(std::io::Error),
}

impl PodRuntime {
    /// Starts a container of the pod in its sandbox; gives back its id.
    pub async fn start(
        &self,
        pod: &Arc<Pod>,
        member: &Member<'_>,
        seen: &RuntimePod,
        terms: Terms<'_>,
        sandbox: &ReadySandbox,
    ) -> Result<String, Failure> {
        let container = member.container.as_ref();
        let about = self.about(pod, member.field_path());
        self.check_back_off(pod, container, seen, &about)?;
        let (keyring, config, handler) = (terms.keyring, &sandbox.config, &sandbox.handler);
        let wanted = Wanted { pod, container, about: &about, keyring, sandbox: config, handler };
        let image = tokio::select! {
            biased;
            () = terms.interrupt.cancelled() => return Err(Failure::new(WaitingReason::ErrImagePull, "context canceled")),
            image = self.ensure_images(&wanted) => image?,
        };
        let count = self.restart_count(pod, container, seen, terms);
        let made = self.container_config(pod, member, &image, count, seen, sandbox).await.map_err(|error| {
            let message = error.to_string();
            self.failed(&about, &message);
            Failure::new(WaitingReason::CreateContainerConfigError, message)
        })?;
        let turn = self.starts.turn_of(pod, Kind::Container, terms.interrupt).await;
        let turn = turn.ok_or_else(|| Failure::new(WaitingReason::CreateContainerError, "context canceled"))?;
        let id = self.create(made, sandbox, &about).await?;
        self.actuated.set(&pod.metadata.uid, &container.name, &container.resources);
        self.side.events.event(about.clone(), Level::Normal, "Created", "Container created");
        self.runtime.start_container(&id).await.map_err(|error| {
            let message = without_id(&error, &id, &container.name);
            self.failed(&about, &message);
            Failure::new(WaitingReason::RunContainerError, message)
        })?;
        drop(turn);
        self.side.events.event(about.clone(), Level::Normal, "Started", "Container started");
        self.link_log(pod, container, count, &id, Path::new(&sandbox.config.log_directory));
        tokio::select! {
            biased;
            // The container runs; whoever ends the pod stops it.
            () = terms.interrupt.cancelled() => {
                if let Some(hook) = post_start(container) {
                    self.broken_off(&about, hook, Moment::PostStart);
                }
            }
            outcome = self.post_start(pod, container, &id, &about) => outcome?,
        }
        Ok(id)
    }

    /// The container's image, after it those that it mounts as volumes.
    async fn ensure_images(&self, wanted: &Wanted<'_>) -> Result<Ready, Failure> {
        // The puller told of the cause; what the container waits for now is told by its reason, as upstream does.
        let image =
            self.puller.ensure(wanted).await.inspect_err(|failure| self.failed(wanted.about, failure.reason.name()))?;
        self.ensure_image_volumes(wanted).await?;
        Ok(image)
    }

    /// Images that the container mounts as volumes come by the same road as its own.
    async fn ensure_image_volumes(&self, wanted: &Wanted<'_>) -> Result<(), Failure> {
        for mount in &wanted.container.volume_mounts {
            let volume = wanted.pod.spec.volumes.iter().find(|volume| volume.name == mount.name);
            let Some(source) = volume.and_then(|volume| volume.volume_source.image.as_ref()) else { continue };
            let stand_in = Container {
                name: wanted.container.name.clone(),
                image: source.reference.clone(),
                image_pull_policy: source.pull_policy.clone(),
                ..Container::default()
            };
            self.metrics.image_volumes.with(&[]).inc();
            self.puller.ensure(&Wanted { container: &stand_in, ..*wanted }).await?;
        }
        Ok(())
    }

    fn failed(&self, about: &ObjectReference, message: &str) {
        self.side.events.event(about.clone(), Level::Warning, "Failed", &format!("Error: {message}"));
    }

    /// A container that keeps ending waits longer each time, counted from its last end.
    fn check_back_off(
        &self,
        pod: &Pod,
        container: &Container,
        seen: &RuntimePod,
        about: &ObjectReference,
    ) -> Result<(), Failure> {
        let ended = seen.records(&container.name).find(|record| record.state == RecordState::Exited);
        let Some(ended) = ended else { return Ok(()) };
        let key = crash_key(pod, container);
        let since = SystemTime::UNIX_EPOCH + Duration::from_nanos(u64::try_from(ended.finished_at).unwrap_or(0));
        let Some(left) = self.crashes.remaining(&key, since, &*self.clock) else {
            self.crashes.step(&key, Some(since), &*self.clock);
            return Ok(());
        };
        let (name, of) = (&container.name, text::pod(pod));
        let event = format!("Back-off restarting failed container {name} in pod {of}");
        self.side.events.event(about.clone(), Level::Warning, "BackOff", &event);
        let delay = go_duration(self.crashes.delay(&key));
        let message = format!("back-off {delay} restarting failed container={name} pod={of}");
        Err(Failure::new(WaitingReason::CrashLoopBackOff, message).after(left))
    }

    /// One more than the last instance had; by its logs and its status where the runtime has no record any more.
    fn restart_count(&self, pod: &Pod, container: &Container, seen: &RuntimePod, terms: Terms<'_>) -> u32 {
        if let Some(record) = seen.container(&container.name) {
            return u32::try_from(record.restart_count).map_or(0, |count| count.saturating_add(1));
        }
        let directory = super::sandbox::log_directory(&self.settings.pod_logs_dir, pod).join(&container.name);
        let told = u32::try_from((terms.restarts)(&container.name)).unwrap_or_default();
        let Ok(files) = std::fs::read_dir(directory) else { return told };
        let counts = files.take(MAX_LOG_FILES).filter_map(|file| {
            let name = file.ok()?.file_name();
            name.to_str()?.split('.').next()?.parse::<u32>().ok()
        });
        counts.max().map_or(told, |highest| highest.saturating_add(1).max(told))
    }

    async fn container_config(
        &self,
        pod: &Arc<Pod>,
        member: &Member<'_>,
        image: &Ready,
        restart_count: u32,
        seen: &RuntimePod,
        sandbox: &ReadySandbox,
    ) -> Result<ContainerConfig, ConfigError> {
        let container = member.container.as_ref();
        let seccomp_root = self.settings.root_dir.join("seccomp");
        let defaults = self.security_defaults(pod, &seccomp_root);
        // A container is in the namespace of users that its sandbox was described with.
        let of_sandbox = sandbox.config.linux.as_ref().and_then(|linux| linux.security_context.as_ref());
        let users = of_sandbox.and_then(|context| context.namespace_options.as_ref()?.userns_options.as_ref());
        let mut context = security::of_container(pod, container, image, users, &defaults)?;
        if member.role == Role::Ephemeral && !member.target.is_empty() {
            self.target(member.target, seen, &mut context)?;
        }
        let facts = ContainerFacts { pod_ips: sandbox.ips.clone(), image_id: image.reference.clone() };
        let inputs = self.side.setup.container(pod, container, &facts).await?;
        let directory = Path::new(&sandbox.config.log_directory).join(&container.name);
        std::fs::create_dir_all(&directory).map_err(ConfigError::LogDirectory)?;
        Ok(config(ContainerConfigInputs {
            pod,
            container,
            restart_count,
            image,
            inputs,
            termination_log: self.termination_log(pod, container)?.map(|log| mapped(log, users)),
            resources: self.side.setup.resources(pod, container),
            security: context,
            stop_signal: if self.settings.stop_signals {
                stop_signal::of_container(container)
            } else {
                Signal::RuntimeDefault
            },
        }))
    }

    /// An ephemeral container sees its target's processes.
    fn target(
        &self,
        target: &str,
        seen: &RuntimePod,
        context: &mut node_api::cri::v1::LinuxContainerSecurityContext,
    ) -> Result<(), ConfigError> {
        let found = seen.records(target).find(|record| record.is_running());
        let found = found.ok_or_else(|| ConfigError::NoTarget(target.to_owned()))?;
        if let Some(options) = &mut context.namespace_options
            && options.pid() == NamespaceMode::Container
        {
            options.pid = NamespaceMode::Target.into();
            options.target_id.clone_from(&found.id);
        }
        Ok(())
    }

    fn termination_log(&self, pod: &Pod, container: &Container) -> Result<Option<Mount>, ConfigError> {
        if container.termination_message_path.is_empty() {
            return Ok(None);
        }
        let mut suffix = [0_u8; 4];
        self.rng.fill(&mut suffix);
        let path = termination::prepare(&self.pod_dir(&pod.metadata.uid), &container.name, u32::from_le_bytes(suffix));
        let path = path.map_err(ConfigError::TerminationLog)?;
        Ok(Some(Mount {
            host_path: path.to_string_lossy().into_owned(),
            container_path: container.termination_message_path.clone(),
            selinux_relabel: true,
            ..Default::default()
        }))
    }

    async fn create(
        &self,
        made: ContainerConfig,
        sandbox: &ReadySandbox,
        about: &ObjectReference,
    ) -> Result<String, Failure> {
        let images = made.mounts.iter().filter(|mount| mount.image.is_some()).count();
        let created = self.runtime.create_container(&sandbox.id, made, sandbox.config.clone()).await;
        self.metrics.image_volumes(images, created.is_ok());
        created.map_err(|error| {
            self.failed(about, &error.message());
            Failure::new(WaitingReason::CreateContainerError, error.message())
        })
    }

    /// The link by which log collectors of the old layout find the file.
    fn link_log(&self, pod: &Pod, container: &Container, count: u32, id: &str, logs: &Path) {
        let target = logs.join(log_path(&container.name, count));
        let link = self.settings.container_logs_dir.join(legacy_log_name(pod, &container.name, id));
        let made =
            std::fs::create_dir_all(&self.settings.container_logs_dir).and_then(|()| {
                match std::fs::remove_file(&link) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
                    _ => std::os::unix::fs::symlink(&target, &link),
                }
            });
        if let Err(error) = made {
            tracing::warn!(link = %link.display(), %error, "Linking a container's log failed");
        }
    }

    async fn post_start(
        &self,
        pod: &Arc<Pod>,
        container: &Container,
        id: &str,
        about: &ObjectReference,
    ) -> Result<(), Failure> {
        let Some(hook) = post_start(container) else { return Ok(()) };
        let seen = inspect::inspect(&*self.runtime, &pod.metadata.uid, None).await.unwrap_or_default();
        let Err(error) = self.run_hook(pod, container, id, hook, &seen.ips).await else { return Ok(()) };
        self.hook_failed(about, Moment::PostStart);
        if let Some(record) = seen.containers.iter().find(|record| record.id == id) {
            let killed = self.kill_container(pod, record, "FailedPostStartHook", Grace::OfPod).await;
            if let Err(error) = killed {
                tracing::warn!(pod = %pod.metadata.name, container = %container.name, %error, "Killing a container after its hook failed");
            }
        }
        Err(Failure::new(WaitingReason::PostStartHookError, error.to_string()))
    }
}

fn post_start(container: &Container) -> Option<&LifecycleHandler> {
    container.lifecycle.as_ref()?.post_start.as_ref()
}

/// A mount as it is seen from a namespace of users.
fn mapped(mount: Mount, users: Option<&UserNamespace>) -> Mount {
    let Some(users) = users else { return mount };
    Mount { uid_mappings: users.uids.clone(), gid_mappings: users.gids.clone(), ..mount }
}

/// Whose crashes count together; a new image or other resources begin anew.
fn crash_key(pod: &Pod, container: &Container) -> String {
    let meta = &pod.metadata;
    let resources = api_machinery::json::encode(&container.resources);
    let text = format!("{} {} {} {} {resources}", meta.name, meta.namespace, container.name, container.image);
    format!("{}_{:x}", meta.uid, fnv32(text.as_bytes()))
}

fn without_id(error: &CriError, id: &str, name: &str) -> String {
    error.message().replace(id, name)
}

/// `{pod}_{namespace}_{container}-{id}.log`, cut to what a file name may have.
pub fn legacy_log_name(pod: &Pod, container: &str, id: &str) -> String {
    let meta = &pod.metadata;
    let mut name = format!("{}_{}_{container}-{id}", meta.name, meta.namespace);
    let mut end = name.len().min(MAX_FILE_NAME_BYTES - ".log".len());
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    name + ".log"
}
