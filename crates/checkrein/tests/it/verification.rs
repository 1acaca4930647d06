//! The verification loop: rows of its document, and law 8 (runs of one loop share nothing mutable).

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use checkrein::models::BoxFuture;
use checkrein::{
    Agent, AgentRun, VerificationLoop, VerificationLoopOutcome, VerificationLoopResult,
    VerificationResult, Verifier,
};

use crate::scripted::now;

type Run = AgentRun<String>;

/// Says one thing after the other, and keeps with what it was sent back.
struct Worker {
    says: Mutex<VecDeque<&'static str>>,
    heard: Mutex<Vec<(Vec<String>, String)>>,
    edits: Option<u64>,
}

impl Worker {
    fn saying(says: impl IntoIterator<Item = &'static str>) -> Self {
        Self {
            says: Mutex::new(says.into_iter().collect()),
            heard: Mutex::default(),
            edits: None,
        }
    }

    fn heard(&self) -> Vec<(Vec<String>, String)> {
        self.heard.lock().unwrap().clone()
    }

    /// What it was sent back with.
    fn feedback(&self) -> Vec<String> {
        let heard = self.heard().into_iter().skip(1);
        heard.map(|(_, message)| message).collect()
    }
}

/// A conversation goes on with what was asked and answered.
fn said(history: &[String], message: &str, output: String, edits: Option<u64>) -> Run {
    AgentRun {
        messages: [history, &[message.to_owned(), output.clone()]].concat(),
        output,
        edits,
    }
}

impl Agent for Worker {
    type ConversationMessage = String;
    type AgentRunError = String;

    fn run<'a>(
        &'a self,
        history: &'a [String],
        message: &'a str,
    ) -> BoxFuture<'a, Result<Run, String>> {
        Box::pin(async move {
            let heard = (history.to_vec(), message.to_owned());
            self.heard.lock().unwrap().push(heard);
            let output = self.says.lock().unwrap().pop_front();
            let output = output.ok_or("it is tired")?.to_owned();
            Ok(said(history, message, output, self.edits))
        })
    }
}

/// How often each was started, in rounds: a round ends where the agent ran in between.
#[derive(Default)]
struct Starts(Mutex<Vec<String>>);

