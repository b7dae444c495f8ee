//! Probes that run a command in the container.

use std::collections::BTreeMap;
use std::time::Duration;

use api_types::core_v1::Container;
use node_api::cri::{CriError, Runtime};

use super::run::ProbeAttempt;

/// What is kept of a command's output.
const OUTPUT_LIMIT_BYTES: usize = 10 * 1024;

/// Runs the command of a probe.
pub(super) async fn run(
    runtime: &dyn Runtime,
    container: &Container,
    id: &str,
    command: &[String],
    limit: Duration,
) -> ProbeAttempt {
    // Only literal values are known here.
    let literals = container.env.iter().filter(|variable| variable.value_from.is_none());
    let env: BTreeMap<&str, &str> =
        literals.map(|variable| (variable.name.as_str(), variable.value.as_str())).collect();
    let lookup = |name: &str| env.get(name).map(|value| (*value).to_owned());
    let command = command.iter().map(|word| crate::env::expand(word, &lookup)).collect();
    match runtime.exec_sync(id, command, limit).await {
        Ok(answer) => {
            let output = cut(&[answer.stdout, answer.stderr].concat());
            if answer.exit_code == 0 { ProbeAttempt::Success } else { ProbeAttempt::Failure(output) }
        }
        Err(error @ CriError::CommandTimeout { .. }) => ProbeAttempt::Failure(error.to_string()),
        Err(error) => ProbeAttempt::Error(error.to_string()),
    }
}

fn cut(output: &[u8]) -> String {
    String::from_utf8_lossy(output.get(..OUTPUT_LIMIT_BYTES).unwrap_or(output)).into_owned()
}
