//! Output tokens: what is recorded is what the model said it used.

use std::io::Result;

use super::{BOTH, Case, ended_well, one_task, verifier};
use crate::agents::report::Report;
use crate::agents::script::{Act, output_tokens, rounds};
use crate::agents::world::{Setup, Stage, number};

pub(super) const CASE: Case = Case { name: "tokens", about: "output tokens against the script", agents: BOTH, run };

fn run(stage: &Stage<'_>, report: &mut Report) -> Result<()> {
    let world = stage.world(Setup {
        name: "main",
        files: &[("README.md", "a repo\n")],
        config: verifier("test -f verified.txt"),
        sources: &["user"],
        script: rounds(vec![
            // Two blocks of one response: counted once.
            vec![Act::Say("First a look.".to_owned()), Act::Shell("ls".to_owned())],
            vec![Act::Shell("echo one > one.txt".to_owned()), Act::Shell("echo two > two.txt".to_owned())],
            Act::say("Done, I think."),
            Act::shell("echo yes > verified.txt"),
            Act::say("Done, I know."),
        ]),
    })?;
    let ran = world.headless("Make it verified.")?;
    ended_well(report, &world, &ran);
    let asked = world.model.seen().asked.len();
    report.equal("the model was asked as often as scripted", &asked, &5);
    let task = one_task(report, &world, "task_complete")?;
    let said = world.model.seen().tokens;
    let counted = number(&task, "output_tokens");
    let last = output_tokens(asked.saturating_sub(1));
    let behind = counted.map(|counted| said.saturating_sub(counted));
    report.check(
        "the sum is the script's, the last message at most missing",
        behind == Some(0) || behind == Some(last),
        &format!("{counted:?} recorded, {said} scripted, the last message {last}"),
    );
    report.note(match behind {
        Some(0) => "seen: exact, the last message included",
        Some(behind) if behind == last => "seen: the last message was not in the transcript in time",
        _ => "seen: neither",
    });
    Ok(())
}
