//! Makes a plan that fails smaller, and tells what happens in it in a few lines.

use std::io;

use crate::plan::Plan;
use crate::run::{Outcome, run};
use crate::scheduler::Time;

/// More plans are not tried.
const MOST_TRIES: u32 = 150;
/// More lines nobody reads.
const MOST_LINES: usize = 20;

/// What happens in the smallest plan that was found to fail in the same way, in at most 20 lines.
///
/// # Errors
/// If this machine cannot run a plan.
pub fn shrink(plan: Plan) -> io::Result<Vec<String>> {
    let outcome = run(&plan)?;
    let Some(kind) = kind(&outcome) else {
        return Ok(vec![format!("seed {} shows nothing wrong", plan.seed)]);
    };
    let (mut smallest, mut shown) = (plan, outcome);
    let mut tries = 0;
    'smaller: loop {
        for candidate in smallest.smaller() {
            tries += 1;
            if tries > MOST_TRIES {
                break 'smaller;
            }
            let outcome = run(&candidate)?;
            if self::kind(&outcome).as_ref() == Some(&kind) {
                (smallest, shown) = (candidate, outcome);
                continue 'smaller;
            }
        }
        break;
    }
    Ok(tell(&smallest, &shown))
}

/// What is wrong, without what differs from run to run.
fn kind(outcome: &Outcome) -> Option<String> {
    let first = outcome.violations.first()?;
    let is_plain = |c: &char| !c.is_ascii_digit();
    Some(first.chars().take(30).filter(is_plain).collect())
}

fn tell(plan: &Plan, outcome: &Outcome) -> Vec<String> {
    let end = outcome
        .story
        .iter()
        .position(|(_, line)| line.starts_with("VIOLATION"));
    let until = outcome.story.get(..=end.unwrap_or(0)).unwrap_or_default();
    // Where there is no room for all, readings of the tree go first.
    let is_more = |(_, line): &&(Time, String)| !line.ends_with("reads the tree");
    let mut lines: Vec<&(Time, String)> = until.iter().collect();
    if lines.len() >= MOST_LINES {
        lines.retain(|line| is_more(line));
    }
    let first = lines.len().saturating_sub(MOST_LINES - 1);
    let checks = plan.checks.iter().map(|check| check.to_string());
    let enough = if plan.any_is_enough {
        " (one is enough)"
    } else {
        ""
    };
    let head = format!(
        "seed {}: {}{enough}",
        plan.seed,
        checks.collect::<Vec<_>>().join("; ")
    );
    let told = lines.get(first..).unwrap_or_default().iter();
    let told = told.map(|(at, line)| format!("{:>11.4} s  {line}", at.as_secs_f64()));
    std::iter::once(head).chain(told).collect()
}
