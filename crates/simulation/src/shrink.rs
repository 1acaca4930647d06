//! Shrinks a failing plan, and describes in a few lines what happens in it.

use std::io;

use crate::plan::SimulationPlan;
use crate::run::{SimulationOutcome, run_simulation_plan};
use crate::scheduler::VirtualTime;

/// Most plans that are tried.
const MAX_TRIES: u32 = 150;
/// Most lines of the description.
const MAX_LINES: usize = 20;

/// Returns what happens in the smallest plan found that fails in the same way, in at most 20 lines.
///
/// # Errors
/// If this machine cannot run a plan.
pub fn shrink_failing_simulation_plan(plan: SimulationPlan) -> io::Result<Vec<String>> {
    let outcome = run_simulation_plan(&plan)?;
    let Some(kind) = simulation_violation_kind(&outcome) else {
        return Ok(vec![format!("seed {} shows nothing wrong", plan.seed)]);
    };
    let (mut smallest, mut shown) = (plan, outcome);
    let mut tries = 0;
    'smaller: loop {
        for candidate in smallest.smaller_plans() {
            tries += 1;
            if tries > MAX_TRIES {
                break 'smaller;
            }
            let outcome = run_simulation_plan(&candidate)?;
            // A smaller plan that fails otherwise is another bug, and is not followed.
            if self::simulation_violation_kind(&outcome).as_ref() == Some(&kind) {
                (smallest, shown) = (candidate, outcome);
                continue 'smaller;
            }
        }
        break;
    }
    Ok(simulation_failure_lines(&smallest, &shown))
}

/// Returns the kind of the first violation, without the numbers that differ between plans.
fn simulation_violation_kind(outcome: &SimulationOutcome) -> Option<String> {
    let first = outcome.violations.first()?;
    let is_plain = |c: &char| !c.is_ascii_digit();
    Some(first.chars().take(30).filter(is_plain).collect())
}

fn simulation_failure_lines(plan: &SimulationPlan, outcome: &SimulationOutcome) -> Vec<String> {
    let end = outcome
        .story
        .iter()
        .position(|(_, line)| line.starts_with("VIOLATION"));
    let until = outcome.story.get(..=end.unwrap_or(0)).unwrap_or_default();
    // If there is not room for all lines, reads of the tree are left out first.
    let is_more = |(_, line): &&(VirtualTime, String)| !line.ends_with("reads the tree");
    let mut lines: Vec<&(VirtualTime, String)> = until.iter().collect();
    if lines.len() >= MAX_LINES {
        lines.retain(|line| is_more(line));
    }
    let first = lines.len().saturating_sub(MAX_LINES - 1);
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
