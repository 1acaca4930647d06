//! `checkrein judge`: how far a judge can be believed.

mod calibrate;
mod document;
mod table;

use std::process::ExitCode;

use crate::args::Judge;
use crate::ui::errors::CommandError;

pub(crate) fn run(args: &Judge) -> Result<ExitCode, CommandError> {
    match args {
        Judge::Calibrate(args) => calibrate::run(args),
    }
}
