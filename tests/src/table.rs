//! A row of a table of commands.

use std::time::Duration;

use sys::exec::{Exit, Output};
use tokio::time::Instant;

use crate::desk::Desk;
use crate::kubectl::PATIENCE;

const RETRY: Duration = Duration::from_millis(300);
/// How much is told of what a command printed that went wrong.
const READABLE_BYTES: usize = 8 << 10;

/// A command and what must come of it.
pub struct Row {
    line: &'static str,
    stdin: &'static str,
    /// What takes the place of an editor; none where it is empty.
    editor: &'static str,
    /// The oldest `kubectl` that knows the command; any where it is empty.
    since: &'static str,
    want: Want,
}

/// What must come of a command. Texts are parts of what it prints, on either stream.
pub enum Want {
    /// It succeeds, whatever it says.
    Succeeds,
    /// It succeeds and says all of these.
    Says(&'static [&'static str]),
    /// It succeeds and says all of these, if not at once then soon.
    Shows(&'static [&'static str]),
    /// It succeeds and says all of these, one after the other.
    Orders(&'static [&'static str]),
    /// It succeeds and prints exactly this, blanks around it aside.
    Prints(&'static str),
    /// It succeeds and prints exactly this, if not at once then soon.
    Comes(&'static str),
    /// It succeeds, and what it prints has this name from then on: in other rows, after a `$`, and as a file.
    Keeps(&'static str),
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
    #[must_use]
    pub const fn new(line: &'static str, want: Want) -> Self {
        Self::with(line, "", want)
    }

    /// With something on standard input.
    #[must_use]
    pub const fn with(line: &'static str, stdin: &'static str, want: Want) -> Self {
        Self { line, stdin, editor: "", since: "", want }
    }

    /// With a command for an editor, which is given the name of a file.
    #[must_use]
    pub const fn editing(self, editor: &'static str) -> Self {
        Self { editor, ..self }
    }

    /// Left out where `kubectl` is older than this.
    #[must_use]
    pub const fn since(self, version: &'static str) -> Self {
        Self { since: version, ..self }
    }

    /// Runs the command until the wish is fulfilled, which most wishes must be at once; says what is wrong otherwise.
    pub(crate) async fn check(&self, desk: &Desk) -> Result<(), String> {
        if numbers(desk.version()) < numbers(self.since) {
            return Ok(());
        }
        let mut command = desk.kubectl.command(&desk.filled(self.line)).stdin(desk.filled(self.stdin));
        if !self.editor.is_empty() {
            command = command.env("KUBE_EDITOR", self.editor);
        }
        let start = Instant::now();
        loop {
            let output = desk.kubectl.run_command(&command).await;
            let Err(problem) = self.judge(&output, desk) else { return Ok(()) };
            let patient = matches!(self.want, Want::Shows(_) | Want::Comes(_) | Want::Grumbles(_));
            if !patient || start.elapsed() >= PATIENCE {
                let line = desk.filled(self.line);
                let (exit, text, errors) = (output.exit, output.text(), output.error_text());
                let (text, errors) = (start_of(&text), start_of(&errors));
                return Err(format!(
                    "kubectl {line}: {problem}; it ended with {exit:?} and printed:\n{text}\n{errors}"
                ));
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    fn judge(&self, output: &Output, desk: &Desk) -> Result<(), String> {
        let said = format!("{}\n{}", output.text(), output.error_text());
        let (ended, parts, absent): (_, &[&str], &[&str]) = match &self.want {
            Want::Succeeds | Want::Prints(_) | Want::Comes(_) | Want::Keeps(_) => (output.success(), &[], &[]),
            Want::Says(parts) | Want::Shows(parts) | Want::Orders(parts) => (output.success(), parts, &[]),
            Want::Omits(parts) => (output.success(), &[], parts),
            Want::Fails(parts) => (!output.success(), parts, &[]),
            Want::Grumbles(parts) => (true, parts, &[]),
            Want::Ends(code, parts) => (output.exit == Exit::Code(*code), parts, &[]),
        };
        if !ended {
            return Err("another end than wanted".to_owned());
        }
        let places: Vec<Option<usize>> = parts.iter().map(|part| said.find(&desk.filled(part))).collect();
        if let Some(missing) = places.iter().position(Option::is_none) {
            return Err(format!("no {:?}", parts[missing]));
        }
        if let Some(present) = absent.iter().find(|part| said.contains(&desk.filled(part))) {
            return Err(format!("there is {present:?}"));
        }
        match &self.want {
            Want::Orders(_) if !places.is_sorted() => Err("another order than wanted".to_owned()),
            Want::Prints(text) | Want::Comes(text) if output.text().trim() != desk.filled(text).trim() => {
                Err(format!("not {text:?}"))
            }
            Want::Keeps(name) => {
                desk.keep(name, output.text().as_ref());
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// As much of a text as somebody may want to read.
fn start_of(text: &str) -> &str {
    &text[..text.floor_char_boundary(READABLE_BYTES)]
}

/// `1.36` is newer than `1.9`.
fn numbers(version: &str) -> Vec<u32> {
    version.split('.').filter_map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        assert!(numbers("1.9") < numbers("1.36") && numbers("1.36") < numbers("2.0"));
        assert!(numbers("") < numbers("1.0"), "what names no version is for any");
    }
}
