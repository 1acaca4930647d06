//! Layers of middleware at the front door of the library: who is asked, what the model gets, what
//! follows where one cannot tell, what a replay needs.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use checkrein::models::block_on;
use checkrein::models::{
    AnswerTokenUsage, BoxFuture, ChatMessage, FinishReason, LanguageModel, ModelError, ModelReply,
    ModelRequest, RequestedToolCall,
};
use checkrein::{
    AgentLoop, BeforeStopAnswer, BeforeStopQuestion, BeforeToolQuestion, Engine,
    FrontEndMiddlewareStages, LoopResult, Middleware, MiddlewareLayer, MiddlewareStage,
    MiddlewareToolCallAnswer, MiddlewareToolResultAnswer, PersonAnswer, Reason, RoundDetector,
    RoundEndAnswer, RoundEndForMiddleware, SessionEndForMiddleware, SessionStart, ShellTool,
    StopDecision, ToolCall, ToolDecision, ToolResult,
};
use checkrein_core::event::Event;
use checkrein_core::ids::EventSeq;
use checkrein_core::middleware::{MiddlewareAnswer, MiddlewareAnswerFact};
use checkrein_runtime::replay;
use checkrein_store::{MemoryStore, Store};
use serde_json::json;

/// A model that makes these calls of the shell, one after the other, and then says that it is done.
struct Scripted {
    commands: Vec<String>,
    asked: Mutex<Vec<ModelRequest>>,
}

impl Scripted {
    fn calling(commands: &[&str]) -> Arc<Self> {
        Arc::new(Self {
            commands: commands.iter().map(|one| (*one).to_owned()).collect(),
            asked: Mutex::default(),
        })
    }

    /// What the model was told of its calls when it was asked for the nth time.
    fn results(&self, nth: usize) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        results(&asked.get(nth).unwrap().messages)
    }
}

fn results(messages: &[ChatMessage]) -> Vec<String> {
    let of = messages.iter().filter_map(|message| match message {
        ChatMessage::ToolResult { text, .. } => Some(text.trim_end().to_owned()),
        ChatMessage::User(_) | ChatMessage::Assistant { .. } => None,
    });
    of.collect()
}

impl LanguageModel for Scripted {
    fn model_name(&self) -> &str {
        "scripted/worker"
    }

    fn ask_model<'a>(
        &'a self,
        request: &'a ModelRequest,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move {
            let mut asked = self.asked.lock().unwrap();
            let command = self.commands.get(asked.len());
            asked.push(request.clone());
            let calls: Vec<RequestedToolCall> = command
                .map(|command| RequestedToolCall {
                    id: "call".to_owned(),
                    tool: "shell".to_owned(),
                    arguments: Ok(json!({ "command": command })),
                    provider_state: None,
                })
                .into_iter()
                .collect();
            Ok(ModelReply {
                text: "Done.".to_owned(),
                finish_reason: match calls.is_empty() {
                    true => FinishReason::EndOfTurn,
                    false => FinishReason::Calls,
                },
                calls,
                usage: AnswerTokenUsage::default(),
            })
        })
    }
}

/// A loop in an empty folder whose check always passes, and where it keeps what happens.
struct Bench {
    root: tempfile::TempDir,
    store: Arc<MemoryStore>,
    agent: AgentLoop,
}

const CHECK: &str = "verify_on = \"always\"\n[[verifier]]\nname = \"ok\"\nrun = \"test -d .\"\n";

fn bench(model: Arc<dyn LanguageModel>, config: &str) -> Bench {
    let root = tempfile::tempdir().unwrap();
    let store = Arc::new(MemoryStore::new());
    let agent = AgentLoop::new(model)
        .root(root.path())
        .store(store.clone())
        .tool(ShellTool::shell_in_folder(root.path()))
        .config(format!("{CHECK}{config}"));
    Bench { root, store, agent }
}

impl Bench {
    fn ends(&self) -> LoopResult {
        block_on(self.agent.run("Do it.")).unwrap()
    }

