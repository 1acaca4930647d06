//! The loop at its front door: how runs end, what the model is told, what never runs.

use std::future::pending;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use checkrein::models::{
    AnswerTokenUsage, BoxFuture, ChatMessage, FinishReason, LanguageModel, ModelError, ModelReply,
    ModelRequest, RequestedToolCall, block_on,
};
use checkrein::{
    AgentLoop, AgentLoopStartError, ApplyPatchTool, HardCaps, HardVerifier, LoopResult, Reason,
    SelfReflectionConfig, ShellTool, Tool, ToolInvocation, ToolOutput,
};
use checkrein_core::ids::SessionId;
use checkrein_store::{MemoryStore, Store as _};
use serde_json::{Value, json};

type Script = dyn Fn(&ModelRequest, usize) -> Result<ModelReply, ModelError> + Send + Sync;

/// A model in this process: its answers are a function of what it is asked.
pub(crate) struct InProcess {
    says: Box<Script>,
    pub(crate) asked: Mutex<Vec<ModelRequest>>,
}

impl InProcess {
    fn by(
        says: impl Fn(&ModelRequest, usize) -> Result<ModelReply, ModelError> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            says: Box::new(says),
            asked: Mutex::default(),
        })
    }

    /// One after the other; the last again and again.
    pub(crate) fn one_by_one(replies: Vec<ModelReply>) -> Arc<Self> {
        let last = replies.last().unwrap().clone();
        Self::by(move |_, nth| Ok(replies.get(nth).unwrap_or(&last).clone()))
    }
}

impl LanguageModel for InProcess {
    fn model_name(&self) -> &str {
        "openai/gpt-4.1"
    }

    fn ask_model<'a>(
        &'a self,
        request: &'a ModelRequest,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move {
            let nth = {
                let mut asked = self.asked.lock().unwrap();
                asked.push(request.clone());
                asked.len() - 1
            };
            (self.says)(request, nth)
        })
    }
}

fn reply(text: &str, calls: Vec<RequestedToolCall>) -> ModelReply {
    ModelReply {
        text: text.to_owned(),
        finish_reason: if calls.is_empty() {
            FinishReason::EndOfTurn
        } else {
            FinishReason::Calls
        },
        calls,
        usage: AnswerTokenUsage {
            input: Some(1000),
            output: Some(100),
            ..AnswerTokenUsage::default()
        },
    }
}

pub(crate) fn says(text: &str) -> ModelReply {
    reply(text, Vec::new())
}

pub(crate) fn calls(tool: &str, arguments: Value) -> ModelReply {
    reply("", vec![call(tool, Ok(arguments))])
}

fn call(tool: &str, arguments: Result<Value, String>) -> RequestedToolCall {
    RequestedToolCall {
        // As some providers do: every call has the same.
        id: "call".to_owned(),
        tool: tool.to_owned(),
        arguments,
        provider_state: None,
    }
}

fn ends(agent: &AgentLoop) -> LoopResult {
    block_on(agent.run("Do it.")).unwrap()
}

fn reason(result: &LoopResult) -> (Reason, Option<&str>) {
    let transition = &result.transition;
    (transition.reason, transition.detail.as_deref())
}

/// What the model was told of its calls.
pub(crate) fn results(result: &LoopResult) -> Vec<(&str, bool)> {
    let of = result.messages.iter().map(|message| match message {
        ChatMessage::ToolResult { text, failed, .. } => Some((text.as_str(), *failed)),
        ChatMessage::User(_) | ChatMessage::Assistant { .. } => None,
    });
    of.flatten().collect()
}

fn users(result: &LoopResult) -> Vec<&str> {
    let of = result.messages.iter().map(|message| match message {
        ChatMessage::User(text) => Some(text.as_str()),
        ChatMessage::ToolResult { .. } | ChatMessage::Assistant { .. } => None,
    });
    of.flatten().collect()
}

struct Notes(AtomicU32);

impl Notes {
    fn new() -> Arc<Self> {
        Arc::new(Self(AtomicU32::new(0)))
    }
}

impl Tool for Notes {
    fn name(&self) -> &str {
        "note"
    }

    fn tool_description(&self) -> &str {
        "Takes a note."
    }

