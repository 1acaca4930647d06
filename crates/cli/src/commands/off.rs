//! `checkrein off` and `checkrein on`: a person switches Checkrein off in this repo, for a while
//! and for a reason, and on again.

use std::process::ExitCode;

use checkrein_core::ids::UnixMillis;
use checkrein_runtime::config::ConfigDuration;

use crate::args::OffArgs;
use crate::off::{self, OffPeriod};
use crate::ui::errors::CommandError;
use crate::{exit_code, locate, person, ui};

/// Longest time to be off: a longer one is not a pause but forgotten.
const LONGEST_MS: u64 = 30 * 24 * 3_600_000;

pub(crate) fn run_off_command(args: &OffArgs) -> Result<ExitCode, CommandError> {
    let by = person::require_person("off")?;
    let span = ConfigDuration::parse_time_span(&args.span).filter(|span| span.ms > 0);
    let Some(span) = span else {
        return Err(CommandError::usage_error(
            format!("--for takes a span of time, not '{}'", args.span),
            "for instance --for 30m, --for 1h",
        ));
    };
    if span.ms > LONGEST_MS {
        return Err(CommandError::usage_error(
            format!("--for {} is too long: at most 30d", args.span),
            "to go without it for good: checkrein init --undo",
        ));
    }
    let reason = args.reason.trim();
    if reason.is_empty() {
        return Err(CommandError::usage_error(
            "--reason must say something",
            "it is shown at every ending until it is on again",
        ));
    }
    let located = locate::locate_project(&std::env::current_dir()?, None);
    let now = checkrein_runtime::now_millis();
    let off = OffPeriod {
        since: now,
        until: UnixMillis(now.0.saturating_add(span.ms)),
        reason: reason.to_owned(),
        by,
    };
    off::write_off_file(&located.place.state, &off)?;
    // Owners run checks on their own, and would go on although nothing is judged.
    #[cfg(unix)]
    checkrein_runtime::cancel_all_workers(&located.place.state);
    ui::print_line_to_stdout(&off.off_summary_line());
    ui::print_wrapped_to_stderr(&format!(
        "In {} no tool call is judged and no stop is checked; each ending says so. On again: checkrein on",
        located.place.root.display()
    ));
    Ok(exit_code::to_exit_code(exit_code::YES))
}

pub(crate) fn run_switch_on_command() -> Result<ExitCode, CommandError> {
    person::require_person("on")?;
    let located = locate::locate_project(&std::env::current_dir()?, None);
    ui::print_line_to_stdout(match off::remove_off_file(&located.place.state)? {
        true => "checkrein is on again",
        false => "checkrein was not switched off here",
    });
    Ok(exit_code::to_exit_code(exit_code::YES))
}
