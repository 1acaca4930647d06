//! `checkrein off` and `checkrein on`: a person switches Checkrein off in this repo, for a
//! while and for a reason, and on again.

use std::process::ExitCode;

use checkrein_core::ids::UnixMillis;
use checkrein_runtime::config::ConfigDuration;

use crate::args::SwitchOff;
use crate::off::{self, Off};
use crate::ui::errors::CommandError;
use crate::{exit_code, locate, person, ui};

/// What is switched off for longer is forgotten, not switched off.
const LONGEST_MS: u64 = 30 * 24 * 3_600_000;

pub(crate) fn off(args: &SwitchOff) -> Result<ExitCode, CommandError> {
    let by = person::required("off")?;
    let span = ConfigDuration::parse_time_span(&args.span).filter(|span| span.ms > 0);
    let Some(span) = span else {
        return Err(CommandError::usage(
            format!("--for takes a span of time, not '{}'", args.span),
            "for instance --for 30m, --for 1h",
        ));
    };
    if span.ms > LONGEST_MS {
        return Err(CommandError::usage(
            format!("--for {} is too long: at most 30d", args.span),
            "to go without it for good: checkrein init --undo",
        ));
    }
    let reason = args.reason.trim();
    if reason.is_empty() {
        return Err(CommandError::usage(
            "--reason must say something",
            "it is shown at every ending until it is on again",
        ));
    }
    let located = locate::locate(&std::env::current_dir()?, None);
    let now = checkrein_runtime::now_millis();
    let off = Off {
        since: now,
        until: UnixMillis(now.0.saturating_add(span.ms)),
        reason: reason.to_owned(),
        by,
    };
    off::write(&located.place.state, &off)?;
    #[cfg(unix)]
    checkrein_runtime::cancel_all_workers(&located.place.state);
    ui::answer(&off.words());
    ui::say(&format!(
        "In {} no tool call is judged and no stop is checked; each ending says so. On again: checkrein on",
        located.place.root.display()
    ));
    Ok(exit_code::exit(exit_code::YES))
}

pub(crate) fn on() -> Result<ExitCode, CommandError> {
    person::required("on")?;
    let located = locate::locate(&std::env::current_dir()?, None);
    ui::answer(match off::remove(&located.place.state)? {
        true => "checkrein is on again",
        false => "checkrein was not switched off here",
    });
    Ok(exit_code::exit(exit_code::YES))
}
