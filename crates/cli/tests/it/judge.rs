//! Judges behind hooks: what the model is asked, what the agent hears, how the task ends.

use checkrein_scripted::Witness;
use checkrein_scripted::witness::{self, prompt};
use serde_json::{Value, json};

use crate::agent::{Agent, Answer, BOTH};
use crate::terminal::Terminal;
use crate::world::{World, feed};

/// A judge that is called by its keywords, beside a check that passes.
fn judged(more: &str) -> World {
    let world = World::new();
    let tests = world.counted("tests", "true");
    world.config(&format!(
        "accept = \"tests\"\n{tests}\n[[verifier]]\nname = \"reviewer\"\nkind = \"judge\"\nmodel = \"ollama/j\"\n{more}\n"
    ));
    world.commit();
    world
}

/// Content with an answer that says "with tests", and with nothing else.
fn strict() -> Witness {
    Witness::start(|body, _| {
        let answer = prompt(body).rsplit(" answer>").next().unwrap_or_default();
        Ok(match answer.contains("with tests") {
            true => witness::verdict(body, "pass", 0.95, "none", ""),
            false => witness::verdict(
                body,
                "fail",
                0.2,
                "incomplete",
                "Where are the tests?\nSay what you ran.",
            ),
        })
    })
    .unwrap()
}

fn agent<'w>(world: &'w World, name: &'static str, model: &Witness) -> Agent<'w> {
    let mut agent = Agent::new(world, name);
    agent.env = vec![("OLLAMA_HOST", model.base())];
    agent
}

#[test]
fn an_incomplete_answer_is_sent_back_once() {
    for name in BOTH {
        let (world, model) = (judged(""), strict());
        let agent = agent(&world, name, &model);
        agent.prompt("Write a parser.");
        world.write("parser", "1");
        let answer = agent.stop_saying("Done: the parser is there.");
        let text = answer.sent_back();
        assert!(text.contains("reviewer: failed"), "{text}");
        assert!(text.contains("incomplete: Where are the tests?"), "{text}");
        assert!(text.contains("incomplete: Say what you ran."), "{text}");
        assert!(text.contains("answer 1 of 3"), "{text}");
        let answer = agent.stop_saying("Done: the parser is there, with tests.");
        assert_eq!(answer, Answer::Nothing, "{name}");
        assert_eq!(world.ending(), "task_complete");
        assert_eq!(world.runs("tests"), 1, "the tree was the same");
        let asked = model.asked();
        assert_eq!(asked.len(), 2, "{name}");
        let shown = prompt(&asked[1]);
        assert!(shown.contains("Write a parser."), "{shown}");
        assert!(shown.contains("tests passes"), "{shown}");
        assert!(
            shown.contains("incomplete: Where are the tests?"),
            "{shown}"
        );
        world.replays(&agent.session);
    }
}

#[test]
fn the_first_answer_counts_and_the_last_stands() {
    let (world, model) = (judged("max_attempts = 2\n"), strict());
    let agent = agent(&world, "claude-code", &model);
    agent.prompt("Write a parser.");
    world.write("parser", "1");
    assert!(matches!(agent.stop_saying("Done."), Answer::SentBack(_)));
    assert_eq!(agent.stop_saying("Done, really."), Answer::Nothing);
    assert_eq!(world.ending(), "task_complete");
    assert!(
        world.why().contains("judges have seen 2 answers"),
        "{}",
        world.why()
    );
    assert_eq!(model.asked().len(), 2);
    // The next request is another question.
    agent.prompt("And a printer.");
    world.write("printer", "1");
    assert!(matches!(agent.stop_saying("Done."), Answer::SentBack(_)));
}

#[test]
fn nobody_is_asked_without_need() {
    let (world, model) = (judged(""), strict());
    let agent = agent(&world, "claude-code", &model);
    agent.prompt("Write a parser.");
    world.write("parser", "1");
    // No keyword.
    assert_eq!(agent.stop_saying("The parser is there."), Answer::Nothing);
    // Nothing to judge.
    agent.prompt("Go on.");
    world.write("parser", "2");
    assert_eq!(agent.stop_saying(" "), Answer::Nothing);
    assert_eq!(model.asked().len(), 0);
    assert!(
        world.why().contains("the answer is empty"),
        "{}",
        world.why()
    );
}

#[test]
fn after_a_failed_check_nobody_asks_a_model() {
    let (world, model) = (judged(""), strict());
    world.config("[[verifier]]\nname = \"tests\"\nrun = \"false\"\n[[verifier]]\nname = \"reviewer\"\nkind = \"judge\"\nmodel = \"ollama/j\"\n");
    world.commit();
    let agent = agent(&world, "claude-code", &model);
    agent.prompt("Write a parser.");
    world.write("parser", "1");
    let answer = agent.stop_saying("Done.");
    assert!(answer.sent_back().contains("tests: failed"));
    assert_eq!(model.asked().len(), 0);
}