    /// All that layers said, in order.
    fn facts(&self, result: &LoopResult) -> Vec<MiddlewareAnswerFact> {
        let rows = self
            .store
            .events_after(&result.session, EventSeq(0))
            .unwrap();
        let events = rows
            .iter()
            .map(|row| checkrein_core::event::decode_event(&row.payload).unwrap());
        let inputs = events.filter_map(|event| match event {
            Event::Input(stamped) => Some(stamped.layers.into_vec()),
            _ => None,
        });
        inputs.flatten().collect()
    }

    fn replays(&self, result: &LoopResult) {
        for through_cache in [false, true] {
            let replayed =
                replay::replay_session(&*self.store, &result.session, through_cache).unwrap();
            assert_eq!(replayed.differs_at, None);
        }
    }
}

fn reason(result: &LoopResult) -> (Reason, Option<&str>) {
    let transition = &result.transition;
    (transition.reason, transition.detail.as_deref())
}

/// Says what it is told to say, and takes down what it was asked.
struct Says<F>(F);

impl<F: Fn(&BeforeToolQuestion) -> MiddlewareToolCallAnswer + Send + Sync> Middleware for Says<F> {
    fn before_tool(&self, call: &BeforeToolQuestion) -> MiddlewareToolCallAnswer {
        (self.0)(call)
    }
}

struct Rewrites<F>(F);

impl<F: Fn(MiddlewareStage, &ToolResult) -> MiddlewareToolResultAnswer + Send + Sync> Middleware
    for Rewrites<F>
{
    fn after_tool(&self, result: &ToolResult) -> MiddlewareToolResultAnswer {
        (self.0)(MiddlewareStage::AfterTool, result)
    }

    fn rewrite_result_for_later_rounds(&self, result: &ToolResult) -> MiddlewareToolResultAnswer {
        (self.0)(MiddlewareStage::PersistResult, result)
    }
}

#[test]
fn layers_are_asked_by_number_and_then_as_they_came() {
    let bench = bench(Scripted::calling(&["echo hi"]), "");
    let asked: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let layer = |name: &'static str, order| {
        let asked = asked.clone();
        let says = move |_: &BeforeToolQuestion| {
            asked.lock().unwrap().push(name);
            MiddlewareToolCallAnswer::Pass
        };
        MiddlewareLayer::new(name, &[MiddlewareStage::BeforeTool], Says(says))
            .with_layer_order(order)
    };
    let layers = bench.agent.middleware_registry();
    for one in [
        layer("late", 5),
        layer("a", 0),
        layer("b", 0),
        layer("early", -1),
    ] {
        layers.register_middleware_layer(one);
    }
    let result = bench.ends();
    assert_eq!(*asked.lock().unwrap(), ["early", "a", "b", "late"]);
    assert_eq!(reason(&result), (Reason::TaskComplete, None));
}

#[test]
fn layers_come_and_go_while_it_runs() {
    let model = Scripted::calling(&["echo one", "echo two", "echo three"]);
    let bench = bench(model.clone(), "");
    let layers = bench.agent.middleware_registry().clone();
    let no = |_: &BeforeToolQuestion| MiddlewareToolCallAnswer::Deny("not now".to_owned());
    let guard: Mutex<Option<checkrein::MiddlewareRegistrationHandle>> = Mutex::default();
    let seen = Mutex::new(0);
    let inner = layers.clone();
    // The second call meets a guard that the first has let in; the third does not.
    let switch = move |call: &BeforeToolQuestion| {
        let mut seen = seen.lock().unwrap();
        *seen += 1;
        assert_eq!(call.tool, "shell");
        match *seen {
            1 => {
                let guarding =
                    MiddlewareLayer::new("guard", &[MiddlewareStage::BeforeTool], Says(no));
                *guard.lock().unwrap() = Some(inner.register_middleware_layer(guarding));
            }
            3 => guard
                .lock()
                .unwrap()
                .take()
                .unwrap()
                .unregister_middleware_layer(),
            _ => {}
        }
        MiddlewareToolCallAnswer::Pass
    };
    layers.register_middleware_layer(
        MiddlewareLayer::new("switch", &[MiddlewareStage::BeforeTool], Says(switch))
            .with_layer_order(-1),
    );
    let result = bench.ends();
    let told = results(&result.messages);
    assert_eq!(told.first().unwrap(), "one");
    assert_eq!(
        told.get(1).unwrap(),
        "checkrein: 'guard' refuses this call: not now"
    );
    // Who is asked about a call is settled when the first is asked.
    assert_eq!(told.get(2).unwrap(), told.get(1).unwrap());
    assert_eq!(
        layers_of(&bench.facts(&result)),
        ["switch", "switch", "guard", "switch", "guard"]
    );
    let again = bench.ends();
    assert!(!layers_of(&bench.facts(&again)).contains(&"guard".to_owned()));
}

