//! What a person at the agent's terminal sees of us: nothing after five plain questions, the failing
//! check when a false claim is sent back, and nothing, or one line, when the claim is true.

use std::io::Result;
use std::time::Duration;

use checkrein_scripted::{ScriptedModelAction, model_script_from_rounds};

use super::{CLAUDE_CODE, Case, counted, one_task};
use crate::agents::agent::Hooks;
use crate::agents::report::Report;
use crate::agents::screen::Screen;
use crate::agents::world::{Setup, Stage, World, ending};

pub(super) const CASE: Case = Case {
    name: "quiet",
    about: "five plain questions, a false done and an honest one, as the terminal shows them",
    agents: CLAUDE_CODE,
    run,
};

const PATIENCE: Duration = Duration::from_secs(60);

/// What only our texts say. The name alone may be part of a path.
const OURS: &[&str] = &["checkrein:", "unverified", "no_change", "task_complete"];

/// Question, answer.
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

fn run(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    questions(stage, report)?;
    claims(stage, report, "", "silent")?;
    claims(stage, report, "[ui]\nverified = \"line\"\n", "one-line")
}

fn questions(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    report.note("-- five plain questions in one session");
    let say = |at: usize| QUESTIONS.get(at).map_or("", |(_, answer)| answer);
    let world = stage.world(Setup {
        name: "questions",
        files: &[("README.md", "a quick fox\nand a line\n")],
        config: counted(&stage.beside("questions", "runs.txt"), "false"),
        hooks: &[Hooks::User],
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
            None => screen = Some(Screen::agent(&world, asked)?),
            Some(screen) => typed(screen, asked)?,
        }
        let Some(screen) = &screen else { continue };
        let (shown, now) = screen.wait_for(answer, PATIENCE);
        report.check(&format!("answered: {asked}"), shown, now.trim());
        ended(&world, number + 1)?;
        // What a hook says appears after the answer.
        std::thread::sleep(Duration::from_secs(1));
        text = screen.wait_for(answer, Duration::ZERO).1;
    }
    drop(screen);
    std::fs::write(world.folder.join("screen.txt"), &text)?;
    quiet(report, &text);
    // The agent's own words, wherever a hook did not end in silence.
    report.equal("and no word of hooks", &text.contains("hook"), &false);
    let tasks = world.tasks()?;
    let endings: Vec<String> = tasks.iter().map(ending).collect();
    report.equal(
        "the store knows all five",
        &endings,
        &vec!["unverified no_change".to_owned(); QUESTIONS.len()],
    );
    report.equal("the verifier never ran", &world.lines("runs.txt"), &0);
    Ok(())
}

/// A claim that is false, sent back, and then true.
fn claims(stage: &Stage<'_>, report: &mut Report, ui: &str, name: &str) -> Result<()> {
    report.note(&format!("-- a false done, then an honest one: {name}"));
    let runs = stage.beside(name, "runs.txt");
    let world = stage.world(Setup {
        name,
        files: &[("README.md", "a quick fox\n")],
        config: format!("{}\n{ui}", counted(&runs, "grep -q hare README.md")),
        hooks: &[Hooks::User],
        script: model_script_from_rounds(vec![
            ScriptedModelAction::scripted_shell_response("echo tortoise >> README.md"),
            ScriptedModelAction::scripted_text_response("Now it speaks of a hare. All done."),
            ScriptedModelAction::scripted_shell_response("echo hare >> README.md"),
            ScriptedModelAction::scripted_text_response("It really does now."),
        ]),
    })?;
    let screen = Screen::agent(&world, "Make the README speak of a hare.")?;
    let (back, text) = screen.wait_for("not done yet", PATIENCE);
    report.check("the false claim is seen to be sent back", back, text.trim());
    let (shown, text) = screen.wait_for("It really does now.", PATIENCE);
    report.check("the honest one is there", shown, text.trim());
    ended(&world, 1)?;
    std::thread::sleep(Duration::from_secs(1));
    let text = screen.wait_for("It really does now.", Duration::ZERO).1;
    drop(screen);
    std::fs::write(world.folder.join("screen.txt"), &text)?;
    let after = text
        .rsplit_once("It really does now.")
        .map_or("", |(_, after)| after);
    if ui.is_empty() {
        quiet(report, after);
    } else {
        let line = after.lines().find(|line| line.contains("checkrein:"));
        report.check("one line says that it is verified", line.is_some(), after);
        report.equal("and only one", &after.matches("checkrein:").count(), &1);
    }
    one_task(report, &world, "task_complete")?;
    report.equal("the verifier ran twice", &world.lines("runs.txt"), &2);
    Ok(())
}

fn quiet(report: &mut Report, text: &str) {
    let said: Vec<&str> = text
        .lines()
        .filter(|line| OURS.iter().any(|ours| line.contains(ours)))
        .collect();
    report.check(
        "nothing of ours is on the screen",
        said.is_empty(),
        &said.join("\n"),
    );
}

/// Typed in one go with its Enter it would be taken for a paste.
fn typed(screen: &Screen, text: &str) -> Result<()> {
    screen.press(text)?;
    screen.wait_for(text, PATIENCE);
    screen.press("Enter")
}

/// The answer is on the screen a moment before its stop is answered.
fn ended(world: &World<'_>, tasks: usize) -> Result<()> {
    let until = std::time::Instant::now() + PATIENCE;
    while std::time::Instant::now() < until {
        let all = world.tasks()?;
        if all.len() == tasks && all.iter().all(|task| ending(task) != "open") {
            break;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}