#[test]
fn a_dead_model_changes_nothing_but_what_is_recorded() {
    let dead = Witness::start(|_, _| Err(401)).unwrap();
    let (world, gone) = (judged(""), "http://127.0.0.1:9");
    for (base, expected) in [
        (dead.base(), "did not answer"),
        (gone.to_owned(), "did not answer"),
    ] {
        let mut agent = Agent::named(&world, "claude-code", &base);
        agent.env = vec![("OLLAMA_HOST", base.clone())];
        agent.prompt("Write a parser.");
        world.write("parser", &base);
        assert_eq!(agent.stop_saying("Done."), Answer::Nothing, "{base}");
        assert_eq!(world.ending(), "task_complete");
        assert!(world.why().contains(expected), "{}", world.why());
    }
}

#[test]
fn one_that_is_required_is_asked_whatever_the_answer_says() {
    let world = judged("");
    let text = std::fs::read_to_string(world.root().join("checkrein.toml")).unwrap();
    world.config(&text.replace("accept = \"tests\"", "accept = \"tests and reviewer\""));
    world.commit();
    let model = strict();
    let agent = agent(&world, "claude-code", &model);
    agent.prompt("Write a parser.");
    world.write("parser", "1");
    for answer in ["One.", "Two."] {
        assert!(
            matches!(agent.stop_saying(answer), Answer::SentBack(_)),
            "{answer}"
        );
    }
    let ending = agent.stop_saying("Three.");
    assert!(
        ending.notice().contains("gave_up (same_failures)"),
        "{ending:?}"
    );
    // Without its model nothing is complete.
    let mut alone = Agent::named(&world, "claude-code", "alone");
    alone.env = vec![("OLLAMA_HOST", "http://127.0.0.1:9".to_owned())];
    alone.prompt("Write a printer.");
    world.write("printer", "1");
    assert!(
        alone
            .stop_saying("Four.")
            .notice()
            .contains("unverified (passed_over)")
    );
}

#[test]
fn in_shadow_nothing_follows() {
    let (world, model) = (judged("mode = \"shadow\"\n"), strict());
    let agent = agent(&world, "claude-code", &model);
    agent.prompt("Write a parser.");
    world.write("parser", "1");
    assert_eq!(agent.stop_saying("Done."), Answer::Nothing);
    assert_eq!(world.ending(), "task_complete");
    let why = world.why();
    assert!(why.contains("it would have sent the agent back"), "{why}");
    assert_eq!(model.asked().len(), 1);
}

#[test]
fn secrets_and_rules() {
    let (world, model) = (judged("rubric = \"rubric.md\"\n"), strict());
    world.write("rubric.md", "Mind the names.");
    world.write("AGENTS.md", "No unwrap in libraries.");
    world.commit();
    let mut agent = agent(&world, "claude-code", &model);
    agent.env.push((
        "GITHUB_TOKEN",
        "ghp_0123456789abcdefghijklmnopqrstuvwxyz".to_owned(),
    ));
    agent.prompt("Write a parser.");
    world.write("parser", "1");
    agent.shell("echo ghp_0123456789abcdefghijklmnopqrstuvwxyz", "");
    agent.stop_saying("Done with ghp_0123456789abcdefghijklmnopqrstuvwxyz");
    let asked = model.asked();
    let whole = asked[0].to_string();
    assert!(whole.contains("No unwrap in libraries."), "{whole}");
    assert!(whole.contains("Mind the names."), "{whole}");
    assert!(!whole.contains("ghp_0123456789"), "{whole}");
}

#[test]
fn heartbeats_and_what_was_delivered() {
    let stop = |world: &World, model: &Witness, more: Value| {
        let mut line = json!({ "type": "stop", "session": "g", "text": "HEARTBEAT_OK" });
        line.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let mut hook = world.checkrein(&["hook", "generic"]);
        hook.env("OLLAMA_HOST", model.base());
        feed(&mut hook, line.to_string().as_bytes()).json()
    };
    let (world, model) = (judged("heartbeat = true\n"), strict());
    world.write("HEARTBEAT.md", "- [ ] look at the queue");
    world.commit();
    let said = stop(&world, &model, json!({ "heartbeat": true }));
    assert_eq!(said["decision"], "continue", "{said}");
    assert!(prompt(&model.asked()[0]).contains("look at the queue"));
    for seen in ["pending_tool_calls", "delivered", "streamed"] {
        let said = stop(&world, &model, json!({ "heartbeat": true, seen: true }));
        assert_eq!(said["decision"], "accept", "{seen} {said}");
    }
    assert_eq!(model.asked().len(), 1);
    // Without that key heartbeats are left alone, whatever they say.
    let (world, model) = (judged("trigger = \"always\"\n"), strict());
    let said = stop(&world, &model, json!({ "heartbeat": true }));
    assert_eq!(said["decision"], "accept", "{said}");
    assert_eq!(model.asked().len(), 0);
}

