//! A check that is longer than its hook goes on without it, and a later stop takes up what it finds.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::agent::{Agent, Answer, read};
use crate::crash::{Dice, kills};
use crate::terminal::Terminal;
use crate::world::{Said, World, gone, read_line, signal, start, text};

/// The hook of a stop has this long: a fifth of it is its margin.
const DEADLINE: &str = "2";

/// With so long, the hook runs the check itself.
const LONG_ENOUGH: &str = "3000";

/// A task at work, whose check says so in `up`, waits for a line in `go`, and then runs `check`.
struct Long {
    world: World,
    deadline: &'static str,
}

impl Long {
    fn new(check: &str) -> Self {
        let world = World::new();
        let (up, go) = (world.pipe("up"), world.pipe("go"));
        let waits = format!("echo > {}; cat {}; {check}", up.display(), go.display());
        world.config(&world.counted("tests", &waits));
        world.commit();
        let long = Self {
            world,
            deadline: DEADLINE,
        };
        long.agent().prompt("mend it");
        long.world.write("work", "1");
        long
    }

    fn agent(&self) -> Agent<'_> {
        let mut agent = Agent::new(&self.world, "claude-code");
        agent.extra = vec!["--deadline".to_owned(), self.deadline.to_owned()];
        agent
    }

    fn runs(&self) -> usize {
        self.world.runs("tests")
    }

    /// Lets the check go on.
    fn go(&self) {
        std::fs::write(self.world.outside("go"), "\n").unwrap();
    }

    fn stopping(&self, active: bool) -> Child {
        let agent = self.agent();
        let message = agent.stop_message(active, "Done.").to_string();
        start(&mut agent.hook(), message.as_bytes())
    }

    /// What the agent takes the hook's answer for.
    fn answer(&self, hook: Child) -> Answer {
        let said = Said::of(&hook.wait_with_output().unwrap());
        read("claude-code", "Stop", &said)
    }

    /// A stop whose check goes on without its hook.
    fn left_running(&self) {
        let hook = self.stopping(false);
        read_line(&self.world.outside("up"));
        let told = self.answer(hook);
        let told = told.sent_back();
        assert!(told.contains("still running for"), "{told}");
        assert!(
            told.contains("stop again when you have nothing else to do"),
            "{told}"
        );
        // Said once, as what is to be known of the check, and not as its output.
        assert_eq!(told.matches("still running").count(), 1, "{told}");
        assert!(!told.contains("another process"), "{told}");
        assert_eq!(self.runs(), 1);
    }

    /// The next stop ends what runs and has it run anew, from its beginning.
    fn starts_again(&self) {
        let hook = self.stopping(true);
        read_line(&self.world.outside("up"));
        self.go();
        assert_eq!(self.answer(hook), Answer::Nothing);
        assert_eq!(
            (self.world.ending(), self.runs()),
            ("task_complete".to_owned(), 2)
        );
        self.ended();
    }

    fn owners(&self) -> usize {
        let folder = self.world.store_folder().join("owners");
        std::fs::read_dir(folder).map_or(0, |entries| entries.flatten().count())
    }

    /// Waits for the end of the owner and of all that it started.
    fn ended(&self) {
        gone(&self.world);
        assert_eq!(self.owners(), 0);
    }
}

#[test]
fn a_later_stop_takes_up_what_was_found_meanwhile() {
    let long = Long::new("true");
    long.left_running();
    long.go();
    long.ended();
    assert_eq!(long.answer(long.stopping(true)), Answer::Nothing);
    assert_eq!(
        (long.world.ending(), long.runs()),
        ("task_complete".to_owned(), 1)
    );
    assert_eq!(long.world.task()["continues"], 1);
    long.world.replays(&long.agent().session);
}

#[test]
fn a_later_stop_waits_for_what_still_runs() {
    let long = Long::new("test -f fixed");
    long.left_running();
    let hook = long.stopping(true);
    std::thread::sleep(Duration::from_millis(300));
    long.go();
    let told = long.answer(hook);
    assert!(told.sent_back().contains("failed"), "{told:?}");
    assert_eq!(long.runs(), 1);
    long.ended();
}

