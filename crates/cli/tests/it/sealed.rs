//! Law 10 from outside: what is edited while a task is open loosens nothing, is said, and
//! waits for a person.

use serde_json::json;

use crate::agent::{Agent, Answer, BOTH};
use crate::terminal::Terminal;
use crate::world::World;

/// A session of its own, prompted.
fn begun<'w>(world: &'w World, name: &'static str, session: &str) -> (Agent<'w>, Answer) {
    let agent = Agent::named(world, name, session);
    let answer = agent.tell(&agent.message("UserPromptSubmit", json!({ "prompt": "mend it" })));
    (agent, answer)
}

fn edit_to(world: &World, check: &str) {
    world.config(&world.counted("loosened", check));
}

#[test]
fn an_edit_during_a_task_does_not_loosen_the_next_session() {
    for name in BOTH {
        let world = World::with_check("test -f fixed");
        let (first, answer) = begun(&world, name, "first");
        assert_eq!(answer, Answer::Nothing);
        edit_to(&world, "true");
        let answer = first.stop();
        let text = answer.sent_back();
        assert!(
            text.contains("Edited during this task: checkrein.toml"),
            "{text}"
        );
        world.write("work", "1");
        let answer = first.stop();
        assert!(
            !answer.sent_back().contains("Edited"),
            "said once: {answer:?}"
        );
        let shown = world.says(&["show"]);
        assert!(shown.stdout.contains("edited: checkrein.toml"), "{shown:?}");

        // The next session goes on with the older policy and says so.
        let (second, answer) = begun(&world, name, "second");
        assert!(
            answer.notice().contains("the older policy goes on"),
            "{answer:?}"
        );
        assert!(answer.notice().contains("checkrein seal"), "{answer:?}");
        world.write("work", "2");
        second.stop().sent_back();
        assert_eq!(world.runs("loosened"), 0);

        // `run` and `check` begin no looser.
        let said = world.says(&["run", "--attempts", "1", "--", "true"]);
        assert_eq!(said.code, Some(11), "{said:?}");
        assert!(said.stderr.contains("the older policy goes on"), "{said:?}");
        assert_eq!(world.runs("loosened"), 0);

        // An accepted stop says it as well.
        world.write("fixed", "");
        let answer = first.stop();
        assert!(
            answer
                .notice()
                .contains("edited during this task: checkrein.toml"),
            "{answer:?}"
        );
        assert!(
            world
                .says(&["show", "first", "--why"])
                .stdout
                .contains("edited while the task was open")
        );
        for session in ["first", "second"] {
            world.replays(session);
        }
    }
}

