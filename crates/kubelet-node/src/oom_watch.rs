//! Tells of processes that the kernel killed because the whole machine ran out of memory. Kills within a container's limit
//! are the runtime's to tell.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::OFlags;
use tokio::time::MissedTickBehavior;

use crate::interfaces::{Events, Level};
use crate::node;

const KERNEL_LOG: &str = "/dev/kmsg";
/// How often the kernel's log is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// The longest record of the kernel's log.
const MAX_RECORD_BYTES: usize = 8192;
/// Records read at one look; the rest comes at the next.
const MAX_RECORDS: usize = 1000;

/// Watches until the caller drops the future, or for as long as the log can be read.
pub async fn run(events: Arc<dyn Events>, node_name: String) {
    let mut log = match open() {
        Ok(log) => log,
        Err(error) => return tracing::warn!(%error, "The kernel's log cannot be read, system OOMs are not told of"),
    };
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        for (victim, pid) in new_victims(&mut log) {
            let text = format!("System OOM encountered, victim process: {victim}, pid: {pid}");
            events.event(node::reference(&node_name), Level::Warning, "SystemOOM", &text);
        }
    }
}

/// The log from now on; what was before is not of this kubelet's life.
fn open() -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let mut log = File::options().read(true).custom_flags(flags).open(KERNEL_LOG)?;
    log.seek(SeekFrom::End(0))?;
    Ok(log)
}

fn new_victims(log: &mut File) -> Vec<(String, u32)> {
    let mut victims = Vec::new();
    let mut record = [0; MAX_RECORD_BYTES];
    for _ in 0..MAX_RECORDS {
        match log.read(&mut record) {
            Ok(length) if length > 0 => {
                let text = String::from_utf8_lossy(record.get(..length).unwrap_or_default()).into_owned();
                victims.extend(victim(&text));
            }
            // Records that were overwritten before they were read are lost; the next read goes on behind them.
            Err(error) if error.kind() == ErrorKind::BrokenPipe || error.kind() == ErrorKind::Interrupted => {}
            _ => break,
        }
    }
    victims
}

/// The process that a record tells of, if it was killed for the sake of the whole machine.
fn victim(record: &str) -> Option<(String, u32)> {
    let fields = record.split_once("oom-kill:")?.1.lines().next()?;
    // Names of control groups and processes may contain commas; the marks around them do not.
    if !fields.contains(",global_oom,") {
        return None;
    }
    let (_, rest) = fields.rsplit_once(",task=")?;
    let (name, rest) = rest.rsplit_once(",pid=")?;
    let pid = rest.split(',').next()?.parse().ok()?;
    Some((name.to_owned(), pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_kills_for_the_whole_machine_count() {
        let head = "6,1,2,-;oom-kill:constraint=";
        let cases = [
            (
                "CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/a,b,task=my, prog,pid=123,uid=0",
                Some(("my, prog".to_owned(), 123)),
            ),
            (
                "CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=/pod,task_memcg=/pod/c,task=sh,pid=5,uid=0",
                None,
            ),
            ("CONSTRAINT_NONE,global_oom,task=sh,pid=none,uid=0", None),
            ("", None),
        ];
        for (fields, expected) in cases {
            assert_eq!(victim(&format!("{head}{fields}\n SUBSYSTEM=x\n")), expected, "{fields}");
        }
        assert_eq!(victim("6,1,2,-;eth0: link up"), None);
    }
}