fn layers_of(facts: &[MiddlewareAnswerFact]) -> Vec<String> {
    facts.iter().map(|fact| fact.layer.to_string()).collect()
}

#[test]
fn the_model_gets_what_layers_made_of_a_result_and_later_what_is_kept_of_it() {
    let model = Scripted::calling(&["echo the password is hunter2", "echo short"]);
    let bench = bench(model.clone(), "");
    let cut = |stage, result: &ToolResult| match stage {
        MiddlewareStage::AfterTool => {
            MiddlewareToolResultAnswer::Text(result.text.replace("hunter2", "[cut]"))
        }
        _ if result.text.len() > 10 => MiddlewareToolResultAnswer::Text("a long one".to_owned()),
        _ => MiddlewareToolResultAnswer::Keep,
    };
    let on = [MiddlewareStage::AfterTool, MiddlewareStage::PersistResult];
    bench
        .agent
        .middleware_registry()
        .register_middleware_layer(MiddlewareLayer::new("cut", &on, Rewrites(cut)));
    let shout = |_: MiddlewareStage, result: &ToolResult| {
        assert!(!result.text.contains("hunter2"), "it sees what came before");
        MiddlewareToolResultAnswer::Text(result.text.to_uppercase())
    };
    let shouts = MiddlewareLayer::new("shout", &[MiddlewareStage::AfterTool], Rewrites(shout));
    bench
        .agent
        .middleware_registry()
        .register_middleware_layer(shouts.with_layer_order(1));
    let result = bench.ends();
    assert_eq!(model.results(1), ["THE PASSWORD IS [CUT]"]);
    assert_eq!(model.results(2), ["a long one", "SHORT"]);
    assert_eq!(results(&result.messages), ["a long one", "SHORT"]);
    assert_eq!(reason(&result), (Reason::TaskComplete, None));
    let says: Vec<MiddlewareAnswer> = bench.facts(&result).iter().map(|fact| fact.says).collect();
    let (rewrite, pass) = (MiddlewareAnswer::Rewrite, MiddlewareAnswer::Pass);
    assert_eq!(says, [rewrite, rewrite, rewrite, rewrite, rewrite, pass]);
    bench.replays(&result);
}

/// Ways not to answer; the last word is part of what is said of it.
fn silent() -> Vec<(MiddlewareLayer, &'static str)> {
    let on = [MiddlewareStage::BeforeTool];
    let panics = |_: &BeforeToolQuestion| -> MiddlewareToolCallAnswer { panic!("no such key") };
    let hangs = |_: &BeforeToolQuestion| -> MiddlewareToolCallAnswer {
        loop {
            std::thread::park();
        }
    };
    let cannot = |_: &BeforeToolQuestion| {
        MiddlewareToolCallAnswer::CannotTell("its service is down".to_owned())
    };
    let short = Duration::from_millis(200);
    let program = |run: &str| MiddlewareLayer::new_program_layer("guard", &on, run);
    vec![
        (
            MiddlewareLayer::new("guard", &on, Says(panics)),
            "it panicked: no such key",
        ),
        (
            MiddlewareLayer::new("guard", &on, Says(hangs)).with_layer_time_limit(short),
            "it took longer than 200 ms",
        ),
        (
            MiddlewareLayer::new("guard", &on, Says(cannot)),
            "its service is down",
        ),
        (
            program("sleep 1000").with_layer_time_limit(short),
            "it took longer than 200 ms",
        ),
        (
            program("sh -c 'echo broken >&2; exit 7'"),
            "exit status 7: broken",
        ),
        (program("kill -9 $$"), "signal 9"),
        (program("echo allow"), "what it said is no answer"),
        (
            program("echo '{\"answer\": \"allow\"}'"),
            "unknown variant `allow`",
        ),
        (
            program("echo '{\"answer\": \"pass\"} {}'"),
            "trailing characters",
        ),
        (
            program("printf '{\"answer\": \"pass\", \"answer\": \"deny\"}'"),
            "duplicate field",
        ),
        (program("true"), "it said nothing"),
        (program("yes"), "it said more than 1048576 bytes"),
        (program("no-such-program --at all"), "cannot be started"),
        (program("echo '{\"answer\": \"nudge\"}'"), "no reason"),
        (
            program("echo '{\"answer\": \"rewrite\", \"args\": [1]}'"),
            "no object",
        ),
    ]
}

