//! What a colour terminal of some width shows: no mark is cut, no line is too wide, and what is
//! needed to act stands there whole.

use console::measure_text_width;

use crate::agent::Agent;
use crate::terminal::Terminal;
use crate::world::World;

const WIDTHS: [u16; 4] = [40, 80, 120, 200];

/// What strangers write: wide, combined, of several parts, or meant for the terminal.
const STRANGE: [&str; 5] = [
    "東京都の東京タワーと東京駅と東京湾をすべて直してください、急いで、今日中に、お願いします",
    "e\u{301}e\u{301}e\u{301} cafe\u{301} nai\u{308}ve re\u{301}sume\u{301} and so on, far beyond the width of it all",
    "👩‍👩‍👧‍👦 fixes 👩🏽‍💻 the 🏳️‍🌈 flag ❤️ and 👨‍👩‍👧‍👦 goes on 👩‍🚀 until the end of a very long line 👩‍🔬",
    "\u{1b}[31mred\u{1b}[0m \u{1b}]0;title\u{7} \u{9b}2J \u{202e}sdrawkcab\u{202c} \u{1b}[1000D and more of this",
    "plain words that go on and on, one after the other, until no terminal has room for all of them at once",
];

/// Takes away how live lines are drawn.
fn without_drawing(text: &str) -> String {
    let mut text = text.to_owned();
    for drawing in [
        "\u{1b}[2K",
        "\u{1b}[?25l",
        "\u{1b}[?25h",
        "\u{1b}[J",
        "\u{1b}[1A",
        "\u{1b}[1B",
    ] {
        text = text.replace(drawing, "");
    }
    text.replace('\r', "\n")
}

/// Columns that a line takes at most, without its marks; fails where a mark is not whole, or none of ours.
#[track_caller]
fn columns(line: &str) -> usize {
    let mut parts = line.split('\u{1b}');
    let mut plain = parts.next().unwrap().to_owned();
    let mut painted = false;
    for part in parts {
        let ours = ["[1m", "[2m", "[31m", "[32m", "[33m"];
        let (mark, begins) = match ours.iter().find(|mark| part.starts_with(**mark)) {
            Some(mark) => (*mark, true),
            None => ("[0m", false),
        };
        let rest = part
            .strip_prefix(mark)
            .unwrap_or_else(|| panic!("a mark is cut, or is not ours: {line:?}"));
        assert_eq!(begins, !painted, "marks are not in pairs: {line:?}");
        painted = begins;
        plain.push_str(rest);
    }
    assert!(!painted, "paint does not end: {line:?}");
    assert!(!plain.contains(char::is_control), "{plain:?}");
    let mut bytes = [0; 4];
    plain
        .chars()
        .map(|c| measure_text_width(c.encode_utf8(&mut bytes)))
        .sum()
}

/// A path or a command, which is pasted: nothing breaks it but the terminal.
fn is_pasted(line: &str) -> bool {
    let line = line.trim();
    let ours = ["checkrein ", "reproduce: "];
    let begins = ours.iter().any(|command| line.starts_with(command));
    // The check of the demo.
    !line.contains(' ') || begins || line.ends_with("checkrein\" demo")
}

/// Every line of a screen is whole, painted and fits; returns them without paint.
#[track_caller]
fn looked_at(screen: &str, width: u16) -> Vec<String> {
    let screen = without_drawing(screen);
    let mut plain = Vec::new();
    for line in screen.lines() {
        let bare = console::strip_ansi_codes(line).into_owned();
        let fits = columns(line) <= usize::from(width) || is_pasted(&bare);
        assert!(
            fits,
            "{} columns of {width}: {line:?}\n{screen}",
            columns(line)
        );
        plain.push(bare);
    }
    plain
}

/// The screen of a command in a colour terminal, without paint.
#[track_caller]
fn screen(world: &World, width: u16, args: &[&str]) -> Vec<String> {
    let said = Terminal::new(world).columns(width).says(args);
    assert!(
        said.stdout.contains("\u{1b}["),
        "{args:?} is not painted: {said:?}"
    );
    looked_at(&said.stdout, width)
}

/// One task for each strange text, refused and given up; the last is open.
fn strange_world() -> World {
    let world = World::new();
    world.config(
        "[caps]\nattempts = 1\n[[verifier]]\nname = \"tests\"\nrun = \"cat said; exit 1\"\n[[verifier]]\nname = \"東京の検査\"\nrun = \"true\"\n",
    );
    for (n, text) in STRANGE.iter().enumerate() {
        let said = format!("src/a.rs:{n}: error: {text}\n");
        world.write("said", &said);
        world.commit();
        let session = format!("{n}b3e7f00-aaaa");
        let agent = Agent::named(&world, "claude-code", &session);
        agent.prompt(text);
        agent.shell(&format!("echo {text}"), text);
        world.write("work", &n.to_string());
        agent.stop_saying(text);
    }
    world
}

