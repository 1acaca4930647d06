//! `bench hook`: measures the round trip of a hook as a whole process, beside `/bin/true`, `node -e
//! 0` and `codex execpolicy check`: in a short session, in a long one, and eight hooks at once.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::bench_repo::BenchRepo;
use super::comparison::{BenchmarkedProgram, TimingSamples, time_contestants_in_turn};
use super::{
    AtMostOrAtLeastBound, BASELINE_SUFFIX, BenchMeasurementWithGoal, BenchOptions, BuildProfile,
    ratio_to_baseline_row,
};

/// A message for people.
pub(crate) type BenchError = String;

/// Hooks of one session that start at the same moment.
const AT_ONCE: usize = 8;

const SHORT: &str = "second-event";
const LONG: &str = "long-session";
const CROWD: &str = "eight-at-once";

const SECOND: &str = "checkrein hook, from the second event";
const LATE: &str = "checkrein hook, late in the long session";
const FIRST_OF_SESSION: &str = "checkrein hook, first of a session";
const FIRST_OF_STORE: &str = "checkrein hook, first of a store";

/// Runs the bench.
pub(super) fn bench_hook(
    binary: &Path,
    options: &BenchOptions,
) -> Result<Vec<BenchMeasurementWithGoal>, BenchError> {
    let scene = BenchRepo::new(binary)?;
    assert_hook_denies_command(&scene)?;
    // A dev build measures nothing; a short session shows that the bench works.
    let events_wanted = options
        .events
        .unwrap_or(if options.profile == BuildProfile::Dev {
            100
        } else {
            10_000
        });
    let filled = fill_bench_session(&scene, events_wanted)?;
    run_hooks_of_first_call(&scene, SHORT)?;
    let (_, events) = scene.recorded_input_and_event_counts(LONG)?;
    println!("the long session has {events} events");

    // The baseline has a repo and a store of its own, filled to the same length.
    let before = options.beside.as_deref().map(BenchRepo::new).transpose()?;
    if let Some(before) = &before {
        fill_bench_session(before, events_wanted)?;
        run_hooks_of_first_call(before, SHORT)?;
    }
    let (codex, rules) = (find_codex(), scene.bench_rules_path());
    let mut contestants = vec![BenchmarkedProgram::new("/bin/true", |_| {
        Ok(new_command_without_stdin("/bin/true"))
    })];
    contestants.extend(hook_bench_contestants(&scene, filled, ""));
    if let Some(before) = &before {
        contestants.extend(hook_bench_contestants(before, filled, BASELINE_SUFFIX));
    }
    let rules = rules.as_path();
    match codex.as_ref() {
        Some(codex) => contestants.push(
            BenchmarkedProgram::new("codex execpolicy check", move |n| {
                let mut command = new_command_without_stdin(codex.as_path());
                command.args(["execpolicy", "check", "--rules"]).arg(rules);
                command.args(["--", "rg", "-n", &format!("name_{n}"), "src"]);
                Ok(command)
            })
            .with_any_exit_code_allowed(),
        ),
        None => println!("codex: not found on PATH or by CODEX_BIN; its row is left out"),
    }
    if can_run_program("node", "--version") {
        contestants.push(BenchmarkedProgram::new("node -e 0", |_| {
            let mut command = new_command_without_stdin("node");
            command.args(["-e", "0"]);
            Ok(command)
        }));
    } else {
        println!("node: not found; its row is left out");
    }
    let times = time_contestants_in_turn(&mut contestants, options.runs)?;
    drop(contestants);
    // A round starts eight hooks, so a quarter of the runs gives twice as many times.
    let crowd = time_concurrent_hooks(&scene, options.runs.div_ceil(4))?;

    println!(
        "{} timed runs each, interleaved; stdin is a file, stdout is not read\n",
        options.runs
    );
    println!("{}", TimingSamples::bench_times_heading());
    for times in times.iter().chain([&crowd.times]) {
        println!("{}", times.bench_times_row());
    }
    let of = |name: &str| times.iter().find(|times| times.name == name).cloned();
    let median = |name: &str| of(name).map(|times| times.median_ms());
    let (Some(truth), Some(hook), Some(after)) =
        (median("/bin/true"), median(SECOND), median(LATE))
    else {
        return Err("a contestant is missing".to_owned());
    };
    let mut targets = vec![BenchMeasurementWithGoal::new(
        "hook over /bin/true, median",
        hook - truth,
        AtMostOrAtLeastBound::AtMost(5.0),
        "ms",
    )];
    if let Some(codex) = median("codex execpolicy check") {
        targets.push(BenchMeasurementWithGoal::new(
            "hook / codex execpolicy check",
            hook / codex,
            AtMostOrAtLeastBound::AtMost(0.2),
            "x",
        ));
    }
    if let Some(node) = median("node -e 0") {
        targets.push(BenchMeasurementWithGoal::new(
            "hook / node -e 0",
            hook / node,
            AtMostOrAtLeastBound::AtMost(1.0 / 3.0),
            "x",
        ));
    }
    let growth = (after / hook - 1.0) * 100.0;
    targets.push(BenchMeasurementWithGoal::new(
        format!("hook after {events} events, more than at first"),
        growth,
        AtMostOrAtLeastBound::AtMost(20.0),
        "%",
    ));
    for name in [FIRST_OF_SESSION, FIRST_OF_STORE] {
        targets.extend(median(name).map(|first| {
            BenchMeasurementWithGoal::new(name, first, AtMostOrAtLeastBound::AtMost(50.0), "ms")
        }));
    }
    // Each row is compared with the baseline's row of the same name, where there is one.
    targets.extend(times.iter().filter_map(|times| {
        ratio_to_baseline_row(times, median(&format!("{}{BASELINE_SUFFIX}", times.name))?)
    }));
    targets.push(BenchMeasurementWithGoal::new(
        "eight hooks of one session at once, p99",
        crowd.times.p99_ms(),
        AtMostOrAtLeastBound::AtMost(25.0),
        "ms",
    ));
    // A lost event is a failure of the product on any machine.
    let mut lost = BenchMeasurementWithGoal::new(
        format!("eight at once: events lost of {}", crowd.sent),
        crowd.lost as f64,
        AtMostOrAtLeastBound::AtMost(0.0),
        "lost",
    );
    lost.essential = true;
    targets.push(lost);
    Ok(targets)
}

