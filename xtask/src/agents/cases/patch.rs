//! A patch that does not fit: refused with what the file has, repaired on the second try. By
//! the shell for both agents, and by the patch tool of the one that has one.

use std::io::Result;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{BOTH, Case, ended_well, holds, one_task, replays, verifier};
use crate::agents::agent::Hooks;
use crate::agents::report::Report;
use crate::agents::world::{Setup, Stage};

pub(super) const CASE: Case = Case {
    name: "patch",
    about: "a patch that does not fit is refused and repaired",
    agents: BOTH,
    run,
};

fn diff(old: &str, new: &str) -> String {
    format!(
        "git apply <<'EOF'\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-{old}\n+{new}\n three\nEOF"
    )
}

fn edit(old: &str, new: &str) -> Vec<ScriptedModelAction> {
    vec![ScriptedModelAction::Replace {
        path: "a.txt".to_owned(),
        old: old.to_owned(),
        new: new.to_owned(),
    }]
}

fn run(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    let has_tool = stage.agent.name() == "codex";
    let mut script = vec![
        ScriptedModelAction::scripted_shell_response(&diff("tow", "TWO")),
        ScriptedModelAction::scripted_shell_response(&diff("two", "TWO")),
    ];
    if has_tool {
        script.extend([edit("there", "THREE"), edit("three", "THREE")]);
    }
    script.push(ScriptedModelAction::scripted_text_response("Done."));
    let asked = script.len();
    let world = stage.world(Setup {
        name: "main",
        files: &[("a.txt", "one\ntwo\nthree\n")],
        config: verifier(if has_tool {
            "grep -q TWO a.txt && grep -q THREE a.txt"
        } else {
            "grep -q TWO a.txt"
        }),
        hooks: &[Hooks::User],
        script: model_script_from_rounds(script),
    })?;
    let ran = world.headless("Make two TWO.")?;
    ended_well(report, &world, &ran);
    {
        let seen = world.model.model_request_log();
        report.equal(
            "the model was asked as often as scripted",
            &seen.requests.len(),
            &asked,
        );
        let fresh = |at: usize| {
            seen.requests
                .get(at)
                .map(|one| one.new_text.clone())
                .unwrap_or_default()
        };
        holds(
            report,
            "the refusal shows the file's line beside the patch's",
            &fresh(1),
            "2| two\n      >| tow",
        );
        if has_tool {
            holds(
                report,
                "the same for the patch tool",
                &fresh(3),
                "the line `there` is not in the file",
            );
        }
    }
    let task = one_task(report, &world, "task_complete")?;
    replays(report, &world, &task)
}
