//! Programs that are only recorded, with answers that the test lays down.

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::{Command, Daemon, Exec, ExecError, Exit, Output};
use crate::process::Process;

/// Records every command and answers by rule: the first rule whose text is part of the command line wins; without one
/// the command succeeds silently.
#[derive(Default)]
pub struct FakeExec {
    rules: Mutex<Vec<(String, Output)>>,
    commands: Mutex<Vec<Command>>,
    daemons: Mutex<Vec<Daemon>>,
}

impl FakeExec {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on commands whose line contains `part` end like this; later rules yield to earlier ones.
    #[must_use]
    pub fn answer(self, part: &str, output: Output) -> Self {
        self.rules.lock().push((part.to_owned(), output));
        self
    }

    /// Everything that was run, in order.
    #[must_use]
    pub fn commands(&self) -> Vec<Command> {
        self.commands.lock().clone()
    }

    /// The command lines of everything that was run, in order.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.commands.lock().iter().map(Command::line).collect()
    }

    /// Everything that was started to stay.
    #[must_use]
    pub fn daemons(&self) -> Vec<Daemon> {
        self.daemons.lock().clone()
    }
}

#[async_trait]
impl Exec for FakeExec {
    async fn run(&self, command: &Command) -> Result<Output, ExecError> {
        self.commands.lock().push(command.clone());
        let line = command.line();
        let rules = self.rules.lock();
        let answer = rules.iter().find(|(part, _)| line.contains(part));
        Ok(answer.map_or_else(|| Output::ok(""), |(_, output)| output.clone()))
    }

    async fn pipe(&self, command: &Command, sink: mpsc::Sender<Vec<u8>>) -> Result<Exit, ExecError> {
        let output = self.run(command).await?;
        for piece in [output.stdout, output.stderr].into_iter().filter(|piece| !piece.is_empty()) {
            // Nobody may want it any more.
            let _ = sink.send(piece).await;
        }
        Ok(output.exit)
    }

    async fn spawn(&self, daemon: &Daemon) -> Result<Process, ExecError> {
        self.daemons.lock().push(daemon.clone());
        Ok(Process::fake())
    }
}
