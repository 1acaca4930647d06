//! `bench hook`: the round trip of a hook, whole process, beside `/bin/true`, `node -e 0`
//! and `codex execpolicy check`; in a short and in a long session, and eight at once.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::contest::{Contestant, Times, interleave};
use super::scene::Scene;
use super::{BEFORE, Bound, Options, Profile, Target, no_slower};

/// For people.
pub(crate) type Failure = String;

/// Hooks of one session at the same moment.
const AT_ONCE: usize = 8;

const SHORT: &str = "second-event";
const LONG: &str = "long-session";
const CROWD: &str = "eight-at-once";

const SECOND: &str = "checkrein hook, from the second event";
const LATE: &str = "checkrein hook, late in the long session";
const FIRST_OF_SESSION: &str = "checkrein hook, first of a session";
const FIRST_OF_STORE: &str = "checkrein hook, first of a store";

/// The bench.
pub(super) fn run(binary: &Path, options: &Options) -> Result<Vec<Target>, Failure> {
    let scene = Scene::new(binary)?;
    assert_gated(&scene)?;
    let events_wanted = options
        .events
        .unwrap_or(if options.profile == Profile::Dev {
            100
        } else {
            10_000
        });
    let filled = fill(&scene, events_wanted)?;
    open(&scene, SHORT)?;
    let (_, events) = scene.recorded(LONG)?;
    println!("the long session has {events} events");

    let before = options.beside.as_deref().map(Scene::new).transpose()?;
    if let Some(before) = &before {
        fill(before, events_wanted)?;
        open(before, SHORT)?;
    }
    let (codex, rules) = (codex(), scene.rules());
    let mut contestants = vec![Contestant::new("/bin/true", |_| Ok(quiet("/bin/true")))];
    contestants.extend(hooks(&scene, filled, ""));
    if let Some(before) = &before {
        contestants.extend(hooks(before, filled, BEFORE));
    }
    let rules = rules.as_path();
    match codex.as_ref() {
        Some(codex) => contestants.push(
            Contestant::new("codex execpolicy check", move |n| {
                let mut command = quiet(codex.as_path());
                command.args(["execpolicy", "check", "--rules"]).arg(rules);
                command.args(["--", "rg", "-n", &format!("name_{n}"), "src"]);
                Ok(command)
            })
            .any_exit(),
        ),
        None => println!("codex: not found on PATH or by CODEX_BIN; its row is left out"),
    }
    if runs("node", "--version") {
        contestants.push(Contestant::new("node -e 0", |_| {
            let mut command = quiet("node");
            command.args(["-e", "0"]);
            Ok(command)
        }));
    } else {
        println!("node: not found; its row is left out");
    }
    let times = interleave(&mut contestants, options.runs)?;
    drop(contestants);
    let crowd = at_once(&scene, options.runs.div_ceil(4))?;

    println!(
        "{} timed runs each, interleaved; stdin is a file, stdout is not read\n",
        options.runs
    );
    println!("{}", Times::heading());
    for times in times.iter().chain([&crowd.times]) {
        println!("{}", times.line());
    }
    let of = |name: &str| times.iter().find(|times| times.name == name).cloned();
    let median = |name: &str| of(name).map(|times| times.median());
    let (Some(truth), Some(hook), Some(after)) =
        (median("/bin/true"), median(SECOND), median(LATE))
    else {
        return Err("a contestant is missing".to_owned());
    };
    let mut targets = vec![Target::new(
        "hook over /bin/true, median",
        hook - truth,
        Bound::AtMost(5.0),
        "ms",
    )];
    if let Some(codex) = median("codex execpolicy check") {
        targets.push(Target::new(
            "hook / codex execpolicy check",
            hook / codex,
            Bound::AtMost(0.2),
            "x",
        ));
    }
    if let Some(node) = median("node -e 0") {
        targets.push(Target::new(
            "hook / node -e 0",
            hook / node,
            Bound::AtMost(1.0 / 3.0),
            "x",
        ));
    }
    let growth = (after / hook - 1.0) * 100.0;
    targets.push(Target::new(
        format!("hook after {events} events, more than at first"),
        growth,
        Bound::AtMost(20.0),
        "%",
    ));
    for name in [FIRST_OF_SESSION, FIRST_OF_STORE] {
        targets
            .extend(median(name).map(|first| Target::new(name, first, Bound::AtMost(50.0), "ms")));
    }
    targets.extend(
        times
            .iter()
            .filter_map(|times| no_slower(times, median(&format!("{}{BEFORE}", times.name))?)),
    );
    targets.push(Target::new(
        "eight hooks of one session at once, p99",
        crowd.times.p99(),
        Bound::AtMost(25.0),
        "ms",
    ));
    let mut lost = Target::new(
        format!("eight at once: events lost of {}", crowd.sent),
        crowd.lost as f64,
        Bound::AtMost(0.0),
        "lost",
    );
    lost.essential = true;
    targets.push(lost);
    Ok(targets)
}