#[test]
fn a_stop_that_waits_in_vain_says_so_again() {
    let long = Long::new("true");
    long.left_running();
    let told = long.answer(long.stopping(true));
    // Counted from when the owner began.
    let seconds = told.sent_back().split("still running for ").nth(1);
    let seconds = seconds.and_then(|rest| rest.split_once(" s;")?.0.parse::<u64>().ok());
    assert!(seconds.is_some_and(|seconds| seconds < 60), "{told:?}");
    assert_eq!(long.runs(), 1);
    long.go();
    long.ended();
}

/// What is about files that are not there any more is ended, and begins anew.
#[test]
fn changed_files_restart_an_owned_check() {
    let long = Long::new("true");
    long.left_running();
    long.world.write("work", "2");
    long.starts_again();
}

/// The check began before the call, whose effects it may not have seen.
#[test]
fn a_call_starts_its_own_sessions_check_again() {
    let long = Long::new("true");
    long.left_running();
    assert_eq!(long.agent().shell("curl -X POST db", "ok"), Answer::Nothing);
    long.starts_again();
}

/// That session's own stop may still believe what it finds.
#[test]
fn a_call_of_another_session_does_not_end_a_check() {
    let long = Long::new("true");
    let mut other = Agent::named(&long.world, "claude-code", "another");
    other.extra = vec!["--deadline".to_owned(), DEADLINE.to_owned()];
    other.prompt("ask the database");
    long.world.write("work", "2");
    long.left_running();
    assert_eq!(other.shell("curl -X POST db", "ok"), Answer::Nothing);
    let told = other.stop();
    assert!(told.sent_back().contains("still running for"), "{told:?}");
    assert_eq!(long.runs(), 1);
    // The next one waits for its end.
    long.go();
    read_line(&long.world.outside("up"));
    assert_eq!(long.runs(), 2);
    long.go();
    long.ended();
}

/// An owner does not know what its hook prints into, which grows while it looks at the tree.
#[test]
fn a_hook_that_prints_into_the_tree_has_no_owner() {
    let long = Long {
        deadline: "20",
        ..Long::new("true")
    };
    let agent = long.agent();
    let answer = long.world.root().join("answer.json");
    let mut hook = agent.hook();
    hook.stdin(Stdio::piped())
        .stdout(std::fs::File::create(answer).unwrap());
    let mut hook = hook.spawn().unwrap();
    let message = agent.stop_message(false, "Done.").to_string();
    let mut input = hook.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, message.as_bytes()).unwrap();
    drop(input);
    read_line(&long.world.outside("up"));
    assert_eq!(long.owners(), 0);
    long.go();
    assert!(hook.wait().unwrap().success());
    assert_eq!(long.world.ending(), "task_complete");
}

/// Esc, SIGTERM, kill -9: who did not say that it is to go on wants it to end.
#[test]
fn an_owned_check_ends_when_its_hook_is_killed() {
    for by in [Signal::KILL, Signal::TERM] {
        let long = Long::new("true");
        let mut hook = long.stopping(false);
        read_line(&long.world.outside("up"));
        signal(&hook, by);
        hook.wait().unwrap();
        long.ended();
    }
}

#[test]
fn an_owned_check_ends_with_the_session() {
    let long = Long::new("true");
    long.left_running();
    let agent = long.agent();
    let over = agent.message("SessionEnd", serde_json::json!({ "reason": "exit" }));
    let asked = Instant::now();
    agent.tell(&over);
    long.ended();
    assert!(asked.elapsed() < Duration::from_secs(5));
}

#[test]
fn it_ends_with_the_tree() {
    let long = Long::new("true");
    long.left_running();
    std::fs::rename(long.world.root(), long.world.outside("elsewhere")).unwrap();
    long.ended();
}