    fn input_schema(&self) -> Arc<Value> {
        Arc::new(json!({ "type": "object" }))
    }

    fn run<'a>(&'a self, _call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            self.0.fetch_add(1, Ordering::Relaxed);
            ToolOutput::from_success("noted")
        })
    }
}

fn in_folder(model: Arc<dyn LanguageModel>) -> (tempfile::TempDir, AgentLoop) {
    let root = tempfile::tempdir().unwrap();
    let agent = AgentLoop::new(model).root(root.path());
    (root, agent)
}

#[test]
fn a_refused_stop_is_fixed_and_completes() {
    let model = InProcess::one_by_one(vec![
        says("Done."),
        calls("shell", json!({ "command": "echo yes > done.txt" })),
        says("Done."),
    ]);
    let (root, agent) = in_folder(model.clone());
    let agent = agent
        .tool(ShellTool::shell_in_folder(root.path()))
        .config("[[verifier]]\nname = \"marker\"\nrun = \"test -f done.txt\"\n");
    let result = ends(&agent);
    assert_eq!(reason(&result), (Reason::TaskComplete, None));
    // The refusal went back in the same conversation.
    let told = users(&result);
    assert_eq!(told.len(), 2);
    assert!(told[1].contains("test -f done.txt"), "{}", told[1]);
    assert_eq!((result.rounds, result.output.as_str()), (3, "Done."));
    let last = model.asked.lock().unwrap().pop().unwrap();
    assert_eq!(
        last.messages[..],
        result.messages[..result.messages.len() - 1]
    );
    // Of every answer: 1000 tokens at $2 and 100 at $8 for a million.
    assert_eq!(result.usage.output, Some(300));
    assert_eq!(result.cost, Some(3 * (2000 + 800)));
}

/// `{ passed, reason, can_retry }`: what fails goes back with its reason, and the same words about
/// something that has been mended meanwhile are judged anew.
#[test]
fn hard_verifiers_are_functions_of_the_host() {
    let crm = Arc::new(AtomicBool::new(false));
    let filled = crm.clone();
    let model = InProcess::by(move |_, nth| {
        crm.store(nth > 0, Ordering::Relaxed);
        Ok(says("Done."))
    });
    let (_root, agent) = in_folder(model);
    let agent = agent.verifier(HardVerifier::new("crm", move |state| {
        assert_eq!(state.output, "Done.");
        match filled.load(Ordering::Relaxed) {
            true => HardVerifier::passed(),
            false => HardVerifier::failed("the field 'owner' is empty", true),
        }
    }));
    let result = ends(&agent);
    assert_eq!(reason(&result), (Reason::TaskComplete, None));
    let told = users(&result);
    assert!(told[1].contains("crm") && told[1].contains("the field 'owner' is empty"));
    assert_eq!(told.len(), 2);
}

#[test]
fn a_panic_of_a_host_is_no_pass() {
    let (_root, agent) = in_folder(InProcess::one_by_one(vec![says("Done.")]));
    let agent = agent.verifier(HardVerifier::new("broken", |state| {
        assert!(state.output.is_empty(), "not what I know");
        HardVerifier::passed()
    }));
    let result = ends(&agent);
    assert_eq!(reason(&result), (Reason::GaveUp, Some("same_failures")));
    assert!(users(&result)[1].contains("not what I know"));
}

#[test]
fn without_any_check_nothing_is_verified() {
    let (_root, agent) = in_folder(InProcess::one_by_one(vec![says("Done.")]));
    assert_eq!(ends(&agent).transition.reason, Reason::Unverified);
}

#[test]
fn a_cap_on_rounds_ends_the_run() {
    let notes = Notes::new();
    let model = InProcess::by(|_, nth| Ok(calls("note", json!({ "nth": nth }))));
    let (_root, agent) = in_folder(model);
    let agent = agent.tool(notes.clone()).with_hard_caps(HardCaps {
        max_iterations: 3,
        ..HardCaps::create_agent_loop_preset()
    });
    let result = ends(&agent);
    assert_eq!(reason(&result), (Reason::HardCap, Some("iterations")));
    // One more is let know that it is over, the next ends it; neither runs.
    assert_eq!((notes.0.load(Ordering::Relaxed), result.rounds), (3, 5));
}

