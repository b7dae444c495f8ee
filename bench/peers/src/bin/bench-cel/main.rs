//! Evaluating the rules that upstream's documentation gives as examples, and one of a policy, beside the crate `cel`.
//! Both sides have compiled the rule before and read the same object; ours counts what the evaluation costs, too.

mod examples;

use std::hint::black_box;

use anyhow::{Context as _, Result, anyhow, ensure};
use bench_peers::{Contest, run};
use cel::kubernetes::{Minor, PER_CALL_LIMIT, environment};
use cel::{Budget, Environment, Program, Type, Value, Variables};

use crate::examples::{EXAMPLES, Example};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// One rule, compiled by both, with what it is about.
struct Sides {
    name: &'static str,
    object: serde_json::Value,
    ours: Program,
    peer: peer_cel::Program,
    context: peer_cel::Context<'static, 'static>,
}

impl Sides {
    fn compile(env: &Environment, example: &Example) -> Result<Self> {
        let object: serde_json::Value = serde_json::from_str(example.object).context(example.name)?;
        let ours = env.compile(example.rule).map_err(|issues| anyhow!("{}: {issues}", example.name))?;
        let peer = peer_cel::Program::compile(example.rule).map_err(|error| anyhow!("{}: {error}", example.name))?;
        let mut context = peer_cel::Context::default();
        context.add_variable("self", &object).map_err(|error| anyhow!("{}: {error}", example.name))?;
        Ok(Self { name: example.name, object, ours, peer, context })
    }

    /// Both ways to evaluate the rule, after a look whether both do the work: every example holds for its object.
    fn contest(&self) -> Result<Contest<'_>> {
        let variables = Variables::default().with("self", Value::of_json(&self.object));
        let evaluated = move || self.ours.evaluate(&variables, Budget::of(PER_CALL_LIMIT)).result;
        let ours = move || matches!(evaluated(), Ok(Value::Bool(true)));
        let peer = || matches!(self.peer.execute(&self.context), Ok(peer_cel::Value::Bool(true)));
        ensure!(ours(), "{}: we say that it does not hold", self.name);
        ensure!(peer(), "{}: the peer says that it does not hold", self.name);
        let (ours, peer) = (move || assert!(black_box(ours())), move || assert!(black_box(peer())));
        Ok(Contest { name: self.name, ours: Box::new(ours), peer: Box::new(peer) })
    }
}

fn main() -> Result<()> {
    let env = environment(Minor(36)).with_variable("self", Type::Dyn);
    let sides = EXAMPLES.iter().map(|example| Sides::compile(&env, example)).collect::<Result<Vec<_>>>()?;
    run(sides.iter().map(Sides::contest).collect::<Result<_>>()?)
}
