//! Killed at any moment: what was recorded stays recorded, the store opens, and what was
//! pending is asked again, once. `CHECKREIN_KILLS=200` kills more often.

use std::collections::BTreeMap;
use std::time::Duration;

use checkrein_core::event::Event;
use rustix::process::Signal;

use crate::agent::{Agent, Answer, read};
use crate::world::{Said, World, gone, signal, start};

pub(crate) fn kills() -> u64 {
    std::env::var("CHECKREIN_KILLS")
        .ok()
        .and_then(|number| number.parse().ok())
        .unwrap_or(20)
}

/// Moments and signals, the same in every run of the test.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % limit
    }

    fn signal(&mut self) -> Signal {
        if self.below(2) == 0 {
            Signal::KILL
        } else {
            Signal::TERM
        }
    }
}

/// Lets it live for a moment that nobody chose, then sends the signal and sees it end.
pub(crate) fn cut_down(
    child: std::process::Child,
    dice: &mut Dice,
    sent: Signal,
    within_ms: u64,
) -> Said {
    // Not a wait for anything: the moment itself is what the test is about.
    std::thread::sleep(Duration::from_millis(dice.below(within_ms)));
    signal(&child, sent);
    Said::of(&child.wait_with_output().unwrap())
}

fn verdicts(log: &[Event]) -> usize {
    log.iter()
        .filter(|event| {
            matches!(event, Event::Input(stamped) if matches!(stamped.input, checkrein_core::input::Input::EvidenceArrived(_)))
        })
        .count()
}

#[test]
fn hooks_killed_at_random_moments() {
    let world = World::with_check("sleep 0.05; exit 1");
    let agent = Agent::new(&world, "claude-code");
    agent.prompt("begin");
    let mut dice = Dice(0x5eed);
    let mut before = world.log(&agent.session);
    let mut died = 0;
    for n in 0..kills() {
        agent.prompt(&format!("mend it, {n}"));
        world.write("work", &n.to_string());
        let (ran, known) = (world.runs("tests"), world.log(&agent.session));
        assert_eq!(known[..before.len()], before, "kill {n}");
        let at_stop = dice.below(3) > 0;
        let message = if at_stop {
            agent.stop_message(false, "Done.")
        } else {
            agent.call(&format!("call-{n}"), "ls")
        };
        let hook = start(&mut agent.hook(), message.to_string().as_bytes());
        let sent = dice.signal();
        let said = cut_down(hook, &mut dice, sent, if at_stop { 160 } else { 30 });
        match said.code {
            // SIGTERM may be answered, but never with anything the agent takes for a broken hook.
            Some(_) => drop(read(
                agent.name,
                message["hook_event_name"].as_str().unwrap(),
                &said,
            )),
            None => died += 1,
        }
        gone(&world);

        let after = world.log(&agent.session);
        assert_eq!(
            after[..known.len()],
            known,
            "kill {n}, {sent:?}: what was recorded is gone"
        );
        // What was pending is asked again, once; what was found is not.
        let found = verdicts(&after) > verdicts(&known);
        let ran_then = world.runs("tests");
        assert!(ran_then <= ran + 1, "kill {n}");
        agent.stop().sent_back();
        let ran_now = world.runs("tests");
        match found {
            true => assert_eq!(
                ran_now, ran_then,
                "kill {n}, {sent:?}: a recorded verdict was not used"
            ),
            false => assert!(
                ran_now <= ran_then + 1,
                "kill {n}, {sent:?}: run more than once"
            ),
        }
        assert_eq!(
            verdicts(&world.log(&agent.session)),
            verdicts(&known) + 1,
            "kill {n}, {sent:?}"
        );
        before = after;
    }
    assert!(died > 0, "no kill ever met a living hook");
    world.replays(&agent.session);
}

#[test]
fn a_killed_hooks_check_is_taken_over_once() {
    for sent in [Signal::KILL, Signal::TERM] {
        let world = World::new();
        let (ready, go) = (world.pipe("ready"), world.pipe("go"));
        let check = format!(
            "echo ready > '{}'; read go < '{}'; exit 1",
            ready.display(),
            go.display()
        );
        world.config(&world.counted("tests", &check));
        let entries = [
            Agent::source(&world, "codex", "user"),
            Agent::source(&world, "codex", "project"),
        ];
        for entry in &entries {
            entry.prompt("mend it");
        }
        world.write("work", "1");
        let stop = |entry: &Agent<'_>| {
            start(
                &mut entry.hook(),
                entry.stop_message(false, "Done.").to_string().as_bytes(),
            )
        };
        let victim = stop(&entries[0]);
        crate::world::read_line(&ready);
        assert_ne!(world.alive(), [""; 0], "else `gone` says nothing");
        signal(&victim, sent);
        victim.wait_with_output().unwrap();
        gone(&world);

        // The other entry's hook finds the same stop pending, and so does the next stop.
        let heirs = [stop(&entries[1]), stop(&entries[0])];
        crate::world::read_line(&ready);
        std::fs::write(&go, "go\n").unwrap();
        for heir in heirs {
            let said = Said::of(&heir.wait_with_output().unwrap());
            assert!(
                matches!(read("codex", "Stop", &said), Answer::SentBack(_)),
                "{said:?}"
            );
        }
        assert_eq!(world.runs("tests"), 2, "{sent:?}");
        world.replays(&entries[0].session);
    }
}

#[test]
fn runs_killed_at_random_moments() {
    let world = World::with_check("sleep 0.05; test -f fixed");
    let script =
        "sleep 0.02; echo $$ > work; [ $CHECKREIN_ATTEMPT = 1 ] || touch fixed; sleep 0.02";
    let mut dice = Dice(0xdead_5eed);
    let mut known: BTreeMap<String, Vec<Event>> = BTreeMap::new();
    let mut died = 0;
    for n in 0..kills() {
        let _ = std::fs::remove_file(world.root().join("fixed"));
        let run = start(
            &mut world.checkrein(&["run", "--", "sh", "-c", script]),
            b"",
        );
        let sent = dice.signal();
        let said = cut_down(run, &mut dice, sent, 450);
        gone(&world);
        died += u64::from(said.code.is_none());
        if !world.state().exists() {
            continue;
        }
        let tasks = world.tasks();
        for task in &tasks {
            let session = task["session"].as_str().unwrap();
            let log = world.log(session);
            if let Some(before) = known.get(session) {
                assert_eq!(&log, before, "kill {n}: another run's log has changed");
            } else {
                // An exit code is only ever given for what is in the log.
                let ending = crate::world::ending(&task["transition"]);
                match (said.code, sent) {
                    (None, _) => {}
                    (Some(0), _) => assert_eq!(ending, "task_complete", "kill {n}"),
                    (Some(130), Signal::TERM) => assert_eq!(ending, "user_interrupt", "kill {n}"),
                    (code, _) => panic!("kill {n}: {code:?} {ending} {said:?}"),
                }
                world.replays(session);
            }
            known.insert(session.to_owned(), log);
        }
    }
    assert!(died > 0, "no kill ever met a living run");
    // After all that, a run is as good as any.
    let said = world.says(&["run", "--", "sh", "-c", "touch fixed"]);
    assert_eq!(said.code, Some(0), "{said:?}");
}
