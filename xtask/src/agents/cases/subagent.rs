//! A sub-agent: the rules hold for it as well, and its stop runs no verifier.

use std::io::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use checkrein_scripted::{ModelScript, ScriptedModelAction};

use super::{
    CLAUDE_CODE, Case, JUSTIFICATION, RULES, counted, ended_well, holds, one_task, replays,
    tokens_add_up,
};
use crate::agents::agent::Hooks;
use crate::agents::report::Report;
use crate::agents::world::{Setup, Stage, number};

pub(super) const CASE: Case = Case {
    name: "subagent",
    about: "the Agent tool",
    agents: CLAUDE_CODE,
    run,
};

/// By this the model knows that it is asked as the sub-agent.
const ERRAND: &str = "ERRAND: try the marker, then write sub.txt.";
/// No count of runs was taken.
const UNKNOWN: usize = usize::MAX;

fn run(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    let runs = stage.beside("main", "runs.txt");
    let before = Arc::new(AtomicUsize::new(UNKNOWN));
    let world = stage.world(Setup {
        name: "main",
        files: &[("rules/marker.rules", RULES)],
        config: format!(
            "[policy]\nrules = [\"rules/*.rules\"]\n\n{}",
            counted(&runs, "test -f verified.txt")
        ),
        hooks: &[Hooks::User],
        script: script(runs, Arc::clone(&before)),
    })?;
    let ran = world.headless("Delegate it.")?;
    ended_well(report, &world, &ran);
    {
        let seen = world.model.model_request_log();
        let offered = seen
            .requests
            .first()
            .is_some_and(|asked| asked.tools.iter().any(|tool| tool == "Agent"));
        report.check("the agent offers its Agent tool", offered, "");
        let sub: Vec<_> = seen
            .requests
            .iter()
            .filter(|asked| asked.opening_text.contains(ERRAND))
            .collect();
        report.equal("the sub-agent asked the model three times", &sub.len(), &3);
        let fresh = sub
            .get(1)
            .map(|asked| asked.new_text.clone())
            .unwrap_or_default();
        holds(
            report,
            "the justification reaches the sub-agent",
            &fresh,
            JUSTIFICATION,
        );
    }
    report.equal(
        "its denied command was not executed",
        &world.has("sub-denied.txt"),
        &false,
    );
    report.equal("its allowed command was", &world.has("sub.txt"), &true);
    report.equal(
        "no verifier had run when it was over",
        &before.load(Ordering::SeqCst),
        &0,
    );
    report.equal("one ran at each main stop", &world.lines("runs.txt"), &2);
    let task = one_task(report, &world, "task_complete")?;
    report.equal(
        "the sub-agent's calls count: Agent, two of its own, one more",
        &number(&task, "tool_calls"),
        &Some(4),
    );
    tokens_add_up(report, &world, &task);
    replays(report, &world, &task)
}

fn script(runs: std::path::PathBuf, before: Arc<AtomicUsize>) -> ModelScript {
    let (mut main, mut sub) = (0, 0);
    Box::new(move |asked| {
        if asked.opening_text.contains(ERRAND) {
            sub += 1;
            return match sub {
                1 => ScriptedModelAction::scripted_shell_response(
                    "echo FORBIDDEN_MARKER > sub-denied.txt",
                ),
                2 => ScriptedModelAction::scripted_shell_response("echo fine > sub.txt"),
                _ => ScriptedModelAction::scripted_text_response("The errand is run."),
            };
        }
        main += 1;
        match main {
            1 => vec![ScriptedModelAction::Delegate(ERRAND.to_owned())],
            2 => {
                let lines = std::fs::read_to_string(&runs).map_or(0, |text| text.lines().count());
                before.store(lines, Ordering::SeqCst);
                ScriptedModelAction::scripted_text_response("Done.")
            }
            3 => ScriptedModelAction::scripted_shell_response("echo yes > verified.txt"),
            _ => ScriptedModelAction::scripted_text_response("Done."),
        }
    })
}
