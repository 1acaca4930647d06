//! No two runs of one check overlap, whatever they are about and however the one before ended.

use std::process::{Child, Stdio};
#[cfg(target_os = "linux")]
use std::time::Duration;

#[cfg(target_os = "linux")]
use rustix::process::{Pid, Signal, kill_process};

use crate::world::{World, read_line};
#[cfg(target_os = "linux")]
use crate::world::{gone, signal};

fn begun(world: &World) -> Child {
    let mut check = world.checkrein(&["check"]);
    check.stdin(Stdio::null()).stdout(Stdio::null());
    check.stderr(Stdio::null()).spawn().unwrap()
}

/// Two processes that ask about different trees want different verdicts of the same check.
#[test]
fn a_check_of_another_tree_waits_for_the_one_that_runs() {
    let world = World::new();
    let log = world.outside("log");
    let up = world.pipe("up");
    let log = log.display();
    let check = format!(
        "echo begins >> {log}; test -e first || {{ touch first; echo > {}; sleep 1; }}; echo ends >> {log}",
        up.display()
    );
    world.write(".gitignore", "first\n");
    world.config(&format!(
        "[[verifier]]\nname = \"tests\"\nrun = '''{check}'''\n"
    ));
    world.write("work", "1");
    world.commit();
    let mut first = begun(&world);
    read_line(&up);
    world.write("work", "2");
    let mut second = begun(&world);
    assert!(second.wait().unwrap().success());
    assert!(first.wait().unwrap().success());
    let lines = world.lines_outside("log");
    assert!(lines.len() >= 4, "{lines:?}");
    for run in lines.chunks(2) {
        assert_eq!(run, ["begins", "ends"], "{lines:?}");
    }
}

/// The claim on a check is free when its tree is gone, and not when who claimed it is.
#[cfg(target_os = "linux")]
#[test]
fn a_check_begins_when_the_tree_of_a_killed_one_is_gone() {
    let world = World::new();
    let (up, runs) = (world.pipe("up"), world.outside("runs"));
    let check = format!(
        "echo begins >> {}; test -e first && exit 0\n\
         touch first; echo $PPID > {}; sleep 60",
        runs.display(),
        up.display()
    );
    world.write(".gitignore", "first\n");
    world.config(&format!(
        "[[verifier]]\nname = \"tests\"\nrun = '''{check}'''\n"
    ));
    world.commit();
    let mut first = begun(&world);
    let keeper = read_line(&up).trim().parse().ok().and_then(Pid::from_raw);
    let keeper = keeper.expect("the number of a process");
    let mut second = begun(&world);
    // Who keeps the tree comes to nothing for a while, as on a machine that is busy.
    kill_process(keeper, Signal::STOP).unwrap();
    signal(&first, Signal::KILL);
    first.wait().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(world.runs("runs"), 1);
    kill_process(keeper, Signal::CONT).unwrap();
    assert!(second.wait().unwrap().success());
    assert_eq!(world.runs("runs"), 2);
    gone(&world);
}
