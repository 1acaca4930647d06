//! Command verifiers with real processes: verdicts, output, environment, floods.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
#![cfg(unix)]

mod world;

use std::time::{Duration, Instant};

use checkrein_core::evidence::{CheckRetryability, InconclusiveCause, Verdict};
use world::{VerifierFixture, verdict};

const PASS: (
    Verdict,
    Option<InconclusiveCause>,
    Option<i32>,
    CheckRetryability,
) = (Verdict::Pass, None, Some(0), CheckRetryability::Yes);

fn fail(
    code: i32,
) -> (
    Verdict,
    Option<InconclusiveCause>,
    Option<i32>,
    CheckRetryability,
) {
    (Verdict::Fail, None, Some(code), CheckRetryability::Yes)
}

fn unsure(
    cause: InconclusiveCause,
    code: impl Into<Option<i32>>,
    retryable: CheckRetryability,
) -> (
    Verdict,
    Option<InconclusiveCause>,
    Option<i32>,
    CheckRetryability,
) {
    (Verdict::Inconclusive, Some(cause), code.into(), retryable)
}

#[test]
fn verdicts() {
    use CheckRetryability::{No, Yes};
    use InconclusiveCause::{Crash, MissingProgram, VacuousPass};
    let world = VerifierFixture::new();
    world.write("not-executable.sh", "exit 0\n");
    let check = |run: &str, expected| {
        let report = world.run(run);
        assert_eq!(verdict(&report), expected, "{run}: {report:?}");
    };
    check("true", PASS);
    check("test -d .", PASS);
    check("false", fail(1));
    check("exit 3", fail(3));
    check("true && false", fail(1));
    // By a signal: directly, and as a shell tells it.
    check("kill -SEGV $$", unsure(Crash, None, Yes));
    check(
        "(kill -ABRT $$ ) ; sh -c 'kill -SEGV $$' ; exit $?",
        unsure(Crash, None, Yes),
    );
    check("sh -c 'kill -SEGV $$' ; exit $?", unsure(Crash, 139, Yes));
    // Missing: on this machine, or in the tree, where an edit can bring it back.
    check("no-such-program-1 --all", unsure(MissingProgram, None, No));
    check("no-such-program-1 && true", unsure(MissingProgram, 127, No));
    check("./gone.sh", unsure(MissingProgram, None, Yes));
    check("./not-executable.sh", unsure(MissingProgram, None, Yes));
    check(
        "./gone.sh | cat; exit 127",
        unsure(MissingProgram, 127, Yes),
    );
    for (run, named) in [
        (
            "no-such-program-1 --all",
            "'no-such-program-1' is not installed, or misspelt in run",
        ),
        (
            "no-such-program-1 && true",
            "'no-such-program-1' is not installed, or misspelt in run",
        ),
        ("./gone.sh", "'./gone.sh' is not there, or misspelt in run"),
        ("./not-executable.sh", "cannot run './not-executable.sh': "),
    ] {
        let excerpt = world.run(run).excerpt;
        assert!(excerpt.contains(named), "{run}: {excerpt}");
    }
    // What a script of the check's own misses is a failure of the check.
    check("sh -c no-such-program-1 2>/dev/null; exit 127", fail(127));
    check("exit 127", fail(127));
    // Nothing ran, or its failure was masked.
    check(
        "echo 'test result: ok. 0 passed; 0 failed; 0 ignored'",
        unsure(VacuousPass, 0, Yes),
    );
    check(
        "echo 'test result: ok. 2 passed; 0 failed; 0 ignored'",
        PASS,
    );
    check(
        "echo '= 1 failed, 2 passed in 0.12s =' | tee out",
        unsure(VacuousPass, 0, Yes),
    );
    check("echo '= 1 failed, 2 passed in 0.12s ='; exit 1", fail(1));
    check(
        "echo 'no tests ran in 0.01s'; exit 5",
        unsure(VacuousPass, 5, Yes),
    );
    check("echo '2 passed in 0.01s'; exit 5", fail(5));
}