/// A person does not wait for a check that is not to decide anything, whoever runs it.
#[test]
fn a_stop_that_is_switched_off_meanwhile_is_let_through() {
    for deadline in ["20", LONG_ENOUGH] {
        let long = Long {
            deadline,
            ..Long::new("true")
        };
        let hook = long.stopping(false);
        read_line(&long.world.outside("up"));
        let asked = Instant::now();
        let off = ["off", "--for", "1h", "--reason", "a demonstration"];
        let said = Terminal::new(&long.world).says(&off);
        assert_eq!(said.code, Some(0), "{said:?}");
        let Answer::Notice(told) = long.answer(hook) else {
            panic!("not let through");
        };
        assert!(told.contains("switched off until"), "{told}");
        long.ended();
        assert!(asked.elapsed() < Duration::from_secs(5));
        assert_eq!(
            (long.world.ending(), long.runs()),
            ("unverified/passed_over".to_owned(), 1)
        );
    }
}

/// Nobody wants to know any more.
#[test]
fn an_owned_check_ends_with_the_agent() {
    let long = Long::new("true");
    let agent = long.agent();
    let message = long.world.outside("message");
    std::fs::write(&message, agent.stop_message(false, "Done.").to_string()).unwrap();
    let answer = long.world.outside("answer");
    // A stand-in for the agent, which runs its hooks by a shell.
    let line = format!(
        "$BIN hook claude-code --deadline {DEADLINE} < '{}' 2> '{}.new'; mv '{1}.new' '{1}'; sleep 60",
        message.display(),
        answer.display()
    );
    let mut stand_in = long.world.hermetic("timeout");
    let mut stand_in = stand_in.args(["60", "sh", "-c", &line]).spawn().unwrap();
    read_line(&long.world.outside("up"));
    while !answer.exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(
        std::fs::read_to_string(&answer)
            .unwrap()
            .contains("still running")
    );
    assert_eq!((long.runs(), long.owners()), (1, 1));
    signal(&stand_in, Signal::KILL);
    stand_in.wait().unwrap();
    let asked = Instant::now();
    while long.owners() > 0 {
        assert!(asked.elapsed() < Duration::from_secs(5), "still there");
        std::thread::sleep(Duration::from_millis(20));
    }
    let left = long.world.alive();
    assert!(
        left.iter().all(|command| !command.contains(" own ")),
        "{left:?}"
    );
}

/// Nobody reads its answer: it must not find out by itself what its owner no longer does.
#[test]
fn a_hook_ends_with_the_agent_that_waits_for_it() {
    let (reads, written) = std::io::pipe().unwrap();
    ends_with_its_agent(reads, written);
    // What agents that run on Node have instead of pipes.
    let (reads, written) = UnixStream::pair().unwrap();
    ends_with_its_agent(reads, OwnedFd::from(written));
}

/// An agent that reads its hook's answer here, written there.
fn ends_with_its_agent(reads: impl Sized, written: impl Into<Stdio>) {
    let long = Long::new("true");
    let message = long.world.outside("message");
    let stop = long.agent().stop_message(false, "Done.");
    std::fs::write(&message, stop.to_string()).unwrap();
    let line = format!(
        "$BIN hook claude-code --deadline 60 < '{}'; true",
        message.display()
    );
    let mut stand_in = long.world.hermetic("timeout");
    let stand_in = stand_in.args(["60", "sh", "-c", &line]).stdout(written);
    let mut started = stand_in.spawn().unwrap();
    // This process must not keep the end that is written to.
    stand_in.stdout(Stdio::null());
    read_line(&long.world.outside("up"));
    signal(&started, Signal::KILL);
    started.wait().unwrap();
    drop(reads);
    let killed = Instant::now();
    long.ended();
    assert!(killed.elapsed() < Duration::from_secs(5));
    assert_eq!(long.runs(), 1);
}