impl Starts {
    fn note(&self, name: &str) {
        self.0.lock().unwrap().push(name.to_owned());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// Passes where the output has its name.
fn wants(name: &'static str, starts: &Arc<Starts>) -> Verifier<String> {
    let starts = starts.clone();
    Verifier::new(name, move |run: &Run| {
        starts.note(name);
        if run.output.contains(name) {
            VerificationResult::Passed
        } else {
            VerificationResult::Failed(format!("no {name} in '{}'", run.output))
        }
    })
}

fn three(starts: &Arc<Starts>) -> VerificationLoop<String> {
    let names = ["lint", "tests", "types"];
    VerificationLoop::new(names.map(|name| wants(name, starts)).into())
}

fn run(
    checked: &VerificationLoop<String>,
    worker: &Worker,
) -> VerificationLoopResult<String, String> {
    now(checked.run(worker, "build it")).unwrap()
}

const ALL: &str = "lint tests types";

#[test]
fn passes_on_the_first_try() {
    let starts = Arc::default();
    let worker = Worker::saying([ALL]);
    let done = run(&three(&starts), &worker);
    assert_eq!(done.outcome, VerificationLoopOutcome::Verified);
    assert_eq!(
        (done.retries, starts.count(), worker.heard().len()),
        (0, 3, 1)
    );
    assert_eq!((done.run.output.as_str(), done.failing), (ALL, vec![]));
}

/// Failed ones first, all before accepting.
#[test]
fn failed_verifiers_run_first_then_all() {
    let starts = Arc::default();
    let worker = Worker::saying(["lint types", ALL]);
    let done = run(&three(&starts), &worker);
    assert_eq!(
        (done.outcome, done.retries),
        (VerificationLoopOutcome::Verified, 1)
    );
    let expected = ["lint", "tests", "types", "tests", "lint", "tests", "types"];
    assert_eq!(starts.all(), expected);
}

#[test]
fn what_breaks_while_another_is_mended_is_found() {
    let starts = Arc::default();
    let worker = Worker::saying(["lint types", "tests", ALL]);
    let done = run(&three(&starts), &worker);
    assert_eq!(
        (done.outcome, done.retries),
        (VerificationLoopOutcome::Verified, 2)
    );
    let expected = [
        "lint", "tests", "types", // one fails
        "tests", "lint", "tests", "types", // mended, two others broken
        "lint", "types", "lint", "tests", "types",
    ];
    assert_eq!(starts.all(), expected);
    let feedback = &worker.feedback()[1];
    assert!(
        feedback.contains("- lint: ") && !feedback.contains("- tests: "),
        "{feedback}"
    );
}

/// Whatever all of them found needs no second look.
#[test]
fn when_all_failed_all_run_once() {
    let starts = Arc::default();
    let worker = Worker::saying(["nothing", ALL]);
    let done = run(&three(&starts), &worker);
    assert_eq!(
        (done.outcome, starts.count()),
        (VerificationLoopOutcome::Verified, 6)
    );
}

#[test]
fn three_retries_by_default_then_exhausted() {
    let starts = Arc::default();
    let worker = Worker::saying(["lint", "lint tests", "lint types", "lint tests", ALL]);
    let done = run(&three(&starts), &worker);
    assert_eq!(
        (done.outcome, done.retries),
        (VerificationLoopOutcome::Exhausted, 3)
    );
    assert_eq!(worker.heard().len(), 4);
    assert_eq!(
        done.run.output, "lint tests",
        "the last run, and not called good"
    );
    let failed = VerificationResult::Failed("no types in 'lint tests'".to_owned());
    assert_eq!(done.failing, [("types".to_owned(), failed)]);
}

/// The last retry is verified too.
#[test]
fn the_last_retry_is_verified_too() {
    let starts = Arc::default();
    let worker = Worker::saying(["", "lint", "lint types", ALL]);
    assert_eq!(
        run(&three(&starts), &worker).outcome,
        VerificationLoopOutcome::Verified
    );
}

#[test]
fn zero_retries_verify_once() {
    let starts = Arc::default();
    let worker = Worker::saying(["lint", ALL]);
    let done = run(&three(&starts).max_retries(0), &worker);
    assert_eq!(
        (done.outcome, done.retries),
        (VerificationLoopOutcome::Exhausted, 0)
    );
    assert_eq!((starts.count(), worker.heard().len()), (3, 1));
    let worker = Worker::saying([ALL]);
    assert_eq!(
        run(&three(&starts).max_retries(0), &worker).outcome,
        VerificationLoopOutcome::Verified
    );
}

#[test]
fn feedback_names_failures_and_history_grows() {
    let starts = Arc::default();
    let worker = Worker::saying(["lint", "lint tests", ALL]);
    let done = run(&three(&starts), &worker);
    let feedback = worker.feedback();
    assert_eq!(
        feedback[0],
        "Verification failed (attempt 1 of 3). These checks fail:\n- tests: no tests in 'lint'\n- types: no types in 'lint'\nFix only these, and change nothing else."
    );
    assert_eq!(
        feedback[1],
        "Verification failed (attempt 2 of 3). These checks fail:\n- types: no types in 'lint tests'\nFix only these, and change nothing else."
    );
    // Each retry goes on with all that was said before.
    let heard = worker.heard();
    assert_eq!(heard[0].0, Vec::<String>::new());
    assert_eq!(heard[1].0, ["build it", "lint"]);
    assert_eq!(heard[2].0, ["build it", "lint", &feedback[0], "lint tests"]);
    assert_eq!(done.run.messages.len(), 6);
}

#[test]
fn a_long_message_keeps_its_end() {
    let long = |_: &Run| VerificationResult::Failed(format!("{}the error", "x".repeat(100_000)));
    let worker = Worker::saying(["a", "b"]);
    run(
        &VerificationLoop::new(vec![Verifier::new("tests", long)]).max_retries(1),
        &worker,
    );
    let feedback = &worker.feedback()[0];
    assert!(feedback.len() < 10_000, "{}", feedback.len());
    assert!(feedback.contains("bytes cut ...]") && feedback.contains("xthe error\n"));
}

#[test]
fn no_verifiers_is_an_outcome() {
    let worker = Worker::saying(["anything"]);
    let done = run(&VerificationLoop::new(Vec::new()), &worker);
    assert_eq!(done.outcome, VerificationLoopOutcome::NoVerifiers);
}

#[test]
fn no_agent_is_an_outcome() {
    let starts = Arc::default();
    let first = |output: &str| AgentRun {
        messages: vec!["build it".to_owned()],
        output: output.to_owned(),
        edits: None,
    };
    let checked = three(&starts);
    let done = now(checked.verify(first("lint"), None::<&Worker>));
    assert_eq!(
        (done.outcome, done.failing.len()),
        (VerificationLoopOutcome::NoAgent, 2)
    );
    let done = now(checked.verify(first(ALL), None::<&Worker>));
    assert_eq!(done.outcome, VerificationLoopOutcome::Verified);
}

#[test]
fn an_agent_that_fails_leaves_the_run_before() {
    let starts = Arc::default();
    let worker = Worker::saying(["lint"]);
    let done = run(&three(&starts), &worker);
    assert_eq!(
        done.outcome,
        VerificationLoopOutcome::AgentFailed("it is tired".to_owned())
    );
    assert_eq!(done.run.messages, ["build it", "lint"]);
    assert_eq!((done.retries, done.failing.len()), (1, 2));
    let error = now(three(&starts).run(&Worker::saying([]), "build it"));
    assert_eq!(error, Err("it is tired".to_owned()));
}

#[test]
fn the_same_failures_may_end_it_early() {
    let starts = Arc::default();
    let stuck = || Worker::saying(["lint", "lint", "lint", "lint", ALL]);
    let worker = stuck();
    let done = run(&three(&starts).same_failures(2), &worker);
    assert_eq!(
        (done.outcome, done.retries),
        (VerificationLoopOutcome::NoProgress, 1)
    );
    let done = run(&three(&starts), &stuck());
    assert_eq!(done.outcome, VerificationLoopOutcome::Exhausted);
    let worker = Worker::saying(["lint", "types", "lint", ALL]);
    let done = run(&three(&starts).same_failures(2), &worker);
    assert_eq!(
        done.outcome,
        VerificationLoopOutcome::Verified,
        "other failures are progress"
    );
}

#[test]
fn only_edits_are_verified_if_so_configured() {
    let starts = Arc::default();
    let with = |edits| Worker {
        edits,
        ..Worker::saying(["lint", "lint", ALL])
    };
    let done = run(&three(&starts).skip_runs_without_edits(), &with(Some(0)));
    assert_eq!(
        (done.outcome, starts.count()),
        (VerificationLoopOutcome::NothingEdited, 0)
    );
    for edits in [Some(2), None] {
        let done = run(&three(&starts).skip_runs_without_edits(), &with(edits));
        assert_eq!(done.outcome, VerificationLoopOutcome::Verified, "{edits:?}");
    }
    let done = run(&three(&starts), &with(Some(0)));
    assert_eq!(
        done.outcome,
        VerificationLoopOutcome::Verified,
        "not so configured"
    );
}

/// Nothing can have become better.
#[test]
fn after_a_retry_without_an_edit_nothing_runs_again() {
    let starts = Arc::<Starts>::default();
    let first = AgentRun {
        messages: Vec::new(),
        output: "lint".to_owned(),
        edits: Some(1),
    };
    let idle = Worker {
        edits: Some(0),
        ..Worker::saying([ALL, ALL, ALL])
    };
    let checked = three(&starts).skip_runs_without_edits().same_failures(3);
    let done = now(checked.verify(first, Some(&idle)));
    assert_eq!(
        (done.outcome, done.retries),
        (VerificationLoopOutcome::NoProgress, 2)
    );
    assert_eq!(starts.count(), 3);
}

/// Neither passed nor anything that the agent could mend.
#[test]
fn what_a_verifier_could_not_find_out_is_told_apart() {
    let down = || VerificationResult::Inconclusive("the network is down".to_owned());
    let worker = Worker::saying(["a", "b"]);
    let unknown = VerificationLoop::new(vec![Verifier::new("links", move |_: &Run| down())]);
    let done = run(&unknown, &worker);
    assert_eq!(
        (done.outcome, worker.heard().len()),
        (VerificationLoopOutcome::Inconclusive, 1)
    );
    assert_eq!(done.failing, [("links".to_owned(), down())]);
    // Beside a real failure it is not told.
    let starts = Arc::default();
    let worker = Worker::saying(["a", "tests"]);
    let both = vec![
        Verifier::new("links", move |_: &Run| down()),
        wants("tests", &starts),
    ];
    let done = run(&VerificationLoop::new(both), &worker);
    assert_eq!(done.outcome, VerificationLoopOutcome::Inconclusive);
    assert!(!worker.feedback()[0].contains("links"));
}

#[test]
fn a_verifier_that_panics_is_not_passed() {
    type Kind = fn() -> Verifier<String>;
    let kinds: [Kind; 4] = [
        || Verifier::new("x", |_: &Run| panic!("oh no")),
        || Verifier::new_blocking_verifier("x", || panic!("oh no")),
        || Verifier::new_async_verifier("x", |_: &Run| panic!("oh no")),
        || Verifier::new_async_verifier("x", |_: &Run| Box::pin(async { panic!("oh no") })),
    ];
    for kind in kinds {
        let done = run(&VerificationLoop::new(vec![kind()]), &Worker::saying(["a"]));
        assert_eq!(done.outcome, VerificationLoopOutcome::Inconclusive);
        let why = VerificationResult::Inconclusive("it panicked: oh no".to_owned());
        assert_eq!(done.failing, [("x".to_owned(), why)]);
    }
}

/// Each waits for the other to have been started.
#[test]
fn verifiers_run_in_parallel() {
    let (tell_lint, by_tests) = channel();
    let (tell_tests, by_lint) = channel();
    let meets = |name: &str, tell: Sender<()>, heard: Receiver<()>| {
        let heard = Mutex::new(heard);
        Verifier::new_blocking_verifier(name, move || {
            tell.send(()).unwrap();
            match heard.lock().unwrap().recv_timeout(Duration::from_secs(30)) {
                Ok(()) => VerificationResult::Passed,
                Err(_) => VerificationResult::Failed("it was not there".to_owned()),
            }
        })
    };
    let together = VerificationLoop::new(vec![
        meets("tests", tell_lint, by_lint),
        meets("lint", tell_tests, by_tests),
    ]);
    assert_eq!(
        run(&together, &Worker::saying(["a"])).outcome,
        VerificationLoopOutcome::Verified
    );
}

#[test]
fn parallel_false_runs_one_at_a_time() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let one = |name: &str| {
        let (running, most) = (running.clone(), most.clone());
        Verifier::new_async_verifier(name, move |_: &Run| {
            let (running, most) = (running.clone(), most.clone());
            Box::pin(async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                breath().await;
                running.fetch_sub(1, Ordering::SeqCst);
                VerificationResult::Passed
            })
        })
    };
    let verifiers = || ["a", "b", "c"].map(one).into();
    run(
        &VerificationLoop::new(verifiers()).parallel(false),
        &Worker::saying(["x"]),
    );
    assert_eq!(most.load(Ordering::SeqCst), 1);
    run(&VerificationLoop::new(verifiers()), &Worker::saying(["x"]));
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

#[test]
fn quick_blocking_and_async_verifiers_mix() {
    let starts = Arc::<Starts>::default();
    let (a, b) = (starts.clone(), starts.clone());
    let checked = VerificationLoop::new(vec![
        wants("quick", &starts),
        Verifier::new_blocking_verifier("blocking", move || {
            a.note("blocking");
            VerificationResult::Passed
        }),
        Verifier::new_async_verifier("waiting", move |run: &Run| {
            let b = b.clone();
            Box::pin(async move {
                breath().await;
                b.note("waiting");
                if run.output.contains("slow") {
                    VerificationResult::Passed
                } else {
                    VerificationResult::Failed("too fast".to_owned())
                }
            })
        }),
    ]);
    let worker = Worker::saying(["quick", "quick slow"]);
    let done = run(&checked, &worker);
    assert_eq!(
        (done.outcome, done.retries),
        (VerificationLoopOutcome::Verified, 1)
    );
    assert!(worker.feedback()[0].contains("- waiting: too fast"));
    assert_eq!(starts.count(), 3 + 1 + 3);
}

// Law 8.

/// Lets others go on once.
async fn breath() {
    let mut taken = false;
    poll_fn(|context| {
        if std::mem::replace(&mut taken, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// All at once, on one thread, each as far as it gets in its turn.
async fn all_at_once<T>(futures: Vec<impl Future<Output = T> + Send>) -> Vec<T> {
    let mut running: Vec<_> = futures
        .into_iter()
        .map(|one| (Box::pin(one), None))
        .collect();
    poll_fn(|context| {
        let mut waiting = false;
        for (future, done) in &mut running {
            if done.is_some() {
                continue;
            }
            match pin!(future).as_mut().poll(context) {
                Poll::Ready(result) => *done = Some(result),
                Poll::Pending => waiting = true,
            }
        }
        if waiting {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
    running.into_iter().filter_map(|(_, done)| done).collect()
}

/// Every second one has to be sent back once, and takes its time.
struct Numbered(usize);

impl Agent for Numbered {
    type ConversationMessage = String;
    type AgentRunError = String;

    fn run<'a>(
        &'a self,
        history: &'a [String],
        message: &'a str,
    ) -> BoxFuture<'a, Result<Run, String>> {
        Box::pin(async move {
            for _ in 0..=self.0 % 7 {
                breath().await;
            }
            let done = self.0.is_multiple_of(2) || !history.is_empty();
            let word = if done { "tests" } else { "draft" };
            let output = format!("{} {word} lint", self.0);
            Ok(said(history, message, output, None))
        })
    }
}

/// What each run's verifiers looked at, by the run's number.
type Looked = Arc<Mutex<BTreeMap<String, Vec<String>>>>;

fn looking(looked: &Looked) -> VerificationLoop<String> {
    let one = |name: &'static str| {
        let looked = looked.clone();
        Verifier::new_async_verifier(name, move |run: &Run| {
            let looked = looked.clone();
            Box::pin(async move {
                breath().await;
                let number = run.output.split(' ').next().unwrap_or_default().to_owned();
                let mut looked = looked.lock().unwrap();
                looked.entry(number).or_default().push(name.to_owned());
                if run.output.contains(name) {
                    VerificationResult::Passed
                } else {
                    VerificationResult::Failed(format!("no {name}"))
                }
            })
        })
    };
    VerificationLoop::new(["tests", "lint"].map(one).into())
}

#[test]
fn law_8_a_thousand_runs_of_one_loop_are_each_as_alone() {
    const RUNS: usize = 1_000;
    let looked = Looked::default();
    let shared = looking(&looked);
    let agents: Vec<Numbered> = (0..RUNS).map(Numbered).collect();
    let runs = agents
        .iter()
        .map(|agent| shared.run(agent, "build it"))
        .collect();
    let together: Vec<_> = now(all_at_once(runs));
    assert_eq!(together.len(), RUNS);
    let looked = looked.lock().unwrap().clone();
    for (agent, run) in agents.iter().zip(together) {
        let own = Looked::default();
        let alone = now(looking(&own).run(agent, "build it"));
        assert_eq!(run, alone, "run {}", agent.0);
        let number = agent.0.to_string();
        assert_eq!(
            looked.get(&number),
            own.lock().unwrap().get(&number),
            "run {number}"
        );
        let run = run.unwrap();
        assert_eq!(run.outcome, VerificationLoopOutcome::Verified);
        assert_eq!(run.retries as usize, agent.0 % 2);
    }
}
