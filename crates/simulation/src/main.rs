//! The program that `cargo xtask simulate` starts once per processor. `run FROM COUNT` runs these
//! seeds and prints lines for each; `all SEED` prints everything that happens; `story SEED` shrinks
//! the plan of a failing seed and prints what happens in it. Killed threads stay until the process
//! ends, so one process runs a few hundred seeds at most.
#![expect(clippy::print_stdout, reason = "its output is its answer")]
#![expect(clippy::print_stderr, reason = "and what is wrong goes beside it")]

use std::process::ExitCode;

use checkrein_simulation::{SimulationPlan, run_simulation_plan, shrink_failing_simulation_plan};

fn main() -> ExitCode {
    match run_simulator_command_line(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("checkrein-simulation: {why}");
            ExitCode::from(2)
        }
    }
}

fn run_simulator_command_line(arguments: &[String]) -> Result<(), String> {
    let number = |text: &str| {
        let number = text.parse::<u64>();
        number.map_err(|_| format!("'{text}' is no number"))
    };
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["run", from, count] => {
            let from = number(from)?;
            for seed in from..from.saturating_add(number(count)?) {
                let outcome = run_simulation_plan(&SimulationPlan::plan_from_seed(seed))
                    .map_err(|error| error.to_string())?;
                for ending in outcome.endings {
                    println!("{seed}\tended\t{ending}");
                }
                for violation in outcome.violations {
                    println!("{seed}\tviolation\t{violation}");
                }
                // Last for each seed: the parent counts the seed as finished, and takes a failed exit for a
                // crash in the next one.
                println!("{seed}\tdone\t");
            }
            Ok(())
        }
        ["all", seed] => {
            let outcome = run_simulation_plan(&SimulationPlan::plan_from_seed(number(seed)?))
                .map_err(|error| error.to_string())?;
            for (at, line) in outcome.story {
                println!("{:>11.4} s  {line}", at.as_secs_f64());
            }
            Ok(())
        }
        ["story", seed] => {
            let seed = number(seed)?;
            let story = shrink_failing_simulation_plan(SimulationPlan::plan_from_seed(seed))
                .map_err(|error| error.to_string())?;
            for line in story {
                println!("{line}");
            }
            Ok(())
        }
        _ => Err("it takes `run FROM COUNT` or `story SEED`".to_owned()),
    }
}
