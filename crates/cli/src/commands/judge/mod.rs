//! `checkrein judge`: measures how far a judge can be believed.

mod calibrate;
mod document;
mod table;

use std::process::ExitCode;

use crate::args::JudgeSubcommand;
use crate::ui::errors::CommandError;

pub(crate) fn run_judge_command(args: &JudgeSubcommand) -> Result<ExitCode, CommandError> {
    match args {
        JudgeSubcommand::Calibrate(args) => calibrate::run_judge_calibration(args),
    }
}