#[test]
fn what_a_layer_cannot_tell_is_refused_or_passes_as_its_stance_has_it() {
    for (layer, why) in silent() {
        let bench = bench(Scripted::calling(&["echo ran > here"]), "");
        bench
            .agent
            .middleware_registry()
            .register_middleware_layer(layer.clone());
        let result = bench.ends();
        let ran = |bench: &Bench| bench.root.path().join("here").exists();
        assert!(!ran(&bench), "{why}");
        let told = results(&result.messages).concat();
        assert!(
            told.contains(why) && told.contains("'guard'"),
            "{why}: {told}"
        );
        let [fact] = bench.facts(&result).try_into().unwrap();
        assert_eq!(fact.says, MiddlewareAnswer::BlockedByStance, "{why}");
        bench.replays(&result);

        let bench = self::bench(Scripted::calling(&["echo ran > here"]), "");
        bench
            .agent
            .middleware_registry()
            .register_middleware_layer(layer.with_fail_open());
        let result = bench.ends();
        assert!(ran(&bench), "{why}");
        let [fact] = bench.facts(&result).try_into().unwrap();
        assert_eq!(fact.says, MiddlewareAnswer::PassedOver, "{why}");
        assert!(fact.reason.contains(why), "{why}: {}", fact.reason);
        // The checks pass, and that is not enough.
        assert_eq!(
            reason(&result),
            (Reason::Unverified, Some("passed_over")),
            "{why}"
        );
        bench.replays(&result);
    }
}

#[test]
fn who_hangs_again_and_again_is_not_asked_any_more() {
    let calls: Vec<String> = (0..12).map(|nth| format!("echo {nth}")).collect();
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    let bench = bench(Scripted::calling(&calls), "");
    let hangs = |_: &BeforeToolQuestion| -> MiddlewareToolCallAnswer {
        loop {
            std::thread::park();
        }
    };
    let layer = MiddlewareLayer::new("guard", &[MiddlewareStage::BeforeTool], Says(hangs));
    let layer = layer
        .with_layer_time_limit(Duration::from_millis(20))
        .with_fail_open();
    bench
        .agent
        .middleware_registry()
        .register_middleware_layer(layer);
    let result = bench.ends();
    let facts = bench.facts(&result);
    assert_eq!(facts.len(), 12);
    let left = facts
        .iter()
        .filter(|fact| fact.reason.contains("still hangs"));
    assert_eq!(left.count(), 4);
}

#[test]
fn a_result_that_nobody_could_look_at_is_withheld() {
    let model = Scripted::calling(&["echo the password is hunter2"]);
    let bench = bench(model.clone(), "");
    let on = [MiddlewareStage::AfterTool];
    bench
        .agent
        .middleware_registry()
        .register_middleware_layer(MiddlewareLayer::new_program_layer("cut", &on, "exit 3"));
    let last = |_: MiddlewareStage, _: &ToolResult| -> MiddlewareToolResultAnswer {
        panic!("asked about what is withheld")
    };
    bench
        .agent
        .middleware_registry()
        .register_middleware_layer(MiddlewareLayer::new("last", &on, Rewrites(last)));
    let result = bench.ends();
    let [told] = model.results(1).try_into().unwrap();
    assert!(!told.contains("hunter2"), "{told}");
    assert!(
        told.starts_with(
            "checkrein: 'cut' could not judge this result (it ended with exit status 3)"
        ),
        "{told}"
    );
    assert_eq!(layers_of(&bench.facts(&result)), ["cut"]);

    let model = Scripted::calling(&["echo the password is hunter2"]);
    let bench = self::bench(model.clone(), "");
    bench.agent.middleware_registry().register_middleware_layer(
        MiddlewareLayer::new_program_layer("cut", &on, "exit 3").with_fail_open(),
    );
    let result = bench.ends();
    assert_eq!(model.results(1), ["the password is hunter2"]);
    assert_eq!(reason(&result), (Reason::Unverified, Some("passed_over")));
}