/// The rows of one program, in its own repo and store.
fn hooks<'a>(scene: &'a Scene, filled: usize, whose: &str) -> Vec<Contestant<'a>> {
    let name = |row: &str| format!("{row}{whose}");
    vec![
        Contestant::new(name(SECOND), |n| scene.hook(&scene.before(SHORT, n + 1)?))
            .after(|n| scene.call(&scene.result(SHORT, n + 1)?)),
        Contestant::new(name(LATE), move |n| {
            scene.hook(&scene.before(LONG, filled + n)?)
        })
        .after(move |n| scene.call(&scene.result(LONG, filled + n)?)),
        Contestant::new(name(FIRST_OF_SESSION), |n| {
            scene.hook(&scene.before(&format!("first-{n}"), 0)?)
        }),
        Contestant::new(name(FIRST_OF_STORE), |n| {
            let mut command = scene.hook(&scene.before(&format!("virgin-{n}"), 0)?)?;
            command.env("CHECKREIN_STATE", scene.path(&format!("virgin-{n}")));
            Ok(command)
        }),
    ]
}

/// A quick hook that judges nothing would be no feat.
fn assert_gated(scene: &Scene) -> Result<(), Failure> {
    let payload = scene.before("gate", 0)?;
    let text = std::fs::read_to_string(&payload).map_err(|error| error.to_string())?;
    let text = text.replace("git status --short", "rm -rf x");
    std::fs::write(&payload, text).map_err(|error| error.to_string())?;
    let output = scene
        .hook(&payload)?
        .output()
        .map_err(|error| format!("checkrein hook: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    if said.contains("\"deny\"") && said.contains("use trash") {
        Ok(())
    } else {
        Err(format!(
            "the bench's policy is not in force: a forbidden command was answered '{said}'"
        ))
    }
}

fn open(scene: &Scene, session: &str) -> Result<(), Failure> {
    scene.call(&scene.before(session, 0)?)?;
    scene.call(&scene.result(session, 0)?)
}

/// Tool calls with their results until the session has so many events, by as many hooks.
/// Answers how many calls.
fn fill(scene: &Scene, events: usize) -> Result<usize, Failure> {
    open(scene, LONG)?;
    // The request, its decision and the result.
    let calls = events.div_ceil(3);
    let next = AtomicUsize::new(1);
    let work = || -> Result<(), Failure> {
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= calls {
                return Ok(());
            }
            scene.call(&scene.before(LONG, n)?)?;
            scene.call(&scene.result(LONG, n)?)?;
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().map_err(|_| "a worker panicked".to_owned())?)
    })?;
    Ok(calls)
}

struct Crowd {
    times: Times,
    sent: usize,
    lost: usize,
}

/// Eight at the same moment, again and again; each is timed on its own.
fn at_once(scene: &Scene, rounds: usize) -> Result<Crowd, Failure> {
    open(scene, CROWD)?;
    let before = scene.recorded(CROWD)?.0;
    let mut wall: Vec<Duration> = Vec::new();
    for round in 0..rounds {
        let hooks: Vec<Command> = (0..AT_ONCE)
            .map(|n| scene.hook(&scene.before(CROWD, 1 + round * AT_ONCE + n)?))
            .collect::<Result<_, _>>()?;
        let start = Barrier::new(AT_ONCE);
        let round: Result<Vec<Duration>, Failure> = std::thread::scope(|scope| {
            let running: Vec<_> = hooks
                .into_iter()
                .map(|mut hook| {
                    let start = &start;
                    scope.spawn(move || -> Result<Duration, Failure> {
                        hook.stdout(Stdio::null()).stderr(Stdio::null());
                        start.wait();
                        let began = Instant::now();
                        let status = hook
                            .status()
                            .map_err(|error| format!("checkrein hook: {error}"))?;
                        let took = began.elapsed();
                        if status.success() {
                            Ok(took)
                        } else {
                            Err(format!("checkrein hook: {status}"))
                        }
                    })
                })
                .collect();
            running
                .into_iter()
                .map(|hook| hook.join().map_err(|_| "a thread panicked".to_owned())?)
                .collect()
        });
        wall.extend(round?);
    }
    let sent = rounds * AT_ONCE;
    let arrived = usize::try_from(scene.recorded(CROWD)?.0 - before).unwrap_or(0);
    let times = Times::of("checkrein hook, eight at once", wall);
    Ok(Crowd {
        times,
        sent,
        lost: sent.abs_diff(arrived),
    })
}

fn quiet(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}

fn runs(program: &str, argument: &str) -> bool {
    let mut command = quiet(program);
    command
        .arg(argument)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// By `CODEX_BIN`, else on PATH.
pub(super) fn codex() -> Option<PathBuf> {
    let named = std::env::var_os("CODEX_BIN")
        .map(PathBuf::from)
        .filter(|file| file.is_file());
    named.or_else(|| runs("codex", "--version").then(|| PathBuf::from("codex")))
}