#[test]
fn runs_end_at_timeout_deadline_or_cancellation() {
    let check = |world: &VerifierFixture, run: &str, expected| {
        let started = Instant::now();
        assert_eq!(verdict(&world.run(run)), expected);
        // The hour that it asked for did not pass.
        assert!(started.elapsed() < Duration::from_secs(30));
    };
    let mut world = VerifierFixture::new();
    world.timeout_ms = 50;
    check(
        &world,
        "sleep 3600",
        unsure(InconclusiveCause::Timeout, None, CheckRetryability::Yes),
    );
    check(
        &world,
        "trap '' TERM INT HUP; while true; do sleep 3600; done",
        unsure(InconclusiveCause::Timeout, None, CheckRetryability::Yes),
    );

    let mut world = VerifierFixture::new();
    world.deadline = Some(Instant::now() + Duration::from_millis(50));
    check(
        &world,
        "sleep 3600",
        unsure(
            InconclusiveCause::ReplyDeadline,
            None,
            CheckRetryability::Yes,
        ),
    );
    // Over before it began: not started at all.
    check(
        &world,
        "touch ran",
        unsure(
            InconclusiveCause::ReplyDeadline,
            None,
            CheckRetryability::Yes,
        ),
    );
    assert!(!world.path("ran").exists());

    let world = VerifierFixture::new();
    world
        .cancelled
        .store(true, std::sync::atomic::Ordering::Relaxed);
    check(
        &world,
        "touch ran",
        unsure(
            InconclusiveCause::ReplyDeadline,
            None,
            CheckRetryability::Yes,
        ),
    );
    assert!(!world.path("ran").exists());
}

#[test]
fn output_is_merged_in_order_and_kept() {
    let world = VerifierFixture::new();
    let run = r"printf '\033[31mone\033[0m\n'; echo two >&2; echo three; exit 1";
    let report = world.run(run);
    assert_eq!(report.excerpt, "one\ntwo\nthree\n");
    assert_eq!(report.command.as_deref(), Some(run));
    let log = report.log.unwrap();
    assert!(
        log.starts_with(".checkrein/logs/tests-") && log.ends_with(".log"),
        "{log}"
    );
    let kept = std::fs::read(world.path(&log)).unwrap();
    assert_eq!(kept, b"\x1b[31mone\x1b[0m\ntwo\nthree\n");
    assert_eq!(report.output_bytes, kept.len() as u64);

    let silent = world.run("true");
    assert_eq!((silent.log, silent.excerpt.as_str()), (None, ""));
    assert_ne!(world.run("echo a").log, world.run("echo a").log);
}

#[test]
fn findings_go_with_a_failure_and_not_with_a_pass() {
    let world = VerifierFixture::new();
    world.write("src/a.py", "");
    let line = "src/a.py:3:1: E501 too long";
    let failed = world.run(&format!("echo '{line}'; exit 1"));
    assert_eq!(failed.findings.len(), 1);
    assert_eq!(failed.findings[0].file.as_deref(), Some("src/a.py"));
    let passed = world.run(&format!("echo '{line}'"));
    assert_eq!((passed.findings, passed.findings_total), (vec![], 0));
}

#[test]
fn provider_keys_are_withheld_unless_named() {
    let mut world = VerifierFixture::new();
    for name in [
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "CHECKREIN_STATE",
        "ORDINARY",
    ] {
        world.env.insert(name.into(), "secret".into());
    }
    let run = r#"echo "${OPENAI_API_KEY-unset} ${CHECKREIN_STATE-unset} ${ORDINARY-unset}"; echo set OPENAI_API_KEY; exit 1"#;
    let report = world.run(run);
    assert!(
        report.excerpt.starts_with("unset unset secret\n"),
        "{}",
        report.excerpt
    );
    assert_eq!(report.stripped, ["OPENAI_API_KEY"]);

    let definition = serde_json::json!({ "run": run, "env": ["OPENAI_API_KEY"] }).to_string();
    let report = world.verify("command", &definition);
    assert!(
        report.excerpt.starts_with("secret unset secret\n"),
        "{}",
        report.excerpt
    );
    assert_eq!(report.stripped, Vec::<String>::new());
}