/// Nobody has to set a cap for a loop to end.
#[test]
fn without_settings_the_caps_of_the_loop_hold() {
    type Make = fn(Arc<dyn LanguageModel>) -> AgentLoop;
    let kinds: [(Make, u32); 2] = [(AgentLoop::new, 90), (AgentLoop::seed, 30)];
    for (make, rounds) in kinds {
        let notes = Notes::new();
        let model = InProcess::by(|_, nth| Ok(calls("note", json!({ "nth": nth }))));
        let root = tempfile::tempdir().unwrap();
        let result = ends(&make(model).root(root.path()).tool(notes.clone()));
        assert_eq!(reason(&result), (Reason::HardCap, Some("iterations")));
        assert_eq!(notes.0.load(Ordering::Relaxed), rounds);
    }
}

/// While nobody says anything the clock does.
#[test]
fn a_cap_on_time_ends_a_silent_run() {
    struct Silent;
    impl LanguageModel for Silent {
        fn model_name(&self) -> &str {
            "scripted/silent"
        }
        fn ask_model<'a>(
            &'a self,
            _: &'a ModelRequest,
        ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
            Box::pin(pending())
        }
    }
    let (_root, agent) = in_folder(Arc::new(Silent));
    let agent = agent.with_hard_caps(HardCaps {
        wall_clock: Duration::from_millis(50),
        ..HardCaps::create_agent_loop_preset()
    });
    assert_eq!(reason(&ends(&agent)), (Reason::HardCap, Some("wall_clock")));
}

#[test]
fn a_cap_on_tokens_ends_the_run() {
    let model = InProcess::by(|_, nth| Ok(calls("note", json!({ "nth": nth }))));
    let (_root, agent) = in_folder(model);
    let agent = agent.tool(Notes::new()).with_hard_caps(HardCaps {
        token_budget: 250,
        ..HardCaps::create_agent_loop_preset()
    });
    assert_eq!(reason(&ends(&agent)), (Reason::HardCap, Some("tokens")));
}

/// Each answer brings something new, and less and less of it.
#[test]
fn diminishing_answers_end_the_run() {
    let (_root, agent) = in_folder(InProcess::one_by_one(vec![says("Done.")]));
    let agent = agent.verifier(HardVerifier::new("report", |state| {
        HardVerifier::failed(
            format!("part {} is missing", "x".repeat(state.rounds as usize)),
            true,
        )
    }));
    let result = ends(&agent);
    assert_eq!(
        reason(&result),
        (Reason::DiminishingReturns, Some("diminishing"))
    );
    assert_eq!(result.rounds, 4);
}

#[test]
fn a_repeated_call_ends_the_run() {
    let notes = Notes::new();
    let model = InProcess::one_by_one(vec![calls("note", json!({ "text": "again" }))]);
    let (_root, agent) = in_folder(model);
    let agent = agent.tool(notes.clone()).detectors(&["generic_repeat"]);
    let result = ends(&agent);
    assert_eq!(
        reason(&result),
        (Reason::LoopDetected, Some("generic_repeat"))
    );
    // A word at the eleventh, a no at the twenty-first, the end at the one after.
    assert_eq!((notes.0.load(Ordering::Relaxed), result.rounds), (20, 22));
    let told = results(&result);
    assert!(told[10].0.starts_with("noted\n") && !told[10].1);
    assert!(told[20].1);
}

#[test]
fn an_unrecoverable_failure_ends_the_run() {
    let (_root, agent) = in_folder(InProcess::one_by_one(vec![says("Done.")]));
    let agent = agent.verifier(HardVerifier::new("licence", |_| {
        HardVerifier::failed("the licence has run out", false)
    }));
    let result = ends(&agent);
    assert_eq!(
        reason(&result),
        (Reason::VerifierFailedUnrecoverable, Some("licence"))
    );
    assert_eq!(result.rounds, 1);
}