/// Returns the contestants of one program, in its own repo and store.
fn hook_bench_contestants<'a>(
    scene: &'a BenchRepo,
    filled: usize,
    whose: &str,
) -> Vec<BenchmarkedProgram<'a>> {
    let name = |row: &str| format!("{row}{whose}");
    vec![
        // The result follows each request, not timed: otherwise calls without an end would pile up
        // in the session.
        BenchmarkedProgram::new(name(SECOND), |n| {
            scene.hook_command_for_bench(&scene.write_tool_request_hook_payload(SHORT, n + 1)?)
        })
        .with_action_after_bench_run(|n| {
            scene.run_untimed_bench_hook(&scene.write_tool_result_hook_payload(SHORT, n + 1)?)
        }),
        // The log has the calls below `filled` already.
        BenchmarkedProgram::new(name(LATE), move |n| {
            scene.hook_command_for_bench(&scene.write_tool_request_hook_payload(LONG, filled + n)?)
        })
        .with_action_after_bench_run(move |n| {
            scene.run_untimed_bench_hook(&scene.write_tool_result_hook_payload(LONG, filled + n)?)
        }),
        BenchmarkedProgram::new(name(FIRST_OF_SESSION), |n| {
            scene.hook_command_for_bench(
                &scene.write_tool_request_hook_payload(&format!("first-{n}"), 0)?,
            )
        }),
        // A state folder that does not exist yet: creating the store is part of what is timed.
        BenchmarkedProgram::new(name(FIRST_OF_STORE), |n| {
            let mut command = scene.hook_command_for_bench(
                &scene.write_tool_request_hook_payload(&format!("virgin-{n}"), 0)?,
            )?;
            command.env(
                "CHECKREIN_STATE",
                scene.path_in_bench_repo(&format!("virgin-{n}")),
            );
            Ok(command)
        }),
    ]
}