#[test]
fn a_story_fits_every_terminal() {
    let world = strange_world();
    for width in WIDTHS {
        for n in 0..STRANGE.len() {
            let id = format!("{n}b3e7f00-aaa/1");
            let story = screen(&world, width, &["show", &id]);
            let text = story.join("\n");
            assert!(text.contains(&id), "{text}");
            assert!(text.contains("gave_up (same_failures)"), "{text}");
            let log = story.iter().any(|line| {
                let word = line.trim().rsplit(' ').next().unwrap_or_default();
                word.starts_with(".checkrein/logs/tests-") && word.ends_with(".log")
            });
            assert!(log, "the log's path is cut: {text}");
            assert!(text.contains("checkrein check"), "{text}");
            screen(&world, width, &["show", &id, "--why"]);
        }
    }
}

#[test]
fn a_list_of_tasks_fits_every_terminal() {
    let world = strange_world();
    for width in WIDTHS {
        let list = screen(&world, width, &["sessions"]).join("\n");
        for n in 0..STRANGE.len() {
            assert!(list.contains(&format!("{n}b3e7f00-aaa/1")), "{list}");
        }
        assert_eq!(
            list.matches("gave_up (same_failures)").count(),
            STRANGE.len()
        );
    }
}

#[test]
fn what_is_watched_fits_every_terminal() {
    let world = strange_world();
    for width in WIDTHS {
        let said = Terminal::new(&world)
            .columns(width)
            .leaving_at("gave_up")
            .says(&["watch", "3b3e7f00-aaaa/1"]);
        looked_at(&said.stdout, width);
        assert!(said.stdout.contains("\u{1b}[31m"), "{said:?}");
        assert!(said.stdout.contains("3b3e7f00-aaa/1"), "{said:?}");
    }
}

/// The demo where no language is installed: its check is the demo itself in another role.
#[test]
fn the_demo_fits_every_terminal() {
    let world = World::new();
    let programs = world.outside("programs");
    std::fs::create_dir(&programs).unwrap();
    for name in ["sh", "git"] {
        let path = std::env::var_os("PATH").unwrap();
        let found = std::env::split_paths(&path).map(|folder| folder.join(name));
        let found = found.into_iter().find(|file| file.is_file()).unwrap();
        std::os::unix::fs::symlink(found, programs.join(name)).unwrap();
    }
    for width in [40, 80, 120] {
        let said = Terminal::new(&world)
            .columns(width)
            .with("PATH", programs.to_str().unwrap())
            .says(&["demo"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        // What the agent says goes to the terminal as it is.
        let (agent, ours): (Vec<&str>, Vec<&str>) = said
            .stdout
            .lines()
            .partition(|line| line.contains("agent: "));
        assert_eq!(agent.len(), 2, "{said:?}");
        let text = looked_at(&ours.join("\n"), width).join("\n");
        for part in [
            "What happened",
            "task_complete",
            "checkrein init",
            "checkrein run -- YOUR-AGENT",
        ] {
            assert!(text.contains(part), "{part} is not in:\n{text}");
        }
    }
}

#[test]
fn doctor_and_init_fit_every_terminal() {
    let world = World::with_check("true");
    for width in WIDTHS {
        for args in [
            &["init", "--dry-run", "--agent", "claude-code"][..],
            &["doctor", "--audit"],
        ] {
            let said = Terminal::new(&world).columns(width).says(args);
            for line in without_drawing(&said.stdout).lines() {
                columns(line);
                assert!(!line.contains("\\n"), "a line break is spelled out: {line}");
            }
        }
    }
}

/// A terminal that does not say how wide it is: nothing is cut.
#[test]
fn a_terminal_without_a_size_cuts_nothing() {
    let world = strange_world();
    for size in [None, Some(0)] {
        let terminal = Terminal::new(&world);
        let terminal = match size {
            Some(columns) => terminal.columns(columns),
            None => terminal.with("TERM", "xterm"),
        };
        let said = terminal.says(&["show", "4b3e7f00-aaa/1"]);
        let last = STRANGE[4].get(..90).unwrap();
        assert!(said.stdout.contains(last), "{said:?}");
    }
}

/// Who wants no colours has none, wherever it goes; who insists has them in a pipe, too.
#[test]
fn colours_are_asked_for_and_declined_as_usual() {
    let world = strange_world();
    let show = ["show", "0b3e7f00-aaa/1"];
    let in_terminal = |env: &[(&'static str, &str)]| {
        let terminal = Terminal::new(&world).columns(80);
        let terminal = env.iter().fold(terminal, |terminal, (name, value)| {
            terminal.with(name, value)
        });
        terminal.says(&show).stdout.contains('\u{1b}')
    };
    let in_pipe = |env: &[(&'static str, &str)]| {
        let mut command = world.checkrein(&show);
        command.envs(env.iter().copied());
        let output = command.output().unwrap();
        String::from_utf8(output.stdout).unwrap().contains('\u{1b}')
    };
    for (env, terminal, pipe) in [
        (&[][..], true, false),
        (&[("NO_COLOR", "1")], false, false),
        (&[("NO_COLOR", "")], true, false),
        (&[("CLICOLOR_FORCE", "1")], true, true),
        (&[("CLICOLOR_FORCE", "0")], true, false),
        (&[("CLICOLOR", "0")], false, false),
        (&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false, false),
        (&[("TERM", "dumb")], false, false),
    ] {
        assert_eq!(
            (in_terminal(env), in_pipe(env)),
            (terminal, pipe),
            "{env:?}"
        );
    }
}