/// A model that is interrupted while it thinks; and then every run of the loop.
#[test]
fn an_interrupt_ends_a_thinking_model() {
    struct Thinks(Mutex<Option<checkrein::AgentLoopInterruptHandle>>);
    impl LanguageModel for Thinks {
        fn model_name(&self) -> &str {
            "scripted/thinks"
        }
        fn ask_model<'a>(
            &'a self,
            _: &'a ModelRequest,
        ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
            let interrupt = self.0.lock().unwrap().take().unwrap();
            std::thread::spawn(move || interrupt.interrupt_agent_loops());
            Box::pin(pending())
        }
    }
    let model = Arc::new(Thinks(Mutex::default()));
    let (_root, agent) = in_folder(model.clone());
    *model.0.lock().unwrap() = Some(agent.interrupt_handle());
    assert_eq!(reason(&ends(&agent)), (Reason::UserInterrupt, None));
    *model.0.lock().unwrap() = Some(agent.interrupt_handle());
    assert_eq!(reason(&ends(&agent)), (Reason::UserInterrupt, None));
}

/// Runs it, and ends it once what is at work says so into a pipe of its folder.
fn interrupted_at_work(agent: &AgentLoop, folder: &Path) -> LoopResult {
    let pipe = folder.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let interrupt = agent.interrupt_handle();
    let person = std::thread::spawn(move || {
        let said = std::fs::read_to_string(pipe).unwrap();
        interrupt.interrupt_agent_loops();
        said
    });
    let result = ends(agent);
    assert_eq!(person.join().unwrap(), "here\n");
    assert_eq!(reason(&result), (Reason::UserInterrupt, None));
    result
}

/// An interrupt ends the tool that runs, with what it started.
#[test]
fn an_interrupt_does_not_wait_for_a_tool() {
    let command = json!({ "command": "echo here > pipe; sleep 1000" });
    let (root, agent) = in_folder(InProcess::one_by_one(vec![calls("shell", command)]));
    let agent = agent.tool(ShellTool::shell_in_folder(root.path()));
    let result = interrupted_at_work(&agent, root.path());
    assert_eq!(results(&result).len(), 1);
}

/// Nor for a check.
#[test]
fn an_interrupt_does_not_wait_for_a_check() {
    let (root, agent) = in_folder(InProcess::one_by_one(vec![says("Done.")]));
    let agent = agent.config("verify_on = \"always\"\n[[verifier]]\nname = \"slow\"\nrun = \"echo here > pipe; sleep 1000\"\n");
    let result = interrupted_at_work(&agent, root.path());
    assert_eq!(result.output, "Done.");
}

#[test]
fn a_model_error_ends_the_run() {
    let model = InProcess::by(|_, _| {
        Err(ModelError::Refused {
            provider: "openai".to_owned(),
            status: 401,
            what: "no such key".to_owned(),
        })
    });
    let (_root, agent) = in_folder(model);
    let result = ends(&agent);
    assert_eq!(reason(&result), (Reason::Error, Some("agent")));
    let native = result.transition.native_reason.unwrap();
    assert!(native.contains("401") && native.contains("no such key"));
}

#[test]
fn answers_that_are_cut_again_are_truncated_and_their_calls_do_not_run() {
    let notes = Notes::new();
    for calls in [vec![], vec![call("note", Ok(json!({})))]] {
        let cut = ModelReply {
            finish_reason: FinishReason::Truncated,
            ..reply("I have", calls)
        };
        let (_root, agent) = in_folder(InProcess::one_by_one(vec![cut.clone(), cut]));
        let agent = agent
            .tool(notes.clone())
            .verifier(HardVerifier::new("never", |_| {
                HardVerifier::failed("not yet", true)
            }));
        assert_eq!(reason(&ends(&agent)), (Reason::Truncated, None));
    }
    assert_eq!(notes.0.load(Ordering::Relaxed), 0);
}

#[test]
fn after_one_cut_answer_it_goes_on() {
    let cut = ModelReply {
        finish_reason: FinishReason::Truncated,
        ..reply("I have", Vec::new())
    };
    let model = InProcess::one_by_one(vec![
        cut.clone(),
        calls("note", json!({})),
        cut,
        says("Done."),
    ]);
    let (_root, agent) = in_folder(model);
    let notes = Notes::new();
    let result = ends(&agent.tool(notes.clone()));
    assert_eq!(reason(&result), (Reason::Unverified, Some("no_checks")));
    assert_eq!((result.rounds, result.stops), (4, 1));
    assert_eq!(notes.0.load(Ordering::Relaxed), 1);
    let told = users(&result);
    assert_eq!(
        told.iter().filter(|text| text.contains("was cut")).count(),
        2,
        "{told:?}"
    );
}

