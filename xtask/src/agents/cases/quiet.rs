//! Tests what a person at the agent's terminal sees of checkrein: nothing after five plain
//! questions, the failing check when a false claim is sent back, and nothing, or one line, when the
//! claim is true.

use std::io::Result;
use std::time::Duration;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{
    AgentProbeCase, CLAUDE_CODE, check_single_task_ended_as, config_of_run_counting_verifier,
};
use crate::agents::agent::ProbeHookInstallKind;
use crate::agents::report::ProbeCaseCheckCounts;
use crate::agents::screen::AgentTmuxSession;
use crate::agents::world::{
    ProbeCaseEnvironment, ProbeCaseFixture, ProbeCaseSetup, ending_text_from_task_json,
};

pub(super) const CASE: AgentProbeCase = AgentProbeCase {
    name: "quiet",
    about: "five plain questions, a false done and an honest one, as the terminal shows them",
    agents: CLAUDE_CODE,
    run: probe_what_terminal_shows,
};

const SCREEN_LIMIT: Duration = Duration::from_secs(60);

/// Words that only checkrein's texts contain. The bare name is not among them, because it may be
/// part of a path.
const OWN_WORDS: &[&str] = &["checkrein:", "unverified", "no_change", "task_complete"];

/// Pairs of a question and the scripted answer.
const QUESTIONS: [(&str, &str); 5] = [
    (
        "What does the README speak of?",
        "It speaks of a quick fox.",
    ),
    ("How many lines has it?", "It has two lines."),
    ("Which licence is this under?", "There is no licence file."),
    (
        "What does git say of the tree?",
        "Git calls the tree clean.",
    ),
    ("Thanks. What would you do next?", "I would write a test."),
];

fn probe_what_terminal_shows(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    probe_plain_questions(stage, report)?;
    probe_false_then_true_claim(stage, report, "", "silent")?;
    probe_false_then_true_claim(stage, report, "[ui]\nverified = \"line\"\n", "one-line")
}

fn probe_plain_questions(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
) -> Result<()> {
    report.print_probe_case_note("-- five plain questions in one session");
    let say = |at: usize| QUESTIONS.get(at).map_or("", |(_, answer)| answer);
    let world = stage.create_probe_fixture(ProbeCaseSetup {
        name: "questions",
        files: &[("README.md", "a quick fox\nand a line\n")],
        config: config_of_run_counting_verifier(
            &stage.path_beside_probe_repo("questions", "runs.txt"),
            // The check fails: if it ran, a question would be sent back.
            "false",
        ),
        hooks: &[ProbeHookInstallKind::User],
        script: model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response("cat README.md"),
            ScriptedModelAction::scripted_text_response(say(0)),
            ScriptedModelAction::scripted_shell_response("wc -l README.md"),
            ScriptedModelAction::scripted_text_response(say(1)),
            ScriptedModelAction::scripted_shell_response("ls"),
            ScriptedModelAction::scripted_text_response(say(2)),
            ScriptedModelAction::scripted_shell_response("git status --short"),
            ScriptedModelAction::scripted_text_response(say(3)),
            ScriptedModelAction::scripted_text_response(say(4)),
        ]),
    })?;
    let mut screen = None;
    let mut text = String::new();
    for (number, (asked, answer)) in QUESTIONS.into_iter().enumerate() {
        match &screen {
            // The terminal UI is started with the first question as its prompt.
            None => screen = Some(AgentTmuxSession::start_agent_in_tmux(&world, asked)?),
            Some(screen) => type_prompt(screen, asked)?,
        }
        let Some(screen) = &screen else { continue };
        let (shown, now) = screen.wait_for_screen_text(answer, SCREEN_LIMIT);
        report.report_probe_check_result(&format!("answered: {asked}"), shown, now.trim());
        wait_for_recorded_task_endings(&world, number + 1)?;
        // A hook that says something does so after the answer; nothing tells that it will not.
        std::thread::sleep(Duration::from_secs(1));
        text = screen.wait_for_screen_text(answer, Duration::ZERO).1;
    }
    drop(screen);
    std::fs::write(world.folder.join("screen.txt"), &text)?;
    check_screen_shows_no_checkrein(report, &text);
    // Claude Code has a line of its own for a hook that did not end in silence. After a claim was
    // sent back it stays on the screen for a while, so only plain questions are held to this.
    report.report_whether_as_expected("and no word of hooks", &text.contains("hook"), &false);
    let tasks = world.tasks_listed_by_sessions_command()?;
    let endings: Vec<String> = tasks.iter().map(ending_text_from_task_json).collect();
    report.report_whether_as_expected(
        "the store knows all five",
        &endings,
        &vec!["unverified no_change".to_owned(); QUESTIONS.len()],
    );
    report.report_whether_as_expected(
        "the verifier never ran",
        &world.line_count_of_file_beside_repo("runs.txt"),
        &0,
    );
    Ok(())
}