/// Checks that the policy is in force: a quick hook that judges nothing would prove nothing.
fn assert_hook_denies_command(scene: &BenchRepo) -> Result<(), BenchError> {
    let payload = scene.write_tool_request_hook_payload("gate", 0)?;
    let text = std::fs::read_to_string(&payload).map_err(|error| error.to_string())?;
    // The forbidden command comes last, behind a pipe and `&&`, where only a hook that parses the
    // shell grammar finds it.
    let text = text.replace("git status --short", "rm -rf x");
    std::fs::write(&payload, text).map_err(|error| error.to_string())?;
    let output = scene
        .hook_command_for_bench(&payload)?
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

fn run_hooks_of_first_call(scene: &BenchRepo, session: &str) -> Result<(), BenchError> {
    scene.run_untimed_bench_hook(&scene.write_tool_request_hook_payload(session, 0)?)?;
    scene.run_untimed_bench_hook(&scene.write_tool_result_hook_payload(session, 0)?)
}

/// Adds tool calls with their results until the session has about this many events, each by a hook
/// of its own. Returns the number of calls.
fn fill_bench_session(scene: &BenchRepo, events: usize) -> Result<usize, BenchError> {
    run_hooks_of_first_call(scene, LONG)?;
    // Three events per call: the request, its decision and the result.
    let calls = events.div_ceil(3);
    let next = AtomicUsize::new(1);
    let work = || -> Result<(), BenchError> {
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= calls {
                return Ok(());
            }
            scene.run_untimed_bench_hook(&scene.write_tool_request_hook_payload(LONG, n)?)?;
            scene.run_untimed_bench_hook(&scene.write_tool_result_hook_payload(LONG, n)?)?;
        }
    };
    // Four at a time: only the number of events matters, not their order.
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().map_err(|_| "a worker panicked".to_owned())?)
    })?;
    Ok(calls)
}

struct ConcurrentHookTimes {
    times: TimingSamples,
    sent: usize,
    lost: usize,
}

/// Starts eight hooks at the same moment, round after round, and times each on its own.
fn time_concurrent_hooks(
    scene: &BenchRepo,
    rounds: usize,
) -> Result<ConcurrentHookTimes, BenchError> {
    run_hooks_of_first_call(scene, CROWD)?;
    // Inputs are counted, not events: each hook delivers exactly one, whatever follows from it.
    let before = scene.recorded_input_and_event_counts(CROWD)?.0;
    let mut wall: Vec<Duration> = Vec::new();
    for round in 0..rounds {
        let hooks: Vec<Command> = (0..AT_ONCE)
            .map(|n| {
                scene.hook_command_for_bench(
                    &scene.write_tool_request_hook_payload(CROWD, 1 + round * AT_ONCE + n)?,
                )
            })
            .collect::<Result<_, _>>()?;
        // Holds all threads until the last is ready; otherwise the hooks would start as fast as
        // threads are spawned, one after the other.
        let start = Barrier::new(AT_ONCE);
        let round: Result<Vec<Duration>, BenchError> = std::thread::scope(|scope| {
            let running: Vec<_> = hooks
                .into_iter()
                .map(|mut hook| {
                    let start = &start;
                    scope.spawn(move || -> Result<Duration, BenchError> {
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
    let arrived =
        usize::try_from(scene.recorded_input_and_event_counts(CROWD)?.0 - before).unwrap_or(0);
    let times = TimingSamples::samples_from_wall_times("checkrein hook, eight at once", wall);
    Ok(ConcurrentHookTimes {
        times,
        sent,
        // Too many are as wrong as too few: then one was recorded twice.
        lost: sent.abs_diff(arrived),
    })
}

fn new_command_without_stdin(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}

fn can_run_program(program: &str, argument: &str) -> bool {
    let mut command = new_command_without_stdin(program);
    command
        .arg(argument)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Returns Codex as `CODEX_BIN` names it, else from `PATH`.
pub(super) fn find_codex() -> Option<PathBuf> {
    let named = std::env::var_os("CODEX_BIN")
        .map(PathBuf::from)
        .filter(|file| file.is_file());
    named.or_else(|| can_run_program("codex", "--version").then(|| PathBuf::from("codex")))
}