#[test]
fn what_is_too_large_is_no_question_for_a_program() {
    let model = Scripted::calling(&["head -c 100 /dev/zero | tr '\\0' x"]);
    let bench = bench(model, "");
    let large =
        |_: MiddlewareStage, _: &ToolResult| MiddlewareToolResultAnswer::Text("x".repeat(1 << 20));
    bench
        .agent
        .middleware_registry()
        .register_middleware_layer(MiddlewareLayer::new(
            "large",
            &[MiddlewareStage::AfterTool],
            Rewrites(large),
        ));
    let program = MiddlewareLayer::new_program_layer("cut", &[MiddlewareStage::AfterTool], "cat");
    bench
        .agent
        .middleware_registry()
        .register_middleware_layer(program.with_layer_order(1));
    let result = bench.ends();
    let [told] = <[String; 1]>::try_from(results(&result.messages)).unwrap();
    assert!(
        told.contains("what it would be shown is larger than 1048576 bytes"),
        "{told}"
    );
}

/// Sends back what does not say that it is done in full.
struct Full;

impl Middleware for Full {
    fn before_stop(&self, stop: &BeforeStopQuestion) -> BeforeStopAnswer {
        match stop.message.contains("in full") {
            true => BeforeStopAnswer::Pass,
            false => BeforeStopAnswer::Deny(format!("stop {}: say it in full", stop.stop)),
        }
    }
}

#[test]
fn a_stop_that_a_layer_refuses_is_sent_back_before_any_check_runs() {
    let root = tempfile::tempdir().unwrap();
    let config = "verify_on = \"always\"\n[[verifier]]\nname = \"ok\"\nrun = \"echo x >> ran\"\noutputs = [\"ran\"]\n";
    let engine = Engine::in_memory(root.path(), Some(config));
    engine
        .middleware_registry()
        .register_middleware_layer(MiddlewareLayer::new(
            "full",
            &[MiddlewareStage::BeforeStop],
            Full,
        ));
    let (session, _) = engine.session("my-agent").unwrap();
    session.prompt("do it").unwrap();
    let (decision, said) = session.stop("Done.").unwrap();
    assert!(matches!(decision, StopDecision::Continue { .. }));
    let text = said.feedback_text.unwrap();
    assert!(text.contains("full: stop 1: say it in full"), "{text}");
    assert!(!root.path().join("ran").exists());
    let (_, said) = session.stop("Done in full.").unwrap();
    assert_eq!(said.task_transition().unwrap().reason, Reason::TaskComplete);
    assert!(root.path().join("ran").exists());

    // Never content: as often as any failure, and no oftener.
    session.prompt("and this").unwrap();
    let mut sent_back = 0;
    let ended = (0..10).find_map(|_| {
        let (_, said) = session.stop("Done.").unwrap();
        sent_back += u32::from(said.task_transition().is_none());
        said.task_transition()
    });
    assert_eq!(sent_back, 7, "each time it is told another stop");
    assert_eq!(ended.unwrap().reason, Reason::GaveUp);
}

/// Takes down what it sees.
struct Sees(Arc<Mutex<Vec<String>>>);

impl Middleware for Sees {
    fn on_session_start(&self, session: &SessionStart) {
        let agent = session.about.agent.as_deref().unwrap();
        self.0
            .lock()
            .unwrap()
            .push(format!("{agent} {}", session.how));
    }

    fn on_round_end(&self, round: &RoundEndForMiddleware) {
        self.0
            .lock()
            .unwrap()
            .push(format!("round {}", round.round));
    }

    fn on_session_end(&self, session: &SessionEndForMiddleware) {
        self.0.lock().unwrap().push(session.why.clone());
    }
}

