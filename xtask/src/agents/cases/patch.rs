//! Tests a patch that does not fit: it is refused with the lines that the file has, and the second
//! try fits. Both agents patch by the shell; Codex also has a patch tool.

use std::io::Result;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{
    AgentProbeCase, BOTH, check_agent_ended_cleanly, check_recorded_session_replay,
    check_single_task_ended_as, report_whether_text_contains, tests_verifier_config_text,
};
use crate::agents::agent::ProbeHookInstallKind;
use crate::agents::report::ProbeCaseCheckCounts;
use crate::agents::world::{ProbeCaseEnvironment, ProbeCaseSetup};

pub(super) const CASE: AgentProbeCase = AgentProbeCase {
    name: "patch",
    about: "a patch that does not fit is refused and repaired",
    agents: BOTH,
    run: probe_unfitting_patch_repair,
};

fn build_git_apply_script(old: &str, new: &str) -> String {
    format!(
        "git apply <<'EOF'\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-{old}\n+{new}\n three\nEOF"
    )
}

fn scripted_model_replacing_line(old: &str, new: &str) -> Vec<ScriptedModelAction> {
    vec![ScriptedModelAction::Replace {
        path: "a.txt".to_owned(),
        old: old.to_owned(),
        new: new.to_owned(),
    }]
}

fn probe_unfitting_patch_repair(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    let has_tool = stage.agent.agent_name() == "codex";
    let mut script = vec![
        // The file has no `tow`: the model remembers the line wrongly.
        ScriptedModelAction::scripted_shell_response(&build_git_apply_script("tow", "TWO")),
        ScriptedModelAction::scripted_shell_response(&build_git_apply_script("two", "TWO")),
    ];
    if has_tool {
        script.extend([
            scripted_model_replacing_line("there", "THREE"),
            scripted_model_replacing_line("three", "THREE"),
        ]);
    }
    script.push(ScriptedModelAction::scripted_text_response("Done."));
    let asked = script.len();
    let world = stage.create_probe_fixture(ProbeCaseSetup {
        name: "main",
        files: &[("a.txt", "one\ntwo\nthree\n")],
        config: tests_verifier_config_text(if has_tool {
            "grep -q TWO a.txt && grep -q THREE a.txt"
        } else {
            "grep -q TWO a.txt"
        }),
        hooks: &[ProbeHookInstallKind::User],
        script: model_script_from_rounds(script),
    })?;
    let ran = world.run_agent_headless("Make two TWO.")?;
    check_agent_ended_cleanly(report, &world, &ran);
    {
        let seen = world.model.model_request_log();
        report.report_whether_as_expected(
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
        report_whether_text_contains(
            report,
            "the refusal shows the file's line beside the patch's",
            &fresh(1),
            "2| two\n      >| tow",
        );
        if has_tool {
            report_whether_text_contains(
                report,
                "the same for the patch tool",
                &fresh(3),
                "the line `there` is not in the file",
            );
        }
    }
    let task = check_single_task_ended_as(report, &world, "task_complete")?;
    check_recorded_session_replay(report, &world, &task)
}