#[test]
fn after_a_cut_answer_the_output_limit_is_raised_once() {
    let cut = || ModelReply {
        finish_reason: FinishReason::Truncated,
        ..reply("I have", Vec::new())
    };
    let limits = |model: &InProcess| -> Vec<Option<u32>> {
        let asked = model.asked.lock().unwrap();
        asked.iter().map(|request| request.max_tokens).collect()
    };
    let model = InProcess::one_by_one(vec![cut(), calls("note", json!({})), says("Done.")]);
    let (_root, agent) = in_folder(model.clone());
    ends(&agent.tool(Notes::new()).max_tokens(500));
    assert_eq!(limits(&model), [Some(500), Some(1_000), Some(500)]);

    // A model without a limit has none to raise.
    let model = InProcess::one_by_one(vec![cut(), says("Done.")]);
    let (_root, agent) = in_folder(model.clone());
    ends(&agent);
    assert_eq!(limits(&model), [None, None]);

    // A model that does not have as much is asked with what it has.
    let model = InProcess::by(move |request, nth| match (nth, request.max_tokens) {
        (0, _) => Ok(cut()),
        (_, Some(1_000)) => Err(ModelError::Refused {
            provider: "openai".to_owned(),
            status: 400,
            what: "max_tokens is too large".to_owned(),
        }),
        _ => Ok(says("Done.")),
    });
    let (_root, agent) = in_folder(model.clone());
    let result = ends(&agent.max_tokens(500));
    assert_eq!(reason(&result), (Reason::Unverified, Some("no_checks")));
    assert_eq!(limits(&model), [Some(500), Some(1_000), Some(500)]);
}

#[test]
fn an_error_is_not_tried_again() {
    let model = InProcess::by(|_, _| {
        Err(ModelError::Refused {
            provider: "openai".to_owned(),
            status: 500,
            what: "no".to_owned(),
        })
    });
    let (_root, agent) = in_folder(model.clone());
    assert_eq!(reason(&ends(&agent)), (Reason::Error, Some("agent")));
    assert_eq!(model.asked.lock().unwrap().len(), 1);
}

/// What cannot run is told, and counted like any other call: no model goes on so for ever.
#[test]
fn calls_that_cannot_run_are_told_and_counted() {
    let bad = vec![
        call("note", Err("{\"text\": ".to_owned())),
        call("fly", Ok(json!({}))),
    ];
    let (_root, agent) = in_folder(InProcess::one_by_one(vec![reply("", bad)]));
    let agent = agent.tool(Notes::new()).with_hard_caps(HardCaps {
        tool_calls: 4,
        ..HardCaps::create_agent_loop_preset()
    });
    let result = ends(&agent);
    assert_eq!(reason(&result), (Reason::HardCap, Some("tool_calls")));
    let told = results(&result);
    assert!(told[0].0.contains("no JSON") && told[0].0.contains("{\"text\": "));
    assert!(told[1].0.contains("no tool 'fly'; there are: note"));
    assert!(told.iter().all(|(_, failed)| *failed));
    assert_eq!(told.len(), 6);
}

#[test]
fn the_gates_stand_before_the_built_in_tools() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(
        root.path().join("our.rules"),
        "prefix_rule(pattern = [\"rm\"], decision = \"forbidden\", justification = \"no removals\")\n",
    )
    .unwrap();
    std::fs::write(root.path().join("kept.txt"), "one\n").unwrap();
    let patch = |old: &str, new: &str| {
        let text = format!(
            "*** Begin Patch\n*** Update File: kept.txt\n@@\n-{old}\n+{new}\n*** End Patch"
        );
        calls("apply_patch", json!({ "patch": text }))
    };
    let model = InProcess::one_by_one(vec![
        calls("shell", json!({ "command": "ls && (rm kept.txt)" })),
        patch("other", "two"),
        patch("one", "two"),
        calls("shell", json!({ "command": "cat kept.txt; exit 3" })),
        says("Done."),
    ]);
    let agent = AgentLoop::new(model)
        .root(root.path())
        .config("[policy]\nrules = [\"our.rules\"]\n")
        .tool(ShellTool::shell_in_folder(root.path()))
        .tool(ApplyPatchTool::apply_patch_in_folder(root.path()));
    let result = ends(&agent);
    let told = results(&result);
    assert!(told[0].0.contains("no removals") && told[0].1, "{told:?}");
    assert!(told[1].0.contains("one") && told[1].1, "{told:?}");
    assert_eq!(told[2], ("applied: kept.txt", false));
    assert!(told[3].0.starts_with("exit status 3\n") && told[3].1);
    assert!(told[3].0.contains("two"), "{told:?}");
    assert_eq!(
        std::fs::read_to_string(root.path().join("kept.txt")).unwrap(),
        "two\n"
    );
}

