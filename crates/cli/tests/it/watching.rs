//! A second model beside the agent: what it is asked, and what the agent hears of it.

use checkrein_scripted::Witness;
use checkrein_scripted::witness::{number, prompt};
use serde_json::{Value, json};

use crate::agent::{Agent, Answer, BOTH};
use crate::world::World;

fn watched(config: &str) -> World {
    let world = World::new();
    world.config(config);
    world.commit();
    world
}

const VETO: &str = "[veto]\nenabled = true\nmodel = \"ollama/v\"\n";

fn says(body: &Value, verdict: &str, confidence: f64, args: Option<&str>) -> String {
    json!({
        "ref": number(body), "verdict": verdict, "confidence": confidence,
        "reason": "the goal says draft only", "new_args": args,
    })
    .to_string()
}

/// Vetoes what sends, mends what names the wrong host, and allows the rest.
fn strict() -> Witness {
    Witness::start(|body, _| {
        let call = prompt(body).rsplit("\ntool: ").next().unwrap_or_default();
        Ok(if call.contains("git push") {
            says(body, "veto", 0.92, None)
        } else if call.contains("prod.example") {
            says(
                body,
                "rewrite",
                0.9,
                Some("{\"command\": \"ssh test.example uptime\"}"),
            )
        } else if call.contains("rm -rf ~/x") {
            says(body, "veto", 0.3, None)
        } else {
            says(body, "allow", 0.95, None)
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
fn a_call_is_vetoed_and_another_rewritten() {
    for name in BOTH {
        let (world, model) = (watched(VETO), strict());
        let agent = agent(&world, name, &model);
        agent.prompt("Draft the release, publish nothing.");
        let answer = agent.shell("git push origin main", "");
        let text = answer.denied();
        assert!(
            text.starts_with("[verifier-veto] Bash: the goal says draft only (confidence 0.92)"),
            "{text}"
        );
        let answer = agent.shell("ssh prod.example uptime", "");
        let text = answer.denied();
        assert!(text.contains("ssh test.example uptime"), "{text}");
        assert_eq!(
            agent.shell("ssh test.example uptime", "up"),
            Answer::Nothing
        );
        // It is not sure enough.
        assert_eq!(agent.shell("rm -rf ~/x", ""), Answer::Nothing, "{name}");
        assert_eq!(model.asked().len(), 4);
        let shown = prompt(&model.asked()[3]).to_owned();
        assert!(shown.contains("Draft the release"), "{shown}");
        assert!(
            shown.contains("called Bash"),
            "it is shown what came before: {shown}"
        );
        world.replays(&agent.session);
    }
}

#[test]
fn ordinary_work_is_not_asked_about() {
    let (world, model) = (watched(VETO), strict());
    let agent = agent(&world, "claude-code", &model);
    agent.prompt("Look around.");
    for command in [
        "ls -la",
        "cat README",
        "cargo test",
        "git status",
        "mkdir -p a/b && touch a/b/c",
    ] {
        assert_eq!(agent.shell(command, ""), Answer::Nothing, "{command}");
    }
    assert_eq!(model.asked().len(), 0);
    let all = watched(&format!("{VETO}scope = \"all\"\n"));
    let agent = self::agent(&all, "claude-code", &model);
    agent.prompt("Look around.");
    assert_eq!(agent.shell("ls -la", ""), Answer::Nothing);
    assert_eq!(model.asked().len(), 1);
}

#[test]
fn what_was_said_of_a_call_is_remembered_and_calls_are_counted() {
    let (world, model) = (watched(&format!("{VETO}max_calls = 2\n")), strict());
    let agent = agent(&world, "claude-code", &model);
    agent.prompt("Draft the release.");
    for _ in 0..3 {
        assert!(matches!(
            agent.shell("git push origin main", ""),
            Answer::Denied(_)
        ));
    }
    assert_eq!(model.asked().len(), 1, "the same call of the same task");
    assert!(matches!(
        agent.shell("git push origin next", ""),
        Answer::Denied(_)
    ));
    // As many as may be were asked about, and the log says so.
    assert_eq!(agent.shell("git push origin third", ""), Answer::Nothing);
    assert_eq!(model.asked().len(), 2);
    let log = format!("{:?}", world.log(&agent.session));
    assert!(log.contains("Spent"), "{log}");
    // Another task begins anew.
    agent.prompt("And again.");
    assert!(matches!(
        agent.shell("git push origin fourth", ""),
        Answer::Denied(_)
    ));
}

#[test]
fn a_dead_model_stops_nothing() {
    let dead = Witness::start(|_, _| Err(401)).unwrap();
    let prose = Witness::start(|_, _| Ok("I would not do that.".to_owned())).unwrap();
    let other = Witness::start(|body, _| {
        Ok(says(body, "veto", 0.9, None).replace("veto\"", "not blocked\""))
    })
    .unwrap();
    for model in [dead, prose, other] {
        let world = watched(VETO);
        let agent = agent(&world, "claude-code", &model);
        agent.prompt("Draft the release.");
        assert_eq!(agent.shell("git push origin main", ""), Answer::Nothing);
        let log = format!("{:?}", world.log(&agent.session));
        assert!(log.contains("Silent"), "{log}");
    }
}

#[test]
fn what_a_rule_refuses_is_not_asked_about() {
    let world = watched(&format!("{VETO}[policy]\nrules = [\"own.rules\"]\n"));
    world.write(
        "own.rules",
        "prefix_rule(['git', 'push'], 'forbidden', justification='a person pushes')\n",
    );
    world.commit();
    let model = strict();
    let agent = agent(&world, "claude-code", &model);
    agent.prompt("Publish.");
    let answer = agent.shell("git push origin main", "");
    assert!(answer.denied().contains("a person pushes"));
    assert_eq!(model.asked().len(), 0);
}

#[test]
fn a_row_of_low_scores_is_told_once() {
    let config = "[progress]\nenabled = true\nmodel = \"ollama/p\"\n";
    // The example of the seed: 0.7, 0.3, 0.2, 0.2, and a nudge; then 0.6.
    let scores = [0.7, 0.3, 0.2, 0.2, 0.6, 0.1];
    let model = Witness::start(move |body, before| {
        let score = scores.get(before).copied().unwrap_or(0.9);
        Ok(json!({
            "ref": number(body), "score": score, "summary": "reads the same file again",
            "suggested_action": "try grep instead of read_file",
        })
        .to_string())
    })
    .unwrap();
    let world = watched(config);
    let agent = agent(&world, "codex", &model);
    agent.prompt("Find the bug.");
    let mut heard = Vec::new();
    for n in 0..7 {
        heard.push(agent.shell(&format!("cat file{n}"), ""));
    }
    let advice: Vec<usize> = heard
        .iter()
        .enumerate()
        .filter(|(_, answer)| matches!(answer, Answer::Advice(_)))
        .map(|(at, _)| at)
        .collect();
    assert_eq!(advice, [4], "{heard:?}");
    let Answer::Advice(text) = &heard[4] else {
        panic!("{heard:?}");
    };
    assert!(
        text.starts_with("[progress-check] the last 3 steps brought little"),
        "{text}"
    );
    assert!(text.contains("try grep instead of read_file"), "{text}");
    assert_eq!(model.asked().len(), 6, "before each call but the first");
    assert!(prompt(&model.asked()[0]).contains("cat file0"));
    world.replays(&agent.session);
}