/// A second loss says that no process may outlive its hook here: then the check is cut, as ever.
#[test]
fn after_two_killed_owners_checks_are_cut_at_the_deadline() {
    let long = Long::new("true");
    for nth in 1..=2 {
        let hook = long.stopping(nth > 1);
        read_line(&long.world.outside("up"));
        long.answer(hook).sent_back();
        long.kill_owner();
        assert_eq!((long.runs(), long.owners()), (nth, nth));
    }
    let hook = long.stopping(true);
    read_line(&long.world.outside("up"));
    let told = long.answer(hook);
    assert!(
        told.sent_back().contains("cut: the answer was due"),
        "{told:?}"
    );
    assert_eq!(long.owners(), 2);
    gone(&long.world);
}

/// Whoever is killed, at whatever moment: nothing is left, no two runs overlap, and once nobody is killed
/// any more the task is judged. `CHECKREIN_KILLS=100` kills more often.
#[test]
fn killed_at_random_moments_nothing_is_lost_and_nothing_stays() {
    let world = World::new();
    let log = world.outside("log");
    let log = log.display();
    let check = format!("echo begins >> {log}; sleep 0.6; echo ends >> {log}");
    world.config(&format!(
        "[[verifier]]\nname = \"tests\"\ntimeout = \"30s\"\nrun = '''{check}'''\n"
    ));
    world.commit();
    let mut dice = Dice(0x0b5e);
    for n in 0..kills() {
        let mut agent = Agent::named(&world, "claude-code", &format!("session-{n}"));
        agent.extra = vec!["--deadline".to_owned(), "1".to_owned()];
        agent.prompt("mend it");
        world.write("work", &n.to_string());
        let message = agent.stop_message(false, "Done.").to_string();
        let hook = start(&mut agent.hook(), message.as_bytes());
        std::thread::sleep(Duration::from_millis(dice.below(1200)));
        match n % 3 {
            0 => signal(&hook, Signal::KILL),
            1 => signal(&hook, Signal::TERM),
            _ => drop(kill_owners(&world)),
        }
        hook.wait_with_output().unwrap();
        let until = Instant::now() + Duration::from_secs(30);
        while agent.stop() != Answer::Nothing {
            assert!(Instant::now() < until, "kill {n}: never judged");
        }
        assert_eq!(world.tasks()[0]["session"], agent.session.as_str());
        assert_eq!(world.ending(), "task_complete", "kill {n}");
        world.replays(&agent.session);
    }
    gone(&world);
    let mut open = false;
    for line in world.lines_outside("log") {
        // One that was killed does not say that it ends; but its whole tree was gone.
        assert!(open || line == "begins", "an end without a beginning");
        open = line == "begins";
    }
}

impl Long {
    /// Its one owner is lost.
    fn kill_owner(&self) {
        assert_eq!(kill_owners(&self.world), 1);
        gone(&self.world);
    }
}

/// As a container does that ends, or the system for lack of memory.
fn kill_owners(world: &World) -> usize {
    let state = world.state().display().to_string();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let owners: Vec<Pid> = processes
        .filter(|process| {
            let read = |name| std::fs::read(process.path().join(name)).unwrap_or_default();
            // Who keeps the tree of its check is a fork of it.
            let above = parent(&process.path()).unwrap_or_default();
            text(&read("environ")).contains(&state)
                && is_own(&text(&read("cmdline")))
                && !is_own(&above)
        })
        .filter_map(|process| Pid::from_raw(process.file_name().to_str()?.parse().ok()?))
        .collect();
    for owner in &owners {
        // It may have ended by itself.
        let _ = kill_process(*owner, Signal::KILL);
    }
    owners.len()
}

fn is_own(command: &str) -> bool {
    command.split('\0').nth(1) == Some("own")
}

/// The command line of the process above the one that this folder is of.
fn parent(process: &std::path::Path) -> Option<String> {
    let stat = std::fs::read_to_string(process.join("stat")).ok()?;
    let pid = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?;
    std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()
}