#[test]
fn a_command_ends_at_its_time() {
    let root = tempfile::tempdir().unwrap();
    let shell =
        ShellTool::shell_in_folder(root.path()).with_command_time_limit(Duration::from_millis(300));
    let arguments = json!({ "command": "echo begun; sleep 1000" });
    let ran = block_on(async {
        Ok::<_, ModelError>(
            shell
                .run(ToolInvocation {
                    arguments: &arguments,
                    history: &[],
                })
                .await,
        )
    });
    let text = ran.unwrap().text;
    assert!(
        text.starts_with("ended after") && text.contains("begun"),
        "{text}"
    );
}

/// Settings that cannot be meant are told before anything runs.
#[test]
fn mistakes_are_told_before_anything_runs() {
    let never = || {
        InProcess::by(|_, _| {
            Err(ModelError::NoExecutor {
                what: "asked".to_owned(),
            })
        })
    };
    let wrong = |agent: AgentLoop, part: &str| {
        let error = block_on(agent.run("Do it.")).unwrap_err();
        assert!(matches!(error, AgentLoopStartError::Config(_)), "{error}");
        assert!(error.to_string().contains(part), "{error}");
    };
    let new = || AgentLoop::new(never());
    let caps = HardCaps {
        max_iterations: 0,
        ..HardCaps::default()
    };
    wrong(new().with_hard_caps(caps), "hard_caps.max_iterations");
    wrong(new().detectors(&["generic"]), "generic_repeat");
    let passes = |name| HardVerifier::new(name, |_| HardVerifier::passed());
    wrong(
        new().verifier(passes("tests")).verifier(passes("tests")),
        "twice",
    );
    let config = "[[verifier]]\nname = \"tests\"\nrun = \"true\"\n";
    wrong(new().config(config).verifier(passes("tests")), "'tests'");
}

/// A waker that wakes a thread, and no executor behind it.
struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Whatever waits for it, and however many runs there are of one loop.
#[test]
fn it_needs_no_executor_and_runs_share_nothing() {
    let model = InProcess::by(|request, _| {
        let ChatMessage::User(first) = &request.messages[0] else {
            return Ok(says(""));
        };
        match request.messages.len() {
            1 => Ok(calls("note", json!({ "text": first }))),
            _ => Ok(says(first)),
        }
    });
    let (_root, agent) = in_folder(model);
    let agent = agent
        .tool(Notes::new())
        .verifier(HardVerifier::new("own", |state| {
            match state.messages.first() == Some(&ChatMessage::User(state.output.clone())) {
                true => HardVerifier::passed(),
                false => HardVerifier::failed("somebody else's", false),
            }
        }));
    let run = |nth: usize| {
        let message = format!("task {nth}");
        let mut running = pin!(agent.run(&message));
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        loop {
            match running.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(result) => return result.unwrap(),
                Poll::Pending => std::thread::park(),
            }
        }
    };
    std::thread::scope(|scope| {
        let run = &run;
        let runs: Vec<_> = (0..16).map(|nth| scope.spawn(move || run(nth))).collect();
        for (nth, ran) in runs.into_iter().enumerate() {
            let result = ran.join().unwrap();
            assert_eq!(reason(&result), (Reason::TaskComplete, None));
            assert_eq!(result.output, format!("task {nth}"));
        }
    });
}

// The agent's own look at its answer.

