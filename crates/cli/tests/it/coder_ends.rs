//! Every way in which `checkrein run --model` can end: the exit code, and what the listings say.

use std::process::Stdio;

use checkrein_scripted::coder::PROVIDER_ENTRIES;
use checkrein_scripted::{ScriptedCoderServer, ScriptedCoderTurn};

use crate::approvals::{approve, waiting};
use crate::coder::{AGAIN, DEPLOY, FIX, GOAL, read, repo, run, says};
use crate::world::{World, ending, read_line, signal};

/// A run that ends so.
struct End {
    /// Appended to the config.
    config: &'static str,
    turns: Vec<ScriptedCoderTurn>,
    /// Output tokens of each answer.
    tokens: u64,
    code: i32,
    reason: &'static str,
}

fn end(
    config: &'static str,
    turns: Vec<ScriptedCoderTurn>,
    code: i32,
    reason: &'static str,
) -> End {
    let tokens = 700;
    End {
        config,
        turns,
        tokens,
        code,
        reason,
    }
}

fn done() -> ScriptedCoderTurn {
    ScriptedCoderTurn::scripted_text_turn("Done.")
}

fn steps() -> Vec<ScriptedCoderTurn> {
    (0..30)
        .map(|n| ScriptedCoderTurn::scripted_shell_call_turn(&format!("echo {n}")))
        .collect()
}

fn all() -> Vec<End> {
    vec![
        end(
            "",
            vec![ScriptedCoderTurn::patch_turn(FIX), done()],
            0,
            "task_complete",
        ),
        end(
            "",
            vec![ScriptedCoderTurn::Unavailable(401)],
            1,
            "error/agent",
        ),
        end("", vec![done()], 11, "gave_up/same_failures"),
        end(
            "[caps]\nattempts = 9\ncontinues = 1\n",
            vec![done()],
            11,
            "gave_up/continues",
        ),
        end(
            "[caps]\nmax_iterations = 3\n",
            steps(),
            12,
            "hard_cap/iterations",
        ),
        end(
            "[caps]\ntoken_budget = 2000\n",
            steps(),
            12,
            "hard_cap/tokens",
        ),
        end("[caps]\ncost_usd = 0.02\n", steps(), 12, "hard_cap/cost"),
        end(
            "[caps]\ntool_calls = 2\n",
            steps(),
            12,
            "hard_cap/tool_calls",
        ),
        end(
            "[caps]\nwall_clock = \"1s\"\n",
            vec![ScriptedCoderTurn::scripted_shell_call_turn("sleep 600")],
            12,
            "hard_cap/wall_clock",
        ),
        End {
            tokens: 100,
            ..end(
                "[caps]\nattempts = 9\n",
                vec![done()],
                13,
                "diminishing_returns/diminishing",
            )
        },
        End {
            tokens: 950,
            ..end(
                "[caps]\ntoken_budget = 1000\n",
                vec![done()],
                13,
                "diminishing_returns/token_budget",
            )
        },
        end(
            "",
            vec![ScriptedCoderTurn::scripted_shell_call_turn(AGAIN)],
            14,
            "loop_detected/generic_repeat",
        ),
        end(
            "[[verifier]]\nname = \"lint\"\nrun = \"no-such-linter-anywhere\"\n",
            vec![ScriptedCoderTurn::patch_turn(FIX), done()],
            15,
            "verifier_failed_unrecoverable/lint",
        ),
        end(
            "",
            vec![ScriptedCoderTurn::scripted_shell_call_turn(DEPLOY), done()],
            16,
            "permission_denied",
        ),
        end(
            "",
            vec![ScriptedCoderTurn::Truncated("The".to_owned())],
            18,
            "truncated",
        ),
    ]
}

#[test]
fn every_ending_has_its_exit_code() {
    let (name, ..) = PROVIDER_ENTRIES[1];
    for End {
        config,
        turns,
        tokens,
        code,
        reason,
    } in all()
    {
        let world = repo(true);
        let text = read(&world, "checkrein.toml");
        world.config(&format!("{text}\n{config}"));
        let coder = ScriptedCoderServer::start_server_with_token_counts(move |heard| {
            (
                checkrein_scripted::coder::nth_or_last_scripted_turn(&turns, heard.turns),
                tokens,
            )
        });
        let coder = coder.unwrap();
        let said = says(&mut run(&world, &coder, name, &["--model", name, GOAL]));
        assert_eq!(said.code, Some(code), "{reason}: {said:?}");
        let task = world.task();
        assert_eq!(ending(&task["transition"]), reason, "{said:?}");
        assert_eq!(task["agent"], "agent-loop");
        let word = reason.split('/').next().unwrap();
        assert!(said.stdout.starts_with(word), "{said:?}");
        assert_eq!(said.stderr.contains("--why"), code != 0, "{said:?}");
        world.replays(task["session"].as_str().unwrap());
    }
}

