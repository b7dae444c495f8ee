//! Developer tasks that deserve Rust; `hack/` has the shell ones. `cargo run -p xtask -- TASK`.

mod images;

use anyhow::bail;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("images") => images::run(arguments),
        Some(other) => bail!("unknown task {other:?}; tasks: images"),
        None => bail!("usage: xtask TASK; tasks: images"),
    }
}
