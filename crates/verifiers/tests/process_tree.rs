//! A check owns its tree: nothing of it outlives it, however it left its group, its session,
//! its parent or its environment, and whoever is killed first. Deaths are shown by pidfds.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
#![cfg(target_os = "linux")]

mod world;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use checkrein_core::evidence::{InconclusiveCause, Verdict};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use world::VerifierFixture;

/// Starts processes that leave in every way we know, tells the pipe `ready` their numbers and that of
/// the shell that runs it, then ends. Each line: a word, a process number.
const LEAVERS: &str = r#"
exec 3> ready
echo check $PPID >&3
sleep 3600 & echo child $! >&3
setsid sh -c 'echo session $$ >&3; exec sleep 3601' &
(setsid sh -c '(sleep 3602 & echo daemon $! >&3)' &)
(env -i setsid sh -c '(PATH=/usr/bin:/bin; sleep 3603 & echo nameless $! >&3)' &)
(setsid nohup sh -c 'trap "" TERM HUP INT; echo deaf $$ >&3; while true; do sleep 3604; done' > /dev/null 2>&1 &)
exec 3>&-
"#;
const LEAVERS_NUMBER: usize = 6;

fn alive(process: &OwnedFd, milliseconds: i64) -> bool {
    let timeout = Timespec {
        tv_sec: milliseconds / 1000,
        tv_nsec: milliseconds % 1000 * 1_000_000,
    };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&timeout)).unwrap() == 0
}

/// Reads the numbers out of the pipe: each process is alive at that moment.
fn leavers(world: &VerifierFixture) -> BTreeMap<String, OwnedFd> {
    let pipe = BufReader::new(std::fs::File::open(world.path("ready")).unwrap());
    pipe.lines()
        .take(LEAVERS_NUMBER)
        .map(|line| {
            let line = line.unwrap();
            let (word, number) = line.split_once(' ').unwrap();
            let pid = Pid::from_raw(number.parse().unwrap()).unwrap();
            let process = pidfd_open(pid, PidfdFlags::empty()).unwrap();
            assert!(alive(&process, 0), "{word} died too early");
            (word.to_owned(), process)
        })
        .collect()
}

fn all_dead(leavers: &BTreeMap<String, OwnedFd>, milliseconds: i64) {
    assert_eq!(leavers.len(), LEAVERS_NUMBER, "{:?}", leavers.keys());
    let living: Vec<_> = leavers
        .iter()
        .filter(|(_, process)| alive(process, milliseconds))
        .map(|(w, _)| w)
        .collect();
    assert!(living.is_empty(), "still alive: {living:?}");
}

fn world() -> VerifierFixture {
    let world = VerifierFixture::new();
    let ready = world.path("ready");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &ready, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    world.write("leave.sh", LEAVERS);
    world
}

#[test]
fn a_check_that_forks_and_hangs_dies_with_all_that_it_started() {
    let world = world();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| world.run("sh leave.sh; sleep 3605"));
        let leavers = leavers(&world);
        world.cancelled.store(true, Ordering::Relaxed);
        assert_eq!(running.join().unwrap().verdict, Verdict::Inconclusive);
        // `verify` came back, so they are dead already: nothing to wait for.
        all_dead(&leavers, 0);
    });
}

#[test]
fn what_a_check_leaves_behind_dies_when_it_ends_by_itself() {
    let world = world();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| world.run("sh leave.sh; read go < go; exit 4"));
        // It waits for `go`, so that the numbers are still those of living processes.
        let leavers = {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            let go = world.path("go");
            let _ = rustix::fs::mknodat(rustix::fs::CWD, &go, rustix::fs::FileType::Fifo, mode, 0);
            leavers(&world)
        };
        std::fs::write(world.path("go"), "\n").unwrap();
        let report = running.join().unwrap();
        assert_eq!((report.verdict, report.exit_code), (Verdict::Fail, Some(4)));
        all_dead(&leavers, 0);
    });
}

/// The keeper is the check's parent, and the check runs as the same user.
#[test]
fn a_check_that_kills_its_subreaper_gains_nothing() {
    let world = VerifierFixture::new();
    let report = world.run(
        "setsid sleep 3606 & echo $! > left; setsid sh -c 'sleep 3607 & echo $! > daemon'; kill -9 $PPID; sleep 3608",
    );
    assert_eq!(
        (report.verdict, report.cause),
        (Verdict::Inconclusive, Some(InconclusiveCause::Crash))
    );
    for name in ["left", "daemon"] {
        let number = std::fs::read_to_string(world.path(name)).unwrap();
        assert!(gone(number.trim()), "{name} {number}");
    }
}

/// Not there, or not reaped yet by whoever inherited it.
fn gone(number: &str) -> bool {
    match std::fs::read_to_string(format!("/proc/{number}/stat")) {
        Ok(stat) => stat
            .rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with('Z')),
        Err(_) => true,
    }
}

/// `kill -9` of the process that runs the check: a hook that its agent has lost patience with.
#[test]
fn nothing_survives_our_own_violent_death() {
    let world = world();
    let mut host = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "host_of_a_hanging_check", "--ignored"])
        .env("HOST_ROOT", world.root())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let leavers = leavers(&world);
    host.kill().unwrap();
    host.wait().unwrap();
    all_dead(&leavers, 20_000);
}

#[test]
#[ignore = "run by `nothing_survives_our_own_violent_death` in a process of its own"]
fn host_of_a_hanging_check() {
    let Some(root) = std::env::var_os("HOST_ROOT") else {
        return;
    };
    let world = VerifierFixture::new();
    world.run(&format!(
        "cd '{}' && sh leave.sh; sleep 3609",
        root.to_str().unwrap()
    ));
}

#[test]
fn a_process_beside_it_is_left_alone() {
    let world = VerifierFixture::new();
    let mut bystander = Command::new("sleep").arg("3610").spawn().unwrap();
    assert_eq!(
        world.run("sleep 3611 & kill 0; exit 1").verdict,
        Verdict::Inconclusive
    );
    assert_eq!(bystander.try_wait().unwrap(), None);
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}