/// A clone's agent settings can set a hook's environment: keys must not go where it says.
#[test]
fn under_require_trust_the_environment_does_not_say_where_models_are() {
    let (world, model) = (judged(""), strict());
    Terminal::new(&world).typing("y\n").says(&["trust"]);
    let mut agent = agent(&world, "claude-code", &model);
    agent.extra = ["--require-trust", "--state"].map(str::to_owned).to_vec();
    agent.extra.push(world.state().display().to_string());
    agent.prompt("Write a parser.");
    world.write("parser", "1");
    assert_eq!(agent.stop_saying("Done."), Answer::Nothing);
    assert!(
        world.why().contains("its model did not answer"),
        "{}",
        world.why()
    );
    assert_eq!(model.asked().len(), 0);
}

#[test]
fn what_a_config_cannot_mean() {
    for (more, expected) in [
        ("model = \"gpt\"\n", "model"),
        ("min_score = 7\n", "must be from 0 to 1"),
        ("keywords = []\n", "nothing ever calls for it"),
        ("keywords = [\"...\"]\n", "without a letter or digit"),
        ("surfaces = []\n", "are none"),
        ("rubric = \"no.md\"\n", "which is not there"),
        ("max_attempts = 0\n", "must be 1 or more"),
        ("run = \"true\"\n", "says nothing to a judge"),
        ("trigger = \"sometimes\"\n", "sometimes"),
    ] {
        let world = World::new();
        let model = match more.starts_with("model") {
            true => "",
            false => "model = \"ollama/j\"\n",
        };
        world.config(&format!(
            "[[verifier]]\nname = \"j\"\nkind = \"judge\"\n{model}{more}"
        ));
        let said = world.says(&["check"]);
        assert_eq!(said.code, Some(2), "{more}: {said:?}");
        assert!(said.stderr.contains(expected), "{more}: {said:?}");
    }
    let world = World::new();
    world.config(
        "accept = \"j\"\n[[verifier]]\nname = \"j\"\nkind = \"judge\"\nmode = \"shadow\"\n",
    );
    assert!(world.says(&["check"]).stderr.contains("shadow"));
    world.config("[[verifier]]\nname = \"t\"\nrun = \"true\"\nmodel = \"x/y\"\n");
    assert!(
        world
            .says(&["check"])
            .stderr
            .contains("is for kind = \"judge\"")
    );
}

/// Hooks for the person and for the project: one question.
#[test]
fn two_installed_entries_ask_once() {
    let (world, model) = (judged(""), strict());
    let entry = |source: &str| {
        let mut agent = Agent::source(&world, "claude-code", source);
        agent.env = vec![("OLLAMA_HOST", model.base())];
        agent
    };
    let (user, project) = (entry("user"), entry("project"));
    user.prompt("Write a parser.");
    project.prompt("Write a parser.");
    world.write("parser", "1");
    let answers = std::thread::scope(|scope| {
        let hooks = ["user", "project"].map(|source| {
            let (world, base) = (&world, model.base());
            scope.spawn(move || {
                let mut agent = Agent::source(world, "claude-code", source);
                agent.env = vec![("OLLAMA_HOST", base)];
                agent.tell(&agent.stop_message(false, "Done."))
            })
        });
        hooks.map(|hook| hook.join().unwrap())
    });
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer, Answer::SentBack(_))),
        "{answers:?}"
    );
    assert_eq!(model.asked().len(), 1);
}

/// What it has against another answer is told, also if it is of the same kind.
#[test]
fn each_answer_hears_what_is_wrong_with_it() {
    let model = Witness::start(|body, before| {
        let wrong = ["Where are the tests?", "Now the README is missing."];
        let wrong = wrong.get(before).copied().unwrap_or("more");
        Ok(witness::verdict(body, "fail", 0.2, "incomplete", wrong))
    })
    .unwrap();
    let world = judged("");
    let agent = agent(&world, "claude-code", &model);
    agent.prompt("Write a parser.");
    world.write("parser", "1");
    agent.stop_saying("Done.");
    let second = agent.stop_saying("Done, with tests.");
    assert!(
        second.sent_back().contains("Now the README is missing."),
        "{second:?}"
    );
}

#[test]
fn accept_cannot_name_one_that_reads_sub_agents_only() {
    let world = World::new();
    world.config("accept = \"j\"\n[[verifier]]\nname = \"j\"\nkind = \"judge\"\nmodel = \"ollama/j\"\nsurfaces = [\"subagent\"]\n");
    let said = world.says(&["check"]);
    assert!(
        said.stderr.contains("does not read the main conversation"),
        "{said:?}"
    );
}