#[test]
fn a_check_sees_no_terminal_and_an_empty_stdin() {
    let world = VerifierFixture::new();
    assert_eq!(
        verdict(&world.run("cat; test ! -e /dev/tty || ! (: < /dev/tty) 2>/dev/null")),
        PASS
    );
}

#[test]
fn a_gigabyte_of_output_ends_rightly() {
    let world = VerifierFixture::new();
    let line = "all work and no play makes this a very long output that nobody will ever read";
    let report = world.run(&format!(
        "yes '{line}' | head -c 1073741824; echo; echo last words; exit 1"
    ));
    assert_eq!(verdict(&report), fail(1));
    assert_eq!(report.output_bytes, 1_073_741_824 + 12);
    assert!(report.excerpt.len() <= 16 * 1024);
    assert!(report.excerpt.starts_with(line) && report.excerpt.ends_with("\nlast words\n"));
    let log = std::fs::metadata(world.path(&report.log.unwrap())).unwrap();
    assert!(
        (32 << 20..64 << 20).contains(&log.len()),
        "{} bytes",
        log.len()
    );
}

#[test]
fn a_flood_without_end_is_cut() {
    let mut world = VerifierFixture::new();
    world.timeout_ms = 300;
    let report = world.run("cat /dev/zero");
    assert_eq!(
        verdict(&report),
        unsure(InconclusiveCause::Timeout, None, CheckRetryability::Yes)
    );
    assert!(report.excerpt.len() <= 16 * 1024);
}

#[test]
fn in_parallel_each_has_its_own_end() {
    let world = VerifierFixture::new();
    let mut statuses = std::thread::scope(|scope| {
        let world = &world;
        let running: Vec<_> = (0..8)
            .map(|code| scope.spawn(move || world.run(&format!("sleep 0.0{code}; exit {code}"))))
            .collect();
        running
            .into_iter()
            .map(|thread| thread.join().unwrap().exit_code)
            .collect::<Vec<_>>()
    });
    statuses.sort_unstable();
    assert_eq!(statuses, (0..8).map(Some).collect::<Vec<_>>());
}

#[test]
fn a_root_that_is_gone_is_no_missing_program() {
    let world = VerifierFixture::new();
    std::fs::remove_dir_all(world.root()).unwrap();
    // Logs lie in the tree, so making their folder brings the root back: keep it a file.
    std::fs::write(world.root(), "").unwrap();
    let report = world.run("true");
    assert_eq!(
        verdict(&report),
        unsure(InconclusiveCause::Internal, None, CheckRetryability::Yes)
    );
}

/// A tool that we know is asked for its version, once, and not by a check that does not name it.
#[cfg(unix)]
#[test]
fn the_versions_of_known_tools_are_in_the_report() {
    use std::os::unix::fs::PermissionsExt;

    let mut world = VerifierFixture::new();
    let bin = world.outside().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let asked = world.outside().join("asked");
    let script = format!("#!/bin/sh\necho >> '{}'\necho v22.1.0\n", asked.display());
    std::fs::write(bin.join("node"), script).unwrap();
    std::fs::set_permissions(bin.join("node"), PermissionsExt::from_mode(0o755)).unwrap();
    let mut path = vec![bin];
    path.extend(std::env::split_paths(
        &world.env["PATH".as_ref() as &std::ffi::OsStr],
    ));
    world
        .env
        .insert("PATH".into(), std::env::join_paths(path).unwrap());

    let times = || std::fs::read_to_string(&asked).unwrap_or_default().len();
    assert_eq!(world.run("true || node x.js").tools, ["node v22.1.0"]);
    assert_eq!(times(), 1);
    assert_eq!(world.run("true || node y.js").tools, ["node v22.1.0"]);
    assert_eq!(times(), 1, "it was asked a moment ago");
    assert_eq!(world.run("true").tools, Vec::<String>::new());
}
