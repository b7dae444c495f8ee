//! A row of a table of commands.

use std::time::Duration;

use sys::exec::Output;
use tokio::time::Instant;

use super::Desk;
use crate::kubectl::PATIENCE;

const RETRY: Duration = Duration::from_millis(300);

/// A command and what must come of it.
pub(super) struct Row {
    line: &'static str,
    stdin: &'static str,
    want: Want,
}

/// What must come of a command. Texts are parts of what it prints, on either stream.
pub(super) enum Want {
    /// It succeeds, whatever it says.
    Succeeds,
    /// It succeeds and says all of these.
    Says(&'static [&'static str]),
    /// It succeeds and says all of these, if not at once then soon.
    Shows(&'static [&'static str]),
    /// It succeeds and prints exactly this, blanks around it aside.
    Prints(&'static str),
    /// It succeeds and says none of these.
    Omits(&'static [&'static str]),
    /// It fails and says all of these.
    Fails(&'static [&'static str]),
    /// It says all of these, however it ends, if not at once then at another try.
    Grumbles(&'static [&'static str]),
    /// It ends with this code and says all of these.
    Ends(i32, &'static [&'static str]),
}

impl Row {
    pub(super) const fn new(line: &'static str, want: Want) -> Self {
        Self { line, stdin: "", want }
    }

    /// With something on standard input.
    pub(super) const fn with(line: &'static str, stdin: &'static str, want: Want) -> Self {
        Self { line, stdin, want }
    }

    /// Runs the command until the wish is fulfilled, which most wishes must be at once; says what is wrong otherwise.
    pub(super) async fn check(&self, desk: &Desk) -> Result<(), String> {
        let command = desk.kubectl.command(&desk.filled(self.line)).stdin(desk.filled(self.stdin));
        let start = Instant::now();
        loop {
            let output = desk.kubectl.run_command(&command).await;
            let Err(problem) = self.judge(&output, desk) else { return Ok(()) };
            if !matches!(self.want, Want::Shows(_) | Want::Grumbles(_)) || start.elapsed() >= PATIENCE {
                let line = desk.filled(self.line);
                let (exit, text, errors) = (output.exit, output.text(), output.error_text());
                return Err(format!(
                    "kubectl {line}: {problem}; it ended with {exit:?} and printed:\n{text}\n{errors}"
                ));
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    fn judge(&self, output: &Output, desk: &Desk) -> Result<(), String> {
        let said = format!("{}\n{}", output.text(), output.error_text());
        let has = |part: &&&str| said.contains(&desk.filled(part));
        let (ended, parts, absent): (_, &[&str], &[&str]) = match &self.want {
            Want::Succeeds | Want::Prints(_) => (output.success(), &[], &[]),
            Want::Says(parts) | Want::Shows(parts) => (output.success(), parts, &[]),
            Want::Omits(parts) => (output.success(), &[], parts),
            Want::Fails(parts) => (!output.success(), parts, &[]),
            Want::Grumbles(parts) => (true, parts, &[]),
            Want::Ends(code, parts) => (output.exit == sys::exec::Exit::Code(*code), parts, &[]),
        };
        if !ended {
            return Err("another end than wanted".to_owned());
        }
        if let Some(missing) = parts.iter().find(|part| !has(part)) {
            return Err(format!("no {missing:?}"));
        }
        if let Some(present) = absent.iter().find(has) {
            return Err(format!("there is {present:?}"));
        }
        match &self.want {
            Want::Prints(text) if output.text().trim() != desk.filled(text) => Err(format!("not {text:?}")),
            _ => Ok(()),
        }
    }
}