#[test]
fn a_person_seals_and_the_edit_counts_in_mid_session_too() {
    let world = World::with_check("test -f fixed");
    let config = std::fs::read_to_string(world.root().join("checkrein.toml")).unwrap();
    world.config(&format!("[caps]\nattempts = 9\n{config}"));
    let (first, _) = begun(&world, "claude-code", "first");
    world.write("work", "1");
    first.stop().sent_back();
    edit_to(&world, "true");
    first.stop().sent_back();
    assert!(world.store_folder().join("held.json").exists());

    let said = Terminal::new(&world).typing("n\n").says(&["seal"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.stdout
            .contains("edited while a task was open: checkrein.toml"),
        "{said:?}"
    );
    assert!(world.store_folder().join("held.json").exists());
    world.write("work", "2");
    first.stop().sent_back();

    let said = Terminal::new(&world).typing("y\n").says(&["seal"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.stdout
            .contains("one session under way goes on with it"),
        "{said:?}"
    );
    assert!(!world.store_folder().join("held.json").exists());
    let answer = first.stop();
    assert!(!matches!(answer, Answer::SentBack(_)), "{answer:?}");
    assert_eq!(world.runs("loosened"), 1);
    assert_eq!(world.ending(), "task_complete");
    let shown = world.says(&["show"]);
    assert!(
        shown.stdout.contains("sealed anew by a person: terminal"),
        "{shown:?}"
    );
    world.replays("first");

    let (_, answer) = begun(&world, "claude-code", "second");
    assert_eq!(answer, Answer::Nothing, "nothing is held any more");
}

#[test]
fn a_session_that_is_sealed_anew_keeps_its_profile() {
    let world = World::new();
    let config = format!(
        "{}[[profile.ci.verifier]]\nname = \"tests\"\nrun = \"test -f fixed\"\n",
        world.counted("tests", "true")
    );
    world.config(&config);
    world.commit();
    let mut first = Agent::named(&world, "claude-code", "first");
    first.extra = vec!["--profile".to_owned(), "ci".to_owned()];
    first.prompt("mend it");
    let second = Agent::named(&world, "claude-code", "second");
    second.prompt("mend it");
    world.write("work", "1");
    first.stop().sent_back();
    // Neither what the terminal asks for counts, nor that it asks for nothing.
    for (asked, edited) in [("", 8), ("ci", 7)] {
        world.config(&format!("[caps]\nattempts = {edited}\n{config}"));
        let terminal = Terminal::new(&world).with("CHECKREIN_PROFILE", asked);
        let said = terminal.typing("y\n").says(&["seal"]);
        assert!(said.stdout.contains("2 sessions under way"), "{said:?}");
        world.write("work", asked);
        first.stop().sent_back();
        let answer = second.stop();
        assert!(!matches!(answer, Answer::SentBack(_)), "{answer:?}");
        second.prompt("more");
    }
}

#[test]
fn edits_with_no_task_open_are_taken_up_at_the_next_start() {
    let world = World::with_check("true");
    let (first, _) = begun(&world, "claude-code", "first");
    world.write("work", "1");
    assert_eq!(first.stop(), Answer::Nothing);
    edit_to(&world, "true");
    // The session that is under way goes on as it began, and has nothing to say about it.
    first.prompt("more");
    world.write("work", "2");
    assert_eq!(first.stop(), Answer::Nothing);
    assert_eq!((world.runs("tests"), world.runs("loosened")), (2, 0));

    let (second, answer) = begun(&world, "claude-code", "second");
    assert_eq!(answer, Answer::Nothing);
    world.write("work", "3");
    assert_eq!(second.stop(), Answer::Nothing);
    assert_eq!((world.runs("tests"), world.runs("loosened")), (2, 1));
}

#[test]
fn a_session_that_begins_beside_an_open_task_is_not_looser_either() {
    let world = World::with_check("exit 1");
    let (_first, _) = begun(&world, "claude-code", "first");
    edit_to(&world, "true");
    // The first has not stopped since: the second finds the edit for it.
    let (second, answer) = begun(&world, "claude-code", "second");
    assert!(
        answer.notice().contains("the older policy goes on"),
        "{answer:?}"
    );
    world.write("work", "1");
    second.stop().sent_back();
    assert_eq!(world.runs("loosened"), 0);
    world.replays("first");
}

#[test]
fn an_edit_that_is_taken_back_holds_nothing() {
    let world = World::with_check("true");
    let config = std::fs::read_to_string(world.root().join("checkrein.toml")).unwrap();
    let (first, _) = begun(&world, "claude-code", "first");
    edit_to(&world, "true");
    let answer = first.stop();
    assert!(
        answer.notice().contains("edited during this task"),
        "{answer:?}"
    );
    world.config(&config);
    let (_, answer) = begun(&world, "claude-code", "second");
    assert_eq!(answer, Answer::Nothing);
    assert!(!world.store_folder().join("held.json").exists());
}

#[test]
fn hook_settings_and_ignore_files_are_said_and_hold_nothing() {
    let world = World::with_check("true");
    world.write(".claude/settings.local.json", "{\"hooks\": {\"Stop\": []}}");
    let (first, _) = begun(&world, "claude-code", "first");
    world.write("work", "1");
    // What the agent writes there itself while a person allows things is no edit of hooks.
    world.write(
        ".claude/settings.local.json",
        "{\"permissions\": {\"allow\": [\"Bash(ls)\"]}, \"hooks\": {\"Stop\": []}}",
    );
    assert_eq!(first.stop(), Answer::Nothing);

    first.prompt("more");
    world.write("work", "2");
    world.write(".claude/settings.local.json", "{\"disableAllHooks\": true}");
    world.write(".gitignore", "work\n");
    std::fs::write(world.root().join(".git/info/exclude"), "x\n").unwrap();
    let answer = first.stop();
    let notice = answer.notice();
    for file in [
        ".claude/settings.local.json",
        ".git/info/exclude",
        ".gitignore",
    ] {
        assert!(notice.contains(file), "{file}: {notice}");
    }
    assert!(!world.store_folder().join("held.json").exists());
}

#[test]
fn an_edit_counts_however_the_task_ends() {
    for (event, more) in [
        ("SessionEnd", json!({ "reason": "exit" })),
        ("StopFailure", json!({ "error": "rate_limit" })),
    ] {
        let world = World::with_check("test -f fixed");
        let (first, _) = begun(&world, "claude-code", "first");
        edit_to(&world, "true");
        first.tell(&first.message(event, more));
        let (second, answer) = begun(&world, "claude-code", "second");
        let notice = answer.notice();
        assert!(notice.contains("the older policy goes on"), "{notice}");
        world.write("work", "1");
        second.stop().sent_back();
        assert_eq!(world.runs("loosened"), 0);
        world.replays("first");
    }
}

#[test]
fn what_is_held_in_one_folder_goes_on_in_no_other() {
    let world = World::with_check("test -f fixed");
    let lax = world.root().join("lax");
    world.write("lax/checkrein.toml", &world.counted("lax", "true"));
    world.write("work", "1");
    let mut below = Agent::named(&world, "claude-code", "below");
    below
        .env
        .push(("CLAUDE_PROJECT_DIR", lax.display().to_string()));
    below.prompt("mend it");
    world.write("lax/work", "1");
    let config = std::fs::read_to_string(lax.join("checkrein.toml")).unwrap();
    world.write("lax/checkrein.toml", &format!("# touched\n{config}"));
    let answer = below.stop();
    assert!(answer.notice().contains("lax/checkrein.toml"), "{answer:?}");
    assert!(world.store_folder().join("held.json").exists());

    let (above, answer) = begun(&world, "claude-code", "above");
    assert_eq!(answer, Answer::Nothing);
    world.write("work", "2");
    above.stop().sent_back();
}

#[test]
fn what_a_person_edited_between_tasks_is_what_is_held_later() {
    let world = World::with_check("true");
    let (first, _) = begun(&world, "claude-code", "first");
    world.write("work", "1");
    first.stop();
    // No task is open: a person asks for more.
    world.config(&world.counted("check", "test -f fixed"));
    first.prompt("more");
    edit_to(&world, "true");
    world.write("work", "2");
    first.stop();
    let (second, answer) = begun(&world, "claude-code", "second");
    let notice = answer.notice();
    assert!(notice.contains("the older policy goes on"), "{notice}");
    world.write("work", "3");
    second.stop().sent_back();
}

#[test]
fn what_is_edited_while_a_person_looks_is_not_sealed() {
    let world = World::with_check("test -f fixed");
    let (first, _) = begun(&world, "claude-code", "first");
    world.write("work", "1");
    first.stop().sent_back();
    let config = std::fs::read_to_string(world.root().join("checkrein.toml")).unwrap();
    world.config(&format!("# looked at\n{config}"));
    // It is edited between the question and the answer.
    let edits = Terminal::new(&world)
        .typing("y\n")
        .meanwhile("[y/N]", || edit_to(&world, "true"))
        .says(&["seal"]);
    assert_eq!(edits.code, Some(1), "{edits:?}");
    assert!(edits.stdout.contains("nothing is sealed"), "{edits:?}");
    world.write("work", "2");
    first.stop().sent_back();
    assert_eq!(world.runs("loosened"), 0);
}

#[test]
fn a_pipe_where_a_guarded_file_was_keeps_no_stop_waiting() {
    let world = World::with_check("test -f fixed");
    let (first, _) = begun(&world, "claude-code", "first");
    world.write("work", "1");
    for name in [".claude/settings.json", ".git/info/exclude"] {
        let file = world.root().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&file);
        let made = std::process::Command::new("mkfifo").arg(&file).status();
        assert!(made.unwrap().success());
    }
    let text = first.stop();
    assert!(
        text.sent_back().contains(".claude/settings.json"),
        "{text:?}"
    );
}

#[test]
fn a_damaged_log_of_one_session_does_not_silence_the_next() {
    let world = World::with_check("test -f fixed");
    let (_first, _) = begun(&world, "claude-code", "first");
    let store = rusqlite::Connection::open(world.store_folder().join("store.db")).unwrap();
    let damaged = "UPDATE event SET payload = CAST('{}' AS BLOB) WHERE kind = 'prompt_submitted'";
    assert_eq!(store.execute(damaged, []).unwrap(), 1);
    drop(store);
    let (second, answer) = begun(&world, "claude-code", "second");
    assert_eq!(answer, Answer::Nothing);
    world.write("work", "1");
    second.stop().sent_back();
}
