//! Tests the main job on real projects. A false "done" is sent back with the failing test and the
//! command to reproduce it; the fix, made with the agent's own tools, is accepted.

use std::io::Result;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{
    AgentProbeCase, BOTH, check_agent_ended_cleanly, check_recorded_session_replay,
    check_single_task_ended_as, report_whether_text_contains, tests_verifier_config_text,
};
use crate::agents::agent::ProbeHookInstallKind;
use crate::agents::report::ProbeCaseCheckCounts;
use crate::agents::world::{ProbeCaseEnvironment, ProbeCaseSetup, numeric_field_of_task};

pub(super) const CASE: AgentProbeCase = AgentProbeCase {
    name: "fixes",
    about: "claims done falsely, is sent back, fixes it",
    agents: BOTH,
    run: probe_false_claim_sent_back,
};

/// A project with one failing test.
struct ProbeProjectWithFailingTest {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    broken: &'static str,
    wrong: &'static str,
    right: &'static str,
    check: &'static str,
}

const CARGO: ProbeProjectWithFailingTest = ProbeProjectWithFailingTest {
    name: "cargo",
    files: &[
        (
            "Cargo.toml",
            "[package]\nname = \"adder\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
        ),
        (
            "Cargo.lock",
            "version = 4\n\n[[package]]\nname = \"adder\"\nversion = \"0.1.0\"\n",
        ),
        (".gitignore", "/target\n"),
        (
            "src/lib.rs",
            "pub fn add(a: i32, b: i32) -> i32 {\n    a - b\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds_two_numbers() {\n        assert_eq!(super::add(2, 3), 5);\n    }\n}\n",
        ),
    ],
    broken: "src/lib.rs",
    wrong: "    a - b",
    right: "    a + b",
    check: "cargo test --offline",
};

const PYTHON: ProbeProjectWithFailingTest = ProbeProjectWithFailingTest {
    name: "unittest",
    files: &[
        ("adder.py", "def add(a, b):\n    return a - b\n"),
        (
            "test_adder.py",
            "import unittest\n\nimport adder\n\n\nclass Adding(unittest.TestCase):\n    def test_adds_two_numbers(self):\n        self.assertEqual(adder.add(2, 3), 5)\n",
        ),
    ],
    broken: "adder.py",
    wrong: "    return a - b",
    // It is longer than the wrong line: Python reuses a compiled file if the size and the second of
    // its source are the same, and a scripted model fixes it within the second.
    right: "    return sum((a, b))",
    check: "python3 -m unittest",
};

/// The name of the failing test in both projects.
const TEST: &str = "adds_two_numbers";

fn probe_false_claim_sent_back(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    probe_fixing_failing_test(stage, report, &CARGO)?;
    let python = std::process::Command::new("python3")
        .arg("--version")
        .output();
    if python.is_ok_and(|output| output.status.success()) {
        probe_fixing_failing_test(stage, report, &PYTHON)
    } else {
        report.print_probe_case_note("python3 is not here: its project was left out");
        Ok(())
    }
}

fn probe_fixing_failing_test(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
    project: &ProbeProjectWithFailingTest,
) -> Result<()> {
    report.print_probe_case_note(&format!(
        "-- {}, checked by: {}",
        project.name, project.check
    ));
    let world = stage.create_probe_fixture(ProbeCaseSetup {
        name: project.name,
        files: project.files,
        config: tests_verifier_config_text(project.check),
        hooks: &[ProbeHookInstallKind::User],
        script: model_script_from_rounds(vec![
            // The change is irrelevant. Without one the stop would count as a question answered.
            ScriptedModelAction::scripted_new_file_response("NOTES.md", "Looked at it.\n"),
            ScriptedModelAction::scripted_text_response(
                "All tests pass now, the task is complete.",
            ),
            vec![ScriptedModelAction::Read(project.broken.to_owned())],
            vec![ScriptedModelAction::Replace {
                path: project.broken.to_owned(),
                old: project.wrong.to_owned(),
                new: project.right.to_owned(),
            }],
            ScriptedModelAction::scripted_text_response("Now it is fixed."),
        ]),
    })?;
    let ran = world.run_agent_headless("add() is wrong; make its test pass.")?;
    check_agent_ended_cleanly(report, &world, &ran);
    {
        let seen = world.model.model_request_log();
        report.report_whether_as_expected(
            "the model was asked as often as scripted",
            &seen.requests.len(),
            &5,
        );
        let after = seen.requests.get(2).cloned().unwrap_or_default();
        report_whether_text_contains(
            report,
            "the refusal names the failing test",
            &after.new_text,
            TEST,
        );
        report_whether_text_contains(
            report,
            "and the command to reproduce it",
            &after.new_text,
            &format!("reproduce: {}", project.check),
        );
        // The whole conversation is searched, because a reason that was sent twice stays in it.
        let times = after.full_text.matches("checkrein: not done yet").count();
        report.report_probe_check_result(
            "the reason is sent once",
            times == 1,
            &format!(
                "{times} times\n{}",
                if times == 1 { "" } else { &after.new_text }
            ),
        );
        let last = seen.requests.last().cloned().unwrap_or_default();
        report.report_whether_as_expected(
            "and not again later",
            &last.full_text.matches("checkrein: not done yet").count(),
            &1,
        );
    }
    let text = std::fs::read_to_string(world.repo.join(project.broken))?;
    report_whether_text_contains(report, "the agent's edit is on disk", &text, project.right);
    let task = check_single_task_ended_as(report, &world, "task_complete")?;
    report.report_whether_as_expected(
        "two stops",
        &numeric_field_of_task(&task, "stops"),
        &Some(2),
    );
    report.report_whether_as_expected(
        "sent back once",
        &numeric_field_of_task(&task, "continues"),
        &Some(1),
    );
    check_recorded_session_replay(report, &world, &task)
}