/// Answers one after the other; asked how good an answer is, it says these things, where `REF` is the number of
/// the question.
fn reflecting(
    answers: &'static [&'static str],
    thoughts: &'static [&'static str],
) -> Arc<InProcess> {
    let asked = Mutex::new((0, 0));
    InProcess::by(move |request, _| {
        let mut asked = asked.lock().unwrap();
        if request.output_schema.is_none() {
            asked.0 += 1;
            return Ok(says(answers.get(asked.0 - 1).or(answers.last()).unwrap()));
        }
        asked.1 += 1;
        let Some(ChatMessage::User(question)) = request.messages.last() else {
            panic!("no question: {request:?}");
        };
        let (_, number) = question.rsplit_once("ref: ").unwrap();
        let thought = thoughts.get(asked.1 - 1).or(thoughts.last()).unwrap();
        Ok(says(&thought.replace("REF", number.trim_end_matches('.'))))
    })
}

fn dated() -> HardVerifier {
    HardVerifier::new("dated", |state| match state.output.contains("May") {
        true => HardVerifier::passed(),
        false => HardVerifier::failed("it needs a date", true),
    })
}

const LOW: &str = r#"{"ref": REF, "critique": "the second half is missing", "score": 0.4}"#;
const HIGH: &str = r#"{"ref": REF, "critique": "", "score": 0.9}"#;

#[test]
fn reflect_a_low_score_is_followed_by_a_revision() {
    let model = reflecting(&["Half, May.", "All, May."], &[LOW, HIGH]);
    let (_root, agent) = in_folder(model.clone());
    let agent = agent
        .tool(Notes::new())
        .verifier(dated())
        .reflect(SelfReflectionConfig::default());
    let result = ends(&agent);
    assert_eq!(reason(&result), (Reason::TaskComplete, None));
    assert_eq!(result.output, "All, May.");
    let scores: Vec<_> = result
        .reflections
        .iter()
        .map(|one| (one.score.clone(), one.revised))
        .collect();
    assert_eq!(scores, [(Ok(400), true), (Ok(900), false)]);
    // The questions are no part of the conversation; what it has against itself is.
    let told = users(&result);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[1].starts_with("[reflect] "), "{told:?}");
    assert!(told[1].contains("the second half is missing"), "{told:?}");
    // They are shown all of it, and count.
    let asked = model.asked.lock().unwrap();
    assert_eq!(asked[1].messages[..2], result.messages[..2]);
    assert_eq!(asked[1].tools, asked[0].tools);
    assert_eq!((result.rounds, result.usage.output), (4, Some(400)));
    assert_eq!(result.stops, 1, "only the second answer was judged");
}

#[test]
fn reflect_revisions_are_counted() {
    for (revisions, rounds) in [(1, 3), (2, 5), (3, 7)] {
        let model = reflecting(&["Never right, May."], &[LOW]);
        let (_root, agent) = in_folder(model);
        let reflect = SelfReflectionConfig {
            revisions,
            ..SelfReflectionConfig::default()
        };
        let result = ends(&agent.verifier(dated()).reflect(reflect));
        // As often as it may it has revised its answer: now others judge it.
        assert_eq!(reason(&result), (Reason::TaskComplete, None));
        assert_eq!(result.rounds, rounds);
        let revised = result.reflections.iter().filter(|one| one.revised).count();
        assert_eq!(revised, revisions as usize);
    }
}

#[test]
fn reflect_is_no_evidence() {
    let model = reflecting(&["Done.", "Done, 1 May."], &[HIGH]);
    let (_root, agent) = in_folder(model);
    let result = ends(
        &agent
            .verifier(dated())
            .reflect(SelfReflectionConfig::default()),
    );
    assert_eq!(reason(&result), (Reason::TaskComplete, None));
    assert_eq!(result.stops, 2, "the verifier sent the first back");
    assert!(users(&result)[1].contains("it needs a date"));
}