/// Plays a false claim, which is sent back, and then a true one. `ui` is added to the config.
fn probe_false_then_true_claim(
    stage: &ProbeCaseEnvironment<'_>,
    report: &mut ProbeCaseCheckCounts,
    ui: &str,
    name: &str,
) -> Result<()> {
    report.print_probe_case_note(&format!("-- a false done, then an honest one: {name}"));
    let runs = stage.path_beside_probe_repo(name, "runs.txt");
    let world = stage.create_probe_fixture(ProbeCaseSetup {
        name,
        files: &[("README.md", "a quick fox\n")],
        config: format!(
            "{}\n{ui}",
            config_of_run_counting_verifier(&runs, "grep -q hare README.md")
        ),
        hooks: &[ProbeHookInstallKind::User],
        script: model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response("echo tortoise >> README.md"),
            ScriptedModelAction::scripted_text_response("Now it speaks of a hare. All done."),
            ScriptedModelAction::scripted_shell_response("echo hare >> README.md"),
            ScriptedModelAction::scripted_text_response("It really does now."),
        ]),
    })?;
    let screen = AgentTmuxSession::start_agent_in_tmux(&world, "Make the README speak of a hare.")?;
    let (back, text) = screen.wait_for_screen_text("not done yet", SCREEN_LIMIT);
    report.report_probe_check_result("the false claim is seen to be sent back", back, text.trim());
    let (shown, text) = screen.wait_for_screen_text("It really does now.", SCREEN_LIMIT);
    report.report_probe_check_result("the honest one is there", shown, text.trim());
    wait_for_recorded_task_endings(&world, 1)?;
    std::thread::sleep(Duration::from_secs(1));
    let text = screen
        .wait_for_screen_text("It really does now.", Duration::ZERO)
        .1;
    drop(screen);
    std::fs::write(world.folder.join("screen.txt"), &text)?;
    // The refusal of the false claim is meant to be seen, so only what follows counts.
    let after = text
        .rsplit_once("It really does now.")
        .map_or("", |(_, after)| after);
    if ui.is_empty() {
        check_screen_shows_no_checkrein(report, after);
    } else {
        let line = after.lines().find(|line| line.contains("checkrein:"));
        report.report_probe_check_result(
            "one line says that it is verified",
            line.is_some(),
            after,
        );
        report.report_whether_as_expected("and only one", &after.matches("checkrein:").count(), &1);
    }
    check_single_task_ended_as(report, &world, "task_complete")?;
    report.report_whether_as_expected(
        "the verifier ran twice",
        &world.line_count_of_file_beside_repo("runs.txt"),
        &2,
    );
    Ok(())
}

fn check_screen_shows_no_checkrein(report: &mut ProbeCaseCheckCounts, text: &str) {
    let said: Vec<&str> = text
        .lines()
        .filter(|line| OWN_WORDS.iter().any(|ours| line.contains(ours)))
        .collect();
    report.report_probe_check_result(
        "nothing of ours is on the screen",
        said.is_empty(),
        &said.join("\n"),
    );
}

/// Types a prompt. Text and Enter are sent apart, because together they would be taken for a paste.
fn type_prompt(screen: &AgentTmuxSession, text: &str) -> Result<()> {
    screen.press_key(text)?;
    screen.wait_for_screen_text(text, SCREEN_LIMIT);
    screen.press_key("Enter")
}

/// Waits until this many tasks are recorded and ended: an answer is on the screen a moment before
/// its stop is answered.
fn wait_for_recorded_task_endings(world: &ProbeCaseFixture<'_>, tasks: usize) -> Result<()> {
    let until = std::time::Instant::now() + SCREEN_LIMIT;
    while std::time::Instant::now() < until {
        let all = world.tasks_listed_by_sessions_command()?;
        if all.len() == tasks
            && all
                .iter()
                .all(|task| ending_text_from_task_json(task) != "open")
        {
            break;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}
