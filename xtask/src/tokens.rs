//! `tokens`: shows what the supervisor's questions cost, counted over the request bodies that a
//! model on loopback got: a run of a hundred steps with the defaults, and a labelled set of a
//! hundred calls with `scope = "all"` beside `"risky"`. The tests that keep these numbers print
//! them.

use std::process::ExitCode;

use crate::build::cargo_command;

/// Package and test module of each table.
const TABLES: &[(&str, &str)] = &[("checkrein", "tokens::"), ("checkrein-cli", "risk_set::")];

/// Runs the tests that print the tables.
pub(crate) fn run_question_token_tests(arguments: &[String]) -> Result<ExitCode, String> {
    if let Some(first) = arguments.first() {
        return Err(format!("tokens takes no arguments, not even '{first}'"));
    }
    let mut kept = true;
    for (package, module) in TABLES {
        let mut command = cargo_command();
        command.args(["test", "--quiet", "--package", package, "--test", "it"]);
        command.args(["--", module, "--nocapture"]);
        let status = command
            .status()
            .map_err(|error| format!("cannot run cargo: {error}"))?;
        kept &= status.success();
    }
    Ok(ExitCode::from(u8::from(!kept)))
}