#[test]
fn rounds_and_the_ends_of_sessions_are_seen() {
    let bench = bench(Scripted::calling(&["echo one", "echo two"]), "");
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let on = [
        MiddlewareStage::SessionStart,
        MiddlewareStage::RoundEnd,
        MiddlewareStage::SessionEnd,
    ];
    bench
        .agent
        .middleware_registry()
        .register_middleware_layer(MiddlewareLayer::new("log", &on, Sees(seen.clone())));
    let result = bench.ends();
    assert_eq!(
        *seen.lock().unwrap(),
        ["agent-loop startup", "round 1", "round 2", "task_complete"]
    );
    assert_eq!(reason(&result), (Reason::TaskComplete, None));
    bench.replays(&result);
}

#[test]
fn a_call_that_a_layer_would_have_asked_about_waits_for_a_person() {
    let root = tempfile::tempdir().unwrap();
    let engine = Engine::in_memory(root.path(), None);
    let asks = |_: &BeforeToolQuestion| {
        MiddlewareToolCallAnswer::Ask("is the release planned?".to_owned())
    };
    engine
        .middleware_registry()
        .register_middleware_layer(MiddlewareLayer::new(
            "release",
            &[MiddlewareStage::BeforeTool],
            Says(asks),
        ));
    let (session, _) = engine.session("my-agent").unwrap();
    session.prompt("release it").unwrap();
    let push = |id: &str| {
        session
            .tool(&ToolCall::shell_call(id, "git push"))
            .unwrap()
            .0
    };
    let ToolDecision::Ask {
        approval, reason, ..
    } = push("1")
    else {
        panic!("not asked about");
    };
    assert!(
        reason.contains("'release'") && reason.contains("planned?"),
        "{reason}"
    );
    let waiting = engine.list_approvals().unwrap();
    let question = waiting.iter().find(|row| row.id == approval).unwrap();
    assert!(question.why.contains("planned?"), "{}", question.why);
    let answer = |approved| PersonAnswer {
        approved,
        by: "ada".to_owned(),
        reason: None,
    };
    engine.answer_approval(question, answer(true)).unwrap();
    assert_eq!(push("2"), ToolDecision::Allow);
    // A person's yes lifts no other layer's no.
    let ToolDecision::Ask { approval, .. } = push("3") else {
        panic!("not asked about");
    };
    let waiting = engine.list_approvals().unwrap();
    let question = waiting.iter().find(|row| row.id == approval).unwrap();
    engine.answer_approval(question, answer(true)).unwrap();
    let no =
        |_: &BeforeToolQuestion| MiddlewareToolCallAnswer::Deny("never on a Friday".to_owned());
    engine
        .middleware_registry()
        .register_middleware_layer(MiddlewareLayer::new(
            "friday",
            &[MiddlewareStage::BeforeTool],
            Says(no),
        ));
    assert!(matches!(push("4"), ToolDecision::Deny { reason } if reason.contains("Friday")));
}

/// Law 3: what was said is in the log, and nobody is asked again.
#[test]
fn a_session_replays_without_the_programs_that_were_asked() {
    let config = "[[middleware]]\nname = \"guard\"\nrun = \"sh ./guard.sh\"\non = [\"before_tool\", \"after_tool\", \"before_stop\"]\n";
    let model = Scripted::calling(&["echo hi", "echo secret", "echo bad"]);
    let bench = bench(model.clone(), config);
    let guard = bench.root.path().join("guard.sh");
    let script = r#"case $(cat) in
*'"before_tool"'*bad*) echo '{"answer": "deny", "reason": "bad"}' ;;
*'"after_tool"'*secret*) echo '{"answer": "rewrite", "text": "[cut]"}' ;;
*) echo '{"answer": "pass"}' ;;
esac
"#;
    std::fs::write(&guard, script).unwrap();
    let result = bench.ends();
    assert_eq!(
        results(&result.messages),
        ["hi", "[cut]", "checkrein: 'guard' refuses this call: bad"]
    );
    assert_eq!(reason(&result), (Reason::TaskComplete, None));
    std::fs::remove_file(&guard).unwrap();
    bench.replays(&result);
    let says: Vec<MiddlewareAnswer> = bench.facts(&result).iter().map(|fact| fact.says).collect();
    use MiddlewareAnswer::{Deny, Pass, Rewrite};
    assert_eq!(says, [Pass, Pass, Pass, Rewrite, Deny, Pass]);
}