#[test]
fn reflect_what_cannot_be_read_is_no_revision() {
    for thought in [
        "It is fine.",
        r#"{"critique": "bad", "score": 0.1}"#,
        r#"{"ref": 12345678, "critique": "bad", "score": 0.1}"#,
        r#"{"ref": REF, "critique": "bad", "score": "low"}"#,
        r#"{"ref": REF, "critique": "bad"}"#,
        "",
    ] {
        let model = InProcess::by(move |request, _| match request.output_schema {
            None => Ok(says("Done, 1 May.")),
            Some(_) => Ok(says(thought)),
        });
        let (_root, agent) = in_folder(model);
        let result = ends(
            &agent
                .verifier(dated())
                .reflect(SelfReflectionConfig::default()),
        );
        assert_eq!(reason(&result), (Reason::TaskComplete, None), "{thought}");
        let [reflection] = &result.reflections[..] else {
            panic!("{thought}: {:?}", result.reflections);
        };
        assert!(
            reflection.score.is_err() && !reflection.revised,
            "{thought}: {reflection:?}"
        );
    }
    // Nor is a model that does not answer.
    let model = InProcess::by(|request, _| match request.output_schema {
        None => Ok(says("Done, 1 May.")),
        Some(_) => Err(ModelError::NoExecutor {
            what: "down".to_owned(),
        }),
    });
    let (_root, agent) = in_folder(model);
    let result = ends(
        &agent
            .verifier(dated())
            .reflect(SelfReflectionConfig::default()),
    );
    assert_eq!(reason(&result), (Reason::TaskComplete, None));
    assert!(result.reflections[0].score.is_err());
}

#[test]
fn reflect_settings_that_cannot_be_meant() {
    for (threshold_permille, revisions, key) in [
        (0, 3, "threshold_permille"),
        (1001, 3, "threshold_permille"),
        (700, 0, "revisions"),
        (700, 4, "revisions"),
    ] {
        let (_root, agent) = in_folder(InProcess::one_by_one(vec![says("")]));
        let reflect = SelfReflectionConfig {
            threshold_permille,
            revisions,
        };
        let error = block_on(agent.reflect(reflect).run("Do it.")).unwrap_err();
        assert!(
            error.to_string().contains(&format!("reflect.{key}")),
            "{error}"
        );
    }
}

/// A conversation of which a part cannot be read is not taken up: what came after would be answered by
/// what came before.
#[test]
fn a_conversation_that_cannot_be_read_is_not_taken_up() {
    let store = Arc::new(MemoryStore::new());
    let (_root, agent) = in_folder(InProcess::one_by_one(vec![says("Done.")]));
    let agent = agent.store(store.clone());
    let session = ends(&agent).session;
    store
        .put_conversation_message(&session, br#"{"type":"of a newer build"}"#)
        .unwrap();
    let again = block_on(agent.resume(session.clone(), Some("more"))).unwrap_err();
    assert!(
        matches!(again, AgentLoopStartError::Unreadable { nth: 3, .. }),
        "{again}"
    );
    let nobody = block_on(agent.resume(SessionId::new("nobody"), None)).unwrap_err();
    assert!(
        matches!(nobody, AgentLoopStartError::NoConversation(_)),
        "{nobody}"
    );
}

/// Where a cap on the cost is set an answer that does not say what it used ends the run.
#[test]
fn a_cost_that_is_not_told_cannot_be_held() {
    let mut silent = calls("note", json!({}));
    silent.usage.input = None;
    let (_root, agent) = in_folder(InProcess::one_by_one(vec![silent]));
    let agent = agent.tool(Notes::new()).with_hard_caps(HardCaps {
        cost: Some(50_000),
        ..HardCaps::default()
    });
    let result = ends(&agent);
    assert_eq!(
        (reason(&result), result.rounds),
        ((Reason::Error, Some("agent")), 1)
    );
    let native = result.transition.native_reason.unwrap();
    assert!(native.contains("cost_usd cannot be held"), "{native}");
}

/// Who has nothing left to spend does not spend it on thinking about it.
#[test]
fn reflect_asks_nothing_once_a_cap_is_reached() {
    let model = reflecting(&["Never right, May."], &[LOW]);
    let (_root, agent) = in_folder(model.clone());
    let agent = agent
        .tool(Notes::new())
        .reflect(SelfReflectionConfig::default());
    let result = ends(&agent.with_hard_caps(HardCaps {
        token_budget: 1,
        ..HardCaps::default()
    }));
    assert!(result.reflections.len() <= 1, "{:?}", result.reflections);
}