#[test]
fn without_a_check_nothing_is_verified() {
    let (name, ..) = PROVIDER_ENTRIES[0];
    let world = repo(false);
    let coder = ScriptedCoderServer::start_with_scripted_turns(vec![done()]).unwrap();
    let said = says(&mut run(&world, &coder, name, &["--model", name, GOAL]));
    assert_eq!(
        (said.code, world.ending().as_str()),
        (Some(10), "unverified/no_checks")
    );
}

#[test]
fn ctrl_c_ends_it_with_what_it_started() {
    let (name, ..) = PROVIDER_ENTRIES[0];
    let world = repo(true);
    let ready = world.pipe("ready");
    let turn = ScriptedCoderTurn::scripted_shell_call_turn("echo ready > ../ready; sleep 608");
    let coder = ScriptedCoderServer::start_with_scripted_turns(vec![turn]).unwrap();
    let mut run = run(&world, &coder, name, &["--model", name, GOAL]);
    let child = run
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let child = child.unwrap();
    assert_eq!(read_line(&ready), "ready\n");
    signal(&child, rustix::process::Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(world.ending(), "user_interrupt");
    crate::world::gone(&world);
}

/// A call that needs a person parks the run; approved, the run is taken up and makes it.
#[test]
fn a_run_that_waits_for_a_person_is_taken_up() {
    let (name, ..) = PROVIDER_ENTRIES[3];
    let world = repo(true);
    world.write(
        "deploy.rules",
        "prefix_rule(pattern = [\"sh\", \"deploy.sh\"], decision = \"prompt\", justification = \"a person deploys\")\n",
    );
    let coder = ScriptedCoderServer::start_coder_model_server(|heard| match heard.turns {
        0 => ScriptedCoderTurn::scripted_shell_call_turn(DEPLOY),
        1 => ScriptedCoderTurn::scripted_text_turn("I have to wait for a person."),
        2 if heard.new_text.contains("has answered") => {
            ScriptedCoderTurn::scripted_shell_call_turn(DEPLOY)
        }
        _ => ScriptedCoderTurn::scripted_text_turn("Deployed."),
    });
    let coder = coder.unwrap();
    world.write("deploy.sh", "echo 42 > answer; touch ../deployed\n");
    let said = says(&mut run(&world, &coder, name, &["--model", name, GOAL]));
    assert_eq!(said.code, Some(17), "{said:?}");
    let session = world.task()["session"].as_str().unwrap().to_owned();

    // Nobody has answered: it waits on, and the model is not asked for that.
    let asked = coder.requests_to_scripted_coder().len();
    let said = says(&mut run(&world, &coder, name, &["--resume", &session]));
    assert_eq!(
        (said.code, coder.requests_to_scripted_coder().len()),
        (Some(17), asked),
        "{said:?}"
    );

    approve(&world, &waiting(&world));
    let said = says(&mut run(
        &world,
        &coder,
        name,
        &["--resume", &session, "--json"],
    ));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(world.outside("deployed").exists());
    assert_eq!(said.json()["session"], *session);
    assert_eq!(said.json()["rounds"], 4);
    world.replays(&session);
}

#[test]
fn mistakes_are_told_before_anything_happens() {
    let world = repo(true);
    let coder = ScriptedCoderServer::start_with_scripted_turns(vec![done()]).unwrap();
    let (name, ..) = PROVIDER_ENTRIES[0];
    let long: &[(&[&str], &str)] = &[
        (&["--model", "nobody/x", GOAL], "nobody"),
        (&["--model", "gpt-5", GOAL], "PROVIDER/MODEL"),
        (&["--model", name], "there is no task"),
        (&["--model", name, GOAL, "--", "ls"], "takes no command"),
        (&["--model", name, "--agent", "codex", GOAL], "--agent"),
        (&["--model", name, "--confine", GOAL], "--confine"),
        (&["--model", "groq/llama", GOAL], "GROQ_API_KEY"),
        (&["--resume", "3f2a"], "nothing is recorded"),
    ];
    for (args, told) in long {
        let said = says(&mut run(&world, &coder, name, args));
        assert_eq!(said.code, Some(2), "{args:?}: {said:?}");
        assert!(said.stderr.contains(told), "{args:?}: {said:?}");
    }
    world.config("[caps]\ncost_usd = 1.5\n");
    let (local, ..) = PROVIDER_ENTRIES[4];
    let said = says(&mut run(&world, &coder, local, &["--model", local, GOAL]));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.stderr.contains("caps.cost_usd") && said.stderr.contains("nobody knows"),
        "{said:?}"
    );
    assert!(coder.requests_to_scripted_coder().is_empty());
    // A session of another kind is none to be taken up by a model.
    let other = World::with_check("true");
    other.says(&["run", "--", "true"]);
    let session = other.task()["session"].as_str().unwrap().to_owned();
    let said = other.says(&["run", "--model", "ollama/x", "--resume", &session]);
    assert_eq!(said.code, Some(2), "{said:?}");
}
