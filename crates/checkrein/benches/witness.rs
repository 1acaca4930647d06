//! What the supervisor and the verification loop cost themselves, processor time of this process, with
//! models, tools and agents that answer at once. `cargo bench -p checkrein --bench witness`; beside others'
//! by `cargo xtask bench witness`.

#![expect(clippy::print_stdout, reason = "a measurement is there to be printed")]

use std::convert::Infallible;
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use checkrein::models::{
    AnswerTokenUsage, BoxFuture, ChatMessage, FinishReason, LanguageModel, ModelError, ModelReply,
    ModelRequest,
};
use checkrein::supervisor::VerifierConfigError;
use checkrein::{
    Agent, AgentRun, PreToolVerifier, ProgressVerifier, VerificationLoop, VerificationResult,
    Verifier, VerifierConfig,
};
use serde_json::{Value, json};

const CALLS: usize = 20_000;
const ROUNDS: usize = 7;
const GOAL: &str = "Send a friendly reminder to the QA team about Friday's release.";

fn main() -> Result<(), VerifierConfigError> {
    let config = VerifierConfig {
        max_pretool_calls_per_run: u32::MAX,
        max_progress_calls_per_run: u32::MAX,
        ..VerifierConfig::default()
    };
    let model: Arc<dyn LanguageModel> = Arc::new(ImmediateModel);
    let history: Vec<ChatMessage> = (0..6)
        .map(|n| {
            ChatMessage::User(format!(
                "message {n} {}",
                "lorem ipsum dolor sit amet ".repeat(12)
            ))
        })
        .collect();
    let asked = ModelRequest {
        messages: vec![ChatMessage::User("<quoted 12345678 call>\n".to_owned())],
        ..ModelRequest::default()
    };
    measure_and_print("model and loop alone", |_| {
        let _ = black_box(poll_ready_future(model.ask_model(&asked)));
    });
    let shapes: [Value; SHAPES] = std::array::from_fn(bench_call_arguments);
    for (name, history) in [
        ("veto check, no history", &[][..]),
        ("veto check, 6 messages", &history),
    ] {
        let veto = PreToolVerifier::new(model.clone(), config)?;
        measure_and_print(name, |n| {
            let arguments = shapes.get(n % SHAPES).unwrap_or(&Value::Null);
            black_box(poll_ready_future(veto.judge_tool_call_by_model(
                GOAL,
                "slack_send",
                arguments,
                history,
            )));
        });
    }
    let veto = PreToolVerifier::new(model.clone(), config)?;
    let [same, ..] = &shapes;
    measure_and_print("veto check, asked before", |_| {
        black_box(poll_ready_future(veto.judge_tool_call_by_model(
            GOAL,
            "slack_send",
            same,
            &history,
        )));
    });
    let progress = ProgressVerifier::new(model, config)?;
    measure_and_print("progress check, 6 messages", |_| {
        let step = "called slack_search, got 3 channels";
        let check = poll_ready_future(progress.evaluate(GOAL, step, &history));
        black_box(check.and_then(|check| progress.maybe_nudge(&check)));
    });
    for rounds in [0, 3] {
        let name = format!("verification, {rounds} failing rounds");
        let checked = VerificationLoop::new(vec![Verifier::new("tests", |run: &BenchAgentRun| {
            if run.messages.len() > 2 * run.edits.unwrap_or(0) as usize {
                VerificationResult::Passed
            } else {
                VerificationResult::Failed("pytest: 1 failed".to_owned())
            }
        })]);
        measure_and_print(&name, |_| {
            let _ = black_box(poll_ready_future(
                checked.run(&ImmediateAgent(rounds), "go"),
            ));
        });
    }
    Ok(())
}

/// More shapes than are remembered: none is when its turn comes again.
const SHAPES: usize = 300;

fn bench_call_arguments(n: usize) -> Value {
    json!({ "channel": "#qa", "text": "Reminder: the release is on Friday.", "thread": n, "dry_run": false })
}

fn measure_and_print(name: &str, mut call: impl FnMut(usize)) {
    let mut least = Duration::MAX;
    for round in 0..ROUNDS {
        let began = process_cpu_time();
        for n in 0..CALLS {
            call(round * CALLS + n);
        }
        least = least.min(process_cpu_time().saturating_sub(began));
    }
    println!("{name}: {} ns", least.as_nanos() / CALLS as u128);
}

/// Processor time of this process.
#[cfg(unix)]
fn process_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Time on the wall, which is the same where nothing else runs.
#[cfg(not(unix))]
fn process_cpu_time() -> Duration {
    static BEGAN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    BEGAN.get_or_init(std::time::Instant::now).elapsed()
}

/// Of a future that is ready at once.
fn poll_ready_future<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

/// Allows every call, and thinks well of every step.
struct ImmediateModel;

impl LanguageModel for ImmediateModel {
    fn model_name(&self) -> &str {
        "bench/at-once"
    }

    fn ask_model<'a>(
        &'a self,
        request: &'a ModelRequest,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move {
            let number = match request.messages.first() {
                Some(ChatMessage::User(text)) => text.split(' ').nth(1).unwrap_or_default(),
                _ => "",
            };
            Ok(ModelReply {
                text: format!(
                    r#"{{"ref":{number},"verdict":"allow","score":0.9,"confidence":0.93,"reason":"relevant to the goal","new_args":null}}"#
                ),
                calls: Vec::new(),
                finish_reason: FinishReason::EndOfTurn,
                usage: AnswerTokenUsage::default(),
            })
        })
    }
}

type BenchAgentRun = AgentRun<String>;

/// Is done when it was sent back so often; it says how often that is as if these were edits.
struct ImmediateAgent(u64);

impl Agent for ImmediateAgent {
    type ConversationMessage = String;
    type AgentRunError = Infallible;

    fn run<'a>(
        &'a self,
        history: &'a [String],
        message: &'a str,
    ) -> BoxFuture<'a, Result<BenchAgentRun, Infallible>> {
        Box::pin(async move {
            Ok(AgentRun {
                messages: [history, &[message.to_owned(), "done".to_owned()]].concat(),
                output: "done".to_owned(),
                edits: Some(self.0),
            })
        })
    }
}