/// Behind an agent's hooks nobody is asked about results: that is said once, and nothing is run.
#[test]
fn what_a_front_door_cannot_do_is_said() {
    let root = tempfile::tempdir().unwrap();
    let config = "[[middleware]]\nname = \"cut\"\nrun = \"touch asked\"\non = [\"after_tool\", \"persist_result\"]\n";
    let engine = Engine::in_memory(root.path(), Some(config))
        .with_middleware_stages(FrontEndMiddlewareStages::HOOKS);
    let (session, warnings) = engine.session("my-agent").unwrap();
    let [warning] = warnings.try_into().unwrap();
    assert!(
        warning
            .contains("'cut' is never asked at after_tool, persist_result behind an agent's hooks"),
        "{warning}"
    );
    session.prompt("do it").unwrap();
    let call = ToolCall::shell_call("1", "echo hi");
    session.tool(&call).unwrap();
    let rewritten = session.returned(&call, &json!("hi"), false).unwrap();
    assert_eq!(rewritten.for_agent, None);
    assert!(!root.path().join("asked").exists());
}

fn python() -> bool {
    let version = Command::new("python3").arg("--version").output();
    version.is_ok_and(|version| version.status.success())
}

/// The files of `examples/middleware`, as docs/middleware.md shows them.
#[test]
fn the_examples_do_what_the_page_says() {
    if !python() {
        return;
    }
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/middleware");
    let config = std::fs::read_to_string(examples.join("checkrein.toml")).unwrap();
    let secret = "echo 'user = ada, password = hunter2'";
    let model = Scripted::calling(&["touch FREEZE", "git push --dry-run", secret]);
    let bench = bench(model.clone(), &config);
    for file in ["freeze.sh", "cut_secrets.py"] {
        std::fs::copy(examples.join(file), bench.root.path().join(file)).unwrap();
    }
    let result = bench.ends();
    let told = results(&result.messages);
    assert_eq!(
        told.get(1).unwrap(),
        "checkrein: 'freeze' refuses this call: nothing is pushed while FREEZE is there; leave it as a commit"
    );
    assert_eq!(told.get(2).unwrap(), "user = ada, password = [cut]");
    bench.replays(&result);
}

/// The same call with the same outcome three times: a word. A fourth time: the end.
struct SameCallAgain;

impl RoundDetector for SameCallAgain {
    fn detect_at_round_end(&self, round: &RoundEndForMiddleware) -> RoundEndAnswer {
        let Some(newest) = round.recent_calls.last() else {
            return RoundEndAnswer::Pass;
        };
        let repeats = round
            .recent_calls
            .iter()
            .rev()
            .take_while(|call| *call == newest)
            .count();
        match repeats {
            ..3 => RoundEndAnswer::Pass,
            3 => RoundEndAnswer::Nudge("this says the same each time".to_owned()),
            _ => RoundEndAnswer::Halt("nothing comes of it".to_owned()),
        }
    }
}

#[test]
fn a_detector_of_the_host_has_words_and_ends_the_run() {
    let model = Scripted::calling(&["echo same"; 9]);
    let bench = bench(model.clone(), "[loops]\npreset = \"off\"\n");
    let layers = bench.agent.middleware_registry().clone();
    layers.register_middleware_layer(MiddlewareLayer::new_detector("same-call", SameCallAgain));
    let result = bench.ends();
    assert_eq!(result.transition.reason, Reason::LoopDetected);
    assert_eq!(result.transition.detail.as_deref(), Some("same-call"));
    // The fourth request has the word, after the result that it is about; there is no fifth.
    let asked = model.asked.lock().unwrap();
    assert_eq!(asked.len(), 4);
    let last = asked.last().unwrap().messages.last().unwrap();
    assert!(
        matches!(last, ChatMessage::User(text) if text.contains("this says the same each time")),
        "{last:?}"
    );
}
